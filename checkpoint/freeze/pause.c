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
			munmap(paused.regions[i].host, paused.regions[i].memory.size);
		free(paused.regions[i].zero);
	}
	free(paused.regions);
	paused.regions = NULL;
	paused.count = 0;
	paused.bytes = 0;
}

static int add(const struct ckt_region *memory, void *opaque)
{
	uint64_t *scratch = opaque;
	struct region *regions = realloc(paused.regions, (paused.count + 1) * sizeof *regions);
	if (!regions)
		return -ENOMEM;
	paused.regions = regions;
	struct region region = {.memory = *memory, .address = memory->address};
	if (memory->physical) {
		region.address = *scratch;
		*scratch += memory->size;
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
	uint64_t scratch = CKT_SCRATCH_BASE;
	int error = ckt_memory_operations.visit_regions(worker, add, &scratch);
	return error ? error : scratch > CKT_SPARE_BASE ? -ENOMEM : 0;
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

static CUresult copy_piece(struct ckt_content_thread *member, struct region *r, uint64_t at)
{
	uint64_t left = r->memory.size - at, size = left < CKT_IMAGE_CHUNK ? left : CKT_IMAGE_CHUNK;
	bool *zero = &r->zero[at / CKT_IMAGE_CHUNK];
	CUresult result = ckt_content_threads_use_device(member, r->memory.device);
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
		/* A memset is asynchronous, and only its own context can be waited for. */
		if (member->current && paused.regions[region].memory.device != device)
			ckt_driver.cuCtxSynchronize();
		device = paused.regions[region].memory.device;
		CUresult result =
			copy_piece(member, &paused.regions[region], (n - first) * CKT_IMAGE_CHUNK);
		if (result)
			paused.error = (int)result;
		atomic_fetch_add_explicit(&ckt_checkpoint_of(worker)->progress.done,
			CKT_IMAGE_CHUNK, memory_order_relaxed);
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
	ckt_content_threads_look(worker);
	ckt_progress_begin(
		&ckt_checkpoint_of(worker)->progress, back ? "resume" : "pause", paused.bytes);
	CUresult result = show(worker);
	if (result)
		return result;
	ckt_content_threads_run(copy_pieces, worker);
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

int ckt_pause(
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
		forget();
		if (result)
			snprintf(ret_message, message_size,
				"cannot copy the GPU's memory to the host: CUDA error "
				"%d",
				result);
		else
			snprintf(ret_message, message_size,
				"the host has too little memory for the session's: %s",
				strerror(-error));
		return error ? error : -EIO;
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
	ckt_info("paused: released %llu MiB of the GPU's memory",
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

const uint8_t *ckt_pause_copy(uint64_t address, uint64_t physical)
{
	for (size_t i = 0; i < paused.count; i++)
		if (paused.regions[i].memory.physical == physical &&
			(physical || paused.regions[i].address == address))
			return paused.regions[i].host;
	return NULL;
}
