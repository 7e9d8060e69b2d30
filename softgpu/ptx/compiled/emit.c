/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a kernel as C that does what the interpreter would do.
 *
 * A function becomes ckt_kernel_INDEX, which runs one group of lanes as run_group does (sched.c):
 * from warp->pc until the group meets another, waits, faults or has used its budget.  The scheduler
 * still decides on groups, barriers and fairness, so progress is the same.  If a group splits,
 * compiled code continues its parts by the scheduler's rule (kernel_head.in), until the end of a
 * slice with several groups.  The scheduler gets the groups back before a handler is called and at
 * the end of the slice.
 *
 *	block      instructions from a place where a group may begin to the next such place; each
 *	           block checks the budget and the meeting point
 *	stretch    instructions of a block that each lane computes alone: one loop over the lanes,
 *	           which the C compiler turns into vector instructions; registers are read before
 *	           the loop and written after it, unless nobody reads them again
 *	the rest   loads, stores, atomics and instructions of a whole warp run as compiled code in
 *	           the usual case and in their handlers otherwise; every other instruction calls
 *	           its handler
 *
 * A lane's computation is the text of the handler's own expression (form.h), so both give the same
 * bits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/memory/memmap.h"
#include "softgpu/ptx/compiled/emit.h"
#include "softgpu/ptx/execution/grid.h"
#include "softgpu/ptx/execution/sched.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

enum { MOST_INSNS = 10000 }; /* of all functions: one minute of compiling */

void ckt_emit_say_guard(struct emitter *e, const struct ptx_insn *i)
{
	const struct ptx_constant *c =
		ckt_emit_is_register(i->guard) || i->guard == PTX_OPERAND_NONE
		? NULL
		: ckt_emit_constant(e->f, i->guard);
	if (i->guard == PTX_OPERAND_NONE)
		say(e, "\tm = mask;\n");
	else if (c)
		say(e, "\tm = %s;\n", (c->value != 0) != (i->guard_negated != 0) ? "mask" : "0");
	else
		say(e, "\tm = mask & %s*(const uint32_t *)(R + %d);\n", i->guard_negated ? "~" : "",
			i->guard);
}

static void say_go(struct emitter *e, uint32_t pc)
{
	if (pc < e->n)
		say(e, "goto at_%u;", pc);
	else
		say(e, "{ pc = %u; goto leave; }", pc);
}

static void say_branch(struct emitter *e, uint32_t pc)
{
	const struct ptx_insn *i = &e->f->code[pc];
	if (i->guard == PTX_OPERAND_NONE) {
		say(e, "\t");
		say_go(e, (uint32_t)i->imm);
		say(e, "\n");
		return;
	}
	ckt_emit_say_guard(e, i);
	say(e, "\tif (m == mask) ");
	say_go(e, (uint32_t)i->imm);
	say(e, "\n\tif (m) { pc = %u; other = %u; goto part; }\n", pc + 1, (uint32_t)i->imm);
}

void ckt_emit_say_call(struct emitter *e, uint32_t pc)
{
	say(e, "\t\tTELL;\n\t\tW32(WARP_PC) = %u;\n\t\tr = CALL(%u, m);\n\t\tif (r)\n\t\t\tgoto look;\n",
		pc + 1, pc);
}

static void say_handler(struct emitter *e, uint32_t pc)
{
	ckt_emit_say_guard(e, &e->f->code[pc]);
	say(e, "\tif (m) {\n");
	ckt_emit_say_call(e, pc);
	say(e, "\t}\n");
}

static void say_block(struct emitter *e, const struct emit_block *b, struct emit_stretch *s)
{
	say(e, "at_%u:\n\t__asm__ volatile(\"\" ::: \"memory\");\n\tif (stop <= %u || !left) { pc = %u; goto leave; }\n\tleft = left > %u ? left - %u : 0;\n\t{\n",
		b->first, b->first, b->first, b->end - b->first, b->end - b->first);
	e->n_ways = 0;
	for (uint32_t pc = b->first; pc < b->end;) {
		const struct ptx_form *form = e->forms[pc];
		uint32_t end = pc + 1;
		struct emit_access a;
		if (ckt_emit_fits_lane(e, pc)) {
			end = ckt_emit_stretch_end(e, b, pc, s);
			say(e, "\tif (mask == ~0u) stretch_%u_%u_full(w, R, K, P, mask); else stretch_%u_%u_part(w, R, K, P, mask);\n",
				e->f->index, pc, e->f->index, pc);
		} else if (form && form->kind == FORM_BRANCH) {
			say_branch(e, pc);
		} else if (ckt_emit_find_access(e, pc, &a)) {
			ckt_emit_say_access(e, pc, &a);
		} else if (ckt_emit_fits_atomic(e, pc)) {
			ckt_emit_say_atomic(e, pc);
		} else if (ckt_emit_fits_warp(e, pc)) {
			ckt_emit_say_warp(e, pc);
		} else {
			say_handler(e, pc);
		}
		for (; pc < end; pc++)
			ckt_emit_forget_ways(e, pc);
	}
	say(e, "\t}\n");
}

static void say_function(struct emitter *e)
{
	struct emit_stretch *s = malloc(sizeof *s);
	if (!s) {
		e->failed = true;
		return;
	}
	ckt_emit_say_access_functions(e);
	ckt_emit_say_atomic_functions(e);
	for (uint32_t b = 0; b < e->n_blocks; b++) {
		for (uint32_t pc = e->blocks[b].first; pc < e->blocks[b].end;) {
			if (!ckt_emit_fits_lane(e, pc)) {
				pc++;
				continue;
			}
			uint32_t end = ckt_emit_stretch_end(e, &e->blocks[b], pc, s);
			ckt_emit_say_stretch(e, &e->blocks[b], pc, end, s);
			pc = end;
		}
	}
	say(e, "__attribute__((visibility(\"default\"))) int ckt_kernel_%u(uint8_t *w, const uint8_t *code, uint32_t stop, unsigned *budget)\n{\n",
		e->f->index);
	say(e,
		"\tuint8_t *const R = WP(WARP_BANK);\n\tconst uint8_t *const K = WP(WARP_BANK + 8), *const P = *(uint8_t **)(LAUNCH + LAUNCH_PARAMS);\n"
		"\tuint8_t *const frame = WP(WARP_FRAME);\n\tuint32_t mask = W32(WARP_MASK), m, pc = W32(WARP_PC), other, outer = stop;\n"
		"\tunsigned left = *budget, later = 0, told = 0;\n\tstruct groups groups;\n\tint r;\n"
		"\tgroups.n = 0;\n\t(void)K; (void)P; (void)m; (void)other;\nagain:\n\tswitch (pc) {\n");
	for (uint32_t b = 0; b < e->n_blocks; b++)
		say(e, "\tcase %u: goto at_%u;\n", e->blocks[b].first, e->blocks[b].first);
	say(e, "\tdefault: TELL; W32(WARP_PC) = pc; r = -1; goto out;\n\t}\n");
	for (uint32_t b = 0; b < e->n_blocks; b++)
		say_block(e, &e->blocks[b], s);
	/*
	 * No text follows the last instruction: the interpreter would read beyond it, so every
	 * function ends with ret.
	 */
	say(e,
		"\tpc = %u;\n\tgoto leave;\npart:\n\tPART(m, other, mask & ~m, pc);\n\tgoto again;\nlook:\n\tif (r != RUN_JUMP || WP(WARP_FRAME) != frame)\n\t\tgoto out;\n"
		"\tmask = W32(WARP_MASK);\n\tpc = W32(WARP_PC);\n\tgoto again;\nleave:\n\tif (groups.n && left) {\n\t\tMEET;\n\t\tif (pc < outer)\n\t\t\tgoto again;\n\t}\n"
		"\tTELL;\n\tW32(WARP_PC) = pc;\n\tr = RUN_JUMP;\nout:\n\t*budget = left + later + told;\n\treturn r;\n}\n",
		e->n);
	free(s);
}

static void emit_function(FILE *out, const struct ckt_ptx_function *f, bool *said, bool *failed)
{
	struct emitter e = {.out = out,
		.said = said,
		.f = f,
		.n = (uint32_t)f->n_code,
		.param_bytes = f->info.is_entry ? f->info.param_bytes : 0};
	e.forms = calloc(e.n, sizeof *e.forms);
	e.starts = calloc(e.n, sizeof *e.starts);
	e.blocks = calloc(e.n, sizeof *e.blocks);
	e.block_of = calloc(e.n, sizeof *e.block_of);
	e.ids = calloc(f->reg_bytes / 4 + 16, sizeof *e.ids);
	if (e.forms && e.starts && e.blocks && e.block_of && e.ids) {
		for (uint32_t pc = 0; pc < e.n; pc++)
			e.forms[pc] = ckt_ptx_form(f->code[pc].fn);
		ckt_emit_find_blocks(&e);
		if (ckt_emit_find_live(&e))
			say_function(&e);
		else
			e.failed = true;
	} else {
		e.failed = true;
	}
	*failed |= e.failed;
	free(e.forms);
	free(e.starts);
	free(e.blocks);
	free(e.block_of);
	free(e.ids);
	free(e.live);
}

/* Writes the offsets of the structure members that compiled code reads. */
static void say_layout(FILE *out)
{
	const struct {
		const char *name;
		uint64_t value;
	} values[] = {{"WARP_BANK", offsetof(struct ptx_warp, bank)},
		{"WARP_FRAME", offsetof(struct ptx_warp, frame)},
		{"WARP_MASK", offsetof(struct ptx_warp, mask)},
		{"WARP_PC", offsetof(struct ptx_warp, pc)},
		{"WARP_BLOCK", offsetof(struct ptx_warp, block)},
		{"WARP_LAST", offsetof(struct ptx_warp, last_page)},
		{"WARP_LAST_WRITE", offsetof(struct ptx_warp, last_page_write)},
		{"WARP_POLLS", offsetof(struct ptx_warp, polls)},
		{"WARP_TID", offsetof(struct ptx_warp, tid)},
		{"BLOCK_CTAID", offsetof(struct ptx_block, ctaid)},
		{"BLOCK_SHARED", offsetof(struct ptx_block, shared)},
		{"BLOCK_SHARED_BYTES", offsetof(struct ptx_block, shared_bytes)},
		{"BLOCK_GRID", offsetof(struct ptx_block, grid)},
		{"GRID_LAUNCH", offsetof(struct ptx_grid, launch)},
		{"LAUNCH_GRID", offsetof(struct ckt_ptx_launch, grid)},
		{"LAUNCH_BLOCK", offsetof(struct ckt_ptx_launch, block)},
		{"LAUNCH_PARAMS", offsetof(struct ckt_ptx_launch, params)},
		{"INSN_BYTES", sizeof(struct ptx_insn)}, {"SHARED_MAX", PTX_SHARED_MAX},
		{"FAIR_INSNS", PTX_FAIR_INSNS}, {"PAGE_SHIFT", CKT_SOFT_PAGE_SHIFT},
		{"LEAF_SHIFT", CKT_SOFT_LEAF_SHIFT}, {"LEAF_PAGES", CKT_SOFT_LEAF_PAGES},
		{"PAGE_READ", CKT_SOFT_PAGE_READ}, {"PAGE_WRITE", CKT_SOFT_PAGE_WRITE},
		{"RUN_JUMP", RUN_JUMP}, {"RUN_PICK", RUN_PICK}};
	_Static_assert(offsetof(struct ptx_insn, fn) == 0, "CALL reads the handler there");
	for (size_t k = 0; k < sizeof values / sizeof *values; k++)
		fprintf(out, "#define %s %llu\n", values[k].name,
			(unsigned long long)values[k].value);
	fputs("#define LAUNCH (*(const uint8_t **)(*(const uint8_t **)(WP(WARP_BLOCK) + BLOCK_GRID) + GRID_LAUNCH))\n",
		out);
}

static bool is_wanted(
	const struct ckt_ptx_module *module, size_t k, const struct ptx_prepared *prepared)
{
	return module->functions[k]->n_code && (!prepared || prepared->pools[k]);
}

static bool fits(const struct ckt_ptx_module *module, const struct ptx_prepared *prepared)
{
	size_t n_insns = 0;
	for (size_t k = 0; k < module->n_functions; k++)
		n_insns += is_wanted(module, k, prepared) ? module->functions[k]->n_code : 0;
	return n_insns <= MOST_INSNS;
}

bool ckt_ptx_emit_fits(const struct ckt_ptx_module *module)
{
	return fits(module, NULL);
}

char *ckt_ptx_emit_kernel(const struct ckt_ptx_function *entry, const struct ptx_prepared *prepared)
{
	const struct ckt_ptx_module *module = entry->module;
	size_t size = 0;
	char *text = NULL;
	bool failed = false, said[EMIT_ACCESSES + EMIT_ATOMICS] = {false};
	if (!fits(module, prepared))
		return NULL;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	say_layout(out);
	fputs(ckt_ptx_kernel_head, out);
	for (size_t k = 0; k < module->n_functions && !failed; k++)
		if (is_wanted(module, k, prepared))
			emit_function(out, module->functions[k], said, &failed);
	if (fclose(out) || failed) {
		free(text);
		return NULL;
	}
	return text;
}
