/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/memory/memset.c: units, rows, bounds, and nothing beside what was asked for. */
#include "files.h"

enum { SIZE = 2048 };

static CUdeviceptr memory;

/* Does it with the library and by hand, and compares every byte. */
static void both(unsigned unit, size_t offset, size_t pitch, uint32_t value, size_t width,
	size_t height, bool async)
{
	static unsigned char have[SIZE], want[SIZE];
	CUdeviceptr at = memory + offset;
	CUresult result;
	memset(want, 0x77, SIZE);
	OK(cuMemcpyHtoD(memory, want, SIZE));
	for (size_t y = 0; y < height; y++)
		for (size_t x = 0; x < width; x++)
			memcpy(want + offset + y * pitch + x * unit, &value, unit);
	if (height == 1 && !async)
		result = unit == 1  ? cuMemsetD8(at, (unsigned char)value, width)
			: unit == 2 ? cuMemsetD16(at, (unsigned short)value, width)
				    : cuMemsetD32(at, value, width);
	else if (height == 1)
		result = unit == 1  ? cuMemsetD8Async(at, (unsigned char)value, width, NULL)
			: unit == 2 ? cuMemsetD16Async(at, (unsigned short)value, width, NULL)
				    : cuMemsetD32Async(at, value, width, NULL);
	else if (!async)
		result = unit == 1  ? cuMemsetD2D8(at, pitch, (unsigned char)value, width, height)
			: unit == 2 ? cuMemsetD2D16(at, pitch, (unsigned short)value, width, height)
				    : cuMemsetD2D32(at, pitch, value, width, height);
	else
		result = unit == 1
			? cuMemsetD2D8Async(at, pitch, (unsigned char)value, width, height, NULL)
			: unit == 2
			? cuMemsetD2D16Async(at, pitch, (unsigned short)value, width, height, NULL)
			: cuMemsetD2D32Async(at, pitch, value, width, height, NULL);
	OK(result);
	OK(cuMemcpyDtoH(have, memory, SIZE));
	IS(memcmp(have, want, SIZE), 0);
}

static void test_forms(void)
{
	static const uint32_t values[] = {0, 0xffffffff, 0x01020304, 0xabababab, 0x00ab00ab};
	test_context();
	OK(cuMemAlloc(&memory, SIZE));
	for (unsigned unit = 1; unit <= 4; unit *= 2)
		for (size_t v = 0; v < COUNT(values); v++)
			for (int async = 0; async < 2; async++) {
				both(unit, 4 * unit, 0, values[v], 17, 1, async);
				both(unit, 0, 32 * unit, values[v], 9, 7, async);
				both(unit, 0, 3 * unit, values[v], 3, 5, async);
				both(unit, SIZE - unit, 0, values[v], 1, 1, async);
				both(unit, 0, 4 * unit, values[v], 0, 3, async);
				both(unit, 0, 0, values[v], 0, 1, async);
			}
	OK(cuMemFree(memory));
}

static void test_refused(void)
{
	test_context();
	OK(cuMemAlloc(&memory, SIZE));
	CHECK_RESULT(cuMemsetD16(memory + 1, 0, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemsetD32(memory + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemsetD2D32(memory, 9, 0, 1, 2), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemsetD2D32(memory, 9, 0, 1, 1)); /* the pitch of one row does not matter */
	CHECK_RESULT(cuMemsetD2D8(memory, 8, 0, 9, 2), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemsetD8(memory, 0, SIZE + 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemsetD2D8(memory, SIZE, 0, 1, 2), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemsetD32(memory, 0, SIZE_MAX / 4 + 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemsetD2D8(memory, SIZE_MAX / 2, 0, 1, 4), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemsetD8(0, 0, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemsetD8Async(memory, 0, 1, (CUstream)(uintptr_t)0x1230),
		CUDA_ERROR_INVALID_HANDLE);
	OK(cuMemsetD8(0, 0, 0));
	OK(cuMemFree(memory));
}

UNIT_SUITE(softgpu / memory / memset, {"forms", test_forms}, {"refused", test_refused})
