/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/compiled/emit_warp.c: what a whole warp does together is written out where all lanes
 * take part, and left to the handler where some may be missing.
 */
#include "emitted.h"

/* How often a kernel of one instruction has the text behind its function's head. */
static unsigned has(const char *insn, const char *part)
{
	char text[1024];
	snprintf(text, sizeof text,
		UNIT_HEAD
		".visible .entry k(.param .u64 a) { .reg .b64 x; .reg .b32 r<9>; .reg .pred p, q; ld.param.u64 x, [a]; mov.u32 r1, %%tid.x;\n"
		"%s\nst.global.u32 [x], r2; selp.b32 r3, 1, 0, p; st.global.u32 [x+4], r3; ret; }\n",
		insn);
	char *c = emitted(text, false), *from = c ? strstr(c, "int ckt_kernel_0(") : NULL;
	unsigned n = from ? times(from, part) : 99;
	free(c);
	return n;
}

static void test_shuffles(void)
{
	/* Which lane reads which is known: two vectors of sixteen, and the predicate. */
	IS(has("shfl.sync.bfly.b32 r2|p, r1, 1, 31, -1;",
		   "__builtin_shufflevector(low, high, 1, 0, 3, 2,"),
		1);
	IS(has("shfl.sync.down.b32 r2|p, r1, 1, 31, -1;", ", 30, 31, 31);"), 1);
	IS(has("shfl.sync.down.b32 r2|p, r1, 1, 31, -1;", " = 0x7fffffffu;"), 1);
	IS(has("shfl.sync.up.b32 r2|p, r1, 8, 0, -1;", " = 0xffffff00u;"), 1);
	IS(has("shfl.sync.idx.b32 r2, r1, 2, 0x1c1f, -1;", "(low, high, 2, 2, 2, 2, 6, 6, 6, 6,"),
		1);
	IS(has("shfl.sync.idx.b32 r2, r1, r1, 31, -1;", "ok = shuffle("), 1);
	/* The lanes that take part are looked at when they are in a register. */
	IS(has("shfl.sync.idx.b32 r2, r1, 0, 31, r1;", "m == ~0u && all_ones("), 1);
	IS(has("shfl.sync.idx.b32 r2, r1, 0, 31, 0xffff;", "__builtin_shufflevector("), 0);
}

static void test_others(void)
{
	IS(has("setp.gt.u32 q, r1, 3; vote.sync.ballot.b32 r2, q, -1;", "[l] = bits;"), 1);
	IS(has("setp.gt.u32 q, r1, 3; vote.sync.any.pred p, !q, -1;", "const uint32_t bits = ~*"),
		1);
	IS(has("redux.sync.max.s32 r2, r1, -1;", "v = x > v ? x : v;"), 1);
	IS(has("match.all.sync.b32 r2|p, r1, -1;", "all = match_32("), 1);
	IS(has("elect.sync r2|p, -1;", " = 1;"), 1);
	IS(has("bar.warp.sync -1;", "if (m == ~0u) {\n\t} else if (m) {"), 1);
	/* none for it: where the stores do not go well, ret, the one behind every body */
	IS(has("activemask.b32 r2;", "r = CALL("), 4);
	IS(has("@p activemask.b32 r2;", "r = CALL("), 5);
}

UNIT_SUITE(emit_warp, {"shuffles", test_shuffles}, {"others", test_others})
