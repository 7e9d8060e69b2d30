/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/memory/vmm.c: virtual memory management. */
#include <unistd.h>

#include "soft_test.h"

enum { PIECE = 2 << 20 };
static const CUmemAllocationProp plain = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static const CUmemAccessDesc open_access = {
	{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
static const CUmemAccessDesc read_access = {
	{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READ};

/* Where ThreadSanitizer leaves room for so large a range. */
#ifdef __SANITIZE_THREAD__
static const CUdeviceptr wish = 0x7e8000000000ull;
static const size_t wish_size = 256ull << 30;
#else
static const CUdeviceptr wish = 0x200000000000ull;
static const size_t wish_size = 4ull << 40;
#endif

static void test_reserve(void)
{
	test_context();
	CUdeviceptr window, other;
	OK(cuMemAddressReserve(&window, wish_size, 0, wish, 0));
	CU_ASSERT_EQUAL(window, wish);
	/* Taken: the address is only a hint. */
	OK(cuMemAddressReserve(&other, PIECE, 0, wish, 0));
	CU_ASSERT_NOT_EQUAL(other, wish);
	CU_ASSERT_EQUAL(other % PIECE, 0);
	OK(cuMemAddressFree(other, PIECE));
	OK(cuMemAddressReserve(&other, PIECE, 1ull << 30, 0, 0));
	CU_ASSERT_EQUAL(other % (1ull << 30), 0);
	OK(cuMemAddressFree(other, PIECE));
	CHECK_RESULT(cuMemAddressFree(other, PIECE), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemAddressReserve(&other, 4096, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemAddressFree(window, wish_size));
}

static void test_map(void)
{
	test_context();
	size_t granularity, left, total;
	OK(cuMemGetAllocationGranularity(&granularity, &plain, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	CU_ASSERT_EQUAL(granularity, PIECE);
	CUdeviceptr va;
	CUmemGenericAllocationHandle handle, again;
	int in = 4711, out = 0;
	OK(cuMemAddressReserve(&va, 4 * PIECE, 0, 0, 0));
	CHECK_RESULT(cuMemcpyHtoD(va, &in, 4), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemCreate(&handle, PIECE, &plain, 0));
	OK(cuMemMap(va, PIECE, 0, handle, 0));
	CHECK_RESULT(cuMemMap(va, PIECE, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemcpyHtoD(va, &in, 4), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemSetAccess(va, PIECE, &open_access, 1));
	CHECK_RESULT(cuMemSetAccess(va, 2 * PIECE, &open_access, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemcpyHtoD(va, &in, 4));
	/* The same memory at a second address. */
	OK(cuMemMap(va + 2 * PIECE, PIECE, 0, handle, 0));
	OK(cuMemSetAccess(va + 2 * PIECE, PIECE, &read_access, 1));
	OK(cuMemcpyDtoH(&out, va + 2 * PIECE, 4));
	CU_ASSERT_EQUAL(out, in);
	CHECK_RESULT(cuMemcpyHtoD(va + 2 * PIECE, &in, 4), CUDA_ERROR_INVALID_VALUE);
	unsigned long long flags = 0;
	OK(cuMemGetAccess(&flags, &open_access.location, va + 2 * PIECE + 5));
	CU_ASSERT_EQUAL(flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
	OK(cuMemUnmap(va + 2 * PIECE, PIECE));
	/* Unmapped and mapped again keeps its contents. */
	OK(cuMemUnmap(va, PIECE));
	CHECK_RESULT(cuMemcpyDtoH(&out, va, 4), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemUnmap(va, PIECE)); /* nothing is mapped there */
	CHECK_RESULT(cuMemUnmap(va - PIECE, PIECE), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemMap(va, PIECE, 0, handle, 0));
	OK(cuMemSetAccess(va, PIECE, &open_access, 1));
	out = 0;
	OK(cuMemcpyDtoH(&out, va, 4));
	CU_ASSERT_EQUAL(out, in);
	/* A released handle's memory lives while it is mapped, and its handle can be had back. */
	OK(cuMemRelease(handle));
	CHECK_RESULT(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemcpyDtoH(&out, va, 4));
	OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(va + 100)));
	OK(cuMemUnmap(va, PIECE));
	OK(cuMemMap(va + PIECE, PIECE, 0, again, 0));
	OK(cuMemSetAccess(va + PIECE, PIECE, &open_access, 1));
	OK(cuMemcpyDtoH(&out, va + PIECE, 4));
	CU_ASSERT_EQUAL(out, in);
	CHECK_RESULT(cuMemAddressFree(va, 4 * PIECE), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemUnmap(va + PIECE, PIECE));
	OK(cuMemGetInfo(&left, &total));
	CU_ASSERT_EQUAL(total - left, PIECE);
	OK(cuMemRelease(again));
	OK(cuMemGetInfo(&left, &total));
	CU_ASSERT_EQUAL(total, left);
	OK(cuMemAddressFree(va, 4 * PIECE));
}

static void test_bounds(void)
{
	test_context();
	CUmemGenericAllocationHandle list[40];
	int n = 0;
	CUresult result = CUDA_SUCCESS;
	while (n < 40 && (result = cuMemCreate(&list[n], PIECE, &plain, 0)) == CUDA_SUCCESS)
		n++;
	CU_ASSERT_EQUAL(n, 32);
	CU_ASSERT_EQUAL(result, CUDA_ERROR_OUT_OF_MEMORY);
	CUdeviceptr p;
	CHECK_RESULT(cuMemAlloc(&p, 1), CUDA_ERROR_OUT_OF_MEMORY);
	while (n)
		OK(cuMemRelease(list[--n]));
	OK(cuMemAlloc(&p, 1));
	OK(cuMemFree(p));
}

/* Neighbouring pieces are one range for a copy, and new physical memory is zero. */
static void test_pieces(void)
{
	test_context();
	CUdeviceptr va;
	CUmemGenericAllocationHandle handles[2];
	static unsigned char bytes[2 * PIECE];
	OK(cuMemAddressReserve(&va, 2 * PIECE, 0, 0, 0));
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 2; i++) {
			OK(cuMemCreate(&handles[i], PIECE, &plain, 0));
			OK(cuMemMap(va + (unsigned)i * PIECE, PIECE, 0, handles[i], 0));
		}
		OK(cuMemSetAccess(va, 2 * PIECE, &open_access, 1));
		OK(cuMemcpyDtoH(bytes, va, 2 * PIECE));
		size_t dirty = 0;
		for (size_t i = 0; i < sizeof(bytes); i++)
			dirty += bytes[i] != 0;
		CU_ASSERT_EQUAL(dirty, 0);
		OK(cuMemsetD8(va, 0x5a, 2 * PIECE));
		OK(cuMemUnmap(va, 2 * PIECE));
		for (int i = 0; i < 2; i++)
			OK(cuMemRelease(handles[i]));
	}
	OK(cuMemAddressFree(va, 2 * PIECE));
}

static void test_export(void)
{
	test_context();
	CUmemAllocationProp prop = plain;
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	CUmemGenericAllocationHandle handle, imported, closed;
	CUdeviceptr va;
	int fd = -1, in = 99, out = 0;
	OK(cuMemCreate(&closed, PIECE, &plain, 0));
	CHECK_RESULT(cuMemExportToShareableHandle(
			     &fd, closed, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuMemRelease(closed));
	OK(cuMemCreate(&handle, PIECE, &prop, 0));
	OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	OK(cuMemImportFromShareableHandle(
		&imported, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	close(fd);
	OK(cuMemAddressReserve(&va, 2 * PIECE, 0, 0, 0));
	OK(cuMemMap(va, PIECE, 0, handle, 0));
	OK(cuMemMap(va + PIECE, PIECE, 0, imported, 0));
	OK(cuMemSetAccess(va, 2 * PIECE, &open_access, 1));
	OK(cuMemcpyHtoD(va, &in, 4));
	OK(cuMemcpyDtoH(&out, va + PIECE, 4));
	CU_ASSERT_EQUAL(out, in);
	OK(cuMemUnmap(va, 2 * PIECE));
	OK(cuMemRelease(handle));
	OK(cuMemRelease(imported));
	OK(cuMemAddressFree(va, 2 * PIECE));
}

/* A kernel obeys the access rights, too. */
static void test_kernel(void)
{
	test_context();
	CUfunction touch = test_function("touch");
	CUdeviceptr va;
	CUmemGenericAllocationHandle handle;
	int out = 0;
	OK(cuMemAddressReserve(&va, PIECE, 0, 0, 0));
	OK(cuMemCreate(&handle, PIECE, &plain, 0));
	OK(cuMemMap(va, PIECE, 0, handle, 0));
	OK(cuMemSetAccess(va, PIECE, &open_access, 1));
	void *params[] = {&va};
	OK(cuLaunchKernel(touch, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	OK(cuMemcpyDtoH(&out, va, 4));
	CU_ASSERT_EQUAL(out, 1);
	OK(cuMemSetAccess(va, PIECE, &read_access, 1));
	OK(cuLaunchKernel(touch, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	CHECK_RESULT(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	OK(cuMemUnmap(va, PIECE));
	OK(cuMemRelease(handle));
	OK(cuMemAddressFree(va, PIECE));
}

int main(void)
{
	setenv("CRICKET_SOFT_DEVICES", "12.0:64M", 1);
	static const struct soft_test tests[] = {
		{"reserve", test_reserve},
		{"map", test_map},
		{"bounds", test_bounds},
		{"pieces", test_pieces},
		{"export", test_export},
		{"kernel", test_kernel},
	};
	return RUN_TESTS("soft vmm", tests);
}
