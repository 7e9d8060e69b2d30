/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/memory/memory.c: an address is waited for; setting memory is checked against what is
 * allocated, sent and forgotten.
 */
#include "relay.h"

static void test_allocation(void)
{
	CUdeviceptr memory = 77, base = 0;
	size_t size = 0, pitch = 0, free_before = 0, free_after = 0, total = 0;
	COST(cuMemGetInfo(&free_before, &total), CUDA_SUCCESS, 1, 0);
	YES(free_before && free_before <= total);
	COST(cuMemAlloc(&memory, 8 << 20), CUDA_SUCCESS, 1, 0);
	IS(cuMemGetInfo(&free_after, NULL), CUDA_SUCCESS);
	YES(free_before - free_after >= 8 << 20);
	LOCAL(cuMemGetAddressRange(&base, &size, memory + 12345), CUDA_SUCCESS);
	YES(base == memory && size == 8 << 20);
	LOCAL(cuMemGetAddressRange(NULL, NULL, memory), CUDA_SUCCESS);
	LOCAL(cuMemGetAddressRange(&base, &size, memory + (8 << 20)), CUDA_ERROR_NOT_FOUND);
	LOCAL(cuMemFree(memory + 256), BAD); /* not where it begins */
	COST(cuMemFree(memory), CUDA_SUCCESS, 1, 0);
	LOCAL(cuMemFree(memory), BAD);
	LOCAL(cuMemFree(0), CUDA_SUCCESS);
	LOCAL(cuMemGetAddressRange(&base, &size, memory), CUDA_ERROR_NOT_FOUND);
	LOCAL(cuMemAlloc(&memory, 0), BAD);
	LOCAL(cuMemAlloc(NULL, 4), BAD);
	memory = 77;
	IS(cuMemAlloc(&memory, (size_t)1 << 50), CUDA_ERROR_OUT_OF_MEMORY);
	IS(memory, 0);
	COST(cuMemAllocPitch(&memory, &pitch, 513, 3, 4), CUDA_SUCCESS, 1, 0);
	IS(pitch, 1024);
	IS(cuMemGetAddressRange(&base, &size, memory), CUDA_SUCCESS);
	IS(size, 3 * 1024);
	IS(cuMemFree(memory), CUDA_SUCCESS);
	static const struct {
		size_t width, height;
		unsigned element;
	} wrong[] = {{0, 1, 4}, {1, 0, 4}, {1, 1, 2}, {1, 1, 32}, {SIZE_MAX, 1, 4},
		{1 << 20, SIZE_MAX >> 8, 4}};
	for (size_t i = 0; i < COUNT(wrong); i++)
		LOCAL(cuMemAllocPitch(
			      &memory, &pitch, wrong[i].width, wrong[i].height, wrong[i].element),
			BAD);
	LOCAL(cuMemAllocPitch(&memory, NULL, 4, 1, 4), BAD);
}

static void test_set(void)
{
	CUdeviceptr memory = memory_of(4096, 0);
	COST(cuMemsetD8(memory, 1, 4), CUDA_SUCCESS, 0, 1);
	COST(cuMemsetD16(memory + 4, 2, 2), CUDA_SUCCESS, 0, 1);
	COST(cuMemsetD32Async(memory + 8, 3, 1, NULL), CUDA_SUCCESS, 0, 1);
	IS(word_at(memory), 0x01010101);
	IS(word_at(memory + 4), 0x00020002);
	IS(word_at(memory + 8), 3);
	COST(cuMemsetD2D32(memory + 1024, 256, 7, 2, 3), CUDA_SUCCESS, 0, 1);
	IS(word_at(memory + 1024 + 2 * 256 + 4), 7);
	IS(word_at(memory + 1024 + 2 * 256 + 8), 0); /* beside the rows */
	LOCAL(cuMemsetD8(memory, 1, 0), CUDA_SUCCESS);
	LOCAL(cuMemsetD2D8(memory, 256, 1, 4, 0), CUDA_SUCCESS);
	LOCAL(cuMemsetD32Async(memory, 1, 1, (CUstream)0x1234), CUDA_ERROR_INVALID_HANDLE);
	static const struct {
		size_t at, pitch, width, height;
	} wrong[] = {
		{2, 256, 1, 1},    /* not aligned */
		{0, 256, 65, 2},   /* rows longer than the pitch */
		{0, 258, 1, 2},    /* a pitch that is none of elements */
		{4096, 256, 1, 1}, /* behind it */
		{0, 256, 1, 18},   /* its last row is */
		{0, 256, SIZE_MAX / 2, 1},
		{0, SIZE_MAX / 4 * 4, 1, 3},
	};
	for (size_t i = 0; i < COUNT(wrong); i++)
		LOCAL(cuMemsetD2D32(memory + wrong[i].at, wrong[i].pitch, 1, wrong[i].width,
			      wrong[i].height),
			BAD);
	LOCAL(cuMemsetD8(memory + 4095, 1, 2), BAD);
	LOCAL(cuMemsetD8(0, 1, 1), BAD);
	IS(cuMemFree(memory), CUDA_SUCCESS);
	LOCAL(cuMemsetD8(memory, 1, 1), BAD);
}

UNIT_SUITE(memory, {"allocation", test_allocation}, {"set", test_set})
