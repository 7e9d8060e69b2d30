/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA arrays: device memory for copies, textures and surfaces only.  Rows are contiguous, and so
 * are slices (or layers, or faces) and the levels of a mipmapped array.  Kernels cannot access an
 * array by address.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softgpu/context/object.h"
#include "softgpu/cuda_api.h"
#include "softgpu/ptx/ptx.h"

struct ckt_soft_context;
struct ckt_soft_copy;
struct ckt_soft_copy_end;
struct ckt_soft_device;

enum { CKT_SOFT_LEVELS_MAX = 18 }; /* for a width of 131072 */

/* The memory of an array, or of all levels of a mipmapped array; its last user frees it. */
struct ckt_soft_store {
	atomic_uint refs;
	struct ckt_soft_device *device;
	uint64_t base, bytes;
};

struct ckt_soft_format {
	enum ckt_ptx_channel channel;
	uint8_t channel_bytes;
	bool normalized; /* reads return floats, whatever the texture's flags are */
};

/* False if the soft GPU's textures do not support the format. */
bool ckt_soft_format(CUarray_format format, struct ckt_soft_format *ret_format);

struct ckt_soft_array {
	struct ckt_soft_object object;
	struct ckt_soft_context *context;
	/* all arrays with a handle, levels included */
	struct ckt_soft_array *next, **link;
	struct ckt_soft_store *store; /* referenced */
	CUDA_ARRAY3D_DESCRIPTOR desc; /* as requested; for a level, with the level's size */
	struct ckt_soft_format format;
	enum ckt_ptx_texture_shape shape;
	struct ckt_ptx_image image;
	uint32_t element_bytes;
	bool is_level; /* the mipmapped array destroys it */
};

struct ckt_soft_mipmap {
	struct ckt_soft_object object;
	struct ckt_soft_context *context;
	struct ckt_soft_mipmap *next, **link;
	CUDA_ARRAY3D_DESCRIPTOR desc;
	unsigned n_levels;
	struct ckt_soft_array *levels[CKT_SOFT_LEVELS_MAX]; /* referenced */
};

/* Returns the array with a reference, or CUDA_ERROR_INVALID_HANDLE. */
CUresult ckt_soft_array_get(CUarray handle, struct ckt_soft_array **ret_array);
/*
 * Makes one end of a copy: byte x, row y, slice z of the array; *copy gives the size.
 * CUDA_ERROR_INVALID_VALUE if the end leaves the array.
 */
CUresult ckt_soft_array_end(const struct ckt_soft_array *array, size_t x, size_t y, size_t z,
	const struct ckt_soft_copy *copy, struct ckt_soft_copy_end *ret_end);
/* Destroys all arrays, textures and surfaces of a closing context. */
void ckt_soft_arrays_forget(struct ckt_soft_context *context);

/* ---- texture.c */
void ckt_soft_textures_forget(struct ckt_soft_context *context);
/* Answers the queries of kernels; see ptx.h. */
const struct ckt_ptx_texture *ckt_soft_texture_find(void *data, uint64_t handle);
const struct ckt_ptx_texture *ckt_soft_surface_find(void *data, uint64_t handle);
