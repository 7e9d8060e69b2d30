/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory management by the program; see vmm.h. */
#include "server/worker/memory/vmm.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/sorted.h"
#include "checkpoint/load/preload.h"
#include "rpc/gen/cuda_codec.h"
#include "server/worker/driver.h"
#include "server/worker/ipc/ipc.h"
#include "server/worker/memory/window.h"
#include "server/worker/objects/device.h"
#include "server/worker/worker.h"

/* ---- Reservations */

/* True if the range is inside one reservation of the program. */
static bool reserved(const struct ckt_vmm *vmm, uint64_t address, uint64_t size)
{
	for (size_t i = 0; i < vmm->reservation_count; i++) {
		const struct ckt_reservation *r = &vmm->reservations[i];
		if (address >= r->address && address - r->address <= r->size &&
			size <= r->size - (address - r->address))
			return true;
	}
	return false;
}

CUresult ckt_vmm_reserve(struct ckt_worker *worker, unsigned device, uint64_t size,
	uint64_t alignment, uint64_t hint, uint64_t *ret_address)
{
	struct ckt_vmm *vmm = &worker->vmm;
	if (device >= worker->device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	struct ckt_worker_device *hinted = hint ? ckt_worker_device_of(worker, hint) : NULL;
	CUresult result = ckt_memory_reserve(&(hinted ? hinted : &worker->devices[device])->memory,
		size, alignment, hint, ret_address);
	/* Addresses belong to no device: another device's slice works as well. */
	for (unsigned d = 0; result == CUDA_ERROR_OUT_OF_MEMORY && d < worker->device_count; d++)
		result = ckt_memory_reserve(
			&worker->devices[d].memory, size, alignment, 0, ret_address);
	if (!result &&
		CKT_GROW(vmm->reservations, vmm->reservation_count, vmm->reservation_room, 16)) {
		ckt_memory_unreserve(
			&ckt_worker_device_of(worker, *ret_address)->memory, *ret_address, size);
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (result)
		return result;
	vmm->reservations[vmm->reservation_count++] = (struct ckt_reservation){*ret_address, size};
	return CUDA_SUCCESS;
}

/* ---- Physical memory */

CUresult ckt_vmm_physical_make(struct ckt_worker *worker, uint64_t id, unsigned device,
	uint64_t size, unsigned compression)
{
	struct ckt_object *object;
	if (compression > CU_MEM_ALLOCATION_COMP_GENERIC)
		return CUDA_ERROR_INVALID_VALUE;
	if (device >= worker->device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	struct ckt_memory *memory = &worker->devices[device].memory;
	if (!size || size % CKT_MEMORY_EXTENT)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_memory_charge(memory, size);
	if (result == CUDA_ERROR_OUT_OF_MEMORY && ckt_worker_pools_release(worker, device, true))
		result = ckt_memory_charge(memory, size);
	if (result)
		return result;
	result = ckt_objects_add(&worker->objects, id, CKT_KIND_PHYSICAL, false, &object);
	if (!result) {
		uint64_t handle;
		result = ckt_preload_take(id, device, size, compression, &handle)
			? CUDA_SUCCESS
			: ckt_window_create(worker, device, size, compression, &handle);
		if (result == CUDA_ERROR_OUT_OF_MEMORY) {
			ckt_worker_pools_release(worker, device, true);
			ckt_memory_trim(memory);
			result = ckt_window_create(worker, device, size, compression, &handle);
		}
		if (!result) {
			object->physical.device = device;
			object->physical.size = size;
			object->physical.compression = compression;
			object->physical.handle = handle;
			return CUDA_SUCCESS;
		}
		ckt_objects_remove(&worker->objects, object);
	}
	ckt_memory_uncharge(memory, size);
	return result;
}

void ckt_vmm_physical_unmake(struct ckt_worker *worker, struct ckt_object *physical)
{
	ckt_ipc_forget(worker, physical->id);
	if (!physical->physical.away)
		ckt_driver.cuMemRelease(physical->physical.handle);
	if (physical->physical.imported)
		ckt_ipc_physical_gone(worker, physical->id);
	else
		ckt_memory_uncharge(&worker->devices[physical->physical.device].memory,
			physical->physical.size);
}

/* ---- Mappings */

/* Index of the first mapping behind the address. */
static size_t upper(const struct ckt_vmm *vmm, uint64_t address)
{
	return CKT_SORTED_UPPER(vmm->mappings, vmm->mapping_count, address, address);
}

/* The mappings [*ret_first, *ret_first + *ret_count) that make up exactly this range. */
static bool whole(const struct ckt_vmm *vmm, uint64_t address, uint64_t size, size_t *ret_first,
	size_t *ret_count)
{
	size_t first = upper(vmm, address), i;
	if (!size || first == 0 || vmm->mappings[--first].address != address)
		return false;
	for (i = first; size && i < vmm->mapping_count; i++) {
		const struct ckt_mapping *m = &vmm->mappings[i];
		if (m->address != address || m->size > size)
			return false;
		address += m->size;
		size -= m->size;
	}
	*ret_first = first;
	*ret_count = i - first;
	return size == 0;
}

CUresult ckt_vmm_map(struct ckt_worker *worker, uint64_t address, uint64_t size, uint64_t offset,
	uint64_t physical)
{
	struct ckt_vmm *vmm = &worker->vmm;
	struct ckt_object *object =
		ckt_objects_find_kind(&worker->objects, physical, CKT_KIND_PHYSICAL);
	if (!object || object->physical.away || !reserved(vmm, address, size) ||
		offset > object->physical.size || size > object->physical.size - offset)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_driver.cuMemMap(address, size, offset, object->physical.handle, 0);
	if (result)
		return result;
	size_t i = upper(vmm, address);
	if (CKT_GROW_AT(vmm->mappings, vmm->mapping_count, vmm->mapping_room, 16, i)) {
		ckt_driver.cuMemUnmap(address, size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	vmm->mappings[i] = (struct ckt_mapping){
		.address = address, .size = size, .offset = offset, .physical = physical};
	return CUDA_SUCCESS;
}

/* Adjacent mappings of that size.  What is not there any more is not mapped. */
static CUresult unmap(
	struct ckt_worker *worker, const struct ckt_mapping *mappings, size_t count, uint64_t size)
{
	bool whole = true;
	for (size_t i = 0; i < count; i++)
		whole &= !ckt_vmm_is_away(worker, &mappings[i]);
	if (whole)
		return ckt_driver.cuMemUnmap(mappings->address, size);
	CUresult result = CUDA_SUCCESS;
	for (size_t i = 0; i < count && !result; i++)
		if (!ckt_vmm_is_away(worker, &mappings[i]))
			result = ckt_driver.cuMemUnmap(mappings[i].address, mappings[i].size);
	return result;
}

CUresult ckt_vmm_unmap(struct ckt_worker *worker, uint64_t address, uint64_t size)
{
	struct ckt_vmm *vmm = &worker->vmm;
	size_t first, count;
	if (!whole(vmm, address, size, &first, &count))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = unmap(worker, &vmm->mappings[first], count, size);
	if (result)
		return result;
	vmm->mapping_count -= count;
	memmove(&vmm->mappings[first], &vmm->mappings[first + count],
		(vmm->mapping_count - first) * sizeof *vmm->mappings);
	return CUDA_SUCCESS;
}

static CUresult give(
	struct ckt_worker *worker, const struct ckt_mapping *m, unsigned device, unsigned access)
{
	return ckt_window_set_access(worker, device, m->address, m->size, access);
}

static unsigned own_device(struct ckt_worker *worker, const struct ckt_mapping *m)
{
	struct ckt_object *object =
		ckt_objects_find_kind(&worker->objects, m->physical, CKT_KIND_PHYSICAL);
	return object ? object->physical.device : 0;
}

static void note_peer(struct ckt_mapping *m, unsigned device, unsigned access)
{
	uint64_t bit = 1ull << device;
	m->readers &= ~bit;
	m->writers &= ~bit;
	if (access == CU_MEM_ACCESS_FLAGS_PROT_READ)
		m->readers |= bit;
	else if (access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		m->writers |= bit;
}

CUresult ckt_vmm_set_access(
	struct ckt_worker *worker, uint64_t address, uint64_t size, unsigned access)
{
	struct ckt_vmm *vmm = &worker->vmm;
	size_t first, count;
	if (!whole(vmm, address, size, &first, &count))
		return CUDA_ERROR_INVALID_VALUE;
	/* Adjacent mappings may be memory of different devices. */
	for (size_t i = first; i < first + count; i++) {
		struct ckt_mapping *m = &vmm->mappings[i];
		CUresult result = give(worker, m, own_device(worker, m), access);
		if (result)
			return result;
		m->access = access;
	}
	return CUDA_SUCCESS;
}

CUresult ckt_vmm_set_peer_access(struct ckt_worker *worker, uint64_t address, uint64_t size,
	unsigned device, unsigned access)
{
	struct ckt_vmm *vmm = &worker->vmm;
	size_t first, count;
	if (device >= worker->device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!whole(vmm, address, size, &first, &count))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = first; i < first + count; i++) {
		struct ckt_mapping *m = &vmm->mappings[i];
		CUresult result = give(worker, m, device, access);
		if (result)
			return result;
		if (own_device(worker, m) == device)
			m->access = access;
		else
			note_peer(m, device, access);
	}
	return CUDA_SUCCESS;
}

bool ckt_vmm_is_away(struct ckt_worker *worker, const struct ckt_mapping *mapping)
{
	const struct ckt_object *object =
		ckt_objects_find_kind(&worker->objects, mapping->physical, CKT_KIND_PHYSICAL);
	return object && object->physical.away;
}

CUresult ckt_vmm_put_access(struct ckt_worker *worker, const struct ckt_mapping *mapping)
{
	CUresult result = mapping->access
		? give(worker, mapping, own_device(worker, mapping), mapping->access)
		: CUDA_SUCCESS;
	for (unsigned d = 0; d < worker->device_count && !result; d++)
		if ((mapping->readers | mapping->writers) >> d & 1)
			result = give(worker, mapping, d,
				mapping->writers >> d & 1 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
							  : CU_MEM_ACCESS_FLAGS_PROT_READ);
	return result;
}

/* The first `count` mappings. */
static void unmap_first(struct ckt_worker *worker, uint64_t physical, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct ckt_mapping *m = &worker->vmm.mappings[i];
		if ((!physical || m->physical == physical) && !ckt_vmm_is_away(worker, m))
			ckt_driver.cuMemUnmap(m->address, m->size);
	}
}

void ckt_vmm_unmap_all(struct ckt_worker *worker, uint64_t physical)
{
	unmap_first(worker, physical, worker->vmm.mapping_count);
}

static CUresult map_one(struct ckt_worker *worker, const struct ckt_mapping *m)
{
	struct ckt_object *object =
		ckt_objects_find_kind(&worker->objects, m->physical, CKT_KIND_PHYSICAL);
	if (!object)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result =
		ckt_driver.cuMemMap(m->address, m->size, m->offset, object->physical.handle, 0);
	if (!result && (result = ckt_vmm_put_access(worker, m)))
		ckt_driver.cuMemUnmap(m->address, m->size);
	return result;
}

CUresult ckt_vmm_map_again(struct ckt_worker *worker, uint64_t physical)
{
	for (size_t i = 0; i < worker->vmm.mapping_count; i++) {
		const struct ckt_mapping *m = &worker->vmm.mappings[i];
		if ((physical && m->physical != physical) || ckt_vmm_is_away(worker, m))
			continue;
		CUresult result = map_one(worker, m);
		if (result) {
			unmap_first(worker, physical, i);
			return result;
		}
	}
	return CUDA_SUCCESS;
}

CUresult ckt_vmm_free(struct ckt_worker *worker, uint64_t address, uint64_t size)
{
	struct ckt_vmm *vmm = &worker->vmm;
	size_t behind = upper(vmm, address), i = 0;
	if (behind && vmm->mappings[behind - 1].address == address)
		return CUDA_ERROR_INVALID_VALUE;
	if (behind < vmm->mapping_count && vmm->mappings[behind].address - address < size)
		return CUDA_ERROR_INVALID_VALUE;
	while (i < vmm->reservation_count &&
		(vmm->reservations[i].address != address || vmm->reservations[i].size != size))
		i++;
	if (i == vmm->reservation_count)
		return CUDA_ERROR_INVALID_VALUE;
	vmm->reservations[i] = vmm->reservations[--vmm->reservation_count];
	ckt_memory_unreserve(&ckt_worker_device_of(worker, address)->memory, address, size);
	return CUDA_SUCCESS;
}

uint64_t ckt_vmm_window_on(const struct ckt_worker *worker, const struct ckt_object *physical)
{
	for (size_t i = 0; i < worker->vmm.mapping_count; i++) {
		const struct ckt_mapping *m = &worker->vmm.mappings[i];
		if (m->physical == physical->id && m->offset == 0 &&
			m->size == physical->physical.size &&
			m->access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			return m->address;
	}
	return 0;
}

/* ---- Handlers */

int ckt_worker_address_reserve(struct ckt_wcall *call)
{
	struct ckt_address_reserve_args args;
	struct ckt_address_reserve_res res;
	if (!ckt_address_reserve_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_vmm_reserve(
		call->worker, args.device, args.size, args.alignment, args.hint, &res.address);
	if (result)
		return result;
	ckt_address_reserve_res_put(
		ckt_wcall_results(call, ckt_address_reserve_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

int ckt_worker_address_free(struct ckt_wcall *call)
{
	struct ckt_address_free_args args;
	if (!ckt_address_free_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	return ckt_vmm_free(call->worker, args.address, args.size);
}

int ckt_worker_physical_create(struct ckt_wcall *call)
{
	struct ckt_physical_create_args args;
	if (!ckt_physical_create_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	return ckt_vmm_physical_make(
		call->worker, args.id, args.device, args.size, CU_MEM_ALLOCATION_COMP_NONE);
}

int ckt_worker_physical_create_compressible(struct ckt_wcall *call)
{
	struct ckt_physical_create_compressible_args args;
	if (!ckt_physical_create_compressible_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	return ckt_vmm_physical_make(
		call->worker, args.id, args.device, args.size, args.compression);
}

int ckt_worker_physical_release(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_physical_release_args args;
	if (!ckt_physical_release_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_object *object =
		ckt_objects_find_kind(&worker->objects, args.id, CKT_KIND_PHYSICAL);
	if (!object)
		return CUDA_ERROR_INVALID_VALUE;
	/*
	 * The client says so when neither a handle nor a mapping of it is left: a mapping must not
	 * outlive what it is counted by.
	 */
	for (size_t i = 0; i < worker->vmm.mapping_count; i++)
		if (worker->vmm.mappings[i].physical == args.id)
			return CUDA_ERROR_INVALID_VALUE;
	ckt_vmm_physical_unmake(worker, object);
	ckt_objects_remove(&worker->objects, object);
	return CUDA_SUCCESS;
}

int ckt_worker_mem_map(struct ckt_wcall *call)
{
	struct ckt_mem_map_args args;
	if (!ckt_mem_map_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	return ckt_vmm_map(call->worker, args.address, args.size, args.offset, args.physical);
}

int ckt_worker_mem_unmap(struct ckt_wcall *call)
{
	struct ckt_mem_unmap_args args;
	if (!ckt_mem_unmap_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	return ckt_vmm_unmap(call->worker, args.address, args.size);
}

int ckt_worker_mem_set_access(struct ckt_wcall *call)
{
	struct ckt_mem_set_access_args args;
	if (!ckt_mem_set_access_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	return ckt_vmm_set_access(call->worker, args.address, args.size, args.access);
}

int ckt_worker_mem_set_peer_access(struct ckt_wcall *call)
{
	struct ckt_mem_set_peer_access_args args;
	if (!ckt_mem_set_peer_access_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	return ckt_vmm_set_peer_access(
		call->worker, args.address, args.size, args.device, args.access);
}
