/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/stream/condition.c: how long a condition lives, and who holds it; a launch under way
 * does.
 */
#include <unistd.h>

#include "cudacommon/graph.h"
#include "files.h"
#include "softgpu/stream/condition.h"

static CUdeviceptr memory;
static CUcontext context;

static CUgraph begin(void)
{
	CUgraph graph = NULL;
	context = test_context();
	OK(cuMemAlloc(&memory, 64));
	OK(cuMemsetD32(memory, 0, 16));
	OK(cuGraphCreate(&graph, 0));
	return graph;
}

static CUgraphConditionalHandle new_handle(CUgraph graph, unsigned value)
{
	CUgraphConditionalHandle handle = 0;
	OK(cuGraphConditionalHandleCreate(
		&handle, graph, context, value, CU_GRAPH_COND_ASSIGN_DEFAULT));
	return handle;
}

static CUresult add(CUgraph graph, CUgraphConditionalHandle handle, CUgraphConditionalNodeType type,
	unsigned size, CUgraph **ret_bodies)
{
	CUgraphNode node = NULL;
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
	params.conditional.handle = handle;
	params.conditional.type = type;
	params.conditional.size = size;
	params.conditional.ctx = context;
	CUresult result = cuGraphAddNode(&node, graph, NULL, NULL, 0, &params);
	*ret_bodies = params.conditional.phGraph_out;
	return result;
}

static void fill(CUgraph graph, unsigned index, unsigned value)
{
	CUDA_MEMSET_NODE_PARAMS params = {.dst = memory + 4 * index,
		.value = value,
		.elementSize = 4,
		.width = 1,
		.height = 1};
	CUgraphNode node = NULL;
	OK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &params, NULL));
}

static uint32_t word(unsigned index)
{
	uint32_t value = 0;
	OK(cuStreamSynchronize(NULL));
	OK(cuMemcpyDtoH(&value, memory + 4 * index, 4));
	return value;
}

/* A handle is good as long as its graph or an executable graph is there, and then no more. */
static void test_life(void)
{
	CUgraph graph = begin(), *bodies;
	CUgraphExec exec;
	CUgraphConditionalHandle handle = new_handle(graph, 1);
	OK(add(graph, handle, CU_GRAPH_COND_TYPE_IF, 1, &bodies));
	fill(bodies[0], 0, 9);
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphDestroy(graph));
	YES(ckt_soft_condition_set(NULL, handle, 0));
	OK(cuGraphLaunch(exec, NULL));
	IS(word(0), 9);
	OK(cuGraphExecDestroy(exec));
	NO(ckt_soft_condition_set(NULL, handle, 0));
	NO(ckt_soft_condition_set(NULL, 0, 0));
	NO(ckt_soft_condition_set(NULL, 0x1234567812345678, 0));
}

static _Atomic int gate;

static void CUDA_CB wait_for_gate(void *data)
{
	(void)data;
	while (!gate)
		usleep(1000);
}

/* A launch runs as it was, whatever becomes of the executable graph meanwhile. */
static void test_pending(void)
{
	CUgraph graph = begin(), *bodies;
	CUgraphExec exec;
	CUstream stream;
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(add(graph, new_handle(graph, 1), CU_GRAPH_COND_TYPE_IF, 1, &bodies));
	fill(bodies[0], 0, 9);
	OK(cuGraphInstantiate(&exec, graph, 0));
	gate = 0;
	OK(cuLaunchHostFunc(stream, wait_for_gate, NULL));
	OK(cuGraphLaunch(exec, stream));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	gate = 1;
	OK(cuStreamSynchronize(stream));
	IS(word(0), 9);
	OK(cuStreamDestroy(stream));
}

static void test_values(void)
{
	CUgraph graph = begin(), *bodies;
	CUgraphConditionalHandle assigned = new_handle(graph, 3), kept = 0;
	OK(cuGraphConditionalHandleCreate(&kept, graph, context, 4, 0));
	OK(add(graph, assigned, CU_GRAPH_COND_TYPE_IF, 1, &bodies));
	OK(add(bodies[0], kept, CU_GRAPH_COND_TYPE_IF, 1, &bodies));
	struct ckt_soft_conditions *none = ckt_soft_conditions_make(ckt_graph_find(bodies[0]));
	NO(ckt_soft_conditions_any(none));
	struct ckt_soft_conditions *conditions = ckt_soft_conditions_make(ckt_graph_find(graph));
	struct ckt_soft_conditions *again = ckt_soft_conditions_make(ckt_graph_find(graph));
	YES(ckt_soft_conditions_any(conditions));
	IS(ckt_soft_condition_value(kept), 4);
	YES(ckt_soft_condition_set(NULL, assigned, 70));
	YES(ckt_soft_condition_set(NULL, kept, 80));
	ckt_soft_conditions_assign(again);
	IS(ckt_soft_condition_value(assigned), 3);
	IS(ckt_soft_condition_value(kept), 80);
	ckt_soft_conditions_put(conditions);
	IS(ckt_soft_condition_value(kept), 80);
	ckt_soft_conditions_put(again);
	NO(ckt_soft_condition_set(NULL, kept, 1));
	IS(ckt_soft_condition_value(kept), 0);
	ckt_soft_conditions_put(none);
	OK(cuGraphDestroy(graph));
}

UNIT_SUITE(softgpu / stream / condition, {"life", test_life}, {"pending", test_pending},
	{"values", test_values})
