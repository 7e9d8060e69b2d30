/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products of a warp: mma and wmma.mma.
 *
 * Products are exact.  Factors of f16, bf16, tf32 and 8-bit floats are summed in double precision
 * together with the addend, and rounded once, to nearest.  A GPU sums in its own order and
 * precision, so the last bits can differ.  f64 products are fused multiply-adds in the order of k.
 * Integers are exact modulo 2^32 or saturated.
 */
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "softgpu/ptx/execution/mma.h"
#include "softgpu/ptx/execution/grid.h"
#include "softgpu/ptx/execution/lanes.h"
#include "softgpu/ptx/execution/sched.h"
#include "softgpu/ptx/front/decode.h"
#include "softgpu/ptx/front/parser.h"
#include "softgpu/ptx/front/types.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

#pragma STDC FENV_ACCESS ON

#define HANDLER(name) static int name(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)

static const struct {
	const char *name;
	uint8_t bits;
} elements[] = {[M_NONE] = {"", 0},
	[M_F16] = {"f16", 16},
	[M_BF16] = {"bf16", 16},
	[M_TF32] = {"tf32", 32},
	[M_F32] = {"f32", 32},
	[M_F64] = {"f64", 64},
	[M_S32] = {"s32", 32},
	[M_S8] = {"s8", 8},
	[M_U8] = {"u8", 8},
	[M_S4] = {"s4", 4},
	[M_U4] = {"u4", 4},
	[M_B1] = {"b1", 1},
	[M_E4M3] = {"e4m3", 8},
	[M_E5M2] = {"e5m2", 8}};

enum mma_element ckt_ptx_mma_element(const char *name)
{
	for (size_t k = 1; k < sizeof elements / sizeof *elements; k++)
		if (!strcmp(name, elements[k].name))
			return (enum mma_element)k;
	return M_NONE;
}

static enum mma_element take_element(struct ptx_parser *p)
{
	for (unsigned k = 0; k < p->raw.n_mods; k++) {
		enum mma_element e =
			p->raw.mod_used[k] ? M_NONE : ckt_ptx_mma_element(p->raw.mods[k]);
		if (e != M_NONE) {
			p->raw.mod_used[k] = true;
			return e;
		}
	}
	return M_NONE;
}

bool ckt_ptx_mma_shape(struct ptx_parser *p, unsigned shape[3])
{
	for (unsigned k = 0; k < p->raw.n_mods; k++) {
		char end;
		if (!p->raw.mod_used[k] &&
			sscanf(p->raw.mods[k], "m%3un%3uk%3u%c", &shape[0], &shape[1], &shape[2],
				&end) == 3) {
			p->raw.mod_used[k] = true;
			return true;
		}
	}
	return false;
}

/* ---- Fragments */

void ckt_ptx_mma_fragment(struct ptx_parser *p, struct mma_fragment *f, char matrix, bool linear,
	enum mma_element type, unsigned rows, unsigned columns)
{
	unsigned bits = elements[type].bits;
	*f = (struct mma_fragment){.type = type,
		.matrix = matrix,
		.linear = linear,
		.rows = (uint16_t)rows,
		.columns = (uint16_t)columns,
		.bits = (uint8_t)bits};
	if (!bits || rows > 256 || columns > 256 || !rows || !columns ||
		rows * columns > MMA_MAX_ELEMENTS || rows * columns < PTX_LANES)
		ckt_ptx_bad(p, "unknown matrix");
	f->lane_bytes = bits == 64 ? 8 : 4;
	f->per_reg = (uint8_t)(bits < 32 ? 32 / bits : 1);
	/* wmma's f16 factors have 8 registers for every shape. */
	unsigned n = rows * columns / PTX_LANES / f->per_reg;
	f->n_regs = (uint8_t)(linear && type == M_F16 && matrix != 'c' ? 8 : n);
	f->two = matrix == 'a' && rows == 16;
	if (!n || n > MMA_MAX_REGS || rows * columns % (PTX_LANES * f->per_reg))
		ckt_ptx_bad(p, "unknown matrix");
}

void ckt_ptx_mma_operands(
	struct ptx_parser *p, struct mma_fragment *f, unsigned index, bool is_destination)
{
	enum ptx_type type = f->lane_bytes == 8 ? T_B64 : T_B32;
	const struct ptx_operand *o = &p->raw.operands[index],
				 *list = o->kind == OP_VECTOR ? o->elements : o;
	if ((o->kind == OP_VECTOR ? o->n_elements : 1) != f->n_regs)
		ckt_ptx_bad(p, "wrong number of registers for the matrix");
	for (unsigned k = 0; k < f->n_regs; k++)
		f->regs[k] = is_destination ? ckt_ptx_dest_of(p, &list[k], type)
					    : ckt_ptx_source_of(p, &list[k],
						      f->type == M_F32           ? T_F32
							      : f->type == M_F64 ? T_F64
										 : type);
}

uint64_t ckt_ptx_mma_get(
	const struct ptx_warp *w, const struct mma_fragment *f, unsigned l, unsigned j)
{
	const void *reg = ptx_at(w, f->regs[j / f->per_reg]);
	if (f->lane_bytes == 8)
		return ((const uint64_t *)reg)[l];
	uint32_t v = ((const uint32_t *)reg)[l] >> (j % f->per_reg * f->bits);
	return f->bits == 32 ? v : v & ((1u << f->bits) - 1);
}

void ckt_ptx_mma_put(
	struct ptx_warp *w, const struct mma_fragment *f, unsigned l, unsigned j, uint64_t bits)
{
	void *reg = ptx_at(w, f->regs[j / f->per_reg]);
	if (f->lane_bytes == 8) {
		((uint64_t *)reg)[l] = bits;
		return;
	}
	unsigned shift = j % f->per_reg * f->bits;
	uint32_t mask = f->bits == 32 ? ~0u : ((1u << f->bits) - 1) << shift,
		 *v = (uint32_t *)reg + l;
	*v = (*v & ~mask) | ((uint32_t)bits << shift & mask);
}

static double to_double(enum mma_element type, uint64_t bits)
{
	switch (type) {
	case M_F16:
		return ckt_ptx_half_to_float((uint16_t)bits);
	case M_BF16:
		return ckt_ptx_bf16_to_float((uint16_t)bits);
	/* the low bits are ignored */
	case M_TF32:
		return ptx_float((uint32_t)bits & ~0x1fffu);
	case M_F32:
		return ptx_float((uint32_t)bits);
	case M_F64:
		return ptx_double(bits);
	case M_E4M3:
		return ckt_ptx_e4m3_to_float((uint8_t)bits);
	case M_E5M2:
		return ckt_ptx_e5m2_to_float((uint8_t)bits);
	default:
		return 0;
	}
}

static int64_t to_integer(enum mma_element type, uint64_t bits)
{
	switch (type) {
	case M_S32:
		return (int32_t)bits;
	case M_S8:
		return (int8_t)bits;
	case M_S4:
		return (int64_t)(bits ^ 8) - 8;
	default:
		return (int64_t)bits;
	}
}

static uint64_t from_double(enum mma_element type, double v)
{
	switch (type) {
	case M_F16:
		return ckt_ptx_half_from_double(v, ROUND_RN);
	case M_F64:
		return ptx_double_bits(v);
	default:
		return ptx_canonical((float)v);
	}
}

/* ---- Waiting for the whole warp */

bool ckt_ptx_whole_warp(struct ptx_warp *w, uint32_t *m)
{
	uint32_t here = *m, pc = w->pc - 1;
	if (w->mask & ~*m)
		ckt_ptx_group_store(w, w->frame, w->mask & ~*m, w->pc);
	for (unsigned k = 0; k < w->n_groups; k++)
		if (w->groups[k].state == GROUP_WHOLE && w->groups[k].frame == w->frame &&
			w->groups[k].pc == pc)
			here |= w->groups[k].mask;
	if (w->live & ~here) {
		ckt_ptx_group_store(w, w->frame, *m, pc);
		w->groups[w->n_groups - 1].state = GROUP_WHOLE;
		return false;
	}
	for (unsigned k = 0; k < w->n_groups;) {
		struct ptx_group *g = &w->groups[k];
		if (g->state == GROUP_WHOLE && g->frame == w->frame && g->pc == pc)
			*g = w->groups[--w->n_groups];
		else
			k++;
	}
	*m = w->mask = here;
	return true;
}

/* ---- The product */

enum { MMA_POPC_XOR = 1, MMA_POPC_AND = 2 };

struct product {
	struct mma_fragment a, b, c, d;
	unsigned m, n, k;
	bool satfinite;
	int popc, rounding; /* rounding: of f64, a value for fesetround */
	bool is_float;
};

static void gather_floats(const struct ptx_warp *w, const struct mma_fragment *f, double *to)
{
	for (unsigned l = 0; l < PTX_LANES; l++) {
		for (unsigned j = 0; j < (unsigned)f->n_regs * f->per_reg; j++) {
			unsigned row, column;
			mma_locate(f, l, j, &row, &column);
			to[row * f->columns + column] =
				to_double(f->type, ckt_ptx_mma_get(w, f, l, j));
		}
	}
}

static void gather_integers(const struct ptx_warp *w, const struct mma_fragment *f, int32_t *to)
{
	for (unsigned l = 0; l < PTX_LANES; l++) {
		for (unsigned j = 0; j < (unsigned)f->n_regs * f->per_reg; j++) {
			unsigned row, column;
			mma_locate(f, l, j, &row, &column);
			to[row * f->columns + column] =
				(int32_t)to_integer(f->type, ckt_ptx_mma_get(w, f, l, j));
		}
	}
}

static uint64_t float_element(const struct product *x, const double *a, const double *b, double c,
	unsigned row, unsigned column)
{
	double sum = c;
	for (unsigned k = 0; k < x->k; k++) {
		double p = a[row * x->k + k], q = b[k * x->n + column];
		sum = x->a.type == M_F64 ? fma(p, q, sum) : sum + p * q;
	}
	return from_double(x->d.type, sum);
}

static uint64_t integer_element(const struct product *x, const int32_t *a, const int32_t *b,
	int64_t c, unsigned row, unsigned column)
{
	int64_t sum = c;
	for (unsigned k = 0; k < x->k; k++) {
		int32_t p = a[row * x->k + k], q = b[k * x->n + column];
		sum += x->popc == MMA_POPC_XOR    ? p ^ q
			: x->popc == MMA_POPC_AND ? (p & q)
						  : (int64_t)p * q;
	}
	if (x->satfinite)
		sum = sum < INT32_MIN ? INT32_MIN : sum > INT32_MAX ? INT32_MAX : sum;
	return (uint32_t)sum;
}

HANDLER(exec_mma)
{
	const struct product *x = i->side;
	if (!ckt_ptx_whole_warp(w, &m))
		return RUN_PICK;
	union {
		double real[MMA_MAX_ELEMENTS];
		int32_t whole[MMA_MAX_ELEMENTS];
	} a, b;
	uint64_t result[32 * 32];
	if (x->rounding != FE_TONEAREST)
		fesetround(x->rounding);
	if (x->is_float) {
		gather_floats(w, &x->a, a.real);
		gather_floats(w, &x->b, b.real);
	} else {
		gather_integers(w, &x->a, a.whole);
		gather_integers(w, &x->b, b.whole);
	}
	/* C and D may share registers, so write D only after everything is read. */
	for (unsigned l = 0; l < PTX_LANES; l++) {
		for (unsigned j = 0; j < (unsigned)x->c.n_regs * x->c.per_reg; j++) {
			unsigned row, column;
			mma_locate(&x->c, l, j, &row, &column);
			uint64_t c = ckt_ptx_mma_get(w, &x->c, l, j);
			result[row * x->n + column] = x->is_float
				? float_element(
					  x, a.real, b.real, to_double(x->c.type, c), row, column)
				: integer_element(x, a.whole, b.whole, to_integer(x->c.type, c),
					  row, column);
		}
	}
	if (x->rounding != FE_TONEAREST)
		fesetround(FE_TONEAREST);
	for (unsigned l = 0; l < PTX_LANES; l++) {
		for (unsigned j = 0; j < (unsigned)x->d.n_regs * x->d.per_reg; j++) {
			unsigned row, column;
			mma_locate(&x->d, l, j, &row, &column);
			if (m >> l & 1)
				ckt_ptx_mma_put(w, &x->d, l, j, result[row * x->n + column]);
		}
	}
	return RUN_JUMP;
}

/* ---- Decoding */

/* Whether factors and sums of these types go together. */
static bool types_ok(const struct product *x)
{
	enum mma_element a = x->a.type, b = x->b.type, c = x->c.type, d = x->d.type;
	switch (a) {
	case M_F16:
		return b == a && (c == M_F16 || c == M_F32) && (d == M_F16 || d == M_F32);
	case M_BF16:
	case M_TF32:
		return b == a && c == M_F32 && d == M_F32;
	case M_E4M3:
	case M_E5M2:
		return (b == M_E4M3 || b == M_E5M2) && c == d && (c == M_F32 || c == M_F16);
	case M_F64:
		return b == a && c == a && d == a;
	case M_S8:
	case M_U8:
		return (b == M_S8 || b == M_U8) && c == M_S32 && d == c;
	case M_S4:
	case M_U4:
		return (b == M_S4 || b == M_U4) && c == M_S32 && d == c;
	case M_B1:
		return b == a && c == M_S32 && d == c && x->popc;
	default:
		return false;
	}
}

static bool shape_is_known(bool wmma, enum mma_element a, const unsigned s[3])
{
	static const struct {
		bool wmma;
		enum mma_element a;
		uint16_t shape[3];
	} known[] = {{true, M_F16, {16, 16, 16}}, {true, M_F16, {32, 8, 16}},
		{true, M_F16, {8, 32, 16}}, {true, M_BF16, {16, 16, 16}},
		{true, M_BF16, {32, 8, 16}}, {true, M_BF16, {8, 32, 16}},
		{true, M_TF32, {16, 16, 8}}, {true, M_S8, {16, 16, 16}}, {true, M_S8, {32, 8, 16}},
		{true, M_S8, {8, 32, 16}}, {true, M_F64, {8, 8, 4}}, {true, M_S4, {8, 8, 32}},
		{true, M_B1, {8, 8, 128}}, {false, M_F16, {16, 8, 8}}, {false, M_F16, {16, 8, 16}},
		{false, M_BF16, {16, 8, 8}}, {false, M_BF16, {16, 8, 16}},
		{false, M_TF32, {16, 8, 4}}, {false, M_TF32, {16, 8, 8}},
		{false, M_E4M3, {16, 8, 16}}, {false, M_E4M3, {16, 8, 32}},
		{false, M_S8, {8, 8, 16}}, {false, M_S8, {16, 8, 16}}, {false, M_S8, {16, 8, 32}},
		{false, M_S4, {8, 8, 32}}, {false, M_S4, {16, 8, 32}}, {false, M_S4, {16, 8, 64}},
		{false, M_B1, {8, 8, 128}}, {false, M_B1, {16, 8, 128}},
		{false, M_B1, {16, 8, 256}}, {false, M_F64, {8, 8, 4}}, {false, M_F64, {16, 8, 4}},
		{false, M_F64, {16, 8, 8}}, {false, M_F64, {16, 8, 16}}};
	a = a == M_U8 ? M_S8 : a == M_U4 ? M_S4 : a == M_E5M2 ? M_E4M3 : a;
	for (size_t k = 0; k < sizeof known / sizeof *known; k++)
		if (known[k].wmma == wmma && known[k].a == a && known[k].shape[0] == s[0] &&
			known[k].shape[1] == s[1] && known[k].shape[2] == s[2])
			return true;
	return false;
}

void ckt_ptx_decode_mma(struct ptx_parser *p, bool wmma)
{
	struct product *x = ckt_ptx_new(p, sizeof *x);
	unsigned shape[3];
	bool sync = ckt_ptx_mod(p, "sync"), aligned = ckt_ptx_mod(p, "aligned");
	if (!sync || !aligned || !ckt_ptx_mma_shape(p, shape))
		ckt_ptx_bad(p, "unknown matrix product");
	if (ckt_ptx_mod_prefix(p, "sp") || ckt_ptx_mod_prefix(p, "kind::"))
		ckt_ptx_bad(p, "sparse and scaled matrix products are not supported");
	bool row[2] = {true, false};
	for (unsigned k = 0, at = 0; k < p->raw.n_mods && at < 2; k++) {
		if (!strcmp(p->raw.mods[k], "row") || !strcmp(p->raw.mods[k], "col")) {
			row[at++] = p->raw.mods[k][0] == 'r';
			p->raw.mod_used[k] = true;
		}
	}
	/*
	 * mma arranges the registers as for row.col.  wmma's fragments do not depend on how they
	 * were loaded.
	 */
	if (!wmma && (!row[0] || row[1]))
		ckt_ptx_bad(p, "only .row.col matrix products are supported");
	x->satfinite = ckt_ptx_mod(p, "satfinite");
	int mode = ckt_ptx_mod_one(p, (const char *const[]){"rn", "rz", "rm", "rp", NULL});
	x->rounding = mode < 1 ? FE_TONEAREST
			       : (const int[]){FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD}[mode - 1];
	x->popc = ckt_ptx_mod(p, "popc") ? (ckt_ptx_mod(p, "and")                  ? MMA_POPC_AND
							   : ckt_ptx_mod(p, "xor") ? MMA_POPC_XOR
										   : 0)
					 : 0;
	enum mma_element t[4] = {0};
	unsigned n = 0;
	while (n < 4 && (t[n] = take_element(p)) != M_NONE)
		n++;
	if (n == 2 && wmma) { /* f16 factors have no type modifier */
		t[3] = t[1];
		t[1] = t[2] = M_F16;
	} else if (n != 4) {
		ckt_ptx_bad(p, "unknown matrix product");
	}
	if (!shape_is_known(wmma, t[1], shape))
		ckt_ptx_bad(p, "no matrix product of this shape and type");
	x->m = shape[0];
	x->n = shape[1];
	x->k = shape[2];
	ckt_ptx_mma_fragment(p, &x->d, 'c', wmma, t[0], x->m, x->n);
	ckt_ptx_mma_fragment(p, &x->a, 'a', wmma, t[1], x->m, x->k);
	ckt_ptx_mma_fragment(p, &x->b, 'b', wmma, t[2], x->k, x->n);
	ckt_ptx_mma_fragment(p, &x->c, 'c', wmma, t[3], x->m, x->n);
	if (!types_ok(x))
		ckt_ptx_bad(p, "no matrix product of these types");
	x->is_float = t[0] != M_S32;
	ckt_ptx_need_operands(p, 4, 4);
	ckt_ptx_mma_operands(p, &x->a, 1, false);
	ckt_ptx_mma_operands(p, &x->b, 2, false);
	ckt_ptx_mma_operands(p, &x->c, 3, false);
	ckt_ptx_mma_operands(p, &x->d, 0, true);
	ckt_ptx_emit(p, exec_mma)->side = x;
}
