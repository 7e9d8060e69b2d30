/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/objects/tensor_map.c: tensor maps: arrays must be as long as the rank asks, the
 * rest is the driver's to judge.
 */
#include <stdlib.h>
#include <string.h>

#include "rpc/tensor_map.h"
#include "tests/unit/worker/inside.h"

static const uint64_t dims[5] = {64, 32, 8, 4, 2}, strides[5] = {256, 8192, 65536, 262144, 0};
static const uint32_t box[5] = {16, 8, 1, 1, 1}, steps[5] = {1, 1, 1, 1, 1}, lower[5] = {0, 0, 0},
		      upper[5] = {0, 0, 0};

static struct ckt_tensor_map_encode_args make(uint32_t kind, uint32_t rank)
{
	uint32_t corner = kind == CKT_TENSOR_MAP_IM2COL_WIDE ? 1 : rank > 2 ? rank - 2 : 0;
	return (struct ckt_tensor_map_encode_args){.kind = kind,
		.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
		.rank = rank,
		.address = 0x300000001000,
		.dims = dims,
		.dims_len = rank,
		.strides = strides,
		.strides_len = rank - 1,
		.box = box,
		.box_len = kind == CKT_TENSOR_MAP_TILED ? rank : 0,
		.steps = steps,
		.steps_len = rank,
		.lower = lower,
		.lower_len = kind == CKT_TENSOR_MAP_TILED ? 0 : corner,
		.upper = upper,
		.upper_len = kind == CKT_TENSOR_MAP_TILED ? 0 : corner,
		.channels = 4,
		.pixels = 16};
}

static int encode(struct ckt_tensor_map_encode_args args, uint8_t map[128])
{
	uint8_t bytes[512];
	size_t size = ckt_tensor_map_encode_args_size(&args);
	ckt_tensor_map_encode_args_put(bytes, &args);
	struct inside_reply *reply = inside_call("tensor_map_encode", bytes, size, false);
	struct ckt_tensor_map_encode_res res;
	if (!reply->result) {
		YES(ckt_tensor_map_encode_res_get(&reply->results, &res) && res.map_len == 128);
		memcpy(map, res.map, 128);
	}
	return reply->result;
}

static void test_kinds(void)
{
	uint8_t map[128], other[128], wanted[128] __attribute__((aligned(64)));
	for (uint32_t rank = 1; rank <= 5; rank++)
		IS(encode(make(CKT_TENSOR_MAP_TILED, rank), map), CUDA_SUCCESS);
	IS(ckt_driver.cuTensorMapEncodeTiled((CUtensorMap *)wanted, CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
		   5, (void *)0x300000001000, (cuuint64_t *)dims, (cuuint64_t *)strides, box, steps,
		   0, 0, 0, 0),
		CUDA_SUCCESS);
	IS(memcmp(map, wanted, sizeof map), 0);
	for (uint32_t rank = 3; rank <= 5; rank++) {
		IS(encode(make(CKT_TENSOR_MAP_IM2COL, rank), other), CUDA_SUCCESS);
		IS(encode(make(CKT_TENSOR_MAP_IM2COL_WIDE, rank), map), CUDA_SUCCESS);
		YES(memcmp(map, other, sizeof map) != 0);
	}
	IS(encode(make(CKT_TENSOR_MAP_IM2COL, 2), map), CUDA_ERROR_INVALID_VALUE);
	struct ckt_tensor_map_encode_args args = make(CKT_TENSOR_MAP_TILED, 2);
	args.address = 8; /* the driver's to judge */
	IS(encode(args, map), CUDA_ERROR_INVALID_VALUE);
}

static void test_lengths(void)
{
	uint8_t map[128];
	for (uint32_t kind = 0; kind < 4; kind++)
		for (unsigned field = 0; field < 7; field++) {
			struct ckt_tensor_map_encode_args args =
				make(kind == 3 ? CKT_TENSOR_MAP_IM2COL : kind, 3);
			uint32_t *lengths[] = {&args.dims_len, &args.strides_len, &args.box_len,
				&args.steps_len, &args.lower_len, &args.upper_len, &args.rank};
			/* A tiled map has no corners: nobody looks at them. */
			if (kind == CKT_TENSOR_MAP_TILED && (field == 4 || field == 5))
				continue;
			bool shorter = field < 6 && *lengths[field];
			*lengths[field] += shorter ? -1 : 1;
			args.kind = kind == 3 ? 77 : args.kind;
			IS(encode(args, map), INSIDE_GARBAGE);
		}
	struct ckt_tensor_map_encode_args args = make(CKT_TENSOR_MAP_TILED, 3);
	args.rank = UINT32_MAX;
	IS(encode(args, map), INSIDE_GARBAGE);
	args.rank = 0;
	IS(encode(args, map), INSIDE_GARBAGE);
	args = make(CKT_TENSOR_MAP_IM2COL, 3);
	args.kind = 77;
	IS(encode(args, map), CUDA_ERROR_INVALID_VALUE);
}

static void test_replace(void)
{
	uint8_t map[128];
	struct ckt_tensor_map_replace_res res;
	IS(encode(make(CKT_TENSOR_MAP_TILED, 2), map), CUDA_SUCCESS);
	struct inside_reply *reply = INSIDE(
		tensor_map_replace, false, .map = map, .map_len = 128, .address = 0x300000002000);
	IS(reply->result, CUDA_SUCCESS);
	struct ckt_tensor_map_encode_args args = make(CKT_TENSOR_MAP_TILED, 2);
	args.address = 0x300000002000;
	YES(ckt_tensor_map_replace_res_get(&reply->results, &res));
	IS(encode(args, map), CUDA_SUCCESS);
	reply = INSIDE(
		tensor_map_replace, false, .map = map, .map_len = 128, .address = 0x300000002000);
	YES(ckt_tensor_map_replace_res_get(&reply->results, &res) && !memcmp(res.map, map, 128));
	for (uint32_t size = 0; size < 128; size += 31)
		IS(ASK(tensor_map_replace, .map = map, .map_len = size, .address = 0x300000002000),
			INSIDE_GARBAGE);
	IS(CUT(tensor_map_replace, .map = map, .map_len = 128), 0);
}

UNIT_SUITE(tensor_map, {"kinds", test_kinds}, {"lengths", test_lengths}, {"replace", test_replace})
