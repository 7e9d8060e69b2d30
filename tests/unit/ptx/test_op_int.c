/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/execution/op_int.c: integer instructions against arithmetic done the long way.
 */
#include "harness.h"

/* Rows of macros that no separator parts. */
/* clang-format off */

typedef unsigned __int128 u128;
typedef __int128 s128;
#define E(name, expr)                                                                                                          \
	static uint64_t name(uint64_t a, uint64_t b, uint64_t c)                                                               \
	{                                                                                                                      \
		(void)a;                                                                                                       \
		(void)b;                                                                                                       \
		(void)c;                                                                                                       \
		return (uint64_t)(expr);                                                                                       \
	}
#define S32(x) ((int64_t)(int32_t)(x))
#define U32(x) ((uint64_t)(uint32_t)(x))
#define S16(x) ((int64_t)(int16_t)(x))
#define U16(x) ((uint64_t)(uint16_t)(x))
#define S64(x) ((s128)(int64_t)(x))

static const uint64_t values[] = {0, 1, 2, 5, 31, 32, 0x7fffffff, 0x80000000, 0xffffffff, 0x12345678abcdef01, 0x8000000000000000,
				  0x7fffffffffffffff, 0xffffffffffffffff, 0xffff8000, 0x0000ff7f8001};
#define N_VALUES (sizeof values / sizeof *values)

static int64_t clamp32(s128 v) { return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int64_t)v; }

E(add16, a + b) E(add32, a + b) E(add64, a + b) E(sub32, a - b) E(sub64, a - b)
E(addsat, clamp32(S32(a) + S32(b))) E(subsat, clamp32(S32(a) - S32(b)))
E(mullo16, U16(a) * U16(b)) E(mullo32, U32(a) * U32(b)) E(mullo64, a * b)
E(mulhi_u16, (U16(a) * U16(b)) >> 16) E(mulhi_s16, (S16(a) * S16(b)) >> 16) E(mulhi_u32, (U32(a) * U32(b)) >> 32)
E(mulhi_s32, (S32(a) * S32(b)) >> 32) E(mulhi_u64, ((u128)a * b) >> 64) E(mulhi_s64, (S64(a) * S64(b)) >> 64)
E(mulwide_u16, U16(a) * U16(b)) E(mulwide_s16, S16(a) * S16(b)) E(mulwide_u32, U32(a) * U32(b)) E(mulwide_s32, S32(a) * S32(b))
E(madlo32, a * b + c) E(madlo64, a * b + c) E(madhi_s32, ((S32(a) * S32(b)) >> 32) + c) E(madwide_s32, (uint64_t)(S32(a) * S32(b)) + c)
E(madwide_u32, U32(a) * U32(b) + c) E(madhisat, clamp32((s128)((S32(a) * S32(b)) >> 32) + S32(c)))
E(div_s32, S32(b) == 0 ? -1 : S32(a) / S32(b)) E(div_u32, U32(b) == 0 ? ~0ull : U32(a) / U32(b))
E(div_s64, b == 0 ? -1 : S64(a) / S64(b)) E(div_u64, b == 0 ? ~0ull : a / b) E(rem_s32, S32(b) == 0 ? -1 : S32(a) % S32(b))
E(rem_u64, b == 0 ? ~0ull : a % b) E(rem_s64, b == 0 ? -1 : S64(a) % S64(b)) E(div_s16, S16(b) == 0 ? -1 : S16(a) / S16(b))
E(abs32, S32(a) < 0 ? -S32(a) : S32(a)) E(neg64, 0 - a) E(neg16, 0 - a) E(min_s32, S32(a) < S32(b) ? a : b) E(max_u32, U32(a) > U32(b) ? a : b)
E(min_u64, a < b ? a : b) E(max_s64, S64(a) > S64(b) ? a : b) E(min_s16, S16(a) < S16(b) ? a : b)
E(sad32, U32(c) + (S32(a) < S32(b) ? S32(b) - S32(a) : S32(a) - S32(b)))
E(mul24_u, (a & 0xffffff) * (b & 0xffffff)) E(mad24_hi, (((a & 0xffffff) * (b & 0xffffff)) >> 16) + c)
E(carry, ((u128)a + b) >> 64 ? c + 1 : c) E(borrow, a < b ? c - 1 : c) E(carry32, (U32(a) + U32(b)) >> 32 ? c + 1 : c)
E(kept32, (uint32_t)a >= (uint32_t)b) E(kept64, a >= b) E(lent32, (U32(a) + U32(b)) >> 32 ? c : c - 1)
E(madcarry, (U32((uint32_t)a * (uint32_t)b) + U32(c)) >> 32 ? 1 : 0)

static uint64_t dp4a(uint64_t a, uint64_t b, uint64_t c)
{
	int64_t sum = S32(c);
	for (int k = 0; k < 4; k++)
		sum += (int64_t)(int8_t)(a >> (8 * k)) * (int64_t)(int8_t)(b >> (8 * k));
	return (uint64_t)sum;
}

static void test_arithmetic(void)
{
	static const struct unit_case cases[] = {
		{"add.u16 ho, ha, hb;", UNIT_16, add16, NULL}, {"add.s32 ro, ra, rb;", UNIT_32, add32, NULL}, {"add.u64 xo, xa, xb;", UNIT_64, add64, NULL},
		{"sub.s32 ro, ra, rb;", UNIT_32, sub32, NULL}, {"sub.s64 xo, xa, xb;", UNIT_64, sub64, NULL},
		{"add.sat.s32 ro, ra, rb;", UNIT_32, addsat, NULL}, {"sub.sat.s32 ro, ra, rb;", UNIT_32, subsat, NULL},
		{"mul.lo.s16 ho, ha, hb;", UNIT_16, mullo16, NULL}, {"mul.lo.s32 ro, ra, rb;", UNIT_32, mullo32, NULL},
		{"mul.lo.s64 xo, xa, xb;", UNIT_64, mullo64, NULL}, {"mul.hi.u16 ho, ha, hb;", UNIT_16, mulhi_u16, NULL},
		{"mul.hi.s16 ho, ha, hb;", UNIT_16, mulhi_s16, NULL}, {"mul.hi.u32 ro, ra, rb;", UNIT_32, mulhi_u32, NULL},
		{"mul.hi.s32 ro, ra, rb;", UNIT_32, mulhi_s32, NULL}, {"mul.hi.u64 xo, xa, xb;", UNIT_64, mulhi_u64, NULL},
		{"mul.hi.s64 xo, xa, xb;", UNIT_64, mulhi_s64, NULL}, {"mul.wide.u16 ro, ha, hb;", UNIT_32, mulwide_u16, NULL},
		{"mul.wide.s16 ro, ha, hb;", UNIT_32, mulwide_s16, NULL}, {"mul.wide.u32 xo, ra, rb;", UNIT_64, mulwide_u32, NULL},
		{"mul.wide.s32 xo, ra, rb;", UNIT_64, mulwide_s32, NULL}, {"mad.lo.s32 ro, ra, rb, rc;", UNIT_32, madlo32, NULL},
		{"mad.lo.u64 xo, xa, xb, xc;", UNIT_64, madlo64, NULL}, {"mad.hi.s32 ro, ra, rb, rc;", UNIT_32, madhi_s32, NULL},
		{"mad.hi.sat.s32 ro, ra, rb, rc;", UNIT_32, madhisat, NULL}, {"mad.wide.s32 xo, ra, rb, xc;", UNIT_64, madwide_s32, NULL},
		{"mad.wide.u32 xo, ra, rb, xc;", UNIT_64, madwide_u32, NULL}, {"div.s32 ro, ra, rb;", UNIT_32, div_s32, NULL},
		{"div.u32 ro, ra, rb;", UNIT_32, div_u32, NULL}, {"div.s64 xo, xa, xb;", UNIT_64, div_s64, NULL}, {"div.u64 xo, xa, xb;", UNIT_64, div_u64, NULL},
		{"div.s16 ho, ha, hb;", UNIT_16, div_s16, NULL}, {"rem.s32 ro, ra, rb;", UNIT_32, rem_s32, NULL}, {"rem.u64 xo, xa, xb;", UNIT_64, rem_u64, NULL},
		{"rem.s64 xo, xa, xb;", UNIT_64, rem_s64, NULL}, {"abs.s32 ro, ra;", UNIT_32, abs32, NULL}, {"neg.s64 xo, xa;", UNIT_64, neg64, NULL},
		{"neg.s16 ho, ha;", UNIT_16, neg16, NULL}, {"min.s32 ro, ra, rb;", UNIT_32, min_s32, NULL}, {"max.u32 ro, ra, rb;", UNIT_32, max_u32, NULL},
		{"min.u64 xo, xa, xb;", UNIT_64, min_u64, NULL}, {"max.s64 xo, xa, xb;", UNIT_64, max_s64, NULL}, {"min.s16 ho, ha, hb;", UNIT_16, min_s16, NULL},
		{"sad.s32 ro, ra, rb, rc;", UNIT_32, sad32, NULL}, {"mul24.lo.u32 ro, ra, rb;", UNIT_32, mul24_u, NULL},
		{"mad24.hi.u32 ro, ra, rb, rc;", UNIT_32, mad24_hi, NULL}, {"dp4a.s32.s32 ro, ra, rb, rc;", UNIT_32, dp4a, NULL},
	};
	unit_check(cases, sizeof cases / sizeof *cases, values, N_VALUES);
}

static void test_carry(void)
{
	static const struct unit_case cases[] = {
		{"add.cc.u64 xo, xa, xb; addc.u64 xo, xc, 0;", UNIT_64, carry, NULL},
		{"sub.cc.u64 xo, xa, xb; subc.u64 xo, xc, 0;", UNIT_64, borrow, NULL},
		{"add.cc.u32 ro, ra, rb; addc.u32 ro, rc, 0;", UNIT_32, carry32, NULL},
		{"mad.lo.cc.u32 ro, ra, rb, rc; addc.u32 ro, 0, 0;", UNIT_32, madcarry, NULL},
		/* One kind after the other: a subtraction leaves the carry of adding the complement. */
		{"sub.cc.u32 ro, ra, rb; addc.u32 ro, 0, 0;", UNIT_32, kept32, NULL},
		{"sub.cc.u64 xo, xa, xb; addc.u64 xo, 0, 0;", UNIT_64, kept64, NULL},
		{"add.cc.u32 ro, ra, rb; subc.u32 ro, rc, 0;", UNIT_32, lent32, NULL},
	};
	unit_check(cases, sizeof cases / sizeof *cases, values, N_VALUES);
}

/* ---- Bits, one at a time */

static int bit(uint64_t v, unsigned n) { return (int)(v >> n & 1); }

static uint64_t bfe(uint64_t a, unsigned pos, unsigned len, unsigned bits, bool is_signed)
{
	uint64_t r = 0;
	unsigned msb = bits - 1;
	int sign = !is_signed || !len ? 0 : bit(a, pos + len - 1 < msb ? pos + len - 1 : msb);
	for (unsigned k = 0; k < bits; k++)
		r |= (uint64_t)(k < len && pos + k <= msb ? bit(a, pos + k) : sign) << k;
	return r;
}
E(bfe_u32, bfe(U32(a), b & 0xff, c & 0xff, 32, false)) E(bfe_s32, bfe(U32(a), b & 0xff, c & 0xff, 32, true))
/* Those of 64 bits look at all of a position and a length, as an H200. */
#define CLIP(v) (U32(v) > 64 ? 64 : U32(v))
E(bfe_u64, bfe(a, CLIP(b), CLIP(c), 64, false)) E(bfe_s64, bfe(a, CLIP(b), CLIP(c), 64, true))

static uint64_t bfi32(uint64_t a, uint64_t b, uint64_t c)
{
	uint32_t f = (uint32_t)b;
	unsigned pos = c & 0xff, len = 9;
	for (unsigned k = 0; k < len && pos + k <= 31; k++) {
		f &= ~(1u << (pos + k));
		f |= (uint32_t)bit(a, k) << (pos + k);
	}
	return f;
}

static uint64_t reverse(uint64_t v, unsigned bits)
{
	uint64_t r = 0;
	for (unsigned k = 0; k < bits; k++)
		r |= (uint64_t)bit(v, k) << (bits - 1 - k);
	return r;
}
E(brev32, reverse(a, 32)) E(brev64, reverse(a, 64))

static uint64_t count(uint64_t v, unsigned bits)
{
	uint64_t n = 0;
	for (unsigned k = 0; k < bits; k++)
		n += (uint64_t)bit(v, k);
	return n;
}
E(popc32, count(a, 32)) E(popc64, count(a, 64))

static uint64_t leading(uint64_t v, unsigned bits)
{
	uint64_t n = 0;
	while (n < bits && !bit(v, bits - 1 - (unsigned)n))
		n++;
	return n;
}
E(clz32, leading(a, 32)) E(clz64, leading(a, 64))

static uint64_t bfind(uint64_t v, unsigned bits, bool is_signed, bool shift)
{
	bool sign = is_signed && bit(v, bits - 1);
	for (int k = (int)bits - 1; k >= 0; k--)
		if (bit(v, (unsigned)k) != sign)
			return shift ? bits - 1 - (unsigned)k : (unsigned)k;
	return ~0u;
}
E(bfind_u32, bfind(a, 32, false, false)) E(bfind_s32, bfind(a, 32, true, false)) E(bfind_s64, bfind(a, 64, true, true))

static uint64_t lop3(uint64_t a, uint64_t b, uint64_t c, unsigned lut)
{
	uint64_t r = 0;
	for (unsigned k = 0; k < 32; k++)
		r |= (uint64_t)(lut >> (bit(a, k) * 4 + bit(b, k) * 2 + bit(c, k)) & 1) << k;
	return r;
}
E(lop3_ca, lop3(a, b, c, 0xca)) E(lop3_96, lop3(a, b, c, 0x96)) E(lop3_1d, lop3(a, b, c, 0x1d)) E(lop3_p, lop3(a, b, c, 0x80) != 0)

static uint64_t prmt(uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t both = U32(b) << 32 | U32(a), r = 0;
	for (unsigned k = 0; k < 4; k++) {
		unsigned s = c >> (4 * k) & 15;
		uint64_t byte = both >> (8 * (s & 7)) & 0xff;
		r |= (s & 8 ? (byte & 0x80 ? 0xffull : 0) : byte) << (8 * k);
	}
	return r;
}
E(prmt_f4e, (U32(b) << 32 | U32(a)) >> (8 * (c & 3)))
E(shl32, U32(b) > 31 ? 0 : a << (b & 31)) E(shr_u32, U32(b) > 31 ? 0 : U32(a) >> (b & 31)) E(shr_s32, S32(a) >> (U32(b) > 31 ? 31 : b & 31))
E(shl64, U32(b) > 63 ? 0 : a << (b & 63)) E(shr_s64, (int64_t)a >> (U32(b) > 63 ? 63 : b & 63)) E(shr_s16, S16(a) >> (U32(b) > 15 ? 15 : b & 15))
E(shf_l_wrap, ((U32(b) << 32 | U32(a)) << (c & 31)) >> 32) E(shf_r_clamp, (U32(b) << 32 | U32(a)) >> (U32(c) > 32 ? 32 : U32(c)))
E(shf_l_clamp, U32(c) >= 32 ? U32(a) : ((U32(b) << 32 | U32(a)) << (c & 31)) >> 32)
E(and64, a & b) E(xor32, a ^ b) E(not16, ~a) E(cnot32, U32(a) == 0) E(or_p, (U32(a) != 0) | (U32(b) > 5))
E(bmsk, U32(b) == 0 || U32(a) > 31 ? 0 : ((U32(b) > 31 ? 0xffffffffull : (1ull << (b & 31)) - 1) << (a & 31)))

static uint64_t fns(uint64_t a, uint64_t b, uint64_t c)
{
	uint32_t mask = (uint32_t)a, base = (uint32_t)b;
	int32_t offset = (int32_t)c;
	if (base > 31)
		return ~0u;
	if (offset == INT32_MIN)
		return 0;
	if (!offset)
		return bit(mask, base) ? base : ~0u;
	int64_t left = offset < 0 ? -(int64_t)offset : offset;
	for (int64_t pos = base; pos >= 0 && pos < 32; pos += offset < 0 ? -1 : 1)
		if (bit(mask, (unsigned)pos) && --left == 0)
			return (uint64_t)pos;
	return ~0u;
}

static uint64_t szext(uint64_t a, uint64_t b, uint64_t c)
{
	unsigned n = U32(b) > 32 ? 32 : (unsigned)b;
	(void)c;
	return n == 0 ? 0 : bfe(U32(a), 0, n, 32, true);
}

static void test_bits(void)
{
	static const struct unit_case cases[] = {
		{"bfe.u32 ro, ra, rb, rc;", UNIT_32, bfe_u32, NULL}, {"bfe.s32 ro, ra, rb, rc;", UNIT_32, bfe_s32, NULL},
		{"bfe.u64 xo, xa, rb, rc;", UNIT_64, bfe_u64, NULL}, {"bfe.s64 xo, xa, rb, rc;", UNIT_64, bfe_s64, NULL},
		{"bfi.b32 ro, ra, rb, rc, 9;", UNIT_32, bfi32, NULL}, {"brev.b32 ro, ra;", UNIT_32, brev32, NULL}, {"brev.b64 xo, xa;", UNIT_64, brev64, NULL},
		{"popc.b32 ro, ra;", UNIT_32, popc32, NULL}, {"popc.b64 ro, xa;", UNIT_32, popc64, NULL}, {"clz.b32 ro, ra;", UNIT_32, clz32, NULL},
		{"clz.b64 ro, xa;", UNIT_32, clz64, NULL}, {"bfind.u32 ro, ra;", UNIT_32, bfind_u32, NULL}, {"bfind.s32 ro, ra;", UNIT_32, bfind_s32, NULL},
		{"bfind.shiftamt.s64 ro, xa;", UNIT_32, bfind_s64, NULL}, {"lop3.b32 ro, ra, rb, rc, 0xca;", UNIT_32, lop3_ca, NULL},
		{"lop3.b32 ro, ra, rb, rc, 0x96;", UNIT_32, lop3_96, NULL}, {"lop3.b32 ro, ra, rb, rc, 29;", UNIT_32, lop3_1d, NULL},
		{"setp.ne.u32 p, ra, ra; lop3.or.b32 ro|po, ra, rb, rc, 0x80, p;", UNIT_PRED, lop3_p, NULL},
		{"prmt.b32 ro, ra, rb, rc;", UNIT_32, prmt, NULL}, {"prmt.b32.f4e ro, ra, rb, rc;", UNIT_32, prmt_f4e, NULL},
		{"shl.b32 ro, ra, rb;", UNIT_32, shl32, NULL}, {"shr.u32 ro, ra, rb;", UNIT_32, shr_u32, NULL}, {"shr.s32 ro, ra, rb;", UNIT_32, shr_s32, NULL},
		{"shl.b64 xo, xa, rb;", UNIT_64, shl64, NULL}, {"shr.s64 xo, xa, rb;", UNIT_64, shr_s64, NULL}, {"shr.s16 ho, ha, rb;", UNIT_16, shr_s16, NULL},
		{"shf.l.wrap.b32 ro, ra, rb, rc;", UNIT_32, shf_l_wrap, NULL}, {"shf.r.clamp.b32 ro, ra, rb, rc;", UNIT_32, shf_r_clamp, NULL},
		{"shf.l.clamp.b32 ro, ra, rb, rc;", UNIT_32, shf_l_clamp, NULL},
		{"and.b64 xo, xa, xb;", UNIT_64, and64, NULL}, {"xor.b32 ro, ra, rb;", UNIT_32, xor32, NULL}, {"not.b16 ho, ha;", UNIT_16, not16, NULL},
		{"cnot.b32 ro, ra;", UNIT_32, cnot32, NULL}, {"setp.ne.u32 p, ra, 0; setp.gt.u32 q, rb, 5; or.pred po, p, q;", UNIT_PRED, or_p, NULL},
		{"bmsk.clamp.b32 ro, ra, rb;", UNIT_32, bmsk, NULL}, {"fns.b32 ro, ra, rb, rc;", UNIT_32, fns, NULL},
		{"szext.clamp.s32 ro, ra, rb;", UNIT_32, szext, NULL},
	};
	unit_check(cases, sizeof cases / sizeof *cases, values, N_VALUES);
}

/* ---- Comparisons */

E(lt_s32, S32(a) < S32(b)) E(hs_u32, U32(a) >= U32(b)) E(ne_s64, a != b) E(gt_u16, U16(a) > U16(b)) E(le_s16, S16(a) <= S16(b))
E(joined, (S32(a) < S32(b)) && U32(c) != 5) E(joined_not, (S32(a) < S32(b)) ^ !(U32(c) == 5)) E(opposite, !(a < b) || U32(c) == 5)
E(selected, S32(a) < S32(b) ? c : a) E(slct_s32, S32(c) >= 0 ? a : b) E(set_u32, U32(a) <= U32(b) ? 0xffffffff : 0)

static void test_compare(void)
{
	static const struct unit_case cases[] = {
		{"setp.lt.s32 po, ra, rb;", UNIT_PRED, lt_s32, NULL}, {"setp.hs.u32 po, ra, rb;", UNIT_PRED, hs_u32, NULL},
		{"setp.ne.s64 po, xa, xb;", UNIT_PRED, ne_s64, NULL}, {"setp.gt.u16 po, ha, hb;", UNIT_PRED, gt_u16, NULL},
		{"setp.le.s16 po, ha, hb;", UNIT_PRED, le_s16, NULL}, {"setp.ne.u32 p, rc, 5; setp.lt.and.s32 po, ra, rb, p;", UNIT_PRED, joined, NULL},
		{"setp.eq.u32 p, rc, 5; setp.lt.xor.s32 po, ra, rb, !p;", UNIT_PRED, joined_not, NULL},
		{"setp.eq.u32 p, rc, 5; setp.lt.or.u64 q|po, xa, xb, p;", UNIT_PRED, opposite, NULL},
		{"setp.lt.s32 p, ra, rb; selp.b64 xo, xc, xa, p;", UNIT_64, selected, NULL}, {"slct.u64.s32 xo, xa, xb, rc;", UNIT_64, slct_s32, NULL},
		{"set.le.u32.u32 ro, ra, rb;", UNIT_32, set_u32, NULL},
	};
	unit_check(cases, sizeof cases / sizeof *cases, values, N_VALUES);
}

static const struct unit_test tests[] = {{"arithmetic", test_arithmetic}, {"carry", test_carry}, {"bits", test_bits}, {"compare", test_compare}};
UNIT_MAIN("ptx integers", tests)
