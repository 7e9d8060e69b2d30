/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/execution/memory.c: state spaces, vectors, generic addresses, atomics, and the faults
 * of bad accesses.
 */
#include "harness.h"

static uint32_t *words;

#define HEAD                                                                                                                                          \
	UNIT_HEAD                                                                                                                                     \
	".visible .entry k(.param .u64 out, .param .u64 n)\n{\n.reg .b64 o, n64, x, y; .reg .b32 t, a, b, c, v; .reg .f32 f1, f2; .reg .f64 d1, d2; " \
	".reg .b16 h, i; .reg .pred p, q;\nld.param.u64 o, [out]; ld.param.u64 n64, [n]; mov.u32 t, %tid.x;\n"

static void run(const char *text, unsigned block, uint64_t n, enum ckt_ptx_fault expect,
	const char *message)
{
	struct ckt_ptx_module *module = unit_load(&text, 1, NULL);
	if (!module)
		fprintf(stderr, "%s\n", unit_log);
	CU_ASSERT_PTR_NOT_NULL_FATAL(module);
	if (!words)
		words = unit_alloc(4096);
	memset(words, 0, 4096);
	struct unit_launch u = {
		.kernel = "k", .grid = 1, .block = block, .args = {(uint64_t)(uintptr_t)words, n}};
	enum ckt_ptx_fault fault = unit_run(module, &u);
	if (fault != expect || (message && !strstr(unit_message, message)))
		fprintf(stderr, "fault %d: %s\n", fault, unit_message);
	CU_ASSERT_EQUAL(fault, expect);
	if (message)
		CU_ASSERT_PTR_NOT_NULL(strstr(unit_message, message));
	ckt_ptx_module_destroy(module);
}

static void test_vectors(void)
{
	run(HEAD
		"mov.u32 a, 1; mov.u32 b, 2; st.global.v4.u32 [o], {a, b, 3, t}; ld.global.v2.u32 {_, c}, [o]; st.global.u32 [o+16], c;\n"
		"mov.u16 h, 0x1234; st.global.v2.u8 [o+20], {h, 0x56}; ld.global.s8 b, [o+20]; st.global.u32 [o+24], b; mov.u64 x, -2; st.global.u32 [o+28], x;\n"
		"st.global.u16 [o+32], 0x8001; ld.global.s16 x, [o+32]; st.global.u64 [o+40], x; ld.global.u16 x, [o+32]; st.global.u64 [o+48], x; ret;\n}\n",
		1, 0, CKT_PTX_FAULT_NONE, NULL);
	static const uint32_t want[] = {1, 2, 3, 0, 2, 0x5634, 0x34, 0xfffffffe, 0x8001, 0,
		0xffff8001, 0xffffffff, 0x8001, 0};
	CU_ASSERT(!memcmp(words, want, sizeof want));
}

static void test_generic(void)
{
	/*
	 * The same words through windows and directly; the question which space an address is in.
	 */
	run(UNIT_HEAD
		".shared .align 8 .b8 s[64]; .const .u32 c[2] = {7, 9}; .global .u32 g = 5;\n"
		".visible .entry k(.param .u64 out, .param .u64 n)\n{\n.local .align 8 .b8 l[16]; .reg .b64 o, x, y; .reg .b32 a, b, r; .reg .pred p;\n"
		"ld.param::entry.u64 o, [out]; mov.u64 x, s; cvta.shared.u64 x, x; mov.u32 a, 11; st.u32 [x+8], a; ld.shared.u32 b, [s+8]; st.global.u32 [o], b;\n"
		"mov.u64 y, l; cvta.local.u64 y, y; st.u32 [y+4], 22; ld.local.u32 b, [l+4]; st.global.u32 [o+4], b;\n"
		"mov.u64 y, c; ld.const.u32 a, [y+4]; cvta.const.u64 y, y; ld.u32 b, [y]; add.u32 a, a, b; st.global.u32 [o+8], a;\n"
		"ld.global.u32 a, [g]; st.global.u32 [o+12], a; isspacep.shared p, x; selp.u32 r, 1, 0, p; isspacep.global p, o; @p or.b32 r, r, 2;\n"
		"isspacep.local p, o; @p or.b32 r, r, 4; isspacep.const p, y; @p or.b32 r, r, 8; isspacep.const p, o; @p or.b32 r, r, 16; st.global.u32 [o+16], r;\n"
		"cvta.to.shared.u64 x, x; cvt.u32.u64 a, x; ld.shared.u32 b, [a+8]; st.global.u32 [o+20], b;\n"
		"mov.b64 x, n; cvta.param.u64 x, x; ld.u32 b, [x]; st.global.u32 [o+24], b; ret;\n}\n",
		1, 1234, CKT_PTX_FAULT_NONE, NULL);
	static const uint32_t want[] = {11, 22, 16, 5, 1 | 2 | 8, 11, 1234};
	CU_ASSERT(!memcmp(words, want, sizeof want));
}

static void test_local_is_private(void)
{
	run(UNIT_HEAD
		".visible .entry k(.param .u64 out, .param .u64 n)\n{\n.local .align 4 .b8 l[4]; .reg .b64 o, x; .reg .b32 t, a;\n"
		"ld.param.u64 o, [out]; mov.u32 t, %tid.x; st.local.u32 [l], t; bar.sync 0; ld.local.u32 a, [l]; mul.wide.u32 x, t, 4; add.u64 x, x, o;\n"
		"st.global.u32 [x], a; ret;\n}\n",
		100, 0, CKT_PTX_FAULT_NONE, NULL);
	for (unsigned t = 0; t < 100; t++)
		CU_ASSERT_EQUAL(words[t], t);
}

static void test_atomics(void)
{
	run(HEAD
		"add.u32 v, t, 1; red.global.add.u32 [o], v; atom.global.max.s32 a, [o+4], t; red.global.min.s32 [o+8], -3; atom.global.inc.u32 a, [o+12], 9;\n"
		"atom.global.dec.u32 a, [o+16], 9; red.global.or.b32 [o+20], t; red.global.xor.b32 [o+24], v; cvt.rn.f32.u32 f1, t; red.global.add.f32 [o+28], f1;\n"
		"cvt.rn.f64.u32 d1, t; atom.global.add.f64 d2, [o+32], d1; cvt.u64.u32 x, t; red.global.add.u64 [o+40], x; atom.global.and.b64 y, [o+48], x;\n"
		"setp.ne.u32 p, t, 0; @p ret; atom.global.cas.b64 x, [o+56], 0, -1; atom.global.exch.b32 a, [o+64], 5; st.global.u32 [o+68], a; mov.u16 h, 0; mov.u16 i, 7;\n"
		"atom.global.cas.b16 h, [o+72], h, i; ret;\n}\n",
		64, 0, CKT_PTX_FAULT_NONE, NULL);
	float f = 64 * 63 / 2;
	double d = f;
	CU_ASSERT_EQUAL(words[0], 64 * 65 / 2);
	CU_ASSERT_EQUAL(words[1], 63);
	CU_ASSERT_EQUAL((int)words[2], -3);
	CU_ASSERT_EQUAL(words[3], 64 % 10);
	CU_ASSERT_EQUAL(words[4], 6); /* 0 goes to 9, then down: 64 = 6 * 10 + 4 steps */
	CU_ASSERT_EQUAL(words[5], 63);
	CU_ASSERT_EQUAL(words[6], 64);
	CU_ASSERT(!memcmp(&words[7], &f, 4));
	CU_ASSERT(!memcmp(&words[8], &d, 8));
	CU_ASSERT_EQUAL(words[10], 2016);
	CU_ASSERT_EQUAL(words[12], 0);
	CU_ASSERT_EQUAL(words[14], 0xffffffff);
	CU_ASSERT_EQUAL(words[15], 0xffffffff);
	CU_ASSERT_EQUAL(words[16], 5);
	CU_ASSERT_EQUAL(words[17], 0);
	CU_ASSERT_EQUAL(words[18], 7);
}

/*
 * What each lane finds when all add at one address, some of them, or each in local memory of its
 * own: in the order of the lanes.
 */
static void test_counting(void)
{
	static const char head[] = HEAD
		".local .align 4 .b8 l[8]; mul.wide.u32 x, t, 4; add.u64 x, x, o; add.u32 v, t, 1;\n";
	char text[2048];
	snprintf(text, sizeof text, "%s%s", head,
		"mov.b32 a, v; atom.global.add.u32 a, [o+1024], a; st.global.u32 [x], a; ret;\n}\n");
	run(text, 32, 0, CKT_PTX_FAULT_NONE, NULL);
	for (unsigned t = 0; t < 32; t++)
		CU_ASSERT_EQUAL(words[t], t * (t + 1) / 2);
	CU_ASSERT_EQUAL(words[256], 32 * 33 / 2);
	snprintf(text, sizeof text, "%s%s", head,
		"and.b32 b, t, 3; setp.eq.u32 p, b, 3; @p atom.global.add.s32 a, [o+1024], -2; st.global.u32 [x], a; ret;\n}\n");
	run(text, 32, 0, CKT_PTX_FAULT_NONE, NULL);
	for (unsigned t = 0; t < 32; t++)
		CU_ASSERT_EQUAL((int)words[t], t % 4 == 3 ? -2 * (int)(t / 4) : 0);
	snprintf(text, sizeof text, "%s%s", head,
		"and.b32 b, t, 1; mul.wide.u32 y, b, 4; add.u64 y, y, o; atom.global.add.u32 a, [y+1024], v; st.global.u32 [x], a; ret;\n}\n");
	run(text, 32, 0, CKT_PTX_FAULT_NONE, NULL);
	CU_ASSERT_EQUAL(words[256], 256);
	CU_ASSERT_EQUAL(words[257], 272);
	CU_ASSERT_EQUAL(words[30], 256 - 31);
	CU_ASSERT_EQUAL(words[31], 272 - 32);
	snprintf(text, sizeof text, "%s%s", head,
		"mov.u64 y, l; cvta.local.u64 y, y; st.u32 [y], t; atom.add.u32 a, [y], v; ld.local.u32 b, [l]; add.u32 a, a, b; st.global.u32 [x], a; ret;\n}\n");
	run(text, 32, 0, CKT_PTX_FAULT_NONE, NULL);
	for (unsigned t = 0; t < 32; t++)
		CU_ASSERT_EQUAL(words[t], 3 * t + 1);
}

/* A vector's answer must be one. */
static void test_atomic_operands(void)
{
	static const char *const texts[] = {HEAD
		"atom.global.add.v2.f32 {f1, f2}, [o], {f1, f2}; ret;\n}\n",
		HEAD "atom.global.add.v2.f32 f1, [o], {f1, f2}; ret;\n}\n",
		HEAD "atom.global.add.v2.f32 {f1}, [o], {f1, f2}; ret;\n}\n",
		HEAD "atom.global.add.v2.f32 _, [o], {f1, f2}; ret;\n}\n",
		HEAD "atom.global.add.u32 {a}, [o], b; ret;\n}\n"};
	static const enum ckt_ptx_result want[] = {
		CKT_PTX_OK, CKT_PTX_INVALID, CKT_PTX_INVALID, CKT_PTX_OK, CKT_PTX_INVALID};
	for (unsigned k = 0; k < 5; k++) {
		enum ckt_ptx_result result;
		struct ckt_ptx_module *module = unit_load(&texts[k], 1, &result);
		CU_ASSERT_EQUAL(result, want[k]);
		ckt_ptx_module_destroy(module);
	}
}

/* Policies of caches: made in every way, taken by loads and stores. */
static void test_policy(void)
{
	run(HEAD
		"createpolicy.fractional.L2::evict_last.b64 x, 1.0; createpolicy.fractional.L2::evict_first.b64 y; mov.f32 f1, 0.25;\n"
		"createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 x, f1; createpolicy.range.global.L2::evict_last.L2::evict_first.b64 y, [o+16], 4096, 8192;\n"
		"createpolicy.range.L2::evict_normal.b64 y, [o], t, t; createpolicy.cvt.L2.b64 x, y; mov.u32 a, 7; st.global.L2::cache_hint.u32 [o], a, x;\n"
		"ld.global.L1::evict_last.L2::cache_hint.v2.b32 {b, c}, [o], x; st.global.u32 [o+8], b; ret;\n}\n",
		1, 0, CKT_PTX_FAULT_NONE, NULL);
	CU_ASSERT_EQUAL(words[0], 7);
	CU_ASSERT_EQUAL(words[2], 7);
	static const char *const wrong[] = {HEAD
		"createpolicy.fractional.L2::evict_last.b64 x, 1.0, 2.0; ret;\n}\n",
		HEAD "createpolicy.range.L2::evict_last.b64 x, [o], 4096; ret;\n}\n",
		HEAD "createpolicy.fractional.L1::evict_last.b64 x; ret;\n}\n",
		HEAD "createpolicy.cvt.L2.b64 x; ret;\n}\n",
		HEAD "createpolicy.fractional.L2::evict_last.b64 a; ret;\n}\n"};
	for (unsigned k = 0; k < 5; k++) {
		enum ckt_ptx_result result;
		CU_ASSERT_PTR_NULL(unit_load(&wrong[k], 1, &result));
		CU_ASSERT_EQUAL(result, CKT_PTX_INVALID);
	}
}

/* Many blocks on several threads add to one word, also with a loop of compare and exchange. */
static void test_atomics_between_blocks(void)
{
	static const char text[] = HEAD
		"atom.global.add.u32 a, [o], 1;\nagain: ld.volatile.global.u32 a, [o+4]; add.u32 b, a, 2; atom.global.cas.b32 c, [o+4], a, b;\n"
		"setp.ne.u32 p, c, a; @p bra again; ret;\n}\n";
	const char *texts = text;
	struct ckt_ptx_module *module = unit_load(&texts, 1, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(module);
	memset(words, 0, 64);
	struct unit_launch u = {
		.kernel = "k", .grid = 40, .block = 128, .args = {(uint64_t)(uintptr_t)words, 0}};
	CU_ASSERT_EQUAL(unit_run(module, &u), CKT_PTX_FAULT_NONE);
	CU_ASSERT_EQUAL(words[0], 40 * 128);
	CU_ASSERT_EQUAL(words[1], 40 * 128 * 2);
	ckt_ptx_module_destroy(module);
}

static void test_faults(void)
{
	run(HEAD "setp.ne.u32 p, t, 3; @p ret; st.global.u32 [o+4096], t; ret;\n}\n", 32, 0,
		CKT_PTX_FAULT_ILLEGAL_ADDRESS, "thread (3,0,0)");
	run(HEAD "ld.global.u32 a, [n64]; ret;\n}\n", 1, 0, CKT_PTX_FAULT_ILLEGAL_ADDRESS,
		"read of 4 bytes at address 0x0");
	run(HEAD "ld.u32 a, [n64]; ret;\n}\n", 1, 0xfffffffffffffff0, CKT_PTX_FAULT_ILLEGAL_ADDRESS,
		"0xfffffffffffffff0");
	run(HEAD "add.u64 x, o, 2; ld.global.u32 a, [x]; ret;\n}\n", 1, 0,
		CKT_PTX_FAULT_MISALIGNED_ADDRESS, "misaligned");
	run(HEAD "ld.global.v4.u32 {a, b, c, v}, [o+8]; ret;\n}\n", 1, 0,
		CKT_PTX_FAULT_MISALIGNED_ADDRESS, "16 bytes");
	run(HEAD ".shared .b8 s[64]; mov.u32 a, s; ld.shared.u32 b, [a+64]; ret;\n}\n", 1, 0,
		CKT_PTX_FAULT_ILLEGAL_ADDRESS, "shared");
	run(HEAD ".local .b8 l[16]; mov.u64 x, l; ld.local.u32 b, [x+100000]; ret;\n}\n", 1, 0,
		CKT_PTX_FAULT_ILLEGAL_ADDRESS, "local");
	run(HEAD "atom.global.add.u32 a, [n64], 1; ret;\n}\n", 1, 8, CKT_PTX_FAULT_ILLEGAL_ADDRESS,
		NULL);
	run(HEAD
		".shared .b8 s[64]; mov.u64 x, s; cvta.shared.u64 x, x; ld.global.u32 b, [x]; ret;\n}\n",
		1, 0, CKT_PTX_FAULT_ILLEGAL_ADDRESS, "space");
}

/*
 * The system's place in a block's shared memory: none of the kernel's own, cleared for each block,
 * and 1 KiB long.
 */
static void test_reserved(void)
{
	static const char text[] = HEAD
		".shared .b32 s[64]; shl.b32 a, t, 2; mov.u32 b, s; add.u32 a, a, b; not.b32 v, t; st.shared.u32 [a], v;\n"
		"bar.sync 0; mov.u32 a, %reserved_smem_offset_1; atom.shared.add.u32 b, [a], 1; cvt.u64.u32 x, a; cvta.shared.u64 x, x; red.add.u32 [x+284], 1;\n"
		"bar.sync 0; ld.shared.u32 c, [a+284]; ld.shared.u32 v, [a]; add.u32 c, c, v;\n"
		"shl.b32 a, t, 2; mov.u32 b, s; add.u32 a, a, b; ld.shared.u32 v, [a]; not.b32 v, v; setp.eq.u32 p, v, t; @!p mov.u32 c, 0;\n"
		"setp.eq.u32 p, c, 128; @p red.global.add.u32 [o], 1; ret;\n}\n";
	const char *texts = text;
	struct ckt_ptx_module *module = unit_load(&texts, 1, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(module);
	words[0] = 0;
	struct unit_launch u = {
		.kernel = "k", .grid = 50, .block = 64, .args = {(uint64_t)(uintptr_t)words, 0}};
	CU_ASSERT_EQUAL(unit_run(module, &u), CKT_PTX_FAULT_NONE);
	CU_ASSERT_EQUAL(words[0], 50 * 64);
	ckt_ptx_module_destroy(module);
	run(HEAD
		"mov.u32 a, %reserved_smem_offset_begin; mov.u32 b, %reserved_smem_offset_end; sub.u32 c, b, a; mov.u32 b, %reserved_smem_offset_cap;\n"
		"sub.u32 c, c, b; ld.shared.v4.u32 {a, a, a, a}, [a+1008]; st.global.u32 [o], b; st.global.u32 [o+4], c; ret;\n}\n",
		1, 0, CKT_PTX_FAULT_NONE, NULL);
	CU_ASSERT_EQUAL(words[0], 1024);
	CU_ASSERT_EQUAL(words[1], 0);
	run(HEAD "mov.u32 a, %reserved_smem_offset_begin; ld.shared.u32 b, [a+1024]; ret;\n}\n", 1,
		0, CKT_PTX_FAULT_ILLEGAL_ADDRESS, "shared");
	run(HEAD "mov.u32 a, %reserved_smem_offset_begin; ld.shared.u32 b, [a+-4]; ret;\n}\n", 1, 0,
		CKT_PTX_FAULT_ILLEGAL_ADDRESS, "shared");
}

/* The soft GPU may read pages that it may not write. */
static void test_read_only(void)
{
	uint32_t *page = unit_alloc(4096);
	page[0] = 99;
	ckt_soft_memmap_set((uint64_t)(uintptr_t)page, 4096, CKT_SOFT_PAGE_READ);
	run(HEAD "ld.global.u32 a, [n64]; st.global.u32 [o], a; ret;\n}\n", 1,
		(uint64_t)(uintptr_t)page, CKT_PTX_FAULT_NONE, NULL);
	CU_ASSERT_EQUAL(words[0], 99);
	run(HEAD "ld.global.u32 a, [n64]; st.global.u32 [n64], a; ret;\n}\n", 1,
		(uint64_t)(uintptr_t)page, CKT_PTX_FAULT_ILLEGAL_ADDRESS, "write of 4");
}

struct body {
	const char *body;
	uint32_t times, more;
}; /* c becomes t * times + more */

/* All in one module, so that one run of the compiler does where kernels become machine code. */
static void bodies(const struct body *table, size_t n)
{
	static char text[65536];
	const char *texts = text;
	size_t used = (size_t)snprintf(text, sizeof text,
		UNIT_HEAD
		".const .align 8 .u32 k1[2] = {8, 9}; .global .align 16 .u32 g[8] = {10, 11, 12, 13, 14, 15, 16, 17};\n"
		".global .v2 .u32 v2[2] = {{20, 21}, {22, 23}}; .global .u32 g2[2][2] = {{30, 31}, {32, 33}}; .global .u64 at[3] = {g+8, generic(g)+4*2, g+4+4};\n"
		".func (.param .b32 r) twice(.param .b32 a) { .reg .b32 x; ld.param.b32 x, [a]; add.u32 x, x, x; st.param.b32 [r], x; ret; }\n"
		".func (.param .b32 r) get(.param .b64 a, .param .align 4 .b8 b[8]) { .reg .b32 x, y; .reg .b64 p; ld.param.b64 p, [a]; ld.global.b32 x, [p];\n"
		"ld.param.b32 y, b[4]; add.u32 x, x, y; st.param.b32 [r], x; ret; }\n");
	for (size_t k = 0; k < n && used < sizeof text; k++)
		used += (size_t)snprintf(text + used, sizeof text - used,
			".visible .entry k%zu_(.param .u64 out, .param .u64 n)\n{\n"
			".shared .align 16 .u32 s[64]; .shared .align 8 .b64 z; .local .align 8 .b8 l[16]; .local .u32 lw[4]; .reg .b64 o, x, y; .reg .b32 t, a, b, c, v; .reg .pred p;\n"
			"ld.param.u64 o, [out]; mov.u32 t, %%tid.x; mov.u32 a, s; shl.b32 b, t, 2; add.u32 a, a, b; add.u32 v, t, 100; st.shared.u32 [a], v; bar.sync 0;\n"
			"%s\nbar.sync 0; mul.wide.u32 x, t, 4; add.u64 x, x, o; st.global.u32 [x], c; ret;\n}\n",
			k, table[k].body);
	struct ckt_ptx_module *module = used < sizeof text ? unit_load(&texts, 1, NULL) : NULL;
	if (!module)
		fprintf(stderr, "%s\n", unit_log);
	CU_ASSERT_PTR_NOT_NULL_FATAL(module);
	words = words ? words : unit_alloc(4096);
	for (size_t k = 0; k < n; k++) {
		char name[16];
		snprintf(name, sizeof name, "k%zu_", k);
		memset(words, 0, 4096);
		struct unit_launch u = {.kernel = name,
			.grid = 1,
			.block = 64,
			.args = {(uint64_t)(uintptr_t)words, 1234}};
		enum ckt_ptx_fault fault = unit_run(module, &u);
		if (fault)
			fprintf(stderr, "%s: fault %d: %s\n", table[k].body, fault, unit_message);
		CU_ASSERT_EQUAL(fault, CKT_PTX_FAULT_NONE);
		for (uint32_t t = 0; t < 64; t++) {
			if (words[t] != t * table[k].times + table[k].more) {
				fprintf(stderr, "%s: thread %u has %u\n", table[k].body, t,
					words[t]);
				CU_FAIL("wrong value");
				break;
			}
		}
	}
	ckt_ptx_module_destroy(module);
}

/*
 * An address of 32 bits and an instruction's offset are added in 32 bits: a register below zero
 * with an offset that brings it back is plain nvcc output.  Of a 64-bit address of shared and local
 * memory only the lower half counts.  In every space that has such addresses.
 */
static void test_narrow_addresses(void)
{
	static const struct body table[] = {
		{"sub.u32 a, a, 64; sub.u32 a, a, b; ld.shared.u32 c, [a+64]; add.u32 a, a, b; ld.shared.u32 c, [a+64];",
			1, 100},
		{"sub.u32 a, a, 0x10000; ld.shared.u32 c, [a+0x10000];", 1, 100},
		{"mov.u32 a, -16; ld.shared.u32 c, [a+20];", 0, 101},
		{"mov.u32 a, -16; ld.shared.v2.u32 {v, c}, [a+16];", 0, 101},
		{"sub.u32 a, a, 0x10000; st.shared.u32 [a+0x10000], 7; ld.shared.u32 c, [a+0x10000];",
			0, 7},
		{"add.u32 a, a, 64; ld.shared.u32 c, [a+-64];", 1, 100},
		{"cvt.u64.u32 x, a; mov.b64 y, 0x700000000; add.u64 x, x, y; ld.shared.u32 c, [x];",
			1, 100},
		{"sub.u32 a, a, 0x10000; atom.shared.add.u32 v, [a+0x10000], 5; ld.shared.u32 c, [a+0x10000];",
			1, 105},
		{"mov.u32 a, -16; atom.shared.add.u32 v, [a+20], 1; bar.sync 0; ld.shared.u32 c, [a+20];",
			0, 101 + 64},
		{"sub.u32 a, a, 0x10000; atom.shared.exch.b32 c, [a+0x10000], 5;", 1, 100},
		{"sub.u32 a, a, 0x10000; red.shared.max.u32 [a+0x10000], 1000; ld.shared.u32 c, [a+0x10000];",
			0, 1000},
		{"st.global.u32 [o+4000], 77; sub.u32 a, a, 0x10000; cp.async.ca.shared.global [a+0x10000], [o+4000], 4; cp.async.wait_all; ld.shared.u32 c, [a+0x10000];",
			0, 77},
		{"mov.u64 x, l; cvt.u32.u64 a, x; st.local.u32 [l+4], t; sub.u32 a, a, 0x8000; ld.local.u32 c, [a+0x8004];",
			1, 0},
		{"mov.u32 a, l; st.local.u32 [a+4], t; ld.local.u32 c, [l+4];", 1, 0},
		{"mov.u64 x, l; mov.b64 y, 0x700000000; add.u64 x, x, y; st.local.u32 [l+4], t; ld.local.u32 c, [x+4];",
			1, 0},
		{"mov.u32 a, k1; ld.const.u32 c, [a+4];", 0, 9},
		{"mov.u32 a, k1; sub.u32 a, a, 0x10000; ld.const.u32 c, [a+0x10004];", 0, 9},
		{"mov.u32 a, k1; add.u32 a, a, 8; ld.const.v2.u32 {c, v}, [a+-8];", 0, 8},
		{"mov.u32 a, n; sub.u32 a, a, 0x1000; ld.param.u32 c, [a+0x1000];", 0, 1234},
		{"mov.u32 a, z; sub.u32 a, a, 0x1000; mbarrier.init.shared.b64 [a+0x1000], 64; bar.sync 0; mbarrier.arrive.shared.b64 x, [a+0x1000]; bar.sync 0;\n"
		 "mbarrier.test_wait.shared.b64 p, [a+0x1000], x; selp.u32 c, 3, 4, p;",
			0, 3},
		{"and.b32 v, t, 7; shl.b32 v, v, 4; mov.u32 a, s; add.u32 a, a, v; sub.u32 a, a, 0x10000; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {c}, [a+0x10000]; and.b32 v, t, 32;\n"
		 "add.u32 c, c, v;",
			1, 100},
	};
	bodies(table, sizeof table / sizeof *table);
	/*
	 * What remains beyond the block's memory is still a fault; memory of the device has 64-bit
	 * addresses, and ptxas wants them.
	 */
	run(HEAD ".shared .b32 s[4]; mov.u32 a, -16; ld.shared.u32 c, [a+8]; ret;\n}\n", 1, 0,
		CKT_PTX_FAULT_ILLEGAL_ADDRESS, "shared address 0xfffffff8");
	REFUSED(HEAD "ld.global.u32 a, [b+4]; ret;\n}\n", CKT_PTX_INVALID, 0, "64 bits");
	REFUSED(HEAD "atom.add.u32 a, [b+4], 1; ret;\n}\n", CKT_PTX_INVALID, 0, "64 bits");
}

/*
 * A variable with an offset in bytes or an index in elements, wherever ptxas takes it; registers
 * and constants as parameters.
 */
static void test_symbols(void)
{
	static const struct body table[] = {
		{"mov.u64 x, g[3]; ld.global.u32 c, [x];", 0, 13},
		{"mov.u64 x, g+12; ld.global.u32 c, [x+-4];", 0, 12},
		{"mov.b64 x, g[1+1]; ld.global.u32 c, [x];", 0, 12},
		{"cvta.global.u64 x, g[2]; ld.u32 c, [x];", 0, 12},
		{"ld.global.u32 c, g[7];", 0, 17},
		{"ld.global.v2.u32 {v, c}, g[2];", 0, 13},
		{"ldu.global.u32 c, g[7];", 0, 17},
		{"ld.global.u8 c, g[5];", 0, 15},
		{"ld.global.u32 c, v2[3];", 0, 23},
		{"ld.global.u32 c, g2[2];", 0, 32},
		{"mov.u64 x, k1[1]; ld.const.u32 c, [x];", 0, 9},
		{"ld.const.u32 c, k1[1];", 0, 9},
		{"mov.u32 a, s[5]; ld.shared.u32 c, [a];", 0, 105},
		{"mov.u64 x, s[5]; ld.shared.u32 c, [x+4];", 0, 106},
		{"ld.shared.u32 c, s[6];", 0, 106},
		{"ld.shared.u32 c, s[t];", 1, 100},
		{"and.b32 v, t, 31; ld.shared.u32 c, s[v+3]; sub.u32 c, c, v;", 0, 103},
		{"mov.u32 a, s[t]; ld.shared.u32 c, [a];", 1, 100},
		{"cvta.shared.u64 x, s[t]; ld.u32 c, [x];", 1, 100},
		{"cvt.u64.u32 x, t; ld.shared.u32 c, s[x];", 1, 100},
		{"st.shared.u32 s[t], t; ld.shared.u32 c, [a];", 1, 0},
		{"and.b32 v, t, 7; ld.global.u32 c, g[v]; sub.u32 c, c, v;", 0, 10},
		{"mov.u64 x, l[4]; st.local.u32 [x], t; ld.local.u32 c, [l+4];", 1, 0},
		{"st.local.u32 lw[2], t; ld.local.u32 c, [lw+8];", 1, 0},
		{"mov.u32 v, 2; st.local.u32 lw[v], t; ld.local.u32 c, lw[v];", 1, 0},
		{"mov.u32 v, 1; st.local.u32 [lw+8], t; cvta.local.u64 x, lw[v]; ld.u32 c, [x+4];",
			1, 0},
		{"mov.u32 v, 1; st.local.u32 [lw+4], t; ld.local.u32 c, lw[v];", 1, 0},
		{"mov.u64 x, g; add.u64 y, x, 4; setp.eq.u64 p, y, g+4; selp.u32 c, 1, 0, p;", 0,
			1},
		{"st.global.u64 [o+4000], g+4; bar.sync 0; ld.global.u64 x, [o+4000]; ld.global.u32 c, [x];",
			0, 11},
		{"mov.u32 a, 8; add.u32 a, a, s+4; ld.shared.u32 c, [a];", 0, 103},
		{"ld.global.u64 x, [at]; ld.global.u32 c, [x];", 0, 12},
		{"ld.global.u64 x, at[1]; ld.global.u32 c, [x];", 0, 12},
		{"ld.global.u64 x, at[2]; ld.global.u32 c, [x];", 0, 12},
		{"mov.u64 x, g; mov.u64 y, g[-1]; sub.u64 x, y, x; shr.u64 y, x, 32; cvt.u32.u64 c, x; cvt.u32.u64 v, y; add.u32 c, c, v;",
			0, -4u},
		{"call (c), twice, (t);", 2, 0},
		{"call (c), twice, (21);", 0, 42},
		{"{ .param .b32 i; st.param.b32 [i], t; call (c), twice, (i); }", 2, 0},
		{"{ .param .b32 r; call (r), twice, (t); ld.param.b32 c, [r]; }", 2, 0},
		{"call (_), twice, (t); mov.u32 c, t;", 1, 0},
		{"{ .param .align 4 .b8 i[8]; st.param.b32 i[4], t; mov.u64 x, g[3]; call (c), get, (x, i); }",
			1, 13},
		{"{ .param .align 4 .b8 i[8]; .param .b64 j; st.param.b32 [i+4], t; st.param.b64 [j], g+12; call (c), get, (j, i); }",
			1, 13},
		{"and.b32 v, t, 1; setp.eq.u32 p, v, 0; mov.u32 c, t; @p call (c), twice, (t); @!p add.u32 c, c, t;",
			2, 0},
	};
	bodies(table, sizeof table / sizeof *table);
	REFUSED(HEAD ".shared .b32 s; mov.u32 a, s[0]; ret;\n}\n", CKT_PTX_INVALID, 0,
		"s is not an array");
	REFUSED(HEAD "ld.param.u64 x, n[0]; ret;\n}\n", CKT_PTX_INVALID, 0, "n is not an array");
	REFUSED(HEAD ".shared .b32 s[4]; ld.shared.u32 a, [s[1]]; ret;\n}\n", CKT_PTX_INVALID, 0,
		"not an index");
	REFUSED(HEAD ".shared .b32 s[4]; atom.shared.add.u32 a, s[1], 1; ret;\n}\n",
		CKT_PTX_INVALID, 0, "address expected");
	REFUSED(HEAD ".shared .b32 s[4]; mov.u32 a, s[f1]; ret;\n}\n", CKT_PTX_INVALID, 0,
		"f1 is not a valid index");
	REFUSED(HEAD ".shared .b32 s[4]; ld.shared.u32 a, s; ret;\n}\n", CKT_PTX_INVALID, 0,
		"address expected");
}

static const struct unit_test tests[] = {{"vectors", test_vectors}, {"generic", test_generic},
	{"local", test_local_is_private}, {"atomics", test_atomics}, {"policy", test_policy},
	{"counting", test_counting}, {"atomic operands", test_atomic_operands},
	{"atomics between blocks", test_atomics_between_blocks}, {"faults", test_faults},
	{"narrow addresses", test_narrow_addresses}, {"symbols", test_symbols},
	{"reserved", test_reserved}, {"read only", test_read_only}};
UNIT_MAIN("ptx memory", tests)
