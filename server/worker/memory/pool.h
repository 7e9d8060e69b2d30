/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory pools and stream-ordered allocation, over the session's own allocator.
 *
 *	block of a pool:  the program's --mem_free_async--> kept --same stream, or its event done--> the program's
 *	                                                     |--a wait, a trim or want of memory--> really freed
 *
 * A kept block remembers the stream it was freed on and an event behind that stream's work of then:
 * an allocation on the same stream takes it at once, another stream's when the event is done, or by
 * making the stream wait for the event.  A block of no pool that was freed on a stream waits here
 * likewise, and is freed when the event is done.
 *
 * Threading: the executor alone, or whoever has frozen it.  What blocks there are and whose they
 * are is the allocator's knowledge.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ckt_fences;
struct ckt_object;
struct ckt_worker;

enum {
	CKT_POOL_REUSE_ALL = 7
}; /* bit n: the pool's attribute CU_MEMPOOL_ATTR_REUSE_* with the number n + 1 is set */

#define CKT_POOL_NO_STREAM UINT64_MAX

struct ckt_pool {
	uint64_t id;
	unsigned device;
	unsigned reuse;
	uint64_t release_threshold;
	uint64_t max_bytes; /* 0: none */
	bool destroyed;     /* goes with its last block */
};

struct ckt_pool_kept {
	uint64_t address, granted, pool;
	uint64_t owner; /* the context the block was allocated in */
	unsigned device;
	uint64_t stream; /* the wire's id */
	/* of the event's and the stream's context; NULL once the event is done */
	struct ckt_fences *fences;
	CUevent event;
	const struct ckt_fences *home; /* the stream's context, also then; NULL for NO_STREAM */
	struct ckt_memory *memory;     /* the device's */
	/* the program waited for the stream since: others may have the memory */
	bool waited;
	bool due; /* and it goes now, where the pool should not keep it */
};

struct ckt_pools {
	struct ckt_pool *defaults;  /* one per device */
	struct ckt_pool_kept *kept; /* in the order of freeing */
	size_t kept_count, kept_room;
	/* the program waited for something since the last look: what a pool should not keep goes */
	bool synchronized;
	bool freed; /* or it freed memory that waits by itself */
};

#define CKT_POOL_ALL_STREAMS UINT64_MAX

/* 0 or -ENOMEM. */
int ckt_worker_pools_init(struct ckt_worker *worker);
/* NULL where there is no such pool. */
struct ckt_pool *ckt_worker_pool_find(struct ckt_worker *worker, uint64_t id);
CUresult ckt_worker_pool_make(
	struct ckt_worker *worker, uint64_t id, unsigned device, uint64_t max_bytes);
/* A block that the image says its pool keeps. */
CUresult ckt_worker_pool_adopt_kept(struct ckt_worker *worker, unsigned device, uint64_t address);
/*
 * Looks which events are done, frees what is waiting only for that, and, after a wait of the
 * program, what pools should not keep.
 */
void ckt_worker_pools_poll(struct ckt_worker *worker);
/* The program waits for a stream (of the context with these fences), or for all of them. */
void ckt_worker_pools_waited(
	struct ckt_worker *worker, uint64_t stream, const struct ckt_fences *fences);
/*
 * Frees every kept block of the device that nothing uses any more; false where there was none.
 * waited: only those that the program waited for, as for an allocation that is none of a pool.
 */
bool ckt_worker_pools_release(struct ckt_worker *worker, unsigned device, bool waited);
/* The context ends, its streams have finished, and its blocks go with it. */
void ckt_worker_pools_forget_context(struct ckt_worker *worker, struct ckt_object *context);
