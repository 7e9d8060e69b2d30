/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/execution/op_control.c: divergent branches, tables, calls and returns of some lanes,
 * exits, barriers with counts and reductions.
 */
#include "harness.h"

static uint32_t out[256];

static void run(const char *scope, const char *body, unsigned grid, unsigned block)
{
	enum ckt_ptx_fault fault = unit_threads(scope, body, grid, block, out);
	if (fault)
		fprintf(stderr, "%s\n", unit_message);
	IS(fault, CKT_PTX_FAULT_NONE);
}

/* How many threads have not what the expression of their number says. */
#define WRONG(n, want)                                        \
	({                                                    \
		unsigned wrong_ = 0;                          \
		for (unsigned t = 0; t < (n); t++)            \
			wrong_ += out[t] != (uint32_t)(want); \
		wrong_;                                       \
	})

static void test_branches(void)
{
	/* Three ways by a table, and together again behind it. */
	run("",
		"rem.u32 r1, t, 3; T: .branchtargets A, B, C; brx.idx r1, T; A: mov.u32 r0, 10; bra J; B: mov.u32 r0, 20; bra J; "
		"C: mov.u32 r0, 30; J: activemask.b32 r2;\n"
		"setp.eq.u32 p1, r2, 0xffffffff; @!p1 mov.u32 r0, 0;",
		1, 64);
	IS(WRONG(64, (t % 3 + 1) * 10), 0);
	/* A guard on the branch and on what it leads to. */
	run("", "setp.lt.u32 p1, t, 7; mov.u32 r0, 1; @p1 bra L; @!p1 mov.u32 r0, 2; bra E; L: mov.u32 r0, 3; E:",
		1, 33);
	IS(WRONG(33, t < 7 ? 3 : 2), 0);
	run("", "mov.u32 r1, 4; setp.eq.u32 p1, t, 99; @p1 bra.uni L; mov.u32 r0, 8; L:", 1, 32);
	IS(WRONG(32, 8), 0);
	IS(unit_threads(
		   "", "T: .branchtargets A, B; add.u32 r1, t, 1; brx.idx r1, T; A: B:", 1, 2, out),
		CKT_PTX_FAULT_INVALID_PC);
	HAS(unit_message, "brx.idx 2 of 2 targets");
	HAS(unit_message, "thread (1,0,0)");
}

#define PLUS                                                                                                                    \
	".func (.param .b32 r) plus(.param .b32 a, .param .b32 b) { .reg .b32 x, y; ld.param.b32 x, [a]; ld.param.b32 y, [b]; " \
	"add.u32 x, x, y; st.param.b32 [r], x; ret; }\n"
#define CALL(f, d, x, y)                                                      \
	"{ .param .b32 a; .param .b32 b; .param .b32 c; st.param.b32 [a], " x \
	"; st.param.b32 [b], " y "; call (c), " f ", (a, b); ld.param.b32 " d ", [c]; }\n"

static void test_calls(void)
{
	run(PLUS, CALL("plus", "r0", "t", "5"), 1, 40);
	IS(WRONG(40, t + 5), 0);
	/* Some lanes only; of a function that some lanes leave early. */
	run(PLUS,
		"mov.u32 r0, 7; setp.gt.u32 p1, t, 20; @!p1 bra E;\n" CALL(
			"plus", "r0", "t", "t") "E:",
		1, 40);
	IS(WRONG(40, t > 20 ? 2 * t : 7), 0);
	run(".func (.param .b32 r) early(.param .b32 a, .param .b32 b) { .reg .b32 x; .reg .pred p; ld.param.b32 x, [a]; "
	    "st.param.b32 [r], 1; setp.lt.u32 p, x, 9; @p ret;\n"
	    "st.param.b32 [r], 2; ret; }\n",
		CALL("early", "r0", "t", "0"), 1, 32);
	IS(WRONG(32, t < 9 ? 1 : 2), 0);
	/* Each lane its own function, out of a table in memory. */
	run(PLUS
		".func (.param .b32 r) minus(.param .b32 a, .param .b32 b) { .reg .b32 x, y; ld.param.b32 x, [a]; ld.param.b32 y, [b]; "
		"sub.u32 x, x, y; st.param.b32 [r], x; ret; }\n"
		".global .u64 table[2] = {plus, minus};\n",
		"P: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b32 _); and.b32 r1, t, 1; mul.wide.u32 x1, r1, 8; "
		"mov.u64 x2, table; add.u64 x1, x1, x2; ld.global.u64 x3, [x1];\n"
		"{ .param .b32 a; .param .b32 b; .param .b32 c; st.param.b32 [a], t; st.param.b32 [b], 3; call (c), x3, (a, b), P; "
		"ld.param.b32 r0, [c]; }",
		1, 32);
	IS(WRONG(32, t & 1 ? t - 3 : t + 3), 0);
	IS(unit_threads(PLUS, "P: .callprototype _ (); mov.u64 x3, 0x1234; call x3, P;", 1, 1, out),
		CKT_PTX_FAULT_INVALID_PC);
	HAS(unit_message, "0x1234");
	/* Without end: the stack says so. */
	IS(unit_threads(".func again() { .local .b8 a[64]; call again; ret; }\n", "call again;", 1,
		   1, out),
		CKT_PTX_FAULT_STACK_OVERFLOW);
	HAS(unit_message, "stack overflow in again");
}

static void test_exits(void)
{
	/*
	 * Who exits in a function takes the caller along; the others come back, and a barrier does
	 * without those that are gone.
	 */
	run(".func maybe(.param .b32 a) { .reg .b32 x; .reg .pred p; ld.param.b32 x, [a]; setp.eq.u32 p, x, 5; @p exit; ret; }\n",
		"mov.u32 r0, 0; st.global.u32 [o], 77; { .param .b32 a; st.param.b32 [a], t; call maybe, (a); } bar.sync 0; mov.u32 r0, 1;",
		1, 64);
	IS(WRONG(64, t == 5 ? 77 : 1), 0);
	IS(unit_threads("", "setp.eq.u32 p1, t, 3; @p1 trap; mov.u32 r0, 1;", 1, 8, out),
		CKT_PTX_FAULT_TRAP);
	HAS(unit_message, "thread (3,0,0): trap");
	IS(unit_threads("", "brkpt;", 1, 1, out), CKT_PTX_FAULT_TRAP);
	HAS(unit_message, "breakpoint");
	run("", "nanosleep.u32 100; membar.gl; fence.acq_rel.gpu; prefetch.global.L2 [m]; griddepcontrol.wait; mov.u32 r0, 4;",
		1, 2);
	IS(WRONG(2, 4), 0);
}

static void test_barriers(void)
{
	/* What one warp writes before, the other reads behind it. */
	run(".shared .u32 s[64];\n",
		"shl.b32 r1, t, 2; mov.u32 r2, s; add.u32 r1, r1, r2; st.shared.u32 [r1], t; barrier.sync 0; "
		"xor.b32 r3, t, 32; shl.b32 r3, r3, 2; add.u32 r3, r3, r2; ld.shared.u32 r0, [r3];",
		1, 64);
	IS(WRONG(64, t ^ 32), 0);
	/* Producers arrive, consumers wait: another barrier and a count. */
	run(".shared .u32 s;\n",
		"setp.lt.u32 p1, t, 32; @p1 bra P; barrier.sync 3, 64; ld.shared.u32 r0, [s]; bra E; "
		"P: setp.ne.u32 p2, t, 0; @p2 bra A; st.shared.u32 [s], 9; A: barrier.arrive 3, 64; mov.u32 r0, 1; E:",
		1, 64);
	IS(WRONG(64, t < 32 ? 1 : 9), 0);
	run("", "setp.lt.u32 p1, t, 40; bar.red.popc.u32 r0, 0, p1;", 1, 64);
	IS(WRONG(64, 40), 0);
	run("",
		"setp.lt.u32 p1, t, 64; bar.red.and.pred p2, 1, p1; setp.eq.u32 p1, t, 63; bar.red.or.pred p3, 1, 64, p1; "
		"bar.red.and.pred p4, 1, p1;\n"
		"selp.u32 r0, 1, 0, p2; selp.u32 r1, 2, 0, p3; selp.u32 r2, 4, 0, p4; or.b32 r0, r0, r1; or.b32 r0, r0, r2;",
		1, 64);
	IS(WRONG(64, 3), 0);
	IS(unit_threads("", "barrier.sync 16;", 1, 32, out), CKT_PTX_FAULT_ILLEGAL_INSTRUCTION);
	IS(unit_threads("", "barrier.sync 0, 33;", 1, 64, out), CKT_PTX_FAULT_ILLEGAL_INSTRUCTION);
	HAS(unit_message, "not a multiple of 32");
	REFUSED_BODY("bar.arrive 0;", "number of threads");
	REFUSED_BODY("bar.red.popc.pred p1, 0, p2;", "");
	REFUSED_BODY("bar.sync;", "wrong number of operands");
}

static void test_refused(void)
{
	REFUSED_BODY("brx.idx r1, nothing;", "no such .branchtargets");
	REFUSED_BODY("call nothing;", "nothing is not declared");
	REFUSED_BODY("call (5), k;", "parameter variable, register or constant expected");
	REFUSED_BODY("call (r1), k, (p2);", "a predicate cannot be a parameter");
	REFUSED_BODY("call x1, (r1), nothing;", "no such .callprototype");
	REFUSED_BODY("call x1, (r1);", "no such .callprototype");
	REFUSED_BODY("call;", "function expected");
	REFUSED_BODY("bra;", "wrong number of operands");
}

UNIT_SUITE(softgpu / ptx / execution / op_control, {"branches", test_branches},
	{"calls", test_calls}, {"exits", test_exits}, {"barriers", test_barriers},
	{"refused", test_refused})
