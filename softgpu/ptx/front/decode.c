/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns a raw instruction into a compact one.  The decoder of its opcode takes the modifiers and
 * operands, and afterwards every modifier must have been used.  Some sources need work first
 * (special registers, local addresses, negated predicates); an extra instruction computes each into
 * a temporary.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/compiled/form.h"
#include "softgpu/ptx/execution/grid.h"
#include "softgpu/ptx/execution/lanes.h"
#include "softgpu/ptx/execution/sreg.h"
#include "softgpu/ptx/execution/trace.h"
#include "softgpu/ptx/front/containers.h"
#include "softgpu/ptx/front/decode.h"
#include "softgpu/ptx/front/legal.h"
#include "softgpu/ptx/front/parser.h"
#include "softgpu/ptx/front/types.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

_Noreturn void ckt_ptx_bad(struct ptx_parser *p, const char *why)
{
	ckt_ptx_fail(p, CKT_PTX_INVALID, "%s", why);
}

bool ckt_ptx_mod(struct ptx_parser *p, const char *name)
{
	for (unsigned k = 0; k < p->raw.n_mods; k++) {
		if (!p->raw.mod_used[k] && !strcmp(p->raw.mods[k], name)) {
			p->raw.mod_used[k] = true;
			return true;
		}
	}
	return false;
}

bool ckt_ptx_mod_prefix(struct ptx_parser *p, const char *prefix)
{
	bool found = false;
	for (unsigned k = 0; k < p->raw.n_mods; k++)
		if (!p->raw.mod_used[k] && !strncmp(p->raw.mods[k], prefix, strlen(prefix)))
			found = p->raw.mod_used[k] = true;
	return found;
}

int ckt_ptx_mod_one(struct ptx_parser *p, const char *const *names)
{
	for (int n = 0; names[n]; n++)
		if (ckt_ptx_mod(p, names[n]))
			return n;
	return -1;
}

enum ptx_type ckt_ptx_mod_type(struct ptx_parser *p)
{
	for (unsigned k = 0; k < p->raw.n_mods; k++) {
		if (p->raw.mod_used[k])
			continue;
		enum ptx_type type = ckt_ptx_type_from(p->raw.mods[k], strlen(p->raw.mods[k]));
		if (type != T_NONE) {
			p->raw.mod_used[k] = true;
			return type;
		}
	}
	return T_NONE;
}

enum ptx_type ckt_ptx_need_type(struct ptx_parser *p)
{
	enum ptx_type type = ckt_ptx_mod_type(p);
	if (type == T_NONE)
		ckt_ptx_bad(p, "instruction without a type");
	return type;
}

void ckt_ptx_need_operands(struct ptx_parser *p, unsigned least, unsigned most)
{
	if (p->raw.n_operands < least || p->raw.n_operands > most)
		ckt_ptx_bad(p, "wrong number of operands");
}

struct ptx_insn *ckt_ptx_emit(struct ptx_parser *p, ptx_handler *fn)
{
	struct ckt_ptx_function *f = p->function;
	struct ptx_insn insn = {.fn = fn,
		.guard = PTX_OPERAND_NONE,
		.d = PTX_OPERAND_NONE,
		.a = PTX_OPERAND_NONE,
		.b = PTX_OPERAND_NONE,
		.c = PTX_OPERAND_NONE,
		.e = PTX_OPERAND_NONE,
		.line = p->raw.line};
	if (p->raw.guarded) {
		insn.guard = p->raw.guard.reg;
		insn.guard_negated = p->raw.guard.negated;
	}
	PTX_PUSH(p, f->code, f->n_code, f->cap_code, insn);
	return &f->code[f->n_code - 1];
}

int32_t ckt_ptx_constant(struct ptx_parser *p, uint64_t value, uint64_t high,
	struct ptx_symbol *symbol, unsigned lane_bytes)
{
	struct ckt_ptx_function *f = p->function;
	if (lane_bytes == 4)
		value = (uint32_t)value;
	if (lane_bytes == 0)
		value = value ? 0xffffffffu : 0;
	/* Search only the latest constants, because equal constants occur close together. */
	size_t least = f->n_constants > 64 ? f->n_constants - 64 : 0;
	for (size_t k = f->n_constants; k-- > least;) {
		const struct ptx_constant *c = &f->constants[k];
		if (c->value == value && c->high == high && c->symbol == symbol &&
			c->lane_bytes == lane_bytes)
			return (int32_t)(c->offset | PTX_CONST_BIT);
	}
	f->constant_bytes = (f->constant_bytes + 63) & ~63u;
	struct ptx_constant c = {.value = value,
		.high = high,
		.symbol = symbol,
		.offset = f->constant_bytes,
		.lane_bytes = (uint8_t)lane_bytes};
	f->constant_bytes += lane_bytes ? lane_bytes * PTX_LANES : 4;
	if (f->constant_bytes > (256u << 20))
		ckt_ptx_bad(p, "too many constants");
	if (symbol)
		ckt_ptx_need_symbol(p, symbol);
	PTX_PUSH(p, f->constants, f->n_constants, f->cap_constants, c);
	return (int32_t)(c.offset | PTX_CONST_BIT);
}

void ckt_ptx_need_symbol(struct ptx_parser *p, struct ptx_symbol *symbol)
{
	struct ckt_ptx_function *f = p->function;
	if (symbol->kind == SYM_FUNCTION) {
		PTX_PUSH(p, f->callees, f->n_callees, f->cap_callees, symbol);
	} else if (symbol->space == SP_SHARED) {
		PTX_PUSH(p, f->shared, f->n_shared, f->cap_shared, symbol);
	}
}

/* ---- Sources that must be computed */

static int exec_frame_address(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)
{
	uint64_t value = (uint64_t)i->imm + (i->x ? w->frame->local_base : 0);
	if (i->y == 4) {
		uint32_t *d = ptx_at(w, i->d);
		PTX_FOR_LANES(m, d[l] = (uint32_t)value;);
	} else {
		uint64_t *d = ptx_at(w, i->d);
		PTX_FOR_LANES(m, d[l] = value;);
	}
	return RUN_NEXT;
}
PTX_FORM(exec_frame_address, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

static int exec_pred_not(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)
{
	uint32_t *d = ptx_at(w, i->d);
	*d = (*d & ~m) | (~*(uint32_t *)ptx_at(w, i->a) & m);
	return RUN_NEXT;
}
PTX_FORM(exec_pred_not, FORM_LANE, 1, 1, 0, 0, 0, "d = !a;")

/*
 * name[register]: b holds the index, which counts elements of imm bytes.  x: the index has 64 bits.
 * y: bytes per lane of the address.
 */
static int exec_index(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)
{
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		uint64_t index = i->x ? ((const uint64_t *)ptx_at(w, i->b))[l]
				      : ((const uint32_t *)ptx_at(w, i->b))[l];
		uint64_t offset =
			i->x ? index * (uint64_t)i->imm : (uint32_t)(index * (uint64_t)i->imm);
		if (i->y == 4)
			((uint32_t *)ptx_at(w, i->d))[l] =
				((const uint32_t *)ptx_at(w, i->a))[l] + (uint32_t)offset;
		else
			((uint64_t *)ptx_at(w, i->d))[l] =
				((const uint64_t *)ptx_at(w, i->a))[l] + offset;
	}
	return RUN_NEXT;
}
PTX_FORM(exec_index, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

static int32_t indexed(struct ptx_parser *p, const struct ptx_operand *o, enum ptx_type type)
{
	struct ptx_operand base = *o;
	base.index_scale = 0;
	unsigned bytes = ckt_ptx_lane_bytes(type);
	int32_t a = ckt_ptx_source_of(p, &base, type),
		d = ckt_ptx_reg_alloc(p, bytes == 8 ? T_B64 : T_B32);
	struct ptx_insn *i = ckt_ptx_emit(p, exec_index);
	i->a = a;
	i->b = o->reg;
	i->d = d;
	i->x = ckt_ptx_lane_bytes(o->type) == 8;
	i->y = (uint8_t)bytes;
	i->imm = o->index_scale;
	return d;
}

static uint64_t constant_bits(const struct ptx_operand *o, enum ptx_type type)
{
	if (o->type == T_F64 && type == T_F32) {
		double d;
		uint32_t bits;
		memcpy(&d, &o->value, sizeof d);
		float f = (float)d;
		memcpy(&bits, &f, sizeof bits);
		return bits;
	}
	if (o->type == T_F32 && type == T_F64) {
		float f;
		uint64_t bits;
		memcpy(&f, &o->value, sizeof f);
		double d = f;
		memcpy(&bits, &d, sizeof bits);
		return bits;
	}
	unsigned bytes = ckt_ptx_type_bytes(type);
	if (bytes == 1)
		return ckt_ptx_type_signed(type) ? (uint32_t)(int8_t)o->value : (uint8_t)o->value;
	if (bytes == 2)
		return (uint16_t)o->value;
	return o->value;
}

int32_t ckt_ptx_source_of(struct ptx_parser *p, const struct ptx_operand *o, enum ptx_type type)
{
	unsigned bytes = ckt_ptx_lane_bytes(type);
	if (type == T_PRED)
		return ckt_ptx_pred_source(p, o);
	if (o->negated)
		ckt_ptx_bad(p, "only a predicate can be negated");
	if (o->index_scale)
		return indexed(p, o, type);
	switch (o->kind) {
	case OP_REG:
		if (!ckt_ptx_type_takes(type, o->type))
			ckt_ptx_bad(p, "operand of the wrong type");
		return o->reg;
	case OP_CONST:
		return ckt_ptx_constant(p, constant_bits(o, type),
			type == T_B128 && (int64_t)o->value < 0 ? ~0ull : 0, NULL, bytes);
	case OP_SYMBOL:
		o->symbol->used_as_address = true;
		return ckt_ptx_constant(p, o->value, 0, o->symbol, bytes);
	case OP_LOCAL: {
		int32_t d = ckt_ptx_reg_alloc(p, bytes == 8 ? T_B64 : T_B32);
		struct ptx_insn *i = ckt_ptx_emit(p, exec_frame_address);
		i->d = d;
		i->x = o->variable->space != SP_PARAM_ENTRY;
		i->y = (uint8_t)bytes;
		i->imm = (int64_t)(o->variable->offset + o->value);
		return d;
	}
	case OP_SREG: {
		int32_t d = ckt_ptx_reg_alloc(p, bytes == 8 ? T_B64 : T_B32);
		struct ptx_insn *i = ckt_ptx_emit(p, ckt_ptx_exec_sreg);
		i->d = d;
		i->x = (uint8_t)o->sreg;
		i->y = (uint8_t)bytes;
		return d;
	}
	case OP_NAME:
		ckt_ptx_fail_broken(p, "unknown name %.*s", (int)o->name_size, o->name);
	default:
		ckt_ptx_bad(p, "operand of the wrong kind");
	}
}

int32_t ckt_ptx_source(struct ptx_parser *p, unsigned index, enum ptx_type type)
{
	if (index >= p->raw.n_operands)
		ckt_ptx_bad(p, "operand missing");
	return ckt_ptx_source_of(p, &p->raw.operands[index], type);
}

int32_t ckt_ptx_pred_source(struct ptx_parser *p, const struct ptx_operand *o)
{
	if (o->kind == OP_CONST)
		return ckt_ptx_constant(p, o->value, 0, NULL, 0);
	if (o->kind == OP_SREG && o->type == T_PRED && !o->negated) {
		int32_t d = ckt_ptx_reg_alloc(p, T_PRED);
		struct ptx_insn *i = ckt_ptx_emit(p, ckt_ptx_exec_sreg);
		i->d = d;
		i->x = (uint8_t)o->sreg;
		return d;
	}
	if (o->kind != OP_REG || o->type != T_PRED)
		ckt_ptx_bad(p, "predicate expected");
	if (!o->negated)
		return o->reg;
	int32_t d = ckt_ptx_reg_alloc(p, T_PRED);
	struct ptx_insn *i = ckt_ptx_emit(p, exec_pred_not);
	i->d = d;
	i->a = o->reg;
	return d;
}

int32_t ckt_ptx_dest_of(struct ptx_parser *p, const struct ptx_operand *o, enum ptx_type type)
{
	if (o->kind == OP_SINK)
		return ckt_ptx_reg_alloc(p, type);
	if (o->kind != OP_REG || !ckt_ptx_type_takes(type, o->type))
		ckt_ptx_bad(p, "destination of the wrong type");
	return o->reg;
}

int32_t ckt_ptx_dest(struct ptx_parser *p, unsigned index, enum ptx_type type)
{
	if (index >= p->raw.n_operands)
		ckt_ptx_bad(p, "operand missing");
	return ckt_ptx_dest_of(p, &p->raw.operands[index], type);
}

void ckt_ptx_label(struct ptx_parser *p, const struct ptx_operand *o, uint32_t insn, int32_t *place)
{
	if (o->kind != OP_NAME)
		ckt_ptx_bad(p, "label expected");
	struct ptx_label_fixup fix = {.insn = insn,
		.scope = p->scope,
		.name = o->name,
		.name_size = o->name_size,
		.line = p->raw.line,
		.place = place};
	PTX_PUSH(p, p->fixups, p->n_fixups, p->cap_fixups, fix);
}

/* ---- Opcodes */

static const struct ptx_opcode *const tables[] = {ckt_ptx_opcodes_int, ckt_ptx_opcodes_bits,
	ckt_ptx_opcodes_compare, ckt_ptx_opcodes_float, ckt_ptx_opcodes_cvt, ckt_ptx_opcodes_data,
	ckt_ptx_opcodes_mem, ckt_ptx_opcodes_atom, ckt_ptx_opcodes_warp, ckt_ptx_opcodes_control,
	ckt_ptx_opcodes_async, ckt_ptx_opcodes_video, ckt_ptx_opcodes_matrix,
	ckt_ptx_opcodes_cluster, ckt_ptx_opcodes_texture};

static struct ptx_map opcodes;
static pthread_mutex_t opcodes_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool opcodes_built;

static bool build_opcodes(void)
{
	for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
		for (const struct ptx_opcode *o = tables[t]; o->name; o++)
			if (ckt_ptx_map_put(&opcodes, o->name, strlen(o->name), (void *)o))
				return false;
	return true;
}

/*
 * Builds both tables, once per process.  If there is no memory, the module fails, and the next
 * module tries again.
 */
static bool have_tables(void)
{
	if (opcodes_built)
		return true;
	pthread_mutex_lock(&opcodes_lock);
	bool good = opcodes_built;
	if (!good) {
		good = build_opcodes() && ckt_ptx_index_rules();
		if (!good)
			ckt_ptx_map_free(&opcodes);
		opcodes_built = good;
	}
	pthread_mutex_unlock(&opcodes_lock);
	return good;
}

static const struct ptx_opcode *opcode(struct ptx_parser *p)
{
	if (!have_tables())
		ckt_ptx_out_of_memory(p);
	return ckt_ptx_map_get(&opcodes, p->raw.op, strlen(p->raw.op));
}

void ckt_ptx_need_opcode(struct ptx_parser *p)
{
	const struct ptx_opcode *o = opcode(p);
	if (!o)
		ckt_ptx_fail(p, CKT_PTX_INVALID, "unknown instruction '%s'", p->raw.op);
	if (o->decode == ckt_ptx_decode_refused)
		o->decode(p);
}

/* A text repeats a few spellings many times, so accepted spellings are remembered. */
static bool known_spelling(struct ptx_parser *p)
{
	char text[256];
	size_t size = 0;
	for (unsigned k = 0; k <= p->raw.n_mods; k++) {
		const char *word = k ? p->raw.mods[k - 1] : p->raw.op;
		size_t length = strlen(word);
		if (size + length + 1 > sizeof text)
			return false;
		memcpy(text + size, word, length);
		size += length;
		text[size++] = '.';
	}
	if (ckt_ptx_map_get(&p->spellings, text, size))
		return true;
	if (!ckt_ptx_legal(&p->raw, p->target))
		return false;
	if (ckt_ptx_map_put(&p->spellings, ckt_ptx_copy_name(p, text, size), size, p))
		ckt_ptx_out_of_memory(p);
	return true;
}

void ckt_ptx_decode(struct ptx_parser *p)
{
	memset(p->raw.mod_used, 0, sizeof p->raw.mod_used);
	const struct ptx_opcode *o = opcode(p);
	bool known = o && known_spelling(p);
	const char *stranger = !o || known ? NULL : ckt_ptx_stranger(&p->raw);
	/*
	 * An unknown word without an operand is in no document: the text is not PTX, rather than
	 * PTX for another GPU.
	 */
	p->broken = !p->raw.n_operands && (!o || stranger);
	if (!o)
		ckt_ptx_fail(p, CKT_PTX_INVALID, "unknown instruction '%s'", p->raw.op);
	if (stranger)
		ckt_ptx_fail(
			p, CKT_PTX_INVALID, "unknown modifier '.%s' of '%s'", stranger, p->raw.op);
	if (!known)
		ckt_ptx_fail(p, CKT_PTX_INVALID, "no such form of '%s'", p->raw.op);
	size_t first = p->function->n_code;
	o->decode(p);
	if (p->raw.adorned)
		ckt_ptx_bad(
			p, "only video instructions take parts of registers or negated registers");
	if (ckt_ptx_trace_wanted())
		ckt_ptx_trace_note(p, first);
	for (unsigned k = 0; k < p->raw.n_mods; k++)
		if (!p->raw.mod_used[k])
			ckt_ptx_fail(p, CKT_PTX_INVALID, "unknown modifier '.%s' of '%s'",
				p->raw.mods[k], p->raw.op);
}
