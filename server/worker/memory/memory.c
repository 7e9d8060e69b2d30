/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator of device memory; see memory.h. */
#include "server/worker/memory/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"
#include "server/worker/session/host_budget.h"
#include "base/grow.h"

/* An entry, and the room that grows ahead of it: the smallest block is hardly larger. */
enum { BLOCK_BYTES = 2 * sizeof(struct ckt_block) };

static uint64_t round_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) / to * to;
}

/* Index of the first one behind the address. */
static size_t upper_extent(const struct ckt_memory *memory, uint64_t address)
{
	return CKT_SORTED_UPPER(memory->extents, memory->extent_count, address, address);
}

static size_t upper_block(const struct ckt_memory *memory, uint64_t address)
{
	return CKT_SORTED_UPPER(memory->blocks, memory->block_count, address, address);
}

static void drop(void *array, size_t *count, size_t entry_size, size_t index)
{
	char *at = (char *)array + index * entry_size;
	--*count;
	memmove(at, at + entry_size, (*count - index) * entry_size);
}

void ckt_memory_init(struct ckt_memory *memory, unsigned device, uint64_t base, uint64_t size,
	uint64_t limit, const struct ckt_memory_ops *ops, void *opaque)
{
	*memory = (struct ckt_memory){.ops = ops,
		.opaque = opaque,
		.device = device,
		.base = base,
		.size = size,
		.limit = limit};
	pthread_mutex_init(&memory->lock, NULL);
	ckt_ranges_give(&memory->addresses, base, size);
}

void ckt_memory_set_limit(struct ckt_memory *memory, uint64_t limit)
{
	pthread_mutex_lock(&memory->lock);
	memory->limit = limit;
	pthread_mutex_unlock(&memory->lock);
}

void ckt_memory_move(struct ckt_memory *memory, uint64_t base, uint64_t size)
{
	pthread_mutex_lock(&memory->lock);
	ckt_ranges_fini(&memory->addresses);
	memory->base = base;
	memory->size = size;
	ckt_ranges_give(&memory->addresses, base, size);
	pthread_mutex_unlock(&memory->lock);
}

/* ---- The lease */

static bool lease_take(struct ckt_memory *memory, uint64_t size, enum ckt_lease_how how)
{
	return !memory->ops->take || memory->ops->take(memory->opaque, memory->device, size, how);
}

static void lease_give(struct ckt_memory *memory, uint64_t size)
{
	if (memory->ops->give)
		memory->ops->give(memory->opaque, memory->device, size);
}

static void drop_parts(struct ckt_memory *memory, struct ckt_extent *e)
{
	for (uint64_t at = 0; e->parts && at < e->size; at += CKT_MEMORY_PART) {
		uint64_t piece = e->parts[at / CKT_MEMORY_PART], left = e->size - at;
		if (piece)
			memory->ops->unmap(memory->opaque, memory->device, e->address + at,
				left < CKT_MEMORY_PART ? left : CKT_MEMORY_PART, piece);
	}
	free(e->parts);
	e->parts = NULL;
}

static void extent_unmap(struct ckt_memory *memory, struct ckt_extent *e)
{
	if (e->parts)
		drop_parts(memory, e);
	else
		memory->ops->unmap(memory->opaque, memory->device, e->address, e->size, e->piece);
}

void ckt_memory_fini(struct ckt_memory *memory)
{
	if (!memory->ops)
		return;
	for (size_t i = 0; i < memory->extent_count; i++) {
		struct ckt_extent *e = &memory->extents[i];
		extent_unmap(memory, e);
		lease_give(memory, e->size);
	}
	lease_give(memory, memory->charged);
	ckt_budget_uncharge(memory->block_count * BLOCK_BYTES);
	free(memory->extents);
	free(memory->blocks);
	for (size_t i = 0; i < memory->account_count; i++)
		ckt_pool_arena_fini(&memory->accounts[i].arena);
	free(memory->accounts);
	ckt_ranges_fini(&memory->addresses);
	ckt_ranges_fini(&memory->small);
	pthread_mutex_destroy(&memory->lock);
	*memory = (struct ckt_memory){0};
}

/* ---- Extents.  Precondition of everything static below: locked. */

static void extent_release(struct ckt_memory *memory, size_t index)
{
	struct ckt_extent e = memory->extents[index];
	if (e.use == CKT_EXTENT_CACHED)
		memory->cached -= e.size;
	drop(memory->extents, &memory->extent_count, sizeof e, index);
	extent_unmap(memory, &e);
	lease_give(memory, e.size);
}

static void cache_drop(struct ckt_memory *memory)
{
	for (size_t i = memory->extent_count; i-- > 0;)
		if (memory->extents[i].use == CKT_EXTENT_CACHED)
			extent_release(memory, i);
}

/*
 * Empties addresses that were just taken: overlapping extents are cached, since the addresses were
 * free.
 */
static void extents_clear(struct ckt_memory *memory, uint64_t address, uint64_t size)
{
	size_t i = upper_extent(memory, address);
	while (i && memory->extents[i - 1].address + memory->extents[i - 1].size > address)
		extent_release(memory, --i);
	while (i < memory->extent_count && memory->extents[i].address < address + size)
		extent_release(memory, i);
}

/* Unmaps it again if there is no memory to record it. */
static CUresult extent_insert(struct ckt_memory *memory, const struct ckt_extent *e)
{
	size_t i = upper_extent(memory, e->address);
	if (CKT_GROW_AT(memory->extents, memory->extent_count, memory->extent_room, 16, i)) {
		memory->ops->unmap(memory->opaque, memory->device, e->address, e->size, e->piece);
		lease_give(memory, e->size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	memory->extents[i] = *e;
	return CUDA_SUCCESS;
}

/* From the lease, without asking for what the cache has. */
static bool lease_take_or_drop(struct ckt_memory *memory, uint64_t size)
{
	if (lease_take(memory, size, CKT_LEASE_HAD))
		return true;
	cache_drop(memory);
	return lease_take(memory, size, CKT_LEASE_ASKED);
}

static CUresult fresh_map(
	struct ckt_memory *memory, uint64_t address, uint64_t size, uint64_t *ret_piece)
{
	if (!lease_take_or_drop(memory, size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result =
		memory->ops->map(memory->opaque, memory->device, address, size, ret_piece);
	if (result == CUDA_ERROR_OUT_OF_MEMORY && memory->cached) {
		cache_drop(memory);
		result = memory->ops->map(memory->opaque, memory->device, address, size, ret_piece);
	}
	if (result)
		lease_give(memory, size);
	return result;
}

/*
 * Physical memory behind addresses that were just taken: a cached extent of the very place, or
 * fresh.
 */
static CUresult extent_map(
	struct ckt_memory *memory, uint64_t address, uint64_t size, enum ckt_extent_use use)
{
	size_t i = upper_extent(memory, address);
	if (i && memory->extents[i - 1].address == address && memory->extents[i - 1].size == size) {
		memory->extents[i - 1].use = use;
		memory->cached -= size;
		memory->held += size;
		return CUDA_SUCCESS;
	}
	extents_clear(memory, address, size);
	struct ckt_extent e = {.address = address, .size = size, .use = use};
	CUresult result = fresh_map(memory, address, size, &e.piece);
	if (result)
		return result;
	result = extent_insert(memory, &e);
	if (!result)
		memory->held += size;
	return result;
}

/* *ret_address: where, or 0 for anywhere. */
static CUresult extent_make(
	struct ckt_memory *memory, uint64_t size, enum ckt_extent_use use, uint64_t *ret_address)
{
	uint64_t address = *ret_address;
	if (!address)
		address = ckt_ranges_take(&memory->addresses, size);
	else if (!ckt_ranges_take_at(&memory->addresses, address, size))
		address = CKT_RANGES_NONE;
	if (address == CKT_RANGES_NONE)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = extent_map(memory, address, size, use);
	if (result)
		ckt_ranges_give(&memory->addresses, address, size);
	else
		*ret_address = address;
	return result;
}

/* The addresses are free from now on; the physical memory may stay a while. */
static void extent_free(struct ckt_memory *memory, uint64_t address)
{
	size_t i = upper_extent(memory, address) - 1;
	struct ckt_extent *e = &memory->extents[i];
	ckt_ranges_give(&memory->addresses, e->address, e->size);
	memory->held -= e->size;
	/* Where sessions wait for memory, nothing is kept back. */
	if (memory->cached + e->size <= CKT_MEMORY_CACHE_MAX && !ckt_lease_is_pressed()) {
		e->use = CKT_EXTENT_CACHED;
		memory->cached += e->size;
	} else {
		extent_release(memory, i);
	}
}

/* ---- Accounts of pools */

static struct ckt_account *account_find(struct ckt_memory *memory, uint64_t pool)
{
	for (size_t i = 0; i < memory->account_count; i++)
		if (memory->accounts[i].pool == pool)
			return &memory->accounts[i];
	return NULL;
}

/* Makes room for one more account before there is a block to count: counting must not fail. */
static int account_room(struct ckt_memory *memory)
{
	return CKT_GROW(memory->accounts, memory->account_count, memory->account_room, 16);
}

/* Precondition: account_room() since the last new one. */
static struct ckt_account *account_get(struct ckt_memory *memory, uint64_t pool)
{
	struct ckt_account *account = account_find(memory, pool);
	if (account)
		return account;
	account = &memory->accounts[memory->account_count++];
	*account = (struct ckt_account){.pool = pool};
	return account;
}

/* A block enters or leaves its pool, or the program allocates or frees it. */
static void account_move(struct ckt_memory *memory, uint64_t pool, int64_t used, int64_t reserved)
{
	if (!pool)
		return;
	struct ckt_account *account = account_get(memory, pool);
	account->used += (uint64_t)used;
	account->reserved += (uint64_t)reserved;
	if (account->used > account->used_high)
		account->used_high = account->used;
	if (account->reserved > account->reserved_high)
		account->reserved_high = account->reserved;
}

/* The block now belongs to the program: adds it to its pool's figures. */
static void pool_take(struct ckt_memory *memory, const struct ckt_block *block, uint64_t stream)
{
	if (!block->pool)
		return;
	struct ckt_pool_arena *arena = &account_get(memory, block->pool)->arena;
	ckt_pool_arena_drop(arena, block->address);
	ckt_pool_arena_take(arena, block->address, block->size, stream);
}

/* ---- Blocks */

/* Precondition: the lock. */
static void use(struct ckt_memory *memory, int64_t bytes)
{
	memory->used += (uint64_t)bytes;
	if (memory->told)
		__atomic_store_n(memory->told, memory->used, __ATOMIC_RELAXED);
}

/* Room for one more block and for the account of its pool. */
static int block_room(struct ckt_memory *memory)
{
	int error = CKT_GROW(memory->blocks, memory->block_count, memory->block_room, 16);
	return error ? error : account_room(memory);
}

/* Precondition: block_room(). */
static void block_insert(struct ckt_memory *memory, struct ckt_block block)
{
	size_t i = upper_block(memory, block.address);
	CKT_GROW_AT(memory->blocks, memory->block_count, memory->block_room, 16, i);
	memory->blocks[i] = block;
	use(memory, (int64_t)block.granted);
}

static struct ckt_block *block_find(struct ckt_memory *memory, uint64_t address)
{
	size_t i = upper_block(memory, address);
	if (i == 0 || memory->blocks[i - 1].address != address)
		return NULL;
	return &memory->blocks[i - 1];
}

static void block_free(struct ckt_memory *memory, size_t index)
{
	struct ckt_block block = memory->blocks[index];
	use(memory, -(int64_t)block.granted);
	account_move(memory, block.pool, block.freeing ? 0 : -(int64_t)block.granted,
		-(int64_t)block.granted);
	if (block.pool)
		ckt_pool_arena_drop(&account_get(memory, block.pool)->arena, block.address);
	drop(memory->blocks, &memory->block_count, sizeof block, index);
	ckt_budget_uncharge(BLOCK_BYTES);
	if (block.granted > CKT_MEMORY_SMALL_MAX) {
		extent_free(memory, block.address);
		return;
	}
	/* Extents that are completely inside the joined range hold no block any more. */
	struct ckt_range joined = ckt_ranges_give(&memory->small, block.address, block.granted);
	uint64_t first = round_up(joined.start, CKT_MEMORY_EXTENT),
		 end = joined.start + joined.size;
	for (uint64_t at = first; at + CKT_MEMORY_EXTENT <= end; at += CKT_MEMORY_EXTENT)
		if (ckt_ranges_take_at(&memory->small, at, CKT_MEMORY_EXTENT))
			extent_free(memory, at);
}

uint64_t ckt_memory_granted(uint64_t size)
{
	return round_up(size,
		size <= CKT_MEMORY_SMALL_MAX ? (uint64_t)CKT_MEMORY_ALIGNMENT : CKT_MEMORY_EXTENT);
}

/* Physical memory counts, whatever part of it is in use: a small block holds its whole extent. */
static bool over_limit(const struct ckt_memory *memory, uint64_t more)
{
	if (!memory->limit)
		return false;
	uint64_t usable =
		memory->limit > CKT_MEMORY_RESERVED ? memory->limit - CKT_MEMORY_RESERVED : 0;
	return memory->held > usable || more > usable - memory->held;
}

/* The first addresses that fit in small extents, or the ones that are imposed. */
static uint64_t small_take(struct ckt_memory *memory, uint64_t granted)
{
	if (!memory->imposed)
		return ckt_ranges_take(&memory->small, granted);
	return ckt_ranges_take_at(&memory->small, memory->imposed, granted) ? memory->imposed
									    : CKT_RANGES_NONE;
}

/* Where the next small extent must lie: 0, anywhere; imposed addresses may reach into a second one. */
static uint64_t small_extent_at(const struct ckt_memory *memory)
{
	uint64_t at = memory->imposed / CKT_MEMORY_EXTENT * CKT_MEMORY_EXTENT;
	size_t i = upper_extent(memory, at);
	bool there = at && i && memory->extents[i - 1].address == at &&
		memory->extents[i - 1].use == CKT_EXTENT_SMALL;
	return there ? at + CKT_MEMORY_EXTENT : at;
}

static CUresult small_make(struct ckt_memory *memory, uint64_t granted, uint64_t *ret_address)
{
	/* Two where imposed addresses lie in two. */
	for (unsigned made = 0;; made++) {
		uint64_t extent = small_extent_at(memory);
		*ret_address = small_take(memory, granted);
		if (*ret_address != CKT_RANGES_NONE)
			return CUDA_SUCCESS;
		if (made > (memory->imposed ? 1 : 0) || over_limit(memory, CKT_MEMORY_EXTENT))
			return CUDA_ERROR_OUT_OF_MEMORY;
		CUresult result = extent_make(memory, CKT_MEMORY_EXTENT, CKT_EXTENT_SMALL, &extent);
		if (result)
			return result;
		ckt_ranges_give(&memory->small, extent, CKT_MEMORY_EXTENT);
	}
}

void ckt_memory_impose(struct ckt_memory *memory, uint64_t address)
{
	pthread_mutex_lock(&memory->lock);
	memory->imposed = address;
	pthread_mutex_unlock(&memory->lock);
}

static CUresult block_make(
	struct ckt_memory *memory, uint64_t size, uint64_t owner, uint64_t *ret_address)
{
	uint64_t granted = ckt_memory_granted(size), address = memory->imposed;
	if ((granted > CKT_MEMORY_SMALL_MAX && over_limit(memory, granted)) || block_room(memory))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (address % (granted > CKT_MEMORY_SMALL_MAX ? CKT_MEMORY_EXTENT : CKT_MEMORY_ALIGNMENT))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (granted > CKT_MEMORY_SMALL_MAX) {
		CUresult result = extent_make(memory, granted, CKT_EXTENT_BIG, &address);
		if (result)
			return result;
	} else {
		CUresult result = small_make(memory, granted, &address);
		if (result)
			return result;
	}
	block_insert(memory,
		(struct ckt_block){
			.address = address, .size = size, .granted = granted, .owner = owner});
	*ret_address = address;
	return CUDA_SUCCESS;
}

CUresult ckt_memory_alloc(
	struct ckt_memory *memory, uint64_t size, uint64_t owner, uint64_t *ret_address)
{
	if (!size)
		return CUDA_ERROR_INVALID_VALUE;
	if (size > memory->size)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!ckt_budget_charge(BLOCK_BYTES, "allocations"))
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&memory->lock);
	CUresult result = block_make(memory, size, owner, ret_address);
	pthread_mutex_unlock(&memory->lock);
	if (result)
		ckt_budget_uncharge(BLOCK_BYTES);
	return result;
}

CUresult ckt_memory_free_begin(struct ckt_memory *memory, uint64_t address, uint64_t *ret_owner)
{
	pthread_mutex_lock(&memory->lock);
	struct ckt_block *block = block_find(memory, address);
	bool good = block && !block->freeing && !(block->owner & CKT_MEMORY_LIBRARY);
	if (good) {
		block->freeing = true;
		account_move(memory, block->pool, -(int64_t)block->granted, 0);
		if (block->pool)
			ckt_pool_arena_hold(&account_get(memory, block->pool)->arena, address,
				CKT_POOL_ARENA_NOBODY);
		*ret_owner = block->owner;
	}
	pthread_mutex_unlock(&memory->lock);
	return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult ckt_memory_free_library(struct ckt_memory *memory, uint64_t address)
{
	pthread_mutex_lock(&memory->lock);
	struct ckt_block *block = block_find(memory, address);
	bool good = block && !block->freeing && block->owner & CKT_MEMORY_LIBRARY;
	if (good)
		block->freeing = true;
	pthread_mutex_unlock(&memory->lock);
	return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void ckt_memory_free_cancel(struct ckt_memory *memory, uint64_t address)
{
	pthread_mutex_lock(&memory->lock);
	struct ckt_block *block = block_find(memory, address);
	if (block && block->freeing) {
		block->freeing = false;
		account_move(memory, block->pool, (int64_t)block->granted, 0);
		pool_take(memory, block, CKT_POOL_ARENA_NOBODY);
	}
	pthread_mutex_unlock(&memory->lock);
}

void ckt_memory_free_end(struct ckt_memory *memory, uint64_t address)
{
	pthread_mutex_lock(&memory->lock);
	struct ckt_block *block = block_find(memory, address);
	if (block)
		block_free(memory, (size_t)(block - memory->blocks));
	pthread_mutex_unlock(&memory->lock);
}

void ckt_memory_free_owned(struct ckt_memory *memory, uint64_t owner)
{
	pthread_mutex_lock(&memory->lock);
	for (size_t i = memory->block_count; i-- > 0;)
		if (!owner || memory->blocks[i].owner == owner)
			block_free(memory, i);
	pthread_mutex_unlock(&memory->lock);
}

uint64_t ckt_memory_reown(struct ckt_memory *memory, uint64_t from, uint64_t to)
{
	uint64_t bytes = 0;
	pthread_mutex_lock(&memory->lock);
	for (size_t i = 0; i < memory->block_count; i++) {
		struct ckt_block *block = &memory->blocks[i];
		if (block->owner != from)
			continue;
		block->owner = to;
		bytes += block->freeing ? 0 : block->granted;
	}
	pthread_mutex_unlock(&memory->lock);
	return bytes;
}

bool ckt_memory_block_of(struct ckt_memory *memory, uint64_t address, struct ckt_block *ret_block)
{
	pthread_mutex_lock(&memory->lock);
	size_t i = upper_block(memory, address);
	bool found = i && address - memory->blocks[i - 1].address < memory->blocks[i - 1].size;
	if (found)
		*ret_block = memory->blocks[i - 1];
	pthread_mutex_unlock(&memory->lock);
	return found;
}

bool ckt_memory_extent_is_library(const struct ckt_memory *memory, size_t index)
{
	const struct ckt_extent *e = &memory->extents[index];
	bool some = false;
	for (size_t i = upper_block(memory, e->address + e->size - 1); i; i--) {
		const struct ckt_block *block = &memory->blocks[i - 1];
		/* A small block may begin in the extent before. */
		if (block->address + block->granted <= e->address)
			break;
		if (!(block->owner & CKT_MEMORY_LIBRARY))
			return false;
		some = true;
	}
	return some;
}

bool ckt_memory_holds(struct ckt_memory *memory, uint64_t address, uint64_t size)
{
	pthread_mutex_lock(&memory->lock);
	size_t i = upper_block(memory, address);
	bool holds = false;
	if (i) {
		struct ckt_block *block = &memory->blocks[i - 1];
		uint64_t offset = address - block->address;
		holds = offset <= block->size && block->size - offset >= size;
	}
	pthread_mutex_unlock(&memory->lock);
	return holds;
}

/* The physical memory behind the address: of the whole extent, or of a part. */
static void place_of(const struct ckt_extent *e, uint64_t address, uint64_t *ret_base,
	uint64_t *ret_size, uint64_t *ret_piece)
{
	uint64_t at = e->parts ? (address - e->address) / CKT_MEMORY_PART * CKT_MEMORY_PART : 0;
	uint64_t left = e->size - at;
	*ret_base = e->address + at;
	*ret_size = e->parts && left > CKT_MEMORY_PART ? CKT_MEMORY_PART : left;
	*ret_piece = e->parts ? e->parts[at / CKT_MEMORY_PART] : e->piece;
}

bool ckt_memory_locate(struct ckt_memory *memory, uint64_t address, uint64_t *ret_size,
	uint64_t *ret_owner, uint64_t *ret_extent, uint64_t *ret_extent_size, uint64_t *ret_piece)
{
	pthread_mutex_lock(&memory->lock);
	size_t b = upper_block(memory, address);
	size_t e = upper_extent(memory, address);
	const struct ckt_block *block = b ? &memory->blocks[b - 1] : NULL;
	const struct ckt_extent *extent = e ? &memory->extents[e - 1] : NULL;
	bool found = block && block->address == address && !block->freeing && !block->pool &&
		!(block->owner & CKT_MEMORY_LIBRARY) && extent &&
		address - extent->address < extent->size &&
		block->size <= extent->size - (address - extent->address);
	if (found) {
		*ret_size = block->size;
		*ret_owner = block->owner;
		place_of(extent, address, ret_extent, ret_extent_size, ret_piece);
		if (block->size > *ret_extent_size - (address - *ret_extent)) {
			*ret_extent = extent->address;
			*ret_extent_size = extent->size;
			*ret_piece = 0;
		}
	}
	pthread_mutex_unlock(&memory->lock);
	return found;
}

uint64_t ckt_memory_free_bytes(struct ckt_memory *memory, uint64_t driver_free)
{
	pthread_mutex_lock(&memory->lock);
	uint64_t bytes = driver_free + memory->cached;
	if (memory->limit) {
		uint64_t kept = memory->held + CKT_MEMORY_RESERVED;
		uint64_t left = kept < memory->limit ? memory->limit - kept : 0;
		if (left < bytes)
			bytes = left;
	}
	pthread_mutex_unlock(&memory->lock);
	return bytes;
}

bool ckt_memory_extent_of(struct ckt_memory *memory, uint64_t address, uint64_t *ret_base,
	uint64_t *ret_size, uint64_t *ret_piece)
{
	pthread_mutex_lock(&memory->lock);
	size_t i = upper_extent(memory, address);
	const struct ckt_extent *extent = i ? &memory->extents[i - 1] : NULL;
	bool found = extent && extent->use != CKT_EXTENT_CACHED &&
		address - extent->address < extent->size;
	if (found) {
		place_of(extent, address, ret_base, ret_size, ret_piece);
	}
	pthread_mutex_unlock(&memory->lock);
	return found;
}

void ckt_memory_join(struct ckt_memory *memory, uint64_t address, uint64_t piece)
{
	pthread_mutex_lock(&memory->lock);
	size_t i = upper_extent(memory, address);
	struct ckt_extent *extent = i ? &memory->extents[i - 1] : NULL;
	if (extent && extent->address == address) {
		drop_parts(memory, extent);
		extent->piece = piece;
	}
	pthread_mutex_unlock(&memory->lock);
}

uint64_t ckt_memory_used(struct ckt_memory *memory)
{
	pthread_mutex_lock(&memory->lock);
	uint64_t used = memory->used;
	pthread_mutex_unlock(&memory->lock);
	return used;
}

void ckt_memory_tell(struct ckt_memory *memory, uint64_t *place)
{
	pthread_mutex_lock(&memory->lock);
	memory->told = place;
	use(memory, 0);
	pthread_mutex_unlock(&memory->lock);
}

void ckt_memory_trim(struct ckt_memory *memory)
{
	pthread_mutex_lock(&memory->lock);
	cache_drop(memory);
	pthread_mutex_unlock(&memory->lock);
}

bool ckt_memory_try_trim(struct ckt_memory *memory)
{
	if (pthread_mutex_trylock(&memory->lock))
		return false;
	cache_drop(memory);
	pthread_mutex_unlock(&memory->lock);
	return true;
}

uint64_t ckt_memory_cached(struct ckt_memory *memory)
{
	pthread_mutex_lock(&memory->lock);
	uint64_t bytes = memory->cached;
	pthread_mutex_unlock(&memory->lock);
	return bytes;
}

/* ---- Blocks of pools */

void ckt_memory_assign(struct ckt_memory *memory, uint64_t address, uint64_t pool, uint64_t stream)
{
	pthread_mutex_lock(&memory->lock);
	struct ckt_block *block = block_find(memory, address);
	if (block && !block->pool) {
		block->pool = pool;
		account_move(memory, pool, block->freeing ? 0 : (int64_t)block->granted,
			(int64_t)block->granted);
		if (!block->freeing)
			pool_take(memory, block, stream);
	}
	pthread_mutex_unlock(&memory->lock);
}

void ckt_memory_pool_hold(struct ckt_memory *memory, uint64_t address, uint64_t stream)
{
	pthread_mutex_lock(&memory->lock);
	const struct ckt_block *block = block_find(memory, address);
	struct ckt_account *account =
		block && block->pool ? account_find(memory, block->pool) : NULL;
	if (account)
		ckt_pool_arena_hold(&account->arena, address, stream);
	pthread_mutex_unlock(&memory->lock);
}

void ckt_memory_pool_done(struct ckt_memory *memory, uint64_t address)
{
	pthread_mutex_lock(&memory->lock);
	const struct ckt_block *block = block_find(memory, address);
	struct ckt_account *account =
		block && block->pool && block->freeing ? account_find(memory, block->pool) : NULL;
	if (account)
		ckt_pool_arena_drop(&account->arena, address);
	pthread_mutex_unlock(&memory->lock);
}

uint64_t ckt_memory_pool_growth(
	struct ckt_memory *memory, uint64_t pool, uint64_t size, uint64_t stream)
{
	static const struct ckt_pool_arena empty;
	pthread_mutex_lock(&memory->lock);
	const struct ckt_account *account = account_find(memory, pool);
	uint64_t growth = ckt_pool_arena_growth(account ? &account->arena : &empty, size, stream);
	pthread_mutex_unlock(&memory->lock);
	return growth;
}

void ckt_memory_pool_trim(struct ckt_memory *memory, uint64_t pool, uint64_t keep_bytes)
{
	pthread_mutex_lock(&memory->lock);
	struct ckt_account *account = account_find(memory, pool);
	if (account)
		ckt_pool_arena_trim(&account->arena, keep_bytes);
	pthread_mutex_unlock(&memory->lock);
}

uint64_t ckt_memory_pool_of(struct ckt_memory *memory, uint64_t address, uint64_t *ret_granted)
{
	pthread_mutex_lock(&memory->lock);
	struct ckt_block *block = block_find(memory, address);
	uint64_t pool = block ? block->pool : 0;
	*ret_granted = block ? block->granted : 0;
	pthread_mutex_unlock(&memory->lock);
	return pool;
}

void ckt_memory_reuse(
	struct ckt_memory *memory, uint64_t address, uint64_t size, uint64_t owner, uint64_t stream)
{
	pthread_mutex_lock(&memory->lock);
	struct ckt_block *block = block_find(memory, address);
	if (block && block->freeing) {
		block->freeing = false;
		block->size = size;
		block->owner = owner;
		account_move(memory, block->pool, (int64_t)block->granted, 0);
		pool_take(memory, block, stream);
	}
	pthread_mutex_unlock(&memory->lock);
}

struct ckt_account ckt_memory_account(struct ckt_memory *memory, uint64_t pool)
{
	pthread_mutex_lock(&memory->lock);
	struct ckt_account *found = account_find(memory, pool);
	struct ckt_account account = found ? *found : (struct ckt_account){.pool = pool};
	pthread_mutex_unlock(&memory->lock);
	return account;
}

void ckt_memory_account_marks(
	struct ckt_memory *memory, uint64_t pool, uint64_t used_high, uint64_t reserved_high)
{
	pthread_mutex_lock(&memory->lock);
	struct ckt_account *account =
		account_room(memory) ? account_find(memory, pool) : account_get(memory, pool);
	if (!account) {
		pthread_mutex_unlock(&memory->lock);
		return;
	}
	account->used_high = used_high > account->used ? used_high : account->used;
	account->reserved_high =
		reserved_high > account->reserved ? reserved_high : account->reserved;
	struct ckt_pool_arena *arena = &account->arena;
	arena->used_high = used_high > arena->used ? used_high : arena->used;
	arena->reserved_high = reserved_high > arena->reserved ? reserved_high : arena->reserved;
	pthread_mutex_unlock(&memory->lock);
}

void ckt_memory_account_drop(struct ckt_memory *memory, uint64_t pool)
{
	pthread_mutex_lock(&memory->lock);
	struct ckt_account *account = account_find(memory, pool);
	if (account && !account->reserved) {
		ckt_pool_arena_fini(&account->arena);
		drop(memory->accounts, &memory->account_count, sizeof *account,
			(size_t)(account - memory->accounts));
	}
	pthread_mutex_unlock(&memory->lock);
}

/* ---- What the program manages itself */

/* Takes aligned addresses: takes more than needed, and returns the ends. */
static uint64_t take_aligned(struct ckt_memory *memory, uint64_t size, uint64_t alignment)
{
	if (alignment <= CKT_MEMORY_EXTENT)
		return ckt_ranges_take(&memory->addresses, size);
	uint64_t start = ckt_ranges_take(&memory->addresses, size + alignment);
	if (start == CKT_RANGES_NONE)
		return start;
	uint64_t address = round_up(start, alignment), end = start + size + alignment;
	if (address > start)
		ckt_ranges_give(&memory->addresses, start, address - start);
	if (end > address + size)
		ckt_ranges_give(&memory->addresses, address + size, end - address - size);
	return address;
}

CUresult ckt_memory_reserve(struct ckt_memory *memory, uint64_t size, uint64_t alignment,
	uint64_t hint, uint64_t *ret_address)
{
	if (!size || size % CKT_MEMORY_EXTENT || alignment & (alignment - 1))
		return CUDA_ERROR_INVALID_VALUE;
	if (size > memory->size || alignment > memory->size)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&memory->lock);
	hint = memory->imposed ? memory->imposed : hint;
	bool hinted =
		hint && hint % CKT_MEMORY_EXTENT == 0 && (!alignment || hint % alignment == 0);
	uint64_t address = hinted && ckt_ranges_take_at(&memory->addresses, hint, size) ? hint
		: memory->imposed ? CKT_RANGES_NONE
				  : take_aligned(memory, size, alignment);
	if (address != CKT_RANGES_NONE)
		extents_clear(memory, address, size);
	pthread_mutex_unlock(&memory->lock);
	if (address == CKT_RANGES_NONE)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_address = address;
	return CUDA_SUCCESS;
}

void ckt_memory_unreserve(struct ckt_memory *memory, uint64_t address, uint64_t size)
{
	pthread_mutex_lock(&memory->lock);
	ckt_ranges_give(&memory->addresses, address, size);
	pthread_mutex_unlock(&memory->lock);
}

CUresult ckt_memory_charge(struct ckt_memory *memory, uint64_t size)
{
	pthread_mutex_lock(&memory->lock);
	bool good = !over_limit(memory, size) && lease_take_or_drop(memory, size);
	if (good) {
		use(memory, (int64_t)size);
		memory->held += size;
		memory->charged += size;
	}
	pthread_mutex_unlock(&memory->lock);
	return good ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void ckt_memory_add(struct ckt_memory *memory, uint64_t size)
{
	pthread_mutex_lock(&memory->lock);
	lease_take(memory, size, CKT_LEASE_FORCED);
	use(memory, (int64_t)size);
	memory->held += size;
	memory->charged += size;
	pthread_mutex_unlock(&memory->lock);
}

bool ckt_memory_is_over(struct ckt_memory *memory)
{
	pthread_mutex_lock(&memory->lock);
	bool over = over_limit(memory, 0);
	pthread_mutex_unlock(&memory->lock);
	return over;
}

void ckt_memory_uncharge(struct ckt_memory *memory, uint64_t size)
{
	pthread_mutex_lock(&memory->lock);
	use(memory, -(int64_t)size);
	memory->held -= size;
	memory->charged -= size;
	lease_give(memory, size);
	pthread_mutex_unlock(&memory->lock);
}

uint64_t ckt_memory_charged(struct ckt_memory *memory)
{
	pthread_mutex_lock(&memory->lock);
	uint64_t charged = memory->charged;
	pthread_mutex_unlock(&memory->lock);
	return charged;
}

/* ---- Restore */

CUresult ckt_memory_adopt_extent(
	struct ckt_memory *memory, uint64_t address, uint64_t size, enum ckt_extent_use use)
{
	bool whole = size && address % CKT_MEMORY_EXTENT == 0 && size % CKT_MEMORY_EXTENT == 0;
	if (!whole || (use == CKT_EXTENT_SMALL && size != CKT_MEMORY_EXTENT) ||
		(use != CKT_EXTENT_SMALL && use != CKT_EXTENT_BIG))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&memory->lock);
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	if (ckt_ranges_take_at(&memory->addresses, address, size)) {
		result = extent_map(memory, address, size, use);
		if (result)
			ckt_ranges_give(&memory->addresses, address, size);
		else if (use == CKT_EXTENT_SMALL)
			ckt_ranges_give(&memory->small, address, size);
	}
	pthread_mutex_unlock(&memory->lock);
	return result;
}

CUresult ckt_memory_preload(struct ckt_memory *memory, uint64_t address, uint64_t size)
{
	if (!size || address % CKT_MEMORY_EXTENT || size % CKT_MEMORY_EXTENT ||
		address < memory->base || address - memory->base > memory->size ||
		size > memory->size - (address - memory->base))
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_extent e = {.address = address, .size = size, .use = CKT_EXTENT_CACHED};
	pthread_mutex_lock(&memory->lock);
	extents_clear(memory, address, size);
	/* Not as others map: where there is no memory, what is cached must stay. */
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
	if (lease_take(memory, size, CKT_LEASE_ASKED)) {
		result = memory->ops->map(memory->opaque, memory->device, address, size, &e.piece);
		if (result)
			lease_give(memory, size);
	}
	if (!result)
		result = extent_insert(memory, &e);
	if (!result)
		memory->cached += size;
	pthread_mutex_unlock(&memory->lock);
	return result;
}

void ckt_memory_preload_drop(struct ckt_memory *memory, uint64_t address)
{
	pthread_mutex_lock(&memory->lock);
	size_t i = upper_extent(memory, address);
	if (i && memory->extents[i - 1].address == address &&
		memory->extents[i - 1].use == CKT_EXTENT_CACHED)
		extent_release(memory, i - 1);
	pthread_mutex_unlock(&memory->lock);
}

void ckt_memory_hide(struct ckt_memory *memory)
{
	uint64_t size = memory->size / 4 * 3 / CKT_MEMORY_EXTENT * CKT_MEMORY_EXTENT;
	pthread_mutex_lock(&memory->lock);
	if (!memory->hidden && size && ckt_ranges_take_at(&memory->addresses, memory->base, size))
		memory->hidden = size;
	pthread_mutex_unlock(&memory->lock);
}

void ckt_memory_show(struct ckt_memory *memory)
{
	pthread_mutex_lock(&memory->lock);
	if (memory->hidden)
		ckt_ranges_give(&memory->addresses, memory->base, memory->hidden);
	memory->hidden = 0;
	pthread_mutex_unlock(&memory->lock);
}

CUresult ckt_memory_adopt_block(
	struct ckt_memory *memory, uint64_t address, uint64_t size, uint64_t owner)
{
	if (!size || size > memory->size)
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t granted = ckt_memory_granted(size);
	pthread_mutex_lock(&memory->lock);
	bool good;
	if (block_room(memory)) {
		pthread_mutex_unlock(&memory->lock);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (granted > CKT_MEMORY_SMALL_MAX) {
		size_t i = upper_extent(memory, address);
		struct ckt_extent *e = i ? &memory->extents[i - 1] : NULL;
		good = e && e->use == CKT_EXTENT_BIG && e->address == address &&
			e->size == granted && !block_find(memory, address);
	} else {
		good = address % CKT_MEMORY_ALIGNMENT == 0 &&
			ckt_ranges_take_at(&memory->small, address, granted);
	}
	if (good)
		ckt_budget_add(BLOCK_BYTES);
	if (good)
		block_insert(memory,
			(struct ckt_block){.address = address,
				.size = size,
				.granted = granted,
				.owner = owner});
	pthread_mutex_unlock(&memory->lock);
	return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
