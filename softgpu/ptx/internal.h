/*
 * What the files of the PTX interpreter share: the parsed module, decoded instructions and the
 * state of a running warp.
 *
 * A module is built by one thread (parse, link), then never written again but for the lazily
 * prepared constant pools of its entries (under module->lock).  A block is run by one interpreter
 * thread at a time, so warps need no locks.
 *
 *   text --lexer--> parse_module (variables, functions) --parse_body--> raw instruction --decode_*--> struct ptx_insn
 *   launch: prepared entry (pools, shared layout) -> blocks -> warps -> groups of converged lanes -> insn->fn(warp, insn, mask)
 *
 * Registers of a warp are kept as [register][lane].  A register up to 32 bits takes 4 bytes a lane,
 * a 64-bit one 8, a 128-bit one 16; a predicate is one 32-bit word with a bit for every lane.
 * Operands are byte offsets into one of two banks: the frame's registers, or (top bit set) the
 * function's pool of constants, every constant repeated for 32 lanes, so a handler need not know
 * which it reads.
 */
#pragma once

#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softgpu/memory/memmap.h"
#include "softgpu/ptx/ptx.h"

enum {
	PTX_LANES = 32,
	/* no such operand; also "frame relative" for a local address */
	PTX_OPERAND_NONE = 0x7fffffff,
	PTX_MAX_MODS = 20,
	PTX_MAX_OPERANDS = 12,
	PTX_MAX_ELEMENTS = 8,
	PTX_MAX_BARRIERS = 16,
	PTX_MAX_CLUSTER = 16,
};

/*
 * Windows of the generic address space.  Host addresses end below 1 << 47, so these never meet
 * one.  A shared address has the rank of the block in its cluster plus one in bits 24-31, or zero
 * for the own block.
 */
#define PTX_SHARED_WINDOW 0x810000000000ull
#define PTX_LOCAL_WINDOW 0x820000000000ull
#define PTX_PARAM_WINDOW 0x830000000000ull
#define PTX_CODE_WINDOW 0x840000000000ull /* function addresses: index of the function times 16 */
#define PTX_WINDOW_SIZE 0x000100000000ull
#define PTX_SHARED_MAX (1u << 24) /* what the low bits of a shared address can say */
/*
 * The end of them is a place of the system's in every block, of which cooperative groups use
 * %reserved_smem_offset_1 and behind.
 */
#define PTX_RESERVED_BYTES 1024u
#define PTX_RESERVED_SHARED (PTX_SHARED_MAX - PTX_RESERVED_BYTES)

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

/* ---- Memory of the parser and a map from names (containers.c) */

struct ptx_arena {
	struct ptx_arena_chunk *chunks;
	size_t used, size;
	bool failed;
};
/* zeroed; NULL when out of memory */
void *ckt_ptx_arena_alloc(struct ptx_arena *arena, size_t size);
char *ckt_ptx_arena_string(struct ptx_arena *arena, const char *text, size_t size);
void ckt_ptx_arena_free(struct ptx_arena *arena);

struct ptx_map {
	struct ptx_map_entry {
		const char *key;
		uint32_t hash, size;
		void *value;
	} * entries;
	size_t n, capacity;
};
void *ckt_ptx_map_get(const struct ptx_map *map, const char *key, size_t size);
/* the key is not copied */
int ckt_ptx_map_put(struct ptx_map *map, const char *key, size_t size, void *value);
void ckt_ptx_map_free(struct ptx_map *map);

/* A growing array of plain elements; 0 or -ENOMEM. */
int ckt_ptx_grow(void **array, size_t *capacity, size_t need, size_t element_size);
#define PTX_PUSH(p, array, n, capacity, value)                                                  \
	do {                                                                                    \
		if ((n) == (capacity) &&                                                        \
			ckt_ptx_grow((void **)&(array), &(capacity), (n) + 1, sizeof *(array))) \
			ckt_ptx_out_of_memory(p);                                               \
		(array)[(n)++] = (value);                                                       \
	} while (0)

/* ---- Symbols of module scope */

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

/* ---- Instructions */

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

/* ---- Parsing */

enum ptx_token_kind { TK_END, TK_IDENT, TK_DOT, TK_INT, TK_F32, TK_F64, TK_STRING, TK_PUNCT };

struct ptx_token {
	enum ptx_token_kind kind;
	const char *text; /* of a TK_DOT without the dot */
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
	/* !p, or a unary minus before a register (never valid but for predicates) */
	bool negated;
	int32_t reg;  /* offset */
	int32_t reg2; /* second of p|q, or PTX_OPERAND_NONE */
	enum ptx_type type2;
	uint64_t value; /* constant; offset of a symbol or address */
	bool minus;     /* -r, of a register */
	uint8_t part;   /* r.b0 to r.b3, r.h0, r.h1: 1 to 6; else 0 */
	/* name[...]: what ld and st take for an address without brackets around it */
	bool indexed;
	/* name[register+constant]: bytes that the register in `reg`, of `type`, counts; else 0 */
	uint8_t index_scale;
	struct ptx_symbol *symbol;
	struct ptx_variable *variable; /* OP_LOCAL: local or parameter variable of the function */
	int sreg;
	const char *name; /* label or an unknown name */
	uint32_t name_size;
	/* OP_VECTOR, OP_LIST; of an OP_ADDRESS the base as one element, or NULL */
	struct ptx_operand *elements;
	unsigned n_elements;
};

struct ptx_raw {
	const char *op; /* base opcode, NUL-terminated */
	const char *mods[PTX_MAX_MODS];
	bool mod_used[PTX_MAX_MODS];
	unsigned n_mods;
	bool guarded;
	/* an operand has a part or a minus sign; who knows them clears it */
	bool adorned;
	struct ptx_operand guard;
	struct ptx_operand operands[PTX_MAX_OPERANDS];
	unsigned n_operands;
	uint32_t line;
	const char *start; /* of its text */
};

struct ptx_variable {
	enum ptx_space space;
	enum ptx_type type;
	uint32_t offset, size, align;
	uint8_t element; /* as of a symbol */
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
	struct ptx_map names; /* of this text */
	unsigned version, target;

	struct ckt_ptx_function *function; /* being parsed */
	struct ptx_scope *scope, *all_scopes;
	struct ptx_label_fixup *fixups;
	size_t n_fixups, cap_fixups;
	struct ptx_map constants;
	struct ptx_map spellings; /* of instructions, seen to be legal */
	int32_t cc;               /* predicate that holds the carry, or -1 */
	struct ptx_raw raw;
	struct ptx_operand pool[256]; /* elements of the operands of raw */
	/* depth: of nested expressions and lists, bounded since they recurse */
	unsigned n_pool, depth;
	/* broken: what is wrong is no PTX, so that nothing of the text is any good */
	bool in_instruction, broken;

	char message[512]; /* of the last failure */
	char *log;
	size_t log_size;
	enum ckt_ptx_result result;
	jmp_buf fail;
};

_Noreturn void ckt_ptx_fail(struct ptx_parser *p, enum ckt_ptx_result result, const char *format,
	...) __attribute__((format(printf, 3, 4)));
/* Likewise, of what no document has: the text is refused, not the function alone. */
#define ckt_ptx_fail_broken(p, ...) \
	((p)->broken = true, ckt_ptx_fail(p, CKT_PTX_INVALID, __VA_ARGS__))
_Noreturn void ckt_ptx_out_of_memory(struct ptx_parser *p);
void *ckt_ptx_new(struct ptx_parser *p, size_t size); /* in the module's arena, zeroed */
char *ckt_ptx_copy_name(struct ptx_parser *p, const char *text, size_t size);

void ckt_ptx_next(struct ptx_parser *p);        /* the next token into p->token */
void ckt_ptx_skip_line(struct ptx_parser *p);   /* the rest of the current line */
void ckt_ptx_skip_braces(struct ptx_parser *p); /* from p->token '{' to behind its '}' */
bool ckt_ptx_is(const struct ptx_parser *p, char punct);
bool ckt_ptx_accept(struct ptx_parser *p, char punct);
void ckt_ptx_expect(struct ptx_parser *p, char punct);
bool ckt_ptx_is_dot(const struct ptx_parser *p, const char *word);
bool ckt_ptx_accept_dot(struct ptx_parser *p, const char *word);
bool ckt_ptx_token_is(const struct ptx_token *t, const char *word);

/* A constant expression; kind says T_S64, T_F32 or T_F64 and the value is its bits. */
uint64_t ckt_ptx_constant_expression(struct ptx_parser *p, enum ptx_type *ret_kind);

void ckt_ptx_parse_text(struct ptx_parser *p);
void ckt_ptx_parse_body(struct ptx_parser *p); /* p->token is '{' */
struct ptx_prototype *ckt_ptx_parse_prototype(struct ptx_parser *p);
void ckt_ptx_parse_local_variable(struct ptx_parser *p, enum ptx_space space);
void ckt_ptx_parse_module_variable(
	struct ptx_parser *p, enum ptx_linkage linkage, enum ptx_space space);
/* A parameter list "( .param ... )" into an array; start offset given, end answered. */
struct ckt_ptx_param *ckt_ptx_parse_params(
	struct ptx_parser *p, size_t *ret_n, uint32_t *offset, enum ptx_space space, bool declare);
/* of this text, or NULL */
struct ptx_symbol *ckt_ptx_symbol(struct ptx_parser *p, const char *name, size_t size);
struct ptx_symbol *ckt_ptx_symbol_new(struct ptx_parser *p, const char *name,
	enum ptx_symbol_kind kind, enum ptx_linkage linkage);
void ckt_ptx_declare(struct ptx_parser *p, const char *name, size_t size, struct ptx_name *entry);
struct ptx_name *ckt_ptx_lookup(
	struct ptx_parser *p, struct ptx_scope *scope, const char *name, size_t size);

enum ptx_type ckt_ptx_type_from(const char *word, size_t size);
unsigned ckt_ptx_type_bytes(enum ptx_type type);
bool ckt_ptx_type_signed(enum ptx_type type);
bool ckt_ptx_type_float(enum ptx_type type);
/*
 * Whether a register may stand where an instruction says `type`: as wide, and no integer for a
 * float where neither is mere bits.
 */
bool ckt_ptx_type_takes(enum ptx_type type, enum ptx_type reg);

/* ---- Decoding */

int32_t ckt_ptx_reg_alloc(struct ptx_parser *p, enum ptx_type type);
int32_t ckt_ptx_constant(struct ptx_parser *p, uint64_t value, uint64_t high,
	struct ptx_symbol *symbol, unsigned lane_bytes);
/* fails where the opcode of p->raw is unknown or refused whatever follows */
void ckt_ptx_need_opcode(struct ptx_parser *p);
void ckt_ptx_decode(struct ptx_parser *p); /* p->raw into p->function->code */
/*
 * Whether the modifiers and types go together, for a .target (legal.c); an opcode without a rule is
 * its decoder's affair.
 */
/* Before the two below, once in a process; false without memory, and then it can be tried again. */
bool ckt_ptx_index_rules(void);
bool ckt_ptx_legal(const struct ptx_raw *raw, unsigned target);
/* a modifier that no rule of the opcode has, or NULL */
const char *ckt_ptx_stranger(const struct ptx_raw *raw);
/* with the guard of p->raw; valid until the next emit */
struct ptx_insn *ckt_ptx_emit(struct ptx_parser *p, ptx_handler *fn);
bool ckt_ptx_mod(struct ptx_parser *p, const char *name); /* takes the modifier when it is there */
bool ckt_ptx_mod_prefix(struct ptx_parser *p, const char *prefix); /* takes all that begin so */
/* takes the first of a NULL-ended list, or -1 */
int ckt_ptx_mod_one(struct ptx_parser *p, const char *const *names);
/* takes the next type; T_NONE when there is none */
enum ptx_type ckt_ptx_mod_type(struct ptx_parser *p);
enum ptx_type ckt_ptx_need_type(struct ptx_parser *p);
void ckt_ptx_need_operands(struct ptx_parser *p, unsigned least, unsigned most);
_Noreturn void ckt_ptx_bad(struct ptx_parser *p, const char *why);
/*
 * A source of lane_bytes (4, 8, 16; 0: predicate) a lane as an operand offset, emitting what must
 * be computed first.
 */
int32_t ckt_ptx_source(struct ptx_parser *p, unsigned index, enum ptx_type type);
int32_t ckt_ptx_source_of(struct ptx_parser *p, const struct ptx_operand *o, enum ptx_type type);
int32_t ckt_ptx_pred_source(struct ptx_parser *p, const struct ptx_operand *o); /* negation done */
/* A destination register of at least the type's width. */
int32_t ckt_ptx_dest(struct ptx_parser *p, unsigned index, enum ptx_type type);
int32_t ckt_ptx_dest_of(struct ptx_parser *p, const struct ptx_operand *o, enum ptx_type type);
unsigned ckt_ptx_lane_bytes(enum ptx_type type);
void ckt_ptx_label(
	struct ptx_parser *p, const struct ptx_operand *o, uint32_t insn, int32_t *place);
/* notes that the function uses it */
void ckt_ptx_need_symbol(struct ptx_parser *p, struct ptx_symbol *symbol);

struct ptx_opcode {
	const char *name;
	void (*decode)(struct ptx_parser *p);
};
/* of what PTX has and this interpreter does not */
void ckt_ptx_decode_refused(struct ptx_parser *p);
/* One table a file op_*.c, ended by a NULL name. */
ptx_handler
	ckt_ptx_exec_refused; /* op_control.c: the only instruction of a function that is refused */
extern const struct ptx_opcode ckt_ptx_opcodes_int[], ckt_ptx_opcodes_bits[],
	ckt_ptx_opcodes_compare[], ckt_ptx_opcodes_float[], ckt_ptx_opcodes_cvt[],
	ckt_ptx_opcodes_data[], ckt_ptx_opcodes_mem[], ckt_ptx_opcodes_atom[],
	ckt_ptx_opcodes_warp[], ckt_ptx_opcodes_control[], ckt_ptx_opcodes_async[],
	ckt_ptx_opcodes_video[], ckt_ptx_opcodes_matrix[], ckt_ptx_opcodes_cluster[],
	ckt_ptx_opcodes_texture[];

/* ---- Traces (trace.c) */
bool ckt_ptx_trace_wanted(void);
/* p->raw became the instructions from first on */
void ckt_ptx_trace_note(struct ptx_parser *p, size_t first);
void ckt_ptx_trace_start(struct ptx_block *block);
/*
 * Behind the instruction at pc of f, of which the traced lane took part or whose guard it failed.
 */
void ckt_ptx_trace_step(struct ptx_warp *w, const struct ptx_frame *frame,
	const struct ckt_ptx_function *f, uint32_t pc, bool ran);

/* ---- Special registers (sreg.c) */
int ckt_ptx_sreg_find(const char *name, size_t size); /* -1: not one */
enum ptx_type ckt_ptx_sreg_type(int sreg);
ptx_handler ckt_ptx_exec_sreg; /* x: the register, d: 4 or 8 bytes by y */

/* ---- Linking */
enum ckt_ptx_result ckt_ptx_link(struct ptx_parser *p);
int ckt_ptx_prepare(const struct ckt_ptx_function *entry, const struct ptx_prepared **ret_prepared);
void ckt_ptx_prepared_free(struct ckt_ptx_module *module, struct ptx_prepared *prepared);
uint64_t ckt_ptx_symbol_address(
	const struct ptx_symbol *symbol, const struct ptx_prepared *prepared);

/* ---- Builtin functions */
enum ptx_builtin {
	BUILTIN_NONE = 0,
	BUILTIN_VPRINTF,
	BUILTIN_MALLOC,
	BUILTIN_FREE,
	BUILTIN_ASSERTFAIL,
	BUILTIN_CG_HANDLE,
	BUILTIN_CG_SYNC,
	BUILTIN_SET_CONDITION
};
int ckt_ptx_builtin_find(const char *name);
int ckt_ptx_builtin_run(
	struct ptx_warp *w, const struct ptx_call *call, int builtin, uint32_t mask);

/* ---- Running */

struct ptx_frame {
	const struct ckt_ptx_function *function;
	struct ptx_frame *parent;
	/* every frame that the warp ever made, to free them with it */
	struct ptx_frame *all_next;
	const struct ptx_call *call; /* by which it was entered; NULL for an entry's */
	uint8_t *regs;
	const uint8_t *pool;
	uint32_t return_pc, depth, lanes, local_base, capacity;
	/* bytes of local memory taken by alloca, behind frame_bytes */
	uint32_t extra;
};

enum ptx_group_state { GROUP_READY = 0, GROUP_BARRIER, GROUP_WARP, GROUP_WHOLE };

struct ptx_group {
	struct ptx_frame *frame;
	/* pc of the next instruction; of a GROUP_WARP the waiting one itself */
	uint32_t mask, pc;
	/* GROUP_WARP: lanes that must come; GROUP_WHOLE waits for all that live */
	uint32_t sync_mask;
	uint32_t age; /* when it last ran */
	uint8_t state, barrier;
};

struct ptx_barrier {
	uint32_t expected;  /* threads; 0: all that live */
	uint32_t arrived;   /* lanes, for a quick "nobody" */
	uint32_t red_count; /* bar.red: lanes whose predicate was true */
	uint32_t red_lanes;
};

struct ptx_warp {
	uint8_t *bank[2]; /* registers, pool of the current frame */
	struct ptx_frame *frame;
	uint32_t mask; /* the running group's lanes */
	uint32_t pc;   /* next instruction */
	uint32_t live, index;
	/* the lane whose instructions are written down, as a mask, or 0 */
	uint32_t traced;
	struct ptx_block *block;
	uint8_t *local; /* lane l: local + l * stack_bytes */
	uint32_t stack_bytes;
	uint32_t polls; /* reads that look like waiting, in this slice */
	uint32_t fair_left, clock;
	/* the group that has waited longest runs next, kept from slice to slice */
	bool oldest_next;
	/* page + 1 that was found readable, and writable for the other */
	uint64_t last_page;
	uint64_t last_page_write;
	struct ptx_group groups[PTX_LANES];
	unsigned n_groups;
	uint32_t arrived[PTX_MAX_BARRIERS];
	/* lanes that came to the cluster's barrier in its present phase */
	uint32_t cluster_arrived;
	/* lanes waiting for the whole grid, since which phase of it */
	uint32_t grid_arrived, grid_phase[PTX_LANES];
	uint32_t tid[3][PTX_LANES];
	uint64_t stage[PTX_LANES]; /* what waiting lanes bring to a shuffle or vote */
	struct ptx_frame *spare;   /* frames to use again */
	struct ptx_frame *all_frames;
	struct ptx_frame *base;
};

/*
 * Blocks that see each other's shared memory.  All of a cluster are run by one thread, in turn; a
 * block without a cluster is one by itself.
 */
struct ptx_cluster {
	uint32_t n;
	bool arrived;                              /* somebody waits for the barrier to complete */
	struct ptx_block *blocks[PTX_MAX_CLUSTER]; /* by rank */
};

struct ptx_block {
	struct ptx_grid *grid;
	struct ptx_block *next;
	uint32_t ctaid[3];
	uint64_t linear;
	struct ptx_cluster *cluster, own_cluster; /* cluster: that of its first block */
	uint32_t rank;
	uint8_t *shared, *reserved;
	uint32_t shared_bytes;
	uint32_t n_warps, live_warps, n_threads;
	struct ptx_barrier barriers[PTX_MAX_BARRIERS];
	struct ptx_warp *warps;
	ptx_runner *const *runners; /* by function index; NULL: the interpreter runs all */
	uint64_t insns;             /* of its warps, not yet reported as heat */
	void *memory;
	size_t memory_bytes;
};

struct ptx_grid {
	const struct ckt_ptx_function *entry;
	const struct ptx_prepared *prepared;
	const struct ckt_ptx_launch *launch;
	uint32_t cluster[3], cluster_size; /* ones where the launch has none */
	/* clusters, in fact; under the pool's lock */
	uint64_t n_blocks, next_block, done_blocks;
	uint32_t resident, window, running;
	bool turn;
	struct ptx_block *ready_head, **ready_tail, *spare_blocks;
	struct ptx_grid *next;
	atomic_bool stop;
	pthread_mutex_t fault_lock;
	enum ckt_ptx_fault fault;
	char message[256];
	uint64_t grid_id;
	uint32_t stack_bytes;
	_Atomic uint64_t sync_arrived; /* threads that wait for the whole grid */
	_Atomic uint32_t sync_phase;
	void *workspace; /* grid synchronisation of cooperative groups */
	pthread_cond_t done;
};

/* Records the first fault of the grid and stops it; answers RUN_FAULT. */
int ckt_ptx_fault(struct ptx_warp *w, unsigned lane, enum ckt_ptx_fault fault, const char *format,
	...) __attribute__((format(printf, 4, 5)));

enum {
	PTX_FAIR_INSNS = 512
}; /* of a slice with several groups: long enough for a loop body to reach its join, short enough that a lock is soon let go */
enum ptx_slice { SLICE_RAN, SLICE_BLOCKED, SLICE_DONE, SLICE_WAITING, SLICE_FAULT };
enum ptx_slice ckt_ptx_warp_run(struct ptx_warp *w, unsigned budget);
enum ptx_slice ckt_ptx_block_run(struct ptx_block *block);
enum ptx_slice ckt_ptx_cluster_run(struct ptx_cluster *cluster);
/* completes its barrier when all living threads have come */
void ckt_ptx_cluster_check(struct ptx_cluster *cluster);
void ckt_ptx_group_store(struct ptx_warp *w, struct ptx_frame *frame, uint32_t mask, uint32_t pc);
struct ptx_frame *ckt_ptx_frame_enter(struct ptx_warp *w, const struct ckt_ptx_function *function,
	struct ptx_frame *parent, uint32_t mask);
void ckt_ptx_frame_leave(struct ptx_warp *w, struct ptx_frame *frame, uint32_t mask);
void ckt_ptx_warp_select(struct ptx_warp *w, struct ptx_frame *frame);
void ckt_ptx_barriers_check(struct ptx_block *block);
void ckt_ptx_lanes_exit(struct ptx_warp *w, uint32_t mask);

/*
 * Host memory behind a device address as lane `lane` sees it, checked, or NULL after recording the
 * fault.
 */
uint8_t *ckt_ptx_memory(struct ptx_warp *w, unsigned lane, enum ptx_space space, uint64_t address,
	uint32_t size, uint8_t access);
/*
 * The same, quick where the lane's page is that of the access before, or the address plainly one of
 * the block's shared memory. size_bytes is at most 16 or a power of two: an aligned access stays in
 * its page.
 */
static inline uint8_t *ckt_ptx_memory_quick(struct ptx_warp *w, unsigned lane, enum ptx_space space,
	uint64_t address, uint32_t size_bytes, uint8_t access)
{
	bool aligned = !(address & (size_bytes - 1));
	if (space == SP_SHARED) {
		if (aligned && address < PTX_SHARED_MAX &&
			address + size_bytes <= w->block->shared_bytes)
			return w->block->shared + address;
	} else if (space <= SP_CONST) {
		/*
		 * Pages of memory lie below every window, so one that was looked up is global
		 * memory's.
		 */
		uint64_t page = (address >> CKT_SOFT_PAGE_SHIFT) + 1;
		if (aligned &&
			page == (access & CKT_SOFT_PAGE_WRITE ? w->last_page_write : w->last_page))
			return (uint8_t *)(uintptr_t)address;
	}
	return ckt_ptx_memory(w, lane, space, address, size_bytes, access);
}
static inline uint8_t *ckt_ptx_local(struct ptx_warp *w, unsigned lane, uint32_t offset)
{
	return w->local + (size_t)lane * w->stack_bytes + offset;
}

/* ---- For handlers */

#define PTX_CONST_BIT 0x80000000u
static inline void *ptx_at(const struct ptx_warp *w, int32_t operand)
{
	return w->bank[(uint32_t)operand >> 31] + ((uint32_t)operand & 0x7fffffffu);
}

#ifdef __clang__
#define PTX_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define PTX_INDEPENDENT _Pragma("GCC ivdep")
#endif

/*
 * The statement for every lane l of mask m.  A register is wholly the same as another or apart, so
 * lanes never depend on each other.
 */
#define PTX_FOR_LANES(m, ...)                                                   \
	do {                                                                    \
		if ((m) == 0xffffffffu) {                                       \
			PTX_INDEPENDENT                                         \
			for (unsigned l = 0; l < PTX_LANES; l++) {              \
				__VA_ARGS__                                     \
			}                                                       \
		} else {                                                        \
			for (uint32_t rest_ = (m); rest_; rest_ &= rest_ - 1) { \
				unsigned l = (unsigned)__builtin_ctz(rest_);    \
				__VA_ARGS__                                     \
			}                                                       \
		}                                                               \
	} while (0)
