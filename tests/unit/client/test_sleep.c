/* SPDX-License-Identifier: Apache-2.0 */
/* client/conn/sleep.c (client/conn/conn.h): a session that sleeps is left alone until it is wanted. */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "conn_parts.h"
#include "tests/unit/suite.h"

static struct ckt_cursor arguments(uint8_t bytes[8], uint64_t executed)
{
	ckt_put_u64(bytes, executed);
	return (struct ckt_cursor){.p = bytes, .end = bytes + 8};
}

static void test_take(void)
{
	uint8_t bytes[8];
	int peer = parts_open();
	struct ckt_cursor c = arguments(bytes, 9);
	YES(ckt_conn_rests(&ckt_conn));
	/* The reader stops, and what was executed has left the ring. */
	IS(ckt_conn_take_sleep(&ckt_conn, &c), -ECONNRESET);
	YES(ckt_conn.asleep);
	IS(ckt_conn.executed, 9);
	/* Its end is nobody's business. */
	ckt_conn_broken(&ckt_conn, ckt_conn.epoch, -ECONNRESET);
	IS(ckt_conn.state, CKT_CONN_OPEN);
	ckt_conn.asleep = false;
	parts_close(peer);
}

static void test_malformed(void)
{
	uint8_t bytes[8];
	int peer = parts_open();
	struct ckt_cursor c = arguments(bytes, 9);
	c.end = bytes + 7;
	IS(ckt_conn_take_sleep(&ckt_conn, &c), -EPROTO);
	NO(ckt_conn.asleep);
	parts_close(peer);
}

static void test_rests(void)
{
	int peer = parts_open();
	/* A command that crossed SLEEP. */
	uint64_t tail = ckt_conn.tail;
	ckt_conn.tail = tail + 64;
	NO(ckt_conn_rests(&ckt_conn));
	/* Nothing of it is written. */
	ckt_conn.asleep = true;
	IS(ckt_conn_send(&ckt_conn), -ECONNRESET);
	IS(ckt_conn.sent, tail);
	struct pollfd arrives = {.fd = peer, .events = POLLIN};
	IS(poll(&arrives, 1, 0), 0);
	ckt_conn.asleep = false;
	ckt_conn.tail = tail;
	YES(ckt_conn_rests(&ckt_conn));
	/* A copy in the background. */
	ckt_conn.async_pending = 1;
	NO(ckt_conn_rests(&ckt_conn));
	ckt_conn.async_pending = 0;
	parts_close(peer);
}

UNIT_SUITE(sleep, {"take", test_take}, {"malformed", test_malformed}, {"rests", test_rests})
