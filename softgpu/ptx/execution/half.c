/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the 16-bit and 8-bit floating formats from and to wider ones. */
#include <math.h>

#include "softgpu/ptx/execution/op.h"

/*
 * Rounds the magnitude of a number (not a NaN) to a format of `digits` significant bits whose
 * leading bit has the least exponent `least`. Returns its bits without the sign.  A larger number
 * than `most`, the bits of the largest finite number, becomes most + 1.
 */
static inline uint32_t narrow(double v, int digits, int least, uint32_t most, int rounding)
{
	uint64_t bits = ptx_double_bits(v), fraction = bits & 0xfffffffffffffull;
	bool negative = bits >> 63;
	int exponent = (int)(bits >> 52 & 0x7ff);
	if (exponent == 0x7ff)
		return most + 1;
	if (exponent)
		fraction |= 1ull << 52;
	else if (!fraction)
		return 0;
	else
		exponent = 1;
	exponent -= 1023;
	int shift = 53 - digits + (exponent < least ? least - exponent : 0);
	shift = shift > 60 ? 60 : shift; /* below half of the least number in either case */
	uint64_t kept = fraction >> shift, rest = fraction & ((1ull << shift) - 1),
		 half = 1ull << (shift - 1);
	bool up;
	switch (rounding) {
	case ROUND_RZ:
		up = false;
		break;
	case ROUND_RM:
		up = negative && rest;
		break;
	case ROUND_RP:
		up = !negative && rest;
		break;
	case ROUND_RNA:
		up = rest >= half;
		break;
	default:
		up = rest > half || (rest == half && (kept & 1));
		break;
	}
	/* A carry out of the fraction increments the exponent. */
	uint64_t r =
		kept + up + (exponent > least ? (uint64_t)(exponent - least) << (digits - 1) : 0);
	if (r <= most)
		return (uint32_t)r;
	bool toward_zero = rounding == ROUND_RZ || (rounding == ROUND_RM && !negative) ||
		(rounding == ROUND_RP && negative);
	return toward_zero ? most : most + 1;
}

static inline uint16_t sign_of(double v, unsigned place)
{
	return (uint16_t)(ptx_double_bits(v) >> 63 << place);
}

uint16_t ckt_ptx_half_from_double(double value, int rounding)
{
	return value != value
		? 0x7fff
		: (uint16_t)(sign_of(value, 15) | narrow(value, 11, -14, 0x7bff, rounding));
}

uint16_t ckt_ptx_bf16_from_double(double value, int rounding)
{
	return value != value
		? 0x7fff
		: (uint16_t)(sign_of(value, 15) | narrow(value, 8, -126, 0x7f7f, rounding));
}

float ckt_ptx_e4m3_to_float(uint8_t bits)
{
	unsigned exponent = bits >> 3 & 15, fraction = bits & 7;
	if ((bits & 0x7f) == 0x7f)
		return ptx_float(0x7fffffff);
	float v = exponent ? ldexpf((float)(8 + fraction), (int)exponent - 10)
			   : ldexpf((float)fraction, -9);
	return bits & 0x80 ? -v : v;
}

/* An e5m2 is the upper byte of an f16. */
float ckt_ptx_e5m2_to_float(uint8_t bits)
{
	return ckt_ptx_half_to_float((uint16_t)(bits << 8));
}

static uint8_t saturated(double v, uint32_t r, uint32_t most)
{
	return (uint8_t)(sign_of(v, 7) | (r > most ? most : r));
}

uint8_t ckt_ptx_e4m3_from_double(double value)
{
	return value != value ? 0x7f : saturated(value, narrow(value, 4, -6, 0x7e, ROUND_RN), 0x7e);
}

uint8_t ckt_ptx_e5m2_from_double(double value)
{
	return value != value ? 0x7f
			      : saturated(value, narrow(value, 3, -14, 0x7b, ROUND_RN), 0x7b);
}
