/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/execution/op_atom.c: each operation's old and new value with corners: wrap, signs,
 * NaN, signed zeros, subnormals, pairs, 128 bits.
 */
#include "harness.h"

struct row {
	uint64_t old, v, want;
};

/*
 * One operation on memory that holds old: the old value must come back and `want` must lie there.
 */
static void check(
	const char *op, char reg, const struct row *rows, size_t n, const char *file, unsigned line)
{
	unsigned bytes = reg == 'x' ? 8 : reg == 'h' ? 2 : 4;
	for (size_t k = 0; k < n; k++) {
		char body[512];
		uint32_t r = 0x77;
		unit_clear();
		memcpy(unit_memory, &rows[k].old, bytes);
		if (reg == 'x')
			snprintf(body, sizeof body,
				"mov.b64 x1, 0x%llx; %s x2, [m], x1; mov.b64 x3, 0x%llx; setp.eq.b64 p1, x2, x3; "
				"selp.u32 r0, 1, 0, p1;",
				(unsigned long long)rows[k].v, op, (unsigned long long)rows[k].old);
		else if (reg == 'h')
			snprintf(body, sizeof body,
				"mov.b16 h1, 0x%llx; %s h2, [m], h1; mov.b16 h3, 0x%llx; setp.eq.b16 p1, h2, h3; "
				"selp.u32 r0, 1, 0, p1;",
				(unsigned long long)rows[k].v, op, (unsigned long long)rows[k].old);
		else
			snprintf(body, sizeof body,
				"mov.b32 r1, 0x%llx; %s r2, [m], r1; setp.eq.b32 p1, r2, 0x%llx; "
				"selp.u32 r0, 1, 0, p1;",
				(unsigned long long)rows[k].v, op, (unsigned long long)rows[k].old);
		bool good = unit_threads("", body, 1, 1, &r) == CKT_PTX_FAULT_NONE && r == 1;
		uint64_t now = 0;
		memcpy(&now, unit_memory, bytes);
		good = good && now == rows[k].want && unit_memory[bytes == 8 ? 2 : 1] == 0;
		if (!good)
			fprintf(stderr, "%s of %llx and %llx: %llx\n", op,
				(unsigned long long)rows[k].old, (unsigned long long)rows[k].v,
				(unsigned long long)now);
		CU_assertImplementation(good, line, op, file, "", false);
	}
}
#define CHECK(op, reg, ...)                                                              \
	do {                                                                             \
		static const struct row rows_[] = {__VA_ARGS__};                         \
		check(op, reg, rows_, sizeof rows_ / sizeof *rows_, __FILE__, __LINE__); \
	} while (0)

static void test_integers(void)
{
	CHECK("atom.global.add.u32", 'r', {0xffffffff, 1, 0}, {5, 0xffffffff, 4});
	CHECK("atom.global.add.u64", 'x', {0xffffffff, 1, 0x100000000}, {~0ull, 1, 0});
	CHECK("atom.global.min.s32", 'r', {0, 0xffffffff, 0xffffffff},
		{0x80000000, 0x7fffffff, 0x80000000});
	CHECK("atom.global.min.u32", 'r', {0, 0xffffffff, 0}, {0x80000000, 0x7fffffff, 0x7fffffff});
	CHECK("atom.global.max.s64", 'x', {1ull << 63, 0, 0}, {1, ~0ull, 1});
	CHECK("atom.global.max.u64", 'x', {1ull << 63, 0, 1ull << 63}, {1, ~0ull, ~0ull});
	CHECK("atom.global.inc.u32", 'r', {4, 5, 5}, {5, 5, 0}, {6, 5, 0}, {0, 0, 0},
		{0xffffffff, 0xffffffff, 0});
	CHECK("atom.global.dec.u32", 'r', {5, 5, 4}, {0, 5, 5}, {6, 5, 5}, {0, 0, 0}, {1, 5, 0});
	CHECK("atom.global.and.b32", 'r', {0xf0f0, 0xff00, 0xf000});
	CHECK("atom.global.or.b64", 'x', {1, 1ull << 63, 1ull << 63 | 1});
	CHECK("atom.global.xor.b32", 'r', {0xffffffff, 0xffffffff, 0});
	CHECK("atom.global.exch.b32", 'r', {1, 2, 2});
	CHECK("atom.global.exch.b64", 'x', {1, 1ull << 50, 1ull << 50});
	CHECK("atom.relaxed.gpu.global.add.u32", 'r', {1, 2, 3});
	CHECK("atom.acq_rel.sys.add.u32", 'r', {1, 2, 3});
}

static void test_floats(void)
{
	/* The memory adds f32 itself: it flushes subnormals, and its NaN is one only. */
	CHECK("atom.global.add.f32", 'r', {0x3f800000, 0x40000000, 0x40400000}, {1, 1, 0},
		{0x80000001, 0, 0}, {0x7fc12345, 0, 0x7fffffff},
		{0x7f800000, 0xff800000, 0x7fffffff}, {0x80000000, 0x80000000, 0x80000000});
	CHECK("atom.global.add.f64", 'x',
		{0x3ff0000000000000, 0x4000000000000000, 0x4008000000000000}, {1, 1, 2});
	CHECK("atom.global.add.noftz.f16", 'h', {0x3c00, 0x4000, 0x4200}, {1, 1, 2},
		{0x7bff, 0x7bff, 0x7c00}, {0x7e01, 0, 0x7fff});
	CHECK("atom.global.add.noftz.bf16", 'h', {0x3f80, 0x4000, 0x4040},
		{0x7f7f, 0x7f7f, 0x7f80});
	CHECK("atom.global.add.noftz.f16x2", 'r', {0x3c004000, 0x40003c00, 0x42004200},
		{0x7bff0001, 0x7bff0001, 0x7c000002});
	CHECK("atom.global.add.noftz.bf16x2", 'r', {0x3f804000, 0x40003f80, 0x40404040});
}

static void test_cas(void)
{
	uint32_t r;
	unit_clear();
	unit_memory[0] = 5;
	IS(unit_threads("",
		   "atom.global.cas.b32 r1, [m], 5, 9; atom.global.cas.b32 r2, [m], 5, 11; shl.b32 r2, r2, 8; "
		   "or.b32 r0, r1, r2;",
		   1, 1, &r),
		CKT_PTX_FAULT_NONE);
	IS(r, 0x905);
	IS(unit_memory[0], 9);
	unit_clear();
	IS(unit_threads("",
		   "mov.b64 x1, 0; mov.b64 x2, 0x100000002; atom.global.cas.b64 x3, [m], x1, x2; "
		   "atom.global.cas.b64 x4, [m], x1, x1; sub.u64 x4, x4, x2; cvt.u32.u64 r0, x4;",
		   1, 1, &r),
		CKT_PTX_FAULT_NONE);
	YES(r == 0 && unit_memory[0] == 2 && unit_memory[1] == 1);
	unit_clear();
	IS(unit_threads("",
		   "mov.b16 h1, 0; mov.b16 h2, 7; atom.global.cas.b16 h3, [m+2], h1, h2; mov.b32 r0, {h3, h3};",
		   1, 1, &r),
		CKT_PTX_FAULT_NONE);
	YES(r == 0 && unit_memory[0] == 7 << 16);
	unit_clear();
	IS(unit_threads("",
		   ".reg .b128 q<4>; mov.b64 x1, 0; mov.b64 x2, 3; mov.b128 q1, {x1, x1}; mov.b128 q2, {x2, x1}; "
		   "atom.global.cas.b128 q3, [m], q1, q2; mov.b128 q1, {x1, x2};\n"
		   "atom.global.exch.b128 q3, [m], q1; mov.b128 {x3, x4}, q3; cvt.u32.u64 r0, x3;",
		   1, 1, &r),
		CKT_PTX_FAULT_NONE);
	YES(r == 3 && unit_memory[0] == 0 && unit_memory[2] == 3);
}

/* No addition is lost, between lanes, warps and blocks, in global and in shared memory. */
static void test_many(void)
{
	static uint32_t out[512];
	unit_clear();
	IS(unit_threads(".shared .u32 s;\n",
		   "setp.ne.u32 p1, tt, 0; @p1 bra S; st.shared.u32 [s], 0; S: bar.sync 0; "
		   "red.global.add.u32 [m], 1; red.shared.add.u32 [s], 1; red.global.max.u32 [m+4], t; red.global.add.f32 [m+8], 1.0; "
		   "bar.sync 0; ld.shared.u32 r0, [s];",
		   4, 128, out),
		CKT_PTX_FAULT_NONE);
	unsigned wrong = 0;
	for (unsigned t = 0; t < 512; t++)
		wrong += out[t] != 128;
	IS(wrong, 0);
	float sum;
	memcpy(&sum, &unit_memory[2], 4);
	YES(unit_memory[0] == 512 && unit_memory[1] == 511 && sum == 512);
	/* Lanes of one warp each see another old value. */
	unit_clear();
	IS(unit_threads("", "atom.global.add.u32 r0, [m], 1;", 1, 32, out), CKT_PTX_FAULT_NONE);
	uint32_t seen = 0;
	for (unsigned t = 0; t < 32; t++)
		seen |= 1u << out[t];
	IS(seen, 0xffffffff);
}

static void test_refused(void)
{
	uint32_t r;
	IS(unit_threads("", "atom.global.add.u32 r0, [m+2], 1;", 1, 1, &r),
		CKT_PTX_FAULT_MISALIGNED_ADDRESS);
	IS(unit_threads("", "mov.u64 x1, 64; red.global.add.u32 [x1], 1;", 1, 1, &r),
		CKT_PTX_FAULT_ILLEGAL_ADDRESS);
	REFUSED_BODY("atom.global.add.b32 r1, [x1], r2;", "");
	REFUSED_BODY("atom.global.inc.s32 r1, [x1], r2;", "");
	REFUSED_BODY("atom.global.and.f32 r1, [x1], r2;", "");
	REFUSED_BODY("atom.global.cas.b32 r1, [x1], r2;", "wrong number of operands");
	REFUSED_BODY("red.global.exch.b32 [x1], r2;", "");
	REFUSED_BODY("atom.global.u32 r1, [x1], r2;", "");
}

UNIT_SUITE(softgpu / ptx / execution / op_atom, {"integers", test_integers},
	{"floats", test_floats}, {"cas", test_cas}, {"many", test_many}, {"refused", test_refused})
