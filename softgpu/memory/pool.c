/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory pools.  A pool keeps memory that was freed on a stream, with the ticket of the stream's
 * last work that may use it.  The same stream can reuse the memory at once.  Another stream can
 * reuse it after that ticket is complete, or waits for the ticket.  The program's next wait frees
 * memory above the pool's threshold.
 *
 * Locks: the pools' lock is taken before a stream's lock.  Neither is held while memory is
 * released.
 */
#include <stdlib.h>

#include "softgpu/memory/pool.h"
#include "cudacommon/interface.h"
#include "cudacommon/pool_arena.h"
#include "softgpu/context/context.h"
#include "softgpu/context/device.h"
#include "softgpu/context/object.h"
#include "softgpu/memory/memmap.h"
#include "softgpu/memory/memory.h"
#include "softgpu/memory/range.h"
#include "softgpu/stream/stream.h"

struct pool {
	struct pool *next;
	uint64_t id;
	struct ckt_soft_device *device;
	unsigned reuse; /* bit CUmemPool_attribute - 1 */
	uint64_t threshold, max_bytes;
	uint64_t bytes;              /* of all blocks of the pool */
	struct ckt_pool_arena arena; /* the values of its attributes */
	bool destroyed;              /* the pool is freed with its last memory */
};

struct kept {
	struct kept *next;
	struct ckt_soft_range range;
	struct pool *pool;
	struct ckt_soft_stream *stream; /* referenced */
	uint64_t ticket;
};

enum { REUSE_ALL = 7 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pool *pools;
static struct kept *kept_list; /* oldest first */
static atomic_uint kept_count;

/* ---- Pools.  Precondition of functions without ckt_: the lock is held, unless noted. */

static struct pool *add(uint64_t id, struct ckt_soft_device *device, uint64_t max_bytes)
{
	struct pool *pool = calloc(1, sizeof(*pool));
	if (!pool)
		return NULL;
	*pool = (struct pool){.next = pools,
		.id = id,
		.device = device,
		.reuse = REUSE_ALL,
		.max_bytes = max_bytes};
	pools = pool;
	return pool;
}

/* The first use of a device's default pool creates it. */
static struct pool *find(uint64_t id)
{
	struct pool *pool = pools;
	while (pool && pool->id != id)
		pool = pool->next;
	if (pool)
		return pool;
	struct ckt_soft_device *device = ckt_soft_device((int)ckt_handle_slot(id) - 1);
	return device && id == ckt_handle_default_pool((unsigned)device->ordinal)
		? add(id, device, 0)
		: NULL;
}

static void retire(struct pool *dead)
{
	if (!dead->destroyed || dead->bytes)
		return;
	struct pool **link = &pools;
	while (*link != dead)
		link = &(*link)->next;
	*link = dead->next;
	ckt_pool_arena_fini(&dead->arena);
	free(dead);
}

static uint64_t granted(uint64_t size)
{
	return (size + CKT_SOFT_PAGE - 1) & ~(uint64_t)(CKT_SOFT_PAGE - 1);
}

CUresult ckt_pool_make(uint64_t id, CUdevice device, size_t max_bytes)
{
	pthread_mutex_lock(&lock);
	struct pool *pool = add(id, ckt_soft_device(device), max_bytes);
	pthread_mutex_unlock(&lock);
	return pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult ckt_pool_unmake(uint64_t id)
{
	pthread_mutex_lock(&lock);
	struct pool *pool = find(id);
	if (pool) {
		pool->destroyed = true;
		retire(pool);
	}
	pthread_mutex_unlock(&lock);
	ckt_soft_pools_settle();
	return CUDA_SUCCESS;
}

CUresult ckt_pool_set(uint64_t id, CUmemPool_attribute attribute, uint64_t value)
{
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	struct pool *pool = find(id);
	switch (pool ? attribute : 0) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		pool->reuse = (pool->reuse & ~(1u << (attribute - 1))) |
			(unsigned)(value != 0) << (attribute - 1);
		break;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		pool->threshold = value;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		ckt_pool_arena_reset_reserved(&pool->arena);
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		ckt_pool_arena_reset_used(&pool->arena);
		break;
	default:
		result = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult ckt_pool_get(uint64_t id, CUmemPool_attribute attribute, uint64_t *ret_value)
{
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	const struct pool *pool = find(id);
	switch (pool ? attribute : 0) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		*ret_value = pool->reuse >> (attribute - 1) & 1;
		break;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		*ret_value = pool->threshold;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		*ret_value = pool->arena.reserved;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		*ret_value = pool->arena.reserved_high;
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		*ret_value = pool->arena.used;
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		*ret_value = pool->arena.used_high;
		break;
	default:
		result = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

/* ---- Kept memory */

static bool is_done(const struct kept *kept)
{
	return ckt_soft_stream_reached(kept->stream, kept->ticket);
}

/* Removes the entry from its list. */
static struct kept *take(struct kept **link)
{
	struct kept *kept = *link;
	*link = kept->next;
	kept->next = NULL;
	atomic_fetch_sub(&kept_count, 1);
	return kept;
}

/* Removes the block from its pool and adds it to ret_dropped.  The caller gives it back. */
static void drop(struct kept **link, struct kept **ret_dropped)
{
	struct kept *kept = take(link);
	kept->pool->bytes -= granted(kept->range.size);
	ckt_pool_arena_drop(&kept->pool->arena, kept->range.base);
	retire(kept->pool);
	kept->next = *ret_dropped;
	*ret_dropped = kept;
}

/* Precondition: the lock is not held. */
static bool give_back(struct kept *list)
{
	bool any = list != NULL;
	while (list) {
		struct kept *next = list->next;
		list->range.pool = 0;
		ckt_soft_memory_release(&list->range);
		ckt_soft_object_put(&list->stream->object);
		free(list);
		list = next;
	}
	return any;
}

/* A destroyed pool may be freed by this call. */
static void trim(struct pool *pool, uint64_t keep_bytes, struct kept **ret_dropped)
{
	bool destroyed = pool->destroyed;
	for (struct kept **link = &kept_list; *link && (destroyed || pool->bytes > keep_bytes);)
		if ((*link)->pool == pool && is_done(*link))
			drop(link, ret_dropped);
		else
			link = &(*link)->next;
	if (!destroyed)
		ckt_pool_arena_trim(&pool->arena, keep_bytes);
}

CUresult ckt_pool_trim(uint64_t id, size_t keep_bytes)
{
	struct kept *dropped = NULL;
	pthread_mutex_lock(&lock);
	struct pool *pool = find(id);
	if (pool)
		trim(pool, keep_bytes, &dropped);
	pthread_mutex_unlock(&lock);
	give_back(dropped);
	return pool ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void ckt_soft_pools_settle(void)
{
	struct kept *dropped = NULL;
	if (!atomic_load(&kept_count))
		return;
	pthread_mutex_lock(&lock);
	for (struct kept **link = &kept_list; *link;) {
		const struct pool *pool = (*link)->pool;
		bool done = is_done(*link);
		if (done && (pool->destroyed || pool->arena.reserved > pool->threshold)) {
			drop(link, &dropped);
			continue;
		}
		if (done)
			ckt_pool_arena_drop(&(*link)->pool->arena, (*link)->range.base);
		link = &(*link)->next;
	}
	for (struct pool *pool = pools; pool; pool = pool->next)
		ckt_pool_arena_trim(&pool->arena, pool->threshold);
	pthread_mutex_unlock(&lock);
	give_back(dropped);
}

bool ckt_soft_pools_release(const struct ckt_soft_device *device)
{
	struct kept *taken = NULL;
	pthread_mutex_lock(&lock);
	for (struct kept **link = &kept_list; *link;)
		if ((*link)->pool->device == device)
			drop(link, &taken);
		else
			link = &(*link)->next;
	for (struct pool *pool = pools; pool; pool = pool->next)
		if (pool->device == device)
			ckt_pool_arena_trim(&pool->arena, 0);
	pthread_mutex_unlock(&lock);
	for (const struct kept *kept = taken; kept; kept = kept->next)
		ckt_soft_stream_wait(kept->stream, kept->ticket);
	return give_back(taken);
}

void ckt_soft_pools_forget(const struct ckt_soft_context *context)
{
	struct kept *dropped = NULL;
	pthread_mutex_lock(&lock);
	for (struct kept **link = &kept_list; *link;)
		if ((*link)->range.context == context || (*link)->stream->context == context)
			drop(link, &dropped);
		else
			link = &(*link)->next;
	for (struct pool *pool = pools; pool; pool = pool->next)
		ckt_pool_arena_trim(
			&pool->arena, pool->threshold == UINT64_MAX ? 0 : pool->threshold);
	pthread_mutex_unlock(&lock);
	give_back(dropped);
}

void ckt_soft_pool_forget(const struct ckt_soft_range *range)
{
	pthread_mutex_lock(&lock);
	struct pool *pool = find(range->pool);
	if (pool) {
		pool->bytes -= granted(range->size);
		ckt_pool_arena_drop(&pool->arena, range->base);
		if (!pool->bytes)
			ckt_pool_arena_trim(&pool->arena, 0);
		retire(pool);
	}
	pthread_mutex_unlock(&lock);
}

/* ---- Allocation */

/*
 * The best block for an allocation on the stream, the newest if several are equal; NULL if there is
 * none.
 */
static struct kept **choose(
	const struct pool *pool, uint64_t size, const struct ckt_soft_stream *stream)
{
	struct kept **ready = NULL, **waiting = NULL;
	for (struct kept **link = &kept_list; *link; link = &(*link)->next) {
		if ((*link)->pool != pool || granted((*link)->range.size) != granted(size))
			continue;
		if ((*link)->stream == stream || is_done(*link))
			ready = link;
		else if (pool->reuse >> (CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES - 1) & 1)
			waiting = link;
	}
	return ready ? ready : waiting;
}

/* Precondition: the lock is not held. */
static CUresult reuse(
	struct kept *kept, size_t size, struct ckt_soft_stream *stream, uint64_t *ret_address)
{
	struct ckt_soft_range range = kept->range;
	range.size = size;
	range.id = ckt_soft_range_next_id();
	range.context = stream->context;
	CUresult result = ckt_soft_stream_submit(stream, ckt_soft_nothing, NULL, 0,
		CKT_SOFT_INLINE | CKT_SOFT_ALWAYS, kept->stream, kept->ticket, NULL);
	if (result == CUDA_SUCCESS)
		result = ckt_soft_range_add(&range);
	if (result == CUDA_SUCCESS)
		*ret_address = range.base;
	else
		ckt_soft_memory_release(&range);
	ckt_soft_object_put(&kept->stream->object);
	free(kept);
	return result;
}

/*
 * Whether the pool may have as much as it would with the block; where it grows, what other streams
 * are done with is looked for first.  Locked.
 */
static bool may_grow(struct pool *pool, size_t size, const struct ckt_soft_stream *stream,
	struct kept **ret_dropped)
{
	uint64_t limit = ckt_pool_arena_limit(pool->max_bytes), name = (uint64_t)(uintptr_t)stream;
	if (!ckt_pool_arena_growth(&pool->arena, size, name))
		return true;
	for (struct kept *kept = kept_list; kept; kept = kept->next)
		if (kept->pool == pool && is_done(kept))
			ckt_pool_arena_drop(&pool->arena, kept->range.base);
	if (!limit)
		return true;
	if (pool->arena.reserved + ckt_pool_arena_growth(&pool->arena, size, name) > limit)
		trim(pool, 0, ret_dropped);
	return pool->arena.reserved + ckt_pool_arena_growth(&pool->arena, size, name) <= limit;
}

static void count(uint64_t id, uint64_t address, size_t size, const struct ckt_soft_stream *stream)
{
	pthread_mutex_lock(&lock);
	struct pool *pool = find(id);
	if (pool) {
		ckt_pool_arena_drop(&pool->arena, address);
		ckt_pool_arena_take(&pool->arena, address, size, (uint64_t)(uintptr_t)stream);
	}
	pthread_mutex_unlock(&lock);
}

CUresult ckt_pool_alloc(
	uint64_t id, CUdevice device, size_t size, uint64_t number, uint64_t *ret_address)
{
	struct ckt_soft_stream *stream;
	struct kept *dropped = NULL, *kept = NULL;
	(void)device;
	CUresult result = ckt_soft_stream_by_number(number, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	struct pool *pool = find(id);
	struct kept **link = pool ? choose(pool, size, stream) : NULL;
	if (link) {
		kept = take(link);
	} else if (!pool || size > pool->device->total_bytes) {
		result = pool ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
	} else if (!may_grow(pool, size, stream, &dropped)) {
		result = CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		pool->bytes += granted(size);
	}
	pthread_mutex_unlock(&lock);
	give_back(dropped);
	if (kept) {
		result = reuse(kept, size, stream, ret_address);
	} else if (result == CUDA_SUCCESS) {
		/* The pool cannot be freed meanwhile: its size includes this allocation. */
		struct ckt_soft_range range = {.size = size,
			.kind = CKT_SOFT_RANGE_DEVICE,
			.context = stream->context,
			.device = pool->device,
			.pool = id};
		result = ckt_soft_memory_make(&range);
		if (result == CUDA_ERROR_OUT_OF_MEMORY && ckt_soft_pools_release(pool->device))
			result = ckt_soft_memory_make(&range);
		if (result == CUDA_SUCCESS)
			*ret_address = range.base;
		else
			ckt_soft_pool_forget(&range);
	}
	if (result == CUDA_SUCCESS)
		count(id, *ret_address, size, stream);
	ckt_soft_object_put(&stream->object);
	return result;
}

static void release(struct ckt_soft_context *context, void *payload)
{
	(void)context;
	ckt_soft_memory_release(payload);
}

/* Takes over the stream's reference. */
static CUresult keep(const struct ckt_soft_range *range, struct ckt_soft_stream *stream)
{
	struct kept *kept = calloc(1, sizeof(*kept));
	CUresult result = kept ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS)
		result = ckt_soft_stream_submit(stream, ckt_soft_nothing, NULL, 0,
			CKT_SOFT_INLINE | CKT_SOFT_ALWAYS, NULL, 0, &kept->ticket);
	if (result != CUDA_SUCCESS) {
		free(kept);
		ckt_soft_object_put(&stream->object);
		return result;
	}
	kept->range = *range;
	kept->stream = stream;
	pthread_mutex_lock(&lock);
	kept->pool = find(range->pool);
	ckt_pool_arena_hold(&kept->pool->arena, range->base, (uint64_t)(uintptr_t)stream);
	struct kept **link = &kept_list;
	while (*link)
		link = &(*link)->next;
	*link = kept;
	atomic_fetch_add(&kept_count, 1);
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult ckt_pool_free(uint64_t address, uint64_t number)
{
	struct ckt_soft_stream *stream;
	struct ckt_soft_range range;
	CUresult result = ckt_soft_stream_by_number(number, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (!ckt_soft_range_remove(address, 1u << CKT_SOFT_RANGE_DEVICE, &range)) {
		ckt_soft_object_put(&stream->object);
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (range.pool)
		return keep(&range, stream);
	result = ckt_soft_stream_submit(stream, release, &range, sizeof(range),
		CKT_SOFT_INLINE | CKT_SOFT_ALWAYS, NULL, 0, NULL);
	ckt_soft_object_put(&stream->object);
	return result;
}
