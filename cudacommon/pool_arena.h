/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A memory pool's attributes, as NVIDIA's driver counts them (an H200's, driver 580): used bytes
 * are requested bytes, exactly; reserved bytes are pages of 32 MiB, in which blocks follow one
 * another in units of 512 bytes.  This file only counts: the allocator decides where a block really
 * is.
 *
 *	pages   |--------|--------|........|--------|       . given back: no block lies there
 *	slots   UUUUHHU  UUUUUU                 HHH         U used, H held: freed on a stream that may not have come there yet
 *
 * An allocation takes the free place that costs the fewest new pages, of those the smallest; what
 * its own stream freed counts as free.
 *
 * Threading: none; the owner locks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CKT_POOL_ARENA_PAGE ((uint64_t)32 << 20)
#define CKT_POOL_ARENA_UNIT ((uint64_t)512)
/* No stream's: held until the caller says that it is done. */
#define CKT_POOL_ARENA_NOBODY UINT64_MAX

struct ckt_pool_slot {
	uint64_t begin, end;
	uint64_t key;    /* the block's address */
	uint64_t bytes;  /* as asked for; 0: held */
	uint64_t stream; /* that freed it */
};

/* All zeros: empty. */
struct ckt_pool_arena {
	struct ckt_pool_slot *slots; /* by place */
	size_t count, room;
	uint8_t *pages; /* 1: reserved */
	size_t page_count;
	uint64_t used, used_high, reserved, reserved_high;
};

void ckt_pool_arena_fini(struct ckt_pool_arena *arena);
/* Bytes that would be reserved in addition for an allocation of that size. */
uint64_t ckt_pool_arena_growth(const struct ckt_pool_arena *arena, uint64_t bytes, uint64_t stream);
/* False without memory for the record: then the block is not counted. */
bool ckt_pool_arena_take(
	struct ckt_pool_arena *arena, uint64_t key, uint64_t bytes, uint64_t stream);
/*
 * The block is freed on the stream: it no longer counts as used, but for now only that stream can
 * reuse its place.
 */
void ckt_pool_arena_hold(struct ckt_pool_arena *arena, uint64_t key, uint64_t stream);
/* The block's place is free, whatever it was before. */
void ckt_pool_arena_drop(struct ckt_pool_arena *arena, uint64_t key);
/* Gives back pages without blocks, as long as keep bytes stay reserved. */
void ckt_pool_arena_trim(struct ckt_pool_arena *arena, uint64_t keep);
/* Resets the high marks to the present values. */
void ckt_pool_arena_reset_used(struct ckt_pool_arena *arena);
void ckt_pool_arena_reset_reserved(struct ckt_pool_arena *arena);
/* The value that CUDA gives a pool's largest size; 0: none. */
uint64_t ckt_pool_arena_limit(uint64_t max_bytes);
