/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Branches, calls, barriers, and that no lane, warp or block is ever starved.
 */
#include "harness.h"

static uint32_t *words;

static struct ckt_ptx_module *load(const char *text)
{
	struct ckt_ptx_module *module = unit_load(&text, 1, NULL);
	if (!module)
		fprintf(stderr, "%s\n", unit_log);
	CU_ASSERT_PTR_NOT_NULL_FATAL(module);
	if (!words)
		words = unit_alloc(65536);
	memset(words, 0, 65536);
	return module;
}

#define HEAD                                                                                                                   \
	UNIT_HEAD                                                                                                              \
	".visible .entry k(.param .u64 out, .param .u64 n)\n{\n.reg .b64 o, x, y; .reg .b32 t, a, b, c, v; .reg .pred p, q;\n" \
	"ld.param.u64 o, [out]; mov.u32 t, %tid.x;\n"

static void run(struct ckt_ptx_module *module, unsigned grid, unsigned block, bool cooperative,
	uint64_t n, enum ckt_ptx_fault expect)
{
	struct unit_launch u = {.kernel = "k",
		.grid = grid,
		.block = block,
		.cooperative = cooperative,
		.args = {(uint64_t)(uintptr_t)words, n}};
	enum ckt_ptx_fault fault = unit_run(module, &u);
	if (fault != expect)
		fprintf(stderr, "fault %d: %s\n", fault, unit_message);
	CU_ASSERT_EQUAL(fault, expect);
	ckt_ptx_module_destroy(module);
}

/* Collatz steps: every lane leaves the loop at another time. */
static void test_divergent_loop(void)
{
	run(load(HEAD
		    "add.u32 a, t, 1; mov.u32 c, 0;\nloop: setp.eq.u32 p, a, 1; @p bra done; and.b32 b, a, 1; setp.eq.u32 q, b, 0; @q bra even;\n"
		    "mad.lo.u32 a, a, 3, 1; bra next;\neven: shr.u32 a, a, 1;\nnext: add.u32 c, c, 1; bra loop;\n"
		    "done: mul.wide.u32 x, t, 4; add.u64 x, x, o; st.global.u32 [x], c; ret;\n}\n"),
		1, 100, false, 0, CKT_PTX_FAULT_NONE);
	for (unsigned t = 0; t < 100; t++) {
		uint32_t n = 0;
		for (uint64_t a = t + 1; a != 1; a = a & 1 ? 3 * a + 1 : a / 2)
			n++;
		CU_ASSERT_EQUAL(words[t], n);
	}
}

/* A lock taken by the lanes of one warp: a lane that spins must let the holder go on. */
static void test_lane_lock(void)
{
	run(load(HEAD
		    "spin: atom.global.cas.b32 a, [o], 0, 1; setp.ne.u32 p, a, 0; @p bra spin;\n"
		    "ld.volatile.global.u32 b, [o+4]; add.u32 b, b, 1; st.volatile.global.u32 [o+4], b; membar.gl; atom.global.exch.b32 a, [o], 0; ret;\n}\n"),
		1, 64, false, 0, CKT_PTX_FAULT_NONE);
	CU_ASSERT_EQUAL(words[1], 64);
}

/*
 * The same without an atomic in the loop, so that nothing hints at waiting: lane 31 sets what the
 * others read.
 */
static void test_plain_spin(void)
{
	run(load(HEAD
		    "setp.eq.u32 p, t, 31; @p bra set;\nspin: ld.global.u32 a, [o]; setp.eq.u32 p, a, 0; @p bra spin; atom.global.add.u32 a, [o+4], 1; ret;\n"
		    "set: st.global.u32 [o], 1; ret;\n}\n"),
		1, 32, false, 0, CKT_PTX_FAULT_NONE);
	CU_ASSERT_EQUAL(words[1], 31);
}

/* A chain of blocks, each waiting for the one before it; many more than threads of the host. */
static void test_block_chain(void)
{
	run(load(HEAD
		    "mov.u32 b, %ctaid.x; setp.ne.u32 p, t, 0; @p bra done;\nspin: ld.acquire.gpu.global.u32 a, [o]; setp.ne.u32 p, a, b; @p bra spin;\n"
		    "add.u32 a, a, 1; st.release.gpu.global.u32 [o], a;\ndone: bar.sync 0; ret;\n}\n"),
		300, 64, false, 0, CKT_PTX_FAULT_NONE);
	CU_ASSERT_EQUAL(words[0], 300);
}

/* All blocks of a cooperative grid meet, the first waiting for the last. */
static void test_cooperative(void)
{
	run(load(HEAD
		    "setp.ne.u32 p, t, 0; @p bra done; atom.global.add.u32 a, [o], 1;\nspin: ld.volatile.global.u32 a, [o]; setp.lt.u32 p, a, 100; @p bra spin;\n"
		    "done: bar.sync 0; ret;\n}\n"),
		100, 96, true, 0, CKT_PTX_FAULT_NONE);
	CU_ASSERT_EQUAL(words[0], 100);
}

/*
 * One block writes a vector whose words are the same, over and over, while others read it: never
 * the half of one.
 */
static void test_whole_vectors(void)
{
	static const char *const kinds[][3] = {
		{"relaxed.gpu.global.v2.u32", "{v, v}", "{a, b}"},
		{"relaxed.gpu.global.v4.u32", "{v, v, v, v}", "{a, c, c, b}"},
		{"global.v2.u64", "{x, x}", "{y, z}"},
	};
	char text[2048];
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		snprintf(text, sizeof text,
			"%s.reg .b64 z; mov.u32 b, %%ctaid.x; mov.u32 v, 0; mov.u64 x, 0; setp.ne.u32 p, b, 0; @p bra read;\n"
			"write: add.u32 v, v, 1; cvt.u64.u32 x, v; st.%s [o+64], %s; setp.lt.u32 p, v, 60000; @p bra write; st.release.gpu.global.u32 [o], 1; ret;\n"
			"read: ld.%s %s, [o+64]; %s setp.ne.u32 p, a, b; @p atom.global.add.u32 c, [o+4], 1;\n"
			"ld.acquire.gpu.global.u32 c, [o]; setp.eq.u32 p, c, 0; @p bra read; ret;\n}\n",
			HEAD, kinds[k][0], kinds[k][1], kinds[k][0], kinds[k][2],
			k == 2 ? "cvt.u32.u64 a, y; cvt.u32.u64 b, z;" : "");
		run(load(text), 3, 1, true, 0, CKT_PTX_FAULT_NONE);
		CU_ASSERT_EQUAL(words[0], 1);
		CU_ASSERT_EQUAL(words[1], 0);
	}
}

static void test_barrier(void)
{
	/*
	 * Reverses 200 words through shared memory, and counts threads with an odd number by
	 * bar.red.
	 */
	run(load(UNIT_HEAD
		    ".shared .align 4 .b8 s[1024];\n.visible .entry k(.param .u64 out, .param .u64 n)\n{\n.reg .b64 o, x; .reg .b32 t, a, b; .reg .pred p;\n"
		    "ld.param.u64 o, [out]; mov.u32 t, %tid.x; mov.u32 b, s; shl.b32 a, t, 2; add.u32 a, a, b; st.shared.u32 [a], t; bar.sync 0;\n"
		    "sub.u32 a, 199, t; shl.b32 a, a, 2; add.u32 a, a, b; ld.shared.u32 b, [a]; mul.wide.u32 x, t, 4; add.u64 x, x, o; st.global.u32 [x], b;\n"
		    "and.b32 a, t, 1; setp.ne.u32 p, a, 0; bar.red.popc.u32 a, 0, p; st.global.u32 [o+1000], a; ret;\n}\n"),
		1, 200, false, 0, CKT_PTX_FAULT_NONE);
	for (unsigned t = 0; t < 200; t++)
		CU_ASSERT_EQUAL(words[t], 199 - t);
	CU_ASSERT_EQUAL(words[250], 100);
}

/* Producer and consumer warps with a barrier for both: the producer only arrives. */
static void test_arrive(void)
{
	run(load(UNIT_HEAD
		    ".shared .u32 s;\n.visible .entry k(.param .u64 out, .param .u64 n)\n{\n.reg .b64 o; .reg .b32 t, a; .reg .pred p;\n"
		    "ld.param.u64 o, [out]; mov.u32 t, %tid.x; setp.ge.u32 p, t, 32; @p bra consumer;\n"
		    "st.shared.u32 [s], 77; bar.arrive 1, 64; ret;\nconsumer: bar.sync 1, 64; ld.shared.u32 a, [s]; st.global.u32 [o], a; ret;\n}\n"),
		1, 64, false, 0, CKT_PTX_FAULT_NONE);
	CU_ASSERT_EQUAL(words[0], 77);
}

static void test_deadlock(void)
{
	run(load(HEAD "setp.eq.u32 p, t, 0; @p bar.sync 1, 64; @!p bar.sync 2, 64; ret;\n}\n"), 1,
		32, false, 0, CKT_PTX_FAULT_LAUNCH_FAILURE);
	CU_ASSERT_PTR_NOT_NULL(strstr(unit_message, "barrier"));
}

/* Threads that leave early no longer count. */
static void test_early_exit(void)
{
	run(load(HEAD
		    "setp.gt.u32 p, t, 40; @p exit; bar.sync 0; atom.global.add.u32 a, [o], 1; ret;\n}\n"),
		1, 128, false, 0, CKT_PTX_FAULT_NONE);
	CU_ASSERT_EQUAL(words[0], 41);
}

static void test_recursion(void)
{
	run(load(UNIT_HEAD
		    ".func (.param .b32 r) fib(.param .b32 n)\n{\n.reg .b32 a, b, c; .reg .pred p;\nld.param.b32 a, [n]; setp.lt.u32 p, a, 2; @p bra small;\n"
		    "sub.u32 b, a, 1;\n{ .param .b32 x; st.param.b32 [x], b; .param .b32 y; call.uni (y), fib, (x); ld.param.b32 b, [y]; }\nsub.u32 c, a, 2;\n"
		    "{ .param .b32 x; st.param.b32 [x], c; .param .b32 y; call.uni (y), fib, (x); ld.param.b32 c, [y]; }\n"
		    "add.u32 a, b, c;\nsmall: st.param.b32 [r], a; ret;\n}\n"
		    ".visible .entry k(.param .u64 out, .param .u64 n)\n{\n.reg .b64 o, x; .reg .b32 t, a;\nld.param.u64 o, [out]; mov.u32 t, %tid.x;\n"
		    "{ .param .b32 p; st.param.b32 [p], t; .param .b32 q; call (q), fib, (p); ld.param.b32 a, [q]; }\n"
		    "mul.wide.u32 x, t, 4; add.u64 x, x, o; st.global.u32 [x], a; ret;\n}\n"),
		1, 16, false, 0, CKT_PTX_FAULT_NONE);
	for (unsigned t = 0, a = 0, b = 1; t < 16; t++) {
		CU_ASSERT_EQUAL(words[t], a);
		b += a;
		a = b - a;
	}
}

static void test_overflow(void)
{
	run(load(UNIT_HEAD
		    ".func f(.param .b32 n)\n{\n.local .align 4 .b8 big[512]; .reg .b32 a; ld.param.b32 a, [n]; st.local.u32 [big], a;\n"
		    "{ .param .b32 x; st.param.b32 [x], a; call.uni f, (x); }\nret;\n}\n"
		    ".visible .entry k(.param .u64 out, .param .u64 n)\n{\n{ .param .b32 p; st.param.b32 [p], 1; call f, (p); }\nret;\n}\n"),
		1, 1, false, 0, CKT_PTX_FAULT_STACK_OVERFLOW);
	run(load(UNIT_HEAD
		    ".func f() { call.uni f; ret; }\n.visible .entry k(.param .u64 out, .param .u64 n) { call f; ret; }\n"),
		1, 64, false, 0, CKT_PTX_FAULT_STACK_OVERFLOW);
}

/* Lanes call different functions through pointers kept in a table of a global variable. */
static void test_indirect(void)
{
	static const char text[] = UNIT_HEAD
		".func (.param .b32 r) twice(.param .b32 n) { .reg .b32 a; ld.param.b32 a, [n]; shl.b32 a, a, 1; st.param.b32 [r], a; ret; }\n"
		".func (.param .b32 r) plus(.param .b32 n) { .reg .b32 a; ld.param.b32 a, [n]; add.u32 a, a, 100; st.param.b32 [r], a; ret; }\n"
		".global .align 8 .u64 table[2] = {twice, plus};\n"
		".visible .entry k(.param .u64 out, .param .u64 n)\n{\n.reg .b64 o, x, fn; .reg .b32 t, a;\nld.param.u64 o, [out]; mov.u32 t, %tid.x;\n"
		"and.b32 a, t, 1; mul.wide.u32 x, a, 8; mov.u64 fn, table; add.u64 fn, fn, x; ld.global.u64 fn, [fn];\n"
		"{ .param .b32 p; st.param.b32 [p], t; .param .b32 q; proto: .callprototype (.param .b32 _) _ (.param .b32 _); call (q), fn, (p), proto; "
		"ld.param.b32 a, [q]; }\n"
		"mul.wide.u32 x, t, 4; add.u64 x, x, o; st.global.u32 [x], a; ret;\n}\n";
	run(load(text), 1, 32, false, 0, CKT_PTX_FAULT_NONE);
	for (unsigned t = 0; t < 32; t++)
		CU_ASSERT_EQUAL(words[t], t & 1 ? t + 100 : t * 2);
}

static void test_branch_table(void)
{
	run(load(HEAD
		    "table: .branchtargets one, two, three; rem.u32 a, t, 3; brx.idx a, table;\none: mov.u32 v, 11; bra done;\ntwo: mov.u32 v, 22; bra done;\n"
		    "three: mov.u32 v, 33;\ndone: mul.wide.u32 x, t, 4; add.u64 x, x, o; st.global.u32 [x], v; ret;\n}\n"),
		1, 32, false, 0, CKT_PTX_FAULT_NONE);
	for (unsigned t = 0; t < 32; t++)
		CU_ASSERT_EQUAL(words[t], 11 * (t % 3 + 1));
}

static void test_cancel(void)
{
	volatile bool cancel = true;
	struct ckt_ptx_module *module = load(HEAD "loop: bra loop; ret;\n}\n");
	struct unit_launch u = {
		.kernel = "k", .grid = 2, .block = 32, .cancel = &cancel, .args = {0, 0}};
	CU_ASSERT_EQUAL(unit_run(module, &u), CKT_PTX_FAULT_LAUNCH_FAILURE);
	ckt_ptx_module_destroy(module);
}

static void test_trap(void)
{
	run(load(HEAD "setp.eq.u32 p, t, 5; @p trap; ret;\n}\n"), 1, 32, false, 0,
		CKT_PTX_FAULT_TRAP);
	CU_ASSERT_PTR_NOT_NULL(strstr(unit_message, "thread (5,0,0)"));
}

static const struct unit_test tests[] = {{"divergent loop", test_divergent_loop},
	{"lane lock", test_lane_lock}, {"plain spin", test_plain_spin},
	{"block chain", test_block_chain}, {"whole vectors", test_whole_vectors},
	{"cooperative", test_cooperative}, {"barrier", test_barrier}, {"arrive", test_arrive},
	{"deadlock", test_deadlock}, {"early exit", test_early_exit}, {"recursion", test_recursion},
	{"overflow", test_overflow}, {"indirect", test_indirect},
	{"branch table", test_branch_table}, {"cancel", test_cancel}, {"trap", test_trap}};
UNIT_MAIN("ptx control", tests)
