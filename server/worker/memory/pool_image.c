/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools in an image: their settings, marks, and which blocks are whose. */
#include "checkpoint/load/image_load.h"
#include "checkpoint/save/image_save.h"
#include "server/worker/memory/memory.h"
#include "server/worker/memory/pool.h"
#include "server/worker/objects/object_kinds.h"
#include "server/worker/worker.h"

static int save_pool(struct ckt_saving *s, const struct ckt_pool *pool)
{
	struct ckt_memory *memory = &s->worker->devices[pool->device].memory;
	struct ckt_account account = ckt_memory_account(memory, pool->id);
	ckt_image_pool *saved = &s->image.pools.pools_val[s->image.pools.pools_len++];
	*saved = (ckt_image_pool){.id = pool->id,
		.device = pool->device,
		.max_bytes = pool->max_bytes,
		.reuse = pool->reuse,
		.release_threshold = pool->release_threshold,
		.destroyed = pool->destroyed,
		.used_high = account.arena.used_high,
		.reserved_high = account.arena.reserved_high};
	saved->blocks.blocks_val =
		ckt_save_list(s, memory->block_count, sizeof(ckt_image_pool_block));
	for (size_t i = 0; i < memory->block_count && !s->no_memory; i++)
		if (memory->blocks[i].pool == pool->id)
			saved->blocks.blocks_val[saved->blocks.blocks_len++] =
				(ckt_image_pool_block){
					memory->blocks[i].address, memory->blocks[i].freeing};
	return ckt_save_has_memory(s);
}

static int save(struct ckt_saving *s, struct ckt_object *object)
{
	return save_pool(s, object->pool);
}

/* The devices' own are no objects; they come first. */
static int prepare(struct ckt_saving *s, struct ckt_object *const *objects, size_t count)
{
	(void)objects;
	s->image.pools.pools_val =
		ckt_save_list(s, count + s->worker->device_count, sizeof(ckt_image_pool));
	int error = ckt_save_has_memory(s);
	for (unsigned d = 0; d < s->worker->device_count && !error; d++)
		error = save_pool(s, &s->worker->pools.defaults[d]);
	return error;
}

static int load(struct ckt_loading *l, unsigned i)
{
	struct ckt_worker *worker = l->worker;
	const ckt_image_pool *saved = &l->image.pools.pools_val[i];
	struct ckt_pool *pool = ckt_worker_pool_find(worker, saved->id);
	CUresult result = pool
		? CUDA_SUCCESS
		: ckt_worker_pool_make(worker, saved->id, saved->device, saved->max_bytes);
	if (result)
		return ckt_load_fail(l, result, "memory pool", saved->id);
	pool = ckt_worker_pool_find(worker, saved->id);
	pool->reuse = saved->reuse;
	pool->release_threshold = saved->release_threshold;
	pool->destroyed = saved->destroyed;
	struct ckt_memory *memory = &worker->devices[pool->device].memory;
	for (unsigned k = 0; k < saved->blocks.blocks_len; k++) {
		ckt_memory_assign(memory, saved->blocks.blocks_val[k].address, pool->id,
			CKT_POOL_ARENA_NOBODY);
		if (saved->blocks.blocks_val[k].kept)
			result = ckt_worker_pool_adopt_kept(
				worker, pool->device, saved->blocks.blocks_val[k].address);
		if (result)
			return ckt_load_fail(l, result, "memory of a pool at",
				saved->blocks.blocks_val[k].address);
	}
	ckt_memory_account_marks(memory, pool->id, saved->used_high, saved->reserved_high);
	return 0;
}

const struct ckt_object_kind ckt_pool_kind = {
	.name = "pools",
	.handles = CKT_HANDLES(POOL),
	.prepare = prepare,
	.save = save,
	.stage = CKT_LOAD_REST,
	.list = CKT_IMAGE_LIST(pools),
	.load = load,
};
