/*
 * For the files op_*.c, which hold decoders and handlers side by side.
 */
#pragma once

#include "softgpu/ptx/internal.h"

/*
 * For opcodes that exist for integers and floats: takes the instruction when one of its type modifiers is a floating type and
 * answers true.  op_float.c.
 */
bool ckt_ptx_decode_float(struct ptx_parser *p);

/* Half precision, rounded to nearest even where something is lost (half.c). */
uint16_t ckt_ptx_half_from_double(double value, int rounding);
uint16_t ckt_ptx_bf16_from_double(double value, int rounding);
/* The 8-bit formats; rounded to nearest even, what is too large becomes the largest finite number. */
float ckt_ptx_e4m3_to_float(uint8_t bits);
float ckt_ptx_e5m2_to_float(uint8_t bits);
uint8_t ckt_ptx_e4m3_from_double(double value);
uint8_t ckt_ptx_e5m2_from_double(double value);

/* Rounding modes as insn->x. */
enum { ROUND_RN = 0, ROUND_RZ, ROUND_RM, ROUND_RP, ROUND_RNA, ROUND_RN_INT, ROUND_RZ_INT, ROUND_RM_INT, ROUND_RP_INT, ROUND_RS };

static inline float ptx_float(uint32_t bits)
{
	float f;
	__builtin_memcpy(&f, &bits, sizeof f);
	return f;
}
static inline uint32_t ptx_float_bits(float f)
{
	uint32_t bits;
	__builtin_memcpy(&bits, &f, sizeof bits);
	return bits;
}
static inline double ptx_double(uint64_t bits)
{
	double d;
	__builtin_memcpy(&d, &bits, sizeof d);
	return d;
}
static inline uint64_t ptx_double_bits(double d)
{
	uint64_t bits;
	__builtin_memcpy(&bits, &d, sizeof bits);
	return bits;
}
static inline float ckt_ptx_half_to_float(uint16_t half)
{
	uint32_t rest = half & 0x7fff, sign = (uint32_t)(half & 0x8000) << 16;
	/* Whole numbers are exact in a float, and quicker than arithmetic with subnormal floats. */
	uint32_t subnormal = ptx_float_bits((float)(int32_t)(rest & 0x3ff) * 0x1p-24f);
	return ptx_float(sign | (rest < 0x400 ? subnormal : rest < 0x7c00 ? (rest << 13) + (112u << 23) : 0x7f800000 | rest << 13));
}
static inline float ckt_ptx_bf16_to_float(uint16_t bits) { return ptx_float((uint32_t)bits << 16); }
/* To nearest even, in loops that vectorise. */
static inline uint16_t ptx_half_from_float(float v)
{
	uint32_t bits = ptx_float_bits(v), sign = bits >> 16 & 0x8000;
	bits &= 0x7fffffff;
	/* Below 2^-14 the sum with 1/2 is rounded where a subnormal half is. */
	uint32_t subnormal = ptx_float_bits(ptx_float(bits) + 0.5f) - 0x3f000000;
	uint32_t normal = (bits + 0xfff + (bits >> 13 & 1) - (112u << 23)) >> 13;
	normal = normal < 0x7c00 ? normal : 0x7c00;
	return (uint16_t)(bits > 0x7f800000 ? 0x7fff : sign | (bits < 0x38800000 ? subnormal : normal));
}
static inline uint16_t ptx_bf16_from_float(float v)
{
	uint32_t bits = ptx_float_bits(v);
	return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
/* .ftz: a subnormal becomes zero of its sign. */
static inline float ptx_flush(float f)
{
	uint32_t bits = ptx_float_bits(f);
	return ptx_float(bits & (0x80000000u | -(uint32_t)((bits & 0x7f800000u) != 0)));	/* no branch, so that loops vectorise */
}
/* Whether a value at or below the least normal f32 is below it after rounding with an exponent without bound. */
static inline bool ptx_tiny(double magnitude, int rounding)
{
	return rounding == ROUND_RN ? magnitude < 0x1p-126 - 0x1p-151 : magnitude <= 0x1p-126 - 0x1p-150;
}
/* f32 instructions answer one NaN only. */
static inline uint32_t ptx_canonical(float f)
{
	return f != f ? 0x7fffffffu : ptx_float_bits(f);
}

/* bar.warp.sync (op_warp.c). */
void ckt_ptx_decode_warp_barrier(struct ptx_parser *p);
/* barrier.cluster (op_cluster.c). */
void ckt_ptx_decode_cluster_barrier(struct ptx_parser *p);
/* Takes bytes off what a memory barrier in shared memory waits for; false after a fault (op_async.c). */
bool ckt_ptx_mbarrier_complete(struct ptx_warp *w, unsigned lane, uint64_t address, uint32_t bytes);
/* cp.async.bulk and cp.reduce.async.bulk, with p->raw.op and the modifiers up to .bulk taken (op_cluster.c). */
void ckt_ptx_decode_bulk(struct ptx_parser *p);

/* An address operand: a base register or constant, or none for one relative to the frame, and an offset (op_mem.c). */
struct ptx_address {
	int32_t operand;
	int64_t imm;
	int32_t bytes;		/* of the base: 8, or 4 for shared addresses kept in 32 bits */
	enum ptx_space space;
};
struct ptx_address ckt_ptx_decode_address(struct ptx_parser *p, const struct ptx_operand *o, enum ptx_space space);
enum ptx_space ckt_ptx_memory_space(struct ptx_parser *p);
