/* SPDX-License-Identifier: Apache-2.0 */
/* Moves values: all forms of mov, selection, address conversions. */
#include <string.h>

#include "softgpu/ptx/execution/op.h"
#include "softgpu/ptx/execution/grid.h"
#include "softgpu/ptx/execution/lanes.h"
#include "softgpu/ptx/front/decode.h"
#include "softgpu/ptx/front/parser.h"
#include "softgpu/ptx/front/types.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

#define HANDLER(name) static int name(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)

HANDLER(mov_32)
{
	const uint32_t *a = ptx_at(w, i->a);
	uint32_t *d = ptx_at(w, i->d);
	PTX_FOR_LANES(m, d[l] = a[l];);
	return RUN_NEXT;
}
PTX_FORM(mov_32, FORM_LANE, 4, 4, 0, 0, 0, "d = a;")

HANDLER(mov_64)
{
	const uint64_t *a = ptx_at(w, i->a);
	uint64_t *d = ptx_at(w, i->d);
	PTX_FOR_LANES(m, d[l] = a[l];);
	return RUN_NEXT;
}
PTX_FORM(mov_64, FORM_LANE, 8, 8, 0, 0, 0, "d = a;")

HANDLER(mov_128)
{
	const unsigned __int128 *a = ptx_at(w, i->a);
	unsigned __int128 *d = ptx_at(w, i->d);
	PTX_FOR_LANES(m, d[l] = a[l];);
	return RUN_NEXT;
}
PTX_FORM(mov_128, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

HANDLER(mov_pred)
{
	uint32_t a = *(uint32_t *)ptx_at(w, i->a), *d = ptx_at(w, i->d);
	*d = (*d & ~m) | (a & m);
	return RUN_NEXT;
}
PTX_FORM(mov_pred, FORM_LANE, 1, 1, 0, 0, 0, "d = a;")

/*
 * Joins elements into a wider register, and splits it.  list: the parts; x: their number; y: the
 * bits of one.
 */
HANDLER(pack)
{
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		unsigned __int128 v = 0;
		for (unsigned k = 0; k < i->x; k++) {
			const void *part = ptx_at(w, i->list[k]);
			uint64_t bits = i->y == 64 ? ((const uint64_t *)part)[l]
						   : ((const uint32_t *)part)[l];
			if (i->y < 64)
				bits &= (1ull << i->y) - 1;
			v |= (unsigned __int128)bits << (k * i->y);
		}
		if (i->z == 4)
			((uint32_t *)ptx_at(w, i->d))[l] = (uint32_t)v;
		else if (i->z == 8)
			((uint64_t *)ptx_at(w, i->d))[l] = (uint64_t)v;
		else
			((unsigned __int128 *)ptx_at(w, i->d))[l] = v;
	}
	return RUN_NEXT;
}
PTX_FORM(pack, FORM_PACK, 0, 0, 0, 0, 0, NULL)

HANDLER(unpack)
{
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		const void *a = ptx_at(w, i->a);
		unsigned __int128 v = i->z == 4 ? ((const uint32_t *)a)[l]
			: i->z == 8             ? ((const uint64_t *)a)[l]
						: ((const unsigned __int128 *)a)[l];
		for (unsigned k = 0; k < i->x; k++) {
			if (i->list[k] == PTX_OPERAND_NONE)
				continue;
			void *part = ptx_at(w, i->list[k]);
			uint64_t bits = (uint64_t)(v >> (k * i->y));
			if (i->y == 64)
				((uint64_t *)part)[l] = bits;
			else
				((uint32_t *)part)[l] = (uint32_t)(bits & ((1ull << i->y) - 1));
		}
	}
	return RUN_NEXT;
}
PTX_FORM(unpack, FORM_UNPACK, 0, 0, 0, 0, 0, NULL)

/* ---- Selection */

HANDLER(selp_32)
{
	const uint32_t *a = ptx_at(w, i->a), *b = ptx_at(w, i->b), c = *(uint32_t *)ptx_at(w, i->c);
	uint32_t *d = ptx_at(w, i->d);
	PTX_FOR_LANES(m, d[l] = c >> l & 1 ? a[l] : b[l];);
	return RUN_NEXT;
}
PTX_FORM(selp_32, FORM_LANE, 4, 4, 4, 1, 0, "d = c ? a : b;")

HANDLER(selp_64)
{
	const uint64_t *a = ptx_at(w, i->a), *b = ptx_at(w, i->b);
	uint32_t c = *(uint32_t *)ptx_at(w, i->c);
	uint64_t *d = ptx_at(w, i->d);
	PTX_FOR_LANES(m, d[l] = c >> l & 1 ? a[l] : b[l];);
	return RUN_NEXT;
}
PTX_FORM(selp_64, FORM_LANE, 8, 8, 8, 1, 0, "d = c ? a : b;")

#define SLCT(name, SLOT, COND)                                         \
	HANDLER(name)                                                  \
	{                                                              \
		const SLOT *a = ptx_at(w, i->a), *b = ptx_at(w, i->b); \
		const uint32_t *c = ptx_at(w, i->c);                   \
		SLOT *d = ptx_at(w, i->d);                             \
		PTX_FOR_LANES(m, d[l] = (COND) ? a[l] : b[l];);        \
		return RUN_NEXT;                                       \
	}                                                              \
	PTX_FORM(name, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)
SLCT(slct_32_s, uint32_t, (int32_t)c[l] >= 0)
SLCT(slct_64_s, uint64_t, (int32_t)c[l] >= 0)
SLCT(slct_32_f, uint32_t, (i->x ? ptx_flush(ptx_float(c[l])) : ptx_float(c[l])) >= 0)
SLCT(slct_64_f, uint64_t, (i->x ? ptx_flush(ptx_float(c[l])) : ptx_float(c[l])) >= 0)

/*
 * ---- Address spaces: each has a window of generic addresses; addresses of global and constant
 * memory are generic addresses
 */

#define CONVERT(name, ASLOT, DSLOT, expr)                                             \
	HANDLER(name)                                                                 \
	{                                                                             \
		const ASLOT *a = ptx_at(w, i->a);                                     \
		DSLOT *d = ptx_at(w, i->d);                                           \
		PTX_FOR_LANES(m, d[l] = (DSLOT)(a[l] expr(ASLOT)(uint64_t) i->imm);); \
		return RUN_NEXT;                                                      \
	}                                                                             \
	PTX_FORM(name, FORM_LANE, sizeof(DSLOT), sizeof(ASLOT), 0, 0, 0,              \
		"d = (" PTX_TEXT(DSLOT) ")(a + (" PTX_TEXT(ASLOT) ")(uint64_t)i->imm);")
CONVERT(offset_64, uint64_t, uint64_t, +)

static bool in_window(uint64_t address, uint64_t window)
{
	return address - window < PTX_WINDOW_SIZE;
}

/*
 * Whether the address is in a constant variable of the module; constant variables lie in ordinary
 * memory.
 */
static bool in_constant(const struct ptx_warp *w, uint64_t address)
{
	const struct ckt_ptx_module *module = w->frame->function->module;
	for (size_t k = 0; k < module->n_globals; k++)
		if (module->globals[k].space == CKT_PTX_SPACE_CONST &&
			address - module->globals[k].address < module->globals[k].size_bytes)
			return true;
	return false;
}

HANDLER(isspacep)
{
	const uint64_t *a = ptx_at(w, i->a);
	uint32_t *d = ptx_at(w, i->d), r = 0;
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		bool yes;
		switch (i->x) {
		case SP_SHARED: {
			/* In this block only, or in any block of the cluster. */
			uint64_t rank = a[l] >> 24 & 0xff;
			yes = in_window(a[l], PTX_SHARED_WINDOW) &&
				(i->y || !rank || rank == w->block->rank + 1);
			break;
		}
		case SP_LOCAL:
			yes = in_window(a[l], PTX_LOCAL_WINDOW);
			break;
		case SP_PARAM:
			yes = in_window(a[l], PTX_PARAM_WINDOW);
			break;
		case SP_CONST:
			yes = in_constant(w, a[l]);
			break;
		default:
			yes = a[l] < (1ull << 47) && !in_constant(w, a[l]);
			break;
		}
		r |= (uint32_t)yes << l;
	}
	*d = (*d & ~m) | r;
	return RUN_NEXT;
}
PTX_FORM(isspacep, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

/*
 * alloca takes the largest requested size for every lane, because the lanes of a frame share the
 * end of their stack.  The memory is free again when the frame ends, or at a stackrestore that all
 * lanes of the frame run together.
 */
HANDLER(exec_alloca)
{
	struct ptx_frame *frame = w->frame;
	uint64_t most = 0, align = (uint64_t)i->imm;
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		uint64_t size = ((const uint64_t *)ptx_at(w, i->a))[l];
		most = size > most ? size : most;
	}
	uint64_t base = (uint64_t)frame->local_base + frame->function->frame_bytes,
		 start = (base + frame->extra + align - 1) & ~(align - 1);
	if (most > w->stack_bytes || start + most > w->stack_bytes)
		return ckt_ptx_fault(w, (unsigned)__builtin_ctz(m), CKT_PTX_FAULT_STACK_OVERFLOW,
			"alloca of %llu bytes", (unsigned long long)most);
	frame->extra = (uint32_t)((start + most + 15 - base) & ~15ull);
	uint64_t *d = ptx_at(w, i->d);
	PTX_FOR_LANES(m, d[l] = start;);
	return RUN_NEXT;
}
PTX_FORM(exec_alloca, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

HANDLER(exec_stacksave)
{
	uint64_t *d = ptx_at(w, i->d);
	PTX_FOR_LANES(m, d[l] = w->frame->extra;);
	return RUN_NEXT;
}
PTX_FORM(exec_stacksave, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

HANDLER(exec_stackrestore)
{
	uint64_t saved = ((const uint64_t *)ptx_at(w, i->a))[__builtin_ctz(m)];
	if (m == w->frame->lanes && saved < w->frame->extra)
		w->frame->extra = (uint32_t)saved;
	return RUN_NEXT;
}
PTX_FORM(exec_stackrestore, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

/* ---- Decoding */

static ptx_handler *mover(struct ptx_parser *p, enum ptx_type type)
{
	switch (ckt_ptx_lane_bytes(type)) {
	case 0:
		return mov_pred;
	case 4:
		return mov_32;
	case 8:
		return mov_64;
	case 16:
		return mov_128;
	default:
		ckt_ptx_bad(p, "unsuitable type");
	}
}

/* The type of one of n elements of a register of that type. */
static enum ptx_type element_type(struct ptx_parser *p, enum ptx_type type, unsigned n)
{
	switch (n ? ckt_ptx_type_bytes(type) * 8 / n : 0) {
	case 8:
		return T_B8;
	case 16:
		return T_B16;
	case 32:
		return T_B32;
	case 64:
		return T_B64;
	default:
		ckt_ptx_bad(p, "elements of unsuitable size");
	}
}

static void decode_mov_vector(struct ptx_parser *p, enum ptx_type type)
{
	const struct ptx_operand *d = &p->raw.operands[0], *a = &p->raw.operands[1];
	bool packing = a->kind == OP_VECTOR;
	const struct ptx_operand *parts = packing ? a : d;
	unsigned n = parts->n_elements;
	if (packing && d->kind == OP_VECTOR)
		ckt_ptx_bad(p, "only one side can have elements");
	enum ptx_type each = element_type(p, type, n);
	int32_t *list = ckt_ptx_new(p, n * sizeof *list);
	for (unsigned k = 0; k < n; k++) {
		if (packing)
			list[k] = ckt_ptx_source_of(p, &parts->elements[k], each);
		else
			list[k] = parts->elements[k].kind == OP_SINK
				? PTX_OPERAND_NONE
				: ckt_ptx_dest_of(p, &parts->elements[k], each);
	}
	int32_t whole = packing ? ckt_ptx_dest_of(p, d, type) : ckt_ptx_source_of(p, a, type);
	struct ptx_insn *i = ckt_ptx_emit(p, packing ? pack : unpack);
	i->list = list;
	i->x = (uint8_t)n;
	i->y = (uint8_t)(ckt_ptx_type_bytes(each) * 8);
	i->z = (uint8_t)ckt_ptx_lane_bytes(type);
	*(packing ? &i->d : &i->a) = whole;
}

static void decode_mov(struct ptx_parser *p)
{
	ckt_ptx_need_operands(p, 2, 2);
	enum ptx_type type = ckt_ptx_need_type(p);
	if (p->raw.operands[0].kind == OP_VECTOR || p->raw.operands[1].kind == OP_VECTOR) {
		decode_mov_vector(p, type);
		return;
	}
	int32_t a = ckt_ptx_source(p, 1, type), d = ckt_ptx_dest(p, 0, type);
	struct ptx_insn *last =
		p->function->n_code ? &p->function->code[p->function->n_code - 1] : NULL;
	enum ptx_operand_kind kind = p->raw.operands[1].kind;
	if (last && last->d == a && (kind == OP_SREG || kind == OP_LOCAL)) {
		last->d = d; /* computed only for this mov: write it directly to its destination */
		return;
	}
	struct ptx_insn *i = ckt_ptx_emit(p, mover(p, type));
	i->a = a;
	i->d = d;
}

static void decode_selp(struct ptx_parser *p)
{
	enum ptx_type type = ckt_ptx_need_type(p);
	ckt_ptx_need_operands(p, 4, 4);
	int32_t a = ckt_ptx_source(p, 1, type), b = ckt_ptx_source(p, 2, type),
		c = ckt_ptx_pred_source(p, &p->raw.operands[3]);
	unsigned bytes = ckt_ptx_lane_bytes(type);
	if (bytes != 4 && bytes != 8)
		ckt_ptx_bad(p, "unsuitable type");
	int32_t d = ckt_ptx_dest(p, 0, type);
	struct ptx_insn *i = ckt_ptx_emit(p, bytes == 8 ? selp_64 : selp_32);
	i->a = a;
	i->b = b;
	i->c = c;
	i->d = d;
}

static void decode_slct(struct ptx_parser *p)
{
	bool ftz = ckt_ptx_mod(p, "ftz");
	enum ptx_type type = ckt_ptx_need_type(p), by = ckt_ptx_need_type(p);
	ckt_ptx_need_operands(p, 4, 4);
	if (by != T_S32 && by != T_F32)
		ckt_ptx_bad(p, "unsuitable type");
	int32_t a = ckt_ptx_source(p, 1, type), b = ckt_ptx_source(p, 2, type),
		c = ckt_ptx_source(p, 3, by), d = ckt_ptx_dest(p, 0, type);
	bool wide = ckt_ptx_lane_bytes(type) == 8;
	struct ptx_insn *i = ckt_ptx_emit(
		p, by == T_S32 ? (wide ? slct_64_s : slct_32_s) : (wide ? slct_64_f : slct_32_f));
	i->a = a;
	i->b = b;
	i->c = c;
	i->d = d;
	i->x = ftz;
}

static enum ptx_space take_space(struct ptx_parser *p)
{
	static const char *const names[] = {"global", "const", "shared", "shared::cta",
		"shared::cluster", "local", "param", "param::entry", "param::func", NULL};
	static const enum ptx_space spaces[] = {SP_GLOBAL, SP_CONST, SP_SHARED, SP_SHARED,
		SP_SHARED, SP_LOCAL, SP_PARAM, SP_PARAM, SP_PARAM};
	int n = ckt_ptx_mod_one(p, names);
	if (n < 0)
		ckt_ptx_bad(p, "state space expected");
	return spaces[n];
}

static void decode_cvta(struct ptx_parser *p)
{
	bool to = ckt_ptx_mod(p, "to");
	enum ptx_space space = take_space(p);
	enum ptx_type type = ckt_ptx_need_type(p);
	if (ckt_ptx_type_bytes(type) != 8)
		ckt_ptx_bad(p, "addresses must have 64 bits");
	ckt_ptx_need_operands(p, 2, 2);
	int32_t a = ckt_ptx_source(p, 1, type), d = ckt_ptx_dest(p, 0, type);
	int64_t window = space == SP_SHARED ? (int64_t)PTX_SHARED_WINDOW
		: space == SP_LOCAL         ? (int64_t)PTX_LOCAL_WINDOW
					    : 0;
	/* A parameter of a function that is not an entry lies in local memory. */
	if (space == SP_PARAM)
		window = p->function->info.is_entry ? (int64_t)PTX_PARAM_WINDOW
						    : (int64_t)PTX_LOCAL_WINDOW;
	struct ptx_insn *i = ckt_ptx_emit(p, window ? offset_64 : mov_64);
	i->a = a;
	i->d = d;
	i->imm = to ? -window : window;
}

static void decode_isspacep(struct ptx_parser *p)
{
	bool cluster = ckt_ptx_mod(p, "shared::cluster");
	enum ptx_space space = cluster ? SP_SHARED : take_space(p);
	ckt_ptx_need_operands(p, 2, 2);
	int32_t a = ckt_ptx_source(p, 1, T_U64), d = ckt_ptx_dest(p, 0, T_PRED);
	struct ptx_insn *i = ckt_ptx_emit(p, isspacep);
	i->y = cluster;
	i->a = a;
	i->d = d;
	i->x = (uint8_t)space;
}

/*
 * As on an H200, istypep examines one bit of the handle, x.  Handles of texture and surface objects
 * have these bits clear.
 */
HANDLER(istypep)
{
	const uint64_t *a = ptx_at(w, i->a);
	uint32_t *d = ptx_at(w, i->d), r = 0;
	PTX_FOR_LANES(m, r |= (uint32_t)(a[l] >> i->x & 1) << l;);
	*d = (*d & ~m) | r;
	return RUN_NEXT;
}
PTX_FORM(istypep, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

static void decode_istypep(struct ptx_parser *p)
{
	static const char *const kinds[] = {"texref", "samplerref", "surfref", NULL};
	int kind = ckt_ptx_mod_one(p, kinds);
	ckt_ptx_need_operands(p, 2, 2);
	int32_t a = ckt_ptx_source(p, 1, T_U64), d = ckt_ptx_dest(p, 0, T_PRED);
	struct ptx_insn *i = ckt_ptx_emit(p, istypep);
	i->a = a;
	i->d = d;
	i->x = (uint8_t)(61 + kind);
}

static void decode_alloca(struct ptx_parser *p)
{
	enum ptx_type type = ckt_ptx_need_type(p);
	ckt_ptx_need_operands(p, 2, 3);
	uint64_t align = p->raw.n_operands > 2 ? p->raw.operands[2].value : 8;
	if (ckt_ptx_type_bytes(type) != 8 || !align || (align & (align - 1)) || align > 4096 ||
		(p->raw.n_operands > 2 && p->raw.operands[2].kind != OP_CONST))
		ckt_ptx_bad(p, "unsuitable type or alignment");
	int32_t a = ckt_ptx_source(p, 1, type), d = ckt_ptx_dest(p, 0, type);
	struct ptx_insn *i = ckt_ptx_emit(p, exec_alloca);
	i->a = a;
	i->d = d;
	i->imm = (int64_t)(align < 16 ? 16 : align);
	p->function->has_alloca = true;
}

static void decode_stack(struct ptx_parser *p)
{
	bool save = !strcmp(p->raw.op, "stacksave");
	enum ptx_type type = ckt_ptx_need_type(p);
	ckt_ptx_need_operands(p, 1, 1);
	if (ckt_ptx_type_bytes(type) != 8)
		ckt_ptx_bad(p, "addresses must have 64 bits");
	int32_t o = save ? ckt_ptx_dest(p, 0, type) : ckt_ptx_source(p, 0, type);
	struct ptx_insn *i = ckt_ptx_emit(p, save ? exec_stacksave : exec_stackrestore);
	i->a = i->d = o;
}

const struct ptx_opcode ckt_ptx_opcodes_data[] = {
	{"mov", decode_mov},
	{"selp", decode_selp},
	{"slct", decode_slct},
	{"cvta", decode_cvta},
	{"isspacep", decode_isspacep},
	{"istypep", decode_istypep},
	{"alloca", decode_alloca},
	{"stacksave", decode_stack},
	{"stackrestore", decode_stack},
	{NULL, NULL},
};
