/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays, textures and surfaces in an image; see array_image.h. */
#include "server/worker/objects/array_image.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/load/image_load.h"
#include "checkpoint/load/preload.h"
#include "checkpoint/save/image_save.h"
#include "server/worker/driver.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/object_kinds.h"

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

static unsigned device_of(const ckt_image *image, uint64_t context)
{
	for (unsigned i = 0; i < image->contexts.contexts_len; i++)
		if (image->contexts.contexts_val[i].id == context)
			return image->contexts.contexts_val[i].device;
	return UINT32_MAX;
}

static void visit_contents(const ckt_image *image, ckt_contents_visit *visit, void *opaque)
{
	for (unsigned i = 0; i < image->arrays.arrays_len; i++) {
		const ckt_image_array *saved = &image->arrays.arrays_val[i];
		CUDA_ARRAY3D_DESCRIPTOR desc = desc_of(saved);
		if (saved->live)
			visit(&(struct ckt_contents){.owner = saved->id,
				      .size = ckt_array_total_bytes(&desc, saved->levels),
				      .device = device_of(image, saved->context),
				      .taken = true},
				opaque);
	}
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

/* Of an array that was preloaded: what has changed since. */
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
				CKT_PIECE_FROM_HOST, (uintptr_t)data, NULL);
	}
	if (data)
		memset(data, 0, CKT_IMAGE_CHUNK);
	for (uint32_t size; !error && !result && ckt_preload_next_clear(object->id, &at, &size);
		at += size)
		result = fits(object, at, size)
			? ckt_array_move_piece(
				  object, at, size, CKT_PIECE_FROM_HOST, (uintptr_t)data, NULL)
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
		snprintf(ret_message, message_size, "cannot recreate array 0x%llx: CUDA error %d",
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

/* A program may free the memory that a texture reads before the texture. */
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
			"texture 0x%llx had the handle 0x%llx but got another "
			"(0x%llx): programs keep such handles; restore with the same "
			"driver",
			(unsigned long long)saved->id, (unsigned long long)t.handle,
			(unsigned long long)handle);
		return -EADDRNOTAVAIL;
	}
	if (!result &&
		(result = ckt_texture_add(m->worker, saved->id, saved->surface, &t, &object)))
		ckt_texture_real_unmake(saved->surface, handle);
	if (result)
		snprintf(ret_message, message_size, "cannot recreate texture 0x%llx: CUDA error %d",
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

/* ---- The tables of operations */

static int prepare_arrays(struct ckt_saving *s, struct ckt_object *const *objects, size_t count)
{
	size_t most = count + s->worker->checkpoint.journal.count;
	(void)objects;
	s->image.arrays.arrays_val = ckt_save_list(s, most, sizeof(ckt_image_array));
	s->array_data = ckt_save_list(s, most, sizeof *s->array_data);
	return 0;
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

static int save_array(struct ckt_saving *s, struct ckt_object *object)
{
	unsigned index = s->image.arrays.arrays_len++;
	struct ckt_object *context = ckt_objects_find(&s->worker->objects, object->context);
	bool here = context && context->ctx.primary;
	uint8_t *data = NULL;
	s->array_count = s->image.arrays.arrays_len;
	ckt_array_save(object, &s->image.arrays.arrays_val[index]);
	CUresult result = here ? CUDA_SUCCESS : read_array(s, object, context, &data);
	if (result) {
		snprintf(s->message, s->message_size, "cannot read array 0x%llx: CUDA error %d",
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

/* Arrays that are gone but in the journal, which names arrays by id. */
static int save_dead_arrays(struct ckt_saving *s)
{
	struct ckt_worker *worker = s->worker;
	for (size_t i = 0; i < worker->checkpoint.journal.count; i++) {
		const struct ckt_journal_entry *entry = &worker->checkpoint.journal.list[i];
		if (entry->kind == CKT_JOURNAL_ARRAY_CREATE &&
			!ckt_objects_find(&worker->objects, entry->id))
			ckt_array_save_dead(
				entry, &s->image.arrays.arrays_val[s->image.arrays.arrays_len++]);
	}
	return 0;
}

static void free_arrays(struct ckt_saving *s)
{
	for (unsigned i = 0; i < s->array_count; i++)
		free(s->array_data[i]);
	free(s->array_data);
}

static int replay_create(struct ckt_loading *l, const ckt_image_journal *entry)
{
	for (unsigned i = 0; i < l->image.arrays.arrays_len; i++) {
		const ckt_image_array *saved = &l->image.arrays.arrays_val[i];
		if (saved->id != entry->id)
			continue;
		CUresult result = ckt_array_load(l->worker, saved);
		return result ? ckt_load_fail(l, result, "array", saved->id) : 0;
	}
	return ckt_load_refuse(l, -EBADMSG,
		"the image is damaged: its journal names an array that it does not describe");
}

static int replay_destroy(struct ckt_loading *l, const ckt_image_journal *entry)
{
	struct ckt_object *object = ckt_objects_find(&l->worker->objects, entry->id);
	if (object && ckt_array_kind.handles >> ckt_handle_kind(object->id) & 1 &&
		!ckt_worker_use_context(l->worker, object->context))
		ckt_array_destroy(l->worker, object);
	return 0;
}

static const struct ckt_journal_step steps[] = {
	{.kind = CKT_JOURNAL_ARRAY_CREATE, .replay = replay_create},
	{.kind = CKT_JOURNAL_ARRAY_DESTROY, .replay = replay_destroy},
	{0},
};

static int load_arrays(struct ckt_loading *l)
{
	return ckt_arrays_load_contents(
		l->worker, &l->image, &l->reader, l->skip, l->message, l->message_size);
}

const struct ckt_object_kind ckt_array_kind = {
	.name = "arrays",
	.handles = CKT_HANDLES(ARRAY) | CKT_HANDLES(MIPMAP),
	.steps = steps,
	.prepare = prepare_arrays,
	.save = save_array,
	.save_rest = save_dead_arrays,
	.free = free_arrays,
	.stage = CKT_LOAD_REST,
	.load_rest = load_arrays,
	.contents = visit_contents,
	.load_ahead = load_arrays,
	.move_piece = ckt_array_move_piece,
};

static int prepare_textures(struct ckt_saving *s, struct ckt_object *const *objects, size_t count)
{
	(void)objects;
	s->image.textures.textures_val = ckt_save_list(s, count, sizeof(ckt_image_texture));
	return 0;
}

static int save_texture(struct ckt_saving *s, struct ckt_object *object)
{
	ckt_image_texture *saved =
		&s->image.textures.textures_val[s->image.textures.textures_len++];
	s->no_memory |= ckt_texture_save(object, saved) != 0;
	return ckt_save_has_memory(s);
}

static int load_textures(struct ckt_loading *l)
{
	return ckt_textures_load(l->worker, &l->image, l->message, l->message_size);
}

const struct ckt_object_kind ckt_texture_kind = {
	.name = "textures",
	.handles = CKT_HANDLES(TEXTURE) | CKT_HANDLES(SURFACE),
	.prepare = prepare_textures,
	.save = save_texture,
	.stage = CKT_LOAD_REST,
	.load_rest = load_textures,
};
