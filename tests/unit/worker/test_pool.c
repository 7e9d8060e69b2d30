/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/memory/pool.c: memory pools: what is freed on a stream is kept for it, what is not
 * needed goes, and the sums are right.
 */
#include <stdlib.h>

#include "server/worker/objects/context.h"
#include "server/worker/objects/stream.h"
#include "tests/unit/worker/inside.h"

enum { MIB = 1 << 20, PAGE = 32 << 20 }; /* what an H200 reserves at once */

static uint64_t pool(void)
{
	return ID(POOL, 1);
}

static uint64_t get(uint64_t id, uint32_t attribute)
{
	struct ckt_pool_get_attribute_res res = {.value = 0xdead};
	struct inside_reply *reply =
		INSIDE(pool_get_attribute, false, .pool = id, .attribute = attribute);
	IS(reply->result, CUDA_SUCCESS);
	ckt_pool_get_attribute_res_get(&reply->results, &res);
	return res.value;
}

static uint64_t alloc(uint64_t size, uint64_t stream, int *ret_result)
{
	struct ckt_mem_alloc_async_res res = {0};
	struct inside_reply *reply =
		INSIDE(mem_alloc_async, false, .pool = pool(), .size = size, .stream = stream);
	*ret_result = reply->result;
	if (!reply->result)
		YES(ckt_mem_alloc_async_res_get(&reply->results, &res));
	return res.address;
}

static void test_reuse(void)
{
	int result;
	IS(ASK(pool_create, .id = pool(), .device = 0, .max_bytes = 14 * MIB), CUDA_SUCCESS);
	IS(ASK(pool_create, .id = pool(), .device = 0), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(pool_create, .id = ID(POOL, 2), .device = 9), CUDA_ERROR_INVALID_DEVICE);
	IS(ASK(pool_set_attribute, .pool = pool(), .attribute = CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
		   .value = UINT64_MAX),
		CUDA_SUCCESS);
	MUST(ckt_worker_stream_make(&ckt_worker, ID(STREAM, 1), CU_STREAM_NON_BLOCKING, 0),
		CUDA_SUCCESS);
	MUST(ckt_worker_stream_make(&ckt_worker, ID(STREAM, 2), CU_STREAM_NON_BLOCKING, 0),
		CUDA_SUCCESS);
	uint64_t a = alloc(4 * MIB, ID(STREAM, 1), &result);
	IS(result, CUDA_SUCCESS);
	IS(get(pool(), CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 4 * MIB);
	/* Its stream still works: the stream itself gets the block at once. */
	CUstream real;
	MUST(ckt_object_stream(&ckt_worker, ID(STREAM, 1), &real), CUDA_SUCCESS);
	inside_spin(real);
	IS(ASK(mem_free_async, .address = a, .stream = ID(STREAM, 1)), CUDA_SUCCESS);
	IS(ASK(mem_free_async, .address = a, .stream = ID(STREAM, 1)), CUDA_ERROR_INVALID_VALUE);
	IS(ckt_worker.pools.kept_count, 1);
	IS(get(pool(), CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
	IS(get(pool(), CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), PAGE);
	IS(alloc(4 * MIB, ID(STREAM, 1), &result), a);
	IS(ckt_worker.pools.kept_count, 0);
	IS(ASK(mem_free_async, .address = a, .stream = ID(STREAM, 1)), CUDA_SUCCESS);
	/*
	 * Another size does not take it, and another stream only where it may wait for it and the
	 * pool cannot have more.
	 */
	uint64_t other = alloc(6 * MIB, ID(STREAM, 2), &result);
	YES(other != a && ckt_worker.pools.kept_count == 1);
	IS(ASK(pool_set_attribute, .pool = pool(),
		   .attribute = CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, .value = 0),
		CUDA_SUCCESS);
	uint64_t b = alloc(4 * MIB, ID(STREAM, 2), &result);
	YES(b != a && ckt_worker.pools.kept_count == 1);
	IS(ASK(pool_set_attribute, .pool = pool(),
		   .attribute = CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, .value = 1),
		CUDA_SUCCESS);
	uint64_t rest = alloc(18 * MIB, ID(STREAM, 2), &result);
	YES(rest != a && ckt_worker.pools.kept_count == 1);
	IS(alloc(4 * MIB, ID(STREAM, 2), &result), a);
	alloc(1, ID(STREAM, 2), &result);
	IS(result, CUDA_ERROR_OUT_OF_MEMORY);
	CUstream second;
	MUST(ckt_object_stream(&ckt_worker, ID(STREAM, 2), &second), CUDA_SUCCESS);
	/* behind the first one's work */
	IS(ckt_driver.cuStreamQuery(second), CUDA_ERROR_NOT_READY);
	inside_stop();
	IS(ckt_driver.cuStreamSynchronize(second), CUDA_SUCCESS);
	IS(get(pool(), CU_MEMPOOL_ATTR_USED_MEM_HIGH), PAGE);
	IS(ASK(pool_set_attribute, .pool = pool(), .attribute = CU_MEMPOOL_ATTR_USED_MEM_HIGH,
		   .value = 0),
		CUDA_SUCCESS);
	uint64_t blocks[] = {a, b, other, rest};
	for (int i = 0; i < 4; i++)
		IS(ASK(mem_free_async, .address = blocks[i], .stream = ID(STREAM, 2)),
			CUDA_SUCCESS);
	IS(ckt_driver.cuStreamSynchronize(second), CUDA_SUCCESS);
	IS(get(pool(), CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
	/* as much as was used when it was set back */
	IS(get(pool(), CU_MEMPOOL_ATTR_USED_MEM_HIGH), PAGE);
	IS(get(pool(), CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), PAGE);
}

static void test_trim(void)
{
	/* What it keeps goes, and pages go as a whole. */
	IS(ASK(pool_trim, .pool = pool(), .keep_bytes = 12 * MIB), CUDA_SUCCESS);
	IS(get(pool(), CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), PAGE);
	YES(ckt_worker.pools.kept_count < 4);
	IS(ASK(pool_trim, .pool = pool(), .keep_bytes = 0), CUDA_SUCCESS);
	IS(get(pool(), CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
	IS(ckt_worker.pools.kept_count, 0);
	/* After a wait of the program what a pool should not keep goes by itself. */
	int result;
	IS(ASK(pool_set_attribute, .pool = pool(), .attribute = CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
		   .value = 0),
		CUDA_SUCCESS);
	uint64_t a = alloc(2 * MIB, 0, &result);
	IS(ASK(mem_free_async, .address = a, .stream = 0), CUDA_SUCCESS);
	ckt_driver.cuCtxSynchronize();
	ckt_worker_pools_poll(&ckt_worker);
	IS(ckt_worker.pools.kept_count, 1);
	/* Not for a wait for another stream. */
	ckt_worker_pools_waited(&ckt_worker, ID(STREAM, 1), ckt_worker.current->ctx.fences);
	ckt_worker_pools_poll(&ckt_worker);
	IS(get(pool(), CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), PAGE);
	ckt_worker_pools_waited(&ckt_worker, 0, ckt_worker.current->ctx.fences);
	ckt_worker_pools_poll(&ckt_worker);
	IS(ckt_worker.pools.kept_count, 0);
	IS(get(pool(), CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
	NO(ckt_worker.pools.synchronized);
}

static void test_limits(void)
{
	int result;
	IS(ASK(pool_create, .id = ID(POOL, 3), .device = 0, .max_bytes = 4 * MIB), CUDA_SUCCESS);
	struct inside_reply *reply =
		INSIDE(mem_alloc_async, false, .pool = ID(POOL, 3), .size = 4 * MIB, .stream = 0);
	struct ckt_mem_alloc_async_res res = {0};
	IS(reply->result, CUDA_SUCCESS);
	YES(ckt_mem_alloc_async_res_get(&reply->results, &res));
	/* The limit is a whole page. */
	IS(ASK(mem_alloc_async, .pool = ID(POOL, 3), .size = 28 * MIB + 1, .stream = 0),
		CUDA_ERROR_OUT_OF_MEMORY);
	/* Destroyed: no more from it, and it goes with its last block. */
	IS(ASK(pool_destroy, .id = ID(POOL, 3)), CUDA_SUCCESS);
	IS(ASK(pool_destroy, .id = ID(POOL, 3)), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(mem_alloc_async, .pool = ID(POOL, 3), .size = 1, .stream = 0),
		CUDA_ERROR_INVALID_VALUE);
	CU_ASSERT_PTR_NOT_NULL(ckt_worker_pool_find(&ckt_worker, ID(POOL, 3)));
	IS(ASK(mem_free_async, .address = res.address, .stream = 0), CUDA_SUCCESS);
	ckt_driver.cuCtxSynchronize();
	ckt_worker_pools_poll(&ckt_worker);
	CU_ASSERT_PTR_NULL(ckt_worker_pool_find(&ckt_worker, ID(POOL, 3)));
	IS(ASK(pool_destroy, .id = pool()), CUDA_SUCCESS);
	CU_ASSERT_PTR_NULL(ckt_worker_pool_find(&ckt_worker, pool()));
	alloc(4, 0, &result);
	IS(result, CUDA_ERROR_INVALID_VALUE);
	IS(ASK(pool_destroy, .id = ckt_handle_default_pool(0)), CUDA_ERROR_INVALID_VALUE);
	CU_ASSERT_PTR_NOT_NULL(ckt_worker_pool_find(&ckt_worker, ckt_handle_default_pool(1)));
	CU_ASSERT_PTR_NULL(ckt_worker_pool_find(&ckt_worker, ckt_handle_default_pool(2)));
}

static void test_refused(void)
{
	uint64_t id = ckt_handle_default_pool(0);
	static const struct {
		uint32_t attribute;
		bool get, set;
	} cases[] = {{0, false, false},
		{CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, true, true},
		{CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, true, true},
		{CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, true, false},
		{CU_MEMPOOL_ATTR_USED_MEM_CURRENT, true, false},
		{CU_MEMPOOL_ATTR_USED_MEM_HIGH, true, true}, {99, false, false},
		{UINT32_MAX, false, false}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		IS(ASK(pool_get_attribute, .pool = id, .attribute = cases[i].attribute),
			cases[i].get ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
		IS(ASK(pool_set_attribute, .pool = id, .attribute = cases[i].attribute, .value = 0),
			cases[i].set ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
	}
	IS(ASK(pool_get_attribute, .pool = ID(POOL, 9), .attribute = 1), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(pool_trim, .pool = ID(POOL, 9)), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(mem_alloc_async, .pool = id, .size = 0), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(mem_alloc_async, .pool = id, .size = UINT64_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	IS(ASK(mem_alloc_async, .pool = id, .size = 4, .stream = ID(STREAM, 99)),
		CUDA_ERROR_INVALID_HANDLE);
	IS(ASK(mem_free_async, .address = 0x1000, .stream = 0), CUDA_ERROR_INVALID_VALUE);
	IS(ckt_worker_pool_adopt_kept(&ckt_worker, 0, 0x1000), CUDA_ERROR_INVALID_VALUE);
	IS(CUT(mem_alloc_async, .pool = id, .size = 4), 0);
	IS(CUT(pool_set_attribute, .pool = id, .attribute = 1), 0);
	for (int i = 1; i <= 2; i++)
		ckt_object_destroy(
			&ckt_worker, ckt_objects_find(&ckt_worker.objects, ID(STREAM, i)));
}

UNIT_SUITE(pool, {"reuse", test_reuse}, {"trim", test_trim}, {"limits", test_limits},
	{"refused", test_refused})
