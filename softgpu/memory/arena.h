/* SPDX-License-Identifier: Apache-2.0 */
/* Page-granular pieces of one big address range per device. */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum { CKT_SOFT_GRANULE = 2 << 20 }; /* of physical memory (cuMemCreate) */

struct ckt_soft_extent {
	uint64_t base, size;
};

struct ckt_soft_arena {
	pthread_mutex_t lock;
	/* sizes are rounded up to it: a page, or less in a heap */
	uint64_t unit;
	/* [base, readable_end) is readable and writable for the host */
	uint64_t base, size, readable_end;
	struct ckt_soft_extent *free_list; /* sorted by address, never adjacent */
	size_t n_free, n_free_max;
};

/* Reserves the range at `wish` if that is free, or at any address. */
int ckt_soft_arena_init(struct ckt_soft_arena *arena, uint64_t wish, uint64_t size);
/* Manages existing memory in units of 16 bytes; allocations are not zero-filled. */
int ckt_soft_arena_init_at(struct ckt_soft_arena *arena, uint64_t base, uint64_t size);
void ckt_soft_arena_fini(struct ckt_soft_arena *arena);
/* Returns zero-filled, page-aligned memory, or 0 if there is none. */
uint64_t ckt_soft_arena_alloc(struct ckt_soft_arena *arena, uint64_t size);
void ckt_soft_arena_free(struct ckt_soft_arena *arena, uint64_t base, uint64_t size);
