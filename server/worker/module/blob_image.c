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

static const char too_much[] = "the session's modules exceed what this server allows "
			       "(--session-host-memory)";

/* Room for each blob that is not loaded yet, charged to the session. */
static int make_room(struct ckt_loading *l, uint8_t **ret_data)
{
	const ckt_image *image = &l->image;
	for (unsigned i = 0; i < image->blobs.blobs_len; i++) {
		uint64_t size = image->blobs.blobs_val[i].received;
		if (is_loaded(l, &image->blobs.blobs_val[i]))
			continue;
		if (size > CKT_BLOBS_BYTES_MAX || !ckt_budget_charge(size, "modules of an image"))
			return ckt_load_refuse(l, -ENOMEM, "%s", too_much);
		ret_data[i] = calloc(size + 1, 1);
		if (!ret_data[i]) {
			ckt_budget_uncharge(size);
			return ckt_load_refuse(l, -ENOMEM, "no memory for the session's modules");
		}
	}
	return 0;
}

static int read_contents(struct ckt_loading *l, uint8_t *const *data)
{
	const ckt_image *image = &l->image;
	for (unsigned i = 0; i < image->chunks.chunks_len; i++) {
		const ckt_image_chunk *chunk = &image->chunks.chunks_val[i];
		if (!chunk->space || chunk->space > image->blobs.blobs_len ||
			!data[chunk->space - 1])
			continue;
		int result = ckt_image_reader_chunk(
			&l->reader, chunk, data[chunk->space - 1] + chunk->address);
		if (result)
			return ckt_load_refuse(l, result,
				"the image is damaged: contents of a module: %s",
				strerror(-result));
	}
	return 0;
}

static void give_back(const ckt_image_blob *blob, uint8_t **data)
{
	if (*data)
		ckt_budget_uncharge(blob->received);
	free(*data);
	*data = NULL;
}

/* Enters the blobs, and frees the data of each; those without data are loaded already. */
static int enter(struct ckt_loading *l, uint8_t **data)
{
	const ckt_image *image = &l->image;
	for (unsigned i = 0; i < image->blobs.blobs_len; i++) {
		ckt_image_blob *blob = &image->blobs.blobs_val[i];
		int result = ckt_blobs_piece(&l->worker->blobs, (uint8_t *)blob->hash, blob->size,
			0, data[i], blob->received);
		if (result)
			return ckt_load_refuse(l, result, "%s",
				result == -ENOMEM
					? too_much
					: "the image is damaged: a module does not match its hash");
		give_back(blob, &data[i]);
	}
	return 0;
}

static int load(struct ckt_loading *l)
{
	const ckt_image *image = &l->image;
	uint8_t **data = calloc(image->blobs.blobs_len + 1, sizeof *data);
	if (!data)
		return -ENOMEM;
	int result = make_room(l, data);
	if (!result)
		result = read_contents(l, data);
	if (!result)
		result = enter(l, data);
	for (unsigned i = 0; i < image->blobs.blobs_len; i++)
		give_back(&image->blobs.blobs_val[i], &data[i]);
	free(data);
	return result;
}

const struct ckt_object_kind ckt_blob_kind = {
	.name = "modules' contents",
	.save_table = save_table,
	.stage = CKT_LOAD_CODE,
	.load_rest = load,
};
