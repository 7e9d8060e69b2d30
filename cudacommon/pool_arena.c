/* SPDX-License-Identifier: Apache-2.0 */
/* See pool_arena.h. */
#include "cudacommon/pool_arena.h"

#include <stdlib.h>
#include <string.h>

#define PAGE CKT_POOL_ARENA_PAGE

static uint64_t round_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) / to * to;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void ckt_pool_arena_fini(struct ckt_pool_arena *arena)
{
	free(arena->slots);
	free(arena->pages);
	*arena = (struct ckt_pool_arena){0};
}

uint64_t ckt_pool_arena_limit(uint64_t max_bytes)
{
	return max_bytes > UINT64_MAX - PAGE ? 0 : round_up(max_bytes, PAGE);
}

/* ---- Places */

/* The number of unreserved pages in [begin, end). */
static uint64_t missing(const struct ckt_pool_arena *arena, uint64_t begin, uint64_t end)
{
	uint64_t count = 0;
	for (uint64_t page = begin / PAGE; page * PAGE < end; page++)
		count += page >= arena->page_count || !arena->pages[page];
	return count;
}

struct place {
	uint64_t begin, pages, room;
};

/* Whether the stream can use the slot's place. */
static bool is_free(const struct ckt_pool_slot *slot, uint64_t stream)
{
	return !slot->bytes && slot->stream == stream && stream != CKT_POOL_ARENA_NOBODY;
}

static void consider(const struct ckt_pool_arena *arena, uint64_t begin, uint64_t end,
	uint64_t size, struct place *best)
{
	if (begin >= end || end - begin < size)
		return;
	uint64_t pages = missing(arena, begin, begin + size), room = end - begin;
	if (best->begin == UINT64_MAX || pages < best->pages ||
		(pages == best->pages && room < best->room))
		*best = (struct place){.begin = begin, .pages = pages, .room = room};
}

static struct place find_place(const struct ckt_pool_arena *arena, uint64_t size, uint64_t stream)
{
	struct place best = {.begin = UINT64_MAX};
	uint64_t begin = 0;
	for (size_t i = 0; i < arena->count; i++) {
		const struct ckt_pool_slot *slot = &arena->slots[i];
		if (is_free(slot, stream))
			continue;
		consider(arena, begin, slot->begin, size, &best);
		begin = slot->end;
	}
	/* There is no end after the last slot. */
	consider(arena, begin, UINT64_MAX, size, &best);
	return best;
}

static uint64_t size_of(uint64_t bytes)
{
	return bytes ? round_up(least(bytes, UINT64_MAX / 4), CKT_POOL_ARENA_UNIT)
		     : CKT_POOL_ARENA_UNIT;
}

uint64_t ckt_pool_arena_growth(const struct ckt_pool_arena *arena, uint64_t bytes, uint64_t stream)
{
	uint64_t size = size_of(bytes);
	/* Pages are checked one by one. */
	if (size > (uint64_t)1 << 48)
		return UINT64_MAX / 2;
	return find_place(arena, size, stream).pages * PAGE;
}

/* ---- Slots */

static bool make_room(struct ckt_pool_arena *arena, uint64_t end)
{
	if (arena->count + 2 > arena->room) {
		size_t room = arena->room ? 2 * arena->room : 16;
		struct ckt_pool_slot *slots = realloc(arena->slots, room * sizeof *slots);
		if (!slots)
			return false;
		arena->slots = slots;
		arena->room = room;
	}
	size_t pages = (size_t)((end + PAGE - 1) / PAGE);
	if (pages > arena->page_count) {
		uint8_t *larger = realloc(arena->pages, pages);
		if (!larger)
			return false;
		memset(larger + arena->page_count, 0, pages - arena->page_count);
		arena->pages = larger;
		arena->page_count = pages;
	}
	return true;
}

static void remove_at(struct ckt_pool_arena *arena, size_t i)
{
	memmove(&arena->slots[i], &arena->slots[i + 1],
		(--arena->count - i) * sizeof *arena->slots);
}

static void insert_at(struct ckt_pool_arena *arena, size_t i, struct ckt_pool_slot slot)
{
	memmove(&arena->slots[i + 1], &arena->slots[i],
		(arena->count++ - i) * sizeof *arena->slots);
	arena->slots[i] = slot;
}

/*
 * Removes the place from the held slots.  Precondition: room for one more slot.  Returns the
 * place's index.
 */
static size_t cut(struct ckt_pool_arena *arena, uint64_t begin, uint64_t end)
{
	size_t i = 0;
	while (i < arena->count && arena->slots[i].end <= begin)
		i++;
	if (i < arena->count && arena->slots[i].begin < begin) {
		struct ckt_pool_slot rest = arena->slots[i];
		arena->slots[i++].end = begin;
		rest.begin = end;
		if (rest.end > end)
			insert_at(arena, i, rest);
	}
	while (i < arena->count && arena->slots[i].end <= end)
		remove_at(arena, i);
	if (i < arena->count && arena->slots[i].begin < end)
		arena->slots[i].begin = end;
	return i;
}

bool ckt_pool_arena_take(
	struct ckt_pool_arena *arena, uint64_t key, uint64_t bytes, uint64_t stream)
{
	uint64_t size = size_of(bytes);
	if (size > (uint64_t)1 << 48)
		return false;
	struct place place = find_place(arena, size, stream);
	uint64_t end = place.begin + size;
	if (!make_room(arena, end))
		return false;
	insert_at(arena, cut(arena, place.begin, end),
		(struct ckt_pool_slot){.begin = place.begin,
			.end = end,
			.key = key,
			.bytes = bytes ? bytes : 1,
			.stream = stream});
	for (uint64_t page = place.begin / PAGE; page * PAGE < end; page++)
		arena->pages[page] = 1;
	arena->reserved += place.pages * PAGE;
	arena->used += bytes;
	if (arena->used > arena->used_high)
		arena->used_high = arena->used;
	if (arena->reserved > arena->reserved_high)
		arena->reserved_high = arena->reserved;
	return true;
}

void ckt_pool_arena_hold(struct ckt_pool_arena *arena, uint64_t key, uint64_t stream)
{
	for (size_t i = 0; i < arena->count; i++) {
		struct ckt_pool_slot *slot = &arena->slots[i];
		if (slot->key != key)
			continue;
		arena->used -= slot->bytes;
		slot->bytes = 0;
		slot->stream = stream;
	}
}

void ckt_pool_arena_drop(struct ckt_pool_arena *arena, uint64_t key)
{
	for (size_t i = 0; i < arena->count;) {
		if (arena->slots[i].key != key) {
			i++;
			continue;
		}
		arena->used -= arena->slots[i].bytes;
		remove_at(arena, i);
	}
}

/* ---- Pages */

void ckt_pool_arena_trim(struct ckt_pool_arena *arena, uint64_t keep)
{
	size_t slot = arena->count;
	for (size_t page = arena->page_count;
		page-- > 0 && arena->reserved >= PAGE && arena->reserved - PAGE >= keep;) {
		/* The last slot that begins before the end of the page. */
		while (slot && arena->slots[slot - 1].begin >= (page + 1) * PAGE)
			slot--;
		if (!arena->pages[page] || (slot && arena->slots[slot - 1].end > page * PAGE))
			continue;
		arena->pages[page] = 0;
		arena->reserved -= PAGE;
	}
}

void ckt_pool_arena_reset_used(struct ckt_pool_arena *arena)
{
	arena->used_high = arena->used;
}

void ckt_pool_arena_reset_reserved(struct ckt_pool_arena *arena)
{
	arena->reserved_high = arena->reserved;
}
