/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/execution/op_async.c: memory barriers phase by phase, what their word tells, and
 * copies that give less than they take.
 */
#include "harness.h"

static uint32_t one(const char *body)
{
	uint32_t r = 0x77777777;
	enum ckt_ptx_fault fault = unit_threads(
		".shared .align 16 .b8 s[64]; .shared .align 8 .b64 bar;\n", body, 1, 1, &r);
	if (fault)
		fprintf(stderr, "%s\n", unit_message);
	IS(fault, CKT_PTX_FAULT_NONE);
	return r;
}

#define READY(p, bit) "selp.u32 r9, " bit ", 0, " p "; or.b32 r0, r0, r9;\n"

static void test_phases(void)
{
	/* Three arrivals of three: only then has the phase of the first state ended. */
	IS(one("mov.u32 r1, bar; mov.u32 r0, 0; mbarrier.init.shared.b64 [r1], 3; mbarrier.arrive.shared.b64 x1, [r1]; "
	       "mbarrier.test_wait.shared.b64 p1, [r1], x1;" READY("p1",
		       "1") "mbarrier.arrive.shared.b64 x2, [r1], 1; mbarrier.test_wait.shared.b64 p1, [r1], x1;" READY("p1",
		       "2") "mbarrier.arrive.shared.b64 x3, [r1]; mbarrier.test_wait.shared.b64 p1, [r1], x1;" READY("p1",
		       "4")
		   /* The next phase begins anew; its parity is the other. */
		   "mbarrier.test_wait.parity.shared.b64 p1, [r1], 0;" READY("p1",
			   "8") "mbarrier.test_wait.parity.shared.b64 p1, [r1], 1;" READY("p1",
			   "16") "mbarrier.arrive.shared.b64 x1, [r1], 3; mbarrier.test_wait.parity.shared.b64 p1, [r1], 1;" READY("p1",
			   "32")),
		4 | 8 | 32);
	/* How many were missing when the state was made. */
	IS(one("mov.u32 r1, bar; mbarrier.init.shared.b64 [r1], 5; mbarrier.arrive.shared.b64 _, [r1], 2; "
	       "mbarrier.arrive.shared.b64 x1, [r1]; mbarrier.pending_count.b64 r0, x1;"),
		3);
	/* Who drops out is not expected in the phases to come. */
	IS(one("mov.u32 r1, bar; mov.u32 r0, 0; mbarrier.init.shared.b64 [r1], 2; mbarrier.arrive_drop.shared.b64 _, [r1]; "
	       "mbarrier.arrive.shared.b64 _, [r1]; mbarrier.arrive.shared.b64 x1, [r1];\n"
	       "mbarrier.test_wait.shared.b64 p1, [r1], x1;" READY("p1", "1")),
		1);
	/* Bytes count beside arrivals, in either order. */
	IS(one("mov.u32 r1, bar; mov.u32 r0, 0; mbarrier.init.shared.b64 [r1], 1; mbarrier.expect_tx.relaxed.cta.shared.b64 [r1], 100; "
	       "mbarrier.arrive.shared.b64 x1, [r1]; mbarrier.test_wait.shared.b64 p1, [r1], x1;" READY(
		       "p1",
		       "1") "mbarrier.complete_tx.relaxed.cta.shared.b64 [r1], 60; mbarrier.test_wait.shared.b64 p1, [r1], x1;" READY("p1",
		       "2") "mbarrier.complete_tx.relaxed.cta.shared.b64 [r1], 40; mbarrier.test_wait.shared.b64 p1, [r1], x1;" READY("p1",
		       "4")),
		4);
	IS(one("mov.u32 r1, bar; mov.u32 r0, 0; mbarrier.init.shared.b64 [r1], 1; mbarrier.complete_tx.relaxed.cta.shared.b64 [r1], 16; "
	       "mbarrier.arrive.expect_tx.shared.b64 x1, [r1], 16;\n"
	       "mbarrier.test_wait.shared.b64 p1, [r1], x1;" READY("p1", "1")),
		1);
	IS(one("mov.u32 r1, bar; mbarrier.init.shared.b64 [r1], 7; mbarrier.inval.shared.b64 [r1]; ld.shared.u32 r0, [r1];"),
		0);
	/* Copies that were begun count as one arrival each, where they are told so. */
	IS(one("mov.u32 r1, bar; mov.u32 r0, 0; mov.u32 r2, s; mbarrier.init.shared.b64 [r1], 2; cp.async.ca.shared.global [r2], [m], 4; "
	       "cp.async.mbarrier.arrive.noinc.shared.b64 [r1]; mbarrier.arrive.shared.b64 x1, [r1];\n"
	       "mbarrier.test_wait.shared.b64 p1, [r1], x1;" READY("p1", "1")),
		1);
	uint32_t r;
	IS(unit_threads("", "mov.u32 r1, 8; mbarrier.init.shared.b64 [r1], 1;", 1, 1, &r),
		CKT_PTX_FAULT_ILLEGAL_ADDRESS);
	IS(unit_threads(".shared .align 8 .b8 s[16];\n",
		   "mov.u32 r1, s; add.u32 r1, r1, 4; mbarrier.init.shared.b64 [r1], 1;", 1, 1, &r),
		CKT_PTX_FAULT_MISALIGNED_ADDRESS);
}

static void test_copies(void)
{
	unit_clear();
	for (unsigned k = 0; k < 64; k++)
		unit_memory[k] = k + 1;
	static const char start[] = "mov.u32 r1, s; st.shared.v4.u32 [s], {9, 9, 9, 9}; ";
	static const struct {
		const char *copy;
		uint32_t want[4];
	} table[] = {
		{"cp.async.ca.shared.global [r1], [m], 4;", {1, 9, 9, 9}},
		{"cp.async.ca.shared.global [r1], [m], 8;", {1, 2, 9, 9}},
		{"cp.async.cg.shared.global [r1], [m], 16;", {1, 2, 3, 4}},
		{"cp.async.cg.shared.global [r1], [m], 16, 8;", {1, 2, 0, 0}},
		{"cp.async.cg.shared.global [r1], [m], 16, 0;", {0, 0, 0, 0}},
		{"mov.u32 r2, 99; cp.async.cg.shared.global [r1], [m], 16, r2;", {1, 2, 3, 4}},
		{"cp.async.ca.shared.global [r1], [m], 8, 3;", {1, 0, 9, 9}},
		{"setp.eq.u32 p1, t, t; cp.async.cg.shared.global [r1], [m], 16, p1;",
			{0, 0, 0, 0}},
		{"setp.ne.u32 p1, t, t; cp.async.cg.shared.global [r1], [m], 16, p1;",
			{1, 2, 3, 4}},
		/* What is not read may lie anywhere. */
		{"mov.u64 x1, 16; cp.async.cg.shared.global [r1], [x1], 16, 0;", {0, 0, 0, 0}},
	};
	for (size_t k = 0; k < COUNT(table); k++) {
		char body[512];
		for (unsigned n = 0; n < 4; n++) {
			snprintf(body, sizeof body,
				"%s %s cp.async.commit_group; cp.async.wait_all; ld.shared.u32 r0, [s+%u];",
				start, table[k].copy, 4 * n);
			uint32_t r = one(body), want = table[k].want[n];
			if (n == 0 && strstr(table[k].copy, ", 8, 3"))
				want = 1; /* three bytes of 1 */
			if (r != want)
				fprintf(stderr, "%s word %u\n", table[k].copy, n);
			IS(r, want);
		}
	}
	uint32_t r;
	IS(unit_threads(".shared .align 16 .b8 s[16];\n",
		   "mov.u32 r1, s; cp.async.cg.shared.global [r1], [m+8], 16;", 1, 1, &r),
		CKT_PTX_FAULT_MISALIGNED_ADDRESS);
	IS(unit_threads(".shared .align 16 .b8 s[16];\n",
		   "mov.u32 r1, s; cp.async.cg.shared.global [r1], [m+65536], 16;", 1, 1, &r),
		CKT_PTX_FAULT_ILLEGAL_ADDRESS);
}

static void test_refused(void)
{
	REFUSED_BODY("cp.async.ca.shared.global [r1], [x1], 5;", "4, 8 or 16 bytes");
	REFUSED_BODY("cp.async.ca.shared.global [r1], [x1], r2;", "4, 8 or 16 bytes");
	REFUSED_BODY("cp.async.ca.global.shared [x1], [r1], 4;", "must write to shared memory");
	REFUSED_BODY("mbarrier.banana.shared.b64 [r1];", "");
	REFUSED_BODY("mbarrier.init.shared.b64 [r1];", "wrong number of operands");
	REFUSED_BODY("mbarrier.test_wait.shared.b64 r1, [r2], x1;", "");
	REFUSED_BODY("cp.sync.ca.shared.global [r1], [x1], 4;", "");
}

UNIT_SUITE(softgpu / ptx / execution / op_async, {"phases", test_phases}, {"copies", test_copies},
	{"refused", test_refused})
