/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client can make a worker take of its host's memory: server/worker/session/host_budget.h,
 * by the commands that do.  Each is refused, and the session goes on, or its connection ends and it
 * can be resumed.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpc/net.h"
#include "tests/unit/worker/graph_bytes.h"
#include "tests/unit/worker/wire_session.h"

#define GRAPH(n) ckt_handle_make(CKT_KIND_GRAPH, 1, 600 + (n))
#define EXEC(n) ckt_handle_make(CKT_KIND_GRAPH_EXEC, 1, 700 + (n))

static struct wire *limited(uint64_t bytes)
{
	struct wire *w = calloc(1, sizeof *w);
	w->host_memory = bytes;
	CU_ASSERT_EQUAL_FATAL(wire_start(w, worker_path, driver_path, 0, -1, NULL), 0);
	CU_ASSERT_EQUAL_FATAL(wire_hello(w, CKT_HELLO_NEW, true), CKT_HELLO_OK);
	return w;
}

/* The result of the batched calls since the last time. */
static int32_t batched(struct wire *w)
{
	w->deferred = 0;
	IS(done(WIRE_CALL(w, mem_get_info, false)), CUDA_SUCCESS);
	return w->deferred;
}

/* A size that is only claimed, and one that is sent. */
static void test_modules(void)
{
	static uint8_t data[MIB], hash[32];
	struct wire *w = limited(64 * MIB);
	WIRE_BATCH(w, blob_data, .hash = hash, .hash_len = 32, .total = (uint64_t)7 << 30,
		.data = data, .data_len = 16);
	IS(batched(w), CUDA_ERROR_OUT_OF_MEMORY);
	unsigned taken = 0;
	for (hash[0] = 1; hash[0] < 100; hash[0]++) {
		WIRE_BATCH(w, blob_data, .hash = hash, .hash_len = 32, .total = MIB, .data = data,
			.data_len = MIB / 2);
		taken += !batched(w);
	}
	YES(taken > 40 && taken < 64);
	session_end(w);
}

/* Descriptions of graphs that are never used. */
static void test_graphs(void)
{
	struct wire *w = limited(64 * MIB);
	unsigned taken = 0;
	for (unsigned i = 0; i < 100; i++) {
		WIRE_BATCH(w, graph_data, .graph = GRAPH(i), .total = MIB,
			.data = (const uint8_t *)"", .data_len = 0);
		taken += !batched(w);
	}
	YES(taken > 40 && taken < 64);
	session_end(w);
}

/* Bytes on their way to a graph, behind a stream that goes no further. */
static void test_queued(void)
{
	enum { SIZE = MIB - 64 };
	static uint8_t data[SIZE];
	struct description d;
	struct wire *w = limited(64 * MIB);
	uint64_t memory = alloc(w, SIZE);
	graph_begin(&d);
	graph_copy(&d, 1, (struct graph_side){.type = CU_MEMORYTYPE_HOST, .address = 0x7000000000},
		(struct graph_side){.type = CU_MEMORYTYPE_DEVICE, .address = memory}, SIZE, 1);
	uint32_t size = graph_end(&d);
	WIRE_BATCH(
		w, graph_data, .graph = GRAPH(1), .total = size, .data = d.bytes, .data_len = size);
	IS(done(WIRE_CALL(w, graph_instantiate, true, .exec = EXEC(1), .graph = GRAPH(1))),
		CUDA_SUCCESS);
	IS(done(WIRE_CALL(
		   w, stream_create, true, .id = STREAM(1), .flags = CU_STREAM_NON_BLOCKING)),
		CUDA_SUCCESS);
	WIRE_BATCH(w, host_func, .stream = STREAM(1), .number = 7);
	for (int i = 0; !w->host_call_count && i < 30000; i++, usleep(1000))
		IS(batched(w), CUDA_SUCCESS);
	MUST(w->host_call_count, 1);
	unsigned taken = 0;
	for (unsigned i = 0; i < 100; i++) {
		WIRE_BATCH(w, graph_host_data, .exec = EXEC(1), .stream = STREAM(1),
			.address = 0x7000000000, .data = data, .data_len = SIZE);
		taken += !batched(w);
	}
	YES(taken > 40 && taken < 64);
	WIRE_BATCH(w, host_func_done, .instance = w->host_calls[0].instance);
	IS(done(WIRE_CALL(w, stream_synchronize, false, .stream = STREAM(1))), CUDA_SUCCESS);
	/* What they took is free again. */
	WIRE_BATCH(w, graph_host_data, .exec = EXEC(1), .stream = STREAM(1),
		.address = 0x7000000000, .data = data, .data_len = SIZE);
	IS(batched(w), CUDA_SUCCESS);
	session_end(w);
}

/*
 * Replies that are never acknowledged: so many are kept and no more.  The client that says that it
 * has them goes on.
 */
static void test_replies(void)
{
	enum { KEPT = 1 << 16 };
	struct wire *w = limited(0);
	w->no_log = true;
	uint32_t refused = 0;
	for (unsigned i = 0; i <= KEPT && !refused; i++) {
		uint32_t xid =
			WIRE_SEND(w, event_create, true, false, .id = EVENT(i % 2), .flags = 0);
		struct wire_reply reply = wire_read(w, xid);
		if (reply.accept_stat)
			refused = i;
		free(reply.data);
	}
	IS(refused, KEPT);
	w->acked = w->executed;
	w->seq = w->executed;
	MUST(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	IS(done(WIRE_CALL(w, event_create, true, .id = EVENT(5), .flags = 0)), CUDA_SUCCESS);
	session_end(w);
}

/* Calls that wait for a stream that goes no further. */
static void test_open_calls(void)
{
	enum { OPEN = 16384 };
	struct wire *w = limited(0);
	IS(done(WIRE_CALL(
		   w, stream_create, true, .id = STREAM(1), .flags = CU_STREAM_NON_BLOCKING)),
		CUDA_SUCCESS);
	WIRE_BATCH(w, host_func, .stream = STREAM(1), .number = 7);
	uint32_t last = 0;
	for (unsigned i = 0; i < OPEN + 1; i++)
		last = WIRE_SEND(w, stream_synchronize, false, false, .stream = STREAM(1));
	struct wire_reply reply = wire_read_any(w);
	IS(reply.accept_stat, 5);
	YES(last - reply.xid < 3);
	free(reply.data);
	MUST(wire_hello(w, CKT_HELLO_RESUME, true), CKT_HELLO_OK);
	session_end(w);
}

/* A manifest that is larger than anybody's memory, of a few bytes on the disk. */
static void test_manifest(void)
{
	char directory[] = "/tmp/ckt-limits-XXXXXX", path[64], message[CKT_MESSAGE_MAX] = "";
	make_directory(directory);
	struct wire *w = session_new();
	save_and_stop(w, directory);
	free(w->log);
	free(w);
	snprintf(path, sizeof path, "%s/manifest", directory);
	CU_ASSERT_EQUAL(truncate(path, (off_t)3 << 30), 0);
	w = calloc(1, sizeof *w);
	w->host_memory = (uint64_t)8 << 30;
	int status = try_restore(w, directory, message);
	YES(status != 0);
	HAS(message, "--session-host-memory");
	free(w);
	remove_directory(directory);
}

UNIT_SUITE(host_limits, {"modules", test_modules}, {"graphs", test_graphs}, {"queued", test_queued},
	{"replies", test_replies}, {"open calls", test_open_calls}, {"manifest", test_manifest})
