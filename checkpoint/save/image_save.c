/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a frozen session as an image: first the tables, into a ckt_image, then contents by the
 * crew, the manifest last.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "checkpoint/content_threads.h"
#include "checkpoint/fault.h"
#include "checkpoint/memory_operations.h"
#include "checkpoint/save/image_save.h"
#include "checkpoint/save/save.h"
#include "checkpoint/session.h"
#include "checkpoint/state.h"

static int told_to_fail(struct ckt_saving *s, enum ckt_worker_fault point)
{
	if (!ckt_fault_fails(point))
		return 0;
	snprintf(s->message, s->message_size, "CRICKET_FAULT made this step fail");
	return -EIO;
}

/* Modules are not counted: their hash identifies them, and they are written once. */
static bool is_counted(const struct ckt_piece *piece)
{
	return !piece->space || piece->owner;
}

static int find_changed(struct ckt_saving *s)
{
	struct ckt_save *save = s->save;
	for (size_t i = 0; i < s->piece_count; i++)
		save->memory_bytes += is_counted(&s->pieces[i]) ? s->pieces[i].size : 0;
	if (ckt_chain_key(!save->incremental || !ckt_chain_hashed(), s->key)) {
		snprintf(s->message, s->message_size,
			"cannot get random bytes for the key of the hashes");
		return -EIO;
	}
	/* The GPU does not hash data in the host's memory. */
	if (save->keep_hashes && !ckt_checkpoint_of(s->worker)->paused) {
		ckt_progress_begin(
			&ckt_checkpoint_of(s->worker)->progress, "hash", save->memory_bytes);
		s->hashed = !ckt_chain_hash(s->worker, s->pieces, s->piece_count, s->key);
	}
	if (save->incremental)
		ckt_chain_compare(s->pieces, s->piece_count);
	ckt_progress_begin(&ckt_checkpoint_of(s->worker)->progress, "save", save->memory_bytes);
	return told_to_fail(s, CKT_FAULT_HASHED);
}

static void count_changed(struct ckt_saving *s)
{
	for (size_t i = 0; i < s->piece_count; i++)
		s->save->changed_bytes +=
			is_counted(&s->pieces[i]) && !s->pieces[i].same ? s->pieces[i].size : 0;
}

static int share_contents(struct ckt_saving *s)
{
	int error = ckt_chain_share(&s->image, s->pieces, s->piece_count);
	if (!error)
		return 0;
	if (error == -ENOMEM) {
		s->no_memory = true;
		return ckt_save_has_memory(s);
	}
	snprintf(s->message, s->message_size,
		"the image's chain would be too long: save a complete image");
	return error;
}

/*
 * Precondition: the image is written.  An image on which nobody intends to build leaves the
 * existing chain unchanged.
 */
static void remember(struct ckt_saving *s)
{
	if (s->save->keep_hashes)
		ckt_chain_advance(&s->image, s->pieces, s->piece_count, s->hashed ? s->key : NULL);
}

/* The session stands still meanwhile, so the log says how long each step takes. */
static int timed(struct ckt_saving *s, const char *what, int (*step)(struct ckt_saving *s))
{
	int64_t begun = ckt_now_ns();
	int result = step(s);
	ckt_debug("save: %s: %.1f ms", what, (double)(ckt_now_ns() - begun) * 1e-6);
	return result;
}

int ckt_checkpoint_save(
	struct ckt_worker *worker, struct ckt_save *save, char *ret_message, size_t message_size)
{
	struct ckt_saving s = {.worker = worker,
		.save = save,
		.message = ret_message,
		.message_size = message_size};
	for (unsigned i = 0; i < CKT_CREW_SIZE; i++)
		s.writers[i].fd = -1;
	/*
	 * Nothing runs: blocks that were freed on a stream are now free, or belong to their pool.
	 */
	ckt_memory_operations.settle_pools(worker);
	ckt_content_threads_look(worker);
	int result = save->incremental
		? ckt_chain_base_use(worker, save->base, ret_message, message_size)
		: 0;
	if (!result)
		result = ckt_session_operations.check_saved(worker, ret_message, message_size);
	if (result)
		return result;
	result = timed(&s, "tables", ckt_save_tables);
	if (!result)
		result = timed(&s, "objects", ckt_save_objects);
	if (!result)
		result = timed(&s, "changes", find_changed);
	if (!result)
		result = timed(&s, "copying aside", ckt_save_let_go);
	if (!result)
		result = ckt_save_contents(&s);
	if (!result && save->incremental)
		result = share_contents(&s);
	ckt_save_give_back(&s);
	if (!result)
		result = told_to_fail(&s, CKT_FAULT_CONTENTS);
	if (!result)
		result = save->memory_fds
			? ckt_image_write_open(
				  save->memory_fds[0], &s.image, ret_message, message_size)
			: ckt_image_write(save->broker, &s.image, ret_message, message_size);
	ckt_fault_fails(CKT_FAULT_MANIFEST);
	uint64_t bytes = 0;
	for (unsigned i = 0; i < CKT_CREW_SIZE; i++) {
		bytes += s.writers[i].offset;
		ckt_image_writer_fini(&s.writers[i]);
	}
	if (!result) {
		save->bytes = bytes;
		save->executed = s.image.executed;
		count_changed(&s);
		ckt_info("saved: %llu bytes of contents in %u chunks", (unsigned long long)bytes,
			s.image.chunks.chunks_len);
		remember(&s);
	}
	ckt_save_free_objects(&s);
	xdr_free((xdrproc_t)xdr_ckt_image, (char *)&s.image);
	free(s.pieces);
	/* Only the control thread's own current context has changed, not the executor's. */
	return result;
}
