/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that the program has: what was allocated, mapped, imported or registered, by address.
 * Any thread may call these functions at any time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>

enum ckt_range_kind {
	CKT_RANGE_DEVICE = 1,
	CKT_RANGE_GLOBAL,
	/* by the program itself: owner is the physical memory, flags the device's access */
	CKT_RANGE_MAPPED,
	CKT_RANGE_MANAGED,
	CKT_RANGE_IMPORTED,   /* another process's, see ipc.c */
	CKT_RANGE_HOST_ALLOC, /* from here on the host's */
	CKT_RANGE_HOST_REGISTERED
};

struct ckt_client_range {
	uint64_t base, size;
	enum ckt_range_kind kind;
	uint64_t context;
	/* the module of a global, the physical memory of a mapping */
	uint64_t owner;
	unsigned flags; /* of a global: whether it is managed */
	int device;
	uint64_t pool; /* the memory pool of device memory, 0 for none */
	uint64_t buffer_id;
	bool sync; /* what is done to it is done when the call returns */
	/* host memory that the device has at the same address (mapped.c) */
	bool mapped;
	bool shared; /* and the same pages too (shared.c) */
	/* of a mapping: bit d: device d, not its own, may read, read and write */
	uint64_t readers, writers;
};

/*
 * Room for what is about to be entered: asked for before the server is.  CUDA_ERROR_OUT_OF_MEMORY
 * where there is none.
 */
CUresult ckt_range_room(void);
/* Precondition: ckt_range_room(). */
void ckt_range_add(const struct ckt_client_range *range);
/* Removes the range that begins at base and is of that kind; false where there is none. */
bool ckt_range_remove(uint64_t base, enum ckt_range_kind kind, struct ckt_client_range *ret_range);
void ckt_range_remove_owner(uint64_t owner);
/* The context is gone, and with it the memory that was allocated in it. */
void ckt_range_remove_context(uint64_t context);
/* Copies of the range that may return early do not: CU_POINTER_ATTRIBUTE_SYNC_MEMOPS. */
bool ckt_range_set_sync(uint64_t address, bool sync);
/* The range that holds the address. */
bool ckt_range_find(uint64_t address, struct ckt_client_range *ret_range);
static inline bool ckt_range_kind_is_device(enum ckt_range_kind kind)
{
	return kind < CKT_RANGE_HOST_ALLOC;
}

/* Also host memory that is mapped: what reaches it goes by the device. */
static inline bool ckt_range_reaches_device(const struct ckt_client_range *range)
{
	return ckt_range_kind_is_device(range->kind) || range->mapped;
}

/*
 * Whether [address, address + size) is device memory, all of one allocation, or of mappings side by
 * side that are accessible.
 */
bool ckt_range_is_device(uint64_t address, uint64_t size);
/* Whether any range has something of [address, address + size). */
bool ckt_range_overlaps(uint64_t address, uint64_t size);
/* Of every range of that kind whose base is in [address, address + size). */
void ckt_range_set_flags(uint64_t address, uint64_t size, enum ckt_range_kind kind, unsigned flags);
/* Of mappings: what a device that is not their own may do with them. */
void ckt_range_set_peer(uint64_t address, uint64_t size, CUdevice device, unsigned flags);
/* The host range that begins at base is mapped from here on. */
void ckt_range_set_mapped(uint64_t base);
/* Of host memory: whether it is the very memory that the device has. */
void ckt_range_set_shared(uint64_t base, bool shared);
bool ckt_range_is_shared(uint64_t address, uint64_t size);
/* The same, and says in the debug log what is wrong with the range where it is not. */
bool ckt_range_require_device(const char *what, uint64_t address, uint64_t size);
bool ckt_range_is_pinned(const void *address, uint64_t size);
