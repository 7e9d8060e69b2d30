/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cvt: converts between all integer and floating types.  Common pairs have handlers of their own;
 * the others share one that examines the types for each lane.
 */
#include <fenv.h>
#include <math.h>
#include <string.h>

#include "softgpu/ptx/execution/op.h"
#include "softgpu/ptx/execution/grid.h"
#include "softgpu/ptx/execution/lanes.h"
#include "softgpu/ptx/front/decode.h"
#include "softgpu/ptx/front/parser.h"
#include "softgpu/ptx/front/types.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

#pragma STDC FENV_ACCESS ON

enum { CVT_FTZ = 1, CVT_SAT = 2, CVT_RELU = 4, CVT_SATFINITE = 8 };

#define FAST(name, ASLOT, DSLOT, expr)                                               \
	static int name(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)    \
	{                                                                            \
		const ASLOT *a = ptx_at(w, i->a);                                    \
		DSLOT *d = ptx_at(w, i->d);                                          \
		PTX_FOR_LANES(m, ASLOT x = a[l]; d[l] = (expr););                    \
		return RUN_NEXT;                                                     \
	}                                                                            \
	PTX_FORM(name, FORM_LANE, sizeof(DSLOT), sizeof(ASLOT), 0, 0, 0,             \
		PTX_TEXT(ASLOT) " x; __builtin_memcpy(&x, &a, sizeof x); " PTX_TEXT( \
			DSLOT) " r = " PTX_TEXT(expr) "; __builtin_memcpy(&d, &r, sizeof d);")
FAST(u32_to_u64, uint32_t, uint64_t, x)
FAST(s32_to_s64, uint32_t, uint64_t, (uint64_t)(int64_t)(int32_t)x)
FAST(u64_to_u32, uint64_t, uint32_t, (uint32_t)x)
FAST(u16_to_u32, uint32_t, uint32_t, (uint16_t)x)
FAST(s16_to_s32, uint32_t, uint32_t, (uint32_t)(int16_t)x)
FAST(u8_to_u32, uint32_t, uint32_t, (uint8_t)x)
FAST(s8_to_s32, uint32_t, uint32_t, (uint32_t)(int8_t)x)
FAST(s8_to_s16, uint32_t, uint32_t, (uint16_t)(int8_t)x)
FAST(s32_to_f32, uint32_t, float, (float)(int32_t)x)
FAST(u32_to_f32, uint32_t, float, (float)x)
FAST(s32_to_f64, uint32_t, double, (double)(int32_t)x)
FAST(u32_to_f64, uint32_t, double, (double)x)
FAST(f32_to_f64, float, double, (double)x)
FAST(f64_to_f32, double, float, (float)x)
FAST(u16_to_f32, uint32_t, float, (float)(uint16_t)x)
FAST(s16_to_f32, uint32_t, float, (float)(int16_t)x)
FAST(u64_to_f32, uint64_t, float, (float)x)
FAST(s64_to_f32, uint64_t, float, (float)(int64_t)x)
FAST(u64_to_f64, uint64_t, double, (double)x)
FAST(s64_to_f64, uint64_t, double, (double)(int64_t)x)
FAST(f16_to_f32, uint32_t, uint32_t, ptx_canonical(ckt_ptx_half_to_float((uint16_t)x)))
FAST(bf16_to_f32, uint32_t, uint32_t, x << 16)
FAST(f32_to_f16, float, uint32_t, ptx_half_from_float(x))
FAST(f32_to_bf16, float, uint32_t, ptx_bf16_from_float(x))
FAST(f32_to_s32, float, uint32_t,
	(uint32_t)(x >= 0x1p31f        ? INT32_MAX
			: x < -0x1p31f ? INT32_MIN
			: x == x       ? (int32_t)x
				       : 0))
FAST(f32_to_u32, float, uint32_t, x >= 0x1p32f ? UINT32_MAX : x > 0 ? (uint32_t)x : 0)
FAST(f32_to_s64, float, uint64_t,
	(uint64_t)(x >= 0x1p63f         ? INT64_MAX
			: x >= -0x1p63f ? (int64_t)x
					: INT64_MIN))
FAST(f64_to_s32, double, uint32_t,
	(uint32_t)(x >= 0x1p31         ? INT32_MAX
			: x >= -0x1p31 ? (int32_t)x
				       : INT32_MIN))
FAST(f64_to_s64, double, uint64_t,
	(uint64_t)(x >= 0x1p63         ? INT64_MAX
			: x >= -0x1p63 ? (int64_t)x
				       : INT64_MIN))
FAST(f32_to_nearest, float, uint32_t, ptx_canonical(__builtin_nearbyintf(x)))
FAST(f32_to_trunc, float, uint32_t, ptx_canonical(__builtin_truncf(x)))
FAST(f32_to_floor, float, uint32_t, ptx_canonical(__builtin_floorf(x)))
FAST(f32_to_ceil, float, uint32_t, ptx_canonical(__builtin_ceilf(x)))

static double round_integer(double v, int rounding)
{
	switch (rounding) {
	case ROUND_RZ_INT:
	case ROUND_RZ:
		return trunc(v);
	case ROUND_RM_INT:
	case ROUND_RM:
		return floor(v);
	case ROUND_RP_INT:
	case ROUND_RP:
		return ceil(v);
	default:
		return nearbyint(v);
	}
}

static double read_float(enum ptx_type type, uint64_t bits)
{
	switch (type) {
	case T_F16:
		return ckt_ptx_half_to_float((uint16_t)bits);
	case T_BF16:
		return ckt_ptx_bf16_to_float((uint16_t)bits);
	case T_F64:
		return ptx_double(bits);
	default:
		return ptx_float((uint32_t)bits);
	}
}

/* Narrows a double in one rounding. */
static float to_f32(double v, int rounding)
{
	static const int modes[] = {[ROUND_RN] = FE_TONEAREST,
		[ROUND_RZ] = FE_TOWARDZERO,
		[ROUND_RM] = FE_DOWNWARD,
		[ROUND_RP] = FE_UPWARD};
	if (rounding == ROUND_RN || rounding > ROUND_RP)
		return (float)v;
	volatile double in = v;
	fesetround(modes[rounding]);
	volatile float out = (float)in;
	fesetround(FE_TONEAREST);
	return out;
}

static uint64_t write_float(enum ptx_type type, double v, int rounding, unsigned flags)
{
	if (flags & CVT_SAT)
		v = v > 1 ? 1 : v > 0 ? v : 0;
	if ((flags & CVT_RELU) && v <= 0)
		v = 0;
	switch (type) {
	case T_F16: {
		uint16_t h = ckt_ptx_half_from_double(v, rounding);
		return (flags & CVT_SATFINITE) && (h & 0x7fff) == 0x7c00 ? (h & 0x8000) | 0x7bff
									 : h;
	}
	case T_BF16: {
		uint16_t h = ckt_ptx_bf16_from_double(v, rounding);
		return (flags & CVT_SATFINITE) && (h & 0x7fff) == 0x7f80 ? (h & 0x8000) | 0x7f7f
									 : h;
	}
	case T_TF32: {
		uint32_t bits = ptx_float_bits((float)v);
		bool finite = (bits & 0x7f800000) != 0x7f800000;
		uint32_t add = rounding == ROUND_RZ || !finite ? 0
			: rounding == ROUND_RNA                ? 0x1000
							       : 0xfff + (bits >> 13 & 1);
		bits = (bits + add) & ~0x1fffu;
		return (flags & CVT_SATFINITE) && (bits & 0x7f800000) == 0x7f800000 ? bits - 0x2000
										    : bits;
	}
	case T_F64:
		return ptx_double_bits(v);
	default: {
		float f = to_f32(v, rounding);
		return ptx_canonical(!(flags & CVT_FTZ) ? f
				: fabsf(f) == 0x1p-126f && ptx_tiny(fabs(v), rounding)
				? copysignf(0, f)
				: ptx_flush(f));
	}
	}
}

/*
 * A value out of range becomes the nearest one that fits.  A NaN becomes zero, but only the top bit
 * is set if 64 bits are involved.
 */
static uint64_t float_to_int(enum ptx_type type, double v, int rounding, bool from_f64)
{
	unsigned bits = ckt_ptx_type_bytes(type) * 8;
	bool is_signed = ckt_ptx_type_signed(type);
	if (v != v)
		return bits == 64 || from_f64 ? (is_signed ? ~0ull : 1ull) << (bits - 1) : 0;
	v = round_integer(v, rounding);
	double half = (double)(1ull << (bits - 1)), least = is_signed ? -half : 0,
	       most = is_signed ? half : 2 * half;
	if (v < least)
		return (uint64_t)(is_signed ? (int64_t)((uint64_t)-1 << (bits - 1)) : 0);
	if (v >= most)
		return is_signed     ? (1ull << (bits - 1)) - 1
			: bits == 64 ? ~0ull
				     : (1ull << bits) - 1;
	return is_signed ? (uint64_t)(int64_t)v : (uint64_t)v;
}

static uint64_t int_to_float(enum ptx_type to, uint64_t v, bool is_signed, int rounding)
{
	static const int modes[] = {[ROUND_RN] = FE_TONEAREST,
		[ROUND_RZ] = FE_TOWARDZERO,
		[ROUND_RM] = FE_DOWNWARD,
		[ROUND_RP] = FE_UPWARD};
	volatile int64_t s = (int64_t)v;
	volatile uint64_t u = v;
	uint64_t r;
	if (rounding && rounding <= ROUND_RP)
		fesetround(modes[rounding]);
	if (to == T_F32) {
		volatile float f = is_signed ? (float)s : (float)u;
		r = ptx_float_bits(f);
	} else {
		volatile double d = is_signed ? (double)s : (double)u;
		r = ptx_double_bits(d);
	}
	if (rounding)
		fesetround(FE_TONEAREST);
	/*
	 * A 64-bit integer beyond f16's range overflows in either case; one within the range is
	 * exact in a double.
	 */
	return to == T_F16     ? ckt_ptx_half_from_double(ptx_double(r), rounding)
		: to == T_BF16 ? ckt_ptx_bf16_from_double(ptx_double(r), rounding)
			       : r;
}

static uint64_t saturate_int(enum ptx_type to, uint64_t v, bool from_signed)
{
	unsigned bits = ckt_ptx_type_bytes(to) * 8;
	__int128 value = from_signed ? (__int128)(int64_t)v : (__int128)v;
	__int128 least = ckt_ptx_type_signed(to) ? -((__int128)1 << (bits - 1)) : 0,
		 most = ((__int128)1 << (bits - ckt_ptx_type_signed(to))) - 1;
	return (uint64_t)(value < least ? least : value > most ? most : value);
}

static uint64_t extend(enum ptx_type type, uint64_t v)
{
	switch (ckt_ptx_type_bytes(type)) {
	case 1:
		return ckt_ptx_type_signed(type) ? (uint64_t)(int64_t)(int8_t)v : (uint8_t)v;
	case 2:
		return ckt_ptx_type_signed(type) ? (uint64_t)(int64_t)(int16_t)v : (uint16_t)v;
	case 4:
		return ckt_ptx_type_signed(type) ? (uint64_t)(int64_t)(int32_t)v : (uint32_t)v;
	default:
		return v;
	}
}

/* Converts a float to its own type; an integer rounding mode rounds it to an integer. */
static uint64_t same_float(enum ptx_type to, double v, int rounding, unsigned flags)
{
	if (rounding >= ROUND_RN_INT && rounding <= ROUND_RP_INT)
		v = round_integer(v, rounding);
	return write_float(to, v, rounding >= ROUND_RN_INT ? ROUND_RN : rounding, flags);
}

/* plain: without any modifier. */
struct conversion {
	enum ptx_type to, from;
	int rounding;
	unsigned flags;
	bool plain;
};

/*
 * The result for a NaN: f64 instructions keep the bits that fit, those of f32 and halves return one
 * NaN, and some instructions only move bits.
 */
static uint64_t convert_nan(const struct conversion *c, uint64_t bits)
{
	if (c->from == T_F64) {
		uint64_t sign = bits >> 63;
		switch (c->to) {
		case T_F16:
			return sign << 15 | 0x7e00 | (bits >> 42 & 0x1ff);
		case T_BF16:
			return sign << 15 | 0x7fc0 | (bits >> 45 & 0x3f);
		case T_F32:
			return sign << 31 | 0x7fc00000 | (bits >> 29 & 0x3fffff);
		default:
			return c->plain ? bits : bits | 1ull << 51;
		}
	}
	switch (c->to) {
	case T_F16:
	case T_BF16:
		return 0x7fff;
	case T_TF32: {
		if (c->rounding != ROUND_RNA)
			return 0x7fffe000;
		uint32_t kept = (uint32_t)bits & ~0x1fffu;
		return c->flags & CVT_SATFINITE ? kept - 0x2000 : kept;
	}
	case T_F32:
		return c->from == T_F32 && c->plain                  ? bits
			: c->from == T_BF16 && !(c->flags & CVT_FTZ) ? bits << 16
								     : 0x7fffffff;
	default:
		return c->flags & CVT_FTZ ? 0x7fffffffe0000000ull
					  : ptx_double_bits(read_float(c->from, bits)) | 1ull << 51;
	}
}

static uint64_t convert(const struct conversion *c, uint64_t bits)
{
	bool float_to = ckt_ptx_type_float(c->to), float_from = ckt_ptx_type_float(c->from);
	if (!float_to && !float_from) {
		uint64_t v = extend(c->from, bits);
		return c->flags & CVT_SAT ? saturate_int(c->to, v, ckt_ptx_type_signed(c->from))
					  : extend(c->to, v);
	}
	if (!float_from) {
		uint64_t r = int_to_float(
			c->to, extend(c->from, bits), ckt_ptx_type_signed(c->from), c->rounding);
		return c->flags & CVT_SAT
			? write_float(c->to, read_float(c->to, r), ROUND_RN, c->flags)
			: r;
	}
	double v = read_float(c->from, bits);
	if ((c->flags & CVT_FTZ) && c->from == T_F32 && c->to != T_F16)
		v = ptx_flush((float)v);
	if (!float_to)
		return float_to_int(c->to, v, c->rounding, c->from == T_F64);
	if (v != v && !(c->flags & CVT_SAT))
		return convert_nan(c, bits);
	return same_float(c->to, v, c->rounding, c->flags);
}

static int exec_cvt(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)
{
	const struct conversion *c = i->side;
	const void *a = ptx_at(w, i->a);
	void *d = ptx_at(w, i->d);
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		uint64_t r =
			convert(c, i->x == 8 ? ((const uint64_t *)a)[l] : ((const uint32_t *)a)[l]);
		/* The register may be wider than the type; it gets the extended value. */
		if (i->y == 8)
			((uint64_t *)d)[l] = r;
		else
			((uint32_t *)d)[l] = i->z == 2 ? (uint16_t)r : (uint32_t)r;
	}
	return RUN_NEXT;
}
PTX_FORM(exec_cvt, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

/* cvt.rn.f16x2.f32 d, a, b: a goes into the upper half. */
static int exec_cvt_pair(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)
{
	const struct conversion *c = i->side;
	const uint32_t *a = ptx_at(w, i->a), *b = ptx_at(w, i->b);
	uint32_t *d = ptx_at(w, i->d);
	PTX_FOR_LANES(m, d[l] = (uint32_t)convert(c, a[l]) << 16 | (uint16_t)convert(c, b[l]););
	return RUN_NEXT;
}
PTX_FORM(exec_cvt_pair, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

static int f32_to_f16x2(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)
{
	const float *a = ptx_at(w, i->a), *b = ptx_at(w, i->b);
	uint32_t *d = ptx_at(w, i->d);
	PTX_FOR_LANES(
		m, d[l] = (uint32_t)ptx_half_from_float(a[l]) << 16 | ptx_half_from_float(b[l]););
	return RUN_NEXT;
}
PTX_FORM(f32_to_f16x2, FORM_LANE, 4, 4, 4, 0, 0,
	"d = (uint32_t)ptx_half_from_float(ptx_float(a)) << 16 | ptx_half_from_float(ptx_float(b));")

static int f32_to_bf16x2(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)
{
	const float *a = ptx_at(w, i->a), *b = ptx_at(w, i->b);
	uint32_t *d = ptx_at(w, i->d);
	PTX_FOR_LANES(
		m, d[l] = (uint32_t)ptx_bf16_from_float(a[l]) << 16 | ptx_bf16_from_float(b[l]););
	return RUN_NEXT;
}
PTX_FORM(f32_to_bf16x2, FORM_LANE, 4, 4, 4, 0, 0,
	"d = (uint32_t)ptx_bf16_from_float(ptx_float(a)) << 16 | ptx_bf16_from_float(ptx_float(b));")

/* ---- Decoding */

static ptx_handler *fast_handler(const struct conversion *c, unsigned slot_from, unsigned slot_to)
{
	static const struct {
		enum ptx_type to, from;
		int rounding;
		ptx_handler *fn;
	} fast[] = {{T_U64, T_U32, 0, u32_to_u64}, {T_S64, T_U32, 0, u32_to_u64},
		{T_S64, T_S32, 0, s32_to_s64}, {T_U64, T_S32, 0, s32_to_s64},
		{T_U32, T_U64, 0, u64_to_u32}, {T_S32, T_S64, 0, u64_to_u32},
		{T_U32, T_S64, 0, u64_to_u32}, {T_S32, T_U64, 0, u64_to_u32},
		{T_U32, T_U16, 0, u16_to_u32}, {T_S32, T_U16, 0, u16_to_u32},
		{T_S32, T_S16, 0, s16_to_s32}, {T_U32, T_S16, 0, s16_to_s32},
		{T_U16, T_U32, 0, u16_to_u32}, {T_S16, T_S32, 0, u16_to_u32},
		{T_U16, T_S32, 0, u16_to_u32}, {T_U32, T_U8, 0, u8_to_u32},
		{T_S32, T_U8, 0, u8_to_u32}, {T_U16, T_U8, 0, u8_to_u32},
		{T_S16, T_U8, 0, u8_to_u32}, {T_S32, T_S8, 0, s8_to_s32},
		{T_U32, T_S8, 0, s8_to_s32}, {T_S16, T_S8, 0, s8_to_s16},
		{T_F32, T_S32, ROUND_RN, s32_to_f32}, {T_F32, T_U32, ROUND_RN, u32_to_f32},
		{T_F64, T_S32, ROUND_RN, s32_to_f64}, {T_F64, T_U32, ROUND_RN, u32_to_f64},
		{T_F64, T_F32, ROUND_RN, f32_to_f64}, {T_F32, T_F64, ROUND_RN, f64_to_f32},
		{T_F32, T_U16, ROUND_RN, u16_to_f32}, {T_F32, T_S16, ROUND_RN, s16_to_f32},
		{T_F32, T_U64, ROUND_RN, u64_to_f32}, {T_F32, T_S64, ROUND_RN, s64_to_f32},
		{T_F64, T_U64, ROUND_RN, u64_to_f64}, {T_F64, T_S64, ROUND_RN, s64_to_f64},
		{T_F32, T_F16, ROUND_RN, f16_to_f32}, {T_F32, T_BF16, ROUND_RN, bf16_to_f32},
		{T_F16, T_F32, ROUND_RN, f32_to_f16}, {T_BF16, T_F32, ROUND_RN, f32_to_bf16},
		{T_S32, T_F32, ROUND_RZ_INT, f32_to_s32}, {T_U32, T_F32, ROUND_RZ_INT, f32_to_u32},
		{T_S64, T_F32, ROUND_RZ_INT, f32_to_s64}, {T_S32, T_F64, ROUND_RZ_INT, f64_to_s32},
		{T_S64, T_F64, ROUND_RZ_INT, f64_to_s64},
		{T_F32, T_F32, ROUND_RN_INT, f32_to_nearest},
		{T_F32, T_F32, ROUND_RZ_INT, f32_to_trunc},
		{T_F32, T_F32, ROUND_RM_INT, f32_to_floor},
		{T_F32, T_F32, ROUND_RP_INT, f32_to_ceil}};
	if (c->flags || slot_from != ckt_ptx_lane_bytes(c->from) ||
		slot_to != ckt_ptx_lane_bytes(c->to))
		return exec_cvt;
	for (size_t k = 0; k < sizeof fast / sizeof *fast; k++)
		if (fast[k].to == c->to && fast[k].from == c->from &&
			fast[k].rounding == c->rounding)
			return fast[k].fn;
	return exec_cvt;
}

static void decode_pair(struct ptx_parser *p, struct conversion *c, enum ptx_type to)
{
	c->to = to == T_F16X2 ? T_F16 : T_BF16;
	if (c->from != T_F32)
		ckt_ptx_bad(p, "unsuitable type");
	ckt_ptx_need_operands(p, 3, 3);
	int32_t a = ckt_ptx_source(p, 1, T_F32), b = ckt_ptx_source(p, 2, T_F32),
		d = ckt_ptx_dest(p, 0, T_B32);
	ptx_handler *fn = c->flags || c->rounding != ROUND_RN ? exec_cvt_pair
		: c->to == T_F16                              ? f32_to_f16x2
							      : f32_to_bf16x2;
	struct ptx_insn *i = ckt_ptx_emit(p, fn);
	i->a = a;
	i->b = b;
	i->d = d;
	i->side = c;
}

/* ---- 8-bit floats, always in pairs; packing of integers */

enum { F8_E4M3, F8_E5M2, F8_UE8M0 };
#define CVT_UP 16 /* flag of exec_f8_from: .rp */

static uint8_t f8_from(int format, double v, unsigned flags)
{
	if ((flags & CVT_RELU) && v <= 0)
		v = 0;
	if (format != F8_UE8M0)
		return format == F8_E4M3 ? ckt_ptx_e4m3_from_double(v)
					 : ckt_ptx_e5m2_from_double(v);
	/* A power of two without a sign: 2^-127 to 2^127; larger values become NaN. */
	v = fabs(v);
	if (isnan(v) || (isinf(v) && !(flags & CVT_SATFINITE)))
		return 0xff;
	int exponent = v == 0 ? -127 : isinf(v) ? 128 : ilogb(v);
	if ((flags & CVT_UP) && v != 0 && !isinf(v) && ldexp(1, exponent) < v)
		exponent++;
	int least = exponent < -127 ? -127 : exponent, most = flags & CVT_SATFINITE ? 127 : 128;
	return (uint8_t)((least > most ? most : least) + 127);
}

/*
 * cvt.rn.satfinite.e4m3x2.f32 d, a, b: a goes into the upper byte.  Without b, a holds a pair of
 * f16 or bf16.
 */
static int exec_f8_from(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)
{
	const uint32_t *a = ptx_at(w, i->a), *b = i->b == PTX_OPERAND_NONE ? NULL : ptx_at(w, i->b);
	uint32_t *d = ptx_at(w, i->d);
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		double high = b ? ptx_float(a[l]) : read_float((enum ptx_type)i->y, a[l] >> 16),
		       low = b ? ptx_float(b[l]) : read_float((enum ptx_type)i->y, (uint16_t)a[l]);
		d[l] = (uint32_t)f8_from(i->x, high, i->z) << 8 | f8_from(i->x, low, i->z);
	}
	return RUN_NEXT;
}
PTX_FORM(exec_f8_from, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

static int exec_f8_to(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)
{
	const uint32_t *a = ptx_at(w, i->a);
	uint32_t *d = ptx_at(w, i->d);
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		uint32_t r = 0;
		for (unsigned k = 0; k < 2; k++) {
			uint8_t bits = (uint8_t)(a[l] >> (8 * k));
			double v = i->x == F8_E4M3 ? ckt_ptx_e4m3_to_float(bits)
				: i->x == F8_E5M2  ? ckt_ptx_e5m2_to_float(bits)
				: bits == 0xff     ? NAN
						   : ldexp(1, bits - 127);
			r |= (uint32_t)write_float((enum ptx_type)i->y, v, ROUND_RN, i->z)
				<< (16 * k);
		}
		d[l] = r;
	}
	return RUN_NEXT;
}
PTX_FORM(exec_f8_to, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

static void decode_f8(struct ptx_parser *p, const struct conversion *c)
{
	bool to = c->to == T_E4M3X2 || c->to == T_E5M2X2 || c->to == T_UE8M0X2,
	     scale = c->to == T_UE8M0X2 || c->from == T_UE8M0X2;
	enum ptx_type other = to ? c->from : c->to;
	bool two = to && other == T_F32;
	if (!(to && (other == T_F32 || other == T_F16X2 || other == T_BF16X2)) &&
		!(!to && other == (scale ? T_BF16X2 : T_F16X2)))
		ckt_ptx_bad(p, "unsuitable type");
	if (to && scale && c->rounding != ROUND_RZ && c->rounding != ROUND_RP)
		ckt_ptx_bad(p, ".rz or .rp expected");
	if (to && !scale && !(c->flags & CVT_SATFINITE))
		ckt_ptx_bad(p, ".satfinite expected");
	ckt_ptx_need_operands(p, 2 + two, 2 + two);
	int32_t a = ckt_ptx_source(p, 1, to ? T_B32 : T_B16),
		b = two ? ckt_ptx_source(p, 2, T_F32) : PTX_OPERAND_NONE;
	int32_t d = ckt_ptx_dest(p, 0, to ? T_B16 : T_B32);
	struct ptx_insn *i = ckt_ptx_emit(p, to ? exec_f8_from : exec_f8_to);
	i->a = a;
	i->b = b;
	i->d = d;
	i->x = scale ? F8_UE8M0 : (to ? c->to : c->from) == T_E4M3X2 ? F8_E4M3 : F8_E5M2;
	i->y = other == T_BF16X2 ? T_BF16 : T_F16;
	i->z = (uint8_t)(c->flags | (c->rounding == ROUND_RP ? CVT_UP : 0));
}

/*
 * cvt.pack.sat.TYPE.s32 d, a, b {, c}: b is lowest, a is next, and the bits of c that fit are above
 * both.  x: bits of one value; y: signed.
 */
static int exec_pack(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)
{
	const uint32_t *a = ptx_at(w, i->a), *b = ptx_at(w, i->b),
		       *c = i->c == PTX_OPERAND_NONE ? NULL : ptx_at(w, i->c);
	uint32_t *d = ptx_at(w, i->d), mask = (1u << i->x) - 1;
	int32_t least = i->y ? -(1 << (i->x - 1)) : 0,
		most = i->y ? (1 << (i->x - 1)) - 1 : (1 << i->x) - 1;
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		int32_t x = (int32_t)a[l], y = (int32_t)b[l];
		x = x < least ? least : x > most ? most : x;
		y = y < least ? least : y > most ? most : y;
		d[l] = ((uint32_t)y & mask) | ((uint32_t)x & mask) << i->x |
			(c ? c[l] << (2 * i->x) : 0);
	}
	return RUN_NEXT;
}
PTX_FORM(exec_pack, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

static void decode_pack(struct ptx_parser *p)
{
	static const char *const names[] = {"u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2", NULL};
	static const uint8_t bits[] = {16, 16, 8, 8, 4, 4, 2, 2};
	bool sat = ckt_ptx_mod(p, "sat");
	int to = ckt_ptx_mod_one(p, names);
	if (!sat || to < 0 || ckt_ptx_need_type(p) != T_S32 ||
		(to > 1 && ckt_ptx_need_type(p) != T_B32))
		ckt_ptx_bad(p, "unknown packing");
	ckt_ptx_need_operands(p, to > 1 ? 4 : 3, to > 1 ? 4 : 3);
	int32_t a = ckt_ptx_source(p, 1, T_S32), b = ckt_ptx_source(p, 2, T_S32),
		c = to > 1 ? ckt_ptx_source(p, 3, T_B32) : PTX_OPERAND_NONE;
	int32_t d = ckt_ptx_dest(p, 0, T_B32);
	struct ptx_insn *i = ckt_ptx_emit(p, exec_pack);
	i->a = a;
	i->b = b;
	i->c = c;
	i->d = d;
	i->x = bits[to];
	i->y = to & 1;
}

/* Whether the type is a pair of 8-bit floats. */
static bool is_f8(enum ptx_type type)
{
	return type == T_E4M3X2 || type == T_E5M2X2 || type == T_UE8M0X2;
}

static struct conversion *take_conversion(struct ptx_parser *p)
{
	static const char *const roundings[] = {
		"rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi", NULL};
	struct conversion *c = ckt_ptx_new(p, sizeof *c);
	c->rounding = ckt_ptx_mod_one(p, roundings);
	c->plain = c->rounding < 0 && p->raw.n_mods == 2;
	if (c->rounding < 0)
		c->rounding = ROUND_RN;
	c->flags |= ckt_ptx_mod(p, "ftz") ? CVT_FTZ : 0;
	c->flags |= ckt_ptx_mod(p, "sat") ? CVT_SAT : 0;
	c->flags |= ckt_ptx_mod(p, "relu") ? CVT_RELU : 0;
	c->flags |= ckt_ptx_mod(p, "satfinite") ? CVT_SATFINITE : 0;
	c->to = ckt_ptx_need_type(p);
	c->from = ckt_ptx_need_type(p);
	return c;
}

/*
 * Decodes the conversion of one value from a register or a constant to a register.  A register may
 * be wider than its type.
 */
static void decode_single(struct ptx_parser *p, struct conversion *c)
{
	ckt_ptx_need_operands(p, 2, 2);
	const struct ptx_operand *d = &p->raw.operands[0], *a = &p->raw.operands[1];
	bool narrow =
		a->kind == OP_REG && ckt_ptx_type_bytes(a->type) < ckt_ptx_type_bytes(c->from);
	int32_t source = a->kind == OP_REG ? a->reg : ckt_ptx_source_of(p, a, c->from);
	unsigned slot_from = ckt_ptx_lane_bytes(a->kind == OP_REG ? a->type : c->from),
		 slot_to = ckt_ptx_lane_bytes(d->type), d_bytes = ckt_ptx_type_bytes(d->type);
	if (d->kind != OP_REG || !slot_to || d_bytes < ckt_ptx_type_bytes(c->to) || slot_to > 8 ||
		!slot_from || slot_from > 8 || narrow)
		ckt_ptx_bad(p, "register of the wrong type");
	if (c->from == T_BF16 && ckt_ptx_type_bytes(c->to) == 1 && d_bytes != 1)
		ckt_ptx_bad(p, "a bf16 can become a byte only in an 8-bit register");
	/* A signed 16-bit result in a wider register is sign-extended. */
	bool extended = c->to == T_S16 && d_bytes > 2;
	struct ptx_insn *i =
		ckt_ptx_emit(p, extended ? exec_cvt : fast_handler(c, slot_from, slot_to));
	i->a = source;
	i->d = d->reg;
	i->side = c;
	i->x = (uint8_t)slot_from;
	i->y = (uint8_t)slot_to;
	i->z = (uint8_t)(d_bytes == 2 ? 2 : 0);
}

static void decode_cvt(struct ptx_parser *p)
{
	if (ckt_ptx_mod(p, "pack")) {
		decode_pack(p);
		return;
	}
	struct conversion *c = take_conversion(p);
	if (is_f8(c->to) || is_f8(c->from)) {
		decode_f8(p, c);
		return;
	}
	if (c->to == T_F16X2 || c->to == T_BF16X2) {
		decode_pair(p, c, c->to);
		return;
	}
	bool suitable = c->to != T_PRED && c->from != T_PRED && c->to != T_B128 &&
		c->from != T_B128 && c->to < T_F16X2;
	if (!suitable && c->to != T_TF32)
		ckt_ptx_bad(p, "unsuitable type");
	decode_single(p, c);
}

const struct ptx_opcode ckt_ptx_opcodes_cvt[] = {{"cvt", decode_cvt}, {NULL, NULL}};
