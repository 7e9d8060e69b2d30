/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/execution/sreg.c: what each special register is in the middle of a grid, and which
 * names there are.
 */
#include "harness.h"
#include "softgpu/ptx/execution/sreg.h"
#include "softgpu/ptx/front/types.h"

static uint32_t out[512];

static void test_values(void)
{
	/* Grid of 3 blocks of 40: what thread t has. */
	enum { N = 120 };
	static const char *const names[] = {"%tid.x", "%tid.y", "%ntid.x", "%ntid.z", "%ctaid.x",
		"%ctaid.y", "%nctaid.x", "%laneid", "%warpid", "%nsmid", "%lanemask_eq",
		"%lanemask_lt", "%lanemask_le", "%lanemask_gt", "%lanemask_ge", "%smid",
		"%cluster_ctarank", "%cluster_nctarank", "%dynamic_smem_size", "%envreg5", "%pm3"};
	for (size_t k = 0; k < COUNT(names); k++) {
		char body[64];
		unsigned wrong = 0;
		snprintf(body, sizeof body, "mov.u32 r0, %s;", names[k]);
		IS(unit_threads("", body, 3, 40, out), CKT_PTX_FAULT_NONE);
		for (unsigned t = 0; t < N; t++) {
			unsigned tid = t % 40, lane = tid % 32;
			const uint32_t want[] = {tid, 0, 40, 1, t / 40, 0, 3, lane, tid / 32, 4,
				1u << lane, (1u << lane) - 1, (uint32_t)((2ull << lane) - 1),
				(uint32_t) ~((2ull << lane) - 1), ~((1u << lane) - 1), t / 40, 0, 1,
				0, 0, 0};
			wrong += out[t] != want[k];
		}
		if (wrong)
			fprintf(stderr, "%s\n", names[k]);
		IS(wrong, 0);
	}
}

static void test_clusters(void)
{
	unit_cluster = 2;
	IS(unit_threads("",
		   "mov.u32 r1, %clusterid.x; mov.u32 r2, %nclusterid.x; mov.u32 r3, %cluster_ctaid.x; "
		   "mov.u32 r4, %cluster_nctaid.x; mov.u32 r5, %cluster_ctarank; mov.u32 r6, %cluster_nctarank; "
		   "mov.pred p1, %is_explicit_cluster;\n"
		   "selp.u32 r7, 1, 0, p1; mad.lo.u32 r0, r1, 10, r2; mad.lo.u32 r0, r0, 10, r3; mad.lo.u32 r0, r0, 10, r4; "
		   "mad.lo.u32 r0, r0, 10, r5; mad.lo.u32 r0, r0, 10, r6; mad.lo.u32 r0, r0, 10, r7;",
		   4, 1, out),
		CKT_PTX_FAULT_NONE);
	unit_cluster = 0;
	static const uint32_t want[] = {202021, 212121, 1202021, 1212121};
	for (unsigned t = 0; t < 4; t++)
		IS(out[t], want[t]);
	IS(unit_threads("", "mov.pred p1, %is_explicit_cluster; selp.u32 r0, 1, 0, p1;", 1, 1, out),
		CKT_PTX_FAULT_NONE);
	IS(out[0], 0);
}

/* Time passes, in 32 bits and 64, and the grid's number is another for each launch. */
static void test_clocks(void)
{
	static const char *const clocks[] = {"%clock64", "%globaltimer", "%clock"};
	for (size_t k = 0; k < COUNT(clocks); k++) {
		char body[256];
		if (k < 2)
			snprintf(body, sizeof body,
				"mov.u64 x1, %s; L: mov.u64 x2, %s; setp.eq.u64 p1, x1, x2; @p1 bra L; "
				"setp.gt.u64 p2, x2, x1; selp.u32 r0, 1, 0, p2;",
				clocks[k], clocks[k]);
		else
			snprintf(body, sizeof body,
				"mov.u32 r1, %s; L: mov.u32 r2, %s; setp.eq.u32 p1, r1, r2; @p1 bra L; "
				"sub.u32 r2, r2, r1; setp.lt.u32 p2, r2, 0x7fffffff; selp.u32 r0, 1, 0, p2;",
				clocks[k], clocks[k]);
		IS(unit_threads("", body, 1, 1, out), CKT_PTX_FAULT_NONE);
		IS(out[0], 1);
	}
	IS(unit_threads("", "mov.u64 x1, %gridid; cvt.u32.u64 r0, x1;", 1, 1, out),
		CKT_PTX_FAULT_NONE);
	uint32_t first = out[0];
	IS(unit_threads("", "mov.u64 x1, %gridid; cvt.u32.u64 r0, x1;", 1, 1, out),
		CKT_PTX_FAULT_NONE);
	YES(out[0] != first);
}

static void test_names(void)
{
	static const struct {
		const char *name;
		bool is;
		enum ptx_type type;
	} table[] = {
		{"%tid.x", true, T_U32},
		{"%clock64", true, T_U64},
		{"%gridid", true, T_U64},
		{"%is_explicit_cluster", true, T_PRED},
		{"%envreg0", true, T_U32},
		{"%envreg31", true, T_U32},
		{"%pm7", true, T_U32},
		{"%envreg32", false, T_NONE},
		{"%envreg", false, T_NONE},
		{"%envregx", false, T_NONE},
		{"%envreg1x", false, T_NONE},
		{"%pm8", false, T_NONE},
		{"%tid", false, T_NONE},
		{"%tid.w", false, T_NONE},
		{"tid.x", false, T_NONE},
		{"", false, T_NONE},
	};
	for (size_t k = 0; k < COUNT(table); k++) {
		int sreg = ckt_ptx_sreg_find(table[k].name, strlen(table[k].name));
		IS(sreg >= 0, table[k].is);
		if (sreg >= 0)
			IS(ckt_ptx_sreg_type(sreg), table[k].type);
	}
	REFUSED_BODY("mov.u32 r1, %envreg32;", "unknown register %envreg32");
	REFUSED_BODY("mov.u32 %tid.x, r1;", "destination");
}

UNIT_SUITE(softgpu / ptx / execution / sreg, {"values", test_values}, {"clusters", test_clusters},
	{"clocks", test_clocks}, {"names", test_names})
