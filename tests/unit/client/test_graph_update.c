/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudacommon/graph_update.c: updates of executable graphs: one node, or all from another graph of
 * the same shape.
 */
#include "graphs.h"

static void test_update(void)
{
	CUgraph graph, other;
	CUdeviceptr memory = memory_of(4096, 0);
	CUgraphExecUpdateResultInfo info;
	CUDA_MEMSET_NODE_PARAMS fill = {
		.dst = memory, .value = 20, .elementSize = 4, .width = 1, .height = 1};
	IS(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
	CUgraphNode a = add_fill(graph, NULL, memory, 5);
	add_kernel(graph, a, memory, 1);
	CUgraphExec exec = instantiate(graph);
	COST(cuGraphExecMemsetNodeSetParams(exec, a, &fill, primary), CUDA_SUCCESS, 1, 0);
	IS(cuGraphLaunch(exec, NULL), CUDA_SUCCESS);
	IS(word_at(memory), 21);
	fill.elementSize = 3;
	LOCAL(cuGraphExecMemsetNodeSetParams(exec, a, &fill, primary), BAD);
	IS(cuGraphCreate(&other, 0), CUDA_SUCCESS);
	CUgraphNode c = add_fill(other, NULL, memory, 30);
	add_kernel(other, c, memory, 3);
	IS(cuGraphExecUpdate(exec, other, &info), CUDA_SUCCESS);
	IS(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
	IS(cuGraphLaunch(exec, NULL), CUDA_SUCCESS);
	IS(word_at(memory), 33);
	/* Another shape is refused, and the graph goes on as it was. */
	add_fill(other, c, memory + 8, 1);
	IS(cuGraphExecUpdate(exec, other, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	YES(info.result != CU_GRAPH_EXEC_UPDATE_SUCCESS);
	IS(cuGraphLaunch(exec, NULL), CUDA_SUCCESS);
	IS(word_at(memory), 33);
	LOCAL(cuGraphExecUpdate((CUgraphExec)0x1234, other, &info), BAD);
	IS(cuGraphExecDestroy(exec), CUDA_SUCCESS);
	IS(cuGraphDestroy(other), CUDA_SUCCESS);
	IS(cuGraphDestroy(graph), CUDA_SUCCESS);
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

UNIT_SUITE(graph_update, {"update", test_update})
