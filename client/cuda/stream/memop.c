/* SPDX-License-Identifier: Apache-2.0 */
/* Memory operations (cudacommon/memop.h): which memory they may access, and their encoding. */
#include "client/cuda/stream/memop.h"
#include "client/cuda/call.h"
#include "client/cuda/context/route.h"
#include "client/cuda/memory/managed.h"
#include "client/cuda/memory/mapped.h"
#include "client/cuda/memory/range.h"
#include "cudacommon/memop.h"
#include "rpc/graph.h"

CUresult ckt_cudacommon_memop_address(uint64_t address, unsigned width, bool waits)
{
	static bool once;
	struct ckt_client_range range;
	if (!ckt_range_is_device(address, width) &&
		ckt_range_is_pinned((void *)(uintptr_t)address, width)) {
		CUresult result = ckt_client_host_map(address);
		if (result)
			return result;
	}
	if (!ckt_range_find(address, &range) || !ckt_range_reaches_device(&range) ||
		range.base + range.size - address < width)
		return CUDA_ERROR_INVALID_VALUE;
	/*
	 * Host and device memory become equal only when the program waits.  So a value that the
	 * program stores during the stream's wait would never arrive.
	 */
	if (waits && ((range.mapped && !range.shared) || range.kind == CKT_RANGE_MANAGED))
		return ckt_call_unsupported("a stream's wait for a value in host memory", &once);
	return CUDA_SUCCESS;
}

size_t ckt_client_memop_wire_size(unsigned count)
{
	return (size_t)count * CKT_MEMOP_BYTES;
}

uint8_t *ckt_client_memop_wire_put(uint8_t *p, const CUstreamBatchMemOpParams *ops, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		const CUstreamBatchMemOpParams *op = &ops[i];
		unsigned width = ckt_memop_width(op->operation);
		p = ckt_put_u32(p, op->operation);
		p = ckt_put_u32(p, width ? op->writeValue.flags : op->memoryBarrier.flags);
		p = ckt_put_u64(p, width ? op->writeValue.address : 0);
		p = ckt_put_u64(p,
			width == 8           ? op->writeValue.value64
				: width == 4 ? op->writeValue.value
					     : 0);
	}
	return p;
}

CUresult ckt_memop_submit(uint64_t stream, const CUstreamBatchMemOpParams *ops, unsigned count)
{
	uint8_t data[CKT_MEMOPS_MAX * CKT_MEMOP_BYTES];
	CKT_ROUTE(ckt_route_to_object(stream, CKT_KIND_STREAM));
	for (unsigned i = 0; i < count; i++) {
		unsigned width = ckt_memop_width(ops[i].operation);
		if (width && ckt_conn_count > 1 &&
			ckt_client_address_conn(ops[i].writeValue.address) != ckt_call_conn)
			return CUDA_ERROR_INVALID_VALUE;
		CUresult result = width ? ckt_managed_before_access(ops[i].writeValue.address,
						  width, !ckt_memop_is_wait(ops[i].operation))
					: CUDA_SUCCESS;
		if (result)
			return result;
	}
	ckt_client_memop_wire_put(data, ops, count);
	return CKT_BATCHED(stream_mem_ops, STREAM_MEM_OPS, .stream = stream, .ops = data,
		.ops_len = (uint32_t)ckt_client_memop_wire_size(count));
}
