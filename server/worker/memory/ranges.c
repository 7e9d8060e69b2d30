/* SPDX-License-Identifier: Apache-2.0 */
/* Free ranges; see ranges.h. */
#include "server/worker/memory/ranges.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"
#include "base/grow.h"

static bool insert(struct ckt_ranges *ranges, size_t index, struct ckt_range range)
{
	if (CKT_GROW_AT(ranges->list, ranges->count, ranges->room, 16, index))
		return false;
	ranges->list[index] = range;
	return true;
}

static void erase(struct ckt_ranges *ranges, size_t index)
{
	ranges->count--;
	memmove(&ranges->list[index], &ranges->list[index + 1],
		(ranges->count - index) * sizeof *ranges->list);
}

uint64_t ckt_ranges_take(struct ckt_ranges *ranges, uint64_t size)
{
	for (size_t i = 0; i < ranges->count; i++) {
		struct ckt_range *range = &ranges->list[i];
		if (range->size < size)
			continue;
		uint64_t start = range->start;
		range->start += size;
		range->size -= size;
		if (!range->size)
			erase(ranges, i);
		return start;
	}
	return CKT_RANGES_NONE;
}

bool ckt_ranges_take_at(struct ckt_ranges *ranges, uint64_t start, uint64_t size)
{
	size_t i = CKT_SORTED_UPPER(ranges->list, ranges->count, start, start);
	if (i == 0)
		return false;
	struct ckt_range *range = &ranges->list[--i];
	uint64_t before = start - range->start;
	if (before > range->size || range->size - before < size)
		return false;
	uint64_t after = range->size - before - size;
	if (before && after) {
		range->size = before;
		if (insert(ranges, i + 1, (struct ckt_range){start + size, after}))
			return true;
		ranges->list[i].size += size + after;
		return false;
	}
	if (before)
		range->size = before;
	else if (after)
		*range = (struct ckt_range){start + size, after};
	else
		erase(ranges, i);
	return true;
}

struct ckt_range ckt_ranges_give(struct ckt_ranges *ranges, uint64_t start, uint64_t size)
{
	size_t i = CKT_SORTED_UPPER(ranges->list, ranges->count, start, start);
	struct ckt_range *before = i ? &ranges->list[i - 1] : NULL;
	struct ckt_range *after = i < ranges->count ? &ranges->list[i] : NULL;
	assert(!before || before->start + before->size <= start);
	assert(!after || start + size <= after->start);
	bool join_after = after && start + size == after->start;
	if (before && before->start + before->size == start) {
		before->size += size + (join_after ? after->size : 0);
		struct ckt_range joined = *before;
		if (join_after)
			erase(ranges, i);
		return joined;
	}
	if (join_after) {
		after->start = start;
		after->size += size;
		return *after;
	}
	insert(ranges, i, (struct ckt_range){start, size});
	return (struct ckt_range){start, size};
}

uint64_t ckt_ranges_total(const struct ckt_ranges *ranges)
{
	uint64_t total = 0;
	for (size_t i = 0; i < ranges->count; i++)
		total += ranges->list[i].size;
	return total;
}

void ckt_ranges_fini(struct ckt_ranges *ranges)
{
	free(ranges->list);
	*ranges = (struct ckt_ranges){0};
}
