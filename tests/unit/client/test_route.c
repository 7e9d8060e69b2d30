/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/context/route.c: handles and addresses are used at their own server, whichever device
 * is current.
 */
#include "pair.h"

/* What belongs to device 1, used while device 0, of the other server, is current. */
static void is_home(void)
{
	CUcontext context = NULL;
	IS(cuCtxGetCurrent(&context), CUDA_SUCCESS);
	YES(context == contexts[0]);
}

static void test_streams(void)
{
	CUstream stream;
	CUevent event, other;
	CUdevice device;
	CUcontext context;
	int priority;
	float ms;
	use(1);
	IS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	IS(cuEventCreate(&event, 0), CUDA_SUCCESS);
	IS(cuEventCreate(&other, 0), CUDA_SUCCESS);
	CUdeviceptr memory = memory_with(4096, 1);
	use(0);
	IS(cuStreamQuery(stream), CUDA_SUCCESS);
	IS(cuStreamSynchronize(stream), CUDA_SUCCESS);
	IS(cuStreamGetPriority(stream, &priority), CUDA_SUCCESS);
	IS(cuStreamGetDevice(stream, &device), CUDA_SUCCESS);
	IS(device, 1);
	IS(cuStreamGetCtx(stream, &context), CUDA_SUCCESS);
	YES(context == contexts[1]);
	IS(cuEventRecord(event, stream), CUDA_SUCCESS);
	IS(cuMemsetD32Async(memory, 9, 1024, stream), CUDA_SUCCESS);
	IS(cuEventRecord(other, stream), CUDA_SUCCESS);
	IS(cuEventSynchronize(other), CUDA_SUCCESS);
	IS(cuEventQuery(event), CUDA_SUCCESS);
	IS(cuEventElapsedTime(&ms, event, other), CUDA_SUCCESS);
	IS(words_not(memory, 4096, 9), 0);
	/* An event belongs to its context's streams. */
	IS(cuEventRecord(event, NULL), CUDA_ERROR_INVALID_HANDLE);
	/* Without access another device's memory is not filled. */
	IS(cuMemsetD32(memory, 1, 1024), CUDA_ERROR_INVALID_VALUE);
	IS(cuCtxSynchronize_v2(contexts[1]), CUDA_SUCCESS);
	IS(cuCtxRecordEvent(contexts[1], event), CUDA_SUCCESS);
	IS(cuCtxWaitEvent(contexts[1], event), CUDA_SUCCESS);
	IS(cuCtxWaitEvent(contexts[0], event), CUDA_SUCCESS);
	IS(cuEventDestroy(event), CUDA_SUCCESS);
	IS(cuEventDestroy(other), CUDA_SUCCESS);
	IS(cuStreamDestroy(stream), CUDA_SUCCESS);
	IS(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
	IS(cuMemFree(memory), CUDA_SUCCESS);
	is_home();
}

static void test_functions(void)
{
	CUmodule modules[2];
	CUfunction functions[2];
	CUdeviceptr memory[2], counters[2];
	int value = 0, blocks = 0;
	for (int d = 0; d < 2; d++) {
		use(d);
		MUST(cuModuleLoadData(&modules[d], pair_ptx), CUDA_SUCCESS);
		memory[d] = memory_with(4, 100);
	}
	use(0);
	for (int d = 0; d < 2; d++) {
		uint32_t n = 5 + (uint32_t)d;
		void *params[] = {&memory[d], &n};
		MUST(cuModuleGetFunction(&functions[d], modules[d], "add"), CUDA_SUCCESS);
		IS(cuModuleGetFunctionCount((unsigned *)&value, modules[d]), CUDA_SUCCESS);
		IS(value, 1);
		IS(cuFuncSetCacheConfig(functions[d], CU_FUNC_CACHE_PREFER_L1), CUDA_SUCCESS);
		IS(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, functions[d], 32, 0),
			CUDA_SUCCESS);
		YES(blocks > 0);
		/* A function is launched in its context alone. */
		CUresult launched =
			cuLaunchKernel(functions[d], 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL);
		IS(launched, d ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS);
		use(d);
		if (d)
			IS(cuLaunchKernel(functions[d], 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL),
				CUDA_SUCCESS);
		use(0);
		IS(words_not(memory[d], 4, 100 + 32 * n), 0);
	}
	/* Two drivers may put variables at the same address: it is the current server's. */
	for (int d = 0; d < 2; d++) {
		size_t size;
		uint32_t word = 40 + (uint32_t)d;
		use(d);
		IS(cuModuleGetGlobal(&counters[d], &size, modules[d], "counter"), CUDA_SUCCESS);
		IS(words_not(counters[d], 4, 3), 0);
		IS(cuMemcpyHtoD(counters[d], &word, 4), CUDA_SUCCESS);
	}
	for (int d = 0; d < 2; d++) {
		use(d);
		IS(words_not(counters[d], 4, 40 + (uint32_t)d), 0);
	}
	use(0);
	for (int d = 0; d < 2; d++) {
		IS(cuModuleUnload(modules[d]), CUDA_SUCCESS);
		IS(cuMemFree(memory[d]), CUDA_SUCCESS);
	}
	is_home();
}

static void test_pools(void)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1}};
	CUmemoryPool pool, fallback;
	CUstream streams[2];
	CUdeviceptr memory;
	cuuint64_t value = 1 << 20;
	for (int d = 0; d < 2; d++) {
		use(d);
		IS(cuStreamCreate(&streams[d], CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	}
	use(0);
	MUST(cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
	IS(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value), CUDA_SUCCESS);
	value = 0;
	IS(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value), CUDA_SUCCESS);
	IS(value, 1 << 20);
	IS(cuMemAllocFromPoolAsync(&memory, 4096, pool, streams[0]), CUDA_ERROR_NOT_SUPPORTED);
	MUST(cuMemAllocFromPoolAsync(&memory, 4096, pool, streams[1]), CUDA_SUCCESS);
	IS(cuMemsetD32Async(memory, 6, 1024, streams[1]), CUDA_SUCCESS);
	IS(cuStreamSynchronize(streams[1]), CUDA_SUCCESS);
	IS(words_not(memory, 4096, 6), 0);
	/* On a stream of the other server: when that is done, which is when the call returns. */
	IS(cuMemFreeAsync(memory, streams[0]), CUDA_SUCCESS);
	IS(cuMemFreeAsync(memory, streams[0]), CUDA_ERROR_INVALID_VALUE);
	/* The default pool of a device that its server calls otherwise. */
	IS(cuDeviceGetDefaultMemPool(&fallback, 2), CUDA_SUCCESS);
	IS(cuMemPoolGetAttribute(fallback, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value), CUDA_SUCCESS);
	IS(value, 0);
	IS(cuMemPoolTrimTo(fallback, 0), CUDA_SUCCESS);
	IS(cuMemPoolDestroy(pool), CUDA_SUCCESS);
	for (int d = 0; d < 2; d++)
		IS(cuStreamDestroy(streams[d]), CUDA_SUCCESS);
	is_home();
}

static void test_vmm(void)
{
	enum { SIZE = 2 << 20 };
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1}};
	CUmemAccessDesc access = {
		.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr here, there;
	IS(cuMemAddressReserve(&here, SIZE, 0, 0, 0), CUDA_SUCCESS);
	use(1);
	IS(cuMemAddressReserve(&there, SIZE, 0, 0, 0), CUDA_SUCCESS);
	use(0);
	YES(here != there);
	MUST(cuMemCreate(&handle, SIZE, &prop, 0), CUDA_SUCCESS);
	IS(cuMemMap(here, SIZE, 0, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
	IS(cuMemMap(there, SIZE, 0, handle, 0), CUDA_SUCCESS);
	IS(cuMemSetAccess(there, SIZE, &access, 1), CUDA_SUCCESS);
	use(1);
	IS(cuMemsetD32(there, 8, SIZE / 4), CUDA_SUCCESS);
	use(0);
	IS(words_not(there, SIZE, 8), 0);
	access.location.id = 0;
	IS(cuMemSetAccess(there, SIZE, &access, 1), CUDA_ERROR_INVALID_DEVICE);
	IS(cuMemUnmap(there, SIZE), CUDA_SUCCESS);
	IS(cuMemRelease(handle), CUDA_SUCCESS);
	IS(cuMemAddressFree(there, SIZE), CUDA_SUCCESS);
	IS(cuMemAddressFree(here, SIZE), CUDA_SUCCESS);
	is_home();
}

static void test_contexts(void)
{
	CUcontext made, popped;
	CUdevice device;
	CUdeviceptr memory;
	/* Made while a context of another server is current, and used by its device's number. */
	MUST(cuCtxCreate(&made, NULL, 0, 1), CUDA_SUCCESS);
	IS(cuCtxGetDevice(&device), CUDA_SUCCESS);
	IS(device, 1);
	memory = memory_with(4096, 2);
	IS(cuCtxPopCurrent(&popped), CUDA_SUCCESS);
	YES(popped == made);
	is_home();
	IS(words_not(memory, 4096, 2), 0);
	IS(cuCtxDestroy(made), CUDA_SUCCESS);
	IS(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
	is_home();
	/* Without any context the first server is asked, and what has an owner finds it. */
	CUstream stream;
	use(1);
	IS(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
	IS(cuCtxSetCurrent(NULL), CUDA_SUCCESS);
	IS(cuStreamDestroy(stream), CUDA_SUCCESS);
	use(2);
	IS(cuDevicePrimaryCtxReset(1), CUDA_SUCCESS);
	IS(cuDevicePrimaryCtxRetain(&contexts[1], 1), CUDA_SUCCESS);
	use(1);
	memory = memory_with(4096, 4);
	use(0);
	IS(words_not(memory, 4096, 4), 0);
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

UNIT_SUITE(route, {"streams and events", test_streams}, {"functions", test_functions},
	{"pools", test_pools}, {"mappings", test_vmm}, {"contexts", test_contexts})
