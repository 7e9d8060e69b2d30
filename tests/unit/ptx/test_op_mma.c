/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/execution/op_mma.c: products against three loops.  The fragments are laid out here by
 * the ISA's figures, element by element: lane l has the rows l / 4 and, behind 16 rows, l / 4 + 8.
 */
#include <math.h>

#include "harness.h"
#include "softgpu/ptx/execution/op.h"

enum { A = 0, B = 1024, C = 2048, D = 4096 }; /* words of unit_memory */
static uint32_t out[32];

/* Registers of the operands come from memory, lane by lane; the result goes behind them. */
static void run(const char *instruction, const char *type, unsigned na, unsigned nb, unsigned nc)
{
	char body[2048], *at = body, list[4][64];
	unsigned counts[4] = {na, nb, nc, nc}, bytes = !strcmp(type, "f64") ? 8 : 4,
		 places[4] = {A, B, C, D};
	char kind = bytes == 8 ? 'x' : 'r';
	at += sprintf(at, "mul.wide.u32 x14, t, 64; add.u64 x14, x14, m;\n");
	for (unsigned o = 0; o < 4; o++) {
		char *l = list[o] + sprintf(list[o], "{");
		for (unsigned k = 0; k < counts[o]; k++) {
			l += sprintf(
				l, "%s%c%u", k ? ", " : "", kind, (bytes == 8 ? 3 : 8) * o + k);
			if (o < 3)
				at += sprintf(at, "ld.global.b%u %c%u, [x14+%u];\n", bytes * 8,
					kind, (bytes == 8 ? 3 : 8) * o + k,
					4 * places[o] + k * bytes);
		}
		sprintf(l, "}");
	}
	at += sprintf(at, "%s %s, %s, %s, %s;\n", instruction, list[3], list[0], list[1], list[2]);
	for (unsigned k = 0; k < nc; k++)
		at += sprintf(at, "st.global.b%u [x14+%u], %c%u;\n", bytes * 8, 4 * D + k * bytes,
			kind, (bytes == 8 ? 9 : 24) + k);
	enum ckt_ptx_fault fault = unit_threads("", body, 1, 32, out);
	if (fault)
		fprintf(stderr, "%s: %s\n", instruction, unit_message);
	IS(fault, CKT_PTX_FAULT_NONE);
}

static uint8_t *lane(unsigned place, unsigned l)
{
	return (uint8_t *)(unit_memory + place + 16 * l);
}

static int a_of(unsigned row, unsigned k)
{
	return (int)(row * 3 + k * 5) % 7 - 3;
}
static int b_of(unsigned k, unsigned n)
{
	return (int)(k * 2 + n * 7) % 5 - 2;
}
static int c_of(unsigned row, unsigned n)
{
	return (int)(row + n) * 10;
}
static int product(unsigned row, unsigned n, unsigned depth)
{
	int sum = c_of(row, n);
	for (unsigned k = 0; k < depth; k++)
		sum += a_of(row, k) * b_of(k, n);
	return sum;
}

static void test_half(void)
{
	unit_clear();
	for (unsigned l = 0; l < 32; l++) {
		uint16_t *a = (uint16_t *)lane(A, l), *b = (uint16_t *)lane(B, l);
		float *c = (float *)lane(C, l);
		for (unsigned i = 0; i < 8; i++)
			a[i] = ckt_ptx_half_from_double(
				a_of(l / 4 + (i / 2 % 2 ? 8 : 0),
					l % 4 * 2 + i % 2 + (i / 4 ? 8 : 0)),
				ROUND_RN);
		for (unsigned i = 0; i < 4; i++) {
			b[i] = ckt_ptx_half_from_double(
				b_of(l % 4 * 2 + i % 2 + (i / 2 ? 8 : 0), l / 4), ROUND_RN);
			c[i] = (float)c_of(l / 4 + (i / 2 ? 8 : 0), l % 4 * 2 + i % 2);
		}
	}
	run("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "f32", 4, 2, 4);
	unsigned wrong = 0;
	for (unsigned l = 0; l < 32; l++)
		for (unsigned i = 0; i < 4; i++)
			wrong += ((float *)lane(D, l))[i] !=
				(float)product(l / 4 + (i / 2 ? 8 : 0), l % 4 * 2 + i % 2, 16);
	IS(wrong, 0);
	/* Infinity times zero, and what is too large for the sum. */
	((uint16_t *)lane(A, 0))[0] = 0x7c00;
	for (unsigned l = 0; l < 32; l++)
		((uint16_t *)lane(B, l))[0] = l < 4 ? 0 : 0x3c00;
	run("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "f32", 4, 2, 4);
	YES(isnan(((float *)lane(D, 0))[0]) && isinf(((float *)lane(D, 0))[1]) &&
		isfinite(((float *)lane(D, 4))[0]));
}

static void test_integers(void)
{
	unit_clear();
	for (unsigned l = 0; l < 32; l++) {
		int8_t *a = (int8_t *)lane(A, l), *b = (int8_t *)lane(B, l);
		int32_t *c = (int32_t *)lane(C, l);
		for (unsigned i = 0; i < 16; i++)
			a[i] = (int8_t)a_of(
				l / 4 + (i / 4 % 2 ? 8 : 0), l % 4 * 4 + i % 4 + (i / 8 ? 16 : 0));
		for (unsigned i = 0; i < 8; i++)
			b[i] = (int8_t)b_of(l % 4 * 4 + i % 4 + (i / 4 ? 16 : 0), l / 4);
		for (unsigned i = 0; i < 4; i++)
			c[i] = c_of(l / 4 + (i / 2 ? 8 : 0), l % 4 * 2 + i % 2);
	}
	run("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "s32", 4, 2, 4);
	unsigned wrong = 0;
	for (unsigned l = 0; l < 32; l++)
		for (unsigned i = 0; i < 4; i++)
			wrong += ((int32_t *)lane(D, l))[i] !=
				product(l / 4 + (i / 2 ? 8 : 0), l % 4 * 2 + i % 2, 32);
	IS(wrong, 0);
	/* All 255 times 255 of 32, on top of nearly the greatest: it wraps, or stays there. */
	for (unsigned l = 0; l < 32; l++) {
		memset(lane(A, l), 255, 16);
		memset(lane(B, l), 255, 8);
		for (unsigned i = 0; i < 4; i++)
			((int32_t *)lane(C, l))[i] = INT32_MAX - 1;
	}
	run("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32", "s32", 4, 2, 4);
	IS(((int32_t *)lane(D, 7))[2], (int32_t)((uint32_t)INT32_MAX - 1 + 32 * 255 * 255));
	run("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.u8.u8.s32", "s32", 4, 2, 4);
	IS(((int32_t *)lane(D, 7))[2], INT32_MAX);
	run("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32", "s32", 4, 2, 4);
	IS(((int32_t *)lane(D, 7))[2], INT32_MAX - 1 - 32 * 255); /* -1 times 255 */
}

static void test_double(void)
{
	unit_clear();
	for (unsigned l = 0; l < 32; l++) {
		((double *)lane(A, l))[0] = a_of(l / 4, l % 4) + 0.125;
		((double *)lane(B, l))[0] = b_of(l % 4, l / 4);
		for (unsigned i = 0; i < 2; i++)
			((double *)lane(C, l))[i] = c_of(l / 4, l % 4 * 2 + i);
	}
	run("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "f64", 1, 1, 2);
	unsigned wrong = 0;
	for (unsigned l = 0; l < 32; l++)
		for (unsigned i = 0; i < 2; i++) {
			double sum = c_of(l / 4, l % 4 * 2 + i);
			for (unsigned k = 0; k < 4; k++)
				sum = fma(a_of(l / 4, k) + 0.125, b_of(k, l % 4 * 2 + i), sum);
			wrong += ((double *)lane(D, l))[i] != sum;
		}
	IS(wrong, 0);
}

static void test_refused(void)
{
	REFUSED_BODY(
		"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {r1,r2,r3,r4}, {r1,r2,r3}, {r1,r2}, {r1,r2,r3,r4};",
		"wrong number of registers");
	REFUSED_BODY(
		"mma.sync.aligned.m16n8k99.row.col.f32.f16.f16.f32 {r1,r2,r3,r4}, {r1,r2,r3,r4}, {r1,r2}, {r1,r2,r3,r4};",
		"");
	REFUSED_BODY(
		"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16 {r1,r2,r3,r4}, {r1,r2,r3,r4}, {r1,r2}, {r1,r2,r3,r4};",
		"");
	REFUSED_BODY(
		"mma.sync.aligned.m16n8k16.col.col.f32.f16.f16.f32 {r1,r2,r3,r4}, {r1,r2,r3,r4}, {r1,r2}, {r1,r2,r3,r4};",
		"");
}

UNIT_SUITE(softgpu / ptx / execution / op_mma, {"half", test_half}, {"integers", test_integers},
	{"double", test_double}, {"refused", test_refused})
