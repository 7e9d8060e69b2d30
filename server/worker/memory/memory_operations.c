/* SPDX-License-Identifier: Apache-2.0 */
/* What checkpoint/ needs of a session's GPUs, by the worker; see checkpoint/memory_operations.h. */
#include "checkpoint/memory_operations.h"

#include <stdlib.h>

#include "rpc/gen/cuda_driver.h"
#include "server/worker/ipc/ipc.h"
#include "server/worker/memory/lease.h"
#include "server/worker/memory/window.h"
#include "server/worker/worker.h"

/* ---- GPUs */

static struct ckt_memory_layout layout(struct ckt_worker *worker)
{
	return (struct ckt_memory_layout){.device_count = worker->device_count,
		.base = worker->window_base,
		.size = worker->window_size,
		.slice_size = worker->slice_size};
}

static void place(struct ckt_worker *worker, const struct ckt_memory_layout *wanted)
{
	worker->device_count = wanted->device_count;
	worker->slice_size = wanted->slice_size;
	worker->window_base = wanted->base;
	worker->window_size = wanted->size;
	for (unsigned d = 0; d < worker->device_count; d++) {
		ckt_memory_fini(&worker->devices[d].memory);
		ckt_window_init_device(worker, d);
	}
}

static struct ckt_device_description describe(struct ckt_worker *worker, unsigned device)
{
	const struct ckt_worker_device *d = &worker->devices[device];
	return (struct ckt_device_description){
		.name = d->name, .major = d->major, .minor = d->minor};
}

static int driver_version(struct ckt_worker *worker)
{
	return worker->driver_version;
}

/* ---- Physical memory */

static CUresult allow(struct ckt_worker *worker, unsigned device, uint64_t address, uint64_t size)
{
	return ckt_window_set_access(
		worker, device, address, size, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

static CUresult preload(struct ckt_worker *worker, unsigned device, uint64_t address, uint64_t size)
{
	return ckt_memory_preload(&worker->devices[device].memory, address, size);
}

static void preload_drop(struct ckt_worker *worker, unsigned device, uint64_t address)
{
	ckt_memory_preload_drop(&worker->devices[device].memory, address);
}

/* ---- All of the session's memory */

static uint64_t held_bytes(struct ckt_worker *worker, unsigned device)
{
	struct ckt_memory *memory = &worker->devices[device].memory;
	uint64_t bytes = 0;
	pthread_mutex_lock(&memory->lock);
	for (size_t i = 0; i < memory->extent_count; i++)
		bytes += memory->extents[i].use == CKT_EXTENT_CACHED ? 0 : memory->extents[i].size;
	pthread_mutex_unlock(&memory->lock);
	return bytes + ckt_memory_charged(memory);
}

static uint64_t part_size(const struct ckt_extent *extent, uint64_t at)
{
	uint64_t left = extent->size - at;
	return left < CKT_MEMORY_PART ? left : CKT_MEMORY_PART;
}

/* A large extent in parts, also where its physical memory is one piece. */
static int visit_extent(
	unsigned device, const struct ckt_extent *extent, ckt_region_visit *visit, void *opaque)
{
	int error = 0;
	/* What others open comes back in one piece. */
	if (!extent->parts && ckt_ipc_exports(extent->address, extent->size))
		return visit(
			&(struct ckt_region){
				.device = device, .address = extent->address, .size = extent->size},
			opaque);
	for (uint64_t at = 0; at < extent->size && !error; at += CKT_MEMORY_PART)
		error = visit(
			&(struct ckt_region){.device = device,
				.address = extent->address + at,
				.size = part_size(extent, at),
				.tied = !extent->parts && extent->size - at > CKT_MEMORY_PART},
			opaque);
	return error;
}

static int visit_regions(struct ckt_worker *worker, ckt_region_visit *visit, void *opaque)
{
	int error = 0;
	for (unsigned d = 0; d < worker->device_count; d++) {
		struct ckt_memory *memory = &worker->devices[d].memory;
		ckt_memory_trim(memory);
		for (size_t i = 0; i < memory->extent_count && !error; i++)
			error = visit_extent(d, &memory->extents[i], visit, opaque);
	}
	struct ckt_object *object;
	for (uint32_t cursor = 0; !error && (object = ckt_objects_next(&worker->objects, &cursor));)
		if (ckt_handle_kind(object->id) == CKT_KIND_PHYSICAL && !object->physical.imported)
			error = visit(&(struct ckt_region){.device = object->physical.device,
					      .size = object->physical.size,
					      .physical = object->id},
				opaque);
	return error;
}

static struct ckt_extent *extent_of(struct ckt_worker *worker, const struct ckt_region *region)
{
	struct ckt_memory *memory = &worker->devices[region->device].memory;
	for (size_t i = 0; i < memory->extent_count; i++)
		if (region->address - memory->extents[i].address < memory->extents[i].size)
			return &memory->extents[i];
	return NULL;
}

static void give_up_extent(struct ckt_extent *extent, const struct ckt_region *region)
{
	uint64_t at = region->address - extent->address;
	uint64_t *part = extent->parts ? &extent->parts[at / CKT_MEMORY_PART] : NULL;
	if (part) {
		ckt_window_unmap(region->address, region->size, *part);
		*part = 0;
	} else if (at + region->size == extent->size) {
		ckt_window_unmap(extent->address, extent->size, extent->piece);
	}
}

static CUresult take_back_extent(
	struct ckt_worker *worker, struct ckt_extent *extent, const struct ckt_region *region)
{
	uint64_t *piece = &extent->piece;
	if (region->size < extent->size) {
		if (!extent->parts)
			extent->parts =
				calloc(extent->size / CKT_MEMORY_PART + 1, sizeof *extent->parts);
		if (!extent->parts)
			return CUDA_ERROR_OUT_OF_MEMORY;
		piece = &extent->parts[(region->address - extent->address) / CKT_MEMORY_PART];
	}
	return ckt_window_map(worker, region->device, region->address, region->size, piece);
}

static CUresult show(struct ckt_worker *worker, const struct ckt_region *region, uint64_t address)
{
	struct ckt_object *object = ckt_objects_find(&worker->objects, region->physical);
	if (!object)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_driver.cuMemMap(address, region->size, 0, object->physical.handle, 0);
	if (!result && (result = allow(worker, region->device, address, region->size)))
		ckt_driver.cuMemUnmap(address, region->size);
	return result;
}

static void give_up(struct ckt_worker *worker, const struct ckt_region *region)
{
	struct ckt_extent *extent = region->physical ? NULL : extent_of(worker, region);
	if (extent)
		give_up_extent(extent, region);
	else if (region->physical)
		ckt_driver.cuMemRelease(
			ckt_objects_find(&worker->objects, region->physical)->physical.handle);
}

static CUresult take_back(struct ckt_worker *worker, const struct ckt_region *region)
{
	struct ckt_extent *extent = region->physical ? NULL : extent_of(worker, region);
	if (extent)
		return take_back_extent(worker, extent, region);
	if (!region->physical)
		return CUDA_SUCCESS;
	struct ckt_object *object = ckt_objects_find(&worker->objects, region->physical);
	return ckt_window_create(worker, region->device, region->size, object->physical.compression,
		&object->physical.handle);
}

static void give_lease(struct ckt_worker *worker, unsigned device, uint64_t bytes)
{
	ckt_lease_give(worker->devices[device].number, bytes);
	ckt_lease_give_spare(worker->devices[device].number);
}

static bool take_lease(struct ckt_worker *worker, unsigned device, uint64_t bytes, bool follows)
{
	return ckt_lease_take(worker->devices[device].number, bytes,
		follows ? CKT_LEASE_FOLLOWED : CKT_LEASE_ASKED);
}

static void unmap_program(struct ckt_worker *worker)
{
	ckt_vmm_unmap_all(worker, 0);
}

static CUresult map_program(struct ckt_worker *worker)
{
	return ckt_vmm_map_again(worker, 0);
}

const struct ckt_memory_operations ckt_memory_operations = {
	.layout = layout,
	.place = place,
	.window_holds = ckt_window_holds,
	.describe = describe,
	.driver_version = driver_version,
	.make_pools = ckt_worker_pools_init,
	.settle_pools = ckt_worker_pools_poll,
	.create = ckt_window_create,
	.allow = allow,
	.map = ckt_window_map,
	.unmap = ckt_window_unmap,
	.preload = preload,
	.preload_drop = preload_drop,
	.held_bytes = held_bytes,
	.visit_regions = visit_regions,
	.show = show,
	.give_up = give_up,
	.take_back = take_back,
	.give_lease = give_lease,
	.take_lease = take_lease,
	.map_program = map_program,
	.unmap_program = unmap_program,
};
