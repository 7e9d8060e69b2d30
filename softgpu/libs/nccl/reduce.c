/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions: blocks of numbers are converted to the type of computation and back. */
#include "softgpu/libs/nccl/reduce.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "softgpu/ptx/execution/op.h"

enum { BLOCK = 512 };

union block {
	float f[BLOCK];
	double d[BLOCK];
	int64_t i[BLOCK];
	uint64_t u[BLOCK];
};

size_t ckt_soft_nccl_type_size(ncclDataType_t type)
{
	static const size_t sizes[ncclNumTypes] = {
		[ncclInt8] = 1,
		[ncclUint8] = 1,
		[ncclInt32] = 4,
		[ncclUint32] = 4,
		[ncclInt64] = 8,
		[ncclUint64] = 8,
		[ncclFloat16] = 2,
		[ncclFloat32] = 4,
		[ncclFloat64] = 8,
		[ncclBfloat16] = 2,
		[ncclFloat8e4m3] = 1,
		[ncclFloat8e5m2] = 1,
	};
	return (unsigned)type < ncclNumTypes ? sizes[type] : 0;
}

#define EACH(expression)               \
	for (size_t k = 0; k < n; k++) \
	expression

static void load(union block *to, const void *from, size_t at, size_t n, ncclDataType_t type)
{
	switch (type) {
	case ncclInt8:
		EACH(to->i[k] = ((const int8_t *)from)[at + k]);
		break;
	case ncclUint8:
		EACH(to->u[k] = ((const uint8_t *)from)[at + k]);
		break;
	case ncclInt32:
		EACH(to->i[k] = ((const int32_t *)from)[at + k]);
		break;
	case ncclUint32:
		EACH(to->u[k] = ((const uint32_t *)from)[at + k]);
		break;
	case ncclFloat16:
		EACH(to->f[k] = ckt_ptx_half_to_float(((const uint16_t *)from)[at + k]));
		break;
	case ncclBfloat16:
		EACH(to->f[k] = ckt_ptx_bf16_to_float(((const uint16_t *)from)[at + k]));
		break;
	case ncclFloat8e4m3:
		EACH(to->f[k] = ckt_ptx_e4m3_to_float(((const uint8_t *)from)[at + k]));
		break;
	case ncclFloat8e5m2:
		EACH(to->f[k] = ckt_ptx_e5m2_to_float(((const uint8_t *)from)[at + k]));
		break;
	default:
		memcpy(to, (const char *)from + at * ckt_soft_nccl_type_size(type),
			n * ckt_soft_nccl_type_size(type));
		break;
	}
}

static void store(void *to, size_t at, const union block *from, size_t n, ncclDataType_t type)
{
	switch (type) {
	case ncclInt8:
	case ncclUint8:
		EACH(((uint8_t *)to)[at + k] = (uint8_t)from->u[k]);
		break;
	case ncclInt32:
	case ncclUint32:
		EACH(((uint32_t *)to)[at + k] = (uint32_t)from->u[k]);
		break;
	case ncclFloat16:
		EACH(((uint16_t *)to)[at + k] = ptx_half_from_float(from->f[k]));
		break;
	case ncclBfloat16:
		EACH(((uint16_t *)to)[at + k] = ptx_bf16_from_float(from->f[k]));
		break;
	case ncclFloat8e4m3:
		EACH(((uint8_t *)to)[at + k] = ckt_ptx_e4m3_from_double((double)from->f[k]));
		break;
	case ncclFloat8e5m2:
		EACH(((uint8_t *)to)[at + k] = ckt_ptx_e5m2_from_double((double)from->f[k]));
		break;
	default:
		memcpy((char *)to + at * ckt_soft_nccl_type_size(type), from,
			n * ckt_soft_nccl_type_size(type));
		break;
	}
}

enum kind { FLOAT, DOUBLE, SIGNED, UNSIGNED };

static enum kind kind_of(ncclDataType_t type)
{
	switch (type) {
	case ncclInt8:
	case ncclInt32:
	case ncclInt64:
		return SIGNED;
	case ncclUint8:
	case ncclUint32:
	case ncclUint64:
		return UNSIGNED;
	case ncclFloat64:
		return DOUBLE;
	default:
		return FLOAT;
	}
}

/* If one of two numbers is NaN, the other is both maximum and minimum. */
static void combine_float(float *to, const float *with, size_t n, ncclRedOp_t op)
{
	switch ((int)op) {
	case ncclProd:
		EACH(to[k] *= with[k]);
		break;
	case ncclMax:
		EACH(to[k] = fmaxf(to[k], with[k]));
		break;
	case ncclMin:
		EACH(to[k] = fminf(to[k], with[k]));
		break;
	default:
		EACH(to[k] += with[k]);
		break;
	}
}

static void combine_double(double *to, const double *with, size_t n, ncclRedOp_t op)
{
	switch ((int)op) {
	case ncclProd:
		EACH(to[k] *= with[k]);
		break;
	case ncclMax:
		EACH(to[k] = fmax(to[k], with[k]));
		break;
	case ncclMin:
		EACH(to[k] = fmin(to[k], with[k]));
		break;
	default:
		EACH(to[k] += with[k]);
		break;
	}
}

/* Sums and products modulo 2^64 are also correct for every narrower type. */
static void combine_integer(
	union block *to, const union block *with, size_t n, ncclRedOp_t op, bool is_signed)
{
	switch ((int)op) {
	case ncclProd:
		EACH(to->u[k] *= with->u[k]);
		break;
	case ncclMax:
		if (is_signed)
			EACH(to->i[k] = to->i[k] > with->i[k] ? to->i[k] : with->i[k]);
		else
			EACH(to->u[k] = to->u[k] > with->u[k] ? to->u[k] : with->u[k]);
		break;
	case ncclMin:
		if (is_signed)
			EACH(to->i[k] = to->i[k] < with->i[k] ? to->i[k] : with->i[k]);
		else
			EACH(to->u[k] = to->u[k] < with->u[k] ? to->u[k] : with->u[k]);
		break;
	default:
		EACH(to->u[k] += with->u[k]);
		break;
	}
}

/* The average: divides the sums.  For integers, it divides the sum in its type, toward zero. */
static void divide(union block *to, int ranks, size_t n, ncclDataType_t type)
{
	char narrow[BLOCK * 8];
	switch (kind_of(type)) {
	case FLOAT:
		EACH(to->f[k] /= (float)ranks);
		break;
	case DOUBLE:
		EACH(to->d[k] /= ranks);
		break;
	case SIGNED:
		store(narrow, 0, to, n, type);
		load(to, narrow, 0, n, type);
		EACH(to->i[k] /= ranks);
		break;
	case UNSIGNED:
		store(narrow, 0, to, n, type);
		load(to, narrow, 0, n, type);
		EACH(to->u[k] /= (uint64_t)ranks);
		break;
	}
}

void ckt_soft_nccl_reduce(void *out, const void *const *in, int ranks, size_t count,
	ncclDataType_t type, ncclRedOp_t op)
{
	enum kind kind = kind_of(type);
	union block sum, next;
	for (size_t at = 0; at < count; at += BLOCK) {
		size_t n = count - at < BLOCK ? count - at : BLOCK;
		load(&sum, in[0], at, n, type);
		for (int r = 1; r < ranks; r++) {
			load(&next, in[r], at, n, type);
			if (kind == FLOAT)
				combine_float(sum.f, next.f, n, op);
			else if (kind == DOUBLE)
				combine_double(sum.d, next.d, n, op);
			else
				combine_integer(&sum, &next, n, op, kind == SIGNED);
		}
		if (op == ncclAvg)
			divide(&sum, ranks, n, type);
		store(out, at, &sum, n, type);
	}
}

void ckt_soft_nccl_multiply(
	void *out, const void *in, const void *scalar, size_t count, ncclDataType_t type)
{
	enum kind kind = kind_of(type);
	union block value, factor;
	load(&factor, scalar, 0, 1, type);
	for (size_t at = 0; at < count; at += BLOCK) {
		size_t n = count - at < BLOCK ? count - at : BLOCK;
		load(&value, in, at, n, type);
		if (kind == FLOAT)
			EACH(value.f[k] *= factor.f[0]);
		else if (kind == DOUBLE)
			EACH(value.d[k] *= factor.d[0]);
		else
			EACH(value.u[k] *= factor.u[0]);
		store(out, at, &value, n, type);
	}
}
