/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/memory/host.c: host memory: pinned here, known by its range, none of the GPU's
 * machine's business.
 */
#include <stdlib.h>

#include "relay.h"

static void test_pinned(void)
{
	void *memory = NULL, *none = (void *)1;
	unsigned flags;
	LOCAL(cuMemHostAlloc(&none, 0, 0), CUDA_SUCCESS);
	CU_ASSERT_PTR_NULL(none);
	LOCAL(cuMemHostAlloc(&none, 64, 0x100), BAD);
	LOCAL(cuMemHostAlloc(NULL, 64, 0), BAD);
	IS(cuMemHostAlloc(&memory, 10000, CU_MEMHOSTALLOC_PORTABLE), CUDA_SUCCESS);
	((char *)memory)[9999] = 5;
	LOCAL(cuMemHostGetFlags(&flags, memory), CUDA_SUCCESS);
	IS(flags, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
	LOCAL(cuMemHostRegister(memory, 64, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	LOCAL(cuMemFreeHost((char *)memory + 8), BAD);
	IS(cuMemFreeHost(memory), CUDA_SUCCESS);
	LOCAL(cuMemFreeHost(memory), BAD);
	LOCAL(cuMemFreeHost(NULL), CUDA_SUCCESS);
}

static void test_registered(void)
{
	char *memory = aligned_alloc(4096, 8192);
	CUdeviceptr pointer;
	unsigned flags;
	LOCAL(cuMemHostRegister(memory, 8192, 0), CUDA_SUCCESS);
	LOCAL(cuMemHostRegister(memory + 4096, 10, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	/* Into what is registered, from before it. */
	LOCAL(cuMemHostRegister(memory - 4096, 4097, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	LOCAL(cuMemHostRegister(NULL, 10, 0), BAD);
	LOCAL(cuMemHostRegister(memory, 0, 0), BAD);
	LOCAL(cuMemHostRegister(memory, 10, 0x80), BAD);
	LOCAL(cuMemHostGetDevicePointer(&pointer, memory, 1), BAD);
	LOCAL(cuMemHostGetFlags(&flags, memory), CUDA_SUCCESS);
	IS(flags, CU_MEMHOSTREGISTER_DEVICEMAP);
	LOCAL(cuMemHostUnregister(memory + 8), BAD);
	LOCAL(cuMemHostUnregister(memory), CUDA_SUCCESS);
	LOCAL(cuMemHostUnregister(memory), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	free(memory);
}

UNIT_SUITE(host, {"pinned", test_pinned}, {"registered", test_registered})
