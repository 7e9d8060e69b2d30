/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/memory/memcpy.c: when a copy from the host returns.  Work on the legacy default
 * stream comes behind it in any case; where other work need not, the bytes are there before.  In a
 * process of its own: what makes the difference does not go away.
 */
#include "relay.h"

static void test_order(void)
{
	uint32_t words[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	CUdeviceptr memory = memory_of(4096, 0), other = memory_of(4096, 0);
	CUarray array;
	CUstream blocking, apart;
	CUDA_ARRAY_DESCRIPTOR descriptor = {
		.Width = 4, .Height = 2, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};
	CUDA_MEMCPY2D rows = {.srcMemoryType = CU_MEMORYTYPE_HOST,
			      .srcHost = words,
			      .srcPitch = 16,
			      .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			      .dstDevice = memory,
			      .dstPitch = 512,
			      .WidthInBytes = 16,
			      .Height = 2},
		      to_array = rows;
	MUST(cuArrayCreate(&array, &descriptor), CUDA_SUCCESS);
	to_array.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	to_array.dstArray = array;
	MUST(cuStreamCreate(&blocking, CU_STREAM_DEFAULT), CUDA_SUCCESS);
	/* Streams that wait for the default one see nothing of when. */
	COST(cuMemcpyHtoD(memory, words, 16), CUDA_SUCCESS, 0, 1);
	COST(cuMemcpy2D(&rows), CUDA_SUCCESS, 0, 1);
	COST(cuMemcpy2D(&to_array), CUDA_SUCCESS, 0, 1);
	/* One that does not is enough, also once it is gone: its work may still be there. */
	MUST(cuStreamCreate(&apart, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	COST(cuMemcpyHtoD(memory, words, 16), CUDA_SUCCESS, 1, 1);
	COST(cuMemcpy2D(&rows), CUDA_SUCCESS, 1, 1);
	COST(cuMemcpy2D(&to_array), CUDA_SUCCESS, 1, 1);
	COST(cuMemcpyHtoDAsync(memory, words, 16, NULL), CUDA_SUCCESS, 0, 1);
	COST(cuMemcpyDtoD(other, memory, 16), CUDA_SUCCESS, 0, 1);
	IS(cuStreamDestroy(apart), CUDA_SUCCESS);
	COST(cuMemcpyHtoD(memory, words, 16), CUDA_SUCCESS, 1, 1);
	IS(cuStreamDestroy(blocking), CUDA_SUCCESS);
	IS(cuArrayDestroy(array), CUDA_SUCCESS);
	IS(cuMemFree(memory), CUDA_SUCCESS);
	IS(cuMemFree(other), CUDA_SUCCESS);
}

UNIT_SUITE(copy_order, {"order", test_order})
