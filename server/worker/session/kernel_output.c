/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel output; see kernel_output.h. */
#include "server/worker/session/kernel_output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <time.h>
#include <unistd.h>

#include "server/worker/session/executor.h"
#include "server/worker/worker.h"

enum { PIPE_SIZE = 1 << 20, DATA_WAITING_MAX = 4 << 20 };

/* Its writing end, or -errno. */
static int make_pipe(int *ret_read_end)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	/* Best effort: the default of 64 KiB works too. */
	fcntl(ends[0], F_SETPIPE_SZ, PIPE_SIZE);
	*ret_read_end = ends[0];
	return ends[1];
}

static int replace(int fd, int *ret_read_end)
{
	int end = make_pipe(ret_read_end);
	if (end < 0)
		return end;
	if (dup2(end, fd) < 0)
		return -errno;
	close(end);
	return 0;
}

/* The writing end stays open: libraries open it by that name, also in the cage. */
static int make_library_file(struct ckt_printed *printed)
{
	int end = make_pipe(&printed->pipes[CKT_OUTPUT_LIBRARY - 1]);
	if (end < 0)
		return end;
	snprintf(printed->library_file, sizeof printed->library_file, "/proc/self/fd/%d", end);
	return 0;
}

int ckt_printed_init(struct ckt_printed *printed)
{
	pthread_mutex_init(&printed->lock, NULL);
	fflush(stdout);
	int result = replace(STDOUT_FILENO, &printed->pipes[0]);
	if (!result)
		result = replace(STDERR_FILENO, &printed->pipes[1]);
	if (!result)
		result = make_library_file(printed);
	/* Lines of different kernels stay whole, and a printf costs no system call. */
	if (!result)
		setvbuf(stdout, NULL, _IOFBF, 1 << 16);
	return result;
}

/* Precondition: locked. True where more may be there. */
static bool send_piece(struct ckt_worker *worker, unsigned stream, uint64_t epoch)
{
	struct ckt_printed_piece *piece = &worker->printed.pieces[stream];
	bool kept = piece->size > 0;
	ssize_t n = kept ? piece->size
			 : read(worker->printed.pipes[stream], piece->data, sizeof piece->data);
	if (n <= 0)
		return false;
	/* Where the connection ends just now it is the first of the next one. */
	piece->size = n;
	size_t size = CKT_CALL_HEADER_SIZE + 8 + ckt_padded((size_t)n);
	uint8_t *p = ckt_output_begin(&worker->output, epoch, size);
	if (!p)
		return false;
	piece->size = 0;
	p = ckt_call_header_put(p,
		&(struct ckt_call_header){
			.prog = CRICKET_CALLBACK_PROG, .vers = 1, .proc = CKT_CALLBACK_OUTPUT});
	p = ckt_put_u32(p, stream + 1);
	ckt_put_opaque(p, piece->data, (uint32_t)n);
	ckt_output_end(&worker->output);
	return kept || n == sizeof piece->data;
}

static void send_all(struct ckt_worker *worker)
{
	pthread_mutex_lock(&worker->printed.lock);
	uint64_t epoch = ckt_output_epoch(&worker->output);
	if (epoch)
		for (unsigned stream = 0; stream < CKT_PRINTED_PIPES; stream++)
			while (send_piece(worker, stream, epoch))
				;
	pthread_mutex_unlock(&worker->printed.lock);
}

void ckt_printed_send(struct ckt_worker *worker)
{
	/* Outside the lock: where the pipe is full, the thread below must be able to empty it. */
	if (__fpending(stdout))
		fflush(stdout);
	send_all(worker);
}

static void *printer(void *opaque)
{
	struct ckt_worker *worker = opaque;
	struct pollfd fds[CKT_PRINTED_PIPES];
	for (unsigned stream = 0; stream < CKT_PRINTED_PIPES; stream++)
		fds[stream] =
			(struct pollfd){.fd = worker->printed.pipes[stream], .events = POLLIN};
	for (;;) {
		poll(fds, CKT_PRINTED_PIPES, -1);
		/*
		 * Most of the time the wait that made the text visible sends it; and a client that
		 * does not read must not fill our memory.
		 */
		nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
		if (!ckt_output_epoch(&worker->output) ||
			ckt_output_waiting(&worker->output) > DATA_WAITING_MAX)
			continue;
		send_all(worker);
		if (ckt_output_flush(&worker->output))
			ckt_executor_wake(worker);
	}
	return NULL;
}

int ckt_printed_start(struct ckt_worker *worker)
{
	pthread_t thread;
	int error = pthread_create(&thread, NULL, printer, worker);
	if (!error)
		pthread_detach(thread);
	return -error;
}
