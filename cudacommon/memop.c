/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory operations on streams: checked here, then captured or passed to the library; see memop.h.
 */
#include "cudacommon/memop.h"

#include "cudacommon/capture.h"
#include "rpc/graph.h"

bool ckt_memop_is_wait(CUstreamBatchMemOpType type)
{
	return type == CU_STREAM_MEM_OP_WAIT_VALUE_32 || type == CU_STREAM_MEM_OP_WAIT_VALUE_64;
}

unsigned ckt_memop_width(CUstreamBatchMemOpType type)
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

static CUresult check_address(const CUstreamBatchMemOpParams *op)
{
	uint64_t address = op->writeValue.address;
	unsigned width = ckt_memop_width(op->operation);
	return address && address % width == 0
		? ckt_cudacommon_memop_address(address, width, ckt_memop_is_wait(op->operation))
		: CUDA_ERROR_INVALID_VALUE;
}

static CUresult check_op(const CUstreamBatchMemOpParams *op)
{
	static bool once;
	switch (op->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		if (op->waitValue.flags & CU_STREAM_WAIT_VALUE_FLUSH)
			return ckt_cudacommon_unsupported("flushing remote writes", &once);
		return op->waitValue.flags > CU_STREAM_WAIT_VALUE_NOR ? CUDA_ERROR_INVALID_VALUE
								      : check_address(op);
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		return op->writeValue.flags ? CUDA_ERROR_INVALID_VALUE : check_address(op);
	case CU_STREAM_MEM_OP_BARRIER:
		return op->memoryBarrier.flags > CU_STREAM_MEMORY_BARRIER_TYPE_GPU
			? CUDA_ERROR_INVALID_VALUE
			: CUDA_SUCCESS;
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
		return ckt_cudacommon_unsupported("flushing remote writes", &once);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult ckt_memop_check(const CUstreamBatchMemOpParams *ops, unsigned count, unsigned flags)
{
	CUresult result = ops && count && count <= CKT_MEMOPS_MAX && !flags
		? CUDA_SUCCESS
		: CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count && !result; i++)
		result = check_op(&ops[i]);
	return result;
}

/* Precondition: entered. */
static CUresult capture(
	struct ckt_capture_stream *capturing, CUstreamBatchMemOpParams *ops, unsigned count)
{
	struct ckt_node *node;
	CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 params = {.count = count, .paramArray = ops};
	CUresult result = ckt_capture_append(capturing, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, &node);
	return result ? result : ckt_node_set_memop(node, &params);
}

CKT_EXPORT CUresult cuStreamBatchMemOp_v2(
	CUstream stream, unsigned int count, CUstreamBatchMemOpParams *ops, unsigned int flags)
{
	uint64_t id;
	struct ckt_capture_stream *capturing;
	CUresult result = ckt_stream_resolve(stream, &id);
	if (!result && !count)
		return ops && !flags ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	if (!result)
		result = ckt_memop_check(ops, count, flags);
	if (!result)
		result = ckt_capture_enter(id, &capturing);
	if (result)
		return result;
	return capturing ? ckt_graph_leave(capture(capturing, ops, count))
			 : ckt_memop_submit(id, ops, count);
}

static CUresult one(CUstream stream, CUstreamBatchMemOpType operation, CUdeviceptr address,
	uint64_t value, unsigned flags)
{
	CUstreamBatchMemOpParams op = {.operation = operation};
	op.writeValue.address = address;
	op.writeValue.flags = flags;
	if (ckt_memop_width(operation) == 8)
		op.writeValue.value64 = value;
	else
		op.writeValue.value = (cuuint32_t)value;
	return cuStreamBatchMemOp_v2(stream, 1, &op, 0);
}

CKT_EXPORT CUresult cuStreamWriteValue32_v2(
	CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags)
{
	return one(stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, address, value, flags);
}

CKT_EXPORT CUresult cuStreamWriteValue64_v2(
	CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags)
{
	return one(stream, CU_STREAM_MEM_OP_WRITE_VALUE_64, address, value, flags);
}

CKT_EXPORT CUresult cuStreamWaitValue32_v2(
	CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags)
{
	return one(stream, CU_STREAM_MEM_OP_WAIT_VALUE_32, address, value, flags);
}

CKT_EXPORT CUresult cuStreamWaitValue64_v2(
	CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned int flags)
{
	return one(stream, CU_STREAM_MEM_OP_WAIT_VALUE_64, address, value, flags);
}
