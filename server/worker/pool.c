/* Memory pools; see pool.h. */
#include "server/worker/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/gen/cuda_codec.h"
#include "server/worker/driver.h"
#include "server/worker/fence.h"
#include "server/worker/grow.h"
#include "server/worker/worker.h"

int ckt_pools_init(struct ckt_worker *worker)
{
	struct ckt_pools *pools = &worker->pools;
	free(pools->defaults);
	pools->defaults = calloc(worker->device_count + 1, sizeof *pools->defaults);
	if (!pools->defaults)
		return -ENOMEM;
	for (unsigned d = 0; d < worker->device_count; d++)
		pools->defaults[d] = (struct ckt_pool){.id = ckt_handle_default_pool(d), .device = d, .reuse = CKT_POOL_REUSE_ALL};
	return 0;
}

struct ckt_pool *ckt_pool_find(struct ckt_worker *worker, uint64_t id)
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

CUresult ckt_pool_make(struct ckt_worker *worker, uint64_t id, unsigned device, uint64_t max_bytes)
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
	*object->pool = (struct ckt_pool){.id = id, .device = device, .reuse = CKT_POOL_REUSE_ALL, .max_bytes = max_bytes};
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
}

static void kept_remove(struct ckt_pools *pools, size_t index)
{
	kept_settle(&pools->kept[index]);
	pools->kept_count--;
	memmove(&pools->kept[index], &pools->kept[index + 1], (pools->kept_count - index) * sizeof *pools->kept);
}

/* Whether nothing queued can still use the block. */
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
	struct ckt_object *object = ckt_objects_find_kind(&worker->objects, pool->id, CKT_KIND_POOL);
	if (object)
		ckt_objects_remove(&worker->objects, object);
}

static void free_kept(struct ckt_worker *worker, size_t index)
{
	struct ckt_pool_kept kept = worker->pools.kept[index];
	kept_remove(&worker->pools, index);
	ckt_memory_free_end(&worker->devices[kept.device].memory, kept.address);
	struct ckt_pool *pool = kept.pool ? ckt_pool_find(worker, kept.pool) : NULL;
	if (pool)
		retire(worker, pool);
}

/* Frees blocks that the pool keeps and nothing uses, the oldest first, until no more than keep_bytes are reserved. */
static void trim(struct ckt_worker *worker, uint64_t id, uint64_t keep_bytes)
{
	struct ckt_pools *pools = &worker->pools;
	struct ckt_pool *pool = ckt_pool_find(worker, id);
	for (size_t i = 0; pool && i < pools->kept_count;) {
		if (pools->kept[i].pool != id || !is_done(&pools->kept[i])) {
			i++;
			continue;
		}
		if (ckt_memory_account(memory_of(worker, pool), id).reserved <= keep_bytes)
			return;
		free_kept(worker, i);
		pool = ckt_pool_find(worker, id);
	}
}

void ckt_pools_poll(struct ckt_worker *worker)
{
	struct ckt_pools *pools = &worker->pools;
	bool unfinished = false;
	for (size_t i = 0; i < pools->kept_count;) {
		struct ckt_pool_kept *kept = &pools->kept[i];
		bool done = is_done(kept);
		struct ckt_pool *pool = kept->pool ? ckt_pool_find(worker, kept->pool) : NULL;
		unfinished |= !done;
		if (done && (!pool || pool->destroyed ||
			     (pools->synchronized && ckt_memory_account(memory_of(worker, pool), pool->id).reserved > pool->release_threshold)))
			free_kept(worker, i);
		else
			i++;
	}
	if (!unfinished)
		pools->synchronized = false;
}

bool ckt_pools_release(struct ckt_worker *worker, unsigned device)
{
	struct ckt_pools *pools = &worker->pools;
	bool any = false;
	for (size_t i = 0; i < pools->kept_count;) {
		if (pools->kept[i].device == device && is_done(&pools->kept[i])) {
			free_kept(worker, i);
			any = true;
		} else {
			i++;
		}
	}
	return any;
}

void ckt_pools_forget_context(struct ckt_worker *worker, struct ckt_object *context)
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

CUresult ckt_pool_adopt_kept(struct ckt_worker *worker, unsigned device, uint64_t address)
{
	uint64_t owner, granted;
	struct ckt_memory *memory = &worker->devices[device].memory;
	uint64_t pool = ckt_memory_pool_of(memory, address, &granted);
	CUresult result = kept_room(&worker->pools) ? CUDA_ERROR_OUT_OF_MEMORY : ckt_memory_free_begin(memory, address, &owner);
	if (!result)
		kept_add(&worker->pools, (struct ckt_pool_kept){
						 .address = address, .granted = granted, .pool = pool, .owner = owner, .device = device,
						 .stream = CKT_POOL_NO_STREAM});
	return result;
}

/* ---- Handlers */

int ckt_worker_pool_create(struct ckt_wcall *call)
{
	struct ckt_pool_create_args args;
	if (!ckt_pool_create_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	return ckt_pool_make(call->worker, args.id, args.device, args.max_bytes);
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
	ckt_pools_poll(worker);
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
	struct ckt_pool *pool = ckt_pool_find(worker, args.pool);
	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_memory *memory = memory_of(worker, pool);
	struct ckt_account account = ckt_memory_account(memory, pool->id);
	switch (args.attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		pool->reuse = (pool->reuse & ~(1u << (args.attribute - 1))) | (args.value ? 1u << (args.attribute - 1) : 0);
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		pool->release_threshold = args.value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		ckt_memory_account_marks(memory, pool->id, account.used_high, 0);
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		ckt_memory_account_marks(memory, pool->id, 0, account.reserved_high);
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
	ckt_pools_poll(worker);
	struct ckt_pool *pool = ckt_pool_find(worker, args.pool);
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
		res.value = account.reserved;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		res.value = account.reserved_high;
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		res.value = account.used;
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		res.value = account.used_high;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	ckt_pool_get_attribute_res_put(ckt_wcall_results(call, ckt_pool_get_attribute_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

int ckt_worker_pool_trim(struct ckt_wcall *call)
{
	struct ckt_pool_trim_args args;
	if (!ckt_pool_trim_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	if (!ckt_pool_find(call->worker, args.pool))
		return CUDA_ERROR_INVALID_VALUE;
	trim(call->worker, args.pool, args.keep_bytes);
	return CUDA_SUCCESS;
}

/* The context of a stream.  Precondition: the stream was found, and a context is current. */
static struct ckt_fences *fences_of(struct ckt_worker *worker, uint64_t stream)
{
	struct ckt_object *object = stream > 2 ? ckt_objects_find(&worker->objects, stream) : NULL;
	struct ckt_object *context = object ? ckt_objects_find(&worker->objects, object->context) : worker->current;
	return (context ? context : worker->current)->ctx.fences;
}

static bool same_stream(const struct ckt_pool_kept *kept, uint64_t stream, const struct ckt_fences *fences)
{
	return (kept->stream <= 1 ? 1 : kept->stream) == (stream <= 1 ? 1 : stream) && kept->fences == fences;
}

/* A kept block for an allocation on the stream, the best of them; kept_count where there is none. */
static size_t choose(struct ckt_worker *worker, const struct ckt_pool *pool, uint64_t granted, uint64_t stream, const struct ckt_fences *fences)
{
	struct ckt_pools *pools = &worker->pools;
	size_t waiting = pools->kept_count;
	for (size_t i = pools->kept_count; i-- > 0;) {
		struct ckt_pool_kept *kept = &pools->kept[i];
		if (kept->pool != pool->id || kept->granted != granted)
			continue;
		if (same_stream(kept, stream, fences) || is_done(kept))
			return i;
		if (pool->reuse >> (CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES - 1) & 1)
			waiting = i;
	}
	return waiting;
}

static CUresult reuse(struct ckt_worker *worker, size_t index, uint64_t size, uint64_t owner, CUstream stream, uint64_t stream_id,
		      const struct ckt_fences *fences, uint64_t *ret_address)
{
	struct ckt_pool_kept *kept = &worker->pools.kept[index];
	if (kept->fences && !same_stream(kept, stream_id, fences)) {
		CUresult result = ckt_driver.cuStreamWaitEvent(stream, kept->event, 0);
		if (result)
			return result;
	}
	*ret_address = kept->address;
	ckt_memory_reuse(&worker->devices[kept->device].memory, kept->address, size, owner);
	kept_remove(&worker->pools, index);
	return CUDA_SUCCESS;
}

static CUresult allocate(struct ckt_worker *worker, const struct ckt_pool *pool, uint64_t size, uint64_t owner, uint64_t *ret_address)
{
	struct ckt_memory *memory = memory_of(worker, pool);
	uint64_t granted = ckt_memory_granted(size);
	if (pool->max_bytes && ckt_memory_account(memory, pool->id).reserved + granted > pool->max_bytes) {
		trim(worker, pool->id, pool->max_bytes > granted ? pool->max_bytes - granted : 0);
		if (ckt_memory_account(memory, pool->id).reserved + granted > pool->max_bytes)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	CUresult result = ckt_memory_alloc(memory, size, owner, ret_address);
	if (result == CUDA_ERROR_OUT_OF_MEMORY && ckt_pools_release(worker, pool->device))
		result = ckt_memory_alloc(memory, size, owner, ret_address);
	if (!result)
		ckt_memory_assign(memory, *ret_address, pool->id);
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
	struct ckt_pool *pool = ckt_pool_find(worker, args.pool);
	if (!worker->current)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!pool || pool->destroyed || !args.size || args.size > memory_of(worker, pool)->size)
		return !pool || pool->destroyed || !args.size ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
	uint64_t owner = worker->current->id;
	const struct ckt_fences *fences = fences_of(worker, args.stream);
	size_t index = choose(worker, pool, ckt_memory_granted(args.size), args.stream, fences);
	if (index < worker->pools.kept_count)
		result = reuse(worker, index, args.size, owner, stream, args.stream, fences, &res.address);
	else
		result = allocate(worker, pool, args.size, owner, &res.address);
	if (result)
		return result;
	ckt_mem_alloc_async_res_put(ckt_wcall_results(call, ckt_mem_alloc_async_res_size(&res)), &res);
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
	result = kept_room(&worker->pools) ? CUDA_ERROR_OUT_OF_MEMORY : ckt_memory_free_begin(&device->memory, args.address, &owner);
	if (result)
		return result;
	struct ckt_pool_kept kept = {.address = args.address,
				     .owner = owner,
				     .device = (unsigned)(device - worker->devices),
				     .stream = args.stream,
				     .fences = fences_of(worker, args.stream)};
	kept.pool = ckt_memory_pool_of(&device->memory, args.address, &kept.granted);
	result = ckt_fences_event_take(kept.fences, &kept.event);
	if (!result) {
		result = ckt_driver.cuEventRecord(kept.event, stream);
		if (result)
			ckt_fences_event_give(kept.fences, kept.event);
	}
	/* In a context that has failed nothing runs any more. */
	if (result)
		kept.fences = NULL;
	kept_add(&worker->pools, kept);
	return result;
}
