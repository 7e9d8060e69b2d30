/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kernels print: kept in order per context, written at synchronisation, or at once when it
 * outgrows the printf FIFO's limit.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softgpu/module/kernel_output.h"
#include "softgpu/context/context.h"
#include "softgpu/context/log.h"

struct ckt_soft_output {
	struct ckt_soft_output *next;
	int fd;
	size_t size, room;
	char text[];
};

void ckt_soft_output_write(
	struct ckt_soft_context *context, int fd, const char *text, size_t size_bytes)
{
	pthread_mutex_lock(&context->output_lock);
	struct ckt_soft_output *last = context->output_last;
	if (!last || last->fd != fd || last->room - last->size < size_bytes) {
		size_t room = size_bytes > 4096 ? size_bytes : 4096;
		struct ckt_soft_output *piece = malloc(sizeof(*piece) + room);
		if (!piece) {
			pthread_mutex_unlock(&context->output_lock);
			ckt_soft_say("out of memory: %zu bytes printed by a kernel are lost",
				size_bytes);
			return;
		}
		*piece = (struct ckt_soft_output){.fd = fd, .room = room};
		if (last)
			last->next = piece;
		else
			context->output = piece;
		context->output_last = last = piece;
	}
	memcpy(last->text + last->size, text, size_bytes);
	last->size += size_bytes;
	context->output_bytes += size_bytes;
	bool full = context->output_bytes > context->limits[CU_LIMIT_PRINTF_FIFO_SIZE];
	pthread_mutex_unlock(&context->output_lock);
	/* A real GPU would overwrite the oldest text; here nothing forces that loss. */
	if (full)
		ckt_soft_output_flush(context);
}

void ckt_soft_output_flush(struct ckt_soft_context *context)
{
	pthread_mutex_lock(&context->output_lock);
	struct ckt_soft_output *piece = context->output;
	context->output = context->output_last = NULL;
	context->output_bytes = 0;
	/*
	 * What the process itself has printed came before.  A thread that holds the stream may wait
	 * for this one.
	 */
	if (piece && ftrylockfile(stdout) == 0) {
		fflush_unlocked(stdout);
		funlockfile(stdout);
	}
	/* Under the lock: two flushing threads must not change the order. */
	while (piece) {
		for (size_t done = 0; done < piece->size;) {
			ssize_t n = write(piece->fd, piece->text + done, piece->size - done);
			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0)
				break;
			done += (size_t)n;
		}
		struct ckt_soft_output *next = piece->next;
		free(piece);
		piece = next;
	}
	pthread_mutex_unlock(&context->output_lock);
}
