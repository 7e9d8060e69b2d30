/* SPDX-License-Identifier: Apache-2.0 */
/* Contents of an image: pieces of the GPU's memory on their way through the crew into files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "checkpoint/content_threads.h"
#include "checkpoint/fault.h"
#include "checkpoint/freeze/spare_memory.h"
#include "checkpoint/kernels/digest.h"
#include "checkpoint/memory_operations.h"
#include "checkpoint/object_kind.h"
#include "checkpoint/save/image_save.h"
#include "checkpoint/save/save.h"
#include "checkpoint/state.h"
#include "rpc/gen/cuda_driver.h"

static bool is_due(const struct ckt_saving *s, const struct ckt_piece *piece)
{
	return !piece->same && !piece->written && (!s->early || !piece->copy);
}

/* The next piece that is due, or NULL. */
static struct ckt_piece *next_piece(struct ckt_saving *s)
{
	for (size_t i; (i = s->next++) < s->piece_count;) {
		struct ckt_piece *piece = &s->pieces[i];
		if (piece->same) {
			if (!s->early)
				atomic_fetch_add_explicit(
					&ckt_checkpoint_of(s->worker)->progress.done, piece->size,
					memory_order_relaxed);
		} else if (is_due(s, piece)) {
			return piece;
		}
	}
	return NULL;
}

/* Starts copying the piece into the member's buffer. */
static CUresult fetch(struct ckt_saving *s, struct ckt_content_thread *member,
	const struct ckt_piece *piece, unsigned buffer)
{
	if (!piece || piece->data)
		return CUDA_SUCCESS;
	CUresult error = ckt_content_threads_use_device(member, piece->device);
	CUstream stream = ckt_content_threads_stream(member, piece->device);
	if (!error && piece->array && !piece->copy)
		error = ckt_piece_move(piece->array, piece->owner, piece->address, piece->size,
			CKT_PIECE_TO_HOST, (uintptr_t)member->buffers[buffer], stream);
	else if (!error)
		error = ckt_driver.cuMemcpyDtoHAsync_v2(member->buffers[buffer],
			piece->copy ? piece->copy : piece->address, piece->size, stream);
	if (error)
		s->driver_error = (int)error;
	return error;
}

static CUresult arrived(
	struct ckt_saving *s, struct ckt_content_thread *member, const struct ckt_piece *piece)
{
	if (piece->data)
		return CUDA_SUCCESS;
	CUresult error = ckt_content_threads_use_device(member, piece->device);
	if (!error)
		error = ckt_driver.cuStreamSynchronize(
			ckt_content_threads_stream(member, piece->device));
	if (error)
		s->driver_error = (int)error;
	return error;
}

static int make_file(const struct ckt_save *save, struct ckt_image_writer *writer, unsigned file)
{
	_Static_assert(CKT_CREW_SIZE + 1 <= (int)CKT_IMAGE_MEMORY_FILES, "a file for each writer");
	return save->memory_fds ? ckt_image_writer_init_open(
					  writer, save->memory_fds[1 + file], file, save->compress)
				: ckt_image_writer_init(writer, save->broker, file, save->compress);
}

/* Skips the piece if the base image holds the same contents. */
static int write_piece(struct ckt_image_writer *writer, struct ckt_piece *piece, const void *data)
{
	if (piece->candidate && !piece->digested) {
		ckt_image_hash(CKT_IMAGE_BLAKE3, data, piece->size, (char *)piece->digest.sum);
		piece->digested = true;
		if (ckt_chain_resembles(piece, piece->digest.sum))
			return 0;
	}
	piece->written = true;
	return ckt_image_writer_add(writer, piece->space, piece->address, data, piece->size,
		piece->digested ? piece->digest.sum : NULL);
}

/* While one piece is hashed and written, the next is being copied. */
static int write_pieces(struct ckt_content_thread *member, void *opaque)
{
	struct ckt_saving *s = opaque;
	struct ckt_image_writer *writer = &s->writers[member->index];
	unsigned buffer = 0;
	int result = writer->fd >= 0 ? 0 : make_file(s->save, writer, member->index);
	struct ckt_piece *piece = result ? NULL : next_piece(s);
	if (!result && fetch(s, member, piece, buffer))
		return -EIO;
	while (!result && piece) {
		if (arrived(s, member, piece))
			return -EIO;
		struct ckt_piece *following = next_piece(s);
		if (fetch(s, member, following, !buffer))
			return -EIO;
		const void *data = piece->data ? piece->data : member->buffers[buffer];
		result = ckt_fault_fails(CKT_FAULT_WRITE) ? -EIO : write_piece(writer, piece, data);
		if (!piece->space || piece->owner)
			atomic_fetch_add_explicit(&ckt_checkpoint_of(s->worker)->progress.done,
				piece->size, memory_order_relaxed);
		/* No copy may still write into the buffers when this returns. */
		if (result && following)
			arrived(s, member, following);
		piece = following;
		buffer = !buffer;
	}
	return result || s->early ? result : ckt_image_writer_finish(writer);
}

/*
 * Hashes on the GPU the pieces that are due and in its memory.  The CPU hashes those that fail, so
 * there is no error.
 */
static void make_digests(struct ckt_saving *s)
{
	struct ckt_hash_item *items = calloc(s->piece_count + 1, sizeof *items);
	struct ckt_digest *digests = calloc(s->piece_count + 1, sizeof *digests);
	struct ckt_piece **pieces = calloc(s->piece_count + 1, sizeof *pieces);
	bool possible = items && digests && pieces;
	for (unsigned d = 0; d < ckt_device_count(s->worker) && possible; d++) {
		size_t n = 0;
		for (size_t i = 0; i < s->piece_count; i++) {
			struct ckt_piece *piece = &s->pieces[i];
			uint64_t address = piece->copy ? piece->copy : piece->address;
			if (!piece->hashable || piece->device != d || piece->data ||
				!is_due(s, piece) || !ckt_digest_takes(d, address, piece->size))
				continue;
			items[n] = (struct ckt_hash_item){address, piece->size};
			pieces[n++] = piece;
		}
		CUresult result = ckt_digest_run(
			s->worker, d, ckt_content_threads_first_stream(d), items, n, digests);
		if (result)
			ckt_info("cannot hash on the GPU: CUDA error %d; the CPU hashes instead",
				result);
		for (size_t i = 0; i < n && !result; i++) {
			pieces[i]->digest = digests[i];
			pieces[i]->digested = true;
			ckt_chain_resembles(pieces[i], digests[i].sum);
		}
	}
	free(items);
	free(digests);
	free(pieces);
}

static int run_crew(struct ckt_saving *s, bool early)
{
	s->early = early;
	s->next = 0;
	int64_t begun = ckt_now_ns();
	make_digests(s);
	ckt_debug("save: hashing: %.1f ms", (double)(ckt_now_ns() - begun) * 1e-6);
	begun = ckt_now_ns();
	int result = ckt_content_threads_run(write_pieces, s);
	ckt_debug("save: writing%s: %.1f ms", early ? " while nothing runs" : "",
		(double)(ckt_now_ns() - begun) * 1e-6);
	if (result) {
		if (s->driver_error)
			snprintf(s->message, s->message_size,
				"cannot read the GPU's memory: CUDA error %d", s->driver_error);
		else
			snprintf(s->message, s->message_size, "cannot write the image: %s",
				strerror(-result));
	}
	return result;
}

/* Arrays that do not fit are hashed where they are. */
static uint64_t align(uint64_t size)
{
	return (size + 255) & ~(uint64_t)255;
}

/* The part of a device's spare memory that is in use. */
struct filling {
	const struct ckt_spare_part *part;
	unsigned device;
	uint64_t used;
};

static bool takes_array(const struct ckt_piece *piece, const struct filling *f)
{
	return piece->array && !piece->same && piece->device == f->device && !f->device &&
		f->used + align(piece->size) <= f->part->size;
}

/*
 * Memory of the window: any range of it can be copied at once.  Two adjacent variables of modules
 * cannot.
 */
static bool in_window(const struct ckt_piece *piece)
{
	return piece->address >= CKT_WINDOW_BASE &&
		piece->address - CKT_WINDOW_BASE < CKT_WINDOW_SIZE;
}

static bool takes_memory(const struct ckt_piece *piece, unsigned device)
{
	return !piece->same && !piece->data && !piece->array && piece->device == device;
}

/* The adjacent pieces from `i` on that one copy can carry: their number, and their size. */
static size_t neighbours(
	const struct ckt_saving *s, size_t i, const struct filling *f, uint64_t *ret_size)
{
	const struct ckt_piece *first = &s->pieces[i];
	uint64_t size = 0, room = f->part->size - f->used;
	size_t n = i;
	while (n < s->piece_count && takes_memory(&s->pieces[n], f->device) &&
		size + s->pieces[n].size <= room && s->pieces[n].address == first->address + size &&
		(n == i || (in_window(first) && in_window(&s->pieces[n]))))
		size += s->pieces[n++].size;
	*ret_size = size;
	return n - i;
}

static CUresult copy_array_aside(struct ckt_piece *piece, struct filling *f)
{
	piece->copy = f->part->address + f->used;
	f->used += align(piece->size);
	return ckt_piece_move(piece->array, piece->owner, piece->address, piece->size,
		CKT_PIECE_TO_DEVICE, piece->copy, NULL);
}

/* The pieces from `i` on that one copy can carry; *ret_count: at least 1, also if none is copied. */
static CUresult copy_memory_aside(
	struct ckt_saving *s, size_t i, struct filling *f, size_t *ret_count)
{
	uint64_t size, at = f->part->address + f->used;
	size_t count = neighbours(s, i, f, &size);
	CUresult result = CUDA_SUCCESS;
	*ret_count = count + !count;
	if (count)
		result = ckt_driver.cuMemcpyDtoDAsync_v2(at, s->pieces[i].address, size, NULL);
	if (result)
		ckt_warning("cannot copy aside %llu bytes at 0x%llx (space %u, %zu pieces): CUDA "
			    "error %d",
			(unsigned long long)size, (unsigned long long)s->pieces[i].address,
			s->pieces[i].space, count, result);
	for (size_t n = i; n < i + count; n++) {
		s->pieces[n].copy = at;
		at += s->pieces[n].size;
	}
	f->used += align(size);
	return result;
}

/*
 * Copies as many pieces of the device as fit into its spare memory, in the order of its default
 * stream.
 */
static CUresult copy_device_aside(struct ckt_saving *s, unsigned device)
{
	struct filling f = {.part = &s->save->spare.parts[device], .device = device};
	CUresult result = ckt_spare_memory_use(s->worker, device);
	for (size_t i = 0, count = 1; i < s->piece_count && !result; i += count) {
		count = 1;
		if (takes_array(&s->pieces[i], &f))
			result = copy_array_aside(&s->pieces[i], &f);
		else
			result = copy_memory_aside(s, i, &f, &count);
	}
	return result;
}

static CUresult copy_aside(struct ckt_saving *s)
{
	CUresult result = CUDA_SUCCESS;
	unsigned devices = ckt_device_count(s->worker);
	for (unsigned d = 0; d < devices && !result; d++)
		if (s->save->spare.parts[d].size)
			result = copy_device_aside(s, d);
	if (ckt_fault_fails(CKT_FAULT_COPIED_ASIDE))
		result = CUDA_ERROR_INVALID_VALUE;
	for (unsigned d = 0; d < devices; d++) {
		if (!s->save->spare.parts[d].size)
			continue;
		CUresult done = ckt_spare_memory_use(s->worker, d);
		if (!done)
			done = ckt_driver.cuCtxSynchronize();
		result = result ? result : done;
	}
	return result;
}

int ckt_save_let_go(struct ckt_saving *s)
{
	if (!s->save->let_go || !s->save->spare.size)
		return 0;
	ckt_spare_memory_take_others(s->worker, &s->save->spare);
	CUresult result = copy_aside(s);
	if (result) {
		/*
		 * Nothing is lost: the session stays frozen while its image is written, as without
		 * spare memory.
		 */
		ckt_warning("cannot copy the session's memory aside: CUDA error %d; the "
			    "session stays frozen while its image is written",
			result);
		for (size_t i = 0; i < s->piece_count; i++)
			s->pieces[i].copy = 0;
		return 0;
	}
	int error = run_crew(s, true);
	ckt_save_give_back(s);
	if (!error)
		s->save->let_go(s->save, s->worker);
	return error;
}

int ckt_save_contents(struct ckt_saving *s)
{
	int result = run_crew(s, false);
	if (result)
		return result;
	ckt_image *image = &s->image;
	size_t total = 0;
	for (unsigned i = 0; i < CKT_CREW_SIZE; i++)
		total += s->writers[i].count;
	image->chunks.chunks_val = ckt_save_list(s, total, sizeof(ckt_image_chunk));
	image->file_bytes.file_bytes_val =
		ckt_save_list(s, CKT_CREW_SIZE, sizeof *image->file_bytes.file_bytes_val);
	if (s->no_memory)
		return ckt_save_has_memory(s);
	for (unsigned i = 0; i < ckt_content_threads_count(); i++) {
		struct ckt_image_writer *writer = &s->writers[i];
		if (writer->count)
			memcpy(image->chunks.chunks_val + image->chunks.chunks_len, writer->chunks,
				writer->count * sizeof *writer->chunks);
		image->chunks.chunks_len += (u_int)writer->count;
		image->file_bytes.file_bytes_val[image->file_bytes.file_bytes_len++] =
			writer->offset;
	}
	return 0;
}
