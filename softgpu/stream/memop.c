/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory operations (cudacommon/memop.h) on the soft GPU: a stream writes a value, or waits until
 * memory has a value.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cudacommon/memop.h"
#include "softgpu/context/context.h"
#include "softgpu/context/object.h"
#include "softgpu/memory/memmap.h"
#include "softgpu/memory/memory.h"
#include "softgpu/stream/stream.h"

struct batch {
	unsigned count;
	CUstreamBatchMemOpParams ops[];
};

static bool holds(const CUstreamBatchMemOpParams *op)
{
	bool wide = op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
	const void *address = (const void *)(uintptr_t)op->waitValue.address;
	uint64_t now = wide ? __atomic_load_n((const uint64_t *)address, __ATOMIC_ACQUIRE)
			    : __atomic_load_n((const uint32_t *)address, __ATOMIC_ACQUIRE);
	uint64_t want = wide ? op->waitValue.value64 : op->waitValue.value;
	switch (op->waitValue.flags) {
	case CU_STREAM_WAIT_VALUE_GEQ:
		return wide ? (int64_t)(now - want) >= 0
			    : (int32_t)((uint32_t)now - (uint32_t)want) >= 0;
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
			__atomic_store_n(
				(uint32_t *)address, op->writeValue.value, __ATOMIC_RELEASE);
			break;
		case CU_STREAM_MEM_OP_WRITE_VALUE_64:
			__atomic_store_n(
				(uint64_t *)address, op->writeValue.value64, __ATOMIC_RELEASE);
			break;
		case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		case CU_STREAM_MEM_OP_WAIT_VALUE_64:
			/*
			 * The value may never arrive, so stop if the context is destroyed or fails.
			 */
			while (!holds(op) && atomic_load(&context->alive) &&
				ckt_soft_context_result(context) == CUDA_SUCCESS)
				nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
			break;
		default:
			__atomic_thread_fence(__ATOMIC_SEQ_CST);
			break;
		}
	}
}

CUresult ckt_cudacommon_memop_address(uint64_t address, unsigned width, bool waits)
{
	return ckt_soft_memory_ok(address, width, waits ? CKT_SOFT_PAGE_READ : CKT_SOFT_PAGE_WRITE)
		? CUDA_SUCCESS
		: CUDA_ERROR_INVALID_VALUE;
}

CUresult ckt_memop_submit(uint64_t number, const CUstreamBatchMemOpParams *ops, unsigned count)
{
	struct ckt_soft_stream *stream;
	CUresult result = ckt_soft_stream_by_number(number, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	struct batch *batch = malloc(sizeof(*batch) + count * sizeof(*ops));
	bool waits = false;
	if (batch) {
		batch->count = count;
		memcpy(batch->ops, ops, count * sizeof(*ops));
		for (unsigned i = 0; i < count; i++)
			waits |= ckt_memop_is_wait(ops[i].operation);
		result = ckt_soft_stream_submit(stream, run_batch, batch,
			sizeof(*batch) + count * sizeof(*ops), waits ? 0 : CKT_SOFT_INLINE, NULL, 0,
			NULL);
	} else {
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	free(batch);
	ckt_soft_object_put(&stream->object);
	return result;
}

/* The first versions need a special driver setting; an H200's driver does not have it. */
#define FIRST_VERSION(name, parameters)           \
	CUresult CUDAAPI name parameters          \
	{                                         \
		return CKT_AS_CUDA_NOT_SUPPORTED; \
	}

FIRST_VERSION(cuStreamWriteValue32,
	(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags))
FIRST_VERSION(cuStreamWriteValue64,
	(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags))
FIRST_VERSION(cuStreamWaitValue32,
	(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags))
FIRST_VERSION(cuStreamWaitValue64,
	(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags))
FIRST_VERSION(cuStreamBatchMemOp,
	(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray,
		unsigned int flags))
