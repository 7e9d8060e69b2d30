/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/context/context_query.c: what a context tells of itself, limits and their bounds, peers.
 */
#include "files.h"
#include "softgpu/context/context.h"
#include "softgpu/context/device.h"

static void test_told(void)
{
	CUcontext primary = test_context(), second = files_second();
	CUdevice device = 77;
	unsigned long long id = 0, other = 0;
	unsigned version = 0, flags = 77;
	int least = 77, greatest = 77;
	OK(cuCtxGetDevice(&device));
	IS(device, 1);
	OK(cuCtxGetDevice_v2(&device, primary));
	IS(device, 0);
	OK(cuCtxGetId(primary, &id));
	OK(cuCtxGetId(NULL, &other));
	YES(id && other && id != other);
	OK(cuCtxGetApiVersion(primary, &version));
	IS(version, 3020);
	OK(cuCtxGetStreamPriorityRange(&least, &greatest));
	IS(least, 0);
	IS(greatest, -5);
	OK(cuCtxGetStreamPriorityRange(NULL, NULL));
	OK(cuCtxSetFlags(CU_CTX_SCHED_YIELD | CU_CTX_SYNC_MEMOPS));
	OK(cuCtxGetFlags(&flags));
	IS(flags, CU_CTX_SCHED_YIELD | CU_CTX_SYNC_MEMOPS);
	CHECK_RESULT(cuCtxSetFlags(0x10000), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuCtxGetFlags(NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuCtxGetDevice(NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuCtxGetId(primary, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuCtxGetApiVersion(primary, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuCtxGetId((CUcontext)(uintptr_t)0x1230, &id), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxSynchronize_v2(primary));
	files_second_end(second);
	CHECK_RESULT(cuCtxGetId(second, &id), CUDA_ERROR_INVALID_CONTEXT);
	CHECK_RESULT(cuCtxSynchronize_v2(second), CUDA_ERROR_INVALID_CONTEXT);
}

static void test_limits(void)
{
	static const struct {
		CUlimit limit;
		size_t value;
		CUresult result;
		size_t then; /* what it is afterwards, where it succeeded */
	} table[] = {
		{CU_LIMIT_STACK_SIZE, 2000, CUDA_SUCCESS, 2000},
		{CU_LIMIT_STACK_SIZE, 2001, CUDA_SUCCESS, 2016},
		{CU_LIMIT_STACK_SIZE, 512 << 10, CUDA_SUCCESS, 512 << 10},
		{CU_LIMIT_STACK_SIZE, (512 << 10) + 1, CUDA_ERROR_INVALID_VALUE, 0},
		{CU_LIMIT_MALLOC_HEAP_SIZE, 1 << 20, CUDA_SUCCESS, 1 << 20},
		{CU_LIMIT_MALLOC_HEAP_SIZE, SIZE_MAX, CUDA_SUCCESS, FILES_MEMORY},
		{CU_LIMIT_PRINTF_FIFO_SIZE, 4096, CUDA_SUCCESS, 4096},
		{CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 3, CUDA_ERROR_UNSUPPORTED_LIMIT, 0},
		{CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 5, CUDA_SUCCESS, 5},
		{CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 128, CUDA_SUCCESS, 128},
		{CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 129, CUDA_ERROR_INVALID_VALUE, 0},
		{CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 1 << 20, CUDA_SUCCESS, 0},
		{CU_LIMIT_PERSISTING_L2_CACHE_SIZE, SIZE_MAX, CUDA_ERROR_INVALID_VALUE, 0},
		{CU_LIMIT_MAX, 1, CUDA_ERROR_INVALID_VALUE, 0},
		{(CUlimit)-1, 1, CUDA_ERROR_INVALID_VALUE, 0},
	};
	test_context();
	for (size_t i = 0; i < COUNT(table); i++) {
		size_t value = 0;
		CHECK_RESULT(cuCtxSetLimit(table[i].limit, table[i].value), table[i].result);
		if (table[i].result != CUDA_SUCCESS)
			continue;
		OK(cuCtxGetLimit(&value, table[i].limit));
		IS(value, table[i].then);
	}
	size_t value;
	CHECK_RESULT(cuCtxGetLimit(&value, CU_LIMIT_MAX), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuCtxGetLimit(&value, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH),
		CUDA_ERROR_UNSUPPORTED_LIMIT);
	CHECK_RESULT(cuCtxGetLimit(NULL, CU_LIMIT_STACK_SIZE), CUDA_ERROR_INVALID_VALUE);
	/* A reset brings the defaults back. */
	test_context();
	OK(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
	IS(value, 1024);
	OK(cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
	IS(value, 8 << 20);
}

static void test_preferences(void)
{
	CUfunc_cache cache = (CUfunc_cache)77;
	CUsharedconfig shared = (CUsharedconfig)77;
	CUexecAffinityParam affinity;
	test_context();
	OK(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_EQUAL));
	OK(cuCtxGetCacheConfig(&cache));
	IS(cache, CU_FUNC_CACHE_PREFER_EQUAL);
	CHECK_RESULT(cuCtxSetCacheConfig((CUfunc_cache)4), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuCtxGetCacheConfig(NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuCtxSetSharedMemConfig(CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE));
	OK(cuCtxGetSharedMemConfig(&shared));
	/* The banks are four bytes wide whatever is asked for. */
	IS(shared, CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE);
	CHECK_RESULT(cuCtxSetSharedMemConfig((CUsharedconfig)3), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuCtxGetSharedMemConfig(NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuCtxResetPersistingL2Cache());
	OK(cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT));
	IS(affinity.param.smCount.val, files_context()->device->n_sm);
	CHECK_RESULT(cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_MAX),
		CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
	CHECK_RESULT(cuCtxGetExecAffinity(NULL, CU_EXEC_AFFINITY_TYPE_SM_COUNT),
		CUDA_ERROR_INVALID_VALUE);
}

static void test_peers(void)
{
	CUcontext primary = test_context(), second = files_second();
	OK(cuCtxSetCurrent(primary));
	CHECK_RESULT(cuCtxEnablePeerAccess(second, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuCtxEnablePeerAccess(NULL, 0), CUDA_ERROR_INVALID_CONTEXT);
	CHECK_RESULT(cuCtxEnablePeerAccess(primary, 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
	CHECK_RESULT(cuCtxDisablePeerAccess(second), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	OK(cuCtxEnablePeerAccess(second, 0));
	CHECK_RESULT(cuCtxEnablePeerAccess(second, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
	/* In one direction only. */
	OK(cuCtxSetCurrent(second));
	CHECK_RESULT(cuCtxDisablePeerAccess(primary), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	OK(cuCtxSetCurrent(primary));
	OK(cuCtxDisablePeerAccess(second));
	CHECK_RESULT(cuCtxDisablePeerAccess(second), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	files_second_end(second);
	CHECK_RESULT(cuCtxEnablePeerAccess(second, 0), CUDA_ERROR_INVALID_CONTEXT);
}

UNIT_SUITE(softgpu / context / context_query, {"told", test_told}, {"limits", test_limits},
	{"preferences", test_preferences}, {"peers", test_peers})
