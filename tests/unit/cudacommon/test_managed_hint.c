/* SPDX-License-Identifier: Apache-2.0 */
/* cudacommon/managed_hint.c: advice and prefetches are checked as if they meant something. */
#include "../softgpu/files.h"

static void test_advice(void)
{
	CUdeviceptr p, plain;
	test_context();
	OK(cuMemAllocManaged(&p, 8192, CU_MEM_ATTACH_GLOBAL));
	OK(cuMemAlloc(&plain, 8192));
	const struct {
		CUdeviceptr at;
		size_t size;
		int advice;
		CUmemLocation where;
		CUresult result;
	} table[] = {
		{p, 8192, CU_MEM_ADVISE_SET_READ_MOSTLY, {.type = CU_MEM_LOCATION_TYPE_DEVICE},
			CUDA_SUCCESS},
		{p, 8192, CU_MEM_ADVISE_UNSET_READ_MOSTLY, {.type = CU_MEM_LOCATION_TYPE_INVALID},
			CUDA_SUCCESS},
		{p, 8192, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION,
			{.type = CU_MEM_LOCATION_TYPE_INVALID}, CUDA_SUCCESS},
		{p + 1, 8191, CU_MEM_ADVISE_SET_PREFERRED_LOCATION,
			{.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1}, CUDA_SUCCESS},
		{p, 1, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, {.type = CU_MEM_LOCATION_TYPE_HOST},
			CUDA_SUCCESS},
		{p, 1, CU_MEM_ADVISE_SET_PREFERRED_LOCATION,
			{.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 2}, CUDA_ERROR_INVALID_VALUE},
		{p, 1, CU_MEM_ADVISE_SET_ACCESSED_BY, {.type = CU_MEM_LOCATION_TYPE_INVALID},
			CUDA_ERROR_INVALID_VALUE},
		{p, 1, CU_MEM_ADVISE_UNSET_ACCESSED_BY,
			{.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 0}, CUDA_SUCCESS},
		{p + 1, 8192, CU_MEM_ADVISE_SET_READ_MOSTLY, {.type = CU_MEM_LOCATION_TYPE_DEVICE},
			CUDA_ERROR_INVALID_VALUE},
		{p, 0, CU_MEM_ADVISE_SET_READ_MOSTLY, {.type = CU_MEM_LOCATION_TYPE_DEVICE},
			CUDA_ERROR_INVALID_VALUE},
		{p, SIZE_MAX, CU_MEM_ADVISE_SET_READ_MOSTLY, {.type = CU_MEM_LOCATION_TYPE_DEVICE},
			CUDA_ERROR_INVALID_VALUE},
		{plain, 8192, CU_MEM_ADVISE_SET_READ_MOSTLY, {.type = CU_MEM_LOCATION_TYPE_DEVICE},
			CUDA_ERROR_INVALID_VALUE},
		{p, 8192, 77, {.type = CU_MEM_LOCATION_TYPE_DEVICE}, CUDA_ERROR_INVALID_VALUE},
	};
	for (size_t i = 0; i < COUNT(table); i++)
		CHECK_RESULT(cuMemAdvise(table[i].at, table[i].size, (CUmem_advise)table[i].advice,
				     table[i].where),
			table[i].result);
	OK(cuMemFree(p));
	OK(cuMemFree(plain));
}

static void test_prefetch(void)
{
	CUdeviceptr p;
	CUmemLocation host = {.type = CU_MEM_LOCATION_TYPE_HOST},
		      none = {.type = CU_MEM_LOCATION_TYPE_INVALID},
		      device = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
		      absent = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = -1};
	test_context();
	OK(cuMemAllocManaged(&p, 8192, CU_MEM_ATTACH_HOST));
	*(int *)(uintptr_t)p = 42;
	OK(cuMemPrefetchAsync(p, 8192, device, 0, NULL));
	OK(cuMemPrefetchAsync(p, 1, host, 0, NULL));
	CHECK_RESULT(cuMemPrefetchAsync(p, 8192, device, 1, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemPrefetchAsync(p, 8193, device, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemPrefetchAsync(p, 8192, none, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemPrefetchAsync(p, 8192, absent, 0, NULL), CUDA_ERROR_INVALID_DEVICE);
	CHECK_RESULT(cuMemPrefetchAsync(p, 8192, device, 0, (CUstream)(uintptr_t)0x1230),
		CUDA_ERROR_INVALID_HANDLE);
	IS(files_word(p), 42);
	OK(cuMemFree(p));
	CHECK_RESULT(cuMemPrefetchAsync(p, 8192, device, 0, NULL), CUDA_ERROR_INVALID_VALUE);
}

UNIT_SUITE(cudacommon / managed_hint, {"advice", test_advice}, {"prefetch", test_prefetch})
