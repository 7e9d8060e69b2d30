/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensor maps in a layout of our own, with the data that the interpreter would need.  The rules are
 * those of the CUDA Driver API reference, section "Tensor Map Object Management".
 */
#include <string.h>

#include "softgpu/context/device.h"
#include "softgpu/context/log.h"

enum { RANK_MAX = 5, CORNERS_MAX = 3 };
enum kind { TILED = 1, IM2COL, IM2COL_WIDE };

struct tensor_map {
	uint64_t address;
	uint32_t last[RANK_MAX]; /* index of each dimension */
	uint32_t strides_16[RANK_MAX - 1];
	uint8_t box_last[RANK_MAX], steps[RANK_MAX];
	int16_t lower[CORNERS_MAX], upper[CORNERS_MAX];
	uint16_t channels, pixels;
	uint8_t kind, type, rank, interleave, swizzle, promotion, fill, mode;
};
_Static_assert(sizeof(struct tensor_map) <= sizeof(CUtensorMap), "a tensor map has 128 bytes");

struct tensor {
	CUtensorMapDataType type;
	cuuint32_t rank;
	void *address;
	const cuuint64_t *dims, *strides;
	const cuuint32_t *steps;
	CUtensorMapInterleave interleave;
	CUtensorMapSwizzle swizzle;
	CUtensorMapL2promotion promotion;
	CUtensorMapFloatOOBfill fill;
};

/* 0 for the packed types, which are not supported yet. */
static unsigned element_bytes(CUtensorMapDataType type)
{
	static const uint8_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
	return (unsigned)type < sizeof(bytes) ? bytes[type] : 0;
}

static bool is_float(CUtensorMapDataType type)
{
	return type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
}

static unsigned swizzle_bytes(CUtensorMapSwizzle swizzle)
{
	return swizzle == CU_TENSOR_MAP_SWIZZLE_32B    ? 32
		: swizzle == CU_TENSOR_MAP_SWIZZLE_64B ? 64
		: swizzle                              ? 128
						       : UINT32_MAX;
}

static CUresult check(const CUtensorMap *map, const struct tensor *t, unsigned inner_bytes)
{
	unsigned unit = t->interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? 32 : 16;
	if (!map || (uintptr_t)map % 64 || !t->dims || !t->steps || t->rank < 1 ||
		t->rank > RANK_MAX || (t->rank > 1 && !t->strides))
		return CUDA_ERROR_INVALID_VALUE;
	if ((unsigned)t->type > CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B ||
		(unsigned)t->interleave > CU_TENSOR_MAP_INTERLEAVE_32B ||
		(unsigned)t->swizzle > CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B ||
		(unsigned)t->promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B ||
		(unsigned)t->fill > CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA)
		return CUDA_ERROR_INVALID_VALUE;
	if (!element_bytes(t->type))
		return CKT_SOFT_UNSUPPORTED("tensor maps of packed types");
	if (!t->address || (uintptr_t)t->address % unit || (t->interleave && t->rank < 3) ||
		(t->fill && !is_float(t->type)))
		return CUDA_ERROR_INVALID_VALUE;
	if (t->interleave == CU_TENSOR_MAP_INTERLEAVE_32B &&
		t->swizzle != CU_TENSOR_MAP_SWIZZLE_32B)
		return CUDA_ERROR_INVALID_VALUE;
	if (!t->interleave && (inner_bytes % 16 || inner_bytes > swizzle_bytes(t->swizzle)))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < t->rank; i++) {
		if (!t->dims[i] || t->dims[i] > 1ULL << 32 || !t->steps[i] || t->steps[i] > 8)
			return CUDA_ERROR_INVALID_VALUE;
		if (i + 1 < t->rank && (t->strides[i] % unit || t->strides[i] >= 1ULL << 40))
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

static struct tensor_map common(enum kind kind, const struct tensor *t)
{
	struct tensor_map m = {.address = (uintptr_t)t->address,
		.kind = kind,
		.type = (uint8_t)t->type,
		.rank = (uint8_t)t->rank,
		.interleave = (uint8_t)t->interleave,
		.swizzle = (uint8_t)t->swizzle,
		.promotion = (uint8_t)t->promotion,
		.fill = (uint8_t)t->fill};
	for (unsigned i = 0; i < t->rank; i++) {
		m.last[i] = (uint32_t)(t->dims[i] - 1);
		m.steps[i] = (uint8_t)t->steps[i];
		if (i + 1 < t->rank)
			m.strides_16[i] = (uint32_t)(t->strides[i] / 16);
	}
	return m;
}

static CUresult finish(CUtensorMap *map, const struct tensor_map *made)
{
	memset(map, 0, sizeof(*map));
	memcpy(map, made, sizeof(*made));
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuTensorMapEncodeTiled(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType,
	cuuint32_t tensorRank, void *globalAddress, const cuuint64_t *globalDim,
	const cuuint64_t *globalStrides, const cuuint32_t *boxDim, const cuuint32_t *elementStrides,
	CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
	CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)
{
	struct tensor t = {tensorDataType, tensorRank, globalAddress, globalDim, globalStrides,
		elementStrides, interleave, swizzle, l2Promotion, oobFill};
	CUresult result = ckt_soft_initialized();
	if (result == CUDA_SUCCESS)
		result = boxDim ? check(tensorMap, &t, boxDim[0] * element_bytes(tensorDataType))
				: CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	struct tensor_map m = common(TILED, &t);
	for (unsigned i = 0; i < tensorRank; i++) {
		if (!boxDim[i] || boxDim[i] > 256)
			return CUDA_ERROR_INVALID_VALUE;
		m.box_last[i] = (uint8_t)(boxDim[i] - 1);
	}
	return finish(tensorMap, &m);
}

static CUresult encode_im2col(CUtensorMap *map, const struct tensor *t, enum kind kind,
	const int *lower, const int *upper, unsigned corners, unsigned channels, unsigned pixels,
	unsigned mode)
{
	/* The limit of a corner: more corners leave fewer bits for each. */
	int most = corners == 1 ? 32767 : corners == 2 ? 127 : 15;
	CUresult result = ckt_soft_initialized();
	if (result == CUDA_SUCCESS)
		result = check(map, t, channels * element_bytes(t->type));
	if (result != CUDA_SUCCESS)
		return result;
	if (t->rank < 3 || !lower || !upper || channels > 256 || pixels > 1024)
		return CUDA_ERROR_INVALID_VALUE;
	struct tensor_map m = common(kind, t);
	for (unsigned i = 0; i < corners; i++) {
		if (lower[i] < -most - 1 || lower[i] > most || upper[i] < -most - 1 ||
			upper[i] > most)
			return CUDA_ERROR_INVALID_VALUE;
		m.lower[i] = (int16_t)lower[i];
		m.upper[i] = (int16_t)upper[i];
	}
	m.channels = (uint16_t)channels;
	m.pixels = (uint16_t)pixels;
	m.mode = (uint8_t)mode;
	return finish(map, &m);
}

CUresult CUDAAPI cuTensorMapEncodeIm2col(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType,
	cuuint32_t tensorRank, void *globalAddress, const cuuint64_t *globalDim,
	const cuuint64_t *globalStrides, const int *pixelBoxLowerCorner,
	const int *pixelBoxUpperCorner, cuuint32_t channelsPerPixel, cuuint32_t pixelsPerColumn,
	const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
	CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
	CUtensorMapFloatOOBfill oobFill)
{
	struct tensor t = {tensorDataType, tensorRank, globalAddress, globalDim, globalStrides,
		elementStrides, interleave, swizzle, l2Promotion, oobFill};
	return encode_im2col(tensorMap, &t, IM2COL, pixelBoxLowerCorner, pixelBoxUpperCorner,
		tensorRank > 2 ? tensorRank - 2 : 0, channelsPerPixel, pixelsPerColumn, 0);
}

CUresult CUDAAPI cuTensorMapEncodeIm2colWide(CUtensorMap *tensorMap,
	CUtensorMapDataType tensorDataType, cuuint32_t tensorRank, void *globalAddress,
	const cuuint64_t *globalDim, const cuuint64_t *globalStrides, int pixelBoxLowerCornerWidth,
	int pixelBoxUpperCornerWidth, cuuint32_t channelsPerPixel, cuuint32_t pixelsPerColumn,
	const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
	CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle,
	CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)
{
	struct tensor t = {tensorDataType, tensorRank, globalAddress, globalDim, globalStrides,
		elementStrides, interleave, swizzle, l2Promotion, oobFill};
	if ((unsigned)mode > CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128)
		return CUDA_ERROR_INVALID_VALUE;
	return encode_im2col(tensorMap, &t, IM2COL_WIDE, &pixelBoxLowerCornerWidth,
		&pixelBoxUpperCornerWidth, 1, channelsPerPixel, pixelsPerColumn, mode);
}

CUresult CUDAAPI cuTensorMapReplaceAddress(CUtensorMap *tensorMap, void *globalAddress)
{
	struct tensor_map m;
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	if (!tensorMap || (uintptr_t)tensorMap % 64)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&m, tensorMap, sizeof(m));
	if (m.kind < TILED || m.kind > IM2COL_WIDE || !globalAddress ||
		(uintptr_t)globalAddress % (m.interleave == CU_TENSOR_MAP_INTERLEAVE_32B ? 32 : 16))
		return CUDA_ERROR_INVALID_VALUE;
	m.address = (uintptr_t)globalAddress;
	return finish(tensorMap, &m);
}
