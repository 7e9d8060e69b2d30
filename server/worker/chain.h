/*
 * Chains of images: what is remembered of the last image so that the next one holds only what changed since.
 *
 *	save with keep_hashes --> last image's tables + a hash of every chunk, by a fresh key
 *	incremental save      --> chunks whose hash is the same point into the files of the last image, or of what that points to
 *
 * Threading: one operation at a time, with the session frozen or not yet going.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint/store.h"
#include "server/worker/digest.h"
#include "server/worker/hash.h"

struct ckt_worker;

/* A piece of the session's contents. */
struct ckt_piece {
	unsigned space;		/* as in a chunk */
	unsigned device;
	uint64_t address;
	uint64_t copy;		/* where its frozen state lies on the device; 0: at its address */
	const uint8_t *data;	/* blob, or the host's copy of a paused session */
	bool written;
	uint32_t size;
	bool hashable;		/* device memory that the primary context can read, aligned */
	bool hashed;
	bool same;		/* nothing to write: nothing but zeros, or `old` holds it */
	const ckt_image_chunk *old;	/* of the last image */
	struct ckt_hash_value value;
	bool digested;
	struct ckt_digest digest;
};

/* The last image is `id`, and hashes of it are there. */
bool ckt_chain_continues(const char id[CKT_IMAGE_ID]);
/* A fresh key, where a chain begins. */
void ckt_chain_key(bool begin, uint64_t ret_key[4]);
/* Hashes what can be hashed. 0 or -errno: then none has a hash. */
int ckt_chain_hash(struct ckt_worker *worker, struct ckt_piece *pieces, size_t count, const uint64_t key[4]);
/* Precondition: hashed by the chain's key.  Finds what did not change since the last image. */
void ckt_chain_compare(struct ckt_piece *pieces, size_t count);
/* A blob that the last image holds whole. */
bool ckt_chain_has_blob(const ckt_image_blob *blob);
/*
 * Appends the chunks of the last image that the new one shares, with the files and ancestors they lie in.  Precondition: the new
 * one's own files and chunks are all there.  -EMLINK where the chain would be too long.
 */
int ckt_chain_share(ckt_image *image, const struct ckt_piece *pieces, size_t count);
/* The image, moved here, is the last one from now on. */
void ckt_chain_advance(ckt_image *image, const struct ckt_piece *pieces, size_t count, const uint64_t key[4]);
/* After a restore from an image of a chain: as if this worker had written it. */
void ckt_chain_adopt(struct ckt_worker *worker, ckt_image *image);
/* The last image is one that nothing can build on. */
void ckt_chain_break(void);
