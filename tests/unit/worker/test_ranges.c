/* SPDX-License-Identifier: Apache-2.0 */
/* Free ranges: first fit, joined again, and equal to a plain map of units after any history. */
#include <stdlib.h>
#include <string.h>

#include "server/worker/memory/ranges.h"
#include "tests/unit/suite.h"

static void test_join(void)
{
	static const struct {
		uint64_t give, size;    /* units */
		uint64_t start, joined; /* the range it becomes */
		size_t count;
	} steps[] = {
		{100, 10, 100, 10, 1},
		{200, 10, 200, 10, 2},
		{110, 5, 100, 15, 2},  /* behind one */
		{190, 10, 190, 20, 2}, /* before one */
		{300, 1, 300, 1, 3},
		{0, 1, 0, 1, 4},
		{115, 75, 100, 110, 3}, /* between two */
		{UINT64_MAX - 9, 9, UINT64_MAX - 9, 9, 4},
	};
	struct ckt_ranges ranges = {0};
	for (size_t i = 0; i < COUNT(steps); i++) {
		struct ckt_range joined = ckt_ranges_give(&ranges, steps[i].give, steps[i].size);
		IS(joined.start, steps[i].start);
		IS(joined.size, steps[i].joined);
		IS(ranges.count, steps[i].count);
	}
	IS(ckt_ranges_total(&ranges), 1 + 110 + 1 + 9);
	ckt_ranges_fini(&ranges);
	IS(ranges.count + ranges.room, 0);
}

static void test_take(void)
{
	struct ckt_ranges ranges = {0};
	IS(ckt_ranges_take(&ranges, 1), CKT_RANGES_NONE);
	NO(ckt_ranges_take_at(&ranges, 0, 1));
	ckt_ranges_give(&ranges, 10, 4);
	ckt_ranges_give(&ranges, 20, 8);
	ckt_ranges_give(&ranges, 40, 8);
	IS(ckt_ranges_take(&ranges, 9), CKT_RANGES_NONE);
	IS(ckt_ranges_take(&ranges, 5), 20); /* first fit */
	IS(ckt_ranges_take(&ranges, 4), 10); /* the whole range goes */
	IS(ranges.count, 2);
	IS(ckt_ranges_take(&ranges, 3), 25);
	IS(ckt_ranges_total(&ranges), 8);
	static const struct {
		uint64_t start, size;
		bool taken;
	} at[] = {
		{39, 1, false},
		{39, 2, false},
		{40, 9, false},
		{47, 2, false},
		{48, 1, false},
		{UINT64_MAX, 1, false},
		{41, UINT64_MAX, false},
		{42, 2, true},
		{42, 1, false},
		{41, 2, false},
		{40, 2, true},
		{46, 2, true},
		{44, 2, true},
		{44, 1, false},
	};
	for (size_t i = 0; i < COUNT(at); i++) {
		uint64_t before = ckt_ranges_total(&ranges);
		IS(ckt_ranges_take_at(&ranges, at[i].start, at[i].size), at[i].taken);
		IS(ckt_ranges_total(&ranges), before - (at[i].taken ? at[i].size : 0));
	}
	IS(ranges.count, 0);
	ckt_ranges_fini(&ranges);
}

enum { UNITS = 512 };

static bool agree(const struct ckt_ranges *ranges, const uint8_t *is_free)
{
	uint8_t seen[UNITS] = {0};
	for (size_t i = 0; i < ranges->count; i++) {
		const struct ckt_range *r = &ranges->list[i];
		if (!r->size || r->start + r->size > UNITS ||
			(i && ranges->list[i - 1].start + ranges->list[i - 1].size >= r->start))
			return false; /* empty, or it touches its neighbour */
		memset(seen + r->start, 1, r->size);
	}
	return !memcmp(seen, is_free, UNITS);
}

static bool all(const uint8_t *is_free, uint64_t start, uint64_t size, uint8_t value)
{
	for (uint64_t i = start; i < start + size; i++)
		if (i >= UNITS || is_free[i] != value)
			return false;
	return true;
}

static uint64_t first_fit(const uint8_t *is_free, uint64_t size)
{
	for (uint64_t at = 0; at < UNITS; at++)
		if (all(is_free, at, size, 1))
			return at;
	return CKT_RANGES_NONE;
}

static void test_random(void)
{
	struct ckt_ranges ranges = {0};
	uint8_t is_free[UNITS];
	unsigned wrong = 0;
	srand(7);
	memset(is_free, 1, sizeof is_free);
	ckt_ranges_give(&ranges, 0, UNITS);
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t start = (uint64_t)rand() % UNITS, size = 1 + (uint64_t)rand() % 24;
		switch (rand() % 3) {
		case 0:
			start = first_fit(is_free, size);
			wrong += ckt_ranges_take(&ranges, size) != start;
			if (start != CKT_RANGES_NONE)
				memset(is_free + start, 0, size);
			break;
		case 1: {
			bool can = all(is_free, start, size, 1);
			wrong += ckt_ranges_take_at(&ranges, start, size) != can;
			if (can)
				memset(is_free + start, 0, size);
			break;
		}
		default:
			if (all(is_free, start, size, 0)) {
				struct ckt_range joined = ckt_ranges_give(&ranges, start, size);
				memset(is_free + start, 1, size);
				wrong += joined.start > start ||
					joined.start + joined.size < start + size ||
					!all(is_free, joined.start, joined.size, 1);
			}
		}
		wrong += i % 16 == 0 && !agree(&ranges, is_free);
	}
	IS(wrong, 0);
	YES(ranges.room >= 16);
	ckt_ranges_fini(&ranges);
}

UNIT_SUITE(ranges, {"join", test_join}, {"take", test_take}, {"random", test_random})
