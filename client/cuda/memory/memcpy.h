/* SPDX-License-Identifier: Apache-2.0 */
/* The copies that all copy functions of the API use (copy_api.c, array_copy.c). */
#pragma once

#include <cuda.h>

#include <stdbool.h>
#include <stdint.h>

/*
 * A place in an array.  The copy's dst or src is then the offset in the row, in bytes.  id 0: the
 * side is memory, not an array.
 */
struct ckt_array_place {
	uint64_t id;
	uint32_t level;
	uint64_t y, z;
};

struct ckt_copy2d {
	uint64_t dst, src; /* addresses; in an array: the offset in the row, in bytes */
	uint64_t dst_pitch, src_pitch;
	uint64_t width, height;
	/*
	 * only between an array and the host; memory_slice: bytes between two slices in host memory
	 */
	uint64_t depth, memory_slice;
	struct ckt_array_place array;
	bool dst_device, src_device;
	CUstream stream;
	bool async;
};

/* Sends host bytes to the device.  Reads them before it returns.  size must not be 0. */
CUresult ckt_client_copy_send(uint64_t dst, const void *data, uint64_t size, uint64_t stream);
CUresult ckt_client_copy(uint64_t dst, bool dst_device, uint64_t src, bool src_device,
	uint64_t size, CUstream stream, bool async);
CUresult ckt_client_copy_2d(const struct ckt_copy2d *copy);
/*
 * Copies to the host, in the background, what a launch of an executable graph wrote for this host
 * memory.  src is the same address as dst.  exec 0: copies device memory or an array, and waits as
 * other copies do.  Precondition: as ckt_client_copy_to_array.
 */
CUresult ckt_client_copy_fetch(const struct ckt_copy2d *copy, uint64_t exec, uint64_t stream);
/*
 * Copies from host memory to an array.  Precondition: the caller has checked all arguments, and
 * width, height and depth are not 0.
 */
CUresult ckt_client_copy_to_array(const struct ckt_copy2d *copy, uint64_t stream);
/*
 * Checks a side of a copy.  If *device is set but the memory is only pinned host memory, clears
 * *device.  Returns false if a side with *device is neither, or a host address is NULL.
 */
bool ckt_client_copy_side_is_right(
	const char *what, uint64_t address, bool *device, uint64_t extent);
/* Waits for copies to the host in the background that write any of these bytes. */
void ckt_client_copy_settle(const void *address, uint64_t size);
