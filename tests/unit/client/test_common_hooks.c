/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/context/common_hooks.c: what cudacommon/ asks the client is answered here, without a
 * call.
 */
#include "graphs.h"

static void test_answers(void)
{
	CUgraph graph;
	CUgraphNode node;
	CUevent event;
	CUDA_MEMSET_NODE_PARAMS fill = {.dst = 0x1000, .elementSize = 1, .width = 1, .height = 1};
	CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		.WidthInBytes = 4,
		.Height = 1,
		.Depth = 1};
	CUdeviceptr memory = memory_of(4096, 0);
	uint32_t here = 0;
	LOCAL(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
	IS(cuEventCreate(&event, 0), CUDA_SUCCESS);
	LOCAL(cuGraphAddEventRecordNode(&node, graph, NULL, 0, event), CUDA_SUCCESS);
	LOCAL(cuGraphAddEventRecordNode(&node, graph, NULL, 0, (CUevent)&here), BAD);
	LOCAL(cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, (CUcontext)&here), BAD);
	/* Which of the two addresses is the GPU's. */
	copy.srcDevice = memory;
	copy.dstDevice = (CUdeviceptr)(uintptr_t)&here;
	LOCAL(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, NULL), CUDA_SUCCESS);
	LOCAL(cuGraphMemcpyNodeGetParams(node, &copy), CUDA_SUCCESS);
	IS(copy.srcMemoryType, CU_MEMORYTYPE_DEVICE);
	IS(copy.dstMemoryType, CU_MEMORYTYPE_HOST);
	copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.dstArray = (CUarray)&here;
	LOCAL(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, NULL), CUDA_ERROR_INVALID_HANDLE);
	LOCAL(cuDeviceGraphMemTrim(-1), CUDA_ERROR_INVALID_DEVICE);
	LOCAL(cuGraphDestroy(graph), CUDA_SUCCESS);
	IS(cuEventDestroy(event), CUDA_SUCCESS);
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

UNIT_SUITE(driver_side, {"answers", test_answers})
