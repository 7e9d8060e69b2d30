/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRICKET_SOFT_WAITS selects where calls wait for the device, as NVIDIA's driver may.  By default,
 * no call does.
 *
 *	load	the load of a module, and the first launch of each kernel, which loads the kernel in
 *		a lazy driver: waits until the context is idle
 *	launch	a kernel for a stream with QUEUE commands: waits until there are fewer
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/context/waits.h"
#include "softgpu/context/context.h"
#include "softgpu/stream/stream.h"

enum { LOAD = 1, LAUNCH = 2 };
enum { QUEUE = 1024 };

static bool is_word(const char *list, const char *word)
{
	size_t length = strlen(word);
	for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
		if (!strncmp(p, word, length) && (!p[length] || p[length] == ','))
			return true;
	return false;
}

unsigned ckt_soft_waits_parse(const char *list)
{
	return (is_word(list, "load") ? LOAD : 0) | (is_word(list, "launch") ? LAUNCH : 0);
}

static bool is_on(int what)
{
	static atomic_int answer = -1;
	int waits = atomic_load_explicit(&answer, memory_order_relaxed);
	if (waits < 0) {
		waits = (int)ckt_soft_waits_parse(getenv("CRICKET_SOFT_WAITS"));
		atomic_store_explicit(&answer, waits, memory_order_relaxed);
	}
	/* A stream's own thread would wait for itself. */
	return waits & what && !ckt_soft_in_graph;
}

void ckt_soft_waits_load(struct ckt_soft_context *context)
{
	if (is_on(LOAD))
		ckt_soft_context_synchronize(context);
}

void ckt_soft_waits_launch(struct ckt_soft_stream *stream)
{
	if (!is_on(LAUNCH))
		return;
	pthread_mutex_lock(&stream->lock);
	while (stream->submitted - stream->completed >= QUEUE)
		pthread_cond_wait(&stream->done, &stream->lock);
	pthread_mutex_unlock(&stream->lock);
}
