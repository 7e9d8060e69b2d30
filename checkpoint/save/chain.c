/* SPDX-License-Identifier: Apache-2.0 */
/* What is remembered of the last image; see chain.h. */
#include "checkpoint/save/chain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/log.h"
#include "checkpoint/memory_operations.h"
#include "checkpoint/object_kind.h"
#include "checkpoint/session.h"
#include "rpc/gen/cuda_driver.h"
#include "rpc/handle.h"

struct entry {
	uint64_t owner, address;
	uint32_t size;
	struct ckt_hash_value value;
	const ckt_image_chunk *chunk; /* of last.image; NULL: zeros */
};

/* A place of contents in the image: of memory, or of the array `owner`. */
struct place {
	uint64_t owner, address;
	const ckt_image_chunk *chunk;
};

static struct {
	bool valid;
	/* there is a key, and entries; else contents are compared by the image's own hashes */
	bool hashed;
	ckt_image image;
	uint64_t key[4];
	struct entry *entries; /* by owner and address */
	size_t count;
	struct place *places; /* by owner and address */
	size_t place_count;
} last;

static void *list(size_t count, size_t size)
{
	return calloc(count + 1, size);
}

bool ckt_chain_continues(const char id[CKT_IMAGE_ID])
{
	return last.valid && !memcmp(last.image.id, id, CKT_IMAGE_ID);
}

bool ckt_chain_hashed(void)
{
	return last.valid && last.hashed;
}

int ckt_chain_key(bool begin, uint64_t ret_key[4])
{
	if (!begin)
		memcpy(ret_key, last.key, sizeof last.key);
	else if (getrandom(ret_key, sizeof last.key, 0) != sizeof last.key)
		return -EIO;
	return 0;
}

/* Arrays are copied to spare memory to hash them, as many as there is room for. */
static CUresult hash_arrays(struct ckt_worker *worker, unsigned device, struct ckt_piece *pieces,
	size_t count, const uint64_t key[4])
{
	enum { BATCH = 32 };
	CUcontext context = ckt_session_operations.real_context(worker, ckt_handle_primary(device));
	struct ckt_hash_item items[BATCH];
	struct ckt_hash_value values[BATCH];
	struct ckt_piece *batch[BATCH];
	const uint64_t place = CKT_SCRATCH_BASE + CKT_SCRATCH_SIZE / 4,
		       size = (uint64_t)BATCH * CKT_IMAGE_CHUNK;
	uint64_t memory = 0;
	CUresult result = CUDA_SUCCESS;
	for (size_t i = 0, n = 0; i < count && !result; i++) {
		if (pieces[i].array && pieces[i].device == device) {
			if (!memory) {
				result = context ? ckt_driver.cuCtxSetCurrent(context)
						 : CUDA_ERROR_INVALID_CONTEXT;
				if (!result)
					result = ckt_memory_operations.map(
						worker, device, place, size, &memory);
			}
			items[n] =
				(struct ckt_hash_item){place + n * CKT_IMAGE_CHUNK, pieces[i].size};
			batch[n] = &pieces[i];
			if (!result)
				result = ckt_piece_move(pieces[i].array, pieces[i].owner,
					pieces[i].address, pieces[i].size, CKT_PIECE_TO_DEVICE,
					items[n].address, NULL);
			n++;
		}
		if (result || !n || (n < BATCH && i + 1 < count))
			continue;
		result = ckt_hash_run(worker, device, key, items, n, values);
		for (size_t k = 0; k < n && !result; k++) {
			batch[k]->value = values[k];
			batch[k]->hashed = true;
			batch[k]->same = !values[k].any;
		}
		n = 0;
	}
	if (memory)
		ckt_memory_operations.unmap(place, size, memory);
	return result;
}

int ckt_chain_hash(
	struct ckt_worker *worker, struct ckt_piece *pieces, size_t count, const uint64_t key[4])
{
	struct ckt_hash_item *items = list(count, sizeof *items);
	struct ckt_hash_value *values = list(count, sizeof *values);
	CUresult result = items && values ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned d = 0; d < ckt_device_count(worker) && !result; d++) {
		size_t n = 0;
		for (size_t i = 0; i < count; i++)
			if (pieces[i].hashable && pieces[i].device == d)
				items[n++] =
					(struct ckt_hash_item){pieces[i].address, pieces[i].size};
		result = ckt_hash_run(worker, d, key, items, n, values);
		n = 0;
		for (size_t i = 0; i < count && !result; i++)
			if (pieces[i].hashable && pieces[i].device == d) {
				pieces[i].value = values[n++];
				pieces[i].hashed = true;
				pieces[i].same = !pieces[i].value.any;
			}
		/* Without room, contents are compared on their way into the image. */
		if (!result && hash_arrays(worker, d, pieces, count, key))
			ckt_info("cannot hash arrays on the GPU: comparing their "
				 "contents instead");
	}
	free(items);
	free(values);
	if (!result)
		return 0;
	ckt_warning("cannot hash the GPU's memory: CUDA error %d", result);
	for (size_t i = 0; i < count; i++)
		pieces[i].hashed = pieces[i].same = false;
	return result == CUDA_ERROR_OUT_OF_MEMORY ? -ENOMEM : -EOPNOTSUPP;
}

static int by_address(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->owner != y->owner)
		return x->owner < y->owner ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

static int place_order(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	if (x->owner != y->owner)
		return x->owner < y->owner ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

static const ckt_image_chunk *find_chunk(uint64_t owner, uint64_t address, uint32_t size)
{
	struct place wanted = {.owner = owner, .address = address};
	struct place *found = last.place_count
		? bsearch(&wanted, last.places, last.place_count, sizeof wanted, place_order)
		: NULL;
	return found && found->chunk->size == size ? found->chunk : NULL;
}

/*
 * By the keyed hash if both sides have one; else the contents' own hash decides, once it is
 * computed (ckt_chain_resembles).
 */
void ckt_chain_compare(struct ckt_piece *pieces, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct ckt_piece *piece = &pieces[i];
		struct entry wanted = {.owner = piece->owner, .address = piece->address},
			     *found = NULL;
		if (piece->same)
			continue;
		if (piece->hashed && last.hashed)
			found = bsearch(
				&wanted, last.entries, last.count, sizeof wanted, by_address);
		if (!found) {
			piece->candidate = piece->space && !piece->owner
				? NULL
				: find_chunk(piece->owner, piece->address, piece->size);
		} else if (found->chunk && found->size == piece->size &&
			!memcmp(found->value.hash, piece->value.hash, sizeof piece->value.hash)) {
			piece->same = true;
			piece->old = found->chunk;
		}
	}
}

bool ckt_chain_resembles(struct ckt_piece *piece, const void *hash)
{
	if (!piece->candidate || memcmp(piece->candidate->hash, hash, CKT_IMAGE_HASH) != 0)
		return false;
	piece->same = true;
	piece->old = piece->candidate;
	return true;
}

static const ckt_image_blob *find_blob(const ckt_image *image, const ckt_image_blob *blob)
{
	for (unsigned i = 0; i < image->blobs.blobs_len; i++) {
		const ckt_image_blob *other = &image->blobs.blobs_val[i];
		if (other->size == blob->size && other->received == other->size &&
			!memcmp(other->hash, blob->hash, sizeof blob->hash))
			return other;
	}
	return NULL;
}

bool ckt_chain_has_blob(const ckt_image_blob *blob)
{
	return last.valid && blob->received == blob->size && find_blob(&last.image, blob);
}

/* ---- Sharing chunks with the last image */

struct sharing {
	ckt_image *image;
	unsigned own, old_own;
	/* by chunk.file of the last image: its number in the new one, 0: not used */
	unsigned *files;
};

static unsigned old_files(void)
{
	return last.image.file_bytes.file_bytes_len + last.image.elsewhere.elsewhere_len;
}

static void append(struct sharing *s, const ckt_image_chunk *chunk, unsigned space)
{
	ckt_image_chunk *copy = &s->image->chunks.chunks_val[s->image->chunks.chunks_len++];
	*copy = *chunk;
	copy->space = space;
	s->files[chunk->file] = 1;
}

/*
 * The ancestor numbers that stay, newest first: the last image is 0, what it built on 1 and so on.
 */
static int name_files(struct sharing *s, unsigned first_shared)
{
	ckt_image *image = s->image;
	unsigned numbers[CKT_IMAGE_ANCESTORS + 1], count = 0;
	bool used[CKT_IMAGE_ANCESTORS + 1] = {false};
	for (unsigned f = 0; f < old_files(); f++)
		if (s->files[f])
			used[f < s->old_own ? 0
					    : last.image.elsewhere.elsewhere_val[f - s->old_own]
							.ancestor +
						1] = true;
	image->ancestors.ancestors_val = list(CKT_IMAGE_ANCESTORS + 1, sizeof(ckt_image_ancestor));
	if (!image->ancestors.ancestors_val)
		return -ENOMEM;
	for (unsigned a = 0; a <= last.image.ancestors.ancestors_len; a++) {
		if (!used[a])
			continue;
		memcpy(image->ancestors.ancestors_val[count].id,
			a ? last.image.ancestors.ancestors_val[a - 1].id : last.image.id,
			CKT_IMAGE_ID);
		numbers[a] = count++;
	}
	image->ancestors.ancestors_len = count;
	image->elsewhere.elsewhere_val = list(old_files(), sizeof(ckt_image_file));
	if (!image->elsewhere.elsewhere_val)
		return -ENOMEM;
	for (unsigned f = 0; f < old_files(); f++) {
		if (!s->files[f])
			continue;
		const ckt_image_file *old =
			f < s->old_own ? NULL : &last.image.elsewhere.elsewhere_val[f - s->old_own];
		s->files[f] = s->own + image->elsewhere.elsewhere_len;
		image->elsewhere.elsewhere_val[image->elsewhere.elsewhere_len++] = (ckt_image_file){
			.ancestor = numbers[old ? old->ancestor + 1 : 0],
			.file = old ? old->file : f,
			.bytes = old ? old->bytes : last.image.file_bytes.file_bytes_val[f]};
	}
	for (unsigned i = first_shared; i < image->chunks.chunks_len; i++)
		image->chunks.chunks_val[i].file = s->files[image->chunks.chunks_val[i].file];
	return count > CKT_IMAGE_ANCESTORS || image->elsewhere.elsewhere_len > CKT_IMAGE_ELSEWHERE
		? -EMLINK
		: 0;
}

int ckt_chain_share(ckt_image *image, const struct ckt_piece *pieces, size_t count)
{
	struct sharing s = {.image = image,
		.own = image->file_bytes.file_bytes_len,
		.old_own = last.image.file_bytes.file_bytes_len};
	unsigned first = image->chunks.chunks_len;
	s.files = list(old_files(), sizeof *s.files);
	ckt_image_chunk *chunks =
		list((size_t)first + count + last.image.chunks.chunks_len, sizeof *chunks);
	if (!s.files || !chunks) {
		free(s.files);
		free(chunks);
		return -ENOMEM;
	}
	if (first)
		memcpy(chunks, image->chunks.chunks_val, first * sizeof *chunks);
	free(image->chunks.chunks_val);
	image->chunks.chunks_val = chunks;
	for (size_t i = 0; i < count; i++)
		if (pieces[i].old)
			append(&s, pieces[i].old, pieces[i].space);
	for (unsigned b = 0; b < image->blobs.blobs_len; b++) {
		const ckt_image_blob *old = ckt_chain_has_blob(&image->blobs.blobs_val[b])
			? find_blob(&last.image, &image->blobs.blobs_val[b])
			: NULL;
		for (unsigned i = 0; old && i < last.image.chunks.chunks_len; i++)
			if (last.image.chunks.chunks_val[i].space ==
				old - last.image.blobs.blobs_val + 1)
				append(&s, &last.image.chunks.chunks_val[i], b + 1);
	}
	int result = name_files(&s, first);
	free(s.files);
	return result;
}

/* ---- The last image */

void ckt_chain_break(void)
{
	if (last.valid)
		xdr_free((xdrproc_t)xdr_ckt_image, (char *)&last.image);
	free(last.entries);
	free(last.places);
	memset(&last, 0, sizeof last);
}

/* The array that a chunk of this space belongs to; 0: none. */
static uint64_t array_of(const ckt_image *image, unsigned space)
{
	unsigned first = image->blobs.blobs_len + 1;
	return space < first || space - first >= image->arrays.arrays_len
		? 0
		: image->arrays.arrays_val[space - first].id;
}

static int index_chunks(void)
{
	const ckt_image *image = &last.image;
	last.places = list(image->chunks.chunks_len, sizeof *last.places);
	if (!last.places)
		return -ENOMEM;
	for (unsigned i = 0; i < image->chunks.chunks_len; i++) {
		const ckt_image_chunk *chunk = &image->chunks.chunks_val[i];
		uint64_t owner = array_of(image, chunk->space);
		if (!chunk->space || owner)
			last.places[last.place_count++] =
				(struct place){owner, chunk->address, chunk};
	}
	qsort(last.places, last.place_count, sizeof *last.places, place_order);
	return 0;
}

/* Takes the image over.  -ENOMEM: there is no last image then. */
static int set_last(ckt_image *image)
{
	ckt_chain_break();
	last.image = *image;
	memset(image, 0, sizeof *image);
	last.valid = true;
	int error = index_chunks();
	if (error)
		ckt_chain_break();
	return error;
}

int ckt_chain_advance(
	ckt_image *image, const struct ckt_piece *pieces, size_t count, const uint64_t key[4])
{
	uint64_t kept[4] = {0};
	if (key)
		memcpy(kept, key, sizeof kept);
	int error = set_last(image);
	if (error || !key)
		return error;
	last.entries = list(count, sizeof *last.entries);
	/* Without keyed hashes everything is compared by the image's own hashes. */
	if (!last.entries)
		return 0;
	memcpy(last.key, kept, sizeof kept);
	last.hashed = true;
	for (size_t i = 0; i < count; i++)
		if (pieces[i].hashed)
			last.entries[last.count++] = (struct entry){.owner = pieces[i].owner,
				.address = pieces[i].address,
				.size = pieces[i].size,
				.value = pieces[i].value,
				.chunk = find_chunk(
					pieces[i].owner, pieces[i].address, pieces[i].size)};
	qsort(last.entries, last.count, sizeof *last.entries, by_address);
	return 0;
}

/* ---- Another base than the last image */

/* The manifest, as it arrives in pieces before the save that names it. */
static struct {
	char id[CKT_IMAGE_ID];
	uint8_t *data;
	size_t size, room;
} base;

static void forget_base(void)
{
	free(base.data);
	memset(&base, 0, sizeof base);
}

int ckt_chain_base_piece(
	const char id[CKT_IMAGE_ID], uint64_t offset, const void *data, size_t size)
{
	if (!offset) {
		forget_base();
		memcpy(base.id, id, CKT_IMAGE_ID);
	}
	if (memcmp(base.id, id, CKT_IMAGE_ID) != 0 || offset != base.size)
		return -EINVAL;
	if (size > CKT_CHAIN_BASE_MAX - base.size)
		return -E2BIG;
	if (base.size + size > base.room) {
		size_t room = (base.size + size) * 2;
		uint8_t *grown = realloc(base.data, room);
		if (!grown)
			return -ENOMEM;
		base.data = grown;
		base.room = room;
	}
	if (size)
		memcpy(base.data + base.size, data, size);
	base.size += size;
	return 0;
}

static int check_base(
	struct ckt_worker *worker, const ckt_image *image, char *ret_message, size_t message_size)
{
	if (!ckt_session_operations.is_image_of(worker, image)) {
		snprintf(ret_message, message_size,
			"the base image belongs to session %s, not to this one: name "
			"an image of this session",
			image->session);
		return -EINVAL;
	}
	if (memcmp(image->id, base.id, CKT_IMAGE_ID) != 0 || image->hash_kind != CKT_IMAGE_BLAKE3) {
		snprintf(ret_message, message_size,
			"the base image is from a version of Cricket without chains: "
			"save a complete image");
		return -EINVAL;
	}
	return 0;
}

int ckt_chain_base_use(struct ckt_worker *worker, const char id[CKT_IMAGE_ID], char *ret_message,
	size_t message_size)
{
	ckt_image image = {0};
	if (ckt_chain_continues(id))
		return 0;
	if (!base.size || memcmp(base.id, id, CKT_IMAGE_ID) != 0) {
		snprintf(ret_message, message_size,
			"the base image is not the last image of this session, and its "
			"manifest was not sent");
		return -ESTALE;
	}
	int error = ckt_image_decode(base.data, base.size, &image, ret_message, message_size);
	if (!error) {
		error = check_base(worker, &image, ret_message, message_size);
		if (!error && (error = set_last(&image)))
			snprintf(ret_message, message_size,
				"the worker has no memory for the manifest of the base "
				"image");
		xdr_free((xdrproc_t)xdr_ckt_image, (char *)&image);
	}
	forget_base();
	return error;
}

static size_t cut(
	struct ckt_piece *pieces, size_t count, unsigned device, uint64_t address, uint64_t size)
{
	for (uint64_t at = 0; at < size; at += CKT_IMAGE_CHUNK, count++)
		if (pieces)
			pieces[count] = (struct ckt_piece){.device = device,
				.address = address + at,
				.size = (uint32_t)(size - at < CKT_IMAGE_CHUNK ? size - at
									       : CKT_IMAGE_CHUNK),
				.hashable = true};
	return count;
}

/* Extents only: the rest counts as changed, once. */
static size_t cut_all(const ckt_image *image, struct ckt_piece *pieces)
{
	size_t count = 0;
	for (unsigned d = 0; d < image->devices.devices_len; d++)
		for (unsigned i = 0; i < image->devices.devices_val[d].extents.extents_len; i++) {
			const ckt_image_extent *e =
				&image->devices.devices_val[d].extents.extents_val[i];
			count = cut(pieces, count, d, e->address, e->size);
		}
	return count;
}

void ckt_chain_adopt(struct ckt_worker *worker, ckt_image *image)
{
	size_t count = cut_all(image, NULL);
	struct ckt_piece *pieces = list(count, sizeof *pieces);
	uint64_t key[4];
	/* If this fails, the next image is complete. */
	if (!pieces || ckt_chain_key(true, key)) {
		free(pieces);
		return;
	}
	cut_all(image, pieces);
	bool hashed = !ckt_chain_hash(worker, pieces, count, key);
	ckt_chain_advance(image, pieces, count, hashed ? key : NULL);
	free(pieces);
}
