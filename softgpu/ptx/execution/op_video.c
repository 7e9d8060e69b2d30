/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Video instructions: without selectors on pairs and quadruples of small integers in one register;
 * with selectors on single integers from a byte, a half or a whole register.
 */
#include <string.h>

#include "softgpu/ptx/execution/op.h"
#include "softgpu/ptx/execution/grid.h"
#include "softgpu/ptx/execution/lanes.h"
#include "softgpu/ptx/front/decode.h"
#include "softgpu/ptx/front/parser.h"
#include "softgpu/ptx/front/types.h"
#include "softgpu/ptx/program.h"

enum video_op { V_ADD, V_SUB, V_AVRG, V_ABSDIFF, V_MIN, V_MAX, V_SET };
enum { SIGNED_A = 1, SIGNED_B = 2, SIGNED_D = 4, SATURATE = 8, ACCUMULATE = 16 };

static int32_t part(uint32_t v, unsigned k, unsigned bits, bool is_signed)
{
	uint32_t field = v >> (k * bits) & ((1u << bits) - 1);
	return is_signed && field >> (bits - 1) ? (int32_t)(field - (1u << bits)) : (int32_t)field;
}

static int32_t compute(int op, int compare, int32_t x, int32_t y)
{
	switch (op) {
	case V_ADD:
		return x + y;
	case V_SUB:
		return x - y;
	case V_AVRG:
		return (x + y + (x + y >= 0)) >> 1;
	case V_ABSDIFF:
		return x < y ? y - x : x - y;
	case V_MIN:
		return x < y ? x : y;
	case V_MAX:
		return x > y ? x : y;
	default:
		break;
	}
	switch (compare) {
	case 0:
		return x == y;
	case 1:
		return x != y;
	case 2:
		return x < y;
	case 3:
		return x <= y;
	case 4:
		return x > y;
	default:
		return x >= y;
	}
}

/* x: operation, y: flags, z: parts | comparison << 4. */
static int exec_video(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)
{
	const uint32_t *a = ptx_at(w, i->a), *b = ptx_at(w, i->b), *c = ptx_at(w, i->c);
	uint32_t *d = ptx_at(w, i->d);
	unsigned n = i->z & 15, bits = 32 / n;
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		uint32_t r = 0, sum = c[l];
		for (unsigned k = 0; k < n; k++) {
			int32_t v = compute(i->x, i->z >> 4, part(a[l], k, bits, i->y & SIGNED_A),
				part(b[l], k, bits, i->y & SIGNED_B));
			if (i->y & SATURATE) {
				int32_t least = i->y & SIGNED_D ? -(1 << (bits - 1)) : 0,
					most = (1 << (bits - (i->y & SIGNED_D ? 1 : 0))) - 1;
				v = v < least ? least : v > most ? most : v;
			}
			r |= ((uint32_t)v & ((1u << bits) - 1)) << (k * bits);
			sum += (uint32_t)v;
		}
		d[l] = i->y & ACCUMULATE ? sum : r;
	}
	return RUN_NEXT;
}

PTX_FORM(exec_video, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

static void decode_video(struct ptx_parser *p)
{
	static const char *const names[] = {
		"vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset"};
	static const char *const compares[] = {"eq", "ne", "lt", "le", "gt", "ge", NULL};
	size_t length = strlen(p->raw.op) - 1;
	int op = 0, compare = 0, flags = 0;
	while (strlen(names[op]) != length || strncmp(names[op], p->raw.op, length))
		op++;
	enum ptx_type d = op == V_SET ? T_U32 : ckt_ptx_need_type(p), a = ckt_ptx_need_type(p),
		      b = ckt_ptx_need_type(p);
	if (op == V_SET && (compare = ckt_ptx_mod_one(p, compares)) < 0)
		ckt_ptx_bad(p, "comparison expected");
	flags |= (a == T_S32 ? SIGNED_A : 0) | (b == T_S32 ? SIGNED_B : 0) |
		(d == T_S32 ? SIGNED_D : 0);
	flags |= ckt_ptx_mod(p, "sat") ? SATURATE : 0;
	flags |= ckt_ptx_mod(p, "add") ? ACCUMULATE : 0;
	ckt_ptx_need_operands(p, 4, 4);
	int32_t sa = ckt_ptx_source(p, 1, T_U32), sb = ckt_ptx_source(p, 2, T_U32),
		sc = ckt_ptx_source(p, 3, T_U32), sd = ckt_ptx_dest(p, 0, T_U32);
	struct ptx_insn *i = ckt_ptx_emit(p, exec_video);
	i->a = sa;
	i->b = sb;
	i->c = sc;
	i->d = sd;
	i->x = (uint8_t)op;
	i->y = (uint8_t)flags;
	i->z = (uint8_t)(p->raw.op[length] - '0') | (uint8_t)(compare << 4);
}

/* ---- Single integers */

enum scalar_op { S_ADD, S_SUB, S_ABSDIFF, S_MIN, S_MAX, S_SHL, S_SHR, S_SET, S_MAD };
enum second_op { SECOND_NONE = -1, SECOND_ADD, SECOND_MIN, SECOND_MAX };

struct scalar {
	enum scalar_op op;
	enum second_op second;
	int compare, scale;
	uint8_t part_a, part_b, part_d; /* as in struct ptx_operand */
	bool signed_a, signed_b, signed_d, saturate, wrap, plus_one, minus_product, minus_c;
};

typedef __int128 wide;

static wide pick(uint32_t v, unsigned part, bool is_signed)
{
	if (part >= 5)
		v = is_signed ? (uint32_t)(int16_t)(v >> (16 * (part - 5)))
			      : (uint16_t)(v >> (16 * (part - 5)));
	else if (part)
		v = is_signed ? (uint32_t)(int8_t)(v >> (8 * (part - 1)))
			      : (uint8_t)(v >> (8 * (part - 1)));
	return is_signed ? (wide)(int32_t)v : (wide)v;
}

static wide clamp(wide v, unsigned bits, bool is_signed)
{
	wide least = is_signed ? -((wide)1 << (bits - 1)) : 0,
	     most = ((wide)1 << (bits - is_signed)) - 1;
	return v < least ? least : v > most ? most : v;
}

/*
 * a * b + c.  The product or c may be negated, by adding its complement and one.  As on an H200,
 * the sum has 64 bits, and whole registers and c are signed for any types.
 */
static uint32_t multiply(const struct scalar *s, wide x, wide y, uint32_t addend)
{
	bool is_signed = s->signed_a || s->signed_b || s->minus_product || s->minus_c;
	int64_t a = s->part_a ? (int64_t)x : (int32_t)(uint32_t)x,
		b = s->part_b ? (int64_t)y : (int32_t)(uint32_t)y;
	uint64_t product = (uint64_t)(a * b),
		 bits = (uint64_t)(int64_t)(int32_t)(s->minus_c ? ~addend : addend);
	uint64_t sum = (s->minus_product ? ~product : product) + bits +
		(s->plus_one || s->minus_product || s->minus_c);
	int64_t v = is_signed ? (int64_t)sum >> s->scale : (int64_t)(sum >> s->scale);
	return (uint32_t)(s->saturate ? (int64_t)clamp(v, 32, is_signed) : v);
}

static wide operate(const struct scalar *s, wide x, wide y)
{
	unsigned by = s->wrap ? (unsigned)y & 31 : y > 32 ? 32 : (unsigned)y;
	switch (s->op) {
	case S_ADD:
		return x + y;
	case S_SUB:
		return x - y;
	case S_ABSDIFF:
		return x < y ? y - x : x - y;
	case S_MIN:
		return x < y ? x : y;
	case S_MAX:
		return x > y ? x : y;
	case S_SHL:
		return (wide)((unsigned __int128)x << by);
	case S_SHR:
		return x >> by;
	default:
		return compute(V_SET, s->compare, x < y ? -1 : x > y, 0);
	}
}

/*
 * The rest follows the code that ptxas generates for an H200, which has no video instructions.  It
 * differs from the ISA:
 *
 *	- saturated to 32 unsigned bits: a result below zero is 0; a result above is truncated
 *	- saturated to a part: a result below zero or above is the greatest number; shifts
 *	  saturate to 32 bits
 *	- .h1 gets the upper half of the result and not the lower one
 *	- .min and .max into unsigned treat a signed result with its highest bit set as greater
 *	  than any number
 *	- a comparison's .min and .max are signed if its first source is signed
 */
static uint32_t merge(const struct scalar *s, wide v, uint32_t c)
{
	unsigned bits = s->part_d >= 5 ? 16 : 8,
		 shift = s->part_d >= 5 ? 16 * (s->part_d - 5u) : 8 * (s->part_d - 1u);
	uint32_t mask = ((1u << bits) - 1) << shift;
	wide most = ((wide)1 << (bits - s->signed_d)) - 1;
	if (s->saturate && (s->op == S_SHL || s->op == S_SHR))
		v = clamp(v, 32, s->signed_d);
	else if (s->saturate)
		v = v < 0 || v > most ? most : v;
	return ((s->part_d == 6 ? (uint32_t)v : (uint32_t)v << shift) & mask) | (c & ~mask);
}

/* Whether a result counts as signed after the operation. */
static bool is_signed_result(const struct scalar *s)
{
	return s->op == S_ADD || s->op == S_SUB || (s->op == S_SHR && s->saturate) ||
		(s->op == S_MIN && (s->signed_a || s->signed_b)) ||
		(s->op == S_MAX && s->signed_a && s->signed_b);
}

static uint32_t finish(const struct scalar *s, wide v, uint32_t c)
{
	if (s->part_d)
		return merge(s, v, c);
	if (s->saturate)
		v = s->signed_d || s->op == S_SHL || s->op == S_SHR ? clamp(v, 32, s->signed_d)
			: v < 0                                     ? 0
								    : v;
	if (s->second == SECOND_NONE)
		return (uint32_t)v;
	if (s->second == SECOND_ADD)
		return (uint32_t)v + c;
	/* Compare in 64 bits. */
	int64_t x = is_signed_result(s) ? (int32_t)(uint32_t)v : (int64_t)v;
	bool is_signed = s->op == S_SET ? s->signed_a : s->signed_d;
	bool less = is_signed ? x < (int32_t)c : (uint64_t)x < c;
	return (s->second == SECOND_MIN) == less ? (uint32_t)x : c;
}

static int exec_scalar(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)
{
	const struct scalar *s = i->side;
	const uint32_t *a = ptx_at(w, i->a), *b = ptx_at(w, i->b), *c = ptx_at(w, i->c);
	uint32_t *d = ptx_at(w, i->d);
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		wide x = pick(a[l], s->part_a, s->signed_a), y = pick(b[l], s->part_b, s->signed_b);
		d[l] = s->op == S_MAD ? multiply(s, x, y, c[l]) : finish(s, operate(s, x, y), c[l]);
	}
	return RUN_NEXT;
}
PTX_FORM(exec_scalar, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)

static void take_signs(struct ptx_parser *p, struct scalar *s)
{
	const struct ptx_operand *o = p->raw.operands;
	for (unsigned k = 0; k < p->raw.n_operands; k++)
		if (o[k].minus && (s->op != S_MAD || !k))
			ckt_ptx_bad(p, "only the sources of vmad can be negated");
	s->minus_product = o[1].minus != o[2].minus;
	s->minus_c = p->raw.n_operands > 3 && o[3].minus;
	if (s->plus_one && (o[1].minus || o[2].minus || s->minus_c))
		ckt_ptx_bad(p, ".po cannot be combined with negated registers");
	if (s->minus_product && s->minus_c)
		ckt_ptx_bad(p, "only one of the product and c can be negated");
	if (p->raw.n_operands > 3 && o[3].part)
		ckt_ptx_bad(p, "c must be a whole register");
}

static void decode_scalar(struct ptx_parser *p)
{
	static const char *const names[] = {
		"vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vset", "vmad"};
	static const char *const compares[] = {"eq", "ne", "lt", "le", "gt", "ge", NULL},
				 *const seconds[] = {"add", "min", "max", NULL};
	static const char *const scales[] = {"shr7", "shr15", NULL};
	struct scalar *s = ckt_ptx_new(p, sizeof *s);
	const struct ptx_operand *o = p->raw.operands;
	int op = 0;
	while (strcmp(names[op], p->raw.op))
		op++;
	s->op = (enum scalar_op)op;
	s->signed_d = op != S_SET && ckt_ptx_need_type(p) == T_S32;
	s->signed_a = ckt_ptx_need_type(p) == T_S32;
	s->signed_b = ckt_ptx_need_type(p) == T_S32;
	s->compare = op == S_SET ? ckt_ptx_mod_one(p, compares) : 0;
	s->second = (enum second_op)ckt_ptx_mod_one(p, seconds);
	s->scale = (int[]){0, 7, 15}[ckt_ptx_mod_one(p, scales) + 1];
	s->saturate = ckt_ptx_mod(p, "sat");
	s->wrap = ckt_ptx_mod(p, "wrap");
	s->plus_one = ckt_ptx_mod(p, "po");
	ckt_ptx_mod(p, "clamp");
	ckt_ptx_need_operands(p, op == S_MAD || s->second != SECOND_NONE || o[0].part ? 4 : 3, 4);
	if (o[0].part && (op == S_MAD || s->second != SECOND_NONE))
		ckt_ptx_bad(p, "vmad and second operations cannot write to a part of a register");
	take_signs(p, s);
	s->part_d = o[0].part;
	s->part_a = o[1].part;
	s->part_b = o[2].part;
	p->raw.adorned = false;
	int32_t a = ckt_ptx_source(p, 1, T_U32), b = ckt_ptx_source(p, 2, T_U32),
		c = p->raw.n_operands > 3 ? ckt_ptx_source(p, 3, T_U32) : a;
	int32_t d = ckt_ptx_dest(p, 0, T_U32);
	struct ptx_insn *i = ckt_ptx_emit(p, exec_scalar);
	i->a = a;
	i->b = b;
	i->c = c;
	i->d = d;
	i->side = s;
}

const struct ptx_opcode ckt_ptx_opcodes_video[] = {
	{"vadd", decode_scalar},
	{"vsub", decode_scalar},
	{"vabsdiff", decode_scalar},
	{"vmin", decode_scalar},
	{"vmax", decode_scalar},
	{"vshl", decode_scalar},
	{"vshr", decode_scalar},
	{"vset", decode_scalar},
	{"vmad", decode_scalar},
	{"vadd2", decode_video},
	{"vadd4", decode_video},
	{"vsub2", decode_video},
	{"vsub4", decode_video},
	{"vavrg2", decode_video},
	{"vavrg4", decode_video},
	{"vabsdiff2", decode_video},
	{"vabsdiff4", decode_video},
	{"vmin2", decode_video},
	{"vmin4", decode_video},
	{"vmax2", decode_video},
	{"vmax4", decode_video},
	{"vset2", decode_video},
	{"vset4", decode_video},
	{NULL, NULL},
};
