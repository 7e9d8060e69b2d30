/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/memory/copy_api.c: copies by addresses that say themselves where they lie, and of
 * every form.
 */
#include <string.h>

#include "relay.h"

static void test_unified(void)
{
	CUdeviceptr memory = memory_of(4096, 7), other = memory_of(4096, 0);
	uint32_t words[4] = {0};
	COST(cuMemcpy((CUdeviceptr)(uintptr_t)words, memory, 8), CUDA_SUCCESS, 1, 0);
	IS(words[1] * 10 + words[2], 70);
	words[0] = 9;
	COST(cuMemcpyAsync(other, (CUdeviceptr)(uintptr_t)words, 4, NULL), CUDA_SUCCESS, 0, 1);
	COST(cuMemcpy(other + 4, memory, 4), CUDA_SUCCESS, 0, 1);
	IS(word_at(other) * 10 + word_at(other + 4), 97);
	/* Behind what the GPU was given. */
	COST(cuMemcpy((CUdeviceptr)(uintptr_t)&words[2], (CUdeviceptr)(uintptr_t)words, 4),
		CUDA_SUCCESS, 1, 0);
	IS(words[2], 9);
	LOCAL(cuMemcpy(other, memory, 0), CUDA_SUCCESS);
	LOCAL(cuMemcpy(other, memory + 4095, 2), BAD);
	LOCAL(cuMemcpyAsync(other, memory, 4, (CUstream)0x1234), CUDA_ERROR_INVALID_HANDLE);
	IS(cuMemFree(memory), CUDA_SUCCESS);
	IS(cuMemFree(other), CUDA_SUCCESS);
}

static void test_3d(void)
{
	CUdeviceptr memory = memory_of(1 << 16, 0);
	uint8_t data[2 * 3 * 4];
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i + 1);
	CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = data,
		.srcPitch = 4,
		.srcHeight = 3,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstDevice = memory,
		.dstPitch = 16,
		.dstHeight = 8,
		.WidthInBytes = 4,
		.Height = 3,
		.Depth = 2};
	IS(cuMemcpy3D(&copy), CUDA_SUCCESS);
	uint32_t last;
	memcpy(&last, data + 20, 4);
	IS(word_at(memory + 16 * 8 + 2 * 16), last);
	LOCAL(cuMemcpy3D(NULL), BAD);
	copy.dstMemoryType = (CUmemorytype)77;
	LOCAL(cuMemcpy3D(&copy), BAD);
	copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	copy.Depth = 1 << 20;
	LOCAL(cuMemcpy3D(&copy), BAD);
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

UNIT_SUITE(copy_api, {"unified", test_unified}, {"3D", test_3d})
