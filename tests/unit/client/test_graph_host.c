/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/graph/graph_host.c: the program's memory in graphs: its bytes of the moment go before
 * each launch, and come back behind it.
 */
#include "graphs.h"

static void test_host(void)
{
	CUgraph graph;
	CUdeviceptr memory = memory_of(4096, 0);
	CUgraphNode in, out;
	uint32_t source[4] = {40}, target[4] = {0};
	CUDA_MEMCPY3D to = {.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = source,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = memory,
		.WidthInBytes = 16,
		.Height = 1,
		.Depth = 1};
	CUDA_MEMCPY3D from = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = memory,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = target,
		.WidthInBytes = 16,
		.Height = 1,
		.Depth = 1};
	IS(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
	IS(cuGraphAddMemcpyNode(&in, graph, NULL, 0, &to, primary), CUDA_SUCCESS);
	CUgraphNode kernel = add_kernel(graph, in, memory, 2);
	IS(cuGraphAddMemcpyNode(&out, graph, &kernel, 1, &from, primary), CUDA_SUCCESS);
	CUgraphExec exec = instantiate(graph);
	for (uint32_t i = 0; i < 3; i++) {
		source[0] = 40 + i;
		relay_mark();
		IS(cuGraphLaunch(exec, NULL), CUDA_SUCCESS);
		relay_settle();
		IS(relay_count("graph_host_data"), 1);
		IS(relay_count("graph_fetch"), 1);
		IS(target[0], 42 + i);
	}
	IS(cuGraphExecDestroy(exec), CUDA_SUCCESS);
	IS(cuGraphDestroy(graph), CUDA_SUCCESS);
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

UNIT_SUITE(graph_host, {"host", test_host})
