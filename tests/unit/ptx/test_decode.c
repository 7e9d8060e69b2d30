/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/front/decode.c: how operands reach an instruction: constants of each width, computed
 * sources, guards, sinks; what is refused.
 */
#include "harness.h"

static void test_constants(void)
{
	/* A constant as wide as the instruction wants it. */
	ROWS("add.u32 ro, ra, -1;", UNIT_32, {5, 0, 0, 4});
	ROWS("add.u64 xo, xa, -1;", UNIT_64, {5, 0, 0, 4}, {0, 0, 0, ~0ull});
	ROWS("add.u16 ho, ha, 0x1ffff;", UNIT_16, {5, 0, 0, 4});
	ROWS("add.f32 ro, ra, 1.5;", UNIT_32, {0x3f800000, 0, 0, 0x40200000});
	ROWS("add.f32 ro, ra, 0d3ff8000000000000;", UNIT_32, {0x3f800000, 0, 0, 0x40200000});
	ROWS("add.f64 xo, xa, 0f3fc00000;", UNIT_64,
		{0x3ff0000000000000, 0, 0, 0x4004000000000000});
	ROWS("mul.wide.s32 xo, ra, -3;", UNIT_64, {5, 0, 0, (uint64_t)-15});
	ROWS("selp.u32 ro, 1, 2, p; and.pred p, po, 0; or.pred p, po, 1; selp.u32 ro, 7, 8, p;",
		UNIT_32, {0, 0, 0, 7});
	/* Equal ones share a place, different ones do not: many in one function. */
	char body[8192], *at = body;
	uint32_t r;
	for (unsigned k = 0; k < 200; k++)
		at += sprintf(at, "add.u32 r0, r0, %u; ", k % 100);
	IS(unit_threads("", body, 1, 1, &r), CKT_PTX_FAULT_NONE);
	IS(r, 9900);
}

static void test_sources(void)
{
	uint32_t out[64];
	unsigned wrong = 0;
	/*
	 * Special registers, addresses and negated predicates in the place of registers, under a
	 * guard that some lanes fail.
	 */
	IS(unit_threads(".shared .align 4 .b8 s[64];\n",
		   ".local .align 4 .b8 l[8]; setp.lt.u32 p1, t, 10; mov.u32 r0, 1000; "
		   "@p1 add.u32 r0, %tid.x, %ntid.x; @!p1 add.u32 r0, r0, %laneid;\n"
		   "mov.u32 r1, s; st.shared.u32 [s+4], 5; ld.shared.u32 r2, [r1+4]; "
		   "add.u32 r0, r0, r2; st.local.u32 [l+4], 6; ld.local.u32 r2, [l+4]; "
		   "add.u32 r0, r0, r2;\n"
		   "and.pred p2, !p1, p1; @p2 mov.u32 r0, 0;",
		   1, 64, out),
		CKT_PTX_FAULT_NONE);
	for (unsigned t = 0; t < 64; t++)
		wrong += out[t] != (t < 10 ? t + 64 : 1000 + t % 32) + 11;
	IS(wrong, 0);
	/* A guard keeps destinations of all widths as they were. */
	IS(unit_threads("",
		   "setp.lt.u32 p1, t, 10; mov.u32 r0, 1; mov.u64 x1, 2; setp.eq.u32 p2, t, t; @p1 mov.u32 r0, 5; "
		   "@p1 mov.u64 x1, 6; @p1 setp.ne.u32 p2, t, t; cvt.u32.u64 r1, x1; add.u32 r0, r0, r1; @p2 add.u32 r0, r0, 100;",
		   1, 32, out),
		CKT_PTX_FAULT_NONE);
	for (unsigned t = 0; t < 32; t++)
		wrong += out[t] != (t < 10 ? 11 : 103);
	IS(wrong, 0);
}

static void test_refused(void)
{
	static const struct {
		const char *body, *words;
	} table[] = {
		{"frobnicate.u32 r1, r2;", "unknown instruction 'frobnicate'"},
		{"add r1, r2, r3;", ""},
		{"add.u32.banana r1, r2, r3;", "unknown modifier '.banana' of 'add'"},
		{"add.sat.u32 r1, r2, r3;", "no such form of 'add'"},
		{"{ .reg .b16 h; add.u32 r1, r2, h; }", "operand of the wrong type"},
		{"{ .reg .b16 h; add.u32 h, r1, r2; }", "destination of the wrong type"},
		{"{ .reg .b16 h; add.u16 h, h, r1; }", "operand of the wrong type"},
		{"{ .reg .f32 f; add.u32 r1, r2, f; }", "operand of the wrong type"},
		{"{ .reg .b16 h; .reg .b64 l; ld.u32 h, [l]; }", "too narrow"},
		{"{ .reg .b16 h; cvt.u32.u16 h, h; }", "wrong type"},
		{"add.u32 r1, r2, p1;", "wrong type"},
		{"add.u32 r1, !r2, r3;", "only a predicate can be negated"},
		{"add.u32 r1, {r2, r3}, r3;", "wrong kind"},
		{"add.u32 r1, r2, [x1];", "wrong kind"},
		{"add.u32 r1, r2, nowhere;", "unknown name nowhere"},
		{"add.u32 _, r2;", "wrong number of operands"},
		{"and.pred p1, p2, r1;", "predicate expected"},
		{"selp.u32 r1, r2, r3, r4;", "predicate expected"},
		{"bra 5;", "label expected"},
		{"add.u32 p1, r2, r3;", "destination of the wrong type"},
		{"add.u32;", "wrong number of operands"},
		{"L: .branchtargets 5;", "label expected"},
	};
	for (size_t k = 0; k < COUNT(table); k++) {
		char text[512];
		snprintf(text, sizeof text,
			".version 8.8\n.target sm_90\n.address_size 64\n"
			".visible .entry k() { .reg .b32 r<9>; .reg .b64 x<9>; .reg .pred p<9>;\n%s\nret; }\n",
			table[k].body);
		REFUSED(text, CKT_PTX_INVALID, 5, table[k].words);
	}
}

UNIT_SUITE(softgpu / ptx / front / decode, {"constants", test_constants}, {"sources", test_sources},
	{"refused", test_refused})
