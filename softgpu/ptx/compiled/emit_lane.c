/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stretches of a compiled kernel: instructions that each lane computes alone, as one loop over the
 * lanes.
 */
#include <stdio.h>
#include <string.h>

#include "softgpu/ptx/compiled/emit.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

/*
 * Whether a compiler finds no vector instructions for the form.  Such an instruction gets a loop of
 * its own, so that the other loops still vectorise.
 */
static bool is_lonely(const struct ptx_form *form)
{
	static const char *const names[] = {"divide_u", "divide_s", "modulo_", "mul_hi_u64",
		"mul_hi_s64", "mad_hi_u64", "mad_hi_s64", "popc_", "clz_", "bfind_", "fns",
		"fma_f32", "fma_f64", "brev_64", "u64_to_f", "s64_to_f", "f32_to_s64", "f64_to_s64",
		"f32_to_u32"};
	for (size_t k = 0; k < sizeof names / sizeof *names; k++)
		if (!strncmp(form->name, names[k], strlen(names[k])))
			return true;
	return false;
}

bool ckt_emit_fits_lane(const struct emitter *e, uint32_t pc)
{
	const struct ptx_form *form = e->forms[pc];
	const struct ptx_insn *i = &e->f->code[pc];
	char text[128];
	if (!form)
		return false;
	switch (form->kind) {
	case FORM_LANE:
		return form->d <= 8 && form->a <= 8 && form->b <= 8 && form->c <= 8 &&
			ckt_emit_is_register(i->d);
	case FORM_COMPARE:
		return ckt_emit_is_register(i->d);
	case FORM_PACK:
	case FORM_UNPACK:
		return i->z <= 8 && i->x <= PTX_FORM_REGS;
	case FORM_NOTHING:
		return true;
	/* with a guard, the mask would be the lanes that pass it */
	case FORM_MASK:
		return i->guard == PTX_OPERAND_NONE;
	case FORM_SREG:
		return i->y &&
			(ckt_ptx_sreg_text(i->x, text, sizeof text) ||
				ckt_ptx_sreg_uniform_text(i->x, text, sizeof text));
	case FORM_PARAM:
		return i->imm >= 0 && (uint64_t)i->imm + i->y <= e->param_bytes &&
			i->imm % i->y == 0;
	default:
		return false;
	}
}

enum { LOADED = 1, WRITTEN = 2 }; /* the uses of a local */

static struct emit_local *local_of(struct emit_stretch *s, int32_t reg, unsigned bytes)
{
	for (unsigned k = 0; k < s->n; k++)
		if (s->locals[k].reg == reg)
			return &s->locals[k];
	if (s->n == sizeof s->locals / sizeof *s->locals)
		return NULL;
	s->locals[s->n] = (struct emit_local){.reg = reg, .bytes = (uint8_t)bytes};
	return &s->locals[s->n++];
}

static bool note_read(
	const struct emitter *e, struct emit_stretch *s, int32_t operand, unsigned bytes)
{
	if (!bytes || operand == PTX_OPERAND_NONE)
		return true;
	const struct ptx_constant *c =
		ckt_emit_is_register(operand) ? NULL : ckt_emit_constant(e->f, operand);
	if (c && !c->symbol)
		return true;
	struct emit_local *v = local_of(s, operand, bytes);
	if (!v)
		return false;
	if (!(v->how & WRITTEN))
		v->how |= LOADED;
	return true;
}

static bool note_write(const struct emitter *e, struct emit_stretch *s, int32_t operand,
	unsigned bytes, bool guarded)
{
	if (!ckt_emit_is_register(operand))
		return true;
	if (guarded && !note_read(e, s, operand, bytes))
		return false;
	struct emit_local *v = local_of(s, operand, bytes);
	if (!v)
		return false;
	v->how |= WRITTEN;
	return true;
}

static bool note_insn(const struct emitter *e, struct emit_stretch *s, uint32_t pc)
{
	const struct ptx_insn *i = &e->f->code[pc];
	const struct ptx_form *form = e->forms[pc];
	bool guarded = i->guard != PTX_OPERAND_NONE, ok = note_read(e, s, i->guard, 1);
	switch (form->kind) {
	case FORM_LANE:
		ok = ok && note_read(e, s, i->a, form->a) && note_read(e, s, i->b, form->b) &&
			note_read(e, s, i->c, form->c) && note_read(e, s, i->e, form->e);
		return ok && note_write(e, s, i->d, form->d, guarded);
	case FORM_COMPARE:
		ok = ok && note_read(e, s, i->a, form->a) && note_read(e, s, i->b, form->b) &&
			(!i->x || note_read(e, s, i->c, 1));
		return ok && note_write(e, s, i->d, 1, guarded) &&
			note_write(e, s, i->e, 1, guarded);
	case FORM_PACK:
		for (unsigned k = 0; k < i->x; k++)
			ok = ok && note_read(e, s, i->list[k], i->y == 64 ? 8 : 4);
		return ok && note_write(e, s, i->d, i->z, guarded);
	case FORM_UNPACK:
		ok = ok && note_read(e, s, i->a, i->z);
		for (unsigned k = 0; k < i->x; k++)
			ok = ok && note_write(e, s, i->list[k], i->y == 64 ? 8 : 4, guarded);
		return ok;
	case FORM_MASK:
		return ok && note_write(e, s, i->d, 4, guarded);
	case FORM_SREG:
	case FORM_PARAM:
		return ok && note_write(e, s, i->d, i->y, guarded);
	default:
		return ok;
	}
}

/* The C text of an operand's value inside a stretch. */
static const char *value_of(
	const struct emitter *e, int32_t operand, unsigned bytes, char text[EMIT_VALUE])
{
	const struct ptx_constant *c = ckt_emit_is_register(operand) || operand == PTX_OPERAND_NONE
		? NULL
		: ckt_emit_constant(e->f, operand);
	if (operand == PTX_OPERAND_NONE)
		snprintf(text, EMIT_VALUE, "0");
	else if (ckt_emit_is_register(operand))
		snprintf(text, EMIT_VALUE, "%c%d", bytes == 1 ? 'p' : 'r', operand);
	else if (!c || c->symbol)
		snprintf(text, EMIT_VALUE, "k%u",
			(uint32_t)operand &
				0x7fffffffu); /* an address that is known at the launch */
	else if (bytes == 1)
		snprintf(text, EMIT_VALUE, "%d", c->value != 0);
	else if (bytes == 4)
		snprintf(text, EMIT_VALUE, "0x%xu", (uint32_t)c->value);
	else
		snprintf(text, EMIT_VALUE, "0x%llxull", (unsigned long long)c->value);
	return text;
}

/* Writes a form's text with the instruction's small values filled in. */
static void say_text(struct emitter *e, const struct ptx_insn *i, const char *text)
{
	for (const char *at; (at = strstr(text, "i->")); text = at) {
		say(e, "%.*s", (int)(at - text), text);
		at += 3;
		if (!strncmp(at, "imm", 3)) {
			say(e, "((int64_t)%lluull)", (unsigned long long)i->imm);
			at += 3;
		} else {
			say(e, "%u", *at == 'x' ? i->x : *at == 'y' ? i->y : i->z);
			at++;
		}
	}
	say(e, "%s", text);
}

/*
 * Writes the assignment of d, or of the old value if the guard fails, to the local of a register.
 */
static void say_result(struct emitter *e, const struct ptx_insn *i, int32_t reg, unsigned bytes,
	const char *result)
{
	char guard[EMIT_VALUE];
	if (!ckt_emit_is_register(reg))
		return;
	if (i->guard != PTX_OPERAND_NONE)
		say(e, " %c%d = %s%s ? %s : %c%d;", bytes == 1 ? 'p' : 'r', reg,
			i->guard_negated ? "!" : "", value_of(e, i->guard, 1, guard), result,
			bytes == 1 ? 'p' : 'r', reg);
	else
		say(e, " %c%d = %s;", bytes == 1 ? 'p' : 'r', reg, result);
}

static void say_source(struct emitter *e, char name, int32_t operand, unsigned bytes)
{
	char value[EMIT_VALUE];
	if (bytes)
		say(e, "const %s %c = %s; ", ckt_emit_type(bytes), name,
			value_of(e, operand, bytes, value));
}

static void say_compare(struct emitter *e, const struct ptx_insn *i)
{
	static const char *const joins[] = {"", " & c", " | c", " ^ c"};
	say(e, " uint32_t o = !d;");
	if (i->x)
		say(e, " d = d%s; o = o%s;", joins[i->x & 3], joins[i->x & 3]);
	say_result(e, i, i->d, 1, "d");
	say_result(e, i, i->e, 1, "o");
}

static void say_pack(struct emitter *e, const struct ptx_insn *i)
{
	char value[EMIT_VALUE];
	say(e, "%s d = 0;", ckt_emit_type(i->z));
	for (unsigned k = 0; k < i->x; k++) {
		say(e, " d |= (%s)(%s", ckt_emit_type(i->z),
			value_of(e, i->list[k], i->y == 64 ? 8 : 4, value));
		if (i->y < 64)
			say(e, " & 0x%llxu", (1ull << i->y) - 1);
		say(e, ") << %u;", k * i->y);
	}
	say_result(e, i, i->d, i->z, "d");
}

static void say_unpack(struct emitter *e, const struct ptx_insn *i)
{
	char part[EMIT_VALUE];
	say_source(e, 'a', i->a, i->z);
	for (unsigned k = 0; k < i->x; k++) {
		if (i->y == 64)
			snprintf(part, sizeof part, "a");
		else
			snprintf(part, sizeof part, "(uint32_t)(a >> %u & 0x%llxu)", k * i->y,
				(1ull << i->y) - 1);
		say_result(e, i, i->list[k], i->y == 64 ? 8 : 4, part);
	}
}

static void say_insn(struct emitter *e, uint32_t pc)
{
	const struct ptx_insn *i = &e->f->code[pc];
	const struct ptx_form *form = e->forms[pc];
	char text[128];
	if (form->kind == FORM_NOTHING)
		return;
	say(e, "\t\t{ ");
	switch (form->kind) {
	case FORM_LANE:
	case FORM_COMPARE:
		say_source(e, 'a', i->a, form->a);
		say_source(e, 'b', i->b, form->b);
		if (form->kind == FORM_LANE || i->x)
			say_source(e, 'c', i->c, form->c);
		if (form->kind == FORM_LANE)
			say_source(e, 'e', i->e, form->e);
		say(e, "%s d; ", ckt_emit_type(form->d));
		say_text(e, i, e->quick && form->quick ? form->quick : form->text);
		if (form->kind == FORM_COMPARE)
			say_compare(e, i);
		else
			say_result(e, i, i->d, form->d, "d");
		break;
	case FORM_PACK:
		say_pack(e, i);
		break;
	case FORM_UNPACK:
		say_unpack(e, i);
		break;
	case FORM_MASK:
		say_result(e, i, i->d, 4, "m");
		break;
	default: /* FORM_SREG, FORM_PARAM */
		if (form->kind == FORM_PARAM || !ckt_ptx_sreg_text(i->x, text, sizeof text))
			snprintf(text, sizeof text, "u%u", pc);
		say_result(e, i, i->d, i->y, text);
	}
	say(e, " }\n");
}

/* Values that all lanes share are read before the loop. */
static void say_uniform(struct emitter *e, uint32_t pc)
{
	const struct ptx_insn *i = &e->f->code[pc];
	char text[128];
	if (e->forms[pc]->kind == FORM_PARAM)
		say(e, "\tconst %s u%u = *(const %s *)(P + %lld);\n", ckt_emit_type(i->y), pc,
			ckt_emit_type(i->y), (long long)i->imm);
	else if (e->forms[pc]->kind == FORM_SREG && !ckt_ptx_sreg_text(i->x, text, sizeof text) &&
		ckt_ptx_sreg_uniform_text(i->x, text, sizeof text))
		say(e, "\tconst uint32_t u%u = %s;\n", pc, text);
}

/* Declares the values that the stretch reads and writes, before its loop. */
static void say_before(
	struct emitter *e, uint32_t first, uint32_t end, const struct emit_stretch *s)
{
	for (uint32_t pc = first; pc < end; pc++)
		say_uniform(e, pc);
	for (unsigned k = 0; k < s->n; k++) {
		const struct emit_local *v = &s->locals[k];
		uint32_t offset = (uint32_t)v->reg & 0x7fffffffu;
		if (v->reg < 0)
			say(e, "\tconst %s k%u = *(const %s *)(K + %u);\n", ckt_emit_type(v->bytes),
				offset, ckt_emit_type(v->bytes), offset);
		else if (v->bytes == 1 && (v->how & LOADED))
			say(e, "\tconst uint32_t q%d = *(const uint32_t *)(R + %d);\n", v->reg,
				v->reg);
		if (v->bytes == 1 && (v->how & WRITTEN))
			say(e, "\tuint32_t o%d = 0;\n", v->reg);
	}
}

static bool is_kept(struct emitter *e, const struct emit_local *v)
{
	return (v->how & WRITTEN) && ckt_emit_is_live(e, v->reg);
}

/*
 * A register that is both read and written must keep its old value until the loop ends, in case the
 * quick text finds doubt.
 */
static bool is_late(struct emitter *e, const struct emit_local *v)
{
	return e->quick && v->bytes != 1 && (v->how & LOADED) && is_kept(e, v);
}

static void say_loop(struct emitter *e, uint32_t first, uint32_t end, const struct emit_stretch *s)
{
	say(e, "\t\tconst uint32_t in = full || (m >> l & 1); (void)in;\n");
	if (e->quick)
		say(e, "\t\tuint32_t doubt = 0; uint64_t wide_doubt = 0;\n");
	for (unsigned k = 0; k < s->n; k++) {
		const struct emit_local *v = &s->locals[k];
		if (v->reg < 0)
			continue;
		if (v->bytes == 1 && (v->how & LOADED))
			say(e, "\t\tuint32_t p%d = q%d >> l & 1;\n", v->reg, v->reg);
		else if (v->how & LOADED)
			say(e, "\t\t%s r%d = ((const %s *)(R + %d))[l];\n", ckt_emit_type(v->bytes),
				v->reg, ckt_emit_type(v->bytes), v->reg);
		else
			say(e, "\t\t%s %c%d;\n", ckt_emit_type(v->bytes), v->bytes == 1 ? 'p' : 'r',
				v->reg);
	}
	for (uint32_t pc = first; pc < end; pc++)
		say_insn(e, pc);
	for (unsigned k = 0; k < s->n; k++) {
		const struct emit_local *v = &s->locals[k];
		if (!is_kept(e, v))
			continue;
		if (v->bytes == 1)
			say(e, "\t\to%d |= p%d << l;\n", v->reg, v->reg);
		else if (is_late(e, v))
			say(e, "\t\tt%d[l] = r%d;\n", v->reg, v->reg);
		else
			say(e, "\t\t((%s *)(R + %d))[l] = in ? r%d : ((%s *)(R + %d))[l];\n",
				ckt_emit_type(v->bytes), v->reg, v->reg, ckt_emit_type(v->bytes),
				v->reg);
	}
	if (e->quick)
		say(e, "\t\tany |= in ? doubt : 0;\n\t\twide_any |= in ? wide_doubt : 0;\n");
}

static void say_behind(struct emitter *e, uint32_t first, const struct emit_stretch *s)
{
	if (e->quick)
		say(e, "\tif (__builtin_expect(any || wide_any, 0)) {\n\t\tstretch_%u_%u_careful(w, R, K, P, m);\n\t\treturn;\n\t}\n",
			e->f->index, first);
	for (unsigned k = 0; k < s->n; k++) {
		const struct emit_local *v = &s->locals[k];
		if (is_late(e, v))
			say(e, "\tINDEPENDENT\n\tfor (unsigned l = 0; l < 32; l++)\n\t\t((%s *)(R + %d))[l] = full || (m >> l & 1) ? t%d[l] : ((%s *)(R + %d))[l];\n",
				ckt_emit_type(v->bytes), v->reg, v->reg, ckt_emit_type(v->bytes),
				v->reg);
		else if (v->bytes == 1 && is_kept(e, v))
			say(e, "\t{ uint32_t *q = (uint32_t *)(R + %d); *q = (*q & ~m) | (o%d & m); }\n",
				v->reg, v->reg);
	}
}

/* Writes the careful version: lane by lane, with every result checked. */
static void say_careful(
	struct emitter *e, uint32_t first, uint32_t end, const struct emit_stretch *s)
{
	say(e, "APART __attribute__((cold)) void stretch_%u_%u_careful(uint8_t *w, uint8_t *R, const uint8_t *K, const uint8_t *P, uint32_t m)\n{\n\tconst int full = 0;\n",
		e->f->index, first);
	say_before(e, first, end, s);
	/* Prevent vectors: compilers take long for them, and this code runs rarely. */
	say(e, "\tfor (unsigned l = 0; l < 32; l++) {\n\t\t__asm__ volatile(\"\");\n");
	say_loop(e, first, end, s);
	say(e, "\t}\n");
	say_behind(e, first, s);
	say(e, "}\n");
}

void ckt_emit_say_stretch(struct emitter *e, const struct emit_block *b, uint32_t first,
	uint32_t end, const struct emit_stretch *s)
{
	bool quick = false;
	ckt_emit_live_at(e, b, end);
	for (uint32_t pc = first; pc < end; pc++)
		quick |= e->forms[pc]->quick != NULL;
	if (quick)
		say_careful(e, first, end, s);
	e->quick = quick;
	say(e, "INSIDE void stretch_%u_%u(uint8_t *w, uint8_t *R, const uint8_t *K, const uint8_t *P, uint32_t m, const int full)\n{\n",
		e->f->index, first);
	say_before(e, first, end, s);
	if (quick)
		say(e, "\tuint32_t any = 0; uint64_t wide_any = 0;\n");
	for (unsigned k = 0; k < s->n; k++)
		if (is_late(e, &s->locals[k]))
			say(e, "\t%s t%d[32];\n", ckt_emit_type(s->locals[k].bytes),
				s->locals[k].reg);
	say(e, "\tINDEPENDENT\n\tfor (unsigned l = 0; l < 32; l++) {\n");
	say_loop(e, first, end, s);
	say(e, "\t}\n");
	say_behind(e, first, s);
	say(e, "}\n");
	e->quick = false;
	for (int full = 1; full >= 0; full--)
		say(e, "APART void stretch_%u_%u_%s(uint8_t *w, uint8_t *R, const uint8_t *K, const uint8_t *P, uint32_t m) { stretch_%u_%u(w, R, K, P, %s, %d); }\n",
			e->f->index, first, full ? "full" : "part", e->f->index, first,
			full ? "~0u" : "m", full);
}

uint32_t ckt_emit_stretch_end(
	struct emitter *e, const struct emit_block *b, uint32_t first, struct emit_stretch *s)
{
	uint32_t pc = first;
	s->n = 0;
	while (pc < b->end && pc - first < EMIT_STRETCH && ckt_emit_fits_lane(e, pc)) {
		bool lonely = is_lonely(e->forms[pc]);
		if (lonely && pc > first)
			break;
		if (!note_insn(e, s, pc))
			e->failed = true;
		pc++;
		if (lonely)
			break;
	}
	return pc;
}
