/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/memory/mapped.c: mapped pinned memory: the device has it at the same address, from
 * the first use on.
 */
#include <string.h>

#include "relay.h"

static void test_kernel(void)
{
	uint32_t *memory;
	CUdeviceptr pointer = 0;
	uint32_t n = 2;
	MUST(cuMemHostAlloc((void **)&memory, 4096, CU_MEMHOSTALLOC_DEVICEMAP), CUDA_SUCCESS);
	memory[0] = 40;
	IS(cuMemHostGetDevicePointer(&pointer, memory, 0), CUDA_SUCCESS);
	IS(pointer, (uintptr_t)memory);
	void *params[] = {&pointer, &n};
	IS(cuLaunchKernel(relay_add(), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_SUCCESS);
	IS(cuCtxSynchronize(), CUDA_SUCCESS);
	IS(memory[0], 42);
	/* An address among a kernel's parameters maps as well. */
	uint32_t *other;
	MUST(cuMemHostAlloc((void **)&other, 4096, 0), CUDA_SUCCESS);
	other[1] = 5;
	pointer = (CUdeviceptr)(uintptr_t)&other[1];
	IS(cuLaunchKernel(relay_add(), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), CUDA_SUCCESS);
	IS(cuCtxSynchronize(), CUDA_SUCCESS);
	IS(other[1], 7);
	LOCAL(cuMemHostGetDevicePointer(&pointer, memory, 1), BAD);
	LOCAL(cuMemHostGetDevicePointer(NULL, memory, 0), BAD);
	LOCAL(cuMemHostGetDevicePointer(&pointer, (void *)0x1234, 0), BAD);
	/* Copies with it go by the device. */
	CUdeviceptr device = memory_of(64, 11);
	IS(cuMemcpyDtoH(memory, device, 4), CUDA_SUCCESS);
	IS(memory[0], 11);
	IS(cuMemFree(device), CUDA_SUCCESS);
	IS(cuMemFreeHost(memory), CUDA_SUCCESS);
	IS(cuMemFreeHost(other), CUDA_SUCCESS);
}

UNIT_SUITE(mapped, {"kernel", test_kernel})
