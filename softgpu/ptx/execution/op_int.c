/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Integer arithmetic: handlers and their decoders.
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

/* The index of an integer type in a table of handlers. */
enum { I_U16, I_S16, I_U32, I_S32, I_U64, I_S64, I_COUNT };

static int int_index(enum ptx_type type)
{
	switch (type) {
	case T_B16:
	case T_U16:
		return I_U16;
	case T_S16:
		return I_S16;
	case T_B32:
	case T_U32:
		return I_U32;
	case T_S32:
		return I_S32;
	case T_B64:
	case T_U64:
		return I_U64;
	case T_S64:
		return I_S64;
	default:
		return -1;
	}
}

static int need_int(struct ptx_parser *p, enum ptx_type type)
{
	int index = int_index(type);
	if (index < 0)
		ckt_ptx_bad(p, "integer type expected");
	return index;
}

/*
 * A family of handlers, one for each integer type.  SLOT: the type of a lane; U: truncates a result
 * to its width.
 */
#define INT_FAMILY(KIND, name, ...)                                 \
	KIND(name##_u16, uint32_t, uint16_t, uint16_t, __VA_ARGS__) \
	KIND(name##_s16, uint32_t, int16_t, uint16_t, __VA_ARGS__)  \
	KIND(name##_u32, uint32_t, uint32_t, uint32_t, __VA_ARGS__) \
	KIND(name##_s32, uint32_t, int32_t, uint32_t, __VA_ARGS__)  \
	KIND(name##_u64, uint64_t, uint64_t, uint64_t, __VA_ARGS__) \
	KIND(name##_s64, uint64_t, int64_t, uint64_t, __VA_ARGS__)  \
	static ptx_handler *const name##_table[I_COUNT] = {         \
		name##_u16, name##_s16, name##_u32, name##_s32, name##_u64, name##_s64};

#define UNARY(name, SLOT, T, U, expr)                                             \
	static int name(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m) \
	{                                                                         \
		const SLOT *a = ptx_at(w, i->a);                                  \
		SLOT *d = ptx_at(w, i->d);                                        \
		PTX_FOR_LANES(m, T x = (T)a[l]; d[l] = (U)(expr););               \
		return RUN_NEXT;                                                  \
	}                                                                         \
	PTX_FORM(name, FORM_LANE, sizeof(SLOT), sizeof(SLOT), 0, 0, 0,            \
		PTX_TEXT(T) " x = (" PTX_TEXT(T) ")a;"                            \
						 " d = (" PTX_TEXT(U) ")(" PTX_TEXT(expr) ");")
#define BINARY(name, SLOT, T, U, expr)                                             \
	static int name(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)  \
	{                                                                          \
		const SLOT *a = ptx_at(w, i->a), *b = ptx_at(w, i->b);             \
		SLOT *d = ptx_at(w, i->d);                                         \
		PTX_FOR_LANES(m, T x = (T)a[l]; T y = (T)b[l]; d[l] = (U)(expr);); \
		return RUN_NEXT;                                                   \
	}                                                                          \
	PTX_FORM(name, FORM_LANE, sizeof(SLOT), sizeof(SLOT), sizeof(SLOT), 0, 0,  \
		PTX_TEXT(T) " x = (" PTX_TEXT(T) ")a, y = (" PTX_TEXT(             \
			T) ")b;"                                                   \
			   " d = (" PTX_TEXT(U) ")(" PTX_TEXT(expr) ");")
#define TERNARY(name, SLOT, T, U, expr)                                                           \
	static int name(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)                 \
	{                                                                                         \
		const SLOT *a = ptx_at(w, i->a), *b = ptx_at(w, i->b), *c = ptx_at(w, i->c);      \
		SLOT *d = ptx_at(w, i->d);                                                        \
		PTX_FOR_LANES(m, T x = (T)a[l]; T y = (T)b[l]; T z = (T)c[l]; d[l] = (U)(expr);); \
		return RUN_NEXT;                                                                  \
	}                                                                                         \
	PTX_FORM(name, FORM_LANE, sizeof(SLOT), sizeof(SLOT), sizeof(SLOT), sizeof(SLOT), 0,      \
		PTX_TEXT(T) " x = (" PTX_TEXT(T) ")a, y = (" PTX_TEXT(T) ")b, z = (" PTX_TEXT(    \
			T) ")c;"                                                                  \
			   " d = (" PTX_TEXT(U) ")(" PTX_TEXT(expr) ");")

#define HIGH(x, y)                    \
	_Generic((x), uint16_t        \
		 : high_u16, int16_t  \
		 : high_s16, uint32_t \
		 : high_u32, int32_t  \
		 : high_s32, uint64_t \
		 : high_u64, int64_t  \
		 : high_s64)(x, y)
/* Wrapping arithmetic without signed overflow. */
#define W(x) ((uint64_t)(x))

/* As in hardware, division by zero gives all ones; the most negative number divided by -1 wraps. */
#define IS_SIGNED(x) _Generic((x), int16_t : true, int32_t : true, int64_t : true, default : false)
#define MINUS_ONE(y) (IS_SIGNED(y) && (y) == (__typeof__(y))-1)
#define DIVIDE(x, y) ((y) == 0 ? ~0ull : MINUS_ONE(y) ? 0 - W(x) : W((x) / ((y) ? (y) : 1)))
#define MODULO(x, y) ((y) == 0 ? ~0ull : MINUS_ONE(y) ? 0ull : W((x) % ((y) ? (y) : 1)))
#define NEGATIVE(x) (IS_SIGNED(x) && W((int64_t)(x)) >> 63)

INT_FAMILY(BINARY, add, W(x) + W(y))
INT_FAMILY(BINARY, sub, W(x) - W(y))
INT_FAMILY(BINARY, mul_lo, W(x) * W(y))
INT_FAMILY(BINARY, mul_hi, HIGH(x, y))
INT_FAMILY(TERNARY, mad_lo, W(x) * W(y) + W(z))
INT_FAMILY(TERNARY, mad_hi, W(HIGH(x, y)) + W(z))
INT_FAMILY(BINARY, divide, DIVIDE(x, y))
INT_FAMILY(BINARY, modulo, MODULO(x, y))
INT_FAMILY(BINARY, minimum, x < y ? x : y)
INT_FAMILY(BINARY, maximum, x > y ? x : y)
INT_FAMILY(UNARY, absolute, NEGATIVE(x) ? 0 - W(x) : W(x))
INT_FAMILY(UNARY, negate, 0 - W(x))
INT_FAMILY(TERNARY, sad, W(z) + (x < y ? W(y) - W(x) : W(x) - W(y)))

BINARY(add_sat, uint32_t, int32_t, uint32_t, saturate_s32((int64_t)x + y))
BINARY(sub_sat, uint32_t, int32_t, uint32_t, saturate_s32((int64_t)x - y))
TERNARY(mad_hi_sat, uint32_t, int32_t, uint32_t, saturate_s32((int64_t)(int32_t)high_s32(x, y) + z))
BINARY(min_relu, uint32_t, int32_t, uint32_t, (x < y ? x : y) < 0 ? 0 : (x < y ? x : y))
BINARY(max_relu, uint32_t, int32_t, uint32_t, (x > y ? x : y) < 0 ? 0 : (x > y ? x : y))

BINARY(mul24_lo_u, uint32_t, uint32_t, uint32_t, (x & 0xffffff) * (y & 0xffffff))
BINARY(mul24_lo_s, uint32_t, uint32_t, uint32_t, (int64_t)sign24(x) * sign24(y))
BINARY(mul24_hi_u, uint32_t, uint32_t, uint32_t, ((uint64_t)(x & 0xffffff) * (y & 0xffffff)) >> 16)
BINARY(mul24_hi_s, uint32_t, uint32_t, uint32_t, ((int64_t)sign24(x) * sign24(y)) >> 16)
TERNARY(mad24_lo_u, uint32_t, uint32_t, uint32_t, (x & 0xffffff) * (y & 0xffffff) + z)
TERNARY(mad24_lo_s, uint32_t, uint32_t, uint32_t, (int64_t)sign24(x) * sign24(y) + (int64_t)z)
TERNARY(mad24_hi_u, uint32_t, uint32_t, uint32_t,
	(((uint64_t)(x & 0xffffff) * (y & 0xffffff)) >> 16) + z)
TERNARY(mad24_hi_sat, uint32_t, int32_t, uint32_t,
	saturate_s32((((int64_t)sign24((uint32_t)x) * sign24((uint32_t)y)) >> 16) + z))
TERNARY(mad24_hi_s, uint32_t, uint32_t, uint32_t,
	(((int64_t)sign24(x) * sign24(y)) >> 16) + (int64_t)z)

/* Two halves in one register. */
#define PAIR(lo, hi) ((uint32_t)(uint16_t)(lo) | (uint32_t)(uint16_t)(hi) << 16)
#define LO(T, v) ((T)(v))
#define HI(T, v) ((T)((v) >> 16))
#define LESS(T, a, b) ((T)(a) < (T)(b) ? (a) : (b))
#define MORE(T, a, b) ((T)(a) > (T)(b) ? (a) : (b))
BINARY(add_x2, uint32_t, uint32_t, uint32_t, PAIR(x + y, (x >> 16) + (y >> 16)))
BINARY(sub_x2, uint32_t, uint32_t, uint32_t, PAIR(x - y, (x >> 16) - (y >> 16)))
BINARY(min_u16x2, uint32_t, uint32_t, uint32_t,
	PAIR(LESS(uint16_t, x, y), LESS(uint16_t, x >> 16, y >> 16)))
BINARY(max_u16x2, uint32_t, uint32_t, uint32_t,
	PAIR(MORE(uint16_t, x, y), MORE(uint16_t, x >> 16, y >> 16)))
BINARY(min_s16x2, uint32_t, uint32_t, uint32_t,
	PAIR(LESS(int16_t, x, y), LESS(int16_t, x >> 16, y >> 16)))
#define POSITIVE(v) ((int16_t)(v) > 0 ? (v) : 0)
BINARY(min_relu_s16x2, uint32_t, uint32_t, uint32_t,
	PAIR(POSITIVE(LESS(int16_t, x, y)), POSITIVE(LESS(int16_t, x >> 16, y >> 16))))
BINARY(max_relu_s16x2, uint32_t, uint32_t, uint32_t,
	PAIR(POSITIVE(MORE(int16_t, x, y)), POSITIVE(MORE(int16_t, x >> 16, y >> 16))))
BINARY(max_s16x2, uint32_t, uint32_t, uint32_t,
	PAIR(MORE(int16_t, x, y), MORE(int16_t, x >> 16, y >> 16)))

/* Results twice as wide as their sources. */
#define WIDE(name, T, SLOT, WIDER, WSLOT)                                                         \
	static int mul_wide_##name(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)      \
	{                                                                                         \
		const SLOT *a = ptx_at(w, i->a), *b = ptx_at(w, i->b);                            \
		WSLOT *d = ptx_at(w, i->d);                                                       \
		PTX_FOR_LANES(m, d[l] = (WSLOT)((WIDER)(T)a[l] * (WIDER)(T)b[l]););               \
		return RUN_NEXT;                                                                  \
	}                                                                                         \
	static int mad_wide_##name(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)      \
	{                                                                                         \
		const SLOT *a = ptx_at(w, i->a), *b = ptx_at(w, i->b);                            \
		const WSLOT *c = ptx_at(w, i->c);                                                 \
		WSLOT *d = ptx_at(w, i->d);                                                       \
		PTX_FOR_LANES(m, d[l] = (WSLOT)((WIDER)(T)a[l] * (WIDER)(T)b[l]) + c[l];);        \
		return RUN_NEXT;                                                                  \
	}                                                                                         \
	PTX_FORM(mul_wide_##name, FORM_LANE, sizeof(WSLOT), sizeof(SLOT), sizeof(SLOT), 0, 0,     \
		"d = (" PTX_TEXT(WSLOT) ")((" PTX_TEXT(WIDER) ")(" PTX_TEXT(T) ")a * (" PTX_TEXT( \
			WIDER) ")(" PTX_TEXT(T) ")b);")                                           \
	PTX_FORM(mad_wide_##name, FORM_LANE, sizeof(WSLOT), sizeof(SLOT), sizeof(SLOT),           \
		sizeof(WSLOT), 0,                                                                 \
		"d = (" PTX_TEXT(WSLOT) ")((" PTX_TEXT(WIDER) ")(" PTX_TEXT(T) ")a * (" PTX_TEXT( \
			WIDER) ")(" PTX_TEXT(T) ")b) + c;")
WIDE(u16, uint16_t, uint32_t, uint32_t, uint32_t)
WIDE(s16, int16_t, uint32_t, int32_t, uint32_t)
WIDE(u32, uint32_t, uint32_t, uint64_t, uint64_t)
WIDE(s32, int32_t, uint32_t, int64_t, uint64_t)
WIDE(u64, uint64_t, uint64_t, u128, u128)
WIDE(s64, int64_t, uint64_t, s128, u128)
static ptx_handler *const mul_wide_table[I_COUNT] = {
	mul_wide_u16, mul_wide_s16, mul_wide_u32, mul_wide_s32, mul_wide_u64, mul_wide_s64};
static ptx_handler *const mad_wide_table[I_COUNT] = {
	mad_wide_u16, mad_wide_s16, mad_wide_u32, mad_wide_s32, mad_wide_u64, mad_wide_s64};

/*
 * ---- Carry chains.  insn->e: the predicate that holds the carry; x: write it; y: read it
 *
 * A subtraction adds the complement, and leaves the carry of that addition: set if nothing was
 * borrowed.  A chain of one kind does not depend on this choice.  But nvcc's 128-bit division reads
 * with addc the carry that subc.cc left.
 */

#define CARRY(name, SLOT, DOUBLE, SHIFT, START, EXPR)                             \
	static int name(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m) \
	{                                                                         \
		const SLOT *a = ptx_at(w, i->a), *b = ptx_at(w, i->b),            \
			   *c = i->c == PTX_OPERAND_NONE ? a : ptx_at(w, i->c);   \
		SLOT *d = ptx_at(w, i->d);                                        \
		uint32_t *cc = ptx_at(w, i->e), in = i->y ? *cc : START, out = 0; \
		for (uint32_t rest = m; rest; rest &= rest - 1) {                 \
			unsigned l = (unsigned)__builtin_ctz(rest);               \
			SLOT x = a[l], y = b[l], z = c[l];                        \
			DOUBLE carry = in >> l & 1, v = EXPR;                     \
			(void)z;                                                  \
			d[l] = (SLOT)v;                                           \
			out |= (uint32_t)((v >> SHIFT) & 1) << l;                 \
		}                                                                 \
		if (i->x)                                                         \
			*cc = (*cc & ~m) | out;                                   \
		return RUN_NEXT;                                                  \
	}                                                                         \
	PTX_FORM(name, FORM_PLAIN, 0, 0, 0, 0, 0, NULL)
#define CARRY_PAIR(name, START, e32, e64)                    \
	CARRY(name##_32, uint32_t, uint64_t, 32, START, e32) \
	CARRY(name##_64, uint64_t, u128, 64, START, e64)
CARRY_PAIR(addc, 0, (uint64_t)x + y + carry, (u128)x + y + carry)
CARRY_PAIR(subc, ~0u, (uint64_t)x + (uint32_t)~y + carry, (u128)x + (uint64_t)~y + carry)
CARRY_PAIR(madc_lo, 0, (uint64_t)(uint32_t)(x *y) + z + carry, (u128)(uint64_t)(x *y) + z + carry)
CARRY_PAIR(madc_hi_u, 0, (uint64_t)high_u32(x, y) + z + carry, (u128)high_u64(x, y) + z + carry)
CARRY_PAIR(madc_hi_s, 0, (uint64_t)high_s32((int32_t)x, (int32_t)y) + z + carry,
	(u128)high_s64((int64_t)x, (int64_t)y) + z + carry)

/* ---- Dot products of bytes */

static int exec_dp(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)
{
	const uint32_t *a = ptx_at(w, i->a), *b = ptx_at(w, i->b), *c = ptx_at(w, i->c);
	uint32_t *d = ptx_at(w, i->d);
	bool two = i->z & 1, high = i->z & 2;
	PTX_FOR_LANES(
		m, uint32_t sum = c[l]; for (unsigned k = 0; k < (two ? 2u : 4u); k++) {
			unsigned shift_b = 8 * (two && high ? k + 2 : k);
			unsigned shift_a = two ? 16 * k : 8 * k;
			int32_t x = two
				? (i->x ? (int16_t)(a[l] >> shift_a) : (uint16_t)(a[l] >> shift_a))
				: (i->x ? (int8_t)(a[l] >> shift_a) : (uint8_t)(a[l] >> shift_a));
			int32_t y = i->y ? (int8_t)(b[l] >> shift_b) : (uint8_t)(b[l] >> shift_b);
			sum += (uint32_t)(x * y);
		} d[l] = sum;);
	return RUN_NEXT;
}
PTX_FORM(exec_dp, FORM_LANE, 4, 4, 4, 4, 0,
	"uint32_t sum = c; for (unsigned k = 0; k < (i->z & 1 ? 2u : 4u); k++) {"
	"unsigned sb = 8 * ((i->z & 1) && (i->z & 2) ? k + 2 : k), sa = i->z & 1 ? 16 * k : 8 * k;"
	"int32_t x = i->z & 1 ? (i->x ? (int16_t)(a >> sa) : (uint16_t)(a >> sa)) : (i->x ? (int8_t)(a >> sa) : (uint8_t)(a >> sa));"
	"int32_t y = i->y ? (int8_t)(b >> sb) : (uint8_t)(b >> sb); sum += (uint32_t)(x * y); } d = sum;")

/* ---- Decoding */

static void emit(struct ptx_parser *p, ptx_handler *fn, enum ptx_type dest, enum ptx_type source,
	enum ptx_type third, unsigned n)
{
	ckt_ptx_need_operands(p, n + 1, n + 1);
	int32_t a = ckt_ptx_source(p, 1, source);
	int32_t b = n > 1 ? ckt_ptx_source(p, 2, source) : PTX_OPERAND_NONE;
	int32_t c = n > 2 ? ckt_ptx_source(p, 3, third) : PTX_OPERAND_NONE;
	int32_t d = ckt_ptx_dest(p, 0, dest);
	struct ptx_insn *i = ckt_ptx_emit(p, fn);
	i->a = a;
	i->b = b;
	i->c = c;
	i->d = d;
}

static void emit_carry(struct ptx_parser *p, ptx_handler *fn32, ptx_handler *fn64,
	enum ptx_type type, unsigned n, bool in, bool out)
{
	need_int(p, type);
	if (p->cc < 0)
		p->cc = ckt_ptx_reg_alloc(p, T_PRED);
	unsigned bytes = ckt_ptx_type_bytes(type);
	if (bytes < 4)
		ckt_ptx_bad(p, "a carry needs 32 or 64 bits");
	emit(p, bytes == 8 ? fn64 : fn32, type, type, type, n);
	struct ptx_insn *i = &p->function->code[p->function->n_code - 1];
	i->e = p->cc;
	i->x = out;
	i->y = in;
}

static void decode_add_sub(struct ptx_parser *p)
{
	bool is_sub = p->raw.op[0] == 's', in = p->raw.op[3] == 'c', out = ckt_ptx_mod(p, "cc");
	if (!in && !out && ckt_ptx_decode_float(p))
		return;
	bool sat = ckt_ptx_mod(p, "sat");
	enum ptx_type type = ckt_ptx_need_type(p);
	if (in || out)
		emit_carry(p, is_sub ? subc_32 : addc_32, is_sub ? subc_64 : addc_64, type, 2, in,
			out);
	else if (sat && type == T_S32)
		emit(p, is_sub ? sub_sat : add_sat, type, type, type, 2);
	else if (sat)
		ckt_ptx_bad(p, "saturation requires .s32");
	else if (type == T_U16X2 || type == T_S16X2)
		emit(p, is_sub ? sub_x2 : add_x2, type, type, type, 2);
	else
		emit(p, (is_sub ? sub_table : add_table)[need_int(p, type)], type, type, type, 2);
}

static enum ptx_type wider(struct ptx_parser *p, enum ptx_type type)
{
	switch (type) {
	case T_U16:
	case T_B16:
		return T_U32;
	case T_S16:
		return T_S32;
	case T_U32:
	case T_B32:
		return T_U64;
	case T_S32:
		return T_S64;
	case T_U64:
	case T_S64:
	case T_B64:
		return T_B128;
	default:
		ckt_ptx_bad(p, "integer type expected");
	}
}

static void decode_mul_mad(struct ptx_parser *p)
{
	static const char *const halves[] = {"lo", "hi", "wide", NULL};
	bool is_mad = p->raw.op[1] == 'a', in = !strcmp(p->raw.op, "madc");
	unsigned n = is_mad ? 3 : 2;
	int half = ckt_ptx_mod_one(p, halves);
	if (half < 0) {
		if (!ckt_ptx_decode_float(p))
			ckt_ptx_bad(p, ".lo, .hi or .wide expected");
		return;
	}
	bool out = ckt_ptx_mod(p, "cc"), sat = ckt_ptx_mod(p, "sat");
	enum ptx_type type = ckt_ptx_need_type(p);
	int index = need_int(p, type);
	if (in || out) {
		if (!is_mad || half == 2)
			ckt_ptx_bad(p, "only mad.lo and mad.hi have a carry");
		if (half == 0)
			emit_carry(p, madc_lo_32, madc_lo_64, type, 3, in, out);
		else if (ckt_ptx_type_signed(type))
			emit_carry(p, madc_hi_s_32, madc_hi_s_64, type, 3, in, out);
		else
			emit_carry(p, madc_hi_u_32, madc_hi_u_64, type, 3, in, out);
	} else if (sat) {
		if (!is_mad || half != 1 || type != T_S32)
			ckt_ptx_bad(p, "saturation requires mad.hi.s32");
		emit(p, mad_hi_sat, type, type, type, 3);
	} else if (half == 2) {
		enum ptx_type wide = wider(p, type);
		emit(p, (is_mad ? mad_wide_table : mul_wide_table)[index], wide, type, wide, n);
	} else if (half == 1) {
		emit(p, (is_mad ? mad_hi_table : mul_hi_table)[index], type, type, type, n);
	} else {
		emit(p, (is_mad ? mad_lo_table : mul_lo_table)[index], type, type, type, n);
	}
}

static void decode_mul24(struct ptx_parser *p)
{
	bool is_mad = p->raw.op[1] == 'a', high = ckt_ptx_mod(p, "hi");
	if (!high && !ckt_ptx_mod(p, "lo"))
		ckt_ptx_bad(p, ".lo or .hi expected");
	enum ptx_type type = ckt_ptx_need_type(p);
	if (type != T_U32 && type != T_S32)
		ckt_ptx_bad(p, ".u32 or .s32 expected");
	if (ckt_ptx_mod(p, "sat")) {
		if (!is_mad || !high || type != T_S32)
			ckt_ptx_bad(p, "saturation requires mad24.hi.s32");
		emit(p, mad24_hi_sat, type, type, type, 3);
		return;
	}
	static ptx_handler *const table[2][2][2] = {
		{{mul24_lo_u, mul24_lo_s}, {mul24_hi_u, mul24_hi_s}},
		{{mad24_lo_u, mad24_lo_s}, {mad24_hi_u, mad24_hi_s}}};
	emit(p, table[is_mad][high][type == T_S32], type, type, type, is_mad ? 3 : 2);
}

static void decode_plain(struct ptx_parser *p)
{
	static const struct {
		const char *name;
		ptx_handler *const *table;
		unsigned n;
	} plain[] = {{"div", divide_table, 2}, {"rem", modulo_table, 2}, {"abs", absolute_table, 1},
		{"neg", negate_table, 1}, {"sad", sad_table, 3}};
	if (ckt_ptx_decode_float(p))
		return;
	enum ptx_type type = ckt_ptx_need_type(p);
	for (size_t k = 0; k < sizeof plain / sizeof *plain; k++)
		if (!strcmp(p->raw.op, plain[k].name))
			emit(p, plain[k].table[need_int(p, type)], type, type, type, plain[k].n);
}

static void decode_min_max(struct ptx_parser *p)
{
	bool is_max = p->raw.op[1] == 'a';
	if (ckt_ptx_decode_float(p))
		return;
	bool relu = ckt_ptx_mod(p, "relu");
	enum ptx_type type = ckt_ptx_need_type(p);
	if (relu && type != T_S32 && type != T_S16X2)
		ckt_ptx_bad(p, ".relu requires .s32 or .s16x2");
	if (relu && type == T_S16X2)
		emit(p, is_max ? max_relu_s16x2 : min_relu_s16x2, type, type, type, 2);
	else if (relu)
		emit(p, is_max ? max_relu : min_relu, type, type, type, 2);
	else if (type == T_U16X2)
		emit(p, is_max ? max_u16x2 : min_u16x2, type, type, type, 2);
	else if (type == T_S16X2)
		emit(p, is_max ? max_s16x2 : min_s16x2, type, type, type, 2);
	else
		emit(p, (is_max ? maximum_table : minimum_table)[need_int(p, type)], type, type,
			type, 2);
}

static void decode_dp(struct ptx_parser *p)
{
	bool two = p->raw.op[2] == '2', high = two && ckt_ptx_mod(p, "hi");
	if (two && !high && !ckt_ptx_mod(p, "lo"))
		ckt_ptx_bad(p, ".lo or .hi expected");
	enum ptx_type ta = ckt_ptx_need_type(p), tb = ckt_ptx_need_type(p);
	emit(p, exec_dp, T_U32, T_U32, T_U32, 3);
	struct ptx_insn *i = &p->function->code[p->function->n_code - 1];
	i->x = ta == T_S32;
	i->y = tb == T_S32;
	i->z = (uint8_t)((two ? 1 : 0) | (high ? 2 : 0));
}

const struct ptx_opcode ckt_ptx_opcodes_int[] = {
	{"add", decode_add_sub},
	{"addc", decode_add_sub},
	{"sub", decode_add_sub},
	{"subc", decode_add_sub},
	{"mul", decode_mul_mad},
	{"mad", decode_mul_mad},
	{"madc", decode_mul_mad},
	{"mul24", decode_mul24},
	{"mad24", decode_mul24},
	{"div", decode_plain},
	{"rem", decode_plain},
	{"abs", decode_plain},
	{"neg", decode_plain},
	{"sad", decode_plain},
	{"min", decode_min_max},
	{"max", decode_min_max},
	{"dp4a", decode_dp},
	{"dp2a", decode_dp},
	{NULL, NULL},
};
