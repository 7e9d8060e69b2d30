/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/graph_condition.c: handles that the client draws, nodes and bodies, and what comes
 * back of memory that no body touched.
 */
#include "graphs.h"

static CUgraphNode add_conditional(CUgraph graph, CUgraphConditionalHandle handle,
	CUgraphConditionalNodeType type, unsigned size, CUgraph **ret_bodies)
{
	CUgraphNode node = NULL;
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
	params.conditional.handle = handle;
	params.conditional.type = type;
	params.conditional.size = size;
	params.conditional.ctx = primary;
	MUST(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params), CUDA_SUCCESS);
	*ret_bodies = params.conditional.phGraph_out;
	return node;
}

static CUgraphConditionalHandle new_handle(CUgraph graph, unsigned value)
{
	CUgraphConditionalHandle handle = 0;
	LOCAL(cuGraphConditionalHandleCreate(
		      &handle, graph, primary, value, CU_GRAPH_COND_ASSIGN_DEFAULT),
		CUDA_SUCCESS);
	return handle;
}

static void test_handles(void)
{
	CUgraph graph, *bodies, clone;
	CUgraphConditionalHandle a, b, c;
	CUgraphNode node = NULL;
	IS(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
	a = new_handle(graph, 0);
	b = new_handle(graph, 0);
	YES(a && b && a != b);
	/* So many bits differ that neither is a small number, nor near the other. */
	YES(__builtin_popcountll(a ^ b) > 8);
	LOCAL(cuGraphConditionalHandleCreate(&c, graph, primary, 0, 2), BAD);
	LOCAL(cuGraphConditionalHandleCreate(&c, (CUgraph)0x123, primary, 0, 0), BAD);
	CUDA_GRAPH_INSTANTIATE_PARAMS how = {0};
	CUgraphExec exec;
	LOCAL(cuGraphInstantiateWithParams(&exec, graph, &how), BAD);
	IS(how.result_out, CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);
	add_conditional(graph, a, CU_GRAPH_COND_TYPE_SWITCH, 3, &bodies);
	/*
	 * One node for a handle, wherever in the graph; one made for a body is good outside of it
	 * too.
	 */
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
	params.conditional.handle = a;
	params.conditional.size = 1;
	params.conditional.ctx = primary;
	LOCAL(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params), BAD);
	params.conditional.handle = new_handle(bodies[0], 0);
	LOCAL(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params), CUDA_SUCCESS);
	LOCAL(cuGraphAddNode(&node, bodies[0], NULL, NULL, 0, &params), BAD);
	params.conditional.handle = b;
	LOCAL(cuGraphAddNode(&node, bodies[1], NULL, NULL, 0, &params), CUDA_SUCCESS);
	/* All have a node now. */
	exec = instantiate(graph);
	IS(cuGraphExecDestroy(exec), CUDA_SUCCESS);
	LOCAL(cuGraphClone(&clone, graph), CUDA_ERROR_NOT_SUPPORTED);
	LOCAL(cuGraphDestroy(bodies[0]), BAD);
	LOCAL(cuGraphDestroy(graph), CUDA_SUCCESS);
}

static void test_bodies(void)
{
	CUgraph graph, *bodies;
	CUgraphExec exec, second;
	CUdeviceptr memory = memory_of(4096, 0);
	for (unsigned value = 0; value < 2; value++) {
		IS(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
		add_conditional(graph, new_handle(graph, value), CU_GRAPH_COND_TYPE_IF, 2, &bodies);
		add_fill(bodies[0], NULL, memory, 11);
		CUgraphNode other = add_fill(bodies[1], NULL, memory, 22);
		exec = instantiate(graph);
		LOCAL(cuGraphInstantiate(&second, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
		IS(cuGraphLaunch(exec, NULL), CUDA_SUCCESS);
		IS(word_at(memory), value ? 11 : 22);
		CUDA_MEMSET_NODE_PARAMS fill = {
			.dst = memory, .value = 33, .elementSize = 4, .width = 1, .height = 1};
		COST(cuGraphExecMemsetNodeSetParams(exec, other, &fill, primary), CUDA_SUCCESS, 1,
			0);
		IS(cuGraphLaunch(exec, NULL), CUDA_SUCCESS);
		IS(word_at(memory), value ? 11 : 33);
		IS(cuGraphExecDestroy(exec), CUDA_SUCCESS);
		IS(cuGraphDestroy(graph), CUDA_SUCCESS);
	}
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

/* A copy to the host that does not run leaves the host's memory as it is. */
static void test_host_memory(void)
{
	CUgraph graph, *bodies;
	CUdeviceptr memory = memory_of(4096, 7);
	uint32_t *host;
	IS(cuMemHostAlloc((void **)&host, 4096, 0), CUDA_SUCCESS);
	for (unsigned value = 0; value < 2; value++) {
		CUgraphNode node;
		CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			.srcDevice = memory,
			.dstMemoryType = CU_MEMORYTYPE_HOST,
			.dstHost = host,
			.WidthInBytes = 4,
			.Height = 1,
			.Depth = 1};
		IS(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
		add_conditional(graph, new_handle(graph, value), CU_GRAPH_COND_TYPE_IF, 1, &bodies);
		IS(cuGraphAddMemcpyNode(&node, bodies[0], NULL, 0, &copy, primary), CUDA_SUCCESS);
		CUgraphExec exec = instantiate(graph);
		for (uint32_t i = 0; i < 3; i++) {
			*host = 1000 + i;
			IS(cuGraphLaunch(exec, NULL), CUDA_SUCCESS);
			IS(cuStreamSynchronize(NULL), CUDA_SUCCESS);
			IS(*host, value ? word_at(memory) : 1000 + i);
		}
		IS(cuGraphExecDestroy(exec), CUDA_SUCCESS);
		IS(cuGraphDestroy(graph), CUDA_SUCCESS);
	}
	IS(cuMemFreeHost(host), CUDA_SUCCESS);
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

UNIT_SUITE(graph_condition, {"handles", test_handles}, {"bodies", test_bodies},
	{"host_memory", test_host_memory})
