/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/execution/op_data.c: moves of all widths, parts, selection, address spaces, alloca.
 */
#include "harness.h"

static uint32_t one(const char *scope, const char *body)
{
	uint32_t r = 0x77777777;
	IS(unit_threads(scope, body, 1, 1, &r), CKT_PTX_FAULT_NONE);
	return r;
}

static void test_parts(void)
{
	ROWS("mov.b32 {ha, hb}, ra; mov.b32 ro, {hb, ha};", UNIT_32,
		{0x12345678, 0, 0, 0x56781234});
	ROWS("mov.b64 {ra, rb}, xa; mov.b64 xo, {rb, ra};", UNIT_64,
		{0x123456789abcdef0, 0, 0, 0x9abcdef012345678});
	ROWS(".reg .b16 h1, h2, h3, h4; mov.b64 {h1, h2, h3, h4}, xa; mov.b64 xo, {h4, h3, h2, h1};",
		UNIT_64, {0x1111222233334444, 0, 0, 0x4444333322221111});
	ROWS(".reg .b8 b1, b2, b3, b4; mov.b32 {b1, b2, b3, b4}, ra; mov.b32 ro, {b4, b3, b2, b1};",
		UNIT_32, {0x01020384, 0, 0, 0x84030201});
	ROWS(".reg .b128 qq; mov.b128 qq, {xa, xb}; mov.b128 {xb, xa}, qq; sub.u64 xo, xa, xb;",
		UNIT_64, {5, 100, 0, 95});
	ROWS("mov.b64 {_, ro}, xa;", UNIT_32, {0x123456789abcdef0, 0, 0, 0x12345678});
	/* What stands above 16 bits in a register does not come along. */
	ROWS("mov.b32 {ha, hb}, 0xffffffff; add.u16 ha, ha, 2; mov.b32 ro, {ha, ha};", UNIT_32,
		{0, 0, 0, 0x00010001});
	ROWS("mov.f32 ro, 0f3f800000;", UNIT_32, {0, 0, 0, 0x3f800000});
	ROWS("mov.f64 xo, 1.5;", UNIT_64, {0, 0, 0, 0x3ff8000000000000});
	ROWS("setp.ne.u32 p, ra, 0; mov.pred po, p;", UNIT_PRED, {0, 0, 0, 0}, {1, 0, 0, 1});
	REFUSED_BODY("mov.b32 {x1, x2}, r3;", "");
	REFUSED_BODY("mov.b64 {h1, h2, h3}, x1;", "");
	REFUSED_BODY("mov.b32 {h1, h2}, {h3, h4};", "only one side can have elements");
}

static void test_selection(void)
{
	ROWS("setp.ne.u32 p, rc, 0; selp.b32 ro, ra, rb, p;", UNIT_32, {1, 2, 1, 1}, {1, 2, 0, 2});
	ROWS("setp.ne.u32 p, rc, 0; selp.f64 xo, xa, xb, p;", UNIT_64,
		{1ull << 40, 2, 1, 1ull << 40});
	ROWS("setp.ne.u32 p, rc, 0; selp.b16 ho, ha, hb, p;", UNIT_16, {0x8001, 2, 1, 0x8001},
		{1, 0xffff, 0, 0xffff});
	/* The sign of c: of a float, -0 is not below 0, a NaN not above. */
	ROWS("slct.u32.s32 ro, ra, rb, rc;", UNIT_32, {1, 2, 0, 1}, {1, 2, 0x80000000, 2},
		{1, 2, 0x7fffffff, 1});
	ROWS("slct.b64.f32 xo, xa, xb, rc;", UNIT_64, {1, 2, 0x80000000, 1}, {1, 2, 0x7fc00000, 2},
		{1, 2, 0xbf800000, 2}, {1, 2, 0x80000001, 2}, {1, 2, 0x7f800000, 1});
	ROWS("slct.ftz.u32.f32 ro, ra, rb, rc;", UNIT_32, {1, 2, 0x80000001, 1});
}

static void test_spaces(void)
{
	static const char scope[] = ".global .u32 g; .const .u32 c = 5; .shared .u32 s;\n";
	static const struct {
		const char *address, *space;
		bool yes;
	} table[] = {
		{"cvta.global.u64 x1, g", "global", true},
		{"cvta.global.u64 x1, g", "shared", false},
		{"cvta.shared.u64 x1, s", "shared", true},
		{"cvta.shared.u64 x1, s", "global", false},
		{"cvta.local.u64 x1, l", "local", true},
		{"cvta.local.u64 x1, l", "shared", false},
		{"cvta.const.u64 x1, c", "const", true},
		{"cvta.const.u64 x1, c", "global", false},
		{"cvta.param.u64 x1, out", "param", true},
		{"mov.u64 x1, m", "global", true},
		{"mov.u64 x1, m", "const", false},
	};
	for (size_t k = 0; k < COUNT(table); k++) {
		char body[256];
		snprintf(body, sizeof body,
			".local .u32 l; %s; isspacep.%s p1, x1; selp.u32 r0, 1, 0, p1;",
			table[k].address, table[k].space);
		if (one(scope, body) != table[k].yes)
			fprintf(stderr, "%s\n", body);
		IS(one(scope, body), table[k].yes);
	}
	/* There and back, and through the generic address. */
	IS(one(scope,
		   "mov.u64 x1, s; cvta.shared.u64 x2, x1; st.u32 [x2], 6; cvta.to.shared.u64 x3, x2; sub.u64 x3, x3, x1; "
		   "cvt.u32.u64 r1, x3; ld.shared.u32 r0, [s]; add.u32 r0, r0, r1;"),
		6);
	IS(one(scope,
		   ".local .u32 l; mov.u64 x1, l; cvta.local.u64 x2, x1; st.local.u32 [l], 7; ld.u32 r0, [x2];"),
		7);
	IS(one(scope, "cvta.const.u64 x2, c; ld.u32 r0, [x2];"), 5);
}

static void test_alloca(void)
{
	/* Apart from each other, aligned, back with stackrestore. */
	IS(one("",
		   "stacksave.u64 x1; alloca.u64 x2, 64; alloca.u64 x3, 32, 16; st.local.u32 [x2+60], 1; st.local.u32 [x3], 2; "
		   "ld.local.u32 r1, [x2+60]; ld.local.u32 r2, [x3]; and.b64 x4, x3, 15; cvt.u32.u64 r3, x4;\n"
		   "stackrestore.u64 x1; alloca.u64 x5, 64; sub.u64 x5, x5, x2; cvt.u32.u64 r4, x5; add.u32 r0, r1, r2; "
		   "add.u32 r0, r0, r3; add.u32 r0, r0, r4;"),
		3);
	uint32_t r;
	IS(unit_threads("", "mov.u64 x1, 0x7fffffffffffffff; alloca.u64 x2, x1;", 1, 1, &r),
		CKT_PTX_FAULT_STACK_OVERFLOW);
}

UNIT_SUITE(softgpu / ptx / execution / op_data, {"parts", test_parts},
	{"selection", test_selection}, {"spaces", test_spaces}, {"alloca", test_alloca})
