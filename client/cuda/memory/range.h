/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program's memory, by address: allocated, mapped, imported or registered.
 *
 * Threading: any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <cuda.h>

enum ckt_range_kind {
	CKT_RANGE_DEVICE = 1,
	CKT_RANGE_GLOBAL,
	/*
	 * mapped by the program (vmm.c): owner is the physical memory, flags are the device's
	 * access
	 */
	CKT_RANGE_MAPPED,
	CKT_RANGE_MANAGED,
	CKT_RANGE_IMPORTED,   /* memory of another process (ipc.c) */
	CKT_RANGE_HOST_ALLOC, /* this and the next: host memory */
	CKT_RANGE_HOST_REGISTERED
};

struct ckt_client_range {
	uint64_t base, size;
	enum ckt_range_kind kind;
	uint64_t context;
	/*
	 * of a global: its module; of a mapping: the physical memory; of HOST_ALLOC: 1 if the
	 * device can have it at this address (mapped.c, shared.c), else 0
	 */
	uint64_t owner;
	/* of a global: 1 if it is managed; of host and managed memory: the program's flags */
	unsigned flags;
	int device;
	uint64_t pool; /* the memory pool of device memory, 0 for none */
	uint64_t buffer_id;
	bool sync; /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: operations end before their calls return */
	/* host memory: the device has memory at the same address (mapped.c, shared.c) */
	bool mapped;
	bool shared; /* and the same pages (shared.c) */
	/* of a mapping: bit d is set if device d, not its own, may read, or read and write */
	uint64_t readers, writers;
};

/*
 * Makes room for a range.  Call it before the server allocates the memory.
 * CUDA_ERROR_OUT_OF_MEMORY if there is no room.
 */
CUresult ckt_range_room(void);
/* Precondition: ckt_range_room(). */
void ckt_range_add(const struct ckt_client_range *range);
/*
 * Removes the range of that kind that begins at base.  Returns false if there is none.  ret_range
 * may be NULL.
 */
bool ckt_range_remove(uint64_t base, enum ckt_range_kind kind, struct ckt_client_range *ret_range);
void ckt_range_remove_owner(uint64_t owner);
/* Removes the ranges of a context that ended, except mappings and host memory. */
void ckt_range_remove_context(uint64_t context);
/*
 * Sets CU_POINTER_ATTRIBUTE_SYNC_MEMOPS of the range that holds the address.  Returns false if
 * there is none.
 */
bool ckt_range_set_sync(uint64_t address, bool sync);
/* Copies the range that holds the address.  Returns false if there is none. */
bool ckt_range_find(uint64_t address, struct ckt_client_range *ret_range);
static inline bool ckt_range_kind_is_device(enum ckt_range_kind kind)
{
	return kind < CKT_RANGE_HOST_ALLOC;
}

/* True also for mapped host memory, because copies with it use the device's side. */
static inline bool ckt_range_reaches_device(const struct ckt_client_range *range)
{
	return ckt_range_kind_is_device(range->kind) || range->mapped;
}

/*
 * Whether [address, address + size) is device memory: of one allocation, or of adjacent mappings
 * that the device may access.
 */
bool ckt_range_is_device(uint64_t address, uint64_t size);
/* Whether any range overlaps [address, address + size). */
bool ckt_range_overlaps(uint64_t address, uint64_t size);
/* Sets the flags of every range of that kind whose base is in [address, address + size). */
void ckt_range_set_flags(uint64_t address, uint64_t size, enum ckt_range_kind kind, unsigned flags);
/* Sets what a device other than their own may do with the mappings in this range. */
void ckt_range_set_peer(uint64_t address, uint64_t size, CUdevice device, unsigned flags);
/* Marks the host range that begins at base as mapped. */
void ckt_range_set_mapped(uint64_t base);
/* Sets whether the host range that begins at base and the device have the same pages. */
void ckt_range_set_shared(uint64_t base, bool shared);
bool ckt_range_is_shared(uint64_t address, uint64_t size);
/* Like ckt_range_is_device; if the result is false, the debug log gets the reason. */
bool ckt_range_require_device(const char *what, uint64_t address, uint64_t size);
bool ckt_range_is_pinned(const void *address, uint64_t size);
