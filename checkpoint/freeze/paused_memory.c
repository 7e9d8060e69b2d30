/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a paused session; see paused_memory.h. */
#include "checkpoint/freeze/paused_memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/log.h"
#include "checkpoint/content_threads.h"
#include "checkpoint/format/store.h"
#include "checkpoint/freeze/swap_store.h"
#include "checkpoint/session.h"
#include "checkpoint/state.h"
#include "rpc/gen/cuda_driver.h"
#include "rpc/handle.h"

/* Threads that only begin copies and wait for them; more of them wait for each other. */
enum { PINNED_CREW = 4 };
/* For the table of ckt_hash_run, which lies at the scratch addresses' beginning: 40 bytes for each 2 MiB. */
#define HASH_BYTES ((uint64_t)64 << 20)

struct ckt_paused ckt_paused;

void ckt_paused_forget(void)
{
	for (size_t i = 0; i < ckt_paused.count; i++) {
		if (ckt_paused.regions[i].host && !ckt_paused.regions[i].stored)
			munmap(ckt_paused.regions[i].host, ckt_paused.regions[i].memory.size);
		free(ckt_paused.regions[i].zero);
		free(ckt_paused.regions[i].hashes);
	}
	free(ckt_paused.regions);
	ckt_paused.regions = NULL;
	ckt_paused.count = ckt_paused.gone = 0;
	ckt_paused.bytes = 0;
	ckt_paused.swapped = false;
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
	struct ckt_paused_region *regions =
		realloc(ckt_paused.regions, (ckt_paused.count + 1) * sizeof *regions);
	if (!regions)
		return -ENOMEM;
	ckt_paused.regions = regions;
	struct ckt_paused_region region = {.memory = *memory, .address = memory->address};
	if (memory->physical) {
		region.address = collecting->scratch;
		collecting->scratch += memory->size;
	}
	if (ckt_paused.swapped) {
		region.stored = ckt_swap_store_region(memory);
		region.host = region.stored ? ckt_swap_store_map(region.stored,
						      node_of(collecting->worker, memory->device))
					    : NULL;
		ckt_paused.regions[ckt_paused.count++] = region;
		ckt_paused.bytes += memory->size;
		return region.host ? 0 : -ENOMEM;
	}
	/* Each page is touched when it is filled, so pieces of zeros take no memory. */
	region.host = mmap(NULL, memory->size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	region.zero = calloc(memory->size / CKT_IMAGE_CHUNK + 1, sizeof *region.zero);
	if (region.host == MAP_FAILED)
		region.host = NULL;
	ckt_paused.regions[ckt_paused.count++] = region;
	ckt_paused.bytes += memory->size;
	return region.host && region.zero ? 0 : -ENOMEM;
}

int ckt_paused_collect(struct ckt_worker *worker)
{
	struct collecting collecting = {worker, CKT_SCRATCH_BASE + HASH_BYTES};
	int error = ckt_memory_operations.visit_regions(worker, add, &collecting);
	return error ? error : collecting.scratch > CKT_SPARE_BASE ? -ENOMEM : 0;
}

/* ---- Addresses of ours for what the program mapped itself, or not at all */

void ckt_paused_hide(size_t first, size_t end)
{
	for (size_t i = first; i < end; i++)
		if (ckt_paused.regions[i].memory.physical)
			ckt_driver.cuMemUnmap(
				ckt_paused.regions[i].address, ckt_paused.regions[i].memory.size);
}

CUresult ckt_paused_show(struct ckt_worker *worker, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++) {
		struct ckt_paused_region *r = &ckt_paused.regions[i];
		CUresult result = r->memory.physical
			? ckt_memory_operations.show(worker, &r->memory, r->address)
			: CUDA_SUCCESS;
		if (result) {
			ckt_paused_hide(first, i);
			return result;
		}
	}
	return CUDA_SUCCESS;
}

uint64_t ckt_paused_bytes(unsigned device, size_t first, size_t end)
{
	uint64_t bytes = 0;
	for (size_t i = first; i < end; i++)
		bytes += ckt_paused.regions[i].memory.device == device
			? ckt_paused.regions[i].memory.size
			: 0;
	return bytes;
}

/* ---- Copies */

static CUresult stored(int error, uint64_t size)
{
	if (error) {
		ckt_paused.store_error = error;
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	atomic_fetch_add_explicit(&ckt_paused.moved, size, memory_order_relaxed);
	return CUDA_SUCCESS;
}

/* Precondition: the store has it, or it is zeros. */
static CUresult stored_in(
	struct ckt_content_thread *member, struct ckt_paused_region *r, uint64_t at, uint64_t size)
{
	size_t chunk = at / CKT_IMAGE_CHUNK;
	if (r->stored->states[chunk] != CKT_SWAP_STORED)
		return ckt_driver.cuMemsetD8_v2(r->address + at, 0, size);
	CUresult result = stored(ckt_swap_store_read(r->stored, chunk, member->buffer, size), size);
	return result ? result : ckt_driver.cuMemcpyHtoD_v2(r->address + at, member->buffer, size);
}

static bool is_stored(
	const struct ckt_paused_region *r, size_t chunk, const struct ckt_hash_value *hash)
{
	const struct ckt_hash_value *had = &r->stored->hashes[chunk];
	return r->stored->states[chunk] == CKT_SWAP_STORED && (had->hash[0] || had->hash[1]) &&
		had->hash[0] == hash->hash[0] && had->hash[1] == hash->hash[1];
}

/* What the store has already of the same contents is not even read. */
static bool must_leave(const struct ckt_paused_region *r, size_t chunk)
{
	const struct ckt_hash_value *hash = r->hashes ? &r->hashes[chunk] : NULL;
	return !hash || !hash->any || !is_stored(r, chunk, hash);
}

static CUresult stored_out(
	struct ckt_content_thread *member, struct ckt_paused_region *r, uint64_t at, uint64_t size)
{
	size_t chunk = at / CKT_IMAGE_CHUNK;
	const struct ckt_hash_value *hash = r->hashes ? &r->hashes[chunk] : NULL;
	if (!must_leave(r, chunk))
		return CUDA_SUCCESS;
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

/*
 * By the GPU, to or from the store's own pinned memory: [at, at + size) of whole chunks of one piece.
 * The hashes are noted when all copies are done.
 */
static CUresult placed(struct ckt_content_thread *member, const struct ckt_paused_region *r,
	uint64_t at, uint64_t size)
{
	size_t first = at / CKT_IMAGE_CHUNK;
	uint8_t *place = ckt_swap_store_place(r->stored, first);
	CUstream stream = ckt_content_threads_stream(member, r->memory.device);
	CUresult result = CUDA_SUCCESS;
	for (size_t i = first; !ckt_paused.back && !result && i * CKT_IMAGE_CHUNK < at + size; i++)
		result = stored(ckt_swap_store_fill(r->stored, i), 0);
	if (result)
		return result;
	stored(0, size);
	atomic_fetch_add_explicit(&ckt_paused.direct, size, memory_order_relaxed);
	return ckt_paused.back
		? ckt_driver.cuMemcpyHtoDAsync_v2(r->address + at, place, size, stream)
		: ckt_driver.cuMemcpyDtoHAsync_v2(place, r->address + at, size, stream);
}

/*
 * A whole piece of pinned memory in as few copies as there are runs of chunks that must move: a copy
 * of one chunk leaves the copy engines idle for a tenth of its time.
 */
static CUresult placed_piece(
	struct ckt_content_thread *member, struct ckt_paused_region *r, uint64_t at)
{
	uint64_t end = at + (uint64_t)CKT_SWAP_PIECE * CKT_IMAGE_CHUNK, begin = at;
	CUresult result = CUDA_SUCCESS;
	if (end > r->memory.size)
		end = r->memory.size;
	for (; !result && at < end; at += CKT_IMAGE_CHUNK) {
		if (ckt_paused.back || must_leave(r, at / CKT_IMAGE_CHUNK))
			continue;
		if (begin < at)
			result = placed(member, r, begin, at - begin);
		begin = at + CKT_IMAGE_CHUNK;
	}
	return result || begin >= end ? result : placed(member, r, begin, end - begin);
}

static CUresult copy_piece(
	struct ckt_content_thread *member, struct ckt_paused_region *r, uint64_t at)
{
	uint64_t left = r->memory.size - at, size = left < CKT_IMAGE_CHUNK ? left : CKT_IMAGE_CHUNK;
	CUresult result = ckt_content_threads_use_device(member, r->memory.device);
	if (result)
		return result;
	if (r->stored && ckt_swap_store_place(r->stored, at / CKT_IMAGE_CHUNK))
		/* Whoever has its first chunk copies it all. */
		return at / CKT_IMAGE_CHUNK % CKT_SWAP_PIECE ? CUDA_SUCCESS
							     : placed_piece(member, r, at);
	if (r->stored)
		return ckt_paused.back ? stored_in(member, r, at, size)
				       : stored_out(member, r, at, size);
	bool *zero = &r->zero[at / CKT_IMAGE_CHUNK];
	if (ckt_paused.back) {
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
		ckt_paused.error = (int)result;
}

static size_t pieces_of(const struct ckt_paused_region *r)
{
	return (r->memory.size + CKT_IMAGE_CHUNK - 1) / CKT_IMAGE_CHUNK;
}

static int copy_pieces(struct ckt_content_thread *member, void *opaque)
{
	struct ckt_worker *worker = opaque;
	size_t before = 0, region = ckt_paused.first;
	unsigned device = ckt_paused.devices[member->index];
	if (member->index >= ckt_paused.crew) {
		if (!ckt_paused.runs_on)
			wait_copies(member);
		return 0;
	}
	for (size_t n; !ckt_paused.error && (n = ckt_paused.next++, true);) {
		/* The nth piece of all: the numbers only grow. */
		while (region < ckt_paused.end &&
			n - before >= pieces_of(&ckt_paused.regions[region]))
			before += pieces_of(&ckt_paused.regions[region++]);
		if (region == ckt_paused.end)
			break;
		if (ckt_paused.regions[region].memory.device != device)
			wait_copies(member);
		device = ckt_paused.regions[region].memory.device;
		CUresult result = copy_piece(
			member, &ckt_paused.regions[region], (n - before) * CKT_IMAGE_CHUNK);
		if (result)
			ckt_paused.error = (int)result;
		atomic_fetch_add_explicit(&ckt_checkpoint_of(worker)->progress.done,
			CKT_IMAGE_CHUNK, memory_order_relaxed);
	}
	ckt_paused.devices[member->index] = device;
	if (!ckt_paused.runs_on || ckt_paused.error)
		wait_copies(member);
	return ckt_paused.error ? -EIO : 0;
}

/*
 * What has changed, by the GPU; where it cannot tell, everything is written.  Precondition: all is
 * mapped.
 */
static void hash_device(struct ckt_worker *worker, unsigned device)
{
	size_t count = 0, n = 0;
	for (size_t i = 0; i < ckt_paused.count; i++)
		count += ckt_paused.regions[i].memory.device == device
			? ckt_paused.regions[i].stored->chunk_count
			: 0;
	struct ckt_hash_item *items = calloc(count + 1, sizeof *items);
	struct ckt_hash_value *values = calloc(count + 1, sizeof *values);
	for (size_t i = 0; items && values && i < ckt_paused.count; i++) {
		const struct ckt_paused_region *r = &ckt_paused.regions[i];
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
	for (size_t i = 0; !result && i < ckt_paused.count; i++) {
		struct ckt_paused_region *r = &ckt_paused.regions[i];
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
	for (size_t i = 0; i < ckt_paused.count; i++) {
		const struct ckt_paused_region *r = &ckt_paused.regions[i];
		for (size_t chunk = 0; r->hashes && chunk < r->stored->chunk_count; chunk++)
			if (!r->hashes[chunk].any)
				ckt_swap_store_unpin(r->stored, chunk);
	}
}

void ckt_paused_hash(struct ckt_worker *worker)
{
	for (unsigned d = 0; d < ckt_device_count(worker); d++)
		hash_device(worker, d);
	unpin_zeros();
}

void ckt_paused_note_hashes(size_t first, size_t end)
{
	for (size_t i = first; i < end; i++) {
		const struct ckt_paused_region *r = &ckt_paused.regions[i];
		for (size_t chunk = 0; r->hashes && chunk < r->stored->chunk_count; chunk++)
			if (ckt_swap_store_place(r->stored, chunk))
				r->stored->hashes[chunk] = r->hashes[chunk];
	}
}

void ckt_paused_begin(struct ckt_worker *worker, bool back, uint64_t bytes)
{
	ckt_paused.back = back;
	ckt_paused.moved = ckt_paused.direct = 0;
	ckt_paused.copy_ns = 0;
	ckt_paused.store_error = 0;
	ckt_content_threads_look(worker);
	ckt_progress_begin(&ckt_checkpoint_of(worker)->progress, back ? "resume" : "pause", bytes);
}

/* Whether the GPU moves all of the range by itself. */
static bool is_pinned(size_t first, size_t end)
{
	for (size_t i = first; i < end; i++) {
		const struct ckt_paused_region *r = &ckt_paused.regions[i];
		for (size_t chunk = 0; !r->stored || chunk < r->stored->chunk_count;
			chunk += CKT_SWAP_PIECE)
			if (!r->stored || !ckt_swap_store_place(r->stored, chunk))
				return false;
	}
	return true;
}

void ckt_paused_copy_begin(struct ckt_worker *worker, size_t first, size_t end, bool runs_on)
{
	ckt_paused.first = first;
	ckt_paused.end = end;
	ckt_paused.next = 0;
	ckt_paused.error = 0;
	ckt_paused.crew = is_pinned(first, end) ? PINNED_CREW : CKT_CREW_SIZE;
	ckt_paused.runs_on = runs_on;
	ckt_paused.begun_ns = ckt_now_ns();
	ckt_content_threads_begin(copy_pieces, worker);
}

CUresult ckt_paused_copy_end(void)
{
	ckt_content_threads_wait();
	ckt_paused.copy_ns += ckt_now_ns() - ckt_paused.begun_ns;
	return (CUresult)ckt_paused.error;
}

CUresult ckt_paused_drain(struct ckt_worker *worker)
{
	ckt_paused_copy_begin(worker, 0, 0, false);
	return ckt_paused_copy_end();
}
