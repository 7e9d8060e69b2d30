/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores that a compiled kernel performs itself in the usual case. */
#include <stdio.h>

#include "softgpu/ptx/compiled/emit.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

bool ckt_emit_find_access(const struct emitter *e, uint32_t pc, struct emit_access *a)
{
	const struct ptx_form *form = e->forms[pc];
	const struct ptx_insn *i = &e->f->code[pc];
	*a = (struct emit_access){.n = 1,
		.address = i->a,
		.shared = i->x == SP_SHARED,
		.address_bytes = i->e == 4 ? 4 : 8};
	if (!form || i->a == PTX_OPERAND_NONE || !(i->x == SP_SHARED || i->x <= SP_CONST))
		return false;
	a->is_load = form->kind == FORM_LOAD || form->kind == FORM_LOADS;
	if (form->kind == FORM_LOAD || form->kind == FORM_STORE) {
		a->bytes = a->slots[0] = form->d;
		a->regs[0] = a->is_load ? i->d : i->b;
		return true;
	}
	if (form->kind != FORM_LOADS && form->kind != FORM_STORES)
		return false;
	int32_t regs[PTX_FORM_REGS];
	a->n = form->regs(i, regs) - 1;
	a->bytes = i->y;
	if (i->z >> 4 || a->bytes > 8 || a->n > 4)
		return false; /* ordered, or too wide */
	for (unsigned k = 0; k < a->n; k++) {
		a->regs[k] = regs[1 + k];
		a->slots[k] = ckt_ptx_element_slot(i, k, &a->is_signed[k]);
		if (a->slots[k] > 8 || a->slots[k] != a->slots[0] ||
			a->is_signed[k] != a->is_signed[0])
			return false;
	}
	return true;
}

/* Loads and stores that differ only in their registers share a function. */
static unsigned access_number(const struct emit_access *a)
{
	unsigned bytes = (unsigned)__builtin_ctz(a->bytes);
	return a->is_load | a->shared << 1 | (a->address_bytes == 8) << 2 | bytes << 3 |
		(a->n - 1) << 5 | (a->slots[0] == 8) << 7 | a->is_signed[0] << 8;
}

/* The C expression that converts an element in memory to its register's type. */
static void loaded(const struct emit_access *a, const char *element, char *text, size_t size)
{
	if (a->is_signed[0] && a->bytes == 2 && a->slots[0] == 4)
		snprintf(text, size, "(uint32_t)(int16_t)%s", element);
	else
		snprintf(text, size, "(%s)(%sint%u_t)%s", ckt_emit_type(a->slots[0]),
			a->is_signed[0] ? "" : "u", a->bytes * 8, element);
}

/*
 * Writes the case of all lanes side by side, beginning at `to`; it needs a register for every
 * element.
 */
static void say_side_by_side(struct emitter *e, const struct emit_access *a)
{
	char element[EMIT_VALUE], value[2 * EMIT_VALUE];
	say(e, "\tif (way == 1");
	for (unsigned k = 0; k < a->n; k++)
		say(e, " && r%u", k);
	say(e, " && (to = (uint%u_t *)place(w, address_of(A, %u, 0, imm), %u, %u, %d, %d))) {\n\t\tINDEPENDENT\n\t\tfor (unsigned l = 0; l < 32; l++) {",
		a->bytes * 8, a->address_bytes, 32 * a->bytes * a->n, a->bytes * a->n, a->shared,
		!a->is_load);
	for (unsigned k = 0; k < a->n; k++) {
		snprintf(element, sizeof element, "to[l * %u + %u]", a->n, k);
		loaded(a, element, value, sizeof value);
		if (a->is_load)
			say(e, " r%u[l] = %s;", k, value);
		else
			say(e, " %s = (uint%u_t)r%u[l];", element, a->bytes * 8, k);
	}
	say(e, " }\n\t\treturn true;\n\t}\n");
}

static void say_access_function(struct emitter *e, const struct emit_access *a)
{
	char element[EMIT_VALUE], value[2 * EMIT_VALUE];
	const char *type = ckt_emit_type(a->slots[0]);
	say(e, "APART bool access_%u(uint8_t *w, const uint8_t *A, uint64_t imm, uint32_t m, int way",
		access_number(a));
	for (unsigned k = 0; k < a->n; k++)
		say(e, ", %s *r%u", type, k);
	say(e, ")\n{\n\tuint%u_t *to, v[%u][32];\n", a->bytes * 8, a->n);
	say_side_by_side(e, a);
	for (unsigned k = 0; k < a->n && !a->is_load; k++)
		say(e, "\tfor (unsigned l = 0; l < 32; l++) v[%u][l] = (uint%u_t)r%u[l];\n", k,
			a->bytes * 8, k);
	say(e, "\tif (!%s_%u(w, A, %u, imm, m, %d, way == 2, %u, v))\n\t\treturn false;\n",
		a->is_load ? "load" : "store", a->bytes, a->address_bytes, a->shared, a->n);
	for (unsigned k = 0; k < a->n && a->is_load; k++) {
		snprintf(element, sizeof element, "v[%u][l]", k);
		loaded(a, element, value, sizeof value);
		say(e, "\tif (r%u)\n\t\tfor (unsigned l = 0; l < 32; l++) r%u[l] = m >> l & 1 ? %s : r%u[l];\n",
			k, k, value, k);
	}
	say(e, "\treturn true;\n}\n");
}

void ckt_emit_say_access_functions(struct emitter *e)
{
	for (uint32_t pc = 0; pc < e->n; pc++) {
		struct emit_access a;
		if (!ckt_emit_find_access(e, pc, &a) || e->said[access_number(&a)])
			continue;
		e->said[access_number(&a)] = true;
		say_access_function(e, &a);
	}
}

const char *ckt_emit_say_way(struct emitter *e, uint32_t pc, int32_t address,
	unsigned address_bytes, uint32_t size, char text[EMIT_VALUE])
{
	char row[EMIT_VALUE];
	if (!ckt_emit_is_register(address))
		return "2";
	for (unsigned k = 0; k < e->n_ways; k++) {
		if (e->ways[k].address != address || e->ways[k].size != size)
			continue;
		snprintf(text, EMIT_VALUE, "way_%u", e->ways[k].pc);
		return text;
	}
	if (e->n_ways < EMIT_WAYS)
		e->ways[e->n_ways++] =
			(struct emit_way){.address = address, .size = size, .pc = pc};
	say(e, "\tconst int way_%u = mask == ~0u ? lie_%u_%u(%s) : 0;\n", pc, address_bytes, size,
		ckt_emit_row(address, row));
	snprintf(text, EMIT_VALUE, "way_%u", pc);
	return text;
}

void ckt_emit_forget_ways(struct emitter *e, uint32_t pc)
{
	const struct ptx_form *form = e->forms[pc];
	struct emit_touched t;
	ckt_emit_touch(form, &e->f->code[pc], &t);
	/* The forms of these kinds do not tell which of the named registers they write. */
	bool any = form &&
		(form->kind == FORM_PLAIN || form->kind == FORM_SIDE || form->kind == FORM_ATOMIC ||
			form->kind == FORM_WARP);
	for (unsigned k = 0; k < e->n_ways;) {
		bool gone = t.all;
		for (unsigned n = 0; n < t.n_writes; n++)
			gone |= t.writes[n] == e->ways[k].address;
		for (unsigned n = 0; any && n < t.n_reads; n++)
			gone |= t.reads[n] == e->ways[k].address;
		if (gone)
			e->ways[k] = e->ways[--e->n_ways];
		else
			k++;
	}
}

void ckt_emit_say_access(struct emitter *e, uint32_t pc, const struct emit_access *a)
{
	const struct ptx_insn *i = &e->f->code[pc];
	char name[EMIT_VALUE], row[EMIT_VALUE];
	const char *way =
		ckt_emit_say_way(e, pc, a->address, a->address_bytes, a->bytes * a->n, name);
	ckt_emit_say_guard(e, i);
	say(e, "\tif (m && !access_%u(w, %s, %lluull, m, m == ~0u ? %s : 0", access_number(a),
		ckt_emit_row(a->address, row), (unsigned long long)i->imm, way);
	for (unsigned k = 0; k < a->n; k++) {
		if (a->regs[k] == PTX_OPERAND_NONE)
			say(e, ", 0");
		else
			say(e, ", (%s *)(%s)", ckt_emit_type(a->slots[0]),
				ckt_emit_row(a->regs[k], row));
	}
	say(e, ")) {\n");
	ckt_emit_say_call(e, pc);
	say(e, "\t}\n");
}
