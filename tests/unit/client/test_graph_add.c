/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudacommon/graph_add.c: nodes: added here, with everything of them checked, and nothing travels.
 */
#include "graphs.h"

static void test_add(void)
{
	CUgraph graph, other;
	CUdeviceptr memory = memory_of(4096, 0);
	CUgraphNode a, b, foreign;
	size_t count = 0;
	relay_add();
	IS(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
	IS(cuGraphCreate(&other, 0), CUDA_SUCCESS);
	LOCAL(cuGraphCreate(&other, 1), BAD);
	relay_mark();
	a = add_fill(graph, NULL, memory, 5);
	b = add_kernel(graph, a, memory, 2);
	foreign = add_fill(other, NULL, memory, 5);
	relay_settle();
	IS(relay_waited + relay_batched, 0);
	CUDA_MEMSET_NODE_PARAMS fill = {
		.dst = memory, .value = 1, .elementSize = 3, .width = 1, .height = 1};
	LOCAL(cuGraphAddMemsetNode(&a, graph, NULL, 0, &fill, primary), BAD);
	fill.elementSize = 4;
	/* of another graph */
	LOCAL(cuGraphAddMemsetNode(&a, graph, &foreign, 1, &fill, primary), BAD);
	LOCAL(cuGraphAddMemsetNode(&a, graph, NULL, 1, &fill, primary), BAD);
	LOCAL(cuGraphAddMemsetNode(NULL, graph, NULL, 0, &fill, primary), BAD);
	LOCAL(cuGraphAddMemsetNode(&a, (CUgraph)0x1234, NULL, 0, &fill, primary), BAD);
	CUDA_HOST_NODE_PARAMS host = {0};
	LOCAL(cuGraphAddHostNode(&a, graph, NULL, 0, &host), BAD);
	CUDA_KERNEL_NODE_PARAMS kernel = {.func = relay_add(), .gridDimX = 0};
	LOCAL(cuGraphAddKernelNode(&a, graph, NULL, 0, &kernel), BAD);
	LOCAL(cuGraphAddEmptyNode(&a, graph, &b, 1), CUDA_SUCCESS);
	LOCAL(cuGraphAddChildGraphNode(&a, graph, NULL, 0, other), CUDA_SUCCESS);
	LOCAL(cuGraphGetNodes(graph, NULL, &count), CUDA_SUCCESS);
	IS(count, 4);
	IS(cuGraphDestroy(graph), CUDA_SUCCESS);
	IS(cuGraphDestroy(other), CUDA_SUCCESS);
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

UNIT_SUITE(graph_add, {"add", test_add})
