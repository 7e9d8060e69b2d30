/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/memory/window.c: the window: slices of devices, memory mapped and given back, and
 * nothing left where the driver refuses.
 */
#include <errno.h>
#include <string.h>

#include "server/worker/memory/window.h"
#include "server/worker/objects/device.h"
#include "tests/unit/worker/inside.h"

static uint64_t free_bytes(void)
{
	size_t bytes = 0, total;
	IS(ckt_driver.cuMemGetInfo_v2(&bytes, &total), CUDA_SUCCESS);
	return bytes;
}

static void test_slices(void)
{
	IS(ckt_worker.device_count, 2);
	IS(ckt_worker.slice_size % CKT_MEMORY_EXTENT, 0);
	YES(ckt_worker.slice_size * 2 <= CKT_WINDOW_SIZE);
	for (unsigned d = 0; d < 2; d++) {
		IS(ckt_worker.devices[d].memory.base, CKT_WINDOW_BASE + d * ckt_worker.slice_size);
		IS(ckt_worker.devices[d].memory.size, ckt_worker.slice_size);
		YES(ckt_worker_device_of(&ckt_worker, ckt_worker.devices[d].memory.base) ==
			&ckt_worker.devices[d]);
		YES(ckt_worker_device_of(&ckt_worker,
			    ckt_worker.devices[d].memory.base + ckt_worker.slice_size - 1) ==
			&ckt_worker.devices[d]);
	}
	CU_ASSERT_PTR_NULL(ckt_worker_device_of(&ckt_worker, CKT_WINDOW_BASE - 1));
	CU_ASSERT_PTR_NULL(ckt_worker_device_of(&ckt_worker, CKT_WINDOW_BASE + CKT_WINDOW_SIZE));
	CU_ASSERT_PTR_NULL(ckt_worker_device_of(&ckt_worker, 0));
	CU_ASSERT_PTR_NULL(ckt_worker_device_of(&ckt_worker, UINT64_MAX));
	CU_ASSERT_PTR_NULL(ckt_worker_device_find(&ckt_worker, 2));
	/* It is taken, so nobody gets it again; whoever asks is told what may be wrong. */
	char message[CKT_MESSAGE_MAX] = "";
	YES(ckt_window_reserve(&ckt_worker, message, sizeof message) != CUDA_SUCCESS);
	HAS(message, "ulimit -v");
}

static void test_map(void)
{
	uint64_t before = free_bytes(), piece = 0, other = 0,
		 at = CKT_SCRATCH_BASE + ((uint64_t)64 << 20);
	enum { SIZE = 4 << 20 };
	IS(ckt_window_map(&ckt_worker, 0, at, SIZE, &piece), CUDA_SUCCESS);
	IS(free_bytes(), before - SIZE);
	inside_fill(at, 9, SIZE);
	IS(inside_word(at + SIZE - 4), 9);
	/* Taken, not reserved at all, no size: refused, and no memory is kept. */
	YES(ckt_window_map(&ckt_worker, 0, at, SIZE, &other) != CUDA_SUCCESS);
	YES(ckt_window_map(&ckt_worker, 0, 0x10000000000, SIZE, &other) != CUDA_SUCCESS);
	YES(ckt_window_map(&ckt_worker, 0, at + SIZE, 0, &other) != CUDA_SUCCESS);
	IS(ckt_window_create(
		   &ckt_worker, 0, (uint64_t)1 << 40, CU_MEM_ALLOCATION_COMP_NONE, &other),
		CUDA_ERROR_OUT_OF_MEMORY);
	IS(free_bytes(), before - SIZE);
	IS(ckt_window_create(&ckt_worker, 0, SIZE, CU_MEM_ALLOCATION_COMP_NONE, &other),
		CUDA_SUCCESS);
	IS(free_bytes(), before - 2 * SIZE);
	ckt_driver.cuMemRelease(other);
	ckt_window_unmap(at, SIZE, piece);
	IS(free_bytes(), before);
	uint32_t word;
	YES(ckt_driver.cuMemcpyDtoH_v2(&word, at, 4) != CUDA_SUCCESS);
}

/* ---- A driver whose device can compress, or cannot. */

static int can_compress;
static unsigned asked;
static __typeof__(ckt_driver.cuMemCreate) real_create;
static __typeof__(ckt_driver.cuDeviceGetAttribute) real_attribute;

static CUresult create_noted(CUmemGenericAllocationHandle *handle, size_t size,
	const CUmemAllocationProp *prop, unsigned long long flags)
{
	asked = prop->allocFlags.compressionType;
	return real_create(handle, size, prop, flags);
}

static CUresult attribute_told(int *value, CUdevice_attribute attribute, CUdevice device)
{
	if (attribute != CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED)
		return real_attribute(value, attribute, device);
	*value = can_compress;
	return CUDA_SUCCESS;
}

static void test_compression(void)
{
	uint64_t handle;
	real_create = ckt_driver.cuMemCreate;
	real_attribute = ckt_driver.cuDeviceGetAttribute;
	ckt_driver.cuMemCreate = create_noted;
	ckt_driver.cuDeviceGetAttribute = attribute_told;
	for (can_compress = 0; can_compress < 2; can_compress++)
		for (unsigned wanted = 0; wanted < 2; wanted++) {
			asked = 9;
			MUST(ckt_window_create(&ckt_worker, 0, CKT_MEMORY_EXTENT, wanted, &handle),
				CUDA_SUCCESS);
			IS(asked, wanted && can_compress);
			ckt_driver.cuMemRelease(handle);
		}
	ckt_driver.cuMemCreate = real_create;
	ckt_driver.cuDeviceGetAttribute = real_attribute;
}

/* Of several servers' sessions each keeps to its part, from before it has anything. */
static void test_parts(void)
{
	uint64_t base = ckt_worker.window_base, size = ckt_worker.window_size,
		 executed = atomic_load(&ckt_worker.replies.executed), address;
	const struct {
		unsigned part, parts;
		int result;
	} bad[] = {{0, 0, -EINVAL}, {2, 2, -EINVAL}, {0, CKT_SERVERS_MAX + 1, -EINVAL},
		{UINT32_MAX, 2, -EINVAL}, {0, UINT32_MAX, -EINVAL}};
	for (size_t i = 0; i < COUNT(bad); i++)
		IS(ckt_window_part(&ckt_worker, bad[i].part, bad[i].parts), bad[i].result);
	IS(ckt_worker.window_base, base);
	IS(ckt_worker.window_size, size);
	/* What it is already it may be asked again. */
	IS(ckt_window_part(&ckt_worker, 0, 1), 0);
	atomic_store(&ckt_worker.replies.executed, 1);
	IS(ckt_window_part(&ckt_worker, 1, 2), -EBUSY);
	atomic_store(&ckt_worker.replies.executed, 0);
	for (unsigned part = 0; part < CKT_SERVERS_MAX; part++) {
		struct ckt_worker fresh = {.device_count = 2,
			.window_base = CKT_WINDOW_BASE,
			.window_size = CKT_WINDOW_SIZE};
		for (unsigned d = 0; d < 2; d++)
			ckt_window_init_device(&fresh, d);
		IS(ckt_window_part(&fresh, part, CKT_SERVERS_MAX), 0);
		IS(ckt_window_part(&fresh, part, CKT_SERVERS_MAX), 0);
		YES(ckt_window_holds(fresh.window_base, fresh.window_size));
		YES(fresh.window_base == CKT_WINDOW_BASE + part * fresh.window_size);
		YES(2 * fresh.slice_size <= fresh.window_size);
		for (unsigned d = 0; d < 2; d++) {
			IS(fresh.devices[d].memory.base, fresh.window_base + d * fresh.slice_size);
			MUST(ckt_memory_reserve(
				     &fresh.devices[d].memory, CKT_MEMORY_EXTENT, 0, 0, &address),
				CUDA_SUCCESS);
			IS(address, fresh.window_base + d * fresh.slice_size);
			ckt_memory_fini(&fresh.devices[d].memory);
		}
	}
	atomic_store(&ckt_worker.replies.executed, executed);
	/* An image's. */
	YES(ckt_window_holds(CKT_WINDOW_BASE, CKT_WINDOW_SIZE));
	NO(ckt_window_holds(CKT_WINDOW_BASE, 0));
	NO(ckt_window_holds(CKT_WINDOW_BASE - CKT_MEMORY_EXTENT, CKT_MEMORY_EXTENT));
	NO(ckt_window_holds(CKT_WINDOW_BASE + 4096, CKT_MEMORY_EXTENT));
	NO(ckt_window_holds(CKT_WINDOW_BASE + CKT_MEMORY_EXTENT, CKT_WINDOW_SIZE));
	NO(ckt_window_holds(CKT_WINDOW_BASE + CKT_WINDOW_SIZE, CKT_MEMORY_EXTENT));
	NO(ckt_window_holds(UINT64_MAX - CKT_MEMORY_EXTENT + 1, CKT_MEMORY_EXTENT));
}

UNIT_SUITE(window, {"parts", test_parts}, {"slices", test_slices}, {"map", test_map},
	{"compression", test_compression})
