/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables of modules whose addresses differ after a restore.  If the program knows the old
 * address, or a word of the session's memory points there, the restore is refused. Otherwise the
 * variable's contents go to its new address, and the session's note says so.  Threading: the thread
 * that restores.  0 or -errno and a sentence.
 */
#pragma once

#include "checkpoint/format/image.h"

struct ckt_worker;
struct ckt_scan_range;

struct ckt_moved {
	struct ckt_moved_variable {
		const ckt_image_module *module;
		const ckt_image_global *global;
		uint64_t from, size, to;
	} * list;
	size_t count, room;
};

/*
 * Compares the address of each variable with its old one, and updates the image.  Precondition: its
 * modules are loaded.
 */
int ckt_moved_find(struct ckt_moved *moved, struct ckt_worker *worker, ckt_image *image,
	char *ret_message, size_t message_size);
/* Whether anything points to their old addresses.  Precondition: all contents are in place. */
int ckt_moved_check(const struct ckt_moved *moved, struct ckt_worker *worker,
	const ckt_image *image, char *ret_message, size_t message_size);
void ckt_moved_fini(struct ckt_moved *moved);
