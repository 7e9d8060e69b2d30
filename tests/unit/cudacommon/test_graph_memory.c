/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudacommon/graph_memory.c: who may allocate and free the memory of graphs when, and what is told
 * of it.
 */
#include "../softgpu/files.h"

static CUDA_MEM_ALLOC_NODE_PARAMS params = {
	.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}},
	.bytesize = 1 << 20};

static void test_left(void)
{
	CUgraph graph;
	CUgraphNode alloc, release;
	CUgraphExec exec, second;
	CUdeviceptr told;
	test_context();
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
	OK(cuGraphInstantiate(&exec, graph, 0));
	CHECK_RESULT(cuGraphInstantiate(&second, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuGraphLaunch(exec, NULL));
	/* it is allocated still */
	CHECK_RESULT(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(params.dptr));
	CHECK_RESULT(cuMemFree(params.dptr), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphLaunch(exec, NULL));
	OK(cuMemFreeAsync(params.dptr, NULL));
	OK(cuGraphExecDestroy(exec));
	/*
	 * Freed in the graph, any number of launches; the address goes to the next one behind it.
	 */
	OK(cuGraphAddMemFreeNode(&release, graph, &alloc, 1, params.dptr));
	CHECK_RESULT(cuGraphAddMemFreeNode(&release, graph, &alloc, 1, params.dptr),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphMemFreeNodeGetParams(release, &told));
	IS(told, params.dptr);
	CUDA_MEM_ALLOC_NODE_PARAMS again = params;
	OK(cuGraphAddMemAllocNode(&alloc, graph, &release, 1, &again));
	IS(again.dptr, params.dptr);
	CHECK_RESULT(cuGraphDestroyNode(alloc), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuGraphAddMemFreeNode(&release, graph, &alloc, 1, again.dptr));
	OK(cuGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 3; i++)
		OK(cuGraphLaunch(exec, NULL));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

static void test_attributes(void)
{
	CUgraph graph;
	CUgraphNode alloc;
	cuuint64_t value = 77, none = 0;
	test_context();
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
	OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &value));
	IS(value, 0);
	OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &value));
	YES(value >= params.bytesize);
	CHECK_RESULT(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &value),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &none),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuDeviceGetGraphMemAttribute(0, (CUgraphMem_attribute)99, &value),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuDeviceGetGraphMemAttribute(77, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value),
		CUDA_ERROR_INVALID_DEVICE);
	OK(cuGraphDestroy(graph));
	OK(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &none));
	OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &value));
	IS(value, 0);
	OK(cuDeviceGraphMemTrim(0));
}

UNIT_SUITE(cudacommon / graph_memory, {"left", test_left}, {"attributes", test_attributes})
