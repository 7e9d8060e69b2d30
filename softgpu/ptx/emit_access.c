/*
 * Loads and stores that a compiled kernel does by itself where all goes well.
 */
#include <stdio.h>

#include "softgpu/ptx/emit.h"

bool ckt_emit_find_access(const struct emitter *e, uint32_t pc, struct emit_access *a)
{
	const struct ptx_form *form = e->forms[pc];
	const struct ptx_insn *i = &e->f->code[pc];
	*a = (struct emit_access){.n = 1, .address = i->a, .shared = i->x == SP_SHARED, .address_bytes = i->e == 4 ? 4 : 8};
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
		return false;	/* ordered, or too wide */
	for (unsigned k = 0; k < a->n; k++) {
		a->regs[k] = regs[1 + k];
		a->slots[k] = ckt_ptx_element_slot(i, k, &a->is_signed[k]);
		if (a->slots[k] > 8)
			return false;
	}
	return true;
}

/* Loads and stores that differ in their registers only share a function. */
static unsigned access_number(const struct emit_access *a)
{
	unsigned bytes = (unsigned)__builtin_ctz(a->bytes);
	return a->is_load | a->shared << 1 | (a->address_bytes == 8) << 2 | bytes << 3 | (a->n - 1) << 5;
}

void ckt_emit_say_access_functions(struct emitter *e)
{
	for (uint32_t pc = 0; pc < e->n; pc++) {
		struct emit_access a;
		if (!ckt_emit_find_access(e, pc, &a) || e->said[access_number(&a)])
			continue;
		e->said[access_number(&a)] = true;
		say(e, "APART bool access_%u(uint8_t *w, const uint8_t *A, uint64_t imm, uint32_t m, uint%u_t (*v)[32]) { return %s_%u(w, A, %u, imm, m, %d, %u, v); }\n",
		    access_number(&a), a.bytes * 8, a.is_load ? "load" : "store", a.bytes, a.address_bytes, a.shared, a.n);
	}
}

void ckt_emit_say_access(struct emitter *e, uint32_t pc, const struct emit_access *a)
{
	const struct ptx_insn *i = &e->f->code[pc];
	const char *bank = ckt_emit_is_register(a->address) ? "R" : "K";
	say(e, "\t{ uint%u_t v[%u][32];\n", a->bytes * 8, a->n);
	for (unsigned k = 0; k < a->n && !a->is_load; k++) {
		const char *from = ckt_emit_is_register(a->regs[k]) ? "R" : "K";
		say(e, "\tfor (unsigned l = 0; l < 32; l++) v[%u][l] = (uint%u_t)((const %s *)(%s + %u))[l];\n", k, a->bytes * 8, ckt_emit_type(a->slots[k]), from,
		    (uint32_t)a->regs[k] & 0x7fffffffu);
	}
	ckt_emit_say_guard(e, i);
	say(e, "\tif (!m) {\n\t} else if (!access_%u(w, %s + %u, %lluull, m, v)) {\n", access_number(a), bank, (uint32_t)a->address & 0x7fffffffu,
	    (unsigned long long)i->imm);
	say(e, "\t\tW32(WARP_PC) = %u;\n\t\tr = CALL(%u, m);\n\t\tif (r)\n\t\t\tgoto look;\n", pc + 1, pc);
	say(e, "\t}");
	if (a->is_load)
		say(e, " else if (m == ~0u) {\n");
	for (int full = 1; full >= 0 && a->is_load; full--) {
		for (unsigned k = 0; k < a->n; k++) {
			const char *type = ckt_emit_type(a->slots[k]);
			if (a->regs[k] == PTX_OPERAND_NONE)
				continue;
			char value[64];
			if (a->is_signed[k] && a->bytes == 2 && a->slots[k] == 4)
				snprintf(value, sizeof value, "(uint32_t)(int16_t)v[%u][l]", k);
			else
				snprintf(value, sizeof value, "(%s)(%sint%u_t)v[%u][l]", type, a->is_signed[k] ? "" : "u", a->bytes * 8, k);
			if (full)
				say(e, "\t\tfor (unsigned l = 0; l < 32; l++) ((%s *)(R + %d))[l] = %s;\n", type, a->regs[k], value);
			else
				say(e, "\t\tfor (unsigned l = 0; l < 32; l++) ((%s *)(R + %d))[l] = m >> l & 1 ? %s : ((%s *)(R + %d))[l];\n", type, a->regs[k],
				    value, type, a->regs[k]);
		}
		say(e, "\t}%s", full ? " else {\n" : "");
	}
	say(e, "\n\t}\n");
}
