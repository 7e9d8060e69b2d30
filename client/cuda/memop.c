/* Memory operations on streams and in graphs: a stream writes a value, or waits until memory has one. */
#include <stdlib.h>
#include <string.h>

#include "client/cuda/graph_side.h"
#include "driver/capture.h"
#include "rpc/graph.h"

static bool is_wait(CUstreamBatchMemOpType type)
{
	return type == CU_STREAM_MEM_OP_WAIT_VALUE_32 || type == CU_STREAM_MEM_OP_WAIT_VALUE_64;
}

/* Bytes that the operation touches; 0 for those without an address. */
static unsigned width_of(CUstreamBatchMemOpType type)
{
	switch (type) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		return 4;
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		return 8;
	default:
		return 0;
	}
}

static CUresult check_address(const CUstreamBatchMemOpParams *op, unsigned width)
{
	static bool once;
	struct ckt_range range;
	uint64_t address = op->writeValue.address;
	if (!address || address % width)
		return CUDA_ERROR_INVALID_VALUE;
	if (!ckt_range_is_device(address, width) && ckt_range_is_pinned((void *)(uintptr_t)address, width)) {
		CUresult result = ckt_host_map(address);
		if (result)
			return result;
	}
	if (!ckt_range_find(address, &range) || !ckt_range_reaches_device(&range) || range.base + range.size - address < width)
		return CUDA_ERROR_INVALID_VALUE;
	/* The two sides agree when the program waits: a value that it stores meanwhile would never come. */
	if (is_wait(op->operation) && ((range.mapped && !range.shared) || range.kind == CKT_RANGE_MANAGED))
		return ckt_call_unsupported("a stream's wait for a value in host memory", &once);
	return CUDA_SUCCESS;
}

static CUresult check_op(const CUstreamBatchMemOpParams *op)
{
	static bool once;
	unsigned width = width_of(op->operation);
	switch (op->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		if (op->waitValue.flags & CU_STREAM_WAIT_VALUE_FLUSH)
			return ckt_call_unsupported("flushing remote writes", &once);
		return op->waitValue.flags > CU_STREAM_WAIT_VALUE_NOR ? CUDA_ERROR_INVALID_VALUE : check_address(op, width);
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		return op->writeValue.flags ? CUDA_ERROR_INVALID_VALUE : check_address(op, width);
	case CU_STREAM_MEM_OP_BARRIER:
		return op->memoryBarrier.flags > CU_STREAM_MEMORY_BARRIER_TYPE_GPU ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
		return ckt_call_unsupported("flushing remote writes", &once);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult ckt_memop_check(const CUstreamBatchMemOpParams *ops, unsigned count, unsigned flags)
{
	CUresult result = ops && count && count <= CKT_MEMOPS_MAX && !flags ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count && !result; i++)
		result = check_op(&ops[i]);
	return result;
}

size_t ckt_memop_wire_size(unsigned count)
{
	return (size_t)count * CKT_MEMOP_BYTES;
}

uint8_t *ckt_memop_wire_put(uint8_t *p, const CUstreamBatchMemOpParams *ops, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		const CUstreamBatchMemOpParams *op = &ops[i];
		unsigned width = width_of(op->operation);
		p = ckt_put_u32(p, op->operation);
		p = ckt_put_u32(p, width ? op->writeValue.flags : op->memoryBarrier.flags);
		p = ckt_put_u64(p, width ? op->writeValue.address : 0);
		p = ckt_put_u64(p, width == 8 ? op->writeValue.value64 : width == 4 ? op->writeValue.value : 0);
	}
	return p;
}

/* ---- On streams */

static CUresult capture(struct ckt_capture_stream *capturing, const CUstreamBatchMemOpParams *ops, unsigned count)
{
	struct ckt_node *node;
	CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 params = {.count = count, .paramArray = (CUstreamBatchMemOpParams *)ops};
	CUresult result = ckt_capture_append(capturing, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, &node);
	return result ? result : ckt_node_set_memop(node, &params);
}

CKT_EXPORT CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *ops, unsigned int flags)
{
	uint64_t id;
	struct ckt_capture_stream *capturing;
	uint8_t data[CKT_MEMOPS_MAX * CKT_MEMOP_BYTES];
	CUresult result = ckt_stream_resolve(stream, &id);
	if (!result && !count)
		return ops && !flags ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	if (!result)
		result = ckt_memop_check(ops, count, flags);
	if (!result)
		result = ckt_capture_enter(id, &capturing);
	if (result)
		return result;
	if (capturing)
		return ckt_graph_leave(capture(capturing, ops, count));
	for (unsigned i = 0; i < count && !result; i++)
		if (width_of(ops[i].operation))
			result = ckt_managed_before_access(ops[i].writeValue.address, width_of(ops[i].operation), !is_wait(ops[i].operation));
	if (result)
		return result;
	ckt_memop_wire_put(data, ops, count);
	return CKT_BATCHED(stream_mem_ops, STREAM_MEM_OPS, .stream = id, .ops = data, .ops_len = (uint32_t)ckt_memop_wire_size(count));
}

#define ONE_OPERATION(name, OPERATION, bits, member, type)                                                                       \
	CKT_EXPORT CUresult cuStream##name##bits##_v2(CUstream stream, CUdeviceptr address, type value, unsigned int flags)      \
	{                                                                                                                        \
		CUstreamBatchMemOpParams op = {.operation = CU_STREAM_MEM_OP_##OPERATION##_##bits};                              \
		op.writeValue.address = address;                                                                                 \
		op.writeValue.member = value;                                                                                    \
		op.writeValue.flags = flags;                                                                                     \
		return cuStreamBatchMemOp_v2(stream, 1, &op, 0);                                                                 \
	}

ONE_OPERATION(WriteValue, WRITE_VALUE, 32, value, cuuint32_t)
ONE_OPERATION(WriteValue, WRITE_VALUE, 64, value64, cuuint64_t)
ONE_OPERATION(WaitValue, WAIT_VALUE, 32, value, cuuint32_t)
ONE_OPERATION(WaitValue, WAIT_VALUE, 64, value64, cuuint64_t)
