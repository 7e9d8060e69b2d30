/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/capture.c: calls of libraries that are captured, launched as nodes of graphs,
 * and what they hold on to.
 */
#include <stdlib.h>

#include "rpc/graph.h"
#include "server/worker/objects/context.h"
#include "server/worker/session/host_budget.h"
#include "tests/unit/worker/graphs.h"
#include "tests/unit/worker/toy_library.h"

#define OBJECT(n) ID(LIB_OBJECT, 300 + (n))
#define CALL(n) ID(LIB_CALL, n)

static struct description d;

static void launch(uint64_t exec)
{
	IS(ASK(graph_launch, .exec = exec), CUDA_SUCCESS);
	IS(ckt_driver.cuCtxSynchronize(), CUDA_SUCCESS);
}

/* Makes the pages of tables that the test below needs. */
static int graph_place(void)
{
	uint64_t memory = inside_memory(4096, 0), exec = ID(GRAPH_EXEC, 61);
	int result = toy_capture(CALL(1), OBJECT(9), memory);
	graph_begin(&d);
	graph_library(&d, 2, CALL(1));
	if (!result)
		result = graph_instantiate(&d, ID(GRAPH, 61), exec);
	if (!result)
		result = ASK(graph_exec_destroy, .exec = exec);
	inside_free(memory);
	return result ? result : toy_capture_end(CALL(1));
}

static void test_launch(void)
{
	toy_begin();
	/* The first one of a context is history for good, and pages of tables stay. */
	MUST(toy_create(OBJECT(9), 1), CUDA_SUCCESS);
	MUST(toy_capture(CALL(9), OBJECT(9), 0x1000) != CUDA_SUCCESS, true);
	MUST(graph_place(), CUDA_SUCCESS);
	IS(toy_destroy(OBJECT(9)), CUDA_SUCCESS);
	uint64_t used = ckt_budget_used(), memory = inside_memory(4096, 0),
		 exec = ID(GRAPH_EXEC, 61);
	size_t before = ckt_worker_lib_log_count();
	MUST(toy_create(OBJECT(1), 10), CUDA_SUCCESS);
	IS(toy_set(OBJECT(1), 0, 5), CUDA_SUCCESS);
	MUST(toy_capture(CALL(1), OBJECT(1), memory), CUDA_SUCCESS);
	/* It was captured, and not done. */
	ckt_driver.cuCtxSynchronize();
	IS(inside_word(memory), 0);
	/* What is set from now on is for later calls. */
	IS(toy_set(OBJECT(1), 0, 100), CUDA_SUCCESS);
	MUST(toy_capture(CALL(2), OBJECT(1), memory + 4), CUDA_SUCCESS);
	graph_begin(&d);
	graph_fill(&d, 1, memory + 8, 3, 4, 1);
	graph_library(&d, 2, CALL(1));
	graph_library(&d, 3, CALL(2));
	MUST(graph_instantiate(&d, ID(GRAPH, 61), exec), CUDA_SUCCESS);
	launch(exec);
	IS(inside_word(memory), 15);
	IS(inside_word(memory + 4), 110);
	IS(inside_word(memory + 8), 3);
	/* The object is as it was: its own stream, its own settings. */
	IS(toy_write(OBJECT(1), memory + 12), CUDA_SUCCESS);
	ckt_driver.cuCtxSynchronize();
	IS(inside_word(memory + 12), 110);
	YES(toy_find(OBJECT(1))->capturing == NULL);
	/* The object and the calls go, the graph stays. */
	IS(toy_destroy(OBJECT(1)), CUDA_SUCCESS);
	IS(toy_capture_end(CALL(1)), CUDA_SUCCESS);
	IS(toy_capture_end(CALL(2)), CUDA_SUCCESS);
	IS(toy_capture_end(CALL(2)), CUDA_SUCCESS);
	inside_fill(memory, 0, 16);
	launch(exec);
	IS(inside_word(memory), 15);
	IS(inside_word(memory + 4), 110);
	IS(ASK(graph_exec_destroy, .exec = exec), CUDA_SUCCESS);
	IS(ckt_worker_lib_log_count(), before);
	inside_free(memory);
	IS(ckt_budget_used(), used);
	toy_end();
}

/* A destroyed object's settings stay in the log as long as a captured call was made with them. */
static void test_uses(void)
{
	toy_begin();
	uint64_t memory = inside_memory(64, 0);
	size_t before = ckt_worker_lib_log_count();
	MUST(toy_create(OBJECT(11), 1), CUDA_SUCCESS);
	IS(toy_set(OBJECT(11), 0, 2), CUDA_SUCCESS);
	MUST(toy_capture(CALL(11), OBJECT(11), memory), CUDA_SUCCESS);
	IS(ckt_worker_lib_log_count(), before + 3);
	IS(toy_set(OBJECT(11), 0, 3), CUDA_SUCCESS);
	IS(toy_set(OBJECT(11), 0, 4), CUDA_SUCCESS);
	IS(ckt_worker_lib_log_count(), before + 4); /* created, 2, captured, 4 */
	IS(toy_destroy(OBJECT(11)), CUDA_SUCCESS);
	IS(ckt_worker_lib_log_count(), before + 3);
	enum ckt_lib_life life = CKT_LIB_PAST;
	for (const struct ckt_lib_step *s = ckt_worker_lib_log(); s; s = s->next)
		if (s->id == OBJECT(11) && s->kind == CKT_LIB_CREATE)
			life = ckt_worker_lib_step_life(s);
	IS(life, CKT_LIB_USED);
	IS(toy_capture_end(CALL(11)), CUDA_SUCCESS);
	IS(ckt_worker_lib_log_count(), before);
	inside_free(memory);
	toy_end();
}

/* Memory of an object that a captured call uses outlives the object. */
static void test_workspace(void)
{
	toy_begin();
	uint64_t memory = inside_memory(64, 0);
	toy_workspace = 2 << 20;
	MUST(toy_create(OBJECT(21), 1), CUDA_SUCCESS);
	uint64_t workspace = toy_find(OBJECT(21))->workspace;
	MUST(toy_capture(CALL(21), OBJECT(21), memory), CUDA_SUCCESS);
	IS(toy_destroy(OBJECT(21)), CUDA_SUCCESS);
	YES(ckt_memory_holds(&ckt_worker.devices[0].memory, workspace, 2 << 20));
	IS(toy_capture_end(CALL(21)), CUDA_SUCCESS);
	NO(ckt_memory_holds(&ckt_worker.devices[0].memory, workspace, 1));
	inside_free(memory);
	toy_end();
}

static int capture(
	uint64_t call, uint32_t library, uint32_t proc, const uint8_t *args, uint32_t size)
{
	return INSIDE(lib_capture, true, .id = call, .library = library, .proc = proc, .args = args,
		.args_len = size)
		->result;
}

/*
 * After each of these the private stream captures no more, so that the next call can be captured.
 */
static void test_refused(void)
{
	toy_begin();
	uint64_t memory = inside_memory(64, 0);
	uint8_t args[16];
	MUST(toy_create(OBJECT(31), 1), CUDA_SUCCESS);
	size_t before = ckt_worker_lib_log_count();
	ckt_put_u64(ckt_put_u64(args, OBJECT(31)), memory);
	IS(capture(CALL(31), TOY_LIB, TOY_WRITE, args, 12), CUDA_ERROR_INVALID_VALUE);
	IS(capture(CALL(31), TOY_LIB, TOY_CREATE, args, 12), CUDA_ERROR_INVALID_VALUE);
	IS(capture(CALL(31), TOY_LIB, TOY_SET, args, 16), CUDA_ERROR_INVALID_VALUE);
	IS(capture(CALL(31), TOY_LIB, TOY_ASK, args, 16), CUDA_ERROR_INVALID_VALUE);
	/* The call would go on with the object that it ended. */
	IS(capture(CALL(31), TOY_LIB, TOY_DESTROY, args, 8), CUDA_ERROR_INVALID_VALUE);
	YES(toy_find(OBJECT(31)) != NULL);
	IS(capture(CALL(31), TOY_LIB, 0, args, 16), CUDA_ERROR_INVALID_VALUE);
	IS(capture(CALL(31), TOY_LIB, TOY_PROCS, args, 16), CUDA_ERROR_INVALID_VALUE);
	IS(capture(CALL(31), CKT_LIB_CUDA, 10, args, 16), CUDA_ERROR_INVALID_VALUE);
	IS(capture(CALL(31), 99, TOY_WRITE, args, 16), CUDA_ERROR_INVALID_VALUE);
	IS(capture(CALL(31), UINT32_MAX, TOY_WRITE, args, 16), CUDA_ERROR_INVALID_VALUE);
	IS(capture(ID(STREAM, 31), TOY_LIB, TOY_WRITE, args, 16), CUDA_ERROR_INVALID_VALUE);
	toy_status = 14;
	IS(capture(CALL(31), TOY_LIB, TOY_WRITE, args, 16), CUDA_ERROR_UNKNOWN);
	toy_status = 0;
	ckt_put_u64(args, OBJECT(39));
	IS(capture(CALL(31), TOY_LIB, TOY_WRITE, args, 16), CUDA_ERROR_INVALID_HANDLE);
	IS(ckt_worker_lib_log_count(), before);
	YES(ckt_lib_capture_stream == NULL);
	/* A graph that names such a call is none. */
	graph_begin(&d);
	graph_library(&d, 1, CALL(31));
	IS(graph_instantiate(&d, ID(GRAPH, 62), ID(GRAPH_EXEC, 62)), CUDA_ERROR_INVALID_VALUE);
	MUST(toy_capture(CALL(31), OBJECT(31), memory), CUDA_SUCCESS);
	IS(toy_capture(CALL(31), OBJECT(31), memory), CUDA_ERROR_INVALID_VALUE);
	IS(toy_capture_end(CALL(31)), CUDA_SUCCESS);
	/* Its nodes count. */
	ckt_budget_init(ckt_budget_used() + 2048);
	IS(toy_capture(CALL(31), OBJECT(31), memory), CUDA_ERROR_OUT_OF_MEMORY);
	ckt_budget_init(0);
	IS(toy_destroy(OBJECT(31)), CUDA_SUCCESS);
	IS(CUT(lib_capture_end, .id = CALL(31)), 0);
	IS(CUT(lib_capture, .id = CALL(31), .library = TOY_LIB, .proc = TOY_WRITE, .args = args,
		   .args_len = 16),
		0);
	inside_free(memory);
	toy_end();
}

/* A call that names its stream gets the capture's, whichever it names. */
static void test_stream_argument(void)
{
	toy_begin();
	uint64_t memory = inside_memory(64, 0), exec = ID(GRAPH_EXEC, 63);
	uint8_t args[16];
	ckt_put_u64(ckt_put_u64(args, ID(STREAM, 4711)), memory);
	MUST(capture(CALL(41), TOY_LIB, TOY_WRITE_TO, args, 16), CUDA_SUCCESS);
	graph_begin(&d);
	graph_library(&d, 1, CALL(41));
	MUST(graph_instantiate(&d, ID(GRAPH, 63), exec), CUDA_SUCCESS);
	IS(inside_word(memory), 0);
	launch(exec);
	IS(inside_word(memory), 0x77);
	IS(ASK(graph_exec_destroy, .exec = exec), CUDA_SUCCESS);
	IS(toy_capture_end(CALL(41)), CUDA_SUCCESS);
	inside_free(memory);
	toy_end();
}

static void test_update(void)
{
	toy_begin();
	uint64_t memory = inside_memory(64, 0), exec = ID(GRAPH_EXEC, 64);
	struct ckt_graph_exec_update_res res = {0};
	MUST(toy_create(OBJECT(51), 1), CUDA_SUCCESS);
	MUST(toy_capture(CALL(51), OBJECT(51), memory), CUDA_SUCCESS);
	MUST(toy_capture(CALL(52), OBJECT(51), memory + 4), CUDA_SUCCESS);
	MUST(toy_capture(CALL(53), OBJECT(51), memory + 8), CUDA_SUCCESS);
	graph_begin(&d);
	graph_library(&d, 1, CALL(51));
	MUST(graph_instantiate(&d, ID(GRAPH, 64), exec), CUDA_SUCCESS);
	/* The whole. */
	graph_begin(&d);
	graph_library(&d, 1, CALL(52));
	uint32_t size = graph_end(&d);
	IS(INSIDE(graph_data, true, .graph = ID(GRAPH, 65), .total = size, .data = d.bytes,
		   .data_len = size)
			->result,
		CUDA_SUCCESS);
	struct inside_reply *reply =
		INSIDE(graph_exec_update, false, .exec = exec, .graph = ID(GRAPH, 65));
	IS(reply->result, CUDA_SUCCESS);
	YES(ckt_graph_exec_update_res_get(&reply->results, &res));
	IS(res.result, CUDA_SUCCESS);
	launch(exec);
	IS(inside_word(memory), 0);
	IS(inside_word(memory + 4), 1);
	/* One node. */
	graph_begin(&d);
	graph_library(&d, 1, CALL(53));
	IS(ASK(graph_exec_set_node, .exec = exec, .node = d.bytes + 4,
		   .node_len = (uint32_t)(d.p - d.bytes) - 4),
		CUDA_SUCCESS);
	inside_fill(memory, 0, 16);
	launch(exec);
	IS(inside_word(memory + 4), 0);
	IS(inside_word(memory + 8), 1);
	IS(ASK(graph_exec_destroy, .exec = exec), CUDA_SUCCESS);
	for (unsigned i = 51; i < 54; i++)
		IS(toy_capture_end(CALL(i)), CUDA_SUCCESS);
	IS(toy_destroy(OBJECT(51)), CUDA_SUCCESS);
	inside_free(memory);
	toy_end();
}

/* A context takes its private stream and its calls along. */
static void test_context_ends(void)
{
	struct ckt_object *context;
	CUgraph graph;
	toy_begin();
	uint64_t memory = inside_memory(64, 0);
	for (unsigned i = 0; i < 70; i++) {
		MUST(ckt_context_create(&ckt_worker, ID(CONTEXT, 51) + i, 0, 0, &context),
			CUDA_SUCCESS);
		MUST(ckt_worker_use_context(&ckt_worker, context->id), CUDA_SUCCESS);
		uint8_t args[16];
		ckt_put_u64(ckt_put_u64(args, 0), memory);
		MUST(ckt_worker_lib_call_make(
			     &ckt_worker, CALL(61) + i, TOY_LIB, TOY_WRITE_TO, args, sizeof args),
			CUDA_SUCCESS);
		YES(ckt_worker_lib_call_find(&ckt_worker, CALL(61) + i, &graph) != NULL);
		IS(ckt_context_destroy(&ckt_worker, context), CUDA_SUCCESS);
		YES(ckt_worker_lib_call_find(&ckt_worker, CALL(61) + i, &graph) == NULL);
	}
	ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0));
	inside_free(memory);
	toy_end();
}

/*
 * Something waited for the context while the call was captured: it is captured again, and not for
 * ever.
 */
static void test_disturbed(void)
{
	toy_begin();
	uint64_t memory = inside_memory(4096, 0), exec = ID(GRAPH_EXEC, 66);
	MUST(toy_create(OBJECT(6), 60), CUDA_SUCCESS);
	toy_disturbed = 1;
	MUST(toy_capture(CALL(6), OBJECT(6), memory), CUDA_SUCCESS);
	IS(toy_disturbed, 0);
	graph_begin(&d);
	graph_library(&d, 2, CALL(6));
	MUST(graph_instantiate(&d, ID(GRAPH, 66), exec), CUDA_SUCCESS);
	launch(exec);
	IS(inside_word(memory), 60);
	IS(ASK(graph_exec_destroy, .exec = exec), CUDA_SUCCESS);
	IS(toy_capture_end(CALL(6)), CUDA_SUCCESS);
	toy_disturbed = 100;
	YES(toy_capture(CALL(6), OBJECT(6), memory) != CUDA_SUCCESS);
	toy_disturbed = 0;
	IS(toy_destroy(OBJECT(6)), CUDA_SUCCESS);
	inside_free(memory);
	toy_end();
}

UNIT_SUITE(capture, {"launch", test_launch}, {"uses", test_uses}, {"workspace", test_workspace},
	{"refused", test_refused}, {"stream argument", test_stream_argument},
	{"update", test_update}, {"context ends", test_context_ends}, {"disturbed", test_disturbed})
