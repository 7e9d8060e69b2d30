/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/front/parse_body.c: scopes, register ranges, labels, operands, and what is wrong on
 * which line.
 */
#include "harness.h"

/* Of one thread: what r0 is in the end. */
static uint32_t value(const char *body)
{
	uint32_t r = 0x77777777;
	IS(unit_threads("", body, 1, 1, &r), CKT_PTX_FAULT_NONE);
	return r;
}

static void test_scopes(void)
{
	IS(value("mov.b32 r0, 1; { .reg .b32 r0; mov.b32 r0, 2; }"), 1);
	IS(value("{ .reg .b32 a; mov.b32 a, 5; { .reg .b32 a; mov.b32 a, 6; } mov.b32 r0, a; }"),
		5);
	/* Ranges: of each its own, also with a digit in the stem. */
	IS(value(".reg .b32 q1<12>; mov.b32 q10, 1; mov.b32 q111, 2; mov.b32 q11, 3; add.u32 r0, q10, q111; "
		 "mad.lo.u32 r0, q11, 16, r0;"),
		0x33);
	IS(value(".reg .b32 z; mov.b32 z, 4; { .reg .b32 z<3>; mov.b32 z2, 5; add.u32 r0, z, z2; }"),
		9);
	/* The same label in two scopes; one that stands further down, and one at the very end. */
	IS(value("mov.b32 r0, 0; { bra L; add.u32 r0, r0, 1; L: add.u32 r0, r0, 2; } { bra L; add.u32 r0, r0, 4; L: add.u32 r0, r0, 8; "
		 "}"),
		10);
	IS(value("mov.b32 r0, 3; bra E; mov.b32 r0, 4; E:"), 3);
	/* What was never written is 0. */
	IS(value("mov.b32 r0, r5;"), 0);
}

static void test_operands(void)
{
	IS(value("mov.b32 r0, WARP_SZ;"), 32);
	IS(value("mov.b32 r1, 2; setp.eq.u32 p1|p2, r1, 2; selp.b32 r0, 1, 0, p1; selp.b32 r2, 2, 0, p2; or.b32 r0, r0, r2;"),
		1);
	IS(value("mov.b32 r1, 2; setp.eq.u32 _|p2, r1, 2; selp.b32 r0, 1, 9, p2;"), 9);
	IS(value(".local .align 8 .b8 a[16]; mov.u64 x1, a; st.local.u32 [x1+4], 7; ld.local.u32 r0, [a+4];"),
		7);
	IS(value(".local .align 8 .b8 a[16]; st.local.u32 [a+12], 8; mov.u64 x1, a+8; ld.local.u32 r0, [x1+4];"),
		8);
	IS(value(".local .align 4 .b8 a[16]; st.local.u32 [a+8], 8; mov.u32 r1, a; add.u32 r1, r1, 4; ld.local.u32 r0, [r1+2*2];"),
		8);
	IS(value("st.global.v2.u32 [m+8], {3, 4}; ld.global.v2.u32 {_, r0}, [m+8];"), 4);
	IS(value("mov.b32 {h1, h2}, 0x20001; mov.b32 r0, {h2, h1};"), 0x10002);
	IS(value("@p1 mov.b32 r0, 1; @!p1 mov.b32 r0, 2;"), 2);
	IS(value(".param .b32 q; st.param.b32 [q], 11; ld.param.b32 r0, [q];"), 11);
	IS(value("mov.b32 r0, -1; and.b32 r0, r0, (1 << 4) - 1;"), 15);
}

static void test_refused(void)
{
	REFUSED_BODY("banana.b32 r1, 5;", "unknown instruction 'banana'");
	REFUSED_BODY("add.b33 r1, r2, r3;", "unknown modifier '.b33'");
	REFUSED_BODY("add.s32 r1, r2, r99;", "unknown name r99");
	REFUSED_BODY("add.s32 r1, r2, %tid.w;", "unknown register %tid");
	REFUSED_BODY("add.s32 r1, r2", "';' expected");
	REFUSED_BODY("add.s32 r1, r2;", "wrong number of operands");
	REFUSED_BODY("add.s32 r1, r2, r3, r4;", "wrong number of operands");
	REFUSED_BODY("add.s32 r1, r2, x3;", "wrong type");
	REFUSED_BODY("add.s32 x1, r2, r3;", "destination");
	REFUSED_BODY("add.s32 5, r2, r3;", "destination");
	REFUSED_BODY("@r1 mov.b32 r1, r2;", "predicate expected after @");
	REFUSED_BODY("@5 mov.b32 r1, r2;", "predicate expected after @");
	REFUSED_BODY("bra nowhere;", "no label nowhere");
	REFUSED_BODY("bra r1;", "label expected");
	REFUSED_BODY("L: L: ret;", "L is declared twice");
	REFUSED_BODY(".reg .b32 z, z;", "z is declared twice");
	REFUSED_BODY(".reg .b33 z;", "unknown register type .b33");
	REFUSED_BODY(".reg .b32 5;", "register name expected");
	REFUSED_BODY(".reg .b32 z<x>;", "number of registers expected");
	REFUSED_BODY(".reg z;", "register type expected");
	REFUSED_BODY(".banana;", "unknown directive .banana");
	REFUSED_BODY(".local .b8 a[99999999];", "too much local memory");
	REFUSED_BODY("ld.global.u32 r1, [x1;", "']' expected");
	REFUSED_BODY("ld.global.u32 r1, [nothing];", "unknown name nothing");
	REFUSED_BODY("ld.global.v2.u32 {r1, r2, [x1];", "'}' expected");
	REFUSED_BODY("mov.b32 r1, {{{{{{r2}}}}}};", "nested too deeply");
	REFUSED_BODY("mov.b32 r1, -r2;", "negated registers");
	REFUSED_BODY("mov.b32 r1, r2.h1;", "parts of registers");
	REFUSED_BODY("mov.b32 r1, r2.h2;", "unknown part .h2");
	REFUSED_BODY("mov.b32 r1, -nothing;", "constant expected");
	REFUSED_BODY("mov.b32 r1, !r2;", "only a predicate can be negated");
	REFUSED_BODY("setp.eq.s32 p1|5, r1, r2;", "register expected after |");
	REFUSED_BODY("5;", "instruction expected");
	REFUSED_BODY(
		"mov.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.b32 r1, r2;", "too many modifiers");
	REFUSED_BODY("mov.b32 r1, r2, r2, r2, r2, r2, r2, r2, r2, r2, r2, r2, r2, r2;",
		"too many operands");
	REFUSED_BODY("call x1, (r1), nothing;", "");
	/* The line of the instruction that begins there, and of it the text in one line. */
	REFUSED(UNIT_HEAD
		".entry k() {\n.reg .b32 r<4>;\nmov.b32 r1,\n  r2\n;\nadd.s32\n r1,\n\t r9, 3; ret; }\n",
		CKT_PTX_INVALID, 9, "unknown name r9: add.s32 r1, r9, 3");
}

UNIT_SUITE(softgpu / ptx / front / parse_body, {"scopes", test_scopes}, {"operands", test_operands},
	{"refused", test_refused})
