/*
 * A session that is to come from elsewhere and still runs there: its modules and memory are taken
 * ahead, image by image, so that little is left to do while it stands still.
 *
 *	PRELOAD image 0 -> PRELOAD image 1 -> ... -> START image N: what changed since N - 1, and everything else
 *
 * A piece is a chunk's place in an extent, in memory that the program maps itself, in a variable of
 * a module or in an array, and known by the hash of its contents.  Extents lie in the allocators'
 * caches, with nothing of the session in them yet, until the START adopts them at the very same
 * places.  The program's own memory is mapped where the image has its contents, and is taken over
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

/* True once an image was pre-loaded. */
bool ckt_preload_active(void);
/*
 * The index of the first entry of the image's journal that has not wholly been replayed, and what
 * of it is left; -ESTALE where the image has another past than what was pre-loaded.
 */
int ckt_preload_replayed(const ckt_image *image, ckt_image_journal *ret_left);
/*
 * Brings extents to what the image has and clears what is zeros; ret_skip[i] says that chunk i is
 * there already.  At the last one chunks of no extent are left to the caller, before they wait for
 * it.  0, -EBADMSG, or -EIO with the driver's error.
 */
int ckt_preload_memory(struct ckt_worker *worker, const ckt_image *image, bool last, bool *ret_skip,
	int *ret_driver_error);
/*
 * Physical memory with these properties that was taken ahead, now the caller's; false: there is
 * none.
 */
bool ckt_preload_take(
	uint64_t id, unsigned device, uint64_t size, unsigned compression, uint64_t *ret_handle);
/* The image before had contents of this array. */
bool ckt_preload_knows(uint64_t owner);
/*
 * The next piece of it, from the cursor on, that has become zeros; the caller moves the cursor
 * behind it.
 */
bool ckt_preload_next_clear(uint64_t owner, uint64_t *cursor, uint32_t *ret_size);
/*
 * Clears what has become zeros in the program's own memory, which is mapped, and in variables.
 * Changes the current context.
 */
CUresult ckt_preload_clear(struct ckt_worker *worker);
/* The image is loaded: its journal is replayed and its pieces are there. */
int ckt_preload_done(const ckt_image *image);
void ckt_preload_fini(void);
