/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudacommon/pool.c: handles of pools, a device's current one, what is refused, who may reach the
 * memory, and captured allocations.
 */
#include "../softgpu/files.h"

static CUmemPoolProps properties(int device)
{
	return (CUmemPoolProps){.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
}

static void test_current(void)
{
	CUmemPoolProps props = properties(0);
	CUmemoryPool standard, pool, got;
	CUdeviceptr p;
	test_context();
	OK(cuDeviceGetDefaultMemPool(&standard, 0));
	OK(cuMemPoolCreate(&pool, &props));
	OK(cuDeviceSetMemPool(0, pool));
	CHECK_RESULT(cuDeviceSetMemPool(1, pool), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemAllocAsync(&p, 4096, NULL));
	OK(cuPointerGetAttribute(&got, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
	YES(got == pool);
	/* One that goes is nobody's current one, and its memory stays. */
	OK(cuMemPoolDestroy(pool));
	OK(cuDeviceGetMemPool(&got, 0));
	YES(got == standard);
	CHECK_RESULT(cuMemAllocFromPoolAsync(&p, 16, pool, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemsetD32(p, 5, 1024));
	OK(cuMemFreeAsync(p, NULL));
	CHECK_RESULT(cuMemFreeAsync(p, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemPoolDestroy(standard), CUDA_ERROR_INVALID_VALUE);
	props.usage = CU_MEM_CREATE_USAGE_HW_DECOMPRESS;
	CHECK_RESULT(cuMemPoolCreate(&pool, &props), CUDA_ERROR_NOT_SUPPORTED);
	props = properties(9);
	CHECK_RESULT(cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
}

static void test_access(void)
{
	CUmemPoolProps props = properties(0);
	CUmemAccessDesc map = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READ};
	CUmemAccess_flags flags;
	CUmemoryPool pool;
	test_context();
	OK(cuMemPoolCreate(&pool, &props));
	OK(cuMemPoolGetAccess(&flags, pool, &map.location));
	IS(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	OK(cuMemPoolSetAccess(pool, &map, 1));
	OK(cuMemPoolGetAccess(&flags, pool, &map.location));
	IS(flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
	map.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	OK(cuMemPoolSetAccess(pool, &map, 1));
	OK(cuMemPoolGetAccess(&flags, pool, &map.location));
	IS(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	/* Its own device always has it. */
	map.location.id = 0;
	CHECK_RESULT(cuMemPoolSetAccess(pool, &map, 1), CUDA_ERROR_INVALID_DEVICE);
	OK(cuMemPoolDestroy(pool));
}

static void test_captured(void)
{
	CUstream stream;
	CUgraph graph;
	CUgraphExec exec;
	CUgraphNode nodes[4];
	CUgraphNodeType type;
	CUdeviceptr p, out;
	size_t count = COUNT(nodes);
	test_context();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&out, 4));
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuMemAllocAsync(&p, 4096, stream));
	OK(cuMemsetD32Async(p, 7, 1, stream));
	OK(cuMemcpyDtoDAsync(out, p, 4, stream));
	OK(cuMemFreeAsync(p, stream));
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphGetNodes(graph, nodes, &count));
	MUST(count, 4);
	OK(cuGraphNodeGetType(nodes[0], &type));
	IS(type, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
	OK(cuGraphNodeGetType(nodes[3], &type));
	IS(type, CU_GRAPH_NODE_TYPE_MEM_FREE);
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	IS(files_word(out), 7);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuStreamDestroy(stream));
	OK(cuMemFree(out));
}

UNIT_SUITE(cudacommon / pool, {"current", test_current}, {"access", test_access},
	{"captured", test_captured})
