/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The window of addresses and the physical memory behind it, by the driver's virtual memory
 * management.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "server/worker/driver.h"
#include "server/worker/memory/freed_memory.h"
#include "server/worker/memory/lease.h"
#include "server/worker/memory/window.h"
#include "server/worker/objects/device.h"
#include "server/worker/worker.h"

static CUmemAllocationProp properties(CUdevice ordinal)
{
	return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ordinal}};
}

CUresult ckt_window_create(struct ckt_worker *worker, unsigned device, uint64_t size,
	unsigned compression, uint64_t *ret_handle)
{
	CUmemAllocationProp prop = properties(worker->devices[device].ordinal);
	int can = 0;
	if (compression &&
		!ckt_driver.cuDeviceGetAttribute(&can,
			CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED,
			worker->devices[device].ordinal) &&
		can)
		prop.allocFlags.compressionType = (unsigned char)compression;
	CUmemGenericAllocationHandle handle;
	CUresult result = ckt_driver.cuMemCreate(&handle, size, &prop, 0);
	if (result == CUDA_ERROR_OUT_OF_MEMORY &&
		ckt_freed_memory_ask(worker->devices[device].number))
		result = ckt_driver.cuMemCreate(&handle, size, &prop, 0);
	if (result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_INVALID_VALUE) {
		/* A driver that cannot export can still allocate. */
		prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
		result = ckt_driver.cuMemCreate(&handle, size, &prop, 0);
	}
	if (!result)
		*ret_handle = handle;
	return result;
}

/*
 * The device itself and every other of the session that can reach it: the driver's peer access does
 * not cover mapped memory.
 */
CUresult ckt_window_give_access(
	struct ckt_worker *worker, unsigned device, uint64_t address, uint64_t size)
{
	CUmemAccessDesc access[CKT_DEVICES_MAX];
	size_t count = 0;
	for (unsigned d = 0; d < worker->device_count; d++)
		if (d == device || ckt_device_can_access(worker, d, device))
			access[count++] =
				(CUmemAccessDesc){.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
							  .id = worker->devices[d].ordinal},
					.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	return ckt_driver.cuMemSetAccess(address, size, access, count);
}

CUresult ckt_window_set_access(struct ckt_worker *worker, unsigned device, uint64_t address,
	uint64_t size, unsigned access)
{
	CUmemAccessDesc desc = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE,
					.id = worker->devices[device].ordinal},
		.flags = (CUmemAccess_flags)access};
	return ckt_driver.cuMemSetAccess(address, size, &desc, 1);
}

CUresult ckt_window_map(struct ckt_worker *worker, unsigned device, uint64_t address, uint64_t size,
	uint64_t *ret_piece)
{
	uint64_t handle;
	CUresult result =
		ckt_window_create(worker, device, size, CU_MEM_ALLOCATION_COMP_NONE, &handle);
	if (result)
		return result;
	result = ckt_driver.cuMemMap(address, size, 0, handle, 0);
	if (!result) {
		result = ckt_window_give_access(worker, device, address, size);
		if (!result) {
			*ret_piece = handle;
			return CUDA_SUCCESS;
		}
		ckt_driver.cuMemUnmap(address, size);
	}
	ckt_driver.cuMemRelease(handle);
	return result;
}

void ckt_window_unmap(uint64_t address, uint64_t size, uint64_t piece)
{
	ckt_driver.cuMemUnmap(address, size);
	ckt_driver.cuMemRelease(piece);
}

/* Another context is current afterwards. */
static CUresult wait_idle(struct ckt_worker *worker)
{
	struct ckt_object *object;
	CUresult result = CUDA_SUCCESS;
	for (uint32_t cursor = 0;
		!result && (object = ckt_objects_next(&worker->objects, &cursor));)
		if (ckt_handle_kind(object->id) == CKT_KIND_CONTEXT && object->real &&
			!(result = ckt_driver.cuCtxSetCurrent(object->real)))
			result = ckt_driver.cuCtxSynchronize();
	return result;
}

static CUresult copy_whole(struct ckt_worker *worker, unsigned device, uint64_t address,
	uint64_t size, uint64_t copy, uint64_t *ret_piece)
{
	CUresult result = ckt_window_map(worker, device, copy, size, ret_piece);
	if (result)
		return result;
	result = wait_idle(worker);
	if (!result)
		result = ckt_driver.cuMemcpyDtoD_v2(copy, address, size);
	if (!result)
		result = wait_idle(worker);
	if (result)
		ckt_window_unmap(copy, size, *ret_piece);
	else
		ckt_driver.cuMemUnmap(copy, size);
	return result;
}

CUresult ckt_window_join(struct ckt_worker *worker, unsigned device, uint64_t address,
	uint64_t size, uint64_t *ret_piece)
{
	struct ckt_memory *memory = &worker->devices[device].memory;
	unsigned number = worker->devices[device].number;
	uint64_t copy, piece;
	if (!ckt_lease_take(number, size, CKT_LEASE_ASKED))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = ckt_memory_reserve(memory, size, 0, 0, &copy);
	if (!result) {
		result = copy_whole(worker, device, address, size, copy, &piece);
		ckt_memory_unreserve(memory, copy, size);
	}
	if (!result) {
		ckt_memory_join(memory, address, piece);
		result = ckt_driver.cuMemMap(address, size, 0, piece, 0);
		if (!result)
			result = ckt_window_give_access(worker, device, address, size);
		*ret_piece = piece;
	}
	ckt_lease_give(number, size);
	if (worker->current)
		ckt_driver.cuCtxSetCurrent(worker->current->real);
	return result;
}

static CUresult map(
	void *opaque, unsigned device, uint64_t address, uint64_t size, uint64_t *ret_piece)
{
	return ckt_window_map(opaque, device, address, size, ret_piece);
}

static void unmap(void *opaque, unsigned device, uint64_t address, uint64_t size, uint64_t piece)
{
	(void)opaque;
	(void)device;
	ckt_window_unmap(address, size, piece);
}

/* The server counts by its own numbers. */
static bool take(void *opaque, unsigned device, uint64_t size, enum ckt_lease_how how)
{
	const struct ckt_worker *worker = opaque;
	return ckt_lease_take(worker->devices[device].number, size, how);
}

static void give(void *opaque, unsigned device, uint64_t size)
{
	const struct ckt_worker *worker = opaque;
	ckt_lease_give(worker->devices[device].number, size);
}

static const struct ckt_memory_ops window_ops = {
	.map = map, .unmap = unmap, .take = take, .give = give};

/* A slice per device; in whole extents. */
static void slice(struct ckt_worker *worker)
{
	worker->slice_size = worker->window_size /
		(worker->device_count ? worker->device_count : 1) / CKT_MEMORY_EXTENT *
		CKT_MEMORY_EXTENT;
}

CUresult ckt_window_reserve(struct ckt_worker *worker, char *ret_message, size_t message_size)
{
	CUdeviceptr at = 0;
	CUresult result = ckt_driver.cuMemAddressReserve
		? ckt_driver.cuMemAddressReserve(&at, CKT_WINDOW_SIZE, 0, CKT_WINDOW_BASE, 0)
		: CKT_INTERNAL_NOT_SUPPORTED;
	if (!result && at != CKT_WINDOW_BASE) {
		ckt_driver.cuMemAddressFree(at, CKT_WINDOW_SIZE);
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (result) {
		snprintf(ret_message, message_size,
			"the driver did not grant the %llu GiB of addresses at 0x%llx "
			"(error %d): check the limit of the worker's address space "
			"(ulimit -v)",
			(unsigned long long)(CKT_WINDOW_SIZE >> 30),
			(unsigned long long)CKT_WINDOW_BASE, result);
		return result;
	}
	worker->window_base = CKT_WINDOW_BASE;
	worker->window_size = CKT_WINDOW_SIZE;
	slice(worker);
	return CUDA_SUCCESS;
}

void ckt_window_init_device(struct ckt_worker *worker, unsigned device)
{
	uint64_t limit = worker->memory_limit;
	uint64_t base = worker->window_base + device * worker->slice_size;
	ckt_memory_init(&worker->devices[device].memory, device, base, worker->slice_size, limit,
		&window_ops, worker);
}

int ckt_window_part(struct ckt_worker *worker, unsigned part, unsigned parts)
{
	if (!parts || parts > CKT_SERVERS_MAX || part >= parts)
		return -EINVAL;
	uint64_t size = CKT_WINDOW_SIZE / parts / CKT_MEMORY_EXTENT * CKT_MEMORY_EXTENT,
		 base = CKT_WINDOW_BASE + part * size;
	if (worker->window_base == base && worker->window_size == size)
		return 0;
	/* Memory that already has an address keeps it. */
	if (atomic_load(&worker->replies.executed))
		return -EBUSY;
	worker->window_base = base;
	worker->window_size = size;
	slice(worker);
	for (unsigned d = 0; d < worker->device_count; d++)
		ckt_memory_move(&worker->devices[d].memory, base + d * worker->slice_size,
			worker->slice_size);
	return 0;
}

bool ckt_window_holds(uint64_t base, uint64_t size)
{
	uint64_t offset = base - CKT_WINDOW_BASE;
	return base >= CKT_WINDOW_BASE && base % CKT_MEMORY_EXTENT == 0 && size &&
		offset < CKT_WINDOW_SIZE && size <= CKT_WINDOW_SIZE - offset;
}
