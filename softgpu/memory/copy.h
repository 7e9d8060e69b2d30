/* SPDX-License-Identifier: Apache-2.0 */
/* Copies: one descriptor for all forms.  The call checks it, and the stream runs it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softgpu/cuda_api.h"

enum ckt_soft_place {
	CKT_SOFT_PLACE_HOST = 1, /* any memory of the process */
	CKT_SOFT_PLACE_DEVICE,   /* must be accessible to devices */
	CKT_SOFT_PLACE_ANY,      /* the address decides (unified addressing) */
	CKT_SOFT_PLACE_ARRAY,    /* in an array; the function that made the end checked it */
};

struct ckt_soft_copy_end {
	uint64_t address;      /* of the first byte */
	uint64_t pitch, slice; /* bytes from row to row, from slice to slice */
	enum ckt_soft_place place;
	CUarray array; /* for an end in an array, with the position of the first byte */
	size_t x, y, z;
};

struct ckt_soft_copy {
	struct ckt_soft_copy_end to, from;
	uint64_t width, height, depth; /* bytes, rows, slices */
};

/* Copies without checks. */
void ckt_soft_copy_run(const struct ckt_soft_copy *copy);
/*
 * Checks addresses and submits the copy.  Waits if `wait` is set, or if CUDA's rules for pageable
 * memory require it.
 */
CUresult ckt_soft_copy_submit(const struct ckt_soft_copy *copy, CUstream stream, bool wait);
/* CUDA_ERROR_INVALID_VALUE unless the place of the end permits access to every byte. */
CUresult ckt_soft_copy_check(
	const struct ckt_soft_copy_end *end, const struct ckt_soft_copy *copy, uint8_t bits);
