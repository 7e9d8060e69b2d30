/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/memory/host.c: pinned and registered memory: flags, bounds, and which of the two a
 * pointer is.
 */
#include "files.h"

static void test_alloc(void)
{
	static const struct {
		size_t size;
		unsigned flags;
		CUresult result;
	} table[] = {
		{1, 0, CUDA_SUCCESS},
		{4097, CU_MEMHOSTALLOC_PORTABLE, CUDA_SUCCESS},
		{1, CU_MEMHOSTALLOC_WRITECOMBINED, CUDA_SUCCESS},
		{1, 7, CUDA_SUCCESS},
		{1, 8, CUDA_ERROR_INVALID_VALUE},
		{0, 8, CUDA_ERROR_INVALID_VALUE},
		{SIZE_MAX, 0, CUDA_ERROR_OUT_OF_MEMORY},
		{SIZE_MAX - 4096, 0, CUDA_ERROR_OUT_OF_MEMORY},
		{1ull << 62, 0, CUDA_ERROR_OUT_OF_MEMORY},
	};
	test_context();
	for (size_t i = 0; i < COUNT(table); i++) {
		void *p = NULL;
		unsigned flags = 0;
		CUdeviceptr d = 0;
		CHECK_RESULT(cuMemHostAlloc(&p, table[i].size, table[i].flags), table[i].result);
		if (table[i].result != CUDA_SUCCESS)
			continue;
		IS((uintptr_t)p % 4096, 0);
		OK(cuMemHostGetFlags(&flags, p));
		IS(flags, table[i].flags | CU_MEMHOSTALLOC_DEVICEMAP);
		OK(cuMemHostGetDevicePointer(&d, p, 0));
		IS(d, (uintptr_t)p);
		CHECK_RESULT(cuMemHostGetDevicePointer(&d, p, 1), CUDA_ERROR_INVALID_VALUE);
		CHECK_RESULT(cuMemHostGetDevicePointer(NULL, p, 0), CUDA_ERROR_INVALID_VALUE);
		CHECK_RESULT(cuMemFreeHost((char *)p + 1), CUDA_ERROR_INVALID_VALUE);
		CHECK_RESULT(cuMemHostUnregister(p), CUDA_ERROR_INVALID_VALUE);
		OK(cuMemFreeHost(p));
		CHECK_RESULT(cuMemHostGetFlags(&flags, p), CUDA_ERROR_INVALID_VALUE);
	}
	CHECK_RESULT(cuMemHostAlloc(NULL, 1, 0), CUDA_ERROR_INVALID_VALUE);
	/* Nothing is nothing, and can be freed. */
	void *none = &none;
	OK(cuMemHostAlloc(&none, 0, 0));
	CU_ASSERT_PTR_NULL(none);
	OK(cuMemFreeHost(NULL));
}

static void test_register(void)
{
	static _Alignas(4096) char memory[3 * 4096];
	char *p = memory + 100;
	unsigned flags = 0;
	CUdeviceptr d = 0;
	test_context();
	CHECK_RESULT(cuMemHostRegister(NULL, 1, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemHostRegister(p, 0, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemHostRegister(p, 1, 0x10), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemHostRegister(p, SIZE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemHostRegister((void *)(uintptr_t)(1ull << 60), 4096, 0),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(
		cuMemHostRegister(p, 1, CU_MEMHOSTREGISTER_READ_ONLY), CUDA_ERROR_NOT_SUPPORTED);
	CHECK_RESULT(
		cuMemHostRegister(p, 1, CU_MEMHOSTREGISTER_IOMEMORY), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuMemHostRegister(p, 5000, CU_MEMHOSTREGISTER_PORTABLE));
	CHECK_RESULT(cuMemHostRegister(p + 4999, 1, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	OK(cuMemHostRegister(p + 5000, 1, 0));
	OK(cuMemHostGetFlags(&flags, p + 4999));
	IS(flags, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
	OK(cuMemHostGetDevicePointer(&d, p + 7, 0));
	IS(d, (uintptr_t)p + 7);
	CHECK_RESULT(cuMemFreeHost(p), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemHostUnregister(p + 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemsetD8(d, 9, 10));
	IS(p[7], 9);
	OK(cuMemHostUnregister(p));
	CHECK_RESULT(cuMemHostUnregister(p), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	/* The bytes are the program's own still. */
	IS(p[16], 9);
	OK(cuMemHostUnregister(p + 5000));
}

/* Freeing waits for work that uses the memory, and the context's end takes what is left. */
static void test_end(void)
{
	uint32_t *p, *left;
	CUdeviceptr d;
	unsigned flags;
	test_context();
	OK(cuMemAlloc(&d, 1 << 20));
	OK(cuMemsetD32(d, 5, 1 << 18));
	OK(cuMemHostAlloc((void **)&p, 1 << 20, 0));
	OK(cuMemHostAlloc((void **)&left, 4096, 0));
	CUstream stream = files_gated();
	OK(cuMemcpyHtoDAsync(d, p, 1 << 20, stream));
	files_open();
	OK(cuMemFreeHost(p));
	OK(cuStreamQuery(stream));
	IS(files_word(d), 0);
	test_context();
	CHECK_RESULT(cuMemHostGetFlags(&flags, left), CUDA_ERROR_INVALID_VALUE);
}

UNIT_SUITE(softgpu / memory / host, {"alloc", test_alloc}, {"register", test_register},
	{"end", test_end})
