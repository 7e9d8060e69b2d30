/* Arrays, textures and surfaces in an image; see array_image.h. */
#include "server/worker/objects/array_image.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/worker/driver.h"
#include "checkpoint/load/preload.h"

/* ---- Tables */

static void save_desc(const CUDA_ARRAY3D_DESCRIPTOR *desc, uint32_t levels, ckt_image_array *ret)
{
	ret->levels = levels;
	ret->width = desc->Width;
	ret->height = desc->Height;
	ret->depth = desc->Depth;
	ret->format = desc->Format;
	ret->channels = desc->NumChannels;
	ret->flags = desc->Flags;
}

static CUDA_ARRAY3D_DESCRIPTOR desc_of(const ckt_image_array *saved)
{
	return (CUDA_ARRAY3D_DESCRIPTOR){.Width = saved->width,
		.Height = saved->height,
		.Depth = saved->depth,
		.Format = (CUarray_format)saved->format,
		.NumChannels = saved->channels,
		.Flags = saved->flags};
}

void ckt_array_save(const struct ckt_object *object, ckt_image_array *ret_saved)
{
	*ret_saved = (ckt_image_array){.id = object->id, .context = object->context, .live = true};
	save_desc(&object->array->desc, object->array->levels, ret_saved);
}

void ckt_array_save_dead(const struct ckt_journal_entry *entry, ckt_image_array *ret_saved)
{
	*ret_saved = (ckt_image_array){.id = entry->id, .context = entry->context};
	save_desc(&entry->desc, entry->flags, ret_saved);
}

static int save_bytes(const void *data, u_int size, u_int *ret_len, char **ret_val)
{
	*ret_val = malloc(size + 1);
	if (!*ret_val)
		return -ENOMEM;
	memcpy(*ret_val, data, size);
	*ret_len = size;
	return 0;
}

int ckt_texture_save(const struct ckt_object *object, ckt_image_texture *ret_saved)
{
	const struct ckt_wtexture *t = object->texture;
	*ret_saved = (ckt_image_texture){.id = object->id,
		.context = object->context,
		.surface = ckt_handle_kind(object->id) == CKT_KIND_SURFACE,
		.handle = t->handle,
		.type = t->type,
		.array = t->array,
		.level = t->level,
		.address = t->address,
		.width = t->width,
		.height = t->height,
		.pitch = t->pitch,
		.format = t->format,
		.channels = t->channels,
		.flags = t->flags};
	int error = save_bytes(
		&t->desc, sizeof t->desc, &ret_saved->desc.desc_len, &ret_saved->desc.desc_val);
	return error ? error
		     : save_bytes(&t->view, t->has_view ? sizeof t->view : 0,
			       &ret_saved->view.view_len, &ret_saved->view.view_val);
}

CUresult ckt_array_load(struct ckt_worker *worker, const ckt_image_array *saved)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = desc_of(saved);
	struct ckt_object *object;
	CUresult result = ckt_worker_use_context(worker, saved->context);
	return result ? result : ckt_array_make(worker, saved->id, &desc, saved->levels, &object);
}

uint64_t ckt_array_image_bytes(const ckt_image_array *saved)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = desc_of(saved);
	return ckt_array_total_bytes(&desc, saved->levels);
}

uint64_t ckt_arrays_bytes_on(const ckt_image *image, unsigned device)
{
	uint64_t bytes = 0;
	for (unsigned i = 0; i < image->arrays.arrays_len; i++) {
		const ckt_image_array *saved = &image->arrays.arrays_val[i];
		CUDA_ARRAY3D_DESCRIPTOR desc = desc_of(saved);
		for (unsigned c = 0; saved->live && c < image->contexts.contexts_len; c++)
			if (image->contexts.contexts_val[c].id == saved->context &&
				image->contexts.contexts_val[c].device == device)
				bytes += ckt_array_total_bytes(&desc, saved->levels);
	}
	return bytes;
}

/* ---- Contents */

static int by_space(const void *a, const void *b)
{
	const ckt_image_chunk *x = *(ckt_image_chunk *const *)a, *y = *(ckt_image_chunk *const *)b;
	return x->space < y->space ? -1 : x->space > y->space;
}

/* The chunks of one array. */
struct contents {
	const struct ckt_image_reader *reader;
	ckt_image_chunk *const *chunks;
	size_t count;
	const bool *skip; /* by the chunk's number in the image */
};

/* The journal, not the list, has made the object: hostile ones may differ. */
static bool fits(const struct ckt_object *object, uint64_t address, uint64_t size)
{
	return address <= object->array->bytes && size <= object->array->bytes - address;
}

/* Chunks of zeros are not in the image. */
static int load_all(struct ckt_object *object, const struct contents *c, CUresult *ret_result)
{
	uint8_t *data = calloc(object->array->bytes, 1);
	int error = data ? 0 : -ENOMEM;
	for (size_t i = 0; i < c->count && !error; i++)
		error = fits(object, c->chunks[i]->address, c->chunks[i]->size)
			? ckt_image_reader_chunk(
				  c->reader, c->chunks[i], data + c->chunks[i]->address)
			: -EBADMSG;
	if (!error)
		*ret_result = ckt_array_write(object, data);
	free(data);
	return error;
}

/* Of an array that was taken ahead: what has changed since. */
static int load_changed(struct ckt_object *object, const struct contents *c, CUresult *ret_result)
{
	uint8_t *data = malloc(CKT_IMAGE_CHUNK);
	int error = data ? 0 : -ENOMEM;
	CUresult result = CUDA_SUCCESS;
	uint64_t at = 0;
	for (size_t i = 0; i < c->count && !error && !result; i++) {
		const ckt_image_chunk *chunk = c->chunks[i];
		if (c->skip[chunk - c->reader->image->chunks.chunks_val])
			continue;
		error = fits(object, chunk->address, chunk->size)
			? ckt_image_reader_chunk(c->reader, chunk, data)
			: -EBADMSG;
		if (!error)
			result = ckt_array_move_piece(object, chunk->address, chunk->size,
				CKT_ARRAY_FROM_HOST, (uintptr_t)data, NULL);
	}
	if (data)
		memset(data, 0, CKT_IMAGE_CHUNK);
	for (uint32_t size; !error && !result && ckt_preload_next_clear(object->id, &at, &size);
		at += size)
		result = fits(object, at, size)
			? ckt_array_move_piece(
				  object, at, size, CKT_ARRAY_FROM_HOST, (uintptr_t)data, NULL)
			: CUDA_ERROR_INVALID_VALUE;
	CUresult waited = ckt_driver.cuStreamSynchronize(NULL);
	free(data);
	*ret_result = result ? result : waited;
	return error;
}

static int load_contents(struct ckt_worker *worker, const ckt_image_array *saved,
	const struct contents *c, char *ret_message, size_t message_size)
{
	struct ckt_object *object = ckt_objects_find(&worker->objects, saved->id);
	CUresult result = object ? ckt_worker_use_context(worker, saved->context)
				 : ckt_array_load(worker, saved);
	int error = 0;
	if (!result && !object)
		object = ckt_objects_find(&worker->objects, saved->id);
	if (!result &&
		ckt_handle_kind(object->id) != (saved->levels ? CKT_KIND_MIPMAP : CKT_KIND_ARRAY))
		result = CUDA_ERROR_INVALID_HANDLE;
	if (!result)
		error = c->skip && ckt_preload_knows(saved->id) ? load_changed(object, c, &result)
								: load_all(object, c, &result);
	if (error)
		snprintf(ret_message, message_size, "the image is damaged: an array's contents: %s",
			strerror(-error));
	else if (result)
		snprintf(ret_message, message_size,
			"array 0x%llx could not be made again: CUDA error %d",
			(unsigned long long)saved->id, result);
	return result ? -EIO : error;
}

int ckt_arrays_load_contents(struct ckt_worker *worker, const ckt_image *image,
	const struct ckt_image_reader *reader, const bool *skip, char *ret_message,
	size_t message_size)
{
	size_t count = 0, at = 0;
	int error = 0;
	ckt_image_chunk **chunks =
		malloc((image->chunks.chunks_len + 1) * sizeof(ckt_image_chunk *));
	if (!chunks)
		return -ENOMEM;
	for (unsigned i = 0; i < image->chunks.chunks_len; i++)
		if (image->chunks.chunks_val[i].space > image->blobs.blobs_len)
			chunks[count++] = &image->chunks.chunks_val[i];
	qsort(chunks, count, sizeof *chunks, by_space);
	for (unsigned i = 0; i < image->arrays.arrays_len && !error; i++) {
		size_t first = at;
		while (at < count && chunks[at]->space == image->blobs.blobs_len + 1 + i)
			at++;
		struct contents c = {.reader = reader,
			.chunks = chunks + first,
			.count = at - first,
			.skip = skip};
		if (image->arrays.arrays_val[i].live)
			error = load_contents(worker, &image->arrays.arrays_val[i], &c, ret_message,
				message_size);
	}
	free(chunks);
	return error;
}

/* ---- Handles */

enum { STAND_INS_MAX = 65536 };

struct stand_in {
	uint64_t context, handle;
	bool surface;
};

struct making {
	struct ckt_worker *worker;
	struct stand_in *held;
	size_t count;
	uint64_t spare_context;
	CUarray spare; /* of that context, for what has nothing of its own any more */
};

/* An object without a resource, its own being gone: it keeps its handle's place. */
static CUresult make_empty(struct making *m, bool surface, uint64_t *ret_handle)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = 32,
		.Format = CU_AD_FORMAT_UNSIGNED_INT8,
		.NumChannels = 1,
		.Flags = CUDA_ARRAY3D_SURFACE_LDST};
	CUresult result = CUDA_SUCCESS;
	if (!m->spare || m->spare_context != m->worker->current->id)
		result = ckt_driver.cuArray3DCreate_v2(&m->spare, &desc);
	if (result)
		return result;
	m->spare_context = m->worker->current->id;
	CUDA_RESOURCE_DESC resource = {
		.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = m->spare};
	CUDA_TEXTURE_DESC texture = {.flags = CU_TRSF_READ_AS_INTEGER};
	CUtexObject handle = 0;
	result = surface ? ckt_driver.cuSurfObjectCreate(&handle, &resource)
			 : ckt_driver.cuTexObjectCreate(&handle, &resource, &texture, NULL);
	*ret_handle = handle;
	return result;
}

/* A program may free what a texture reads before the texture. */
static bool may_be_gone(struct ckt_worker *worker, const struct ckt_wtexture *t)
{
	if (t->type == CU_RESOURCE_TYPE_LINEAR || t->type == CU_RESOURCE_TYPE_PITCH2D)
		return true;
	return !ckt_objects_find(&worker->objects, t->array);
}

static CUresult make_once(
	struct making *m, bool surface, const struct ckt_wtexture *t, uint64_t *ret_handle)
{
	CUresult result = ckt_texture_real_make(m->worker, surface, t, ret_handle);
	return result && may_be_gone(m->worker, t) ? make_empty(m, surface, ret_handle) : result;
}

static int load_texture(
	struct making *m, const ckt_image_texture *saved, char *ret_message, size_t message_size)
{
	struct ckt_wtexture t = {.handle = saved->handle,
		.type = saved->type,
		.array = saved->array,
		.level = saved->level,
		.address = saved->address,
		.width = saved->width,
		.height = saved->height,
		.pitch = saved->pitch,
		.format = saved->format,
		.channels = saved->channels,
		.flags = saved->flags,
		.has_view = saved->view.view_len != 0};
	struct ckt_object *object;
	uint64_t handle = 0;
	if (saved->desc.desc_len != sizeof t.desc ||
		(saved->view.view_len && saved->view.view_len != sizeof t.view)) {
		snprintf(
			ret_message, message_size, "the image is damaged: a texture's description");
		return -EBADMSG;
	}
	memcpy(&t.desc, saved->desc.desc_val, sizeof t.desc);
	if (t.has_view)
		memcpy(&t.view, saved->view.view_val, sizeof t.view);
	CUresult result = ckt_worker_use_context(m->worker, saved->context);
	while (!result && !(result = make_once(m, saved->surface, &t, &handle)) &&
		handle != t.handle) {
		if (m->count < STAND_INS_MAX) {
			m->held[m->count++] =
				(struct stand_in){m->worker->current->id, handle, saved->surface};
			continue;
		}
		ckt_texture_real_unmake(saved->surface, handle);
		snprintf(ret_message, message_size,
			"texture 0x%llx had the handle 0x%llx and does not get it again (0x%llx now): programs keep such handles; restore with the "
			"same driver",
			(unsigned long long)saved->id, (unsigned long long)t.handle,
			(unsigned long long)handle);
		return -EADDRNOTAVAIL;
	}
	if (!result &&
		(result = ckt_texture_add(m->worker, saved->id, saved->surface, &t, &object)))
		ckt_texture_real_unmake(saved->surface, handle);
	if (result)
		snprintf(ret_message, message_size,
			"texture 0x%llx could not be made again: CUDA error %d",
			(unsigned long long)saved->id, result);
	return result ? -EIO : 0;
}

static int by_handle(const void *a, const void *b)
{
	const ckt_image_texture *x = *(ckt_image_texture *const *)a,
				*y = *(ckt_image_texture *const *)b;
	return x->handle < y->handle ? -1 : x->handle > y->handle;
}

int ckt_textures_load(
	struct ckt_worker *worker, const ckt_image *image, char *ret_message, size_t message_size)
{
	size_t count = image->textures.textures_len;
	int error = 0;
	if (!count)
		return 0;
	struct making m = {.worker = worker, .held = malloc(STAND_INS_MAX * sizeof *m.held)};
	ckt_image_texture **order = malloc(count * sizeof(ckt_image_texture *));
	if (!m.held || !order)
		error = -ENOMEM;
	for (size_t i = 0; i < count && !error; i++)
		order[i] = &image->textures.textures_val[i];
	if (!error)
		qsort(order, count, sizeof *order, by_handle);
	for (size_t i = 0; i < count && !error; i++)
		error = load_texture(&m, order[i], ret_message, message_size);
	while (m.count) {
		struct stand_in *held = &m.held[--m.count];
		if (!ckt_worker_use_context(worker, held->context))
			ckt_texture_real_unmake(held->surface, held->handle);
	}
	free(m.held);
	free(order);
	if (error == -ENOMEM)
		snprintf(ret_message, message_size, "no memory for the session's textures");
	return error;
}
