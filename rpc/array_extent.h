/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes of CUDA arrays as both sides compute them: bytes of a row, rows of a slice, slices;
 * compressed formats count in whole blocks.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

enum { CKT_ARRAY_LEVELS_MAX = 18 }; /* of a width of 131072 */

/* Bytes of an element, or of a block of side * side elements. */
struct ckt_array_element {
	uint32_t bytes, side;
};

struct ckt_array_extent {
	uint64_t row_bytes, rows, slices;
	struct ckt_array_element element;
};

/*
 * False for planar formats: they are neither plain nor compressed, because they consist of several
 * parts.
 */
static inline bool ckt_array_element(
	uint32_t format, uint32_t channels, struct ckt_array_element *ret_element)
{
	uint32_t bytes = 0, side = 1;
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		bytes = channels;
		break;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		bytes = 2 * channels;
		break;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
	case CU_AD_FORMAT_UNORM_INT_101010_2:
		bytes = format == CU_AD_FORMAT_UNORM_INT_101010_2 ? 4 : 4 * channels;
		break;
	default:
		/*
		 * Each row lists three formats, for one, two and four channels: unsigned bytes and
		 * words, then signed ones.
		 */
		if (format >= CU_AD_FORMAT_UNORM_INT8X1 && format <= CU_AD_FORMAT_SNORM_INT16X4) {
			uint32_t i = format - CU_AD_FORMAT_UNORM_INT8X1;
			bytes = (1u << i % 3) << (i / 3 & 1);
		} else if (format >= CU_AD_FORMAT_BC1_UNORM &&
			format <= CU_AD_FORMAT_BC7_UNORM_SRGB) {
			bool half = format <= CU_AD_FORMAT_BC1_UNORM_SRGB ||
				format == CU_AD_FORMAT_BC4_UNORM ||
				format == CU_AD_FORMAT_BC4_SNORM;
			bytes = half ? 8 : 16;
			side = 4;
		}
	}
	if (!bytes || bytes > 16)
		return false;
	*ret_element = (struct ckt_array_element){bytes, side};
	return true;
}

static inline uint64_t ckt_array_halved(uint64_t size, unsigned level)
{
	return !size ? 0 : size >> level ? size >> level : 1;
}

/* Whether depth is the third dimension rather than a count of layers or faces. */
static inline bool ckt_array_is_3d(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	return desc->Depth && !(desc->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP));
}

/* A level of a mipmapped array as an array of its own. */
static inline CUDA_ARRAY3D_DESCRIPTOR ckt_array_level(
	const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned level)
{
	CUDA_ARRAY3D_DESCRIPTOR r = *desc;
	r.Width = ckt_array_halved(desc->Width, level);
	r.Height = ckt_array_halved(desc->Height, level);
	if (ckt_array_is_3d(desc))
		r.Depth = ckt_array_halved(desc->Depth, level);
	return r;
}

/* CUDA makes no more levels than this. */
static inline unsigned ckt_array_levels(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned asked)
{
	uint64_t longest = desc->Width > desc->Height ? desc->Width : desc->Height;
	unsigned levels = 1;
	if (ckt_array_is_3d(desc) && desc->Depth > longest)
		longest = desc->Depth;
	while (levels < CKT_ARRAY_LEVELS_MAX && longest >> levels)
		levels++;
	return asked < levels ? (asked ? asked : 1) : levels;
}

/* False if the format is unknown or the sizes exceed what any GPU makes. */
static inline bool ckt_array_extent(
	const CUDA_ARRAY3D_DESCRIPTOR *desc, struct ckt_array_extent *ret_extent)
{
	struct ckt_array_element element;
	const uint64_t most = 1 << 20;
	if (!ckt_array_element(desc->Format, desc->NumChannels, &element) || !desc->Width ||
		desc->Width > most || desc->Height > most || desc->Depth > most)
		return false;
	uint64_t height = desc->Height ? desc->Height : 1;
	*ret_extent = (struct ckt_array_extent){
		.row_bytes = (desc->Width + element.side - 1) / element.side * element.bytes,
		.rows = (height + element.side - 1) / element.side,
		.slices = desc->Depth ? desc->Depth : 1,
		.element = element};
	/* Far above any GPU's memory, far below an overflow. */
	return ret_extent->row_bytes * ret_extent->rows <= (uint64_t)1 << 42 &&
		ret_extent->slices <=
		((uint64_t)1 << 46) / (ret_extent->row_bytes * ret_extent->rows);
}

static inline uint64_t ckt_array_bytes(const struct ckt_array_extent *extent)
{
	return extent->row_bytes * extent->rows * extent->slices;
}

/* Bytes of all levels (0 levels: a plain array); 0 if no such array can exist. */
static inline uint64_t ckt_array_total_bytes(const CUDA_ARRAY3D_DESCRIPTOR *desc, uint32_t levels)
{
	uint64_t bytes = 0;
	if (levels > CKT_ARRAY_LEVELS_MAX || (levels && levels != ckt_array_levels(desc, levels)))
		return 0;
	for (unsigned i = 0; i < (levels ? levels : 1); i++) {
		struct ckt_array_extent extent;
		CUDA_ARRAY3D_DESCRIPTOR level = ckt_array_level(desc, i);
		if (!ckt_array_extent(&level, &extent))
			return 0;
		bytes += ckt_array_bytes(&extent);
	}
	return bytes;
}
