/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attributes of a memory pool, as NVIDIA's driver counts them (measured on an H200 with driver
 * 580).  Used bytes are exactly the requested bytes.  Reserved bytes are pages of 32 MiB with
 * blocks in units of 512 bytes.  This file only counts: the allocator decides the real address of a
 * block.
 *
 * pages   |--------|--------|........|--------|       . given back: no block lies there
 * slots   UUUUHHU  UUUUUU                 HHH         U used, H held: freed on a stream that may not have reached the free
 *
 * An allocation takes the free place that needs the fewest new pages, and among those the smallest.
 * Memory that its own stream freed counts as free.
 *
 * Threading: none; the owner locks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CKT_POOL_ARENA_PAGE ((uint64_t)32 << 20)
#define CKT_POOL_ARENA_UNIT ((uint64_t)512)
/* No stream: held until the caller drops it. */
#define CKT_POOL_ARENA_NOBODY UINT64_MAX

struct ckt_pool_slot {
	uint64_t begin, end;
	uint64_t key;    /* the address of the block */
	uint64_t bytes;  /* as requested; 0: held */
	uint64_t stream; /* the stream that freed it */
};

/* All zeros: empty. */
struct ckt_pool_arena {
	struct ckt_pool_slot *slots; /* sorted by place */
	size_t count, room;
	uint8_t *pages; /* 1: reserved */
	size_t page_count;
	uint64_t used, used_high, reserved, reserved_high;
};

void ckt_pool_arena_fini(struct ckt_pool_arena *arena);
/* The additional reserved bytes that an allocation of this size would need. */
uint64_t ckt_pool_arena_growth(const struct ckt_pool_arena *arena, uint64_t bytes, uint64_t stream);
/* False if there is no memory for the record; then the block is not counted. */
bool ckt_pool_arena_take(
	struct ckt_pool_arena *arena, uint64_t key, uint64_t bytes, uint64_t stream);
/*
 * The block was freed on the stream: it no longer counts as used, but only that stream can reuse
 * its place.
 */
void ckt_pool_arena_hold(struct ckt_pool_arena *arena, uint64_t key, uint64_t stream);
/* The block's place becomes free, whatever its state. */
void ckt_pool_arena_drop(struct ckt_pool_arena *arena, uint64_t key);
/* Gives back pages without blocks, but keeps `keep` bytes reserved. */
void ckt_pool_arena_trim(struct ckt_pool_arena *arena, uint64_t keep);
/* Resets the high marks to the current values. */
void ckt_pool_arena_reset_used(struct ckt_pool_arena *arena);
void ckt_pool_arena_reset_reserved(struct ckt_pool_arena *arena);
/* The value that CUDA reports for a pool's largest size; 0: none. */
uint64_t ckt_pool_arena_limit(uint64_t max_bytes);
