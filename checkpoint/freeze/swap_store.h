/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The swap memory of one session: a memory file or a file of the server's, which holds what a
 * swapped session had on the GPU.  It stays when the session comes in, so that only what has changed
 * since is written the next time.
 *
 *	region (an extent, or physical memory of the program) -> a range of the file, in whole chunks
 *	chunk  UNKNOWN --write--> STORED ; UNKNOWN or STORED --zeros--> ZERO, a hole ; a region that is gone is a hole too
 *
 * What has no holes of a memory file is pinned, in pieces, so that the GPU copies to it and from it.
 * Pages that the driver has pinned must not leave the file: a piece is unpinned before it gets holes.
 *
 * Threading: one operation at a time with the session frozen; chunks of one region are written and
 * read by several threads, each chunk by one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint/kernels/hash.h"
#include "checkpoint/memory_operations.h"

enum ckt_swap_state { CKT_SWAP_UNKNOWN, CKT_SWAP_ZERO, CKT_SWAP_STORED };

enum { CKT_SWAP_PIECE = 16 }; /* chunks */

struct ckt_swap_region {
	struct ckt_swap_region *next; /* by offset */
	struct ckt_region memory;
	uint64_t offset; /* in the file */
	size_t chunk_count;
	uint8_t *states;               /* enum ckt_swap_state */
	struct ckt_hash_value *hashes; /* of STORED; 0, 0: not known */
	bool used;                     /* by the swap that runs */
	uint8_t *map;                  /* its range of the file; NULL: not mapped yet */
	bool *pinned;                  /* by piece of CKT_SWAP_PIECE chunks */
};

/*
 * The file becomes the store's, also after an error.  The one that it has already keeps its
 * contents; in place of another it starts empty.  A file on disk is read and written past the page
 * cache (O_DIRECT) where its file system can.  0 or -errno: it is no file of memory or disk.
 */
int ckt_swap_store_use(int fd, uint64_t limit_bytes);
/* Begins a swap: no region is used. */
void ckt_swap_store_begin(void);
/* That of the memory, which is used from here on; NULL: no memory. */
struct ckt_swap_region *ckt_swap_store_region(const struct ckt_region *memory);
/* Gives up the regions that are not used. */
void ckt_swap_store_sweep(void);
/* 0 or -errno; -ENOSPC: the limit, or the file system, is full: then the chunk is UNKNOWN. */
int ckt_swap_store_write(struct ckt_swap_region *region, size_t chunk, const void *data,
	size_t size, const struct ckt_hash_value *hash);
/* What the chunk would take more. */
uint64_t ckt_swap_store_needs(const struct ckt_swap_region *region, size_t chunk);
/* Whether the limit leaves room for so many bytes more. */
bool ckt_swap_store_has_room(uint64_t bytes);
/* The chunk holds zeros: nothing of it is kept.  Precondition: it is not pinned. */
void ckt_swap_store_zero(struct ckt_swap_region *region, size_t chunk);
/* Of a STORED chunk; 0 or -errno. */
int ckt_swap_store_read(
	const struct ckt_swap_region *region, size_t chunk, void *ret_data, size_t size);
/*
 * The region's contents, to be read only, the store's; NULL with errno set.  node: of the host's
 * memory that is near the GPU, where a memory file then has its pages while there is room; -1: anywhere.
 */
uint8_t *ckt_swap_store_map(struct ckt_swap_region *region, int node);
/*
 * Pieces that are pinned although somebody waits: two sessions that take turns all the time would
 * else never have pinned memory.  An H200's driver pins 4 GiB in 0.2 s; copies of that much that are
 * not pinned take as long.  A test changes it.
 */
extern unsigned ckt_swap_pin_least;
/*
 * Pins what has no holes, piece by piece, until all is pinned, or *stop is not 0 and a few have been.
 * Precondition: a context is current, and no swap runs.
 */
void ckt_swap_store_pin(const _Atomic unsigned *stop);
/* Before the chunk may become a hole.  Precondition: as there, and nothing is copied. */
void ckt_swap_store_unpin(struct ckt_swap_region *region, size_t chunk);
/* Where the GPU may copy the chunk to and from; NULL: nowhere, because it is not pinned. */
uint8_t *ckt_swap_store_place(const struct ckt_swap_region *region, size_t chunk);
/* The GPU is about to write to the chunk's place: its hash is unknown until then.  As write's. */
int ckt_swap_store_fill(struct ckt_swap_region *region, size_t chunk);
/* What the file holds. */
uint64_t ckt_swap_store_bytes(void);
/* The key of its hashes; 32 bytes, the store's. */
const uint64_t *ckt_swap_store_key(void);
