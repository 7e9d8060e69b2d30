/* SPDX-License-Identifier: Apache-2.0 */
/* The advice and prefetch locations of managed memory, stored by range for queries. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cudacommon/advice.h"

#include "base/fork.h"
#include "base/sorted.h"

/* Ranges sorted by address, without overlaps; addresses outside all ranges have the defaults. */
struct segment {
	uint64_t begin, end;
	struct ckt_advice advice;
};

static const struct ckt_advice defaults = {.preferred.type = CU_MEM_LOCATION_TYPE_INVALID,
	.fetched.type = CU_MEM_LOCATION_TYPE_INVALID};
static CKT_LOCK(lock);
static struct segment *segments;
static size_t segment_count, segment_room;

/* The first segment that ends after the address. */
static size_t behind(uint64_t address)
{
	return CKT_SORTED_UPPER(segments, segment_count, end, address);
}

/* Precondition: there is room for it. */
static void insert(size_t at, uint64_t begin, uint64_t end, const struct ckt_advice *advice)
{
	memmove(segments + at + 1, segments + at, (segment_count - at) * sizeof *segments);
	segments[at] = (struct segment){.begin = begin, .end = end, .advice = *advice};
	segment_count++;
}

static bool make_room(size_t more)
{
	if (segment_count + more <= segment_room)
		return true;
	size_t room = 2 * (segment_count + more);
	struct segment *larger = realloc(segments, room * sizeof *larger);
	if (!larger)
		return false;
	segments = larger;
	segment_room = room;
	return true;
}

static void split(uint64_t address)
{
	size_t at = behind(address);
	if (at == segment_count || segments[at].begin >= address)
		return;
	insert(at, segments[at].begin, address, &segments[at].advice);
	segments[at + 1].begin = address;
}

CUresult ckt_advice_change(uint64_t begin, uint64_t size,
	void (*change)(struct ckt_advice *advice, const void *data), const void *data)
{
	uint64_t end = begin + size;
	pthread_mutex_lock(&lock);
	/* Two splits, and a gap before each segment and after the last. */
	bool room = make_room(segment_count + 3);
	if (room) {
		split(begin);
		split(end);
		size_t at = behind(begin);
		for (uint64_t from = begin; from < end; at++) {
			uint64_t next = at < segment_count && segments[at].begin < end
				? segments[at].begin
				: end;
			if (from < next)
				insert(at, from, next, &defaults);
			change(&segments[at].advice, data);
			from = segments[at].end;
		}
	}
	pthread_mutex_unlock(&lock);
	return room ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void ckt_advice_forget(uint64_t begin, uint64_t size)
{
	pthread_mutex_lock(&lock);
	if (segment_count && make_room(2)) {
		split(begin);
		split(begin + size);
		size_t first = behind(begin), last = first;
		while (last < segment_count && segments[last].begin < begin + size)
			last++;
		memmove(segments + first, segments + last,
			(segment_count - last) * sizeof *segments);
		segment_count -= last - first;
	}
	pthread_mutex_unlock(&lock);
}

static bool same_location(CUmemLocation a, CUmemLocation b)
{
	return a.type == b.type && a.id == b.id;
}

/* The values that all pages of the range share. */
static struct ckt_advice common(uint64_t begin, uint64_t size)
{
	uint64_t end = begin + size, from = begin;
	struct ckt_advice all = defaults;
	bool first = true;
	pthread_mutex_lock(&lock);
	for (size_t at = behind(begin); from < end; at++) {
		bool gap = at >= segment_count || segments[at].begin > from;
		const struct ckt_advice *one = gap ? &defaults : &segments[at].advice;
		if (first) {
			all = *one;
			first = false;
		}
		all.read_mostly &= one->read_mostly;
		all.by_devices &= one->by_devices;
		all.by_host &= one->by_host;
		if (!same_location(all.preferred, one->preferred))
			all.preferred = defaults.preferred;
		if (!same_location(all.fetched, one->fetched))
			all.fetched = defaults.fetched;
		if (gap)
			from = at < segment_count ? segments[at--].begin : end;
		else
			from = segments[at].end;
	}
	pthread_mutex_unlock(&lock);
	return all;
}

static int as_device(CUmemLocation location)
{
	switch (location.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return location.id;
	case CU_MEM_LOCATION_TYPE_HOST:
		return CU_DEVICE_CPU;
	default:
		return CU_DEVICE_INVALID;
	}
}

static CUresult answer_accessed_by(const struct ckt_advice *advice, int *list, size_t size)
{
	size_t room = size / sizeof *list, n = 0;
	if (!size || size % sizeof *list)
		return CUDA_ERROR_INVALID_VALUE;
	if (advice->by_host)
		list[n++] = CU_DEVICE_CPU;
	for (int d = 0; d < 64 && n < room; d++)
		if (advice->by_devices >> d & 1)
			list[n++] = d;
	while (n < room)
		list[n++] = CU_DEVICE_INVALID;
	return CUDA_SUCCESS;
}

static CUresult answer(
	const struct ckt_advice *advice, void *data, size_t size, CUmem_range_attribute attribute)
{
	int value;
	if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY)
		return answer_accessed_by(advice, data, size);
	if (size != sizeof value)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
		value = advice->read_mostly;
		break;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
		value = as_device(advice->preferred);
		break;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
		value = as_device(advice->fetched);
		break;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
		value = advice->preferred.type;
		break;
	case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
		value = advice->preferred.id;
		break;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
		value = advice->fetched.type;
		break;
	case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
		value = advice->fetched.id;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	memcpy(data, &value, sizeof value);
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuMemRangeGetAttributes(void **data, size_t *sizes,
	CUmem_range_attribute *attributes, size_t count, CUdeviceptr address, size_t size)
{
	if (!data || !sizes || !attributes || !count)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_managed_check(address, size);
	if (result)
		return result;
	struct ckt_advice advice = common(address, size);
	for (size_t i = 0; i < count && !result; i++)
		result = data[i] ? answer(&advice, data[i], sizes[i], attributes[i])
				 : CUDA_ERROR_INVALID_VALUE;
	return result;
}

CKT_EXPORT CUresult cuMemRangeGetAttribute(
	void *data, size_t size, CUmem_range_attribute attribute, CUdeviceptr address, size_t count)
{
	return cuMemRangeGetAttributes(&data, &size, &attribute, 1, address, count);
}
