/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of the program's memory, sorted by address: allocations, module globals and pinned
 * buffers.  Queries of pointers, frees and the checks before a batched copy use it.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "client/cuda/memory/range.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/sorted.h"
#include "client/conn/call.h"
#include "client/cuda/context/route.h"

/*
 * One table for each server.  Addresses of two servers differ, except those that drivers choose:
 * module variables of two servers may be at one address.  Then the address means the one on the
 * server that the thread's calls go to.
 */
struct table {
	struct ckt_client_range *ranges;
	size_t count, capacity;
};

/*
 * Free entries that ckt_range_room ensures: so many threads can be between ckt_range_room and
 * ckt_range_add at once.
 */
enum { SLACK = 256 };

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

static void forked(void)
{
	lock = (pthread_rwlock_t)PTHREAD_RWLOCK_INITIALIZER;
}
CKT_IN_CHILD(forked);

static struct table tables[CKT_SERVERS_MAX];
static uint64_t next_buffer_id = 1;

/* The index of the first range whose base is above the address.  Precondition: lock held. */
static size_t upper(const struct table *table, uint64_t address)
{
	return CKT_SORTED_UPPER(table->ranges, table->count, base, address);
}

/* The range that holds the address, or NULL.  Precondition: lock held. */
static struct ckt_client_range *holder(const struct table *table, uint64_t address)
{
	size_t at = upper(table, address);
	return at && address - table->ranges[at - 1].base < table->ranges[at - 1].size
		? &table->ranges[at - 1]
		: NULL;
}

/*
 * The table to search: the current server's, or another's if only that one has the address.
 * Precondition: lock held.
 */
static struct table *table_of(uint64_t address)
{
	if (__builtin_expect(ckt_conn_count == 1, 1))
		return &tables[0];
	struct table *here = &tables[ckt_call_node()];
	for (unsigned n = 0; n < ckt_conn_count && !holder(here, address); n++)
		if (holder(&tables[n], address))
			return &tables[n];
	return here;
}

/* Precondition: lock held. */
static bool has_room(struct table *table)
{
	if (table->capacity - table->count >= SLACK)
		return true;
	size_t wanted = table->capacity * 2 + SLACK;
	struct ckt_client_range *larger = reallocarray(table->ranges, wanted, sizeof *larger);
	if (!larger)
		return false;
	table->ranges = larger;
	table->capacity = wanted;
	return true;
}

CUresult ckt_range_room(void)
{
	bool room = true;
	pthread_rwlock_rdlock(&lock);
	for (unsigned n = 0; n < ckt_conn_count && room; n++)
		room = tables[n].capacity - tables[n].count >= SLACK;
	pthread_rwlock_unlock(&lock);
	if (room)
		return CUDA_SUCCESS;
	pthread_rwlock_wrlock(&lock);
	room = true;
	for (unsigned n = 0; n < ckt_conn_count && room; n++)
		room = has_room(&tables[n]);
	pthread_rwlock_unlock(&lock);
	return room ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void ckt_range_add(const struct ckt_client_range *range)
{
	pthread_rwlock_wrlock(&lock);
	struct table *table =
		&tables[ckt_conn_count > 1 ? ckt_client_context_node(range->context) : 0];
	/*
	 * ckt_range_room made room, so this fails only if more than SLACK threads get here at once
	 * and no memory is left.
	 */
	if (table->count == table->capacity && !has_room(table)) {
		pthread_rwlock_unlock(&lock);
		ckt_log_user("no memory left to record %llu bytes at 0x%llx",
			(unsigned long long)range->size, (unsigned long long)range->base);
		return;
	}
	size_t at = upper(table, range->base);
	memmove(table->ranges + at + 1, table->ranges + at,
		(table->count - at) * sizeof *table->ranges);
	table->ranges[at] = *range;
	table->ranges[at].buffer_id = next_buffer_id++;
	table->count++;
	pthread_rwlock_unlock(&lock);
}

bool ckt_range_remove(uint64_t base, enum ckt_range_kind kind, struct ckt_client_range *ret_range)
{
	bool found = false;
	pthread_rwlock_wrlock(&lock);
	struct table *table = table_of(base);
	for (size_t at = upper(table, base); at-- > 0 && table->ranges[at].base == base;) {
		if (table->ranges[at].kind != kind)
			continue;
		if (ret_range)
			*ret_range = table->ranges[at];
		memmove(table->ranges + at, table->ranges + at + 1,
			(table->count - at - 1) * sizeof *table->ranges);
		table->count--;
		found = true;
		break;
	}
	pthread_rwlock_unlock(&lock);
	return found;
}

static bool is_owned(const struct ckt_client_range *range, uint64_t owner)
{
	return range->kind == CKT_RANGE_GLOBAL && range->owner == owner;
}

static bool is_of_context(const struct ckt_client_range *range, uint64_t context)
{
	bool theirs = range->kind == CKT_RANGE_DEVICE || range->kind == CKT_RANGE_GLOBAL ||
		range->kind == CKT_RANGE_MANAGED || range->kind == CKT_RANGE_IMPORTED;
	return theirs && range->context == context;
}

static void remove_all(
	bool (*is_meant)(const struct ckt_client_range *range, uint64_t id), uint64_t id)
{
	pthread_rwlock_wrlock(&lock);
	for (unsigned n = 0; n < ckt_conn_count; n++) {
		struct table *table = &tables[n];
		size_t kept = 0;
		for (size_t i = 0; i < table->count; i++)
			if (!is_meant(&table->ranges[i], id))
				table->ranges[kept++] = table->ranges[i];
		table->count = kept;
	}
	pthread_rwlock_unlock(&lock);
}

void ckt_range_remove_owner(uint64_t owner)
{
	remove_all(is_owned, owner);
}

void ckt_range_remove_context(uint64_t context)
{
	remove_all(is_of_context, context);
}

bool ckt_range_set_sync(uint64_t address, bool sync)
{
	pthread_rwlock_wrlock(&lock);
	struct ckt_client_range *range = holder(table_of(address), address);
	if (range)
		range->sync = sync;
	pthread_rwlock_unlock(&lock);
	return range != NULL;
}

bool ckt_range_find(uint64_t address, struct ckt_client_range *ret_range)
{
	pthread_rwlock_rdlock(&lock);
	const struct ckt_client_range *range = holder(table_of(address), address);
	if (range)
		*ret_range = *range;
	pthread_rwlock_unlock(&lock);
	return range != NULL;
}

bool ckt_range_is_device(uint64_t address, uint64_t size)
{
	bool good = true;
	pthread_rwlock_rdlock(&lock);
	const struct table *table = table_of(address);
	const struct ckt_client_range *ranges = table->ranges;
	size_t at = upper(table, address);
	do {
		const struct ckt_client_range *range = at ? &ranges[at - 1] : NULL;
		uint64_t offset = range ? address - range->base : 0;
		good = range && offset < range->size && ckt_range_reaches_device(range) &&
			(range->kind != CKT_RANGE_MAPPED ||
				range->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE);
		if (!good || size <= range->size - offset)
			break;
		/* Only the program's own mappings continue in the next range. */
		good = range->kind == CKT_RANGE_MAPPED && at < table->count &&
			ranges[at].base == range->base + range->size &&
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
	struct ckt_client_range range;
	if (ckt_range_is_device(address, size))
		return true;
	if (ckt_range_find(address, &range))
		ckt_debug(
			"%s: %llu bytes at 0x%llx are not all in %llu bytes at 0x%llx (kind %d, flags %u)",
			what, (unsigned long long)size, (unsigned long long)address,
			(unsigned long long)range.size, (unsigned long long)range.base, range.kind,
			range.flags);
	else
		ckt_debug("%s: nothing is allocated at 0x%llx (%llu bytes wanted)", what,
			(unsigned long long)address, (unsigned long long)size);
	return false;
}

bool ckt_range_overlaps(uint64_t address, uint64_t size)
{
	bool found = false;
	pthread_rwlock_rdlock(&lock);
	for (unsigned n = 0; n < ckt_conn_count && !found; n++) {
		const struct table *table = &tables[n];
		size_t at = upper(table, address);
		found = holder(table, address) ||
			(at < table->count && table->ranges[at].base - address < size);
	}
	pthread_rwlock_unlock(&lock);
	return found;
}

void ckt_range_set_flags(uint64_t address, uint64_t size, enum ckt_range_kind kind, unsigned flags)
{
	pthread_rwlock_wrlock(&lock);
	const struct table *table = table_of(address);
	for (size_t at = address ? upper(table, address - 1) : 0;
		at < table->count && table->ranges[at].base - address < size; at++)
		if (table->ranges[at].kind == kind)
			table->ranges[at].flags = flags;
	pthread_rwlock_unlock(&lock);
}

void ckt_range_set_peer(uint64_t address, uint64_t size, CUdevice device, unsigned flags)
{
	uint64_t bit = 1ull << device;
	pthread_rwlock_wrlock(&lock);
	const struct table *table = table_of(address);
	for (size_t at = address ? upper(table, address - 1) : 0;
		at < table->count && table->ranges[at].base - address < size; at++) {
		struct ckt_client_range *range = &table->ranges[at];
		if (range->kind == CKT_RANGE_MAPPED) {
			range->readers &= ~bit;
			range->writers &= ~bit;
			range->readers |= flags == CU_MEM_ACCESS_FLAGS_PROT_READ ? bit : 0;
			range->writers |= flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? bit : 0;
		}
	}
	pthread_rwlock_unlock(&lock);
}

/* Host memory that begins at base, or NULL.  Precondition: lock held. */
static struct ckt_client_range *host_alloc(uint64_t base)
{
	const struct table *table = table_of(base);
	for (size_t at = upper(table, base); at-- > 0 && table->ranges[at].base == base;)
		if (table->ranges[at].kind == CKT_RANGE_HOST_ALLOC)
			return &table->ranges[at];
	return NULL;
}

void ckt_range_set_mapped(uint64_t base)
{
	pthread_rwlock_wrlock(&lock);
	struct ckt_client_range *range = host_alloc(base);
	if (range)
		range->mapped = true;
	pthread_rwlock_unlock(&lock);
}

void ckt_range_set_shared(uint64_t base, bool shared)
{
	pthread_rwlock_wrlock(&lock);
	struct ckt_client_range *range = host_alloc(base);
	if (range)
		range->shared = shared;
	pthread_rwlock_unlock(&lock);
}

bool ckt_range_is_shared(uint64_t address, uint64_t size)
{
	struct ckt_client_range range;
	return ckt_range_find(address, &range) && range.shared &&
		size <= range.size - (address - range.base);
}

bool ckt_range_is_pinned(const void *address, uint64_t size)
{
	struct ckt_client_range range;
	uint64_t base = (uint64_t)(uintptr_t)address;
	return ckt_range_find(base, &range) &&
		(range.kind == CKT_RANGE_HOST_ALLOC || range.kind == CKT_RANGE_HOST_REGISTERED) &&
		size <= range.size - (base - range.base);
}
