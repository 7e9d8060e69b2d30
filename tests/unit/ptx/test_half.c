/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/execution/half.c: the narrow formats, every bit pattern there and back, ties,
 * overflow, all roundings.
 */
#include <math.h>

#include "harness.h"
#include "softgpu/ptx/execution/op.h"

static void test_round_trip(void)
{
	unsigned wrong = 0;
	for (unsigned v = 0; v < 0x10000; v++) {
		float h = ckt_ptx_half_to_float((uint16_t)v),
		      b = ckt_ptx_bf16_to_float((uint16_t)v);
		for (int rounding = ROUND_RN; rounding <= ROUND_RP; rounding++) {
			wrong += isnan(h) ? ckt_ptx_half_from_double((double)h, rounding) != 0x7fff
					  : ckt_ptx_half_from_double((double)h, rounding) != v;
			wrong += isnan(b) ? ckt_ptx_bf16_from_double((double)b, rounding) != 0x7fff
					  : ckt_ptx_bf16_from_double((double)b, rounding) != v;
		}
	}
	IS(wrong, 0);
	for (unsigned v = 0; v < 0x100; v++) {
		float e4 = ckt_ptx_e4m3_to_float((uint8_t)v),
		      e5 = ckt_ptx_e5m2_to_float((uint8_t)v);
		wrong += isnan(e4) != ((v & 0x7f) == 0x7f) ||
			(!isnan(e4) && ckt_ptx_e4m3_from_double((double)e4) != v);
		/* An infinity becomes the largest finite number. */
		wrong += isnan(e5) != ((v & 0x7f) > 0x7c) ||
			(!isnan(e5) &&
				ckt_ptx_e5m2_from_double((double)e5) != (isinf(e5) ? v - 1 : v));
	}
	IS(wrong, 0);
}

static void test_values(void)
{
	static const struct {
		uint16_t bits;
		float half, bf16;
	} table[] = {
		{0x3c00, 1.0f, 0x1p-7f},
		{0x0001, 0x1p-24f, 0x1p-133f},
		{0x03ff, 1023 * 0x1p-24f, 0},
		{0x7bff, 65504, 0},
		{0x7c00, INFINITY, 0},
		{0x3f80, 0, 1.0f},
		{0xc000, -2, -2},
	};
	for (size_t k = 0; k < COUNT(table); k++) {
		if (table[k].half != 0)
			YES(ckt_ptx_half_to_float(table[k].bits) == table[k].half);
		if (table[k].bf16 != 0)
			YES(ckt_ptx_bf16_to_float(table[k].bits) == table[k].bf16);
	}
	YES(ckt_ptx_e4m3_to_float(0x38) == 1 && ckt_ptx_e4m3_to_float(0x7e) == 448 &&
		ckt_ptx_e4m3_to_float(0x01) == 0x1p-9f && ckt_ptx_e4m3_to_float(0x80) == 0);
	YES(ckt_ptx_e5m2_to_float(0x3c) == 1 && ckt_ptx_e5m2_to_float(0x7b) == 57344 &&
		ckt_ptx_e5m2_to_float(0x01) == 0x1p-16f);
	YES(signbit(ckt_ptx_half_to_float(0x8000)) && signbit(ckt_ptx_e4m3_to_float(0x80)));
}

/* Between 1 and the next, in the middle and beside it; below the least; above the greatest. */
static void test_rounding(void)
{
	/* nearest even, to zero, down, up, nearest away */
	static const struct {
		double v;
		uint16_t want[5];
	} half[] = {
		{1 + 0x1p-11, {0x3c00, 0x3c00, 0x3c00, 0x3c01, 0x3c01}},
		{1 + 0x1p-11 + 0x1p-40, {0x3c01, 0x3c00, 0x3c00, 0x3c01, 0x3c01}},
		{1 + 0x3p-11, {0x3c02, 0x3c01, 0x3c01, 0x3c02, 0x3c02}},
		{-1 - 0x1p-11, {0xbc00, 0xbc00, 0xbc01, 0xbc00, 0xbc01}},
		{0x1p-25, {0x0000, 0x0000, 0x0000, 0x0001, 0x0001}},
		{0x1p-25 + 0x1p-60, {0x0001, 0x0000, 0x0000, 0x0001, 0x0001}},
		{-0x1p-1000, {0x8000, 0x8000, 0x8001, 0x8000, 0x8000}},
		{65519.99, {0x7bff, 0x7bff, 0x7bff, 0x7c00, 0x7bff}},
		{65520, {0x7c00, 0x7bff, 0x7bff, 0x7c00, 0x7c00}},
		{-1e300, {0xfc00, 0xfbff, 0xfc00, 0xfbff, 0xfc00}},
		{-0.0, {0x8000, 0x8000, 0x8000, 0x8000, 0x8000}},
		{0x1p-14 - 0x1p-26, {0x0400, 0x03ff, 0x03ff, 0x0400, 0x0400}},
		{INFINITY, {0x7c00, 0x7c00, 0x7c00, 0x7c00, 0x7c00}},
		{NAN, {0x7fff, 0x7fff, 0x7fff, 0x7fff, 0x7fff}},
	};
	for (size_t k = 0; k < COUNT(half); k++)
		for (int rounding = ROUND_RN; rounding <= ROUND_RNA; rounding++)
			IS(ckt_ptx_half_from_double(half[k].v, rounding), half[k].want[rounding]);
	static const struct {
		double v;
		uint16_t nearest, down;
	} bf16[] = {
		{1 + 0x1p-8, 0x3f80, 0x3f80},
		{1 + 0x3p-8, 0x3f82, 0x3f81},
		{0x1.ffp127, 0x7f80, 0x7f7f},
		{0x1p-134, 0x0000, 0x0000},
		{0x1.8p-133, 0x0002, 0x0001},
		{-1 - 0x1p-8, 0xbf80, 0xbf81},
	};
	for (size_t k = 0; k < COUNT(bf16); k++) {
		IS(ckt_ptx_bf16_from_double(bf16[k].v, ROUND_RN), bf16[k].nearest);
		IS(ckt_ptx_bf16_from_double(bf16[k].v, ROUND_RM), bf16[k].down);
	}
	static const struct {
		double v;
		uint8_t e4m3, e5m2;
	} small[] = {
		{464, 0x7e, 0x5f},
		{480, 0x7e, 0x60},
		{1e9, 0x7e, 0x7b},
		{-1e9, 0xfe, 0xfb},
		{1.0625, 0x38, 0x3c},
		{1.1875, 0x3a, 0x3d},
		{0x1p-10, 0x00, 0x14},
		{0x1.8p-10, 0x01, 0x16},
		{0x1p-17, 0x00, 0x00},
		{0x1.8p-17, 0x00, 0x01},
		{NAN, 0x7f, 0x7f},
		{-0.0, 0x80, 0x80},
		{INFINITY, 0x7e, 0x7b},
	};
	for (size_t k = 0; k < COUNT(small); k++) {
		IS(ckt_ptx_e4m3_from_double(small[k].v), small[k].e4m3);
		IS(ckt_ptx_e5m2_from_double(small[k].v), small[k].e5m2);
	}
}

UNIT_SUITE(softgpu / ptx / execution / half, {"round trip", test_round_trip},
	{"values", test_values}, {"rounding", test_rounding})
