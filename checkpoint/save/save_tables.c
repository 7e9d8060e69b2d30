/* SPDX-License-Identifier: Apache-2.0 */
/* Saves the tables of an image: its name, those of the kinds of objects, and the journal. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "base/grow.h"
#include "checkpoint/kernels/digest.h"
#include "checkpoint/memory_operations.h"
#include "checkpoint/object_kind.h"
#include "checkpoint/save/image_save.h"
#include "checkpoint/state.h"

void *ckt_save_list(struct ckt_saving *s, size_t count, size_t size)
{
	void *memory = calloc(count + 1, size);
	s->no_memory |= !memory;
	return memory;
}

char *ckt_save_string(struct ckt_saving *s, const char *text)
{
	char *copy = strdup(text);
	s->no_memory |= !copy;
	return copy;
}

int ckt_save_has_memory(struct ckt_saving *s)
{
	if (!s->no_memory)
		return 0;
	snprintf(s->message, s->message_size,
		"the worker has no memory for the tables of the image; the session "
		"continues");
	return -ENOMEM;
}

int ckt_save_add_pieces(struct ckt_saving *s, unsigned space, unsigned device, uint64_t address,
	const uint8_t *data, uint64_t size)
{
	for (uint64_t at = 0; at < size; at += CKT_IMAGE_CHUNK) {
		if (CKT_GROW(s->pieces, s->piece_count, s->piece_room, 1024)) {
			s->no_memory = true;
			return ckt_save_has_memory(s);
		}
		uint64_t left = size - at;
		s->pieces[s->piece_count++] = (struct ckt_piece){.space = space,
			.device = device,
			.address = address + at,
			.data = data ? data + at : NULL,
			.size = (uint32_t)(left < CKT_IMAGE_CHUNK ? left : CKT_IMAGE_CHUNK),
			.hashable = !space && address % 16 == 0};
	}
	return 0;
}

/* The name of the image, and what wrote it. */
static int name_image(struct ckt_saving *s)
{
	ckt_image *image = &s->image;
	image->chain = s->save->keep_hashes;
	image->start = ckt_checkpoint_of(s->worker)->start;
	image->saved = time(NULL);
	image->build = ckt_save_string(s, CKT_VERSION);
	image->driver_version = ckt_memory_operations.driver_version(s->worker);
	if (getrandom(image->id, sizeof image->id, 0) != sizeof image->id) {
		snprintf(s->message, s->message_size, "cannot get random bytes for the image's ID");
		return -EIO;
	}
	memcpy(s->save->image, image->id, sizeof image->id);
	image->hash_kind = CKT_IMAGE_BLAKE3;
	return ckt_save_has_memory(s);
}

static int take_journal(struct ckt_saving *s)
{
	struct ckt_journal *journal = &ckt_checkpoint_of(s->worker)->journal;
	s->image.journal.journal_val = ckt_save_list(s, journal->count, sizeof(ckt_image_journal));
	if (!s->image.journal.journal_val)
		return ckt_save_has_memory(s);
	s->image.journal.journal_len = (u_int)journal->count;
	if (s->save->keep_hashes)
		journal->saved = journal->count;
	for (size_t i = 0; i < journal->count; i++) {
		struct ckt_journal_entry *from = &journal->list[i];
		ckt_image_journal *entry = &s->image.journal.journal_val[i];
		*entry = (ckt_image_journal){.kind = from->kind,
			.id = from->id,
			.context = from->context,
			.flags = from->flags,
			.device = from->device};
		memcpy(entry->hash, from->hash, sizeof entry->hash);
	}
	return 0;
}

/* Before the journal is copied, because this is an entry of it. */
static void prepare_digests(struct ckt_saving *s)
{
	if (s->save->incremental || ckt_checkpoint_of(s->worker)->paused)
		return;
	for (unsigned d = 0; d < ckt_device_count(s->worker); d++) {
		uint64_t bytes = 0;
		for (size_t i = 0; i < s->piece_count; i++)
			bytes += !s->pieces[i].space && s->pieces[i].device == d ? s->pieces[i].size
										 : 0;
		if (ckt_digest_pays(bytes))
			ckt_digest_load(s->worker, d);
	}
}

int ckt_save_tables(struct ckt_saving *s)
{
	int error = name_image(s);
	for (const struct ckt_object_kind *const *kind = ckt_object_kinds; *kind && !error; kind++)
		if ((*kind)->save_table)
			error = (*kind)->save_table(s);
	if (error)
		return error;
	prepare_digests(s);
	return take_journal(s);
}
