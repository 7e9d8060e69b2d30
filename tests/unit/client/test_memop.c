/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/stream/memop.c and cudacommon/memop.c: memory operations on streams: checked here,
 * sent without an answer.
 */
#include "relay.h"

static void test_operations(void)
{
	CUdeviceptr memory = memory_of(4096, 0);
	CUstreamBatchMemOpParams ops[257] = {0};
	COST(cuStreamWriteValue32(NULL, memory, 5, 0), CUDA_SUCCESS, 0, 1);
	COST(cuStreamWriteValue64(NULL, memory + 8, (uint64_t)6 << 32, 0), CUDA_SUCCESS, 0, 1);
	COST(cuStreamWaitValue32(NULL, memory, 5, CU_STREAM_WAIT_VALUE_EQ), CUDA_SUCCESS, 0, 1);
	IS(word_at(memory) * 10 + word_at(memory + 12), 56);
	LOCAL(cuStreamWriteValue32(NULL, memory + 2, 5, 0), BAD); /* not aligned */
	LOCAL(cuStreamWriteValue64(NULL, memory + 4, 5, 0), BAD);
	LOCAL(cuStreamWriteValue32(NULL, memory + 4096, 5, 0), BAD);
	LOCAL(cuStreamWriteValue32(NULL, 0, 5, 0), BAD);
	LOCAL(cuStreamWriteValue32(NULL, memory, 5, 7), BAD);
	LOCAL(cuStreamWaitValue32(NULL, memory, 5, 9), BAD);
	LOCAL(cuStreamWaitValue32(NULL, memory, 5, CU_STREAM_WAIT_VALUE_FLUSH),
		CUDA_ERROR_NOT_SUPPORTED);
	LOCAL(cuStreamWriteValue32((CUstream)0x1234, memory, 5, 0), CUDA_ERROR_INVALID_HANDLE);
	for (unsigned i = 0; i < 257; i++) {
		ops[i].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
		ops[i].writeValue.address = memory + 4 * i;
		ops[i].writeValue.value = i;
	}
	COST(cuStreamBatchMemOp(NULL, 256, ops, 0), CUDA_SUCCESS, 0, 1); /* all in one */
	IS(word_at(memory + 4 * 255), 255);
	LOCAL(cuStreamBatchMemOp(NULL, 257, ops, 0), BAD);
	LOCAL(cuStreamBatchMemOp(NULL, 0, ops, 0), CUDA_SUCCESS);
	LOCAL(cuStreamBatchMemOp(NULL, 1, NULL, 0), BAD);
	LOCAL(cuStreamBatchMemOp(NULL, 1, ops, 1), BAD);
	ops[1].writeValue.address = 1; /* one that is wrong, and none travels */
	LOCAL(cuStreamBatchMemOp(NULL, 2, ops, 0), BAD);
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

UNIT_SUITE(memop, {"operations", test_operations})
