/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains of images: what the worker remembers of the last image, so that the next one holds only
 * what has changed.
 *
 *	save with keep_hashes --> last image's tables + a hash of every chunk, by a fresh key
 *	incremental save      --> chunks whose hash is the same point into the files of the last image, or of what that points to
 *	... on another base   --> its manifest is sent and becomes the last image; its chunk hashes (BLAKE3) are compared
 *	                          with those of the present contents, which costs a pass by the slower hash
 *
 * The second way serves what has no keyed hash too: arrays, memory of other contexts, a paused
 * session's.
 *
 * Threading: one operation at a time, with the session frozen or not yet going.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint/format/store.h"
#include "checkpoint/kernels/digest.h"
#include "checkpoint/kernels/hash.h"

struct ckt_object;
struct ckt_worker;

/* A piece of the session's contents. */
struct ckt_piece {
	unsigned space;                 /* as in a chunk */
	uint64_t owner;                 /* the array that it belongs to; 0: none */
	const struct ckt_object *array; /* it is read from this one; NULL: from memory */
	unsigned device;
	uint64_t address;
	uint64_t copy;       /* device address of its frozen copy; 0: at its own address */
	const uint8_t *data; /* blob, or the host's copy of a paused session */
	bool written;
	uint32_t size;
	bool hashable; /* device memory that the primary context can read, aligned */
	bool hashed;
	bool same;                  /* nothing to write: zeros only, or `old` holds it */
	const ckt_image_chunk *old; /* of the last image */
	/* of the last image: has the same contents if their hash matches */
	const ckt_image_chunk *candidate;
	struct ckt_hash_value value;
	bool digested;
	struct ckt_digest digest;
};

/* More than the manifest of any session that fits on today's GPUs: 1 TiB has 40 MB of chunks. */
enum { CKT_CHAIN_BASE_MAX = 256 << 20 };

/* The last image is `id`. */
bool ckt_chain_continues(const char id[CKT_IMAGE_ID]);
/* There are keyed hashes of it. */
bool ckt_chain_hashed(void);
/*
 * A piece of the manifest of the image that the next save builds on; the first has offset 0. 0 or
 * -errno.
 */
int ckt_chain_base_piece(
	const char id[CKT_IMAGE_ID], uint64_t offset, const void *data, size_t size);
/*
 * Makes `id` the last image, from the manifest that came in pieces if necessary.  -ESTALE: there is
 * none; -EINVAL: it belongs to another session, and the last image is as before.
 */
int ckt_chain_base_use(struct ckt_worker *worker, const char id[CKT_IMAGE_ID], char *ret_message,
	size_t message_size);
/* A fresh key at the beginning of a chain.  0, or -EIO if the kernel gives no random bytes. */
int ckt_chain_key(bool begin, uint64_t ret_key[4]);
/* Hashes what can be hashed. 0 or -errno: then nothing has a hash. */
int ckt_chain_hash(
	struct ckt_worker *worker, struct ckt_piece *pieces, size_t count, const uint64_t key[4]);
/*
 * Precondition: hashes use the chain's key.  Finds what did not change since the last image, and
 * candidates for the rest.
 */
void ckt_chain_compare(struct ckt_piece *pieces, size_t count);
/*
 * Given the hash of the piece's contents (BLAKE3), whether its candidate holds the same contents.
 */
bool ckt_chain_resembles(struct ckt_piece *piece, const void *hash);
/* A blob that the last image holds completely. */
bool ckt_chain_has_blob(const ckt_image_blob *blob);
/*
 * Appends the chunks that the new image shares with the last one, with their files and ancestors.
 * Precondition: the new image has all its own files and chunks.  -EMLINK if the chain would be too
 * long, -ENOMEM.
 */
int ckt_chain_share(ckt_image *image, const struct ckt_piece *pieces, size_t count);
/*
 * Makes the image, which moves here, the last one.  key: NULL if the pieces were not hashed.
 * -ENOMEM: nothing can build on it.
 */
int ckt_chain_advance(
	ckt_image *image, const struct ckt_piece *pieces, size_t count, const uint64_t key[4]);
/*
 * After a restore from an image of a chain: continues as if this worker had written it; if that
 * fails, the next image is complete.
 */
void ckt_chain_adopt(struct ckt_worker *worker, ckt_image *image);
/* The last image is one on which nothing can build. */
void ckt_chain_break(void);
