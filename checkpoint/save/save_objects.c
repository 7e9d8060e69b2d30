/* Objects of a session in an image: each kind with what makes it again. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/worker/objects/array_image.h"
#include "server/worker/driver.h"
#include "server/worker/graph/graph_image.h"
#include "checkpoint/save/image_save.h"
#include "server/worker/module/variable_names.h"
#include "checkpoint/freeze/pause.h"
#include "server/worker/objects/stream_attribute.h"

static int take_context(struct ckt_saving *s, struct ckt_object *object)
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
			"context 0x%llx cannot be saved: a kernel in it has failed (CUDA error %d)",
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
	return ckt_save_has_memory(s);
}

static int take_globals(struct ckt_saving *s, ckt_image_module *module, struct ckt_object *object)
{
	const struct ckt_blob *blob = ckt_blobs_find(&s->worker->blobs, object->module.hash);
	struct ckt_object *context = ckt_objects_find(&s->worker->objects, object->context);
	struct ckt_names names;
	int error = blob && context ? ckt_names_collect(blob->data, blob->size, &names) : -ENOENT;
	if (error) {
		s->no_memory |= error == -ENOMEM;
		return ckt_save_has_memory(s);
	}
	ckt_driver.cuCtxSetCurrent(context->real);
	module->globals.globals_val = ckt_save_list(s, names.count, sizeof(ckt_image_global));
	for (size_t i = 0; i < names.count && !s->no_memory; i++) {
		CUdeviceptr address;
		size_t size;
		if (ckt_driver.cuModuleGetGlobal_v2(&address, &size, object->real, names.list[i]) ||
			!size)
			continue;
		ckt_image_global *global =
			&module->globals.globals_val[module->globals.globals_len++];
		*global = (ckt_image_global){.name = ckt_save_string(s, names.list[i]),
			.address = address,
			.size = size};
		size_t before = s->piece_count;
		ckt_save_add_pieces(s, 0, context->ctx.device, address, NULL, size);
		/* Another context's memory is not for the kernel that hashes. */
		for (size_t k = before; k < s->piece_count && !context->ctx.primary; k++)
			s->pieces[k].hashable = false;
	}
	ckt_names_fini(&names);
	return ckt_save_has_memory(s);
}

static int take_module(struct ckt_saving *s, struct ckt_object *object)
{
	ckt_image_module *module = &s->image.modules.modules_val[s->image.modules.modules_len++];
	uint32_t count = object->module.option_count;
	*module = (ckt_image_module){.id = object->id, .context = object->context};
	memcpy(module->hash, object->module.hash, sizeof module->hash);
	module->option_keys.option_keys_val = ckt_save_list(s, count, sizeof(u_int));
	module->option_values.option_values_val =
		ckt_save_list(s, count, sizeof *module->option_values.option_values_val);
	if (s->no_memory)
		return ckt_save_has_memory(s);
	module->option_keys.option_keys_len = module->option_values.option_values_len = count;
	for (uint32_t i = 0; i < count; i++) {
		module->option_keys.option_keys_val[i] = object->module.option_keys[i];
		module->option_values.option_values_val[i] = object->module.option_values[i];
	}
	for (uint32_t i = 0; i < object->module.seen_count; i++)
		s->image.seen.seen_val[s->image.seen.seen_len++] =
			(ckt_image_seen){object->id, ckt_save_string(s, object->module.seen[i])};
	return take_globals(s, module, object);
}

static int take_function(struct ckt_saving *s, struct ckt_object *object)
{
	ckt_image_function *function =
		&s->image.functions.functions_val[s->image.functions.functions_len++];
	*function = (ckt_image_function){.id = object->id,
		.module = object->parent,
		.name = ckt_save_string(s, object->function.name),
		.cache_config_set = object->function.cache_config_set,
		.cache_config = object->function.cache_config};
	function->attributes.attributes_val =
		ckt_save_list(s, object->function.set_count, sizeof(ckt_image_attribute));
	if (s->no_memory)
		return ckt_save_has_memory(s);
	function->attributes.attributes_len = object->function.set_count;
	for (uint32_t i = 0; i < object->function.set_count; i++)
		function->attributes.attributes_val[i] = (ckt_image_attribute){
			object->function.sets[i].attribute, object->function.sets[i].value};
	return 0;
}

/*
 * Times count from the restore's own event, or, in a session that was never restored, from the
 * first event that has a time.
 */
static void take_event(struct ckt_saving *s, struct ckt_object *object, CUevent *base)
{
	struct ckt_worker *worker = s->worker;
	ckt_image_event *event = &s->image.events.events_val[s->image.events.events_len++];
	*event = (ckt_image_event){.id = object->id,
		.context = object->context,
		.flags = object->event.flags,
		.recorded = object->event.recorded};
	if (!object->event.recorded || object->event.flags & CU_EVENT_DISABLE_TIMING)
		return;
	if (object->event.from_image) {
		event->timed = true;
		event->milliseconds = object->event.image_ms;
		return;
	}
	if (!*base)
		*base = worker->time_base ? worker->time_base : object->real;
	float ms = 0;
	CUresult result = CUDA_SUCCESS;
	if (object->real != *base)
		result = ckt_driver.cuEventElapsedTime_v2
			? ckt_driver.cuEventElapsedTime_v2(&ms, *base, object->real)
			: ckt_driver.cuEventElapsedTime(&ms, *base, object->real);
	event->timed = !result;
	event->milliseconds = ms + worker->image_base_ms;
}

/*
 * An array of another context than its device's primary one cannot be read by the crew: the host
 * gets it at once.
 */
static CUresult read_array(struct ckt_saving *s, struct ckt_object *object,
	const struct ckt_object *context, uint8_t **ret_data)
{
	*ret_data = s->array_data[s->array_count - 1] = malloc(object->array->bytes);
	CUresult result = *ret_data ? ckt_driver.cuCtxSetCurrent(context ? context->real : NULL)
				    : CUDA_ERROR_OUT_OF_MEMORY;
	return result ? result : ckt_array_read(object, *ret_data);
}

static int take_array(struct ckt_saving *s, struct ckt_object *object)
{
	unsigned index = s->image.arrays.arrays_len++;
	struct ckt_object *context = ckt_objects_find(&s->worker->objects, object->context);
	bool here = context && context->ctx.primary;
	uint8_t *data = NULL;
	s->array_count = s->image.arrays.arrays_len;
	ckt_array_save(object, &s->image.arrays.arrays_val[index]);
	CUresult result = here ? CUDA_SUCCESS : read_array(s, object, context, &data);
	if (result) {
		snprintf(s->message, s->message_size, "array 0x%llx cannot be read: CUDA error %d",
			(unsigned long long)object->id, result);
		return -EIO;
	}
	size_t before = s->piece_count;
	int error = ckt_save_add_pieces(s, s->image.blobs.blobs_len + index + 1,
		here ? context->ctx.device : 0, 0, data, object->array->bytes);
	for (size_t i = before; i < s->piece_count; i++) {
		s->pieces[i].owner = object->id;
		s->pieces[i].array = here ? object : NULL;
	}
	return error;
}

/* What is gone but stands in the journal, which names arrays by id. */
static void take_dead_arrays(struct ckt_saving *s)
{
	struct ckt_worker *worker = s->worker;
	for (size_t i = 0; i < worker->journal_count; i++) {
		const struct ckt_journal_entry *entry = &worker->journal[i];
		if (entry->kind == CKT_JOURNAL_ARRAY_CREATE &&
			!ckt_objects_find(&worker->objects, entry->id))
			ckt_array_save_dead(
				entry, &s->image.arrays.arrays_val[s->image.arrays.arrays_len++]);
	}
}

void ckt_save_free_arrays(struct ckt_saving *s)
{
	for (unsigned i = 0; i < s->array_count; i++)
		free(s->array_data[i]);
	free(s->array_data);
}

static int take_pool(struct ckt_saving *s, const struct ckt_pool *pool)
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

static size_t count_seen(struct ckt_object *const *objects, size_t count)
{
	size_t seen = 0;
	for (size_t i = 0; i < count; i++)
		seen += ckt_handle_kind(objects[i]->id) == CKT_KIND_MODULE
			? objects[i]->module.seen_count
			: 0;
	return seen;
}

static void take_stream_attributes(struct ckt_saving *s, const struct ckt_object *object)
{
	const struct ckt_stream_attributes *attributes = ckt_stream_attributes_of(object);
	bool is_stream = ckt_handle_kind(object->id) == CKT_KIND_STREAM;
	for (unsigned a = 0; attributes && a < CKT_STREAM_ATTRIBUTE_IDS; a++) {
		if (!(attributes->set >> a & 1))
			continue;
		ckt_image_stream_attribute *saved =
			&s->image.stream_attributes.stream_attributes_val
				 [s->image.stream_attributes.stream_attributes_len++];
		*saved = (ckt_image_stream_attribute){.stream = is_stream ? object->id : 0,
			.context = object->context,
			.attribute = a};
		memcpy(saved->value, &attributes->values[a], sizeof saved->value);
	}
}

static size_t count_stream_attributes(struct ckt_object *const *objects, size_t count)
{
	size_t set = 0;
	for (size_t i = 0; i < count; i++) {
		unsigned kind = ckt_handle_kind(objects[i]->id);
		const struct ckt_stream_attributes *attributes =
			kind == CKT_KIND_STREAM || kind == CKT_KIND_CONTEXT
			? ckt_stream_attributes_of(objects[i])
			: NULL;
		set += attributes ? (size_t)__builtin_popcount(attributes->set) : 0;
	}
	return set;
}

int ckt_save_objects(struct ckt_saving *s)
{
	size_t count;
	CUevent base = NULL;
	struct ckt_object **objects = ckt_objects_in_order(&s->worker->objects, &count);
	ckt_image *image = &s->image;
	s->no_memory |= !objects;
	image->contexts.contexts_val = ckt_save_list(s, count, sizeof(ckt_image_context));
	image->streams.streams_val = ckt_save_list(s, count, sizeof(ckt_image_stream));
	image->stream_attributes.stream_attributes_val = ckt_save_list(
		s, count_stream_attributes(objects, count), sizeof(ckt_image_stream_attribute));
	image->events.events_val = ckt_save_list(s, count, sizeof(ckt_image_event));
	image->modules.modules_val = ckt_save_list(s, count, sizeof(ckt_image_module));
	image->functions.functions_val = ckt_save_list(s, count, sizeof(ckt_image_function));
	image->pools.pools_val =
		ckt_save_list(s, count + s->worker->device_count, sizeof(ckt_image_pool));
	image->graphs.graphs_val = ckt_save_list(s, count, sizeof(ckt_image_graph));
	image->seen.seen_val = ckt_save_list(s, count_seen(objects, count), sizeof(ckt_image_seen));
	image->seen_known = true;
	image->arrays.arrays_val =
		ckt_save_list(s, count + s->worker->journal_count, sizeof(ckt_image_array));
	image->textures.textures_val = ckt_save_list(s, count, sizeof(ckt_image_texture));
	s->array_data = ckt_save_list(s, count + s->worker->journal_count, sizeof *s->array_data);
	int result = ckt_save_has_memory(s);
	for (unsigned d = 0; d < s->worker->device_count && !result; d++)
		result = take_pool(s, &s->worker->pools.defaults[d]);
	for (size_t i = 0; i < count && !result; i++) {
		struct ckt_object *object = objects[i];
		switch (ckt_handle_kind(object->id)) {
		case CKT_KIND_CONTEXT:
			result = take_context(s, object);
			take_stream_attributes(s, object);
			break;
		case CKT_KIND_STREAM:
			image->streams.streams_val[image->streams.streams_len++] =
				(ckt_image_stream){object->id, object->context,
					object->stream.flags, object->stream.priority};
			take_stream_attributes(s, object);
			break;
		case CKT_KIND_EVENT:
			/* Another session's: ipc_image.c. */
			if (!object->event.imported)
				take_event(s, object, &base);
			break;
		case CKT_KIND_MODULE:
			result = take_module(s, object);
			break;
		case CKT_KIND_FUNCTION:
			result = take_function(s, object);
			break;
		case CKT_KIND_GRAPH:
		case CKT_KIND_GRAPH_EXEC:
			s->no_memory |=
				ckt_graph_save(object,
					&image->graphs.graphs_val[image->graphs.graphs_len++]) != 0;
			result = ckt_save_has_memory(s);
			break;
		case CKT_KIND_POOL:
			result = take_pool(s, object->pool);
			break;
		case CKT_KIND_PHYSICAL:
		case CKT_KIND_LIB_OBJECT: /* with the log of libraries: libs/state_image.c */
		case CKT_KIND_LIB_CALL:
			break;
		case CKT_KIND_ARRAY:
		case CKT_KIND_MIPMAP:
			result = take_array(s, object);
			break;
		case CKT_KIND_TEXTURE:
		case CKT_KIND_SURFACE:
			s->no_memory |=
				ckt_texture_save(object,
					&image->textures
						 .textures_val[image->textures.textures_len++]) !=
				0;
			result = ckt_save_has_memory(s);
			break;
		default:
			snprintf(s->message, s->message_size,
				"object 0x%llx is of a kind (%d) that cannot be saved yet",
				(unsigned long long)object->id, ckt_handle_kind(object->id));
			result = -EOPNOTSUPP;
		}
	}
	free(objects);
	if (!result)
		take_dead_arrays(s);
	return result;
}

static int take_physical(struct ckt_saving *s, struct ckt_object *object)
{
	struct ckt_worker *worker = s->worker;
	uint64_t size = object->physical.size, address = ckt_vmm_window_on(worker, object);
	bool mapped = address != 0;
	CUresult result = CUDA_SUCCESS;
	if (!mapped)
		result = ckt_vmm_reserve(worker, object->physical.device, size, 0, 0, &address);
	if (!mapped && !result && !worker->paused)
		result = ckt_vmm_map(worker, address, size, 0, object->id);
	if (!mapped && !result && !worker->paused)
		result = ckt_vmm_set_access(
			worker, address, size, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	s->image.physicals.physicals_val[s->image.physicals.physicals_len++] =
		(ckt_image_physical){.id = object->id,
			.device = object->physical.device,
			.size = size,
			.contents = address,
			.contents_only = !mapped};
	if (object->physical.compression)
		s->image.compressibles
			.compressibles_val[s->image.compressibles.compressibles_len++] =
			(ckt_image_compressible){object->id, object->physical.compression};
	if (result) {
		snprintf(s->message, s->message_size,
			"physical memory 0x%llx cannot be read: CUDA error %d",
			(unsigned long long)object->id, result);
		return -EIO;
	}
	return ckt_save_add_pieces(
		s, 0, object->physical.device, address, ckt_pause_copy(0, object->id), size);
}

/* The tables first: addresses taken for the contents alone are not the program's. */
int ckt_save_vmm(struct ckt_saving *s)
{
	struct ckt_worker *worker = s->worker;
	struct ckt_vmm *vmm = &worker->vmm;
	ckt_image *image = &s->image;
	image->reservations.reservations_val =
		ckt_save_list(s, vmm->reservation_count, sizeof(ckt_image_reservation));
	image->mappings.mappings_val =
		ckt_save_list(s, vmm->mapping_count, sizeof(ckt_image_mapping));
	image->peer_accesses.peer_accesses_val =
		ckt_save_list(s, vmm->mapping_count, sizeof(ckt_image_peer_access));
	if (s->no_memory)
		return ckt_save_has_memory(s);
	for (size_t i = 0; i < vmm->reservation_count; i++)
		image->reservations.reservations_val[image->reservations.reservations_len++] =
			(ckt_image_reservation){
				vmm->reservations[i].address, vmm->reservations[i].size};
	for (size_t i = 0; i < vmm->mapping_count; i++) {
		struct ckt_mapping *m = &vmm->mappings[i];
		image->mappings.mappings_val[image->mappings.mappings_len++] =
			(ckt_image_mapping){m->address, m->size, m->offset, m->physical, m->access};
		if (m->readers | m->writers)
			image->peer_accesses
				.peer_accesses_val[image->peer_accesses.peer_accesses_len++] =
				(ckt_image_peer_access){m->address, m->readers, m->writers};
	}
	size_t count;
	struct ckt_object **objects = ckt_objects_in_order(&worker->objects, &count);
	s->no_memory |= !objects;
	image->physicals.physicals_val = ckt_save_list(s, count, sizeof(ckt_image_physical));
	image->compressibles.compressibles_val =
		ckt_save_list(s, count, sizeof(ckt_image_compressible));
	int result = ckt_save_has_memory(s);
	for (size_t i = 0; i < count && !result; i++)
		if (ckt_handle_kind(objects[i]->id) == CKT_KIND_PHYSICAL &&
			!objects[i]->physical.imported)
			result = take_physical(s, objects[i]);
	free(objects);
	return result;
}

void ckt_save_give_vmm_back(struct ckt_saving *s)
{
	for (unsigned i = 0; i < s->image.physicals.physicals_len && !s->vmm_given_back; i++) {
		const ckt_image_physical *physical = &s->image.physicals.physicals_val[i];
		if (physical->contents_only && physical->contents) {
			if (!s->worker->paused)
				ckt_vmm_unmap(s->worker, physical->contents, physical->size);
			ckt_vmm_free(s->worker, physical->contents, physical->size);
		}
	}
	s->vmm_given_back = true;
}
