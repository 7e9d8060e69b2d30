/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/execution/sched.c: nobody is starved: lanes that spin for lanes, warps for warps,
 * blocks for blocks, at low and high program counters, in loops and in functions; lanes meet again;
 * what cannot go on says so.
 */
#include "harness.h"

static uint32_t out[1024];

static void run(const char *scope, const char *body, unsigned grid, unsigned block)
{
	unit_clear();
	enum ckt_ptx_fault fault = unit_threads(scope, body, grid, block, out);
	if (fault)
		fprintf(stderr, "%s\n", unit_message);
	IS(fault, CKT_PTX_FAULT_NONE);
}

static unsigned others(unsigned n, uint32_t want)
{
	unsigned wrong = 0;
	for (unsigned t = 0; t < n; t++)
		wrong += out[t] != want;
	return wrong;
}

/* Each lane waits for the one before it: in order, and against it. */
static void test_lanes(void)
{
	static const char *const chains[] = {
		"SPIN: ld.volatile.global.u32 r1, [m]; setp.ne.u32 p1, r1, t; @p1 bra SPIN; add.u32 r2, t, 1; "
		"st.volatile.global.u32 [m], r2; mov.u32 r0, 1;",
		"sub.u32 r3, 31, t; SPIN: ld.volatile.global.u32 r1, [m]; setp.ne.u32 p1, r1, r3; @p1 bra SPIN; add.u32 r2, r3, 1; "
		"st.volatile.global.u32 [m], r2; mov.u32 r0, 1;",
		/* The spinning part lies behind what it waits for, */
		"bra CHECK; WORK: add.u32 r2, t, 1; st.volatile.global.u32 [m], r2; mov.u32 r0, 1; bra E; "
		"CHECK: ld.volatile.global.u32 r1, [m]; setp.eq.u32 p1, r1, t; @p1 bra WORK; bra CHECK; E:",
		/* and reads that nothing marks as waiting. */
		"SPIN: ld.global.u32 r1, [m]; setp.ne.u32 p1, r1, t; @p1 bra SPIN; add.u32 r2, t, 1; st.global.u32 [m], r2; "
		"mov.u32 r0, 1;"};
	for (size_t k = 0; k < COUNT(chains); k++) {
		run("", chains[k], 1, 32);
		IS(others(32, 1), 0);
		IS(unit_memory[0], 32);
	}
	/* In a function, which only the waiting lanes have entered. */
	run(".func wait_for(.param .b64 a) { .reg .b64 x; .reg .b32 v; .reg .pred p; ld.param.b64 x, [a]; "
	    "L: ld.volatile.global.u32 v, [x]; setp.eq.u32 p, v, 0; @p bra L; ret; }\n",
		"setp.eq.u32 p1, t, 17; @p1 bra SET; { .param .b64 a; st.param.b64 [a], m; call wait_for, (a); } mov.u32 r0, 1; bra E; "
		"SET: st.volatile.global.u32 [m], 1; mov.u32 r0, 1; E:",
		1, 32);
	IS(others(32, 1), 0);
}

static void test_warps(void)
{
	/* The last warp lets the first go. */
	run("",
		"shr.u32 r3, t, 5; SPIN: ld.volatile.global.u32 r1, [m]; add.u32 r1, r1, r3; setp.ne.u32 p1, r1, 7; @p1 bra SPIN; "
		"bar.warp.sync 0xffffffff;\n"
		"and.b32 r4, t, 31; setp.ne.u32 p2, r4, 0; @p2 bra E; atom.global.add.u32 r5, [m], 1; E: mov.u32 r0, 1;",
		1, 256);
	IS(others(256, 1), 0);
	IS(unit_memory[0], 8);
}

/*
 * Later blocks are waited for by earlier ones, of more than run at once; and the other way round.
 */
static void test_blocks(void)
{
	run("",
		"setp.ne.u32 p1, tt, 0; @p1 bra E; SPIN: ld.volatile.global.u32 r1, [m]; setp.ne.u32 p1, r1, %ctaid.x; @p1 bra SPIN; "
		"add.u32 r2, r1, 1; st.volatile.global.u32 [m], r2; E: mov.u32 r0, 1;",
		40, 8);
	IS(others(320, 1), 0);
	IS(unit_memory[0], 40);
}

/*
 * Lanes that parted run together again behind the join, so that it is passed once and not 32 times.
 */
static void test_meeting(void)
{
	run("", "mov.u32 r1, t; LOOP: setp.eq.u32 p1, r1, 0; @p1 bra OUT; sub.u32 r1, r1, 1; bra LOOP; OUT: activemask.b32 r0;",
		1, 32);
	IS(others(32, 0xffffffff), 0);
	/* Nested: both joins. */
	run("",
		"and.b32 r1, t, 1; setp.eq.u32 p1, r1, 0; @p1 bra A; and.b32 r2, t, 2; setp.eq.u32 p2, r2, 0; @p2 bra B; mov.u32 r3, 1; "
		"B: activemask.b32 r4; bra J; A: mov.u32 r4, 0x55555555; J: activemask.b32 r5;\n"
		"setp.eq.u32 p3, r5, 0xffffffff; selp.b32 r0, r4, 0, p3;",
		1, 32);
	unsigned wrong = 0;
	for (unsigned t = 0; t < 32; t++)
		wrong += out[t] != (t & 1 ? 0xaaaaaaaa : 0x55555555);
	IS(wrong, 0);
}

/* A loop that some lanes leave one by one while a lock goes round: 200 turns each. */
static void test_lock(void)
{
	run("",
		"mov.u32 r5, 0; AGAIN: SPIN: atom.global.exch.b32 r1, [m], 1; setp.ne.u32 p1, r1, 0; @p1 bra SPIN; "
		"ld.volatile.global.u32 r2, [m+4]; add.u32 r2, r2, 1; st.volatile.global.u32 [m+4], r2; membar.gl;\n"
		"atom.global.exch.b32 r1, [m], 0; add.u32 r5, r5, 1; setp.lt.u32 p2, r5, 50; @p2 bra AGAIN; mov.u32 r0, r5;",
		2, 48);
	IS(others(96, 50), 0);
	IS(unit_memory[1], 96 * 50);
}

/* What cannot end says so and where, and a launch that is called off ends. */
static void test_stuck(void)
{
	IS(unit_threads("",
		   "setp.lt.u32 p1, t, 32; @p1 bra A; bar.sync 1; bra E; A: bar.sync 2; E:", 1, 64,
		   out),
		CKT_PTX_FAULT_LAUNCH_FAILURE);
	HAS(unit_message, "waits at a barrier that cannot complete");
	/* One fault ends all other blocks, which would spin for ever. */
	unit_clear();
	IS(unit_threads("",
		   "setp.eq.u32 p1, t, 5; @p1 trap; SPIN: ld.volatile.global.u32 r1, [m]; setp.eq.u32 p2, r1, 0; "
		   "@p2 bra SPIN;",
		   8, 1, out),
		CKT_PTX_FAULT_TRAP);
	HAS(unit_message, "block (5,0,0)");
	HAS(unit_message, "PTX line");
}

UNIT_SUITE(softgpu / ptx / execution / sched, {"lanes", test_lanes}, {"warps", test_warps},
	{"blocks", test_blocks}, {"meeting", test_meeting}, {"lock", test_lock},
	{"stuck", test_stuck})
