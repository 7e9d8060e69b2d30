/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/memory/memcpy.c: copies: to the device without an answer, in pieces of a record; to
 * the host waited for; bounds are checked before anything travels.
 */
#include <stdlib.h>
#include <string.h>

#include "relay.h"

enum { MIB = 1 << 20 };

static void test_linear(void)
{
	CUdeviceptr memory = memory_of(4 * MIB, 0), other = memory_of(4 * MIB, 0);
	uint8_t *data = malloc(4 * MIB), *back = malloc(4 * MIB);
	for (size_t i = 0; i < 4 * MIB; i++)
		data[i] = (uint8_t)(i * 31 >> 5);
	static const struct {
		size_t bytes;
		unsigned pieces;
	} cases[] = {{1, 1}, {MIB, 1}, {MIB + 1, 2}, {2 * MIB + MIB / 2, 3}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		COST(cuMemcpyHtoDAsync(memory, data, cases[i].bytes, NULL), CUDA_SUCCESS, 0,
			cases[i].pieces);
		IS(relay_count("memcpy_htod"), cases[i].pieces);
		COST(cuMemcpyDtoH(back, memory, cases[i].bytes), CUDA_SUCCESS, cases[i].pieces, 0);
		IS(memcmp(back, data, cases[i].bytes), 0);
	}
	COST(cuMemcpyDtoD(other, memory, 2 * MIB), CUDA_SUCCESS, 0, 1);
	IS(cuMemcpyDtoH(back, other, 2 * MIB), CUDA_SUCCESS);
	IS(memcmp(back, data, 2 * MIB), 0);
	/* Nothing, and what is outside. */
	LOCAL(cuMemcpyHtoD(memory, data, 0), CUDA_SUCCESS);
	LOCAL(cuMemcpyHtoD(memory + 4 * MIB - 1, data, 2), BAD);
	LOCAL(cuMemcpyDtoH(back, other + 4 * MIB - 1, 2), BAD);
	LOCAL(cuMemcpyDtoD(memory, 0x1234, 1), BAD);
	LOCAL(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)data, data, 1) != CUDA_SUCCESS, true);
	IS(cuMemFree(memory), CUDA_SUCCESS);
	LOCAL(cuMemcpyHtoD(memory, data, 1), BAD);
	IS(cuMemFree(other), CUDA_SUCCESS);
	free(data);
	free(back);
}

static void test_rows(void)
{
	CUdeviceptr memory = memory_of(MIB, 0);
	uint8_t data[300], back[300] = {0};
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i + 1);
	CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = data,
		.srcPitch = 30,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = memory,
		.dstPitch = 512,
		.WidthInBytes = 20,
		.Height = 10};
	/* Rows travel without what lies between them. */
	COST(cuMemcpy2DAsync(&copy, NULL), CUDA_SUCCESS, 0, 1);
	size_t size;
	relay_args("memcpy2d_htod", &size);
	YES(size >= 200 && size < 260);
	CUDA_MEMCPY2D out = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = memory,
		.srcPitch = 512,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = back,
		.dstPitch = 30,
		.WidthInBytes = 20,
		.Height = 10};
	COST(cuMemcpy2D(&out), CUDA_SUCCESS, 1, 0);
	for (int row = 0; row < 10; row++) {
		IS(memcmp(back + row * 30, data + row * 30, 20), 0);
		IS(back[row * 30 + 20], 0);
	}
	copy.dstPitch = 10;
	LOCAL(cuMemcpy2D(&copy), BAD);
	copy.dstPitch = 512;
	copy.Height = 10000;
	LOCAL(cuMemcpy2D(&copy), BAD);
	copy.Height = 0;
	LOCAL(cuMemcpy2D(&copy), CUDA_SUCCESS);
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

UNIT_SUITE(memcpy, {"linear", test_linear}, {"rows", test_rows})
