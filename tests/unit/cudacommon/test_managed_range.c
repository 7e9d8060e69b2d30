/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudacommon/managed_range.c: what was advised is told for every range of which all holds it, and
 * forgotten with the memory.
 */
#include "../softgpu/files.h"

static int ask(CUdeviceptr address, size_t size, CUmem_range_attribute attribute)
{
	int value = 99;
	OK(cuMemRangeGetAttribute(&value, sizeof value, attribute, address, size));
	return value;
}

static void test_parts(void)
{
	enum { SIZE = 1 << 16, STEP = SIZE / 8 };
	CUmemLocation device = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
		      host = {.type = CU_MEM_LOCATION_TYPE_HOST};
	bool mostly[SIZE / STEP] = {0};
	CUdeviceptr p;
	unsigned wrong = 0;
	test_context();
	OK(cuMemAllocManaged(&p, SIZE, CU_MEM_ATTACH_GLOBAL));
	/* Parts in an order that splits and joins them. */
	static const struct {
		unsigned first, count;
		bool on;
	} steps[] = {{2, 3, true}, {3, 1, false}, {0, 8, true}, {6, 2, false}, {5, 2, true},
		{0, 1, false}};
	for (size_t i = 0; i < COUNT(steps); i++) {
		OK(cuMemAdvise(p + steps[i].first * STEP, steps[i].count * STEP,
			steps[i].on ? CU_MEM_ADVISE_SET_READ_MOSTLY
				    : CU_MEM_ADVISE_UNSET_READ_MOSTLY,
			device));
		for (unsigned k = 0; k < steps[i].count; k++)
			mostly[steps[i].first + k] = steps[i].on;
		for (unsigned first = 0; first < COUNT(mostly); first++) {
			bool all = true;
			for (unsigned end = first; end < COUNT(mostly); end++) {
				all &= mostly[end];
				wrong += ask(p + first * STEP, (end + 1 - first) * STEP,
						 CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) != all;
			}
		}
	}
	IS(wrong, 0);
	OK(cuMemPrefetchAsync(p, SIZE / 2, host, 0, NULL));
	IS(ask(p, SIZE / 2, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION), CU_DEVICE_CPU);
	IS(ask(p, SIZE, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION), CU_DEVICE_INVALID);
	int list[3] = {7, 7, 7};
	OK(cuMemAdvise(p, SIZE, CU_MEM_ADVISE_SET_ACCESSED_BY, host));
	OK(cuMemRangeGetAttribute(list, sizeof list, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, SIZE));
	IS(list[0], CU_DEVICE_CPU);
	IS(list[1], CU_DEVICE_INVALID);
	CHECK_RESULT(cuMemRangeGetAttribute(list, 5, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, p, SIZE),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(
		cuMemRangeGetAttribute(list, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, p, SIZE + 1),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(p));
	/* The next at these addresses has been told nothing. */
	CUdeviceptr again;
	OK(cuMemAllocManaged(&again, SIZE, CU_MEM_ATTACH_GLOBAL));
	IS(again, p);
	IS(ask(again, SIZE, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), 0);
	IS(ask(again, STEP, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION), CU_DEVICE_INVALID);
	OK(cuMemFree(again));
}

UNIT_SUITE(cudacommon / managed_range, {"parts", test_parts})
