/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded sessions; see preload.h. */
#include "checkpoint/load/preload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"
#include "checkpoint/journal.h"
#include "checkpoint/load/image_load.h"
#include "checkpoint/memory_operations.h"
#include "checkpoint/object_kind.h"
#include "checkpoint/session.h"
#include "rpc/gen/cuda_driver.h"
#include "rpc/handle.h"

/*
 * The place of a chunk, by owner and address: addresses in extents (0) and variables (their module)
 * are absolute, others count from 0.
 */
struct piece {
	uint64_t owner; /* physical memory, module or array */
	uint64_t address;
	uint64_t at; /* its present address; an array's: its offset */
	/* in which it can be cleared; 0: an extent's or an array's */
	uint64_t context;
	uint32_t size;
	bool fresh;    /* zeros when it is made: memory, but no variable */
	bool contents; /* else zeros */
	bool known;    /* the image before had it */
	bool clear;    /* is zeros from now on, but its memory holds other bytes */
	char hash[CKT_IMAGE_HASH];
};

struct pieces {
	struct piece *list; /* by owner and address */
	size_t count;
};

/* Physical memory of the program, mapped at the image's addresses until the session adopts it. */
struct physical {
	uint64_t id, size, handle, contents;
	unsigned device, compression;
	bool mapped;
};

static struct {
	bool active;
	ckt_image_journal *journal;
	unsigned journal_count;
	struct {
		unsigned device;
		uint64_t address, size;
	} * extents;
	size_t extent_count;
	struct physical *physicals; /* by id */
	size_t physical_count;
	struct pieces pieces;
} preload;

bool ckt_preload_active(void)
{
	return preload.active;
}

static bool is_same_step(const ckt_image_journal *a, const ckt_image_journal *b)
{
	return a->kind == b->kind && a->context == b->context && a->flags == b->flags &&
		a->device == b->device && !memcmp(a->hash, b->hash, sizeof a->hash);
}

int ckt_preload_replayed(const ckt_image *image, ckt_image_journal *ret_left)
{
	unsigned count = preload.journal_count;
	if (image->journal.journal_len < count)
		return -ESTALE;
	for (unsigned i = 0; i < count; i++) {
		const ckt_image_journal *now = &image->journal.journal_val[i],
					*then = &preload.journal[i];
		if (!is_same_step(now, then))
			return -ESTALE;
		if (now->id == then->id)
			continue;
		/* The last entry is still open: repetitions are added to it. */
		const struct ckt_journal_step *step = ckt_journal_step_of(now->kind);
		bool counts = step && step->merge == CKT_JOURNAL_ADDS;
		bool replaces = step && step->merge == CKT_JOURNAL_REPLACES;
		if (i != count - 1 || !(replaces || (counts && now->id > then->id)))
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

static int by_place(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;
	if (x->owner != y->owner)
		return x->owner < y->owner ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

static struct piece *find(const struct pieces *pieces, uint64_t owner, uint64_t address)
{
	struct piece wanted = {.owner = owner, .address = address};
	return pieces->count
		? bsearch(&wanted, pieces->list, pieces->count, sizeof wanted, by_place)
		: NULL;
}

/* In the pieces that saving makes; only counts them if there is no list yet. */
static void cut(struct pieces *pieces, struct piece whole, uint64_t size)
{
	for (uint64_t at = 0; at < size; at += CKT_IMAGE_CHUNK, pieces->count++) {
		if (!pieces->list)
			continue;
		struct piece *piece = &pieces->list[pieces->count];
		*piece = whole;
		piece->address += at;
		piece->at += at;
		piece->size = (uint32_t)(size - at < CKT_IMAGE_CHUNK ? size - at : CKT_IMAGE_CHUNK);
	}
}

static void cut_range(const struct ckt_contents *contents, void *pieces)
{
	cut(pieces,
		(struct piece){.owner = contents->owner,
			.address = contents->offset,
			.at = contents->address,
			.context = contents->context,
			.fresh = contents->taken},
		contents->size);
}

static void cut_image(const ckt_image *image, struct pieces *pieces)
{
	pieces->count = 0;
	ckt_contents_visit_all(image, cut_range, pieces);
}

/* Everything that the image has, in pieces of zeros. */
static int cut_all(const ckt_image *image, struct pieces *ret_pieces)
{
	*ret_pieces = (struct pieces){0};
	cut_image(image, ret_pieces);
	ret_pieces->list = calloc(ret_pieces->count + 1, sizeof *ret_pieces->list);
	if (!ret_pieces->list)
		return -ENOMEM;
	cut_image(image, ret_pieces);
	qsort(ret_pieces->list, ret_pieces->count, sizeof *ret_pieces->list, by_place);
	return 0;
}

/* Ranges of addresses whose pieces have an owner. */
struct range {
	uint64_t start, size, owner, base;
};

struct ranges {
	struct range *list; /* by start */
	size_t count;
};

static int by_start(const void *a, const void *b)
{
	const struct range *x = a, *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
}

/* Only counts if there is no list yet. */
static void add_range(const struct ckt_contents *contents, void *opaque)
{
	struct ranges *ranges = opaque;
	if (!contents->owner || !contents->address)
		return;
	if (ranges->list)
		ranges->list[ranges->count] = (struct range){contents->address, contents->size,
			contents->owner, contents->address - contents->offset};
	ranges->count++;
}

static int find_ranges(const ckt_image *image, struct ranges *ret_ranges)
{
	*ret_ranges = (struct ranges){0};
	ckt_contents_visit_all(image, add_range, ret_ranges);
	ret_ranges->list = calloc(ret_ranges->count + 1, sizeof *ret_ranges->list);
	if (!ret_ranges->list)
		return -ENOMEM;
	ret_ranges->count = 0;
	ckt_contents_visit_all(image, add_range, ret_ranges);
	qsort(ret_ranges->list, ret_ranges->count, sizeof *ret_ranges->list, by_start);
	return 0;
}

static struct piece *piece_of(const ckt_image *image, const struct ranges *ranges,
	const struct pieces *pieces, const ckt_image_chunk *chunk)
{
	if (chunk->space) {
		unsigned first = image->blobs.blobs_len + 1;
		bool array =
			chunk->space >= first && chunk->space - first < image->arrays.arrays_len;
		return array ? find(pieces, image->arrays.arrays_val[chunk->space - first].id,
				       chunk->address)
			     : NULL;
	}
	size_t behind = CKT_SORTED_UPPER(ranges->list, ranges->count, start, chunk->address);
	const struct range *range = behind ? &ranges->list[behind - 1] : NULL;
	if (range && chunk->address - range->start < range->size)
		return find(pieces, range->owner, chunk->address - range->base);
	return find(pieces, 0, chunk->address);
}

static bool in_extent(const ckt_image *image, uint64_t address)
{
	for (unsigned d = 0; d < image->devices.devices_len; d++)
		for (unsigned i = 0; i < image->devices.devices_val[d].extents.extents_len; i++) {
			const ckt_image_extent *e =
				&image->devices.devices_val[d].extents.extents_val[i];
			if (address >= e->address && address - e->address < e->size)
				return true;
		}
	return false;
}

/* Enters the hashes of the image's chunks in their pieces. */
static int fill_pieces(const ckt_image *image, const struct ranges *ranges, struct pieces *pieces)
{
	for (unsigned i = 0; i < image->chunks.chunks_len; i++) {
		const ckt_image_chunk *chunk = &image->chunks.chunks_val[i];
		struct piece *piece = piece_of(image, ranges, pieces, chunk);
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

/*
 * Which pieces were there before, and which of them must become zeros; a variable that was not
 * there may hold anything.
 */
static void compare_pieces(struct pieces *now, const struct pieces *old)
{
	for (size_t i = 0; i < now->count; i++) {
		struct piece *piece = &now->list[i];
		const struct piece *before = find(old, piece->owner, piece->address);
		piece->known = before && before->size == piece->size;
		piece->clear =
			!piece->contents && (piece->known ? before->contents : !piece->fresh);
	}
}

/* ---- Extents */

static bool image_has(const ckt_image *image, unsigned device, uint64_t address, uint64_t size)
{
	const ckt_image_device *d =
		device < image->devices.devices_len ? &image->devices.devices_val[device] : NULL;
	for (unsigned i = 0; d && i < d->extents.extents_len; i++)
		if (d->extents.extents_val[i].address == address &&
			d->extents.extents_val[i].size == size)
			return true;
	return false;
}

/* Extents that the image no longer has go first, to make room for new ones. */
static void drop_extents(struct ckt_worker *worker, const ckt_image *image)
{
	for (size_t i = 0; i < preload.extent_count; i++)
		if (!image_has(image, preload.extents[i].device, preload.extents[i].address,
			    preload.extents[i].size)) {
			ckt_memory_operations.preload_drop(
				worker, preload.extents[i].device, preload.extents[i].address);
			preload.extents[i].size = 0;
		}
}

static bool is_mapped(unsigned device, uint64_t address, uint64_t size)
{
	for (size_t i = 0; i < preload.extent_count; i++)
		if (preload.extents[i].device == device && preload.extents[i].address == address &&
			preload.extents[i].size == size)
			return true;
	return false;
}

/* New extents are cleared at once: forgets the pieces that were there. */
static CUresult map_extents(
	struct ckt_worker *worker, const ckt_image *image, unsigned d, struct pieces *old)
{
	const ckt_image_device *device = &image->devices.devices_val[d];
	CUresult result = device->extents.extents_len
		? ckt_session_operations.use_context(worker, ckt_handle_primary(d))
		: CUDA_SUCCESS;
	for (unsigned i = 0; i < device->extents.extents_len && !result; i++) {
		const ckt_image_extent *e = &device->extents.extents_val[i];
		if (is_mapped(d, e->address, e->size))
			continue;
		result = ckt_memory_operations.preload(worker, d, e->address, e->size);
		if (!result)
			result = ckt_driver.cuMemsetD8_v2(e->address, 0, e->size);
		for (uint64_t at = 0; at < e->size && !result; at += CKT_IMAGE_CHUNK) {
			struct piece *piece = find(old, 0, e->address + at);
			if (piece)
				piece->contents = false;
		}
	}
	return result;
}

static CUresult clear_extents(
	struct ckt_worker *worker, const ckt_image *image, const struct pieces *now, unsigned d)
{
	const ckt_image_device *device = &image->devices.devices_val[d];
	CUresult result = device->extents.extents_len
		? ckt_session_operations.use_context(worker, ckt_handle_primary(d))
		: CUDA_SUCCESS;
	for (unsigned i = 0; i < device->extents.extents_len && !result; i++) {
		const ckt_image_extent *e = &device->extents.extents_val[i];
		for (uint64_t at = 0; at < e->size && !result; at += CKT_IMAGE_CHUNK) {
			const struct piece *piece = find(now, 0, e->address + at);
			if (piece->clear)
				result = ckt_driver.cuMemsetD8_v2(piece->at, 0, piece->size);
		}
	}
	/* Later copies to it use other streams. */
	if (!result && device->extents.extents_len)
		result = ckt_driver.cuCtxSynchronize();
	return result;
}

/* ---- Physical memory of the program's own */

static int by_id(const void *a, const void *b)
{
	const struct physical *x = a, *y = b;
	return x->id < y->id ? -1 : x->id > y->id;
}

static struct physical *find_physical(struct physical *list_, size_t count, uint64_t id)
{
	struct physical wanted = {.id = id};
	return count ? bsearch(&wanted, list_, count, sizeof wanted, by_id) : NULL;
}

static void unmap_physical(struct physical *p)
{
	if (p->mapped)
		ckt_driver.cuMemUnmap(p->contents, p->size);
	p->mapped = false;
}

static CUresult map_physical(struct ckt_worker *worker, struct physical *p)
{
	CUresult result = ckt_driver.cuMemMap(p->contents, p->size, 0, p->handle, 0);
	if (!result &&
		(result = ckt_memory_operations.allow(worker, p->device, p->contents, p->size)))
		ckt_driver.cuMemUnmap(p->contents, p->size);
	p->mapped = !result;
	return result;
}

/*
 * Brings the program's own memory to the image's state, with the handles that exist already.  Gives
 * back handles that the image no longer has, and unmaps memory where the image does not map it.
 * For the last image nothing stays mapped, because the session maps it.
 */
static int choose_physicals(const ckt_image *image, bool last)
{
	size_t count = image->physicals.physicals_len;
	struct physical *now = calloc(count + 1, sizeof *now);
	if (!now)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const ckt_image_physical *p = &image->physicals.physicals_val[i];
		now[i] = (struct physical){.id = p->id,
			.size = p->size,
			.contents = p->contents,
			.device = p->device,
			.compression = ckt_load_compression(image, p->id)};
	}
	qsort(now, count, sizeof *now, by_id);
	for (size_t i = 0; i < preload.physical_count; i++) {
		struct physical *old = &preload.physicals[i],
				*new = find_physical(now, count, old->id);
		bool same = new &&
			!new->handle &&new->size == old->size &&new->device ==
				old->device &&new->compression == old->compression;
		uint64_t gone = 0;
		if (!same || last || new->contents != old->contents)
			unmap_physical(old);
		if (same) {
			new->handle = old->handle;
			new->mapped = old->mapped;
		} else {
			if (old->handle)
				ckt_driver.cuMemRelease(old->handle);
			for (struct piece *piece; (piece = find(&preload.pieces, old->id, gone));
				gone += CKT_IMAGE_CHUNK)
				piece->size = 0;
		}
	}
	free(preload.physicals);
	preload.physicals = now;
	preload.physical_count = count;
	return 0;
}

static CUresult make_physicals(struct ckt_worker *worker, unsigned device_count, struct pieces *old)
{
	CUresult result = CUDA_SUCCESS;
	for (size_t i = 0; i < preload.physical_count && !result; i++) {
		struct physical *p = &preload.physicals[i];
		bool fresh = !p->handle;
		if (p->mapped)
			continue;
		if (p->device >= device_count ||
			!ckt_memory_operations.window_holds(p->contents, p->size))
			return CUDA_ERROR_INVALID_VALUE;
		result = ckt_session_operations.use_context(worker, ckt_handle_primary(p->device));
		if (!result && fresh)
			result = ckt_memory_operations.create(
				worker, p->device, p->size, p->compression, &p->handle);
		if (!result)
			result = map_physical(worker, p);
		if (!result && fresh)
			result = ckt_driver.cuMemsetD8_v2(p->contents, 0, p->size);
		if (!result && fresh)
			result = ckt_driver.cuCtxSynchronize();
		for (uint64_t at = 0; at < p->size && fresh && !result; at += CKT_IMAGE_CHUNK) {
			struct piece *piece = find(old, p->id, at);
			if (piece)
				piece->contents = false;
		}
	}
	return result;
}

bool ckt_preload_take(
	uint64_t id, unsigned device, uint64_t size, unsigned compression, uint64_t *ret_handle)
{
	struct physical *p = find_physical(preload.physicals, preload.physical_count, id);
	if (!p || !p->handle || p->device != device || p->size != size ||
		p->compression != compression)
		return false;
	*ret_handle = p->handle;
	p->handle = 0;
	return true;
}

/* ---- Contents */

bool ckt_preload_knows(uint64_t owner)
{
	const struct piece *piece = preload.active ? find(&preload.pieces, owner, 0) : NULL;
	return piece && piece->known;
}

bool ckt_preload_next_clear(uint64_t owner, uint64_t *cursor, uint32_t *ret_size)
{
	for (const struct piece *piece; (piece = find(&preload.pieces, owner, *cursor));
		*cursor += piece->size)
		if (piece->clear) {
			*ret_size = piece->size;
			return true;
		}
	return false;
}

CUresult ckt_preload_clear(struct ckt_worker *worker)
{
	CUresult result = CUDA_SUCCESS;
	bool waiting = false;
	for (size_t i = 0; i < preload.pieces.count && !result; i++) {
		const struct piece *piece = &preload.pieces.list[i];
		if (!piece->clear || !piece->context)
			continue;
		/* Later copies to it use other streams. */
		if (waiting && ckt_session_operations.current_context(worker) != piece->context)
			result = ckt_driver.cuCtxSynchronize();
		if (!result)
			result = ckt_session_operations.use_context(worker, piece->context);
		if (!result)
			result = ckt_driver.cuMemsetD8_v2(piece->at, 0, piece->size);
		waiting = true;
	}
	if (!result && waiting)
		result = ckt_driver.cuCtxSynchronize();
	return result;
}

static void choose_chunks(const ckt_image *image, const struct ranges *ranges,
	const struct pieces *now, const struct pieces *old, bool last, bool *ret_skip)
{
	for (unsigned i = 0; i < image->chunks.chunks_len; i++) {
		const struct piece *piece =
			piece_of(image, ranges, now, &image->chunks.chunks_val[i]);
		const struct piece *before = piece ? find(old, piece->owner, piece->address) : NULL;
		ret_skip[i] = piece ? before && before->contents && before->size == piece->size &&
				!memcmp(before->hash, piece->hash, sizeof piece->hash)
				    : !last;
	}
}

int ckt_preload_memory(struct ckt_worker *worker, const ckt_image *image, bool last, bool *ret_skip,
	int *ret_driver_error)
{
	struct pieces now = {0};
	struct ranges ranges = {0};
	CUresult result = CUDA_SUCCESS;
	int error = cut_all(image, &now);
	if (!error)
		error = find_ranges(image, &ranges);
	if (!error)
		error = fill_pieces(image, &ranges, &now);
	if (!error)
		drop_extents(worker, image);
	if (!error)
		error = choose_physicals(image, last);
	for (unsigned d = 0; d < image->devices.devices_len && !error && !result; d++)
		result = map_extents(worker, image, d, &preload.pieces);
	if (!error && !result && !last)
		result = make_physicals(worker, image->devices.devices_len, &preload.pieces);
	if (!error && !result)
		compare_pieces(&now, &preload.pieces);
	for (unsigned d = 0; d < image->devices.devices_len && !error && !result; d++)
		result = clear_extents(worker, image, &now, d);
	if (!error && !result)
		choose_chunks(image, &ranges, &now, &preload.pieces, last, ret_skip);
	*ret_driver_error = (int)result;
	free(ranges.list);
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
		memcpy(preload.journal, image->journal.journal_val,
			preload.journal_count * sizeof *preload.journal);
	for (unsigned d = 0; d < image->devices.devices_len; d++)
		for (unsigned i = 0; i < image->devices.devices_val[d].extents.extents_len; i++) {
			const ckt_image_extent *e =
				&image->devices.devices_val[d].extents.extents_val[i];
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
	for (size_t i = 0; i < preload.physical_count; i++) {
		unmap_physical(&preload.physicals[i]);
		if (preload.physicals[i].handle)
			ckt_driver.cuMemRelease(preload.physicals[i].handle);
	}
	free(preload.physicals);
	memset(&preload, 0, sizeof preload);
}
