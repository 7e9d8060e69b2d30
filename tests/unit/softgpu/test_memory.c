/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/memory/memory.c: allocation and its bounds, copies, sets, host memory, pointer
 * attributes.
 */
#include "soft_test.h"

static void test_bounds(void)
{
	test_context();
	size_t before, after, total;
	OK(cuMemGetInfo(&before, &total));
	CU_ASSERT_EQUAL(total, 64u << 20);
	CU_ASSERT_EQUAL(before, total);
	CUdeviceptr list[16];
	int n = 0;
	CUresult result = CUDA_SUCCESS;
	while (n < 16 && (result = cuMemAlloc(&list[n], 8 << 20)) == CUDA_SUCCESS)
		n++;
	CU_ASSERT_EQUAL(n, 8);
	CU_ASSERT_EQUAL(result, CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemGetInfo(&after, &total));
	CU_ASSERT_EQUAL(after, 0);
	for (int i = 0; i < n; i++)
		OK(cuMemFree(list[i]));
	OK(cuMemGetInfo(&after, &total));
	CU_ASSERT_EQUAL(after, before);
	CHECK_RESULT(cuMemFree(list[0]), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemAlloc(&list[0], 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemAlloc(&list[0], SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemFree(0));
}

static void test_never_anothers(void)
{
	test_context();
	static unsigned char bytes[1 << 20];
	for (int round = 0; round < 4; round++) {
		CUdeviceptr p;
		OK(cuMemAlloc(&p, sizeof(bytes)));
		OK(cuMemcpyDtoH(bytes, p, sizeof(bytes)));
		size_t dirty = 0;
		for (size_t i = 0; i < sizeof(bytes); i++)
			dirty += bytes[i] != 0;
		CU_ASSERT_EQUAL(dirty, 0);
		OK(cuMemsetD8(p, 0xab, sizeof(bytes)));
		OK(cuMemFree(p));
	}
}

static void test_copies(void)
{
	test_context();
	CUdeviceptr a, b;
	static unsigned char in[100000], out[100000];
	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (unsigned char)(i * 7 + i / 251);
	OK(cuMemAlloc(&a, sizeof(in)));
	OK(cuMemAlloc(&b, sizeof(in)));
	OK(cuMemcpyHtoD(a, in, sizeof(in)));
	OK(cuMemcpyDtoD(b, a, sizeof(in)));
	OK(cuMemcpyDtoH(out, b, sizeof(in)));
	CU_ASSERT_EQUAL(memcmp(in, out, sizeof(in)), 0);
	memset(out, 0, sizeof(out));
	OK(cuMemcpy((CUdeviceptr)(uintptr_t)out, a, sizeof(in)));
	CU_ASSERT_EQUAL(memcmp(in, out, sizeof(in)), 0);
	/* A page past the end is not the program's. */
	CHECK_RESULT(cuMemcpyHtoD(a + sizeof(in), in, 8192), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemcpyDtoH(out, 0x1000, 4), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemcpyDtoH(out, 0xffffffffffff0000, 4), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemcpyHtoD(0, in, 4), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(b));
	CHECK_RESULT(cuMemcpyDtoH(out, b, 4), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemcpy((CUdeviceptr)(uintptr_t)out, b, 4), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemcpyHtoD(a, in, 0));
	OK(cuMemFree(a));
}

static void test_2d(void)
{
	test_context();
	CUdeviceptr p;
	size_t pitch;
	OK(cuMemAllocPitch(&p, &pitch, 100, 10, 4));
	CU_ASSERT_EQUAL(pitch, 512);
	unsigned char in[10][100], out[10][100];
	for (int y = 0; y < 10; y++)
		for (int x = 0; x < 100; x++)
			in[y][x] = (unsigned char)(y * 100 + x);
	CUDA_MEMCPY2D up = {.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = in,
		.srcPitch = 100,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = p,
		.dstPitch = pitch,
		.WidthInBytes = 100,
		.Height = 10};
	OK(cuMemcpy2D(&up));
	/* A window of 20 x 5 from (10, 3) to (1, 2). */
	memset(out, 0, sizeof(out));
	CUDA_MEMCPY2D down = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = p,
		.srcPitch = pitch,
		.srcXInBytes = 10,
		.srcY = 3,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = out,
		.dstPitch = 100,
		.dstXInBytes = 1,
		.dstY = 2,
		.WidthInBytes = 20,
		.Height = 5};
	OK(cuMemcpy2DUnaligned(&down));
	int wrong = 0;
	for (int y = 0; y < 10; y++)
		for (int x = 0; x < 100; x++) {
			bool inside = x >= 1 && x < 21 && y >= 2 && y < 7;
			wrong += out[y][x] != (inside ? in[y + 1][x + 9] : 0);
		}
	CU_ASSERT_EQUAL(wrong, 0);
	down.srcPitch = 15;
	CHECK_RESULT(cuMemcpy2D(&down), CUDA_ERROR_INVALID_VALUE);
	/* 3D: the second slice of two. */
	CUDA_MEMCPY3D box = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = p,
		.srcPitch = pitch,
		.srcHeight = 5,
		.srcZ = 1,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = out,
		.dstPitch = 100,
		.dstHeight = 5,
		.WidthInBytes = 100,
		.Height = 5,
		.Depth = 1};
	OK(cuMemcpy3D(&box));
	CU_ASSERT_EQUAL(memcmp(out[0], in[5], 500), 0);
	OK(cuMemFree(p));
}

static void test_sets(void)
{
	test_context();
	CUdeviceptr p;
	OK(cuMemAlloc(&p, 4096));
	uint32_t words[1024];
	OK(cuMemsetD8(p, 0, 4096));
	OK(cuMemsetD32(p + 4, 0x01020304, 3));
	OK(cuMemsetD16(p + 32, 0xbeef, 2));
	OK(cuMemsetD2D32(p + 1024, 256, 9, 2, 3));
	OK(cuMemsetD32Async(p + 64, 5, 1, 0));
	OK(cuMemcpyDtoH(words, p, 4096));
	CU_ASSERT_EQUAL(words[0], 0);
	CU_ASSERT_EQUAL(words[1], 0x01020304);
	CU_ASSERT_EQUAL(words[3], 0x01020304);
	CU_ASSERT_EQUAL(words[4], 0);
	CU_ASSERT_EQUAL(words[8], 0xbeefbeef);
	CU_ASSERT_EQUAL(words[16], 5);
	CU_ASSERT_EQUAL(words[256 + 2 * 64 + 1], 9);
	CU_ASSERT_EQUAL(words[256 + 2 * 64 + 2], 0);
	CU_ASSERT_EQUAL(words[256 + 3 * 64], 0);
	CHECK_RESULT(cuMemsetD32(p + 1, 0, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemsetD32(p, 0, 1025), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemsetD32(p, 0, SIZE_MAX / 2), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(p));
}

static void test_host(void)
{
	test_context();
	void *p;
	CUdeviceptr d;
	unsigned flags = 0;
	OK(cuMemHostAlloc(&p, 5000, CU_MEMHOSTALLOC_PORTABLE));
	OK(cuMemHostGetDevicePointer(&d, p, 0));
	CU_ASSERT_EQUAL(d, (CUdeviceptr)(uintptr_t)p);
	OK(cuMemHostGetFlags(&flags, p));
	CU_ASSERT_EQUAL(flags, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
	unsigned type = 0;
	OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, d + 4999));
	CU_ASSERT_EQUAL(type, CU_MEMORYTYPE_HOST);
	OK(cuMemFreeHost(p));
	CHECK_RESULT(cuMemFreeHost(p), CUDA_ERROR_INVALID_VALUE);
	/* Two registrations that share a page: dropping one leaves the other's bytes reachable. */
	char *block = aligned_alloc(4096, 8192);
	memset(block, 3, 8192);
	OK(cuMemHostRegister(block, 4000, 0));
	OK(cuMemHostRegister(block + 4000, 4000, 0));
	CHECK_RESULT(
		cuMemHostRegister(block + 100, 10, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	OK(cuMemHostUnregister(block));
	CHECK_RESULT(cuMemHostUnregister(block), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	CUdeviceptr shared = (CUdeviceptr)(uintptr_t)block;
	OK(cuMemsetD8(shared + 4000, 1, 96));
	OK(cuMemHostUnregister(block + 4000));
	CHECK_RESULT(cuMemsetD8(shared + 4000, 1, 96), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(
		cuMemHostRegister((void *)(uintptr_t)0x10000, 4096, 0), CUDA_ERROR_INVALID_VALUE);
	free(block);
}

static void test_pointers(void)
{
	CUcontext context = test_context(), of = NULL;
	CUdeviceptr p, base;
	size_t size;
	OK(cuMemAlloc(&p, 1000));
	OK(cuMemGetAddressRange(&base, &size, p + 999));
	CU_ASSERT_EQUAL(base, p);
	CU_ASSERT_EQUAL(size, 1000);
	CHECK_RESULT(cuMemGetAddressRange(&base, &size, p + 1000), CUDA_ERROR_NOT_FOUND);
	OK(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, p));
	CU_ASSERT_PTR_EQUAL(of, context);
	unsigned type = 77;
	int ordinal = 77, local;
	CUpointer_attribute names[] = {
		CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
	void *values[] = {&type, &ordinal};
	OK(cuPointerGetAttributes(2, names, values, (CUdeviceptr)(uintptr_t)&local));
	CU_ASSERT_EQUAL(type, 0);
	CU_ASSERT_EQUAL(ordinal, -2);
	CHECK_RESULT(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
			     (CUdeviceptr)(uintptr_t)&local),
		CUDA_ERROR_INVALID_VALUE);
	CUdeviceptr managed;
	unsigned is_managed = 0;
	OK(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
	*(int *)(uintptr_t)managed = 42;
	OK(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed));
	CU_ASSERT_EQUAL(is_managed, 1);
	OK(cuMemFree(managed));
	OK(cuMemFree(p));
}

/* Everything goes with the context. */
static void test_context_end(void)
{
	test_context();
	CUcontext mine;
	size_t left, total;
	CUdeviceptr p;
	OK(cuCtxCreate(&mine, NULL, 0, 0));
	OK(cuMemAlloc(&p, 10 << 20));
	OK(cuCtxDestroy(mine));
	CHECK_RESULT(cuCtxDestroy(mine), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuMemGetInfo(&left, &total));
	CU_ASSERT_EQUAL(left, total);
	CHECK_RESULT(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
	OK(cuDevicePrimaryCtxRelease(0));
	CHECK_RESULT(cuMemAlloc(&p, 1), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	CHECK_RESULT(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
}

int main(void)
{
	setenv("CRICKET_SOFT_DEVICES", "12.0:64M", 1);
	static const struct soft_test tests[] = {
		{"bounds", test_bounds},
		{"never another's bytes", test_never_anothers},
		{"copies", test_copies},
		{"2D and 3D", test_2d},
		{"sets", test_sets},
		{"host memory", test_host},
		{"pointers", test_pointers},
		{"context's end", test_context_end},
	};
	return RUN_TESTS("soft memory", tests);
}
