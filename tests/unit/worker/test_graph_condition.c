/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/graph/graph_condition.c: the driver's handles in the place of the client's, in
 * bodies too, and records that lie.
 */
#include <stdlib.h>
#include <string.h>

#include "server/worker/module/module.h"
#include "tests/unit/worker/graphs.h"

/* Counts at p; the condition is whether that is less than the limit. */
static const char ptx[] =
	".version 8.4\n.target sm_75\n.address_size 64\n"
	".extern .func cudaGraphSetConditional(.param .b64 h, .param .b32 v);\n"
	".visible .entry count(.param .u32 limit, .param .u64 handle, .param .u64 p)\n{\n"
	"\t.reg .b32 v, l; .reg .b64 h, q; .reg .pred less;\n"
	"\tld.param.u64 h, [handle]; ld.param.u64 q, [p]; ld.param.u32 l, [limit];\n"
	"\tld.global.u32 v, [q]; add.u32 v, v, 1; st.global.u32 [q], v;\n"
	"\tsetp.lt.u32 less, v, l; selp.u32 v, 1, 0, less;\n"
	"\t{ .param .b64 a; .param .b32 b; st.param.b64 [a], h; st.param.b32 [b], v;\n"
	"\tcall.uni cudaGraphSetConditional, (a, b); }\n\tret;\n}\n";

enum { LOOP = 0x1234, INNER = 0x5678 };
static uint64_t memory;
static struct description d;

/* The client's handles, as random as it draws them. */
static uint64_t handle_of(unsigned number)
{
	return 0x9e3779b97f4a7c15 * number;
}

static uint8_t *put_count(uint8_t *p, uint32_t limit, uint64_t handle, uint64_t at)
{
	uint8_t params[24] = {0};
	memcpy(params, &limit, 4);
	memcpy(params + 8, &handle, 8);
	memcpy(params + 16, &at, 8);
	p = ckt_put_u64(p, ID(FUNCTION, 69));
	for (int i = 0; i < 6; i++)
		p = ckt_put_u32(p, 1);
	p = ckt_put_u32(p, 0);
	p = ckt_put_opaque(p, NULL, 0);
	return ckt_put_opaque(p, params, sizeof params);
}

struct head {
	uint64_t handle, context;
	uint32_t value, flags, up, type, count;
};

static uint8_t *put_head(uint8_t *p, struct head h)
{
	p = ckt_put_u64(ckt_put_u64(p, h.handle), h.context);
	p = ckt_put_u32(ckt_put_u32(ckt_put_u32(p, h.value), h.flags), h.up);
	return ckt_put_u32(ckt_put_u32(p, h.type), h.count);
}

static struct head loop_head(void)
{
	return (struct head){handle_of(LOOP), ckt_handle_primary(0), 1,
		CU_GRAPH_COND_ASSIGN_DEFAULT, 0, CU_GRAPH_COND_TYPE_WHILE, 1};
}

/* A conditional node whose bodies are that description. */
static void conditional(
	struct description *to, uint64_t id, struct head head, struct description *body)
{
	uint8_t record[8192], *p = put_head(record, head);
	uint32_t size = body ? graph_end(body) : 0;
	for (uint32_t i = 0; i < head.count && body; i++) {
		memcpy(p, body->bytes, size);
		p += size;
	}
	graph_node(to, id, CU_GRAPH_NODE_TYPE_CONDITIONAL, record, (uint32_t)(p - record));
}

static void count_node(
	struct description *to, uint64_t id, uint32_t limit, uint64_t handle, uint64_t at)
{
	uint8_t record[256], *p = put_count(record, limit, handle, at);
	graph_node(to, id, CU_GRAPH_NODE_TYPE_KERNEL, record, (uint32_t)(p - record));
}

static void launch(uint64_t exec)
{
	inside_fill(memory, 0, 64);
	IS(ASK(graph_launch, .exec = exec, .stream = 0), CUDA_SUCCESS);
	IS(ckt_driver.cuCtxSynchronize(), CUDA_SUCCESS);
}

/* A loop of `limit` rounds. */
static void draw(uint32_t limit)
{
	struct description body;
	graph_begin(&body);
	count_node(&body, 10, limit, handle_of(LOOP), memory);
	graph_begin(&d);
	conditional(&d, 1, loop_head(), &body);
}

static void test_loop(void)
{
	struct ckt_object *function;
	memory = inside_memory(1 << 20, 0);
	struct ckt_object *module = inside_module(ID(MODULE, 69), ptx);
	MUST(ckt_function_get(&ckt_worker, module, ID(FUNCTION, 69), "count", &function),
		CUDA_SUCCESS);
	draw(5);
	MUST(graph_instantiate(&d, ID(GRAPH, 1), ID(GRAPH_EXEC, 1)), CUDA_SUCCESS);
	for (int i = 0; i < 2; i++) {
		launch(ID(GRAPH_EXEC, 1));
		IS(inside_word(memory), 5);
	}
	/* A kernel of the body by itself. */
	graph_begin(&d);
	count_node(&d, 10, 7, handle_of(LOOP), memory);
	IS(ASK(graph_exec_set_node, .exec = ID(GRAPH_EXEC, 1), .node = d.bytes + 4,
		   .node_len = (uint32_t)(d.p - d.bytes - 4)),
		CUDA_SUCCESS);
	launch(ID(GRAPH_EXEC, 1));
	IS(inside_word(memory), 7);
}

static void test_update(void)
{
	struct ckt_graph_exec_update_res res = {0};
	draw(3);
	uint32_t size = graph_end(&d);
	MUST(INSIDE(graph_data, true, .graph = ID(GRAPH, 1), .total = size, .data = d.bytes,
		     .data_len = size)
			->result,
		CUDA_SUCCESS);
	struct inside_reply *reply =
		INSIDE(graph_exec_update, false, .exec = ID(GRAPH_EXEC, 1), .graph = ID(GRAPH, 1));
	MUST(reply->result, CUDA_SUCCESS);
	YES(ckt_graph_exec_update_res_get(&reply->results, &res));
	IS(res.result, CUDA_SUCCESS);
	launch(ID(GRAPH_EXEC, 1));
	IS(inside_word(memory), 3);
	IS(ASK(graph_exec_destroy, .exec = ID(GRAPH_EXEC, 1)), CUDA_SUCCESS);
}

/* A condition of the graph, set in a body of a body, and one of the body's own. */
static void test_nested(void)
{
	for (uint32_t up = 0; up < 2; up++) {
		struct description inner, outer;
		struct head head = {handle_of(INNER), ckt_handle_primary(0), 1,
			CU_GRAPH_COND_ASSIGN_DEFAULT, up, CU_GRAPH_COND_TYPE_IF, 2};
		graph_begin(&inner);
		count_node(&inner, 20, 4, handle_of(LOOP), memory);
		graph_begin(&outer);
		conditional(&outer, 11, head, &inner);
		graph_begin(&d);
		conditional(&d, 1, loop_head(), &outer);
		MUST(graph_instantiate(&d, ID(GRAPH, 1), ID(GRAPH_EXEC, 1)), CUDA_SUCCESS);
		launch(ID(GRAPH_EXEC, 1));
		IS(inside_word(memory), 4);
		IS(ASK(graph_exec_destroy, .exec = ID(GRAPH_EXEC, 1)), CUDA_SUCCESS);
	}
}

/* Whole words alone, and only those that are handles. */
static void test_replace(void)
{
	struct ckt_worker_graph_condition list[] = {{handle_of(1), 100}, {handle_of(2), 200}};
	struct ckt_worker_graph_conditions conditions = {list, 2};
	uint64_t words[] = {handle_of(2), 7, handle_of(1), handle_of(3), handle_of(1)};
	uint64_t expected[] = {200, 7, 100, handle_of(3), handle_of(1)};
	ckt_worker_graph_conditions_replace(&conditions, (uint8_t *)words, sizeof words - 1);
	IS(memcmp(words, expected, sizeof words), 0);
	uint8_t shifted[24] = {0}, same[24] = {0};
	memcpy(shifted + 4, &list[0].handle, 8);
	memcpy(same + 4, &list[0].handle, 8);
	ckt_worker_graph_conditions_replace(&conditions, shifted, sizeof shifted);
	IS(memcmp(shifted, same, sizeof same), 0);
}

static void test_take(void)
{
	struct ckt_worker_graph_conditions
		known = {0},
		update = {calloc(2, sizeof(struct ckt_worker_graph_condition)), 2};
	update.list[0] = (struct ckt_worker_graph_condition){handle_of(1), 100};
	update.list[1] = (struct ckt_worker_graph_condition){handle_of(2), 200};
	IS(ckt_worker_graph_conditions_take(&known, &update), CUDA_SUCCESS);
	IS(known.count, 2);
	IS(update.count, 0);
	update = (struct ckt_worker_graph_conditions){
		calloc(1, sizeof(struct ckt_worker_graph_condition)), 1};
	update.list[0] = (struct ckt_worker_graph_condition){handle_of(2), 300};
	IS(ckt_worker_graph_conditions_take(&known, &update), CUDA_SUCCESS);
	IS(known.count, 2);
	IS(known.list[0].real, 100);
	IS(known.list[1].real, 300);
	ckt_worker_graph_conditions_fini(&known);
	ckt_worker_graph_conditions_fini(&known);
}

static void test_refused(void)
{
	struct head good = loop_head();
	struct head heads[10];
	for (size_t i = 0; i < COUNT(heads); i++)
		heads[i] = good;
	heads[0].handle = 0;
	heads[1].context = 77;
	heads[2].flags = 2;
	heads[3].up = 1; /* there is no graph around it */
	heads[4].up = UINT32_MAX;
	heads[5].type = 9;
	heads[6].count = 0;
	heads[7].count = 2; /* one body only */
	heads[8].count = 70000;
	heads[9].count = UINT32_MAX;
	for (size_t i = 0; i < COUNT(heads); i++) {
		struct description body;
		uint8_t record[512], *p = put_head(record, heads[i]);
		graph_begin(&body);
		graph_node(&body, 10, CU_GRAPH_NODE_TYPE_EMPTY, NULL, 0);
		uint32_t size = graph_end(&body);
		memcpy(p, body.bytes, size);
		graph_begin(&d);
		graph_node(&d, 1, CU_GRAPH_NODE_TYPE_CONDITIONAL, record,
			(uint32_t)(p - record) + size);
		if (!IS(graph_instantiate(&d, ID(GRAPH, 2), ID(GRAPH_EXEC, 2)) != CUDA_SUCCESS,
			    true))
			CU_FAIL("of a row of the table");
		CU_ASSERT_PTR_NULL(ckt_objects_find(&ckt_worker.objects, ID(GRAPH_EXEC, 2)));
	}
	/* Two nodes of one handle. */
	struct description body;
	graph_begin(&body);
	graph_node(&body, 10, CU_GRAPH_NODE_TYPE_EMPTY, NULL, 0);
	graph_begin(&d);
	conditional(&d, 1, good, &body);
	conditional(&d, 2, good, &body);
	YES(graph_instantiate(&d, ID(GRAPH, 2), ID(GRAPH_EXEC, 2)) != CUDA_SUCCESS);
	inside_free(memory);
}

UNIT_SUITE(graph_condition, {"loop", test_loop}, {"update", test_update}, {"nested", test_nested},
	{"replace", test_replace}, {"take", test_take}, {"refused", test_refused})
