/* SPDX-License-Identifier: Apache-2.0 */
/* cudacommon/pointer.c: every attribute of given facts, as wide as CUDA documents it. */
#include "cudacommon/pointer.h"

#include <string.h>

#include "../softgpu/files.h"

static const struct ckt_pointer_facts device = {.address = 0x1100,
	.device_address = 0x1100,
	.context = 0x77,
	.base = 0x1000,
	.size = 0x400,
	.buffer_id = 12,
	.pool = 0x99,
	.device = 3,
	.is_device = true,
	.has_ipc = true,
	.access = 3};

/* A word that is not written beyond its end. */
static uint64_t word(CUpointer_attribute attribute, const struct ckt_pointer_facts *facts)
{
	unsigned value[2] = {77, 0x5a5a5a5a};
	OK(ckt_pointer_attribute(value, attribute, facts));
	IS(value[1], 0x5a5a5a5a);
	return value[0];
}

static uint64_t wide(CUpointer_attribute attribute, const struct ckt_pointer_facts *facts)
{
	uint64_t value = 77;
	OK(ckt_pointer_attribute(&value, attribute, facts));
	return value;
}

static void test_device(void)
{
	uint64_t value = 77;
	IS(word(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, &device), CU_MEMORYTYPE_DEVICE);
	IS(word(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, &device), 3);
	IS(word(CU_POINTER_ATTRIBUTE_IS_MANAGED, &device), 0);
	IS(word(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, &device), 0);
	IS(word(CU_POINTER_ATTRIBUTE_MAPPED, &device), 1);
	IS(word(CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, &device), 1);
	IS(word(CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, &device), 0);
	IS(word(CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, &device), 3);
	IS(wide(CU_POINTER_ATTRIBUTE_CONTEXT, &device), 0x77);
	IS(wide(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, &device), 0x1100);
	IS(wide(CU_POINTER_ATTRIBUTE_BUFFER_ID, &device), 12);
	IS(wide(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, &device), 0x1000);
	IS(wide(CU_POINTER_ATTRIBUTE_RANGE_SIZE, &device), 0x400);
	IS(wide(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, &device), 0x99);
	IS(wide(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, &device), 0);
	static const CUpointer_attribute none[] = {CU_POINTER_ATTRIBUTE_HOST_POINTER,
		CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR,
		CU_POINTER_ATTRIBUTE_MAPPING_SIZE, CU_POINTER_ATTRIBUTE_P2P_TOKENS,
		(CUpointer_attribute)0, (CUpointer_attribute)99};
	for (unsigned i = 0; i < sizeof none / sizeof *none; i++)
		CHECK_RESULT(
			ckt_pointer_attribute(&value, none[i], &device), CUDA_ERROR_INVALID_VALUE);
	IS(value, 77);
}

static void test_others(void)
{
	struct ckt_pointer_facts facts = device;
	uint64_t value = 77;
	facts.has_block = true;
	facts.handle_types = 1;
	IS(wide(CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, &facts), 12);
	IS(wide(CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, &facts), 0x1000);
	IS(wide(CU_POINTER_ATTRIBUTE_MAPPING_SIZE, &facts), 0x400);
	IS(wide(CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, &facts), 1);
	/* Managed memory is the host's as well. */
	facts.is_managed = facts.waits = true;
	IS(word(CU_POINTER_ATTRIBUTE_IS_MANAGED, &facts), 1);
	IS(word(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, &facts), 1);
	IS(wide(CU_POINTER_ATTRIBUTE_HOST_POINTER, &facts), 0x1100);
	/* Registered memory has another address there, or none. */
	facts.is_device = facts.is_managed = false;
	facts.device_address = 0x9100;
	IS(word(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, &facts), CU_MEMORYTYPE_HOST);
	IS(wide(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, &facts), 0x9100);
	IS(wide(CU_POINTER_ATTRIBUTE_HOST_POINTER, &facts), 0x1100);
	facts.device_address = 0;
	IS(word(CU_POINTER_ATTRIBUTE_MAPPED, &facts), 0);
	CHECK_RESULT(ckt_pointer_attribute(&value, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, &facts),
		CUDA_ERROR_INVALID_VALUE);
}

static void test_several(void)
{
	struct {
		unsigned value, guard;
	} type = {77, 0x5a5a5a5a}, ordinal = {77, 0x5a5a5a5a}, newest = {77, 0x5a5a5a5a};
	uint64_t host = 77;
	CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_HOST_POINTER,
		(CUpointer_attribute)21};
	void *data[] = {&type, &ordinal, &host, &newest};
	OK(ckt_pointer_attributes(4, names, data, &device));
	IS(type.value, CU_MEMORYTYPE_DEVICE);
	IS(ordinal.value, 3);
	IS(host, 0);
	IS(newest.value, 0);
	/* Of an address that nobody knows. */
	type.value = ordinal.value = newest.value = 77;
	host = 77;
	OK(ckt_pointer_attributes(4, names, data, NULL));
	IS(type.value, 0);
	IS((int)ordinal.value, -2);
	IS(host, 0);
	IS(newest.value, 0);
	IS(type.guard & ordinal.guard & newest.guard, 0x5a5a5a5a);
	/* What is none leaves everything as it is. */
	static const int wrong[] = {0, 5, 22, -1};
	type.value = 77;
	for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		names[3] = (CUpointer_attribute)wrong[i];
		CHECK_RESULT(
			ckt_pointer_attributes(4, names, data, &device), CUDA_ERROR_INVALID_VALUE);
	}
	data[2] = NULL;
	CHECK_RESULT(ckt_pointer_attributes(3, names, data, &device), CUDA_ERROR_INVALID_VALUE);
	IS(type.value, 77);
}

UNIT_SUITE(cudacommon / pointer, {"device memory", test_device}, {"other memory", test_others},
	{"several at once", test_several})
