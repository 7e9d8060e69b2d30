/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous copies, memory barriers, alloca, video instructions and the forms that came with
 * later architectures.
 */
#include "harness.h"

static uint32_t *words;

static void run(const char *text, unsigned block)
{
	struct ckt_ptx_module *module = unit_load(&text, 1, NULL);
	if (!module)
		fprintf(stderr, "%s\n", unit_log);
	CU_ASSERT_PTR_NOT_NULL_FATAL(module);
	if (!words)
		words = unit_alloc(8192);
	for (unsigned k = 0; k < 1024; k++) {
		words[k] = 0;
		words[k + 1024] = k * 7;
	}
	struct unit_launch u = {.kernel = "k",
		.grid = 1,
		.block = block,
		.args = {(uint64_t)(uintptr_t)words, (uint64_t)(uintptr_t)(words + 1024)}};
	enum ckt_ptx_fault fault = unit_run(module, &u);
	if (fault)
		fprintf(stderr, "fault %d: %s\n", fault, unit_message);
	CU_ASSERT_EQUAL(fault, CKT_PTX_FAULT_NONE);
	ckt_ptx_module_destroy(module);
}

#define HEAD                                                                                                                                          \
	".version 8.8\n.target sm_120\n.address_size 64\n.shared .align 16 .b8 s[1024]; .shared .align 8 .b64 bar;\n"                                 \
	".visible .entry k(.param .u64 out, .param .u64 in)\n{\n.reg .b64 o, n, x, y, z; .reg .b32 t, a, b, c, v, r; .reg .f32 f; .reg .pred p, q;\n" \
	"ld.param.u64 o, [out]; ld.param.u64 n, [in]; mov.u32 t, %tid.x; mul.wide.u32 x, t, 4; add.u64 y, n, x; add.u64 x, x, o; shl.b32 a, t, 2; mov.u32 b, s; add.u32 b, b, a;\n"

static void test_copy(void)
{
	run(HEAD
		"cp.async.ca.shared.global [b], [y], 4; cp.async.commit_group; cp.async.wait_group 0; bar.sync 0; xor.b32 a, a, 4; mov.u32 b, s; add.u32 b, b, a;\n"
		"ld.shared.u32 v, [b]; st.global.u32 [x], v; ret;\n}\n",
		64);
	for (unsigned t = 0; t < 64; t++)
		CU_ASSERT_EQUAL(words[t], (t ^ 1) * 7);
	run(HEAD
		"shl.b32 a, t, 4; mov.u32 b, s; add.u32 b, b, a; st.shared.v4.u32 [b], {9, 9, 9, 9}; cvt.u64.u32 z, a; add.u64 y, n, z; mov.u32 c, 8;\n"
		"cp.async.cg.shared.global.L2::128B [b], [y], 16, c; cp.async.wait_all; ld.shared.v4.u32 {a, c, v, r}, [b]; add.u64 z, z, o; st.global.v4.u32 [z], {a, c, v, r}; ret;\n}\n",
		8);
	for (unsigned t = 0; t < 32; t++)
		CU_ASSERT_EQUAL(words[t], t & 2 ? 0 : t * 7);
}

/* Two warps meet at a memory barrier ten times; the first to come waits by parity. */
static void test_mbarrier(void)
{
	run(HEAD
		".reg .b64 state; mov.u32 c, bar; setp.ne.u32 p, t, 0; @p bra started; mbarrier.init.shared.b64 [c], 64;\nstarted: bar.sync 0; mov.u32 r, 0; mov.u32 v, 0;\n"
		"again: red.shared.add.u32 [s], 1; mbarrier.arrive.shared.b64 state, [c];\nwait: mbarrier.test_wait.shared.b64 q, [c], state; @!q bra wait;\n"
		"ld.volatile.shared.u32 a, [s]; add.u32 b, r, 1; mul.lo.u32 b, b, 64; setp.ne.u32 p, a, b; @p add.u32 v, v, 1;\n"
		"mbarrier.arrive.shared.b64 _, [c];\nwait2: mbarrier.try_wait.parity.shared.b64 q, [c], 1; @!q bra wait2;\n"
		"add.u32 r, r, 1; setp.lt.u32 p, r, 10; @p bra again; st.global.u32 [x], v; ret;\n}\n",
		64);
	for (unsigned t = 0; t < 64; t++)
		CU_ASSERT_EQUAL(words[t], 0);
}

static void test_alloca(void)
{
	run(HEAD
		"add.u32 c, t, 4; mul.wide.u32 z, c, 4; alloca.u64 z, z, 16; cvta.local.u64 z, z; st.u32 [z+12], t; stacksave.u64 y; ld.u32 v, [z+12]; stackrestore.u64 y;\n"
		"st.global.u32 [x], v; ret;\n}\n",
		40);
	for (unsigned t = 0; t < 40; t++)
		CU_ASSERT_EQUAL(words[t], t);
}

static void test_video(void)
{
	run(HEAD
		"mov.u32 a, 0x01ff8010; mov.u32 b, 0x03017f20; vabsdiff4.u32.u32.u32 v, a, b, 0; st.global.u32 [o], v; vabsdiff4.u32.u32.u32.add v, a, b, 1000; st.global.u32 [o+4], v;\n"
		"vadd4.s32.s32.s32.sat v, a, b, 0; st.global.u32 [o+8], v; vmax2.u32.u32.u32 v, a, b, 0; st.global.u32 [o+12], v; ret;\n}\n",
		1);
	CU_ASSERT_EQUAL(words[0], 0x02fe0110);
	CU_ASSERT_EQUAL(words[1], 1000 + 2 + 0xfe + 1 + 0x10);
	CU_ASSERT_EQUAL(words[2], 0x0400ff30);
	CU_ASSERT_EQUAL(words[3], 0x03018010);
}

static void test_later_forms(void)
{
	run(HEAD
		"mov.b64 z, {0f3F800000, 0f40000000}; fma.rn.f32x2 z, z, z, z; st.global.b64 [o], z; max.f32 f, 0f3F800000, 0f40400000, 0f40000000; st.global.f32 [o+8], f;\n"
		"mov.pred p, %is_explicit_cluster; selp.u32 a, 1, 2, p; st.global.u32 [o+12], a; ret;\n}\n",
		1);
	float want[] = {2, 6, 3}, have[3];
	memcpy(have, words, sizeof have);
	CU_ASSERT(have[0] == want[0] && have[1] == want[1] && have[2] == want[2]);
	CU_ASSERT_EQUAL(words[3], 2);
}

static const struct unit_test tests[] = {{"copy", test_copy}, {"mbarrier", test_mbarrier},
	{"alloca", test_alloca}, {"video", test_video}, {"later forms", test_later_forms}};
UNIT_MAIN("ptx asynchronous", tests)
