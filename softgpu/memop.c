/* Memory operations: a stream writes a value, or stands still until memory has one. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "softgpu/capture.h"
#include "softgpu/copy.h"

enum { MEMOPS_MAX = 256 };

struct batch {
	unsigned count;
	CUstreamBatchMemOpParams ops[];
};

static bool holds(const CUstreamBatchMemOpParams *op)
{
	bool wide = op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
	const void *address = (const void *)(uintptr_t)op->waitValue.address;
	uint64_t now = wide ? __atomic_load_n((const uint64_t *)address, __ATOMIC_ACQUIRE) : __atomic_load_n((const uint32_t *)address, __ATOMIC_ACQUIRE);
	uint64_t want = wide ? op->waitValue.value64 : op->waitValue.value;
	switch (op->waitValue.flags) {
	case CU_STREAM_WAIT_VALUE_GEQ:
		return wide ? (int64_t)(now - want) >= 0 : (int32_t)((uint32_t)now - (uint32_t)want) >= 0;
	case CU_STREAM_WAIT_VALUE_EQ:
		return now == want;
	case CU_STREAM_WAIT_VALUE_AND:
		return (now & want) != 0;
	default:
		return wide ? ~(now | want) != 0 : ~((uint32_t)now | (uint32_t)want) != 0;
	}
}

static void run_batch(struct ckt_soft_context *context, void *payload)
{
	const struct batch *batch = payload;
	for (unsigned i = 0; i < batch->count; i++) {
		const CUstreamBatchMemOpParams *op = &batch->ops[i];
		void *address = (void *)(uintptr_t)op->writeValue.address;
		switch (op->operation) {
		case CU_STREAM_MEM_OP_WRITE_VALUE_32:
			__atomic_store_n((uint32_t *)address, op->writeValue.value, __ATOMIC_RELEASE);
			break;
		case CU_STREAM_MEM_OP_WRITE_VALUE_64:
			__atomic_store_n((uint64_t *)address, op->writeValue.value64, __ATOMIC_RELEASE);
			break;
		case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		case CU_STREAM_MEM_OP_WAIT_VALUE_64:
			/* What is waited for may never come, but the context may go. */
			while (!holds(op) && atomic_load(&context->alive) && ckt_soft_context_result(context) == CUDA_SUCCESS)
				nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
			break;
		default:
			__atomic_thread_fence(__ATOMIC_SEQ_CST);
			break;
		}
	}
}

static CUresult check_address(CUdeviceptr address, unsigned width, uint8_t bits)
{
	return address && address % width == 0 && ckt_soft_memory_ok(address, width, bits) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult check(const CUstreamBatchMemOpParams *op)
{
	bool wide = op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 || op->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
	switch (op->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		if (op->waitValue.flags & CU_STREAM_WAIT_VALUE_FLUSH)
			return CKT_SOFT_UNSUPPORTED("flushing remote writes");
		if (op->waitValue.flags > CU_STREAM_WAIT_VALUE_NOR)
			return CUDA_ERROR_INVALID_VALUE;
		return check_address(op->waitValue.address, wide ? 8 : 4, CKT_SOFT_PAGE_READ);
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		if (op->writeValue.flags)
			return CUDA_ERROR_INVALID_VALUE;
		return check_address(op->writeValue.address, wide ? 8 : 4, CKT_SOFT_PAGE_WRITE);
	case CU_STREAM_MEM_OP_BARRIER:
		return op->memoryBarrier.flags > CU_STREAM_MEMORY_BARRIER_TYPE_GPU ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
		return CKT_SOFT_UNSUPPORTED("flushing remote writes");
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult ckt_memop_check(const CUstreamBatchMemOpParams *ops, unsigned count, unsigned flags)
{
	CUresult result = ops && count && count <= MEMOPS_MAX && !flags ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++)
		result = check(&ops[i]);
	return result;
}

/* Precondition: entered. */
static CUresult capture(struct ckt_capture_stream *capturing, CUstreamBatchMemOpParams *ops, unsigned count)
{
	struct ckt_node *node;
	CUresult result = ckt_capture_append(capturing, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, &node);
	return result == CUDA_SUCCESS ? ckt_node_set_memop(node, &(CUDA_BATCH_MEM_OP_NODE_PARAMS_v2){.count = count, .paramArray = ops}) : result;
}

CUresult CUDAAPI cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
	struct ckt_soft_context *context;
	struct ckt_soft_stream *s;
	CUresult result = ckt_soft_enter(&context);
	if (result == CUDA_SUCCESS && !count)
		return paramArray && !flags ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = ckt_memop_check(paramArray, count, flags);
	if (result == CUDA_SUCCESS)
		result = ckt_soft_stream_get(context, stream, &s);
	if (result != CUDA_SUCCESS)
		return result;
	struct ckt_capture_stream *capturing;
	result = ckt_soft_capture(s, &capturing);
	if (result != CUDA_SUCCESS || capturing) {
		ckt_soft_object_put(&s->object);
		return capturing ? ckt_graph_leave(capture(capturing, paramArray, count)) : result;
	}
	struct batch *batch = malloc(sizeof(*batch) + count * sizeof(*paramArray));
	bool waits = false;
	if (batch) {
		batch->count = count;
		memcpy(batch->ops, paramArray, count * sizeof(*paramArray));
		for (unsigned i = 0; i < count; i++)
			waits |= paramArray[i].operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
				 paramArray[i].operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
		result = ckt_soft_stream_submit(s, run_batch, batch, sizeof(*batch) + count * sizeof(*paramArray), waits ? 0 : CKT_SOFT_INLINE, NULL,
						0, NULL);
	} else {
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	free(batch);
	ckt_soft_object_put(&s->object);
	return result;
}

static CUresult one(CUstream stream, CUstreamBatchMemOpType operation, CUdeviceptr address, uint64_t value, unsigned flags)
{
	CUstreamBatchMemOpParams op = {.operation = operation};
	op.writeValue.address = address;
	op.writeValue.flags = flags;
	if (operation == CU_STREAM_MEM_OP_WRITE_VALUE_64 || operation == CU_STREAM_MEM_OP_WAIT_VALUE_64)
		op.writeValue.value64 = value;
	else
		op.writeValue.value = (cuuint32_t)value;
	return cuStreamBatchMemOp_v2(stream, 1, &op, 0);
}

CUresult CUDAAPI cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return one(stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, addr, value, flags);
}

CUresult CUDAAPI cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return one(stream, CU_STREAM_MEM_OP_WRITE_VALUE_64, addr, value, flags);
}

CUresult CUDAAPI cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return one(stream, CU_STREAM_MEM_OP_WAIT_VALUE_32, addr, value, flags);
}

CUresult CUDAAPI cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return one(stream, CU_STREAM_MEM_OP_WAIT_VALUE_64, addr, value, flags);
}

/* The first versions, which need a driver set up for them: no H200's is. */
#define FIRST_VERSION(name, parameters)                                                                                          \
	CUresult CUDAAPI name parameters                                                                                         \
	{                                                                                                                        \
		return CUDA_ERROR_NOT_SUPPORTED;                                                                                 \
	}

FIRST_VERSION(cuStreamWriteValue32, (CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags))
FIRST_VERSION(cuStreamWriteValue64, (CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags))
FIRST_VERSION(cuStreamWaitValue32, (CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags))
FIRST_VERSION(cuStreamWaitValue64, (CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags))
FIRST_VERSION(cuStreamBatchMemOp, (CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray, unsigned int flags))
