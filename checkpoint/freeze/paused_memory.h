/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device memory of a session that is paused or swapped: its regions, and their copies to the host
 * and back (pause.h decides when).  Copies are made of a range of regions: [first, end).
 *
 *	regions   0 ......... gone ......... count
 *	          host only    | on the GPU
 *
 * Threading: one operation at a time, with the session frozen.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint/content_threads.h"
#include "checkpoint/kernels/hash.h"
#include "checkpoint/memory_operations.h"

struct ckt_swap_region;
struct ckt_worker;

struct ckt_paused_region {
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

extern struct ckt_paused {
	struct ckt_paused_region *regions;
	size_t count;
	size_t gone; /* of them: their memory is given up */
	uint64_t bytes;
	bool swapped; /* to the swap store */
	_Atomic uint64_t moved;
	_Atomic uint64_t direct; /* of them, by the GPU into pinned memory */
	int64_t copy_ns;         /* of all steps */
	_Atomic int store_error;
	/* The copy that runs. */
	size_t first, end;
	_Atomic size_t next; /* piece, counted from the first region's */
	bool back;
	unsigned crew; /* threads that take part */
	bool runs_on;
	unsigned devices[CKT_CREW_SIZE]; /* by thread: whose copies may run on */
	int64_t begun_ns;
	_Atomic int error;
} ckt_paused;

/* All of the session's memory.  0 or -errno; then, too, ckt_paused_forget is due. */
int ckt_paused_collect(struct ckt_worker *worker);
void ckt_paused_forget(void);
/* Of the range, on one device. */
uint64_t ckt_paused_bytes(unsigned device, size_t first, size_t end);

/* Addresses of ours for what the program mapped itself, or not at all; all of the range, or none. */
CUresult ckt_paused_show(struct ckt_worker *worker, size_t first, size_t end);
void ckt_paused_hide(size_t first, size_t end);
/*
 * Before memory leaves for the swap store: what has changed.  Where that cannot be told, everything is
 * written.  Precondition: all is shown.
 */
void ckt_paused_hash(struct ckt_worker *worker);
/* Begins the copies of an operation, of so many bytes. */
void ckt_paused_begin(struct ckt_worker *worker, bool back, uint64_t bytes);
/*
 * Begins a copy of the range; one at a time.  Precondition: shown.  runs_on: a copy from pinned memory
 * may still run after ckt_paused_copy_end, until that of a copy that does not run on, or
 * ckt_paused_drain.
 */
void ckt_paused_copy_begin(struct ckt_worker *worker, size_t first, size_t end, bool runs_on);
CUresult ckt_paused_copy_end(void);
CUresult ckt_paused_drain(struct ckt_worker *worker);
/* What was copied to pinned memory of the store is known from here on. */
void ckt_paused_note_hashes(size_t first, size_t end);
