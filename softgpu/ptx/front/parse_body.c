/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the body of a function: scopes, registers, labels and instructions.  Each instruction goes
 * to the decoder as soon as it is read.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/execution/sreg.h"
#include "softgpu/ptx/front/containers.h"
#include "softgpu/ptx/front/decode.h"
#include "softgpu/ptx/front/parser.h"
#include "softgpu/ptx/front/types.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

void ckt_ptx_declare(struct ptx_parser *p, const char *name, size_t size, struct ptx_name *entry)
{
	if (ckt_ptx_map_get(&p->scope->names, name, size))
		ckt_ptx_fail(p, CKT_PTX_INVALID, "%.*s is declared twice", (int)size, name);
	if (ckt_ptx_map_put(&p->scope->names, name, size, entry))
		ckt_ptx_out_of_memory(p);
}

/* A number of at most nine digits. */
static uint64_t number_in(const char *digits, size_t size)
{
	uint64_t number = 0;
	for (size_t k = 0; k < size; k++)
		number = number * 10 + (uint64_t)(digits[k] - '0');
	return number;
}

struct ptx_name *ckt_ptx_lookup(
	struct ptx_parser *p, struct ptx_scope *scope, const char *name, size_t size)
{
	size_t stem = size;
	while (stem && name[stem - 1] >= '0' && name[stem - 1] <= '9' && size - stem < 9)
		stem--;
	for (; scope; scope = scope->parent) {
		struct ptx_name *entry = ckt_ptx_map_get(&scope->names, name, size);
		if (entry && entry->kind != NAME_REG_RANGE)
			return entry;
		/* %r<63> declares %r0 to %r62; each gets its place at its first use. */
		for (size_t k = stem; k < size; k++) {
			struct ptx_name *range = ckt_ptx_map_get(&scope->names, name, k);
			if (range && range->kind == NAME_REG_RANGE &&
				number_in(name + k, size - k) < range->count) {
				entry = ckt_ptx_new(p, sizeof *entry);
				*entry = (struct ptx_name){
					.kind = NAME_REG, .type = range->type, .reg = -1};
				if (ckt_ptx_map_put(&scope->names, name, size, entry))
					ckt_ptx_out_of_memory(p);
				return entry;
			}
		}
	}
	return NULL;
}

int32_t ckt_ptx_reg_alloc(struct ptx_parser *p, enum ptx_type type)
{
	struct ckt_ptx_function *f = p->function;
	unsigned bytes = ckt_ptx_lane_bytes(type) * PTX_LANES;
	/* Vector instructions need aligned operands for speed; a predicate is one word. */
	unsigned align = bytes ? 64 : 4;
	f->reg_bytes = (f->reg_bytes + align - 1) & ~(align - 1);
	int32_t place = (int32_t)f->reg_bytes;
	f->reg_bytes += bytes ? bytes : 4;
	if (f->reg_bytes > (64u << 20))
		ckt_ptx_fail(p, CKT_PTX_INVALID, "too many registers");
	return place;
}

static void parse_registers(struct ptx_parser *p)
{
	if (p->token.kind != TK_DOT)
		ckt_ptx_fail(p, CKT_PTX_INVALID, "register type expected");
	enum ptx_type type = ckt_ptx_type_from(p->token.text, p->token.size);
	if (type == T_NONE)
		ckt_ptx_fail(p, CKT_PTX_INVALID, "unknown register type .%.*s", (int)p->token.size,
			p->token.text);
	ckt_ptx_next(p);
	do {
		if (p->token.kind != TK_IDENT)
			ckt_ptx_fail(p, CKT_PTX_INVALID, "register name expected");
		const char *name = p->token.text;
		uint32_t size = p->token.size;
		struct ptx_name *entry = ckt_ptx_new(p, sizeof *entry);
		*entry = (struct ptx_name){.kind = NAME_REG, .type = type, .reg = -1};
		ckt_ptx_next(p);
		if (ckt_ptx_accept(p, '<')) {
			enum ptx_type kind;
			if (p->token.kind != TK_INT)
				ckt_ptx_fail(p, CKT_PTX_INVALID, "number of registers expected");
			entry->kind = NAME_REG_RANGE;
			entry->count = (uint32_t)p->token.value;
			(void)kind;
			ckt_ptx_next(p);
			ckt_ptx_expect(p, '>');
		}
		ckt_ptx_declare(p, name, size, entry);
	} while (ckt_ptx_accept(p, ','));
	ckt_ptx_expect(p, ';');
}

/* ---- Operands */

static struct ptx_operand *element(struct ptx_parser *p)
{
	if (p->n_pool == sizeof p->pool / sizeof *p->pool)
		ckt_ptx_fail(p, CKT_PTX_INVALID, "too many operands");
	struct ptx_operand *o = &p->pool[p->n_pool++];
	*o = (struct ptx_operand){0};
	return o;
}

static void use_register(struct ptx_parser *p, struct ptx_name *entry, struct ptx_operand *o)
{
	if (entry->reg < 0)
		entry->reg = ckt_ptx_reg_alloc(p, entry->type);
	o->kind = OP_REG;
	o->reg = entry->reg;
	o->type = entry->type;
}

/* The byte or half of a register that a video instruction selects. */
static void parse_part(struct ptx_parser *p, struct ptx_operand *o)
{
	static const char *const parts[] = {"b0", "b1", "b2", "b3", "h0", "h1"};
	for (unsigned k = 0; k < sizeof parts / sizeof *parts; k++)
		if (ckt_ptx_accept_dot(p, parts[k]))
			o->part = (uint8_t)(k + 1);
	if (!o->part)
		ckt_ptx_fail(p, CKT_PTX_INVALID, "unknown part .%.*s of a register",
			(int)p->token.size, p->token.text);
	p->raw.adorned = true;
}

/*
 * name[3], name[register] or name[register+3]: an index counts elements of the array's type; a
 * vector or a row counts as its single elements.  A constant is multiplied in 32 bits, as in ptxas.
 */
static void parse_index(struct ptx_parser *p, struct ptx_operand *o)
{
	unsigned size = o->kind == OP_LOCAL ? o->variable->element : o->symbol->element;
	enum ptx_type kind;
	if (!size)
		ckt_ptx_fail(p, CKT_PTX_INVALID, "%.*s is not an array and cannot be indexed",
			(int)o->name_size, o->name);
	o->indexed = true;
	if (p->token.kind == TK_IDENT && !ckt_ptx_token_is(&p->token, "WARP_SZ")) {
		struct ptx_operand index = {0};
		struct ptx_name *entry = ckt_ptx_lookup(p, p->scope, p->token.text, p->token.size);
		if (!entry || entry->kind != NAME_REG || !ckt_ptx_lane_bytes(entry->type) ||
			ckt_ptx_lane_bytes(entry->type) > 8 || ckt_ptx_type_float(entry->type))
			ckt_ptx_fail(p, CKT_PTX_INVALID, "%.*s is not a valid index",
				(int)p->token.size, p->token.text);
		use_register(p, entry, &index);
		ckt_ptx_next(p);
		o->reg = index.reg;
		o->type = index.type;
		o->index_scale = (uint8_t)size;
	}
	if (!o->index_scale || ckt_ptx_is(p, '+'))
		o->value = (uint32_t)(ckt_ptx_constant_expression(p, &kind) * size);
	ckt_ptx_expect(p, ']');
}

/* A name: register, variable, symbol or special register; any other name may be a label. */
static void parse_name(struct ptx_parser *p, struct ptx_operand *o)
{
	const char *name = p->token.text;
	uint32_t size = p->token.size;
	struct ptx_name *entry = ckt_ptx_lookup(p, p->scope, name, size);
	o->name = name;
	o->name_size = size;
	o->reg2 = PTX_OPERAND_NONE;
	ckt_ptx_next(p);
	if (entry && entry->kind == NAME_REG) {
		use_register(p, entry, o);
		if (p->token.kind == TK_DOT && p->token.text == name + size + 1)
			parse_part(p, o);
	} else if (entry && entry->kind == NAME_VARIABLE) {
		o->kind = OP_LOCAL;
		o->variable = &entry->variable;
	} else if (entry && entry->kind == NAME_SYMBOL) {
		o->kind = OP_SYMBOL;
		o->symbol = entry->symbol;
	} else if (size == 1 && *name == '_') {
		o->kind = OP_SINK;
	} else if (*name == '%') {
		/* %tid.x: the lexer returns the part after the dot as a separate word */
		if (p->token.kind == TK_DOT && p->token.text == name + size + 1 &&
			p->token.size == 1) {
			size += 2;
			ckt_ptx_next(p);
		}
		o->kind = OP_SREG;
		o->sreg = ckt_ptx_sreg_find(name, size);
		if (o->sreg < 0)
			ckt_ptx_fail(p, CKT_PTX_INVALID, "unknown register %.*s", (int)size, name);
		o->type = ckt_ptx_sreg_type(o->sreg);
	} else {
		o->symbol = entry ? NULL : ckt_ptx_symbol(p, name, size);
		o->kind = o->symbol ? OP_SYMBOL : OP_NAME;
	}
	if (o->kind == OP_SYMBOL || o->kind == OP_LOCAL) {
		enum ptx_type kind;
		if (ckt_ptx_is(p, '+') || ckt_ptx_is(p, '-'))
			o->value = ckt_ptx_constant_expression(p, &kind);
		else if (ckt_ptx_accept(p, '['))
			parse_index(p, o);
	}
}

static void parse_operand(struct ptx_parser *p, struct ptx_operand *o);

static void parse_elements(struct ptx_parser *p, struct ptx_operand *o, char close)
{
	/*
	 * The elements of a list must be adjacent in the pool.  So they are read into an array
	 * first, because an element may have elements of its own.
	 */
	struct ptx_operand first[128];
	unsigned n = 0;
	if (++p->depth > 4)
		ckt_ptx_fail(p, CKT_PTX_INVALID, "lists nested too deeply");
	while (!ckt_ptx_is(p, close)) {
		if (n == sizeof first / sizeof *first)
			ckt_ptx_fail(p, CKT_PTX_INVALID, "too many elements");
		first[n] = (struct ptx_operand){0};
		parse_operand(p, &first[n++]);
		if (!ckt_ptx_accept(p, ','))
			break;
	}
	ckt_ptx_expect(p, close);
	p->depth--;
	o->n_elements = n;
	for (unsigned k = 0; k < n; k++) {
		struct ptx_operand *place = element(p);
		*place = first[k];
		if (!k)
			o->elements = place;
	}
}

static void parse_address(struct ptx_parser *p, struct ptx_operand *o)
{
	enum ptx_type kind;
	o->kind = OP_ADDRESS;
	if (p->token.kind == TK_IDENT && !ckt_ptx_token_is(&p->token, "WARP_SZ")) {
		o->elements = element(p);
		o->n_elements = 1;
		parse_name(p, o->elements);
		if (o->elements->kind == OP_NAME)
			ckt_ptx_fail_broken(p, "unknown name %.*s", (int)o->elements->name_size,
				o->elements->name);
		if (o->elements->indexed)
			ckt_ptx_fail(p, CKT_PTX_INVALID,
				"an address in brackets takes an offset, not an index");
		o->value = o->elements->value;
		o->elements->value = 0;
		if (ckt_ptx_is(p, '+') || ckt_ptx_is(p, '-'))
			o->value += ckt_ptx_constant_expression(p, &kind);
	} else {
		o->value = ckt_ptx_constant_expression(p, &kind);
	}
	if (o->elements && ckt_ptx_accept(p, ',')) {                  /* [texture, {x, y}] */
		struct ptx_operand *coordinates = element(p), parsed; /* adjacent to the base */
		if (++p->depth > 4)
			ckt_ptx_fail(p, CKT_PTX_INVALID, "addresses nested too deeply");
		parse_operand(p, &parsed);
		p->depth--;
		*coordinates = parsed;
		o->n_elements = 2;
	}
	if (ckt_ptx_is(p, ','))
		ckt_ptx_fail(
			p, CKT_PTX_INVALID, "textures with separate samplers are not supported");
	ckt_ptx_expect(p, ']');
}

/* Whether "-register" follows, and not a constant expression. */
static bool minus_register(struct ptx_parser *p)
{
	if (!ckt_ptx_is(p, '-'))
		return false;
	struct ptx_parser saved = {.token = p->token, .cursor = p->cursor, .line = p->line};
	ckt_ptx_next(p);
	const struct ptx_name *entry = p->token.kind == TK_IDENT
		? ckt_ptx_lookup(p, p->scope, p->token.text, p->token.size)
		: NULL;
	p->token = saved.token;
	p->cursor = saved.cursor;
	p->line = saved.line;
	return entry && entry->kind == NAME_REG;
}

static void parse_operand(struct ptx_parser *p, struct ptx_operand *o)
{
	*o = (struct ptx_operand){.reg2 = PTX_OPERAND_NONE};
	if (ckt_ptx_accept(p, '[')) {
		parse_address(p, o);
	} else if (ckt_ptx_accept(p, '{')) {
		o->kind = OP_VECTOR;
		parse_elements(p, o, '}');
	} else if (ckt_ptx_is(p, '(') && p->raw.op && !strcmp(p->raw.op, "call")) {
		ckt_ptx_next(p);
		o->kind = OP_LIST;
		parse_elements(p, o, ')');
	} else if (p->token.kind == TK_IDENT && !ckt_ptx_token_is(&p->token, "WARP_SZ")) {
		parse_name(p, o);
	} else if (ckt_ptx_is(p, '!')) {
		ckt_ptx_next(p);
		if (p->token.kind == TK_IDENT) {
			parse_name(p, o);
			o->negated = true;
		} else {
			o->kind = OP_CONST;
			o->value = !ckt_ptx_constant_expression(p, &o->type);
		}
	} else if (minus_register(p)) {
		ckt_ptx_next(p);
		parse_name(p, o);
		o->minus = p->raw.adorned = true;
	} else {
		o->kind = OP_CONST;
		o->value = ckt_ptx_constant_expression(p, &o->type);
	}
	if ((o->kind == OP_REG || o->kind == OP_SINK) && ckt_ptx_accept(p, '|')) { /* p|q */
		struct ptx_operand second = {0};
		if (p->token.kind != TK_IDENT)
			ckt_ptx_fail(p, CKT_PTX_INVALID, "register expected after |");
		parse_name(p, &second);
		if (second.kind != OP_REG && second.kind != OP_SINK)
			ckt_ptx_fail(p, CKT_PTX_INVALID, "register expected after |");
		o->reg2 = second.kind == OP_REG ? second.reg : PTX_OPERAND_NONE;
		o->type2 = second.kind == OP_REG ? second.type : T_NONE;
	}
}

/* ---- Statements */

static void parse_guard(struct ptx_parser *p)
{
	bool negated = ckt_ptx_accept(p, '!');
	if (p->token.kind != TK_IDENT)
		ckt_ptx_fail(p, CKT_PTX_INVALID, "predicate expected after @");
	p->raw.guard = (struct ptx_operand){.reg2 = PTX_OPERAND_NONE};
	parse_name(p, &p->raw.guard);
	p->raw.guard.negated = negated;
	p->raw.guarded = true;
	if (p->raw.guard.kind != OP_REG || p->raw.guard.type != T_PRED)
		ckt_ptx_fail(p, CKT_PTX_INVALID, "predicate expected after @");
}

/* Stores each different word of an opcode or modifier once in the arena. */
static const char *intern(struct ptx_parser *p, const char *text, uint32_t size)
{
	char *word = ckt_ptx_map_get(&p->constants, text, size);
	if (!word) {
		word = ckt_ptx_copy_name(p, text, size);
		if (ckt_ptx_map_put(&p->constants, word, size, word))
			ckt_ptx_out_of_memory(p);
	}
	return word;
}

static void parse_instruction(struct ptx_parser *p)
{
	struct ptx_raw *raw = &p->raw;
	if (p->token.kind != TK_IDENT)
		ckt_ptx_fail_broken(p, "instruction expected before '%.*s'",
			(int)(p->token.size < 40 ? p->token.size : 40), p->token.text);
	raw->op = intern(p, p->token.text, p->token.size);
	ckt_ptx_next(p);
	while (p->token.kind == TK_DOT) {
		if (raw->n_mods == PTX_MAX_MODS)
			ckt_ptx_fail(p, CKT_PTX_INVALID, "too many modifiers");
		raw->mods[raw->n_mods++] = intern(p, p->token.text, p->token.size);
		ckt_ptx_next(p);
	}
	if (!ckt_ptx_is(p, ';'))
		ckt_ptx_need_opcode(p); /* stop before the operands of an unknown opcode */
	while (!ckt_ptx_is(p, ';')) {
		if (raw->n_operands == PTX_MAX_OPERANDS)
			ckt_ptx_fail(p, CKT_PTX_INVALID, "too many operands");
		parse_operand(p, &raw->operands[raw->n_operands++]);
		if (!ckt_ptx_accept(p, ','))
			break;
	}
	if (!ckt_ptx_is(p, ';'))
		ckt_ptx_expect(p, ';');
	ckt_ptx_decode(p);
	p->in_instruction = false;
	ckt_ptx_next(p);
}

static void parse_label_directive(struct ptx_parser *p, const char *name, uint32_t size)
{
	struct ptx_name *entry = ckt_ptx_new(p, sizeof *entry);
	if (ckt_ptx_accept_dot(p, "callprototype")) {
		entry->kind = NAME_PROTOTYPE;
		entry->prototype = ckt_ptx_new(p, sizeof *entry->prototype);
		uint32_t offset = 0;
		size_t n = 0;
		if (ckt_ptx_is(p, '('))
			entry->prototype->rets =
				ckt_ptx_parse_params(p, &n, &offset, SP_PARAM, false);
		entry->prototype->n_rets = (uint32_t)n;
		n = 0;
		ckt_ptx_next(p); /* _ */
		if (ckt_ptx_is(p, '('))
			entry->prototype->params =
				ckt_ptx_parse_params(p, &n, &offset, SP_PARAM, false);
		entry->prototype->n_params = (uint32_t)n;
	} else {
		bool branch = ckt_ptx_accept_dot(p, "branchtargets");
		if (!branch)
			ckt_ptx_next(p);
		struct ptx_target_list *list = ckt_ptx_new(p, sizeof *list);
		entry->kind = NAME_TARGETS;
		entry->targets = list;
		uint32_t capacity = 0;
		do {
			if (p->token.kind != TK_IDENT)
				ckt_ptx_fail(p, CKT_PTX_INVALID, "label expected");
			if (list->n == capacity) {
				capacity = capacity ? capacity * 2 : 16;
				const char **names = ckt_ptx_new(p, capacity * sizeof *names);
				uint32_t *sizes = ckt_ptx_new(p, capacity * sizeof *sizes);
				if (list->n) {
					memcpy(names, list->names, list->n * sizeof *names);
					memcpy(sizes, list->name_sizes, list->n * sizeof *sizes);
				}
				list->names = names;
				list->name_sizes = sizes;
			}
			struct ptx_symbol *s =
				branch ? NULL : ckt_ptx_symbol(p, p->token.text, p->token.size);
			if (s)
				s->used_as_address = true;
			list->names[list->n] = p->token.text;
			list->name_sizes[list->n++] = p->token.size;
			ckt_ptx_next(p);
		} while (ckt_ptx_accept(p, ','));
	}
	while (p->token.kind == TK_DOT) /* skips .noreturn and the like */
		ckt_ptx_next(p);
	ckt_ptx_declare(p, name, size, entry);
	ckt_ptx_expect(p, ';');
}

static void parse_statement(struct ptx_parser *p)
{
	const char *start = p->token.text;
	p->raw.n_mods = p->raw.n_operands = 0;
	p->raw.guarded = p->raw.adorned = false;
	p->raw.op = NULL;
	p->raw.line = p->token.line;
	p->raw.start = start;
	p->n_pool = p->depth = 0;
	if (p->token.kind == TK_IDENT) {
		/* a label is a name followed by a colon */
		struct ptx_parser saved = {.token = p->token, .cursor = p->cursor, .line = p->line};
		ckt_ptx_next(p);
		if (ckt_ptx_is(p, ':')) {
			ckt_ptx_next(p);
			if (ckt_ptx_is_dot(p, "callprototype") ||
				ckt_ptx_is_dot(p, "branchtargets") ||
				ckt_ptx_is_dot(p, "calltargets")) {
				parse_label_directive(p, saved.token.text, saved.token.size);
				return;
			}
			struct ptx_name *entry = ckt_ptx_new(p, sizeof *entry);
			*entry = (struct ptx_name){
				.kind = NAME_LABEL, .pc = (uint32_t)p->function->n_code};
			ckt_ptx_declare(p, saved.token.text, saved.token.size, entry);
			return;
		}
		p->token = saved.token;
		p->cursor = saved.cursor;
		p->line = saved.line;
	}
	p->in_instruction = true;
	if (ckt_ptx_accept(p, '@'))
		parse_guard(p);
	parse_instruction(p);
}

static void open_scope(struct ptx_parser *p)
{
	struct ptx_scope *scope = ckt_ptx_new(p, sizeof *scope);
	scope->parent = p->scope;
	scope->next_all = p->all_scopes;
	p->scope = p->all_scopes = scope;
}

static bool parse_directive(struct ptx_parser *p)
{
	if (ckt_ptx_accept_dot(p, "reg"))
		parse_registers(p);
	else if (ckt_ptx_accept_dot(p, "local"))
		ckt_ptx_parse_local_variable(p, SP_LOCAL);
	else if (ckt_ptx_accept_dot(p, "param"))
		ckt_ptx_parse_local_variable(p, SP_PARAM);
	else if (ckt_ptx_accept_dot(p, "shared"))
		ckt_ptx_parse_module_variable(p, LINK_LOCAL, SP_SHARED);
	else if (ckt_ptx_accept_dot(p, "global"))
		ckt_ptx_parse_module_variable(p, LINK_LOCAL, SP_GLOBAL);
	else if (ckt_ptx_accept_dot(p, "const"))
		ckt_ptx_parse_module_variable(p, LINK_LOCAL, SP_CONST);
	else if (ckt_ptx_is_dot(p, "loc") || ckt_ptx_is_dot(p, "file"))
		ckt_ptx_skip_line(p);
	else if (ckt_ptx_accept_dot(p, "pragma"))
		while (!ckt_ptx_accept(p, ';') && p->token.kind != TK_END)
			ckt_ptx_next(p);
	else
		return false;
	return true;
}

static void resolve_labels(struct ptx_parser *p)
{
	for (size_t k = 0; k < p->n_fixups; k++) {
		const struct ptx_label_fixup *fix = &p->fixups[k];
		const struct ptx_name *entry =
			ckt_ptx_lookup(p, fix->scope, fix->name, fix->name_size);
		if (!entry || entry->kind != NAME_LABEL) {
			p->in_instruction = false;
			p->token.line = fix->line;
			ckt_ptx_fail(p, CKT_PTX_INVALID, "no label %.*s", (int)fix->name_size,
				fix->name);
		}
		if (fix->place)
			*fix->place = (int32_t)entry->pc;
		else
			p->function->code[fix->insn].imm = entry->pc;
	}
	p->n_fixups = 0;
}

void ckt_ptx_parse_body(struct ptx_parser *p)
{
	unsigned depth = 0;
	p->cc = -1;
	if (!ckt_ptx_is(p, '{'))
		ckt_ptx_expect(p, '{');
	do {
		if (p->token.kind == TK_END)
			ckt_ptx_fail(p, CKT_PTX_INVALID, "missing }");
		if (ckt_ptx_accept(p, '{')) {
			depth++;
			if (depth > 1)
				open_scope(p);
		} else if (ckt_ptx_is(p, '}')) {
			if (--depth)
				p->scope = p->scope->parent;
			else
				break;
			ckt_ptx_next(p);
		} else if (p->token.kind == TK_DOT) {
			if (!parse_directive(p))
				ckt_ptx_fail(p, CKT_PTX_INVALID, "unknown directive .%.*s",
					(int)p->token.size, p->token.text);
		} else if (!ckt_ptx_accept(p, ';')) {
			parse_statement(p);
		}
	} while (depth);
	/* A function that reaches its end returns. */
	p->raw = (struct ptx_raw){.op = "ret", .line = p->token.line};
	ckt_ptx_decode(p);
	/* Never 0 for a function, so that the stack limits every recursion. */
	if (!p->function->frame_bytes && !p->function->info.is_entry)
		p->function->frame_bytes = 16;
	p->function->frame_bytes = (p->function->frame_bytes + 15) & ~15u;
	resolve_labels(p);
	ckt_ptx_next(p);
}
