/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/front/legal.c: the table of legal spellings: what stands in it, what does not, and
 * what only later targets have.
 */
#include "harness.h"

static enum ckt_ptx_result loads(const char *target, const char *instruction)
{
	char text[1024];
	enum ckt_ptx_result result;
	snprintf(text, sizeof text,
		".version 9.0\n.target %s\n.address_size 64\n.visible .entry k() {\n"
		".reg .b16 h<4>; .reg .b32 r<8>; .reg .b64 x<8>; .reg .pred p<4>;\n%s\nret; }\n",
		target, instruction);
	struct ckt_ptx_module *module = unit_load((const char *const[]){text}, 1, &result);
	if (module)
		ckt_ptx_module_destroy(module);
	return result;
}

static void test_taken(void)
{
	static const char *const good[] = {"add.sat.s32 r0, r1, r2;",
		"add.rn.ftz.sat.f32 r0, r1, r2;", "add.sat.rn.f32 r0, r1, r2;",
		"mul.wide.u16 r0, h1, h2;", "cvt.rn.satfinite.relu.f16x2.f32 r0, r1, r2;",
		"cvt.rn.relu.satfinite.f16x2.f32 r0, r1, r2;", "setp.geu.and.f64 p0, x1, x2, !p1;",
		"vadd.sat.u32.s32.u32.max r0, r1.b3, r2.h0, r3;",
		"vshl.u32.s32.u32.wrap r0.h1, r1, r2, r3;",
		"vmad.s32.u32.s32.sat.shr15 r0, -r1.h1, r2, r3;",
		"vset.u32.s32.ge.min r0, r1, r2, r3;", "ldu.global.v4.f32 {r0, r1, r2, r3}, [x0];",
		"ldu.v2.b64 {x0, x1}, [x0];", "ldu.s8 r0, [x0];",
		"fma.rn.oob.relu.f16x2 r0, r1, r2, r3;", "fma.rn.oob.bf16 h0, h1, h2, h3;",
		"pmevent.mask 7;", "istypep.surfref p0, x0;",
		"cp.async.bulk.prefetch.L2.global.L2::cache_hint [x0], 16, x1;",
		"cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [x0], [r0], 16, x1;",
		"cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.min.s64 [x0], [r0], 16, x1;",
		"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [r0], [x0], 16, [r1], h0, x1;",
		"min.ftz.NaN.xorsign.abs.f32 r0, r1, r2;", "fence.acq_rel.gpu;",
		"shfl.sync.idx.b32 r0|p0, r1, r2, r3, r4;"};
	for (size_t k = 0; k < sizeof good / sizeof *good; k++) {
		if (loads("sm_90", good[k]) != CKT_PTX_OK)
			fprintf(stderr, "%s: %s\n", good[k], unit_log);
		CU_ASSERT_EQUAL(loads("sm_90", good[k]), CKT_PTX_OK);
	}
}

static void test_refused(void)
{
	static const char *const bad[] = {"add.sat.u32 r0, r1, r2;", "add.rn.rn.f32 r0, r1, r2;",
		"add.ftz.f64 x0, x1, x2;", "add.ftz.bf16 h0, h1, h2;", "fma.f32 r0, r1, r2, r3;",
		"cvt.f16.f32 h0, r1;", "cvt.sat.u16.u8 h0, h1;", "cvt.rn.s32.f32 r0, r1;",
		"setp.lo.s32 p0, r1, r2;", "setp.eq.f16 p0|p1, h1, h2;", "sin.f32 r0, r1;",
		"lop3.xor.b32 r0|p0, r1, r2, r3, 1, p1;",
		"red.acquire.gpu.global.add.u32 [x0], r1;", "ld.wt.u32 r0, [x0];",
		"atom.global.max.f32 r0, [x0], r1;", "pmevent r0;",
		"fma.rn.oob.f32 r0, r1, r2, r3;", "fma.rn.ftz.oob.f16 h0, h1, h2, h3;",
		"ld.global.v4.b64 {x0, x1, x2, x3}, [x0];",
		"cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.L2::cache_hint [r0], [r1], 16, [r2], x1;",
		"cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [x0], [r0], 16;",
		"ld.global.u32 r0, [r1];", "max.abs.f32 r0, r1, r2;", "max.f32 r0, r1, r2, r3;",
		"max.abs.f32 r0, r1, r2, r3;", "max.s32 r0, r1, r2, r3;", "membar.gpu;",
		"mul.u32 r0, r1, r2;", "add r0, r1, r2;"};
	for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
		if (loads("sm_90", bad[k]) == CKT_PTX_OK)
			fprintf(stderr, "%s is taken\n", bad[k]);
		CU_ASSERT_EQUAL(loads("sm_90", bad[k]), CKT_PTX_INVALID);
	}
	CU_ASSERT_EQUAL(loads("sm_90", "add.sat.u32 r0, r1, r2;"), CKT_PTX_INVALID);
	CU_ASSERT_PTR_NOT_NULL(strstr(unit_log, "no such form of 'add'"));
	CU_ASSERT_EQUAL(loads("sm_90", "add.quick.u32 r0, r1, r2;"), CKT_PTX_INVALID);
	CU_ASSERT_PTR_NOT_NULL(strstr(unit_log, "unknown modifier '.quick'"));
}

static void test_target(void)
{
	CU_ASSERT_EQUAL(loads("sm_100", "add.rn.f32x2 x0, x1, x2;"), CKT_PTX_OK);
	CU_ASSERT_EQUAL(loads("sm_90", "add.rn.f32x2 x0, x1, x2;"), CKT_PTX_INVALID);
	/* As ptxas has it, and only from there on. */
	static const char *const later[] = {"max.f32 r0, r1, r2, r3;",
		"min.ftz.NaN.f32 r0, r1, r2, r3;", "max.ftz.NaN.abs.f32 r0, r1, r2, r3;",
		"ld.global.v4.b64 {x0, x1, x2, x3}, [x0];"};
	for (size_t k = 0; k < sizeof later / sizeof *later; k++) {
		CU_ASSERT_EQUAL(loads("sm_100", later[k]), CKT_PTX_OK);
		CU_ASSERT_EQUAL(loads("sm_90", later[k]), CKT_PTX_INVALID);
		CU_ASSERT_PTR_NOT_NULL(
			k % 2 ? unit_log : strstr(unit_log, k == 2 ? "no such form" : "sm_100"));
	}
	static const char *const never[] = {"max.xorsign.abs.f32 r0, r1, r2, r3;",
		"max.f64 x0, x1, x2, x3;", "max.f16 h0, h1, h2, h3;", "min.u32 r0, r1, r2, r3;",
		"max.abs.f32 r0, r1, r2;"};
	for (size_t k = 0; k < sizeof never / sizeof *never; k++)
		CU_ASSERT_EQUAL(loads("sm_100", never[k]), CKT_PTX_INVALID);
	CU_ASSERT_EQUAL(loads("sm_100", "ld.global.v8.b32 {r0, r1, r2, r3, r4, r5, r6, r7}, [x0];"),
		CKT_PTX_OK);
	CU_ASSERT_EQUAL(loads("sm_90", "ld.global.v8.b32 {r0, r1, r2, r3, r4, r5, r6, r7}, [x0];"),
		CKT_PTX_INVALID);
}

static const struct unit_test tests[] = {
	{"taken", test_taken}, {"refused", test_refused}, {"target", test_target}};
UNIT_MAIN("ptx legal spellings", tests)
