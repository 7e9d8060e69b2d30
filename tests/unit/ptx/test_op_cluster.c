/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/execution/op_cluster.c: the cluster's barrier, addresses in each other's shared
 * memory, bulk copies and reductions.
 */
#include "harness.h"

static uint32_t out[512];

static enum ckt_ptx_fault run(
	const char *scope, const char *body, unsigned cluster, unsigned grid, unsigned block)
{
	unit_cluster = cluster;
	enum ckt_ptx_fault fault = unit_threads(scope, body, grid, block, out);
	unit_cluster = 0;
	if (fault)
		fprintf(stderr, "%s\n", unit_message);
	return fault;
}

#define WRONG(n, want)                                        \
	({                                                    \
		unsigned wrong_ = 0;                          \
		for (unsigned t = 0; t < (n); t++)            \
			wrong_ += out[t] != (uint32_t)(want); \
		wrong_;                                       \
	})

/*
 * What each block wrote before the barrier, the next one reads behind it; again with what came
 * back.
 */
static void test_barrier(void)
{
	IS(run(".shared .u32 s;\n",
		   "mov.u32 r1, %cluster_ctarank; setp.ne.u32 p1, tt, 0; @p1 bra A; add.u32 r2, t, 100; "
		   "st.shared.u32 [s], r2; A: barrier.cluster.arrive; barrier.cluster.wait;\n"
		   "add.u32 r3, r1, 1; and.b32 r3, r3, 3; mov.u32 r4, s; mapa.shared::cluster.u32 r5, r4, r3; "
		   "ld.shared::cluster.u32 r0, [r5]; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
		   4, 8, 16),
		CKT_PTX_FAULT_NONE);
	/* Of block b, the first thread of the next in its cluster. */
	IS(WRONG(128, 100 + 16 * ((t / 16 & ~3u) + ((t / 16 + 1) & 3))), 0);
	/* Threads that are gone are not waited for; without a cluster it is the block's. */
	IS(run("",
		   "mov.u32 r0, 1; st.global.u32 [o], r0; setp.lt.u32 p1, tt, 3; @p1 exit; barrier.cluster.arrive; barrier.cluster.wait; "
		   "mov.u32 r0, 2;",
		   2, 4, 8),
		CKT_PTX_FAULT_NONE);
	IS(WRONG(32, t % 8 < 3 ? 1 : 2), 0);
	IS(run("", "barrier.cluster.arrive.relaxed; barrier.cluster.wait.acquire; mov.u32 r0, 2;",
		   0, 2, 40),
		CKT_PTX_FAULT_NONE);
	IS(WRONG(80, 2), 0);
}

static void test_addresses(void)
{
	IS(run(".shared .u32 s;\n",
		   "mov.u32 r1, s; mapa.shared::cluster.u32 r2, r1, 1; getctarank.shared::cluster.u32 r3, r2; "
		   "getctarank.shared::cluster.u32 r4, r1; mov.u64 x1, s; cvta.shared.u64 x2, x1; mapa.u64 x3, x2, 0;\n"
		   "getctarank.u64 r5, x3; isspacep.shared::cluster p1, x3; isspacep.shared::cta p2, x3; selp.u32 r6, 1, 0, p1; "
		   "selp.u32 r7, 1, 0, p2; mad.lo.u32 r0, r3, 10000, 0; mad.lo.u32 r0, r4, 1000, r0; mad.lo.u32 r0, r5, 100, r0;\n"
		   "mad.lo.u32 r0, r6, 10, r0; add.u32 r0, r0, r7;",
		   2, 2, 1),
		CKT_PTX_FAULT_NONE);
	/*
	 * rank 1 asked for, own rank 0, rank 0 of the generic one, in the cluster's and in the own
	 * window
	 */
	IS(out[0], 10011);
	IS(out[1], 11010);
	/* A rank that the cluster has not. */
	IS(run(".shared .u32 s;\n",
		   "mov.u32 r1, s; mapa.shared::cluster.u32 r2, r1, 5; ld.shared::cluster.u32 r0, [r2];",
		   2, 2, 1),
		CKT_PTX_FAULT_ILLEGAL_ADDRESS);
}

#define BULK ".shared .align 16 .b8 s[256]; .shared .align 8 .b64 bar;\n"
static void test_bulk(void)
{
	unit_clear();
	for (unsigned k = 0; k < 64; k++)
		unit_memory[k] = k;
	/* In, counted by a memory barrier; and out again elsewhere. */
	IS(run(BULK,
		   "mov.u32 r1, s; mov.u32 r2, bar; mbarrier.init.shared.b64 [r2], 1; "
		   "mbarrier.arrive.expect_tx.shared.b64 x1, [r2], 64; "
		   "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r1], [m], 64, [r2];\n"
		   "W: mbarrier.try_wait.shared.b64 p1, [r2], x1; @!p1 bra W; cp.async.bulk.global.shared::cta.bulk_group [m+1024], [r1], "
		   "32; cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; ld.shared.u32 r0, [s+60];",
		   0, 1, 1),
		CKT_PTX_FAULT_NONE);
	IS(out[0], 15);
	YES(unit_memory[256 + 7] == 7 && unit_memory[256 + 8] == 0);
	/* To every block of the mask. */
	IS(run(BULK,
		   "mov.u32 r1, s; mov.u32 r2, bar; mbarrier.init.shared.b64 [r2], 1; "
		   "mbarrier.arrive.expect_tx.shared.b64 x1, [r2], 16; barrier.cluster.arrive; barrier.cluster.wait; mov.b16 h1, 6; "
		   "mov.u32 r3, %cluster_ctarank; setp.ne.u32 p2, r3, 0;\n"
		   "@!p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [r1], [m+16], 16, [r2], h1; "
		   "barrier.cluster.arrive; barrier.cluster.wait; mbarrier.test_wait.shared.b64 p1, [r2], x1; "
		   "ld.shared.u32 r0, [s]; @p1 add.u32 r0, r0, 100;",
		   4, 4, 1),
		CKT_PTX_FAULT_NONE);
	YES(out[1] == 104 && out[2] == 104 && out[0] < 100 && out[3] < 100);
	IS(run(BULK, "mov.u32 r1, s; cp.async.bulk.global.shared::cta.bulk_group [m], [r1], 24;", 0,
		   1, 1),
		CKT_PTX_FAULT_MISALIGNED_ADDRESS);
	HAS(unit_message, "24 bytes");
	IS(run(BULK, "mov.u32 r1, s; cp.async.bulk.global.shared::cta.bulk_group [m+8], [r1], 16;",
		   0, 1, 1),
		CKT_PTX_FAULT_MISALIGNED_ADDRESS);
}

static void test_reduce(void)
{
	static const struct {
		const char *op;
		uint32_t old, v, want;
	} table[] = {
		{"add.u32", 0xffffffff, 2, 1},
		{"min.s32", 5, 0xffffffff, 0xffffffff},
		{"max.u32", 5, 0xffffffff, 0xffffffff},
		{"inc.u32", 7, 7, 0},
		{"dec.u32", 0, 9, 9},
		{"and.b32", 0xff, 0xf0, 0xf0},
		{"or.b32", 1, 2, 3},
		{"xor.b32", 3, 1, 2},
		{"add.noftz.f16", 0x3c003c00, 0x40004000, 0x42004200},
		{"min.f16", 0x3c004000, 0x40003c00, 0x3c003c00},
		{"add.noftz.bf16", 0x3f803f80, 0x3f803f80, 0x40004000},
		{"add.f32", 0x3f800000, 0x3f800000, 0x40000000},
	};
	for (size_t k = 0; k < COUNT(table); k++) {
		char body[512];
		unit_clear();
		for (unsigned n = 0; n < 4; n++)
			unit_memory[n] = table[k].old;
		snprintf(body, sizeof body,
			"mov.u32 r1, s; st.shared.v4.b32 [s], {0x%x, 0x%x, 0x%x, 0x%x}; "
			"cp.reduce.async.bulk.global.shared::cta.bulk_group.%s [m], [r1], 16;",
			table[k].v, table[k].v, table[k].v, table[k].v, table[k].op);
		IS(run(BULK, body, 0, 1, 1), CKT_PTX_FAULT_NONE);
		for (unsigned n = 0; n < 5; n++)
			if (unit_memory[n] != (n < 4 ? table[k].want : 0)) {
				fprintf(stderr, "%s: %x\n", table[k].op, unit_memory[n]);
				CU_FAIL("reduction");
				break;
			}
	}
}

static void test_refused(void)
{
	REFUSED_BODY("wgmma.fence.sync.aligned;", "instruction 'wgmma' is not supported");
	REFUSED_BODY(
		"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [r1], [x1, {r2, r3}], [r4];",
		"");
	REFUSED_BODY("barrier.cluster.sync;", "");
	REFUSED_BODY("cp.async.bulk.global.global.bulk_group [x1], [x2], 16;", "");
	REFUSED_BODY("mapa.u16 h1, h2, r1;", "");
}

UNIT_SUITE(softgpu / ptx / execution / op_cluster, {"barrier", test_barrier},
	{"addresses", test_addresses}, {"bulk", test_bulk}, {"reduce", test_reduce},
	{"refused", test_refused})
