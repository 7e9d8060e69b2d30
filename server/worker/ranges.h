/*
 * A sorted set of disjoint, never touching ranges of numbers: what is free in an address space.
 *
 * Taking is first fit from the lowest address, so that the same history gives the same addresses.  Threading: the owner locks.
 * Memory for the list is grown before anything changes; its failure ends the process, as every other small allocation of the worker.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ckt_range {
	uint64_t start, size;
};

struct ckt_ranges {
	struct ckt_range *list;
	size_t count, room;
};

#define CKT_RANGES_NONE UINT64_MAX

/* Start of the range taken, or CKT_RANGES_NONE. */
uint64_t ckt_ranges_take(struct ckt_ranges *ranges, uint64_t size);
/* Takes exactly [start, start + size); false, and nothing changed, where some of it is not free. */
bool ckt_ranges_take_at(struct ckt_ranges *ranges, uint64_t start, uint64_t size);
/* Gives [start, start + size) back and joins it with its neighbours; returns the joined range. Precondition: none of it is free. */
struct ckt_range ckt_ranges_give(struct ckt_ranges *ranges, uint64_t start, uint64_t size);
uint64_t ckt_ranges_total(const struct ckt_ranges *ranges);
void ckt_ranges_fini(struct ckt_ranges *ranges);
