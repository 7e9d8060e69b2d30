/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output buffer: whole records with their mark, of the connection's epoch alone, whatever the
 * socket takes.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/wire.h"
#include "server/worker/session/output.h"
#include "tests/unit/suite.h"

static bool put(struct ckt_output *output, uint64_t epoch, uint32_t value, size_t size)
{
	uint8_t *p = ckt_output_begin(output, epoch, size);
	if (!p)
		return false;
	memset(p, (int)value, size);
	ckt_put_u32(p, value);
	ckt_output_end(output);
	return true;
}

static void test_epochs(void)
{
	struct ckt_output output;
	int ends[2];
	ckt_output_init(&output);
	IS(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	NO(put(&output, 0, 1, 8)); /* no client */
	IS(ckt_output_epoch(&output), 0);
	ckt_output_connect(&output, ends[0], 7, NULL, 0);
	IS(ckt_output_epoch(&output), 7);
	NO(put(&output, 6, 1, 8));
	NO(put(&output, 8, 1, 8));
	YES(put(&output, 7, 1, 8));
	IS(ckt_output_waiting(&output), 12);
	/* A new connection does not hear what the old one was to. */
	ckt_output_connect(&output, ends[0], 8, NULL, 0);
	IS(ckt_output_waiting(&output), 0);
	NO(put(&output, 7, 1, 8));
	YES(put(&output, 8, 0x01020304, 8));
	IS(ckt_output_flush(&output), 0);
	uint8_t got[64];
	IS(read(ends[1], got, sizeof got), 12);
	IS(memcmp(got, "\x80\x00\x00\x08\x01\x02\x03\x04", 8), 0);
	ckt_output_connect(&output, -1, 0, NULL, 0);
	NO(put(&output, 8, 1, 8));
	IS(ckt_output_flush(&output), 0);
	close(ends[0]);
	close(ends[1]);
	free(output.data);
}

static _Atomic bool stop_talking;

/* As kernels' texts and notifications are: sent as soon as there is a connection. */
static void *talk(void *opaque)
{
	struct ckt_output *output = opaque;
	while (!stop_talking)
		if (ckt_output_waiting(output) < 1 << 20)
			put(output, ckt_output_epoch(output), 0xaa, 8);
	return NULL;
}

/* A connection's first record is the answer to its hello, whoever else has something to say. */
static void test_first(void)
{
	enum { ROUNDS = 3000 };
	static const uint8_t answer[] = "hello to you, too";
	struct ckt_output output;
	pthread_t thread;
	int ends[2];
	uint8_t got[4 + sizeof answer];
	unsigned good = 0;
	ckt_output_init(&output);
	IS(pthread_create(&thread, NULL, talk, &output), 0);
	for (unsigned i = 0; i < ROUNDS; i++) {
		MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
		IS(ckt_output_connect(&output, ends[0], i + 1, answer, sizeof answer), 0);
		/* Time for what must not come first. */
		sched_yield();
		ckt_output_flush(&output);
		good += recv(ends[1], got, sizeof got, MSG_WAITALL) == sizeof got &&
			memcmp(got, "\x80\x00\x00\x12", 4) == 0 &&
			memcmp(got + 4, answer, sizeof answer) == 0;
		ckt_output_connect(&output, -1, 0, NULL, 0);
		close(ends[0]);
		close(ends[1]);
	}
	IS(good, ROUNDS);
	stop_talking = true;
	pthread_join(thread, NULL);
	free(output.data);
}

/* A reader that is slow loses nothing, and nothing is waited for. */
static void test_slow(void)
{
	enum { RECORDS = 3000, SIZE = 1000 };
	struct ckt_output output;
	int ends[2];
	uint32_t sent = 0, seen = 0, wrong = 0, again = 0;
	static uint8_t buffer[RECORDS * (SIZE + 4)];
	size_t have = 0, parsed = 0;
	ckt_output_init(&output);
	IS(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	ckt_output_connect(&output, ends[0], 1, NULL, 0);
	while (seen < RECORDS) {
		for (int i = 0; i < 40 && sent < RECORDS; i++)
			wrong += !put(&output, 1, sent, SIZE - sent % 7 * 4), sent++;
		int result = ckt_output_flush(&output);
		wrong += result && result != -EAGAIN;
		again += result == -EAGAIN;
		/* Less than what came, until the end. */
		ssize_t n = recv(ends[1], buffer + have,
			sent < RECORDS ? 20000 : sizeof buffer - have, MSG_DONTWAIT);
		have += n > 0 ? (size_t)n : 0;
		while (have - parsed >= 4) {
			struct ckt_cursor c = {.p = buffer + parsed, .end = buffer + have};
			uint32_t mark = ckt_get_u32(&c), size = mark & 0x7fffffff;
			if (have - parsed < 4 + size)
				break;
			wrong += !(mark >> 31) || ckt_get_u32(&c) != seen;
			seen++;
			parsed += 4 + size;
		}
	}
	IS(wrong, 0);
	YES(again > 0);
	IS(ckt_output_waiting(&output), 0);
	/* It has grown to what waited, not to what went through. */
	YES(output.room < RECORDS * SIZE);
	close(ends[1]);
	YES(put(&output, 1, 1, 8));
	IS(ckt_output_flush(&output), -EPIPE);
	YES(output.broken);
	IS(ckt_output_waiting(&output), 0);
	NO(put(&output, 1, 1, 8));
	close(ends[0]);
	free(output.data);
}

UNIT_SUITE(output, {"epochs", test_epochs}, {"first", test_first}, {"slow", test_slow})
