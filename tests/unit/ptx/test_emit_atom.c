/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/compiled/emit_atom.c: which atomics compiled code does by itself, and that those
 * alike share a function.
 */
#include "emitted.h"

static void test_kinds(void)
{
	char *c = emitted(
		EMITTED("ld.param.u64 x, [a]; mov.u32 r1, 4; atom.global.add.u32 r2, [x], r1; atom.global.add.u32 r3, [x+8], r2; red.global.add.u32 [x], r1;\n"
			"atom.shared.cas.b32 r4, [r1], r2, r3; atom.add.f32 f1, [x], f2; atom.shared.max.s64 y, [r1], x; st.global.u32 [x], r4;"),
		false);
	CU_ASSERT_PTR_NOT_NULL_FATAL(c);
	IS(times(c, "APART bool atomic_do_"), 5);
	IS(times(c, "!atomic_do_"), 6);
	HAS(c, "return atomic_at_32(w, A, 8, imm, m, all, 0, 0, 0, b, c, d);");
	HAS(c, "return atomic_at_32(w, A, 8, imm, m, all, 0, 0, 0, b, c, (void *)0);");
	HAS(c, "return atomic_at_32(w, A, 4, imm, m, all, 1, 9, 0, b, c, d);");
	HAS(c, "return atomic_at_32(w, A, 8, imm, m, all, 0, 0, 2, b, c, d);");
	HAS(c, "return atomic_at_64(w, A, 4, imm, m, all, 1, 2, 1, b, c, d);");
	/* They wait for nobody, so they end no block: one to ret, and the one behind every body. */
	IS(times(c, "\nat_"), 2);
	free(c);
}

static void test_left_to_the_handler(void)
{
	char *c = emitted(
		EMITTED("ld.param.u64 x, [a]; .reg .b16 h; mov.b16 h, 1; red.global.add.noftz.f16 [x], h; red.global.add.noftz.f16x2 [x], r1; atom.global.cas.b16 h, [x], h, h;"),
		false);
	CU_ASSERT_PTR_NOT_NULL_FATAL(c);
	IS(times(c, "atomic_do_"), 0);
	IS(times(c, "r = CALL("), 5);
	free(c);
}

UNIT_SUITE(emit_atom, {"kinds", test_kinds}, {"left to the handler", test_left_to_the_handler})
