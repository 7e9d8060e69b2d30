/* Writing a frozen session as an image: the tables first, into a ckt_image, then contents by the crew, the manifest last. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "checkpoint/store.h"
#include "rpc/log.h"
#include "server/worker/array_image.h"
#include "server/worker/chain.h"
#include "server/worker/crew.h"
#include "server/worker/digest.h"
#include "server/worker/driver.h"
#include "server/worker/fault.h"
#include "server/worker/graph_image.h"
#include "server/worker/fence.h"
#include "server/worker/names.h"
#include "server/worker/pause.h"
#include "server/worker/worker.h"

struct saving {
	struct ckt_worker *worker;
	struct ckt_save *save;
	ckt_image image;
	struct ckt_piece *pieces;
	size_t piece_count, piece_room;
	_Atomic size_t next;
	struct ckt_image_writer writers[CKT_CREW_SIZE];
	char *message;
	size_t message_size;
	_Atomic int driver_error;
	uint64_t key[4];
	bool hashed;
	bool vmm_given_back;
	uint8_t **array_data;	/* contents of arrays, by their place in the image */
	unsigned array_count;
	bool early;	/* still frozen: what has no copy */
};

static void *list(size_t count, size_t size)
{
	void *memory = calloc(count + 1, size);
	if (!memory)
		abort();
	return memory;
}

static char *copy_string(const char *text)
{
	char *copy = strdup(text);
	if (!copy)
		abort();
	return copy;
}

static void add_pieces(struct saving *s, unsigned space, unsigned device, uint64_t address, const uint8_t *data, uint64_t size)
{
	for (uint64_t at = 0; at < size; at += CKT_IMAGE_CHUNK) {
		if (s->piece_count == s->piece_room) {
			s->piece_room = s->piece_room ? s->piece_room * 2 : 1024;
			s->pieces = realloc(s->pieces, s->piece_room * sizeof *s->pieces);
			if (!s->pieces)
				abort();
		}
		uint64_t left = size - at;
		s->pieces[s->piece_count++] = (struct ckt_piece){.space = space,
							     .device = device,
							     .address = address + at,
							     .data = data ? data + at : NULL,
							     .size = (uint32_t)(left < CKT_IMAGE_CHUNK ? left : CKT_IMAGE_CHUNK),
							     .hashable = !space && address % 16 == 0};
	}
}

/* ---- Tables */

static void take_identity(struct saving *s)
{
	struct ckt_worker *worker = s->worker;
	ckt_image *image = &s->image;
	image->session = copy_string(worker->session);
	memcpy(image->secret_hash, worker->secret_hash, sizeof image->secret_hash);
	image->generation = worker->generation;
	image->program_name = copy_string(worker->program_name);
	image->client = copy_string(worker->client);
	image->client_pid = worker->client_pid;
	image->uid = worker->uid;
	image->started = worker->started;
	image->saved = time(NULL);
	image->build = copy_string(CKT_VERSION);
	image->driver_version = worker->driver_version;
	if (getrandom(image->id, sizeof image->id, 0) != sizeof image->id)
		abort();
	memcpy(s->save->image, image->id, sizeof image->id);
	image->hash_kind = CKT_IMAGE_BLAKE3;
	image->window_base = CKT_WINDOW_BASE;
	image->window_bytes = CKT_WINDOW_SIZE;
	image->slice_bytes = worker->slice_size;
	image->memory_limit_bytes = worker->memory_limit;
}

static void take_replies(struct saving *s)
{
	struct ckt_replies *replies = &s->worker->replies;
	s->image.executed = atomic_load(&replies->executed);
	s->image.acked = replies->acked;
	s->image.deferred = atomic_load(&s->worker->deferred);
	s->image.replies.replies_val = list(replies->count, sizeof(ckt_image_reply));
	for (size_t i = 0; i < replies->count; i++) {
		struct ckt_stored *stored = &replies->list[replies->first + i];
		ckt_image_reply *reply = &s->image.replies.replies_val[s->image.replies.replies_len++];
		reply->seq = stored->seq;
		reply->proc = stored->proc;
		reply->deferred = stored->deferred;
		reply->accept_stat = stored->accept_stat;
		reply->body.body_len = (u_int)stored->size;
		reply->body.body_val = list(stored->size, 1);
		memcpy(reply->body.body_val, stored->body, stored->size);
	}
}

static void take_devices(struct saving *s)
{
	struct ckt_worker *worker = s->worker;
	s->image.devices.devices_val = list(worker->device_count, sizeof(ckt_image_device));
	s->image.devices.devices_len = worker->device_count;
	for (unsigned d = 0; d < worker->device_count; d++) {
		struct ckt_worker_device *from = &worker->devices[d];
		struct ckt_memory *memory = &from->memory;
		ckt_image_device *device = &s->image.devices.devices_val[d];
		device->name = copy_string(from->name);
		device->major = from->major;
		device->minor = from->minor;
		device->total_bytes = from->total;
		device->extents.extents_val = list(memory->extent_count, sizeof(ckt_image_extent));
		device->blocks.blocks_val = list(memory->block_count, sizeof(ckt_image_block));
		for (size_t i = 0; i < memory->extent_count; i++) {
			struct ckt_extent *e = &memory->extents[i];
			if (e->use == CKT_EXTENT_CACHED)
				continue;
			device->extents.extents_val[device->extents.extents_len++] = (ckt_image_extent){e->address, e->size, e->use};
			add_pieces(s, 0, d, e->address, ckt_pause_copy(e->address, 0), e->size);
		}
		for (size_t i = 0; i < memory->block_count; i++) {
			struct ckt_block *b = &memory->blocks[i];
			device->blocks.blocks_val[device->blocks.blocks_len++] = (ckt_image_block){b->address, b->size, b->owner};
		}
	}
}

static void take_blobs(struct saving *s)
{
	struct ckt_blobs *blobs = &s->worker->blobs;
	s->image.blobs.blobs_val = list(blobs->count, sizeof(ckt_image_blob));
	for (size_t i = 0; i < blobs->count; i++) {
		struct ckt_blob *from = blobs->list[i];
		ckt_image_blob *blob = &s->image.blobs.blobs_val[s->image.blobs.blobs_len++];
		memcpy(blob->hash, from->hash, sizeof blob->hash);
		blob->size = from->size;
		blob->received = from->received;
		if (!s->save->incremental || !ckt_chain_has_blob(blob))
			add_pieces(s, s->image.blobs.blobs_len, 0, 0, from->data, from->received);
	}
}

static void take_journal(struct saving *s)
{
	struct ckt_worker *worker = s->worker;
	s->image.journal.journal_val = list(worker->journal_count, sizeof(ckt_image_journal));
	s->image.journal.journal_len = (u_int)worker->journal_count;
	for (size_t i = 0; i < worker->journal_count; i++) {
		struct ckt_journal_entry *from = &worker->journal[i];
		ckt_image_journal *entry = &s->image.journal.journal_val[i];
		*entry = (ckt_image_journal){
			.kind = from->kind, .id = from->id, .context = from->context, .flags = from->flags, .device = from->device};
		memcpy(entry->hash, from->hash, sizeof entry->hash);
	}
}

/* Before the journal is taken, as it is an entry of it. */
static void prepare_digests(struct saving *s)
{
	for (unsigned d = 0; d < s->worker->device_count && !s->save->incremental && !s->worker->paused; d++) {
		uint64_t bytes = 0;
		for (size_t i = 0; i < s->piece_count; i++)
			bytes += !s->pieces[i].space && s->pieces[i].device == d ? s->pieces[i].size : 0;
		if (ckt_digest_pays(bytes))
			ckt_digest_load(s->worker, d);
	}
}

/* ---- Objects */

static int take_context(struct saving *s, struct ckt_object *object)
{
	/* Those that a program may set. */
	static const CUlimit limits[] = {CU_LIMIT_STACK_SIZE, CU_LIMIT_PRINTF_FIFO_SIZE, CU_LIMIT_MALLOC_HEAP_SIZE, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH,
					 CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, CU_LIMIT_MAX_L2_FETCH_GRANULARITY,
					 CU_LIMIT_PERSISTING_L2_CACHE_SIZE};
	ckt_image_context *context = &s->image.contexts.contexts_val[s->image.contexts.contexts_len++];
	*context = (ckt_image_context){.id = object->id, .device = object->ctx.device, .flags = object->ctx.flags, .primary = object->ctx.primary};
	CUresult result = ckt_driver.cuCtxSetCurrent(object->real);
	if (!result)
		result = ckt_driver.cuCtxSynchronize();
	if (result) {
		snprintf(s->message, s->message_size, "context 0x%llx cannot be saved: a kernel in it has failed (CUDA error %d)",
			 (unsigned long long)object->id, result);
		return -EIO;
	}
	context->limits.limits_val = list(sizeof limits / sizeof *limits, sizeof(ckt_image_limit));
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
		size_t value;
		if (ckt_driver.cuCtxGetLimit && ckt_driver.cuCtxGetLimit(&value, limits[i]) == CUDA_SUCCESS)
			context->limits.limits_val[context->limits.limits_len++] = (ckt_image_limit){limits[i], value};
	}
	CUfunc_cache config;
	if (ckt_driver.cuCtxGetCacheConfig && ckt_driver.cuCtxGetCacheConfig(&config) == CUDA_SUCCESS)
		context->cache_config = config;
	return 0;
}

static void take_globals(struct saving *s, ckt_image_module *module, struct ckt_object *object)
{
	const struct ckt_blob *blob = ckt_blobs_find(&s->worker->blobs, object->module.hash);
	struct ckt_object *context = ckt_objects_find(&s->worker->objects, object->context);
	struct ckt_names names;
	if (!blob || !context || ckt_names_collect(blob->data, blob->size, &names))
		return;
	ckt_driver.cuCtxSetCurrent(context->real);
	module->globals.globals_val = list(names.count, sizeof(ckt_image_global));
	for (size_t i = 0; i < names.count; i++) {
		CUdeviceptr address;
		size_t size;
		if (ckt_driver.cuModuleGetGlobal_v2(&address, &size, object->real, names.list[i]) || !size)
			continue;
		ckt_image_global *global = &module->globals.globals_val[module->globals.globals_len++];
		*global = (ckt_image_global){.name = copy_string(names.list[i]), .address = address, .size = size};
		size_t before = s->piece_count;
		add_pieces(s, 0, context->ctx.device, address, NULL, size);
		/* Another context's memory is not for the kernel that hashes. */
		for (size_t k = before; k < s->piece_count && !context->ctx.primary; k++)
			s->pieces[k].hashable = false;
	}
	ckt_names_fini(&names);
}

static void take_module(struct saving *s, struct ckt_object *object)
{
	ckt_image_module *module = &s->image.modules.modules_val[s->image.modules.modules_len++];
	uint32_t count = object->module.option_count;
	*module = (ckt_image_module){.id = object->id, .context = object->context};
	memcpy(module->hash, object->module.hash, sizeof module->hash);
	module->option_keys.option_keys_val = list(count, sizeof(u_int));
	module->option_values.option_values_val = list(count, sizeof *module->option_values.option_values_val);
	module->option_keys.option_keys_len = module->option_values.option_values_len = count;
	for (uint32_t i = 0; i < count; i++) {
		module->option_keys.option_keys_val[i] = object->module.option_keys[i];
		module->option_values.option_values_val[i] = object->module.option_values[i];
	}
	for (uint32_t i = 0; i < object->module.seen_count; i++)
		s->image.seen.seen_val[s->image.seen.seen_len++] = (ckt_image_seen){object->id, copy_string(object->module.seen[i])};
	take_globals(s, module, object);
}

static void take_function(struct saving *s, struct ckt_object *object)
{
	ckt_image_function *function = &s->image.functions.functions_val[s->image.functions.functions_len++];
	*function = (ckt_image_function){.id = object->id,
					 .module = object->parent,
					 .name = copy_string(object->function.name),
					 .cache_config_set = object->function.cache_config_set,
					 .cache_config = object->function.cache_config};
	function->attributes.attributes_val = list(object->function.set_count, sizeof(ckt_image_attribute));
	function->attributes.attributes_len = object->function.set_count;
	for (uint32_t i = 0; i < object->function.set_count; i++)
		function->attributes.attributes_val[i] = (ckt_image_attribute){object->function.sets[i].attribute, object->function.sets[i].value};
}

/* Times count from the restore's own event, or, in a session that was never restored, from the first event that has a time. */
static void take_event(struct saving *s, struct ckt_object *object, CUevent *base)
{
	struct ckt_worker *worker = s->worker;
	ckt_image_event *event = &s->image.events.events_val[s->image.events.events_len++];
	*event = (ckt_image_event){.id = object->id, .context = object->context, .flags = object->event.flags, .recorded = object->event.recorded};
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
		result = ckt_driver.cuEventElapsedTime_v2 ? ckt_driver.cuEventElapsedTime_v2(&ms, *base, object->real) :
							    ckt_driver.cuEventElapsedTime(&ms, *base, object->real);
	event->timed = !result;
	event->milliseconds = ms + worker->image_base_ms;
}

/* Arrays can be read only by copies of their own kind, so the host gets them at once. */
static int take_array(struct saving *s, struct ckt_object *object)
{
	unsigned index = s->image.arrays.arrays_len++;
	s->array_count = s->image.arrays.arrays_len;
	uint64_t bytes = object->array->bytes;
	struct ckt_object *context = ckt_objects_find(&s->worker->objects, object->context);
	uint8_t *data = s->array_data[index] = malloc(bytes);
	ckt_array_save(object, &s->image.arrays.arrays_val[index]);
	CUresult result = data ? ckt_driver.cuCtxSetCurrent(context ? context->real : NULL) : CUDA_ERROR_OUT_OF_MEMORY;
	if (!result)
		result = ckt_array_read(object, data);
	if (result) {
		snprintf(s->message, s->message_size, "array 0x%llx cannot be read: CUDA error %d", (unsigned long long)object->id, result);
		return -EIO;
	}
	add_pieces(s, s->image.blobs.blobs_len + index + 1, 0, 0, data, bytes);
	return 0;
}

/* What is gone but stands in the journal, which names arrays by id. */
static void take_dead_arrays(struct saving *s)
{
	struct ckt_worker *worker = s->worker;
	for (size_t i = 0; i < worker->journal_count; i++) {
		const struct ckt_journal_entry *entry = &worker->journal[i];
		if (entry->kind == CKT_JOURNAL_ARRAY_CREATE && !ckt_objects_find(&worker->objects, entry->id))
			ckt_array_save_dead(entry, &s->image.arrays.arrays_val[s->image.arrays.arrays_len++]);
	}
}

static void free_arrays(struct saving *s)
{
	for (unsigned i = 0; i < s->array_count; i++)
		free(s->array_data[i]);
	free(s->array_data);
}

static void take_pool(struct saving *s, const struct ckt_pool *pool)
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
				  .used_high = account.used_high,
				  .reserved_high = account.reserved_high};
	saved->blocks.blocks_val = list(memory->block_count, sizeof(ckt_image_pool_block));
	for (size_t i = 0; i < memory->block_count; i++)
		if (memory->blocks[i].pool == pool->id)
			saved->blocks.blocks_val[saved->blocks.blocks_len++] =
				(ckt_image_pool_block){memory->blocks[i].address, memory->blocks[i].freeing};
}

static size_t count_seen(struct ckt_object *const *objects, size_t count)
{
	size_t seen = 0;
	for (size_t i = 0; i < count; i++)
		seen += ckt_handle_kind(objects[i]->id) == CKT_KIND_MODULE ? objects[i]->module.seen_count : 0;
	return seen;
}

static int take_objects(struct saving *s)
{
	size_t count;
	int result = 0;
	CUevent base = NULL;
	struct ckt_object **objects = ckt_objects_in_order(&s->worker->objects, &count);
	ckt_image *image = &s->image;
	image->contexts.contexts_val = list(count, sizeof(ckt_image_context));
	image->streams.streams_val = list(count, sizeof(ckt_image_stream));
	image->events.events_val = list(count, sizeof(ckt_image_event));
	image->modules.modules_val = list(count, sizeof(ckt_image_module));
	image->functions.functions_val = list(count, sizeof(ckt_image_function));
	image->pools.pools_val = list(count + s->worker->device_count, sizeof(ckt_image_pool));
	for (unsigned d = 0; d < s->worker->device_count; d++)
		take_pool(s, &s->worker->pools.defaults[d]);
	image->graphs.graphs_val = list(count, sizeof(ckt_image_graph));
	image->seen.seen_val = list(count_seen(objects, count), sizeof(ckt_image_seen));
	image->seen_known = true;
	image->arrays.arrays_val = list(count + s->worker->journal_count, sizeof(ckt_image_array));
	image->textures.textures_val = list(count, sizeof(ckt_image_texture));
	s->array_data = list(count + s->worker->journal_count, sizeof *s->array_data);
	for (size_t i = 0; i < count && !result; i++) {
		struct ckt_object *object = objects[i];
		switch (ckt_handle_kind(object->id)) {
		case CKT_KIND_CONTEXT:
			result = take_context(s, object);
			break;
		case CKT_KIND_STREAM:
			image->streams.streams_val[image->streams.streams_len++] = (ckt_image_stream){
				object->id, object->context, object->stream.flags, object->stream.priority};
			break;
		case CKT_KIND_EVENT:
			take_event(s, object, &base);
			break;
		case CKT_KIND_MODULE:
			take_module(s, object);
			break;
		case CKT_KIND_FUNCTION:
			take_function(s, object);
			break;
		case CKT_KIND_GRAPH:
		case CKT_KIND_GRAPH_EXEC:
			ckt_graph_save(object, &image->graphs.graphs_val[image->graphs.graphs_len++]);
			break;
		case CKT_KIND_POOL:
			take_pool(s, object->pool);
			break;
		case CKT_KIND_PHYSICAL:
			break;
		case CKT_KIND_ARRAY:
		case CKT_KIND_MIPMAP:
			result = take_array(s, object);
			break;
		case CKT_KIND_TEXTURE:
		case CKT_KIND_SURFACE:
			ckt_texture_save(object, &image->textures.textures_val[image->textures.textures_len++]);
			break;
		default:
			snprintf(s->message, s->message_size, "object 0x%llx is of a kind (%d) that cannot be saved yet",
				 (unsigned long long)object->id, ckt_handle_kind(object->id));
			result = -EOPNOTSUPP;
		}
	}
	free(objects);
	take_dead_arrays(s);
	return result;
}

/* ---- What the program mapped itself */

static int take_physical(struct saving *s, struct ckt_object *object)
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
		result = ckt_vmm_set_access(worker, address, size, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	s->image.physicals.physicals_val[s->image.physicals.physicals_len++] =
		(ckt_image_physical){.id = object->id, .device = object->physical.device, .size = size, .contents = address, .contents_only = !mapped};
	if (result) {
		snprintf(s->message, s->message_size, "physical memory 0x%llx cannot be read: CUDA error %d", (unsigned long long)object->id, result);
		return -EIO;
	}
	add_pieces(s, 0, object->physical.device, address, ckt_pause_copy(0, object->id), size);
	return 0;
}

/* The tables first: addresses taken for the contents alone are not the program's. */
static int take_vmm(struct saving *s)
{
	struct ckt_worker *worker = s->worker;
	struct ckt_vmm *vmm = &worker->vmm;
	ckt_image *image = &s->image;
	image->reservations.reservations_val = list(vmm->reservation_count, sizeof(ckt_image_reservation));
	image->mappings.mappings_val = list(vmm->mapping_count, sizeof(ckt_image_mapping));
	image->peer_accesses.peer_accesses_val = list(vmm->mapping_count, sizeof(ckt_image_peer_access));
	for (size_t i = 0; i < vmm->reservation_count; i++)
		image->reservations.reservations_val[image->reservations.reservations_len++] =
			(ckt_image_reservation){vmm->reservations[i].address, vmm->reservations[i].size};
	for (size_t i = 0; i < vmm->mapping_count; i++) {
		struct ckt_mapping *m = &vmm->mappings[i];
		image->mappings.mappings_val[image->mappings.mappings_len++] = (ckt_image_mapping){m->address, m->size, m->offset, m->physical, m->access};
		if (m->readers | m->writers)
			image->peer_accesses.peer_accesses_val[image->peer_accesses.peer_accesses_len++] =
				(ckt_image_peer_access){m->address, m->readers, m->writers};
	}
	size_t count;
	int result = 0;
	struct ckt_object **objects = ckt_objects_in_order(&worker->objects, &count);
	image->physicals.physicals_val = list(count, sizeof(ckt_image_physical));
	for (size_t i = 0; i < count && !result; i++)
		if (ckt_handle_kind(objects[i]->id) == CKT_KIND_PHYSICAL)
			result = take_physical(s, objects[i]);
	free(objects);
	return result;
}

static void give_vmm_back(struct saving *s)
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

/* ---- Contents */

static bool is_due(const struct saving *s, const struct ckt_piece *piece)
{
	return !piece->same && !piece->written && (!s->early || !piece->copy);
}

/* The next piece that is to be written now, or NULL. */
static struct ckt_piece *next_piece(struct saving *s)
{
	for (size_t i; (i = s->next++) < s->piece_count;) {
		struct ckt_piece *piece = &s->pieces[i];
		if (piece->same) {
			if (!s->early)
				atomic_fetch_add_explicit(&s->worker->progress.done, piece->size, memory_order_relaxed);
		} else if (is_due(s, piece)) {
			return piece;
		}
	}
	return NULL;
}

/* Begins the piece's way into the member's buffer. */
static CUresult fetch(struct saving *s, struct ckt_crew_member *member, const struct ckt_piece *piece, unsigned buffer)
{
	if (!piece || piece->data)
		return CUDA_SUCCESS;
	CUresult error = ckt_crew_use_device(member, piece->device);
	if (!error)
		error = ckt_driver.cuMemcpyDtoHAsync_v2(member->buffers[buffer], piece->copy ? piece->copy : piece->address, piece->size,
							ckt_crew_stream(member, piece->device));
	if (error)
		s->driver_error = (int)error;
	return error;
}

static CUresult arrived(struct saving *s, struct ckt_crew_member *member, const struct ckt_piece *piece)
{
	if (piece->data)
		return CUDA_SUCCESS;
	CUresult error = ckt_crew_use_device(member, piece->device);
	if (!error)
		error = ckt_driver.cuStreamSynchronize(ckt_crew_stream(member, piece->device));
	if (error)
		s->driver_error = (int)error;
	return error;
}

static int make_file(const struct ckt_save *save, struct ckt_image_writer *writer, unsigned file)
{
	_Static_assert(CKT_CREW_SIZE + 1 <= (int)CKT_IMAGE_MEMORY_FILES, "a file for each writer");
	return save->memory_fds ? ckt_image_writer_init_open(writer, save->memory_fds[1 + file], file, save->compress) :
				  ckt_image_writer_init(writer, save->dir_fd, file, save->compress);
}

/* While one piece is hashed and written, the next is on its way. */
static int write_pieces(struct ckt_crew_member *member, void *opaque)
{
	struct saving *s = opaque;
	struct ckt_image_writer *writer = &s->writers[member->index];
	unsigned buffer = 0;
	int result = writer->fd >= 0 ? 0 : make_file(s->save, writer, member->index);
	struct ckt_piece *piece = result ? NULL : next_piece(s);
	if (!result && fetch(s, member, piece, buffer))
		return -EIO;
	while (!result && piece) {
		if (arrived(s, member, piece))
			return -EIO;
		struct ckt_piece *following = next_piece(s);
		if (fetch(s, member, following, !buffer))
			return -EIO;
		const void *data = piece->data ? piece->data : member->buffers[buffer];
		result = ckt_fault_fails(CKT_FAULT_WRITE) ? -EIO : ckt_image_writer_add(writer, piece->space, piece->address, data, piece->size,
										   piece->digested ? piece->digest.sum : NULL);
		piece->written = true;
		if (!piece->space)
			atomic_fetch_add_explicit(&s->worker->progress.done, piece->size, memory_order_relaxed);
		/* Nothing may still write into the buffers when we are gone. */
		if (result && following)
			arrived(s, member, following);
		piece = following;
		buffer = !buffer;
	}
	return result || s->early ? result : ckt_image_writer_finish(writer);
}

/* What is due now and lies on a GPU is hashed there.  What cannot be is the CPU's, so there is no error. */
static void make_digests(struct saving *s)
{
	struct ckt_hash_item *items = list(s->piece_count, sizeof *items);
	struct ckt_digest *digests = list(s->piece_count, sizeof *digests);
	struct ckt_piece **pieces = list(s->piece_count, sizeof *pieces);
	for (unsigned d = 0; d < s->worker->device_count; d++) {
		size_t n = 0;
		for (size_t i = 0; i < s->piece_count; i++) {
			struct ckt_piece *piece = &s->pieces[i];
			uint64_t address = piece->copy ? piece->copy : piece->address;
			if (!piece->hashable || piece->device != d || piece->data || !is_due(s, piece) || !ckt_digest_takes(d, address, piece->size))
				continue;
			items[n] = (struct ckt_hash_item){address, piece->size};
			pieces[n++] = piece;
		}
		CUresult result = ckt_digest_run(s->worker, d, ckt_crew_first_stream(d), items, n, digests);
		if (result)
			ckt_info("hashing on the GPU: CUDA error %d; the CPU does it", result);
		for (size_t i = 0; i < n && !result; i++) {
			pieces[i]->digest = digests[i];
			pieces[i]->digested = true;
		}
	}
	free(items);
	free(digests);
	free(pieces);
}

static int run_crew(struct saving *s, bool early)
{
	s->early = early;
	s->next = 0;
	int64_t begun = ckt_now_ns();
	make_digests(s);
	ckt_debug("save: hashing: %.1f ms", (double)(ckt_now_ns() - begun) * 1e-6);
	begun = ckt_now_ns();
	int result = ckt_crew_run(write_pieces, s);
	ckt_debug("save: writing%s: %.1f ms", early ? " while nothing runs" : "", (double)(ckt_now_ns() - begun) * 1e-6);
	if (result) {
		if (s->driver_error)
			snprintf(s->message, s->message_size, "reading the GPU's memory: CUDA error %d", s->driver_error);
		else
			snprintf(s->message, s->message_size, "writing the image: %s", strerror(-result));
	}
	return result;
}

/*
 * Copies what is to be written into spare memory of its device as far as that goes, and writes the rest at once: then nothing of the
 * session is needed any more, and it goes on.
 */
static int let_go(struct saving *s)
{
	struct ckt_worker *worker = s->worker;
	struct ckt_spare *spare = &s->save->spare;
	uint64_t used = 0;
	if (!s->save->let_go || !spare->size)
		return 0;
	CUresult result = ckt_worker_spare_use(worker);
	for (size_t i = 0; i < s->piece_count && !result;) {
		struct ckt_piece *piece = &s->pieces[i];
		uint64_t size = 0;
		size_t n = i;
		/* As much as lies one behind the other goes in one copy. */
		for (; n < s->piece_count && !s->pieces[n].same && !s->pieces[n].data && s->pieces[n].device == 0 && used + size + s->pieces[n].size <= spare->size &&
		       s->pieces[n].address == piece->address + size;
		     n++) {
			s->pieces[n].copy = CKT_SPARE_BASE + used + size;
			size += s->pieces[n].size;
		}
		if (size)
			result = ckt_driver.cuMemcpyDtoDAsync_v2(CKT_SPARE_BASE + used, piece->address, size, NULL);
		used += size;
		i = n > i ? n : i + 1;
	}
	if (!result)
		result = ckt_driver.cuCtxSynchronize();
	if (result) {
		snprintf(s->message, s->message_size, "copying the GPU's memory: CUDA error %d", result);
		return -EIO;
	}
	int error = run_crew(s, true);
	give_vmm_back(s);
	if (!error)
		s->save->let_go(s->save, worker);
	return error;
}

static int write_contents(struct saving *s)
{
	int result = run_crew(s, false);
	if (result)
		return result;
	ckt_image *image = &s->image;
	size_t total = 0;
	for (unsigned i = 0; i < CKT_CREW_SIZE; i++)
		total += s->writers[i].count;
	image->chunks.chunks_val = list(total, sizeof(ckt_image_chunk));
	image->file_bytes.file_bytes_val = list(CKT_CREW_SIZE, sizeof *image->file_bytes.file_bytes_val);
	for (unsigned i = 0; i < ckt_crew_count(); i++) {
		struct ckt_image_writer *writer = &s->writers[i];
		if (writer->count)
			memcpy(image->chunks.chunks_val + image->chunks.chunks_len, writer->chunks, writer->count * sizeof *writer->chunks);
		image->chunks.chunks_len += (u_int)writer->count;
		image->file_bytes.file_bytes_val[image->file_bytes.file_bytes_len++] = writer->offset;
	}
	return 0;
}

static int told_to_fail(struct saving *s, enum ckt_worker_fault point)
{
	if (!ckt_fault_fails(point))
		return 0;
	snprintf(s->message, s->message_size, "told to fail");
	return -EIO;
}

static int find_changed(struct saving *s)
{
	struct ckt_save *save = s->save;
	uint64_t bytes = 0;
	for (size_t i = 0; i < s->piece_count; i++)
		save->memory_bytes += s->pieces[i].space ? 0 : s->pieces[i].size;
	ckt_chain_key(!save->incremental, s->key);
	/* What lies in the host's memory is not for the GPU to hash: all of it is taken as changed. */
	if ((save->incremental || save->keep_hashes) && !s->worker->paused) {
		ckt_progress_begin(s->worker, "hash", save->memory_bytes);
		int error = ckt_chain_hash(s->worker, s->pieces, s->piece_count, s->key);
		s->hashed = !error;
		if (error && save->incremental) {
			snprintf(s->message, s->message_size, "what has changed cannot be told: hashing the GPU's memory failed: %s", strerror(-error));
			return -ESTALE;
		}
	}
	if (save->incremental)
		ckt_chain_compare(s->pieces, s->piece_count);
	for (size_t i = 0; i < s->piece_count; i++)
		bytes += s->pieces[i].space || s->pieces[i].same ? 0 : s->pieces[i].size;
	save->changed_bytes = bytes;
	ckt_progress_begin(s->worker, "save", save->memory_bytes);
	return told_to_fail(s, CKT_FAULT_HASHED);
}

static int share_contents(struct saving *s)
{
	int error = ckt_chain_share(&s->image, s->pieces, s->piece_count);
	if (!error)
		return 0;
	snprintf(s->message, s->message_size, "the image would build on too many others: save a whole one");
	return -ESTALE;
}

/* Precondition: the image is written. */
static void remember(struct saving *s)
{
	if (s->save->keep_hashes && s->hashed)
		ckt_chain_advance(&s->image, s->pieces, s->piece_count, s->key);
	else
		ckt_chain_break();
}

int ckt_worker_save(struct ckt_worker *worker, struct ckt_save *save, char *ret_message, size_t message_size)
{
	struct saving s = {.worker = worker, .save = save, .message = ret_message, .message_size = message_size};
	for (unsigned i = 0; i < CKT_CREW_SIZE; i++)
		s.writers[i].fd = -1;
	/* Nothing runs: blocks that were freed on a stream are free now, or their pool's. */
	ckt_pools_poll(worker);
	ckt_crew_look(worker);
	if (save->incremental && !ckt_chain_continues(save->base)) {
		snprintf(ret_message, message_size, "the image to build on is not the last one of this session: save a whole one");
		return -ESTALE;
	}
	take_identity(&s);
	s.image.chain = save->keep_hashes;
	take_replies(&s);
	take_devices(&s);
	take_blobs(&s);
	prepare_digests(&s);
	take_journal(&s);
	int result = take_objects(&s);
	if (!result)
		result = take_vmm(&s);
	if (!result)
		result = find_changed(&s);
	if (!result)
		result = let_go(&s);
	if (!result)
		result = write_contents(&s);
	if (!result && save->incremental)
		result = share_contents(&s);
	give_vmm_back(&s);
	if (!result)
		result = told_to_fail(&s, CKT_FAULT_CONTENTS);
	if (!result)
		result = save->memory_fds ? ckt_image_write_open(save->memory_fds[0], &s.image, ret_message, message_size) :
					    ckt_image_write(save->dir_fd, &s.image, ret_message, message_size);
	ckt_fault_fails(CKT_FAULT_MANIFEST);
	uint64_t bytes = 0;
	for (unsigned i = 0; i < CKT_CREW_SIZE; i++) {
		bytes += s.writers[i].offset;
		ckt_image_writer_fini(&s.writers[i]);
	}
	if (!result) {
		save->bytes = bytes;
		ckt_info("saved: %llu bytes of contents in %u chunks", (unsigned long long)bytes, s.image.chunks.chunks_len);
		remember(&s);
	}
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&s.image);
	free(s.pieces);
	free_arrays(&s);
	/* The control thread changed its own current context only; the executor's is untouched. */
	return result;
}
