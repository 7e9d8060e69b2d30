/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images of modules and inputs of the linker, found by their SHA-256.  The client sends each once
 * per session, and the session keeps it until its end.  A blob is valid only when it is complete
 * and matches the hash that it was sent under.  Threading: the executor's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CKT_HASH_SIZE = 32 };
/*
 * The limit for all blobs together.  No program has modules of that size, and a peer must not
 * exhaust the node's memory.
 */
#define CKT_BLOBS_BYTES_MAX ((uint64_t)8 << 30)

struct ckt_blob {
	uint8_t hash[CKT_HASH_SIZE];
	uint8_t *data; /* followed by a NUL, because PTX is text */
	uint64_t size, received;
	bool complete;
	/* whether the module's kernels allocate memory; kernel_heap.h */
	enum { CKT_BLOB_HEAP_UNKNOWN, CKT_BLOB_HEAP_NO, CKT_BLOB_HEAP_YES } heap;
};

struct ckt_blobs {
	struct ckt_blob **list; /* sorted by hash */
	size_t count, room;
	uint64_t bytes;
};

void ckt_blob_hash(const void *data, size_t size, uint8_t ret_hash[CKT_HASH_SIZE]);
/* A complete blob, or NULL. */
const struct ckt_blob *ckt_blobs_find(
	const struct ckt_blobs *blobs, const uint8_t hash[CKT_HASH_SIZE]);
/*
 * Adds a piece of a blob.  Pieces arrive in order; a repeated piece is ignored.  0, -EPROTO,
 * -ENOMEM, or -EBADMSG if the contents do not match the hash.
 */
int ckt_blobs_piece(struct ckt_blobs *blobs, const uint8_t hash[CKT_HASH_SIZE], uint64_t total,
	uint64_t offset, const void *data, size_t size);
/*
 * Adds a blob of that size from a file.  0, -EEXIST if pieces of it have come, -ENOMEM, or -EBADMSG if
 * the file is not what the hash says.
 */
int ckt_blobs_read(
	struct ckt_blobs *blobs, const uint8_t hash[CKT_HASH_SIZE], int fd, uint64_t size);
/* Adds whole contents that the worker made, and returns their hash. */
int ckt_blobs_add(
	struct ckt_blobs *blobs, const void *data, uint64_t size, uint8_t ret_hash[CKT_HASH_SIZE]);
