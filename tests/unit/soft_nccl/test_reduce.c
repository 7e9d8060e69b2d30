/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/nccl/reduce.c: every type and operation. */
#include "softgpu/libs/nccl/reduce.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "softgpu/ptx/execution/op.h"
#include "tests/unit/soft_nccl/ranks.h"

enum { RANKS = 3, N = 1100 };

static void test_sizes(void)
{
	IS(ckt_soft_nccl_type_size(ncclInt8), 1);
	IS(ckt_soft_nccl_type_size(ncclBfloat16), 2);
	IS(ckt_soft_nccl_type_size(ncclFloat32), 4);
	IS(ckt_soft_nccl_type_size(ncclUint64), 8);
	IS(ckt_soft_nccl_type_size(ncclFloat8e5m2), 1);
	IS(ckt_soft_nccl_type_size(ncclNumTypes), 0);
	IS(ckt_soft_nccl_type_size((ncclDataType_t)-1), 0);
}

static void put(void *to, ncclDataType_t type, size_t i, double v)
{
	switch (type) {
	case ncclInt8:
	case ncclUint8:
		((uint8_t *)to)[i] = (uint8_t)(int)v;
		break;
	case ncclInt32:
	case ncclUint32:
		((uint32_t *)to)[i] = (uint32_t)(int64_t)v;
		break;
	case ncclInt64:
	case ncclUint64:
		((uint64_t *)to)[i] = (uint64_t)(int64_t)v;
		break;
	case ncclFloat16:
		((uint16_t *)to)[i] = ckt_ptx_half_from_double(v, 0);
		break;
	case ncclBfloat16:
		((uint16_t *)to)[i] = ckt_ptx_bf16_from_double(v, 0);
		break;
	case ncclFloat32:
		((float *)to)[i] = (float)v;
		break;
	case ncclFloat64:
		((double *)to)[i] = v;
		break;
	case ncclFloat8e4m3:
		((uint8_t *)to)[i] = ckt_ptx_e4m3_from_double(v);
		break;
	default:
		((uint8_t *)to)[i] = ckt_ptx_e5m2_from_double(v);
		break;
	}
}

/* Small whole numbers, which every type has, and negative ones where it has those. */
static double value(int rank, size_t i, ncclDataType_t type)
{
	bool positive = type == ncclUint8 || type == ncclUint32 || type == ncclUint64;
	return (double)((i * 3 + (size_t)rank * 2) % 4) - (positive ? 0 : 1);
}

static double combine(double a, double b, ncclRedOp_t op)
{
	return op == ncclProd   ? a * b
		: op == ncclMax ? fmax(a, b)
		: op == ncclMin ? fmin(a, b)
				: a + b;
}

static void test_all(void)
{
	static uint64_t in[RANKS][N], out[N], expected[N];
	const void *places[RANKS] = {in[0], in[1], in[2]};
	for (int t = 0; t < ncclNumTypes; t++) {
		ncclDataType_t type = (ncclDataType_t)t;
		for (int o = ncclSum; o <= ncclMin; o++) {
			for (size_t i = 0; i < N; i++) {
				double result = value(0, i, type);
				for (int r = 0; r < RANKS; r++)
					put(in[r], type, i, value(r, i, type));
				for (int r = 1; r < RANKS; r++)
					result = combine(result, value(r, i, type), (ncclRedOp_t)o);
				put(expected, type, i, result);
			}
			ckt_soft_nccl_reduce(out, places, RANKS, N, type, (ncclRedOp_t)o);
			YES(memcmp(out, expected, N * ckt_soft_nccl_type_size(type)) == 0);
			/* Into one of the inputs. */
			ckt_soft_nccl_reduce(in[1], places, RANKS, N, type, (ncclRedOp_t)o);
			YES(memcmp(in[1], expected, N * ckt_soft_nccl_type_size(type)) == 0);
		}
	}
}

static void test_averages(void)
{
	const int8_t a = -7, b = 2, c = -3;
	const uint8_t wide[] = {200, 100, 8};
	const float f[] = {1, 2, 4.5f};
	int8_t out;
	uint8_t sum;
	float mean;
	ckt_soft_nccl_reduce(&out, (const void *[]){&a, &b, &c}, 3, 1, ncclInt8, ncclAvg);
	IS(out, -8 / 3);
	/* As the type holds the sum: 308 is 52. */
	ckt_soft_nccl_reduce(
		&sum, (const void *[]){&wide[0], &wide[1], &wide[2]}, 3, 1, ncclUint8, ncclAvg);
	IS(sum, 52 / 3);
	ckt_soft_nccl_reduce(
		&mean, (const void *[]){&f[0], &f[1], &f[2]}, 3, 1, ncclFloat32, ncclAvg);
	YES(mean == 2.5f);
}

/* The sum is rounded once: after each step it would still be 2048. */
static void test_rounding(void)
{
	const uint16_t in[] = {ckt_ptx_half_from_double(2048, 0), ckt_ptx_half_from_double(1, 0),
		ckt_ptx_half_from_double(1, 0)};
	const float nan_in[] = {NAN, 3, 2};
	uint16_t out;
	float greatest;
	ckt_soft_nccl_reduce(
		&out, (const void *[]){&in[0], &in[1], &in[2]}, 3, 1, ncclFloat16, ncclSum);
	IS(out, ckt_ptx_half_from_double(2050, 0));
	ckt_soft_nccl_reduce(&greatest, (const void *[]){&nan_in[0], &nan_in[1], &nan_in[2]}, 3, 1,
		ncclFloat32, ncclMax);
	YES(greatest == 3);
	/* In the order of ranks: another order gives another sum. */
	const float order[] = {1e8f, -1e8f, 1};
	ckt_soft_nccl_reduce(&greatest, (const void *[]){&order[0], &order[1], &order[2]}, 3, 1,
		ncclFloat32, ncclSum);
	YES(greatest == 1);
	ckt_soft_nccl_reduce(&greatest, (const void *[]){&order[2], &order[0], &order[1]}, 3, 1,
		ncclFloat32, ncclSum);
	YES(greatest == 0);
}

static void test_multiply(void)
{
	const int32_t in[] = {1, -2, 300}, factor = -3;
	int32_t out[3];
	const double d[] = {0.5, 4}, half = 0.5;
	double halves[2];
	const uint16_t h = ckt_ptx_bf16_from_double(3, 0), two = ckt_ptx_bf16_from_double(2, 0);
	uint16_t six;
	ckt_soft_nccl_multiply(out, in, &factor, 3, ncclInt32);
	YES(out[0] == -3 && out[1] == 6 && out[2] == -900);
	ckt_soft_nccl_multiply(halves, d, &half, 2, ncclFloat64);
	YES(halves[0] == 0.25 && halves[1] == 2);
	ckt_soft_nccl_multiply(&six, &h, &two, 1, ncclBfloat16);
	IS(six, ckt_ptx_bf16_from_double(6, 0));
}

UNIT_SUITE(reduce, {"sizes of types", test_sizes}, {"every type and operation", test_all},
	{"averages", test_averages}, {"rounding, and the order of ranks", test_rounding},
	{"multiplied first", test_multiply})
