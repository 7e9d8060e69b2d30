/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the module scope of a PTX text: directives, variables with initialisers, and heads of
 * functions.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/front/containers.h"
#include "softgpu/ptx/front/decode.h"
#include "softgpu/ptx/front/parser.h"
#include "softgpu/ptx/front/types.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

static uint64_t integer(struct ptx_parser *p)
{
	return ckt_ptx_constant_expression(p, NULL);
}

static void need_ident(struct ptx_parser *p)
{
	if (p->token.kind != TK_IDENT)
		ckt_ptx_fail(p, CKT_PTX_INVALID, "name expected before '%.*s'",
			(int)(p->token.size < 40 ? p->token.size : 40), p->token.text);
}

struct ptx_symbol *ckt_ptx_symbol(struct ptx_parser *p, const char *name, size_t size)
{
	return ckt_ptx_map_get(&p->names, name, size);
}

struct ptx_symbol *ckt_ptx_symbol_new(
	struct ptx_parser *p, const char *name, enum ptx_symbol_kind kind, enum ptx_linkage linkage)
{
	struct ptx_symbol *s = ckt_ptx_new(p, sizeof *s);
	s->name = name;
	s->kind = kind;
	s->linkage = linkage;
	s->unit = p->unit;
	s->line = p->token.line;
	PTX_PUSH(p, p->module->symbols, p->module->n_symbols, p->module->cap_symbols, s);
	return s;
}

/* ---- Initialisers */

/* Of a variable of more than 64 bits, what lies above them stays zero. */
static void store_bytes(
	struct ptx_parser *p, struct ptx_symbol *s, uint64_t offset, uint64_t value, unsigned size)
{
	if (offset + size > s->init_bytes)
		ckt_ptx_fail(p, CKT_PTX_INVALID, "too many initialisers for %s", s->name);
	memcpy(s->init + offset, &value, size < sizeof value ? size : sizeof value);
}

/* name, name+4, generic(name)+4 or 0xFF00(name): an address that linking fills in later. */
static void parse_relocation(
	struct ptx_parser *p, struct ptx_symbol *s, uint64_t offset, unsigned size, uint64_t mask)
{
	struct ptx_relocation r = {.offset = offset, .size = (uint8_t)size};
	if (size > sizeof(uint64_t) && !mask)
		ckt_ptx_fail(p, CKT_PTX_INVALID, "%s is too large for an address", s->name);
	bool generic = p->token.kind == TK_IDENT && ckt_ptx_token_is(&p->token, "generic");
	if (generic) {
		ckt_ptx_next(p);
		ckt_ptx_expect(p, '(');
	}
	need_ident(p);
	r.symbol = ckt_ptx_symbol(p, p->token.text, p->token.size);
	if (!r.symbol)
		ckt_ptx_fail(p, CKT_PTX_INVALID, "unknown name %.*s in an initialiser",
			(int)p->token.size, p->token.text);
	r.symbol->used_as_address = true;
	ckt_ptx_next(p);
	if (generic)
		ckt_ptx_expect(p, ')');
	if (ckt_ptx_is(p, '+') || ckt_ptx_is(p, '-'))
		r.addend = integer(p);
	if (mask) {
		r.shift = (uint8_t)(__builtin_ctzll(mask) & ~7);
		r.size = 1;
	}
	PTX_PUSH(p, s->relocs, s->n_relocs, s->cap_relocs, r);
}

static void parse_value(
	struct ptx_parser *p, struct ptx_symbol *s, uint64_t offset, enum ptx_type type)
{
	unsigned size = ckt_ptx_type_bytes(type);
	if (p->token.kind == TK_IDENT && !ckt_ptx_token_is(&p->token, "WARP_SZ")) {
		parse_relocation(p, s, offset, size, 0);
		return;
	}
	enum ptx_type kind;
	uint64_t v = ckt_ptx_constant_expression(p, &kind);
	if (kind == T_S64 && ckt_ptx_is(p, '(')) {
		ckt_ptx_next(p);
		parse_relocation(p, s, offset, size, v ? v : 0xff);
		ckt_ptx_expect(p, ')');
		return;
	}
	if (type == T_F32 && kind == T_F64) {
		double d;
		memcpy(&d, &v, sizeof d);
		float f = (float)d;
		v = 0;
		memcpy(&v, &f, sizeof f);
	}
	store_bytes(p, s, offset, v, size);
}

/*
 * Makes room for initialisers up to that byte: as much as the text gives, however large the variable
 * is.  The capacity is a power of two, so that all copies together are no larger than the result.
 */
static void grow_init(struct ptx_parser *p, struct ptx_symbol *s, uint64_t bytes)
{
	uint64_t room = s->init_bytes ? 64 : 0, wanted = 64;
	while (room < s->init_bytes)
		room *= 2;
	while (wanted < bytes)
		wanted *= 2;
	if (wanted > room) {
		uint8_t *bigger = ckt_ptx_new(p, wanted);
		if (s->init_bytes)
			memcpy(bigger, s->init, s->init_bytes);
		s->init = bigger;
	}
	s->init_bytes = bytes;
}

struct declaration {
	enum ptx_type type;
	uint32_t align, vector;
	bool managed;
};

static uint64_t parse_element(
	struct ptx_parser *p, struct ptx_symbol *s, uint64_t offset, enum ptx_type type)
{
	unsigned size = ckt_ptx_type_bytes(type);
	if (s->size < offset + size) { /* an array without a size grows with its initialiser */
		if (!s->dynamic)
			ckt_ptx_fail(p, CKT_PTX_INVALID, "too many initialisers for %s", s->name);
		s->size = offset + size;
	}
	if (s->init_bytes < offset + size)
		grow_init(p, s, offset + size);
	parse_value(p, s, offset, type);
	return offset + size;
}

/*
 * Braces enclose each dimension and each vector.  As in ptxas, a short row is not padded: the next
 * row begins immediately.
 */
static uint64_t parse_initialiser(struct ptx_parser *p, struct ptx_symbol *s, uint64_t offset,
	const struct declaration *d, const uint64_t *dims, unsigned n_dims, uint64_t *ret_count)
{
	uint64_t count = 0;
	if (!n_dims && d->vector == 1)
		return parse_element(p, s, offset, d->type);
	ckt_ptx_expect(p, '{');
	if (!ckt_ptx_is(p, '}')) {
		do {
			if (n_dims ? count == *dims && !(s->dynamic && ret_count)
				   : count == d->vector)
				ckt_ptx_fail(p, CKT_PTX_INVALID, "too many initialisers for %s",
					s->name);
			offset = n_dims
				? parse_initialiser(p, s, offset, d, dims + 1, n_dims - 1, NULL)
				: parse_element(p, s, offset, d->type);
			count++;
		} while (ckt_ptx_accept(p, ','));
	}
	ckt_ptx_expect(p, '}');
	if (!n_dims && count != d->vector)
		ckt_ptx_fail(
			p, CKT_PTX_INVALID, "too few initialisers for a vector of %s", s->name);
	if (ret_count)
		*ret_count = count;
	return offset;
}

/* ---- Variables */

static void parse_attribute(struct ptx_parser *p, struct declaration *d)
{
	ckt_ptx_expect(p, '(');
	unsigned depth = 1;
	while (depth) {
		if (p->token.kind == TK_END)
			ckt_ptx_fail(p, CKT_PTX_INVALID, "missing )");
		if (ckt_ptx_is_dot(p, "managed"))
			d->managed = true;
		depth += ckt_ptx_is(p, '(') ? 1 : 0;
		depth -= ckt_ptx_is(p, ')') ? 1 : 0;
		ckt_ptx_next(p);
	}
}

/* Parses everything between the state space and the name. */
static struct declaration parse_declaration(struct ptx_parser *p)
{
	struct declaration d = {.vector = 1};
	while (p->token.kind == TK_DOT) {
		if (ckt_ptx_accept_dot(p, "align")) {
			d.align = (uint32_t)integer(p);
			if (!d.align || (d.align & (d.align - 1)) || d.align > 4096)
				ckt_ptx_fail(p, CKT_PTX_INVALID, "invalid alignment");
		} else if (ckt_ptx_accept_dot(p, "attribute")) {
			parse_attribute(p, &d);
		} else if (ckt_ptx_accept_dot(p, "v2")) {
			d.vector = 2;
		} else if (ckt_ptx_accept_dot(p, "v4")) {
			d.vector = 4;
		} else if (ckt_ptx_accept_dot(p, "ptr")) {
			/*
			 * .ptr .space .align N describes the target of a pointer; it is only a hint
			 */
			while (p->token.kind == TK_DOT) {
				if (ckt_ptx_accept_dot(p, "align"))
					integer(p);
				else
					ckt_ptx_next(p);
			}
		} else {
			d.type = ckt_ptx_type_from(p->token.text, p->token.size);
			if (d.type == T_NONE)
				ckt_ptx_fail(p, CKT_PTX_INVALID, "unknown type .%.*s",
					(int)p->token.size, p->token.text);
			ckt_ptx_next(p);
		}
	}
	if (d.type == T_NONE || d.type == T_PRED)
		ckt_ptx_fail(p, CKT_PTX_INVALID, "type expected before '%.*s'",
			(int)(p->token.size < 40 ? p->token.size : 40), p->token.text);
	uint32_t natural = ckt_ptx_type_bytes(d.type) * d.vector;
	if (!d.align)
		d.align = natural;
	return d;
}

enum { DIMENSIONS = 8 };

/*
 * Parses the array dimensions after a name and returns the size in bytes: 0 with *ret_open if the
 * first dimension is missing.
 */
static uint64_t parse_dimensions(struct ptx_parser *p, const struct declaration *d,
	uint64_t dims[DIMENSIONS], unsigned *ret_n, bool *ret_open)
{
	uint64_t size = ckt_ptx_type_bytes(d->type) * d->vector;
	unsigned n = 0;
	*ret_open = false;
	while (ckt_ptx_accept(p, '[')) {
		if (n == DIMENSIONS)
			ckt_ptx_fail(p, CKT_PTX_INVALID, "too many dimensions");
		dims[n] = 0;
		if (!ckt_ptx_is(p, ']'))
			dims[n] = integer(p);
		else
			*ret_open = true;
		if (dims[n] > (1ull << 40))
			ckt_ptx_fail(p, CKT_PTX_INVALID, "array too large");
		n++;
		ckt_ptx_expect(p, ']');
	}
	for (unsigned k = n; k-- > 0;) {
		if (size && dims[k] > (1ull << 40) / size)
			ckt_ptx_fail(p, CKT_PTX_INVALID, "array too large");
		size *= dims[k];
	}
	*ret_n = n;
	return size;
}

static struct ptx_symbol *declare_symbol(
	struct ptx_parser *p, enum ptx_linkage linkage, enum ptx_space space)
{
	need_ident(p);
	struct ptx_symbol *s = p->function ? NULL : ckt_ptx_symbol(p, p->token.text, p->token.size);
	if (s && (s->kind != SYM_VARIABLE || s->space != space))
		ckt_ptx_fail(p, CKT_PTX_DUPLICATE, "%s is declared twice", s->name);
	if (s && s->defined && linkage != LINK_EXTERN && s->linkage != LINK_WEAK)
		ckt_ptx_fail(p, CKT_PTX_DUPLICATE, "%s is defined twice", s->name);
	if (!s) {
		char *name = ckt_ptx_copy_name(p, p->token.text, p->token.size);
		s = ckt_ptx_symbol_new(p, name, SYM_VARIABLE, linkage);
		s->space = space;
		if (p->function) {
			struct ptx_name *entry = ckt_ptx_new(p, sizeof *entry);
			*entry = (struct ptx_name){.kind = NAME_SYMBOL, .symbol = s};
			ckt_ptx_declare(p, name, strlen(name), entry);
		} else if (ckt_ptx_map_put(&p->names, name, strlen(name), s)) {
			ckt_ptx_out_of_memory(p);
		}
	} else if (linkage != LINK_EXTERN) {
		s->linkage = linkage;
	}
	ckt_ptx_next(p);
	return s;
}

void ckt_ptx_parse_module_variable(
	struct ptx_parser *p, enum ptx_linkage linkage, enum ptx_space space)
{
	struct declaration d = parse_declaration(p);
	do {
		struct ptx_symbol *s = declare_symbol(p, linkage, space);
		uint64_t dims[DIMENSIONS];
		unsigned n;
		bool open;
		uint64_t size = parse_dimensions(p, &d, dims, &n, &open);
		if (linkage == LINK_EXTERN && s->defined)
			continue;
		if (space == SP_SHARED && size > PTX_SHARED_MAX)
			ckt_ptx_fail(p, CKT_PTX_INVALID, "too much shared memory");
		s->size = size;
		s->element = n ? (uint8_t)ckt_ptx_type_bytes(d.type) : 0;
		s->align = d.align;
		s->managed = d.managed;
		s->dynamic = open;
		s->defined = linkage != LINK_EXTERN || (space == SP_SHARED && open);
		if (ckt_ptx_accept(p, '=')) {
			s->init = NULL;
			s->init_bytes = 0;
			uint64_t rows = 0, row = ckt_ptx_type_bytes(d.type) * d.vector;
			parse_initialiser(p, s, 0, &d, dims, n, &rows);
			for (unsigned k = 1; k < n; k++)
				row *= dims[k];
			if (row && rows > (1ull << 40) / row)
				ckt_ptx_fail(p, CKT_PTX_INVALID, "array too large");
			if (s->dynamic && rows * row > s->size)
				s->size = rows * row;
			s->dynamic = false;
		}
	} while (ckt_ptx_accept(p, ','));
	ckt_ptx_expect(p, ';');
}

void ckt_ptx_parse_local_variable(struct ptx_parser *p, enum ptx_space space)
{
	struct ckt_ptx_function *f = p->function;
	struct declaration d = parse_declaration(p);
	do {
		need_ident(p);
		const char *name = p->token.text;
		uint32_t name_size = p->token.size;
		unsigned n;
		bool open;
		ckt_ptx_next(p);
		uint64_t size = parse_dimensions(p, &d, (uint64_t[DIMENSIONS]){0}, &n, &open);
		if (size > (16u << 20) || f->frame_bytes + size > (64u << 20))
			ckt_ptx_fail(p, CKT_PTX_INVALID, "too much local memory");
		f->frame_bytes = (f->frame_bytes + d.align - 1) & ~(d.align - 1);
		struct ptx_name *entry = ckt_ptx_new(p, sizeof *entry);
		*entry = (struct ptx_name){.kind = NAME_VARIABLE,
			.variable = {.space = space,
				.type = d.type,
				.offset = f->frame_bytes,
				.size = (uint32_t)size,
				.align = d.align,
				.element = n ? (uint8_t)ckt_ptx_type_bytes(d.type) : 0}};
		ckt_ptx_declare(p, name, name_size, entry);
		f->frame_bytes += (uint32_t)size;
	} while (ckt_ptx_accept(p, ','));
	ckt_ptx_expect(p, ';');
}

struct ckt_ptx_param *ckt_ptx_parse_params(
	struct ptx_parser *p, size_t *ret_n, uint32_t *offset, enum ptx_space space, bool declare)
{
	struct ckt_ptx_param *list = NULL, *copy;
	size_t n = 0, capacity = 0;
	ckt_ptx_expect(p, '(');
	while (!ckt_ptx_is(p, ')')) {
		if (!ckt_ptx_accept_dot(p, "param") && !ckt_ptx_accept_dot(p, "reg"))
			ckt_ptx_fail(p, CKT_PTX_INVALID, ".param expected");
		struct declaration d = parse_declaration(p);
		const char *name = p->token.text;
		uint32_t name_size = p->token.size;
		unsigned n_dims;
		bool open;
		need_ident(p);
		ckt_ptx_next(p);
		uint64_t size = parse_dimensions(p, &d, (uint64_t[DIMENSIONS]){0}, &n_dims, &open);
		if (size > 65536)
			ckt_ptx_fail(p, CKT_PTX_INVALID, "parameter too large");
		*offset = (*offset + d.align - 1) & ~(d.align - 1);
		struct ckt_ptx_param param = {.offset_bytes = *offset,
			.size_bytes = (uint32_t)size,
			.align_bytes = d.align};
		if (declare && !(name_size == 1 && *name == '_')) {
			struct ptx_name *entry = ckt_ptx_new(p, sizeof *entry);
			*entry = (struct ptx_name){.kind = NAME_VARIABLE,
				.variable = {.space = space,
					.type = d.type,
					.offset = *offset,
					.size = (uint32_t)size,
					.align = d.align,
					.element =
						n_dims ? (uint8_t)ckt_ptx_type_bytes(d.type) : 0}};
			ckt_ptx_declare(p, name, name_size, entry);
		}
		*offset += (uint32_t)size;
		/* in the arena, so that a bad token later leaks nothing */
		if (n == capacity) {
			capacity = capacity ? capacity * 2 : 8;
			copy = ckt_ptx_new(p, capacity * sizeof *copy);
			if (n)
				memcpy(copy, list, n * sizeof *copy);
			list = copy;
		}
		list[n++] = param;
		if (!ckt_ptx_accept(p, ','))
			break;
	}
	ckt_ptx_expect(p, ')');
	*ret_n = n;
	return list;
}

/* ---- Functions */

static struct ptx_symbol *function_symbol(struct ptx_parser *p, enum ptx_linkage linkage)
{
	need_ident(p);
	struct ptx_symbol *s = ckt_ptx_symbol(p, p->token.text, p->token.size);
	if (s && s->kind != SYM_FUNCTION)
		ckt_ptx_fail(p, CKT_PTX_DUPLICATE, "%s is declared twice", s->name);
	if (!s) {
		char *name = ckt_ptx_copy_name(p, p->token.text, p->token.size);
		s = ckt_ptx_symbol_new(p, name, SYM_FUNCTION, linkage);
		if (ckt_ptx_map_put(&p->names, name, strlen(name), s))
			ckt_ptx_out_of_memory(p);
	} else if (s->linkage == LINK_EXTERN || s->linkage == LINK_LOCAL) {
		s->linkage = linkage == LINK_LOCAL ? s->linkage : linkage;
	}
	ckt_ptx_next(p);
	return s;
}

static void parse_three(struct ptx_parser *p, uint32_t *ret)
{
	for (unsigned k = 0; k < 3; k++)
		ret[k] = 1;
	for (unsigned k = 0; k < 3; k++) {
		ret[k] = (uint32_t)integer(p);
		if (!ckt_ptx_accept(p, ','))
			break;
	}
}

/* The directives between the parameters and the body. */
static void parse_directives(
	struct ptx_parser *p, struct ckt_ptx_function *f, unsigned *ret_maxnreg)
{
	while (p->token.kind == TK_DOT) {
		uint32_t three[3];
		if (ckt_ptx_accept_dot(p, "maxntid")) {
			parse_three(p, three);
			f->info.max_threads = three[0] * three[1] * three[2];
		} else if (ckt_ptx_accept_dot(p, "reqntid")) {
			parse_three(p, f->info.reqntid);
			f->info.max_threads =
				f->info.reqntid[0] * f->info.reqntid[1] * f->info.reqntid[2];
		} else if (ckt_ptx_accept_dot(p, "reqnctapercluster")) {
			parse_three(p, f->info.cluster);
		} else if (ckt_ptx_accept_dot(p, "maxnreg")) {
			*ret_maxnreg = (unsigned)integer(p);
		} else if (ckt_ptx_accept_dot(p, "minnctapersm") ||
			ckt_ptx_accept_dot(p, "maxnctapersm") ||
			ckt_ptx_accept_dot(p, "maxclusterrank") ||
			ckt_ptx_accept_dot(p, "abi_preserve") ||
			ckt_ptx_accept_dot(p, "abi_preserve_control")) {
			integer(p);
		} else if (ckt_ptx_accept_dot(p, "noreturn")) {
			f->noreturn = true;
		} else if (ckt_ptx_accept_dot(p, "explicitcluster") ||
			ckt_ptx_accept_dot(p, "blocksareclusters") ||
			ckt_ptx_accept_dot(p, "unique")) {
			continue;
		} else if (ckt_ptx_accept_dot(p, "attribute")) {
			struct declaration ignored = {0};
			parse_attribute(p, &ignored);
		} else if (ckt_ptx_accept_dot(p, "pragma")) {
			while (!ckt_ptx_is(p, ';') && p->token.kind != TK_END)
				ckt_ptx_next(p);
			ckt_ptx_expect(p, ';');
		} else if (ckt_ptx_is_dot(p, "loc") || ckt_ptx_is_dot(p, "file")) {
			ckt_ptx_skip_line(p);
		} else {
			ckt_ptx_fail(p, CKT_PTX_INVALID, "unknown directive .%.*s",
				(int)p->token.size, p->token.text);
		}
	}
}

static struct ckt_ptx_function *function_new(struct ptx_parser *p, bool is_entry)
{
	struct ckt_ptx_function *f = ckt_ptx_new(p, sizeof *f);
	f->module = p->module;
	f->text_name = p->text_name;
	f->info.is_entry = is_entry;
	f->info.max_threads = 1024;
	f->info.ptx_version = p->version;
	f->info.target = p->target;
	return f;
}

static void estimate_registers(struct ckt_ptx_function *f, unsigned maxnreg)
{
	/*
	 * A text has far more virtual registers than a compiler would allocate.  The estimate stays
	 * low enough for a full block to fit an SM.
	 */
	unsigned n = 8 + f->reg_bytes / 128 / 4;
	if (n > 64)
		n = 64;
	if (maxnreg && n > maxnreg)
		n = maxnreg;
	f->info.registers = n;
}

/*
 * Discards everything that the body produced; the rest of the function faults when a kernel reaches
 * it.
 */
static void refuse_function(struct ptx_parser *p)
{
	struct ckt_ptx_function *f = p->function;
	f->refusal = ckt_ptx_copy_name(p, p->message, strlen(p->message));
	f->n_code = f->n_sources = f->n_constants = f->n_callees = f->n_shared = 0;
	f->constant_bytes = 0;
	f->has_indirect_call = f->has_alloca = false;
	f->frame_bytes = (f->frame_bytes + 16) & ~15u;
	p->n_fixups = 0;
	p->in_instruction = p->broken = false;
	p->result = CKT_PTX_OK;
	if (p->log && p->log_size)
		p->log[0] = 0;
	p->raw = (struct ptx_raw){.op = "trap", .line = p->token.line};
	ckt_ptx_emit(p, ckt_ptx_exec_refused);
}

/*
 * A refused instruction makes only its function unusable, not the module: the program may never run
 * that function.
 */
static void parse_body(struct ptx_parser *p)
{
	const struct ptx_token token = p->token;
	const char *const cursor = p->cursor;
	const uint32_t line = p->line;
	jmp_buf outer;
	memcpy(&outer, &p->fail, sizeof outer);
	int failed = setjmp(p->fail);
	if (!failed)
		ckt_ptx_parse_body(p);
	memcpy(&p->fail, &outer, sizeof outer);
	if (!failed)
		return;
	if (p->result != CKT_PTX_INVALID || !p->in_instruction || p->broken)
		longjmp(p->fail, 1);
	p->token = token;
	p->cursor = cursor;
	p->line = line;
	refuse_function(p);
	ckt_ptx_skip_braces(p);
}

static void parse_function(struct ptx_parser *p, enum ptx_linkage linkage, bool is_entry)
{
	struct ckt_ptx_function *f = function_new(p, is_entry);
	enum ptx_space space = is_entry ? SP_PARAM_ENTRY : SP_PARAM;
	unsigned maxnreg = 0;
	uint32_t offset = 0;
	p->scope = ckt_ptx_new(p, sizeof *p->scope);
	p->all_scopes = p->scope;
	p->function = f;
	if (ckt_ptx_is_dot(p, "attribute")) {
		struct declaration ignored = {0};
		ckt_ptx_next(p);
		parse_attribute(p, &ignored);
	}
	if (ckt_ptx_is(p, '('))
		f->rets = ckt_ptx_parse_params(p, &f->n_rets, &offset, space, true);
	struct ptx_symbol *s = function_symbol(p, linkage);
	f->symbol = s;
	f->info.name = s->name;
	if (ckt_ptx_is(p, '('))
		f->params = ckt_ptx_parse_params(p, &f->info.n_params, &offset, space, true);
	f->info.params = f->params;
	if (is_entry)
		f->info.param_bytes = offset;
	else
		f->frame_bytes = offset;
	parse_directives(p, f, &maxnreg);
	if (ckt_ptx_accept(p, ';')) {
		p->function = NULL;
	} else {
		if (s->defined)
			ckt_ptx_fail(p, CKT_PTX_DUPLICATE, "%s is defined twice", s->name);
		s->defined = true;
		s->function = f;
		f->has_body = true;
		f->index = (uint32_t)p->module->n_functions;
		PTX_PUSH(p, p->module->functions, p->module->n_functions, p->module->cap_functions,
			f);
		parse_body(p);
		estimate_registers(f, maxnreg);
	}
	p->function = NULL;
	for (struct ptx_scope *scope = p->all_scopes; scope; scope = scope->next_all)
		ckt_ptx_map_free(&scope->names);
	p->scope = p->all_scopes = NULL;
}

/* ---- The text */

static void parse_target(struct ptx_parser *p)
{
	do {
		if (p->token.kind == TK_IDENT && p->token.size > 3 &&
			!memcmp(p->token.text, "sm_", 3)) {
			unsigned target = 0;
			for (uint32_t k = 3; k < p->token.size && p->token.text[k] >= '0' &&
				p->token.text[k] <= '9';
				k++)
				target = target * 10 + (unsigned)(p->token.text[k] - '0');
			p->target = target;
			if (target > p->module->target)
				ckt_ptx_fail(p, CKT_PTX_WRONG_TARGET,
					"made for compute capability %u.%u; the device has %u.%u",
					target / 10, target % 10, p->module->target / 10,
					p->module->target % 10);
		}
		ckt_ptx_next(p);
	} while (ckt_ptx_accept(p, ','));
}

static void parse_version(struct ptx_parser *p)
{
	/*
	 * A number token would lose the difference between "9.1" and "9.10", so read the
	 * characters.
	 */
	unsigned major = 0, minor = 0;
	const char *s = p->token.text;
	while (s < p->end && *s >= '0' && *s <= '9')
		major = major * 10 + (unsigned)(*s++ - '0');
	if (s < p->end && *s == '.')
		for (s++; s < p->end && *s >= '0' && *s <= '9'; s++)
			minor = minor * 10 + (unsigned)(*s - '0');
	p->version = major * 10 + minor;
	ckt_ptx_next(p);
}

static void parse_alias(struct ptx_parser *p)
{
	need_ident(p);
	struct ptx_symbol *s = function_symbol(p, LINK_VISIBLE);
	ckt_ptx_expect(p, ',');
	need_ident(p);
	s->alias = function_symbol(p, LINK_LOCAL);
	s->defined = true;
	ckt_ptx_expect(p, ';');
}

static void parse_declaration_statement(struct ptx_parser *p)
{
	static const struct {
		const char *word;
		enum ptx_linkage linkage;
	} linkages[] = {{"extern", LINK_EXTERN}, {"visible", LINK_VISIBLE}, {"weak", LINK_WEAK},
		{"common", LINK_COMMON}};
	enum ptx_linkage linkage = LINK_LOCAL;
	for (size_t k = 0; k < sizeof linkages / sizeof *linkages; k++)
		if (ckt_ptx_accept_dot(p, linkages[k].word))
			linkage = linkages[k].linkage;
	if (ckt_ptx_accept_dot(p, "entry"))
		parse_function(p, linkage, true);
	else if (ckt_ptx_accept_dot(p, "func"))
		parse_function(p, linkage, false);
	else if (ckt_ptx_accept_dot(p, "global"))
		ckt_ptx_parse_module_variable(p, linkage, SP_GLOBAL);
	else if (ckt_ptx_accept_dot(p, "const"))
		ckt_ptx_parse_module_variable(p, linkage, SP_CONST);
	else if (ckt_ptx_accept_dot(p, "shared"))
		ckt_ptx_parse_module_variable(p, linkage, SP_SHARED);
	else
		ckt_ptx_fail(p, CKT_PTX_INVALID, "unknown directive '%.*s'",
			(int)(p->token.size < 60 ? p->token.size : 60), p->token.text);
}

void ckt_ptx_parse_text(struct ptx_parser *p)
{
	ckt_ptx_next(p);
	if (!ckt_ptx_is_dot(p, "version"))
		ckt_ptx_fail(p, CKT_PTX_INVALID, ".version expected");
	while (p->token.kind != TK_END) {
		if (ckt_ptx_accept_dot(p, "version")) {
			parse_version(p);
		} else if (ckt_ptx_accept_dot(p, "target")) {
			parse_target(p);
		} else if (ckt_ptx_accept_dot(p, "address_size")) {
			if (integer(p) != 64)
				ckt_ptx_fail(
					p, CKT_PTX_INVALID, "only .address_size 64 is supported");
		} else if (ckt_ptx_is_dot(p, "file") || ckt_ptx_is_dot(p, "loc")) {
			ckt_ptx_skip_line(p);
		} else if (ckt_ptx_accept_dot(p, "section")) {
			while (!ckt_ptx_is(p, '{') && p->token.kind != TK_END)
				ckt_ptx_next(p);
			ckt_ptx_skip_braces(p);
		} else if (ckt_ptx_accept_dot(p, "pragma")) {
			while (!ckt_ptx_accept(p, ';') && p->token.kind != TK_END)
				ckt_ptx_next(p);
		} else if (ckt_ptx_accept_dot(p, "alias")) {
			parse_alias(p);
		} else if (!ckt_ptx_accept(p, ';')) {
			parse_declaration_statement(p);
		}
	}
}
