/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudacommon/graph_memory.c: memory that graphs allocate: its address is known when the node is
 * made, and who may use and free it is counted here.
 */
#include "graphs.h"

static void test_nodes(void)
{
	CUgraph graph;
	CUgraphNode alloc, fill, release;
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}},
		.bytesize = 1 << 20};
	IS(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
	COST(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params), CUDA_SUCCESS, 1, 0);
	YES(params.dptr != 0);
	fill = add_fill(graph, alloc, params.dptr, 12);
	CUgraphExec exec = instantiate(graph);
	LOCAL(cuMemFree(params.dptr), BAD); /* not allocated before a launch */
	IS(cuGraphLaunch(exec, NULL), CUDA_SUCCESS);
	IS(word_at(params.dptr), 12);
	IS(cuGraphLaunch(exec, NULL), BAD); /* it has it still */
	IS(cuMemFree(params.dptr), CUDA_SUCCESS);
	IS(cuGraphLaunch(exec, NULL), CUDA_SUCCESS);
	IS(cuMemFree(params.dptr), CUDA_SUCCESS);
	IS(cuGraphExecDestroy(exec), CUDA_SUCCESS);
	/* Freed in the graph: any number of launches. */
	IS(cuGraphAddMemFreeNode(&release, graph, &fill, 1, params.dptr), CUDA_SUCCESS);
	LOCAL(cuGraphAddMemFreeNode(&release, graph, &fill, 1, params.dptr), BAD);
	LOCAL(cuGraphAddMemFreeNode(&release, graph, &fill, 1, 0x1234), BAD);
	exec = instantiate(graph);
	for (int i = 0; i < 3; i++)
		IS(cuGraphLaunch(exec, NULL), CUDA_SUCCESS);
	params.bytesize = 0;
	LOCAL(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params), BAD);
	params.bytesize = 4;
	params.poolProps.location.id = 77;
	LOCAL(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params) != CUDA_SUCCESS, true);
	IS(cuGraphExecDestroy(exec), CUDA_SUCCESS);
	IS(cuGraphDestroy(graph), CUDA_SUCCESS);
	LOCAL(cuDeviceGraphMemTrim(77) != CUDA_SUCCESS, true);
	IS(cuDeviceGraphMemTrim(0), CUDA_SUCCESS);
}

UNIT_SUITE(graph_memory, {"nodes", test_nodes})
