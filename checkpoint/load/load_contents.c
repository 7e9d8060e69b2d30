/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contents of the GPU's memory, from the image: read by the crew, verified by the GPU or the CPU.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "checkpoint/content_threads.h"
#include "checkpoint/fault.h"
#include "checkpoint/kernels/digest.h"
#include "checkpoint/load/image_load.h"
#include "checkpoint/load/preload.h"
#include "checkpoint/memory_operations.h"
#include "checkpoint/session.h"
#include "checkpoint/state.h"
#include "rpc/gen/cuda_driver.h"

static bool inside(const ckt_image_chunk *chunk, uint64_t address, uint64_t size)
{
	return chunk->address >= address && chunk->address - address <= size &&
		size - (chunk->address - address) >= chunk->size;
}

/*
 * Device memory of the image: its extents and variables.  A chunk outside them would write to other
 * memory.
 */
static bool chunk_device(
	const struct ckt_loading *l, const ckt_image_chunk *chunk, unsigned *ret_device)
{
	const ckt_image *image = &l->image;
	uint64_t offset = chunk->address - image->window_base;
	if (chunk->address >= image->window_base && offset < image->window_bytes) {
		unsigned d = (unsigned)(offset / image->slice_bytes);
		if (d >= image->devices.devices_len)
			return false;
		const ckt_image_device *device = &image->devices.devices_val[d];
		for (unsigned i = 0; i < device->extents.extents_len; i++) {
			const ckt_image_extent *e = &device->extents.extents_val[i];
			if (inside(chunk, e->address, e->size)) {
				*ret_device = d;
				return true;
			}
		}
		for (unsigned i = 0; i < image->physicals.physicals_len; i++) {
			const ckt_image_physical *p = &image->physicals.physicals_val[i];
			if (inside(chunk, p->contents, p->size)) {
				*ret_device = p->device;
				return true;
			}
		}
		return false;
	}
	for (unsigned i = 0; i < image->host.host_len; i++) {
		const ckt_image_host *h = &image->host.host_val[i];
		if (!h->shared && inside(chunk, h->address, h->size)) {
			*ret_device = 0;
			return true;
		}
	}
	for (unsigned m = 0; m < image->modules.modules_len; m++) {
		const ckt_image_module *module = &image->modules.modules_val[m];
		for (unsigned i = 0; i < module->globals.globals_len; i++) {
			const ckt_image_global *g = &module->globals.globals_val[i];
			if (inside(chunk, g->address, g->size)) {
				*ret_device = ckt_session_operations.device_of(
					l->worker, module->context);
				return true;
			}
		}
	}
	return false;
}

/* Waits for the data that the member has sent to the GPU. */
static CUresult sent(struct ckt_content_thread *member, int device)
{
	return device < 0 ? CUDA_SUCCESS
			  : ckt_driver.cuStreamSynchronize(
				    ckt_content_threads_stream(member, (unsigned)device));
}

/* The GPU verifies the chunks when all have arrived. */
static bool gpu_verifies(const struct ckt_loading *l, const ckt_image_chunk *chunk, unsigned device)
{
	return l->image.hash_kind == CKT_IMAGE_BLAKE3 &&
		chunk->address - l->image.window_base < l->image.window_bytes &&
		ckt_digest_takes(device, chunk->address, chunk->size);
}

static int verify_on(struct ckt_loading *l, unsigned device, struct ckt_hash_item *items,
	struct ckt_digest *digests, const ckt_image_chunk **chunks)
{
	size_t n = 0;
	for (unsigned i = 0; i < l->image.chunks.chunks_len; i++) {
		const ckt_image_chunk *chunk = &l->image.chunks.chunks_val[i];
		unsigned on;
		if (chunk->space || (l->skip && l->skip[i]) || !chunk_device(l, chunk, &on) ||
			on != device || !gpu_verifies(l, chunk, device))
			continue;
		items[n] = (struct ckt_hash_item){chunk->address, chunk->size};
		chunks[n++] = chunk;
	}
	CUresult result = ckt_digest_run(
		l->worker, device, ckt_content_threads_first_stream(device), items, n, digests);
	if (result)
		return ckt_load_refuse(
			l, -EIO, "cannot verify the GPU's memory: CUDA error %d", result);
	for (size_t i = 0; i < n; i++)
		if (memcmp(digests[i].sum, chunks[i]->hash, sizeof digests[i].sum))
			return ckt_load_refuse(l, -EBADMSG,
				"the image is damaged: contents of the GPU's memory at "
				"0x%llx",
				(unsigned long long)chunks[i]->address);
	return 0;
}

static int verify_memory(struct ckt_loading *l)
{
	size_t count = l->image.chunks.chunks_len;
	struct ckt_hash_item *items = calloc(count + 1, sizeof *items);
	struct ckt_digest *digests = calloc(count + 1, sizeof *digests);
	const ckt_image_chunk **chunks = calloc(count + 1, sizeof *chunks);
	int error = items && digests && chunks
		? 0
		: ckt_load_refuse(l, -ENOMEM, "no memory for hashes");
	for (unsigned d = 0; d < ckt_device_count(l->worker) && !error; d++)
		error = verify_on(l, d, items, digests, chunks);
	free(items);
	free(digests);
	free(chunks);
	return error;
}

static int read_chunk(
	const struct ckt_loading *l, const ckt_image_chunk *chunk, unsigned device, void *ret_data)
{
	if (ckt_fault_fails(CKT_FAULT_RESTORE_CHUNK))
		return -EIO;
	return gpu_verifies(l, chunk, device)
		? ckt_image_reader_chunk_unchecked(&l->reader, chunk, ret_data)
		: ckt_image_reader_chunk(&l->reader, chunk, ret_data);
}

/* While one chunk is on its way to the GPU, the next is read and, if the CPU verifies, verified. */
static int read_pieces(struct ckt_content_thread *member, void *opaque)
{
	struct ckt_loading *l = opaque;
	unsigned buffer = 0;
	int result = 0, before = -1;
	CUresult error = CUDA_SUCCESS;
	for (size_t i; !result && !error && (i = l->next++) < l->image.chunks.chunks_len;) {
		const ckt_image_chunk *chunk = &l->image.chunks.chunks_val[i];
		unsigned device = 0;
		if (chunk->space || (l->skip && l->skip[i]))
			continue;
		if (!chunk_device(l, chunk, &device))
			result = -EBADMSG;
		else
			result = read_chunk(l, chunk, device, member->buffers[buffer]);
		if (result)
			break;
		error = sent(member, before);
		if (!error)
			error = ckt_content_threads_use_device(member, device);
		if (!error)
			error = ckt_driver.cuMemcpyHtoDAsync_v2(chunk->address,
				member->buffers[buffer], chunk->size,
				ckt_content_threads_stream(member, device));
		before = error ? -1 : (int)device;
		buffer = !buffer;
		atomic_fetch_add_explicit(&ckt_checkpoint_of(l->worker)->progress.done, chunk->size,
			memory_order_relaxed);
	}
	if (!error)
		error = sent(member, before);
	if (error)
		l->driver_error = (int)error;
	return error ? -EIO : result;
}

static void load_digests(struct ckt_loading *l)
{
	for (unsigned d = 0; d < ckt_device_count(l->worker); d++)
		if (ckt_digest_pays(ckt_load_bytes_on(&l->image, d)))
			ckt_digest_load(l->worker, d);
}

/* Allocates extents as in the image, and finds which chunks are still to be read. */
static int prepare_extents(struct ckt_loading *l)
{
	int driver_error = 0;
	l->skip = calloc(l->image.chunks.chunks_len + 1, sizeof *l->skip);
	int error = l->skip
		? ckt_preload_memory(l->worker, &l->image, !l->ahead, l->skip, &driver_error)
		: -ENOMEM;
	if (driver_error)
		return ckt_load_fail(l, (CUresult)driver_error, "the session's memory of", 0);
	uint64_t there = 0, rest = 0;
	for (unsigned i = 0; i < l->image.chunks.chunks_len && !error; i++) {
		const ckt_image_chunk *chunk = &l->image.chunks.chunks_val[i];
		bool module = chunk->space && chunk->space <= l->image.blobs.blobs_len;
		*(l->skip[i] ? &there : &rest) += module ? 0 : chunk->size;
	}
	if (!l->ahead && !error)
		ckt_info("restore: %llu bytes are already loaded, %llu are to be read",
			(unsigned long long)there, (unsigned long long)rest);
	return error ? ckt_load_refuse(
			       l, error, "cannot preload the image's memory: %s", strerror(-error))
		     : 0;
}

static int read_chunks(struct ckt_loading *l)
{
	int64_t begun = ckt_now_ns();
	uint64_t total = 0;
	for (unsigned i = 0; i < l->image.chunks.chunks_len; i++)
		total += l->image.chunks.chunks_val[i].space || (l->skip && l->skip[i])
			? 0
			: l->image.chunks.chunks_val[i].size;
	ckt_progress_begin(&ckt_checkpoint_of(l->worker)->progress, "restore", total);
	int error = ckt_content_threads_run(read_pieces, l);
	ckt_progress_end(&ckt_checkpoint_of(l->worker)->progress);
	ckt_debug("restore: contents: %.1f ms", (double)(ckt_now_ns() - begun) * 1e-6);
	if (error && l->driver_error)
		return ckt_load_refuse(
			l, error, "cannot write the GPU's memory: CUDA error %d", l->driver_error);
	return error ? ckt_load_refuse(l, error,
			       "the image is damaged: contents of the GPU's memory: %s",
			       strerror(-error))
		     : verify_memory(l);
}

int ckt_load_memory_ahead(struct ckt_loading *l)
{
	load_digests(l);
	ckt_content_threads_prepare();
	ckt_content_threads_look(l->worker);
	int error = prepare_extents(l);
	if (!error && ckt_preload_clear(l->worker))
		error = ckt_load_refuse(l, -EIO, "cannot clear the GPU's memory");
	if (!error)
		error = read_chunks(l);
	return error ? error : ckt_load_ahead(l);
}

int ckt_load_memory(struct ckt_loading *l)
{
	load_digests(l);
	ckt_content_threads_prepare();
	ckt_content_threads_look(l->worker);
	int64_t begun = ckt_now_ns();
	int error = ckt_preload_active() ? prepare_extents(l) : 0;
	if (!error)
		error = ckt_load_objects(l, CKT_LOAD_MEMORY);
	if (!error)
		error = ckt_load_clear_memory(l);
	if (error)
		return error;
	ckt_debug("restore: mapping: %.1f ms", (double)(ckt_now_ns() - begun) * 1e-6);
	error = read_chunks(l);
	if (!error)
		error = ckt_moved_check(
			&l->moved, l->worker, &l->image, l->message, l->message_size);
	return error ? error : ckt_load_contents_loaded(l);
}

/* ---- The kernels that hash, in the journal: they are modules, and move addresses like others */

static int replay_digest(struct ckt_loading *l, const ckt_image_journal *entry)
{
	if (entry->device < ckt_device_count(l->worker))
		ckt_digest_load(l->worker, entry->device);
	return 0;
}

static const struct ckt_journal_step steps[] = {
	{.kind = CKT_JOURNAL_DIGEST, .replay = replay_digest},
	{0},
};

const struct ckt_object_kind ckt_digest_kind = {.name = "kernels that hash", .steps = steps};
