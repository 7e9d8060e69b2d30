/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/compiled/emit_lane.c: what lanes compute by themselves is one loop; what nobody reads
 * behind it is not kept.
 */
#include "emitted.h"

static void test_stretch(void)
{
	/*
	 * r1 and r2 live in the loop over the lanes only: nothing reads them behind it, and it is
	 * the store that wants r3.
	 */
	char *c = emitted(
		EMITTED("ld.param.u64 x, [a]; mov.u32 r1, %tid.x; add.u32 r2, r1, 7; mul.lo.u32 r3, r2, r1; st.global.u32 [x], r3;"),
		false);
	CU_ASSERT_PTR_NOT_NULL_FATAL(c);
	const char *behind = strstr(c, "INSIDE void stretch_0_0(");
	CU_ASSERT_PTR_NOT_NULL_FATAL(behind);
	HAS(behind, "0x7u");
	IS(times(behind, "[l] = in ? r"), 2); /* x, r3 */
	/* where the store does not go well, ret, and the one behind every body */
	IS(times(behind, "r = CALL("), 3);
	HAS(c, "!store_4(w, A, 8, imm, m, 0, way == 2, 1, v)");
	HAS(behind, "int ckt_kernel_0(");
	NO(strstr(behind, "i->"));
	free(c);
}

static void test_lonely(void)
{
	/*
	 * No compiler has vectors for a division of integers: a loop of its own, or it spoils the
	 * others.
	 */
	char *c = emitted(
		EMITTED("mov.u32 r1, %tid.x; add.u32 r2, r1, 7; div.u32 r3, r2, r1; add.u32 r4, r3, r2; st.global.u32 [x], r4;"),
		false);
	CU_ASSERT_PTR_NOT_NULL_FATAL(c);
	IS(times(c, "INSIDE void stretch_0_"), 3);
	free(c);
}

static void test_guard(void)
{
	char *c = emitted(
		EMITTED("mov.u32 r1, %tid.x; setp.gt.u32 p, r1, 3; @!p add.u32 r1, r1, 7; st.global.u32 [x], r1;"),
		false);
	CU_ASSERT_PTR_NOT_NULL_FATAL(c);
	HAS(c, " = !p");
	HAS(c, " ? d : r");
	free(c);
}

UNIT_SUITE(emit_lane, {"stretch", test_stretch}, {"lonely", test_lonely}, {"guard", test_guard})
