/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/ptx/compiled/emit.c: the C text of kernels: control flow, functions, whole modules. */
#include "emitted.h"

static void test_branches(void)
{
	char *c = emitted(
		EMITTED("mov.u32 r1, %tid.x; L: sub.u32 r1, r1, 1; setp.ne.u32 p, r1, 0; @p bra L; bar.sync 0;"),
		false);
	CU_ASSERT_PTR_NOT_NULL_FATAL(c);
	const char *behind = strstr(c, "int ckt_kernel_0(");
	CU_ASSERT_PTR_NOT_NULL_FATAL(behind);
	HAS(behind, "case 1: goto at_1;"); /* the loop, */
	HAS(behind, "if (m == mask) goto at_1;");
	HAS(behind, "case 4: goto at_4;"); /* behind it, the barrier itself, */
	HAS(behind, "case 5: goto at_5;"); /* behind that */
	IS(times(behind, "pc = 4; other = 1; goto part;"), 1);
	IS(times(behind, "r = CALL("), 3); /* the barrier, both ret */
	free(c);
}

static void test_whole(void)
{
	static const char text[] = UNIT_HEAD
		".func f() { ret; } .visible .entry k() { call f; ret; } .visible .entry other() { ret; }\n";
	char *c = emitted(text, false), *all = emitted(text, true);
	IS(times(c, "int ckt_kernel_"), 2);
	IS(times(all, "int ckt_kernel_"), 3);
	free(c);
	free(all);
}

static void test_long(void)
{
	enum { N = 10001 };
	char *text = malloc(N * 32 + 1024),
	     *at = text + sprintf(text, "%s", UNIT_HEAD ".visible .entry k() { .reg .b32 r1;\n");
	for (unsigned k = 0; k < N; k++)
		at += sprintf(at, "add.u32 r1, r1, 1;\n");
	strcpy(at, "ret; }\n");
	CU_ASSERT_PTR_NULL(emitted(text, false));
	free(text);
}

UNIT_SUITE(emit, {"branches", test_branches}, {"whole", test_whole}, {"long", test_long})
