/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudacommon/copy_batch.c: batches of copies: all checked before the first is made, boxes of
 * arrays, and never on the legacy stream.
 */
#include "../softgpu/files.h"

static void test_linear(void)
{
	CUmemcpyAttributes attributes = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
	unsigned here[2] = {5, 6};
	size_t first = 0, sizes[] = {4, 4};
	CUdeviceptr memory, to[2], from[2];
	CUstream stream;
	test_context();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&memory, 64));
	OK(cuMemsetD32(memory, 0, 16));
	for (int i = 0; i < 2; i++) {
		to[i] = memory + 8 * i;
		from[i] = (CUdeviceptr)(uintptr_t)&here[i];
	}
	CHECK_RESULT(cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &first, 1, NULL),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemcpyBatchAsync(to, from, sizes, 0, &attributes, &first, 1, stream),
		CUDA_ERROR_INVALID_VALUE);
	first = 1;
	CHECK_RESULT(cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &first, 1, stream),
		CUDA_ERROR_INVALID_VALUE);
	first = 0;
	sizes[1] = 0;
	CHECK_RESULT(cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &first, 1, stream),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamSynchronize(stream));
	IS(files_word(memory), 0);
	sizes[1] = 4;
	OK(cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &first, 1, stream));
	OK(cuStreamSynchronize(stream));
	IS(files_word(memory), 5);
	IS(files_word(memory + 8), 6);
	OK(cuMemFree(memory));
	OK(cuStreamDestroy(stream));
}

static void test_boxes(void)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor = {
		.Width = 4, .Height = 2, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};
	CUDA_MEMCPY3D_BATCH_OP ops[2] = {0};
	unsigned here[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	CUdeviceptr memory;
	CUarray array;
	CUstream stream;
	test_context();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&memory, 64));
	OK(cuArray3DCreate(&array, &descriptor));
	for (int i = 0; i < 2; i++) {
		ops[i].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
		ops[i].src.type = ops[i].dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
	}
	ops[0].src.op.ptr.ptr = (CUdeviceptr)(uintptr_t)here;
	ops[0].dst.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
	ops[0].dst.op.array.array = array;
	ops[0].extent = (CUextent3D){.width = 4, .height = 2, .depth = 1};
	ops[1].src = ops[0].dst;
	ops[1].src.op.array.offset = (CUoffset3D){.x = 1, .y = 1};
	ops[1].dst.op.ptr.ptr = memory;
	ops[1].extent = (CUextent3D){.width = 3, .height = 1, .depth = 1};
	OK(cuMemcpy3DBatchAsync(2, ops, 0, stream));
	OK(cuStreamSynchronize(stream));
	IS(files_word(memory), 6);
	IS(files_word(memory + 8), 8);
	CHECK_RESULT(cuMemcpy3DBatchAsync(2, ops, 1, stream), CUDA_ERROR_INVALID_VALUE);
	ops[1].extent.depth = 0;
	CHECK_RESULT(cuMemcpy3DBatchAsync(2, ops, 0, stream), CUDA_ERROR_INVALID_VALUE);
	OK(cuArrayDestroy(array));
	OK(cuMemFree(memory));
	OK(cuStreamDestroy(stream));
}

UNIT_SUITE(cudacommon / copy_batch, {"linear", test_linear}, {"boxes", test_boxes})
