/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/session/impose.c: what a durable client may send to a restored session, what it
 * gets, and what is refused to one that lies.
 */
#include "server/worker/session/impose.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpc/net.h"
#include "tests/unit/worker/wire_session.h"

static int write_session_call(
	struct wire *w, uint32_t proc, xdrproc_t xdr, void *args, uint32_t xid)
{
	uint8_t *data;
	size_t size;
	CU_ASSERT_EQUAL_FATAL(
		ckt_net_encode_call(xid, CRICKET_SESSION_PROG, proc, xdr, args, &data, &size), 0);
	int result = ckt_net_write_record(w->fd, data, size, -1, -1);
	free(data);
	return result;
}

/* REPLAY's status. */
static int replay(struct wire *w, uint64_t last)
{
	ckt_replay_args args = {.last = last};
	uint32_t xid = ++w->xid;
	write_session_call(w, CKT_SESSION_REPLAY, (xdrproc_t)xdr_ckt_replay_args, &args, xid);
	struct wire_reply reply = wire_read(w, xid);
	int status = (int)reply.result;
	free(reply.data);
	return status;
}

static void impose(struct wire *w, uint64_t seq, int result, uint64_t address)
{
	ckt_impose_args args = {.seq = seq, .result = result, .address = address};
	write_session_call(w, CKT_SESSION_IMPOSE, (xdrproc_t)xdr_ckt_impose_args, &args, ++w->xid);
}

/* The worker ends the connection of a client that sends this, and the session stays. */
static bool refused(struct wire *w, uint64_t seq, uint64_t address)
{
	uint8_t *data;
	size_t size;
	impose(w, seq, 0, address);
	int result = ckt_net_read_record(
		w->fd, CKT_RECORD_MAX, ckt_net_now_ms() + WIRE_GUARD_MS, &data, &size, NULL);
	if (!result)
		free(data);
	wire_disconnect(w);
	return result && wire_hello(w, CKT_HELLO_RESUME, true) == CKT_HELLO_OK;
}

static CUresult try_alloc(struct wire *w, uint64_t size, uint64_t *ret_address)
{
	struct wire_reply reply = WIRE_CALL(w, mem_alloc, true, .size = size);
	struct ckt_mem_alloc_res res = {0};
	CUresult result = reply.result;
	if (!result)
		CU_ASSERT_TRUE(ckt_mem_alloc_res_get(&reply.results, &res));
	*ret_address = res.address;
	free(reply.data);
	return result;
}

static void make_durable(struct wire *w)
{
	w->durable = true;
	w->past = w->copy;
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
}

static void test_not_restored(void)
{
	struct wire *w = session_new();
	uint64_t block = alloc(w, MIB), other;
	/* A client that is not durable, and a session that lost nothing. */
	CU_ASSERT_EQUAL(replay(w, w->seq + 5), -EPERM);
	make_durable(w);
	CU_ASSERT_EQUAL(w->before, 0);
	CU_ASSERT_EQUAL(replay(w, w->seq + 5), -EPERM);
	CU_ASSERT_TRUE(refused(w, w->seq + 1, block + 64 * MIB));
	CU_ASSERT_EQUAL(try_alloc(w, MIB, &other), CUDA_SUCCESS);
	CU_ASSERT_NOT_EQUAL(other, block + 64 * MIB);
	session_end(w);
}

static void test_durable_mark(void)
{
	struct wire *w = session_new();
	alloc(w, MIB);
	ckt_worker_durable_args args = {.executed = w->seq};
	/* To a client that is not durable nothing is said. */
	ckt_worker_result res =
		wire_control(w, CKT_WORKER_DURABLE, (xdrproc_t)xdr_ckt_worker_durable_args, &args);
	CU_ASSERT_EQUAL(res.status, 0);
	free(WIRE_CALL(w, ctx_synchronize, false).data);
	CU_ASSERT_EQUAL(w->marked, 0);
	make_durable(w);
	res = wire_control(w, CKT_WORKER_DURABLE, (xdrproc_t)xdr_ckt_worker_durable_args, &args);
	CU_ASSERT_EQUAL(res.status, 0);
	free(WIRE_CALL(w, ctx_synchronize, false).data);
	CU_ASSERT_EQUAL(w->marked, w->seq);
	/* What was not executed is in no image. */
	args.executed = w->seq + 1;
	res = wire_control(w, CKT_WORKER_DURABLE, (xdrproc_t)xdr_ckt_worker_durable_args, &args);
	CU_ASSERT_EQUAL(res.status, -EINVAL);
	session_end(w);
}

/* An image of one block; the client knows of 20 commands more. */
static struct wire *lost(const char *directory, uint64_t *ret_block)
{
	char message[CKT_MESSAGE_MAX];
	struct wire *w = session_new();
	*ret_block = alloc(w, 2 * MIB);
	uint64_t copy = w->copy;
	save_and_stop(w, directory);
	CU_ASSERT_EQUAL_FATAL(try_restore(w, directory, message), 0);
	w->durable = true;
	w->past = copy;
	w->copy = copy;
	return w;
}

static void test_copies(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX";
	uint64_t block;
	make_directory(directory);
	struct wire *w = lost(directory, &block);
	uint64_t copy = w->copy;
	/* The client went on at a later copy, which is lost: this one's past it knows. */
	w->generation = 9;
	w->copy = copy + 1;
	w->past = copy + 2;
	CU_ASSERT_EQUAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_STALE);
	w->durable = false;
	CU_ASSERT_EQUAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_STALE);
	w->durable = true;
	w->past = copy;
	CU_ASSERT_EQUAL(wire_hello(w, CKT_HELLO_RESUME, false), CKT_HELLO_DENIED);
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	CU_ASSERT_EQUAL(w->before, copy);
	session_end(w);
	remove_directory(directory);
}

static void test_replay(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX";
	uint64_t block, address, at;
	make_directory(directory);
	struct wire *w = lost(directory, &block);
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	/* Not before REPLAY, which must lie ahead, once on a connection. */
	at = block + 64 * MIB;
	CU_ASSERT_TRUE(refused(w, w->seq + 1, at));
	CU_ASSERT_EQUAL(replay(w, w->seq), -EINVAL);
	CU_ASSERT_EQUAL(replay(w, w->seq + 20), 0);
	CU_ASSERT_EQUAL(replay(w, w->seq + 20), -EINVAL);
	/* Numbers that go back or leave one out, or lie behind the last; outside of the window. */
	uint64_t numbers[] = {0, w->seq, w->seq + 2, w->seq + 21, UINT64_MAX};
	for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		CU_ASSERT_TRUE(refused(w, numbers[i], at));
		CU_ASSERT_EQUAL(replay(w, w->seq + 20), 0);
	}
	CU_ASSERT_TRUE(refused(w, w->seq + 1, 4096));
	CU_ASSERT_EQUAL(replay(w, w->seq + 20), 0);
	CU_ASSERT_TRUE(refused(w, w->seq + 1, UINT64_MAX));
	CU_ASSERT_EQUAL(replay(w, w->seq + 20), 0);
	/* A failure: nothing is allocated. */
	impose(w, w->seq + 1, CUDA_ERROR_OUT_OF_MEMORY, 0);
	CU_ASSERT_EQUAL(try_alloc(w, 2 * MIB, &address), CUDA_ERROR_OUT_OF_MEMORY);
	/* Twice for one command. */
	impose(w, w->seq + 1, 0, at);
	CU_ASSERT_TRUE(refused(w, w->seq + 1, at));
	CU_ASSERT_EQUAL(replay(w, w->seq + 20), 0);
	/* Addresses that no first fit gives: large, small, and small in two extents. */
	impose(w, w->seq + 1, 0, at);
	CU_ASSERT_EQUAL(try_alloc(w, 4 * MIB, &address), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(address, at);
	impose(w, w->seq + 1, 0, at + 8 * MIB + 512);
	CU_ASSERT_EQUAL(try_alloc(w, 100, &address), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(address, at + 8 * MIB + 512);
	impose(w, w->seq + 1, 0, at + 10 * MIB - 4096);
	CU_ASSERT_EQUAL(try_alloc(w, 8192, &address), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(address, at + 10 * MIB - 4096);
	fill(w, address, 7, 8192);
	CU_ASSERT_EQUAL(get_u32(w, address + 8188), 7);
	/* Live memory, the middle of it, and addresses that nothing begins at. */
	uint64_t taken[] = {
		block, block + MIB, at, at + 2 * MIB, at + 8 * MIB + 512, at + 16 * MIB + 1};
	for (unsigned i = 0; i < sizeof taken / sizeof *taken; i++) {
		impose(w, w->seq + 1, 0, taken[i]);
		CU_ASSERT_EQUAL(
			try_alloc(w, i < 4 ? 2 * MIB : 512, &address), CUDA_ERROR_OUT_OF_MEMORY);
	}
	/* For one command only. */
	CU_ASSERT_EQUAL(try_alloc(w, 2 * MIB, &address), CUDA_SUCCESS);
	CU_ASSERT_EQUAL(address, block + 2 * MIB);
	CU_ASSERT_EQUAL(done(WIRE_CALL(w, mem_free, true, .address = at)), CUDA_SUCCESS);
	session_end(w);
	remove_directory(directory);
}

static void test_pools(void)
{
	char directory[] = "/tmp/ckt-image-XXXXXX";
	uint64_t block, a[2];
	make_directory(directory);
	struct wire *w = lost(directory, &block);
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	CU_ASSERT_EQUAL(replay(w, w->seq + 20), 0);
	/* A block that the pool keeps, and one whose place another pool's block had. */
	for (unsigned i = 0; i < 4; i++) {
		uint64_t at = block + 32 * MIB + (i & 1) * MIB;
		impose(w, w->seq + 1, 0, at);
		struct wire_reply reply =
			WIRE_CALL(w, mem_alloc_async, true, .pool = ckt_handle_default_pool(0),
				.size = i < 2 ? 2 * MIB - (i & 1) * MIB : MIB, .stream = 1);
		struct ckt_mem_alloc_async_res res = {0};
		if (i == 1) {
			CU_ASSERT_EQUAL(reply.result, CUDA_ERROR_OUT_OF_MEMORY);
			free(reply.data);
			WIRE_BATCH(w, mem_free_async, .address = a[0], .stream = 1);
			continue;
		}
		CU_ASSERT_EQUAL_FATAL(reply.result, CUDA_SUCCESS);
		CU_ASSERT_TRUE(ckt_mem_alloc_async_res_get(&reply.results, &res));
		CU_ASSERT_EQUAL(res.address, at);
		a[i & 1] = res.address;
		free(reply.data);
	}
	session_end(w);
	remove_directory(directory);
}

UNIT_SUITE(impose, {"not restored", test_not_restored}, {"durable mark", test_durable_mark},
	{"copies", test_copies}, {"replay", test_replay}, {"pools", test_pools})
