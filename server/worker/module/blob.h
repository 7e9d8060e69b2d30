/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images of modules and inputs of the linker by SHA-256: sent once per session, kept as long as it
 * lives. Threading: the executor's.  Contents count only when they are complete and have the hash
 * they were sent under.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CKT_HASH_SIZE = 32 };
/* Of all blobs; nobody has modules of that size, and a peer must not eat the node's memory. */
#define CKT_BLOBS_BYTES_MAX ((uint64_t)8 << 30)

struct ckt_blob {
	uint8_t hash[CKT_HASH_SIZE];
	uint8_t *data; /* one NUL more than size: PTX is text */
	uint64_t size, received;
	bool complete;
	/* whether its kernels take memory; kernel_heap.h */
	enum { CKT_BLOB_HEAP_UNKNOWN, CKT_BLOB_HEAP_NO, CKT_BLOB_HEAP_YES } heap;
};

struct ckt_blobs {
	struct ckt_blob **list; /* sorted by hash */
	size_t count, room;
	uint64_t bytes;
};

void ckt_blob_hash(const void *data, size_t size, uint8_t ret_hash[CKT_HASH_SIZE]);
/* A complete one, or NULL. */
const struct ckt_blob *ckt_blobs_find(
	const struct ckt_blobs *blobs, const uint8_t hash[CKT_HASH_SIZE]);
/*
 * A piece.  Pieces come in order; one that was there already is ignored. 0, -EPROTO, -ENOMEM, or
 * -EBADMSG where the hash is another.
 */
int ckt_blobs_piece(struct ckt_blobs *blobs, const uint8_t hash[CKT_HASH_SIZE], uint64_t total,
	uint64_t offset, const void *data, size_t size);
/* Whole contents made here; the hash comes back. */
int ckt_blobs_add(
	struct ckt_blobs *blobs, const void *data, uint64_t size, uint8_t ret_hash[CKT_HASH_SIZE]);
