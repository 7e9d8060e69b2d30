/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/libs/cufft/number.h"

#include <math.h>
#include <string.h>

static double half_to_double(uint16_t bits)
{
	int exponent = bits >> 10 & 31, fraction = bits & 1023;
	double value = exponent == 31 ? (fraction ? NAN : INFINITY)
		: exponent            ? ldexp(fraction + 1024, exponent - 25)
				      : ldexp(fraction, -24);
	return bits >> 15 ? -value : value;
}

/* Converts double directly: a conversion through float would round twice. */
static uint16_t half_from_double(double value)
{
	uint16_t sign = signbit(value) ? 0x8000 : 0;
	double size = fabs(value);
	if (isnan(value))
		return 0x7fff;
	/* From half a step above the largest number. */
	if (size >= 65520)
		return sign | 0x7c00;
	int exponent;
	frexp(size, &exponent);
	/* Numbers below 2^-14 are subnormal and have the step size of 2^-14. */
	int lowest = exponent < -13 ? -24 : exponent - 11;
	double steps = nearbyint(ldexp(size, -lowest));
	double rounded = ldexp(steps, lowest);
	if (rounded == 0)
		return sign;
	if (rounded >= 65536)
		return sign | 0x7c00;
	frexp(rounded, &exponent);
	if (exponent < -13)
		return (uint16_t)(sign | (uint16_t)ldexp(rounded, 24));
	return (uint16_t)(sign | (exponent + 14) << 10 |
		((uint16_t)ldexp(rounded, 11 - exponent) & 1023));
}

static double brain_to_double(uint16_t bits)
{
	uint32_t wide = (uint32_t)bits << 16;
	float value;
	memcpy(&value, &wide, sizeof value);
	return value;
}

static uint16_t brain_from_double(double value)
{
	if (isnan(value))
		return 0x7fff;
	/*
	 * Rounds the 53 bits of the double to odd in a float first, so that the second rounding
	 * gives the nearest number.
	 */
	float near = (float)value;
	uint32_t bits;
	memcpy(&bits, &near, sizeof bits);
	if (isinf(near) && !isinf(value)) {
		/* The largest float, which is odd already. */
		bits = (bits & 0x80000000) | 0x7f7fffff;
	} else if ((double)near != value) {
		if (fabs((double)near) > fabs(value))
			bits--;
		bits |= 1;
	}
	bits += 0x7fff + (bits >> 16 & 1);
	return (uint16_t)(bits >> 16);
}

static const size_t sizes[] = {[CKT_HALF] = 2, [CKT_BRAIN] = 2, [CKT_SINGLE] = 4, [CKT_DOUBLE] = 8};

size_t ckt_soft_cufft_number_size(enum ckt_layout_precision precision, bool real)
{
	return sizes[precision] * (real ? 1 : 2);
}

static double read_one(enum ckt_layout_precision precision, const unsigned char *at)
{
	uint16_t bits;
	float single;
	double value;
	switch (precision) {
	case CKT_HALF:
		memcpy(&bits, at, sizeof bits);
		return half_to_double(bits);
	case CKT_BRAIN:
		memcpy(&bits, at, sizeof bits);
		return brain_to_double(bits);
	case CKT_SINGLE:
		memcpy(&single, at, sizeof single);
		return single;
	case CKT_DOUBLE:
		break;
	}
	memcpy(&value, at, sizeof value);
	return value;
}

static void write_one(enum ckt_layout_precision precision, unsigned char *at, double value)
{
	float single = (float)value;
	uint16_t bits = precision == CKT_HALF ? half_from_double(value)
		: precision == CKT_BRAIN      ? brain_from_double(value)
					      : 0;
	switch (precision) {
	case CKT_HALF:
	case CKT_BRAIN:
		memcpy(at, &bits, sizeof bits);
		break;
	case CKT_SINGLE:
		memcpy(at, &single, sizeof single);
		break;
	case CKT_DOUBLE:
		memcpy(at, &value, sizeof value);
		break;
	}
}

struct ckt_complex ckt_soft_cufft_number_read(
	enum ckt_layout_precision precision, bool real, const void *base, int64_t index)
{
	const unsigned char *at = (const unsigned char *)base +
		index * (int64_t)ckt_soft_cufft_number_size(precision, real);
	return (struct ckt_complex){
		read_one(precision, at), real ? 0 : read_one(precision, at + sizes[precision])};
}

void ckt_soft_cufft_number_write(enum ckt_layout_precision precision, bool real, void *base,
	int64_t index, struct ckt_complex value)
{
	unsigned char *at = (unsigned char *)base +
		index * (int64_t)ckt_soft_cufft_number_size(precision, real);
	write_one(precision, at, value.re);
	if (!real)
		write_one(precision, at + sizes[precision], value.im);
}
