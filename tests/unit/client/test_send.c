/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/conn/send.c (client/conn/conn.h): what is encoded leaves in its order, past the ring's
 * end, a full socket and a lost one.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/conn/settings.h"
#include "conn_parts.h"
#include "tests/unit/suite.h"

enum { SIZE = CKT_MARK_SIZE + CKT_CALL_HEADER_SIZE };

/* The numbers of the next count records come in order; true where nothing else is there. */
static bool arrived(int peer, uint64_t first, unsigned count, size_t args_bytes)
{
	bool good = true;
	uint8_t *record = malloc(SIZE + args_bytes);
	for (unsigned i = 0; i < count && good; i++) {
		struct ckt_call_header header = {0};
		good = parts_read(peer, record, SIZE + args_bytes);
		struct ckt_cursor c = {.p = record, .end = record + SIZE};
		good = good &&
			ckt_get_u32(&c) == (0x80000000u | (SIZE - CKT_MARK_SIZE + args_bytes)) &&
			ckt_call_header_get(&c, &header) && header.seq == first + i;
	}
	free(record);
	return good;
}

static bool nothing_more(int peer)
{
	return poll(&(struct pollfd){.fd = peer, .events = POLLIN}, 1, 0) == 0;
}

static void test_order(void)
{
	int peer = parts_open();
	/* Kept while the connection is looked for, and sent together. */
	ckt_conn.state = CKT_CONN_RESUMING;
	for (int i = 0; i < 5; i++)
		parts_queue(16);
	IS(ckt_conn_send(&ckt_conn), 0);
	YES(nothing_more(peer));
	IS(ckt_conn.sent, 0);
	ckt_conn.state = CKT_CONN_OPEN;
	IS(ckt_conn_send(&ckt_conn), 0);
	YES(arrived(peer, 1, 5, 16));
	IS(ckt_conn.sent, ckt_conn.tail);
	IS(ckt_conn_send(&ckt_conn), 0);
	YES(nothing_more(peer));
	parts_close(peer);
}

/* The gap before the end is not sent, wherever the end lies.  Records are whole words long. */
static void test_lap(void)
{
	static const struct {
		uint64_t before_end;
		bool gap;
	} rows[] = {{4, true}, {SIZE + 12, true}, {SIZE + 16, false}, {SIZE + 20, true},
		{2 * (SIZE + 16), false}, {2 * (SIZE + 16) + 4, true}};
	for (size_t i = 0; i < COUNT(rows); i++) {
		int peer = parts_open();
		uint64_t start = 3ull * CKT_RING_SIZE - rows[i].before_end;
		ckt_conn.head = ckt_conn.last_ack_position = start;
		ckt_conn.sent = ckt_conn.tail = start;
		ckt_conn.state = CKT_CONN_RESUMING;
		for (int n = 0; n < 4; n++)
			parts_queue(16);
		IS(ckt_conn.gap_start != UINT64_MAX, rows[i].gap);
		ckt_conn.state = CKT_CONN_OPEN;
		IS(ckt_conn_send(&ckt_conn), 0);
		YES(arrived(peer, 1, 4, 16));
		YES(nothing_more(peer));
		parts_close(peer);
	}
}

static void test_lost_socket(void)
{
	int peer = parts_open();
	ckt_conn.state = CKT_CONN_RESUMING;
	parts_queue(16);
	ckt_conn.state = CKT_CONN_OPEN;
	close(peer);
	errno = 5;
	/* An error, not a signal; the record waits for another connection. */
	IS(ckt_conn_send(&ckt_conn), -EPIPE);
	IS(errno, 5);
	IS(ckt_conn.sent, 0);
	IS(ckt_conn.head, 0);
	parts_close(-1);
}

/*
 * A worker that first has to get rid of its own replies, more than a socket holds, before it takes
 * the commands.
 */
enum { RECORDS = 30, ARGS = 100000, REPLIES = 20000 };

static _Atomic bool replied;

static void *slow_worker(void *peer)
{
	for (int i = 0; i < REPLIES; i++)
		parts_reply((int)(intptr_t)peer, &(struct ckt_reply_header){.xid = 4711}, NULL, 0);
	replied = true;
	return (void *)(uintptr_t)arrived((int)(intptr_t)peer, 1, RECORDS, ARGS);
}

static void test_full_socket(void)
{
	pthread_t thread;
	void *good;
	int peer = parts_open();
	ckt_conn.state = CKT_CONN_RESUMING;
	ckt_conn.ack_pending = true; /* nobody asks how far the worker is */
	for (int i = 0; i < RECORDS; i++)
		parts_queue(ARGS);
	ckt_conn.state = CKT_CONN_OPEN;
	replied = false;
	MUST(pthread_create(&thread, NULL, slow_worker, (void *)(intptr_t)peer), 0);
	IS(ckt_conn_send(&ckt_conn), 0);
	/* The rest of the replies, where there was room for all commands before. */
	for (int result = 0; result == 0 || (result == -EAGAIN && !replied);)
		result = ckt_conn_read(&ckt_conn, 200);
	pthread_join(thread, &good);
	YES(good != NULL);
	NO(ckt_conn.reading);
	parts_close(peer);
}

static _Atomic unsigned done_count;

static void done(void *data, CUresult result, struct ckt_cursor *results)
{
	done_count += result == CUDA_ERROR_NOT_READY;
}

/*
 * Sends what nobody waits for, and reads the replies that no thread waits for; on a crowded machine
 * with sleeps in between.
 */
static void flusher(bool crowded)
{
	int peer = parts_open(), spin_us = ckt_settings.spin_us;
	ckt_settings.spin_us = 50;
	ckt_conn.flusher_crowd = (struct ckt_crowd){.until_ns = crowded ? INT64_MAX : 0};
	done_count = 0;
	uint8_t body[4];
	struct ckt_call call;
	ckt_conn_flusher_start(&ckt_conn);
	MUST(ckt_conn.flusher_running, 1);
	for (unsigned i = 0; i < 50; i++) {
		parts_queue(16);
		if (i % 10 == 9)
			YES(arrived(peer, i - 8, 10, 16));
	}
	MUST(ckt_call_begin(&call, 7, 0, CKT_CALL_F_NUMBERED), CUDA_SUCCESS);
	ckt_call_async(&call, done, NULL);
	YES(arrived(peer, 51, 1, 0));
	ckt_put_u32(body, CUDA_ERROR_NOT_READY);
	parts_reply(peer, &(struct ckt_reply_header){.xid = call.xid}, body, sizeof body);
	for (int i = 0; i < 60000 && !done_count; i++)
		poll(NULL, 0, 1);
	IS(done_count, 1);
	/* It ends with the session. */
	ckt_conn.state = CKT_CONN_LOST;
	ckt_conn_flusher_kick(&ckt_conn);
	IS(pthread_join(ckt_conn.flusher, NULL), 0);
	ckt_conn.flusher_running = false;
	ckt_conn.flusher_crowd = (struct ckt_crowd){0};
	ckt_settings.spin_us = spin_us;
	parts_close(peer);
}

static void test_flusher(void)
{
	flusher(false);
}

static void test_flusher_crowded(void)
{
	flusher(true);
}

/*
 * With a flusher that sleeps and processors to spare the first of a row leaves at once, and never
 * holds its thread up.
 */
static void test_first(void)
{
	int peer = parts_open(), spin_us = ckt_settings.spin_us;
	ckt_conn.flusher_running = true;
	ckt_settings.spin_us = 0;
	ckt_conn.flusher_asleep = 1;
	parts_queue(16);
	YES(nothing_more(peer));
	IS(ckt_conn.flusher_asleep, 0);
	ckt_settings.spin_us = 50;
	/* The flusher is awake: it is its. */
	parts_queue(16);
	YES(nothing_more(peer));
	ckt_conn.flusher_asleep = 1;
	parts_queue(16);
	IS(ckt_conn.flusher_asleep, 0);
	YES(arrived(peer, 1, 3, 16));
	/* A full socket. */
	for (int i = 0; i < 300; i++) {
		ckt_conn.flusher_asleep = 1;
		parts_queue(4096);
	}
	YES(ckt_conn.sent < ckt_conn.tail);
	/* A lost one: whoever waits, or the flusher, says so. */
	close(peer);
	ckt_conn.flusher_asleep = 1;
	parts_queue(16);
	IS(ckt_conn.state, CKT_CONN_OPEN);
	ckt_conn.flusher_running = false;
	ckt_conn.flusher_asleep = 0;
	ckt_settings.spin_us = spin_us;
	parts_close(-1);
}

UNIT_SUITE(send, {"first", test_first}, {"order", test_order}, {"lap", test_lap},
	{"lost socket", test_lost_socket}, {"full socket", test_full_socket},
	{"flusher", test_flusher}, {"flusher crowded", test_flusher_crowded})
