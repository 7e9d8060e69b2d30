/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudacommon/graph_params.c: parameters of nodes: what is got is what was set, and a kernel's are a
 * copy.
 */
#include "graphs.h"

static void test_params(void)
{
	CUgraph graph;
	CUdeviceptr memory = memory_of(4096, 0);
	CUDA_MEMSET_NODE_PARAMS fill = {0};
	CUDA_KERNEL_NODE_PARAMS kernel = {0};
	IS(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
	CUgraphNode a = add_fill(graph, NULL, memory, 5), b = add_kernel(graph, a, memory, 9);
	LOCAL(cuGraphMemsetNodeGetParams(a, &fill), CUDA_SUCCESS);
	YES(fill.dst == memory && fill.value == 5 && fill.elementSize == 4 && fill.width == 1);
	fill.value = 6;
	LOCAL(cuGraphMemsetNodeSetParams(a, &fill), CUDA_SUCCESS);
	fill.value = 0;
	IS(cuGraphMemsetNodeGetParams(a, &fill), CUDA_SUCCESS);
	IS(fill.value, 6);
	fill.elementSize = 5;
	LOCAL(cuGraphMemsetNodeSetParams(a, &fill), BAD);
	LOCAL(cuGraphMemsetNodeGetParams(b, &fill), BAD); /* of another kind */
	LOCAL(cuGraphMemsetNodeGetParams(a, NULL), BAD);
	LOCAL(cuGraphKernelNodeGetParams(b, &kernel), CUDA_SUCCESS);
	IS(kernel.gridDimX, 1);
	IS(*(uint32_t *)kernel.kernelParams[1], 9);
	kernel.gridDimX = 0;
	LOCAL(cuGraphKernelNodeSetParams(b, &kernel), BAD);
	kernel.gridDimX = 3;
	LOCAL(cuGraphKernelNodeSetParams(b, &kernel), CUDA_SUCCESS);
	CUgraphExec exec = instantiate(graph);
	IS(cuGraphLaunch(exec, NULL), CUDA_SUCCESS);
	IS(word_at(memory), 6 + 3 * 9);
	IS(cuGraphExecDestroy(exec), CUDA_SUCCESS);
	IS(cuGraphDestroy(graph), CUDA_SUCCESS);
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

UNIT_SUITE(graph_params, {"params", test_params})
