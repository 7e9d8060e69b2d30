/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Floating arithmetic of f32 and f64.  The rarer rounding modes and the 16-bit formats share one
 * slow path each.  Compiled without contraction: a product and a sum are two roundings.
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

enum float_op {
	F_ADD,
	F_SUB,
	F_MUL,
	F_DIV,
	F_FMA,
	F_MIN,
	F_MAX,
	F_ABS,
	F_NEG,
	F_SQRT,
	F_RCP,
	F_RSQRT,
	F_SIN,
	F_COS,
	F_LG2,
	F_EX2,
	F_TANH,
	F_COPYSIGN,
	F_DIV_APPROX,
	F_COUNT
};

/* insn->x: flags; insn->y: rounding; insn->z: enum float_op. */
enum {
	FLAG_FTZ = 1,
	FLAG_SAT = 2,
	FLAG_NAN = 4,
	FLAG_XORSIGN = 8,
	FLAG_RELU = 16,
	FLAG_PACKED = 32,
	FLAG_BF16 = 64,
	FLAG_OOB = 128
};

static double plain_f64(int op, double x, double y, double z);

/*
 * .ftz flushes a result that is tiny before its exponent is limited, as the GPU does.  So it also
 * flushes a result that was rounded up to the least normal number.
 */
static inline float flush_result(int op, int rounding, float r, float x, float y, float z)
{
	if (__builtin_expect((ptx_float_bits(r) & 0x7fffffffu) != 0x800000, 1) || op == F_MIN ||
		op == F_MAX)
		return ptx_flush(r);
	double exact = fabs(plain_f64(op, x, y, z));
	return ptx_tiny(exact, rounding) ? copysignf(0, r) : r;
}

/* Whether a result is the least normal number, which flush_result must examine. */
static inline uint32_t doubtful(float r)
{
	return (ptx_float_bits(r) & 0x7fffffffu) == 0x800000;
}

/*
 * Fast handlers round to nearest, and neither flush nor saturate; careful handlers examine the
 * flags.  TIMES: the result times 2^64, see ptx_flush_rounded.
 */
#define F32(name, ATTR, expr, TIMES)                                                                                                                          \
	ATTR static int name##_f32(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)                                                                  \
	{                                                                                                                                                     \
		const float *a = ptx_at(w, i->a), *b = ptx_at(w, i->b), *c = ptx_at(w, i->c);                                                                 \
		uint32_t *d = ptx_at(w, i->d);                                                                                                                \
		(void)c;                                                                                                                                      \
		PTX_FOR_LANES(m, float x = a[l]; float y = b[l]; float z = c[l]; (void)y; (void)z;                                                            \
			      d[l] = ptx_canonical(expr););                                                                                                   \
		return RUN_NEXT;                                                                                                                              \
	}                                                                                                                                                     \
	ATTR static int name##_f32_flags(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)                                                            \
	{                                                                                                                                                     \
		const float *a = ptx_at(w, i->a), *b = ptx_at(w, i->b), *c = ptx_at(w, i->c);                                                                 \
		uint32_t *d = ptx_at(w, i->d), tiny = 0, done[PTX_LANES];                                                                                     \
		bool sat = i->x & FLAG_SAT;                                                                                                                   \
		if (i->x & FLAG_FTZ) {                                                                                                                        \
			float xs[PTX_LANES], ys[PTX_LANES], zs[PTX_LANES];                                                                                    \
			for (unsigned l = 0; l < PTX_LANES; l++) {                                                                                            \
				xs[l] = ptx_flush(a[l]);                                                                                                      \
				ys[l] = ptx_flush(b[l]);                                                                                                      \
				zs[l] = ptx_flush(c[l]);                                                                                                      \
			}                                                                                                                                     \
			PTX_FOR_LANES(m, float x = xs[l]; float y = ys[l]; float z = zs[l];                                                                   \
				      (void)y; (void)z; done[l] = ptx_float_bits(expr););                                                                     \
			PTX_FOR_LANES(m, float r = ptx_float(done[l]); tiny |= doubtful(r);                                                                   \
				      done[l] = ptx_canonical(ptx_flush(r)););                                                                                \
			if (__builtin_expect(tiny != 0, 0))                                                                                                   \
				PTX_FOR_LANES(m, float x = xs[l]; float y = ys[l];                                                                            \
					      float z = zs[l]; (void)x; (void)y; (void)z;                                                                     \
					      done[l] = ptx_float_bits(ptx_flush_rounded(                                                                     \
						      ptx_float(done[l]), TIMES)););                                                                          \
		} else {                                                                                                                                      \
			PTX_FOR_LANES(m, float x = a[l]; float y = b[l]; float z = c[l]; (void)y;                                                             \
				      (void)z; done[l] = ptx_canonical(expr););                                                                               \
		}                                                                                                                                             \
		PTX_FOR_LANES(                                                                                                                                \
			m, d[l] = sat ? ptx_float_bits(saturate(ptx_float(done[l]))) : done[l];);                                                             \
		return RUN_NEXT;                                                                                                                              \
	}                                                                                                                                                     \
	PTX_FORM(name##_f32, FORM_LANE, 4, 4, 4, 4, 0,                                                                                                        \
		"float x = ptx_float(a), y = ptx_float(b), z = ptx_float(c); d = ptx_canonical(" PTX_TEXT(                                                    \
			expr) ");")                                                                                                                           \
	PTX_FORM(name##_f32_flags, FORM_LANE, 4, 4, 4, 4, 0,                                                                                                  \
		"float x = ptx_float(a), y = ptx_float(b), z = ptx_float(c); if (i->x & 1) { x = ptx_flush(x); y = ptx_flush(y); z = ptx_flush(z); }"         \
		"float r = " PTX_TEXT(expr) "; if (i->x & 1) r = ptx_flush_rounded(r, " PTX_TEXT(                                                             \
			TIMES) ");"                                                                                                                           \
			       "d = i->x & 2 ? ptx_float_bits(saturate(r)) : ptx_canonical(r);",                                                              \
		.quick =                                                                                                                                      \
			"float x = ptx_float(a), y = ptx_float(b), z = ptx_float(c); if (i->x & 1) { x = ptx_flush(x); y = ptx_flush(y); z = ptx_flush(z); }" \
			"float r = " PTX_TEXT(                                                                                                                \
				expr) "; if (i->x & 1) { doubt |= (ptx_float_bits(r) & 0x7fffffffu) == 0x800000; r = ptx_flush(r); }"                         \
				      "d = i->x & 2 ? ptx_float_bits(saturate(r)) : ptx_canonical(r);")
#define F64(name, DIVISION, ATTR, expr)                                                                  \
	ATTR static int name##_f64(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)             \
	{                                                                                                \
		const double *a = ptx_at(w, i->a), *b = ptx_at(w, i->b), *c = ptx_at(w, i->c);           \
		double *d = ptx_at(w, i->d);                                                             \
		PTX_FOR_LANES(m, double x = a[l]; double y = b[l]; double z = c[l];                      \
			      double r = expr; d[l] = r == r ? r : nan_f64(DIVISION, x, y, z););         \
		return RUN_NEXT;                                                                         \
	}                                                                                                \
	PTX_FORM(name##_f64, FORM_LANE, 8, 8, 8, 8, 0,                                                   \
		"double x = ptx_double(a), y = ptx_double(b), z = ptx_double(c), r = " PTX_TEXT(         \
			expr) ";"                                                                        \
			      "d = ptx_double_bits(r == r ? r : nan_f64(" #DIVISION                      \
			      ", x, y, z));",                                                            \
		.quick =                                                                                 \
			"double x = ptx_double(a), y = ptx_double(b), z = ptx_double(c), r = " PTX_TEXT( \
				expr) "; wide_doubt |= r != r; d = ptx_double_bits(r);")
#define NOTHING
F32(add, NOTHING, x + y, 1.0f)
F32(sub, NOTHING, x - y, 1.0f)
F32(mul, NOTHING, x *y, x * 0x1p64f * y)
F32(divide, NOTHING, x / y, x * 0x1p64f / y)
F64(add, 0, NOTHING, x + y)
F64(sub, 0, NOTHING, x - y)
F64(mul, 0, NOTHING, x *y)
F64(divide, 1, NOTHING, x / y)
F32(fma, NOTHING, __builtin_fmaf(x, y, z), __builtin_fmaf(x * 0x1p64f, y, z * 0x1p64f))
F64(fma, 0, NOTHING, __builtin_fma(x, y, z))
#if defined(__x86_64__)
#define WITH_FMA __attribute__((target("avx2,fma")))
F32(hard_fma, WITH_FMA, __builtin_fmaf(x, y, z), __builtin_fmaf(x * 0x1p64f, y, z * 0x1p64f))
F64(hard_fma, 0, WITH_FMA, __builtin_fma(x, y, z))
#endif

F32(minimum, NOTHING, min_f32(x, y), 1.0f)
F32(maximum, NOTHING, max_f32(x, y), 1.0f)
F32(absolute, NOTHING, __builtin_fabsf(x), 1.0f)
F32(negate, NOTHING, -x, 1.0f)
F32(root, NOTHING, __builtin_sqrtf(x), 1.0f)
F32(reciprocal, NOTHING, 1.0f / x, 0x1p64f / x)
F64(minimum, 0, NOTHING, min_f64(x, y))
F64(maximum, 0, NOTHING, max_f64(x, y))

/*
 * ---- One operation on one lane, for all rarer cases.  A double holds every f16 and bf16 result
 * accurately enough to round once more
 */

static float plain_f32(int op, float x, float y, float z)
{
	switch (op) {
	case F_ADD:
		return x + y;
	case F_SUB:
		return x - y;
	case F_MUL:
		return x * y;
	case F_DIV:
		return x / y;
	/* A divisor whose reciprocal is subnormal counts as infinite. */
	case F_DIV_APPROX:
		return x / (fabsf(y) > 0x1p126f ? copysignf(INFINITY, y) : y);
	case F_FMA:
		return fmaf(x, y, z);
	case F_MIN:
		return min_f32(x, y);
	case F_MAX:
		return max_f32(x, y);
	case F_ABS:
		return fabsf(x);
	case F_NEG:
		return -x;
	case F_SQRT:
		return sqrtf(x);
	case F_RCP:
		return 1.0f / x;
	case F_RSQRT:
		return (float)(1.0 / sqrt((double)x));
	case F_SIN:
		return sinf(x);
	case F_COS:
		return cosf(x);
	case F_LG2:
		return log2f(x);
	case F_EX2:
		return exp2f(x);
	case F_TANH:
		return tanhf(x);
	default:
		return copysignf(y, x);
	}
}

static double plain_f64(int op, double x, double y, double z)
{
	switch (op) {
	case F_ADD:
		return x + y;
	case F_SUB:
		return x - y;
	case F_MUL:
		return x * y;
	case F_DIV:
	case F_DIV_APPROX:
		return x / y;
	case F_FMA:
		return fma(x, y, z);
	case F_MIN:
		return min_f64(x, y);
	case F_MAX:
		return max_f64(x, y);
	case F_ABS:
		return fabs(x);
	case F_NEG:
		return -x;
	case F_SQRT:
		return sqrt(x);
	case F_RCP:
		return 1.0 / x;
	case F_RSQRT:
		return 1.0 / sqrt(x);
	case F_EX2:
		return exp2(x);
	case F_TANH:
		return tanh(x);
	default:
		return copysign(y, x);
	}
}

static const int host_rounding[] = {[ROUND_RN] = FE_TONEAREST,
	[ROUND_RZ] = FE_TOWARDZERO,
	[ROUND_RM] = FE_DOWNWARD,
	[ROUND_RP] = FE_UPWARD};

/* Applies the flags of min and max; true if *ret is the result. */
static bool min_max_flags(const struct ptx_insn *i, float *x, float *y, float *ret)
{
	if ((i->x & FLAG_NAN) && (*x != *x || *y != *y)) {
		*ret = NAN;
		return true;
	}
	return false;
}

static int any_f32(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)
{
	const float *a = ptx_at(w, i->a), *b = ptx_at(w, i->b), *c = ptx_at(w, i->c);
	uint32_t *d = ptx_at(w, i->d);
	if (i->y)
		fesetround(host_rounding[i->y]);
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		volatile float x = a[l], y = b[l], z = c[l];
		float r, fx, fy;
		if (i->x & FLAG_FTZ) {
			x = ptx_flush(x);
			y = ptx_flush(y);
			z = ptx_flush(z);
		}
		fx = x;
		fy = y;
		uint32_t sign = (ptx_float_bits(fx) ^ ptx_float_bits(fy)) & 0x80000000u;
		if (!min_max_flags(i, &fx, &fy, &r)) {
			if (i->x & FLAG_XORSIGN)
				r = ptx_float(
					ptx_float_bits(plain_f32(i->z, fabsf(fx), fabsf(fy), 0)) |
					sign);
			else
				r = plain_f32(i->z, fx, fy, z);
		}
		volatile float done = r;
		r = done;
		if (i->x & FLAG_FTZ)
			r = flush_result(i->z, i->y, r, x, y, z);
		if (i->x & FLAG_SAT)
			r = saturate(r);
		if ((i->x & FLAG_RELU) && r < 0)
			r = 0;
		/* copysign changes only the sign of a NaN. */
		d[l] = i->z == F_COPYSIGN ? ptx_float_bits(r) : ptx_canonical(r);
	}
	if (i->y)
		fesetround(FE_TONEAREST);
	return RUN_NEXT;
}
PTX_FORM(any_f32, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

/* Two floats in one 64-bit register. */
static int any_f32x2(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)
{
	const float *a = ptx_at(w, i->a), *b = ptx_at(w, i->b), *c = ptx_at(w, i->c);
	uint32_t *d = ptx_at(w, i->d);
	bool ftz = i->x & FLAG_FTZ;
	if (i->y)
		fesetround(host_rounding[i->y]);
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		for (unsigned k = 2 * (unsigned)__builtin_ctz(rest), end = k + 2; k < end; k++) {
			volatile float x = ftz ? ptx_flush(a[k]) : a[k],
				       y = ftz ? ptx_flush(b[k]) : b[k],
				       z = ftz ? ptx_flush(c[k]) : c[k], r;
			r = plain_f32(i->z, x, y, z);
			d[k] = ptx_canonical(ftz ? flush_result(i->z, i->y, r, x, y, z) : r);
		}
	}
	if (i->y)
		fesetround(FE_TONEAREST);
	return RUN_NEXT;
}
PTX_FORM(any_f32x2, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

static int any_f64(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)
{
	const double *a = ptx_at(w, i->a), *b = ptx_at(w, i->b), *c = ptx_at(w, i->c);
	double *d = ptx_at(w, i->d);
	if (i->y)
		fesetround(host_rounding[i->y]);
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		volatile double x = a[l], y = b[l], z = c[l], r;
		r = plain_f64(i->z, x, y, z);
		d[l] = r == r || i->z == F_COPYSIGN ? r : nan_f64(i->z == F_DIV, x, y, z);
	}
	if (i->y)
		fesetround(FE_TONEAREST);
	return RUN_NEXT;
}
PTX_FORM(any_f64, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

/* rcp and rsqrt.approx.ftz.f64: use only the upper half; subnormals count as zero. */
static int gross_f64(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)
{
	const uint64_t *a = ptx_at(w, i->a);
	uint64_t *d = ptx_at(w, i->d);
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		uint64_t bits = a[l] & 0xffffffff00000000ull;
		if (!(bits & 0x7ff0000000000000ull))
			bits &= 1ull << 63;
		uint64_t r = ptx_double_bits(plain_f64(i->z, ptx_double(bits), 0, 0));
		if ((r & 0x7ff0000000000000ull) == 0x7ff0000000000000ull &&
			(r & 0xfffffffffffffull))
			r = 0x7fffffff00000000ull;
		else if (!(r & 0x7ff0000000000000ull))
			r &= 1ull << 63;
		d[l] = r & 0xffffffff00000000ull;
	}
	return RUN_NEXT;
}
PTX_FORM(gross_f64, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

/* ---- f16 and bf16, single and in pairs */

/*
 * The exact result, except that the lowest bit is set if bits were lost: rounding once more gives
 * the right result.
 */
static double fma_odd(double x, double y, double z)
{
	double p = x * y, sum = p + z, back = sum - p, lost = (p - (sum - back)) + (z - back);
	uint64_t bits = ptx_double_bits(sum);
	if (lost == 0 || !isfinite(sum) || (bits & 1))
		return sum;
	return ptx_double((lost > 0) == (sum > 0) ? bits + 1 : bits - 1);
}

/*
 * .oob replaces this NaN, with either sign, by 0; a tensor copy writes it outside the tensor (every
 * pattern was tried on an H200).
 */
enum { OOB_NAN = 0x7ff7 };

static inline __attribute__((always_inline)) uint16_t one_half(
	unsigned flags, int op, uint16_t xa, uint16_t ya, uint16_t za)
{
	bool bf = flags & FLAG_BF16;
	if ((flags & FLAG_OOB) && ((xa & 0x7fff) == OOB_NAN || (ya & 0x7fff) == OOB_NAN))
		return 0;
	if (op == F_ABS || op == F_NEG) {
		uint16_t r = op == F_ABS ? xa & 0x7fff : xa ^ 0x8000;
		if ((xa & 0x7fff) > (bf ? 0x7f80 : 0x7c00))
			return 0x7fff;
		return (flags & FLAG_FTZ) && !(r & 0x7c00) ? r & 0x8000 : r;
	}
	double x, y, z, r;
	if ((flags & FLAG_FTZ) && !bf) {
		xa = xa & 0x7c00 ? xa : xa & 0x8000;
		ya = ya & 0x7c00 ? ya : ya & 0x8000;
		za = za & 0x7c00 ? za : za & 0x8000;
	}
	x = bf ? ckt_ptx_bf16_to_float(xa) : ckt_ptx_half_to_float(xa);
	y = bf ? ckt_ptx_bf16_to_float(ya) : ckt_ptx_half_to_float(ya);
	z = bf ? ckt_ptx_bf16_to_float(za) : ckt_ptx_half_to_float(za);
	if ((flags & FLAG_NAN) && (x != x || y != y))
		return 0x7fff;
	if (flags & FLAG_XORSIGN)
		r = copysign(
			plain_f64(op, fabs(x), fabs(y), 0), signbit(x) != signbit(y) ? -1.0 : 1.0);
	else
		r = op == F_FMA ? fma_odd(x, y, z) : plain_f64(op, x, y, z);
	if ((flags & FLAG_FTZ) && !bf && fabs(r) < 0x1p-14 - 0x1p-26)
		r = copysign(0, r);
	if (flags & FLAG_SAT)
		r = r > 1 ? 1 : r > 0 ? r : 0;
	if ((flags & FLAG_RELU) && r <= 0)
		r = 0;
	return bf ? ckt_ptx_bf16_from_double(r, ROUND_RN) : ckt_ptx_half_from_double(r, ROUND_RN);
}

static int any_half(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)
{
	const uint32_t *a = ptx_at(w, i->a), *b = ptx_at(w, i->b), *c = ptx_at(w, i->c);
	uint32_t *d = ptx_at(w, i->d);
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		uint32_t r = one_half(i->x, i->z, (uint16_t)a[l], (uint16_t)b[l], (uint16_t)c[l]);
		if (i->x & FLAG_PACKED)
			r |= (uint32_t)one_half(i->x, i->z, (uint16_t)(a[l] >> 16),
				     (uint16_t)(b[l] >> 16), (uint16_t)(c[l] >> 16))
				<< 16;
		d[l] = r;
	}
	return RUN_NEXT;
}
PTX_FORM(any_half, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

#define HALF_TEXT(shift, expr)                                   \
	"float x = ckt_ptx_half_to_float((uint16_t)(a" shift     \
	")), y = ckt_ptx_half_to_float((uint16_t)(b" shift "));" \
	"float z = ckt_ptx_half_to_float((uint16_t)(c" shift     \
	")); uint16_t r = ptx_half_from_float(" PTX_TEXT(expr) ");"
#define F16(name, expr)                                                                           \
	static inline uint32_t name##_one_f16(uint32_t a, uint32_t b, uint32_t c)                 \
	{                                                                                         \
		float x = ckt_ptx_half_to_float((uint16_t)a),                                     \
		      y = ckt_ptx_half_to_float((uint16_t)b),                                     \
		      z = ckt_ptx_half_to_float((uint16_t)c);                                     \
		(void)y;                                                                          \
		(void)z;                                                                          \
		return ptx_half_from_float(expr);                                                 \
	}                                                                                         \
	static int name##_f16(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)           \
	{                                                                                         \
		const uint32_t *a = ptx_at(w, i->a), *b = ptx_at(w, i->b), *c = ptx_at(w, i->c);  \
		uint32_t *d = ptx_at(w, i->d);                                                    \
		PTX_FOR_LANES(m, d[l] = name##_one_f16(a[l], b[l], c[l]););                       \
		return RUN_NEXT;                                                                  \
	}                                                                                         \
	static int name##_f16x2(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)         \
	{                                                                                         \
		const uint32_t *a = ptx_at(w, i->a), *b = ptx_at(w, i->b), *c = ptx_at(w, i->c);  \
		uint32_t *d = ptx_at(w, i->d);                                                    \
		PTX_FOR_LANES(m,                                                                  \
			      d[l] = name##_one_f16(a[l], b[l], c[l]) |                           \
				      name##_one_f16(a[l] >> 16, b[l] >> 16, c[l] >> 16) << 16;); \
		return RUN_NEXT;                                                                  \
	}                                                                                         \
	PTX_FORM(name##_f16, FORM_LANE, 4, 4, 4, 4, 0, "{" HALF_TEXT("", expr) "d = r; }")        \
	PTX_FORM(name##_f16x2, FORM_LANE, 4, 4, 4, 4, 0,                                          \
		"{" HALF_TEXT("", expr) "d = r; } {" HALF_TEXT(                                   \
			" >> 16", expr) "d |= (uint32_t)r << 16; }")
F16(add, x + y)
F16(sub, x - y)
F16(mul, x *y)
F16(fma, fma_odd_f32(x, y, z))
F16(minimum, min_f32(x, y))
F16(maximum, max_f32(x, y))

static ptx_handler *fast_half(enum float_op op, unsigned flags)
{
	bool packed = flags & FLAG_PACKED;
	if (flags & ~(unsigned)FLAG_PACKED)
		return any_half;
	switch (op) {
	case F_ADD:
		return packed ? add_f16x2 : add_f16;
	case F_SUB:
		return packed ? sub_f16x2 : sub_f16;
	case F_MUL:
		return packed ? mul_f16x2 : mul_f16;
	case F_FMA:
		return packed ? fma_f16x2 : fma_f16;
	case F_MIN:
		return packed ? minimum_f16x2 : minimum_f16;
	case F_MAX:
		return packed ? maximum_f16x2 : maximum_f16;
	default:
		return any_half;
	}
}

/* ---- testp */

enum { TEST_FINITE, TEST_INFINITE, TEST_NUMBER, TEST_NOTANUMBER, TEST_NORMAL, TEST_SUBNORMAL };

static int exec_testp(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)
{
	uint32_t *d = ptx_at(w, i->d), r = 0;
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		int class = i->x ? fpclassify(((const double *)ptx_at(w, i->a))[l])
				 : fpclassify(((const float *)ptx_at(w, i->a))[l]);
		bool yes;
		switch (i->y) {
		case TEST_FINITE:
			yes = class != FP_NAN && class != FP_INFINITE;
			break;
		case TEST_INFINITE:
			yes = class == FP_INFINITE;
			break;
		case TEST_NUMBER:
			yes = class != FP_NAN;
			break;
		case TEST_NOTANUMBER:
			yes = class == FP_NAN;
			break;
		case TEST_NORMAL:
			yes = class == FP_NORMAL || class == FP_ZERO;
			break;
		default:
			yes = class == FP_SUBNORMAL;
			break;
		}
		r |= (uint32_t)yes << l;
	}
	*d = (*d & ~m) | r;
	return RUN_NEXT;
}
PTX_FORM(exec_testp, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

/* ---- Decoding */

static const struct {
	const char *name;
	enum float_op op;
	uint8_t n;
} operations[] = {
	{"add", F_ADD, 2},
	{"sub", F_SUB, 2},
	{"mul", F_MUL, 2},
	{"div", F_DIV, 2},
	{"fma", F_FMA, 3},
	{"mad", F_FMA, 3},
	{"min", F_MIN, 2},
	{"max", F_MAX, 2},
	{"abs", F_ABS, 1},
	{"neg", F_NEG, 1},
	{"sqrt", F_SQRT, 1},
	{"rcp", F_RCP, 1},
	{"rsqrt", F_RSQRT, 1},
	{"sin", F_SIN, 1},
	{"cos", F_COS, 1},
	{"lg2", F_LG2, 1},
	{"ex2", F_EX2, 1},
	{"tanh", F_TANH, 1},
	{"copysign", F_COPYSIGN, 2},
};

static bool has_float_type(const struct ptx_parser *p)
{
	for (unsigned k = 0; k < p->raw.n_mods; k++) {
		enum ptx_type type = ckt_ptx_type_from(p->raw.mods[k], strlen(p->raw.mods[k]));
		if (type != T_NONE && ckt_ptx_type_float(type))
			return true;
	}
	return false;
}

static bool hardware_fma(void)
{
#if defined(__x86_64__)
	return __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2");
#else
	return false;
#endif
}

static ptx_handler *fast_f32(enum float_op op, bool flags)
{
	switch (op) {
	case F_ADD:
		return flags ? add_f32_flags : add_f32;
	case F_SUB:
		return flags ? sub_f32_flags : sub_f32;
	case F_MUL:
		return flags ? mul_f32_flags : mul_f32;
	case F_DIV:
		return flags ? divide_f32_flags : divide_f32;
	case F_MIN:
		return flags ? minimum_f32_flags : minimum_f32;
	case F_MAX:
		return flags ? maximum_f32_flags : maximum_f32;
	case F_ABS:
		return flags ? absolute_f32_flags : absolute_f32;
	case F_NEG:
		return flags ? negate_f32_flags : negate_f32;
	case F_SQRT:
		return flags ? root_f32_flags : root_f32;
	case F_RCP:
		return flags ? reciprocal_f32_flags : reciprocal_f32;
	case F_FMA:
#if defined(__x86_64__)
		if (hardware_fma())
			return flags ? hard_fma_f32_flags : hard_fma_f32;
#endif
		return flags ? fma_f32_flags : fma_f32;
	default:
		return any_f32;
	}
}

static ptx_handler *fast_f64(enum float_op op)
{
	switch (op) {
	case F_ADD:
		return add_f64;
	case F_SUB:
		return sub_f64;
	case F_MUL:
		return mul_f64;
	case F_DIV:
		return divide_f64;
	case F_MIN:
		return minimum_f64;
	case F_MAX:
		return maximum_f64;
	case F_FMA:
#if defined(__x86_64__)
		if (hardware_fma())
			return hard_fma_f64;
#endif
		return fma_f64;
	default:
		return any_f64;
	}
}

struct float_mods {
	uint8_t flags;
	int rounding;
	bool approx;
};

static struct float_mods take_mods(struct ptx_parser *p)
{
	static const char *const roundings[] = {"rn", "rz", "rm", "rp", NULL};
	struct float_mods f = {0};
	f.flags |= ckt_ptx_mod(p, "ftz") ? FLAG_FTZ : 0;
	f.flags |= ckt_ptx_mod(p, "sat") ? FLAG_SAT : 0;
	f.flags |= ckt_ptx_mod(p, "NaN") ? FLAG_NAN : 0;
	f.flags |= ckt_ptx_mod(p, "relu") ? FLAG_RELU : 0;
	f.flags |= ckt_ptx_mod(p, "oob") ? FLAG_OOB : 0;
	if (ckt_ptx_mod(p, "xorsign")) {
		ckt_ptx_mod(p, "abs");
		f.flags |= FLAG_XORSIGN;
	}
	f.approx = ckt_ptx_mod(p, "approx");
	ckt_ptx_mod(p, "full");
	f.rounding = ckt_ptx_mod_one(p, roundings);
	if (f.rounding < 0)
		f.rounding = ROUND_RN;
	return f;
}

static ptx_handler *choose(
	struct ptx_parser *p, enum ptx_type type, enum float_op op, struct float_mods *f)
{
	if (type == T_BF16X2 && op == F_FMA)
		f->rounding = ROUND_RN; /* ptxas accepts others; an H200 rounds to nearest */
	if (f->rounding && (ckt_ptx_type_bytes(type) == 2 || type == T_F16X2 || type == T_BF16X2))
		ckt_ptx_bad(p, "halves are always rounded to nearest");
	switch (type) {
	case T_F32:
		if (op == F_DIV_APPROX)
			return any_f32;
		if (f->rounding || (f->flags & ~(FLAG_FTZ | FLAG_SAT)))
			return any_f32;
		return fast_f32(op, f->flags != 0);
	case T_F64:
		if (f->approx && (op == F_RCP || op == F_RSQRT) && (f->flags & FLAG_FTZ))
			return gross_f64;
		if (f->flags & ~FLAG_FTZ)
			ckt_ptx_bad(p, "unknown modifier for .f64");
		if (op >= F_SIN && op <= F_TANH)
			ckt_ptx_bad(p, "unsuitable type");
		return f->rounding ? any_f64 : fast_f64(op);
	case T_F32X2:
		if (op > F_FMA || (f->flags & ~FLAG_FTZ))
			ckt_ptx_bad(p, "unsuitable type");
		return any_f32x2;
	case T_BF16X2:
		f->flags |= FLAG_BF16 | FLAG_PACKED;
		return fast_half(op, f->flags);
	case T_BF16:
		f->flags |= FLAG_BF16;
		return fast_half(op, f->flags);
	case T_F16X2:
		f->flags |= FLAG_PACKED;
		return fast_half(op, f->flags);
	case T_F16:
		return fast_half(op, f->flags);
	default:
		ckt_ptx_bad(p, "unsuitable type");
	}
}

static void emit_float(struct ptx_parser *p, ptx_handler *fn, const struct float_mods *f,
	enum float_op op, int32_t d, int32_t a, int32_t b)
{
	struct ptx_insn *i = ckt_ptx_emit(p, fn);
	i->a = i->c = a;
	i->b = b;
	i->d = d;
	i->x = f->flags;
	i->y = (uint8_t)f->rounding;
	i->z = (uint8_t)op;
}

/*
 * Three operands: combines the first two into a temporary, and the temporary with the third. .abs:
 * uses their magnitudes.
 */
static void decode_three(
	struct ptx_parser *p, enum float_op op, const struct float_mods *f, bool magnitudes)
{
	if (ckt_ptx_need_type(p) != T_F32 || (f->flags & FLAG_XORSIGN))
		ckt_ptx_bad(p, "wrong number of operands");
	if (p->target < 100)
		ckt_ptx_bad(p, "three operands need .target sm_100 or higher");
	ptx_handler *fn = f->flags & FLAG_NAN ? any_f32 : fast_f32(op, f->flags != 0);
	int32_t from[3], middle = ckt_ptx_reg_alloc(p, T_F32);
	for (unsigned k = 0; k < 3; k++) {
		from[k] = ckt_ptx_source(p, k + 1, T_F32);
		if (magnitudes) {
			int32_t magnitude = ckt_ptx_reg_alloc(p, T_F32);
			emit_float(p, fast_f32(F_ABS, false), &(struct float_mods){0}, F_ABS,
				magnitude, from[k], from[k]);
			from[k] = magnitude;
		}
	}
	emit_float(p, fn, f, op, middle, from[0], from[1]);
	emit_float(p, fn, f, op, ckt_ptx_dest(p, 0, T_F32), middle, from[2]);
}

bool ckt_ptx_decode_float(struct ptx_parser *p)
{
	if (!has_float_type(p))
		return false;
	size_t k = 0;
	while (k < sizeof operations / sizeof *operations && strcmp(p->raw.op, operations[k].name))
		k++;
	if (k == sizeof operations / sizeof *operations)
		return false;
	struct float_mods f = take_mods(p);
	bool least_or_most = operations[k].op == F_MIN || operations[k].op == F_MAX,
	     magnitudes = least_or_most && ckt_ptx_mod(p, "abs");
	if (least_or_most && p->raw.n_operands == 4) {
		decode_three(p, operations[k].op, &f, magnitudes);
		return true;
	}
	if (magnitudes)
		ckt_ptx_bad(p, ".abs without .xorsign requires three operands");
	enum ptx_type type = ckt_ptx_need_type(p);
	enum float_op op = operations[k].op == F_DIV && f.approx ? F_DIV_APPROX : operations[k].op;
	ptx_handler *fn = choose(p, type, op, &f);
	unsigned n = operations[k].n;
	ckt_ptx_need_operands(p, n + 1, n + 1);
	int32_t a = ckt_ptx_source(p, 1, type), b = n > 1 ? ckt_ptx_source(p, 2, type) : a,
		c = n > 2 ? ckt_ptx_source(p, 3, type) : a;
	int32_t d = ckt_ptx_dest(p, 0, type);
	struct ptx_insn *i = ckt_ptx_emit(p, fn);
	i->a = a;
	i->b = b;
	i->c = c;
	i->d = d;
	i->x = f.flags;
	i->y = (uint8_t)f.rounding;
	i->z = (uint8_t)op;
	return true;
}

static void decode_only_float(struct ptx_parser *p)
{
	if (!ckt_ptx_decode_float(p))
		ckt_ptx_bad(p, "floating type expected");
}

static void decode_testp(struct ptx_parser *p)
{
	static const char *const tests[] = {
		"finite", "infinite", "number", "notanumber", "normal", "subnormal", NULL};
	int test = ckt_ptx_mod_one(p, tests);
	enum ptx_type type = ckt_ptx_need_type(p);
	if (test < 0 || (type != T_F32 && type != T_F64))
		ckt_ptx_bad(p, "unknown test");
	ckt_ptx_need_operands(p, 2, 2);
	int32_t a = ckt_ptx_source(p, 1, type), d = ckt_ptx_dest(p, 0, T_PRED);
	struct ptx_insn *i = ckt_ptx_emit(p, exec_testp);
	i->a = a;
	i->d = d;
	i->x = type == T_F64;
	i->y = (uint8_t)test;
}

const struct ptx_opcode ckt_ptx_opcodes_float[] = {
	{"fma", decode_only_float},
	{"sqrt", decode_only_float},
	{"rcp", decode_only_float},
	{"rsqrt", decode_only_float},
	{"sin", decode_only_float},
	{"cos", decode_only_float},
	{"lg2", decode_only_float},
	{"ex2", decode_only_float},
	{"tanh", decode_only_float},
	{"copysign", decode_only_float},
	{"testp", decode_testp},
	{NULL, NULL},
};
