/* Tables of an image: who the session is, its replies, GPUs, modules' contents and journal. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "checkpoint/save/chain.h"
#include "checkpoint/kernels/digest.h"
#include "base/grow.h"
#include "checkpoint/save/image_save.h"
#include "checkpoint/freeze/pause.h"

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
		"the worker has no memory left for the tables of the image; the session goes on");
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

static int take_identity(struct ckt_saving *s)
{
	struct ckt_worker *worker = s->worker;
	ckt_image *image = &s->image;
	image->session = ckt_save_string(s, worker->session);
	memcpy(image->secret_hash, worker->secret_hash, sizeof image->secret_hash);
	image->generation = worker->generation;
	image->program_name = ckt_save_string(s, worker->program_name);
	image->client = ckt_save_string(s, worker->client);
	image->client_pid = worker->client_pid;
	image->uid = worker->uid;
	memcpy(image->key, worker->owner.key, sizeof image->key);
	memcpy(image->seal, worker->owner.seal, sizeof image->seal);
	image->copy = worker->copy;
	image->started = worker->started;
	image->saved = time(NULL);
	image->build = ckt_save_string(s, CKT_VERSION);
	image->driver_version = worker->driver_version;
	if (getrandom(image->id, sizeof image->id, 0) != sizeof image->id) {
		snprintf(s->message, s->message_size,
			"the kernel gives no random bytes for the name of the image");
		return -EIO;
	}
	memcpy(s->save->image, image->id, sizeof image->id);
	image->hash_kind = CKT_IMAGE_BLAKE3;
	image->window_base = worker->window_base;
	image->window_bytes = worker->window_size;
	image->slice_bytes = worker->slice_size;
	image->memory_limit_bytes = worker->memory_limit;
	return ckt_save_has_memory(s);
}

static int take_replies(struct ckt_saving *s)
{
	struct ckt_replies *replies = &s->worker->replies;
	s->image.executed = atomic_load(&replies->executed);
	s->image.acked = replies->acked;
	s->image.deferred = atomic_load(&s->worker->deferred);
	s->image.replies.replies_val = ckt_save_list(s, replies->count, sizeof(ckt_image_reply));
	for (size_t i = 0; i < replies->count && !s->no_memory; i++) {
		struct ckt_stored *stored = &replies->list[replies->first + i];
		ckt_image_reply *reply =
			&s->image.replies.replies_val[s->image.replies.replies_len++];
		reply->seq = stored->seq;
		reply->proc = stored->proc;
		reply->deferred = stored->deferred;
		reply->accept_stat = stored->accept_stat;
		reply->body.body_val = ckt_save_list(s, stored->size, 1);
		if (!reply->body.body_val)
			break;
		reply->body.body_len = (u_int)stored->size;
		memcpy(reply->body.body_val, stored->body, stored->size);
	}
	return ckt_save_has_memory(s);
}

static int take_devices(struct ckt_saving *s)
{
	struct ckt_worker *worker = s->worker;
	s->image.devices.devices_val =
		ckt_save_list(s, worker->device_count, sizeof(ckt_image_device));
	if (!s->image.devices.devices_val)
		return ckt_save_has_memory(s);
	s->image.devices.devices_len = worker->device_count;
	for (unsigned d = 0; d < worker->device_count; d++) {
		struct ckt_worker_device *from = &worker->devices[d];
		struct ckt_memory *memory = &from->memory;
		ckt_image_device *device = &s->image.devices.devices_val[d];
		device->name = ckt_save_string(s, from->name);
		device->major = from->major;
		device->minor = from->minor;
		device->total_bytes = from->total;
		device->extents.extents_val =
			ckt_save_list(s, memory->extent_count, sizeof(ckt_image_extent));
		device->blocks.blocks_val =
			ckt_save_list(s, memory->block_count, sizeof(ckt_image_block));
		int error = ckt_save_has_memory(s);
		for (size_t i = 0; i < memory->extent_count && !error; i++) {
			struct ckt_extent *e = &memory->extents[i];
			/* What libraries have for themselves they take again: memory.h. */
			if (e->use == CKT_EXTENT_CACHED || ckt_memory_extent_is_library(memory, i))
				continue;
			device->extents.extents_val[device->extents.extents_len++] =
				(ckt_image_extent){e->address, e->size, e->use};
			error = ckt_save_add_pieces(
				s, 0, d, e->address, ckt_pause_copy(e->address, 0), e->size);
		}
		if (error)
			return error;
		for (size_t i = 0; i < memory->block_count; i++) {
			struct ckt_block *b = &memory->blocks[i];
			if (b->owner & CKT_MEMORY_LIBRARY)
				continue;
			device->blocks.blocks_val[device->blocks.blocks_len++] =
				(ckt_image_block){b->address, b->size, b->owner};
		}
	}
	return 0;
}

static int take_blobs(struct ckt_saving *s)
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

static int take_journal(struct ckt_saving *s)
{
	struct ckt_worker *worker = s->worker;
	s->image.journal.journal_val =
		ckt_save_list(s, worker->journal_count, sizeof(ckt_image_journal));
	if (!s->image.journal.journal_val)
		return ckt_save_has_memory(s);
	s->image.journal.journal_len = (u_int)worker->journal_count;
	if (s->save->keep_hashes)
		worker->journal_saved = worker->journal_count;
	for (size_t i = 0; i < worker->journal_count; i++) {
		struct ckt_journal_entry *from = &worker->journal[i];
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

/* Before the journal is taken, as it is an entry of it. */
static void prepare_digests(struct ckt_saving *s)
{
	for (unsigned d = 0;
		d < s->worker->device_count && !s->save->incremental && !s->worker->paused; d++) {
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
	s->image.chain = s->save->keep_hashes;
	s->image.start = s->worker->start;
	int error = take_identity(s);
	if (!error)
		error = take_replies(s);
	if (!error)
		error = take_devices(s);
	if (!error)
		error = take_blobs(s);
	if (error)
		return error;
	prepare_digests(s);
	return take_journal(s);
}
