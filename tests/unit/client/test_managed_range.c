/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudacommon/managed_range.c through the client: what was advised about managed memory, range by
 * range.
 */
#include "relay.h"

static int ask(CUdeviceptr address, size_t size, CUmem_range_attribute attribute)
{
	int value = 99;
	relay_mark();
	IS(cuMemRangeGetAttribute(&value, sizeof value, attribute, address, size), CUDA_SUCCESS);
	relay_settle();
	IS(relay_waited + relay_batched, 0);
	return value;
}

static void test_ranges(void)
{
	CUdeviceptr memory;
	CUmemLocation device = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
	int value;
	MUST(cuMemAllocManaged(&memory, 1 << 20, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
	IS(ask(memory, 1 << 20, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), 0);
	IS(ask(memory, 1 << 20, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), CU_DEVICE_INVALID);
	/* A part of it: the whole has it only where all of it has. */
	IS(cuMemAdvise(memory, 1 << 19, CU_MEM_ADVISE_SET_READ_MOSTLY, device), CUDA_SUCCESS);
	IS(ask(memory, 1 << 19, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), 1);
	IS(ask(memory, 1 << 20, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), 0);
	IS(cuMemAdvise(memory + (1 << 19), 1 << 19, CU_MEM_ADVISE_SET_READ_MOSTLY, device),
		CUDA_SUCCESS);
	IS(ask(memory, 1 << 20, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), 1);
	IS(cuMemAdvise(memory, 1 << 20, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device),
		CUDA_SUCCESS);
	IS(ask(memory, 4096, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION), 0);
	IS(cuMemPrefetchAsync(memory, 1 << 20, device, 0, NULL), CUDA_SUCCESS);
	IS(ask(memory, 4096, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION), 0);
	IS(cuMemAdvise(memory, 1 << 20, CU_MEM_ADVISE_UNSET_READ_MOSTLY, device), CUDA_SUCCESS);
	IS(ask(memory, 1 << 20, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY), 0);
	LOCAL(cuMemRangeGetAttribute(&value, 3, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory, 4096),
		BAD);
	LOCAL(cuMemRangeGetAttribute(&value, 4, (CUmem_range_attribute)99, memory, 4096), BAD);
	LOCAL(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, 0x1234, 4096),
		BAD);
	LOCAL(cuMemRangeGetAttribute(NULL, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, memory, 4096),
		BAD);
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

UNIT_SUITE(managed_range, {"ranges", test_ranges})
