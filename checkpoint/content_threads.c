/* SPDX-License-Identifier: Apache-2.0 */
/* Threads for contents; see content_threads.h. */
#include "checkpoint/content_threads.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/processors.h"
#include "checkpoint/format/store.h"
#include "checkpoint/memory_operations.h"
#include "checkpoint/session.h"
#include "checkpoint/state.h"
#include "rpc/gen/cuda_driver.h"
#include "rpc/handle.h"
#include "rpc/not_supported.h"

/* Like the staging memory, far from the mappings of the loader and the driver. */
#define BUFFERS_BASE 0x1f8000000000ull

static struct {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	int (*work)(struct ckt_content_thread *member, void *opaque);
	void *opaque;
	unsigned round, busy;
	int error;
	unsigned count;
	uint8_t *buffers;
	bool pinned;
	CUcontext first, contexts[CKT_DEVICES_MAX];
	struct ckt_content_thread members[CKT_CREW_SIZE];
} threads = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

static void *crew_thread(void *opaque)
{
	struct ckt_content_thread *member = opaque;
	unsigned seen = 0;
	pthread_mutex_lock(&threads.lock);
	for (;;) {
		while (threads.round == seen)
			pthread_cond_wait(&threads.cond, &threads.lock);
		seen = threads.round;
		pthread_mutex_unlock(&threads.lock);
		int error = threads.work(member, threads.opaque);
		pthread_mutex_lock(&threads.lock);
		if (error && !threads.error)
			threads.error = error;
		if (--threads.busy == 0)
			pthread_cond_broadcast(&threads.cond);
	}
	return NULL;
}

static unsigned cores(void)
{
	unsigned n = ckt_processors();
	return n < 2 ? 2 : n > CKT_CREW_SIZE ? CKT_CREW_SIZE : n;
}

int ckt_content_threads_start(struct ckt_worker *worker)
{
	enum { BYTES = 2 * CKT_IMAGE_CHUNK };
	threads.count = cores();
	threads.first = ckt_session_operations.first_context(worker);
	threads.buffers =
		ckt_session_operations.map_place(BUFFERS_BASE, (size_t)threads.count * BYTES, 0);
	if (!threads.buffers)
		return -errno;
	for (unsigned i = 0; i < threads.count; i++) {
		struct ckt_content_thread *member = &threads.members[i];
		*member = (struct ckt_content_thread){.worker = worker, .index = i};
		member->buffers[0] = member->buffer = threads.buffers + (size_t)i * BYTES;
		member->buffers[1] = member->buffer + CKT_IMAGE_CHUNK;
		/*
		 * Streams are part of the history of addresses, and older images' sessions had none
		 * of these.
		 */
		if (ckt_checkpoint_of(worker)->old_image ||
			ckt_driver.cuStreamCreateWithPriority(
				&member->stream, CU_STREAM_NON_BLOCKING, 0))
			member->stream = NULL;
		pthread_t thread;
		int error = pthread_create(&thread, NULL, crew_thread, member);
		if (error)
			return -error;
		pthread_detach(thread);
	}
	return 0;
}

unsigned ckt_content_threads_count(void)
{
	return threads.count;
}

void ckt_content_threads_prepare(void)
{
	size_t size = (size_t)threads.count * 2 * CKT_IMAGE_CHUNK;
	if (threads.pinned || ckt_driver.cuCtxSetCurrent(threads.first))
		return;
	memset(threads.buffers, 0, size);
	CUresult result = ckt_driver.cuMemHostRegister_v2
		? ckt_driver.cuMemHostRegister_v2(
			  threads.buffers, size, CU_MEMHOSTREGISTER_PORTABLE)
		: CKT_INTERNAL_NOT_SUPPORTED;
	if (result)
		ckt_info("cannot pin the buffers for images (CUDA error %d): "
			 "checkpoints and restores will be slower",
			result);
	threads.pinned = true;
}

void ckt_content_threads_look(struct ckt_worker *worker)
{
	for (unsigned d = 0; d < ckt_device_count(worker); d++)
		threads.contexts[d] =
			ckt_session_operations.real_context(worker, ckt_handle_primary(d));
}

void ckt_content_threads_begin(
	int (*work)(struct ckt_content_thread *member, void *opaque), void *opaque)
{
	pthread_mutex_lock(&threads.lock);
	threads.work = work;
	threads.opaque = opaque;
	threads.error = 0;
	threads.busy = threads.count;
	threads.round++;
	pthread_cond_broadcast(&threads.cond);
	pthread_mutex_unlock(&threads.lock);
}

int ckt_content_threads_wait(void)
{
	pthread_mutex_lock(&threads.lock);
	while (threads.busy)
		pthread_cond_wait(&threads.cond, &threads.lock);
	int error = threads.error;
	pthread_mutex_unlock(&threads.lock);
	return error;
}

int ckt_content_threads_run(
	int (*work)(struct ckt_content_thread *member, void *opaque), void *opaque)
{
	ckt_content_threads_begin(work, opaque);
	return ckt_content_threads_wait();
}

CUresult ckt_content_threads_use_device(struct ckt_content_thread *member, unsigned device)
{
	CUcontext context = threads.contexts[device];
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (member->current == context)
		return CUDA_SUCCESS;
	CUresult result = ckt_driver.cuCtxSetCurrent(context);
	if (!result)
		member->current = context;
	return result;
}

CUstream ckt_content_threads_stream(struct ckt_content_thread *member, unsigned device)
{
	return device == 0 ? member->stream : NULL;
}

CUstream ckt_content_threads_first_stream(unsigned device)
{
	return ckt_content_threads_stream(&threads.members[0], device);
}
