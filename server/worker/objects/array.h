/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays, textures and surfaces.  Arrays are the driver's, outside of the window; their making and
 * end is in the journal, because it can move what the driver maps later.  A texture's or surface's
 * handle is a number that programs keep anywhere and give to kernels, so a restore makes each again
 * until the driver hands out the same one (array_image.c).
 *
 * Threading: the executor alone, or whoever has frozen it.
 */
#pragma once

#include <cuda.h>

#include "rpc/array_extent.h"
#include "checkpoint/object_kind.h"

struct ckt_object;
struct ckt_worker;

struct ckt_warray {
	CUDA_ARRAY3D_DESCRIPTOR desc;
	uint32_t levels; /* 0: a plain array */
	/* counted in the session's limit, and of the contents in an image */
	uint64_t bytes;
	CUarray level[CKT_ARRAY_LEVELS_MAX]; /* of a mipmapped one */
};

/* What a texture or surface was made from, so that it can be made again. */
struct ckt_wtexture {
	uint64_t handle;
	uint32_t type;  /* CUresourcetype */
	uint64_t array; /* id, and the level where type is an array's */
	uint32_t level;
	uint64_t address, width, height, pitch;
	uint32_t format, channels, flags;
	CUDA_TEXTURE_DESC desc;
	CUDA_RESOURCE_VIEW_DESC view;
	bool has_view;
};

/* ---- array.c; in the current context */
CUresult ckt_array_make(struct ckt_worker *worker, uint64_t id, const CUDA_ARRAY3D_DESCRIPTOR *desc,
	uint32_t levels, struct ckt_object **ret_object);
/* Gives it back and removes the object. */
void ckt_array_destroy(struct ckt_worker *worker, struct ckt_object *object);
/*
 * The driver's array of a plain one (level 0) or of a level; CUDA_ERROR_INVALID_HANDLE where there
 * is none.
 */
CUresult ckt_array_real(struct ckt_worker *worker, uint64_t id, uint32_t level, CUarray *ret_array);
/* Levels of contents: 1 for a plain array. */
unsigned ckt_array_level_count(const struct ckt_warray *array);
/*
 * The whole of it, level behind level, rows and slices without gaps; host memory of array->bytes.
 */
CUresult ckt_array_read(const struct ckt_object *object, uint8_t *ret_data);
CUresult ckt_array_write(const struct ckt_object *object, const uint8_t *data);
/*
 * A piece of it, by its place in those contents, to or from memory at `at`, in the order of the
 * stream: boxes, for a piece begins and ends anywhere in a row.  Precondition: the piece lies in
 * the array.
 */
CUresult ckt_array_move_piece(const struct ckt_object *object, uint64_t offset, uint64_t size,
	enum ckt_piece_way way, uint64_t at, CUstream stream);

/* ---- texture.c; in the current context */
/* The driver's object as described; *ret_handle is not the description's. */
CUresult ckt_texture_real_make(struct ckt_worker *worker, bool surface,
	const struct ckt_wtexture *texture, uint64_t *ret_handle);
void ckt_texture_real_unmake(bool surface, uint64_t handle);
/* Gives the driver's object back; the object stays. */
void ckt_texture_unmake(struct ckt_object *object);
/* Enters what was made. */
CUresult ckt_texture_add(struct ckt_worker *worker, uint64_t id, bool surface,
	const struct ckt_wtexture *texture, struct ckt_object **ret_object);
