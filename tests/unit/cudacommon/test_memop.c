/* SPDX-License-Identifier: Apache-2.0 */
/* cudacommon/memop.c: which operations are refused, and those that a stream captures. */
#include "../softgpu/files.h"
#include "cudacommon/memop.h"

static void test_kinds(void)
{
	IS(ckt_memop_width(CU_STREAM_MEM_OP_WRITE_VALUE_32), 4);
	IS(ckt_memop_width(CU_STREAM_MEM_OP_WAIT_VALUE_64), 8);
	IS(ckt_memop_width(CU_STREAM_MEM_OP_BARRIER), 0);
	YES(ckt_memop_is_wait(CU_STREAM_MEM_OP_WAIT_VALUE_32));
	NO(ckt_memop_is_wait(CU_STREAM_MEM_OP_WRITE_VALUE_64));
}

static void test_refused(void)
{
	CUdeviceptr p;
	test_context();
	OK(cuMemAlloc(&p, 4096));
	enum {
		W32 = CU_STREAM_MEM_OP_WAIT_VALUE_32,
		W64 = CU_STREAM_MEM_OP_WAIT_VALUE_64,
		S32 = CU_STREAM_MEM_OP_WRITE_VALUE_32,
		S64 = CU_STREAM_MEM_OP_WRITE_VALUE_64
	};
	const struct {
		int operation;
		CUdeviceptr address;
		unsigned flags;
		CUresult result;
	} table[] = {
		{S32, p + 4092, 0, CUDA_SUCCESS},
		{S32, p + 4096, 0, CUDA_ERROR_INVALID_VALUE},
		{S64, p + 4092, 0, CUDA_ERROR_INVALID_VALUE},
		{S32, p + 2, 0, CUDA_ERROR_INVALID_VALUE},
		{S64, p + 4, 0, CUDA_ERROR_INVALID_VALUE},
		{S32, 0, 0, CUDA_ERROR_INVALID_VALUE},
		{S32, p, 2, CUDA_ERROR_INVALID_VALUE},
		{W32, p, 4, CUDA_ERROR_INVALID_VALUE},
		{W32, p, CU_STREAM_WAIT_VALUE_FLUSH, CUDA_ERROR_NOT_SUPPORTED},
		{W64, p + 4, 0, CUDA_ERROR_INVALID_VALUE},
		{W32, 0x1000, 0, CUDA_ERROR_INVALID_VALUE},
		{CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES, 0, 0, CUDA_ERROR_NOT_SUPPORTED},
		{CU_STREAM_MEM_OP_BARRIER, 0, 0, CUDA_SUCCESS},
		{77, p, 0, CUDA_ERROR_INVALID_VALUE},
	};
	for (size_t i = 0; i < COUNT(table); i++) {
		CUstreamBatchMemOpParams op = {
			.operation = (CUstreamBatchMemOpType)table[i].operation};
		if (table[i].operation != CU_STREAM_MEM_OP_BARRIER) {
			op.writeValue.address = table[i].address;
			op.writeValue.flags = table[i].flags;
		}
		CHECK_RESULT(cuStreamBatchMemOp(NULL, 1, &op, 0), table[i].result);
	}
	static CUstreamBatchMemOpParams many[256 + 1];
	for (size_t i = 0; i < COUNT(many); i++)
		many[i].operation = CU_STREAM_MEM_OP_BARRIER;
	OK(cuStreamBatchMemOp(NULL, COUNT(many) - 1, many, 0));
	CHECK_RESULT(cuStreamBatchMemOp(NULL, COUNT(many), many, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamBatchMemOp(NULL, 0, many, 0));
	CHECK_RESULT(cuStreamBatchMemOp(NULL, 0, NULL, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuStreamBatchMemOp(NULL, 1, NULL, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuStreamBatchMemOp(NULL, 1, many, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuStreamBatchMemOp((CUstream)(uintptr_t)0x1230, 1, many, 0),
		CUDA_ERROR_INVALID_HANDLE);
	many[0].memoryBarrier.flags = 2;
	CHECK_RESULT(cuStreamBatchMemOp(NULL, 1, many, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(p));
}

/* What is captured happens when the graph is launched. */
static void test_captured(void)
{
	CUdeviceptr p;
	CUstream stream;
	CUgraph graph;
	CUgraphExec exec;
	test_context();
	OK(cuMemAlloc(&p, 16));
	OK(cuMemsetD32(p, 0, 4));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuStreamWriteValue32(stream, p, 7, 0));
	OK(cuStreamWaitValue32(stream, p, 7, CU_STREAM_WAIT_VALUE_EQ));
	OK(cuStreamWriteValue64(stream, p + 8, 0x500000009, 0));
	CHECK_RESULT(cuStreamWriteValue32(stream, p + 1, 7, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamEndCapture(stream, &graph));
	IS(files_word(p), 0);
	size_t count;
	OK(cuGraphGetNodes(graph, NULL, &count));
	IS(count, 3);
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	IS(files_word(p), 7);
	IS(files_word(p + 8), 9);
	IS(files_word(p + 12), 5);
	/* Memory that has gone since is no place to write to. */
	OK(cuMemFree(p));
	CHECK_RESULT(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuStreamDestroy(stream));
}

UNIT_SUITE(cudacommon / memop, {"kinds", test_kinds}, {"refused", test_refused},
	{"captured", test_captured})
