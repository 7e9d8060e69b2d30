/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensor maps: 128 bytes that a kernel's tile copies read.  Their format is undocumented and
 * depends on the device, so the worker's driver encodes them.  The addresses in them are the
 * session's, which never change.
 */
#include <string.h>

#include "client/cuda/call.h"
#include "client/cuda/context/context.h"
#include "cudacommon/interface.h"
#include "rpc/tensor_map.h"

enum { RANK_MAX = 5 };

static CUresult encode(CUtensorMap *map, struct ckt_tensor_map_encode_args *args,
	const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box,
	const cuuint32_t *steps)
{
	struct ckt_context *context;
	struct ckt_reply reply;
	struct ckt_tensor_map_encode_res res;
	uint32_t rank = args->rank;
	if (!map || (uintptr_t)map % 64 || !dims || (rank > 1 && !strides) || !steps || rank < 1 ||
		rank > RANK_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_context_current(&context);
	if (result)
		return result;
	args->dims = dims;
	args->dims_len = rank;
	args->strides = strides;
	args->strides_len = rank - 1;
	args->box = box;
	args->box_len = box ? rank : 0;
	args->steps = steps;
	args->steps_len = rank;
	struct ckt_call call;
	result = ckt_call_begin(
		&call, CKT_PROC_TENSOR_MAP_ENCODE, ckt_tensor_map_encode_args_size(args), 0);
	if (result)
		return result;
	ckt_tensor_map_encode_args_put(call.p, args);
	result = ckt_call_wait(&call, &reply);
	if (result)
		return result;
	if (ckt_tensor_map_encode_res_get(&reply.results, &res) && res.map_len == sizeof *map)
		memcpy(map, res.map, sizeof *map);
	else
		result = CUDA_ERROR_UNKNOWN;
	ckt_call_reply_release(&reply);
	return result;
}

CKT_EXPORT CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type,
	cuuint32_t rank, void *address, const cuuint64_t *dims, const cuuint64_t *strides,
	const cuuint32_t *box, const cuuint32_t *steps, CUtensorMapInterleave interleave,
	CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
	if (!box)
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_tensor_map_encode_args args = {.kind = CKT_TENSOR_MAP_TILED,
		.type = type,
		.rank = rank,
		.address = (uintptr_t)address,
		.interleave = interleave,
		.swizzle = swizzle,
		.promotion = promotion,
		.fill = fill};
	return encode(map, &args, dims, strides, box, steps);
}

CKT_EXPORT CUresult cuTensorMapEncodeIm2col(CUtensorMap *map, CUtensorMapDataType type,
	cuuint32_t rank, void *address, const cuuint64_t *dims, const cuuint64_t *strides,
	const int *lower, const int *upper, cuuint32_t channels, cuuint32_t pixels,
	const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
	CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
	/* A corner has a coordinate for each dimension except the batch and the channels. */
	uint32_t corner = rank > 2 ? rank - 2 : 0;
	if (rank > RANK_MAX || !lower || !upper)
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_tensor_map_encode_args args = {.kind = CKT_TENSOR_MAP_IM2COL,
		.type = type,
		.rank = rank,
		.address = (uintptr_t)address,
		.lower = (const uint32_t *)lower,
		.lower_len = corner,
		.upper = (const uint32_t *)upper,
		.upper_len = corner,
		.channels = channels,
		.pixels = pixels,
		.interleave = interleave,
		.swizzle = swizzle,
		.promotion = promotion,
		.fill = fill};
	return encode(map, &args, dims, strides, NULL, steps);
}

CKT_EXPORT CUresult cuTensorMapEncodeIm2colWide(CUtensorMap *map, CUtensorMapDataType type,
	cuuint32_t rank, void *address, const cuuint64_t *dims, const cuuint64_t *strides,
	int lower, int upper, cuuint32_t channels, cuuint32_t pixels, const cuuint32_t *steps,
	CUtensorMapInterleave interleave, CUtensorMapIm2ColWideMode mode,
	CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
	uint32_t from = (uint32_t)lower, to = (uint32_t)upper;
	struct ckt_tensor_map_encode_args args = {.kind = CKT_TENSOR_MAP_IM2COL_WIDE,
		.type = type,
		.rank = rank,
		.address = (uintptr_t)address,
		.lower = &from,
		.lower_len = 1,
		.upper = &to,
		.upper_len = 1,
		.channels = channels,
		.pixels = pixels,
		.mode = mode,
		.interleave = interleave,
		.swizzle = swizzle,
		.promotion = promotion,
		.fill = fill};
	return encode(map, &args, dims, strides, NULL, steps);
}

CKT_EXPORT CUresult cuTensorMapReplaceAddress(CUtensorMap *map, void *address)
{
	struct ckt_context *context;
	struct ckt_reply reply;
	struct ckt_tensor_map_replace_res res;
	if (!map || (uintptr_t)map % 64)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_context_current(&context);
	if (!result)
		result = CKT_WAITED(tensor_map_replace, TENSOR_MAP_REPLACE, 0, &reply,
			.map = (const uint8_t *)map, .map_len = sizeof *map,
			.address = (uintptr_t)address);
	if (result)
		return result;
	if (ckt_tensor_map_replace_res_get(&reply.results, &res) && res.map_len == sizeof *map)
		memcpy(map, res.map, sizeof *map);
	else
		result = CUDA_ERROR_UNKNOWN;
	ckt_call_reply_release(&reply);
	return result;
}
