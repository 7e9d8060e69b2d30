/* Pausing and resuming; see pause.h. */
#include "checkpoint/freeze/pause.h"
#include "checkpoint/session.h"
#include "server/worker/memory/window.h"
#include "server/worker/session/control_operations.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "checkpoint/format/store.h"
#include "base/log.h"
#include "checkpoint/content_threads.h"
#include "rpc/gen/cuda_driver.h"
#include "checkpoint/fault.h"
#include "server/worker/worker.h"

/*
 * An extent of the allocator, or physical memory of the program, which is read and written at an
 * address of ours.
 */
struct region {
	unsigned device;
	uint64_t address, size;
	uint64_t physical; /* id; 0: an extent */
	uint8_t *host;
	bool *zero; /* by piece: nothing of it in the host's memory */
};

static struct {
	struct region *regions;
	size_t count;
	uint64_t bytes;
	/* The copy that runs. */
	_Atomic size_t next;
	bool back;
	_Atomic int error;
} paused;

static void forget(void)
{
	for (size_t i = 0; i < paused.count; i++) {
		if (paused.regions[i].host)
			munmap(paused.regions[i].host, paused.regions[i].size);
		free(paused.regions[i].zero);
	}
	free(paused.regions);
	paused.regions = NULL;
	paused.count = 0;
	paused.bytes = 0;
}

static int add(struct region region)
{
	struct region *regions = realloc(paused.regions, (paused.count + 1) * sizeof *regions);
	if (!regions)
		return -ENOMEM;
	paused.regions = regions;
	/* Touched as it is filled: pieces of zeros cost nothing. */
	region.host = mmap(NULL, region.size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	region.zero = calloc(region.size / CKT_IMAGE_CHUNK + 1, sizeof *region.zero);
	if (region.host == MAP_FAILED)
		region.host = NULL;
	paused.regions[paused.count++] = region;
	paused.bytes += region.size;
	return region.host && region.zero ? 0 : -ENOMEM;
}

static int collect(struct ckt_worker *worker)
{
	int error = 0;
	uint64_t scratch = CKT_SCRATCH_BASE;
	for (unsigned d = 0; d < worker->device_count; d++) {
		struct ckt_memory *memory = &worker->devices[d].memory;
		ckt_memory_trim(memory);
		for (size_t i = 0; i < memory->extent_count && !error; i++)
			error = add((struct region){.device = d,
				.address = memory->extents[i].address,
				.size = memory->extents[i].size});
	}
	struct ckt_object *object;
	for (uint32_t cursor = 0; !error && (object = ckt_objects_next(&worker->objects, &cursor));)
		if (ckt_handle_kind(object->id) == CKT_KIND_PHYSICAL) {
			error = add((struct region){.device = object->physical.device,
				.address = scratch,
				.size = object->physical.size,
				.physical = object->id});
			scratch += object->physical.size;
		}
	return error ? error : scratch > CKT_SPARE_BASE ? -ENOMEM : 0;
}

/* ---- Addresses of ours for what the program mapped itself, or not at all */

static void hide(size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (paused.regions[i].physical)
			ckt_driver.cuMemUnmap(paused.regions[i].address, paused.regions[i].size);
}

static CUresult show(struct ckt_worker *worker)
{
	for (size_t i = 0; i < paused.count; i++) {
		struct region *r = &paused.regions[i];
		struct ckt_object *object =
			r->physical ? ckt_objects_find(&worker->objects, r->physical) : NULL;
		if (!object)
			continue;
		CUresult result =
			ckt_driver.cuMemMap(r->address, r->size, 0, object->physical.handle, 0);
		if (!result &&
			(result = ckt_window_set_access(worker, r->device, r->address, r->size,
				 CU_MEM_ACCESS_FLAGS_PROT_READWRITE)))
			ckt_driver.cuMemUnmap(r->address, r->size);
		if (result) {
			hide(i);
			return result;
		}
	}
	return CUDA_SUCCESS;
}

/* ---- Copies */

static CUresult copy_piece(struct ckt_crew_member *member, struct region *r, uint64_t at)
{
	uint64_t size = r->size - at < CKT_IMAGE_CHUNK ? r->size - at : CKT_IMAGE_CHUNK;
	bool *zero = &r->zero[at / CKT_IMAGE_CHUNK];
	CUresult result = ckt_crew_use_device(member, r->device);
	if (result)
		return result;
	if (paused.back) {
		if (*zero)
			return ckt_driver.cuMemsetD8_v2(r->address + at, 0, size);
		memcpy(member->buffer, r->host + at, size);
		return ckt_driver.cuMemcpyHtoD_v2(r->address + at, member->buffer, size);
	}
	result = ckt_driver.cuMemcpyDtoH_v2(member->buffer, r->address + at, size);
	*zero = !result && !member->buffer[0] &&
		!memcmp(member->buffer, member->buffer + 1, size - 1);
	if (!result && !*zero)
		memcpy(r->host + at, member->buffer, size);
	return result;
}

static int copy_pieces(struct ckt_crew_member *member, void *opaque)
{
	struct ckt_worker *worker = opaque;
	size_t first = 0, region = 0;
	unsigned device = 0;
	for (size_t n; !paused.error && (n = paused.next++, true);) {
		/* The nth piece of all: numbers only grow. */
		while (region < paused.count &&
			n - first >= (paused.regions[region].size + CKT_IMAGE_CHUNK - 1) /
					CKT_IMAGE_CHUNK)
			first += (paused.regions[region++].size + CKT_IMAGE_CHUNK - 1) /
				CKT_IMAGE_CHUNK;
		if (region == paused.count)
			break;
		/* A memset is asynchronous, and only its own context can be waited for. */
		if (member->current && paused.regions[region].device != device)
			ckt_driver.cuCtxSynchronize();
		device = paused.regions[region].device;
		CUresult result =
			copy_piece(member, &paused.regions[region], (n - first) * CKT_IMAGE_CHUNK);
		if (result)
			paused.error = (int)result;
		atomic_fetch_add_explicit(
			&worker->progress.done, CKT_IMAGE_CHUNK, memory_order_relaxed);
	}
	if (member->current)
		ckt_driver.cuCtxSynchronize();
	return paused.error ? -EIO : 0;
}

static CUresult copy(struct ckt_worker *worker, bool back)
{
	paused.next = 0;
	paused.error = 0;
	paused.back = back;
	ckt_crew_look(worker);
	ckt_progress_begin(worker, back ? "resume" : "pause", paused.bytes);
	CUresult result = show(worker);
	if (result)
		return result;
	ckt_crew_run(copy_pieces, worker);
	hide(paused.count);
	return (CUresult)paused.error;
}

/* ---- Physical memory */

static struct ckt_extent *extent_of(struct ckt_worker *worker, const struct region *r)
{
	struct ckt_memory *memory = &worker->devices[r->device].memory;
	for (size_t i = 0; i < memory->extent_count; i++)
		if (memory->extents[i].address == r->address)
			return &memory->extents[i];
	return NULL;
}

static void unmap_all(struct ckt_worker *worker, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ckt_driver.cuMemUnmap(
			worker->vmm.mappings[i].address, worker->vmm.mappings[i].size);
}

/* Of the first `count` regions.  Precondition: none of the program's own mappings is left. */
static void give_up(struct ckt_worker *worker, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct region *r = &paused.regions[i];
		struct ckt_extent *extent = r->physical ? NULL : extent_of(worker, r);
		if (extent)
			ckt_window_unmap(extent->address, extent->size, extent->piece);
		else if (r->physical)
			ckt_driver.cuMemRelease(
				ckt_objects_find(&worker->objects, r->physical)->physical.handle);
	}
}

static CUresult map_all(struct ckt_worker *worker)
{
	for (size_t i = 0; i < worker->vmm.mapping_count; i++) {
		struct ckt_mapping *m = &worker->vmm.mappings[i];
		struct ckt_object *object = ckt_objects_find(&worker->objects, m->physical);
		CUresult result = object ? ckt_driver.cuMemMap(m->address, m->size, m->offset,
						   object->physical.handle, 0)
					 : CUDA_ERROR_INVALID_VALUE;
		if (!result && (result = ckt_vmm_put_access(worker, m)))
			ckt_driver.cuMemUnmap(m->address, m->size);
		if (result) {
			unmap_all(worker, i);
			return result;
		}
	}
	return CUDA_SUCCESS;
}

static CUresult make_again(struct ckt_worker *worker, const struct region *r)
{
	struct ckt_object *object = ckt_objects_find(&worker->objects, r->physical);
	return ckt_window_create(
		worker, r->device, r->size, object->physical.compression, &object->physical.handle);
}

static CUresult take_back(struct ckt_worker *worker)
{
	for (size_t i = 0; i < paused.count; i++) {
		struct region *r = &paused.regions[i];
		struct ckt_extent *extent = r->physical ? NULL : extent_of(worker, r);
		CUresult result = CUDA_SUCCESS;
		if (extent)
			result = ckt_window_map(
				worker, r->device, r->address, r->size, &extent->piece);
		else if (r->physical)
			result = make_again(worker, r);
		if (result) {
			give_up(worker, i);
			return result;
		}
	}
	CUresult result =
		ckt_fault_fails(CKT_FAULT_RESUME_MAP) ? CUDA_ERROR_OUT_OF_MEMORY : map_all(worker);
	if (result)
		give_up(worker, paused.count);
	return result;
}

/* How much less than needed is free, over all devices. */
static uint64_t missing_bytes(struct ckt_worker *worker)
{
	uint64_t missing = 0;
	for (unsigned d = 0; d < worker->device_count; d++) {
		struct ckt_object *context =
			ckt_objects_find(&worker->objects, ckt_handle_primary(d));
		size_t free_bytes = 0, total;
		uint64_t need = 0;
		for (size_t i = 0; i < paused.count; i++)
			need += paused.regions[i].device == d ? paused.regions[i].size : 0;
		if (!need || !context || ckt_driver.cuCtxSetCurrent(context->real) ||
			ckt_driver.cuMemGetInfo_v2(&free_bytes, &total))
			continue;
		missing += need > free_bytes ? need - free_bytes : 0;
	}
	return missing;
}

int ckt_pause(
	struct ckt_worker *worker, uint64_t *ret_bytes, char *ret_message, size_t message_size)
{
	/*
	 * What others have mapped would stay on the GPU, and what comes back would be other memory.
	 */
	if (ckt_session_operations.is_shared(ret_message, message_size))
		return -EOPNOTSUPP;
	ckt_worker_pools_poll(worker);
	int error = collect(worker);
	CUresult result = CUDA_SUCCESS;
	if (!error)
		result = copy(worker, false);
	if (!error && !result && ckt_fault_fails(CKT_FAULT_PAUSE_COPIED))
		result = CUDA_ERROR_UNKNOWN;
	if (error || result) {
		forget();
		if (result)
			snprintf(ret_message, message_size,
				"copying the GPU's memory to the host: CUDA error %d", result);
		else
			snprintf(ret_message, message_size,
				"the host has no memory for the session's: %s", strerror(-error));
		return error ? error : -EIO;
	}
	unmap_all(worker, worker->vmm.mapping_count);
	give_up(worker, paused.count);
	if (ckt_fault_fails(CKT_FAULT_PAUSE_GIVEN_UP)) {
		uint64_t bytes;
		/* Where it does not come back the session is paused after all. */
		if (!ckt_resume(worker, &bytes, ret_message, message_size)) {
			snprintf(ret_message, message_size, "told to fail");
			return -EIO;
		}
	}
	*ret_bytes = paused.bytes;
	ckt_info("paused: %llu MiB of the GPU's memory given up",
		(unsigned long long)(paused.bytes >> 20));
	return 0;
}

int ckt_resume(
	struct ckt_worker *worker, uint64_t *ret_bytes, char *ret_message, size_t message_size)
{
	uint64_t missing = missing_bytes(worker);
	CUresult result = missing ? CUDA_ERROR_OUT_OF_MEMORY : take_back(worker);
	if (result == CUDA_ERROR_OUT_OF_MEMORY) {
		*ret_bytes = missing ? missing : CKT_MEMORY_EXTENT;
		snprintf(ret_message, message_size,
			"the GPU has too little memory free: %llu MiB are missing; the session stays paused",
			(unsigned long long)(*ret_bytes >> 20) + 1);
		return -ENOMEM;
	}
	CUresult copied = result ? result : copy(worker, true);
	if (!result && !copied && ckt_fault_fails(CKT_FAULT_RESUME_COPIED))
		copied = CUDA_ERROR_UNKNOWN;
	if (result) {
		snprintf(ret_message, message_size,
			"taking the memory back: CUDA error %d; the session stays paused", result);
		return -EIO;
	}
	if (copied) {
		/* The host still has everything: as if nothing had been tried. */
		unmap_all(worker, worker->vmm.mapping_count);
		give_up(worker, paused.count);
		snprintf(ret_message, message_size,
			"copying the memory back to the GPU: CUDA error %d; the session stays paused",
			copied);
		return -EIO;
	}
	*ret_bytes = paused.bytes;
	forget();
	return 0;
}

const uint8_t *ckt_pause_copy(uint64_t address, uint64_t physical)
{
	for (size_t i = 0; i < paused.count; i++)
		if (paused.regions[i].physical == physical &&
			(physical || paused.regions[i].address == address))
			return paused.regions[i].host;
	return NULL;
}
