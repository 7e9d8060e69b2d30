/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/memory/pool.c: what is freed on a stream is kept for it, what is not needed goes, memory
 * that runs out, and the sums are right.
 */
#include "files.h"
#include "softgpu/context/device.h"
#include "softgpu/memory/range.h"

enum { MIB = 1 << 20, PAGE = 32 << 20 }; /* what an H200 reserves at once */

static CUmemoryPool pool_of(int device, size_t most, uint64_t threshold)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
		.maxSize = most};
	CUmemoryPool pool = NULL;
	OK(cuMemPoolCreate(&pool, &props));
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
	return pool;
}

static uint64_t get(CUmemoryPool pool, CUmemPool_attribute attribute)
{
	cuuint64_t value = 77;
	OK(cuMemPoolGetAttribute(pool, attribute, &value));
	return value;
}

static void test_kept(void)
{
	CUstream other;
	CUdeviceptr a, b, c;
	int no = 0;
	test_context();
	CUmemoryPool pool = pool_of(0, 0, UINT64_MAX);
	CUstream gate = files_gated();
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuMemAllocFromPoolAsync(&a, MIB, pool, gate));
	OK(cuMemFreeAsync(a, gate));
	IS(get(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
	IS(get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), PAGE);
	/* What comes behind on the same stream takes it at once; another only where it may wait. */
	OK(cuMemAllocFromPoolAsync(&b, MIB, pool, gate));
	IS(b, a);
	OK(cuMemFreeAsync(b, gate));
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &no));
	OK(cuMemAllocFromPoolAsync(&b, MIB, pool, other));
	YES(b != a);
	no = 1;
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &no));
	OK(cuMemAllocFromPoolAsync(&c, MIB, pool, other));
	IS(c, a);
	CHECK_RESULT(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
	files_open();
	OK(cuStreamSynchronize(other));
	OK(cuMemsetD8(c, 1, MIB));
	OK(cuMemFreeAsync(b, other));
	OK(cuMemFree(c));
	IS(get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), PAGE);
	IS(get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), PAGE);
	OK(cuMemPoolTrimTo(pool, MIB));
	IS(get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), PAGE);
	OK(cuMemPoolTrimTo(pool, 0));
	IS(get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
	OK(cuMemPoolDestroy(pool));
	OK(cuStreamDestroy(gate));
	OK(cuStreamDestroy(other));
}

static void test_threshold(void)
{
	CUdeviceptr a;
	size_t before, now, total;
	test_context();
	CUmemoryPool pool = pool_of(0, 0, 0);
	OK(cuMemGetInfo(&before, &total));
	OK(cuMemAllocFromPoolAsync(&a, MIB, pool, NULL));
	OK(cuMemFreeAsync(a, NULL));
	OK(cuMemGetInfo(&now, &total));
	IS(now, before - MIB);
	OK(cuCtxSynchronize());
	OK(cuMemGetInfo(&now, &total));
	IS(now, before);
	/*
	 * Memory of a pool that is gone goes with its free, and a context's end is as good as that.
	 */
	OK(cuMemAllocFromPoolAsync(&a, MIB, pool, NULL));
	OK(cuMemPoolDestroy(pool));
	OK(cuMemFreeAsync(a, NULL));
	OK(cuStreamSynchronize(NULL));
	OK(cuMemGetInfo(&now, &total));
	IS(now, before);
	pool = pool_of(0, 0, UINT64_MAX);
	OK(cuMemAllocFromPoolAsync(&a, MIB, pool, NULL));
	OK(cuMemFreeAsync(a, NULL));
	OK(cuMemAllocFromPoolAsync(&a, 2 * MIB, pool, NULL));
	test_context();
	OK(cuMemGetInfo(&now, &total));
	IS(now, before);
	IS(get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
	IS(get(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
	OK(cuMemPoolDestroy(pool));
}

static void test_full(void)
{
	CUdeviceptr a, b;
	size_t left, total;
	test_context();
	CUmemoryPool small = pool_of(0, 3 * MIB, UINT64_MAX), large = pool_of(0, 0, UINT64_MAX);
	OK(cuMemAllocFromPoolAsync(&a, 2 * MIB, small, NULL));
	/* The limit is a whole page. */
	CHECK_RESULT(cuMemAllocFromPoolAsync(&b, 31 * MIB, small, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemFreeAsync(a, NULL));
	/* What is kept makes room: in the pool's own limit, and on the device for everybody. */
	OK(cuMemAllocFromPoolAsync(&b, 32 * MIB, small, NULL));
	OK(cuMemPoolTrimTo(small, 0));
	OK(cuMemGetInfo(&left, &total));
	OK(cuMemAllocFromPoolAsync(&a, left, large, NULL));
	CHECK_RESULT(cuMemAlloc(&b, MIB), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemFreeAsync(a, NULL));
	OK(cuMemAlloc(&b, left));
	CHECK_RESULT(cuMemAllocFromPoolAsync(&a, left, large, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	IS(get(large, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
	IS(get(large, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
	test_context();
	OK(cuMemPoolDestroy(small));
	OK(cuMemPoolDestroy(large));
}

/*
 * Memory that no pool has can be freed on a stream, too, and another device's pool needs no context
 * there.
 */
static void test_others(void)
{
	CUdeviceptr a;
	struct ckt_soft_range range;
	test_context();
	CUstream gate = files_gated();
	OK(cuMemAlloc(&a, MIB));
	OK(cuMemFreeAsync(a, gate));
	CHECK_RESULT(cuMemFree(a), CUDA_ERROR_INVALID_VALUE);
	files_open();
	OK(cuStreamDestroy(gate));
	CUmemoryPool pool = pool_of(1, 0, 0);
	OK(cuMemAllocFromPoolAsync(&a, MIB, pool, NULL));
	YES(ckt_soft_range_find(a, &range) && range.device == ckt_soft_device(1));
	OK(cuMemFreeAsync(a, NULL));
	OK(cuMemPoolDestroy(pool));
}

UNIT_SUITE(softgpu / memory / pool, {"kept", test_kept}, {"threshold", test_threshold},
	{"full", test_full}, {"others", test_others})
