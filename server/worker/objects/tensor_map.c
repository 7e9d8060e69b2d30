/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor maps: the driver encodes them, as their layout is its own. */
#include <string.h>

#include "rpc/gen/cuda_codec.h"
#include "rpc/tensor_map.h"
#include "server/worker/driver.h"
#include "server/worker/worker.h"

enum { RANK_MAX = CKT_TENSOR_MAP_ENCODE_DIMS_MAX };

struct shape {
	cuuint64_t dims[RANK_MAX], strides[RANK_MAX];
	cuuint32_t box[RANK_MAX], steps[RANK_MAX];
	int lower[RANK_MAX], upper[RANK_MAX];
};

/* False where an array is not as long as the rank asks. */
static bool read_shape(const struct ckt_tensor_map_encode_args *args, struct shape *shape)
{
	uint32_t rank = args->rank,
		 corner = args->kind == CKT_TENSOR_MAP_IM2COL_WIDE ? 1
		: rank > 2                                         ? rank - 2
								   : 0;
	if (rank < 1 || rank > RANK_MAX || args->dims_len != rank ||
		args->strides_len != rank - 1 || args->steps_len != rank ||
		args->box_len != (args->kind == CKT_TENSOR_MAP_TILED ? rank : 0))
		return false;
	if (args->kind != CKT_TENSOR_MAP_TILED &&
		(args->lower_len != corner || args->upper_len != corner))
		return false;
	memset(shape, 0, sizeof *shape);
	for (uint32_t i = 0; i < rank; i++) {
		shape->dims[i] = ckt_xdr_u64(args->dims_xdr, i);
		shape->steps[i] = ckt_xdr_u32(args->steps_xdr, i);
		if (i + 1 < rank)
			shape->strides[i] = ckt_xdr_u64(args->strides_xdr, i);
		if (i < args->box_len)
			shape->box[i] = ckt_xdr_u32(args->box_xdr, i);
		if (i < args->lower_len) {
			shape->lower[i] = (int)ckt_xdr_u32(args->lower_xdr, i);
			shape->upper[i] = (int)ckt_xdr_u32(args->upper_xdr, i);
		}
	}
	return true;
}

static CUresult encode(
	CUtensorMap *map, const struct ckt_tensor_map_encode_args *a, const struct shape *s)
{
	void *address = (void *)(uintptr_t)a->address;
	switch (a->kind) {
	case CKT_TENSOR_MAP_TILED:
		return ckt_driver.cuTensorMapEncodeTiled
			? ckt_driver.cuTensorMapEncodeTiled(map, a->type, a->rank, address, s->dims,
				  s->strides, s->box, s->steps, a->interleave, a->swizzle,
				  a->promotion, a->fill)
			: CKT_WORKER_UNSUPPORTED("cuTensorMapEncodeTiled with the server's driver");
	case CKT_TENSOR_MAP_IM2COL:
		return ckt_driver.cuTensorMapEncodeIm2col
			? ckt_driver.cuTensorMapEncodeIm2col(map, a->type, a->rank, address,
				  s->dims, s->strides, s->lower, s->upper, a->channels, a->pixels,
				  s->steps, a->interleave, a->swizzle, a->promotion, a->fill)
			: CKT_WORKER_UNSUPPORTED(
				  "cuTensorMapEncodeIm2col with the server's driver");
	case CKT_TENSOR_MAP_IM2COL_WIDE:
		return ckt_driver.cuTensorMapEncodeIm2colWide
			? ckt_driver.cuTensorMapEncodeIm2colWide(map, a->type, a->rank, address,
				  s->dims, s->strides, s->lower[0], s->upper[0], a->channels,
				  a->pixels, s->steps, a->interleave, a->mode, a->swizzle,
				  a->promotion, a->fill)
			: CKT_WORKER_UNSUPPORTED(
				  "cuTensorMapEncodeIm2colWide with the server's driver");
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

int ckt_worker_tensor_map_encode(struct ckt_wcall *call)
{
	struct ckt_tensor_map_encode_args args;
	struct shape shape;
	CUtensorMap map __attribute__((aligned(64)));
	if (!ckt_tensor_map_encode_args_get(&call->args, &args) || !read_shape(&args, &shape))
		return CKT_WCALL_GARBAGE;
	memset(&map, 0, sizeof map);
	CUresult result = encode(&map, &args, &shape);
	if (!result) {
		struct ckt_tensor_map_encode_res res = {
			.map = (const uint8_t *)&map, .map_len = sizeof map};
		ckt_tensor_map_encode_res_put(
			ckt_wcall_results(call, ckt_tensor_map_encode_res_size(&res)), &res);
	}
	return result;
}

int ckt_worker_tensor_map_replace(struct ckt_wcall *call)
{
	struct ckt_tensor_map_replace_args args;
	CUtensorMap map __attribute__((aligned(64)));
	if (!ckt_tensor_map_replace_args_get(&call->args, &args) || args.map_len != sizeof map)
		return CKT_WCALL_GARBAGE;
	memcpy(&map, args.map, sizeof map);
	CUresult result = ckt_driver.cuTensorMapReplaceAddress
		? ckt_driver.cuTensorMapReplaceAddress(&map, (void *)(uintptr_t)args.address)
		: CKT_WORKER_UNSUPPORTED("cuTensorMapReplaceAddress with the server's driver");
	if (!result) {
		struct ckt_tensor_map_replace_res res = {
			.map = (const uint8_t *)&map, .map_len = sizeof map};
		ckt_tensor_map_replace_res_put(
			ckt_wcall_results(call, ckt_tensor_map_replace_res_size(&res)), &res);
	}
	return result;
}
