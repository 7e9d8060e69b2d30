/*
 * A session that is to come from elsewhere and still runs there: its modules and memory are taken ahead, image by image, so that little is
 * left to do while it stands still.
 *
 *	PRELOAD image 0 -> PRELOAD image 1 -> ... -> START image N: what changed since N - 1, and everything else
 *
 * A piece is a chunk's place in an extent and known by the hash of its contents.  Extents lie in the allocators' caches, with nothing of
 * the session in them yet, until the START adopts them at the very same places.
 *
 * Threading: the control thread that loads.
 */
#pragma once

#include <stdbool.h>

#include "checkpoint/image.h"

struct ckt_worker;

/* True once an image was pre-loaded. */
bool ckt_preload_active(void);
/*
 * The index of the first entry of the image's journal that has not wholly been replayed, and what of it is left; -ESTALE where the image
 * has another past than what was pre-loaded.
 */
int ckt_preload_replayed(const ckt_image *image, ckt_image_journal *ret_left);
/*
 * Brings extents to what the image has and clears what is zeros; ret_skip[i] says that chunk i is there already.  At the last one chunks of
 * no extent are left to the caller, before they wait for it.  0, -EBADMSG, or -EIO with the driver's error.
 */
int ckt_preload_memory(struct ckt_worker *worker, const ckt_image *image, bool last, bool *ret_skip, int *ret_driver_error);
/* The image is loaded: its journal is replayed and its pieces are there. */
int ckt_preload_done(const ckt_image *image);
void ckt_preload_fini(void);
