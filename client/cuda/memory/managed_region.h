/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory inside: what managed.c (regions and what travels), managed_fault.c (touches) and
 * system_call_buffers.c (system calls) share.
 *
 * Threading: everything needs the lock, unless it says otherwise.  Errors: CUresult.
 */
#pragma once

#include <cuda.h>
#include <pthread.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CKT_MANAGED_CHUNK ((uint64_t)64 << 10)

/* EARLY: open, while the GPU works (early_writes.c). */
enum ckt_managed_state {
	CKT_MANAGED_DEVICE = 0,
	CKT_MANAGED_CLEAN,
	CKT_MANAGED_DIRTY,
	CKT_MANAGED_EARLY
};

/* A module's variable in a region; only its bytes are ours. */
struct ckt_managed_span {
	uint64_t begin, end;
	uint64_t module;
};

/*
 * How the program goes through a region, in chunks; it decides how much the next fault fetches
 * (managed_fault.c).
 */
struct ckt_managed_walk {
	uint64_t next;   /* the chunk at which the next fault would continue */
	uint64_t window; /* how many chunks the last one fetched */
	/* of the walk: faults that each continued where the one before had ended */
	uint64_t begin, length;
	/* the longest one before the region was closed the last time */
	uint64_t past_begin, past_length;
	uint64_t next_write, write_window;
};

struct ckt_managed_region {
	struct ckt_managed_region *next;
	uint64_t base, size;
	uint64_t context;
	uint64_t stream;     /* for its copies */
	bool fresh;          /* being cleared on that stream */
	uint8_t *alias;      /* the same memory, always open */
	uint8_t *states;     /* per chunk */
	size_t valid, dirty; /* chunks that are not DEVICE; chunks that are DIRTY */
	/* the program's own memory (mapped.c, shared.c), which stays when the region is removed */
	bool adopted;
	/* shared with the worker: all of it is open, and the client does nothing yet */
	_Atomic bool asleep;
	struct ckt_managed_span *spans; /* NULL: all of it is ours */
	size_t span_count;
	struct ckt_managed_walk walk;
	/* per chunk, the contents of an EARLY one when it was opened; NULL: none was */
	uint8_t **twins;
};

extern pthread_mutex_t ckt_managed_lock;

/* NULL if the address is in no region. */
struct ckt_managed_region *ckt_managed_find(uint64_t address);
/*
 * Waits for all earlier work of the GPU.  Unlocked meanwhile, because that work may include a host
 * function that wants managed memory, too.
 */
CUresult ckt_managed_wait(uint64_t context);
CUresult ckt_managed_fetch(struct ckt_managed_region *r, uint64_t first, uint64_t count);
/* Sends bytes of the region, which are offsets in it. */
CUresult ckt_managed_send(struct ckt_managed_region *r, uint64_t offset, uint64_t end);
/* Precondition: none of the chunks is DIRTY. */
void ckt_managed_set_states(
	struct ckt_managed_region *r, uint64_t first, uint64_t count, enum ckt_managed_state state);

/* Whether all work that was put on the GPU is known to be done. */
bool ckt_managed_idle(void);
/* Calls it for every region. */
void ckt_managed_each(void (*what)(struct ckt_managed_region *r));
