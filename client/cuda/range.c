/*
 * What memory the program has: every allocation, module global and pinned buffer, sorted by address.  Pointer questions, frees and the
 * checks before a batched copy are answered from here.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "client/cuda/internal.h"
#include "rpc/log.h"
#include "rpc/sorted.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct ckt_range *ranges;
static size_t count, capacity;
static uint64_t next_buffer_id = 1;

/* Index of the first range whose base is above the address.  Precondition: lock held. */
static size_t upper(uint64_t address)
{
	return CKT_SORTED_UPPER(ranges, count, base, address);
}

void ckt_range_add(const struct ckt_range *range)
{
	pthread_rwlock_wrlock(&lock);
	if (count == capacity) {
		size_t wanted = capacity ? capacity * 2 : 64;
		struct ckt_range *larger = realloc(ranges, wanted * sizeof *ranges);
		if (!larger)
			abort();	/* Losing track of memory would make later answers wrong. */
		ranges = larger;
		capacity = wanted;
	}
	size_t at = upper(range->base);
	memmove(ranges + at + 1, ranges + at, (count - at) * sizeof *ranges);
	ranges[at] = *range;
	ranges[at].buffer_id = next_buffer_id++;
	count++;
	pthread_rwlock_unlock(&lock);
}

bool ckt_range_remove(uint64_t base, enum ckt_range_kind kind, struct ckt_range *ret_range)
{
	bool found = false;
	pthread_rwlock_wrlock(&lock);
	for (size_t at = upper(base); at-- > 0 && ranges[at].base == base;) {
		if (ranges[at].kind != kind)
			continue;
		if (ret_range)
			*ret_range = ranges[at];
		memmove(ranges + at, ranges + at + 1, (count - at - 1) * sizeof *ranges);
		count--;
		found = true;
		break;
	}
	pthread_rwlock_unlock(&lock);
	return found;
}

void ckt_range_remove_owner(uint64_t owner)
{
	size_t kept = 0;
	pthread_rwlock_wrlock(&lock);
	for (size_t i = 0; i < count; i++)
		if (ranges[i].kind != CKT_RANGE_GLOBAL || ranges[i].owner != owner)
			ranges[kept++] = ranges[i];
	count = kept;
	pthread_rwlock_unlock(&lock);
}

void ckt_range_remove_context(uint64_t context)
{
	size_t kept = 0;
	pthread_rwlock_wrlock(&lock);
	for (size_t i = 0; i < count; i++) {
		bool theirs = ranges[i].kind == CKT_RANGE_DEVICE || ranges[i].kind == CKT_RANGE_GLOBAL || ranges[i].kind == CKT_RANGE_MANAGED ||
			      ranges[i].kind == CKT_RANGE_IMPORTED;
		if (!theirs || ranges[i].context != context)
			ranges[kept++] = ranges[i];
	}
	count = kept;
	pthread_rwlock_unlock(&lock);
}

bool ckt_range_set_sync(uint64_t address, bool sync)
{
	bool found = false;
	pthread_rwlock_wrlock(&lock);
	size_t at = upper(address);
	if (at && address - ranges[at - 1].base < ranges[at - 1].size) {
		ranges[at - 1].sync = sync;
		found = true;
	}
	pthread_rwlock_unlock(&lock);
	return found;
}

bool ckt_range_find(uint64_t address, struct ckt_range *ret_range)
{
	bool found = false;
	pthread_rwlock_rdlock(&lock);
	size_t at = upper(address);
	if (at && address - ranges[at - 1].base < ranges[at - 1].size) {
		*ret_range = ranges[at - 1];
		found = true;
	}
	pthread_rwlock_unlock(&lock);
	return found;
}

bool ckt_range_is_device(uint64_t address, uint64_t size)
{
	bool good = true;
	pthread_rwlock_rdlock(&lock);
	size_t at = upper(address);
	do {
		const struct ckt_range *range = at ? &ranges[at - 1] : NULL;
		uint64_t offset = range ? address - range->base : 0;
		good = range && offset < range->size && ckt_range_reaches_device(range) &&
		       (range->kind != CKT_RANGE_MAPPED || range->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE);
		if (!good || size <= range->size - offset)
			break;
		/* Only what the program mapped itself goes on behind its end. */
		good = range->kind == CKT_RANGE_MAPPED && at < count && ranges[at].base == range->base + range->size &&
		       ranges[at].kind == CKT_RANGE_MAPPED;
		address = range->base + range->size;
		size -= range->size - offset;
		at++;
	} while (good);
	pthread_rwlock_unlock(&lock);
	return good;
}

bool ckt_range_require_device(const char *what, uint64_t address, uint64_t size)
{
	struct ckt_range range;
	if (ckt_range_is_device(address, size))
		return true;
	if (ckt_range_find(address, &range))
		ckt_debug("%s: %llu bytes at 0x%llx are not all in %llu bytes at 0x%llx (kind %d, flags %u)", what, (unsigned long long)size,
			  (unsigned long long)address, (unsigned long long)range.size, (unsigned long long)range.base, range.kind, range.flags);
	else
		ckt_debug("%s: nothing is allocated at 0x%llx (%llu bytes wanted)", what, (unsigned long long)address, (unsigned long long)size);
	return false;
}

bool ckt_range_overlaps(uint64_t address, uint64_t size)
{
	pthread_rwlock_rdlock(&lock);
	size_t at = upper(address);
	bool found = (at && address - ranges[at - 1].base < ranges[at - 1].size) || (at < count && ranges[at].base - address < size);
	pthread_rwlock_unlock(&lock);
	return found;
}

void ckt_range_set_flags(uint64_t address, uint64_t size, enum ckt_range_kind kind, unsigned flags)
{
	pthread_rwlock_wrlock(&lock);
	for (size_t at = address ? upper(address - 1) : 0; at < count && ranges[at].base - address < size; at++)
		if (ranges[at].kind == kind)
			ranges[at].flags = flags;
	pthread_rwlock_unlock(&lock);
}

void ckt_range_set_peer(uint64_t address, uint64_t size, CUdevice device, unsigned flags)
{
	uint64_t bit = 1ull << device;
	pthread_rwlock_wrlock(&lock);
	for (size_t at = address ? upper(address - 1) : 0; at < count && ranges[at].base - address < size; at++)
		if (ranges[at].kind == CKT_RANGE_MAPPED) {
			ranges[at].readers &= ~bit;
			ranges[at].writers &= ~bit;
			ranges[at].readers |= flags == CU_MEM_ACCESS_FLAGS_PROT_READ ? bit : 0;
			ranges[at].writers |= flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? bit : 0;
		}
	pthread_rwlock_unlock(&lock);
}

void ckt_range_set_mapped(uint64_t base)
{
	pthread_rwlock_wrlock(&lock);
	for (size_t at = upper(base); at-- > 0 && ranges[at].base == base;)
		if (ranges[at].kind == CKT_RANGE_HOST_ALLOC)
			ranges[at].mapped = true;
	pthread_rwlock_unlock(&lock);
}

void ckt_range_set_shared(uint64_t base, bool shared)
{
	pthread_rwlock_wrlock(&lock);
	for (size_t at = upper(base); at-- > 0 && ranges[at].base == base;)
		if (ranges[at].kind == CKT_RANGE_HOST_ALLOC)
			ranges[at].shared = shared;
	pthread_rwlock_unlock(&lock);
}

bool ckt_range_is_shared(uint64_t address, uint64_t size)
{
	struct ckt_range range;
	return ckt_range_find(address, &range) && range.shared && size <= range.size - (address - range.base);
}

bool ckt_range_is_pinned(const void *address, uint64_t size)
{
	struct ckt_range range;
	uint64_t base = (uint64_t)(uintptr_t)address;
	return ckt_range_find(base, &range) && (range.kind == CKT_RANGE_HOST_ALLOC || range.kind == CKT_RANGE_HOST_REGISTERED) &&
	       size <= range.size - (base - range.base);
}
