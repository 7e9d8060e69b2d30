/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/ptx/compiled/emit_form.c: forms by handler, and the registers that an instruction
 * touches.
 */
#include "emitted.h"
#include "softgpu/ptx/execution/sreg.h"
#include "softgpu/ptx/execution/lanes.h"

static int handler_without_form(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)
{
	(void)w;
	(void)i;
	return (int)m;
}

static void test_forms(void)
{
	CU_ASSERT_PTR_NULL(ckt_ptx_form(handler_without_form));
	const struct ptx_form *form = ckt_ptx_form(ckt_ptx_exec_sreg);
	CU_ASSERT_PTR_NOT_NULL_FATAL(form);
	IS(form->kind, FORM_SREG);
	TEXT(form->name, "ckt_ptx_exec_sreg");
}

static void test_touch(void)
{
	struct emit_touched t;
	const struct ptx_form lane = {.kind = FORM_LANE, .d = 4, .a = 4, .b = 8},
			      plain = {.kind = FORM_PLAIN};
	struct ptx_insn i = {.guard = PTX_OPERAND_NONE,
		.d = 0,
		.a = 128,
		.b = (int32_t)PTX_CONST_BIT,
		.c = 512,
		.e = PTX_OPERAND_NONE};
	ckt_emit_touch(&lane, &i, &t);
	IS(t.all, 0);
	IS(t.n_reads, 1); /* neither the constant nor c, which the form has not */
	IS(t.reads[0], 128);
	IS(t.n_writes, 1);
	IS(t.writes[0], 0);
	/* Who fails the guard keeps the old value: it is read. */
	i.guard = 256;
	ckt_emit_touch(&lane, &i, &t);
	IS(t.n_reads, 3);
	IS(t.reads[0], 256);
	IS(t.reads[2], 0);
	/* What is called may read all five, and nothing is known of what it writes. */
	ckt_emit_touch(&plain, &i, &t);
	IS(t.n_reads, 4);
	IS(t.n_writes, 0);
	ckt_emit_touch(NULL, &i, &t);
	IS(t.all, 1);
}

static void test_constant(void)
{
	struct ptx_constant constants[] = {{.offset = 0, .value = 5}, {.offset = 128, .value = 6},
		{.offset = 384, .value = 7}};
	struct ckt_ptx_function f = {.constants = constants, .n_constants = COUNT(constants)};
	for (unsigned k = 0; k < COUNT(constants); k++)
		CU_ASSERT_PTR_EQUAL(
			ckt_emit_constant(&f, (int32_t)(constants[k].offset | PTX_CONST_BIT)),
			&constants[k]);
	CU_ASSERT_PTR_NULL(ckt_emit_constant(&f, (int32_t)(256 | PTX_CONST_BIT)));
	CU_ASSERT_PTR_NULL(ckt_emit_constant(&f, (int32_t)(512 | PTX_CONST_BIT)));
}

UNIT_SUITE(emit_form, {"forms", test_forms}, {"touch", test_touch}, {"constant", test_constant})
