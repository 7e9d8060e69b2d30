/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's interface to modules: loading, globals, functions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/compiled/compile.h"
#include "softgpu/ptx/front/containers.h"
#include "softgpu/ptx/front/link.h"
#include "softgpu/ptx/front/parser.h"
#include "softgpu/ptx/program.h"

static void parse_one(struct ptx_parser *p, const struct ckt_ptx_text *text, unsigned unit)
{
	char fallback[32];
	snprintf(fallback, sizeof fallback, "ptx%u", unit);
	p->text_name = text->name ? text->name : fallback;
	p->begin = p->cursor = text->text;
	p->end = text->text + text->size_bytes;
	p->line = 1;
	p->unit = unit;
	if (setjmp(p->fail))
		return;
	const char *name = ckt_ptx_copy_name(p, p->text_name, strlen(p->text_name));
	p->text_name = name;
	ckt_ptx_parse_text(p);
	if (p->version > p->module->ptx_version)
		p->module->ptx_version = p->version;
}

enum ckt_ptx_result ckt_ptx_module_load(const struct ckt_ptx_text *texts, size_t n_texts,
	const struct ckt_ptx_load_options *options, char *log, size_t log_size_bytes,
	struct ckt_ptx_module **ret_module)
{
	if (log && log_size_bytes)
		log[0] = 0;
	struct ckt_ptx_module *module = calloc(1, sizeof *module);
	struct ptx_parser *p = calloc(1, sizeof *p);
	if (!module || !p) {
		free(module);
		free(p);
		return CKT_PTX_NO_MEMORY;
	}
	pthread_mutex_init(&module->lock, NULL);
	module->target = options->target;
	module->allow_undefined = options->allow_undefined;
	p->module = module;
	p->log = log;
	p->log_size = log_size_bytes;
	for (size_t k = 0; k < n_texts && p->result == CKT_PTX_OK; k++) {
		parse_one(p, &texts[k], (unsigned)k);
		ckt_ptx_map_free(&p->names);
		ckt_ptx_map_free(&p->spellings); /* valid for one .target only */
		for (struct ptx_scope *scope = p->all_scopes; scope; scope = scope->next_all)
			ckt_ptx_map_free(&scope->names);
		p->all_scopes = p->scope = NULL;
		p->function = NULL;
		p->in_instruction = false;
	}
	enum ckt_ptx_result result = p->result == CKT_PTX_OK ? ckt_ptx_link(p) : p->result;
	free(p->fixups);
	ckt_ptx_map_free(&p->constants);
	ckt_ptx_map_free(&p->spellings);
	free(p);
	ckt_ptx_map_free(&module->link);
	if (result == CKT_PTX_OK)
		*ret_module = module;
	else
		ckt_ptx_module_destroy(module);
	return result;
}

void ckt_ptx_module_destroy(struct ckt_ptx_module *module)
{
	if (!module)
		return;
	for (size_t k = 0; k < module->n_functions; k++) {
		struct ckt_ptx_function *f = module->functions[k];
		ckt_ptx_prepared_free(module, f->prepared);
		free(f->code);
		free(f->constants);
		free(f->callees);
		free(f->shared);
		free(f->sources);
	}
	for (size_t k = 0; k < module->n_symbols; k++)
		free(module->symbols[k]->relocs);
	ckt_ptx_compile_drop(module->compiled);
	free(module->symbols);
	free(module->functions);
	free(module->entries);
	free(module->globals);
	free(module->global_symbols);
	ckt_ptx_arena_free(&module->arena);
	pthread_mutex_destroy(&module->lock);
	free(module);
}

size_t ckt_ptx_module_global_count(const struct ckt_ptx_module *module)
{
	return module->n_globals;
}

struct ckt_ptx_global *ckt_ptx_module_global(struct ckt_ptx_module *module, size_t index)
{
	return index < module->n_globals ? &module->globals[index] : NULL;
}

void ckt_ptx_module_bind(struct ckt_ptx_module *module)
{
	for (size_t k = 0; k < module->n_globals; k++) {
		const struct ptx_symbol *s = module->global_symbols[k];
		uint8_t *place = (uint8_t *)(uintptr_t)module->globals[k].address;
		if (!s->size || !place)
			continue;
		if (s->init_bytes)
			memcpy(place, s->init, s->init_bytes);
		memset(place + s->init_bytes, 0, s->size - s->init_bytes);
		for (size_t n = 0; n < s->n_relocs; n++) {
			const struct ptx_relocation *r = &s->relocs[n];
			uint64_t value =
				(ckt_ptx_symbol_address(r->symbol, NULL) + r->addend) >> r->shift;
			memcpy(place + r->offset, &value, r->size);
		}
	}
	module->bound = true;
}

size_t ckt_ptx_module_function_count(const struct ckt_ptx_module *module)
{
	return module->n_entries;
}

const struct ckt_ptx_function *ckt_ptx_module_function(
	const struct ckt_ptx_module *module, size_t index)
{
	return index < module->n_entries ? module->entries[index] : NULL;
}

const struct ckt_ptx_function *ckt_ptx_module_find_function(
	const struct ckt_ptx_module *module, const char *name)
{
	for (size_t k = 0; k < module->n_entries; k++)
		if (!strcmp(module->entries[k]->info.name, name))
			return module->entries[k];
	return NULL;
}

const struct ckt_ptx_function_info *ckt_ptx_function_info(const struct ckt_ptx_function *function)
{
	return &function->info;
}
