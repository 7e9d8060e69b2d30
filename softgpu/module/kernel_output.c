/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of kernels.  It is kept in order for each context.  A synchronisation writes it, and
 * so does output above the limit of the printf FIFO.
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
	/* A real GPU would overwrite the oldest text; the soft GPU writes it instead. */
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
	 * The process printed its own output earlier, so flush that first.  Do not wait for
	 * stdout's lock: its holder may wait for this thread.
	 */
	if (piece && ftrylockfile(stdout) == 0) {
		fflush_unlocked(stdout);
		funlockfile(stdout);
	}
	/* Write under the lock: two flushing threads must not change the order. */
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
