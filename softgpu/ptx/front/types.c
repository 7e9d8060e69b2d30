/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fundamental types of PTX and constant expressions.
 */
#include <string.h>

#include "softgpu/ptx/front/decode.h"
#include "softgpu/ptx/front/parser.h"
#include "softgpu/ptx/front/types.h"
#include "softgpu/ptx/machine.h"

static const struct {
	const char *name;
	uint8_t bytes;
	bool is_signed, is_float;
} type_table[T_COUNT] = {
	[T_PRED] = {"pred", 0, false, false},
	[T_B8] = {"b8", 1, false, false},
	[T_U8] = {"u8", 1, false, false},
	[T_S8] = {"s8", 1, true, false},
	[T_B16] = {"b16", 2, false, false},
	[T_U16] = {"u16", 2, false, false},
	[T_S16] = {"s16", 2, true, false},
	[T_B32] = {"b32", 4, false, false},
	[T_U32] = {"u32", 4, false, false},
	[T_S32] = {"s32", 4, true, false},
	[T_B64] = {"b64", 8, false, false},
	[T_U64] = {"u64", 8, false, false},
	[T_S64] = {"s64", 8, true, false},
	[T_B128] = {"b128", 16, false, false},
	[T_F16] = {"f16", 2, false, true},
	[T_BF16] = {"bf16", 2, false, true},
	[T_F32] = {"f32", 4, false, true},
	[T_F64] = {"f64", 8, false, true},
	[T_F16X2] = {"f16x2", 4, false, true},
	[T_BF16X2] = {"bf16x2", 4, false, true},
	[T_U16X2] = {"u16x2", 4, false, false},
	[T_S16X2] = {"s16x2", 4, true, false},
	[T_TF32] = {"tf32", 4, false, true},
	[T_E4M3X2] = {"e4m3x2", 2, false, true},
	[T_E5M2X2] = {"e5m2x2", 2, false, true},
	[T_F32X2] = {"f32x2", 8, false, true},
	[T_UE8M0X2] = {"ue8m0x2", 2, false, true},
	[T_OPAQUE] = {"texref", 8, false, false},
};

enum ptx_type ckt_ptx_type_from(const char *word, size_t size)
{
	for (int t = T_PRED; t < T_COUNT; t++)
		if (strlen(type_table[t].name) == size && !memcmp(type_table[t].name, word, size))
			return (enum ptx_type)t;
	if ((size == 10 && !memcmp(word, "samplerref", 10)) ||
		(size == 7 && !memcmp(word, "surfref", 7)))
		return T_OPAQUE;
	return T_NONE;
}

unsigned ckt_ptx_type_bytes(enum ptx_type type)
{
	return type_table[type].bytes;
}
bool ckt_ptx_type_signed(enum ptx_type type)
{
	return type_table[type].is_signed;
}
bool ckt_ptx_type_float(enum ptx_type type)
{
	return type_table[type].is_float;
}

/* Bytes per lane of a register; 0 for a predicate. */
unsigned ckt_ptx_lane_bytes(enum ptx_type type)
{
	unsigned bytes = type_table[type].bytes;
	return type == T_PRED ? 0 : bytes <= 4 ? 4 : bytes;
}

static bool is_bits(enum ptx_type type)
{
	return type == T_B8 || type == T_B16 || type == T_B32 || type == T_B64 || type == T_B128;
}

bool ckt_ptx_type_takes(enum ptx_type type, enum ptx_type reg)
{
	if (type == T_PRED || reg == T_PRED || type_table[type].bytes != type_table[reg].bytes)
		return type == reg;
	return is_bits(type) || is_bits(reg) ||
		type_table[type].is_float == type_table[reg].is_float;
}

/*
 * ---- Constants, with the types that ptxas gives them: signed unless marked U, cast, or too large
 */

struct constant {
	enum ptx_type kind; /* T_S64, T_U64, T_F32 or T_F64 */
	uint64_t bits;
};

static struct constant expression(struct ptx_parser *p, int level);
static struct constant choice(struct ptx_parser *p);
static struct constant primary(struct ptx_parser *p);

static bool is_integer(const struct constant *c)
{
	return c->kind == T_S64 || c->kind == T_U64;
}

static struct constant need_integer(struct ptx_parser *p, struct constant c)
{
	if (!is_integer(&c))
		ckt_ptx_fail(p, CKT_PTX_INVALID, "integer constant expected instead of a float");
	return c;
}

static struct constant negate(struct constant c)
{
	c.bits = c.kind == T_F32  ? c.bits ^ 0x80000000u
		: c.kind == T_F64 ? c.bits ^ (1ull << 63)
				  : 0 - c.bits;
	return c;
}

/* Parses after "(": a cast, (.s64) or (.u64), or an expression. */
static struct constant parenthesis(struct ptx_parser *p)
{
	struct constant c;
	if (p->token.kind == TK_DOT) {
		enum ptx_type to = ckt_ptx_type_from(p->token.text, p->token.size);
		if (to != T_S64 && to != T_U64)
			ckt_ptx_fail(
				p, CKT_PTX_INVALID, "a constant can be cast only to .s64 or .u64");
		ckt_ptx_next(p);
		ckt_ptx_expect(p, ')');
		c = need_integer(p, primary(p));
		c.kind = to;
		return c;
	}
	c = choice(p);
	ckt_ptx_expect(p, ')');
	return c;
}

static struct constant unary(struct ptx_parser *p)
{
	if (p->depth > 64)
		ckt_ptx_fail(p, CKT_PTX_INVALID, "expression nested too deeply");
	if (ckt_ptx_accept(p, '-'))
		return negate(primary(p));
	if (ckt_ptx_accept(p, '+'))
		return primary(p);
	if (ckt_ptx_accept(p, '~'))
		return (struct constant){T_U64, ~need_integer(p, primary(p)).bits};
	if (ckt_ptx_accept(p, '!'))
		return (struct constant){T_S64, !need_integer(p, primary(p)).bits};
	if (ckt_ptx_accept(p, '('))
		return parenthesis(p);
	if (p->token.kind == TK_IDENT && ckt_ptx_token_is(&p->token, "WARP_SZ")) {
		ckt_ptx_next(p);
		return (struct constant){T_S64, PTX_LANES};
	}
	if (p->token.kind != TK_INT && p->token.kind != TK_F32 && p->token.kind != TK_F64)
		ckt_ptx_fail_broken(p, "constant expected before '%.*s'",
			(int)(p->token.size < 40 ? p->token.size : 40), p->token.text);
	struct constant c = {T_S64, p->token.value};
	if (p->token.kind != TK_INT)
		c.kind = p->token.kind == TK_F32 ? T_F32 : T_F64;
	else if (p->token.text[p->token.size - 1] == 'U' || c.bits >> 63)
		c.kind = T_U64;
	ckt_ptx_next(p);
	return c;
}

static struct constant primary(struct ptx_parser *p)
{
	p->depth++;
	struct constant c = unary(p);
	p->depth--;
	return c;
}

enum operator{
	O_OR_ELSE,
	O_AND_THEN,
	O_OR,
	O_XOR,
	O_AND,
	O_EQ,
	O_NE,
	O_LE,
	O_GE,
	O_SHL,
	O_SHR,
	O_LT,
	O_GT,
	O_ADD,
	O_SUB,
	O_MUL,
	O_DIV,
	O_REM,
	O_COUNT
};
/* Operators of two characters precede those that they begin with. */
static const struct {
	char text[3];
	uint8_t level;
} operators[O_COUNT] = {{"||", 0}, {"&&", 1}, {"|", 2}, {"^", 3}, {"&", 4}, {"==", 5}, {"!=", 5},
	{"<=", 6}, {">=", 6}, {"<<", 7}, {">>", 7}, {"<", 6}, {">", 6}, {"+", 8}, {"-", 8},
	{"*", 9}, {"/", 9}, {"%", 9}};
enum { LEVELS = 10 };

/* The operator at the current token, or -1; p->cursor is after its first character. */
static int operator_at(const struct ptx_parser *p)
{
	for (int k = 0; p->token.kind == TK_PUNCT && k < O_COUNT; k++) {
		const char *text = operators[k].text;
		if (p->token.punct == text[0] &&
			(!text[1] || (p->cursor < p->end && *p->cursor == text[1])))
			return k;
	}
	return -1;
}

static struct constant combine_floats(
	struct ptx_parser *p, enum operator o, struct constant a, struct constant b)
{
	double x, y;
	if (a.kind != T_F64 || b.kind != T_F64 || o < O_ADD || o == O_REM)
		ckt_ptx_fail(p, CKT_PTX_INVALID, "operation not defined for floats in a constant");
	memcpy(&x, &a.bits, sizeof x);
	memcpy(&y, &b.bits, sizeof y);
	x = o == O_ADD ? x + y : o == O_SUB ? x - y : o == O_MUL ? x * y : x / y;
	memcpy(&a.bits, &x, sizeof x);
	return a;
}

static bool is_relation(enum operator o)
{
	return o <= O_AND_THEN || (o >= O_EQ && o <= O_GE) || o == O_LT || o == O_GT;
}

static bool relate(enum operator o, uint64_t x, uint64_t y, bool is_signed)
{
	bool less = is_signed ? (int64_t)x < (int64_t)y : x < y;
	switch (o) {
	case O_OR_ELSE:
		return x || y;
	case O_AND_THEN:
		return x && y;
	case O_EQ:
		return x == y;
	case O_NE:
		return x != y;
	case O_LE:
		return less || x == y;
	case O_GE:
		return !less;
	case O_LT:
		return less;
	default:
		return !less && x != y;
	}
}

/* The left side's type selects the shift; the right side's low six bits are the amount. */
static struct constant shift(enum operator o, struct constant a, uint64_t y)
{
	uint64_t x = a.bits;
	if (o == O_SHL)
		return (struct constant){a.kind, x << (y & 63)};
	return (struct constant){
		a.kind, a.kind == T_S64 ? (uint64_t)((int64_t)x >> (y & 63)) : x >> (y & 63)};
}

static uint64_t divide(uint64_t x, uint64_t y, bool is_signed)
{
	if (!is_signed)
		return x / y;
	/* INT64_MIN divided by -1 wraps. */
	return y == ~0ull ? 0 - x : (uint64_t)((int64_t)x / (int64_t)y);
}

static struct constant combine(
	struct ptx_parser *p, enum operator o, struct constant a, struct constant b)
{
	if (!is_integer(&a) || !is_integer(&b))
		return combine_floats(p, o, a, b);
	if ((o == O_DIV || o == O_REM) && !b.bits)
		ckt_ptx_fail(p, CKT_PTX_INVALID, "division by zero in a constant");
	bool is_signed = a.kind == T_S64 && b.kind == T_S64;
	uint64_t x = a.bits, y = b.bits;
	enum ptx_type kind = is_signed ? T_S64 : T_U64;
	if (is_relation(o))
		return (struct constant){T_S64, relate(o, x, y, is_signed)};
	switch (o) {
	case O_SHL:
	case O_SHR:
		return shift(o, a, y);
	case O_REM:
		return (struct constant){T_U64, x % y};
	case O_OR:
		return (struct constant){kind, x | y};
	case O_XOR:
		return (struct constant){kind, x ^ y};
	case O_AND:
		return (struct constant){kind, x & y};
	case O_ADD:
		return (struct constant){kind, x + y};
	case O_SUB:
		return (struct constant){kind, x - y};
	case O_MUL:
		return (struct constant){kind, x * y};
	default:
		return (struct constant){kind, divide(x, y, is_signed)};
	}
}

static struct constant expression(struct ptx_parser *p, int level)
{
	if (level == LEVELS)
		return primary(p);
	struct constant a = expression(p, level + 1);
	for (int o = operator_at(p); o >= 0 && operators[o].level == level; o = operator_at(p)) {
		ckt_ptx_next(p);
		if (operators[o].text[1])
			ckt_ptx_next(p);
		a = combine(p, (enum operator)o, a, expression(p, level + 1));
	}
	return a;
}

static struct constant choice(struct ptx_parser *p)
{
	struct constant which = expression(p, 0);
	if (!ckt_ptx_accept(p, '?'))
		return which;
	if (++p->depth > 64)
		ckt_ptx_fail(p, CKT_PTX_INVALID, "expression nested too deeply");
	struct constant yes = choice(p);
	ckt_ptx_expect(p, ':');
	struct constant no = choice(p);
	p->depth--;
	return need_integer(p, which).bits ? yes : no;
}

uint64_t ckt_ptx_constant_expression(struct ptx_parser *p, enum ptx_type *ret_kind)
{
	struct constant c = choice(p);
	if (ret_kind)
		*ret_kind = c.kind == T_U64 ? T_S64 : c.kind;
	return c.bits;
}
