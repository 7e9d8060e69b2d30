/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins the symbols of all texts, lays out variables, writes their initial contents, and prepares
 * entries for launching.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/compiled/compile.h"
#include "softgpu/ptx/execution/builtin.h"
#include "softgpu/ptx/front/containers.h"
#include "softgpu/ptx/front/link.h"
#include "softgpu/ptx/front/parser.h"
#include "softgpu/ptx/machine.h"
#include "softgpu/ptx/program.h"

static enum ckt_ptx_result complain(struct ptx_parser *p, enum ckt_ptx_result result,
	const char *what, const struct ptx_symbol *s)
{
	if (p->log && p->log_size)
		snprintf(
			p->log, p->log_size, "%s:%u: %s: %s", p->text_name, s->line, what, s->name);
	return result;
}

/*
 * Chooses among definitions of one name: a strong one beats others, the first of two weak ones
 * counts, and the larger of two common ones.
 */
static enum ckt_ptx_result join(struct ptx_parser *p, struct ptx_symbol *s)
{
	struct ckt_ptx_module *module = p->module;
	struct ptx_symbol *old = ckt_ptx_map_get(&module->link, s->name, strlen(s->name));
	if (old && old->kind != s->kind)
		return complain(
			p, CKT_PTX_DUPLICATE, "declared as a function and as a variable", s);
	bool take = !old || (s->defined && !old->defined);
	if (old && s->defined && old->defined) {
		bool weak_new = s->linkage == LINK_WEAK || s->linkage == LINK_COMMON,
		     weak_old = old->linkage == LINK_WEAK || old->linkage == LINK_COMMON;
		bool both_dynamic = s->dynamic && old->dynamic;
		if (!weak_new && !weak_old && !both_dynamic)
			return complain(p, CKT_PTX_DUPLICATE, "defined twice", s);
		take = weak_old &&
			(!weak_new || (s->linkage == LINK_COMMON && s->size > old->size));
	}
	if (take && ckt_ptx_map_put(&module->link, s->name, strlen(s->name), s))
		return complain(p, CKT_PTX_NO_MEMORY, "out of memory", s);
	return CKT_PTX_OK;
}

static enum ckt_ptx_result resolve(struct ptx_parser *p)
{
	struct ckt_ptx_module *module = p->module;
	for (size_t k = 0; k < module->n_symbols; k++) {
		if (module->symbols[k]->linkage == LINK_LOCAL)
			continue;
		enum ckt_ptx_result r = join(p, module->symbols[k]);
		if (r != CKT_PTX_OK)
			return r;
	}
	for (size_t k = 0; k < module->n_symbols; k++) {
		struct ptx_symbol *s = module->symbols[k];
		s->target = s->linkage == LINK_LOCAL
			? s
			: ckt_ptx_map_get(&module->link, s->name, strlen(s->name));
		for (unsigned depth = 0; s->target->alias && depth < 16; depth++)
			s->target = s->target->alias;
		if (s->target->kind == SYM_FUNCTION && !s->target->defined)
			s->target->builtin = ckt_ptx_builtin_find(s->name);
		/*
		 * Functions that libcudadevrt expects from the driver for launches from kernels: a
		 * module may contain that library without using it.
		 */
		bool device_runtime = s->kind == SYM_FUNCTION &&
			(!strncmp(s->name, "cnp", 3) || !strncmp(s->name, "__cuda_syscall_", 15));
		if (!s->target->defined && !s->target->builtin && !module->allow_undefined &&
			!device_runtime)
			return complain(p, CKT_PTX_UNRESOLVED,
				s->kind == SYM_FUNCTION ? "undefined function"
							: "undefined variable",
				s);
		s->target->used_as_address |= s->used_as_address;
	}
	return CKT_PTX_OK;
}

static enum ckt_ptx_result list_globals(struct ptx_parser *p)
{
	struct ckt_ptx_module *module = p->module;
	size_t n = 0;
	uint64_t const_bytes = 0;
	for (size_t k = 0; k < module->n_symbols; k++) {
		struct ptx_symbol *s = module->symbols[k];
		if (s->kind != SYM_VARIABLE || s->target != s)
			continue;
		if (s->space == SP_SHARED)
			s->shared_index = module->n_shared++;
		else if (s->defined)
			n++;
	}
	module->globals = calloc(n ? n : 1, sizeof *module->globals);
	module->global_symbols = calloc(n ? n : 1, sizeof *module->global_symbols);
	if (!module->globals || !module->global_symbols)
		return CKT_PTX_NO_MEMORY;
	for (size_t k = 0; k < module->n_symbols; k++) {
		struct ptx_symbol *s = module->symbols[k];
		if (s->kind != SYM_VARIABLE || s->target != s || s->space == SP_SHARED ||
			!s->defined)
			continue;
		struct ckt_ptx_global *g = &module->globals[module->n_globals];
		*g = (struct ckt_ptx_global){.name = s->name,
			.space = s->space == SP_CONST ? CKT_PTX_SPACE_CONST : CKT_PTX_SPACE_GLOBAL,
			.size_bytes = s->size,
			.align_bytes = s->align,
			.managed = s->managed,
			.is_public = s->linkage != LINK_LOCAL};
		s->global = g;
		module->global_symbols[module->n_globals++] = s;
		if (s->space == SP_CONST)
			const_bytes += s->size;
	}
	for (size_t k = 0; k < module->n_functions; k++)
		module->functions[k]->info.const_bytes = (uint32_t)const_bytes;
	return CKT_PTX_OK;
}

/* ---- Functions that an entry can reach */

struct reach {
	const struct ckt_ptx_module *module;
	uint8_t *seen;  /* by function: 1 reached, 2 being visited */
	uint64_t *need; /* stack bytes that the function and its callees need */
	bool recursive, indirect;
};

static uint64_t visit(struct reach *r, const struct ckt_ptx_function *f)
{
	uint64_t deepest = 0;
	if (r->seen[f->index] == 2) {
		r->recursive = true;
		return 0;
	}
	if (r->seen[f->index] == 1)
		return r->need[f->index];
	r->seen[f->index] = 2;
	r->indirect |= f->has_alloca;
	for (size_t k = 0; k < f->n_callees; k++) {
		const struct ckt_ptx_function *g = f->callees[k]->target->function;
		uint64_t need = g && !g->info.is_entry ? visit(r, g) : 0;
		deepest = need > deepest ? need : deepest;
	}
	if (f->has_indirect_call) {
		/*
		 * An indirect call may reach any function whose address is taken, even through
		 * tables in memory.
		 */
		r->indirect = true;
		for (size_t k = 0; k < r->module->n_functions; k++) {
			const struct ckt_ptx_function *g = r->module->functions[k];
			uint64_t need =
				g->symbol->used_as_address && !g->info.is_entry ? visit(r, g) : 0;
			deepest = need > deepest ? need : deepest;
		}
	}
	r->seen[f->index] = 1;
	r->need[f->index] = deepest + f->frame_bytes;
	return r->need[f->index];
}

/* The refused function that f is or calls, directly or indirectly; NULL: none. */
static const struct ckt_ptx_function *refused(const struct ckt_ptx_function *f, uint8_t *seen)
{
	const struct ckt_ptx_function *found = f->refusal ? f : NULL;
	seen[f->index] = 1;
	for (size_t k = 0; k < f->n_callees && !found; k++) {
		const struct ckt_ptx_function *g = f->callees[k]->target->function;
		if (g && !seen[g->index])
			found = refused(g, seen);
	}
	return found;
}

static enum ckt_ptx_result note_refusal(
	struct ckt_ptx_module *module, struct ckt_ptx_function *entry)
{
	uint8_t *seen = calloc(module->n_functions + 1, 1);
	const struct ckt_ptx_function *f = seen ? refused(entry, seen) : NULL;
	free(seen);
	entry->info.refusal = f ? f->refusal : NULL;
	return seen ? CKT_PTX_OK : CKT_PTX_NO_MEMORY;
}

static void layout_shared(
	const struct ckt_ptx_module *module, const uint8_t *seen, struct ptx_prepared *prepared)
{
	uint64_t end = 0;
	uint32_t dynamic_align = 16;
	for (uint32_t k = 0; k < module->n_shared; k++)
		prepared->shared_offset[k] = UINT32_MAX;
	for (unsigned pass = 0; pass < 2; pass++) {
		for (size_t n = 0; n < module->n_functions; n++) {
			const struct ckt_ptx_function *f = module->functions[n];
			for (size_t k = 0; seen[n] && k < f->n_shared; k++) {
				const struct ptx_symbol *s = f->shared[k]->target;
				uint32_t *offset = &prepared->shared_offset[s->shared_index];
				if (s->dynamic && dynamic_align < s->align)
					dynamic_align = s->align;
				if (s->dynamic != (pass == 1) || *offset != UINT32_MAX)
					continue;
				if (!s->dynamic)
					end = (end + s->align - 1) & ~(uint64_t)(s->align - 1);
				*offset = s->dynamic ? prepared->dynamic_shared_offset
						     : (uint32_t)end;
				end += s->dynamic ? 0 : s->size;
				if (end > PTX_SHARED_MAX)
					/* more than any launch can have; the launch reports it */
					end = PTX_SHARED_MAX;
			}
		}
		prepared->static_shared_bytes = (uint32_t)end;
		prepared->dynamic_shared_offset =
			((uint32_t)end + dynamic_align - 1) & ~(dynamic_align - 1);
	}
}

static void fill_pool(
	const struct ckt_ptx_function *f, const struct ptx_prepared *prepared, uint8_t *pool)
{
	for (size_t k = 0; k < f->n_constants; k++) {
		const struct ptx_constant *c = &f->constants[k];
		uint64_t value =
			c->value + (c->symbol ? ckt_ptx_symbol_address(c->symbol, prepared) : 0);
		uint8_t *place = pool + c->offset;
		if (!c->lane_bytes)
			*(uint32_t *)place = (uint32_t)value;
		for (unsigned l = 0; c->lane_bytes && l < PTX_LANES; l++) {
			if (c->lane_bytes == 4)
				((uint32_t *)place)[l] = (uint32_t)value;
			else if (c->lane_bytes == 8)
				((uint64_t *)place)[l] = value;
			else
				memcpy(place + 16 * l, (uint64_t[2]){value, c->high}, 16);
		}
	}
}

uint64_t ckt_ptx_symbol_address(
	const struct ptx_symbol *symbol, const struct ptx_prepared *prepared)
{
	const struct ptx_symbol *s = symbol->target;
	if (s->kind == SYM_FUNCTION)
		return s->function ? PTX_CODE_WINDOW + (uint64_t)s->function->index * 16 : 0;
	if (s->space == SP_SHARED)
		return prepared && prepared->shared_offset[s->shared_index] != UINT32_MAX
			? prepared->shared_offset[s->shared_index]
			: 0;
	return s->global ? s->global->address : 0;
}

/* Precondition: the module's lock is held, or no other thread knows the module yet. */
static struct ptx_prepared *prepare(
	struct ckt_ptx_module *module, const struct ckt_ptx_function *entry, bool pools)
{
	struct ptx_prepared *prepared = calloc(1, sizeof *prepared);
	struct reach r = {.module = module,
		.seen = calloc(module->n_functions + 1, 1),
		.need = calloc(module->n_functions + 1, sizeof *r.need)};
	if (prepared) {
		prepared->pools = calloc(module->n_functions + 1, sizeof *prepared->pools);
		prepared->shared_offset =
			calloc(module->n_shared + 1, sizeof *prepared->shared_offset);
	}
	bool ok = prepared && prepared->pools && prepared->shared_offset && r.seen && r.need;
	if (ok) {
		uint64_t need = visit(&r, entry);
		prepared->stack_bytes = need > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uint32_t)need;
		prepared->recursive = r.recursive || r.indirect;
		layout_shared(module, r.seen, prepared);
	}
	for (size_t k = 0; ok && pools && k < module->n_functions; k++) {
		const struct ckt_ptx_function *f = module->functions[k];
		if (!r.seen[k])
			continue;
		prepared->pools[k] =
			aligned_alloc(64, ((size_t)f->constant_bytes + 127) & ~(size_t)63);
		ok = prepared->pools[k] != NULL;
		if (ok)
			fill_pool(f, prepared, prepared->pools[k]);
	}
	free(r.seen);
	free(r.need);
	if (ok && pools)
		prepared->compiled = ckt_ptx_compile_new(module);
	if (!ok) {
		ckt_ptx_prepared_free(module, prepared);
		return NULL;
	}
	return prepared;
}

void ckt_ptx_prepared_free(struct ckt_ptx_module *module, struct ptx_prepared *prepared)
{
	if (!prepared)
		return;
	ckt_ptx_compile_drop(prepared->compiled);
	for (size_t k = 0; prepared->pools && k < module->n_functions; k++)
		free(prepared->pools[k]);
	free(prepared->pools);
	free(prepared->shared_offset);
	free(prepared);
}

int ckt_ptx_prepare(const struct ckt_ptx_function *entry, const struct ptx_prepared **ret_prepared)
{
	struct ckt_ptx_module *module = entry->module;
	struct ckt_ptx_function *f = module->functions[entry->index];
	int r = 0;
	pthread_mutex_lock(&module->lock);
	if (!f->prepared)
		f->prepared = prepare(module, f, true);
	if (f->prepared)
		*ret_prepared = f->prepared;
	else
		r = -ENOMEM;
	pthread_mutex_unlock(&module->lock);
	return r;
}

enum ckt_ptx_result ckt_ptx_link(struct ptx_parser *p)
{
	struct ckt_ptx_module *module = p->module;
	enum ckt_ptx_result r = resolve(p);
	if (r == CKT_PTX_OK)
		r = list_globals(p);
	for (size_t k = 0; r == CKT_PTX_OK && k < module->n_functions; k++) {
		struct ckt_ptx_function *f = module->functions[k];
		/*
		 * A weak function that another text's definition replaced is not an entry of the
		 * module.
		 */
		if (!f->info.is_entry || f->symbol->target != f->symbol)
			continue;
		struct ptx_prepared *prepared = prepare(module, f, false);
		if (!prepared || note_refusal(module, f)) {
			ckt_ptx_prepared_free(module, prepared);
			return CKT_PTX_NO_MEMORY;
		}
		f->info.static_shared_bytes = prepared->static_shared_bytes;
		f->info.local_bytes = prepared->stack_bytes;
		ckt_ptx_prepared_free(module, prepared);
		if (module->n_entries == module->cap_entries &&
			ckt_ptx_grow((void **)&module->entries, &module->cap_entries,
				module->n_entries + 1, sizeof *module->entries))
			return CKT_PTX_NO_MEMORY;
		module->entries[module->n_entries++] = f;
	}
	return r;
}
