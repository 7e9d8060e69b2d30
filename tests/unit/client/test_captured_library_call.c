/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/graph/captured_library_call.c: a library call on a stream that captures travels once,
 * as a command that nobody waits for; graphs name it by its id; it ends with the last graph that
 * does.  What the worker makes of it is in tests/unit/worker/test_capture.c.
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "client/libs/libs.h"
#include "graphs.h"
#include "rpc/gen/cuda_codec.h"
#include "rpc/graph.h"
#include "rpc/handle.h"

enum { LIB = CKT_LIB_COUNT - 1, PROC = CKT_LIB_PROC_MAX }; /* which no server has */

static const struct ckt_client_table *table(void)
{
	return dlsym(RTLD_DEFAULT, CKT_CLIENT_TABLE_SYMBOL);
}

/* What the server said of a call that it could not capture. */
static void forget_deferred(void)
{
	cuCtxSynchronize();
}

static void test_capture(void)
{
	const struct ckt_client_table *t = table();
	CUstream stream;
	CUgraph graph, clone;
	CUgraphExec exec;
	bool captured = true;
	uint64_t id;
	CUdeviceptr memory = memory_of(64, 0);
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	MUST(t->stream(stream, &id), CUDA_SUCCESS);
	/* No capture, no message. */
	LOCAL(t->capture(id, CKT_LIB_PROC(LIB, PROC), "abcd", 4, 0, &captured), CUDA_SUCCESS);
	NO(captured);
	relay_mark();
	MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
	IS(t->capture(id, CKT_LIB_PROC(LIB, PROC), "abcd", 4, 0, &captured), CUDA_SUCCESS);
	YES(captured);
	IS(cuMemsetD32Async(memory, 3, 1, stream), CUDA_SUCCESS);
	IS(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
	forget_deferred();
	relay_settle();
	IS(relay_count("lib_capture"), 1);
	size_t size;
	struct ckt_lib_capture_args args;
	const uint8_t *bytes = relay_args("lib_capture", &size);
	CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
	struct ckt_cursor c = {.p = bytes, .end = bytes + size};
	MUST(ckt_lib_capture_args_get(&c, &args), true);
	uint64_t call = args.id;
	IS(call >> 56, CKT_KIND_LIB_CALL);
	IS(args.library, LIB);
	IS(args.proc, PROC);
	IS(args.args_len, 4);
	IS(memcmp(args.args, "abcd", 4), 0);
	/* The description names the call. */
	relay_mark();
	YES(cuGraphInstantiate(&exec, graph, 0) != CUDA_SUCCESS);
	relay_settle();
	struct ckt_graph_data_args data;
	bytes = relay_args("graph_data", &size);
	CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
	c = (struct ckt_cursor){.p = bytes, .end = bytes + size};
	MUST(ckt_graph_data_args_get(&c, &data), true);
	c = (struct ckt_cursor){.p = data.data, .end = data.data + data.data_len};
	uint32_t record;
	IS(ckt_get_u32(&c), 2);
	ckt_get_u64(&c);
	IS(ckt_get_u32(&c), CKT_GRAPH_NODE_LIBRARY);
	ckt_get_u64(&c);
	bytes = ckt_get_opaque(&c, 100, &record);
	IS(record, 8);
	c = (struct ckt_cursor){.p = bytes, .end = bytes + record};
	IS(ckt_get_u64(&c), call);
	/* It ends with the last copy. */
	IS(cuGraphClone(&clone, graph), CUDA_SUCCESS);
	relay_mark();
	IS(cuGraphDestroy(graph), CUDA_SUCCESS);
	relay_settle();
	IS(relay_count("lib_capture_end"), 0);
	IS(cuGraphDestroy(clone), CUDA_SUCCESS);
	relay_settle();
	IS(relay_count("lib_capture_end"), 1);
	forget_deferred();
	IS(cuStreamDestroy(stream), CUDA_SUCCESS);
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

/* As launches are refused there, so are these. */
static void test_refused(void)
{
	const struct ckt_client_table *t = table();
	CUstream stream;
	CUgraph graph;
	bool captured = false;
	uint64_t id;
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	MUST(t->stream(stream, &id), CUDA_SUCCESS);
	uint8_t *much = calloc(1, (1 << 20) + 1);
	MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
	IS(t->capture(id, CKT_LIB_PROC(LIB, PROC), much, (1 << 20) + 1, 0, &captured),
		CUDA_ERROR_NOT_SUPPORTED);
	/* Waiting for the stream spoils its capture. */
	IS(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	IS(t->capture(id, CKT_LIB_PROC(LIB, PROC), much, 8, 0, &captured),
		CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	IS(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	free(much);
	IS(cuStreamDestroy(stream), CUDA_SUCCESS);
}

/*
 * A handle's memory may be taken in a capture, and lives as long as the handle and the captured
 * calls.
 */
static void test_workspace(void)
{
	const struct ckt_client_table *t = table();
	CUstream stream;
	CUgraph graph;
	bool captured;
	uint64_t id, kept = 0, given = 0;
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	MUST(t->stream(stream, &id), CUDA_SUCCESS);
	MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
	IS(t->workspace_alloc(1 << 20, &kept), CUDA_SUCCESS);
	IS(t->workspace_alloc(1 << 20, &given), CUDA_SUCCESS);
	for (unsigned i = 0; i < 2; i++)
		IS(t->capture(id, CKT_LIB_PROC(LIB, PROC), "abcd", 4, kept, &captured),
			CUDA_SUCCESS);
	IS(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
	forget_deferred();
	relay_mark();
	IS(t->workspace_free(given), CUDA_SUCCESS);
	IS(t->workspace_free(kept), CUDA_SUCCESS);
	relay_settle();
	IS(relay_count("mem_free"), 1);
	IS(cuMemsetD8(kept, 0, 1 << 20), CUDA_SUCCESS);
	relay_mark();
	IS(cuGraphDestroy(graph), CUDA_SUCCESS);
	relay_settle();
	IS(relay_count("graph_mem_free"), 1);
	size_t size;
	const uint8_t *bytes = relay_args("graph_mem_free", &size);
	CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
	struct ckt_cursor c = {.p = bytes, .end = bytes + size};
	IS(ckt_get_u64(&c), kept);
	IS(cuMemsetD8(kept, 0, 1), CUDA_ERROR_INVALID_VALUE);
	IS(cuStreamDestroy(stream), CUDA_SUCCESS);
}

UNIT_SUITE(lib_call, {"capture", test_capture}, {"workspace", test_workspace},
	{"refused", test_refused})
