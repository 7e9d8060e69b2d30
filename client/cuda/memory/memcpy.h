/* SPDX-License-Identifier: Apache-2.0 */
/* Copies: what the API's forms of them (copy_api.c, array_copy.c) come down to. */
#pragma once

#include <cuda.h>

#include <stdbool.h>
#include <stdint.h>

/*
 * A place in an array, of which the copy's dst or src counts the bytes in its row; id 0: none, the
 * side is memory.
 */
struct ckt_array_place {
	uint64_t id;
	uint32_t level;
	uint64_t y, z;
};

struct ckt_copy2d {
	uint64_t dst, src; /* host pointers as integers */
	uint64_t dst_pitch, src_pitch;
	uint64_t width, height;
	/* between an array and the host only: bytes from slice to slice of the latter */
	uint64_t depth, memory_slice;
	struct ckt_array_place array;
	bool dst_device, src_device;
	CUstream stream;
	bool async;
};

/* Bytes of the host as they are now, at least one, to the device. */
CUresult ckt_client_copy_send(uint64_t dst, const void *data, uint64_t size, uint64_t stream);
CUresult ckt_client_copy(uint64_t dst, bool dst_device, uint64_t src, bool src_device,
	uint64_t size, CUstream stream, bool async);
CUresult ckt_client_copy_2d(const struct ckt_copy2d *copy);
/*
 * To the host from what an executable graph has left of it: src is the same host memory.  Goes on
 * in the background.
 */
CUresult ckt_client_copy_fetch(const struct ckt_copy2d *copy, uint64_t exec, uint64_t stream);
/*
 * The ways of ckt_client_copy_2d where one side is an array and the other the host's memory:
 * everything is checked, height and depth not 0.
 */
CUresult ckt_client_copy_from_array(const struct ckt_copy2d *copy, uint64_t stream);
CUresult ckt_client_copy_to_array(const struct ckt_copy2d *copy, uint64_t stream);
/*
 * What a side that should be device memory is: pinned memory makes *device false; false where it is
 * neither.
 */
bool ckt_client_copy_side_is_right(
	const char *what, uint64_t address, bool *device, uint64_t extent);
/* Waits for copies to the host that are still under way and touch this memory. */
void ckt_client_copy_settle(const void *address, uint64_t size);
