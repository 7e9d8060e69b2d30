/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What checkpoint/ needs of a session's GPUs and their memory: the worker implements it
 * (server/worker/memory/memory_operations.c).
 *
 * Threading: whoever has frozen the session, or restores it.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "checkpoint/addresses.h"

struct ckt_worker;

struct ckt_device_description {
	const char *name; /* the session's */
	int major, minor;
};

/* Where the session's memory lies: a slice of the window for each device. */
struct ckt_memory_layout {
	unsigned device_count;
	uint64_t base, size, slice_size;
};

/*
 * A piece of device memory as a paused session gives it up: an extent of the allocator, a part of a
 * large one, or physical memory of the program.
 */
struct ckt_region {
	unsigned device;
	uint64_t address; /* 0: physical memory, which the program maps itself */
	uint64_t size;
	uint64_t physical; /* its id; 0: an extent */
	bool tied;         /* it is given up with the next region, not before */
};
typedef int ckt_region_visit(const struct ckt_region *region, void *opaque);

struct ckt_memory_operations {
	/* ---- GPUs */
	struct ckt_memory_layout (*layout)(struct ckt_worker *worker);
	/* Precondition: no memory was allocated.  GPUs beyond the count stay unseen. */
	void (*place)(struct ckt_worker *worker, const struct ckt_memory_layout *layout);
	/* Whether the window or a part of it is that. */
	bool (*window_holds)(uint64_t base, uint64_t size);
	struct ckt_device_description (*describe)(struct ckt_worker *worker, unsigned device);
	/* Of CUDA, as cuDriverGetVersion says. */
	int (*driver_version)(struct ckt_worker *worker);

	/* ---- Pools of allocations that are ordered by streams */
	/* 0 or -ENOMEM. */
	int (*make_pools)(struct ckt_worker *worker);
	/* Blocks that were freed on a stream are free, or their pool's, where the stream is past it. */
	void (*settle_pools)(struct ckt_worker *worker);

	/* ---- Physical memory at addresses of the caller's choice */
	CUresult (*create)(struct ckt_worker *worker, unsigned device, uint64_t size,
		unsigned compression, uint64_t *ret_handle);
	CUresult (*allow)(
		struct ckt_worker *worker, unsigned device, uint64_t address, uint64_t size);
	CUresult (*map)(struct ckt_worker *worker, unsigned device, uint64_t address, uint64_t size,
		uint64_t *ret_piece);
	void (*unmap)(uint64_t address, uint64_t size, uint64_t piece);

	/* ---- Extents of the allocator that are taken ahead of a restore */
	CUresult (*preload)(
		struct ckt_worker *worker, unsigned device, uint64_t address, uint64_t size);
	void (*preload_drop)(struct ckt_worker *worker, unsigned device, uint64_t address);

	/* ---- All of the session's memory */
	/* What the session has of the device: its extents, and what was charged. */
	uint64_t (*held_bytes)(struct ckt_worker *worker, unsigned device);
	/* Calls visit for every region until one is not 0, which is returned. */
	int (*visit_regions)(struct ckt_worker *worker, ckt_region_visit *visit, void *opaque);
	/* Maps physical memory of the program at an address of the caller's, to be read and written. */
	CUresult (*show)(
		struct ckt_worker *worker, const struct ckt_region *region, uint64_t address);
	/*
	 * Gives the GPU its memory back; its addresses stay.  Regions that are tied are given up in
	 * their order.  Each is taken back by itself.  Precondition: not mapped by the program.
	 */
	void (*give_up)(struct ckt_worker *worker, const struct ckt_region *region);
	CUresult (*take_back)(struct ckt_worker *worker, const struct ckt_region *region);
	/* The server's account of the device: what a swapped session has not. */
	void (*give_lease)(struct ckt_worker *worker, unsigned device, uint64_t bytes);
	/* follows: behind a session that leaves; waits until so much has left, or nothing leaves. */
	bool (*take_lease)(
		struct ckt_worker *worker, unsigned device, uint64_t bytes, bool follows);
	/* What the program has mapped itself; all of it, or an error and nothing. */
	CUresult (*map_program)(struct ckt_worker *worker);
	void (*unmap_program)(struct ckt_worker *worker);
};

extern const struct ckt_memory_operations ckt_memory_operations;

static inline unsigned ckt_device_count(struct ckt_worker *worker)
{
	return ckt_memory_operations.layout(worker).device_count;
}
