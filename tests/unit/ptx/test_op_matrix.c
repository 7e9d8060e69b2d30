/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/execution/op_matrix.c: matrices of 8 by 8 from shared memory to registers and back,
 * transposed; wmma from memory to memory.
 */
#include "harness.h"
#include "softgpu/ptx/execution/op.h"

static uint32_t out[32];

static void run(const char *scope, const char *body)
{
	enum ckt_ptx_fault fault = unit_threads(scope, body, 1, 32, out);
	if (fault)
		fprintf(stderr, "%s\n", unit_message);
	IS(fault, CKT_PTX_FAULT_NONE);
}

/*
 * Shared memory holds 4 matrices; element (n, row, column) is 100 n + 10 row + column, two to a
 * word; lane 8 n + row names the rows.
 */
#define SHARED ".shared .align 16 .b16 s[256];\n"
static const char fill[] =
	"mov.u32 r20, s; mov.u32 r21, 0; F: shl.b32 r22, t, 3; add.u32 r22, r22, r21; shr.u32 r23, r22, 6; mul.lo.u32 r24, r23, 100;\n"
	"shr.u32 r23, r22, 3; and.b32 r23, r23, 7; mad.lo.u32 r24, r23, 10, r24; and.b32 r23, r22, 7; add.u32 r24, r24, r23;\n"
	"shl.b32 r22, r22, 1; add.u32 r22, r22, r20; st.shared.u16 [r22], r24; add.u32 r21, r21, 1; setp.lt.u32 p7, r21, 8; @p7 bra F;\n"
	"bar.sync 0; shl.b32 r22, t, 4; add.u32 r20, r20, r22;\n";

/* The matrices, and then the body. */
static void run_filled(const char *body)
{
	char whole[4096];
	snprintf(whole, sizeof whole, "%s%s", fill, body);
	run(SHARED, whole);
}

static uint32_t pair(
	unsigned n, unsigned row, unsigned column, unsigned next_row, unsigned next_column)
{
	return (100 * n + 10 * row + column) | (100 * n + 10 * next_row + next_column) << 16;
}

static void test_load(void)
{
	static const struct {
		const char *load;
		unsigned n;
		bool transposed;
	} table[] = {
		{"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {r0}, [r20];", 0, false},
		{"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {r1, r0}, [r20];", 1, false},
		{"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {r1, r2, r0, r3}, [r20];", 2, false},
		{"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {r1, r2, r3, r0}, [r20];", 3, false},
		{"ldmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 {r1, r0}, [r20];", 1, true},
	};
	for (size_t k = 0; k < COUNT(table); k++) {
		unsigned wrong = 0;
		run_filled(table[k].load);
		for (unsigned l = 0; l < 32; l++) {
			unsigned row = l / 4, column = l % 4 * 2;
			wrong += out[l] !=
				(table[k].transposed
						? pair(table[k].n, column, row, column + 1, row)
						: pair(table[k].n, row, column, row, column + 1));
		}
		IS(wrong, 0);
	}
	IS(unit_threads(SHARED,
		   "mov.u32 r1, s; add.u32 r1, r1, 8; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {r0}, [r1];",
		   1, 32, out),
		CKT_PTX_FAULT_MISALIGNED_ADDRESS);
}

static void test_store_move(void)
{
	/* Out of registers into memory, and what lane t finds in word t of it. */
	run_filled(
		"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {r0}, [r20]; bar.sync 0; add.u32 r1, r0, 0x10001; "
		"stmatrix.sync.aligned.m8n8.x1.shared.b16 [r20], {r1}; bar.sync 0; mov.u32 r3, s; shl.b32 r2, t, 2; add.u32 r3, r3, r2; "
		"ld.shared.u32 r0, [r3];");
	unsigned wrong = 0;
	for (unsigned l = 0; l < 32; l++)
		wrong += out[l] != pair(0, l / 4, l % 4 * 2, l / 4, l % 4 * 2 + 1) + 0x10001;
	IS(wrong, 0);
	run_filled(
		"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {r0}, [r20]; bar.sync 0; "
		"stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [r20], {r0}; bar.sync 0; mov.u32 r3, s; shl.b32 r2, t, 2; "
		"add.u32 r3, r3, r2; ld.shared.u32 r0, [r3];");
	for (unsigned l = 0; l < 32; l++)
		wrong += out[l] != pair(0, l % 4 * 2, l / 4, l % 4 * 2 + 1, l / 4);
	IS(wrong, 0);
	run_filled(
		"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {r1}, [r20]; movmatrix.sync.aligned.m8n8.trans.b16 r0, r1;");
	for (unsigned l = 0; l < 32; l++)
		wrong += out[l] != pair(0, l % 4 * 2, l / 4, l % 4 * 2 + 1, l / 4);
	IS(wrong, 0);
}

/* D = A B + C of 16 by 16, in rows and in columns, with a stride that is larger than a row. */
static void test_wmma(void)
{
	enum { STRIDE = 24 };
	uint16_t *a = (uint16_t *)unit_memory, *b = a + 1024;
	unit_clear();
	a = (uint16_t *)unit_memory;
	b = a + 1024;
	float *c = (float *)(unit_memory + 1024), *d = (float *)(unit_memory + 2048);
	for (unsigned r = 0; r < 16; r++)
		for (unsigned k = 0; k < 16; k++) {
			a[r * STRIDE + k] = ckt_ptx_half_from_double((r + k) % 5, ROUND_RN);
			/* column k begins at k * STRIDE */
			b[k * STRIDE + r] = ckt_ptx_half_from_double((2 * r + k) % 3, ROUND_RN);
			c[r * STRIDE + k] = (float)(r * 100 + k);
		}
	run("",
		"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {r1,r2,r3,r4,r5,r6,r7,r8}, [m], 24; add.u64 x1, m, 2048; "
		"wmma.load.b.sync.aligned.col.m16n16k16.global.f16 {r9,r10,r11,r12,r13,r14,r15,r16}, [x1], 24;\n"
		"add.u64 x2, m, 4096; wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {r17,r18,r19,r20,r21,r22,r23,r24}, [x2], 24;\n"
		"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {r17,r18,r19,r20,r21,r22,r23,r24}, {r1,r2,r3,r4,r5,r6,r7,r8}, "
		"{r9,r10,r11,r12,r13,r14,r15,r16}, {r17,r18,r19,r20,r21,r22,r23,r24};\n"
		"add.u64 x3, m, 8192; wmma.store.d.sync.aligned.col.m16n16k16.global.f32 [x3], {r17,r18,r19,r20,r21,r22,r23,r24}, 24;");
	unsigned wrong = 0;
	for (unsigned r = 0; r < 16; r++)
		for (unsigned n = 0; n < 16; n++) {
			float sum = (float)(r * 100 + n);
			for (unsigned k = 0; k < 16; k++)
				sum += (float)((r + k) % 5) * (float)((2 * k + n) % 3);
			wrong += d[n * STRIDE + r] != sum;
		}
	IS(wrong, 0);
	for (unsigned n = 0; n < 15; n++)
		for (unsigned r = 16; r < STRIDE; r++)
			wrong += d[n * STRIDE + r] != 0; /* nothing beside the matrix */
	IS(wrong, 0);
}

static void test_refused(void)
{
	REFUSED_BODY("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {r1}, [r2];",
		"wrong number of registers");
	REFUSED_BODY("ldmatrix.sync.aligned.m8n8.x3.shared.b16 {r1, r2, r3}, [r2];", "");
	REFUSED_BODY("ldmatrix.sync.aligned.m8n8.x1.shared.b32 {r1}, [r2];", "");
	REFUSED_BODY("movmatrix.sync.aligned.m8n8.b16 r1, r2;", "");
	REFUSED_BODY("wmma.load.a.sync.aligned.m16n16k16.global.f16 {r1}, [x1];", "");
	REFUSED_BODY("wmma.load.x.sync.aligned.row.m16n16k16.global.f16 {r1}, [x1];", "");
}

UNIT_SUITE(softgpu / ptx / execution / op_matrix, {"load", test_load},
	{"store and move", test_store_move}, {"wmma", test_wmma}, {"refused", test_refused})
