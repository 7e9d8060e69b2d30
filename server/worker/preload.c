/* Sessions that are taken ahead; see preload.h. */
#include "server/worker/preload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/worker/driver.h"
#include "server/worker/journal.h"
#include "server/worker/worker.h"

struct piece {
	uint64_t address;
	uint32_t size;
	bool contents;			/* else zeros */
	char hash[CKT_IMAGE_HASH];
};

struct pieces {
	struct piece *list;		/* by address */
	size_t count;
};

static struct {
	bool active;
	ckt_image_journal *journal;
	unsigned journal_count;
	struct {
		unsigned device;
		uint64_t address, size;
	} *extents;
	size_t extent_count;
	struct pieces pieces;
} preload;

bool ckt_preload_active(void)
{
	return preload.active;
}

static bool is_same_step(const ckt_image_journal *a, const ckt_image_journal *b)
{
	return a->kind == b->kind && a->context == b->context && a->flags == b->flags && a->device == b->device &&
	       !memcmp(a->hash, b->hash, sizeof a->hash);
}

int ckt_preload_replayed(const ckt_image *image, ckt_image_journal *ret_left)
{
	unsigned count = preload.journal_count;
	if (image->journal.journal_len < count)
		return -ESTALE;
	for (unsigned i = 0; i < count; i++) {
		const ckt_image_journal *now = &image->journal.journal_val[i], *then = &preload.journal[i];
		if (!is_same_step(now, then))
			return -ESTALE;
		if (now->id == then->id)
			continue;
		/* The last entry is still open: what repeats it is added to it. */
		bool counts = now->kind == CKT_JOURNAL_STREAMS || now->kind == CKT_JOURNAL_EVENTS;
		if (i != count - 1 || !(now->kind == CKT_JOURNAL_LIMIT || (counts && now->id > then->id)))
			return -ESTALE;
		*ret_left = *now;
		ret_left->id -= counts ? then->id : 0;
		return (int)i;
	}
	if (image->journal.journal_len > count)
		*ret_left = image->journal.journal_val[count];
	return (int)count;
}

/* ---- Pieces */

static void *list(size_t count, size_t size)
{
	return calloc(count + 1, size);
}

static int by_address(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;
	return x->address < y->address ? -1 : x->address > y->address;
}

static struct piece *find(const struct pieces *pieces, uint64_t address)
{
	struct piece wanted = {.address = address};
	return pieces->count ? bsearch(&wanted, pieces->list, pieces->count, sizeof wanted, by_address) : NULL;
}

/* All extents in pieces of zeros, as saving cuts them. */
static int cut_extents(const ckt_image *image, struct pieces *ret_pieces)
{
	size_t count = 0;
	for (int pass = 0; pass < 2; pass++) {
		if (pass)
			ret_pieces->list = list(count, sizeof *ret_pieces->list);
		if (pass && !ret_pieces->list)
			return -ENOMEM;
		count = 0;
		for (unsigned d = 0; d < image->devices.devices_len; d++)
			for (unsigned i = 0; i < image->devices.devices_val[d].extents.extents_len; i++) {
				const ckt_image_extent *e = &image->devices.devices_val[d].extents.extents_val[i];
				for (uint64_t at = 0; at < e->size; at += CKT_IMAGE_CHUNK, count++)
					if (pass)
						ret_pieces->list[count] = (struct piece){
							.address = e->address + at,
							.size = (uint32_t)(e->size - at < CKT_IMAGE_CHUNK ? e->size - at : CKT_IMAGE_CHUNK)};
			}
	}
	ret_pieces->count = count;
	qsort(ret_pieces->list, count, sizeof *ret_pieces->list, by_address);
	return 0;
}

static bool in_extent(const ckt_image *image, uint64_t address)
{
	for (unsigned d = 0; d < image->devices.devices_len; d++)
		for (unsigned i = 0; i < image->devices.devices_val[d].extents.extents_len; i++) {
			const ckt_image_extent *e = &image->devices.devices_val[d].extents.extents_val[i];
			if (address >= e->address && address - e->address < e->size)
				return true;
		}
	return false;
}

/* The hashes of the image's chunks at their pieces. */
static int fill_pieces(const ckt_image *image, struct pieces *pieces)
{
	for (unsigned i = 0; i < image->chunks.chunks_len; i++) {
		const ckt_image_chunk *chunk = &image->chunks.chunks_val[i];
		struct piece *piece = chunk->space ? NULL : find(pieces, chunk->address);
		if (!piece && !chunk->space && in_extent(image, chunk->address))
			return -EBADMSG;
		if (!piece)
			continue;
		if (piece->size != chunk->size || piece->contents)
			return -EBADMSG;
		piece->contents = true;
		memcpy(piece->hash, chunk->hash, sizeof piece->hash);
	}
	return 0;
}

/* ---- Extents */

static bool image_has(const ckt_image *image, unsigned device, uint64_t address, uint64_t size)
{
	const ckt_image_device *d = device < image->devices.devices_len ? &image->devices.devices_val[device] : NULL;
	for (unsigned i = 0; d && i < d->extents.extents_len; i++)
		if (d->extents.extents_val[i].address == address && d->extents.extents_val[i].size == size)
			return true;
	return false;
}

/* What the image has no longer goes first, so that there is memory for what it has now. */
static void drop_extents(struct ckt_worker *worker, const ckt_image *image)
{
	for (size_t i = 0; i < preload.extent_count; i++)
		if (!image_has(image, preload.extents[i].device, preload.extents[i].address, preload.extents[i].size)) {
			ckt_memory_preload_drop(&worker->devices[preload.extents[i].device].memory, preload.extents[i].address);
			preload.extents[i].size = 0;
		}
}

static bool is_mapped(unsigned device, uint64_t address, uint64_t size)
{
	for (size_t i = 0; i < preload.extent_count; i++)
		if (preload.extents[i].device == device && preload.extents[i].address == address && preload.extents[i].size == size)
			return true;
	return false;
}

/* Those that are new are cleared at once: forgets what pieces there were. */
static CUresult map_extents(struct ckt_worker *worker, const ckt_image *image, unsigned d, struct pieces *old)
{
	const ckt_image_device *device = &image->devices.devices_val[d];
	CUresult result = device->extents.extents_len ? ckt_worker_use_context(worker, ckt_handle_primary(d)) : CUDA_SUCCESS;
	for (unsigned i = 0; i < device->extents.extents_len && !result; i++) {
		const ckt_image_extent *e = &device->extents.extents_val[i];
		if (is_mapped(d, e->address, e->size))
			continue;
		result = ckt_memory_preload(&worker->devices[d].memory, e->address, e->size);
		if (!result)
			result = ckt_driver.cuMemsetD8_v2(e->address, 0, e->size);
		for (uint64_t at = 0; at < e->size && !result; at += CKT_IMAGE_CHUNK) {
			struct piece *piece = find(old, e->address + at);
			if (piece)
				piece->contents = false;
		}
	}
	return result;
}

static CUresult clear_pieces(struct ckt_worker *worker, const ckt_image *image, const struct pieces *now, const struct pieces *old, unsigned d)
{
	const ckt_image_device *device = &image->devices.devices_val[d];
	CUresult result = device->extents.extents_len ? ckt_worker_use_context(worker, ckt_handle_primary(d)) : CUDA_SUCCESS;
	for (unsigned i = 0; i < device->extents.extents_len && !result; i++) {
		const ckt_image_extent *e = &device->extents.extents_val[i];
		for (uint64_t at = 0; at < e->size && !result; at += CKT_IMAGE_CHUNK) {
			const struct piece *piece = find(now, e->address + at), *before = find(old, e->address + at);
			if (!piece->contents && before && before->contents)
				result = ckt_driver.cuMemsetD8_v2(piece->address, 0, piece->size);
		}
	}
	/* What is copied there comes by other streams. */
	if (!result && device->extents.extents_len)
		result = ckt_driver.cuCtxSynchronize();
	return result;
}

static void choose_chunks(const ckt_image *image, const struct pieces *now, const struct pieces *old, bool last, bool *ret_skip)
{
	for (unsigned i = 0; i < image->chunks.chunks_len; i++) {
		const ckt_image_chunk *chunk = &image->chunks.chunks_val[i];
		const struct piece *piece = chunk->space ? NULL : find(now, chunk->address), *before = piece ? find(old, chunk->address) : NULL;
		ret_skip[i] = piece ? before && before->contents && before->size == piece->size && !memcmp(before->hash, piece->hash, sizeof piece->hash)
				    : !last;
	}
}

int ckt_preload_memory(struct ckt_worker *worker, const ckt_image *image, bool last, bool *ret_skip, int *ret_driver_error)
{
	struct pieces now = {0};
	CUresult result = CUDA_SUCCESS;
	int error = cut_extents(image, &now);
	if (!error)
		error = fill_pieces(image, &now);
	if (!error)
		drop_extents(worker, image);
	for (unsigned d = 0; d < image->devices.devices_len && !error && !result; d++) {
		result = map_extents(worker, image, d, &preload.pieces);
		if (!result)
			result = clear_pieces(worker, image, &now, &preload.pieces, d);
	}
	if (!error && !result)
		choose_chunks(image, &now, &preload.pieces, last, ret_skip);
	*ret_driver_error = (int)result;
	free(preload.pieces.list);
	preload.pieces = now;
	return error ? error : result ? -EIO : 0;
}

/* ---- What there is now */

int ckt_preload_done(const ckt_image *image)
{
	size_t count = 0;
	for (unsigned d = 0; d < image->devices.devices_len; d++)
		count += image->devices.devices_val[d].extents.extents_len;
	free(preload.journal);
	free(preload.extents);
	preload.journal_count = preload.extent_count = 0;
	preload.journal = list(image->journal.journal_len, sizeof *preload.journal);
	preload.extents = list(count, sizeof *preload.extents);
	if (!preload.journal || !preload.extents)
		return -ENOMEM;
	preload.journal_count = image->journal.journal_len;
	if (preload.journal_count)
		memcpy(preload.journal, image->journal.journal_val, preload.journal_count * sizeof *preload.journal);
	for (unsigned d = 0; d < image->devices.devices_len; d++)
		for (unsigned i = 0; i < image->devices.devices_val[d].extents.extents_len; i++) {
			const ckt_image_extent *e = &image->devices.devices_val[d].extents.extents_val[i];
			size_t n = preload.extent_count++;
			preload.extents[n].device = d;
			preload.extents[n].address = e->address;
			preload.extents[n].size = e->size;
		}
	preload.active = true;
	return 0;
}

void ckt_preload_fini(void)
{
	free(preload.journal);
	free(preload.extents);
	free(preload.pieces.list);
	memset(&preload, 0, sizeof preload);
}
