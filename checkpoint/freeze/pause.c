/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pausing and resuming; see pause.h.
 *
 * Memory that is swapped leaves and comes in step by step, so that another session can have what has
 * left already:
 *
 *	leave	[copy 1] [copy 2         ] [copy 3         ] ...
 *	                 [1 up, its lease] [2 up, its lease] ...	given
 *	arrive	[lease 1, memory] [copy 1         ] [copy 2         ] ...
 *	                          [lease 2, memory] [lease 3, memory] ...	taken
 */
#include "checkpoint/freeze/pause.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fault_point.h"
#include "base/log.h"
#include "checkpoint/fault.h"
#include "checkpoint/format/store.h"
#include "checkpoint/freeze/paused_memory.h"
#include "checkpoint/freeze/swap_store.h"
#include "checkpoint/memory_operations.h"
#include "checkpoint/session.h"
#include "checkpoint/state.h"
#include "rpc/gen/cuda_driver.h"
#include "rpc/handle.h"

/*
 * A step is a 32nd of all, so that little is lost at both ends, and long enough that the copies of a
 * step take longer than what is between two.
 */
#define STEPS 32
#define STEP_LEAST_BYTES ((uint64_t)16 << 20)

enum {
	/* A driver may release memory a little later than it says. */
	ALLOCATE_TRIES = 50,
	ALLOCATE_AGAIN_MS = 2,
	/* What failed half way: until another session has given back what it took. */
	RETURN_TRIES = 40,
	RETURN_AGAIN_MS = 50,
};

static bool lease_given;

/* Where the time of a swap went. */
static struct {
	int64_t begun_ns, hash_ns, memory_ns, lease_ns;
} times;

static void times_begin(void)
{
	memset(&times, 0, sizeof times);
	times.begun_ns = ckt_now_ns();
}

static void times_tell(const char *way)
{
	if (ckt_paused.swapped)
		ckt_info(
			"%s: %llu of %llu MiB moved, %llu by the GPU alone, in %lld ms: hashes %lld, copies %lld, memory %lld, leases %lld",
			way, (unsigned long long)(ckt_paused.moved >> 20),
			(unsigned long long)(ckt_paused.bytes >> 20),
			(unsigned long long)(ckt_paused.direct >> 20),
			(long long)(ckt_now_ns() - times.begun_ns) / 1000000,
			(long long)times.hash_ns / 1000000, (long long)ckt_paused.copy_ns / 1000000,
			(long long)times.memory_ns / 1000000, (long long)times.lease_ns / 1000000);
}

static void sleep_ms(long ms)
{
	const struct timespec time = {.tv_nsec = ms * 1000000};
	nanosleep(&time, NULL);
}

/* Where the step ends that begins with that region.  leaving: what is tied leaves together. */
static size_t step_end(size_t first, size_t count, bool leaving)
{
	const struct ckt_paused_region *r = ckt_paused.regions;
	uint64_t most = ckt_paused.bytes / STEPS, bytes = 0;
	size_t end = first;
	if (!ckt_paused.swapped)
		return count;
	if (most < STEP_LEAST_BYTES)
		most = STEP_LEAST_BYTES;
	do
		bytes += r[end++].memory.size;
	while (end < count &&
		(bytes + r[end].memory.size <= most || (leaving && r[end - 1].memory.tied)));
	return end;
}

/* ---- Physical memory, and what the server counts */

/* Precondition: none of the program's own mappings of it remains. */
static void give_up(struct ckt_worker *worker, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++)
		ckt_memory_operations.give_up(worker, &ckt_paused.regions[i].memory);
}

static CUresult take_back(struct ckt_worker *worker, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++) {
		CUresult result =
			ckt_memory_operations.take_back(worker, &ckt_paused.regions[i].memory);
		if (result) {
			give_up(worker, first, i);
			return result;
		}
	}
	return CUDA_SUCCESS;
}

/* How many bytes are missing, over all devices. */
static uint64_t missing_bytes(struct ckt_worker *worker)
{
	uint64_t missing = 0;
	for (unsigned d = 0; d < ckt_device_count(worker); d++) {
		CUcontext context =
			ckt_session_operations.real_context(worker, ckt_handle_primary(d));
		size_t free_bytes = 0, total;
		uint64_t need = ckt_paused_bytes(d, 0, ckt_paused.gone);
		if (!need || !context || ckt_driver.cuCtxSetCurrent(context) ||
			ckt_driver.cuMemGetInfo_v2(&free_bytes, &total))
			continue;
		missing += need > free_bytes ? need - free_bytes : 0;
	}
	return missing;
}

/* Of the first `count` devices. */
static void give_leases_of(struct ckt_worker *worker, unsigned count, size_t first, size_t end)
{
	for (unsigned d = 0; d < count; d++)
		ckt_memory_operations.give_lease(worker, d, ckt_paused_bytes(d, first, end));
}

static void give_leases(struct ckt_worker *worker, size_t first, size_t end)
{
	give_leases_of(worker, ckt_device_count(worker), first, end);
}

/* How much the server does not grant; 0: all is granted. */
static uint64_t take_leases(struct ckt_worker *worker, size_t first, size_t end, bool follows)
{
	for (unsigned d = 0; d < ckt_device_count(worker); d++) {
		uint64_t bytes = ckt_paused_bytes(d, first, end);
		if (!ckt_memory_operations.take_lease(worker, d, bytes, follows)) {
			give_leases_of(worker, d, first, end);
			return bytes;
		}
	}
	return 0;
}

/* ---- Out */

static void pause_failed(int error, CUresult result, char *ret_message, size_t message_size)
{
	if (ckt_paused.swapped && ckt_paused.store_error)
		snprintf(ret_message, message_size,
			ckt_paused.store_error == -ENOSPC
				? "the swap memory is full: %s; give more with --swap-memory or --swap; the session goes on"
				: "cannot write to the swap memory: %s; the session goes on",
			strerror(-ckt_paused.store_error));
	else if (result)
		snprintf(ret_message, message_size,
			"cannot copy the GPU's memory to the host: CUDA error %d", result);
	else
		snprintf(ret_message, message_size,
			"the host has too little memory for the session's: %s", strerror(-error));
}

/* Whether the swap memory has room for all: what fails half way may not come back. */
static bool has_room(void)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < ckt_paused.count; i++) {
		const struct ckt_paused_region *r = &ckt_paused.regions[i];
		for (size_t chunk = 0; r->hashes && chunk < r->stored->chunk_count; chunk++)
			if (!r->hashes[chunk].any)
				ckt_swap_store_zero(r->stored, chunk);
			else
				bytes += ckt_swap_store_needs(r->stored, chunk);
	}
	if (!ckt_swap_store_has_room(bytes))
		ckt_paused.store_error = -ENOSPC;
	return !ckt_paused.store_error;
}

/* Gives the GPU back what was copied.  Precondition: shown. */
static void release(struct ckt_worker *worker, size_t end)
{
	size_t first = ckt_paused.gone;
	if (!first)
		ckt_memory_operations.unmap_program(worker);
	if (ckt_paused.swapped)
		ckt_paused_note_hashes(first, end);
	int64_t begun_ns = ckt_now_ns();
	ckt_paused_hide(first, end);
	give_up(worker, first, end);
	times.memory_ns += ckt_now_ns() - begun_ns;
	ckt_paused.gone = end;
	if (ckt_paused.swapped) {
		give_leases(worker, first, end);
		lease_given = true;
	}
}

/* While a step's copy runs, what the step before has copied is given up. */
static CUresult leave_by_steps(struct ckt_worker *worker)
{
	size_t count = ckt_paused.count, end = step_end(0, count, true);
	ckt_paused_copy_begin(worker, 0, end, false);
	for (;;) {
		CUresult result = ckt_paused_copy_end();
		if (!result && ckt_fault_fails(CKT_FAULT_PAUSE_COPIED))
			result = CUDA_ERROR_UNKNOWN;
		if (result)
			return result;
		size_t next = end < count ? step_end(end, count, true) : end;
		if (next > end)
			ckt_paused_copy_begin(worker, end, next, false);
		release(worker, end);
		if (next == end)
			return CUDA_SUCCESS;
		if (ckt_fault_reached(CKT_FAULT_SWAP_LEAVES) ||
			ckt_fault_reached(CKT_FAULT_SWAP_RETURNS)) {
			ckt_paused_copy_end();
			return CUDA_ERROR_UNKNOWN;
		}
		end = next;
	}
}

static CUresult leave(struct ckt_worker *worker)
{
	size_t count = ckt_paused.count;
	times_begin();
	ckt_paused_begin(worker, false, ckt_paused.bytes);
	if (!count)
		ckt_memory_operations.unmap_program(worker);
	CUresult result = ckt_paused_show(worker, 0, count);
	if (result)
		return result;
	if (ckt_paused.swapped) {
		ckt_paused_hash(worker);
		times.hash_ns = ckt_now_ns() - times.begun_ns;
		result = has_room() ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
	}
	if (!result && count)
		result = leave_by_steps(worker);
	ckt_paused_hide(ckt_paused.gone, count);
	times_tell("out");
	return result;
}

/* Of a swap that failed half way.  False: others have the memory, and what has left stays out. */
static bool come_back(struct ckt_worker *worker)
{
	char message[CKT_MESSAGE_MAX];
	uint64_t bytes;
	if (ckt_fault_reached(CKT_FAULT_SWAP_RETURNS))
		return false;
	for (unsigned i = 0; i < RETURN_TRIES; i++) {
		int error = ckt_resume(worker, &bytes, message, sizeof message);
		if (error != -ENOMEM)
			return !error;
		sleep_ms(RETURN_AGAIN_MS);
	}
	return false;
}

static void forget(void)
{
	ckt_paused_forget();
	lease_given = false;
}

static uint64_t gone_bytes(struct ckt_worker *worker)
{
	uint64_t bytes = 0;
	for (unsigned d = 0; d < ckt_device_count(worker); d++)
		bytes += ckt_paused_bytes(d, 0, ckt_paused.gone);
	return bytes;
}

static int pause_to(
	struct ckt_worker *worker, uint64_t *ret_bytes, char *ret_message, size_t message_size)
{
	*ret_bytes = 0;
	/*
	 * Memory that other sessions have mapped would stay on the GPU, and the resume would
	 * allocate other memory.
	 */
	if (ckt_session_operations.is_shared(ret_message, message_size))
		return -EOPNOTSUPP;
	ckt_memory_operations.settle_pools(worker);
	int error = ckt_paused_collect(worker);
	CUresult result = error ? CUDA_SUCCESS : leave(worker);
	if (error || result) {
		pause_failed(error, result, ret_message, message_size);
		error = error ? error : ckt_paused.store_error ? ckt_paused.store_error : -EIO;
		if (ckt_paused.gone && !come_back(worker)) {
			*ret_bytes = gone_bytes(worker);
			snprintf(ret_message, message_size,
				"cannot swap out all of it: %s; %llu MiB have left, and come back when there is room",
				strerror(-error), (unsigned long long)(*ret_bytes >> 20));
		} else {
			forget();
		}
		return error;
	}
	if (ckt_fault_fails(CKT_FAULT_PAUSE_GIVEN_UP)) {
		uint64_t bytes;
		/* If the memory cannot be allocated again, the session is paused after all. */
		if (!ckt_resume(worker, &bytes, ret_message, message_size)) {
			snprintf(ret_message, message_size, "CRICKET_FAULT made this step fail");
			return -EIO;
		}
	}
	*ret_bytes = ckt_paused.bytes;
	if (ckt_paused.swapped)
		ckt_swap_store_sweep();
	ckt_info("%s: released %llu MiB of the GPU's memory",
		ckt_paused.swapped ? "swapped" : "paused",
		(unsigned long long)(ckt_paused.bytes >> 20));
	return 0;
}

int ckt_pause(
	struct ckt_worker *worker, uint64_t *ret_bytes, char *ret_message, size_t message_size)
{
	ckt_paused.store_error = 0;
	return pause_to(worker, ret_bytes, ret_message, message_size);
}

int ckt_pause_swap(struct ckt_worker *worker, uint64_t *ret_bytes, uint64_t *ret_moved,
	char *ret_message, size_t message_size)
{
	ckt_swap_store_begin();
	ckt_paused.store_error = 0;
	ckt_paused.swapped = true;
	int error = pause_to(worker, ret_bytes, ret_message, message_size);
	*ret_moved = ckt_paused.moved;
	if (error && !*ret_bytes)
		ckt_paused.swapped = false;
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
	if (ckt_paused.swapped && context && !ckt_driver.cuCtxSetCurrent(context))
		ckt_swap_store_pin(stop);
}

uint64_t ckt_pause_moved(void)
{
	return ckt_paused.moved;
}

/* ---- In */

/* CRICKET_FAULT made a copy fail. */
static CUresult fail_copy(void)
{
	ckt_paused.error = CUDA_ERROR_UNKNOWN;
	return CUDA_ERROR_UNKNOWN;
}

/* How far it has come: copied <= taken <= leased; gone where all of it is there. */
struct arrival {
	bool follows;
	size_t copied, taken, leased;
	uint64_t missing;
};

/* The next step's memory, before its copy. */
static CUresult take_step(struct ckt_worker *worker, struct arrival *arrival)
{
	size_t first = arrival->taken, end = step_end(first, ckt_paused.gone, false);
	int64_t begun_ns = ckt_now_ns();
	if (arrival->follows) {
		arrival->missing = take_leases(worker, first, end, true);
		if (arrival->missing)
			return CUDA_ERROR_OUT_OF_MEMORY;
		arrival->leased = end;
		if (ckt_fault_reached(CKT_FAULT_SWAP_GRANTED))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	int64_t leased_ns = ckt_now_ns();
	CUresult result = take_back(worker, first, end);
	for (unsigned i = 0;
		result == CUDA_ERROR_OUT_OF_MEMORY && arrival->follows && i < ALLOCATE_TRIES; i++) {
		sleep_ms(ALLOCATE_AGAIN_MS);
		result = take_back(worker, first, end);
	}
	if (!result && (result = ckt_paused_show(worker, first, end)))
		give_up(worker, first, end);
	times.lease_ns += leased_ns - begun_ns;
	times.memory_ns += ckt_now_ns() - leased_ns;
	if (!result)
		arrival->taken = end;
	return result;
}

/* While a step's copy runs, the next one's memory is taken, and no copy waits for the one before. */
static CUresult arrive_by_steps(struct ckt_worker *worker, struct arrival *arrival)
{
	size_t gone = ckt_paused.gone;
	CUresult result = gone ? take_step(worker, arrival) : CUDA_SUCCESS;
	while (!result && arrival->copied < gone) {
		size_t end = arrival->taken;
		ckt_paused_copy_begin(worker, arrival->copied, end, end < gone);
		CUresult taken = end < gone ? take_step(worker, arrival) : CUDA_SUCCESS;
		result = ckt_paused_copy_end();
		arrival->copied = end;
		if (!result && end < gone && ckt_fault_reached(CKT_FAULT_SWAP_ARRIVES))
			result = fail_copy();
		result = result ? result : taken;
	}
	if (result) {
		int error = ckt_paused.error;
		ckt_paused_drain(worker);
		ckt_paused.error = error;
	}
	ckt_paused_hide(0, arrival->taken);
	return result;
}

/* All of it, or an error and nothing.  OUT_OF_MEMORY: *ret_missing are not granted, or not there. */
static CUresult arrive(struct ckt_worker *worker, bool follows, uint64_t *ret_missing)
{
	struct arrival arrival = {.follows = follows};
	times_begin();
	ckt_paused_begin(worker, true, ckt_paused.bytes);
	CUresult result = arrive_by_steps(worker, &arrival);
	*ret_missing = arrival.missing;
	if (!result)
		result = ckt_fault_fails(CKT_FAULT_RESUME_MAP)
			? CUDA_ERROR_OUT_OF_MEMORY
			: ckt_memory_operations.map_program(worker);
	if (!result && ckt_fault_fails(CKT_FAULT_RESUME_COPIED)) {
		ckt_memory_operations.unmap_program(worker);
		result = fail_copy();
	}
	times_tell("in");
	/* The host still has everything: nothing has changed. */
	if (result) {
		give_up(worker, 0, arrival.taken);
		give_leases(worker, 0, arrival.leased);
	}
	return result;
}

static int resume(struct ckt_worker *worker, bool follows, uint64_t *ret_bytes, char *ret_message,
	size_t message_size)
{
	uint64_t missing = follows ? 0 : missing_bytes(worker), gone = gone_bytes(worker);
	CUresult result = missing ? CUDA_ERROR_OUT_OF_MEMORY : arrive(worker, follows, &missing);
	if (!result) {
		*ret_bytes = gone;
		forget();
		return 0;
	}
	if (result == CUDA_ERROR_OUT_OF_MEMORY) {
		*ret_bytes = missing ? missing : CKT_MEMORY_EXTENT;
		snprintf(ret_message, message_size,
			"the GPU has too little free memory: %llu MiB more are needed; "
			"the session stays paused",
			(unsigned long long)(*ret_bytes >> 20) + 1);
		return -ENOMEM;
	}
	snprintf(ret_message, message_size,
		ckt_paused.error
			? "cannot copy the memory back to the GPU: CUDA error %d; the session stays paused"
			: "cannot allocate the session's memory again: CUDA error %d; the session stays paused",
		result);
	return -EIO;
}

int ckt_resume(
	struct ckt_worker *worker, uint64_t *ret_bytes, char *ret_message, size_t message_size)
{
	bool granted = lease_given;
	size_t gone = ckt_paused.gone;
	uint64_t missing = granted ? take_leases(worker, 0, gone, false) : 0;
	if (missing) {
		*ret_bytes = missing;
		snprintf(ret_message, message_size,
			"the server does not grant %llu MiB of the GPU's memory; the session stays swapped",
			(unsigned long long)(missing >> 20));
		return -ENOMEM;
	}
	int error = resume(worker, false, ret_bytes, ret_message, message_size);
	if (error && granted)
		give_leases(worker, 0, gone);
	return error;
}

int ckt_resume_follow(
	struct ckt_worker *worker, uint64_t *ret_bytes, char *ret_message, size_t message_size)
{
	return resume(worker, lease_given, ret_bytes, ret_message, message_size);
}

const uint8_t *ckt_pause_copy(uint64_t address, uint64_t physical)
{
	for (size_t i = 0; i < ckt_paused.gone; i++) {
		const struct ckt_paused_region *r = &ckt_paused.regions[i];
		if (r->memory.physical == physical && (physical || r->address == address))
			return r->host;
	}
	return NULL;
}
