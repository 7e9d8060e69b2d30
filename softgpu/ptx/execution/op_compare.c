/* SPDX-License-Identifier: Apache-2.0 */
/* setp and set: comparisons, optionally joined with another predicate. */
#include <string.h>

#include "softgpu/ptx/execution/op.h"
#include "softgpu/ptx/execution/grid.h"
#include "softgpu/ptx/execution/lanes.h"
#include "softgpu/ptx/front/decode.h"
#include "softgpu/ptx/front/parser.h"
#include "softgpu/ptx/front/types.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

enum compare {
	C_EQ,
	C_NE,
	C_LT,
	C_LE,
	C_GT,
	C_GE,
	C_LO,
	C_LS,
	C_HI,
	C_HS,
	C_EQU,
	C_NEU,
	C_LTU,
	C_LEU,
	C_GTU,
	C_GEU,
	C_NUM,
	C_NAN,
	C_COUNT
};
static const char *const compare_names[] = {"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi",
	"hs", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan", NULL};

/*
 * Stores comparison r for lanes m.  x: the join (0 none, 1 and, 2 or, 3 xor); c: the other
 * predicate; d: the result; e: the result for the opposite comparison.
 */
static int finish(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m, uint32_t r)
{
	uint32_t opposite = ~r;
	if (i->x) {
		uint32_t c = *(uint32_t *)ptx_at(w, i->c);
		r = i->x == 1 ? r & c : i->x == 2 ? r | c : r ^ c;
		opposite = i->x == 1 ? opposite & c : i->x == 2 ? opposite | c : opposite ^ c;
	}
	uint32_t *d = ptx_at(w, i->d);
	*d = (*d & ~m) | (r & m);
	if (i->e != PTX_OPERAND_NONE) {
		d = ptx_at(w, i->e);
		*d = (*d & ~m) | (opposite & m);
	}
	return RUN_NEXT;
}

/*
 * Gathers the bits of bytes that are all 0 or 1.  The loop that writes such bytes vectorises; a
 * loop that shifts by the lane does not.
 */
static inline uint32_t gather(const uint8_t *yes)
{
	uint32_t r = 0;
	for (unsigned k = 0; k < PTX_LANES / 8; k++) {
		uint64_t eight;
		memcpy(&eight, yes + 8 * k, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
		eight = __builtin_bswap64(eight);
#endif
		r |= (uint32_t)(eight * 0x0102040810204080ull >> 56) << (8 * k);
	}
	return r;
}

#define SETP(name, SLOT, T, READ, cond)                                           \
	static int name(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m) \
	{                                                                         \
		const SLOT *a = ptx_at(w, i->a), *b = ptx_at(w, i->b);            \
		uint8_t yes[PTX_LANES];                                           \
		for (unsigned l = 0; l < PTX_LANES; l++) {                        \
			T x = READ(a[l]), y = READ(b[l]);                         \
			yes[l] = cond;                                            \
		}                                                                 \
		return finish(w, i, m, gather(yes));                              \
	}                                                                         \
	PTX_FORM(name, FORM_COMPARE, 1, sizeof(SLOT), sizeof(SLOT), 1, 1,         \
		PTX_TEXT(T) " x = " PTX_TEXT(READ(a)) ", y = " PTX_TEXT(          \
			READ(b)) "; d = " PTX_TEXT(cond) ";")

#define INT_COMPARES(suffix, SLOT, T)                                                         \
	SETP(eq_##suffix, SLOT, T, (T), x == y)                                               \
	SETP(ne_##suffix, SLOT, T, (T), x != y)                                               \
	SETP(lt_##suffix, SLOT, T, (T), x < y)                                                \
	SETP(le_##suffix, SLOT, T, (T), x <= y)                                               \
	SETP(gt_##suffix, SLOT, T, (T), x > y)                                                \
	SETP(ge_##suffix, SLOT, T, (T), x >= y)                                               \
	static ptx_handler *const compare_##suffix[C_COUNT] = {eq_##suffix, ne_##suffix,      \
		lt_##suffix, le_##suffix, gt_##suffix, ge_##suffix, lt_##suffix, le_##suffix, \
		gt_##suffix, ge_##suffix};
INT_COMPARES(u16, uint32_t, uint16_t)
INT_COMPARES(s16, uint32_t, int16_t)
INT_COMPARES(u32, uint32_t, uint32_t)
INT_COMPARES(s32, uint32_t, int32_t)
INT_COMPARES(u64, uint64_t, uint64_t)
INT_COMPARES(s64, uint64_t, int64_t)

#define READ_FTZ(bits) ptx_flush(ptx_float(bits))
#define READ_F16(bits) ckt_ptx_half_to_float((uint16_t)(bits))
#define READ_F16_FTZ(bits) ckt_ptx_half_to_float((uint16_t)((bits)&0x7c00 ? (bits) : (bits)&0x8000))
#define READ_BF16(bits) ckt_ptx_bf16_to_float((uint16_t)(bits))
#define FLOAT_COMPARES(suffix, SLOT, T, READ)                                         \
	SETP(feq_##suffix, SLOT, T, READ, x == y)                                     \
	SETP(fne_##suffix, SLOT, T, READ, x<y || x> y)                                \
	SETP(flt_##suffix, SLOT, T, READ, x < y)                                      \
	SETP(fle_##suffix, SLOT, T, READ, x <= y)                                     \
	SETP(fgt_##suffix, SLOT, T, READ, x > y)                                      \
	SETP(fge_##suffix, SLOT, T, READ, x >= y)                                     \
	SETP(fequ_##suffix, SLOT, T, READ, !(x < y || x > y))                         \
	SETP(fneu_##suffix, SLOT, T, READ, x != y)                                    \
	SETP(fltu_##suffix, SLOT, T, READ, !(x >= y))                                 \
	SETP(fleu_##suffix, SLOT, T, READ, !(x > y))                                  \
	SETP(fgtu_##suffix, SLOT, T, READ, !(x <= y))                                 \
	SETP(fgeu_##suffix, SLOT, T, READ, !(x < y))                                  \
	SETP(fnum_##suffix, SLOT, T, READ, x == x && y == y)                          \
	SETP(fnan_##suffix, SLOT, T, READ, x != x || y != y)                          \
	static ptx_handler *const compare_##suffix[C_COUNT] = {[C_EQ] = feq_##suffix, \
		[C_NE] = fne_##suffix,                                                \
		[C_LT] = flt_##suffix,                                                \
		[C_LE] = fle_##suffix,                                                \
		[C_GT] = fgt_##suffix,                                                \
		[C_GE] = fge_##suffix,                                                \
		[C_EQU] = fequ_##suffix,                                              \
		[C_NEU] = fneu_##suffix,                                              \
		[C_LTU] = fltu_##suffix,                                              \
		[C_LEU] = fleu_##suffix,                                              \
		[C_GTU] = fgtu_##suffix,                                              \
		[C_GEU] = fgeu_##suffix,                                              \
		[C_NUM] = fnum_##suffix,                                              \
		[C_NAN] = fnan_##suffix};
FLOAT_COMPARES(f32, uint32_t, float, ptx_float)
FLOAT_COMPARES(f32_ftz, uint32_t, float, READ_FTZ)
FLOAT_COMPARES(f64, uint64_t, double, ptx_double)
FLOAT_COMPARES(f16, uint32_t, float, READ_F16)
FLOAT_COMPARES(f16_ftz, uint32_t, float, READ_F16_FTZ)
FLOAT_COMPARES(bf16, uint32_t, float, READ_BF16)

/* The upper half of a pair, for the second predicate of setp.f16x2. */
static int upper_half(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)
{
	const uint32_t *a = ptx_at(w, i->a);
	uint32_t *d = ptx_at(w, i->d);
	PTX_FOR_LANES(m, d[l] = a[l] >> 16;);
	return RUN_NEXT;
}
PTX_FORM(upper_half, FORM_LANE, 4, 4, 0, 0, 0, "d = a >> 16;")

/* set: imm is the value for true. */
static int exec_choose(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)
{
	uint32_t a = *(uint32_t *)ptx_at(w, i->a);
	uint32_t *d = ptx_at(w, i->d);
	PTX_FOR_LANES(m, d[l] = a >> l & 1 ? (uint32_t)i->imm : 0;);
	return RUN_NEXT;
}
PTX_FORM(exec_choose, FORM_LANE, 4, 1, 0, 0, 0, "d = a ? (uint32_t)i->imm : 0;")

static int exec_choose_pair(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)
{
	uint32_t a = *(uint32_t *)ptx_at(w, i->a), b = *(uint32_t *)ptx_at(w, i->b);
	uint32_t *d = ptx_at(w, i->d);
	PTX_FOR_LANES(m,
		      d[l] = (a >> l & 1 ? (uint32_t)i->imm : 0) |
			      (b >> l & 1 ? (uint32_t)i->imm << 16 : 0););
	return RUN_NEXT;
}
PTX_FORM(exec_choose_pair, FORM_LANE, 4, 1, 1, 0, 0,
	"d = (a ? (uint32_t)i->imm : 0) | (b ? (uint32_t)i->imm << 16 : 0);")

/* ---- Decoding */

static ptx_handler *comparison(struct ptx_parser *p, enum ptx_type type, int compare, bool ftz)
{
	ptx_handler *const *table;
	bool is_signed = ckt_ptx_type_signed(type);
	switch (type) {
	case T_F32:
		table = ftz ? compare_f32_ftz : compare_f32;
		break;
	case T_F64:
		table = compare_f64;
		break;
	case T_F16:
	case T_F16X2:
		table = ftz ? compare_f16_ftz : compare_f16;
		break;
	case T_BF16:
	case T_BF16X2:
		table = compare_bf16;
		break;
	case T_U16:
	case T_B16:
	case T_S16:
		table = is_signed ? compare_s16 : compare_u16;
		break;
	case T_U32:
	case T_B32:
	case T_S32:
		table = is_signed ? compare_s32 : compare_u32;
		break;
	case T_U64:
	case T_B64:
	case T_S64:
		table = is_signed ? compare_s64 : compare_u64;
		break;
	default:
		ckt_ptx_bad(p, "type that cannot be compared");
	}
	if (!table[compare])
		ckt_ptx_bad(p, "no such comparison for this type");
	return table[compare];
}

struct comparing {
	int compare, join;
	bool ftz;
};

static struct comparing take_comparing(struct ptx_parser *p)
{
	static const char *const joins[] = {"and", "or", "xor", NULL};
	struct comparing c = {.compare = ckt_ptx_mod_one(p, compare_names)};
	if (c.compare < 0)
		ckt_ptx_bad(p, "comparison expected");
	c.join = ckt_ptx_mod_one(p, joins) + 1;
	c.ftz = ckt_ptx_mod(p, "ftz");
	return c;
}

static void emit_comparison(struct ptx_parser *p, struct comparing c, enum ptx_type type, int32_t a,
	int32_t b, int32_t other, int32_t d, int32_t e)
{
	struct ptx_insn *i = ckt_ptx_emit(p, comparison(p, type, c.compare, c.ftz));
	i->a = a;
	i->b = b;
	i->c = other;
	i->d = d;
	i->e = e;
	i->x = (uint8_t)c.join;
}

static int32_t emit_upper(struct ptx_parser *p, int32_t a)
{
	int32_t d = ckt_ptx_reg_alloc(p, T_B32);
	struct ptx_insn *i = ckt_ptx_emit(p, upper_half);
	i->a = a;
	i->d = d;
	return d;
}

static void decode_setp(struct ptx_parser *p)
{
	struct comparing c = take_comparing(p);
	enum ptx_type type = ckt_ptx_need_type(p);
	ckt_ptx_need_operands(p, c.join ? 4 : 3, c.join ? 4 : 3);
	int32_t a = ckt_ptx_source(p, 1, type), b = ckt_ptx_source(p, 2, type);
	int32_t other = c.join ? ckt_ptx_pred_source(p, &p->raw.operands[3]) : PTX_OPERAND_NONE;
	const struct ptx_operand *dest = &p->raw.operands[0];
	int32_t d = ckt_ptx_dest(p, 0, T_PRED), e = dest->reg2;
	if (e != PTX_OPERAND_NONE && dest->type2 != T_PRED)
		ckt_ptx_bad(p, "predicate expected");
	bool pair = type == T_F16X2 || type == T_BF16X2;
	if (e != PTX_OPERAND_NONE && (type == T_F16 || type == T_BF16))
		ckt_ptx_bad(p, "a comparison of halves has one result");
	if (!pair) {
		emit_comparison(p, c, type, a, b, other, d, e);
		return;
	}
	int32_t upper_a = emit_upper(p, a), upper_b = emit_upper(p, b);
	emit_comparison(p, c, type, a, b, other, d, PTX_OPERAND_NONE);
	if (e != PTX_OPERAND_NONE)
		emit_comparison(p, c, type, upper_a, upper_b, other, e, PTX_OPERAND_NONE);
}

static void decode_set(struct ptx_parser *p)
{
	struct comparing c = take_comparing(p);
	enum ptx_type dtype = ckt_ptx_need_type(p), type = ckt_ptx_need_type(p);
	ckt_ptx_need_operands(p, c.join ? 4 : 3, c.join ? 4 : 3);
	int32_t a = ckt_ptx_source(p, 1, type), b = ckt_ptx_source(p, 2, type);
	int32_t other = c.join ? ckt_ptx_pred_source(p, &p->raw.operands[3]) : PTX_OPERAND_NONE;
	int32_t d = ckt_ptx_dest(p, 0, dtype), low = ckt_ptx_reg_alloc(p, T_PRED),
		high = PTX_OPERAND_NONE;
	bool pair = type == T_F16X2 || type == T_BF16X2;
	if (ckt_ptx_lane_bytes(dtype) != 4)
		ckt_ptx_bad(p, "unsuitable type");
	if (pair) {
		int32_t upper_a = emit_upper(p, a), upper_b = emit_upper(p, b);
		high = ckt_ptx_reg_alloc(p, T_PRED);
		emit_comparison(p, c, type, upper_a, upper_b, other, high, PTX_OPERAND_NONE);
	}
	emit_comparison(p, c, type, a, b, other, low, PTX_OPERAND_NONE);
	int64_t yes = dtype == T_F32                     ? 0x3f800000
		: dtype == T_F16 || dtype == T_F16X2     ? 0x3c00
		: dtype == T_BF16 || dtype == T_BF16X2   ? 0x3f80
		: pair || ckt_ptx_type_bytes(dtype) == 2 ? 0xffff
							 : 0xffffffff;
	struct ptx_insn *i = ckt_ptx_emit(p, pair ? exec_choose_pair : exec_choose);
	i->a = low;
	i->b = high;
	i->d = d;
	i->imm = yes;
}

const struct ptx_opcode ckt_ptx_opcodes_compare[] = {
	{"setp", decode_setp}, {"set", decode_set}, {NULL, NULL}};
