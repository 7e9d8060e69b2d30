/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The computation of one lane: helpers that handlers and compiled kernels share, so that both give
 * the same bits.  This file's text is also the head of every compiled kernel (emit*.c).  A compiled
 * kernel has no system headers, so the helpers use builtins only; the #include lines are for the
 * handlers.
 */
#ifndef CKT_PTX_COMPILED
#pragma once
#include <stdbool.h>
#include <stdint.h>
#endif

/* Rounding modes, as in insn->x. */
enum {
	ROUND_RN = 0,
	ROUND_RZ,
	ROUND_RM,
	ROUND_RP,
	ROUND_RNA,
	ROUND_RN_INT,
	ROUND_RZ_INT,
	ROUND_RM_INT,
	ROUND_RP_INT,
	ROUND_RS
};

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
	/*
	 * A float holds these integers exactly; this is faster than arithmetic with subnormal
	 * floats.
	 */
	uint32_t subnormal = ptx_float_bits((float)(int32_t)(rest & 0x3ff) * 0x1p-24f);
	return ptx_float(sign |
		(rest < 0x400                   ? subnormal
				: rest < 0x7c00 ? (rest << 13) + (112u << 23)
						: 0x7f800000 | rest << 13));
}
static inline float ckt_ptx_bf16_to_float(uint16_t bits)
{
	return ptx_float((uint32_t)bits << 16);
}
/* Rounds to nearest even, in code that the compiler can vectorise. */
static inline uint16_t ptx_half_from_float(float v)
{
	uint32_t bits = ptx_float_bits(v), sign = bits >> 16 & 0x8000;
	bits &= 0x7fffffff;
	/* Below 2^-14, adding 1/2 rounds at the same bit as a subnormal half. */
	uint32_t subnormal = ptx_float_bits(ptx_float(bits) + 0.5f) - 0x3f000000;
	uint32_t normal = (bits + 0xfff + (bits >> 13 & 1) - (112u << 23)) >> 13;
	normal = normal < 0x7c00 ? normal : 0x7c00;
	return (uint16_t)(bits > 0x7f800000 ? 0x7fff
					    : sign | (bits < 0x38800000 ? subnormal : normal));
}
static inline uint16_t ptx_bf16_from_float(float v)
{
	uint32_t bits = ptx_float_bits(v);
	return (uint16_t)((bits & 0x7fffffff) > 0x7f800000
			? 0x7fff
			: (bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
/* .ftz: a subnormal becomes a zero of the same sign. */
static inline float ptx_flush(float f)
{
	uint32_t bits = ptx_float_bits(f);
	/* no branch, so that loops vectorise */
	return ptx_float(bits & (0x80000000u | -(uint32_t)((bits & 0x7f800000u) != 0)));
}
/*
 * Whether the value is tiny: below the least normal f32, if its exponent had no lower bound.
 * magnitude is at most the least normal f32.
 */
static inline bool ptx_tiny(double magnitude, int rounding)
{
	return rounding == ROUND_RN ? magnitude < 0x1p-126 - 0x1p-151
				    : magnitude <= 0x1p-126 - 0x1p-150;
}
/*
 * .ftz flushes a result that is tiny before its exponent is limited, as the GPU does.  So it also
 * flushes a result that was rounded up to the least normal number. times: the same result, computed
 * 2^64 times as large so that its rounding is unaffected; 1 if no rounding can have happened there
 * (sums are exact).  For rounding to nearest only.
 */
static inline float ptx_flush_rounded(float r, float times)
{
	uint32_t bits = ptx_float_bits(r), large = ptx_float_bits(times) & 0x7fffffffu;
	uint32_t tiny =
		(uint32_t)((bits & 0x7fffffffu) == 0x800000) & (uint32_t)(large < 0x20800000u);
	return ptx_float(
		bits & (0x80000000u | -((uint32_t)((bits & 0x7f800000u) != 0) & ~tiny & 1)));
}
/* f32 instructions return only one NaN. */
static inline uint32_t ptx_canonical(float f)
{
	return f != f ? 0x7fffffffu : ptx_float_bits(f);
}

/* ---- Integers */

typedef unsigned __int128 u128;
typedef __int128 s128;

/* The upper half of the product, by type. */
static inline uint16_t high_u16(uint16_t x, uint16_t y)
{
	return (uint16_t)(((uint32_t)x * y) >> 16);
}
static inline uint16_t high_s16(int16_t x, int16_t y)
{
	return (uint16_t)(((int32_t)x * y) >> 16);
}
static inline uint32_t high_u32(uint32_t x, uint32_t y)
{
	return (uint32_t)(((uint64_t)x * y) >> 32);
}
static inline uint32_t high_s32(int32_t x, int32_t y)
{
	return (uint32_t)(((int64_t)x * y) >> 32);
}
static inline uint64_t high_u64(uint64_t x, uint64_t y)
{
	return (uint64_t)(((u128)x * y) >> 64);
}
static inline uint64_t high_s64(int64_t x, int64_t y)
{
	return (uint64_t)(((s128)x * y) >> 64);
}

static inline int32_t saturate_s32(int64_t v)
{
	return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
}
static inline int32_t sign24(uint32_t v)
{
	return (int32_t)(v << 8) >> 8;
}

/* ---- Bits */

static inline uint32_t reverse32(uint32_t v)
{
	v = (v & 0x55555555) << 1 | (v >> 1 & 0x55555555);
	v = (v & 0x33333333) << 2 | (v >> 2 & 0x33333333);
	v = (v & 0x0f0f0f0f) << 4 | (v >> 4 & 0x0f0f0f0f);
	return __builtin_bswap32(v);
}

/*
 * The position of the highest bit that differs from the sign; with `shift`, counted from the top.
 */
static inline uint32_t find(uint64_t v, bool is_signed, unsigned bits, bool shift)
{
	if (is_signed && (v >> (bits - 1) & 1))
		v = ~v;
	if (bits < 64)
		v &= (1ull << bits) - 1;
	if (!v)
		return ~0u;
	unsigned top = 63 - (unsigned)__builtin_clzll(v);
	return shift ? bits - 1 - top : top;
}

static inline uint64_t extract(
	uint64_t v, unsigned bits, bool is_signed, uint32_t pos, uint32_t len)
{
	/* Only the 32-bit form reduces position and length to a byte. */
	if (bits == 32) {
		pos &= 0xff;
		len &= 0xff;
	}
	pos = pos > 0xffff ? 0xffff : pos;
	len = len > 0xffff ? 0xffff : len;
	if (!len)
		return 0;
	unsigned last = pos + len - 1 < bits - 1 ? pos + len - 1 : bits - 1;
	bool sign = is_signed && (v >> last & 1);
	uint64_t field = pos < bits ? v >> pos : 0;
	unsigned kept = pos < bits ? (len < bits - pos ? len : bits - pos) : 0;
	uint64_t mask = kept > 63 ? ~0ull : (1ull << kept) - 1;
	return sign ? (field & mask) | ~mask : field & mask;
}

static inline uint64_t insert(uint64_t f, uint64_t v, unsigned bits, uint32_t pos, uint32_t len)
{
	if (bits == 32) {
		pos &= 0xff;
		len &= 0xff;
	}
	if (pos >= bits || !len)
		return v;
	if (len > bits - pos)
		len = bits - pos;
	uint64_t mask = (len > 63 ? ~0ull : (1ull << len) - 1) << pos;
	return (v & ~mask) | ((f << pos) & mask);
}

static inline uint32_t sign_extend(uint32_t v, uint32_t n, bool wrap, bool is_signed)
{
	n = wrap ? n & 31 : n > 32 ? 32 : n;
	if (!n)
		return 0;
	if (n >= 32)
		return v;
	uint32_t mask = (1u << n) - 1;
	return is_signed && (v >> (n - 1) & 1) ? v | ~mask : v & mask;
}

static inline uint32_t mask_of(uint32_t pos, uint32_t len, bool wrap)
{
	pos = wrap ? pos & 31 : pos > 32 ? 32 : pos;
	len = wrap ? len & 31 : len > 32 ? 32 : len;
	uint64_t mask = ((1ull << len) - 1) << pos;
	return (uint32_t)mask;
}

/*
 * The position of the offset-th set bit of the mask from base, upwards or downwards; with offset 0,
 * base if its bit is set.
 */
static inline uint32_t nth_set(uint32_t mask, uint32_t base, int32_t offset)
{
	if (base > 31)
		return ~0u;
	if (offset == 0)
		return mask >> base & 1 ? base : ~0u;
	if (offset == INT32_MIN)
		return 0; /* as on an H200 */
	int step = offset > 0 ? 1 : -1;
	unsigned left = offset > 0 ? (unsigned)offset : 0u - (unsigned)offset;
	for (int pos = (int)base; pos >= 0 && pos < 32; pos += step)
		if ((mask >> pos & 1) && !--left)
			return (uint32_t)pos;
	return ~0u;
}

static inline uint32_t byte_of(uint64_t v, unsigned n)
{
	return (uint32_t)(v >> (8 * (n & 7))) & 0xff;
}

static inline uint32_t permute(uint32_t a, uint32_t b, uint32_t c, unsigned mode)
{
	uint64_t v = (uint64_t)b << 32 | a;
	uint32_t out = 0;
	for (unsigned k = 0; k < 4; k++) {
		unsigned n = c & 3, pick;
		uint32_t value;
		switch (mode) {
		case 1:
			pick = n + k;
			break; /* f4e */
		case 2:
			pick = n - k;
			break; /* b4e */
		case 3:
			pick = n;
			break; /* rc8 */
		case 4:
			pick = n > k ? n : k;
			break; /* ecl */
		case 5:
			pick = n < k ? n : k;
			break; /* ecr */
		case 6:
			pick = (n & 1) * 2 + (k & 1);
			break; /* rc16 */
		default:
			pick = c >> (4 * k) & 7;
			break;
		}
		value = byte_of(v, pick);
		if (!mode && (c >> (4 * k) & 8))
			value = value & 0x80 ? 0xff : 0;
		out |= value << (8 * k);
	}
	return out;
}

static inline uint32_t table3(uint32_t x, uint32_t y, uint32_t z, uint32_t lut)
{
	uint32_t r = 0;
	r |= lut & 0x01 ? ~x & ~y & ~z : 0;
	r |= lut & 0x02 ? ~x & ~y & z : 0;
	r |= lut & 0x04 ? ~x & y & ~z : 0;
	r |= lut & 0x08 ? ~x & y & z : 0;
	r |= lut & 0x10 ? x & ~y & ~z : 0;
	r |= lut & 0x20 ? x & ~y & z : 0;
	r |= lut & 0x40 ? x & y & ~z : 0;
	r |= lut & 0x80 ? x & y & z : 0;
	return r;
}

/* ---- Floats */

/*
 * The result for NaN operands: the second operand's NaN, else the third's, else the first's (for a
 * division, the first's before the second's), made quiet.  A NaN that the GPU generates itself has
 * its sign bit set.
 */
static inline double nan_f64(bool division, double x, double y, double z)
{
	if (division && x != x)
		y = x;
	uint64_t quiet = 1ull << 51;
	uint64_t bits = y != y ? ptx_double_bits(y)
		: z != z       ? ptx_double_bits(z)
		: x != x       ? ptx_double_bits(x)
			       : 0xfff8000000000000ull;
	return ptx_double(bits | quiet);
}

static inline float saturate(float v)
{
	return v != v ? 0.0f : v < 0 ? 0.0f : v > 1 ? 1.0f : v == 0 ? 0.0f : v;
}

/* Minimum and maximum: the number if only one operand is NaN; -0 is less than +0. */
static inline float least_of_equals(float x, float y)
{
	return ptx_float(ptx_float_bits(x) | ptx_float_bits(y));
}
static inline float most_of_equals(float x, float y)
{
	return ptx_float(ptx_float_bits(x) & ptx_float_bits(y));
}
static inline float min_f32(float x, float y)
{
	return x != x ? y : y != y ? x : x == y ? least_of_equals(x, y) : x < y ? x : y;
}
static inline float max_f32(float x, float y)
{
	return x != x ? y : y != y ? x : x == y ? most_of_equals(x, y) : x > y ? x : y;
}
static inline double min_f64(double x, double y)
{
	return x != x ? y : y != y ? x : x == y ? (__builtin_signbit(x) ? x : y) : x < y ? x : y;
}
static inline double max_f64(double x, double y)
{
	return x != x ? y : y != y ? x : x == y ? (__builtin_signbit(x) ? y : x) : x > y ? x : y;
}

/*
 * The usual operations, without flags.  A float holds sums and products of two f16 accurately
 * enough to round once more.  A sum with a product is accurate enough if its lowest bit records
 * that something was lost.
 */
static inline float fma_odd_f32(float x, float y, float z)
{
	float p = x * y, sum = p + z, back = sum - p, lost = (p - (sum - back)) + (z - back);
	uint32_t bits = ptx_float_bits(sum), step = (lost > 0) == (sum > 0) ? 1 : ~0u;
	return ptx_float(bits + (lost < 0 || lost > 0 ? step & -(~bits & 1) : 0));
}

/* ---- Atomics: the value in memory after an operation */

enum atomic_op { A_ADD, A_MIN, A_MAX, A_INC, A_DEC, A_AND, A_OR, A_XOR, A_EXCH, A_CAS };

static inline uint32_t atomic_32(int op, bool is_signed, uint32_t old, uint32_t v)
{
	bool less = is_signed ? (int32_t)old < (int32_t)v : old < v;
	switch (op) {
	case A_ADD:
		return old + v;
	case A_MIN:
		return less ? old : v;
	case A_MAX:
		return less ? v : old;
	case A_INC:
		return old >= v ? 0 : old + 1;
	case A_DEC:
		return old == 0 || old > v ? v : old - 1;
	case A_AND:
		return old & v;
	case A_OR:
		return old | v;
	case A_XOR:
		return old ^ v;
	default:
		return v;
	}
}

static inline uint64_t atomic_64(int op, bool is_signed, uint64_t old, uint64_t v)
{
	bool less = is_signed ? (int64_t)old < (int64_t)v : old < v;
	switch (op) {
	case A_ADD:
		return old + v;
	case A_MIN:
		return less ? old : v;
	case A_MAX:
		return less ? v : old;
	case A_AND:
		return old & v;
	case A_OR:
		return old | v;
	case A_XOR:
		return old ^ v;
	default:
		return v;
	}
}

/*
 * The memory itself computes sums in global memory: it flushes subnormals of f32, and it does not
 * make an f64 NaN quiet.  Other sums are ordinary additions.
 */
static inline uint32_t atomic_add_f32(uint32_t old, uint32_t v, bool in_memory)
{
	if (in_memory)
		return ptx_canonical(
			ptx_flush(ptx_flush(ptx_float(old)) + ptx_flush(ptx_float(v))));
	return ptx_canonical(ptx_float(old) + ptx_float(v));
}

static inline uint64_t atomic_add_f64(uint64_t old, uint64_t v, bool in_memory)
{
	uint64_t quiet = in_memory ? 0 : 1ull << 51, first = in_memory ? v : old,
		 second = in_memory ? old : v;
	double x = ptx_double(first), y = ptx_double(second);
	return x != x ? first | quiet : y != y ? second | quiet : ptx_double_bits(x + y);
}
