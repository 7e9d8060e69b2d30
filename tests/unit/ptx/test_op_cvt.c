/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/execution/op_cvt.c: cvt, written down again from the rules: clamp, round, widen.
 */
#include <fenv.h>
#include <math.h>

#include "harness.h"

/* Rows of macros that no separator parts. */
/* clang-format off */

#define E(name, expr)                                                                                                          \
	static uint64_t name(uint64_t a, uint64_t b, uint64_t c)                                                               \
	{                                                                                                                      \
		(void)a;                                                                                                       \
		(void)b;                                                                                                       \
		(void)c;                                                                                                       \
		return (uint64_t)(expr);                                                                                       \
	}

static float f(uint64_t bits)
{
	uint32_t word = (uint32_t)bits;
	float v;
	memcpy(&v, &word, 4);
	return v;
}

static double d(uint64_t bits)
{
	double v;
	memcpy(&v, &bits, 8);
	return v;
}

static uint32_t fb(float v)
{
	uint32_t word;
	memcpy(&word, &v, 4);
	return isnan(v) ? 0x7fffffff : word;
}

static uint64_t db(double v)
{
	uint64_t word;
	memcpy(&word, &v, 8);
	return word;
}

/* An f32 made of an f64 keeps what fits of a NaN: the vectors of tests/truth look at that. */
static bool same_nan(uint64_t have, uint64_t want) { return have == want || (isnan(f(have)) && isnan(f(want))); }
static bool same_double(uint64_t have, uint64_t want) { return have == want || (isnan(d(have)) && isnan(d(want))); }

static const uint64_t values[] = {0, 1, 0x80, 0xff, 0x7fff, 0xffff, 0x80000000, 0x7fffffff, 0xffffffff, 0x1ffffff, 0x3f800000, 0x3fc00000, 0xbfc00000,
				  0x40200000, 0x4f000000, 0xcf000001, 0x5f800000, 0x7f800000, 0xff800000, 0x7fc00000, 0x8000000000000000,
				  0x7fffffffffffffff, 0x3ff8000000000000, 0xc1e0000000100000, 0x7ff8000000000000, 0x40934a456d5cfaad, 0x00000001};
#define N_VALUES (sizeof values / sizeof *values)

static double to_int(double v, double least, double most, uint64_t nan, double (*round_by)(double))
{
	(void)nan;
	v = round_by(v);
	return v < least ? least : v > most ? most : v;
}

E(s32_rzi, isnan(f(a)) ? 0 : (int64_t)to_int(f(a), INT32_MIN, INT32_MAX, 0, trunc)) E(u32_rmi, isnan(f(a)) ? 0 : (int64_t)to_int(f(a), 0, UINT32_MAX, 0, floor))
E(s32_rni, isnan(f(a)) ? 0 : (int64_t)to_int(f(a), INT32_MIN, INT32_MAX, 0, nearbyint))
E(u8_rpi, isnan(f(a)) ? 0 : (int64_t)to_int(f(a), 0, 255, 0, ceil))
E(s64_f32, isnan(f(a)) ? INT64_MIN : f(a) >= 0x1p63f ? INT64_MAX : f(a) < -0x1p63f ? INT64_MIN : (int64_t)f(a))
E(u64_f64, isnan(d(a)) ? 1ull << 63 : d(a) >= 0x1p64 ? UINT64_MAX : d(a) < 0 ? 0 : (uint64_t)d(a))
E(s32_f64, isnan(d(a)) ? 0x80000000 : (int64_t)to_int(d(a), INT32_MIN, INT32_MAX, 0, trunc))
E(f32_s32, fb((float)(int32_t)a)) E(f32_u64, fb((float)a)) E(f64_s64, db((double)(int64_t)a)) E(f64_u32, db((double)(uint32_t)a))
E(f64_f32, db((double)f(a))) E(f32_f64, fb((float)d(a))) E(rni_f32, fb(nearbyintf(f(a)))) E(rmi_f64, db(floor(d(a))))
E(sat_f32, isnan(f(a)) || f(a) <= 0 ? 0 : f(a) > 1 ? 0x3f800000 : fb(f(a)))
E(u64_u32, (uint32_t)a) E(s64_s32, (int64_t)(int32_t)a) E(u32_u64, a) E(s16_s8, (int16_t)(int8_t)a) E(u32_s8, (uint32_t)(int8_t)a)
E(sat_u8_s32, (int32_t)a < 0 ? 0 : (int32_t)a > 255 ? 255 : (int32_t)a)
E(sat_s16_u32, (uint32_t)a > 32767 ? 32767 : a) E(sat_s32_s64, (int64_t)a > INT32_MAX ? INT32_MAX : (int64_t)a < INT32_MIN ? INT32_MIN : (int64_t)a)

static uint64_t f32_rz_f64(uint64_t a, uint64_t b, uint64_t c)
{
	volatile double v = d(a);
	(void)b;
	(void)c;
	fesetround(FE_TOWARDZERO);
	volatile float r = (float)v;
	fesetround(FE_TONEAREST);
	return fb(r);
}

static uint64_t f32_rp_u32(uint64_t a, uint64_t b, uint64_t c)
{
	double exact = (double)(uint32_t)a;
	float r = (float)exact;
	(void)b;
	(void)c;
	return fb((double)r < exact ? nextafterf(r, INFINITY) : r);
}

/* A float to f16 and back is the nearest of the 65,536; found by looking at all of them is too slow, so by its neighbours. */
static double half_value(unsigned h)
{
	int e = (int)(h >> 10 & 31);
	double v = e == 31 ? INFINITY : e ? ldexp(1024 + (h & 1023), e - 25) : ldexp(h & 1023, -24);
	return h & 0x8000 ? -v : v;
}

static uint64_t half_of(uint64_t a, uint64_t b, uint64_t c)
{
	double v = f(a), best_error = INFINITY;
	unsigned best = 0, sign = signbit(f(a)) ? 0x8000 : 0;
	(void)b;
	(void)c;
	if (isnan(v))
		return 0x7fff;
	if (fabs(v) >= 65520)
		return sign | 0x7c00;
	for (unsigned h = 0; h < 0x7c00; h++) {
		double error = fabs(half_value(h) - fabs(v));
		if (error < best_error || (error == best_error && !(h & 1))) {
			best_error = error;
			best = h;
		}
	}
	return best | sign;
}

static void test_cvt(void)
{
	static const struct unit_case cases[] = {
		{"cvt.rzi.s32.f32 ro, ra;", UNIT_32, s32_rzi, NULL}, {"cvt.rmi.u32.f32 ro, ra;", UNIT_32, u32_rmi, NULL}, {"cvt.rni.s32.f32 ro, ra;", UNIT_32, s32_rni, NULL},
		{"cvt.rpi.u8.f32 ho, ra;", UNIT_16, u8_rpi, NULL}, {"cvt.rzi.s64.f32 xo, ra;", UNIT_64, s64_f32, NULL}, {"cvt.rzi.u64.f64 xo, xa;", UNIT_64, u64_f64, NULL},
		{"cvt.rzi.s32.f64 ro, xa;", UNIT_32, s32_f64, NULL}, {"cvt.rn.f32.s32 ro, ra;", UNIT_32, f32_s32, NULL}, {"cvt.rn.f32.u64 ro, xa;", UNIT_32, f32_u64, NULL},
		{"cvt.rn.f64.s64 xo, xa;", UNIT_64, f64_s64, NULL}, {"cvt.rn.f64.u32 xo, ra;", UNIT_64, f64_u32, NULL},
		{"cvt.f64.f32 xo, ra;", UNIT_64, f64_f32, same_double}, {"cvt.rn.f32.f64 ro, xa;", UNIT_32, f32_f64, same_nan},
		{"cvt.rz.f32.f64 ro, xa;", UNIT_32, f32_rz_f64, same_nan}, {"cvt.rp.f32.u32 ro, ra;", UNIT_32, f32_rp_u32, NULL},
		{"cvt.rni.f32.f32 ro, ra;", UNIT_32, rni_f32, NULL}, {"cvt.rmi.f64.f64 xo, xa;", UNIT_64, rmi_f64, same_double}, {"cvt.sat.f32.f32 ro, ra;", UNIT_32, sat_f32, NULL},
		{"cvt.u64.u32 xo, ra;", UNIT_64, u64_u32, NULL}, {"cvt.s64.s32 xo, ra;", UNIT_64, s64_s32, NULL}, {"cvt.u32.u64 ro, xa;", UNIT_32, u32_u64, NULL},
		{"cvt.s16.s8 ho, ra;", UNIT_16, s16_s8, NULL}, {"cvt.u32.s8 ro, ha;", UNIT_32, u32_s8, NULL}, {"cvt.sat.u8.s32 ro, ra;", UNIT_32, sat_u8_s32, NULL},
		{"cvt.sat.s16.u32 ho, ra;", UNIT_16, sat_s16_u32, NULL}, {"cvt.sat.s32.s64 ro, xa;", UNIT_32, sat_s32_s64, NULL},
	};
	unit_check(cases, sizeof cases / sizeof *cases, values, N_VALUES);
}

E(pair_of, half_of(b, 0, 0) | half_of(a, 0, 0) << 16)
E(half_back, fb(isnan(f(a)) ? NAN : (float)half_value((unsigned)half_of(a, 0, 0))))

static void test_half(void)
{
	static const uint64_t some[] = {0, 0x80000000, 0x3f800000, 0x3f801000, 0x3f803000, 0x477fe000, 0x477ff000, 0x33000000, 0x33000001, 0x33c00000, 0x387fc000, 0x7f800000, 0x7fc00000};
	static const struct unit_case cases[] = {
		{"cvt.rn.f16.f32 ho, ra;", UNIT_16, half_of, NULL},
		{"cvt.rn.f16.f32 ho, ra; cvt.f32.f16 ro, ho;", UNIT_32, half_back, NULL},
		{"cvt.rn.f16x2.f32 ro, ra, rb;", UNIT_32, pair_of, NULL},
	};
	unit_check(cases, 1, some, sizeof some / sizeof *some);
	unit_check(cases + 1, 2, some + 2, 5);
}

/* 8-bit floats by trying all: digits of the fraction, bias and the largest finite code say which format. */
static double f8_value(unsigned code, int digits, int bias)
{
	int exponent = (int)(code >> digits), fraction = (int)(code & ((1u << digits) - 1));
	return exponent ? ldexp((1 << digits) + fraction, exponent - bias - digits) : ldexp(fraction, 1 - bias - digits);
}

static uint64_t f8_of(double v, int digits, int bias, unsigned most)
{
	unsigned best = 0, sign = signbit(v) ? 0x80 : 0;
	if (isnan(v))
		return 0x7f;
	for (unsigned code = 0; code <= most; code++) {
		double error = fabs(f8_value(code, digits, bias) - fabs(v)), least = fabs(f8_value(best, digits, bias) - fabs(v));
		if (error < least || (error == least && !(code & 1)))
			best = code;
	}
	return (isinf(v) ? most : best) | sign;
}

E(e4m3_pair, f8_of(f(b), 3, 7, 0x7e) | f8_of(f(a), 3, 7, 0x7e) << 8)
E(e5m2_pair, f8_of(f(b), 2, 15, 0x7b) | f8_of(f(a), 2, 15, 0x7b) << 8)
E(e4m3_back, half_of(fb((float)copysign(f8_value(a & 0x7f, 3, 7), a & 0x80 ? -1 : 1)), 0, 0) | half_of(fb((float)copysign(f8_value(a >> 8 & 0x7f, 3, 7), a & 0x8000 ? -1 : 1)), 0, 0) << 16)

static uint64_t clamp(uint64_t v, int least, int most)
{
	int x = (int)(uint32_t)v;
	return (uint32_t)(x < least ? least : x > most ? most : x);
}
E(pack_s16, (uint16_t)clamp(b, -32768, 32767) | (uint32_t)(uint16_t)clamp(a, -32768, 32767) << 16)
E(pack_u8, clamp(b, 0, 255) | clamp(a, 0, 255) << 8 | c << 16)
E(pack_s4, (clamp(b, -8, 7) & 15) | (clamp(a, -8, 7) & 15) << 4 | c << 8)

static void test_f8_and_pack(void)
{
	static const uint64_t some[] = {0, 0x80000000, 0x3f800000, 0xbf880000, 0x3f980000, 0x43e00000, 0x43e80000, 0x43f00000, 0xc7600000, 0x47780000, 0x3b000000, 0x3a800000, 0x3ac00000,
					0x37000000, 0x37400000, 0x7f800000, 0xff800000, 0x7fc00000};
	static const uint64_t codes[] = {0, 0x80, 0x3834, 0x7e01, 0x07fe, 0x8842};
	static const uint64_t numbers[] = {0, 1, 7, 8, 0xfffffff8, 0xfffffff7, 255, 256, 0x8000, 0x7fff, 0xffff8000, 0x80000000, 0x7fffffff};
	static const struct unit_case cases[] = {
		{"cvt.rn.satfinite.e4m3x2.f32 ho, ra, rb;", UNIT_16, e4m3_pair, NULL},
		{"cvt.rn.satfinite.e5m2x2.f32 ho, ra, rb;", UNIT_16, e5m2_pair, NULL},
		{"cvt.rn.f16x2.e4m3x2 ro, ha;", UNIT_32, e4m3_back, NULL},
		{"cvt.pack.sat.s16.s32 ro, ra, rb;", UNIT_32, pack_s16, NULL},
		{"cvt.pack.sat.u8.s32.b32 ro, ra, rb, rc;", UNIT_32, pack_u8, NULL},
		{"cvt.pack.sat.s4.s32.b32 ro, ra, rb, rc;", UNIT_32, pack_s4, NULL},
	};
	unit_check(cases, 2, some, sizeof some / sizeof *some);
	unit_check(cases + 2, 1, codes, sizeof codes / sizeof *codes);
	unit_check(cases + 3, 3, numbers, sizeof numbers / sizeof *numbers);
}

static const struct unit_test tests[] = {{"cvt", test_cvt}, {"half", test_half}, {"f8 and pack", test_f8_and_pack}};
UNIT_MAIN("ptx conversions", tests)
