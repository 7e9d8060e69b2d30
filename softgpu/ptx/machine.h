/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine that PTX describes, as the interpreter implements it: lanes, state spaces and the
 * windows of the generic address space.
 */
#pragma once

#include <stdint.h>

enum {
	PTX_LANES = 32,
	/* no such operand; in a local address: relative to the frame */
	PTX_OPERAND_NONE = 0x7fffffff,
	PTX_MAX_MODS = 20,
	PTX_MAX_OPERANDS = 12,
	PTX_MAX_ELEMENTS = 8,
	PTX_MAX_BARRIERS = 16,
	PTX_MAX_CLUSTER = 16,
};

/*
 * Windows of the generic address space.  Host addresses end below 1 << 47, so no window overlaps
 * them.  Bits 24-31 of a shared address hold the rank of the block in its cluster plus one, or zero
 * for the own block.
 */
#define PTX_SHARED_WINDOW 0x810000000000ull
#define PTX_LOCAL_WINDOW 0x820000000000ull
#define PTX_PARAM_WINDOW 0x830000000000ull
#define PTX_CODE_WINDOW 0x840000000000ull /* function addresses: index of the function times 16 */
#define PTX_WINDOW_SIZE 0x000100000000ull
#define PTX_SHARED_MAX (1u << 24) /* the range of a shared address's low bits */
/*
 * The last bytes of a block's shared memory are the system's; cooperative groups use
 * %reserved_smem_offset_1 and the bytes after it.
 */
#define PTX_RESERVED_BYTES 1024u
#define PTX_RESERVED_SHARED (PTX_SHARED_MAX - PTX_RESERVED_BYTES)

enum ptx_space {
	SP_GENERIC = 0,
	SP_REG,
	SP_GLOBAL,
	SP_CONST,
	SP_SHARED,
	SP_LOCAL,
	SP_PARAM,
	SP_PARAM_ENTRY
};
