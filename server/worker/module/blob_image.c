/* SPDX-License-Identifier: Apache-2.0 */
/* Modules' contents in an image; each is stored once, by its hash. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/load/image_load.h"
#include "checkpoint/load/preload.h"
#include "checkpoint/save/image_save.h"
#include "server/worker/module/blob.h"
#include "server/worker/objects/object_kinds.h"
#include "server/worker/session/host_budget.h"
#include "server/worker/worker.h"

static int save_table(struct ckt_saving *s)
{
	struct ckt_blobs *blobs = &s->worker->blobs;
	s->image.blobs.blobs_val = ckt_save_list(s, blobs->count, sizeof(ckt_image_blob));
	int error = ckt_save_has_memory(s);
	for (size_t i = 0; i < blobs->count && !error; i++) {
		struct ckt_blob *from = blobs->list[i];
		ckt_image_blob *blob = &s->image.blobs.blobs_val[s->image.blobs.blobs_len++];
		memcpy(blob->hash, from->hash, sizeof blob->hash);
		blob->size = from->size;
		blob->received = from->received;
		if (!s->save->incremental || !ckt_chain_has_blob(blob))
			error = ckt_save_add_pieces(
				s, s->image.blobs.blobs_len, 0, 0, from->data, from->received);
	}
	return error;
}

/* Whether a pre-load has loaded the blob. */
static bool is_loaded(struct ckt_loading *l, const ckt_image_blob *saved)
{
	const struct ckt_blob *blob = ckt_preload_active()
		? ckt_blobs_find(&l->worker->blobs, (const uint8_t *)saved->hash)
		: NULL;
	return blob && blob->size == saved->size;
}

static int load(struct ckt_loading *l)
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
		if (size > CKT_BLOBS_BYTES_MAX || !ckt_budget_charge(size, "modules of an image"))
			result = ckt_load_refuse(l, -ENOMEM,
				"the session's modules exceed what this server allows "
				"(--session-host-memory)");
		else if (!(data[i] = calloc(size + 1, 1)))
			ckt_budget_uncharge(size);
		if (!result && !data[i])
			result = ckt_load_refuse(l, -ENOMEM, "no memory for the session's modules");
	}
	for (unsigned i = 0; i < image->chunks.chunks_len && !result; i++) {
		const ckt_image_chunk *chunk = &image->chunks.chunks_val[i];
		if (chunk->space && chunk->space <= image->blobs.blobs_len &&
			data[chunk->space - 1])
			result = ckt_image_reader_chunk(
				&l->reader, chunk, data[chunk->space - 1] + chunk->address);
		if (result)
			ckt_load_refuse(l, result, "the image is damaged: contents of a module: %s",
				strerror(-result));
	}
	for (unsigned i = 0; i < image->blobs.blobs_len; i++) {
		ckt_image_blob *blob = &image->blobs.blobs_val[i];
		bool refused = result != 0;
		if (!result)
			result = ckt_blobs_piece(blobs, (uint8_t *)blob->hash, blob->size, 0,
				data[i], blob->received);
		if (result == -ENOMEM && !refused)
			ckt_load_refuse(l, result,
				"the session's modules exceed what this server allows "
				"(--session-host-memory)");
		else if (result && !refused)
			ckt_load_refuse(l, result,
				"the image is damaged: a module does not match its hash");
		if (data[i])
			ckt_budget_uncharge(blob->received);
		free(data[i]);
	}
	free(data);
	return result;
}

const struct ckt_object_kind ckt_blob_kind = {
	.name = "modules' contents",
	.save_table = save_table,
	.stage = CKT_LOAD_CODE,
	.load_rest = load,
};
