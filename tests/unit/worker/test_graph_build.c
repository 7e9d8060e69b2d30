/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/graph/graph_build.c: the driver's graphs from descriptions: every kind of node does
 * what it says, and what is wrong makes no graph.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "server/worker/module/module.h"
#include "server/worker/objects/context.h"
#include "server/worker/session/hostfunc.h"
#include "tests/unit/worker/graphs.h"

static const char ptx[] =
	".version 8.0\n.target sm_70\n.address_size 64\n"
	".visible .entry add(.param .u64 out, .param .u32 n)\n{\n"
	"\t.reg .b32 %r<4>; .reg .b64 %d<2>;\n"
	"\tld.param.u64 %d1, [out]; ld.param.u32 %r1, [n]; atom.global.add.u32 %r2, [%d1], %r1; ret;\n}\n";

static uint64_t memory;
static struct description d;

static uint8_t *put_kernel_with(uint8_t *p, uint64_t function, uint32_t blocks, uint32_t n,
	const uint8_t *attributes, uint32_t bytes)
{
	uint8_t params[12];
	memcpy(params, &memory, 8);
	memcpy(params + 8, &n, 4);
	p = ckt_put_u64(p, function);
	for (int i = 0; i < 6; i++)
		p = ckt_put_u32(p, i ? 1 : blocks);
	p = ckt_put_u32(p, 0);
	p = ckt_put_opaque(p, attributes, bytes);
	return ckt_put_opaque(p, params, sizeof params);
}

static uint8_t *put_kernel(uint8_t *p, uint64_t function, uint32_t blocks, uint32_t n)
{
	return put_kernel_with(p, function, blocks, n, NULL, 0);
}

static void launch(uint64_t exec)
{
	IS(ASK(graph_launch, .exec = exec, .stream = 0), CUDA_SUCCESS);
	for (int i = 0;
		i < 60000 && ckt_driver.cuStreamQuery(CU_STREAM_LEGACY) == CUDA_ERROR_NOT_READY;
		i++) {
		uint8_t bytes[512];
		ckt_hostcalls_send(&ckt_worker);
		struct ckt_cursor c = {
			.p = bytes + 4 + CKT_CALL_HEADER_SIZE, .end = bytes + sizeof bytes};
		/* A host node: the client answers. */
		if (inside_sent(bytes, sizeof bytes))
			IS(ASK(host_func_done, .instance = ckt_get_u64(&c)), CUDA_SUCCESS);
		poll(NULL, 0, 1);
	}
	IS(ckt_driver.cuCtxSynchronize(), CUDA_SUCCESS);
}

static void begin(void)
{
	struct ckt_object *function;
	memory = inside_memory(1 << 20, 0);
	struct ckt_object *module = inside_module(ID(MODULE, 60), ptx);
	MUST(ckt_function_get(&ckt_worker, module, ID(FUNCTION, 60), "add", &function),
		CUDA_SUCCESS);
	IS(ASK(event_create, .id = ID(EVENT, 60)), CUDA_SUCCESS);
}

static void test_nodes(void)
{
	uint8_t record[256], *p, child[512];
	begin();
	graph_begin(&d);
	graph_fill(&d, 1, memory, 5, 4, 4);
	p = put_kernel(record, ID(FUNCTION, 60), 3, 7);
	graph_node(&d, 2, CU_GRAPH_NODE_TYPE_KERNEL, record, (uint32_t)(p - record));
	graph_copy(&d, 3, (struct graph_side){CU_MEMORYTYPE_DEVICE, memory},
		(struct graph_side){CU_MEMORYTYPE_DEVICE, memory + 64}, 16, 1);
	p = ckt_put_u64(record, ID(EVENT, 60));
	graph_node(&d, 4, CU_GRAPH_NODE_TYPE_EVENT_RECORD, record, 8);
	graph_node(&d, 5, CU_GRAPH_NODE_TYPE_WAIT_EVENT, record, 8);
	graph_node(&d, 6, CU_GRAPH_NODE_TYPE_HOST, NULL, 0);
	p = ckt_put_u32(ckt_put_u32(ckt_put_u32(record, 0), CU_STREAM_MEM_OP_WRITE_VALUE_32), 0);
	p = ckt_put_u64(ckt_put_u64(p, memory + 128), 33);
	graph_node(&d, 7, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, record, (uint32_t)(p - record));
	graph_node(&d, 8, CU_GRAPH_NODE_TYPE_EMPTY, NULL, 0);
	p = ckt_put_u64(ckt_put_u64(record, memory), 4096);
	graph_node(&d, 9, CU_GRAPH_NODE_TYPE_MEM_ALLOC, record, 16);
	graph_node(&d, 10, CU_GRAPH_NODE_TYPE_MEM_FREE, record, 8);
	struct description inner;
	graph_begin(&inner);
	graph_fill(&inner, 20, memory + 256, 0x0101, 2, 2);
	uint32_t size = graph_end(&inner);
	memcpy(child, inner.bytes, size);
	graph_node(&d, 11, CU_GRAPH_NODE_TYPE_GRAPH, child, size);
	MUST(graph_instantiate(&d, ID(GRAPH, 1), ID(GRAPH_EXEC, 1)), CUDA_SUCCESS);
	/* the description is used up */
	CU_ASSERT_PTR_NULL(ckt_objects_find(&ckt_worker.objects, ID(GRAPH, 1)));
	for (int i = 0; i < 2; i++) {
		inside_fill(memory, 0, 512);
		launch(ID(GRAPH_EXEC, 1));
		IS(inside_word(memory), 5 + 3 * 7);
		IS(inside_word(memory + 64), 26);
		IS(inside_word(memory + 76), 5);
		IS(inside_word(memory + 128), 33);
		IS(inside_word(memory + 256), 0x01010101);
	}
}

/* Parameters of one node, set anew. */
static int set_node(struct description *node)
{
	return ASK(graph_exec_set_node, .exec = ID(GRAPH_EXEC, 1), .node = node->bytes + 4,
		.node_len = (uint32_t)(node->p - node->bytes - 4));
}

static void test_apply(void)
{
	uint8_t record[256], *p = put_kernel(record, ID(FUNCTION, 60), 1, 100);
	graph_begin(&d);
	graph_node(&d, 2, CU_GRAPH_NODE_TYPE_KERNEL, record, (uint32_t)(p - record));
	IS(set_node(&d), CUDA_SUCCESS);
	graph_begin(&d);
	graph_fill(&d, 1, memory, 6, 4, 4);
	IS(set_node(&d), CUDA_SUCCESS);
	graph_begin(&d);
	graph_copy(&d, 3, (struct graph_side){CU_MEMORYTYPE_DEVICE, memory},
		(struct graph_side){CU_MEMORYTYPE_DEVICE, memory + 96}, 16, 1);
	IS(set_node(&d), CUDA_SUCCESS);
	p = ckt_put_u64(ckt_put_u64(ckt_put_u32(ckt_put_u32(ckt_put_u32(record, 0),
							CU_STREAM_MEM_OP_WRITE_VALUE_32),
					    0),
				memory + 128),
		44);
	graph_begin(&d);
	graph_node(&d, 7, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, record, (uint32_t)(p - record));
	IS(set_node(&d), CUDA_SUCCESS);
	inside_fill(memory, 0, 512);
	launch(ID(GRAPH_EXEC, 1));
	IS(inside_word(memory), 106);
	IS(inside_word(memory + 64), 0);
	IS(inside_word(memory + 96), 106);
	IS(inside_word(memory + 128), 44);
	/* A node inside of the child graph. */
	graph_begin(&d);
	graph_fill(&d, 20, memory + 256, 7, 4, 1);
	IS(set_node(&d), CUDA_SUCCESS);
	launch(ID(GRAPH_EXEC, 1));
	IS(inside_word(memory + 256), 7);
	/* What it is not: another kind, nobody, an event that is none, a function that is none. */
	graph_begin(&d);
	graph_node(&d, 1, CU_GRAPH_NODE_TYPE_EMPTY, NULL, 0);
	YES(set_node(&d) != CUDA_SUCCESS);
	graph_begin(&d);
	graph_fill(&d, 77, memory, 1, 4, 1);
	YES(set_node(&d) != CUDA_SUCCESS);
	graph_begin(&d);
	ckt_put_u64(record, ID(EVENT, 61));
	graph_node(&d, 4, CU_GRAPH_NODE_TYPE_EVENT_RECORD, record, 8);
	IS(set_node(&d), CUDA_ERROR_INVALID_HANDLE);
	graph_begin(&d);
	p = put_kernel(record, ID(FUNCTION, 61), 1, 1);
	graph_node(&d, 2, CU_GRAPH_NODE_TYPE_KERNEL, record, (uint32_t)(p - record));
	IS(set_node(&d), CUDA_ERROR_INVALID_HANDLE);
	/* All of that changed nothing. */
	inside_fill(memory, 0, 512);
	launch(ID(GRAPH_EXEC, 1));
	IS(inside_word(memory), 106);
	IS(ASK(graph_exec_destroy, .exec = ID(GRAPH_EXEC, 1)), CUDA_SUCCESS);
	IS(ASK(graph_launch, .exec = ID(GRAPH_EXEC, 1), .stream = 0), CUDA_ERROR_INVALID_HANDLE);
}

static void test_refused(void)
{
	struct {
		uint32_t type;
		uint8_t bytes[128];
		uint32_t size;
		int result;
	} cases[] = {
		{CU_GRAPH_NODE_TYPE_KERNEL, {0}, 0, CUDA_ERROR_INVALID_VALUE},
		{CU_GRAPH_NODE_TYPE_MEMSET, {0}, 39, CUDA_ERROR_INVALID_VALUE},
		{CU_GRAPH_NODE_TYPE_MEMCPY, {0}, 127, CUDA_ERROR_INVALID_VALUE},
		{CU_GRAPH_NODE_TYPE_WAIT_EVENT, {0}, 8, CUDA_ERROR_INVALID_HANDLE},
		{CU_GRAPH_NODE_TYPE_WAIT_EVENT, {0}, 9, CUDA_ERROR_INVALID_VALUE},
		{CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, {0}, 4, CUDA_ERROR_INVALID_VALUE},
		{CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, {0}, 28, CUDA_ERROR_INVALID_VALUE},
		{CU_GRAPH_NODE_TYPE_GRAPH, {0}, 4, CUDA_ERROR_INVALID_VALUE},
		{CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL, {0}, 0, CUDA_ERROR_NOT_SUPPORTED},
		{CU_GRAPH_NODE_TYPE_CONDITIONAL, {0}, 0, CUDA_ERROR_INVALID_VALUE},
		{9999, {0}, 0, CUDA_ERROR_NOT_SUPPORTED},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		graph_begin(&d);
		graph_fill(&d, 1, memory, 5, 4, 4);
		graph_node(&d, 2, cases[i].type, cases[i].bytes, cases[i].size);
		if (!IS(graph_instantiate(&d, ID(GRAPH, 2), ID(GRAPH_EXEC, 2)), cases[i].result))
			CU_FAIL("of a row of the table");
		CU_ASSERT_PTR_NULL(ckt_objects_find(&ckt_worker.objects, ID(GRAPH_EXEC, 2)));
	}
	/* Copies between kinds of memory that only the client could tell. */
	static const uint32_t types[] = {0, CU_MEMORYTYPE_UNIFIED, 99};
	for (size_t i = 0; i < COUNT(types); i++) {
		graph_begin(&d);
		graph_copy(&d, 1, (struct graph_side){types[i], memory},
			(struct graph_side){CU_MEMORYTYPE_DEVICE, memory}, 4, 1);
		IS(graph_instantiate(&d, ID(GRAPH, 2), ID(GRAPH_EXEC, 2)),
			CUDA_ERROR_NOT_SUPPORTED);
	}
	/* Of an array that is none, and of a level that no array has. */
	static const uint64_t levels[] = {0, 15, 16, UINT64_MAX};
	for (size_t i = 0; i < COUNT(levels); i++) {
		graph_begin(&d);
		graph_copy(&d, 1,
			(struct graph_side){CU_MEMORYTYPE_ARRAY, ID(ARRAY, 5), .height = levels[i]},
			(struct graph_side){CU_MEMORYTYPE_DEVICE, memory}, 4, 1);
		int result = graph_instantiate(&d, ID(GRAPH, 2), ID(GRAPH_EXEC, 2));
		YES(result == CUDA_ERROR_INVALID_HANDLE || result == CUDA_ERROR_INVALID_VALUE);
	}
	inside_free(memory);
	ckt_object_destroy(&ckt_worker, ckt_objects_find(&ckt_worker.objects, ID(EVENT, 60)));
}

/*
 * What is a handle of the client's does not reach the driver, which would follow it; what is a
 * number does.
 */
static void test_attributes(void)
{
	static const CUlaunchAttributeID refused[] = {CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY,
		CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
		CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT,
		CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, 15, 17, 31, 9999, -1};
	static const CUlaunchAttributeID taken[] = {CU_LAUNCH_ATTRIBUTE_IGNORE,
		CU_LAUNCH_ATTRIBUTE_PRIORITY, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
		CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT};
	uint8_t record[256], attribute[4 + CKT_GRAPH_ATTRIBUTE_BYTES] = {0};
	struct ckt_object *function;
	struct ckt_object *module = inside_module(ID(MODULE, 62), ptx);
	memory = inside_memory(1 << 20, 0);
	MUST(ckt_function_get(&ckt_worker, module, ID(FUNCTION, 62), "add", &function),
		CUDA_SUCCESS);
	for (size_t i = 0; i < COUNT(refused) + COUNT(taken); i++) {
		bool good = i >= COUNT(refused);
		uint64_t value = good ? 0 : 0x4141414141414141;
		memcpy(ckt_put_u32(attribute, good ? taken[i - COUNT(refused)] : refused[i]),
			&value, sizeof value);
		graph_begin(&d);
		uint8_t *p = put_kernel_with(
			record, ID(FUNCTION, 62), 1, 1, attribute, sizeof attribute);
		graph_node(&d, 1, CU_GRAPH_NODE_TYPE_KERNEL, record, (uint32_t)(p - record));
		IS(graph_instantiate(&d, ID(GRAPH, 3), ID(GRAPH_EXEC, 3)),
			good ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED);
		if (good)
			IS(ASK(graph_exec_destroy, .exec = ID(GRAPH_EXEC, 3)), CUDA_SUCCESS);
	}
	ckt_object_destroy(&ckt_worker, module);
	inside_free(memory);
}

/* ---- Edges: what the driver is told of them */

static struct {
	size_t ordinary, programmatic, calls;
	CUresult refusal;
} told;
static CUresult (*add_ordinary)(CUgraph, const CUgraphNode *, const CUgraphNode *, size_t);

static CUresult spy_ordinary(
	CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
	told.ordinary += count;
	return add_ordinary(graph, from, to, count);
}

static CUresult spy_programmatic(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
	const CUgraphEdgeData *data, size_t count)
{
	told.calls++;
	for (size_t i = 0; i < count; i++)
		told.programmatic += data[i].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC &&
			data[i].from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
	return told.refusal ? told.refusal : add_ordinary(graph, from, to, count);
}

/* Three kernels, of which the second need not wait for the end of the first, and a child. */
static void instantiate_chain(bool child)
{
	uint8_t record[256], *p = put_kernel(record, ID(FUNCTION, 63), 1, 1);
	struct description inner;
	graph_begin(&d);
	for (uint64_t id = 1; id <= 3; id++)
		graph_node(&d, id, CU_GRAPH_NODE_TYPE_KERNEL, record, (uint32_t)(p - record));
	if (child) {
		graph_begin(&inner);
		graph_fill(&inner, 20, memory, 5, 4, 4);
		uint32_t size = graph_end(&inner);
		graph_node(&d, 4, CU_GRAPH_NODE_TYPE_GRAPH, inner.bytes, size);
	}
	d.first_edge = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC << 16 |
		CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
	told.ordinary = told.programmatic = told.calls = 0;
	IS(graph_instantiate(&d, ID(GRAPH, 4), ID(GRAPH_EXEC, 4)), CUDA_SUCCESS);
	IS(ASK(graph_exec_destroy, .exec = ID(GRAPH_EXEC, 4)), CUDA_SUCCESS);
}

static void test_edges(void)
{
	struct ckt_object *function;
	struct ckt_object *module = inside_module(ID(MODULE, 63), ptx);
	__typeof__(ckt_driver) driver = ckt_driver;
	memory = inside_memory(1 << 20, 0);
	MUST(ckt_function_get(&ckt_worker, module, ID(FUNCTION, 63), "add", &function),
		CUDA_SUCCESS);
	add_ordinary = ckt_driver.cuGraphAddDependencies;
	ckt_driver.cuGraphAddDependencies = spy_ordinary;
	ckt_driver.cuGraphAddDependencies_v2 = spy_programmatic;
	instantiate_chain(false);
	IS(told.programmatic, 1);
	IS(told.ordinary, 1);
	/* Were they told together, the driver would take the ordinary ones for programmatic. */
	instantiate_chain(true);
	IS(told.calls, 1);
	IS(told.programmatic, 1);
	IS(told.ordinary, 2);
	told.refusal = CUDA_ERROR_NOT_SUPPORTED;
	instantiate_chain(false);
	IS(told.ordinary, 2);
	told.refusal = CUDA_SUCCESS;
	ckt_driver.cuGraphAddDependencies_v2 = NULL;
	instantiate_chain(false);
	IS(told.ordinary, 2);
	ckt_driver = driver;
	ckt_object_destroy(&ckt_worker, module);
	inside_free(memory);
}

UNIT_SUITE(graph_build, {"nodes", test_nodes}, {"apply", test_apply}, {"refused", test_refused},
	{"attributes", test_attributes}, {"edges", test_edges})
