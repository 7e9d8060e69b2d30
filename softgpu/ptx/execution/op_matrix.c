/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves matrices between memory and registers: wmma.load, wmma.store, ldmatrix, stmatrix and
 * movmatrix.
 */
#include <string.h>

#include "softgpu/memory/memmap.h"
#include "softgpu/ptx/execution/mma.h"
#include "softgpu/ptx/execution/grid.h"
#include "softgpu/ptx/execution/lanes.h"
#include "softgpu/ptx/execution/memory.h"
#include "softgpu/ptx/front/decode.h"
#include "softgpu/ptx/front/parser.h"
#include "softgpu/ptx/front/types.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

#define HANDLER(name) static int name(struct ptx_warp *w, const struct ptx_insn *i, uint32_t m)

/* ---- wmma */

struct wmma {
	struct mma_fragment f;
	struct ptx_address address;
	bool row, store;
	int32_t stride; /* PTX_OPERAND_NONE: rows are adjacent */
};

HANDLER(exec_wmma)
{
	const struct wmma *x = i->side;
	const struct mma_fragment *f = &x->f;
	if (!ckt_ptx_whole_warp(w, &m))
		return RUN_PICK;
	unsigned bytes = f->bits < 8 ? 1 : f->bits / 8;
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest);
		uint64_t base = ckt_ptx_address_at(w, &x->address, l);
		uint64_t stride = x->stride == PTX_OPERAND_NONE
			? (x->row ? f->columns : f->rows)
			: ((const uint32_t *)ptx_at(w, x->stride))[l];
		for (unsigned j = 0; j < (unsigned)f->n_regs * f->per_reg; j++) {
			unsigned row, column;
			mma_locate(f, l, j, &row, &column);
			uint64_t index = x->row ? row * stride + column : column * stride + row,
				 bit = index * f->bits;
			uint8_t *at = ckt_ptx_memory(w, l, x->address.space, base + bit / 8, bytes,
				x->store ? CKT_SOFT_PAGE_WRITE : CKT_SOFT_PAGE_READ);
			uint64_t v = 0;
			if (!at)
				return RUN_FAULT;
			if (x->store) {
				v = ckt_ptx_mma_get(w, f, l, j);
				memcpy(at, &v, bytes);
			} else {
				memcpy(&v, at, bytes);
				ckt_ptx_mma_put(w, f, l, j, f->bits < 8 ? v >> (bit & 7) : v);
			}
		}
	}
	return RUN_JUMP;
}

static void decode_wmma(struct ptx_parser *p)
{
	static const char *const kinds[] = {"mma", "load", "store", NULL},
				 *const matrices[] = {"a", "b", "c", "d", NULL};
	int kind = ckt_ptx_mod_one(p, kinds);
	if (kind < 0)
		ckt_ptx_bad(p, "unknown wmma instruction");
	if (kind == 0) {
		ckt_ptx_decode_mma(p, true);
		return;
	}
	struct wmma *x = ckt_ptx_new(p, sizeof *x);
	unsigned s[3];
	int matrix = ckt_ptx_mod_one(p, matrices);
	bool sync = ckt_ptx_mod(p, "sync"), aligned = ckt_ptx_mod(p, "aligned");
	if (matrix < 0 || !sync || !aligned || !ckt_ptx_mma_shape(p, s))
		ckt_ptx_bad(p, "unknown wmma instruction");
	x->store = kind == 2;
	x->row = ckt_ptx_mod(p, "row");
	if (!x->row && !ckt_ptx_mod(p, "col"))
		ckt_ptx_bad(p, ".row or .col expected");
	enum ptx_space space = ckt_ptx_memory_space(p);
	enum mma_element type = M_NONE;
	for (unsigned k = 0; k < p->raw.n_mods && type == M_NONE; k++)
		if (!p->raw.mod_used[k] && (type = ckt_ptx_mma_element(p->raw.mods[k])) != M_NONE)
			p->raw.mod_used[k] = true;
	char which = matrix == 0 ? 'a' : matrix == 1 ? 'b' : 'c';
	ckt_ptx_mma_fragment(p, &x->f, which, true, type, which == 'b' ? s[2] : s[0],
		which == 'a' ? s[2] : s[1]);
	ckt_ptx_need_operands(p, 2, 3);
	ckt_ptx_mma_operands(p, &x->f, x->store ? 1 : 0, !x->store);
	x->address = ckt_ptx_decode_address(p, &p->raw.operands[x->store ? 0 : 1], space);
	x->stride = p->raw.n_operands > 2 ? ckt_ptx_source(p, 2, T_U32) : PTX_OPERAND_NONE;
	ckt_ptx_emit(p, exec_wmma)->side = x;
}

/* ---- Matrices of 8 by 8 elements of 16 bits */

struct matrix8 {
	struct ptx_address address;
	int32_t regs[4];
	unsigned n;
	bool transposed, store;
};

/*
 * Lane 8 n + r holds the address of row r of matrix n.  Lane l has the elements 2 (l % 4) and 2 (l
 * % 4) + 1 of row l / 4.
 */
HANDLER(exec_matrix8)
{
	const struct matrix8 *x = i->side;
	if (!ckt_ptx_whole_warp(w, &m))
		return RUN_PICK;
	for (unsigned n = 0; n < x->n; n++) {
		uint16_t *rows[8], out[PTX_LANES][2];
		uint32_t *reg = ptx_at(w, x->regs[n]);
		for (unsigned r = 0; r < 8; r++) {
			rows[r] = (uint16_t *)ckt_ptx_memory(w, 8 * n + r, x->address.space,
				ckt_ptx_address_at(w, &x->address, 8 * n + r), 16,
				x->store ? CKT_SOFT_PAGE_WRITE : CKT_SOFT_PAGE_READ);
			if (!rows[r])
				return RUN_FAULT;
		}
		for (unsigned l = 0; l < PTX_LANES; l++) {
			for (unsigned k = 0; k < 2; k++) {
				unsigned row = l / 4, column = l % 4 * 2 + k;
				uint16_t *at =
					x->transposed ? &rows[column][row] : &rows[row][column];
				if (x->store)
					*at = (uint16_t)(reg[l] >> (16 * k));
				else
					out[l][k] = *at;
			}
		}
		for (unsigned l = 0; !x->store && l < PTX_LANES; l++)
			if (m >> l & 1)
				reg[l] = out[l][0] | (uint32_t)out[l][1] << 16;
	}
	return RUN_JUMP;
}

static void decode_matrix8(struct ptx_parser *p)
{
	static const char *const counts[] = {"x1", "x2", "x4", NULL};
	struct matrix8 *x = ckt_ptx_new(p, sizeof *x);
	bool sync = ckt_ptx_mod(p, "sync"), aligned = ckt_ptx_mod(p, "aligned");
	bool m8n8 = ckt_ptx_mod(p, "m8n8");
	int count = ckt_ptx_mod_one(p, counts);
	if (!sync || !aligned || !m8n8 || count < 0)
		ckt_ptx_bad(p, "unknown matrix load or store");
	x->store = p->raw.op[0] == 's';
	x->n = 1u << count;
	x->transposed = ckt_ptx_mod(p, "trans");
	enum ptx_space space = ckt_ptx_memory_space(p);
	if (ckt_ptx_need_type(p) != T_B16)
		ckt_ptx_bad(p, ".b16 expected");
	ckt_ptx_need_operands(p, 2, 2);
	const struct ptx_operand *o = &p->raw.operands[x->store ? 1 : 0],
				 *list = o->kind == OP_VECTOR ? o->elements : o;
	if ((o->kind == OP_VECTOR ? o->n_elements : 1) != x->n)
		ckt_ptx_bad(p, "wrong number of registers for the matrix");
	for (unsigned k = 0; k < x->n; k++)
		x->regs[k] = x->store ? ckt_ptx_source_of(p, &list[k], T_B32)
				      : ckt_ptx_dest_of(p, &list[k], T_B32);
	x->address = ckt_ptx_decode_address(p, &p->raw.operands[x->store ? 0 : 1], space);
	ckt_ptx_emit(p, exec_matrix8)->side = x;
}

HANDLER(exec_movmatrix)
{
	if (!ckt_ptx_whole_warp(w, &m))
		return RUN_PICK;
	const uint32_t *a = ptx_at(w, i->a);
	uint32_t *d = ptx_at(w, i->d), in[PTX_LANES];
	memcpy(in, a, sizeof in);
	for (uint32_t rest = m; rest; rest &= rest - 1) {
		unsigned l = (unsigned)__builtin_ctz(rest), row = l / 4, v = 0;
		for (unsigned k = 0; k < 2; k++) {
			/* the result is element [column][row] of the lanes' values */
			unsigned column = l % 4 * 2 + k;
			v |= (in[column * 4 + row / 2] >> (row % 2 * 16) & 0xffff) << (16 * k);
		}
		d[l] = v;
	}
	return RUN_JUMP;
}

static void decode_movmatrix(struct ptx_parser *p)
{
	static const char *const all[] = {"sync", "aligned", "m8n8", "trans"};
	for (unsigned k = 0; k < 4; k++)
		if (!ckt_ptx_mod(p, all[k]))
			ckt_ptx_bad(p, "unknown matrix move");
	ckt_ptx_need_type(p);
	ckt_ptx_need_operands(p, 2, 2);
	int32_t a = ckt_ptx_source(p, 1, T_B32), d = ckt_ptx_dest(p, 0, T_B32);
	struct ptx_insn *i = ckt_ptx_emit(p, exec_movmatrix);
	i->a = a;
	i->d = d;
}

static void decode_mma(struct ptx_parser *p)
{
	ckt_ptx_decode_mma(p, false);
}

const struct ptx_opcode ckt_ptx_opcodes_matrix[] = {
	{"mma", decode_mma},
	{"wmma", decode_wmma},
	{"ldmatrix", decode_matrix8},
	{"stmatrix", decode_matrix8},
	{"movmatrix", decode_movmatrix},
	{NULL, NULL},
};
