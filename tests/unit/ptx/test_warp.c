/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shuffles, votes, matches and reductions, also of lanes that are not together.
 */
#include "harness.h"

static uint32_t *words;

#define HEAD                                                                                                       \
	UNIT_HEAD                                                                                                  \
	".visible .entry k(.param .u64 out)\n{\n.reg .b64 o, x; .reg .b32 t, a, b, c, v, m; .reg .pred p, q, r;\n" \
	"ld.param.u64 o, [out]; mov.u32 t, %tid.x; mul.wide.u32 x, t, 4; add.u64 x, x, o; mul.lo.u32 v, t, 3;\n"
#define TAIL "st.global.u32 [x], a; ret;\n}\n"

static void run(const char *text, unsigned block)
{
	struct ckt_ptx_module *module = unit_load(&text, 1, NULL);
	if (!module)
		fprintf(stderr, "%s\n", unit_log);
	CU_ASSERT_PTR_NOT_NULL_FATAL(module);
	if (!words)
		words = unit_alloc(4096);
	memset(words, 0xee, 4096);
	struct unit_launch u = {
		.kernel = "k", .grid = 1, .block = block, .args = {(uint64_t)(uintptr_t)words}};
	enum ckt_ptx_fault fault = unit_run(module, &u);
	if (fault)
		fprintf(stderr, "fault %d: %s\n", fault, unit_message);
	CU_ASSERT_EQUAL(fault, CKT_PTX_FAULT_NONE);
	ckt_ptx_module_destroy(module);
}

#define EXPECT(n, expr)                    \
	for (unsigned t = 0; t < (n); t++) \
	CU_ASSERT_EQUAL(words[t], (uint32_t)(expr))

static void test_shfl(void)
{
	run(HEAD "shfl.sync.down.b32 a|p, v, 5, 31, -1; @!p add.u32 a, a, 1000;" TAIL, 32);
	EXPECT(32, t + 5 <= 31 ? (t + 5) * 3 : t * 3 + 1000);
	run(HEAD "shfl.sync.up.b32 a|p, v, 3, 0, -1; @!p add.u32 a, a, 1000;" TAIL, 32);
	EXPECT(32, t >= 3 ? (t - 3) * 3 : t * 3 + 1000);
	run(HEAD "shfl.sync.bfly.b32 a, v, 9, 31, -1;" TAIL, 32);
	EXPECT(32, (t ^ 9) * 3);
	run(HEAD "shfl.sync.idx.b32 a, v, 7, 31, -1;" TAIL, 32);
	EXPECT(32, 21);
	/* width 8: c has the segment mask 0x18 in bits 8 to 12 */
	run(HEAD "shfl.sync.idx.b32 a, v, 2, 0x181f, -1;" TAIL, 32);
	EXPECT(32, ((t & 24) + 2) * 3);
	run(HEAD "shfl.sync.down.b32 a|p, v, 6, 0x181f, -1; @!p add.u32 a, a, 1000;" TAIL, 32);
	EXPECT(32, (t & 7) + 6 < 8 ? (t + 6) * 3 : t * 3 + 1000);
	/* two warps, and halves of a warp that name themselves only */
	run(HEAD
		"shr.u32 m, t, 4; and.b32 m, m, 1; shl.b32 m, m, 4; shl.b32 m, 0xffff, m; shfl.sync.bfly.b32 a, v, 1, 0x101f, m;" TAIL,
		64);
	EXPECT(64, (t ^ 1) * 3);
}

static void test_vote(void)
{
	run(HEAD "and.b32 b, t, 1; setp.ne.u32 p, b, 0; vote.sync.ballot.b32 a, p, -1;" TAIL, 32);
	EXPECT(32, 0xaaaaaaaa);
	run(HEAD
		"setp.lt.u32 p, t, 40; vote.sync.all.pred q, p, -1; vote.sync.any.pred r, !p, -1; selp.u32 a, 1, 0, q; @r or.b32 a, a, 2;" TAIL,
		64);
	EXPECT(64, t < 32 ? 1 : 2);
	run(HEAD "setp.lt.u32 p, t, 32; vote.sync.uni.pred q, p, -1; selp.u32 a, 1, 0, q;" TAIL,
		64);
	EXPECT(64, 1);
	run(HEAD "mov.u32 a, 0; setp.lt.u32 p, t, 10; @p activemask.b32 a;" TAIL, 32);
	EXPECT(32, t < 10 ? 0x3ff : 0);
}

static void test_match(void)
{
	run(HEAD "and.b32 b, t, 3; match.any.sync.b32 a, b, -1;" TAIL, 32);
	EXPECT(32, 0x11111111u << (t & 3));
	run(HEAD "shr.u32 b, t, 5; match.all.sync.b32 a|p, b, -1; @!p mov.u32 a, 5;" TAIL, 32);
	EXPECT(32, 0xffffffff);
	run(HEAD "match.all.sync.b32 a|p, t, -1; @!p add.u32 a, a, 5;" TAIL, 32);
	EXPECT(32, 5);
}

static void test_redux(void)
{
	run(HEAD "redux.sync.add.u32 a, v, -1;" TAIL, 32);
	EXPECT(32, 496 * 3);
	run(HEAD "sub.u32 v, v, 10; redux.sync.min.s32 a, v, -1;" TAIL, 32);
	EXPECT(32, -10);
	run(HEAD
		"setp.lt.u32 p, t, 16; mov.u32 a, 0; @p redux.sync.or.b32 a, t, 0xffff; @!p redux.sync.and.b32 a, t, 0xffff0000;" TAIL,
		32);
	EXPECT(32, t < 16 ? 15 : 16);
	run(HEAD "mov.u32 a, 0; elect.sync b|p, -1; @p add.u32 a, b, 7;" TAIL, 32);
	EXPECT(32, t == 0 ? 7 : 0);
}

/*
 * Lanes come to the instruction along different ways, some much later than others; the barrier from
 * different places.
 */
static void test_apart(void)
{
	run(HEAD
		"setp.ge.u32 p, t, 10; @p bra late; mov.u32 c, 0;\nspin: add.u32 c, c, 1; setp.lt.u32 q, c, t; @q bra spin; bra meet;\nlate: add.u32 v, v, 1;\n"
		"meet: shfl.sync.bfly.b32 a, v, 31, 31, -1;" TAIL,
		32);
	EXPECT(32, (31 - t) * 3 + (31 - t >= 10));
	run(UNIT_HEAD
		".shared .u32 s[32];\n.visible .entry k(.param .u64 out)\n{\n.reg .b64 o, x; .reg .b32 t, a, b; .reg .pred p;\n"
		"ld.param.u64 o, [out]; mov.u32 t, %tid.x; mul.wide.u32 x, t, 4; add.u64 x, x, o; setp.lt.u32 p, t, 7; mov.u32 b, s; shl.b32 a, t, 2; add.u32 b, b, a;\n"
		"@p bra few; st.shared.u32 [b], t; bar.warp.sync -1; bra go;\nfew: st.shared.u32 [b], 100; bar.warp.sync -1;\n"
		"go: xor.b32 a, a, 124; mov.u32 b, s; add.u32 b, b, a; ld.shared.u32 a, [b];" TAIL,
		32);
	EXPECT(32, 31 - t < 7 ? 100 : 31 - t);
	/* lanes that have exited are not waited for */
	run(HEAD
		"mov.u32 a, 9; st.global.u32 [x], a; setp.gt.u32 p, t, 20; @p exit; vote.sync.ballot.b32 a, 1, -1;" TAIL,
		32);
	EXPECT(32, t > 20 ? 9 : 0x1fffff);
}

static const struct unit_test tests[] = {{"shfl", test_shfl}, {"vote", test_vote},
	{"match", test_match}, {"redux", test_redux}, {"apart", test_apart}};
UNIT_MAIN("ptx warps", tests)
