/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudacommon/managed_hint.c through the client: hints about managed memory: checked as CUDA checks
 * them, and nothing travels.
 */
#include "relay.h"

static void test_hints(void)
{
	CUdeviceptr memory, plain = memory_of(4096, 0);
	CUmemLocation device = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
		      none = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 77},
		      host = {.type = CU_MEM_LOCATION_TYPE_HOST};
	MUST(cuMemAllocManaged(&memory, 1 << 20, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
	LOCAL(cuMemPrefetchAsync(memory, 4096, device, 0, NULL), CUDA_SUCCESS);
	LOCAL(cuMemPrefetchAsync(memory, 4096, host, 0, NULL), CUDA_SUCCESS);
	LOCAL(cuMemPrefetchAsync(memory, 4096, device, 1, NULL), BAD);
	LOCAL(cuMemPrefetchAsync(memory, 4096, none, 0, NULL), CUDA_ERROR_INVALID_DEVICE);
	LOCAL(cuMemPrefetchAsync(memory, 0, device, 0, NULL), BAD);
	LOCAL(cuMemPrefetchAsync(memory + 4096, 1 << 20, device, 0, NULL), BAD);
	LOCAL(cuMemPrefetchAsync(plain, 4096, device, 0, NULL), BAD);
	LOCAL(cuMemPrefetchAsync(memory, 4096, device, 0, (CUstream)0x1234),
		CUDA_ERROR_INVALID_HANDLE);
	LOCAL(cuMemAdvise(memory, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, device), CUDA_SUCCESS);
	LOCAL(cuMemAdvise(memory, 4096, (CUmem_advise)99, device), BAD);
	LOCAL(cuMemAdvise(memory, 4096, CU_MEM_ADVISE_SET_ACCESSED_BY, none), BAD);
	LOCAL(cuMemAdvise(plain, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, device), BAD);
	CUstream stream;
	IS(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
	LOCAL(cuStreamAttachMemAsync(stream, memory, 0, CU_MEM_ATTACH_SINGLE), CUDA_SUCCESS);
	LOCAL(cuStreamAttachMemAsync(stream, memory + 4, 0, CU_MEM_ATTACH_SINGLE), BAD);
	/* all or nothing */
	LOCAL(cuStreamAttachMemAsync(stream, memory, 4096, CU_MEM_ATTACH_SINGLE), BAD);
	LOCAL(cuStreamAttachMemAsync(stream, memory, 0, 9), BAD);
	size_t size = 4096, index = 0;
	LOCAL(cuMemPrefetchBatchAsync(&memory, &size, 1, &device, &index, 1, 0, stream),
		CUDA_SUCCESS);
	LOCAL(cuMemPrefetchBatchAsync(&memory, &size, 1, &device, &index, 1, 0, NULL), BAD);
	LOCAL(cuMemPrefetchBatchAsync(&memory, &size, 1, &device, &index, 2, 0, stream), BAD);
	LOCAL(cuMemDiscardBatchAsync(&memory, &size, 1, 0, stream), CUDA_SUCCESS);
	LOCAL(cuMemDiscardBatchAsync(&plain, &size, 1, 0, stream), BAD);
	IS(cuStreamDestroy(stream), CUDA_SUCCESS);
	IS(cuMemFree(memory), CUDA_SUCCESS);
	IS(cuMemFree(plain), CUDA_SUCCESS);
}

UNIT_SUITE(managed_hint, {"hints", test_hints})
