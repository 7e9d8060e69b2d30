/* SPDX-License-Identifier: Apache-2.0 */
/* client/cuda/memory/staged.c: smaller copies, in a process that has not made the pieces. */
#include <stdlib.h>
#include <string.h>

#include "relay.h"

static uint32_t *numbers(size_t size, uint32_t first)
{
	uint32_t *memory = malloc(size);
	for (size_t i = 0; i < size / 4; i++)
		memory[i] = first + (uint32_t)i;
	return memory;
}

/* Copies that are waited for take one piece, once the pieces are made. */
static void test_small(void)
{
	enum { SIZE = 64 << 10, BEFORE = 64 };
	CUstream stream;
	CUdeviceptr device = memory_of(SIZE, 0);
	uint32_t *from = numbers(SIZE, 11), *to = malloc(SIZE);
	/* From now on a kernel can run that waits for no copy on the default stream. */
	IS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	IS(cuMemcpyHtoD(device, from, SIZE), CUDA_SUCCESS);
	COST(cuMemcpyHtoD(device, from, SIZE), CUDA_SUCCESS, 1, 1);
	IS(relay_count("memcpy_htod"), 1);
	for (int i = 0; i < BEFORE; i++)
		IS(cuMemcpyHtoD(device, from, SIZE), CUDA_SUCCESS);
	COST(cuMemcpyHtoD(device, from, SIZE), CUDA_SUCCESS, 1, 1);
	IS(relay_count("memcpy_htod"), 0);
	COST(cuMemcpyDtoH(to, device, SIZE), CUDA_SUCCESS, 1, 1);
	IS(relay_count("memcpy_dtoh"), 0);
	IS(memcmp(from, to, SIZE), 0);
	for (uint32_t round = 0; round < 20; round++) {
		from[0] = from[SIZE / 4 - 1] = round;
		IS(cuMemcpyHtoD(device, from, SIZE), CUDA_SUCCESS);
		from[0] = 99;
		IS(cuMemcpyDtoH(to, device, SIZE), CUDA_SUCCESS);
		IS(to[0], round);
		IS(to[SIZE / 4 - 1], round);
	}
	/* What is not waited for travels with its command; so does what is too small. */
	COST(cuMemcpyHtoDAsync(device, from, SIZE, stream), CUDA_SUCCESS, 0, 1);
	IS(relay_count("memcpy_htod"), 1);
	COST(cuMemcpyHtoD(device, from, 4096), CUDA_SUCCESS, 1, 1);
	IS(relay_count("memcpy_htod"), 1);
	IS(cuStreamDestroy(stream), CUDA_SUCCESS);
	IS(cuMemFree(device), CUDA_SUCCESS);
	free(from);
	free(to);
}

UNIT_SUITE(staged_small, {"small", test_small})
