/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools of the worker.  An allocation waits for its address; a free is a batched call. */
#include <stdatomic.h>

#include "client/cuda/memory/worker_pool.h"
#include "client/cuda/call.h"
#include "client/cuda/context/route.h"
#include "client/cuda/memory/range.h"
#include "cudacommon/interface.h"

static _Atomic bool freed_on_stream;

bool ckt_pool_may_settle(void)
{
	return atomic_load_explicit(&freed_on_stream, memory_order_relaxed);
}

static CUstream to_stream(uint64_t id)
{
	return (CUstream)(uintptr_t)id;
}

CUresult ckt_pool_make(uint64_t pool, CUdevice device, size_t max_bytes)
{
	CKT_ROUTE_DEVICE(device);
	return CKT_BATCHED(pool_create, POOL_CREATE, .id = pool,
		.device = ckt_call_device((unsigned)device), .max_bytes = max_bytes);
}

CUresult ckt_pool_unmake(uint64_t pool)
{
	CKT_ROUTE(ckt_route_to_pool(pool));
	return CKT_BATCHED(pool_destroy, POOL_DESTROY, .id = pool);
}

CUresult ckt_pool_trim(uint64_t pool, size_t keep_bytes)
{
	CKT_ROUTE(ckt_route_to_pool(pool));
	return CKT_BATCHED(
		pool_trim, POOL_TRIM, .pool = ckt_call_id(pool), .keep_bytes = keep_bytes);
}

CUresult ckt_pool_set(uint64_t pool, CUmemPool_attribute attribute, uint64_t value)
{
	CKT_ROUTE(ckt_route_to_pool(pool));
	return CKT_BATCHED(pool_set_attribute, POOL_SET_ATTRIBUTE, .pool = ckt_call_id(pool),
		.attribute = attribute, .value = value);
}

CUresult ckt_pool_get(uint64_t pool, CUmemPool_attribute attribute, uint64_t *ret_value)
{
	struct ckt_reply reply;
	struct ckt_pool_get_attribute_res res;
	CKT_ROUTE(ckt_route_to_pool(pool));
	CUresult result = CKT_WAITED(pool_get_attribute, POOL_GET_ATTRIBUTE, 0, &reply,
		.pool = ckt_call_id(pool), .attribute = attribute);
	if (result)
		return result;
	if (ckt_pool_get_attribute_res_get(&reply.results, &res))
		*ret_value = res.value;
	else
		result = CUDA_ERROR_UNKNOWN;
	ckt_call_reply_release(&reply);
	return result;
}

CUresult ckt_pool_alloc(
	uint64_t pool, CUdevice device, size_t size, uint64_t stream, uint64_t *ret_address)
{
	static bool once;
	struct ckt_reply reply;
	struct ckt_mem_alloc_async_res res;
	CKT_ROUTE_STREAM(to_stream(stream));
	if (ckt_conn_count > 1 && ckt_call_conn_of((unsigned)device) != ckt_call_conn)
		return ckt_call_unsupported("a pool's memory on a stream of another server", &once);
	uint64_t of = ckt_call_id(pool);
	CUresult result = ckt_range_room();
	if (!result)
		result = CKT_WAITED(mem_alloc_async, MEM_ALLOC_ASYNC, CKT_CALL_F_NUMBERED, &reply,
			.pool = of, .size = size, .stream = stream);
	/* Memory that other streams freed is available once they are done. */
	if (result == CUDA_ERROR_OUT_OF_MEMORY && ckt_pool_may_settle() && !cuCtxSynchronize())
		result = CKT_WAITED(mem_alloc_async, MEM_ALLOC_ASYNC, CKT_CALL_F_NUMBERED, &reply,
			.pool = of, .size = size, .stream = stream);
	if (result)
		return result;
	bool good = ckt_mem_alloc_async_res_get(&reply.results, &res);
	ckt_call_reply_release(&reply);
	if (!good)
		return CUDA_ERROR_UNKNOWN;
	ckt_range_add(&(struct ckt_client_range){.base = res.address,
		.size = size,
		.kind = CKT_RANGE_DEVICE,
		.context = ckt_call_context,
		.device = device,
		.pool = pool});
	*ret_address = res.address;
	return CUDA_SUCCESS;
}

CUresult ckt_pool_free(uint64_t address, uint64_t stream)
{
	struct ckt_client_range range;
	if (!ckt_range_remove(address, CKT_RANGE_DEVICE, &range))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = CUDA_SUCCESS;
	/* The stream is on another server, so the program waits for it here. */
	if (ckt_conn_count > 1 &&
		ckt_client_context_conn(range.context) !=
			ckt_client_object_conn(stream, CKT_KIND_STREAM)) {
		result = cuStreamSynchronize(to_stream(stream));
		stream = ckt_handle_id(CU_STREAM_LEGACY);
	}
	CKT_ROUTE_CONTEXT(range.context);
	atomic_store_explicit(&freed_on_stream, true, memory_order_relaxed);
	return result
		? result
		: CKT_BATCHED(mem_free_async, MEM_FREE_ASYNC, .address = address, .stream = stream);
}
