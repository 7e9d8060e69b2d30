/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/memory/vmm.h: a program maps its physical memory into its own reservations, and
 * nothing anywhere else.
 */
#include <stdlib.h>

#include "server/worker/objects/device.h"
#include "tests/unit/worker/inside.h"

enum { UNIT = 2 << 20, ALL = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };

static uint64_t reserve(uint32_t device, uint64_t size, int *ret_result)
{
	struct ckt_address_reserve_res res = {0};
	struct inside_reply *reply = INSIDE(address_reserve, false, .device = device, .size = size);
	*ret_result = reply->result;
	if (!reply->result)
		YES(ckt_address_reserve_res_get(&reply->results, &res));
	return res.address;
}

static void test_reserve(void)
{
	struct ckt_vmm *vmm = &ckt_worker.vmm;
	size_t before = vmm->reservation_count;
	uint64_t at[40];
	int result;
	for (unsigned i = 0; i < COUNT(at); i++) { /* more than the table's first room */
		at[i] = reserve(0, UNIT, &result);
		MUST(result, CUDA_SUCCESS);
	}
	IS(vmm->reservation_count, before + COUNT(at));
	static const uint64_t wrong[] = {
		0, 1, UNIT - 1, UNIT + 1, UINT64_MAX, UINT64_MAX - UNIT + 1};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		reserve(0, wrong[i], &result);
		YES(result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_OUT_OF_MEMORY);
	}
	reserve(64, UNIT, &result);
	IS(result, CUDA_ERROR_INVALID_DEVICE);
	IS(vmm->reservation_count, before + COUNT(at));
	/* Given back as it was taken, once. */
	IS(ASK(address_free, .address = at[0], .size = 2 * (uint64_t)UNIT),
		CUDA_ERROR_INVALID_VALUE);
	IS(ASK(address_free, .address = at[0] + 4096, .size = UNIT), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(address_free, .address = 0, .size = 0), CUDA_ERROR_INVALID_VALUE);
	for (unsigned i = 0; i < COUNT(at); i++)
		IS(ASK(address_free, .address = at[i], .size = UNIT), CUDA_SUCCESS);
	IS(ASK(address_free, .address = at[0], .size = UNIT), CUDA_ERROR_INVALID_VALUE);
	IS(vmm->reservation_count, before);
	IS(CUT(address_reserve, .size = UNIT), 0);
	IS(CUT(address_free, .size = UNIT), 0);
}

static void test_physical(void)
{
	struct ckt_memory *memory = &ckt_worker.devices[0].memory;
	uint64_t id = ID(PHYSICAL, 201), used = ckt_memory_used(memory), kept = memory->limit;
	IS(ASK(physical_create, .id = id, .size = UNIT), CUDA_SUCCESS);
	IS(ckt_memory_used(memory), used + UNIT);
	IS(ASK(physical_create, .id = id, .size = UNIT), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(physical_create, .id = ID(STREAM, 299), .size = UNIT), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(physical_create, .id = ID(PHYSICAL, 202), .device = 64, .size = UNIT),
		CUDA_ERROR_INVALID_DEVICE);
	static const uint64_t wrong[] = {0, 1, UNIT - 4096, UNIT + 1, UINT64_MAX};
	for (size_t i = 0; i < COUNT(wrong); i++)
		IS(ASK(physical_create, .id = ID(PHYSICAL, 202), .size = wrong[i]),
			CUDA_ERROR_INVALID_VALUE);
	memory->limit = used + UNIT + UNIT / 2;
	IS(ASK(physical_create, .id = ID(PHYSICAL, 202), .size = UNIT), CUDA_ERROR_OUT_OF_MEMORY);
	memory->limit = kept;
	/* What failed is not charged and leaves no object. */
	IS(ckt_memory_used(memory), used + UNIT);
	CU_ASSERT_PTR_NULL(ckt_objects_find(&ckt_worker.objects, ID(PHYSICAL, 202)));
	IS(ASK(physical_release, .id = ID(PHYSICAL, 202)), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(physical_release, .id = id), CUDA_SUCCESS);
	IS(ASK(physical_release, .id = id), CUDA_ERROR_INVALID_VALUE);
	IS(ckt_memory_used(memory), used);
	IS(CUT(physical_create, .id = id, .size = UNIT), 0);
	IS(CUT(physical_release, .id = id), 0);
}

static void test_map(void)
{
	struct ckt_vmm *vmm = &ckt_worker.vmm;
	uint64_t id = ID(PHYSICAL, 211), small = ID(PHYSICAL, 212),
		 foreign = inside_memory(UNIT, 1);
	size_t before = vmm->mapping_count;
	int result;
	uint64_t base = reserve(0, 4 * (uint64_t)UNIT, &result);
	MUST(result, CUDA_SUCCESS);
	MUST(ASK(physical_create, .id = id, .size = 2 * (uint64_t)UNIT), CUDA_SUCCESS);
	const struct {
		uint64_t address, size, offset, physical;
	} wrong[] = {
		{foreign, UNIT, 0, id}, /* the session's, but not reserved */
		{base - UNIT, 2 * (uint64_t)UNIT, 0, id},
		{base + 3 * (uint64_t)UNIT, 2 * (uint64_t)UNIT, 0, id},
		{base + 5 * (uint64_t)UNIT, UNIT, 0, id},
		{base, 2 * (uint64_t)UNIT, UNIT, id}, /* longer than the memory behind its offset */
		{base, UNIT, 3 * (uint64_t)UNIT, id},
		{base, UNIT, UINT64_MAX, id},
		{base, UINT64_MAX, 0, id},
		{UINT64_MAX, UNIT, 0, id},
		{base, UNIT, 0, ID(PHYSICAL, 299)},
		{base, UNIT, 0, 0},
	};
	for (size_t i = 0; i < COUNT(wrong); i++)
		IS(ASK(mem_map, .address = wrong[i].address, .size = wrong[i].size,
			   .offset = wrong[i].offset, .physical = wrong[i].physical),
			CUDA_ERROR_INVALID_VALUE);
	IS(vmm->mapping_count, before);
	/* Sorted by address, whatever the order of their making. */
	MUST(ASK(mem_map, .address = base + 2 * (uint64_t)UNIT, .size = 2 * (uint64_t)UNIT,
		     .physical = id),
		CUDA_SUCCESS);
	MUST(ASK(physical_create, .id = small, .size = UNIT), CUDA_SUCCESS);
	MUST(ASK(mem_map, .address = base, .size = UNIT, .physical = small), CUDA_SUCCESS);
	IS(vmm->mapping_count, before + 2);
	for (size_t i = 1; i < vmm->mapping_count; i++)
		YES(vmm->mappings[i - 1].address < vmm->mappings[i].address);
	YES(ASK(mem_map, .address = base, .size = UNIT, .physical = id) != CUDA_SUCCESS);
	IS(ASK(physical_release, .id = id), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(address_free, .address = base, .size = 4 * (uint64_t)UNIT),
		CUDA_ERROR_INVALID_VALUE);
	struct ckt_object *object = ckt_objects_find(&ckt_worker.objects, id);
	IS(ckt_vmm_window_on(&ckt_worker, object), 0); /* no access yet */
	/* Of whole mappings without a gap. */
	const uint64_t ranges[][2] = {{base, 2 * (uint64_t)UNIT}, {base, 4 * (uint64_t)UNIT},
		{base + UNIT, UNIT}, {base, UNIT / 2}, {base, 0}, {base + 3 * (uint64_t)UNIT, UNIT},
		{foreign, UNIT}, {0, UINT64_MAX}};
	for (size_t i = 0; i < COUNT(ranges); i++) {
		IS(ASK(mem_set_access, .address = ranges[i][0], .size = ranges[i][1],
			   .access = ALL),
			CUDA_ERROR_INVALID_VALUE);
		IS(ASK(mem_set_peer_access, .address = ranges[i][0], .size = ranges[i][1],
			   .device = 1, .access = ALL),
			CUDA_ERROR_INVALID_VALUE);
		IS(ASK(mem_unmap, .address = ranges[i][0], .size = ranges[i][1]),
			CUDA_ERROR_INVALID_VALUE);
	}
	IS(ASK(mem_set_access, .address = base, .size = UNIT, .access = ALL), CUDA_SUCCESS);
	IS(ckt_vmm_window_on(&ckt_worker, object), 0); /* another's */
	IS(ASK(mem_set_access, .address = base + 2 * (uint64_t)UNIT, .size = 2 * (uint64_t)UNIT,
		   .access = ALL),
		CUDA_SUCCESS);
	IS(ckt_vmm_window_on(&ckt_worker, object), base + 2 * (uint64_t)UNIT);
	/* The same memory at two places. */
	uint64_t twice = reserve(0, 2 * (uint64_t)UNIT, &result);
	MUST(result, CUDA_SUCCESS);
	MUST(ASK(mem_map, .address = twice, .size = 2 * (uint64_t)UNIT, .physical = id),
		CUDA_SUCCESS);
	IS(ASK(mem_set_access, .address = twice, .size = 2 * (uint64_t)UNIT, .access = ALL),
		CUDA_SUCCESS);
	inside_fill(base + 3 * (uint64_t)UNIT, 42, 4096);
	IS(inside_word(twice + UNIT), 42);
	IS(ASK(mem_unmap, .address = twice, .size = 2 * (uint64_t)UNIT), CUDA_SUCCESS);
	IS(ASK(address_free, .address = twice, .size = 2 * (uint64_t)UNIT), CUDA_SUCCESS);
	/* A peer's access is kept beside. */
	IS(ASK(mem_set_peer_access, .address = base, .size = UNIT, .device = 64, .access = ALL),
		CUDA_ERROR_INVALID_DEVICE);
	if (ckt_device_can_access(&ckt_worker, 1, 0)) {
		const struct ckt_mapping *m = &vmm->mappings[0];
		while (m->address != base)
			m++;
		IS(ASK(mem_set_peer_access, .address = base, .size = UNIT, .device = 1,
			   .access = ALL),
			CUDA_SUCCESS);
		IS(m->writers, 2);
		IS(ASK(mem_set_peer_access, .address = base, .size = UNIT, .device = 1,
			   .access = CU_MEM_ACCESS_FLAGS_PROT_READ),
			CUDA_SUCCESS);
		IS(m->writers * 16 + m->readers, 2);
		IS(m->access, ALL);
		IS(ckt_vmm_put_access(&ckt_worker, m), CUDA_SUCCESS);
	}
	IS(CUT(mem_map, .address = base, .size = UNIT, .physical = id), 0);
	IS(CUT(mem_unmap, .address = base, .size = UNIT), 0);
	IS(CUT(mem_set_access, .address = base, .size = UNIT), 0);
	IS(CUT(mem_set_peer_access, .address = base, .size = UNIT), 0);
	IS(ASK(mem_unmap, .address = base, .size = UNIT), CUDA_SUCCESS);
	IS(ASK(mem_unmap, .address = base + 2 * (uint64_t)UNIT, .size = 2 * (uint64_t)UNIT),
		CUDA_SUCCESS);
	IS(vmm->mapping_count, before);
	IS(ASK(physical_release, .id = id), CUDA_SUCCESS);
	IS(ASK(physical_release, .id = small), CUDA_SUCCESS);
	IS(ASK(address_free, .address = base, .size = 4 * (uint64_t)UNIT), CUDA_SUCCESS);
	inside_free(foreign);
}

UNIT_SUITE(vmm, {"reserve", test_reserve}, {"physical", test_physical}, {"map", test_map})
