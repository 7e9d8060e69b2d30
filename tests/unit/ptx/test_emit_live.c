/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/compiled/emit_live.c: where blocks begin, and which registers are kept between them.
 */
#include "emitted.h"

static void test_blocks(void)
{
	char *c = emitted(
		EMITTED("mov.u32 r1, %tid.x; L: sub.u32 r1, r1, 1; setp.ne.u32 p, r1, 0; @p bra L; mov.u32 r2, 5; bar.sync 0;"),
		false);
	CU_ASSERT_PTR_NOT_NULL_FATAL(c);
	/* The entry, the loop, behind its branch, the barrier, ret, the one behind every body. */
	IS(times(c, "\nat_"), 6);
	HAS(c, "\nat_1:");
	HAS(c, "\nat_4:");
	HAS(c, "\nat_5:");
	free(c);
}

/* How many registers the stretch that begins at an instruction keeps. */
static unsigned kept(const char *body, unsigned first)
{
	char *c = emitted(body, false), name[32];
	snprintf(name, sizeof name, "INSIDE void stretch_0_%u(", first);
	char *at = c ? strstr(c, name) : NULL, *end = at ? strstr(at, "APART") : NULL;
	unsigned n = ~0u;
	if (end) {
		*end = 0;
		n = times(at, "[l] = in ? r");
	}
	free(c);
	return n;
}

static void test_live(void)
{
	/*
	 * r1 goes round the loop; r2 is written anew each time before it is read, but read behind
	 * the loop too.
	 */
	IS(kept(EMITTED("mov.u32 r1, %tid.x; mov.u32 r2, 7; L: add.u32 r2, r1, 3; sub.u32 r1, r1, r2; setp.ne.u32 p, r1, 0; @p bra L; st.global.u32 [x], r2;"),
		   0),
		1);
	IS(kept(EMITTED("mov.u32 r1, %tid.x; mov.u32 r2, 7; L: add.u32 r2, r1, 3; sub.u32 r1, r1, r2; setp.ne.u32 p, r1, 0; @p bra L; st.global.u32 [x], r2;"),
		   2),
		2);
	IS(kept(EMITTED("mov.u32 r1, %tid.x; mov.u32 r2, 7; L: add.u32 r2, r1, 3; sub.u32 r1, r1, r2; setp.ne.u32 p, r1, 0; @p bra L; st.global.u32 [x], r1;"),
		   2),
		1);
	/* With a guard a value from before may stay: r2 lives from the beginning on. */
	IS(kept(EMITTED("mov.u32 r1, %tid.x; mov.u32 r2, 7; L: @p add.u32 r2, r1, 3; sub.u32 r1, r1, r2; setp.ne.u32 p, r1, 0; @p bra L; st.global.u32 [x], r2;"),
		   0),
		2);
	/* The way that a branch takes counts as much as the one it does not. */
	IS(kept(EMITTED("mov.u32 r1, %tid.x; mov.u32 r2, 7; setp.gt.u32 p, r1, 5; @p bra L; st.global.u32 [x], r1; ret; L: st.global.u32 [x], r2;"),
		   0),
		2);
}

UNIT_SUITE(emit_live, {"blocks", test_blocks}, {"live", test_live})
