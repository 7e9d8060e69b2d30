/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts in an image: their limits and settings, and the steps of the journal that make them. */
#include <errno.h>
#include <stdio.h>

#include "checkpoint/load/image_load.h"
#include "checkpoint/save/image_save.h"
#include "rpc/gen/cuda_driver.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/object_kinds.h"
#include "server/worker/objects/stream_attribute.h"
#include "server/worker/worker.h"

/* ---- Saving */

static int prepare(struct ckt_saving *s, struct ckt_object *const *objects, size_t count)
{
	(void)objects;
	s->image.contexts.contexts_val = ckt_save_list(s, count, sizeof(ckt_image_context));
	return 0;
}

static int save(struct ckt_saving *s, struct ckt_object *object)
{
	/* Those that a program may set. */
	static const CUlimit limits[] = {CU_LIMIT_STACK_SIZE, CU_LIMIT_PRINTF_FIFO_SIZE,
		CU_LIMIT_MALLOC_HEAP_SIZE, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH,
		CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, CU_LIMIT_MAX_L2_FETCH_GRANULARITY,
		CU_LIMIT_PERSISTING_L2_CACHE_SIZE};
	ckt_image_context *context =
		&s->image.contexts.contexts_val[s->image.contexts.contexts_len++];
	*context = (ckt_image_context){.id = object->id,
		.device = object->ctx.device,
		.flags = object->ctx.flags,
		.primary = object->ctx.primary};
	CUresult result = ckt_driver.cuCtxSetCurrent(object->real);
	if (!result)
		result = ckt_driver.cuCtxSynchronize();
	if (result) {
		snprintf(s->message, s->message_size,
			"cannot save context 0x%llx: one of its kernels has failed "
			"(CUDA error %d)",
			(unsigned long long)object->id, result);
		return -EIO;
	}
	context->limits.limits_val =
		ckt_save_list(s, sizeof limits / sizeof *limits, sizeof(ckt_image_limit));
	for (size_t i = 0; i < sizeof limits / sizeof *limits && !s->no_memory; i++) {
		size_t value;
		if (ckt_driver.cuCtxGetLimit &&
			ckt_driver.cuCtxGetLimit(&value, limits[i]) == CUDA_SUCCESS)
			context->limits.limits_val[context->limits.limits_len++] =
				(ckt_image_limit){limits[i], value};
	}
	CUfunc_cache config;
	if (ckt_driver.cuCtxGetCacheConfig &&
		ckt_driver.cuCtxGetCacheConfig(&config) == CUDA_SUCCESS)
		context->cache_config = config;
	ckt_worker_stream_attributes_save(s, object);
	return ckt_save_has_memory(s);
}

/* ---- The journal */

static int replay_create(struct ckt_loading *l, const ckt_image_journal *entry)
{
	struct ckt_object *object;
	CUresult result =
		ckt_context_create(l->worker, entry->id, entry->flags, entry->device, &object);
	return result ? ckt_load_fail(l, result, "context", entry->id) : 0;
}

static int replay_destroy(struct ckt_loading *l, const ckt_image_journal *entry)
{
	struct ckt_object *object =
		ckt_objects_find_kind(&l->worker->objects, entry->id, CKT_KIND_CONTEXT);
	if (object && !object->ctx.primary)
		ckt_context_destroy(l->worker, object);
	return 0;
}

static int replay_primary(struct ckt_loading *l, const ckt_image_journal *entry)
{
	struct ckt_object *object;
	if (entry->device >= l->worker->device_count)
		return ckt_load_refuse(l, -EBADMSG,
			"the image is damaged: its journal has a context of GPU %u", entry->device);
	CUresult result = ckt_context_primary(l->worker, entry->device, &object);
	return result ? ckt_load_fail(l, result, "the primary context of GPU", entry->device)
		      : ckt_load_check_memory(l, entry->device);
}

static int replay_limit(struct ckt_loading *l, const ckt_image_journal *entry)
{
	CUresult result = ckt_worker_use_context(l->worker, entry->context);
	if (!result)
		result = ckt_driver.cuCtxSetLimit((CUlimit)entry->flags, entry->id);
	return result && !l->other_model
		? ckt_load_fail(l, result, "a limit of context", entry->context)
		: 0;
}

static const struct ckt_journal_step steps[] = {
	{.kind = CKT_JOURNAL_CONTEXT_CREATE, .replay = replay_create},
	{.kind = CKT_JOURNAL_CONTEXT_DESTROY, .replay = replay_destroy},
	{.kind = CKT_JOURNAL_PRIMARY, .replay = replay_primary},
	{CKT_JOURNAL_LIMIT, CKT_JOURNAL_REPLACES, replay_limit},
	{0},
};

/* ---- Loading */

static int load(struct ckt_loading *l, unsigned i)
{
	struct ckt_worker *worker = l->worker;
	const ckt_image_context *saved = &l->image.contexts.contexts_val[i];
	struct ckt_object *object;
	CUresult result =
		saved->primary ? ckt_context_primary(worker, saved->device, &object) : CUDA_SUCCESS;
	if (!result)
		result = ckt_worker_use_context(worker, saved->id);
	if (result)
		return ckt_load_fail(l, result, "context", saved->id);
	for (unsigned k = 0; k < saved->limits.limits_len; k++) {
		size_t now;
		CUlimit limit = (CUlimit)saved->limits.limits_val[k].limit;
		if (ckt_driver.cuCtxGetLimit(&now, limit) == CUDA_SUCCESS &&
			now != saved->limits.limits_val[k].value &&
			(result = ckt_driver.cuCtxSetLimit(
				 limit, saved->limits.limits_val[k].value)) &&
			!l->other_model)
			return ckt_load_fail(l, result, "a limit of context", saved->id);
	}
	if (saved->cache_config && ckt_driver.cuCtxSetCacheConfig)
		ckt_driver.cuCtxSetCacheConfig((CUfunc_cache)saved->cache_config);
	return 0;
}

const struct ckt_object_kind ckt_context_kind = {
	.name = "contexts",
	.handles = CKT_HANDLES(CONTEXT),
	.steps = steps,
	.prepare = prepare,
	.save = save,
	.stage = CKT_LOAD_CONTEXTS,
	.list = CKT_IMAGE_LIST(contexts),
	.load = load,
};
