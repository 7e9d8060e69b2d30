/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/execution/launch.c: printf, assert, malloc, special registers, many launches at once.
 */
#include <pthread.h>

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
	return module;
}

static enum ckt_ptx_fault run(
	struct ckt_ptx_module *module, unsigned grid, unsigned block, unsigned shared)
{
	struct unit_launch u = {.kernel = "k",
		.grid = grid,
		.block = block,
		.shared = shared,
		.args = {(uint64_t)(uintptr_t)words}};
	return unit_run(module, &u);
}

#define PRINTF ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"

static void test_printf(void)
{
	/* "%d %5.2f|%s|%-4u|%lld %c%%%x" */
	struct ckt_ptx_module *module = load(UNIT_HEAD PRINTF
		".global .align 1 .b8 f[40] = {37,100,32,37,53,46,50,102,124,37,115,124,37,45,52,117,124,37,108,108,100,32,37,99,37,37,37,120,10,0};\n"
		".global .align 1 .b8 s[4] = {97, 98, 99, 0};\n"
		".visible .entry k(.param .u64 out)\n{\n.local .align 8 .b8 args[56]; .reg .b64 o, a, x; .reg .b32 n;\n"
		"ld.param.u64 o, [out]; st.local.u32 [args], -7; st.local.f64 [args+8], 0d4009000000000000; mov.u64 x, s; cvta.global.u64 x, x; st.local.u64 [args+16], x;\n"
		"st.local.u32 [args+24], 42; st.local.u64 [args+32], -5000000000; st.local.u32 [args+40], 88; st.local.u32 [args+44], 255;\n"
		"mov.u64 a, args; cvta.local.u64 a, a; mov.u64 x, f; cvta.global.u64 x, x;\n"
		"{ .param .b64 p; st.param.b64 [p], x; .param .b64 q; st.param.b64 [q], a; .param .b32 r; call.uni (r), vprintf, (p, q); ld.param.b32 n, [r]; }\n"
		"st.global.u32 [o], n; ret;\n}\n");
	CU_ASSERT_EQUAL(run(module, 1, 1, 0), CKT_PTX_FAULT_NONE);
	CU_ASSERT_STRING_EQUAL(unit_output, "-7  3.12|abc|42  |-5000000000 X%ff\n");
	CU_ASSERT_EQUAL(words[0], 7);
	ckt_ptx_module_destroy(module);
}

static void test_assert(void)
{
	struct ckt_ptx_module *module = load(UNIT_HEAD
		".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);\n"
		".global .b8 text[6] = {120, 60, 49, 0};\n.visible .entry k(.param .u64 out)\n{\n.reg .b64 x; .reg .b32 t; .reg .pred p;\n"
		"mov.u32 t, %tid.x; setp.ne.u32 p, t, 3; @p bra done; mov.u64 x, text; cvta.global.u64 x, x;\n"
		"{ .param .b64 a; st.param.b64 [a], x; .param .b64 b; st.param.b64 [b], x; .param .b32 c; st.param.b32 [c], 17; .param .b64 d; st.param.b64 [d], x; "
		".param .b64 e; st.param.b64 [e], 1; call.uni __assertfail, (a, b, c, d, e); }\ndone: ret;\n}\n");
	CU_ASSERT_EQUAL(run(module, 1, 32, 0), CKT_PTX_FAULT_ASSERT);
	CU_ASSERT_STRING_EQUAL(unit_output,
		"x<1:17: x<1: block: [0,0,0], thread: [3,0,0] Assertion `x<1` failed.\n");
	ckt_ptx_module_destroy(module);
}

static void test_malloc(void)
{
	struct ckt_ptx_module *module = load(UNIT_HEAD
		".extern .func (.param .b64 r) malloc(.param .b64 n); .extern .func free(.param .b64 p);\n"
		".visible .entry k(.param .u64 out)\n{\n.reg .b64 o, x, y; .reg .b32 t;\nld.param.u64 o, [out]; mov.u32 t, %tid.x;\n"
		"{ .param .b64 n; st.param.b64 [n], 100; .param .b64 r; call.uni (r), malloc, (n); ld.param.b64 x, [r]; }\n"
		"st.u32 [x+96], t; ld.u32 t, [x+96]; mul.wide.u32 y, t, 4; add.u64 y, y, o; st.global.u32 [y], t;\n"
		"{ .param .b64 n; st.param.b64 [n], x; call.uni free, (n); }\nret;\n}\n");
	CU_ASSERT_EQUAL(run(module, 1, 40, 0), CKT_PTX_FAULT_NONE);
	for (unsigned t = 0; t < 40; t++)
		CU_ASSERT_EQUAL(words[t], t);
	ckt_ptx_module_destroy(module);
}

static void test_special_registers(void)
{
	struct ckt_ptx_module *module = load(UNIT_HEAD
		".visible .entry k(.param .u64 out)\n{\n.reg .b64 o, x; .reg .b32 i, a, b, c; .reg .pred p;\nld.param.u64 o, [out];\n"
		"mov.u32 a, %ctaid.x; mov.u32 b, %ntid.x; mov.u32 c, %tid.x; mad.lo.u32 i, a, b, c; mul.wide.u32 x, i, 32; add.u64 x, x, o;\n"
		"st.global.u32 [x], %laneid; mov.u32 a, %warpid; st.global.u32 [x+4], a; add.u32 a, %nctaid.x, %ntid.y; st.global.u32 [x+8], a;\n"
		"mov.u32 a, %lanemask_le; st.global.u32 [x+12], a; mov.u32 a, %lanemask_gt; st.global.u32 [x+16], a; mov.u32 a, %dynamic_smem_size; st.global.u32 [x+20], a;\n"
		"mov.u32 a, %nsmid; mov.u32 b, %smid; setp.lt.u32 p, b, a; selp.u32 a, 1, 0, p; st.global.u32 [x+24], a; ret;\n}\n");
	CU_ASSERT_EQUAL(run(module, 3, 48, 20), CKT_PTX_FAULT_NONE);
	for (unsigned n = 0; n < 3 * 48; n++) {
		unsigned t = n % 48, lane = t % 32;
		const uint32_t *row = words + 8 * n;
		CU_ASSERT(row[0] == lane && row[1] == t / 32 && row[2] == 4 &&
			row[3] == (uint32_t)((2ull << lane) - 1) &&
			row[4] == (uint32_t) ~((2ull << lane) - 1) && row[5] == 20 && row[6] == 1);
	}
	ckt_ptx_module_destroy(module);
}

static void test_dynamic_shared(void)
{
	struct ckt_ptx_module *module = load(UNIT_HEAD
		".extern .shared .align 16 .b8 d[]; .shared .b8 s[20];\n.visible .entry k(.param .u64 out)\n{\n.reg .b64 o; .reg .b32 a, b;\nld.param.u64 o, [out];\n"
		"mov.u32 a, d; mov.u32 b, s; sub.u32 b, a, b; st.global.u32 [o], b; st.shared.u32 [a+36], 5; ld.shared.u32 b, [d+36]; st.global.u32 [o+4], b; ret;\n}\n");
	CU_ASSERT_EQUAL(run(module, 1, 1, 40), CKT_PTX_FAULT_NONE);
	CU_ASSERT(words[0] == 32 && words[1] == 5);
	CU_ASSERT_EQUAL(run(module, 1, 1, 36), CKT_PTX_FAULT_ILLEGAL_ADDRESS);
	ckt_ptx_module_destroy(module);
}

/* Host threads launch at once from one module; one grid waits for what another writes. */
static const char pair_text[] = UNIT_HEAD
	".visible .entry k(.param .u64 out)\n{\n.reg .b64 o; .reg .b32 a; .reg .pred p;\nld.param.u64 o, [out];\n"
	"spin: ld.acquire.sys.global.u32 a, [o]; setp.eq.u32 p, a, 0; @p bra spin; atom.global.add.u32 a, [o+4], 1; ret;\n}\n"
	".visible .entry set(.param .u64 out)\n{\n.reg .b64 o;\nld.param.u64 o, [out]; st.release.sys.global.u32 [o], 1; ret;\n}\n";
static struct ckt_ptx_module *pair_module;

static void *launch_one(void *kernel)
{
	struct unit_launch u = {
		.kernel = kernel, .grid = 20, .block = 64, .args = {(uint64_t)(uintptr_t)words}};
	return (void *)(uintptr_t)unit_run(pair_module, &u);
}

static void test_two_grids(void)
{
	pair_module = load(pair_text);
	memset(words, 0, 64);
	pthread_t waiting[3];
	for (unsigned k = 0; k < 3; k++)
		pthread_create(&waiting[k], NULL, launch_one, (void *)"k");
	CU_ASSERT_EQUAL((uintptr_t)launch_one((void *)"set"), CKT_PTX_FAULT_NONE);
	for (unsigned k = 0; k < 3; k++) {
		void *fault;
		pthread_join(waiting[k], &fault);
		CU_ASSERT_EQUAL((uintptr_t)fault, CKT_PTX_FAULT_NONE);
	}
	CU_ASSERT_EQUAL(words[1], 3 * 20 * 64);
	ckt_ptx_module_destroy(pair_module);
}

static void test_bad_launch(void)
{
	struct ckt_ptx_module *module =
		load(UNIT_HEAD ".visible .entry k(.param .u64 out) { ret; }\n");
	CU_ASSERT_EQUAL(run(module, 1, 1025, 0), CKT_PTX_FAULT_LAUNCH_FAILURE);
	CU_ASSERT_EQUAL(run(module, 0, 1, 0), CKT_PTX_FAULT_LAUNCH_FAILURE);
	CU_ASSERT_EQUAL(run(module, 1000, 33, 0), CKT_PTX_FAULT_NONE);
	ckt_ptx_module_destroy(module);
}

static const struct unit_test tests[] = {{"printf", test_printf}, {"assert", test_assert},
	{"malloc", test_malloc}, {"special registers", test_special_registers},
	{"dynamic shared", test_dynamic_shared}, {"two grids", test_two_grids},
	{"bad launch", test_bad_launch}};
UNIT_MAIN("ptx launches", tests)
