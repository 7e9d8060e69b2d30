/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays, textures and surfaces in an image. */
#pragma once

#include "checkpoint/format/store.h"
#include "server/worker/objects/array.h"
#include "server/worker/worker.h"

void ckt_array_save(const struct ckt_object *object, ckt_image_array *ret_saved);
void ckt_array_save_dead(const struct ckt_journal_entry *entry, ckt_image_array *ret_saved);
/* Strings and lists belong to the image. */
/* 0 or -ENOMEM. */
int ckt_texture_save(const struct ckt_object *object, ckt_image_texture *ret_saved);
/* In the current context, as the journal has it. */
CUresult ckt_array_load(struct ckt_worker *worker, const ckt_image_array *saved);

/*
 * Contents of the live arrays, which the journal has made but for those it had no room for. skip:
 * chunks that are there already; NULL: none.  0 or -errno and a sentence.
 */
int ckt_arrays_load_contents(struct ckt_worker *worker, const ckt_image *image,
	const struct ckt_image_reader *reader, const bool *skip, char *ret_message,
	size_t message_size);
/*
 * Makes every texture and surface again so that each has its handle.  A driver hands handles out in
 * order, so what was destroyed in between is stood in for; the places it held are free again at the
 * end.  Where the same handle does not come, the restore is refused.
 */
int ckt_textures_load(
	struct ckt_worker *worker, const ckt_image *image, char *ret_message, size_t message_size);
