/*
 * The 16-bit floating formats in terms of wider ones.
 */
#include <math.h>

#include "softgpu/ptx/op.h"

float ckt_ptx_half_to_float(uint16_t half)
{
	uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 0x1f, fraction = half & 0x3ff;
	if (exponent == 31)
		return ptx_float(sign | 0x7f800000 | fraction << 13);
	if (exponent)
		return ptx_float(sign | (exponent + 112) << 23 | fraction << 13);
	float v = (float)fraction * 0x1p-24f;
	return sign ? -v : v;
}

float ckt_ptx_bf16_to_float(uint16_t bits) { return ptx_float((uint32_t)bits << 16); }

/*
 * Rounds to a format of `digits` significant bits whose least exponent is `least` (of the leading bit) and whose largest finite number
 * is `most`; the answer is exact in a double.
 */
static double round_to(double v, int digits, int least, double most, int rounding)
{
	if (v == 0 || isnan(v) || isinf(v))
		return v;
	int exponent = ilogb(v);
	if (exponent < least)
		exponent = least;
	double unit = ldexp(1.0, exponent - digits + 1), scaled = v / unit, down = floor(scaled), r;
	switch (rounding) {
	case ROUND_RZ: r = trunc(scaled); break;
	case ROUND_RM: r = down; break;
	case ROUND_RP: r = ceil(scaled); break;
	case ROUND_RNA: r = copysign(floor(fabs(scaled) + 0.5), scaled); break;
	default: {
		double over = scaled - down;
		r = over > 0.5 || (over == 0.5 && fmod(down, 2) != 0) ? down + 1 : down;
		break;
	}
	}
	r *= unit;
	if (fabs(r) > most) {
		bool toward_zero = rounding == ROUND_RZ || (rounding == ROUND_RM && r > 0) || (rounding == ROUND_RP && r < 0);
		return copysign(toward_zero ? most : INFINITY, v);
	}
	return r == 0 ? copysign(0.0, v) : r;
}

uint16_t ckt_ptx_half_from_double(double value, int rounding)
{
	if (isnan(value))
		return 0x7fff;
	double r = round_to(value, 11, -14, 65504.0, rounding);
	uint16_t sign = signbit(r) ? 0x8000 : 0;
	double v = fabs(r);
	if (isinf(v))
		return sign | 0x7c00;
	if (v < 0x1p-14)
		return (uint16_t)(sign | (uint16_t)(v * 0x1p24));
	int exponent = ilogb(v);
	return (uint16_t)(sign | (unsigned)(exponent + 15) << 10 | ((unsigned)ldexp(v, 10 - exponent) & 0x3ff));
}

uint16_t ckt_ptx_bf16_from_double(double value, int rounding)
{
	if (isnan(value))
		return 0x7fff;
	double r = round_to(value, 8, -126, 0x1.fep127, rounding);
	return (uint16_t)(ptx_float_bits((float)r) >> 16);
}

float ckt_ptx_e4m3_to_float(uint8_t bits)
{
	unsigned exponent = bits >> 3 & 15, fraction = bits & 7;
	if ((bits & 0x7f) == 0x7f)
		return ptx_float(0x7fffffff);
	float v = exponent ? ldexpf((float)(8 + fraction), (int)exponent - 10) : ldexpf((float)fraction, -9);
	return bits & 0x80 ? -v : v;
}

/* The upper byte of an f16. */
float ckt_ptx_e5m2_to_float(uint8_t bits) { return ckt_ptx_half_to_float((uint16_t)(bits << 8)); }

uint8_t ckt_ptx_e4m3_from_double(double value)
{
	if (isnan(value))
		return 0x7f;
	double r = round_to(value, 4, -6, 448.0, ROUND_RN), v = fabs(r);
	uint8_t sign = signbit(r) ? 0x80 : 0;
	if (v > 448)
		return sign | 0x7e;
	if (v < 0x1p-6)
		return (uint8_t)(sign | (uint8_t)(v * 0x1p9));
	int exponent = ilogb(v);
	return (uint8_t)(sign | (unsigned)(exponent + 7) << 3 | ((unsigned)ldexp(v, 3 - exponent) & 7));
}

uint8_t ckt_ptx_e5m2_from_double(double value)
{
	if (isnan(value))
		return 0x7f;
	double r = round_to(value, 3, -14, 57344.0, ROUND_RN), v = fabs(r);
	uint8_t sign = signbit(r) ? 0x80 : 0;
	if (v > 57344)
		return sign | 0x7b;
	if (v < 0x1p-14)
		return (uint8_t)(sign | (uint8_t)(v * 0x1p16));
	int exponent = ilogb(v);
	return (uint8_t)(sign | (unsigned)(exponent + 15) << 2 | ((unsigned)ldexp(v, 2 - exponent) & 3));
}
