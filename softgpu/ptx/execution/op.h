/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for the files op_*.c, each of which contains decoders and their handlers. */
#pragma once

#include "softgpu/ptx/compiled/form.h"
#include "softgpu/ptx/execution/grid.h"
#include "softgpu/ptx/execution/lanes.h"
#include "softgpu/ptx/front/parser.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/lane.h"

/*
 * For opcodes that exist for integers and floats (op_float.c): if one of the type modifiers is a
 * floating type, decodes the instruction and returns true.
 */
bool ckt_ptx_decode_float(struct ptx_parser *p);

/* 16-bit formats (half.c). */
uint16_t ckt_ptx_half_from_double(double value, int rounding);
uint16_t ckt_ptx_bf16_from_double(double value, int rounding);
/*
 * The 8-bit formats: rounded to nearest even; a value that is too large becomes the largest finite
 * number.
 */
float ckt_ptx_e4m3_to_float(uint8_t bits);
float ckt_ptx_e5m2_to_float(uint8_t bits);
uint8_t ckt_ptx_e4m3_from_double(double value);
uint8_t ckt_ptx_e5m2_from_double(double value);

/* Decodes bar.warp.sync (op_warp.c). */
void ckt_ptx_decode_warp_barrier(struct ptx_parser *p);
/* Decodes barrier.cluster (op_cluster.c). */
void ckt_ptx_decode_cluster_barrier(struct ptx_parser *p);
/*
 * Subtracts bytes from those that a memory barrier in shared memory waits for; false after a fault
 * (op_async.c).
 */
bool ckt_ptx_mbarrier_complete(struct ptx_warp *w, unsigned lane, uint64_t address, uint32_t bytes);
/*
 * Decodes cp.async.bulk and cp.reduce.async.bulk (op_cluster.c).  Precondition: p->raw.op and the
 * modifiers up to .bulk are consumed.
 */
void ckt_ptx_decode_bulk(struct ptx_parser *p);

/*
 * An address operand (op_mem.c): an offset, and a base that is a register, a constant, or the frame
 * if there is none.
 */
struct ptx_address {
	int32_t operand;
	int64_t imm;
	/* bytes of the base: 8; 4 for addresses kept in 32 bits, but never for global memory */
	int32_t bytes;
	enum ptx_space space;
};
/*
 * The address of a lane.  Base and offset are added in the width of the base, so a 32-bit address
 * wraps.  The operand PTX_OPERAND_NONE means relative to the frame.
 */
static inline uint64_t ckt_ptx_lane_address(
	const struct ptx_warp *w, int32_t operand, int32_t bytes, int64_t imm, unsigned l)
{
	if (operand == PTX_OPERAND_NONE)
		return (uint64_t)imm + w->frame->local_base;
	if (bytes == 4)
		return ((const uint32_t *)ptx_at(w, operand))[l] + (uint32_t)imm;
	return ((const uint64_t *)ptx_at(w, operand))[l] + (uint64_t)imm;
}
static inline uint64_t ckt_ptx_address_at(
	const struct ptx_warp *w, const struct ptx_address *a, unsigned l)
{
	return ckt_ptx_lane_address(w, a->operand, a->bytes, a->imm, l);
}
struct ptx_address ckt_ptx_decode_address(
	struct ptx_parser *p, const struct ptx_operand *o, enum ptx_space space);
enum ptx_space ckt_ptx_memory_space(struct ptx_parser *p);
