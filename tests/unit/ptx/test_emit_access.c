/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/compiled/emit_access.c: which loads and stores compiled code does by itself, and that
 * those alike share a function.
 */
#include "emitted.h"

static void test_kinds(void)
{
	char *c = emitted(
		EMITTED("ld.param.u64 x, [a]; ld.global.u32 r1, [x]; ld.global.u32 r2, [x+4]; ld.global.s8 r3, [x]; ld.global.v2.u32 {r4, r5}, [x];\n"
			"st.shared.u32 [r1], r2; st.global.u32 [x], r3; st.global.u32 [x+4], r4; st.global.u32 [x+8], r5;"),
		false);
	CU_ASSERT_PTR_NOT_NULL_FATAL(c);
	IS(times(c, "APART bool access_"), 5);
	HAS(c, "!load_4(w, A, 8, imm, m, 0, way == 2, 1, v)");
	HAS(c, "!load_1(w, A, 8, imm, m, 0, way == 2, 1, v)");
	HAS(c, "!load_4(w, A, 8, imm, m, 0, way == 2, 2, v)");
	HAS(c, "!store_4(w, A, 4, imm, m, 1, way == 2, 1, v)");
	HAS(c, "!store_4(w, A, 8, imm, m, 0, way == 2, 1, v)");
	IS(times(c, "!access_"), 8);
	free(c);
}

static void test_left_to_the_handler(void)
{
	/*
	 * Ordered ones, which count as waiting, local memory, and vectors that move in one piece of
	 * 16 bytes or more.
	 */
	char *c = emitted(
		EMITTED("ld.param.u64 x, [a]; ld.volatile.global.u32 r1, [x]; ld.acquire.gpu.global.u32 r2, [x]; ld.local.u32 r3, [r1]; st.local.u32 [r1], r2;"),
		false);
	CU_ASSERT_PTR_NOT_NULL_FATAL(c);
	IS(times(c, "access_"), 0);
	IS(times(c, "r = CALL("), 6);
	free(c);
}

static void test_ways(void)
{
	/* One look at the addresses in a register, until it is written. */
	char *c = emitted(
		EMITTED("ld.param.u64 x, [a]; ld.global.u32 r1, [x]; st.global.u32 [x+64], r1; ld.global.v2.u32 {r2, r3}, [x]; ld.global.u64 x, [x]; st.global.u32 [x], r2;\n"
			"mov.u64 x, 64; st.global.u32 [x], r3; st.global.u32 [64], r3;"),
		false);
	CU_ASSERT_PTR_NOT_NULL_FATAL(c);
	/* of 4 bytes, of 8 (a pair, then one), of 4 after each of the writes */
	IS(times(c, "const int way_"), 4);
	IS(times(c, "m == ~0u ? 2 : 0"), 1); /* a constant is the same for all */
	free(c);
	/* An atomic's answer is such a write too. */
	c = emitted(
		EMITTED("mov.u32 r1, 4; ld.shared.u32 r2, [r1]; atom.shared.add.u32 r1, [r2], 4; ld.shared.u32 r3, [r1]; ld.param.u64 x, [a]; st.global.u32 [x], r3;"),
		false);
	CU_ASSERT_PTR_NOT_NULL_FATAL(c);
	IS(times(c, "const int way_"), 4); /* r1, r2, r1, x */
	free(c);
}

UNIT_SUITE(emit_access, {"ways", test_ways}, {"kinds", test_kinds},
	{"left to the handler", test_left_to_the_handler})
