/* SPDX-License-Identifier: Apache-2.0 */
/* The fundamental types of PTX (types.c). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum ptx_type {
	T_NONE = 0,
	T_PRED,
	T_B8,
	T_U8,
	T_S8,
	T_B16,
	T_U16,
	T_S16,
	T_B32,
	T_U32,
	T_S32,
	T_B64,
	T_U64,
	T_S64,
	T_B128,
	T_F16,
	T_BF16,
	T_F32,
	T_F64,
	T_F16X2,
	T_BF16X2,
	T_U16X2,
	T_S16X2,
	T_TF32,
	T_E4M3X2,
	T_E5M2X2,
	T_F32X2,
	T_UE8M0X2,
	T_OPAQUE, /* .texref, .samplerref, .surfref */
	T_COUNT,
};

enum ptx_type ckt_ptx_type_from(const char *word, size_t size);
unsigned ckt_ptx_type_bytes(enum ptx_type type);
bool ckt_ptx_type_signed(enum ptx_type type);
bool ckt_ptx_type_float(enum ptx_type type);
/*
 * Whether an instruction of `type` may use the register: the width must match, and an integer does
 * not match a float unless one of the two is untyped bits.
 */
bool ckt_ptx_type_takes(enum ptx_type type, enum ptx_type reg);
