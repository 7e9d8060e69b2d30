/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/execution/op_bits.c: corners that test_op_int.c's sweep does not reach: 16 bits,
 * wrapping forms, every mode of prmt, joined lop3.
 */
#include "harness.h"

static void test_shifts(void)
{
	ROWS("shl.b16 ho, ha, rb;", UNIT_16, {0x8001, 1, 0, 2}, {1, 15, 0, 0x8000}, {1, 16, 0, 0},
		{0xffff, 0xffffffff, 0, 0}, {0x1234, 0, 0, 0x1234});
	ROWS("shr.u16 ho, ha, rb;", UNIT_16, {0x8001, 15, 0, 1}, {0xffff, 16, 0, 0},
		{0x8000, 0x80000000, 0, 0});
	ROWS("shr.s16 ho, ha, rb;", UNIT_16, {0x8000, 15, 0, 0xffff}, {0x8000, 16, 0, 0xffff},
		{0x7fff, 99, 0, 0}, {0x8000, 1, 0, 0xc000});
	ROWS("shr.u64 xo, xa, rb;", UNIT_64, {1ull << 63, 63, 0, 1}, {~0ull, 64, 0, 0},
		{~0ull, 0xffffffff, 0, 0});
	ROWS("shf.l.wrap.b32 ro, ra, rb, rc;", UNIT_32, {0x80000000, 1, 1, 3}, {5, 7, 0, 7},
		{5, 7, 32, 7}, {5, 7, 33, 14});
	ROWS("shf.r.wrap.b32 ro, ra, rb, rc;", UNIT_32, {0x80000000, 1, 31, 3}, {5, 7, 0, 5},
		{5, 7, 32, 5}, {4, 1, 33, 0x80000002});
	ROWS("shf.r.clamp.b32 ro, ra, rb, rc;", UNIT_32, {5, 7, 32, 7}, {5, 7, 99, 7},
		{5, 7, 0, 5});
	ROWS("shf.l.clamp.b32 ro, ra, rb, rc;", UNIT_32, {5, 7, 32, 5}, {5, 7, 99, 5},
		{5, 7, 0, 7});
}

static void test_fields(void)
{
	ROWS("bfi.b64 xo, xa, xb, rc, 64;", UNIT_64, {~0ull, 0, 0, ~0ull},
		{~0ull, 0, 63, 1ull << 63}, {~0ull, 5, 64, 5}, {0, ~0ull, 8, 0xff});
	ROWS("bfi.b32 ro, ra, rb, rc, 0;", UNIT_32, {~0ull, 0x1234, 4, 0x1234});
	/* a byte of the length: none */
	ROWS("bfi.b32 ro, ra, rb, rc, 256;", UNIT_32, {~0ull, 0x1234, 4, 0x1234});
	ROWS("bfi.b32 ro, ra, rb, rc, 33;", UNIT_32, {0xf, 0, 28, 0xf0000000},
		{0x5, 0xff, 257, 0xb});
	ROWS("szext.wrap.s32 ro, ra, rb;", UNIT_32, {0x80, 8, 0, 0xffffff80}, {0x7f, 8, 0, 0x7f},
		{0xff, 32, 0, 0}, {0xff, 40, 0, 0xffffffff}, {1, 1, 0, ~0ull});
	ROWS("szext.clamp.u32 ro, ra, rb;", UNIT_32, {0xffffffff, 31, 0, 0x7fffffff},
		{0xffffffff, 32, 0, 0xffffffff}, {0xffffffff, 99, 0, 0xffffffff}, {5, 0, 0, 0});
	ROWS("bmsk.wrap.b32 ro, ra, rb;", UNIT_32, {4, 8, 0, 0xff0}, {36, 40, 0, 0xff0},
		{31, 2, 0, 0x80000000}, {0, 32, 0, 0});
	ROWS("bmsk.clamp.b32 ro, ra, rb;", UNIT_32, {4, 8, 0, 0xff0}, {0, 32, 0, 0xffffffff},
		{0, 99, 0, 0xffffffff}, {32, 32, 0, 0}, {31, 32, 0, 0x80000000});
}

/* The bytes of cb:ba are numbered 7 to 0; so the answers can be read off. */
static void test_prmt(void)
{
#define PRMT(mode, n, want) {0x03020100, 0x07060504, n, want}
	ROWS("prmt.b32 ro, ra, rb, rc;", UNIT_32, PRMT(0, 0x7654, 0x07060504),
		PRMT(0, 0x0123, 0x00010203), PRMT(0, 0xffff3210, 0x03020100));
	ROWS("prmt.b32 ro, ra, rb, rc;", UNIT_32, {0x80ff7f01, 0, 0xba98, 0xffff0000},
		{0x80ff7f01, 0, 0x3b2a, 0x80ffffff}); /* the sign alone */
	ROWS("prmt.b32.f4e ro, ra, rb, rc;", UNIT_32, PRMT(f4e, 0, 0x03020100),
		PRMT(f4e, 1, 0x04030201), PRMT(f4e, 3, 0x06050403), PRMT(f4e, 7, 0x06050403));
	ROWS("prmt.b32.b4e ro, ra, rb, rc;", UNIT_32, PRMT(b4e, 0, 0x05060700),
		PRMT(b4e, 1, 0x06070001), PRMT(b4e, 2, 0x07000102), PRMT(b4e, 3, 0x00010203));
	ROWS("prmt.b32.rc8 ro, ra, rb, rc;", UNIT_32, PRMT(rc8, 0, 0), PRMT(rc8, 2, 0x02020202),
		PRMT(rc8, 7, 0x03030303));
	ROWS("prmt.b32.ecl ro, ra, rb, rc;", UNIT_32, PRMT(ecl, 0, 0x03020100),
		PRMT(ecl, 1, 0x03020101), PRMT(ecl, 2, 0x03020202), PRMT(ecl, 3, 0x03030303));
	ROWS("prmt.b32.ecr ro, ra, rb, rc;", UNIT_32, PRMT(ecr, 0, 0), PRMT(ecr, 1, 0x01010100),
		PRMT(ecr, 2, 0x02020100), PRMT(ecr, 3, 0x03020100));
	ROWS("prmt.b32.rc16 ro, ra, rb, rc;", UNIT_32, PRMT(rc16, 0, 0x01000100),
		PRMT(rc16, 1, 0x03020302), PRMT(rc16, 2, 0x01000100), PRMT(rc16, 3, 0x03020302));
}

static void test_counts(void)
{
	ROWS("bfind.shiftamt.u32 ro, ra;", UNIT_32, {0, 0, 0, ~0ull}, {1, 0, 0, 31},
		{0x80000000, 0, 0, 0});
	ROWS("bfind.shiftamt.s32 ro, ra;", UNIT_32, {0, 0, 0, ~0ull}, {~0ull, 0, 0, ~0ull},
		{0x80000000, 0, 0, 1}, {0xfffffffe, 0, 0, 31});
	ROWS("bfind.s64 ro, xa;", UNIT_32, {1ull << 63, 0, 0, 62}, {~0ull, 0, 0, ~0ull},
		{0, 0, 0, ~0ull}, {0x7fffffffffffffff, 0, 0, 62});
	ROWS("clz.b64 ro, xa;", UNIT_32, {0, 0, 0, 64}, {1, 0, 0, 63}, {1ull << 32, 0, 0, 31});
	ROWS("popc.b64 ro, xa;", UNIT_32, {~0ull, 0, 0, 64}, {1ull << 63 | 1, 0, 0, 2});
	ROWS("cnot.b16 ho, ha;", UNIT_16, {0x10000, 0, 0, 1}, {0x8000, 0, 0, 0});
	ROWS("cnot.b64 xo, xa;", UNIT_64, {0, 0, 0, 1}, {1ull << 40, 0, 0, 0});
	ROWS("not.b64 xo, xa;", UNIT_64, {0, 0, 0, ~0ull});
	ROWS("fns.b32 ro, ra, rb, rc;", UNIT_32, {0x8421, 0, 1, 0}, {0x8421, 0, 3, 10},
		{0x8421, 0, 5, ~0ull}, {0x8421, 15, 0xffffffff, 15}, {0x8421, 15, 0xfffffffd, 5},
		{0x8421, 31, 1, ~0ull}, {0x8421, 5, 0, 5}, {0x8421, 6, 0, ~0ull},
		{0x8421, 32, 1, ~0ull});
}

/* Every table of lop3 of the eight combinations; and its predicate, joined. */
static void test_lop3(void)
{
	for (unsigned lut = 0; lut < 256; lut += lut < 240 ? 17 : 5) {
		char code[64];
		uint64_t row[1][4] = {{0xf0f0f0f0, 0xcccccccc, 0xaaaaaaaa, 0}};
		snprintf(code, sizeof code, "lop3.b32 ro, ra, rb, rc, %u;", lut);
		YES(unit_compute(code, UNIT_32, row, 1));
		IS((uint32_t)row[0][3], lut * 0x01010101u);
	}
	ROWS("setp.ne.u32 p, rc, 0; lop3.and.b32 ro|po, ra, rb, 0, 0xc0, p;", UNIT_PRED,
		{1, 1, 1, 1}, {1, 1, 0, 0}, {1, 2, 1, 0});
	ROWS("setp.ne.u32 p, rc, 0; lop3.or.b32 ro|po, ra, rb, 0, 0xc0, !p;", UNIT_PRED,
		{1, 1, 1, 1}, {1, 2, 0, 1}, {1, 2, 1, 0});
	REFUSED_BODY("lop3.xor.b32 r1|p1, r2, r3, r4, 1, p2;", "unknown modifier '.xor'");
	REFUSED_BODY("lop3.b32 r1, r2, r3, r4, r5;", "constant");
	REFUSED_BODY("lop3.or.b32 r1, r2, r3, r4, 1, p1;", "d|p");
	REFUSED_BODY("shf.l.b32 r1, r2, r3, r4;", "");
	REFUSED_BODY("cnot.pred p1, p2;", "");
	REFUSED_BODY("popc.b16 r1, h2;", "");
}

/* Predicates are all lanes' bits at once: those that are not taking part keep theirs. */
static void test_divergent(void)
{
	uint32_t out[64];
	IS(unit_threads("",
		   "and.b32 r1, t, 1; setp.ne.u32 p1, r1, 0; setp.lt.u32 p2, t, 40; setp.eq.u32 p3, t, t;\n"
		   "@p1 bra odd; and.pred p3, p3, p2; bra join; odd: not.pred p3, p3; join: selp.b32 r0, 1, 0, p3;",
		   1, 64, out),
		CKT_PTX_FAULT_NONE);
	int wrong = 0;
	for (unsigned t = 0; t < 64; t++)
		wrong += out[t] != (t % 2 == 0 && t < 40);
	IS(wrong, 0);
}

UNIT_SUITE(softgpu / ptx / execution / op_bits, {"shifts", test_shifts}, {"fields", test_fields},
	{"prmt", test_prmt}, {"counts", test_counts}, {"lop3", test_lop3},
	{"divergent", test_divergent})
