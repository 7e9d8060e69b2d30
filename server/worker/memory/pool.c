/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools; see pool.h. */
#include "server/worker/memory/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "rpc/gen/cuda_codec.h"
#include "server/worker/driver.h"
#include "server/worker/objects/device.h"
#include "server/worker/objects/fence.h"
#include "server/worker/worker.h"

int ckt_worker_pools_init(struct ckt_worker *worker)
{
	struct ckt_pools *pools = &worker->pools;
	free(pools->defaults);
	pools->defaults = calloc(worker->device_count + 1, sizeof *pools->defaults);
	if (!pools->defaults)
		return -ENOMEM;
	for (unsigned d = 0; d < worker->device_count; d++)
		pools->defaults[d] = (struct ckt_pool){
			.id = ckt_handle_default_pool(d), .device = d, .reuse = CKT_POOL_REUSE_ALL};
	return 0;
}

struct ckt_pool *ckt_worker_pool_find(struct ckt_worker *worker, uint64_t id)
{
	uint32_t slot = ckt_handle_slot(id);
	if (slot > 0 && slot <= worker->device_count && worker->pools.defaults[slot - 1].id == id)
		return &worker->pools.defaults[slot - 1];
	struct ckt_object *object = ckt_objects_find_kind(&worker->objects, id, CKT_KIND_POOL);
	return object ? object->pool : NULL;
}

static struct ckt_memory *memory_of(struct ckt_worker *worker, const struct ckt_pool *pool)
{
	return &worker->devices[pool->device].memory;
}

CUresult ckt_worker_pool_make(
	struct ckt_worker *worker, uint64_t id, unsigned device, uint64_t max_bytes)
{
	struct ckt_object *object;
	if (device >= worker->device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	CUresult result = ckt_objects_add(&worker->objects, id, CKT_KIND_POOL, false, &object);
	if (result)
		return result;
	object->pool = calloc(1, sizeof *object->pool);
	if (!object->pool) {
		ckt_objects_remove(&worker->objects, object);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*object->pool = (struct ckt_pool){
		.id = id, .device = device, .reuse = CKT_POOL_REUSE_ALL, .max_bytes = max_bytes};
	return CUDA_SUCCESS;
}

/* ---- Kept blocks */

static int kept_room(struct ckt_pools *pools)
{
	return CKT_GROW(pools->kept, pools->kept_count, pools->kept_room, 64);
}

/* Precondition: kept_room(). */
static struct ckt_pool_kept *kept_add(struct ckt_pools *pools, struct ckt_pool_kept kept)
{
	pools->kept[pools->kept_count] = kept;
	return &pools->kept[pools->kept_count++];
}

static void kept_settle(struct ckt_pool_kept *kept)
{
	if (kept->fences)
		ckt_fences_event_give(kept->fences, kept->event);
	kept->fences = NULL;
	if (kept->pool)
		ckt_memory_pool_done(kept->memory, kept->address);
}

static void kept_remove(struct ckt_pools *pools, size_t index)
{
	kept_settle(&pools->kept[index]);
	pools->kept_count--;
	memmove(&pools->kept[index], &pools->kept[index + 1],
		(pools->kept_count - index) * sizeof *pools->kept);
}

/* Whether no queued work can still use the block. */
static bool is_done(struct ckt_pool_kept *kept)
{
	if (kept->fences && ckt_driver.cuEventQuery(kept->event) != CUDA_ERROR_NOT_READY)
		kept_settle(kept);
	return !kept->fences;
}

/* A destroyed pool lives as long as the program has memory of it. */
static void retire(struct ckt_worker *worker, struct ckt_pool *pool)
{
	if (!pool->destroyed || ckt_memory_account(memory_of(worker, pool), pool->id).reserved)
		return;
	ckt_memory_account_drop(memory_of(worker, pool), pool->id);
	struct ckt_object *object =
		ckt_objects_find_kind(&worker->objects, pool->id, CKT_KIND_POOL);
	if (object)
		ckt_objects_remove(&worker->objects, object);
}

static void free_kept(struct ckt_worker *worker, size_t index)
{
	struct ckt_pool_kept kept = worker->pools.kept[index];
	kept_remove(&worker->pools, index);
	ckt_memory_free_end(&worker->devices[kept.device].memory, kept.address);
	struct ckt_pool *pool = kept.pool ? ckt_worker_pool_find(worker, kept.pool) : NULL;
	if (pool)
		retire(worker, pool);
}

/*
 * Frees blocks that the pool keeps and nothing uses, the oldest first, until no more than
 * keep_bytes are reserved.
 */
static void trim(struct ckt_worker *worker, uint64_t id, uint64_t keep_bytes)
{
	struct ckt_pools *pools = &worker->pools;
	struct ckt_pool *pool = ckt_worker_pool_find(worker, id);
	for (size_t i = 0; pool && i < pools->kept_count;) {
		if (pools->kept[i].pool != id || !is_done(&pools->kept[i])) {
			i++;
			continue;
		}
		if (ckt_memory_account(memory_of(worker, pool), id).reserved <= keep_bytes)
			break;
		free_kept(worker, i);
		pool = ckt_worker_pool_find(worker, id);
	}
	if (pool)
		ckt_memory_pool_trim(memory_of(worker, pool), id, keep_bytes);
}

/* All pools, to their thresholds. */
static void trim_figures(struct ckt_worker *worker)
{
	for (unsigned d = 0; d < worker->device_count; d++) {
		struct ckt_memory *memory = &worker->devices[d].memory;
		for (size_t i = 0; i < memory->account_count; i++) {
			const struct ckt_pool *pool =
				ckt_worker_pool_find(worker, memory->accounts[i].pool);
			ckt_memory_pool_trim(memory, memory->accounts[i].pool,
				pool ? pool->release_threshold : 0);
		}
	}
}

void ckt_worker_pools_poll(struct ckt_worker *worker)
{
	struct ckt_pools *pools = &worker->pools;
	bool unfinished = false;
	for (size_t i = 0; i < pools->kept_count; i++)
		unfinished |= !is_done(&pools->kept[i]);
	for (size_t i = 0; i < pools->kept_count;) {
		struct ckt_pool_kept *kept = &pools->kept[i];
		struct ckt_pool *pool =
			kept->pool ? ckt_worker_pool_find(worker, kept->pool) : NULL;
		bool goes = !kept->fences && (!pool || pool->destroyed);
		if (!kept->fences && pool && kept->due) {
			goes |= ckt_memory_account(kept->memory, pool->id).arena.reserved >
				pool->release_threshold;
			ckt_memory_pool_trim(kept->memory, pool->id, pool->release_threshold);
			kept->due = false;
		}
		if (goes)
			free_kept(worker, i);
		else
			i++;
	}
	if (pools->freed)
		trim_figures(worker);
	pools->freed = false;
	if (!unfinished)
		pools->synchronized = false;
}

void ckt_worker_pools_waited(
	struct ckt_worker *worker, uint64_t stream, const struct ckt_fences *fences)
{
	struct ckt_pools *pools = &worker->pools;
	pools->synchronized = true;
	/* The default stream waits for the others of its context. */
	bool all = stream == CKT_POOL_ALL_STREAMS || stream <= 1;
	for (size_t i = 0; i < pools->kept_count; i++) {
		struct ckt_pool_kept *kept = &pools->kept[i];
		if (stream == CKT_POOL_ALL_STREAMS || !kept->home ||
			(kept->home == fences && (all || kept->stream == stream)))
			kept->waited = kept->due = true;
	}
}

bool ckt_worker_pools_release(struct ckt_worker *worker, unsigned device, bool waited)
{
	struct ckt_pools *pools = &worker->pools;
	bool any = false;
	for (size_t i = 0; i < pools->kept_count;) {
		if (pools->kept[i].device == device && is_done(&pools->kept[i]) &&
			(pools->kept[i].waited || !waited || !pools->kept[i].pool)) {
			free_kept(worker, i);
			any = true;
		} else {
			i++;
		}
	}
	return any;
}

void ckt_worker_pools_forget_context(struct ckt_worker *worker, struct ckt_object *context)
{
	struct ckt_pools *pools = &worker->pools;
	for (size_t i = 0; i < pools->kept_count;) {
		struct ckt_pool_kept *kept = &pools->kept[i];
		if (kept->fences == context->ctx.fences)
			kept_settle(kept);
		if (kept->owner == context->id)
			free_kept(worker, i);
		else
			i++;
	}
}

CUresult ckt_worker_pool_adopt_kept(struct ckt_worker *worker, unsigned device, uint64_t address)
{
	uint64_t owner, granted;
	struct ckt_memory *memory = &worker->devices[device].memory;
	uint64_t pool = ckt_memory_pool_of(memory, address, &granted);
	CUresult result = kept_room(&worker->pools)
		? CUDA_ERROR_OUT_OF_MEMORY
		: ckt_memory_free_begin(memory, address, &owner);
	if (result)
		return result;
	kept_add(&worker->pools,
		(struct ckt_pool_kept){.address = address,
			.granted = granted,
			.pool = pool,
			.owner = owner,
			.device = device,
			.stream = CKT_POOL_NO_STREAM,
			.memory = memory,
			.waited = true});
	ckt_memory_pool_done(memory, address);
	return CUDA_SUCCESS;
}

/* ---- Handlers */

int ckt_worker_pool_create(struct ckt_wcall *call)
{
	struct ckt_pool_create_args args;
	if (!ckt_pool_create_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	return ckt_worker_pool_make(call->worker, args.id, args.device, args.max_bytes);
}

int ckt_worker_pool_destroy(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_pool_destroy_args args;
	if (!ckt_pool_destroy_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_object *object = ckt_objects_find_kind(&worker->objects, args.id, CKT_KIND_POOL);
	if (!object || object->pool->destroyed)
		return CUDA_ERROR_INVALID_VALUE;
	object->pool->destroyed = true;
	ckt_worker_pools_poll(worker);
	object = ckt_objects_find_kind(&worker->objects, args.id, CKT_KIND_POOL);
	if (object)
		retire(worker, object->pool);
	return CUDA_SUCCESS;
}

int ckt_worker_pool_set_attribute(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_pool_set_attribute_args args;
	if (!ckt_pool_set_attribute_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_pool *pool = ckt_worker_pool_find(worker, args.pool);
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_memory *memory = memory_of(worker, pool);
	struct ckt_account account = ckt_memory_account(memory, pool->id);
	switch (args.attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		pool->reuse = (pool->reuse & ~(1u << (args.attribute - 1))) |
			(args.value ? 1u << (args.attribute - 1) : 0);
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		pool->release_threshold = args.value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		ckt_memory_account_marks(memory, pool->id, account.arena.used_high, 0);
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		ckt_memory_account_marks(memory, pool->id, 0, account.arena.reserved_high);
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

int ckt_worker_pool_get_attribute(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_pool_get_attribute_args args;
	struct ckt_pool_get_attribute_res res;
	if (!ckt_pool_get_attribute_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	ckt_worker_pools_poll(worker);
	struct ckt_pool *pool = ckt_worker_pool_find(worker, args.pool);
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_account account = ckt_memory_account(memory_of(worker, pool), pool->id);
	switch (args.attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		res.value = pool->reuse >> (args.attribute - 1) & 1;
		break;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		res.value = pool->release_threshold;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		res.value = account.arena.reserved;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		res.value = account.arena.reserved_high;
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		res.value = account.arena.used;
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		res.value = account.arena.used_high;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	ckt_pool_get_attribute_res_put(
		ckt_wcall_results(call, ckt_pool_get_attribute_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

int ckt_worker_pool_trim(struct ckt_wcall *call)
{
	struct ckt_pool_trim_args args;
	if (!ckt_pool_trim_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	if (!ckt_worker_pool_find(call->worker, args.pool))
		return CUDA_ERROR_INVALID_VALUE;
	trim(call->worker, args.pool, args.keep_bytes);
	return CUDA_SUCCESS;
}

/* The context of a stream.  Precondition: the stream was found, and a context is current. */
static struct ckt_fences *fences_of(struct ckt_worker *worker, uint64_t stream)
{
	struct ckt_object *object = stream > 2 ? ckt_objects_find(&worker->objects, stream) : NULL;
	struct ckt_object *context =
		object ? ckt_objects_find(&worker->objects, object->context) : worker->current;
	return (context ? context : worker->current)->ctx.fences;
}

static bool same_stream(
	const struct ckt_pool_kept *kept, uint64_t stream, const struct ckt_fences *fences)
{
	return (kept->stream <= 1 ? 1 : kept->stream) == (stream <= 1 ? 1 : stream) &&
		kept->fences == fences;
}

/* A stream's own name among those of all contexts, for the pools' figures. */
static uint64_t name_of(uint64_t stream, const struct ckt_fences *fences)
{
	return stream <= 2 ? (uint64_t)(uintptr_t)fences + (stream == 2) : stream;
}

/*
 * A kept block for an allocation on the stream; wait: also one that other streams may still use.
 * kept_count if there is none.
 */
static size_t choose(struct ckt_pools *pools, const struct ckt_pool *pool, uint64_t granted,
	uint64_t stream, const struct ckt_fences *fences, bool wait)
{
	for (size_t i = pools->kept_count; i-- > 0;) {
		struct ckt_pool_kept *kept = &pools->kept[i];
		/* In a replay the one that the program got, which other work may still use. */
		uint64_t imposed = kept->memory->imposed;
		if (imposed && kept->address != imposed)
			continue;
		if (kept->pool == pool->id && kept->granted == granted &&
			(wait || imposed || same_stream(kept, stream, fences) || is_done(kept)))
			return i;
	}
	return pools->kept_count;
}

/*
 * Whether the pool may reach its size with the block; if it grows, first looks for blocks with
 * which other streams are done.
 */
static bool may_grow(
	struct ckt_worker *worker, const struct ckt_pool *pool, uint64_t size, uint64_t name)
{
	struct ckt_memory *memory = memory_of(worker, pool);
	uint64_t limit = ckt_pool_arena_limit(pool->max_bytes), id = pool->id,
		 growth = ckt_memory_pool_growth(memory, id, size, name);
	if (!growth)
		return true;
	for (size_t i = 0; i < worker->pools.kept_count; i++)
		if (worker->pools.kept[i].pool == id)
			is_done(&worker->pools.kept[i]);
	growth = ckt_memory_pool_growth(memory, id, size, name);
	if (limit && growth <= limit &&
		ckt_memory_account(memory, id).arena.reserved + growth > limit) {
		trim(worker, id, limit - growth);
		growth = ckt_memory_pool_growth(memory, id, size, name);
	}
	return !limit || ckt_memory_account(memory, id).arena.reserved + growth <= limit;
}

static CUresult reuse(struct ckt_worker *worker, size_t index, uint64_t size, uint64_t owner,
	CUstream stream, uint64_t stream_id, const struct ckt_fences *fences, uint64_t *ret_address)
{
	struct ckt_pool_kept *kept = &worker->pools.kept[index];
	if (kept->fences && !same_stream(kept, stream_id, fences)) {
		CUresult result = ckt_driver.cuStreamWaitEvent(stream, kept->event, 0);
		if (result)
			return result;
	}
	*ret_address = kept->address;
	ckt_memory_reuse(&worker->devices[kept->device].memory, kept->address, size, owner,
		name_of(stream_id, fences));
	kept_remove(&worker->pools, index);
	return CUDA_SUCCESS;
}

static CUresult allocate(struct ckt_worker *worker, const struct ckt_pool *pool, uint64_t size,
	uint64_t owner, uint64_t name, uint64_t *ret_address)
{
	struct ckt_memory *memory = memory_of(worker, pool);
	if (!may_grow(worker, pool, size, name))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = ckt_memory_alloc(memory, size, owner, ret_address);
	if (result == CUDA_ERROR_OUT_OF_MEMORY &&
		ckt_worker_pools_release(worker, pool->device, false))
		result = ckt_memory_alloc(memory, size, owner, ret_address);
	if (!result)
		ckt_memory_assign(memory, *ret_address, pool->id, name);
	return result;
}

int ckt_worker_mem_alloc_async(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_mem_alloc_async_args args;
	struct ckt_mem_alloc_async_res res;
	CUstream stream;
	if (!ckt_mem_alloc_async_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_object_stream(worker, args.stream, &stream);
	if (result)
		return result;
	struct ckt_pool *pool = ckt_worker_pool_find(worker, args.pool);
	if (!worker->current)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!pool || pool->destroyed || !args.size || args.size > memory_of(worker, pool)->size)
		return !pool || pool->destroyed || !args.size ? CUDA_ERROR_INVALID_VALUE
							      : CUDA_ERROR_OUT_OF_MEMORY;
	uint64_t owner = worker->current->id;
	const struct ckt_fences *fences = fences_of(worker, args.stream);
	uint64_t granted = ckt_memory_granted(args.size);
	bool may_wait = pool->reuse >> (CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES - 1) & 1;
	size_t index = choose(&worker->pools, pool, granted, args.stream, fences, false);
	if (index < worker->pools.kept_count)
		result = reuse(
			worker, index, args.size, owner, stream, args.stream, fences, &res.address);
	else
		result = allocate(
			worker, pool, args.size, owner, name_of(args.stream, fences), &res.address);
	/* A pool grows rather than make a stream wait for another, as long as it can. */
	if (result == CUDA_ERROR_OUT_OF_MEMORY && may_wait) {
		index = choose(&worker->pools, pool, granted, args.stream, fences, true);
		if (index < worker->pools.kept_count)
			result = reuse(worker, index, args.size, owner, stream, args.stream, fences,
				&res.address);
	}
	if (result)
		return result;
	ckt_mem_alloc_async_res_put(
		ckt_wcall_results(call, ckt_mem_alloc_async_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

int ckt_worker_mem_free_async(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_mem_free_async_args args;
	CUstream stream;
	uint64_t owner;
	if (!ckt_mem_free_async_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_object_stream(worker, args.stream, &stream);
	struct ckt_worker_device *device = ckt_worker_device_of(worker, args.address);
	if (result)
		return result;
	if (!device || !worker->current)
		return CUDA_ERROR_INVALID_VALUE;
	result = kept_room(&worker->pools)
		? CUDA_ERROR_OUT_OF_MEMORY
		: ckt_memory_free_begin(&device->memory, args.address, &owner);
	if (result)
		return result;
	struct ckt_pool_kept kept = {.address = args.address,
		.owner = owner,
		.device = (unsigned)(device - worker->devices),
		.stream = args.stream,
		.fences = fences_of(worker, args.stream),
		.memory = &device->memory};
	kept.home = kept.fences;
	kept.pool = ckt_memory_pool_of(&device->memory, args.address, &kept.granted);
	ckt_memory_pool_hold(&device->memory, args.address, name_of(args.stream, kept.fences));
	result = ckt_fences_event_take(kept.fences, &kept.event);
	if (!result) {
		result = ckt_driver.cuEventRecord(kept.event, stream);
		if (result)
			ckt_fences_event_give(kept.fences, kept.event);
	}
	/* In a context that has failed, nothing runs any more. */
	if (result) {
		kept.fences = NULL;
		ckt_memory_pool_done(kept.memory, kept.address);
	}
	kept_add(&worker->pools, kept);
	return result;
}
