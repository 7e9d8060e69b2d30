/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/ptx/execution/op_video.c: parts with signs and without, averages, saturation and sums. */
#include "harness.h"

static void test_parts(void)
{
	/* No carry from part to part. */
	ROWS("vadd4.u32.u32.u32 ro, ra, rb, rc;", UNIT_32, {0xff01ff7f, 0x01010101, 0, 0x00020080});
	ROWS("vadd2.u32.u32.u32 ro, ra, rb, rc;", UNIT_32, {0xffff0001, 0x00010001, 0, 0x00000002});
	ROWS("vsub4.s32.s32.s32 ro, ra, rb, rc;", UNIT_32, {0x00800180, 0x01010280, 0, 0xff7fff00});
	ROWS("vsub2.u32.u32.u32 ro, ra, rb, rc;", UNIT_32, {0x00000005, 0x00010002, 0, 0xffff0003});
	ROWS("vabsdiff4.u32.u32.u32 ro, ra, rb, rc;", UNIT_32,
		{0x00ff8001, 0xff000180, 0, 0xffff7f7f});
	ROWS("vabsdiff4.s32.s32.s32 ro, ra, rb, rc;", UNIT_32,
		{0x007f8000, 0xff807f01, 0, 0x01ffff01});
	ROWS("vmin4.s32.s32.s32 ro, ra, rb, rc;", UNIT_32, {0x80007f01, 0x7fff8002, 0, 0x80ff8001});
	ROWS("vmin4.u32.u32.u32 ro, ra, rb, rc;", UNIT_32, {0x80007f01, 0x7fff8002, 0, 0x7f007f01});
	ROWS("vmax2.s32.s32.s32 ro, ra, rb, rc;", UNIT_32, {0x80007fff, 0x7fff8000, 0, 0x7fff7fff});
	ROWS("vmax2.u32.u32.u32 ro, ra, rb, rc;", UNIT_32, {0x80007fff, 0x7fff8000, 0, 0x80008000});
}

static void test_averages(void)
{
	/* Rounded up, away from zero for negative sums. */
	ROWS("vavrg4.u32.u32.u32 ro, ra, rb, rc;", UNIT_32, {0x00010203, 0x01010203, 0, 0x01010203},
		{0xffffffff, 0xffffffff, 0, 0xffffffff}, {0xff00fe01, 0x00ff0102, 0, 0x80808002});
	ROWS("vavrg2.s32.s32.s32 ro, ra, rb, rc;", UNIT_32, {0x00010003, 0x00020004, 0, 0x00020004},
		{0xfffdffff, 0xfffeffff, 0, 0xfffdffff});
}

static void test_saturation(void)
{
	ROWS("vadd4.u32.u32.u32.sat ro, ra, rb, rc;", UNIT_32,
		{0xff010080, 0x01010080, 0, 0xff0200ff});
	ROWS("vsub4.u32.u32.u32.sat ro, ra, rb, rc;", UNIT_32,
		{0x0005ff00, 0x0103ff01, 0, 0x00020000});
	ROWS("vadd4.s32.s32.s32.sat ro, ra, rb, rc;", UNIT_32,
		{0x7f80017f, 0x01ffffff, 0, 0x7f80007e});
	ROWS("vsub2.s32.s32.s32.sat ro, ra, rb, rc;", UNIT_32,
		{0x80007fff, 0x0001ffff, 0, 0x80007fff});
	ROWS("vadd2.u32.s32.s32.sat ro, ra, rb, rc;", UNIT_32,
		{0xffff0001, 0x00000001, 0, 0x00000002});
}

static void test_sums(void)
{
	/* All parts' results on top of c. */
	ROWS("vadd4.u32.u32.u32.add ro, ra, rb, rc;", UNIT_32, {0x01020304, 0x01010101, 100, 114},
		{0xffffffff, 0x01010101, 0, 1024});
	ROWS("vabsdiff4.u32.u32.u32.add ro, ra, rb, rc;", UNIT_32,
		{0x00ff00ff, 0xff00ff00, 1, 1021});
	ROWS("vsub2.s32.s32.s32.add ro, ra, rb, rc;", UNIT_32,
		{0x00000000, 0x00010001, 0, 0xfffffffe});
}

static void test_set(void)
{
	ROWS("vset4.u32.u32.lt ro, ra, rb, rc;", UNIT_32, {0x01800000, 0x02000000, 0, 0x01000000});
	ROWS("vset4.s32.s32.lt ro, ra, rb, rc;", UNIT_32, {0x01800000, 0x02000000, 0, 0x01010000});
	ROWS("vset2.u32.u32.ge ro, ra, rb, rc;", UNIT_32, {0xffff0001, 0x00010002, 0, 0x00010000});
	ROWS("vset4.u32.u32.ne.add ro, ra, rb, rc;", UNIT_32, {0x01020304, 0x01020305, 10, 11},
		{0, 0, 10, 10});
	/* -1 is not 65535 */
	ROWS("vset2.s32.u32.eq ro, ra, rb, rc;", UNIT_32, {0xffff0005, 0xffff0005, 0, 1});
	REFUSED_BODY("vadd4.u32.u32 r1, r2, r3, r4;", "");
	REFUSED_BODY("vset4.u32.u32 r1, r2, r3, r4;", "");
	REFUSED_BODY("vadd2.u32.u32.u32 r1, r2, r3;", "wrong number of operands");
}

/*
 * One integer each, of a byte, a half or a word of each source; tests/truth has all spellings with
 * a GPU's answers.
 */
static void test_scalar(void)
{
	ROWS("vadd.u32.u32.u32 ro, ra, rb;", UNIT_32, {5, 7, 0, 12}, {0xffffffff, 2, 0, 1});
	ROWS("vadd.u32.s32.s32.sat ro, ra, rb;", UNIT_32, {-5u, 2, 0, 0}, {5, 2, 0, 7});
	ROWS("vadd.s32.s32.s32.sat ro, ra, rb;", UNIT_32, {0x7fffffff, 2, 0, 0x7fffffff},
		{0x80000000, -1u, 0, 0x80000000});
	ROWS("vadd.s32.s32.u32 ro, ra.b1, rb.h1;", UNIT_32, {0x0000ff00, 0xfffe0000, 0, 0xfffd});
	ROWS("vsub.s32.u32.u32 ro, ra.b3, rb.b0;", UNIT_32, {0x05000000, 7, 0, -2u});
	ROWS("vsub.u32.u32.u32.sat ro, ra.b3, rb.b0;", UNIT_32, {0x05000000, 7, 0, 0});
	ROWS("vabsdiff.u32.s32.s32.add ro, ra.h0, rb.h1, rc;", UNIT_32,
		{0xffff, 0x00010000, 100, 102});
	ROWS("vmin.s32.s32.s32.max ro, ra, rb, rc;", UNIT_32, {5, -7u, -6u, -6u},
		{5, -7u, -8u, -7u});
	ROWS("vadd.u32.u32.u32.min ro, ra, rb, rc;", UNIT_32,
		{0x80000000, 1, 0xfffffff0, 0xfffffff0}, {5, 6, 0xfffffff0, 11});
	ROWS("vmax.u32.u32.u32.min ro, ra, rb, rc;", UNIT_32, {5, 9, 7, 7});
	/*
	 * Into a part of the third source, saturated to the part's width; the upper half of the
	 * result into the upper half.
	 */
	ROWS("vadd.u32.u32.u32 ro.b2, ra, rb, rc;", UNIT_32, {0x1ff, 1, 0x11223344, 0x11003344});
	ROWS("vadd.u32.u32.u32.sat ro.b2, ra, rb, rc;", UNIT_32,
		{0x1fe, 1, 0x11223344, 0x11ff3344});
	ROWS("vadd.s32.s32.s32.sat ro.b0, ra, rb, rc;", UNIT_32,
		{-40000u, 0, 0x11223344, 0x1122337f});
	ROWS("vadd.s32.s32.s32 ro.h1, ra, rb, rc;", UNIT_32,
		{0x55667788, 0, 0x11223344, 0x55663344});
	/* CUB's shifts with an addition. */
	ROWS("vshr.u32.u32.u32.clamp.add ro, ra, rb, rc;", UNIT_32, {0x100, 4, 3, 0x13},
		{0x80000000, 33, 3, 3});
	ROWS("vshl.u32.u32.u32.clamp.add ro, ra, rb, rc;", UNIT_32, {0x100, 4, 3, 0x1003},
		{1, 32, 3, 3});
	ROWS("vshl.u32.u32.u32.wrap ro, ra, rb;", UNIT_32, {1, 33, 0, 2});
	ROWS("vshr.s32.s32.u32.clamp ro, ra, rb;", UNIT_32, {0x80000000, 40, 0, -1u});
	ROWS("vset.s32.u32.lt ro, ra, rb;", UNIT_32, {-1u, 0, 0, 1}, {1, 0, 0, 0});
	ROWS("vset.u32.u32.ge.add ro, ra.b0, rb.b1, rc;", UNIT_32, {5, 0x0500, 10, 11},
		{4, 0x0500, 10, 10});
	ROWS("vmad.s32.s32.s32 ro, ra.h0, rb.h0, rc;", UNIT_32, {0xffff, 3, 10, 7});
	ROWS("vmad.u32.u32.u32.po.shr7 ro, ra, rb, rc;", UNIT_32, {128, 2, 127, 3});
	ROWS("vmad.s32.u32.u32 ro, -ra, rb, rc;", UNIT_32, {3, 5, 100, 85});
	ROWS("vmad.s32.u32.u32 ro, ra, rb, -rc;", UNIT_32, {3, 5, 100, -85u});
	ROWS("vmad.s32.s32.s32.sat ro, ra, rb, rc;", UNIT_32, {0x40000000, 4, 0, 0x7fffffff},
		{0x40000000, -4u, 0, 0x80000000});
	REFUSED_BODY("vadd.u32.u32.u32 r1.b0, r2, r3;", "wrong number of operands");
	REFUSED_BODY(
		"vadd.u32.u32.u32.add r1.b0, r2, r3, r4;", "cannot write to a part of a register");
	REFUSED_BODY("vadd.u32.u32.u32 r1, -r2, r3;", "only the sources of vmad can be negated");
	REFUSED_BODY("vmad.u32.u32.u32.po r1, -r2, r3, r4;", ".po cannot be combined");
	REFUSED_BODY("vmad.u32.u32.u32 r1, -r2, r3, -r4;", "only one of the product and c");
	REFUSED_BODY("vmad.u32.u32.u32 r1.b0, r2, r3, r4;", "cannot write to a part of a register");
	REFUSED_BODY("vmad.u32.u32.u32 r1, r2, r3, r4.h0;", "c must be a whole register");
	REFUSED_BODY("vshl.u32.u32.u32 r1, r2, r3;", "no such form");
	REFUSED_BODY("vset.u32.u32.lo r1, r2, r3;", "unknown modifier '.lo'");
}

UNIT_SUITE(softgpu / ptx / execution / op_video, {"parts", test_parts}, {"averages", test_averages},
	{"saturation", test_saturation}, {"sums", test_sums}, {"set", test_set},
	{"scalar", test_scalar})
