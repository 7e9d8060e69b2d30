/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The internal interface of managed memory, for managed.c (regions and transfers), managed_fault.c
 * (page faults), early_writes.c (writes while the GPU works) and system_call_buffers.c (system
 * calls).
 *
 * Threading: everything needs ckt_managed_lock unless the comment says otherwise.  Errors:
 * CUresult.
 */
#pragma once

#include <cuda.h>
#include <pthread.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CKT_MANAGED_CHUNK ((uint64_t)64 << 10)

/*
 * EARLY: the chunk is open while the GPU works (early_writes.c).  managed.c describes the others.
 */
enum ckt_managed_state {
	CKT_MANAGED_DEVICE = 0,
	CKT_MANAGED_CLEAN,
	CKT_MANAGED_DIRTY,
	CKT_MANAGED_EARLY
};

/* A module's variable in a region.  Only the bytes of variables are sent and fetched. */
struct ckt_managed_span {
	uint64_t begin, end;
	uint64_t module;
};

/*
 * The order in which the program accesses a region, in chunks.  It decides how many chunks the next
 * fault fetches (managed_fault.c).
 */
struct ckt_managed_walk {
	uint64_t next;   /* the chunk at which a fault would continue the walk */
	uint64_t window; /* how many chunks the last fault fetched */
	/* the walk: a sequence of faults, each at the chunk where the one before ended */
	uint64_t begin, length;
	/* the longest walk before the region was last closed */
	uint64_t past_begin, past_length;
	uint64_t next_write, write_window;
};

struct ckt_managed_region {
	struct ckt_managed_region *next;
	uint64_t base, size;
	uint64_t context;
	uint64_t stream;     /* for the copies of its bytes */
	bool fresh;          /* the stream still clears the device memory */
	uint8_t *alias;      /* a second mapping of the memory, which stays open */
	uint8_t *states;     /* per chunk */
	size_t valid, dirty; /* chunks that are not DEVICE; chunks that are DIRTY */
	/* the program owns the memory (mapped.c, shared.c): it outlives the region */
	bool adopted;
	/* the worker shares the pages (shared.c): all chunks are open, and no bytes are sent */
	_Atomic bool asleep;
	struct ckt_managed_span *spans; /* the variables in it; NULL: all bytes are transferred */
	size_t span_count;
	struct ckt_managed_walk walk;
	/* per chunk: the contents of an EARLY chunk when it was opened; NULL: no chunk was EARLY */
	uint8_t **twins;
};

extern pthread_mutex_t ckt_managed_lock;

/* Returns NULL if the address is in no region. */
struct ckt_managed_region *ckt_managed_find(uint64_t address);
/*
 * Waits for all earlier work of the GPU.  Releases the lock during the wait, because that work may
 * include a host function that accesses managed memory.  So the caller must look its region up
 * again.
 */
CUresult ckt_managed_wait(uint64_t context);
CUresult ckt_managed_fetch(struct ckt_managed_region *r, uint64_t first, uint64_t count);
/* Sends the bytes [offset, end) of the region. */
CUresult ckt_managed_send(struct ckt_managed_region *r, uint64_t offset, uint64_t end);
/* Precondition: none of the chunks is DIRTY. */
void ckt_managed_set_states(
	struct ckt_managed_region *r, uint64_t first, uint64_t count, enum ckt_managed_state state);

/* Whether all work of the GPU is known to have ended; always false with several servers. */
bool ckt_managed_idle(void);
void ckt_managed_each(void (*what)(struct ckt_managed_region *r));
