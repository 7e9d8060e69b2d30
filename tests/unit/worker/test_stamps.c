/* SPDX-License-Identifier: Apache-2.0 */
/* server/worker/session/stamps.c: what a client is told of the order of its commands, and when. */
#include "server/worker/session/stamps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "rpc/gen/cuda_codec.h"
#include "rpc/net.h"
#include "server/worker/module/blob.h"
#include "tests/unit/worker/wire_session.h"

/* Logs that were stamped by workers of earlier versions, in this boot, have the same clock. */
static void test_clock(void)
{
	char line[128] = "";
	uint8_t hash[CKT_SECRET_HASH_SIZE];
	uint64_t clock;
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_PTR_NOT_NULL_FATAL(fgets(line, sizeof line, file));
	fclose(file);
	ckt_blob_hash(line, strlen(line), hash);
	memcpy(&clock, hash, sizeof clock);
	ckt_stamps_init();
	CU_ASSERT_EQUAL(ckt_stamps_clock(), clock | (CKT_STAMPS_NONE + 1));
}

/* Without a wait. */
static void set(struct wire *w, uint64_t block, uint32_t value)
{
	WIRE_BATCH(w, memset, .dst = block, .element_size = 4, .value = value, .width = 16,
		.height = 1);
}

static void test_told(void)
{
	struct wire *w = session_new();
	uint64_t before = (uint64_t)ckt_now_ns();
	/* Who does not ask is told nothing. */
	uint64_t block = alloc(w, MIB);
	CU_ASSERT_EQUAL(w->stamps.first, 0);
	w->stamped = true;
	set(w, block, 7);
	set(w, block, 8);
	struct wire_reply reply = WIRE_CALL(w, ctx_synchronize, false);
	free(reply.data);
	/* Both, in order, and the reply behind them. */
	CU_ASSERT_EQUAL(w->stamps.first, w->seq - 1);
	CU_ASSERT_EQUAL_FATAL(w->stamps.count, 2);
	CU_ASSERT_TRUE(w->stamps.begins[0] > before);
	CU_ASSERT_TRUE(w->stamps.begins[1] > w->stamps.begins[0]);
	CU_ASSERT_TRUE(w->stamps.end > w->stamps.begins[1]);
	CU_ASSERT_TRUE(w->stamps.end < (uint64_t)ckt_now_ns());
	CU_ASSERT_EQUAL(w->stamps.xid, reply.xid);
	/* Each once; a reply alone has its stamp, too. */
	uint64_t end = w->stamps.end;
	w->stamps.count = 0;
	free(WIRE_CALL(w, ctx_synchronize, false).data);
	CU_ASSERT_EQUAL(w->stamps.count, 0);
	CU_ASSERT_TRUE(w->stamps.end > end);
	session_end(w);
}

static void test_told_again(void)
{
	struct wire *w = session_new();
	w->stamped = true;
	uint64_t block = alloc(w, MIB), first = w->seq, begin = w->stamps.begins[0];
	set(w, block, 7);
	free(WIRE_CALL(w, ctx_synchronize, false).data);
	/* The client lost all of it with its connection: it knows of none. */
	wire_disconnect(w);
	w->acked = 0;
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	w->stamps.count = 0;
	free(WIRE_CALL(w, ctx_synchronize, false).data);
	CU_ASSERT_EQUAL(w->stamps.first, first);
	CU_ASSERT_EQUAL_FATAL(w->stamps.count, 2);
	CU_ASSERT_EQUAL(w->stamps.begins[0], begin);
	session_end(w);
}

static void test_kept(void)
{
	struct wire *w = session_new();
	CU_ASSERT_EQUAL(wire_stamped(w), CKT_STAMPED_NO);
	w->durable = w->stamped = true;
	w->past = w->copy;
	/* Before its first command, too. */
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	CU_ASSERT_EQUAL(wire_stamped(w), CKT_STAMPED_YES);
	alloc(w, MIB);
	CU_ASSERT_EQUAL(wire_stamped(w), CKT_STAMPED_YES);
	/* It gave up: the next command says so. */
	w->stamped = false;
	alloc(w, MIB);
	CU_ASSERT_EQUAL(wire_stamped(w), CKT_STAMPED_NO);
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	CU_ASSERT_EQUAL(wire_stamped(w), CKT_STAMPED_NO);
	session_end(w);
}

UNIT_SUITE(stamps, {"clock", test_clock}, {"told", test_told}, {"told again", test_told_again},
	{"kept", test_kept})
