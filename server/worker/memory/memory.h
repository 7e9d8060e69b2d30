/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory of a session: one allocator per device over its slice of the window.
 *
 *	slice   |SSSSSSSS|BBBBBBBBBBBBBBBB|........|BBBBBBBB|cccccccc|...
 *	         extents: S small (blocks of up to 1 MiB share it), B one block, c mapped but free (cache), . free addresses
 *
 * Addresses come first fit in whole extents of 2 MiB, blocks inside small extents first fit in 512
 * bytes, whatever the cache holds: the same history gives the same addresses.  Physical memory
 * stays behind an address as long as the block lives.
 *
 * Threading: every function locks.  Errors: CUresult.
 */
#pragma once

#include <cuda.h>
#include <pthread.h>

#include "checkpoint/addresses.h"
#include "cudacommon/pool_arena.h"
#include "server/worker/memory/lease.h"
#include "server/worker/memory/ranges.h"

enum {
	CKT_MEMORY_ALIGNMENT = 512, /* what cuMemAlloc gives on every GPU we know */
	CKT_MEMORY_SMALL_MAX = 1 << 20,
};
/* Mapping costs 0.1 ms; more than this kept back would be missed by other sessions of the card. */
#define CKT_MEMORY_CACHE_MAX ((uint64_t)64 << 20)
/*
 * As on a card, where the driver keeps some for itself, the last bit of a limit is not for the
 * program.
 */
#define CKT_MEMORY_RESERVED CKT_MEMORY_EXTENT
/*
 * In an owner: what a forwarded library allocated for itself, which the program neither sees nor
 * frees.  The rest of the owner is the id of the library's object that was being served, or 0.  An
 * image holds neither the block nor its contents: the library is made anew at a restore and takes
 * its memory again.
 */
#define CKT_MEMORY_LIBRARY ((uint64_t)1 << 62)

struct ckt_memory_ops {
	/* Puts fresh physical memory behind the addresses. */
	CUresult (*map)(void *opaque, unsigned device, uint64_t address, uint64_t size,
		uint64_t *ret_piece);
	void (*unmap)(
		void *opaque, unsigned device, uint64_t address, uint64_t size, uint64_t piece);
	/*
	 * Of the session's lease (lease.h), before memory is made and after it is gone; the cache
	 * counts, too.  NULL: there is no lease.
	 */
	bool (*take)(void *opaque, unsigned device, uint64_t size, enum ckt_lease_how how);
	void (*give)(void *opaque, unsigned device, uint64_t size);
};

enum ckt_extent_use { CKT_EXTENT_BIG = 0, CKT_EXTENT_SMALL = 1, CKT_EXTENT_CACHED = 2 };

/*
 * A large extent that comes in from the swap memory has physical memory in parts of this size, so that
 * it leaves and comes in step by step.  Before, it has one: other processes can map that.
 */
#define CKT_MEMORY_PART ((uint64_t)256 << 20)

struct ckt_extent {
	uint64_t address, size, piece;
	enum ckt_extent_use use;
	uint64_t *
		parts; /* of CKT_MEMORY_PART bytes, the last one of the rest, in place of piece; 0: none now */
};

struct ckt_block {
	uint64_t address;
	uint64_t size; /* as asked */
	uint64_t granted;
	/* id of the context it was allocated in; or CKT_MEMORY_LIBRARY and more */
	uint64_t owner;
	uint64_t pool; /* id of the memory pool it belongs to, 0 for none */
	/* the program gave it back: queued work has not finished, or its pool keeps it */
	bool freeing;
};

/* What the blocks of one pool come to; see pool.h. */
struct ckt_account {
	uint64_t pool;
	/* sum of granted of the blocks that the program has */
	uint64_t used, used_high;
	uint64_t reserved, reserved_high; /* of all its blocks */
	struct ckt_pool_arena arena;      /* what CUDA's attributes tell of it */
};

struct ckt_memory {
	pthread_mutex_t lock;
	const struct ckt_memory_ops *ops;
	void *opaque;
	unsigned device;
	uint64_t base, size;
	uint64_t limit; /* 0: none */
	uint64_t used;  /* sum of granted, and what was charged */
	uint64_t *told; /* where others read it; NULL: nowhere */
	/* physical memory that is not cached, and what was charged: what a limit counts */
	uint64_t held;
	uint64_t charged; /* of that, made outside of the allocator */
	uint64_t cached;
	struct ckt_ranges addresses; /* free, in extents */
	struct ckt_ranges small;     /* free inside small extents */
	struct ckt_extent *extents;  /* sorted by address */
	size_t extent_count, extent_room;
	struct ckt_block *blocks; /* sorted by address */
	size_t block_count, block_room;
	struct ckt_account *accounts;
	size_t account_count, account_room;
	uint64_t imposed; /* where the next allocation must lie; 0: it may lie anywhere */
	uint64_t hidden;  /* of the slice's beginning: free, but not to be had now */
};

void ckt_memory_init(struct ckt_memory *memory, unsigned device, uint64_t base, uint64_t size,
	uint64_t limit, const struct ckt_memory_ops *ops, void *opaque);
/* Other addresses.  Precondition: nothing was ever allocated. */
void ckt_memory_move(struct ckt_memory *memory, uint64_t base, uint64_t size);
/* Another limit, 0: none.  Precondition: nothing was ever allocated. */
void ckt_memory_set_limit(struct ckt_memory *memory, uint64_t limit);
/* Unmaps everything. */
void ckt_memory_fini(struct ckt_memory *memory);

CUresult ckt_memory_alloc(
	struct ckt_memory *memory, uint64_t size, uint64_t owner, uint64_t *ret_address);
/*
 * From now on allocations and reservations get this address, or CUDA_ERROR_OUT_OF_MEMORY where it is
 * not free; 0: they get any, as ever.
 */
void ckt_memory_impose(struct ckt_memory *memory, uint64_t address);
/*
 * Marks a block as freed by the program: CUDA_ERROR_INVALID_VALUE where it is no block of the
 * program's or was freed before.
 */
CUresult ckt_memory_free_begin(struct ckt_memory *memory, uint64_t address, uint64_t *ret_owner);
/* Takes ckt_memory_free_begin back, for a block of no pool. */
void ckt_memory_free_cancel(struct ckt_memory *memory, uint64_t address);
/* The same for a block of a library's, by that library. */
CUresult ckt_memory_free_library(struct ckt_memory *memory, uint64_t address);
/* Really frees what one of them marked. */
void ckt_memory_free_end(struct ckt_memory *memory, uint64_t address);
/*
 * Marks every block of a context (0: every block of the device) and frees it at once. Precondition:
 * nothing runs that uses them.
 */
void ckt_memory_free_owned(struct ckt_memory *memory, uint64_t owner);
/* What is one owner's becomes the other's; the bytes of it that are not being freed. */
uint64_t ckt_memory_reown(struct ckt_memory *memory, uint64_t from, uint64_t to);
/* The block that the address lies in, and whose it is; false where it lies in none. */
bool ckt_memory_block_of(struct ckt_memory *memory, uint64_t address, struct ckt_block *ret_block);
/*
 * Whether the extent at the index, which is no cached one, holds blocks of libraries only: an image
 * needs none of it.  Precondition: locked, or frozen.
 */
bool ckt_memory_extent_is_library(const struct ckt_memory *memory, size_t index);
/* True where [address, address + size) lies inside one live block. */
bool ckt_memory_holds(struct ckt_memory *memory, uint64_t address, uint64_t size);
/*
 * The live block that begins at the address: its size, its context, and the physical memory it lies
 * in, 0 if that is several parts.  False where none does, and for blocks of pools.
 */
bool ckt_memory_locate(struct ckt_memory *memory, uint64_t address, uint64_t *ret_size,
	uint64_t *ret_owner, uint64_t *ret_extent, uint64_t *ret_extent_size, uint64_t *ret_piece);
/* The extent that holds the address, or the part of it, and its physical memory. */
bool ckt_memory_extent_of(struct ckt_memory *memory, uint64_t address, uint64_t *ret_base,
	uint64_t *ret_size, uint64_t *ret_piece);
/* The extent at the address has that physical memory from now on, and no parts: they are unmapped. */
void ckt_memory_join(struct ckt_memory *memory, uint64_t address, uint64_t piece);
/* Bytes a program may still ask for; driver_free is the driver's own answer. */
uint64_t ckt_memory_free_bytes(struct ckt_memory *memory, uint64_t driver_free);
uint64_t ckt_memory_used(struct ckt_memory *memory);
/* From now on place holds what ckt_memory_used gives; it must live as long as the memory. */
void ckt_memory_tell(struct ckt_memory *memory, uint64_t *place);
/* Drops the cache. */
void ckt_memory_trim(struct ckt_memory *memory);
/* The same without waiting for the lock; false: it is taken. */
bool ckt_memory_try_trim(struct ckt_memory *memory);
/* Physical memory that is mapped and free. */
uint64_t ckt_memory_cached(struct ckt_memory *memory);

/* ---- Blocks of pools */

/* What a request of that size is given. */
uint64_t ckt_memory_granted(uint64_t size);
/*
 * The block at the address belongs to the pool from now on; stream: that it was allocated on, for
 * the pool's figures (pool_arena.h).
 */
void ckt_memory_assign(struct ckt_memory *memory, uint64_t address, uint64_t pool, uint64_t stream);
/* The pool that the block at the address belongs to; 0 for none, and where there is no block. */
uint64_t ckt_memory_pool_of(struct ckt_memory *memory, uint64_t address, uint64_t *ret_granted);
/*
 * Hands a block that ckt_memory_free_begin marked out again, for a request that is granted the
 * same.
 */
void ckt_memory_reuse(struct ckt_memory *memory, uint64_t address, uint64_t size, uint64_t owner,
	uint64_t stream);
/*
 * The block that ckt_memory_free_begin marked was freed on the stream; CKT_POOL_ARENA_NOBODY: of no
 * stream, until it is done.
 */
void ckt_memory_pool_hold(struct ckt_memory *memory, uint64_t address, uint64_t stream);
/*
 * Nothing queued uses the block any more: to the pool's figures it is free, though it may be kept.
 */
void ckt_memory_pool_done(struct ckt_memory *memory, uint64_t address);
/* How much more the pool would have reserved with a block of that size. */
uint64_t ckt_memory_pool_growth(
	struct ckt_memory *memory, uint64_t pool, uint64_t size, uint64_t stream);
/* The figures of the pool give back what is more than that. */
void ckt_memory_pool_trim(struct ckt_memory *memory, uint64_t pool, uint64_t keep_bytes);
/* All zeros for a pool without blocks here. */
struct ckt_account ckt_memory_account(struct ckt_memory *memory, uint64_t pool);
/* Sets the high marks, which are never below what there is now. */
void ckt_memory_account_marks(
	struct ckt_memory *memory, uint64_t pool, uint64_t used_high, uint64_t reserved_high);
/* Forgets the account of a pool without blocks. */
void ckt_memory_account_drop(struct ckt_memory *memory, uint64_t pool);

/* ---- Addresses and physical memory that the program manages itself (vmm.c) */

/*
 * Takes addresses with nothing behind them; alignment: 0 or a power of two.  hint: tried first,
 * where it is not 0.
 */
CUresult ckt_memory_reserve(struct ckt_memory *memory, uint64_t size, uint64_t alignment,
	uint64_t hint, uint64_t *ret_address);
/* Precondition: reserved, and nothing is mapped there. */
void ckt_memory_unreserve(struct ckt_memory *memory, uint64_t address, uint64_t size);
/*
 * Counts physical memory made outside of the allocator; CUDA_ERROR_OUT_OF_MEMORY where the limit
 * does not allow it.
 */
CUresult ckt_memory_charge(struct ckt_memory *memory, uint64_t size);
/* What is taken already, whether the limit allows it or not. */
void ckt_memory_add(struct ckt_memory *memory, uint64_t size);
/* Whether more is held than the limit allows, as after a restore of a session of another server. */
bool ckt_memory_is_over(struct ckt_memory *memory);
void ckt_memory_uncharge(struct ckt_memory *memory, uint64_t size);
uint64_t ckt_memory_charged(struct ckt_memory *memory);

/*
 * Restore: recreates a fresh allocator's extents, then its blocks, at their old addresses.
 * CUDA_ERROR_INVALID_VALUE where they overlap or leave the slice.
 */
CUresult ckt_memory_adopt_extent(
	struct ckt_memory *memory, uint64_t address, uint64_t size, enum ckt_extent_use use);
/*
 * Ahead of a restore: physical memory behind addresses that an extent will be adopted at; the
 * addresses stay free.  Nothing else is mapped there afterwards.
 */
CUresult ckt_memory_preload(struct ckt_memory *memory, uint64_t address, uint64_t size);
void ckt_memory_preload_drop(struct ckt_memory *memory, uint64_t address);
/*
 * Ahead of a restore: new allocations come from the last quarter of the slice, where no image has
 * any, until the rest is shown again. Precondition: nothing was allocated from the rest; else
 * nothing happens.
 */
void ckt_memory_hide(struct ckt_memory *memory);
void ckt_memory_show(struct ckt_memory *memory);
CUresult ckt_memory_adopt_block(
	struct ckt_memory *memory, uint64_t address, uint64_t size, uint64_t owner);
