/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sorted set of disjoint, never touching ranges of numbers: what is free in an address space.
 *
 * Taking is first fit from the lowest address, so that the same history gives the same addresses.
 * Threading: the owner locks. Where the list cannot grow, what is taken stays free, and what is
 * given back stays taken: addresses are lost, nothing else.
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
/*
 * Takes exactly [start, start + size); false, and nothing changed, where some of it is not free, or
 * there is no memory for the list.
 */
bool ckt_ranges_take_at(struct ckt_ranges *ranges, uint64_t start, uint64_t size);
/*
 * Gives [start, start + size) back and joins it with its neighbours; returns the joined range.
 * Precondition: none of it is free.
 */
struct ckt_range ckt_ranges_give(struct ckt_ranges *ranges, uint64_t start, uint64_t size);
uint64_t ckt_ranges_total(const struct ckt_ranges *ranges);
void ckt_ranges_fini(struct ckt_ranges *ranges);
