/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A parsed module: symbols, functions and decoded instructions.
 *
 * One thread builds a module (parse, link).  Afterwards nothing writes it, except the constant
 * pools of its entries, which are prepared at first use (under module->lock).
 *
 * The registers of a warp are stored as [register][lane].  A register of up to 32 bits takes 4
 * bytes per lane, a 64-bit one 8, a 128-bit one 16; a predicate is one 32-bit word with a bit for
 * every lane.  Operands are byte offsets into one of two banks: the frame's registers, or (top bit
 * set) the function's pool of constants.  The pool repeats every constant for 32 lanes, so that a
 * handler reads both banks in the same way.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softgpu/ptx/front/containers.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/ptx.h"

enum ptx_symbol_kind { SYM_VARIABLE, SYM_FUNCTION };
enum ptx_linkage { LINK_LOCAL, LINK_EXTERN, LINK_VISIBLE, LINK_WEAK, LINK_COMMON };

struct ptx_relocation {
	uint64_t offset;
	uint64_t addend;
	struct ptx_symbol *symbol;
	uint8_t size;  /* bytes written */
	uint8_t shift; /* of the address, for 0xFF00(symbol) */
};

struct ptx_symbol {
	const char *name;
	enum ptx_symbol_kind kind;
	enum ptx_linkage linkage;
	enum ptx_space space;
	bool defined, managed, dynamic; /* dynamic: extern shared array of unknown size */
	bool used_as_address;           /* a function whose address is taken */
	uint32_t align, unit, line;
	/* bytes of an array's element, which an index counts; 0: not an array */
	uint8_t element;
	uint64_t size;
	/* the first bytes, up to the last initialiser; zeros follow.  NULL: zeros only */
	uint8_t *init;
	uint64_t init_bytes;
	struct ptx_relocation *relocs;
	size_t n_relocs, cap_relocs;
	struct ckt_ptx_function *function;
	/* after linking: the symbol itself or the one that it refers to */
	struct ptx_symbol *target;
	struct ptx_symbol *alias;
	struct ckt_ptx_global *global;
	int builtin;           /* enum ptx_builtin if nothing defines the function */
	uint32_t shared_index; /* shared variable: its index in prepared->shared_offset */
};

struct ptx_warp;
struct ptx_block;
struct ptx_frame;
struct ptx_insn;

/* Runs one instruction for the lanes in mask (never 0).  Returns enum ptx_run. */
typedef int ptx_handler(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask);

enum ptx_run {
	RUN_NEXT = 0,
	RUN_JUMP, /* w->pc, w->frame or w->mask changed; continue with them */
	/* the group was split, ended or blocked, and its parts are stored; choose again */
	RUN_PICK,
	RUN_YIELD, /* continue at w->pc, but let others run first */
	RUN_FAULT,
};

struct ptx_insn {
	ptx_handler *fn;
	int32_t guard;         /* predicate, or PTX_OPERAND_NONE */
	int32_t d, a, b, c, e; /* operands */
	uint8_t guard_negated;
	/* small values of the handler: comparison, vector size, flags */
	uint8_t x, y, z;
	uint32_t line;
	int64_t imm;
	union {
		const void *side;
		int32_t *list;
		struct ptx_call *call;
	};
};

struct ptx_copy {
	uint32_t from, to, size;
}; /* offsets in the local frames of caller and callee */

struct ptx_call {
	struct ptx_symbol *symbol; /* NULL: indirect, address in insn->a */
	uint32_t *args;            /* offsets of the caller's parameter variables */
	uint32_t *arg_sizes;
	uint32_t n_args, n_rets;
	uint32_t *rets, *ret_sizes;
};

struct ptx_constant {
	uint64_t value, high;
	struct ptx_symbol *symbol; /* its address is added to value */
	uint32_t offset;
	uint8_t lane_bytes;
};

/* The part of an instruction that a trace prints; kept only if a trace is wanted. */
struct ptx_source_register {
	const char *name;
	uint32_t name_size;
	int32_t reg;
	uint8_t lane_bytes;
};
struct ptx_source {
	const char *text; /* NULL: belongs to the next instruction that has a text */
	unsigned n_regs;
	struct ptx_source_register regs[10];
};

struct ckt_ptx_function {
	struct ckt_ptx_function_info info;
	struct ckt_ptx_module *module;
	struct ptx_symbol *symbol;
	const char *text_name;
	uint32_t index; /* in module->functions */
	struct ptx_insn *code;
	size_t n_code, cap_code;
	struct ptx_source *sources; /* one per instruction; none without a trace */
	size_t n_sources, cap_sources;
	uint32_t reg_bytes;
	struct ptx_constant *constants;
	size_t n_constants, cap_constants;
	uint32_t constant_bytes;
	/* places in the frame; for an entry, in the parameter buffer */
	struct ckt_ptx_param *params, *rets;
	size_t n_rets;
	uint32_t frame_bytes; /* local memory of one activation */
	struct ptx_symbol **callees;
	size_t n_callees, cap_callees;
	struct ptx_symbol **shared; /* shared variables that the function names */
	size_t n_shared, cap_shared;
	bool has_indirect_call, has_alloca, has_body, noreturn;
	/* the message about the refused instruction; the function has no other code */
	const char *refusal;
	struct ptx_prepared *prepared; /* entries, made at the first launch */
};

/*
 * Machine code of a function (compile.h) that replaces run_group: runs the warp's group from its pc
 * until `stop` or the end of the budget.  Returns the same results, but stores no group where
 * run_group would. -1: the interpreter continues from the warp's state.
 */
typedef int ptx_runner(
	struct ptx_warp *w, const struct ptx_insn *code, uint32_t stop, unsigned *budget);
struct ptx_compiled;

/*
 * An entry with everything that depends on the entry: the places of shared variables, and the
 * constant pools with their addresses.
 */
struct ptx_prepared {
	uint8_t **pools;         /* by function index; NULL if not reachable */
	uint32_t *shared_offset; /* by shared_index */
	uint32_t static_shared_bytes, dynamic_shared_offset;
	uint32_t stack_bytes; /* the stack of the deepest chain of calls, without recursion */
	bool recursive;
	/* made together with this struct; its fields may change later */
	struct ptx_compiled *compiled;
};

struct ckt_ptx_module {
	pthread_mutex_t lock;
	struct ptx_arena arena;
	struct ptx_symbol **symbols;
	size_t n_symbols, cap_symbols;
	struct ckt_ptx_function **functions;
	size_t n_functions, cap_functions;
	struct ckt_ptx_function **entries;
	size_t n_entries, cap_entries;
	struct ckt_ptx_global *globals;
	struct ptx_symbol **global_symbols;
	size_t n_globals;
	uint32_t n_shared;
	unsigned ptx_version, target;
	bool allow_undefined, bound;
	struct ptx_compiled *compiled; /* the code of all entries, or NULL; under lock */
	struct ptx_map link;
};
