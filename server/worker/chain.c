/* What is remembered of the last image; see chain.h. */
#include "server/worker/chain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "rpc/log.h"
#include "server/worker/worker.h"

struct entry {
	uint64_t address;
	uint32_t size;
	struct ckt_hash_value value;
	const ckt_image_chunk *chunk;	/* of last.image; NULL: zeros */
};

static struct {
	bool valid;
	ckt_image image;
	uint64_t key[4];
	struct entry *entries;		/* by address */
	size_t count;
} last;

static void *list(size_t count, size_t size)
{
	void *memory = calloc(count + 1, size);
	if (!memory)
		abort();
	return memory;
}

bool ckt_chain_continues(const char id[CKT_IMAGE_ID])
{
	return last.valid && !memcmp(last.image.id, id, CKT_IMAGE_ID);
}

void ckt_chain_key(bool begin, uint64_t ret_key[4])
{
	if (!begin)
		memcpy(ret_key, last.key, sizeof last.key);
	else if (getrandom(ret_key, sizeof last.key, 0) != sizeof last.key)
		abort();
}

int ckt_chain_hash(struct ckt_worker *worker, struct ckt_piece *pieces, size_t count, const uint64_t key[4])
{
	struct ckt_hash_item *items = list(count, sizeof *items);
	struct ckt_hash_value *values = list(count, sizeof *values);
	CUresult result = CUDA_SUCCESS;
	for (unsigned d = 0; d < worker->device_count && !result; d++) {
		size_t n = 0;
		for (size_t i = 0; i < count; i++)
			if (pieces[i].hashable && pieces[i].device == d)
				items[n++] = (struct ckt_hash_item){pieces[i].address, pieces[i].size};
		result = ckt_hash_run(worker, d, key, items, n, values);
		n = 0;
		for (size_t i = 0; i < count && !result; i++)
			if (pieces[i].hashable && pieces[i].device == d) {
				pieces[i].value = values[n++];
				pieces[i].hashed = true;
				pieces[i].same = !pieces[i].value.any;
			}
	}
	free(items);
	free(values);
	if (!result)
		return 0;
	ckt_warning("the GPU's memory could not be hashed: CUDA error %d", result);
	for (size_t i = 0; i < count; i++)
		pieces[i].hashed = pieces[i].same = false;
	return result == CUDA_ERROR_OUT_OF_MEMORY ? -ENOMEM : -EOPNOTSUPP;
}

static int by_address(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	return x->address < y->address ? -1 : x->address > y->address;
}

void ckt_chain_compare(struct ckt_piece *pieces, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct ckt_piece *piece = &pieces[i];
		struct entry wanted = {.address = piece->address}, *found;
		if (!piece->hashed || piece->same)
			continue;
		found = bsearch(&wanted, last.entries, last.count, sizeof wanted, by_address);
		if (found && found->chunk && found->size == piece->size && !memcmp(found->value.hash, piece->value.hash, sizeof piece->value.hash)) {
			piece->same = true;
			piece->old = found->chunk;
		}
	}
}

static const ckt_image_blob *find_blob(const ckt_image *image, const ckt_image_blob *blob)
{
	for (unsigned i = 0; i < image->blobs.blobs_len; i++) {
		const ckt_image_blob *other = &image->blobs.blobs_val[i];
		if (other->size == blob->size && other->received == other->size && !memcmp(other->hash, blob->hash, sizeof blob->hash))
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
	unsigned *files;	/* by chunk.file of the last image: its number in the new one, 0: not used */
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

/* The ancestor numbers that stay, newest first: the last image is 0, what it built on 1 and so on. */
static int name_files(struct sharing *s, unsigned first_shared)
{
	ckt_image *image = s->image;
	unsigned numbers[CKT_IMAGE_ANCESTORS + 1], count = 0;
	bool used[CKT_IMAGE_ANCESTORS + 1] = {false};
	for (unsigned f = 0; f < old_files(); f++)
		if (s->files[f])
			used[f < s->old_own ? 0 : last.image.elsewhere.elsewhere_val[f - s->old_own].ancestor + 1] = true;
	image->ancestors.ancestors_val = list(CKT_IMAGE_ANCESTORS + 1, sizeof(ckt_image_ancestor));
	for (unsigned a = 0; a <= last.image.ancestors.ancestors_len; a++) {
		if (!used[a])
			continue;
		memcpy(image->ancestors.ancestors_val[count].id, a ? last.image.ancestors.ancestors_val[a - 1].id : last.image.id, CKT_IMAGE_ID);
		numbers[a] = count++;
	}
	image->ancestors.ancestors_len = count;
	image->elsewhere.elsewhere_val = list(old_files(), sizeof(ckt_image_file));
	for (unsigned f = 0; f < old_files(); f++) {
		if (!s->files[f])
			continue;
		const ckt_image_file *old = f < s->old_own ? NULL : &last.image.elsewhere.elsewhere_val[f - s->old_own];
		s->files[f] = s->own + image->elsewhere.elsewhere_len;
		image->elsewhere.elsewhere_val[image->elsewhere.elsewhere_len++] =
			(ckt_image_file){.ancestor = numbers[old ? old->ancestor + 1 : 0],
					 .file = old ? old->file : f,
					 .bytes = old ? old->bytes : last.image.file_bytes.file_bytes_val[f]};
	}
	for (unsigned i = first_shared; i < image->chunks.chunks_len; i++)
		image->chunks.chunks_val[i].file = s->files[image->chunks.chunks_val[i].file];
	return count > CKT_IMAGE_ANCESTORS || image->elsewhere.elsewhere_len > CKT_IMAGE_ELSEWHERE ? -EMLINK : 0;
}

int ckt_chain_share(ckt_image *image, const struct ckt_piece *pieces, size_t count)
{
	struct sharing s = {.image = image, .own = image->file_bytes.file_bytes_len, .old_own = last.image.file_bytes.file_bytes_len};
	unsigned first = image->chunks.chunks_len;
	s.files = list(old_files(), sizeof *s.files);
	ckt_image_chunk *chunks = list((size_t)first + count + last.image.chunks.chunks_len, sizeof *chunks);
	if (first)
		memcpy(chunks, image->chunks.chunks_val, first * sizeof *chunks);
	free(image->chunks.chunks_val);
	image->chunks.chunks_val = chunks;
	for (size_t i = 0; i < count; i++)
		if (pieces[i].old)
			append(&s, pieces[i].old, 0);
	for (unsigned b = 0; b < image->blobs.blobs_len; b++) {
		const ckt_image_blob *old = ckt_chain_has_blob(&image->blobs.blobs_val[b]) ? find_blob(&last.image, &image->blobs.blobs_val[b]) : NULL;
		for (unsigned i = 0; old && i < last.image.chunks.chunks_len; i++)
			if (last.image.chunks.chunks_val[i].space == old - last.image.blobs.blobs_val + 1)
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
	memset(&last, 0, sizeof last);
}

struct place {
	uint64_t address;
	const ckt_image_chunk *chunk;
};

static int place_order(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	return x->address < y->address ? -1 : x->address > y->address;
}

void ckt_chain_advance(ckt_image *image, const struct ckt_piece *pieces, size_t count, const uint64_t key[4])
{
	struct place *places = list(image->chunks.chunks_len, sizeof *places);
	size_t place_count = 0;
	uint64_t kept[4];
	memcpy(kept, key, sizeof kept);
	ckt_chain_break();
	last.image = *image;
	memset(image, 0, sizeof *image);
	memcpy(last.key, kept, sizeof kept);
	last.valid = true;
	for (unsigned i = 0; i < last.image.chunks.chunks_len; i++)
		if (!last.image.chunks.chunks_val[i].space)
			places[place_count++] = (struct place){last.image.chunks.chunks_val[i].address, &last.image.chunks.chunks_val[i]};
	qsort(places, place_count, sizeof *places, place_order);
	last.entries = list(count, sizeof *last.entries);
	for (size_t i = 0; i < count; i++) {
		if (!pieces[i].hashed)
			continue;
		struct place wanted = {.address = pieces[i].address}, *found = bsearch(&wanted, places, place_count, sizeof wanted, place_order);
		last.entries[last.count++] = (struct entry){.address = pieces[i].address, .size = pieces[i].size, .value = pieces[i].value,
							    .chunk = found && found->chunk->size == pieces[i].size ? found->chunk : NULL};
	}
	qsort(last.entries, last.count, sizeof *last.entries, by_address);
	free(places);
}

static size_t cut(struct ckt_piece *pieces, size_t count, unsigned device, uint64_t address, uint64_t size)
{
	for (uint64_t at = 0; at < size; at += CKT_IMAGE_CHUNK, count++)
		if (pieces)
			pieces[count] = (struct ckt_piece){.device = device,
							   .address = address + at,
							   .size = (uint32_t)(size - at < CKT_IMAGE_CHUNK ? size - at : CKT_IMAGE_CHUNK),
							   .hashable = true};
	return count;
}

/* Extents only: the rest is taken as changed, once. */
static size_t cut_all(const ckt_image *image, struct ckt_piece *pieces)
{
	size_t count = 0;
	for (unsigned d = 0; d < image->devices.devices_len; d++)
		for (unsigned i = 0; i < image->devices.devices_val[d].extents.extents_len; i++) {
			const ckt_image_extent *e = &image->devices.devices_val[d].extents.extents_val[i];
			count = cut(pieces, count, d, e->address, e->size);
		}
	return count;
}

void ckt_chain_adopt(struct ckt_worker *worker, ckt_image *image)
{
	size_t count = cut_all(image, NULL);
	struct ckt_piece *pieces = list(count, sizeof *pieces);
	uint64_t key[4];
	cut_all(image, pieces);
	ckt_chain_key(true, key);
	if (!ckt_chain_hash(worker, pieces, count, key))
		ckt_chain_advance(image, pieces, count, key);
	free(pieces);
}
