/* SPDX-License-Identifier: Apache-2.0 */
/* base/file_io.h: writes that are cut short by a pipe without room and by signals, a full disk, reads at the end of a file. */
#include "base/file_io.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/unit/suite.h"

enum { PIPE_BYTES = 1 << 20 };

static void on_signal(int number)
{
	(void)number;
}

struct reader {
	int fd;
	pthread_t writer;
	uint8_t *data;
	size_t have;
};

/* A signal to the writer before each read: its write has then written a part, or nothing. */
static void *read_slowly(void *context)
{
	struct reader *reader = context;
	ssize_t n = 1;
	while (reader->have < PIPE_BYTES && n > 0) {
		pthread_kill(reader->writer, SIGUSR1);
		n = read(reader->fd, reader->data + reader->have, 30001);
		reader->have += n > 0 ? (size_t)n : 0;
	}
	return NULL;
}

static void test_pipe(void)
{
	uint8_t *sent = malloc(PIPE_BYTES);
	struct reader reader = {.writer = pthread_self(), .data = malloc(PIPE_BYTES + 30001)};
	int ends[2];
	pthread_t thread;
	struct sigaction action = {.sa_handler = on_signal};
	IS(sigaction(SIGUSR1, &action, NULL), 0);
	for (size_t i = 0; i < PIPE_BYTES; i++)
		sent[i] = (uint8_t)(i * 31 >> 3);
	IS(pipe(ends), 0);
	reader.fd = ends[0];
	IS(pthread_create(&thread, NULL, read_slowly, &reader), 0);
	IS(ckt_write_all(ends[1], sent, PIPE_BYTES), 0);
	pthread_join(thread, NULL);
	IS(reader.have, PIPE_BYTES);
	IS(memcmp(reader.data, sent, PIPE_BYTES), 0);
	/* A pipe has no disk. */
	IS(ckt_write_synced(ends[1], "x", 1), -EINVAL);
	signal(SIGUSR1, SIG_DFL);
	close(ends[0]);
	close(ends[1]);
	free(sent);
	free(reader.data);
}

static void test_full(void)
{
	int fd = open("/dev/full", O_WRONLY);
	IS(ckt_write_all(fd, "", 0), 0);
	IS(ckt_write_all(fd, "x", 1), -ENOSPC);
	IS(ckt_write_synced(fd, "x", 1), -ENOSPC);
	close(fd);
	IS(ckt_write_all(-1, "x", 1), -EBADF);
}

static void test_file(void)
{
	char data[16];
	int fd = memfd_create("file_io", MFD_CLOEXEC);
	IS(ckt_write_synced(fd, "0123456789", 10), 0);
	IS(ckt_read_at(fd, data, 4, 3), 4);
	IS(memcmp(data, "3456", 4), 0);
	IS(ckt_read_at(fd, data, sizeof data, 7), 3);
	IS(ckt_read_at(fd, data, sizeof data, 10), 0);
	IS(ckt_read_at(fd, data, sizeof data, -1), -EINVAL);
	close(fd);
	IS(ckt_read_at(-1, data, 1, 0), -EBADF);
}

UNIT_SUITE(file_io, {"pipe", test_pipe}, {"full", test_full}, {"file", test_file})
