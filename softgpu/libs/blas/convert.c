/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions of numbers of all types to and from the types of computation. */
#include <math.h>
#include <string.h>

#include "softgpu/libs/blas/blas.h"

size_t ckt_blas_type_size(cudaDataType type)
{
	switch (type) {
	case CUDA_R_8I:
		return 1;
	case CUDA_R_16F:
	case CUDA_R_16BF:
		return 2;
	case CUDA_R_32F:
	case CUDA_R_32I:
	case CUDA_C_16F:
	case CUDA_C_16BF:
		return 4;
	case CUDA_R_64F:
	case CUDA_C_32F:
		return 8;
	case CUDA_C_64F:
		return 16;
	default:
		return 0;
	}
}

bool ckt_blas_type_complex(cudaDataType type)
{
	return type == CUDA_C_16F || type == CUDA_C_16BF || type == CUDA_C_32F ||
		type == CUDA_C_64F;
}

/* For bytes, double precision: products and sums of bytes are exact in it. */
cudaDataType ckt_blas_type_compute(cudaDataType type)
{
	switch (type) {
	case CUDA_R_64F:
	case CUDA_R_8I:
	case CUDA_R_32I:
		return CUDA_R_64F;
	case CUDA_C_64F:
		return CUDA_C_64F;
	case CUDA_C_16F:
	case CUDA_C_16BF:
	case CUDA_C_32F:
		return CUDA_C_32F;
	default:
		return CUDA_R_32F;
	}
}

static float from_bits(uint32_t bits)
{
	float value;
	memcpy(&value, &bits, sizeof value);
	return value;
}

static uint32_t to_bits(float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof bits);
	return bits;
}

static float half_to_float(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 0x3ff;
	if (exponent == 31)
		return from_bits(sign | 0x7f800000 | mantissa << 13);
	if (exponent)
		return from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
	float small = ldexpf((float)mantissa, -24);
	return sign ? -small : small;
}

static uint16_t float_to_half(float value)
{
	uint32_t bits = to_bits(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
	if (magnitude > 0x7f800000)
		return 0x7fff;       /* the GPU's NaN */
	if (magnitude >= 0x477ff000) /* from half a step above the largest number */
		return (uint16_t)(sign | 0x7c00);
	if (magnitude < 0x38800000) {
		/* Adding 0.5 shifts the bits of a subnormal into place and rounds them. */
		float shifted = from_bits(magnitude) + 0.5f;
		return (uint16_t)(sign | (to_bits(shifted) - 0x3f000000));
	}
	uint32_t odd = magnitude >> 13 & 1;
	return (uint16_t)(sign | (magnitude - 0x38000000 + 0xfff + odd) >> 13);
}

static float bfloat_to_float(uint16_t h)
{
	return from_bits((uint32_t)h << 16);
}

static uint16_t float_to_bfloat(float value)
{
	uint32_t bits = to_bits(value);
	if ((bits & 0x7fffffff) > 0x7f800000)
		return 0x7fff;
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static double saturate(double value, double low, double high)
{
	value = nearbyint(value);
	if (value != value)
		return 0;
	return value < low ? low : value > high ? high : value;
}

/* Part i of an element: the number itself, or the real or imaginary part of a complex number. */
static double part_get(const void *from, cudaDataType type, int64_t i)
{
	switch (type) {
	case CUDA_R_8I:
		return ((const int8_t *)from)[i];
	case CUDA_R_32I:
		return ((const int32_t *)from)[i];
	case CUDA_R_16F:
	case CUDA_C_16F:
		return half_to_float(((const uint16_t *)from)[i]);
	case CUDA_R_16BF:
	case CUDA_C_16BF:
		return bfloat_to_float(((const uint16_t *)from)[i]);
	case CUDA_R_64F:
	case CUDA_C_64F:
		return ((const double *)from)[i];
	default:
		return ((const float *)from)[i];
	}
}

static void part_set(void *to, cudaDataType type, int64_t i, double value)
{
	switch (type) {
	case CUDA_R_8I:
		((int8_t *)to)[i] = (int8_t)saturate(value, -128, 127);
		break;
	case CUDA_R_32I:
		((int32_t *)to)[i] = (int32_t)saturate(value, INT32_MIN, INT32_MAX);
		break;
	case CUDA_R_16F:
	case CUDA_C_16F:
		((uint16_t *)to)[i] = float_to_half((float)value);
		break;
	case CUDA_R_16BF:
	case CUDA_C_16BF:
		((uint16_t *)to)[i] = float_to_bfloat((float)value);
		break;
	case CUDA_R_64F:
	case CUDA_C_64F:
		((double *)to)[i] = value;
		break;
	default:
		((float *)to)[i] = (float)value;
		break;
	}
}

void ckt_blas_load(void *to, cudaDataType compute, const void *from, cudaDataType type,
	int64_t step, int64_t count)
{
	int to_parts = ckt_blas_type_complex(compute) ? 2 : 1,
	    parts = ckt_blas_type_complex(type) ? 2 : 1;
	if (type == compute && step == 1) {
		memcpy(to, from, (size_t)count * ckt_blas_type_size(type));
		return;
	}
	/* The frequent types of neural networks, without a check of the type for each number. */
	if (compute == CUDA_R_32F && (type == CUDA_R_16F || type == CUDA_R_16BF)) {
		const uint16_t *half = from;
		for (int64_t i = 0; i < count; i++)
			((float *)to)[i] = type == CUDA_R_16F ? half_to_float(half[i * step])
							      : bfloat_to_float(half[i * step]);
		return;
	}
	for (int64_t i = 0; i < count; i++)
		for (int part = 0; part < to_parts; part++)
			part_set(to, compute, i * to_parts + part,
				part < parts ? part_get(from, type, i * step * parts + part) : 0);
}

void ckt_blas_store(void *to, cudaDataType type, int64_t step, const void *from,
	cudaDataType compute, int64_t count)
{
	int from_parts = ckt_blas_type_complex(compute) ? 2 : 1,
	    parts = ckt_blas_type_complex(type) ? 2 : 1;
	if (type == compute && step == 1) {
		memcpy(to, from, (size_t)count * ckt_blas_type_size(type));
		return;
	}
	if (compute == CUDA_R_32F && (type == CUDA_R_16F || type == CUDA_R_16BF)) {
		uint16_t *half = to;
		for (int64_t i = 0; i < count; i++)
			half[i * step] = type == CUDA_R_16F
				? float_to_half(((const float *)from)[i])
				: float_to_bfloat(((const float *)from)[i]);
		return;
	}
	for (int64_t i = 0; i < count; i++)
		for (int part = 0; part < parts; part++)
			part_set(to, type, i * step * parts + part,
				part < from_parts ? part_get(from, compute, i * from_parts + part)
						  : 0);
}

void ckt_blas_scalar_get(const struct ckt_blas_scalar *scalar, int64_t i, double ret_value[2])
{
	bool complex = ckt_blas_type_complex(scalar->type);
	const void *p = scalar->p ? scalar->p : &scalar->value;
	i *= scalar->p ? scalar->stride : 0;
	ret_value[0] = part_get(p, scalar->type, complex ? 2 * i : i);
	ret_value[1] = complex ? part_get(p, scalar->type, 2 * i + 1) : 0;
}

void *ckt_blas_at(const struct ckt_blas_operand *operand, int64_t i)
{
	if (operand->list)
		return ((void **)operand->p)[i];
	return operand->p ? (char *)operand->p +
			i * operand->stride * (int64_t)ckt_blas_type_size(operand->type)
			  : NULL;
}
