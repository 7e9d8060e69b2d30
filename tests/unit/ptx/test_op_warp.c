/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/execution/op_warp.c: shuffles at the edges of segments, votes, matches and reductions
 * of parts of a warp, and lanes that are gone.
 */
#include "harness.h"

static uint32_t out[64];

static void run(const char *body, unsigned block)
{
	enum ckt_ptx_fault fault = unit_threads("", body, 1, block, out);
	if (fault)
		fprintf(stderr, "%s: %s\n", body, unit_message);
	IS(fault, CKT_PTX_FAULT_NONE);
}

#define WRONG(n, want)                                        \
	({                                                    \
		unsigned wrong_ = 0;                          \
		for (unsigned t = 0; t < (n); t++)            \
			wrong_ += out[t] != (uint32_t)(want); \
		wrong_;                                       \
	})

/*
 * c = (32 - width) << 8 | clamp, as the intrinsics give it; the predicate says whether the source
 * was in the segment.
 */
static void test_shuffles(void)
{
	run("add.u32 r1, t, 100; shfl.sync.up.b32 r0|p1, r1, 3, 0x1800, -1; @!p1 add.u32 r0, r0, 1000;",
		32);
	IS(WRONG(32, t % 8 >= 3 ? t + 97 : t + 1100), 0);
	run("add.u32 r1, t, 100; shfl.sync.down.b32 r0|p1, r1, 3, 0x181f, -1; @!p1 add.u32 r0, r0, 1000;",
		32);
	IS(WRONG(32, t % 8 < 5 ? t + 103 : t + 1100), 0);
	run("shfl.sync.bfly.b32 r0|p1, t, 5, 0x1f, -1; @!p1 add.u32 r0, r0, 1000;", 32);
	IS(WRONG(32, t ^ 5), 0);
	run("shfl.sync.bfly.b32 r0|p1, t, 16, 0x180f, -1; @!p1 add.u32 r0, r0, 1000;", 32);
	/* upwards is out of the segment, downwards is not asked */
	IS(WRONG(32, t < 16 ? t + 1000 : t - 16), 0);
	run("shfl.sync.idx.b32 r0|p1, t, 10, 0x181f, -1; @!p1 add.u32 r0, r0, 1000;", 32);
	IS(WRONG(32, (t & ~7u) + 2), 0);
	run("sub.u32 r1, 31, t; shfl.sync.idx.b32 r0, t, r1, 0x1f, -1;", 32);
	IS(WRONG(32, 31 - t), 0);
	/* The old form is gone since 7.0. */
	REFUSED_BODY("shfl.up.b32 r1, r2, 1, 0;", "no such form of 'shfl'");
}

static void test_votes(void)
{
	run("setp.lt.u32 p1, t, 5; vote.sync.ballot.b32 r0, p1, -1;", 32);
	IS(WRONG(32, 0x1f), 0);
	run("setp.lt.u32 p1, t, 5; vote.sync.ballot.b32 r0, !p1, -1;", 32);
	IS(WRONG(32, 0xffffffe0), 0);
	run("setp.lt.u32 p1, t, 5; vote.sync.all.pred p2, p1, -1; vote.sync.any.pred p3, p1, -1; vote.sync.uni.pred p4, p1, -1; "
	    "vote.sync.uni.pred p5, 1, -1;\n"
	    "selp.u32 r0, 1, 0, p2; selp.u32 r1, 2, 0, p3; selp.u32 r2, 4, 0, p4; selp.u32 r3, 8, 0, p5; or.b32 r0, r0, r1; "
	    "or.b32 r2, r2, r3; or.b32 r0, r0, r2;",
		32);
	IS(WRONG(32, 2 | 8), 0);
	/* Two halves of a warp by masks of their own; only members count. */
	run("setp.lt.u32 p1, t, 16; selp.b32 r1, 0xffff, 0xffff0000, p1; and.b32 r2, t, 1; setp.ne.u32 p2, r2, 0; "
	    "vote.sync.ballot.b32 r0, p2, r1;",
		32);
	IS(WRONG(32, t < 16 ? 0xaaaa : 0xaaaa0000), 0);
	/* A warp that is not full, and one of which lanes are gone. */
	run("vote.sync.ballot.b32 r0, 1, -1;", 40);
	IS(WRONG(40, t < 32 ? 0xffffffff : 0xff), 0);
	run("st.global.u32 [o], 5; setp.lt.u32 p1, t, 4; @p1 exit; vote.sync.ballot.b32 r0, 1, -1;",
		32);
	IS(WRONG(32, t < 4 ? 5 : 0xfffffff0), 0);
	run("setp.lt.u32 p1, t, 4; @p1 bra A; activemask.b32 r0; bra E; A: activemask.b32 r0; E:",
		32);
	IS(WRONG(32, t < 4 ? 0xf : 0xfffffff0), 0);
}

static void test_matches(void)
{
	run("shr.u32 r1, t, 3; match.any.sync.b32 r0, r1, -1;", 32);
	IS(WRONG(32, 0xffu << (t / 8 * 8)), 0);
	run("shr.u32 r1, t, 4; mul.wide.u32 x1, r1, 0x10000; shl.b64 x1, x1, 20; match.any.sync.b64 r0, x1, -1;",
		32);
	IS(WRONG(32, t < 16 ? 0xffff : 0xffff0000), 0); /* in the upper half only */
	run("mov.u32 r1, 7; match.all.sync.b32 r0|p1, r1, -1; @!p1 mov.u32 r0, 1;", 32);
	IS(WRONG(32, 0xffffffff), 0);
	run("setp.eq.u32 p2, t, 31; selp.u32 r1, 1, 0, p2; match.all.sync.b32 r0|p1, r1, -1; @p1 mov.u32 r0, 1;",
		32);
	IS(WRONG(32, 0), 0);
}

static void test_reductions(void)
{
	run("redux.sync.add.u32 r0, t, -1;", 32);
	IS(WRONG(32, 496), 0);
	run("sub.u32 r1, t, 16; redux.sync.min.s32 r0, r1, -1;", 32);
	IS(WRONG(32, -16), 0);
	run("sub.u32 r1, t, 16; redux.sync.min.u32 r0, r1, -1;", 32);
	IS(WRONG(32, 0), 0);
	run("sub.u32 r1, t, 16; redux.sync.max.u32 r0, r1, -1;", 32);
	IS(WRONG(32, 0xffffffff), 0);
	run("or.b32 r1, t, 0x100; redux.sync.and.b32 r0, r1, 0xf0;", 32);
	IS(WRONG(32, t >= 4 && t < 8 ? 0x104 : out[t]), 0);
	run("redux.sync.or.b32 r0, t, -1; redux.sync.xor.b32 r1, t, -1; shl.b32 r1, r1, 8; add.u32 r0, r0, r1;",
		32);
	IS(WRONG(32, 31), 0);
	run("setp.lt.u32 p1, t, 16; selp.b32 r1, 0xffff, 0xffff0000, p1; redux.sync.add.s32 r0, t, r1;",
		32);
	IS(WRONG(32, t < 16 ? 120 : 376), 0);
	run("elect.sync r0|p1, 0xfff0; @p1 add.u32 r0, r0, 100;", 32);
	IS(out[4], 104);
	IS(out[5], 4);
}

/*
 * Lanes that come to the same instruction by different ways, and a warp barrier between what one
 * writes and another reads.
 */
static void test_meeting(void)
{
	run("and.b32 r1, t, 1; setp.eq.u32 p1, r1, 0; @p1 bra A; mov.u32 r2, 3; shfl.sync.idx.b32 r0, r2, 0, 0x1f, -1; bra E; "
	    "A: mov.u32 r2, 4; shfl.sync.idx.b32 r0, r2, 1, 0x1f, -1; E:",
		32);
	IS(WRONG(32, t & 1 ? 4 : 3), 0);
	unit_clear();
	run("and.b32 r1, t, 31; setp.ne.u32 p1, r1, 9; @p1 bra W; st.global.u32 [m], 6; W: bar.warp.sync -1; ld.global.u32 r0, [m];",
		32);
	IS(WRONG(32, 6), 0);
	REFUSED_BODY("shfl.sync.idx.b64 x1, x2, 1, 2, -1;", "");
	REFUSED_BODY("shfl.sync.b32 r1, r2, 1, 2, -1;", "");
	REFUSED_BODY("vote.sync.ballot.pred p1, p2, -1;", "");
	REFUSED_BODY("match.any.b32 r1, r2, -1;", "");
	REFUSED_BODY("redux.sync.add.f32 f1, f2, -1;", "");
}

UNIT_SUITE(softgpu / ptx / execution / op_warp, {"shuffles", test_shuffles}, {"votes", test_votes},
	{"matches", test_matches}, {"reductions", test_reductions}, {"meeting", test_meeting})
