/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/execution/op_mem.c: widths and signs of loads, vectors, offsets, each space, and the
 * fault of each bad access.
 */
#include "harness.h"

static uint32_t one(const char *body)
{
	uint32_t r = 0x77777777;
	IS(unit_threads("", body, 1, 1, &r), CKT_PTX_FAULT_NONE);
	return r;
}

static void test_widths(void)
{
	unit_clear();
	memcpy(unit_memory, "\x80\xff\x7f\x01\x02\x03\x04\x85", 8);
	static const struct {
		const char *body;
		uint32_t want;
	} table[] = {
		{"ld.global.u8 r0, [m];", 0x80},
		{"ld.global.s8 r0, [m];", 0xffffff80},
		{"ld.global.s8 r0, [m+2];", 0x7f},
		{"ld.global.u16 r0, [m];", 0xff80},
		{"ld.global.s16 r0, [m];", 0xffffff80},
		{"ld.global.b16 h1, [m+2]; mov.b32 r0, {h1, h1};", 0x017f017f},
		{"ld.global.s32 x1, [m+4]; shr.u64 x1, x1, 32; cvt.u32.u64 r0, x1;", 0xffffffff},
		{"ld.global.u32 x1, [m+4]; shr.u64 x1, x1, 32; cvt.u32.u64 r0, x1;", 0},
		{"ld.global.u64 x1, [m]; shr.u64 x1, x1, 56; cvt.u32.u64 r0, x1;", 0x85},
		{"add.u64 x1, m, 9; ld.global.u8 r0, [x1+-2];", 0x85},
		{"ld.global.v4.u8 {r1, r2, r3, r0}, [m];", 1},
		{"ld.global.v2.s16 {_, r0}, [m+4];", 0xffff8504},
		{"ld.volatile.global.u32 r0, [m];", 0x017fff80},
		{"ld.acquire.gpu.u32 r0, [m];", 0x017fff80},
		{"ld.global.nc.L1::no_allocate.u32 r0, [m];", 0x017fff80},
		{"ldu.global.u32 r0, [m+4];", 0x85040302},
		{"ld.global.cg.u32 r0, [m+4];", 0x85040302},
	};
	for (size_t k = 0; k < COUNT(table); k++) {
		uint32_t r = one(table[k].body);
		if (r != table[k].want)
			fprintf(stderr, "%s\n", table[k].body);
		IS(r, table[k].want);
	}
}

static void test_stores(void)
{
	static const struct {
		const char *body;
		uint8_t bytes[16];
	} table[] = {
		{"mov.u32 r1, 0x12345678; st.global.u8 [m+1], r1;", {0, 0x78}},
		{"mov.u32 r1, 0x12345678; st.global.u16 [m+2], r1;", {0, 0, 0x78, 0x56}},
		{"mov.u64 x1, 0x1122334455667788; st.global.u32 [m], x1;",
			{0x88, 0x77, 0x66, 0x55}},
		{"st.global.v4.u8 [m+4], {1, 2, 3, 4};", {0, 0, 0, 0, 1, 2, 3, 4}},
		{"st.global.v2.u64 [m], {1, 2};", {1, 0, 0, 0, 0, 0, 0, 0, 2}},
		{"st.global.f32 [m], 1.0;", {0, 0, 0x80, 0x3f}},
		{"st.global.b8 [m], -1;", {0xff}},
		{"st.relaxed.sys.global.u32 [m+12], 5; st.release.gpu.u32 [m+8], 6;",
			{0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 5}},
	};
	for (size_t k = 0; k < COUNT(table); k++) {
		unit_clear();
		one(table[k].body);
		IS(memcmp(unit_memory, table[k].bytes, 16), 0);
	}
	/* 256 bits at once. */
	unit_clear();
	uint32_t r;
	const char *text =
		".version 8.8\n.target sm_100\n.address_size 64\n.visible .entry k(.param .u64 a) { .reg .b64 m, x<5>; "
		"ld.param.u64 m, [a]; st.global.v4.b64 [m], {1, 2, 3, 4};\n"
		"ld.global.v4.b64 {x1, x2, x3, x4}, [m]; add.u64 x4, x4, x1; st.global.u64 [m+64], x4; ret; }\n";
	struct ckt_ptx_module *module = unit_load(&text, 1, NULL);
	MUST(module != NULL, 1);
	struct unit_launch u = {
		.kernel = "k", .grid = 1, .block = 1, .args = {(uint64_t)(uintptr_t)unit_memory}};
	IS(unit_run(module, &u), CKT_PTX_FAULT_NONE);
	r = unit_memory[16];
	IS(r, 5);
	ckt_ptx_module_destroy(module);
}

static void test_faults(void)
{
	static const struct {
		const char *body;
		enum ckt_ptx_fault fault;
	} table[] = {
		{"ld.global.u32 r0, [m+65536];", CKT_PTX_FAULT_ILLEGAL_ADDRESS},
		{"st.global.u32 [m+65536], 1;", CKT_PTX_FAULT_ILLEGAL_ADDRESS},
		{"ld.global.u32 r0, [m+65533];", CKT_PTX_FAULT_MISALIGNED_ADDRESS},
		{"ld.global.u16 r0, [m+1];", CKT_PTX_FAULT_MISALIGNED_ADDRESS},
		{"ld.global.v2.u32 {r0, r1}, [m+4];", CKT_PTX_FAULT_MISALIGNED_ADDRESS},
		{"ld.global.v2.u32 {r0, r1}, [m+65536];", CKT_PTX_FAULT_ILLEGAL_ADDRESS},
		{"mov.u64 x1, 0; ld.global.u8 r0, [x1];", CKT_PTX_FAULT_ILLEGAL_ADDRESS},
		{"mov.u64 x1, -8; ld.u64 x2, [x1];", CKT_PTX_FAULT_ILLEGAL_ADDRESS},
		{".shared .b8 s[16]; mov.u64 x1, s; ld.shared.u32 r0, [x1+4096];",
			CKT_PTX_FAULT_ILLEGAL_ADDRESS},
		{".shared .b8 s[16]; ld.shared.u32 r0, [s+2];", CKT_PTX_FAULT_MISALIGNED_ADDRESS},
		{".local .b8 l[16]; mov.u64 x1, l; ld.local.u32 r0, [x1+1000000];",
			CKT_PTX_FAULT_ILLEGAL_ADDRESS},
		{".local .b8 l[16]; ld.local.u32 r0, [l+1];", CKT_PTX_FAULT_MISALIGNED_ADDRESS},
	};
	for (size_t k = 0; k < COUNT(table); k++) {
		uint32_t r;
		enum ckt_ptx_fault fault = unit_threads("", table[k].body, 1, 1, &r);
		if (fault != table[k].fault)
			fprintf(stderr, "%s: %d %s\n", table[k].body, (int)fault, unit_message);
		IS(fault, table[k].fault);
		HAS(unit_message, "PTX line");
	}
	/* Of many lanes the bad one is named, and a lane that its guard keeps out is none. */
	uint32_t out[32];
	IS(unit_threads("", "setp.eq.u32 p1, t, 20; @p1 mov.u64 m, 8; ld.global.u32 r0, [m];", 1,
		   32, out),
		CKT_PTX_FAULT_ILLEGAL_ADDRESS);
	HAS(unit_message, "thread (20,0,0)");
	IS(unit_threads("", "setp.eq.u32 p1, t, 20; @p1 mov.u64 m, 8; @!p1 ld.global.u32 r0, [m];",
		   1, 32, out),
		CKT_PTX_FAULT_NONE);
}

static void test_refused(void)
{
	REFUSED_BODY("ld.global.u32 r1, x1;", "address expected");
	REFUSED_BODY("ld.global.v2.u32 r1, [x1];", "");
	REFUSED_BODY("ld.global.v2.u32 {r1, r2, r3}, [x1];", "");
	REFUSED_BODY("ld.global.u64 r1, [x1];", "");
	REFUSED_BODY("ld.global.v8.u64 {x1,x1,x1,x1,x1,x1,x1,x1}, [x1];", "");
	REFUSED_BODY("st.const.u32 [x1], r1;", "");
	REFUSED_BODY("ld.global.u32 r1, [p2];", "");
	REFUSED_BODY("ld.global.pred p1, [x1];", "");
}

UNIT_SUITE(softgpu / ptx / execution / op_mem, {"widths", test_widths}, {"stores", test_stores},
	{"faults", test_faults}, {"refused", test_refused})
