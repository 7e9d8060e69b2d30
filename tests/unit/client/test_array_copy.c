/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/memory/array_copy.c: copies from and to arrays: boxes inside of them, cut into
 * pieces, checked here.
 */
#include <stdlib.h>
#include <string.h>

#include "relay.h"

static void test_copies(void)
{
	CUarray array;
	CUDA_ARRAY_DESCRIPTOR desc = {
		.Width = 64, .Height = 32, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 4};
	uint8_t data[256 * 32], back[sizeof data];
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i * 7 >> 2);
	MUST(cuArrayCreate(&array, &desc), CUDA_SUCCESS);
	CUDA_MEMCPY2D in = {.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = data,
		.srcPitch = 256,
		.dstMemoryType = CU_MEMORYTYPE_ARRAY,
		.dstArray = array,
		.WidthInBytes = 256,
		.Height = 32};
	CUDA_MEMCPY2D out = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
		.srcArray = array,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = back,
		.dstPitch = 256,
		.WidthInBytes = 256,
		.Height = 32};
	COST(cuMemcpy2D(&in), CUDA_SUCCESS, 0, 1);
	COST(cuMemcpy2D(&out), CUDA_SUCCESS, 1, 0);
	IS(memcmp(back, data, sizeof data), 0);
	/* A box in the middle. */
	out.srcXInBytes = 16;
	out.srcY = 3;
	out.WidthInBytes = 8;
	out.Height = 2;
	IS(cuMemcpy2D(&out), CUDA_SUCCESS);
	IS(memcmp(back, data + 3 * 256 + 16, 8), 0);
	out.srcY = 31;
	LOCAL(cuMemcpy2D(&out), BAD);
	out.srcY = 0;
	out.srcXInBytes = 252;
	LOCAL(cuMemcpy2D(&out), BAD);
	/* One row by the functions of old. */
	COST(cuMemcpyHtoA(array, 8, data, 16), CUDA_SUCCESS, 0, 1);
	COST(cuMemcpyAtoH(back, array, 8, 16), CUDA_SUCCESS, 1, 0);
	IS(memcmp(back, data, 16), 0);
	CUdeviceptr memory = memory_of(4096, 1);
	IS(cuMemcpyDtoA(array, 0, memory, 16), CUDA_SUCCESS);
	IS(cuMemcpyAtoD(memory + 64, array, 8, 16), CUDA_SUCCESS);
	IS(word_at(memory + 64), 1); /* the second half of what was written */
	LOCAL(cuMemcpyHtoA((CUarray)0x1234, 0, data, 16) != CUDA_SUCCESS, true);
	IS(cuMemFree(memory), CUDA_SUCCESS);
	IS(cuArrayDestroy(array), CUDA_SUCCESS);
	LOCAL(cuMemcpyHtoA(array, 0, data, 16) != CUDA_SUCCESS, true);
}

UNIT_SUITE(array_copy, {"copies", test_copies})
