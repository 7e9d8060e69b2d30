/* SPDX-License-Identifier: Apache-2.0 */
/* Streams in an image, with what was set of them; streams of the journal are made ahead. */
#include <string.h>

#include "base/log.h"
#include "checkpoint/load/image_load.h"
#include "checkpoint/save/image_save.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/counted_handles.h"
#include "server/worker/objects/object_kinds.h"
#include "server/worker/objects/stream.h"
#include "server/worker/objects/stream_attribute.h"
#include "server/worker/worker.h"

/* ---- Saving */

void ckt_worker_stream_attributes_save(struct ckt_saving *s, const struct ckt_object *object)
{
	const struct ckt_stream_attributes *attributes = ckt_worker_stream_attributes_of(object);
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

static size_t count_attributes(struct ckt_object *const *objects, size_t count)
{
	size_t set = 0;
	for (size_t i = 0; i < count; i++) {
		unsigned kind = ckt_handle_kind(objects[i]->id);
		const struct ckt_stream_attributes *attributes =
			kind == CKT_KIND_STREAM || kind == CKT_KIND_CONTEXT
			? ckt_worker_stream_attributes_of(objects[i])
			: NULL;
		set += attributes ? (size_t)__builtin_popcount(attributes->set) : 0;
	}
	return set;
}

static int prepare(struct ckt_saving *s, struct ckt_object *const *objects, size_t count)
{
	s->image.streams.streams_val = ckt_save_list(s, count, sizeof(ckt_image_stream));
	s->image.stream_attributes.stream_attributes_val = ckt_save_list(
		s, count_attributes(objects, count), sizeof(ckt_image_stream_attribute));
	return 0;
}

static int save(struct ckt_saving *s, struct ckt_object *object)
{
	s->image.streams.streams_val[s->image.streams.streams_len++] = (ckt_image_stream){
		object->id, object->context, object->stream.flags, object->stream.priority};
	ckt_worker_stream_attributes_save(s, object);
	return 0;
}

/* ---- Loading */

int ckt_objects_made_ahead(struct ckt_loading *l, const ckt_image_journal *entry)
{
	CUresult result = ckt_worker_use_context(l->worker, entry->context);
	if (!result)
		result = ckt_counted_make_ahead(l->worker,
			&(struct ckt_journal_entry){.kind = entry->kind,
				.id = entry->id,
				.flags = entry->flags,
				.device = entry->device});
	return result ? ckt_load_fail(l, result, "streams or events of context", entry->context)
		      : 0;
}

static const struct ckt_journal_step steps[] = {
	{CKT_JOURNAL_STREAMS, CKT_JOURNAL_ADDS, ckt_objects_made_ahead},
	{0},
};

static int load(struct ckt_loading *l, unsigned i)
{
	const ckt_image_stream *saved = &l->image.streams.streams_val[i];
	CUresult result = ckt_worker_use_context(l->worker, saved->context);
	if (!result)
		result =
			ckt_worker_stream_make(l->worker, saved->id, saved->flags, saved->priority);
	return result ? ckt_load_fail(l, result, "stream", saved->id) : 0;
}

/*
 * An attribute that this device rejects does not matter for results: the stream continues without
 * it.
 */
static int load_attributes(struct ckt_loading *l)
{
	for (unsigned i = 0; i < l->image.stream_attributes.stream_attributes_len; i++) {
		const ckt_image_stream_attribute *saved =
			&l->image.stream_attributes.stream_attributes_val[i];
		CUstreamAttrValue value;
		memcpy(&value, saved->value, sizeof value);
		CUresult result = ckt_worker_use_context(l->worker, saved->context);
		if (!result)
			result = ckt_worker_stream_attribute_set(
				l->worker, saved->stream, (CUstreamAttrID)saved->attribute, &value);
		if (result == CUDA_ERROR_INVALID_HANDLE || result == CUDA_ERROR_INVALID_CONTEXT)
			return ckt_load_fail(l, result, "stream", saved->stream);
		if (result)
			ckt_warning("this device rejects attribute %u of stream %llx (%d): "
				    "ignoring it",
				saved->attribute, (unsigned long long)saved->stream, result);
	}
	return 0;
}

const struct ckt_object_kind ckt_stream_kind = {
	.name = "streams",
	.handles = CKT_HANDLES(STREAM),
	.steps = steps,
	.prepare = prepare,
	.save = save,
	.stage = CKT_LOAD_HANDLES,
	.list = CKT_IMAGE_LIST(streams),
	.load = load,
	.load_rest = load_attributes,
};
