/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA arrays as the client knows them: their descriptions, so that it can check copies.  An array
 * of a level of a mipmapped array is the client's alone; the worker knows it as the mipmapped array
 * and the number of the level.
 */
#pragma once

#include <cuda.h>

#include <stdbool.h>
#include <stdint.h>

#include "rpc/array_extent.h"
#include "cudacommon/object.h"

struct ckt_array {
	struct ckt_cudacommon_object object;
	CUDA_ARRAY3D_DESCRIPTOR desc; /* of a level, with its size */
	struct ckt_array_extent extent;
	uint64_t wire; /* id that the worker knows */
	uint32_t level;
	bool is_level;
};

struct ckt_mipmap {
	struct ckt_cudacommon_object object;
	CUDA_ARRAY3D_DESCRIPTOR desc;
	unsigned level_count;
	uint64_t levels[CKT_ARRAY_LEVELS_MAX]; /* ids of arrays */
};

/* NULL for an invalid handle. */
struct ckt_array *ckt_client_array_find(CUarray handle);
/* Whether the box is inside the array; CUDA takes parts of elements. */
bool ckt_client_array_holds(const struct ckt_array *array, uint64_t x, uint64_t y, uint64_t z,
	uint64_t width, uint64_t height, uint64_t depth);
/* Destroys what lives in a context that ends or is reset. */
void ckt_client_array_forget_context(uint64_t context);
