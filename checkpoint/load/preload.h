/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloads a session that still runs at another server: its modules and memory arrive ahead, image
 * by image, so that little is left to do while it is frozen.
 *
 *	PRELOAD image 0 -> PRELOAD image 1 -> ... -> START image N: what changed since N - 1, and everything else
 *
 * A piece is a chunk's place in an extent, in memory that the program maps itself, in a variable of
 * a module or in an array, and known by the hash of its contents.  Extents stay in the allocators'
 * caches, unused by the session, until the START adopts them at the same addresses.  Memory that
 * the program maps itself is mapped where the image has its contents, and the session takes it over
 * by its handle.  Modules and arrays are there as soon as the journal is replayed.
 *
 * Threading: the control thread that loads.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "checkpoint/format/image.h"

struct ckt_worker;

/* True once an image was preloaded. */
bool ckt_preload_active(void);
/*
 * The index of the first entry of the image's journal that has not been replayed completely, and
 * what remains of it; -ESTALE if the image's history differs from the preloaded one.
 */
int ckt_preload_replayed(const ckt_image *image, ckt_image_journal *ret_left);
/*
 * Brings extents to the image's state and clears zeros; ret_skip[i] says that chunk i is already
 * there.  For the last image the caller writes chunks of no extent, before it waits for them.  0,
 * -EBADMSG, or -EIO with the driver's error.
 */
int ckt_preload_memory(struct ckt_worker *worker, const ckt_image *image, bool last, bool *ret_skip,
	int *ret_driver_error);
/*
 * Physical memory with these properties that was preloaded, now the caller's; false: there is none.
 */
bool ckt_preload_take(
	uint64_t id, unsigned device, uint64_t size, unsigned compression, uint64_t *ret_handle);
/* Whether the image before had contents of this array. */
bool ckt_preload_knows(uint64_t owner);
/*
 * The next piece of the array, from the cursor on, that has become zeros; the caller moves the
 * cursor past it.
 */
bool ckt_preload_next_clear(uint64_t owner, uint64_t *cursor, uint32_t *ret_size);
/*
 * Clears pieces that have become zeros in memory that the program maps, and in variables. Changes
 * the current context.
 */
CUresult ckt_preload_clear(struct ckt_worker *worker);
/* The image is loaded: its journal is replayed and its pieces are there. */
int ckt_preload_done(const ckt_image *image);
void ckt_preload_fini(void);
