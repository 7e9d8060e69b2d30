/*
 * Making a session again from an image, in a worker that has just started: everything that can be checked is checked first; any
 * failure ends the process, so nothing of it stays.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint/store.h"
#include "rpc/log.h"
#include "server/worker/array_image.h"
#include "server/worker/binary.h"
#include "server/worker/chain.h"
#include "server/worker/crew.h"
#include "server/worker/digest.h"
#include "server/worker/driver.h"
#include "server/worker/fault.h"
#include "server/worker/graph_image.h"
#include "server/worker/image_moved.h"
#include "server/worker/preload.h"
#include "server/worker/fence.h"
#include "server/worker/worker.h"

struct loading {
	struct ckt_worker *worker;
	ckt_image image;
	struct ckt_image_reader reader;
	struct ckt_moved moved;
	bool other_model;	/* than the session had: another capability */
	bool ahead;		/* pre-loaded only */
	bool *skip;		/* chunks that are not to be read; NULL: none */
	_Atomic size_t next;
	_Atomic int driver_error;
	char *message;
	size_t message_size;
};

static int refuse(struct loading *l, int error, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int refuse(struct loading *l, int error, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(l->message, l->message_size, format, args);
	va_end(args);
	return error;
}

static int told_to_fail(struct loading *l, enum ckt_worker_fault point)
{
	return ckt_fault_fails(point) ? refuse(l, -EIO, "told to fail") : 0;
}

static uint64_t bytes_on(const ckt_image *image, unsigned d)
{
	const ckt_image_device *device = &image->devices.devices_val[d];
	uint64_t bytes = 0;
	for (unsigned i = 0; i < device->extents.extents_len; i++)
		bytes += device->extents.extents_val[i].size;
	for (unsigned i = 0; i < image->physicals.physicals_len; i++)
		if (image->physicals.physicals_val[i].device == d)
			bytes += image->physicals.physicals_val[i].size;
	return bytes + ckt_arrays_bytes_on(image, d);
}

/* ---- Checks */

/* Whether its context came in the course of the program, among what moves addresses: then it does so again. */
static bool in_journal(const ckt_image *image, unsigned d)
{
	for (unsigned i = 0; i < image->journal.journal_len; i++)
		if (image->journal.journal_val[i].kind == CKT_JOURNAL_PRIMARY && image->journal.journal_val[i].device == d)
			return true;
	return false;
}

static int check_memory(struct loading *l, unsigned d)
{
	struct ckt_worker_device *device = &l->worker->devices[d];
	struct ckt_object *context;
	size_t free_bytes, total;
	uint64_t need = bytes_on(&l->image, d);
	if (!need)
		return 0;
	if (ckt_context_primary(l->worker, d, &context) || ckt_worker_use_context(l->worker, context->id) ||
	    ckt_driver.cuMemGetInfo_v2(&free_bytes, &total))
		return refuse(l, -ENODEV, "GPU %u does not answer", d);
	/* Most of what was pre-loaded is there; the rest is found, or is not. */
	if (free_bytes < need && !ckt_preload_active())
		return refuse(l, -ENOMEM, "the session needs %llu MiB of GPU memory and %s has %llu MiB free: %llu MiB are missing",
			      (unsigned long long)(need >> 20), device->name, (unsigned long long)(free_bytes >> 20),
			      (unsigned long long)(need - free_bytes + (1 << 20) - 1) >> 20);
	return 0;
}

static int check_device(struct loading *l, unsigned d)
{
	struct ckt_worker_device *device = &l->worker->devices[d];
	const ckt_image_device *saved = &l->image.devices.devices_val[d];
	if (saved->major != device->major || saved->minor != device->minor) {
		l->other_model = true;
		ckt_worker_note(l->worker, "began on %.64s (capability %d.%d) and goes on on %.64s (%d.%d): what the program knows of its GPU is the former's",
				saved->name, saved->major, saved->minor, device->name, device->major, device->minor);
	}
	return in_journal(&l->image, d) ? 0 : check_memory(l, d);
}

static int check(struct loading *l, const ckt_worker_start_args *args)
{
	struct ckt_worker *worker = l->worker;
	ckt_image *image = &l->image;
	if (image->window_base != CKT_WINDOW_BASE || image->window_bytes != CKT_WINDOW_SIZE)
		return refuse(l, -EINVAL, "the session's memory lies at 0x%llx and this Cricket's window at 0x%llx: restore it with a build of the same kind",
			      (unsigned long long)image->window_base, (unsigned long long)CKT_WINDOW_BASE);
	if (image->devices.devices_len > worker->device_count)
		return refuse(l, -ENODEV, "the session has %u GPUs and this server gives it %u", image->devices.devices_len, worker->device_count);
	if (args->memory_limit_bytes)
		for (unsigned d = 0; d < image->devices.devices_len; d++)
			if (bytes_on(image, d) > args->memory_limit_bytes)
				return refuse(l, -ENOMEM, "the session holds %llu MiB and this server allows %llu (--session-memory)",
					      (unsigned long long)(bytes_on(image, d) >> 20),
					      (unsigned long long)(args->memory_limit_bytes >> 20));
	if (ckt_preload_active()) {
		if (worker->device_count != image->devices.devices_len || worker->slice_size != image->slice_bytes)
			return refuse(l, -ESTALE, "the session is another than the one that was pre-loaded");
		for (unsigned d = 0; d < worker->device_count; d++) {
			int error = check_device(l, d);
			if (error)
				return error;
		}
		return 0;
	}
	/* More GPUs than it had stay unseen, so that its slices are as they were. */
	worker->device_count = image->devices.devices_len;
	worker->slice_size = image->slice_bytes;
	worker->memory_limit = image->memory_limit_bytes;
	for (unsigned d = 0; d < worker->device_count; d++) {
		ckt_memory_fini(&worker->devices[d].memory);
		ckt_window_init_device(worker, d);
		int error = check_device(l, d);
		if (error)
			return error;
	}
	ckt_pools_init(worker);
	if (image->driver_version && image->driver_version != worker->driver_version)
		ckt_worker_note(worker, "was saved with a driver for CUDA %d.%d and goes on with %s one, for CUDA %d.%d", image->driver_version / 1000,
				image->driver_version % 1000 / 10, image->driver_version < worker->driver_version ? "a newer" : "an older",
				worker->driver_version / 1000, worker->driver_version % 1000 / 10);
	return 0;
}

/* ---- Blobs */

/* When it was pre-loaded. */
static bool is_loaded(struct loading *l, const ckt_image_blob *saved)
{
	const struct ckt_blob *blob = ckt_preload_active() ? ckt_blobs_find(&l->worker->blobs, (const uint8_t *)saved->hash) : NULL;
	return blob && blob->size == saved->size;
}

static int load_blobs(struct loading *l)
{
	struct ckt_blobs *blobs = &l->worker->blobs;
	ckt_image *image = &l->image;
	uint8_t **data = calloc(image->blobs.blobs_len + 1, sizeof *data);
	if (!data)
		return -ENOMEM;
	int result = 0;
	for (unsigned i = 0; i < image->blobs.blobs_len && !result; i++) {
		uint64_t size = image->blobs.blobs_val[i].received;
		if (is_loaded(l, &image->blobs.blobs_val[i]))
			continue;
		data[i] = size > CKT_BLOBS_BYTES_MAX ? NULL : calloc(size + 1, 1);
		if (!data[i])
			result = refuse(l, -ENOMEM, "no memory for the session's modules");
	}
	for (unsigned i = 0; i < image->chunks.chunks_len && !result; i++) {
		const ckt_image_chunk *chunk = &image->chunks.chunks_val[i];
		if (chunk->space && chunk->space <= image->blobs.blobs_len && data[chunk->space - 1])
			result = ckt_image_reader_chunk(&l->reader, chunk, data[chunk->space - 1] + chunk->address);
		if (result)
			refuse(l, result, "the image is damaged: a module's contents: %s", strerror(-result));
	}
	for (unsigned i = 0; i < image->blobs.blobs_len; i++) {
		ckt_image_blob *blob = &image->blobs.blobs_val[i];
		if (!result)
			result = ckt_blobs_piece(blobs, (uint8_t *)blob->hash, blob->size, 0, data[i], blob->received);
		if (result)
			refuse(l, result, "the image is damaged: a module is not what its hash says");
		free(data[i]);
	}
	free(data);
	return result;
}

/* ---- Another model of GPU */

static const char *name_of(const ckt_image *image, uint64_t module)
{
	for (unsigned i = 0; i < image->functions.functions_len; i++)
		if (image->functions.functions_val[i].module == module)
			return image->functions.functions_val[i].name;
	return "a kernel that was not asked for";
}

/* Whether each module has code for the GPU on which it is to be, or PTX to make it from. */
static int check_code(struct loading *l)
{
	const ckt_image *image = &l->image;
	for (unsigned i = 0; i < image->modules.modules_len && l->other_model; i++) {
		const ckt_image_module *module = &image->modules.modules_val[i];
		const struct ckt_blob *blob = ckt_blobs_find(&l->worker->blobs, (const uint8_t *)module->hash);
		unsigned d = 0;
		bool has_ptx;
		for (unsigned k = 0; k < image->contexts.contexts_len; k++)
			if (image->contexts.contexts_val[k].id == module->context)
				d = image->contexts.contexts_val[k].device;
		const struct ckt_worker_device *device = d < l->worker->device_count ? &l->worker->devices[d] : NULL;
		if (!blob || !device)
			return refuse(l, -EBADMSG, "the image is damaged: module 0x%llx has no contents or no GPU", (unsigned long long)module->id);
		if (!ckt_binary_fits(blob->data, blob->size, (unsigned)(device->major * 10 + device->minor), &has_ptx))
			return refuse(l, -ENODEV, "module 0x%llx (%.200s) %s, and this GPU is %s (%d.%d): restore it on a GPU of the model it ran on",
				      (unsigned long long)module->id, name_of(image, module->id),
				      has_ptx ? "has PTX for newer GPUs only" : "has machine code for other GPUs only, and no PTX", device->name, device->major,
				      device->minor);
	}
	return 0;
}

/* ---- Contexts and modules, by the journal */

static const ckt_image_module *find_module(const ckt_image *image, uint64_t id)
{
	for (unsigned i = 0; i < image->modules.modules_len; i++)
		if (image->modules.modules_val[i].id == id)
			return &image->modules.modules_val[i];
	return NULL;
}

static int fail(struct loading *l, CUresult result, const char *what, uint64_t id)
{
	const char *name = NULL;
	ckt_driver.cuGetErrorName(result, &name);
	return refuse(l, -EIO, "%s 0x%llx could not be made again: %s (%d)", what, (unsigned long long)id, name ? name : "CUDA error", result);
}

static int replay_load(struct loading *l, const ckt_image_journal *entry)
{
	struct ckt_worker *worker = l->worker;
	const ckt_image_module *live = find_module(&l->image, entry->id);
	uint32_t count = live ? live->option_keys.option_keys_len : 0;
	uint64_t values[CKT_IMAGE_OPTIONS];
	struct ckt_object *object;
	if (live && memcmp(live->hash, entry->hash, sizeof live->hash))
		return refuse(l, -EBADMSG, "the image is damaged: module 0x%llx is another in its journal", (unsigned long long)entry->id);
	for (uint32_t i = 0; i < count; i++)
		values[i] = live->option_values.option_values_val[i];
	CUresult result = ckt_worker_use_context(worker, entry->context);
	if (!result)
		result = ckt_module_load(worker, entry->id, (const uint8_t *)entry->hash, live ? live->option_keys.option_keys_val : NULL, values, count, &object);
	/* A dead one is loaded for the history of addresses alone, and that is another here. */
	if (result && !live && l->other_model)
		return 0;
	return result ? fail(l, result, "module", entry->id) : 0;
}

/* For tests: something else takes the place of the next variables. */
static void take_place(struct loading *l)
{
	static const char ptx[] = ".version 6.4\n.target sm_70\n.address_size 64\n.visible .global .align 8 .b8 place[65536];\n";
	CUmodule module;
	struct ckt_object *primary;
	if (!ckt_fault_fails(CKT_FAULT_RESTORE_MOVED) || ckt_context_primary(l->worker, 0, &primary) || ckt_worker_use_context(l->worker, primary->id))
		return;
	if (ckt_driver.cuModuleLoadDataEx(&module, ptx, 0, NULL, NULL))
		ckt_warning("told to fail, and could not");
}

static int replay_array(struct loading *l, uint64_t id)
{
	for (unsigned i = 0; i < l->image.arrays.arrays_len; i++) {
		const ckt_image_array *saved = &l->image.arrays.arrays_val[i];
		if (saved->id != id)
			continue;
		CUresult result = ckt_array_load(l->worker, saved);
		return result ? fail(l, result, "array", id) : 0;
	}
	return refuse(l, -EBADMSG, "the image is damaged: its journal names an array that it does not describe");
}

static int replay_journal(struct loading *l)
{
	struct ckt_worker *worker = l->worker;
	ckt_image_journal part;
	int first = ckt_preload_replayed(&l->image, &part);
	if (first < 0)
		return refuse(l, first, "the session's modules have another past than what was pre-loaded");
	if (!ckt_preload_active())
		take_place(l);
	for (unsigned i = (unsigned)first; i < l->image.journal.journal_len; i++) {
		const ckt_image_journal *entry = i == (unsigned)first ? &part : &l->image.journal.journal_val[i];
		struct ckt_object *object = ckt_objects_find(&worker->objects, entry->id);
		int error = 0;
		CUresult result;
		switch (entry->kind) {
		case CKT_JOURNAL_MODULE_LOAD:
			error = replay_load(l, entry);
			break;
		case CKT_JOURNAL_MODULE_UNLOAD:
			if (object && ckt_handle_kind(object->id) == CKT_KIND_MODULE)
				ckt_module_unload(worker, object);
			break;
		case CKT_JOURNAL_CONTEXT_CREATE:
			result = ckt_context_create(worker, entry->id, entry->flags, entry->device, &object);
			if (result)
				error = fail(l, result, "context", entry->id);
			break;
		case CKT_JOURNAL_PRIMARY:
			if (entry->device >= worker->device_count)
				error = refuse(l, -EBADMSG, "the image is damaged: its journal has a context of GPU %u", entry->device);
			else if ((result = ckt_context_primary(worker, entry->device, &object)))
				error = fail(l, result, "the primary context of GPU", entry->device);
			else
				error = check_memory(l, entry->device);
			break;
		case CKT_JOURNAL_CONTEXT_DESTROY:
			if (object && ckt_handle_kind(object->id) == CKT_KIND_CONTEXT && !object->ctx.primary)
				ckt_context_destroy(worker, object);
			break;
		case CKT_JOURNAL_DIGEST:
			if (entry->device < worker->device_count)
				ckt_digest_load(worker, entry->device);
			break;
		case CKT_JOURNAL_LIMIT:
			result = ckt_worker_use_context(worker, entry->context);
			if (!result)
				result = ckt_driver.cuCtxSetLimit((CUlimit)entry->flags, entry->id);
			if (result && !l->other_model)
				error = fail(l, result, "a limit of context", entry->context);
			break;
		case CKT_JOURNAL_STREAMS:
		case CKT_JOURNAL_EVENTS:
			result = ckt_worker_use_context(worker, entry->context);
			if (!result)
				result = ckt_journal_make_ahead(worker, &(struct ckt_journal_entry){.kind = entry->kind, .id = entry->id, .flags = entry->flags,
												     .device = entry->device});
			if (result)
				error = fail(l, result, "streams or events of context", entry->context);
			break;
		case CKT_JOURNAL_ARRAY_CREATE:
			error = replay_array(l, entry->id);
			break;
		case CKT_JOURNAL_ARRAY_DESTROY:
			if (object && (ckt_handle_kind(object->id) == CKT_KIND_ARRAY || ckt_handle_kind(object->id) == CKT_KIND_MIPMAP) &&
			    !ckt_worker_use_context(worker, object->context))
				ckt_array_destroy(worker, object);
			break;
		default:
			error = refuse(l, -EPROTONOSUPPORT, "the image holds a journal entry (%u) that this Cricket does not know", entry->kind);
		}
		if (error)
			return error;
	}
	return 0;
}

static int load_contexts(struct loading *l)
{
	struct ckt_worker *worker = l->worker;
	for (unsigned i = 0; i < l->image.contexts.contexts_len; i++) {
		const ckt_image_context *saved = &l->image.contexts.contexts_val[i];
		struct ckt_object *object;
		CUresult result = saved->primary ? ckt_context_primary(worker, saved->device, &object) : CUDA_SUCCESS;
		if (!result)
			result = ckt_worker_use_context(worker, saved->id);
		if (result)
			return fail(l, result, "context", saved->id);
		for (unsigned k = 0; k < saved->limits.limits_len; k++) {
			size_t now;
			CUlimit limit = (CUlimit)saved->limits.limits_val[k].limit;
			if (ckt_driver.cuCtxGetLimit(&now, limit) == CUDA_SUCCESS && now != saved->limits.limits_val[k].value &&
			    (result = ckt_driver.cuCtxSetLimit(limit, saved->limits.limits_val[k].value)) && !l->other_model)
				return fail(l, result, "a limit of context", saved->id);
		}
		if (saved->cache_config && ckt_driver.cuCtxSetCacheConfig)
			ckt_driver.cuCtxSetCacheConfig((CUfunc_cache)saved->cache_config);
	}
	return 0;
}

/* Programs hold the addresses of a module's variables anywhere, so a variable must lie where it lay, or nobody must know. */
static int check_globals(struct loading *l)
{
	return ckt_moved_find(&l->moved, l->worker, &l->image, l->message, l->message_size);
}

static int load_functions(struct loading *l)
{
	for (unsigned i = 0; i < l->image.functions.functions_len; i++) {
		const ckt_image_function *saved = &l->image.functions.functions_val[i];
		struct ckt_object *module = ckt_objects_find_kind(&l->worker->objects, saved->module, CKT_KIND_MODULE), *object;
		if (!module)
			return refuse(l, -EBADMSG, "the image is damaged: function %.256s has no module", saved->name);
		ckt_worker_use_context(l->worker, module->context);
		CUresult result = ckt_function_get(l->worker, module, saved->id, saved->name, &object);
		for (unsigned k = 0; k < saved->attributes.attributes_len && !result; k++)
			result = ckt_function_set(object, saved->attributes.attributes_val[k].attribute, saved->attributes.attributes_val[k].value);
		if (!result && saved->cache_config_set) {
			object->function.cache_config_set = true;
			object->function.cache_config = saved->cache_config;
			result = ckt_driver.cuFuncSetCacheConfig(object->real, (CUfunc_cache)saved->cache_config);
		}
		if (result)
			return fail(l, result, "function", saved->id);
	}
	return 0;
}

/* ---- Streams and events */

static int load_streams(struct loading *l)
{
	for (unsigned i = 0; i < l->image.streams.streams_len; i++) {
		const ckt_image_stream *saved = &l->image.streams.streams_val[i];
		CUresult result = ckt_worker_use_context(l->worker, saved->context);
		if (!result)
			result = ckt_stream_make(l->worker, saved->id, saved->flags, saved->priority);
		if (result)
			return fail(l, result, "stream", saved->id);
	}
	return 0;
}

/* An event that was recorded had happened: it is recorded again behind nothing. */
static int load_events(struct loading *l)
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
			result = ckt_driver.cuEventRecord(object->real, worker->current->ctx.fences->helper);
			if (!result)
				result = ckt_driver.cuEventSynchronize(object->real);
			object->event.recorded = true;
			object->event.from_image = saved->timed;
			object->event.image_ms = saved->milliseconds;
			if (saved->timed && saved->milliseconds > last)
				last = saved->milliseconds;
		}
		if (result)
			return fail(l, result, "event", saved->id);
	}
	struct ckt_object *primary;
	if (ckt_context_primary(worker, 0, &primary) || ckt_worker_use_context(worker, primary->id) ||
	    ckt_driver.cuEventCreate(&worker->time_base, CU_EVENT_DEFAULT) ||
	    ckt_driver.cuEventRecord(worker->time_base, primary->ctx.fences->helper) || ckt_driver.cuEventSynchronize(worker->time_base))
		return refuse(l, -EIO, "the driver records no events");
	worker->image_base_ms = last;
	return 0;
}

/* ---- Memory */

static int map_memory(struct loading *l)
{
	struct ckt_worker *worker = l->worker;
	for (unsigned d = 0; d < worker->device_count; d++) {
		const ckt_image_device *saved = &l->image.devices.devices_val[d];
		struct ckt_memory *memory = &worker->devices[d].memory;
		for (unsigned i = 0; i < saved->extents.extents_len; i++) {
			const ckt_image_extent *e = &saved->extents.extents_val[i];
			CUresult result = ckt_memory_adopt_extent(memory, e->address, e->size, (enum ckt_extent_use)e->use);
			if (result)
				return fail(l, result, "memory at", e->address);
		}
		for (unsigned i = 0; i < saved->blocks.blocks_len; i++) {
			const ckt_image_block *b = &saved->blocks.blocks_val[i];
			CUresult result = ckt_memory_adopt_block(memory, b->address, b->size, b->owner);
			if (result)
				return fail(l, result, "the allocation at", b->address);
		}
	}
	return 0;
}

/* A GPU that reached another's memory must do so where the session goes on, or its kernels would fault. */
static int map_for_peers(struct loading *l)
{
	struct ckt_worker *worker = l->worker;
	for (unsigned i = 0; i < l->image.peer_accesses.peer_accesses_len; i++) {
		const ckt_image_peer_access *p = &l->image.peer_accesses.peer_accesses_val[i];
		uint64_t size = 0;
		for (unsigned k = 0; k < l->image.mappings.mappings_len && !size; k++)
			if (l->image.mappings.mappings_val[k].address == p->address)
				size = l->image.mappings.mappings_val[k].size;
		for (unsigned d = 0; d < CKT_DEVICES_MAX; d++) {
			if (!((p->readers | p->writers) >> d & 1))
				continue;
			CUresult result = ckt_vmm_set_peer_access(worker, p->address, size, d, p->writers >> d & 1 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE :
														      CU_MEM_ACCESS_FLAGS_PROT_READ);
			if (result)
				return fail(l, result, "a GPU's access to another's memory at", p->address);
		}
	}
	return 0;
}

static int map_physicals(struct loading *l)
{
	struct ckt_worker *worker = l->worker;
	const ckt_image *image = &l->image;
	uint64_t address;
	for (unsigned i = 0; i < image->reservations.reservations_len; i++) {
		const ckt_image_reservation *r = &image->reservations.reservations_val[i];
		CUresult result = ckt_vmm_reserve(worker, 0, r->size, 0, r->address, &address);
		if (result || address != r->address)
			return fail(l, result ? result : CUDA_ERROR_OUT_OF_MEMORY, "the reservation at", r->address);
	}
	for (unsigned i = 0; i < image->physicals.physicals_len; i++) {
		const ckt_image_physical *p = &image->physicals.physicals_val[i];
		CUresult result = ckt_vmm_physical_make(worker, p->id, p->device, p->size);
		if (!result && p->contents_only) {
			result = ckt_vmm_reserve(worker, p->device, p->size, 0, p->contents, &address);
			if (!result && address != p->contents)
				result = CUDA_ERROR_OUT_OF_MEMORY;
			if (!result)
				result = ckt_vmm_map(worker, address, p->size, 0, p->id);
			if (!result)
				result = ckt_vmm_set_access(worker, address, p->size, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
		}
		if (result)
			return fail(l, result, "physical memory", p->id);
	}
	for (unsigned i = 0; i < image->mappings.mappings_len; i++) {
		const ckt_image_mapping *m = &image->mappings.mappings_val[i];
		CUresult result = ckt_vmm_map(worker, m->address, m->size, m->offset, m->physical);
		if (!result && m->access)
			result = ckt_vmm_set_access(worker, m->address, m->size, m->access);
		if (result)
			return fail(l, result, "the mapping at", m->address);
	}
	return map_for_peers(l);
}

/* What was mapped for the contents alone goes again. */
static int unmap_contents(struct loading *l)
{
	for (unsigned i = 0; i < l->image.physicals.physicals_len; i++) {
		const ckt_image_physical *p = &l->image.physicals.physicals_val[i];
		CUresult result = p->contents_only ? ckt_vmm_unmap(l->worker, p->contents, p->size) : CUDA_SUCCESS;
		if (!result && p->contents_only)
			result = ckt_vmm_free(l->worker, p->contents, p->size);
		if (result)
			return fail(l, result, "physical memory", p->id);
	}
	return 0;
}

static CUresult clear(uint64_t address, uint64_t size)
{
	return ckt_driver.cuMemsetD8_v2(address, 0, size);
}

/*
 * Chunks of zeros are not in the image, and what lies in fresh memory and fresh variables is not the program's.  A fill is over only when
 * its own context has been waited for: what is read afterwards goes by other streams.
 */
static int clear_memory(struct loading *l)
{
	struct ckt_worker *worker = l->worker;
	CUresult result = CUDA_SUCCESS;
	for (unsigned d = 0; d < worker->device_count && !result; d++) {
		const ckt_image_device *saved = &l->image.devices.devices_val[d];
		unsigned extents = l->skip ? 0 : saved->extents.extents_len;
		if (!bytes_on(&l->image, d))
			continue;
		result = ckt_worker_use_context(worker, ckt_handle_primary(d));
		for (unsigned i = 0; i < extents && !result; i++)
			result = clear(saved->extents.extents_val[i].address, saved->extents.extents_val[i].size);
		for (unsigned i = 0; i < l->image.physicals.physicals_len && !result; i++)
			if (l->image.physicals.physicals_val[i].device == d)
				result = clear(l->image.physicals.physicals_val[i].contents, l->image.physicals.physicals_val[i].size);
		if (!result)
			result = ckt_driver.cuCtxSynchronize();
	}
	for (unsigned m = 0; m < l->image.modules.modules_len && !result; m++) {
		const ckt_image_module *module = &l->image.modules.modules_val[m];
		if (!module->globals.globals_len)
			continue;
		result = ckt_worker_use_context(worker, module->context);
		for (unsigned i = 0; i < module->globals.globals_len && !result; i++)
			result = clear(module->globals.globals_val[i].address, module->globals.globals_val[i].size);
		if (!result)
			result = ckt_driver.cuCtxSynchronize();
	}
	return result ? refuse(l, -EIO, "clearing the GPU's memory: CUDA error %d", result) : 0;
}

static bool inside(const ckt_image_chunk *chunk, uint64_t address, uint64_t size)
{
	return chunk->address >= address && chunk->address - address <= size && size - (chunk->address - address) >= chunk->size;
}

/* Device memory of the image: its extents and variables.  A chunk elsewhere would be somebody else's memory. */
static bool chunk_device(const struct loading *l, const ckt_image_chunk *chunk, unsigned *ret_device)
{
	const ckt_image *image = &l->image;
	uint64_t offset = chunk->address - image->window_base;
	if (chunk->address >= image->window_base && offset < image->window_bytes) {
		unsigned d = (unsigned)(offset / image->slice_bytes);
		if (d >= image->devices.devices_len)
			return false;
		const ckt_image_device *device = &image->devices.devices_val[d];
		for (unsigned i = 0; i < device->extents.extents_len; i++) {
			const ckt_image_extent *e = &device->extents.extents_val[i];
			if (inside(chunk, e->address, e->size)) {
				*ret_device = d;
				return true;
			}
		}
		for (unsigned i = 0; i < image->physicals.physicals_len; i++) {
			const ckt_image_physical *p = &image->physicals.physicals_val[i];
			if (inside(chunk, p->contents, p->size)) {
				*ret_device = p->device;
				return true;
			}
		}
		return false;
	}
	for (unsigned m = 0; m < image->modules.modules_len; m++) {
		const ckt_image_module *module = &image->modules.modules_val[m];
		for (unsigned i = 0; i < module->globals.globals_len; i++) {
			const ckt_image_global *g = &module->globals.globals_val[i];
			if (inside(chunk, g->address, g->size)) {
				struct ckt_object *context = ckt_objects_find(&l->worker->objects, module->context);
				*ret_device = context ? context->ctx.device : 0;
				return true;
			}
		}
	}
	return false;
}

/* Waits for what the member has sent to the GPU. */
static CUresult sent(struct ckt_crew_member *member, int device)
{
	return device < 0 ? CUDA_SUCCESS : ckt_driver.cuStreamSynchronize(ckt_crew_stream(member, (unsigned)device));
}

/* The GPU verifies it when all have arrived. */
static bool gpu_verifies(const struct loading *l, const ckt_image_chunk *chunk, unsigned device)
{
	return l->image.hash_kind == CKT_IMAGE_BLAKE3 && chunk->address - l->image.window_base < l->image.window_bytes &&
	       ckt_digest_takes(device, chunk->address, chunk->size);
}

static int verify_on(struct loading *l, unsigned device, struct ckt_hash_item *items, struct ckt_digest *digests, const ckt_image_chunk **chunks)
{
	size_t n = 0;
	for (unsigned i = 0; i < l->image.chunks.chunks_len; i++) {
		const ckt_image_chunk *chunk = &l->image.chunks.chunks_val[i];
		unsigned on;
		if (chunk->space || (l->skip && l->skip[i]) || !chunk_device(l, chunk, &on) || on != device || !gpu_verifies(l, chunk, device))
			continue;
		items[n] = (struct ckt_hash_item){chunk->address, chunk->size};
		chunks[n++] = chunk;
	}
	CUresult result = ckt_digest_run(l->worker, device, ckt_crew_first_stream(device), items, n, digests);
	if (result)
		return refuse(l, -EIO, "verifying the GPU's memory: CUDA error %d", result);
	for (size_t i = 0; i < n; i++)
		if (memcmp(digests[i].sum, chunks[i]->hash, sizeof digests[i].sum))
			return refuse(l, -EBADMSG, "the image is damaged: contents of the GPU's memory at 0x%llx", (unsigned long long)chunks[i]->address);
	return 0;
}

static int verify_memory(struct loading *l)
{
	size_t count = l->image.chunks.chunks_len;
	struct ckt_hash_item *items = calloc(count + 1, sizeof *items);
	struct ckt_digest *digests = calloc(count + 1, sizeof *digests);
	const ckt_image_chunk **chunks = calloc(count + 1, sizeof *chunks);
	int error = items && digests && chunks ? 0 : refuse(l, -ENOMEM, "no memory for hashes");
	for (unsigned d = 0; d < l->worker->device_count && !error; d++)
		error = verify_on(l, d, items, digests, chunks);
	free(items);
	free(digests);
	free(chunks);
	return error;
}

static int read_chunk(const struct loading *l, const ckt_image_chunk *chunk, unsigned device, void *ret_data)
{
	if (ckt_fault_fails(CKT_FAULT_RESTORE_CHUNK))
		return -EIO;
	return gpu_verifies(l, chunk, device) ? ckt_image_reader_chunk_unchecked(&l->reader, chunk, ret_data) :
						ckt_image_reader_chunk(&l->reader, chunk, ret_data);
}

/* While one chunk is on its way to the GPU, the next is read and, by the CPU, verified. */
static int read_pieces(struct ckt_crew_member *member, void *opaque)
{
	struct loading *l = opaque;
	unsigned buffer = 0;
	int result = 0, before = -1;
	CUresult error = CUDA_SUCCESS;
	for (size_t i; !result && !error && (i = l->next++) < l->image.chunks.chunks_len;) {
		const ckt_image_chunk *chunk = &l->image.chunks.chunks_val[i];
		unsigned device = 0;
		if (chunk->space || (l->skip && l->skip[i]))
			continue;
		if (!chunk_device(l, chunk, &device))
			result = -EBADMSG;
		else
			result = read_chunk(l, chunk, device, member->buffers[buffer]);
		if (result)
			break;
		error = sent(member, before);
		if (!error)
			error = ckt_crew_use_device(member, device);
		if (!error)
			error = ckt_driver.cuMemcpyHtoDAsync_v2(chunk->address, member->buffers[buffer], chunk->size, ckt_crew_stream(member, device));
		before = error ? -1 : (int)device;
		buffer = !buffer;
		atomic_fetch_add_explicit(&l->worker->progress.done, chunk->size, memory_order_relaxed);
	}
	if (!error)
		error = sent(member, before);
	if (error)
		l->driver_error = (int)error;
	return error ? -EIO : result;
}

static void load_digests(struct loading *l)
{
	for (unsigned d = 0; d < l->worker->device_count; d++)
		if (ckt_digest_pays(bytes_on(&l->image, d)))
			ckt_digest_load(l->worker, d);
}

/* Extents as the image has them, and which chunks are still to be read. */
static int prepare_extents(struct loading *l)
{
	int driver_error = 0;
	l->skip = calloc(l->image.chunks.chunks_len + 1, sizeof *l->skip);
	int error = l->skip ? ckt_preload_memory(l->worker, &l->image, !l->ahead, l->skip, &driver_error) : -ENOMEM;
	if (driver_error)
		return fail(l, (CUresult)driver_error, "the session's memory of", 0);
	uint64_t there = 0, rest = 0;
	for (unsigned i = 0; i < l->image.chunks.chunks_len && !error; i++)
		*(l->skip[i] ? &there : &rest) += l->image.chunks.chunks_val[i].space ? 0 : l->image.chunks.chunks_val[i].size;
	if (!l->ahead && !error)
		ckt_info("restore: %llu bytes are there already, %llu are to be read", (unsigned long long)there, (unsigned long long)rest);
	return error ? refuse(l, error, "the image's memory cannot be pre-loaded: %s", strerror(-error)) : 0;
}

static int read_chunks(struct loading *l)
{
	int64_t begun = ckt_now_ns();
	uint64_t total = 0;
	for (unsigned i = 0; i < l->image.chunks.chunks_len; i++)
		total += l->image.chunks.chunks_val[i].space || (l->skip && l->skip[i]) ? 0 : l->image.chunks.chunks_val[i].size;
	ckt_progress_begin(l->worker, "restore", total);
	int error = ckt_crew_run(read_pieces, l);
	atomic_store(&l->worker->progress.phase, NULL);
	ckt_debug("restore: contents: %.1f ms", (double)(ckt_now_ns() - begun) * 1e-6);
	if (error && l->driver_error)
		return refuse(l, error, "writing the GPU's memory: CUDA error %d", l->driver_error);
	return error ? refuse(l, error, "the image is damaged: contents of the GPU's memory: %s", strerror(-error)) : verify_memory(l);
}

static int preload_memory(struct loading *l)
{
	load_digests(l);
	ckt_crew_prepare();
	ckt_crew_look(l->worker);
	int error = prepare_extents(l);
	return error ? error : read_chunks(l);
}

static int load_memory(struct loading *l)
{
	load_digests(l);
	ckt_crew_prepare();
	ckt_crew_look(l->worker);
	int64_t begun = ckt_now_ns();
	int error = ckt_preload_active() ? prepare_extents(l) : 0;
	if (!error)
		error = map_memory(l);
	if (!error && ckt_fault_fails(CKT_FAULT_RESTORE_MEMORY))
		error = refuse(l, -ENOMEM, "told to find no memory");
	if (!error)
		error = map_physicals(l);
	if (!error)
		error = clear_memory(l);
	if (error)
		return error;
	ckt_debug("restore: mapping: %.1f ms", (double)(ckt_now_ns() - begun) * 1e-6);
	error = read_chunks(l);
	if (!error)
		error = ckt_moved_check(&l->moved, l->worker, &l->image, l->message, l->message_size);
	return error ? error : unmap_contents(l);
}

/* ---- Memory pools */

static int load_pools(struct loading *l)
{
	struct ckt_worker *worker = l->worker;
	for (unsigned i = 0; i < l->image.pools.pools_len; i++) {
		const ckt_image_pool *saved = &l->image.pools.pools_val[i];
		struct ckt_pool *pool = ckt_pool_find(worker, saved->id);
		CUresult result = pool ? CUDA_SUCCESS : ckt_pool_make(worker, saved->id, saved->device, saved->max_bytes);
		if (result)
			return fail(l, result, "memory pool", saved->id);
		pool = ckt_pool_find(worker, saved->id);
		pool->reuse = saved->reuse;
		pool->release_threshold = saved->release_threshold;
		pool->destroyed = saved->destroyed;
		struct ckt_memory *memory = &worker->devices[pool->device].memory;
		for (unsigned k = 0; k < saved->blocks.blocks_len; k++) {
			ckt_memory_assign(memory, saved->blocks.blocks_val[k].address, pool->id);
			if (saved->blocks.blocks_val[k].kept)
				result = ckt_pool_adopt_kept(worker, pool->device, saved->blocks.blocks_val[k].address);
			if (result)
				return fail(l, result, "memory of a pool at", saved->blocks.blocks_val[k].address);
		}
		ckt_memory_account_marks(memory, pool->id, saved->used_high, saved->reserved_high);
	}
	return 0;
}

/* ---- Arrays, textures, surfaces */

static int load_arrays(struct loading *l)
{
	int error = ckt_arrays_load_contents(l->worker, &l->image, &l->reader, l->message, l->message_size);
	return error ? error : ckt_textures_load(l->worker, &l->image, l->message, l->message_size);
}

/* ---- Graphs */

static int load_graphs(struct loading *l)
{
	for (unsigned i = 0; i < l->image.graphs.graphs_len; i++) {
		const ckt_image_graph *saved = &l->image.graphs.graphs_val[i];
		CUresult result = saved->context ? ckt_worker_use_context(l->worker, saved->context) : CUDA_SUCCESS;
		if (!result)
			result = ckt_graph_load(l->worker, saved);
		if (result)
			return fail(l, result, "graph", saved->id);
	}
	return 0;
}

static int load_seen(struct loading *l)
{
	const ckt_image *image = &l->image;
	for (unsigned i = 0; i < image->seen.seen_len; i++) {
		struct ckt_object *module = ckt_objects_find_kind(&l->worker->objects, image->seen.seen_val[i].module, CKT_KIND_MODULE);
		if (!module)
			return refuse(l, -EBADMSG, "the image is damaged: a variable is known of a module that is not there");
		ckt_module_note_seen(module, image->seen.seen_val[i].name);
	}
	/* Before that nobody took note. */
	for (unsigned m = 0; m < image->modules.modules_len && !image->seen_known; m++)
		for (unsigned i = 0; i < image->modules.modules_val[m].globals.globals_len; i++)
			ckt_module_note_seen(ckt_objects_find(&l->worker->objects, image->modules.modules_val[m].id),
					     image->modules.modules_val[m].globals.globals_val[i].name);
	return 0;
}

/* ---- Where the command stream stands */

static void load_identity(struct loading *l)
{
	struct ckt_worker *worker = l->worker;
	ckt_image *image = &l->image;
	snprintf(worker->session, sizeof worker->session, "%s", image->session);
	memcpy(worker->secret_hash, image->secret_hash, sizeof worker->secret_hash);
	worker->has_owner = true;
	/* A client that has seen this one refuses any older copy. */
	worker->generation = image->generation + 1;
	snprintf(worker->program_name, sizeof worker->program_name, "%s", image->program_name);
	snprintf(worker->client, sizeof worker->client, "%s", image->client);
	worker->client_pid = image->client_pid;
	worker->uid = image->uid;
	worker->started = image->started;
	atomic_store(&worker->replies.executed, image->executed);
	worker->replies.acked = image->acked;
	atomic_store(&worker->deferred, image->deferred);
	for (unsigned i = 0; i < image->replies.replies_len; i++) {
		ckt_image_reply *reply = &image->replies.replies_val[i];
		ckt_replies_expect(&worker->replies, reply->seq, reply->proc, 0, 0);
		uint8_t *body = malloc(reply->body.body_len + 1);
		if (!body)
			abort();
		memcpy(body, reply->body.body_val, reply->body.body_len);
		pthread_mutex_lock(&worker->replies.lock);
		ckt_replies_store(&worker->replies, ckt_replies_find(&worker->replies, reply->seq), body, reply->body.body_len, reply->deferred,
				  reply->accept_stat);
		pthread_mutex_unlock(&worker->replies.lock);
	}
}

/* The directories of the chain, or the open files of an image in memory. */
static int open_image(struct loading *l, const int *dirs, unsigned dir_count)
{
	const struct ckt_worker *worker = l->worker;
	if (!worker->memory_count) {
		int error = ckt_image_read(dirs[0], &l->image, l->message, l->message_size);
		return error ? error : ckt_image_reader_init(&l->reader, &l->image, dirs, dir_count, l->message, l->message_size);
	}
	int error = ckt_image_read_open(worker->memory_fds, worker->memory_count, &l->image, l->message, l->message_size);
	return error ? error : ckt_image_reader_init_open(&l->reader, &l->image, worker->memory_fds, worker->memory_count, l->message, l->message_size);
}

static void close_image(struct loading *l)
{
	struct ckt_worker *worker = l->worker;
	ckt_image_reader_fini(&l->reader);
	while (worker->image_count)
		if (worker->image_dirs[--worker->image_count] >= 0)
			close(worker->image_dirs[worker->image_count]);
	ckt_memory_files_close(worker);
	ckt_moved_fini(&l->moved);
	free(l->skip);
}

int ckt_worker_preload(struct ckt_worker *worker, int dir_fd, const ckt_worker_start_args *args, char *ret_message, size_t message_size)
{
	struct loading l = {.worker = worker, .message = ret_message, .message_size = message_size, .ahead = true};
	const int *dirs = worker->image_count ? worker->image_dirs : &dir_fd;
	int error = open_image(&l, dirs, worker->image_count ? worker->image_count : 1);
	if (error)
		return error;
	static int (*const steps[])(struct loading *) = {load_blobs, check_code, replay_journal, preload_memory};
	error = check(&l, args);
	for (size_t i = 0; i < sizeof steps / sizeof *steps && !error; i++)
		error = steps[i](&l);
	if (!error)
		error = told_to_fail(&l, CKT_FAULT_PRELOADED);
	if (!error)
		ckt_preload_done(&l.image);
	close_image(&l);
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&l.image);
	return error;
}

int ckt_worker_load(struct ckt_worker *worker, int dir_fd, const ckt_worker_start_args *args, char *ret_message, size_t message_size)
{
	struct loading l = {.worker = worker, .message = ret_message, .message_size = message_size};
	const int *dirs = worker->image_count ? worker->image_dirs : &dir_fd;
	unsigned dir_count = worker->image_count ? worker->image_count : 1;
	int error = open_image(&l, dirs, dir_count);
	if (error)
		return error;
	static const struct {
		int (*load)(struct loading *);
		const char *what;
	} steps[] = {{load_blobs, "module contents"}, {check_code, "code"},	    {replay_journal, "modules"}, {load_contexts, "contexts"},
		     {check_globals, "variables"},    {load_functions, "functions"}, {load_streams, "streams"},	 {load_events, "events"},
		     {load_memory, "memory"},	      {load_pools, "pools"},	    {load_arrays, "arrays"},	 {load_graphs, "graphs"},	 {load_seen, "addresses"}};
	error = check(&l, args);
	if (!error)
		error = told_to_fail(&l, CKT_FAULT_RESTORE_CHECKED);
	for (size_t i = 0; i < sizeof steps / sizeof *steps && !error; i++) {
		int64_t begun = ckt_now_ns();
		if (steps[i].load == load_memory)
			error = told_to_fail(&l, CKT_FAULT_RESTORE_OBJECTS);
		if (!error)
			error = steps[i].load(&l);
		ckt_debug("restore: %s: %.1f ms", steps[i].what, (double)(ckt_now_ns() - begun) * 1e-6);
	}
	ckt_journal_ahead_fini(worker);
	if (!error)
		error = told_to_fail(&l, CKT_FAULT_RESTORE_LOADED);
	if (!error) {
		load_identity(&l);
		struct ckt_object *primary;
		if (ckt_context_primary(worker, 0, &primary) == CUDA_SUCCESS)
			ckt_worker_use_context(worker, primary->id);
		ckt_info("session %s restored as generation %llu", worker->session, (unsigned long long)worker->generation);
	}
	close_image(&l);
	ckt_preload_fini();
	if (!error && l.image.chain)
		ckt_chain_adopt(worker, &l.image);
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&l.image);
	return error;
}
