/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logic, shifts and bit fields.
 */
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

#define BINARY(name, SLOT, expr)                                                      \
	HANDLER(name)                                                                 \
	{                                                                             \
		const SLOT *a = ptx_at(w, i->a), *b = ptx_at(w, i->b);                \
		SLOT *d = ptx_at(w, i->d);                                            \
		PTX_FOR_LANES(m, SLOT x = a[l]; SLOT y = b[l]; d[l] = (SLOT)(expr);); \
		return RUN_NEXT;                                                      \
	}                                                                             \
	PTX_FORM(name, FORM_LANE, sizeof(SLOT), sizeof(SLOT), sizeof(SLOT), 0, 0,     \
		PTX_TEXT(SLOT) " x = a, y = b; d = (" PTX_TEXT(SLOT) ")(" PTX_TEXT(expr) ");")
/* The predicate form computes the bits of all lanes at once. */
#define LOGIC(name, expr)                                                                    \
	BINARY(name##_32, uint32_t, expr)                                                    \
	BINARY(name##_64, uint64_t, expr)                                                    \
	HANDLER(name##_pred)                                                                 \
	{                                                                                    \
		uint32_t x = *(uint32_t *)ptx_at(w, i->a), y = *(uint32_t *)ptx_at(w, i->b), \
			 *d = ptx_at(w, i->d);                                               \
		*d = (*d & ~m) | ((uint32_t)(expr)&m);                                       \
		return RUN_NEXT;                                                             \
	}                                                                                    \
	PTX_FORM(name##_pred, FORM_LANE, 1, 1, 1, 0, 0,                                      \
		"uint32_t x = a, y = b; d = " PTX_TEXT(expr) ";")
LOGIC(and, x &y)
LOGIC(or, x | y)
LOGIC(xor, x ^ y)

#define UNARY(name, SLOT, DSLOT, expr)                                  \
	HANDLER(name)                                                   \
	{                                                               \
		const SLOT *a = ptx_at(w, i->a);                        \
		DSLOT *d = ptx_at(w, i->d);                             \
		PTX_FOR_LANES(m, SLOT x = a[l]; d[l] = (DSLOT)(expr);); \
		return RUN_NEXT;                                        \
	}                                                               \
	PTX_FORM(name, FORM_LANE, sizeof(DSLOT), sizeof(SLOT), 0, 0, 0, \
		PTX_TEXT(SLOT) " x = a; d = (" PTX_TEXT(DSLOT) ")(" PTX_TEXT(expr) ");")
UNARY(not_16, uint32_t, uint32_t, (uint16_t)~x)
UNARY(not_32, uint32_t, uint32_t, ~x)
UNARY(not_64, uint64_t, uint64_t, ~x)
UNARY(cnot_16, uint32_t, uint32_t, (uint16_t)x == 0)
UNARY(cnot_32, uint32_t, uint32_t, x == 0)
UNARY(cnot_64, uint64_t, uint64_t, x == 0)
HANDLER(not_pred)
{
	uint32_t x = *(uint32_t *)ptx_at(w, i->a), *d = ptx_at(w, i->d);
	*d = (*d & ~m) | (~x & m);
	return RUN_NEXT;
}
PTX_FORM(not_pred, FORM_LANE, 1, 1, 0, 0, 0, "d = !a;")

UNARY(brev_32, uint32_t, uint32_t, reverse32(x))
UNARY(brev_64, uint64_t, uint64_t,
	(uint64_t)reverse32((uint32_t)x) << 32 | reverse32((uint32_t)(x >> 32)))
UNARY(popc_32, uint32_t, uint32_t, __builtin_popcount(x))
UNARY(popc_64, uint64_t, uint32_t, __builtin_popcountll(x))
UNARY(clz_32, uint32_t, uint32_t, x ? __builtin_clz(x) : 32)
UNARY(clz_64, uint64_t, uint32_t, x ? __builtin_clzll(x) : 64)

UNARY(bfind_32, uint32_t, uint32_t, find(x, i->x, 32, i->y))
UNARY(bfind_64, uint64_t, uint32_t, find(x, i->x, 64, i->y))

/* ---- Shifts: an amount of at least the width shifts all bits out */

#define SHIFT(name, SLOT, T, U, expr)                                                  \
	HANDLER(name)                                                                  \
	{                                                                              \
		const SLOT *a = ptx_at(w, i->a);                                       \
		const uint32_t *b = ptx_at(w, i->b);                                   \
		SLOT *d = ptx_at(w, i->d);                                             \
		PTX_FOR_LANES(m, T x = (T)a[l]; uint32_t n = b[l]; d[l] = (U)(expr);); \
		return RUN_NEXT;                                                       \
	}                                                                              \
	PTX_FORM(name, FORM_LANE, sizeof(SLOT), sizeof(SLOT), 4, 0, 0,                 \
		PTX_TEXT(T) " x = (" PTX_TEXT(T) ")a; uint32_t n = b; d = (" PTX_TEXT( \
			U) ")(" PTX_TEXT(expr) ");")
SHIFT(shl_16, uint32_t, uint16_t, uint16_t, n > 15 ? 0 : (uint32_t)x << n)
SHIFT(shl_32, uint32_t, uint32_t, uint32_t, n > 31 ? 0 : x << (n & 31))
SHIFT(shl_64, uint64_t, uint64_t, uint64_t, n > 63 ? 0 : x << (n & 63))
SHIFT(shr_u16, uint32_t, uint16_t, uint16_t, n > 15 ? 0 : x >> n)
SHIFT(shr_u32, uint32_t, uint32_t, uint32_t, n > 31 ? 0 : x >> (n & 31))
SHIFT(shr_u64, uint64_t, uint64_t, uint64_t, n > 63 ? 0 : x >> (n & 63))
SHIFT(shr_s16, uint32_t, int16_t, uint16_t, x >> (n > 15 ? 15 : n))
SHIFT(shr_s32, uint32_t, int32_t, uint32_t, x >> (n > 31 ? 31 : n))
SHIFT(shr_s64, uint64_t, int64_t, uint64_t, x >> (n > 63 ? 63 : n))

#define TERNARY(name, SLOT, expr)                                                     \
	HANDLER(name)                                                                 \
	{                                                                             \
		const SLOT *a = ptx_at(w, i->a);                                      \
		const uint32_t *b = ptx_at(w, i->b), *c = ptx_at(w, i->c);            \
		SLOT *d = ptx_at(w, i->d);                                            \
		PTX_FOR_LANES(m, SLOT x = a[l]; uint32_t y = b[l]; uint32_t z = c[l]; \
			      d[l] = (SLOT)(expr););                                  \
		return RUN_NEXT;                                                      \
	}                                                                             \
	PTX_FORM(name, FORM_LANE, sizeof(SLOT), sizeof(SLOT), 4, 4, 0,                \
		PTX_TEXT(SLOT) " x = a; uint32_t y = b, z = c; d = (" PTX_TEXT(       \
			SLOT) ")(" PTX_TEXT(expr) ");")
/* Funnel shifts of y:x by z. */
TERNARY(shf_l_wrap, uint32_t, (((uint64_t)y << 32 | x) << (z & 31)) >> 32)
TERNARY(shf_r_wrap, uint32_t, ((uint64_t)y << 32 | x) >> (z & 31))
TERNARY(shf_l_clamp, uint32_t, (((uint64_t)y << 32 | x) << (z > 32 ? 32 : z)) >> 32)
TERNARY(shf_r_clamp, uint32_t, ((uint64_t)y << 32 | x) >> (z > 32 ? 32 : z))

/* ---- Bit fields */

TERNARY(bfe_u32, uint32_t, extract(x, 32, false, y, z))
TERNARY(bfe_s32, uint32_t, extract(x, 32, true, y, z))
TERNARY(bfe_u64, uint64_t, extract(x, 64, false, y, z))
TERNARY(bfe_s64, uint64_t, extract(x, 64, true, y, z))

#define INSERT(name, SLOT, BITS)                                                      \
	HANDLER(name)                                                                 \
	{                                                                             \
		const SLOT *a = ptx_at(w, i->a), *b = ptx_at(w, i->b);                \
		const uint32_t *c = ptx_at(w, i->c), *e = ptx_at(w, i->e);            \
		SLOT *d = ptx_at(w, i->d);                                            \
		PTX_FOR_LANES(m, d[l] = (SLOT)insert(a[l], b[l], BITS, c[l], e[l]);); \
		return RUN_NEXT;                                                      \
	}                                                                             \
	PTX_FORM(name, FORM_LANE, sizeof(SLOT), sizeof(SLOT), sizeof(SLOT), 4, 4,     \
		"d = (" PTX_TEXT(SLOT) ")insert(a, b, " PTX_TEXT(BITS) ", c, e);")
INSERT(bfi_32, uint32_t, 32)
INSERT(bfi_64, uint64_t, 64)

BINARY(szext, uint32_t, sign_extend(x, y, i->x, i->y))

BINARY(bmsk, uint32_t, mask_of(x, y, i->x))

TERNARY(fns, uint32_t, nth_set(x, y, (int32_t)z))

TERNARY(prmt, uint32_t, permute(x, y, z, i->x))

/* ---- lop3: any function of three bits, given by its table; common tables need no loop */

TERNARY(lop3, uint32_t, table3(x, y, z, (uint32_t)i->imm))

/* lop3.BoolOp: also computes a predicate (result is not 0), joined with another predicate. */
HANDLER(lop3_pred)
{
	const uint32_t *a = ptx_at(w, i->a), *b = ptx_at(w, i->b), *c = ptx_at(w, i->c);
	const int32_t *more = i->list; /* q, p */
	uint32_t *d = ptx_at(w, i->d), q = *(uint32_t *)ptx_at(w, more[0]), *p = ptx_at(w, more[1]),
		 r = 0;
	PTX_FOR_LANES(m, uint32_t v = table3(a[l], b[l], c[l], (uint32_t)i->imm); d[l] = v;
		      r |= (uint32_t)(v != 0) << l;);
	r = i->x == 0 ? r & q : i->x == 1 ? r | q : r ^ q;
	*p = (*p & ~m) | (r & m);
	return RUN_NEXT;
}

/* ---- Decoding */

static struct ptx_insn *emit(struct ptx_parser *p, ptx_handler *fn, enum ptx_type dest,
	const enum ptx_type *sources, unsigned n)
{
	int32_t s[4] = {PTX_OPERAND_NONE, PTX_OPERAND_NONE, PTX_OPERAND_NONE, PTX_OPERAND_NONE};
	ckt_ptx_need_operands(p, n + 1, n + 1);
	for (unsigned k = 0; k < n; k++)
		s[k] = ckt_ptx_source(p, k + 1, sources[k]);
	int32_t d = ckt_ptx_dest(p, 0, dest);
	struct ptx_insn *i = ckt_ptx_emit(p, fn);
	i->a = s[0];
	i->b = s[1];
	i->c = s[2];
	i->e = s[3];
	i->d = d;
	return i;
}

static unsigned need_bits(struct ptx_parser *p, enum ptx_type type, unsigned least)
{
	unsigned bytes = ckt_ptx_type_bytes(type);
	if (ckt_ptx_type_float(type) || bytes < least || bytes > 8)
		ckt_ptx_bad(p, "unsuitable type");
	return bytes;
}

static void decode_logic(struct ptx_parser *p)
{
	static const struct {
		const char *name;
		unsigned n;
		ptx_handler *pred, *h16, *h32, *h64;
	} logic[] = {{"and", 2, and_pred, and_32, and_32, and_64},
		{"or", 2, or_pred, or_32, or_32, or_64},
		{"xor", 2, xor_pred, xor_32, xor_32, xor_64},
		{"not", 1, not_pred, not_16, not_32, not_64},
		{"cnot", 1, NULL, cnot_16, cnot_32, cnot_64}};
	enum ptx_type type = ckt_ptx_need_type(p), types[2] = {type, type};
	for (size_t k = 0; k < sizeof logic / sizeof *logic; k++) {
		if (strcmp(p->raw.op, logic[k].name))
			continue;
		ptx_handler *fn = logic[k].pred;
		if (type != T_PRED) {
			unsigned bytes = need_bits(p, type, 2);
			fn = bytes == 8 ? logic[k].h64 : bytes == 4 ? logic[k].h32 : logic[k].h16;
		}
		if (!fn)
			ckt_ptx_bad(p, "unsuitable type");
		emit(p, fn, type, types, logic[k].n);
	}
}

static void decode_shift(struct ptx_parser *p)
{
	bool left = p->raw.op[2] == 'l';
	enum ptx_type type = ckt_ptx_need_type(p), types[2] = {type, T_U32};
	unsigned width = need_bits(p, type, 2) == 8 ? 2 : ckt_ptx_type_bytes(type) == 4 ? 1 : 0;
	static ptx_handler *const lefts[3] = {shl_16, shl_32, shl_64};
	static ptx_handler *const rights[2][3] = {
		{shr_u16, shr_u32, shr_u64}, {shr_s16, shr_s32, shr_s64}};
	emit(p, left ? lefts[width] : rights[ckt_ptx_type_signed(type)][width], type, types, 2);
}

static void decode_shf(struct ptx_parser *p)
{
	static const enum ptx_type types[3] = {T_U32, T_U32, T_U32};
	bool left = ckt_ptx_mod(p, "l");
	if (!left && !ckt_ptx_mod(p, "r"))
		ckt_ptx_bad(p, ".l or .r expected");
	bool wrap = ckt_ptx_mod(p, "wrap");
	if (!wrap && !ckt_ptx_mod(p, "clamp"))
		ckt_ptx_bad(p, ".wrap or .clamp expected");
	if (need_bits(p, ckt_ptx_need_type(p), 4) != 4)
		ckt_ptx_bad(p, "unsuitable type");
	emit(p, left ? (wrap ? shf_l_wrap : shf_l_clamp) : (wrap ? shf_r_wrap : shf_r_clamp), T_U32,
		types, 3);
}

static void decode_count(struct ptx_parser *p)
{
	static const struct {
		const char *name;
		bool narrow;
		ptx_handler *h32, *h64;
	} counts[] = {{"popc", true, popc_32, popc_64}, {"clz", true, clz_32, clz_64},
		{"brev", false, brev_32, brev_64}, {"bfind", true, bfind_32, bfind_64}};
	bool shift = ckt_ptx_mod(p, "shiftamt");
	enum ptx_type type = ckt_ptx_need_type(p);
	unsigned bytes = need_bits(p, type, 4);
	for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
		if (strcmp(p->raw.op, counts[k].name))
			continue;
		struct ptx_insn *i = emit(p, bytes == 8 ? counts[k].h64 : counts[k].h32,
			counts[k].narrow ? T_U32 : type, &type, 1);
		i->x = ckt_ptx_type_signed(type);
		i->y = shift;
	}
}

static void decode_field(struct ptx_parser *p)
{
	bool is_insert = p->raw.op[2] == 'i';
	enum ptx_type type = ckt_ptx_need_type(p);
	bool wide = need_bits(p, type, 4) == 8;
	if (is_insert) {
		enum ptx_type types[4] = {type, type, T_U32, T_U32};
		emit(p, wide ? bfi_64 : bfi_32, type, types, 4);
	} else {
		enum ptx_type types[3] = {type, T_U32, T_U32};
		bool is_signed = ckt_ptx_type_signed(type);
		emit(p, wide ? (is_signed ? bfe_s64 : bfe_u64) : (is_signed ? bfe_s32 : bfe_u32),
			type, types, 3);
	}
}

static void decode_szext_bmsk(struct ptx_parser *p)
{
	static const enum ptx_type types[2] = {T_U32, T_U32};
	bool wrap = ckt_ptx_mod(p, "wrap");
	if (!wrap && !ckt_ptx_mod(p, "clamp"))
		ckt_ptx_bad(p, ".wrap or .clamp expected");
	enum ptx_type type = ckt_ptx_need_type(p);
	need_bits(p, type, 4);
	struct ptx_insn *i = emit(p, p->raw.op[0] == 's' ? szext : bmsk, T_U32, types, 2);
	i->x = wrap;
	i->y = ckt_ptx_type_signed(type);
}

static void decode_fns_prmt(struct ptx_parser *p)
{
	static const enum ptx_type types[3] = {T_U32, T_U32, T_U32};
	static const char *const modes[] = {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16", NULL};
	bool is_prmt = p->raw.op[0] == 'p';
	need_bits(p, ckt_ptx_need_type(p), 4);
	int mode = is_prmt ? ckt_ptx_mod_one(p, modes) : -1;
	emit(p, is_prmt ? prmt : fns, T_U32, types, 3)->x = (uint8_t)(mode + 1);
}

static void decode_lop3(struct ptx_parser *p)
{
	static const char *const joins[] = {"and", "or", "xor", NULL};
	int join = ckt_ptx_mod_one(p, joins);
	need_bits(p, ckt_ptx_need_type(p), 4);
	ckt_ptx_need_operands(p, join < 0 ? 5 : 6, join < 0 ? 5 : 6);
	const struct ptx_operand *lut = &p->raw.operands[4];
	if (lut->kind != OP_CONST)
		ckt_ptx_bad(p, "the table of lop3 must be a constant");
	int32_t a = ckt_ptx_source(p, 1, T_U32), b = ckt_ptx_source(p, 2, T_U32),
		c = ckt_ptx_source(p, 3, T_U32);
	int32_t *more = NULL;
	if (join >= 0) {
		const struct ptx_operand *d = &p->raw.operands[0];
		more = ckt_ptx_new(p, 2 * sizeof *more);
		more[0] = ckt_ptx_pred_source(p, &p->raw.operands[5]);
		if (d->reg2 == PTX_OPERAND_NONE || d->type2 != T_PRED)
			ckt_ptx_bad(p, "destination d|p expected");
		more[1] = d->reg2;
	}
	int32_t d = ckt_ptx_dest(p, 0, T_U32);
	struct ptx_insn *i = ckt_ptx_emit(p, join < 0 ? lop3 : lop3_pred);
	i->a = a;
	i->b = b;
	i->c = c;
	i->d = d;
	i->imm = (int64_t)lut->value;
	i->x = (uint8_t)join;
	i->list = more;
}

const struct ptx_opcode ckt_ptx_opcodes_bits[] = {
	{"and", decode_logic},
	{"or", decode_logic},
	{"xor", decode_logic},
	{"not", decode_logic},
	{"cnot", decode_logic},
	{"shl", decode_shift},
	{"shr", decode_shift},
	{"shf", decode_shf},
	{"popc", decode_count},
	{"clz", decode_count},
	{"brev", decode_count},
	{"bfind", decode_count},
	{"bfe", decode_field},
	{"bfi", decode_field},
	{"szext", decode_szext_bmsk},
	{"bmsk", decode_szext_bmsk},
	{"fns", decode_fns_prmt},
	{"prmt", decode_fns_prmt},
	{"lop3", decode_lop3},
	{NULL, NULL},
};
