/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/execution/op_float.c: floating instructions: exact ones bit for bit, approximate ones within the bounds PTX gives.
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

static float flush(float v) { return fpclassify(v) == FP_SUBNORMAL ? copysignf(0, v) : v; }

/* Low words are floats, whole values doubles. */
static const uint64_t values[] = {0, 0x80000000, 0x3f800000, 0xbf800000, 0x3fc00001, 0x7f800000, 0xff800000, 0x7fc00000, 0x00000001, 0x007fffff,
				  0x807fffff, 0x7f7fffff, 0x40490fdb, 0xc2f6e979, 0x3ff0000000000000, 0x4340000000000001, 0xbfd5555555555555,
				  0x0010000000000000, 0x7fefffffffffffff};
#define N_VALUES (sizeof values / sizeof *values)

static bool same_double(uint64_t have, uint64_t want) { return have == want || (isnan(d(have)) && isnan(d(want))); }

static uint64_t rounded(int mode, int op, double a, double b, bool single)
{
	volatile double x = a, y = b, r;
	volatile float fx = (float)a, fy = (float)b, fr;
	fesetround(mode);
	r = op == '+' ? x + y : op == '*' ? x * y : op == '/' ? x / y : sqrt(x);
	fr = op == '+' ? fx + fy : op == '*' ? fx * fy : op == '/' ? fx / fy : sqrtf(fx);
	fesetround(FE_TONEAREST);
	return single ? fb(fr) : db(r);
}

E(add_f32, fb(f(a) + f(b))) E(mul_f32, fb(f(a) * f(b))) E(div_f32, fb(f(a) / f(b))) E(fma_f32, fb(fmaf(f(a), f(b), f(c))))
E(sub_ftz, fb(flush(flush(f(a)) - flush(f(b))))) E(mul_sat, isnan(f(a) * f(b)) || f(a) * f(b) <= 0 ? 0 : f(a) * f(b) > 1 ? 0x3f800000 : fb(f(a) * f(b)))
E(add_rz, rounded(FE_TOWARDZERO, '+', f(a), f(b), true)) E(mul_rp, rounded(FE_UPWARD, '*', f(a), f(b), true))
E(div_rm, rounded(FE_DOWNWARD, '/', f(a), f(b), true)) E(sqrt_rp, rounded(FE_UPWARD, 's', f(a), 0, true)) E(sqrt_f32, fb(sqrtf(f(a))))
E(add_f64, db(d(a) + d(b))) E(mul_rz_f64, rounded(FE_TOWARDZERO, '*', d(a), d(b), false)) E(fma_f64, db(fma(d(a), d(b), d(c))))
E(div_f64, db(d(a) / d(b))) E(sqrt_f64, db(sqrt(d(a)))) E(abs_f32, isnan(f(a)) ? 0x7fffffff : a & 0x7fffffff) E(neg_f64, isnan(d(a)) ? a | 1ull << 51 : a ^ (1ull << 63)) E(rcp_f32, fb(1.0f / f(a)))
E(copysign_f32, (a & 0x80000000) | (b & 0x7fffffff))

static uint64_t min_f32(uint64_t a, uint64_t b, uint64_t c)
{
	float x = f(a), y = f(b);
	(void)c;
	if (isnan(x) || isnan(y))
		return isnan(x) ? fb(y) : fb(x);
	if (x == 0 && y == 0)
		return signbit(x) || signbit(y) ? 0x80000000 : 0;
	return fb(x < y ? x : y);
}
E(max_nan, isnan(f(a)) || isnan(f(b)) ? 0x7fffffff : fb(f(a) == f(b) ? (signbit(f(a)) ? f(b) : f(a)) : f(a) > f(b) ? f(a) : f(b)))
E(lt_f32, f(a) < f(b)) E(neu_f32, !(f(a) == f(b))) E(ne_f64, d(a) < d(b) || d(a) > d(b)) E(num_f32, !isnan(f(a)) && !isnan(f(b)))
E(geu_ftz, !(flush(f(a)) < flush(f(b)))) E(normal, fpclassify(f(a)) == FP_NORMAL || f(a) == 0) E(subnormal, fpclassify(f(a)) == FP_SUBNORMAL)

static void test_exact(void)
{
	static const struct unit_case cases[] = {
		{"add.f32 ro, ra, rb;", UNIT_32, add_f32, NULL}, {"mul.rn.f32 ro, ra, rb;", UNIT_32, mul_f32, NULL}, {"div.rn.f32 ro, ra, rb;", UNIT_32, div_f32, NULL},
		{"fma.rn.f32 ro, ra, rb, rc;", UNIT_32, fma_f32, NULL}, {"sub.ftz.f32 ro, ra, rb;", UNIT_32, sub_ftz, NULL},
		{"mul.sat.f32 ro, ra, rb;", UNIT_32, mul_sat, NULL}, {"add.rz.f32 ro, ra, rb;", UNIT_32, add_rz, NULL}, {"mul.rp.f32 ro, ra, rb;", UNIT_32, mul_rp, NULL},
		{"div.rm.f32 ro, ra, rb;", UNIT_32, div_rm, NULL}, {"sqrt.rp.f32 ro, ra;", UNIT_32, sqrt_rp, NULL}, {"sqrt.rn.f32 ro, ra;", UNIT_32, sqrt_f32, NULL},
		{"rcp.rn.f32 ro, ra;", UNIT_32, rcp_f32, NULL}, {"add.f64 xo, xa, xb;", UNIT_64, add_f64, same_double},
		{"mul.rz.f64 xo, xa, xb;", UNIT_64, mul_rz_f64, same_double}, {"fma.rn.f64 xo, xa, xb, xc;", UNIT_64, fma_f64, same_double},
		{"div.rn.f64 xo, xa, xb;", UNIT_64, div_f64, same_double}, {"sqrt.rn.f64 xo, xa;", UNIT_64, sqrt_f64, same_double},
		{"abs.f32 ro, ra;", UNIT_32, abs_f32, NULL}, {"neg.f64 xo, xa;", UNIT_64, neg_f64, NULL}, {"copysign.f32 ro, ra, rb;", UNIT_32, copysign_f32, NULL},
		{"min.f32 ro, ra, rb;", UNIT_32, min_f32, NULL}, {"max.NaN.f32 ro, ra, rb;", UNIT_32, max_nan, NULL},
		{"setp.lt.f32 po, ra, rb;", UNIT_PRED, lt_f32, NULL}, {"setp.neu.f32 po, ra, rb;", UNIT_PRED, neu_f32, NULL},
		{"setp.ne.f64 po, xa, xb;", UNIT_PRED, ne_f64, NULL}, {"setp.num.f32 po, ra, rb;", UNIT_PRED, num_f32, NULL},
		{"setp.geu.ftz.f32 po, ra, rb;", UNIT_PRED, geu_ftz, NULL}, {"testp.normal.f32 po, ra;", UNIT_PRED, normal, NULL},
		{"testp.subnormal.f32 po, ra;", UNIT_PRED, subnormal, NULL},
	};
	unit_check(cases, sizeof cases / sizeof *cases, values, N_VALUES);
}

/* ---- Approximations: relative to the true value, absolute where PTX says so */

static bool close_ulp(uint64_t have, uint64_t want)
{
	float x = f(have), y = f(want);
	if (isnan(x) || isnan(y) || isinf(y) || y == 0)
		return fb(x) == fb(y) || x == y;
	return fabsf(x - y) <= 2 * fabsf(nextafterf(y, INFINITY) - y);
}

static bool close_absolute(uint64_t have, uint64_t want)
{
	float x = f(have), y = f(want);
	return isnan(y) ? isnan(x) : fabsf(x - y) <= 0x1p-20f;
}

E(ex2, fb((float)exp2((double)f(a)))) E(lg2, fb((float)log2((double)f(a)))) E(rsqrt, fb((float)(1 / sqrt((double)f(a))))) E(rcp, fb(1 / f(a)))
E(sine, fb((float)sin((double)f(a)))) E(cosine, fb((float)cos((double)f(a)))) E(tangent, fb((float)tanh((double)f(a)))) E(root, fb(sqrtf(f(a))))

static void test_approximate(void)
{
	static const uint64_t some[] = {0x3f800000, 0x3f000000, 0x40490fdb, 0xc0000000, 0x41200000, 0x3dcccccd, 0x00800000, 0x7f800000, 0x7fc00000, 0};
	static const struct unit_case cases[] = {
		{"ex2.approx.f32 ro, ra;", UNIT_32, ex2, close_ulp}, {"lg2.approx.f32 ro, ra;", UNIT_32, lg2, close_ulp},
		{"rsqrt.approx.f32 ro, ra;", UNIT_32, rsqrt, close_ulp}, {"rcp.approx.f32 ro, ra;", UNIT_32, rcp, close_ulp},
		{"sqrt.approx.ftz.f32 ro, ra;", UNIT_32, root, close_ulp}, {"sin.approx.f32 ro, ra;", UNIT_32, sine, close_absolute},
		{"cos.approx.f32 ro, ra;", UNIT_32, cosine, close_absolute}, {"tanh.approx.f32 ro, ra;", UNIT_32, tangent, close_absolute},
		{"div.approx.f32 ro, ra, rb;", UNIT_32, div_f32, close_ulp}, {"div.full.f32 ro, ra, rb;", UNIT_32, div_f32, close_ulp},
	};
	unit_check(cases, sizeof cases / sizeof *cases, some, sizeof some / sizeof *some);
}

/* rcp.approx.ftz.f64 answers the upper word only. */
static uint64_t gross(uint64_t a, uint64_t b, uint64_t c)
{
	(void)b;
	(void)c;
	return db(1 / d(a & ~0xffffffffull));
}

static bool close_gross(uint64_t have, uint64_t want)
{
	if ((uint32_t)have)
		return false;
	if (isnan(d(want)) || isinf(d(want)) || fpclassify(d(want)) != FP_NORMAL)
		return isnan(d(want)) ? isnan(d(have)) : isinf(d(want)) ? d(have) == d(want) : d(have) == 0;
	return fabs(d(have) - d(want)) <= fabs(d(want)) * 0x1p-19;
}

static void test_gross(void)
{
	static const uint64_t some[] = {0x3ff0000000000000, 0x4008000000000000, 0xc059000000000001, 0x7fefffffffffffff, 0x7ff0000000000000, 0x0000000100000000};
	static const struct unit_case cases[] = {{"rcp.approx.ftz.f64 xo, xa;", UNIT_64, gross, close_gross}};
	unit_check(cases, 1, some, sizeof some / sizeof *some);
}

/* ---- f16 pairs, with values whose results need no rounding, and one that does */

E(add_half, ((a & 0xffff) == 0x3c00 && (b & 0xffff) == 0x3c00) ? 0x4000 : (a & 0xffff) == 0x3c00 ? 0x3c00 : (b & 0xffff) == 0x3c00 ? 0x3c00 : 0)
E(fma_pair, 0x40003e00)	/* 1 * 1 + 1 above, 1 * 0.5 + 1 below */
E(oob_pair, 0x00004000)	/* 0 for the NaN that .oob knows, by either factor and with either sign */
E(other_nan, 0x7fff4000)

static void test_half(void)
{
	static const uint64_t some[] = {0, 0x3c00};
	static const struct unit_case cases[] = {
		{"add.f16 ho, ha, hb;", UNIT_16, add_half, NULL},
		{"mov.b32 t1, 0x3c003c00; mov.b32 t2, 0x3c003800; fma.rn.f16x2 ro, t1, t2, t1;", UNIT_32, fma_pair, NULL},
		{"mov.b32 t1, 0x7ff73c00; mov.b32 t2, 0x3c003c00; fma.rn.oob.f16x2 ro, t1, t2, t2;", UNIT_32, oob_pair, NULL},
		{"mov.b32 t1, 0xfff73c00; mov.b32 t2, 0x3c003c00; fma.rn.oob.f16x2 ro, t2, t1, t2;", UNIT_32, oob_pair, NULL},
		{"mov.b32 t1, 0xffff3c00; mov.b32 t2, 0x3c003c00; fma.rn.oob.f16x2 ro, t1, t2, t2;", UNIT_32, other_nan, NULL},
	};
	unit_check(cases, sizeof cases / sizeof *cases, some, 2);
}

/* Of three, for which a GPU is yet to be asked; of their magnitudes with .abs. */
static void test_three(void)
{
	static const struct { const char *code; float a, b, c; uint32_t want; } table[] = {
		{"max.f32 f0, f1, f2, f3;", 1, 3, 2, 0x40400000}, {"min.f32 f0, f1, f2, f3;", 1, 3, -2, 0xc0000000}, {"max.f32 f0, f1, f2, f3;", NAN, 3, NAN, 0x40400000},
		{"max.f32 f0, f1, f2, f3;", NAN, NAN, 7, 0x40e00000}, {"max.NaN.f32 f0, f1, f2, f3;", 1, 3, NAN, 0x7fffffff}, {"min.NaN.f32 f0, f1, f2, f3;", NAN, 3, 1, 0x7fffffff},
		{"max.abs.f32 f0, f1, f2, f3;", 1, 3, -5, 0x40a00000}, {"min.abs.f32 f0, f1, f2, f3;", -1, 3, -5, 0x3f800000}, {"max.ftz.f32 f0, f1, f2, f3;", 0, 1e-39f, -1, 0},
		{"max.f32 f1, f1, f2, f1;", 1, 3, 2, 0x40400000}, {"min.f32 f3, f1, f2, f3; mov.f32 f1, f3;", 4, 3, 2, 0x40000000}};
	for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
		char text[1024];
		snprintf(text, sizeof text, ".version 8.8\n.target sm_100\n.address_size 64\n.visible .entry k(.param .u64 o) { .reg .b64 m; .reg .f32 f<4>; ld.param.u64 m, [o];\n"
			 "ld.global.f32 f1, [m]; ld.global.f32 f2, [m+4]; ld.global.f32 f3, [m+8]; mov.f32 f0, f1; %s st.global.f32 [m], %s; ret; }\n", table[k].code, k < 9 ? "f0" : "f1");
		const char *texts = text;
		struct ckt_ptx_module *module = unit_load(&texts, 1, NULL);
		CU_ASSERT_PTR_NOT_NULL_FATAL(module);
		static float *memory;
		memory = memory ? memory : unit_alloc(64);
		memcpy(memory, (float[]){table[k].a, table[k].b, table[k].c}, 12);
		struct unit_launch u = {.kernel = "k", .grid = 1, .block = 1, .args = {(uint64_t)(uintptr_t)memory}};
		CU_ASSERT_EQUAL(unit_run(module, &u), CKT_PTX_FAULT_NONE);
		uint32_t bits;
		memcpy(&bits, memory, 4);
		if (bits != table[k].want)
			fprintf(stderr, "%s gave 0x%x\n", table[k].code, bits);
		CU_ASSERT_EQUAL(bits, table[k].want);
		ckt_ptx_module_destroy(module);
	}
}

static const struct unit_test tests[] = {{"exact", test_exact}, {"approximate", test_approximate}, {"rcp f64", test_gross}, {"half", test_half}, {"three", test_three}};
UNIT_MAIN("ptx floats", tests)
