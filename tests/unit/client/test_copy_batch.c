/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudacommon/copy_batch.c: batches of copies: all checked before the first travels, each a copy by
 * itself.
 */
#include "relay.h"

static void test_batch(void)
{
	CUdeviceptr memory = memory_of(4096, 5), other = memory_of(4096, 0),
		    targets[3] = {other, other + 4, other + 8},
		    sources[3] = {memory, memory, memory};
	size_t sizes[3] = {4, 4, 4}, indices[3] = {0, 1, 2};
	CUmemcpyAttributes attributes[3] = {{.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM},
		{.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY},
		{.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL}};
	CUstream stream;
	IS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	COST(cuMemcpyBatchAsync(targets, sources, sizes, 3, attributes, indices, 3, stream),
		CUDA_SUCCESS, 0, 3);
	IS(word_at(other) + word_at(other + 4) + word_at(other + 8) + word_at(other + 12), 15);
	/* not on the legacy stream */
	LOCAL(cuMemcpyBatchAsync(targets, sources, sizes, 3, attributes, indices, 3, NULL), BAD);
	LOCAL(cuMemcpyBatchAsync(targets, sources, sizes, 0, attributes, indices, 3, stream), BAD);
	LOCAL(cuMemcpyBatchAsync(targets, sources, sizes, 2, attributes, indices, 3, stream), BAD);
	LOCAL(cuMemcpyBatchAsync(NULL, sources, sizes, 3, attributes, indices, 3, stream), BAD);
	indices[1] = 0;
	/* they must grow */
	LOCAL(cuMemcpyBatchAsync(targets, sources, sizes, 3, attributes, indices, 2, stream), BAD);
	indices[1] = 1;
	indices[0] = 1;
	/* from the first copy on */
	LOCAL(cuMemcpyBatchAsync(targets, sources, sizes, 3, attributes, indices, 1, stream), BAD);
	indices[0] = 0;
	attributes[0].srcAccessOrder = (CUmemcpySrcAccessOrder)9;
	LOCAL(cuMemcpyBatchAsync(targets, sources, sizes, 3, attributes, indices, 1, stream), BAD);
	attributes[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	sizes[2] = 0;
	LOCAL(cuMemcpyBatchAsync(targets, sources, sizes, 3, attributes, indices, 1, stream), BAD);
	CUDA_MEMCPY3D_BATCH_OP op = {
		.src = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .op.ptr = {.ptr = memory}},
		.dst = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .op.ptr = {.ptr = other + 64}},
		.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
		.extent = {8, 1, 1}};
	IS(cuMemcpy3DBatchAsync(1, &op, 0, stream), CUDA_SUCCESS);
	IS(cuStreamSynchronize(stream), CUDA_SUCCESS);
	IS(word_at(other + 68), 5);
	LOCAL(cuMemcpy3DBatchAsync(1, &op, 1, stream), BAD);
	op.extent.depth = 0;
	LOCAL(cuMemcpy3DBatchAsync(1, &op, 0, stream), BAD);
	op.extent.depth = 1;
	op.src.op.ptr.rowLength = 4; /* shorter than the row */
	LOCAL(cuMemcpy3DBatchAsync(1, &op, 0, stream), BAD);
	LOCAL(cuMemcpy3DPeer(NULL), BAD);
	IS(cuStreamDestroy(stream), CUDA_SUCCESS);
	IS(cuMemFree(memory), CUDA_SUCCESS);
	IS(cuMemFree(other), CUDA_SUCCESS);
}

UNIT_SUITE(copy_batch, {"batch", test_batch})
