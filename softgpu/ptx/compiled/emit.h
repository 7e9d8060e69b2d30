/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state that the files emit*.c share while they write the C text of one function.  Threading:
 * one thread per emitter.
 *
 *	emit_form    the form of an instruction, and the registers that it touches
 *	emit_live    blocks, and the registers that are read after an instruction
 *	emit_lane    stretches: instructions that each lane computes alone
 *	emit_access  loads and stores
 *	emit_atom    atomics
 *	emit_warp    shuffles, votes, matches and reductions of a whole warp
 *	emit         control flow, functions, the whole text
 */
#pragma once

#include <stdarg.h>
#include <stdio.h>

#include "softgpu/ptx/compiled/compile.h"
#include "softgpu/ptx/compiled/form.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

enum {
	/* instructions of a stretch's function: a compiler's time grows faster than their number */
	EMIT_STRETCH = 64,
	EMIT_VALUE = 48, /* bytes of the longest name or text of an operand's value */
	EMIT_ACCESSES = 512,
	EMIT_ATOMICS = 1024,
	EMIT_WAYS = 8,
};

struct emit_block {
	uint32_t first, end;
	uint64_t *live_in;
};

struct emitter {
	FILE *out;
	const struct ckt_ptx_function *f;
	uint32_t param_bytes, n;
	const struct ptx_form **forms;
	bool *starts; /* by instruction: whether a block starts here */
	struct emit_block *blocks;
	uint32_t n_blocks, *block_of; /* by index of the instruction that starts the block */
	uint32_t *ids, n_ids, words;  /* by offset / 4: number of the register plus one */
	uint64_t *live;
	/* arrangements of lanes' addresses that this block has found, and where (pc) */
	struct emit_way {
		int32_t address;
		uint32_t size, pc;
	} ways[EMIT_WAYS];
	unsigned n_ways;
	/*
	 * which functions of loads and stores, then of atomics, are written; EMIT_ACCESSES and
	 * EMIT_ATOMICS of them
	 */
	bool *said;
	bool quick; /* use the forms' quick texts */
	bool failed;
};

static inline void __attribute__((format(printf, 2, 3)))
say(struct emitter *e, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	if (vfprintf(e->out, format, ap) < 0)
		e->failed = true;
	va_end(ap);
}

/* ---- Instructions (emit_form.c) */

/* The registers that an instruction reads and writes.  all: it may touch any register. */
struct emit_touched {
	int32_t reads[2 * PTX_FORM_REGS], writes[PTX_FORM_REGS];
	unsigned n_reads, n_writes;
	bool all;
};
void ckt_emit_touch(
	const struct ptx_form *form, const struct ptx_insn *i, struct emit_touched *ret_touched);

static inline bool ckt_emit_is_register(int32_t operand)
{
	return operand != PTX_OPERAND_NONE && operand >= 0;
}
/* NULL if the operand is not a constant */
const struct ptx_constant *ckt_emit_constant(const struct ckt_ptx_function *f, int32_t operand);
/* The C expression for an operand's row of values: "R + 128", "K + 0". */
static inline const char *ckt_emit_row(int32_t operand, char text[EMIT_VALUE])
{
	snprintf(text, EMIT_VALUE, "%s + %u", operand < 0 ? "K" : "R",
		(uint32_t)operand & 0x7fffffffu);
	return text;
}
static inline const char *ckt_emit_type(unsigned bytes)
{
	return bytes == 8 ? "uint64_t" : "uint32_t";
}

/* ---- Blocks and live registers (emit_live.c) */

void ckt_emit_find_blocks(struct emitter *e);
bool ckt_emit_find_live(struct emitter *e); /* false: out of memory, or too much code */
/* Sets e->live to the registers that are read after instruction end - 1 of block b. */
void ckt_emit_live_at(struct emitter *e, const struct emit_block *b, uint32_t end);
bool ckt_emit_is_live(struct emitter *e, int32_t reg); /* whether reg is in e->live */

/* ---- Stretches (emit_lane.c) */

struct emit_local {
	int32_t reg;
	uint8_t bytes, how;
};
struct emit_stretch {
	struct emit_local locals[EMIT_STRETCH * 6];
	unsigned n;
};

bool ckt_emit_fits_lane(const struct emitter *e, uint32_t pc);
/* The end of the stretch that begins at `first`, and its registers. */
uint32_t ckt_emit_stretch_end(struct emitter *e, const struct emit_block *b, uint32_t first,
	struct emit_stretch *ret_stretch);
void ckt_emit_say_stretch(struct emitter *e, const struct emit_block *b, uint32_t first,
	uint32_t end, const struct emit_stretch *s);

/* ---- Loads and stores (emit_access.c) */

struct emit_access {
	bool is_load, shared;
	unsigned n, bytes, address_bytes;
	int32_t address, regs[8];
	uint8_t slots[8];
	bool is_signed[8];
};

bool ckt_emit_find_access(const struct emitter *e, uint32_t pc, struct emit_access *ret_access);
void ckt_emit_say_access_functions(struct emitter *e);
void ckt_emit_say_access(struct emitter *e, uint32_t pc, const struct emit_access *a);
/*
 * Writes code that determines how the addresses in a register of a full warp are arranged.  Returns
 * the name of the result: 1 side by side, 2 all equal.  All accesses of a block by the same
 * register share one result.
 */
const char *ckt_emit_say_way(struct emitter *e, uint32_t pc, int32_t address,
	unsigned address_bytes, uint32_t size, char text[EMIT_VALUE]);
/* forgets arrangements of registers that the instruction writes */
void ckt_emit_forget_ways(struct emitter *e, uint32_t pc);

/* ---- atom and red (emit_atom.c) */

bool ckt_emit_fits_atomic(const struct emitter *e, uint32_t pc);
void ckt_emit_say_atomic_functions(struct emitter *e);
void ckt_emit_say_atomic(struct emitter *e, uint32_t pc);

/* ---- Instructions of a whole warp (emit_warp.c) */

bool ckt_emit_fits_warp(const struct emitter *e, uint32_t pc);
void ckt_emit_say_warp(struct emitter *e, uint32_t pc);

/* ---- Control flow (emit.c) */

void ckt_emit_say_call(struct emitter *e, uint32_t pc); /* calls the handler for the lanes m */

/* reduces m to the lanes that run the instruction */
void ckt_emit_say_guard(struct emitter *e, const struct ptx_insn *i);
