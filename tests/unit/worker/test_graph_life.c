/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/graph/graph_life.c, and whatever else a program may end while the GPU has yet to
 * come to it: what queued work uses lives until it is done, and nobody waits for it but who asked
 * to.  A host function that its client has not answered holds up the stream.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/worker/graph_bytes.h"
#include "tests/unit/worker/wire_session.h"

enum { SIZE = 100000, NODE = 0x5151 };
static const uint64_t host = 0x7000012345;

#define GRAPH(n) ckt_handle_make(CKT_KIND_GRAPH, 1, 600 + (n))
#define EXEC(n) ckt_handle_make(CKT_KIND_GRAPH_EXEC, 1, 700 + (n))
#define ARRAY(n) ckt_handle_make(CKT_KIND_ARRAY, 1, 800 + (n))

/* The worker still does what it is asked; what it called meanwhile is heard. */
static bool answers(struct wire *w)
{
	return done(WIRE_CALL(w, mem_get_info, false)) == CUDA_SUCCESS;
}

static struct ckt_host_call_args wait_host_call(struct wire *w, unsigned count)
{
	for (int i = 0; w->host_call_count < count && i < 30000; i++) {
		usleep(1000);
		if (!answers(w))
			break;
	}
	MUST(w->host_call_count, count);
	return w->host_calls[count - 1];
}

static void answer(struct wire *w, struct ckt_host_call_args call)
{
	WIRE_BATCH(w, host_func_done, .instance = call.instance);
}

/* A stream that goes no further. */
static struct ckt_host_call_args block(struct wire *w, uint64_t stream)
{
	IS(done(WIRE_CALL(w, stream_create, true, .id = stream, .flags = CU_STREAM_NON_BLOCKING)),
		CUDA_SUCCESS);
	WIRE_BATCH(w, host_func, .stream = stream, .number = 7);
	return wait_host_call(w, w->host_call_count + 1);
}

static CUresult instantiate(struct wire *w, struct description *d, uint64_t graph, uint64_t exec)
{
	struct ckt_graph_instantiate_res res = {.status = 999};
	uint32_t size = graph_end(d);
	WIRE_BATCH(
		w, graph_data, .graph = graph, .total = size, .data = d->bytes, .data_len = size);
	struct wire_reply reply =
		WIRE_CALL(w, graph_instantiate, true, .exec = exec, .graph = graph);
	YES(!reply.result && ckt_graph_instantiate_res_get(&reply.results, &res));
	free(reply.data);
	return (CUresult)res.status;
}

static void host_nodes(struct description *d, unsigned count)
{
	graph_begin(d);
	for (unsigned i = 0; i < count; i++)
		graph_node(d, NODE + i, CU_GRAPH_NODE_TYPE_HOST, NULL, 0);
}

static void copy_to(struct description *d, uint64_t memory)
{
	graph_begin(d);
	graph_copy(d, 1, (struct graph_side){.type = CU_MEMORYTYPE_HOST, .address = host},
		(struct graph_side){.type = CU_MEMORYTYPE_DEVICE, .address = memory}, SIZE, 1);
}

/*
 * Launched behind what does not go on, and destroyed: its nodes are called for all the same, by
 * their names.
 */
static void test_host_nodes(void)
{
	enum { NODES = 4 };
	struct description d;
	struct wire *w = session_new();
	struct ckt_host_call_args first = block(w, STREAM(1));
	host_nodes(&d, NODES);
	MUST(instantiate(w, &d, GRAPH(1), EXEC(1)), CUDA_SUCCESS);
	WIRE_BATCH(w, graph_launch, .exec = EXEC(1), .stream = STREAM(1));
	WIRE_BATCH(w, graph_exec_destroy, .exec = EXEC(1));
	/* What is made now may take the place of what is freed. */
	for (unsigned i = 0; i < 64; i++) {
		host_nodes(&d, NODES + i % 3);
		IS(instantiate(w, &d, GRAPH(2), EXEC(2)), CUDA_SUCCESS);
		WIRE_BATCH(w, graph_exec_destroy, .exec = EXEC(2));
	}
	answer(w, first);
	for (unsigned i = 0; i < NODES; i++) {
		struct ckt_host_call_args call = wait_host_call(w, i + 2);
		IS(call.number, NODE + i);
		IS(call.exec, EXEC(1));
		answer(w, call);
	}
	IS(done(WIRE_CALL(w, stream_synchronize, false, .stream = STREAM(1))), CUDA_SUCCESS);
	IS(w->deferred, 0);
	session_end(w);
}

/*
 * Bytes on their way to a graph that was never launched, or was, and is destroyed: the worker goes
 * on, and they find their place.
 */
static void test_host_data(void)
{
	static uint8_t data[SIZE];
	struct description d;
	struct wire *w = session_new();
	uint64_t memory = alloc(w, SIZE);
	struct ckt_host_call_args first = block(w, STREAM(1));
	for (int launched = 0; launched < 2; launched++) {
		copy_to(&d, memory);
		MUST(instantiate(w, &d, GRAPH(1), EXEC(1)), CUDA_SUCCESS);
		memset(data, 0x40 + launched, sizeof data);
		WIRE_BATCH(w, graph_host_data, .exec = EXEC(1), .stream = STREAM(1),
			.address = host, .data = data, .data_len = SIZE);
		if (launched)
			WIRE_BATCH(w, graph_launch, .exec = EXEC(1), .stream = STREAM(1));
		WIRE_BATCH(w, graph_exec_destroy, .exec = EXEC(1));
		YES(answers(w));
	}
	answer(w, first);
	IS(done(WIRE_CALL(w, stream_synchronize, false, .stream = STREAM(1))), CUDA_SUCCESS);
	IS(get_u32(w, memory), 0x41414141);
	IS(w->deferred, 0);
	session_end(w);
}

/* Bytes by one stream, launches on others: the graph is there until the last of them is through. */
static void test_streams(void)
{
	static uint8_t data[SIZE];
	struct description d;
	struct wire *w = session_new();
	uint64_t memory = alloc(w, SIZE);
	struct ckt_host_call_args first = block(w, STREAM(1));
	IS(done(WIRE_CALL(
		   w, stream_create, true, .id = STREAM(2), .flags = CU_STREAM_NON_BLOCKING)),
		CUDA_SUCCESS);
	copy_to(&d, memory);
	MUST(instantiate(w, &d, GRAPH(1), EXEC(1)), CUDA_SUCCESS);
	WIRE_BATCH(w, graph_host_data, .exec = EXEC(1), .stream = STREAM(1), .address = host,
		.data = data, .data_len = SIZE);
	WIRE_BATCH(w, graph_launch, .exec = EXEC(1), .stream = STREAM(2));
	IS(done(WIRE_CALL(w, stream_synchronize, false, .stream = STREAM(2))), CUDA_SUCCESS);
	WIRE_BATCH(w, graph_exec_destroy, .exec = EXEC(1));
	WIRE_BATCH(w, stream_destroy, .id = STREAM(1));
	YES(answers(w));
	answer(w, first);
	IS(done(WIRE_CALL(w, ctx_synchronize, false, .id = ckt_handle_primary(0))), CUDA_SUCCESS);
	IS(w->deferred, 0);
	session_end(w);
}

/* What an update brings is the executable graph's own, however soon it is ended. */
static void test_update(void)
{
	struct description d;
	struct wire *w = session_new();
	struct ckt_host_call_args first = block(w, STREAM(1));
	host_nodes(&d, 2);
	MUST(instantiate(w, &d, GRAPH(1), EXEC(1)), CUDA_SUCCESS);
	for (int i = 0; i < 2; i++) {
		WIRE_BATCH(w, graph_launch, .exec = EXEC(1), .stream = STREAM(1));
		host_nodes(&d, 2);
		uint32_t size = graph_end(&d);
		WIRE_BATCH(w, graph_data, .graph = GRAPH(2), .total = size, .data = d.bytes,
			.data_len = size);
		IS(done(WIRE_CALL(w, graph_exec_update, true, .exec = EXEC(1), .graph = GRAPH(2))),
			CUDA_SUCCESS);
	}
	WIRE_BATCH(w, graph_exec_destroy, .exec = EXEC(1));
	answer(w, first);
	for (unsigned i = 0; i < 4; i++) {
		struct ckt_host_call_args call = wait_host_call(w, i + 2);
		IS(call.number, NODE + i % 2);
		IS(call.exec, EXEC(1));
		answer(w, call);
	}
	IS(done(WIRE_CALL(w, stream_synchronize, false, .stream = STREAM(1))), CUDA_SUCCESS);
	session_end(w);
}

/*
 * The driver waits for the GPU to end these; the worker's other commands, and with them what the
 * GPU waits for, do not.
 */
static void test_ends(void)
{
	static const char ptx[] =
		".version 8.0\n.target sm_70\n.address_size 64\n.visible .global .u32 v = 7;\n.visible .entry k()\n{\n\tret;\n}\n";
	uint8_t hash[32];
	struct wire *w = session_new();
	extern void ckt_blob_hash(const void *data, size_t size, uint8_t ret_hash[32]);
	ckt_blob_hash(ptx, sizeof ptx, hash);
	WIRE_BATCH(w, blob_data, .hash = hash, .hash_len = 32, .total = sizeof ptx,
		.data = (const uint8_t *)ptx, .data_len = sizeof ptx);
	IS(done(WIRE_CALL(w, module_load, true, .id = MODULE(1), .hash = hash, .hash_len = 32)),
		CUDA_SUCCESS);
	IS(done(WIRE_CALL(w, array_create, true, .id = ARRAY(1), .width = 64, .height = 64,
		   .format = CU_AD_FORMAT_FLOAT, .channels = 1)),
		CUDA_SUCCESS);
	struct ckt_host_call_args first = block(w, STREAM(1));
	WIRE_BATCH(w, array_destroy, .id = ARRAY(1));
	YES(answers(w));
	uint32_t unload = WIRE_SEND(w, module_unload, true, false, .id = MODULE(1));
	YES(answers(w));
	/* It is not there any more, though it has not gone. */
	IS(done(WIRE_CALL(
		   w, module_get_global, true, .module = MODULE(1), .name = "v", .name_len = 1)),
		CUDA_ERROR_INVALID_HANDLE);
	WIRE_BATCH(w, stream_destroy, .id = STREAM(1));
	YES(answers(w));
	answer(w, first);
	IS(done(wire_read(w, unload)), CUDA_SUCCESS);
	IS(done(WIRE_CALL(w, module_load, true, .id = MODULE(1), .hash = hash, .hash_len = 32)),
		CUDA_SUCCESS);
	IS(w->deferred, 0);
	session_end(w);
}

UNIT_SUITE(graph_life, {"host nodes", test_host_nodes}, {"host data", test_host_data},
	{"streams", test_streams}, {"update", test_update}, {"ends", test_ends})
