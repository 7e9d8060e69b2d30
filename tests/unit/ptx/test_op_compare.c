/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/execution/op_compare.c: every comparison of floats with NaN, zeros and subnormals;
 * signs; joins; pairs; set's answers.
 */
#include "harness.h"

enum { LESS = 1, EQUAL = 2, GREATER = 4, UNORDERED = 8 };

/* Which relations each name is true for. */
static const struct {
	const char *name;
	unsigned of;
} names[] = {{"eq", EQUAL}, {"ne", LESS | GREATER}, {"lt", LESS}, {"le", LESS | EQUAL},
	{"gt", GREATER}, {"ge", GREATER | EQUAL}, {"equ", EQUAL | UNORDERED},
	{"neu", LESS | GREATER | UNORDERED}, {"ltu", LESS | UNORDERED},
	{"leu", LESS | EQUAL | UNORDERED}, {"gtu", GREATER | UNORDERED},
	{"geu", GREATER | EQUAL | UNORDERED}, {"num", LESS | EQUAL | GREATER}, {"nan", UNORDERED}};

struct pair {
	uint64_t a, b;
	unsigned is;
};

static void all(const char *type, const char *registers, const struct pair *pairs, size_t n)
{
	for (size_t k = 0; k < COUNT(names); k++) {
		char code[128];
		uint64_t rows[16][4];
		snprintf(code, sizeof code, "setp.%s.%s po, %ca, %cb;", names[k].name, type,
			*registers, *registers);
		for (size_t r = 0; r < n; r++)
			memcpy(rows[r], (uint64_t[4]){pairs[r].a, pairs[r].b}, sizeof rows[r]);
		YES(unit_compute(code, UNIT_PRED, rows, n));
		for (size_t r = 0; r < n; r++) {
			bool want = names[k].of & pairs[r].is;
			if ((rows[r][3] & 1) != want)
				fprintf(stderr, "%s: %llx %llx\n", code,
					(unsigned long long)pairs[r].a,
					(unsigned long long)pairs[r].b);
			IS(rows[r][3] & 1, want);
		}
	}
}

static void test_floats(void)
{
	static const struct pair f32[] = {{0x3f800000, 0x40000000, LESS},
		{0x3f800000, 0x3f800000, EQUAL}, {0, 0x80000000, EQUAL}, {0x7fc00000, 0, UNORDERED},
		{0, 0x7f800001, UNORDERED}, {0x7f800000, 0xff800000, GREATER}, {1, 0, GREATER},
		{0x80000001, 0, LESS}};
	static const struct pair ftz[] = {{1, 0, EQUAL}, {0x80000001, 0x007fffff, EQUAL},
		{0x00800000, 0x007fffff, GREATER}, {0x7fc00000, 1, UNORDERED}};
	static const struct pair f64[] = {{0x3ff0000000000000, 0x4000000000000000, LESS},
		{0, 1ull << 63, EQUAL}, {0x7ff0000000000001, 0, UNORDERED}, {1, 0, GREATER},
		{0x7ff0000000000000, 0x7fefffffffffffff, GREATER},
		{0x3ff0000000000001, 0x3ff0000000000000, GREATER}};
	static const struct pair f16[] = {{0x3c00, 0x4000, LESS}, {0, 0x8000, EQUAL},
		{0x7e00, 0, UNORDERED}, {1, 0, GREATER}, {0x7c00, 0x7bff, GREATER}};
	static const struct pair f16_ftz[] = {
		{1, 0, EQUAL}, {0x83ff, 0, EQUAL}, {0x0400, 0x03ff, GREATER}};
	static const struct pair bf16[] = {{0x3f80, 0x4000, LESS}, {0, 0x8000, EQUAL},
		{0x7fc0, 0x3f80, UNORDERED}, {0xff80, 0x7f80, LESS}};
	all("f32", "r", f32, COUNT(f32));
	all("ftz.f32", "r", ftz, COUNT(ftz));
	all("f64", "x", f64, COUNT(f64));
	all("f16", "h", f16, COUNT(f16));
	all("ftz.f16", "h", f16_ftz, COUNT(f16_ftz));
	all("bf16", "h", bf16, COUNT(bf16));
}

static void test_integers(void)
{
	ROWS("setp.lt.s32 po, ra, rb;", UNIT_PRED, {0x80000000, 0, 0, 1}, {0, 0x80000000, 0, 0},
		{0xffffffff, 0, 0, 1});
	ROWS("setp.lt.u32 po, ra, rb;", UNIT_PRED, {0x80000000, 0, 0, 0}, {0, 0x80000000, 0, 1});
	ROWS("setp.lo.u32 po, ra, rb;", UNIT_PRED, {1, 0xffffffff, 0, 1});
	ROWS("setp.hs.u64 po, xa, xb;", UNIT_PRED, {1ull << 63, 1, 0, 1}, {1, 1ull << 63, 0, 0});
	ROWS("setp.ge.s64 po, xa, xb;", UNIT_PRED, {1ull << 63, 1, 0, 0},
		{0x100000000, 0xffffffff, 0, 1});
	/* of the low halves alone */
	ROWS("setp.gt.s16 po, ha, hb;", UNIT_PRED, {0x10000, 0xffff, 0, 1}, {0x8000, 0, 0, 0});
	ROWS("setp.eq.b16 po, ha, hb;", UNIT_PRED, {0x18000, 0x28000, 0, 1});
	ROWS("setp.le.u16 po, ha, hb;", UNIT_PRED, {0x8000, 0x7fff, 0, 0});
}

static void test_joins(void)
{
	/* Both answers: what was asked, and its opposite, each joined with the third. */
	ROWS("setp.ne.u32 p, rc, 0; setp.lt.and.s32 po|q, ra, rb, p;", UNIT_PRED, {1, 2, 1, 1},
		{1, 2, 0, 0}, {2, 1, 1, 0});
	ROWS("setp.ne.u32 p, rc, 0; setp.lt.and.s32 q|po, ra, rb, p;", UNIT_PRED, {1, 2, 1, 0},
		{2, 1, 1, 1}, {2, 1, 0, 0});
	ROWS("setp.ne.u32 p, rc, 0; setp.lt.or.s32 q|po, ra, rb, p;", UNIT_PRED, {1, 2, 0, 0},
		{1, 2, 1, 1}, {2, 1, 0, 1});
	ROWS("setp.ne.u32 p, rc, 0; setp.lt.xor.s32 q|po, ra, rb, p;", UNIT_PRED, {1, 2, 1, 1},
		{2, 1, 1, 0}, {2, 1, 0, 1});
	/* The opposite of an unordered comparison is true. */
	ROWS("setp.lt.f32 q|po, ra, rb;", UNIT_PRED, {0x7fc00000, 0, 0, 1}, {0, 0x3f800000, 0, 0});
}

static void test_pairs(void)
{
	ROWS("setp.lt.f16x2 po|q, ra, rb;", UNIT_PRED, {0x40003c00, 0x3c004000, 0, 1},
		{0x3c004000, 0x40003c00, 0, 0});
	ROWS("setp.lt.f16x2 q|po, ra, rb;", UNIT_PRED, {0x40003c00, 0x3c004000, 0, 0},
		{0x3c004000, 0x40003c00, 0, 1}, {0x7e003c00, 0x3c003c00, 0, 0});
	ROWS("setp.geu.bf16x2 q|po, ra, rb;", UNIT_PRED, {0x7fc00000, 0x3f800000, 0, 1},
		{0x3f800000, 0x40000000, 0, 0});
	ROWS("set.lt.f16x2.f16x2 ro, ra, rb;", UNIT_32, {0x40003c00, 0x3c004000, 0, 0x00003c00},
		{0x3c003c00, 0x40004000, 0, 0x3c003c00});
	ROWS("set.lt.u32.f16x2 ro, ra, rb;", UNIT_32, {0x40003c00, 0x3c004000, 0, 0x0000ffff});
	ROWS("set.lt.bf16x2.bf16x2 ro, ra, rb;", UNIT_32, {0x3f804000, 0x40003f80, 0, 0x3f800000});
}

static void test_set(void)
{
	ROWS("set.lt.f32.s32 ro, ra, rb;", UNIT_32, {~0ull, 0, 0, 0x3f800000}, {1, 0, 0, 0});
	ROWS("set.nan.u32.f32 ro, ra, rb;", UNIT_32, {0x7fc00000, 0, 0, 0xffffffff}, {0, 0, 0, 0});
	ROWS("set.eq.s32.f64 ro, xa, xb;", UNIT_32, {0, 1ull << 63, 0, 0xffffffff});
	ROWS("set.gt.f16.f16 ho, ha, hb;", UNIT_16, {0x4000, 0x3c00, 0, 0x3c00},
		{0x3c00, 0x4000, 0, 0});
	ROWS("setp.ne.u32 p, rc, 0; set.lt.and.u32.s32 ro, ra, rb, p;", UNIT_32,
		{0, 1, 1, 0xffffffff}, {0, 1, 0, 0});
	REFUSED_BODY("setp.s32 p1, r1, r2;", "");
	REFUSED_BODY("setp.num.s32 p1, r1, r2;", "");
	REFUSED_BODY("setp.lt.s32 r1, r1, r2;", "destination");
	REFUSED_BODY("setp.lt.and.s32 p1, r1, r2;", "wrong number of operands");
	REFUSED_BODY("setp.lt.f16 p1|p2, h1, h2;", "");
}

UNIT_SUITE(softgpu / ptx / execution / op_compare, {"floats", test_floats},
	{"integers", test_integers}, {"joins", test_joins}, {"pairs", test_pairs},
	{"set", test_set})
