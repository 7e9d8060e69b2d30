/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA arrays in the client, which keeps their descriptors to check copies.  The client alone has
 * handles for the levels of a mipmapped array.  The worker knows a level as the mipmapped array and
 * the number of the level.
 */
#pragma once

#include <cuda.h>

#include <stdbool.h>
#include <stdint.h>

#include "rpc/array_extent.h"
#include "cudacommon/object.h"

struct ckt_array {
	struct ckt_cudacommon_object object;
	CUDA_ARRAY3D_DESCRIPTOR desc; /* of a level: with the size of that level */
	struct ckt_array_extent extent;
	uint64_t wire; /* the worker's id: of the array, or of the mipmapped array of a level */
	uint32_t level;
	bool is_level;
};

struct ckt_mipmap {
	struct ckt_cudacommon_object object;
	CUDA_ARRAY3D_DESCRIPTOR desc;
	unsigned level_count;
	uint64_t levels[CKT_ARRAY_LEVELS_MAX]; /* ids of arrays */
};

/* Returns NULL if the handle is invalid. */
struct ckt_array *ckt_client_array_find(CUarray handle);
/*
 * Whether the box is inside the array.  x and width count bytes, because CUDA accepts parts of
 * elements.
 */
bool ckt_client_array_holds(const struct ckt_array *array, uint64_t x, uint64_t y, uint64_t z,
	uint64_t width, uint64_t height, uint64_t depth);
/* Destroys the arrays, textures and surfaces of a context that ends or is reset. */
void ckt_client_array_forget_context(uint64_t context);
