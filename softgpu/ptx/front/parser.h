/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parser of a text: tokens (lexer.c), module scope (parse_module.c), functions (parse_body.c).
 *
 *	text --lexer--> parse_module (variables, functions) --parse_body--> raw instruction
 *	     --decode_*--> struct ptx_insn
 */
#pragma once

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softgpu/ptx/front/containers.h"
#include "softgpu/ptx/front/types.h"
#include "softgpu/ptx/program.h"

enum ptx_token_kind { TK_END, TK_IDENT, TK_DOT, TK_INT, TK_F32, TK_F64, TK_STRING, TK_PUNCT };

struct ptx_token {
	enum ptx_token_kind kind;
	const char *text; /* of a TK_DOT: without the dot */
	uint32_t size, line;
	uint64_t value; /* bits of a number */
	char punct;
};

enum ptx_operand_kind {
	OP_REG,
	OP_CONST,
	OP_SYMBOL,
	OP_LOCAL,
	OP_SREG,
	OP_VECTOR,
	OP_ADDRESS,
	OP_LABEL,
	OP_SINK,
	OP_LIST,
	OP_NAME
};

struct ptx_operand {
	enum ptx_operand_kind kind;
	enum ptx_type type; /* of a register; T_F32, T_F64 or T_S64 of a constant */
	/* !p, or a unary minus before a register (valid only for predicates) */
	bool negated;
	int32_t reg;  /* offset */
	int32_t reg2; /* second of p|q, or PTX_OPERAND_NONE */
	enum ptx_type type2;
	uint64_t value; /* constant; offset of a symbol or address */
	bool minus;     /* -r, of a register */
	uint8_t part;   /* r.b0 to r.b3, r.h0, r.h1: 1 to 6; else 0 */
	/* name[...]: the form that ld and st accept for an address without brackets */
	bool indexed;
	/*
	 * name[register+constant]: bytes per step of the register in `reg`, which has type `type`;
	 * otherwise 0
	 */
	uint8_t index_scale;
	struct ptx_symbol *symbol;
	struct ptx_variable *variable; /* OP_LOCAL: local or parameter variable of the function */
	int sreg;
	const char *name; /* label or an unknown name */
	uint32_t name_size;
	/* OP_VECTOR, OP_LIST; for an OP_ADDRESS the base as one element, or NULL */
	struct ptx_operand *elements;
	unsigned n_elements;
};

struct ptx_raw {
	const char *op; /* base opcode, NUL-terminated */
	const char *mods[PTX_MAX_MODS];
	bool mod_used[PTX_MAX_MODS];
	unsigned n_mods;
	bool guarded;
	/* an operand has a part or a minus sign; a decoder that handles it clears this */
	bool adorned;
	struct ptx_operand guard;
	struct ptx_operand operands[PTX_MAX_OPERANDS];
	unsigned n_operands;
	uint32_t line;
	const char *start; /* the beginning of its text */
};

struct ptx_variable {
	enum ptx_space space;
	enum ptx_type type;
	uint32_t offset, size, align;
	uint8_t element; /* as in struct ptx_symbol */
};

enum ptx_name_kind {
	NAME_REG,
	NAME_REG_RANGE,
	NAME_VARIABLE,
	NAME_LABEL,
	NAME_SYMBOL,
	NAME_PROTOTYPE,
	NAME_TARGETS
};

struct ptx_name {
	enum ptx_name_kind kind;
	enum ptx_type type;
	int32_t reg; /* offset, -1: not used yet */
	uint32_t count;
	struct ptx_variable variable;
	struct ptx_symbol *symbol;
	uint32_t pc;
	struct ptx_prototype *prototype;
	struct ptx_target_list *targets;
};

struct ptx_target_list {
	const char **names;
	uint32_t *name_sizes;
	uint32_t n;
};

struct ptx_prototype {
	uint32_t n_params, n_rets;
	struct ckt_ptx_param *params, *rets;
};

struct ptx_scope {
	struct ptx_scope *parent;
	struct ptx_map names;
	struct ptx_scope *next_all;
};

struct ptx_label_fixup {
	uint32_t insn;
	struct ptx_scope *scope;
	const char *name;
	uint32_t name_size, line;
	int32_t *place; /* NULL: insn->imm */
};

struct ptx_parser {
	struct ckt_ptx_module *module;
	const char *text_name, *begin, *cursor, *end;
	uint32_t line, unit;
	struct ptx_token token;
	struct ptx_map names; /* the names of this text */
	unsigned version, target;

	struct ckt_ptx_function *function; /* the function being parsed */
	struct ptx_scope *scope, *all_scopes;
	struct ptx_label_fixup *fixups;
	size_t n_fixups, cap_fixups;
	struct ptx_map constants;
	struct ptx_map spellings; /* instructions that were found legal */
	int32_t cc;               /* predicate that holds the carry, or -1 */
	struct ptx_raw raw;
	struct ptx_operand pool[256]; /* the elements of raw's operands */
	/* depth: nesting of expressions and lists, limited because parsing them recurses */
	unsigned n_pool, depth;
	/* broken: the text is not PTX, so none of it is usable */
	bool in_instruction, broken;

	char message[512]; /* the last failure */
	char *log;
	size_t log_size;
	enum ckt_ptx_result result;
	jmp_buf fail;
};

_Noreturn void ckt_ptx_fail(struct ptx_parser *p, enum ckt_ptx_result result, const char *format,
	...) __attribute__((format(printf, 3, 4)));
/* Fails for text that no document describes: refuses the whole text and not only the function. */
#define ckt_ptx_fail_broken(p, ...) \
	((p)->broken = true, ckt_ptx_fail(p, CKT_PTX_INVALID, __VA_ARGS__))
_Noreturn void ckt_ptx_out_of_memory(struct ptx_parser *p);
void *ckt_ptx_new(struct ptx_parser *p, size_t size); /* in the module's arena, zeroed */
char *ckt_ptx_copy_name(struct ptx_parser *p, const char *text, size_t size);

void ckt_ptx_next(struct ptx_parser *p);        /* reads the next token into p->token */
void ckt_ptx_skip_line(struct ptx_parser *p);   /* skips the rest of the current line */
void ckt_ptx_skip_braces(struct ptx_parser *p); /* skips from p->token '{' past its '}' */
bool ckt_ptx_is(const struct ptx_parser *p, char punct);
bool ckt_ptx_accept(struct ptx_parser *p, char punct);
void ckt_ptx_expect(struct ptx_parser *p, char punct);
bool ckt_ptx_is_dot(const struct ptx_parser *p, const char *word);
bool ckt_ptx_accept_dot(struct ptx_parser *p, const char *word);
bool ckt_ptx_token_is(const struct ptx_token *t, const char *word);

/*
 * Parses a constant expression; *ret_kind is T_S64, T_F32 or T_F64, and the result is the value's
 * bits.
 */
uint64_t ckt_ptx_constant_expression(struct ptx_parser *p, enum ptx_type *ret_kind);

void ckt_ptx_parse_text(struct ptx_parser *p);
void ckt_ptx_parse_body(struct ptx_parser *p); /* Precondition: p->token is '{' */
struct ptx_prototype *ckt_ptx_parse_prototype(struct ptx_parser *p);
void ckt_ptx_parse_local_variable(struct ptx_parser *p, enum ptx_space space);
void ckt_ptx_parse_module_variable(
	struct ptx_parser *p, enum ptx_linkage linkage, enum ptx_space space);
/* Parses a parameter list "( .param ... )" into an array; advances *offset to the list's end. */
struct ckt_ptx_param *ckt_ptx_parse_params(
	struct ptx_parser *p, size_t *ret_n, uint32_t *offset, enum ptx_space space, bool declare);
/* a symbol of this text, or NULL */
struct ptx_symbol *ckt_ptx_symbol(struct ptx_parser *p, const char *name, size_t size);
struct ptx_symbol *ckt_ptx_symbol_new(struct ptx_parser *p, const char *name,
	enum ptx_symbol_kind kind, enum ptx_linkage linkage);
void ckt_ptx_declare(struct ptx_parser *p, const char *name, size_t size, struct ptx_name *entry);
struct ptx_name *ckt_ptx_lookup(
	struct ptx_parser *p, struct ptx_scope *scope, const char *name, size_t size);
