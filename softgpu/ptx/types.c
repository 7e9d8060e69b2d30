/*
 * The fundamental types of PTX and constant expressions.
 */
#include <string.h>

#include "softgpu/ptx/internal.h"

static const struct { const char *name; uint8_t bytes; bool is_signed, is_float; } type_table[T_COUNT] = {
	[T_PRED] = {"pred", 0, false, false},
	[T_B8] = {"b8", 1, false, false}, [T_U8] = {"u8", 1, false, false}, [T_S8] = {"s8", 1, true, false},
	[T_B16] = {"b16", 2, false, false}, [T_U16] = {"u16", 2, false, false}, [T_S16] = {"s16", 2, true, false},
	[T_B32] = {"b32", 4, false, false}, [T_U32] = {"u32", 4, false, false}, [T_S32] = {"s32", 4, true, false},
	[T_B64] = {"b64", 8, false, false}, [T_U64] = {"u64", 8, false, false}, [T_S64] = {"s64", 8, true, false},
	[T_B128] = {"b128", 16, false, false},
	[T_F16] = {"f16", 2, false, true}, [T_BF16] = {"bf16", 2, false, true},
	[T_F32] = {"f32", 4, false, true}, [T_F64] = {"f64", 8, false, true},
	[T_F16X2] = {"f16x2", 4, false, true}, [T_BF16X2] = {"bf16x2", 4, false, true},
	[T_U16X2] = {"u16x2", 4, false, false}, [T_S16X2] = {"s16x2", 4, true, false},
	[T_TF32] = {"tf32", 4, false, true}, [T_E4M3X2] = {"e4m3x2", 2, false, true}, [T_E5M2X2] = {"e5m2x2", 2, false, true},
	[T_F32X2] = {"f32x2", 8, false, true}, [T_UE8M0X2] = {"ue8m0x2", 2, false, true},
	[T_OPAQUE] = {"texref", 8, false, false},
};

enum ptx_type ckt_ptx_type_from(const char *word, size_t size)
{
	for (int t = T_PRED; t < T_COUNT; t++)
		if (strlen(type_table[t].name) == size && !memcmp(type_table[t].name, word, size))
			return (enum ptx_type)t;
	if ((size == 10 && !memcmp(word, "samplerref", 10)) || (size == 7 && !memcmp(word, "surfref", 7)))
		return T_OPAQUE;
	return T_NONE;
}

unsigned ckt_ptx_type_bytes(enum ptx_type type) { return type_table[type].bytes; }
bool ckt_ptx_type_signed(enum ptx_type type) { return type_table[type].is_signed; }
bool ckt_ptx_type_float(enum ptx_type type) { return type_table[type].is_float; }

/* Bytes a lane of a register takes; 0 for a predicate. */
unsigned ckt_ptx_lane_bytes(enum ptx_type type)
{
	unsigned bytes = type_table[type].bytes;
	return type == T_PRED ? 0 : bytes <= 4 ? 4 : bytes;
}

static uint64_t expression(struct ptx_parser *p, int level, enum ptx_type *kind);
static uint64_t primary(struct ptx_parser *p, enum ptx_type *kind);

static uint64_t unary(struct ptx_parser *p, enum ptx_type *kind)
{
	*kind = T_S64;
	if (p->depth > 64)
		ckt_ptx_fail(p, CKT_PTX_INVALID, "expression nested too deeply");
	if (ckt_ptx_accept(p, '-')) {
		uint64_t v = primary(p, kind);
		return *kind == T_F32 ? v ^ 0x80000000u : *kind == T_F64 ? v ^ (1ull << 63) : 0 - v;
	}
	if (ckt_ptx_accept(p, '+'))
		return primary(p, kind);
	if (ckt_ptx_accept(p, '~'))
		return ~primary(p, kind);
	if (ckt_ptx_accept(p, '!'))
		return !primary(p, kind);
	if (ckt_ptx_accept(p, '(')) {
		if (p->token.kind == TK_DOT) {	/* a cast, (.s64) or (.u64): both are kept in 64 bits */
			ckt_ptx_next(p);
			ckt_ptx_expect(p, ')');
			return primary(p, kind);
		}
		uint64_t v = expression(p, 0, kind);
		ckt_ptx_expect(p, ')');
		return v;
	}
	if (p->token.kind == TK_IDENT && ckt_ptx_token_is(&p->token, "WARP_SZ")) {
		ckt_ptx_next(p);
		return PTX_LANES;
	}
	if (p->token.kind != TK_INT && p->token.kind != TK_F32 && p->token.kind != TK_F64)
		ckt_ptx_fail(p, CKT_PTX_INVALID, "constant expected before '%.*s'", (int)(p->token.size < 40 ? p->token.size : 40), p->token.text);
	*kind = p->token.kind == TK_INT ? T_S64 : p->token.kind == TK_F32 ? T_F32 : T_F64;
	uint64_t v = p->token.value;
	ckt_ptx_next(p);
	return v;
}

static uint64_t primary(struct ptx_parser *p, enum ptx_type *kind)
{
	p->depth++;
	uint64_t v = unary(p, kind);
	p->depth--;
	return v;
}

enum { LEVELS = 6 };
static const char *const operators[LEVELS] = {"|", "^", "&", "<>", "+-", "*/%"};

static uint64_t expression(struct ptx_parser *p, int level, enum ptx_type *kind)
{
	if (level == LEVELS)
		return primary(p, kind);
	uint64_t v = expression(p, level + 1, kind);
	while (p->token.kind == TK_PUNCT && p->token.punct && strchr(operators[level], p->token.punct)) {
		char op = p->token.punct;
		enum ptx_type right_kind;
		ckt_ptx_next(p);
		if (op == '<' || op == '>')
			ckt_ptx_expect(p, op);
		uint64_t r = expression(p, level + 1, &right_kind);
		if ((op == '/' || op == '%') && !r)
			ckt_ptx_fail(p, CKT_PTX_INVALID, "division by zero in a constant");
		switch (op) {
		case '|': v |= r; break;
		case '^': v ^= r; break;
		case '&': v &= r; break;
		case '<': v = r > 63 ? 0 : v << r; break;
		case '>': v = r > 63 ? 0 : v >> r; break;
		case '+': v += r; break;
		case '-': v -= r; break;
		case '*': v *= r; break;
		case '/': v /= r; break;
		default: v %= r; break;
		}
	}
	return v;
}

uint64_t ckt_ptx_constant_expression(struct ptx_parser *p, enum ptx_type *ret_kind)
{
	enum ptx_type kind;
	uint64_t v = expression(p, 0, &kind);
	if (ret_kind)
		*ret_kind = kind;
	return v;
}
