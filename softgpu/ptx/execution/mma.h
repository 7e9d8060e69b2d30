/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrices in the registers of a warp, for op_mma.c (multiplying) and op_matrix.c (loading and
 * storing).
 *
 * mma defines which lane holds which element; wmma does not.  Here a wmma fragment holds its matrix
 * row by row, lane after lane, and repeats it if the registers hold more than the matrix.
 */
#pragma once

#include "softgpu/ptx/execution/op.h"
#include "softgpu/ptx/execution/grid.h"
#include "softgpu/ptx/front/parser.h"

enum mma_element {
	M_NONE = 0,
	M_F16,
	M_BF16,
	M_TF32,
	M_F32,
	M_F64,
	M_S32,
	M_S8,
	M_U8,
	M_S4,
	M_U4,
	M_B1,
	M_E4M3,
	M_E5M2,
};

enum { MMA_MAX_REGS = 8, MMA_MAX_ELEMENTS = 16 * 256 };

struct mma_fragment {
	enum mma_element type;
	char matrix; /* 'a', 'b', 'c' */
	bool linear; /* arranged as for wmma */
	bool two;    /* mma: 16 rows, two for each group of lanes */
	uint16_t rows, columns;
	uint8_t bits, n_regs, per_reg, lane_bytes;
	int32_t regs[MMA_MAX_REGS];
};

/* Fills every field except the registers; fails if type and shape do not match. */
void ckt_ptx_mma_fragment(struct ptx_parser *p, struct mma_fragment *f, char matrix, bool linear,
	enum mma_element type, unsigned rows, unsigned columns);
void ckt_ptx_mma_operands(
	struct ptx_parser *p, struct mma_fragment *f, unsigned index, bool is_destination);
/* The row and column of element j of lane l. */
static inline void mma_locate(
	const struct mma_fragment *f, unsigned l, unsigned j, unsigned *row, unsigned *column)
{
	unsigned group = l >> 2, in_group = l & 3, r = j / f->per_reg, k = j % f->per_reg;
	if (f->linear) {
		unsigned n = (l * f->n_regs * f->per_reg + j) % ((unsigned)f->rows * f->columns);
		*row = n / f->columns;
		*column = n % f->columns;
	} else if (f->matrix == 'a') {
		*row = group + (f->two ? 8 * (r & 1) : 0);
		*column = in_group * f->per_reg + k + (f->two ? r >> 1 : r) * 4 * f->per_reg;
	} else if (f->matrix == 'b') {
		*row = in_group * f->per_reg + k + r * 4 * f->per_reg;
		*column = group;
	} else {
		*row = group + 8 * (j >> 1);
		*column = in_group * 2 + (j & 1);
	}
}

/* Reads and writes the bits of an element. */
uint64_t ckt_ptx_mma_get(
	const struct ptx_warp *w, const struct mma_fragment *f, unsigned l, unsigned j);
void ckt_ptx_mma_put(
	struct ptx_warp *w, const struct mma_fragment *f, unsigned l, unsigned j, uint64_t bits);

/* M_NONE if the name is not an element type */
enum mma_element ckt_ptx_mma_element(const char *name);
void ckt_ptx_decode_mma(struct ptx_parser *p, bool wmma);
/* Consumes a .mMnNkK modifier. */
bool ckt_ptx_mma_shape(struct ptx_parser *p, unsigned shape[3]);

/*
 * For instructions that the whole warp executes together.  True if all live lanes are here; *m then
 * holds them.  Otherwise the lanes wait, and the handler returns RUN_PICK.
 */
bool ckt_ptx_whole_warp(struct ptx_warp *w, uint32_t *m);
