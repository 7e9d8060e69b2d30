/* SPDX-License-Identifier: Apache-2.0 */
/*
 * atom and red on words of 4 and 8 bytes, if every lane's address is clearly in global memory or in
 * the block's own shared memory.  The handler does everything else.
 */
#include <stdio.h>

#include "softgpu/ptx/execution/atom.h"
#include "softgpu/ptx/compiled/emit.h"
#include "softgpu/ptx/front/types.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

enum { KIND_UNSIGNED, KIND_SIGNED, KIND_FLOAT };

static unsigned kind_of(enum ptx_type type)
{
	return type == T_S32 || type == T_S64    ? KIND_SIGNED
		: type == T_F32 || type == T_F64 ? KIND_FLOAT
						 : KIND_UNSIGNED;
}

bool ckt_emit_fits_atomic(const struct emitter *e, uint32_t pc)
{
	const struct ptx_insn *i = &e->f->code[pc];
	if (!e->forms[pc] || e->forms[pc]->kind != FORM_ATOMIC || i->a == PTX_OPERAND_NONE)
		return false;
	const struct atomic *a = i->side;
	bool word = a->n == 1 && (a->bytes == 4 || a->bytes == 8) && a->type != T_F16X2 &&
		a->type != T_BF16X2;
	bool space = a->space == SP_GLOBAL || a->space == SP_GENERIC || a->space == SP_SHARED;
	return word && space && (kind_of(a->type) != KIND_FLOAT || a->op == A_ADD);
}

/* Atomics with the same number share a function. */
static unsigned number(const struct ptx_insn *i)
{
	const struct atomic *a = i->side;
	return (unsigned)a->op | kind_of(a->type) << 4 | (a->bytes == 8) << 6 |
		(a->space == SP_SHARED) << 7 | (i->e == 4) << 8 |
		(a->d[0] != PTX_OPERAND_NONE) << 9;
}

void ckt_emit_say_atomic_functions(struct emitter *e)
{
	for (uint32_t pc = 0; pc < e->n; pc++) {
		const struct ptx_insn *i = &e->f->code[pc];
		if (!ckt_emit_fits_atomic(e, pc) || e->said[EMIT_ACCESSES + number(i)])
			continue;
		const struct atomic *a = i->side;
		unsigned bits = a->bytes * 8u;
		e->said[EMIT_ACCESSES + number(i)] = true;
		say(e,
			"APART bool atomic_do_%u(uint8_t *w, const uint8_t *A, uint64_t imm, uint32_t m, bool all, const void *b, const void *c, void *d)\n"
			"{ return atomic_at_%u(w, A, %u, imm, m, all, %d, %d, %u, b, c, %s); }\n",
			number(i), bits, i->e == 4 ? 4 : 8, a->space == SP_SHARED, a->op,
			kind_of(a->type), a->d[0] == PTX_OPERAND_NONE ? "(void *)0" : "d");
	}
}

void ckt_emit_say_atomic(struct emitter *e, uint32_t pc)
{
	const struct ptx_insn *i = &e->f->code[pc];
	const struct atomic *a = i->side;
	char name[EMIT_VALUE], address[EMIT_VALUE], b[EMIT_VALUE], c[EMIT_VALUE] = "0",
								   d[EMIT_VALUE] = "0";
	ckt_emit_row(i->a, address);
	ckt_emit_row(a->b[0], b);
	if (a->c != PTX_OPERAND_NONE)
		ckt_emit_row(a->c, c);
	if (a->d[0] != PTX_OPERAND_NONE)
		ckt_emit_row(a->d[0], d);
	const char *way = ckt_emit_say_way(e, pc, i->a, i->e == 4 ? 4 : 8, a->bytes, name);
	ckt_emit_say_guard(e, i);
	say(e, "\tif (m && !atomic_do_%u(w, %s, %lluull, m, m == ~0u && %s == 2, %s, %s, %s)) {\n",
		number(i), address, (unsigned long long)i->imm, way, b, c, d);
	ckt_emit_say_call(e, pc);
	say(e, "\t}\n");
}
