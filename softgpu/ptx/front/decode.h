/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes raw instructions (decode.c): the functions that the decoders in op_*.c call. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "softgpu/ptx/front/parser.h"

int32_t ckt_ptx_reg_alloc(struct ptx_parser *p, enum ptx_type type);
int32_t ckt_ptx_constant(struct ptx_parser *p, uint64_t value, uint64_t high,
	struct ptx_symbol *symbol, unsigned lane_bytes);
/* fails if the opcode of p->raw is unknown or always refused */
void ckt_ptx_need_opcode(struct ptx_parser *p);
void ckt_ptx_decode(struct ptx_parser *p); /* decodes p->raw into p->function->code */

/* adds an instruction with the guard of p->raw; the pointer is valid until the next emit */
struct ptx_insn *ckt_ptx_emit(struct ptx_parser *p, ptx_handler *fn);
bool ckt_ptx_mod(struct ptx_parser *p, const char *name); /* consumes the modifier if present */
/* consumes all modifiers with that prefix */
bool ckt_ptx_mod_prefix(struct ptx_parser *p, const char *prefix);
/* consumes the first modifier of a NULL-ended list and returns its index, or -1 */
int ckt_ptx_mod_one(struct ptx_parser *p, const char *const *names);
/* consumes the next type; T_NONE if there is none */
enum ptx_type ckt_ptx_mod_type(struct ptx_parser *p);
enum ptx_type ckt_ptx_need_type(struct ptx_parser *p);
void ckt_ptx_need_operands(struct ptx_parser *p, unsigned least, unsigned most);
_Noreturn void ckt_ptx_bad(struct ptx_parser *p, const char *why);
/*
 * The operand offset of a source with lane_bytes per lane (4, 8, 16; 0: predicate).  Emits an
 * instruction if the source must be computed first.
 */
int32_t ckt_ptx_source(struct ptx_parser *p, unsigned index, enum ptx_type type);
int32_t ckt_ptx_source_of(struct ptx_parser *p, const struct ptx_operand *o, enum ptx_type type);
/* handles negation */
int32_t ckt_ptx_pred_source(struct ptx_parser *p, const struct ptx_operand *o);
/* A destination register of at least the type's width. */
int32_t ckt_ptx_dest(struct ptx_parser *p, unsigned index, enum ptx_type type);
int32_t ckt_ptx_dest_of(struct ptx_parser *p, const struct ptx_operand *o, enum ptx_type type);
unsigned ckt_ptx_lane_bytes(enum ptx_type type);
void ckt_ptx_label(
	struct ptx_parser *p, const struct ptx_operand *o, uint32_t insn, int32_t *place);
/* notes that the function uses the symbol */
void ckt_ptx_need_symbol(struct ptx_parser *p, struct ptx_symbol *symbol);

struct ptx_opcode {
	const char *name;
	void (*decode)(struct ptx_parser *p);
};
/* for PTX that exists but that this interpreter does not support */
void ckt_ptx_decode_refused(struct ptx_parser *p);
ptx_handler ckt_ptx_exec_refused; /* op_control.c: the only instruction of a refused function */
/* Each file op_*.c has one table; the last entry has a NULL name. */
extern const struct ptx_opcode ckt_ptx_opcodes_int[], ckt_ptx_opcodes_bits[],
	ckt_ptx_opcodes_compare[], ckt_ptx_opcodes_float[], ckt_ptx_opcodes_cvt[],
	ckt_ptx_opcodes_data[], ckt_ptx_opcodes_mem[], ckt_ptx_opcodes_atom[],
	ckt_ptx_opcodes_warp[], ckt_ptx_opcodes_control[], ckt_ptx_opcodes_async[],
	ckt_ptx_opcodes_video[], ckt_ptx_opcodes_matrix[], ckt_ptx_opcodes_cluster[],
	ckt_ptx_opcodes_texture[];
