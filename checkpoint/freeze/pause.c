/* SPDX-License-Identifier: Apache-2.0 */
/* Pausing and resuming; see pause.h. */
#include "checkpoint/freeze/pause.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "checkpoint/content_threads.h"
#include "checkpoint/fault.h"
#include "checkpoint/format/store.h"
#include "checkpoint/freeze/swap_store.h"
#include "checkpoint/kernels/hash.h"
#include "checkpoint/memory_operations.h"
#include "checkpoint/session.h"
#include "checkpoint/state.h"
#include "rpc/gen/cuda_driver.h"
#include "rpc/handle.h"

struct region {
	struct ckt_region memory;
	/*
	 * where it is read and written: the program's physical memory, mapped at an address of ours
	 */
	uint64_t address;
	uint8_t *host;
	bool *zero; /* by piece: the host's memory holds nothing of it */
	/* swapped: where it is; host then maps it to be read, and zero is not used */
	struct ckt_swap_region *stored;
	struct ckt_hash_value *hashes; /* by piece, as the GPU holds it; NULL: not known */
};

static struct {
	struct region *regions;
	size_t count;
	uint64_t bytes;
	bool swapped; /* to the swap store */
	bool lease_given;
	_Atomic uint64_t moved;
	_Atomic int store_error;
	/* The copy that runs. */
	_Atomic size_t next;
	bool back;
	_Atomic int error;
} paused;

static void forget(void)
{
	for (size_t i = 0; i < paused.count; i++) {
		if (paused.regions[i].host && !paused.regions[i].stored)
			munmap(paused.regions[i].host, paused.regions[i].memory.size);
		free(paused.regions[i].zero);
		free(paused.regions[i].hashes);
	}
	free(paused.regions);
	paused.regions = NULL;
	paused.count = 0;
	paused.bytes = 0;
	paused.swapped = paused.lease_given = false;
}

/* The host's node that the GPU is at; -1: not known.  Another context is current afterwards. */
static int node_of(struct ckt_worker *worker, unsigned device)
{
	CUcontext context = ckt_session_operations.real_context(worker, ckt_handle_primary(device));
	CUdevice real;
	int node;
	return context && !ckt_driver.cuCtxSetCurrent(context) &&
			!ckt_driver.cuCtxGetDevice(&real) &&
			!ckt_driver.cuDeviceGetAttribute(
				&node, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, real)
		? node
		: -1;
}

struct collecting {
	struct ckt_worker *worker;
	uint64_t scratch;
};

static int add(const struct ckt_region *memory, void *opaque)
{
	struct collecting *collecting = opaque;
	struct region *regions = realloc(paused.regions, (paused.count + 1) * sizeof *regions);
	if (!regions)
		return -ENOMEM;
	paused.regions = regions;
	struct region region = {.memory = *memory, .address = memory->address};
	if (memory->physical) {
		region.address = collecting->scratch;
		collecting->scratch += memory->size;
	}
	if (paused.swapped) {
		region.stored = ckt_swap_store_region(memory);
		region.host = region.stored ? ckt_swap_store_map(region.stored,
						      node_of(collecting->worker, memory->device))
					    : NULL;
		paused.regions[paused.count++] = region;
		paused.bytes += memory->size;
		return region.host ? 0 : -ENOMEM;
	}
	/* Each page is touched when it is filled, so pieces of zeros take no memory. */
	region.host = mmap(NULL, memory->size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	region.zero = calloc(memory->size / CKT_IMAGE_CHUNK + 1, sizeof *region.zero);
	if (region.host == MAP_FAILED)
		region.host = NULL;
	paused.regions[paused.count++] = region;
	paused.bytes += memory->size;
	return region.host && region.zero ? 0 : -ENOMEM;
}

static int collect(struct ckt_worker *worker)
{
	struct collecting collecting = {worker, CKT_SCRATCH_BASE};
	int error = ckt_memory_operations.visit_regions(worker, add, &collecting);
	return error ? error : collecting.scratch > CKT_SPARE_BASE ? -ENOMEM : 0;
}

/* ---- Addresses of ours for what the program mapped itself, or not at all */

static void hide(size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (paused.regions[i].memory.physical)
			ckt_driver.cuMemUnmap(
				paused.regions[i].address, paused.regions[i].memory.size);
}

static CUresult show(struct ckt_worker *worker)
{
	for (size_t i = 0; i < paused.count; i++) {
		struct region *r = &paused.regions[i];
		CUresult result = r->memory.physical
			? ckt_memory_operations.show(worker, &r->memory, r->address)
			: CUDA_SUCCESS;
		if (result) {
			hide(i);
			return result;
		}
	}
	return CUDA_SUCCESS;
}

/* ---- Copies */

static CUresult stored(int error, uint64_t size)
{
	if (error) {
		paused.store_error = error;
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	atomic_fetch_add_explicit(&paused.moved, size, memory_order_relaxed);
	return CUDA_SUCCESS;
}

static CUresult stored_in(
	struct ckt_content_thread *member, struct region *r, uint64_t at, uint64_t size)
{
	size_t chunk = at / CKT_IMAGE_CHUNK;
	if (r->stored->states[chunk] != CKT_SWAP_STORED)
		return ckt_driver.cuMemsetD8_v2(r->address + at, 0, size);
	const uint8_t *place = ckt_swap_store_place(r->stored, chunk);
	int error = place ? 0 : ckt_swap_store_read(r->stored, chunk, member->buffer, size);
	CUresult result = stored(error, size);
	if (result)
		return result;
	return place ? ckt_driver.cuMemcpyHtoDAsync_v2(r->address + at, place, size,
			       ckt_content_threads_stream(member, r->memory.device))
		     : ckt_driver.cuMemcpyHtoD_v2(r->address + at, member->buffer, size);
}

static bool is_stored(const struct region *r, size_t chunk, const struct ckt_hash_value *hash)
{
	const struct ckt_hash_value *had = &r->stored->hashes[chunk];
	return r->stored->states[chunk] == CKT_SWAP_STORED && (had->hash[0] || had->hash[1]) &&
		had->hash[0] == hash->hash[0] && had->hash[1] == hash->hash[1];
}

/* By the GPU into the store's own memory.  The hash is noted when all copies are done. */
static CUresult placed_out(struct ckt_content_thread *member, struct region *r, uint64_t at,
	uint64_t size, uint8_t *place)
{
	int error = ckt_swap_store_fill(r->stored, at / CKT_IMAGE_CHUNK);
	CUresult result = stored(error, size);
	return result ? result
		      : ckt_driver.cuMemcpyDtoHAsync_v2(place, r->address + at, size,
				ckt_content_threads_stream(member, r->memory.device));
}

/* What the store has already of the same contents is not even read. */
static CUresult stored_out(
	struct ckt_content_thread *member, struct region *r, uint64_t at, uint64_t size)
{
	size_t chunk = at / CKT_IMAGE_CHUNK;
	const struct ckt_hash_value *hash = r->hashes ? &r->hashes[chunk] : NULL;
	if (hash && hash->any && is_stored(r, chunk, hash))
		return CUDA_SUCCESS;
	uint8_t *place = ckt_swap_store_place(r->stored, chunk);
	if (place)
		return placed_out(member, r, at, size, place);
	CUresult result = hash && !hash->any
		? CUDA_SUCCESS
		: ckt_driver.cuMemcpyDtoH_v2(member->buffer, r->address + at, size);
	if (result)
		return result;
	if (hash ? !hash->any
		 : !member->buffer[0] && !memcmp(member->buffer, member->buffer + 1, size - 1)) {
		ckt_swap_store_zero(r->stored, chunk);
		return CUDA_SUCCESS;
	}
	return stored(ckt_swap_store_write(r->stored, chunk, member->buffer, size, hash), size);
}

static CUresult copy_piece(struct ckt_content_thread *member, struct region *r, uint64_t at)
{
	uint64_t left = r->memory.size - at, size = left < CKT_IMAGE_CHUNK ? left : CKT_IMAGE_CHUNK;
	CUresult result = ckt_content_threads_use_device(member, r->memory.device);
	if (result)
		return result;
	if (r->stored)
		return paused.back ? stored_in(member, r, at, size)
				   : stored_out(member, r, at, size);
	bool *zero = &r->zero[at / CKT_IMAGE_CHUNK];
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

/* A memset and a copy of pinned memory run on, and only their own context can be waited for. */
static void wait_copies(struct ckt_content_thread *member)
{
	CUresult result = member->current ? ckt_driver.cuCtxSynchronize() : CUDA_SUCCESS;
	if (result)
		paused.error = (int)result;
}

static int copy_pieces(struct ckt_content_thread *member, void *opaque)
{
	struct ckt_worker *worker = opaque;
	size_t first = 0, region = 0;
	unsigned device = 0;
	for (size_t n; !paused.error && (n = paused.next++, true);) {
		/* The nth piece of all: the numbers only grow. */
		while (region < paused.count &&
			n - first >= (paused.regions[region].memory.size + CKT_IMAGE_CHUNK - 1) /
					CKT_IMAGE_CHUNK)
			first += (paused.regions[region++].memory.size + CKT_IMAGE_CHUNK - 1) /
				CKT_IMAGE_CHUNK;
		if (region == paused.count)
			break;
		if (paused.regions[region].memory.device != device)
			wait_copies(member);
		device = paused.regions[region].memory.device;
		CUresult result =
			copy_piece(member, &paused.regions[region], (n - first) * CKT_IMAGE_CHUNK);
		if (result)
			paused.error = (int)result;
		atomic_fetch_add_explicit(&ckt_checkpoint_of(worker)->progress.done,
			CKT_IMAGE_CHUNK, memory_order_relaxed);
	}
	wait_copies(member);
	return paused.error ? -EIO : 0;
}

/*
 * What has changed, by the GPU; where it cannot tell, everything is written.  Precondition: all is
 * mapped.
 */
static void hash_device(struct ckt_worker *worker, unsigned device)
{
	size_t count = 0, n = 0;
	for (size_t i = 0; i < paused.count; i++)
		count += paused.regions[i].memory.device == device
			? paused.regions[i].stored->chunk_count
			: 0;
	struct ckt_hash_item *items = calloc(count + 1, sizeof *items);
	struct ckt_hash_value *values = calloc(count + 1, sizeof *values);
	for (size_t i = 0; items && values && i < paused.count; i++) {
		const struct region *r = &paused.regions[i];
		for (uint64_t at = 0; r->memory.device == device && at < r->memory.size;
			at += CKT_IMAGE_CHUNK)
			items[n++] = (struct ckt_hash_item){r->address + at,
				r->memory.size - at < CKT_IMAGE_CHUNK ? r->memory.size - at
								      : CKT_IMAGE_CHUNK};
	}
	CUresult result = items && values && count
		? ckt_hash_run(worker, device, ckt_swap_store_key(), items, count, values)
		: CUDA_ERROR_OUT_OF_MEMORY;
	n = 0;
	for (size_t i = 0; !result && i < paused.count; i++) {
		struct region *r = &paused.regions[i];
		if (r->memory.device != device)
			continue;
		r->hashes = calloc(r->stored->chunk_count + 1, sizeof *r->hashes);
		if (r->hashes)
			memcpy(r->hashes, values + n, r->stored->chunk_count * sizeof *r->hashes);
		n += r->stored->chunk_count;
	}
	if (result && count)
		ckt_info("cannot hash the GPU's memory: CUDA error %d; all of it is written",
			result);
	free(items);
	free(values);
}

/* Zeros become holes.  Precondition: a context is current. */
static void unpin_zeros(void)
{
	for (size_t i = 0; i < paused.count; i++) {
		const struct region *r = &paused.regions[i];
		for (size_t chunk = 0; r->hashes && chunk < r->stored->chunk_count; chunk++)
			if (!r->hashes[chunk].any)
				ckt_swap_store_unpin(r->stored, chunk);
	}
}

static void note_hashes(void)
{
	for (size_t i = 0; i < paused.count; i++) {
		const struct region *r = &paused.regions[i];
		for (size_t chunk = 0; r->hashes && chunk < r->stored->chunk_count; chunk++)
			if (ckt_swap_store_place(r->stored, chunk))
				r->stored->hashes[chunk] = r->hashes[chunk];
	}
}

static CUresult copy(struct ckt_worker *worker, bool back)
{
	paused.next = 0;
	paused.error = 0;
	paused.back = back;
	paused.moved = 0;
	paused.store_error = 0;
	ckt_content_threads_look(worker);
	ckt_progress_begin(
		&ckt_checkpoint_of(worker)->progress, back ? "resume" : "pause", paused.bytes);
	CUresult result = show(worker);
	if (result)
		return result;
	for (unsigned d = 0; paused.swapped && !back && d < ckt_device_count(worker); d++)
		hash_device(worker, d);
	if (paused.swapped && !back)
		unpin_zeros();
	ckt_content_threads_run(copy_pieces, worker);
	if (paused.swapped && !back && !paused.error)
		note_hashes();
	hide(paused.count);
	return (CUresult)paused.error;
}

/* ---- Physical memory */

/* Of the first `count` regions.  Precondition: none of the program's own mappings remains. */
static void give_up(struct ckt_worker *worker, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ckt_memory_operations.give_up(worker, &paused.regions[i].memory);
}

static CUresult take_back(struct ckt_worker *worker)
{
	for (size_t i = 0; i < paused.count; i++) {
		CUresult result =
			ckt_memory_operations.take_back(worker, &paused.regions[i].memory);
		if (result) {
			give_up(worker, i);
			return result;
		}
	}
	CUresult result = ckt_fault_fails(CKT_FAULT_RESUME_MAP)
		? CUDA_ERROR_OUT_OF_MEMORY
		: ckt_memory_operations.map_program(worker);
	if (result)
		give_up(worker, paused.count);
	return result;
}

/* How many bytes are missing, over all devices. */
static uint64_t missing_bytes(struct ckt_worker *worker)
{
	uint64_t missing = 0;
	for (unsigned d = 0; d < ckt_device_count(worker); d++) {
		CUcontext context =
			ckt_session_operations.real_context(worker, ckt_handle_primary(d));
		size_t free_bytes = 0, total;
		uint64_t need = 0;
		for (size_t i = 0; i < paused.count; i++)
			need += paused.regions[i].memory.device == d ? paused.regions[i].memory.size
								     : 0;
		if (!need || !context || ckt_driver.cuCtxSetCurrent(context) ||
			ckt_driver.cuMemGetInfo_v2(&free_bytes, &total))
			continue;
		missing += need > free_bytes ? need - free_bytes : 0;
	}
	return missing;
}

/* ---- What the server counts */

static uint64_t device_bytes(unsigned device)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < paused.count; i++)
		bytes += paused.regions[i].memory.device == device ? paused.regions[i].memory.size
								   : 0;
	return bytes;
}

/* Of the first `count` devices. */
static void give_leases(struct ckt_worker *worker, unsigned count)
{
	for (unsigned d = 0; d < count; d++)
		ckt_memory_operations.give_lease(worker, d, device_bytes(d));
}

/* How much the server does not grant; 0: all is granted. */
static uint64_t take_leases(struct ckt_worker *worker)
{
	for (unsigned d = 0; d < ckt_device_count(worker); d++)
		if (!ckt_memory_operations.take_lease(worker, d, device_bytes(d))) {
			give_leases(worker, d);
			return device_bytes(d);
		}
	return 0;
}

static void pause_failed(int error, CUresult result, char *ret_message, size_t message_size)
{
	if (paused.swapped && paused.store_error)
		snprintf(ret_message, message_size,
			paused.store_error == -ENOSPC
				? "the swap memory is full: %s; give more with --swap-memory or --swap; the session goes on"
				: "cannot write to the swap memory: %s; the session goes on",
			strerror(-paused.store_error));
	else if (result)
		snprintf(ret_message, message_size,
			"cannot copy the GPU's memory to the host: CUDA error %d", result);
	else
		snprintf(ret_message, message_size,
			"the host has too little memory for the session's: %s", strerror(-error));
}

static int pause_to(
	struct ckt_worker *worker, uint64_t *ret_bytes, char *ret_message, size_t message_size)
{
	/*
	 * Memory that other sessions have mapped would stay on the GPU, and the resume would
	 * allocate other memory.
	 */
	if (ckt_session_operations.is_shared(ret_message, message_size))
		return -EOPNOTSUPP;
	ckt_memory_operations.settle_pools(worker);
	int error = collect(worker);
	CUresult result = CUDA_SUCCESS;
	if (!error)
		result = copy(worker, false);
	if (!error && !result && ckt_fault_fails(CKT_FAULT_PAUSE_COPIED))
		result = CUDA_ERROR_UNKNOWN;
	if (error || result) {
		int store_error = paused.store_error;
		pause_failed(error, result, ret_message, message_size);
		forget();
		return error ? error : store_error ? store_error : -EIO;
	}
	ckt_memory_operations.unmap_program(worker);
	give_up(worker, paused.count);
	if (ckt_fault_fails(CKT_FAULT_PAUSE_GIVEN_UP)) {
		uint64_t bytes;
		/* If the memory cannot be allocated again, the session is paused after all. */
		if (!ckt_resume(worker, &bytes, ret_message, message_size)) {
			snprintf(ret_message, message_size, "CRICKET_FAULT made this step fail");
			return -EIO;
		}
	}
	*ret_bytes = paused.bytes;
	if (paused.swapped) {
		ckt_swap_store_sweep();
		give_leases(worker, ckt_device_count(worker));
		paused.lease_given = true;
	}
	ckt_info("%s: released %llu MiB of the GPU's memory", paused.swapped ? "swapped" : "paused",
		(unsigned long long)(paused.bytes >> 20));
	return 0;
}

int ckt_pause(
	struct ckt_worker *worker, uint64_t *ret_bytes, char *ret_message, size_t message_size)
{
	paused.store_error = 0;
	return pause_to(worker, ret_bytes, ret_message, message_size);
}

int ckt_pause_swap(struct ckt_worker *worker, uint64_t *ret_bytes, uint64_t *ret_moved,
	char *ret_message, size_t message_size)
{
	ckt_swap_store_begin();
	paused.store_error = 0;
	paused.swapped = true;
	int error = pause_to(worker, ret_bytes, ret_message, message_size);
	*ret_moved = paused.moved;
	if (error)
		paused.swapped = false;
	return error;
}

int ckt_pause_use(struct ckt_worker *worker, int fd, uint64_t limit_bytes)
{
	/* What another file's regions had pinned is unpinned. */
	ckt_driver.cuCtxSetCurrent(ckt_session_operations.first_context(worker));
	return ckt_swap_store_use(fd, limit_bytes);
}

void ckt_pause_pin(struct ckt_worker *worker, const _Atomic unsigned *stop)
{
	CUcontext context = ckt_session_operations.first_context(worker);
	if (paused.swapped && context && !ckt_driver.cuCtxSetCurrent(context))
		ckt_swap_store_pin(stop);
}

uint64_t ckt_pause_moved(void)
{
	return paused.moved;
}

static int resume(
	struct ckt_worker *worker, uint64_t *ret_bytes, char *ret_message, size_t message_size)
{
	uint64_t missing = missing_bytes(worker);
	CUresult result = missing ? CUDA_ERROR_OUT_OF_MEMORY : take_back(worker);
	if (result == CUDA_ERROR_OUT_OF_MEMORY) {
		*ret_bytes = missing ? missing : CKT_MEMORY_EXTENT;
		snprintf(ret_message, message_size,
			"the GPU has too little free memory: %llu MiB more are needed; "
			"the session stays paused",
			(unsigned long long)(*ret_bytes >> 20) + 1);
		return -ENOMEM;
	}
	CUresult copied = result ? result : copy(worker, true);
	if (!result && !copied && ckt_fault_fails(CKT_FAULT_RESUME_COPIED))
		copied = CUDA_ERROR_UNKNOWN;
	if (result) {
		snprintf(ret_message, message_size,
			"cannot allocate the session's memory again: CUDA error %d; "
			"the session stays paused",
			result);
		return -EIO;
	}
	if (copied) {
		/* The host still has everything: nothing has changed. */
		ckt_memory_operations.unmap_program(worker);
		give_up(worker, paused.count);
		snprintf(ret_message, message_size,
			"cannot copy the memory back to the GPU: CUDA error %d; the "
			"session stays paused",
			copied);
		return -EIO;
	}
	*ret_bytes = paused.bytes;
	forget();
	return 0;
}

int ckt_resume(
	struct ckt_worker *worker, uint64_t *ret_bytes, char *ret_message, size_t message_size)
{
	bool granted = paused.lease_given;
	uint64_t missing = granted ? take_leases(worker) : 0;
	if (missing) {
		*ret_bytes = missing;
		snprintf(ret_message, message_size,
			"the server does not grant %llu MiB of the GPU's memory; the session stays swapped",
			(unsigned long long)(missing >> 20));
		return -ENOMEM;
	}
	int error = resume(worker, ret_bytes, ret_message, message_size);
	if (error && granted)
		give_leases(worker, ckt_device_count(worker));
	return error;
}

const uint8_t *ckt_pause_copy(uint64_t address, uint64_t physical)
{
	for (size_t i = 0; i < paused.count; i++)
		if (paused.regions[i].memory.physical == physical &&
			(physical || paused.regions[i].address == address))
			return paused.regions[i].host;
	return NULL;
}
