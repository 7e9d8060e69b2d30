/* Objects of a session, made again by its tables: what the journal does not make. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "server/worker/objects/array_image.h"
#include "server/worker/driver.h"
#include "server/worker/objects/fence.h"
#include "server/worker/graph/graph_image.h"
#include "checkpoint/load/image_load.h"
#include "server/worker/objects/stream_attribute.h"

int ckt_load_contexts(struct ckt_loading *l)
{
	struct ckt_worker *worker = l->worker;
	for (unsigned i = 0; i < l->image.contexts.contexts_len; i++) {
		const ckt_image_context *saved = &l->image.contexts.contexts_val[i];
		struct ckt_object *object;
		CUresult result = saved->primary
			? ckt_context_primary(worker, saved->device, &object)
			: CUDA_SUCCESS;
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
	}
	return 0;
}

int ckt_load_functions(struct ckt_loading *l)
{
	for (unsigned i = 0; i < l->image.functions.functions_len; i++) {
		const ckt_image_function *saved = &l->image.functions.functions_val[i];
		struct ckt_object *module = ckt_objects_find_kind(
					  &l->worker->objects, saved->module, CKT_KIND_MODULE),
				  *object;
		if (!module)
			return ckt_load_refuse(l, -EBADMSG,
				"the image is damaged: function %.256s has no module", saved->name);
		ckt_worker_use_context(l->worker, module->context);
		CUresult result =
			ckt_function_get(l->worker, module, saved->id, saved->name, &object);
		for (unsigned k = 0; k < saved->attributes.attributes_len && !result; k++)
			result = ckt_function_set(object,
				saved->attributes.attributes_val[k].attribute,
				saved->attributes.attributes_val[k].value);
		if (!result && saved->cache_config_set) {
			object->function.cache_config_set = true;
			object->function.cache_config = saved->cache_config;
			result = ckt_driver.cuFuncSetCacheConfig(
				object->real, (CUfunc_cache)saved->cache_config);
		}
		if (result)
			return ckt_load_fail(l, result, "function", saved->id);
	}
	return 0;
}

/* What this device does not take has no meaning for results: the stream goes on without. */
static int load_stream_attributes(struct ckt_loading *l)
{
	for (unsigned i = 0; i < l->image.stream_attributes.stream_attributes_len; i++) {
		const ckt_image_stream_attribute *saved =
			&l->image.stream_attributes.stream_attributes_val[i];
		CUstreamAttrValue value;
		memcpy(&value, saved->value, sizeof value);
		CUresult result = ckt_worker_use_context(l->worker, saved->context);
		if (!result)
			result = ckt_stream_attribute_set(
				l->worker, saved->stream, (CUstreamAttrID)saved->attribute, &value);
		if (result == CUDA_ERROR_INVALID_HANDLE || result == CUDA_ERROR_INVALID_CONTEXT)
			return ckt_load_fail(l, result, "stream", saved->stream);
		if (result)
			ckt_warning(
				"attribute %u of stream %llx is not taken by this device (%d): ignoring it",
				saved->attribute, (unsigned long long)saved->stream, result);
	}
	return 0;
}

int ckt_load_streams(struct ckt_loading *l)
{
	for (unsigned i = 0; i < l->image.streams.streams_len; i++) {
		const ckt_image_stream *saved = &l->image.streams.streams_val[i];
		CUresult result = ckt_worker_use_context(l->worker, saved->context);
		if (!result)
			result = ckt_stream_make(
				l->worker, saved->id, saved->flags, saved->priority);
		if (result)
			return ckt_load_fail(l, result, "stream", saved->id);
	}
	return load_stream_attributes(l);
}

/* An event that was recorded had happened: it is recorded again behind nothing. */
int ckt_load_events(struct ckt_loading *l)
{
	struct ckt_worker *worker = l->worker;
	float last = 0;
	for (unsigned i = 0; i < l->image.events.events_len; i++) {
		const ckt_image_event *saved = &l->image.events.events_val[i];
		struct ckt_object *object;
		CUresult result = ckt_worker_use_context(worker, saved->context);
		if (!result)
			result = ckt_event_make(worker, saved->id, saved->flags, &object);
		if (!result && saved->recorded) {
			result = ckt_driver.cuEventRecord(
				object->real, worker->current->ctx.fences->helper);
			if (!result)
				result = ckt_driver.cuEventSynchronize(object->real);
			object->event.recorded = true;
			object->event.from_image = saved->timed;
			object->event.image_ms = saved->milliseconds;
			if (saved->timed && saved->milliseconds > last)
				last = saved->milliseconds;
		}
		if (result)
			return ckt_load_fail(l, result, "event", saved->id);
	}
	struct ckt_object *primary;
	if (ckt_context_primary(worker, 0, &primary) ||
		ckt_worker_use_context(worker, primary->id) ||
		ckt_driver.cuEventCreate(&worker->time_base, CU_EVENT_DEFAULT) ||
		ckt_driver.cuEventRecord(worker->time_base, primary->ctx.fences->helper) ||
		ckt_driver.cuEventSynchronize(worker->time_base))
		return ckt_load_refuse(l, -EIO, "the driver records no events");
	worker->image_base_ms = last;
	return 0;
}

int ckt_load_pools(struct ckt_loading *l)
{
	struct ckt_worker *worker = l->worker;
	for (unsigned i = 0; i < l->image.pools.pools_len; i++) {
		const ckt_image_pool *saved = &l->image.pools.pools_val[i];
		struct ckt_pool *pool = ckt_pool_find(worker, saved->id);
		CUresult result = pool
			? CUDA_SUCCESS
			: ckt_pool_make(worker, saved->id, saved->device, saved->max_bytes);
		if (result)
			return ckt_load_fail(l, result, "memory pool", saved->id);
		pool = ckt_pool_find(worker, saved->id);
		pool->reuse = saved->reuse;
		pool->release_threshold = saved->release_threshold;
		pool->destroyed = saved->destroyed;
		struct ckt_memory *memory = &worker->devices[pool->device].memory;
		for (unsigned k = 0; k < saved->blocks.blocks_len; k++) {
			ckt_memory_assign(memory, saved->blocks.blocks_val[k].address, pool->id,
				CKT_POOL_ARENA_NOBODY);
			if (saved->blocks.blocks_val[k].kept)
				result = ckt_pool_adopt_kept(
					worker, pool->device, saved->blocks.blocks_val[k].address);
			if (result)
				return ckt_load_fail(l, result, "memory of a pool at",
					saved->blocks.blocks_val[k].address);
		}
		ckt_memory_account_marks(memory, pool->id, saved->used_high, saved->reserved_high);
	}
	return 0;
}

int ckt_load_arrays(struct ckt_loading *l)
{
	int error = ckt_arrays_load_contents(
		l->worker, &l->image, &l->reader, l->skip, l->message, l->message_size);
	return error ? error : ckt_textures_load(l->worker, &l->image, l->message, l->message_size);
}

int ckt_load_graphs(struct ckt_loading *l)
{
	for (unsigned i = 0; i < l->image.graphs.graphs_len; i++) {
		const ckt_image_graph *saved = &l->image.graphs.graphs_val[i];
		CUresult result = saved->context ? ckt_worker_use_context(l->worker, saved->context)
						 : CUDA_SUCCESS;
		if (!result)
			result = ckt_graph_load(l->worker, saved);
		if (result)
			return ckt_load_fail(l, result, "graph", saved->id);
	}
	return 0;
}

int ckt_load_seen(struct ckt_loading *l)
{
	const ckt_image *image = &l->image;
	for (unsigned i = 0; i < image->seen.seen_len; i++) {
		struct ckt_object *module = ckt_objects_find_kind(
			&l->worker->objects, image->seen.seen_val[i].module, CKT_KIND_MODULE);
		if (!module)
			return ckt_load_refuse(l, -EBADMSG,
				"the image is damaged: a variable is known of a module that is not there");
		if (ckt_module_note_seen(module, image->seen.seen_val[i].name))
			return ckt_load_refuse(
				l, -ENOMEM, "the worker has no memory for the names of variables");
	}
	/* Before that nobody took note. */
	for (unsigned m = 0; m < image->modules.modules_len && !image->seen_known; m++)
		for (unsigned i = 0; i < image->modules.modules_val[m].globals.globals_len; i++)
			if (ckt_module_note_seen(ckt_objects_find(&l->worker->objects,
							 image->modules.modules_val[m].id),
				    image->modules.modules_val[m].globals.globals_val[i].name))
				return ckt_load_refuse(l, -ENOMEM,
					"the worker has no memory for the names of variables");
	return 0;
}
