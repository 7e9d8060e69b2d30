/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A parsed module: symbols, functions and decoded instructions.
 *
 * One thread builds a module (parse, link).  Afterwards nothing writes it, except for the lazily prepared
 * constant pools of its entries (under module->lock).
 *
 * Registers of a warp are kept as [register][lane].  A register up to 32 bits takes 4 bytes a lane,
 * a 64-bit one 8, a 128-bit one 16; a predicate is one 32-bit word with a bit for every lane.
 * Operands are byte offsets into one of two banks: the frame's registers, or (top bit set) the
 * function's pool of constants, every constant repeated for 32 lanes, so a handler need not know
 * which it reads.
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
	/* bytes of one of an array, which an index counts; 0: no array */
	uint8_t element;
	uint64_t size;
	uint8_t *init; /* size bytes, or NULL for zeros */
	struct ptx_relocation *relocs;
	size_t n_relocs, cap_relocs;
	struct ckt_ptx_function *function;
	struct ptx_symbol *target; /* after linking: itself or what it refers to */
	struct ptx_symbol *alias;
	struct ckt_ptx_global *global;
	int builtin;           /* enum ptx_builtin where nothing defines the function */
	uint32_t shared_index; /* of a shared variable: place in prepared->shared_offset */
};

struct ptx_warp;
struct ptx_block;
struct ptx_frame;
struct ptx_insn;

/* Runs one instruction for the lanes in mask (never 0).  Answers enum ptx_run. */
typedef int ptx_handler(struct ptx_warp *w, const struct ptx_insn *i, uint32_t mask);

enum ptx_run {
	RUN_NEXT = 0,
	RUN_JUMP, /* w->pc, w->frame or w->mask changed; go on with them */
	/* the group was split, ended or blocked: its groups are stored, choose again */
	RUN_PICK,
	RUN_YIELD, /* go on at w->pc, but let others run first */
	RUN_FAULT,
};

struct ptx_insn {
	ptx_handler *fn;
	int32_t guard;         /* predicate, or PTX_OPERAND_NONE */
	int32_t d, a, b, c, e; /* operands */
	uint8_t guard_negated;
	/* small values the handler knows: comparison, vector size, flags */
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

/* What a trace tells about an instruction; kept only where one is wanted. */
struct ptx_source_register {
	const char *name;
	uint32_t name_size;
	int32_t reg;
	uint8_t lane_bytes;
};
struct ptx_source {
	const char *text; /* NULL: part of the next instruction that has one */
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
	struct ptx_source *sources; /* by instruction; none without a trace */
	size_t n_sources, cap_sources;
	uint32_t reg_bytes;
	struct ptx_constant *constants;
	size_t n_constants, cap_constants;
	uint32_t constant_bytes;
	/* places in the frame; for an entry in the parameter buffer */
	struct ckt_ptx_param *params, *rets;
	size_t n_rets;
	uint32_t frame_bytes; /* local memory of one activation */
	struct ptx_symbol **callees;
	size_t n_callees, cap_callees;
	struct ptx_symbol **shared; /* shared variables it names */
	size_t n_shared, cap_shared;
	bool has_indirect_call, has_alloca, has_body, noreturn;
	/* the line about its instruction that is refused, and is all of its code */
	const char *refusal;
	struct ptx_prepared *prepared; /* entries, made at the first launch */
};

/*
 * The machine code of a function (compile.h) in place of run_group: runs warp's group from its pc
 * until `stop` or the budget's end. Answers as run_group does, having stored no group where that
 * would; -1: the interpreter goes on from where the warp is.
 */
typedef int ptx_runner(
	struct ptx_warp *w, const struct ptx_insn *code, uint32_t stop, unsigned *budget);
struct ptx_compiled;

/*
 * An entry with everything that depends on which entry it is: where shared variables lie and the
 * pools holding their addresses.
 */
struct ptx_prepared {
	uint8_t **pools;         /* by function index; NULL where not reachable */
	uint32_t *shared_offset; /* by shared_index */
	uint32_t static_shared_bytes, dynamic_shared_offset;
	uint32_t stack_bytes; /* what a chain of calls needs, without recursion */
	bool recursive;
	struct ptx_compiled *compiled; /* made with it; its own fields change */
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
	struct ptx_compiled *compiled; /* of all entries together, or NULL; under lock */
	struct ptx_map link;
};
