/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/memory/worker_pool.c: memory pools: an allocation waits for its address, a free does
 * not wait, attributes are the worker's.
 */
#include "relay.h"

static void test_pools(void)
{
	CUmemoryPool pool, fallback;
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
	CUstream stream;
	CUdeviceptr a, b;
	cuuint64_t value = 99;
	IS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	COST(cuMemPoolCreate(&pool, &props), CUDA_SUCCESS, 0, 1);
	COST(cuMemAllocFromPoolAsync(&a, 1 << 20, pool, stream), CUDA_SUCCESS, 1, 0);
	COST(cuMemFreeAsync(a, stream), CUDA_SUCCESS, 0, 1);
	LOCAL(cuMemFreeAsync(a, stream), BAD);
	COST(cuMemAllocFromPoolAsync(&b, 1 << 20, pool, stream), CUDA_SUCCESS, 1, 0);
	IS(b, a); /* had back at once */
	COST(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value), CUDA_SUCCESS, 1,
		0);
	IS(value, 1 << 20);
	value = 4096;
	COST(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value), CUDA_SUCCESS,
		0, 1);
	LOCAL(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value), BAD);
	/* the worker says so */
	COST(cuMemPoolGetAttribute(pool, (CUmemPool_attribute)99, &value), BAD, 1, 0);
	LOCAL(cuMemPoolGetAttribute((CUmemoryPool)0x1234, CU_MEMPOOL_ATTR_USED_MEM_CURRENT,
		      &value) != CUDA_SUCCESS,
		true);
	LOCAL(cuDeviceGetDefaultMemPool(&fallback, 0), CUDA_SUCCESS);
	YES(fallback != pool);
	LOCAL(cuMemPoolDestroy(fallback), BAD);
	LOCAL(cuMemAllocFromPoolAsync(&a, 0, pool, stream), CUDA_SUCCESS);
	IS(a, 0);
	props.location.id = 77;
	LOCAL(cuMemPoolCreate(&pool, &props) != CUDA_SUCCESS, true);
	IS(cuMemFreeAsync(b, stream), CUDA_SUCCESS);
	COST(cuMemPoolDestroy(pool), CUDA_SUCCESS, 0, 1);
	LOCAL(cuMemPoolDestroy(pool) != CUDA_SUCCESS, true);
	IS(cuStreamDestroy(stream), CUDA_SUCCESS);
}

UNIT_SUITE(pool, {"pools", test_pools})
