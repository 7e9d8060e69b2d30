/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the files op_*.c, which hold decoders and handlers side by side.
 */
#pragma once

#include "softgpu/ptx/compiled/form.h"
#include "softgpu/ptx/execution/grid.h"
#include "softgpu/ptx/execution/lanes.h"
#include "softgpu/ptx/front/parser.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/lane.h"

/*
 * For opcodes that exist for integers and floats: accepts the instruction if one of its type
 * modifiers is a floating type, and returns true.  op_float.c.
 */
bool ckt_ptx_decode_float(struct ptx_parser *p);

/* Half precision, rounded to nearest even if bits are lost (half.c). */
uint16_t ckt_ptx_half_from_double(double value, int rounding);
uint16_t ckt_ptx_bf16_from_double(double value, int rounding);
/*
 * The 8-bit formats; rounded to nearest even, and too large values become the largest finite
 * number.
 */
float ckt_ptx_e4m3_to_float(uint8_t bits);
float ckt_ptx_e5m2_to_float(uint8_t bits);
uint8_t ckt_ptx_e4m3_from_double(double value);
uint8_t ckt_ptx_e5m2_from_double(double value);

/* bar.warp.sync (op_warp.c). */
void ckt_ptx_decode_warp_barrier(struct ptx_parser *p);
/* barrier.cluster (op_cluster.c). */
void ckt_ptx_decode_cluster_barrier(struct ptx_parser *p);
/*
 * Subtracts bytes from those that a memory barrier in shared memory waits for; false after a fault
 * (op_async.c).
 */
bool ckt_ptx_mbarrier_complete(struct ptx_warp *w, unsigned lane, uint64_t address, uint32_t bytes);
/*
 * cp.async.bulk and cp.reduce.async.bulk; p->raw.op and the modifiers up to .bulk are already
 * consumed (op_cluster.c).
 */
void ckt_ptx_decode_bulk(struct ptx_parser *p);

/*
 * An address operand: a base register or constant, or none for one relative to the frame, and an
 * offset (op_mem.c).
 */
struct ptx_address {
	int32_t operand;
	int64_t imm;
	/*
	 * of the base: 8, or 4 for addresses kept in 32 bits, which those of global memory are not
	 */
	int32_t bytes;
	enum ptx_space space;
};
/*
 * The address of a lane: base and offset are added in the width of the base, so an address of 32
 * bits wraps.  An operand of PTX_OPERAND_NONE is relative to the frame.
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
