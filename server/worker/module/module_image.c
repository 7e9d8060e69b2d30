/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules in an image, their functions, and the variables whose addresses the program knows.
 * Modules are loaded by steps of the journal.
 */
#include <errno.h>
#include <string.h>

#include "checkpoint/load/image_load.h"
#include "checkpoint/save/image_save.h"
#include "rpc/gen/cuda_driver.h"
#include "server/worker/module/module.h"
#include "server/worker/module/module_binary.h"
#include "server/worker/module/module_variables.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/object_kinds.h"
#include "server/worker/worker.h"

/* ---- Saving */

static size_t count_seen(struct ckt_object *const *objects, size_t count)
{
	size_t seen = 0;
	for (size_t i = 0; i < count; i++)
		seen += ckt_handle_kind(objects[i]->id) == CKT_KIND_MODULE
			? objects[i]->module.seen_count
			: 0;
	return seen;
}

static int prepare_modules(struct ckt_saving *s, struct ckt_object *const *objects, size_t count)
{
	s->image.modules.modules_val = ckt_save_list(s, count, sizeof(ckt_image_module));
	s->image.seen.seen_val =
		ckt_save_list(s, count_seen(objects, count), sizeof(ckt_image_seen));
	s->image.seen_known = true;
	return 0;
}

static int save_globals(struct ckt_saving *s, ckt_image_module *module, struct ckt_object *object)
{
	const struct ckt_blob *blob = ckt_blobs_find(&s->worker->blobs, object->module.hash);
	struct ckt_object *context = ckt_objects_find(&s->worker->objects, object->context);
	if (!blob || !context)
		return 0;
	ckt_driver.cuCtxSetCurrent(context->real);
	const struct ckt_module_variables *variables = ckt_module_variables_of(object, blob);
	s->no_memory |= !variables;
	if (variables)
		module->globals.globals_val =
			ckt_save_list(s, variables->count, sizeof(ckt_image_global));
	for (size_t i = 0; variables && i < variables->count && !s->no_memory; i++) {
		const struct ckt_module_variable *from = &variables->list[i];
		module->globals.globals_val[module->globals.globals_len++] =
			(ckt_image_global){.name = ckt_save_string(s, from->name),
				.address = from->address,
				.size = from->size};
		size_t before = s->piece_count;
		ckt_save_add_pieces(s, 0, context->ctx.device, from->address, NULL, from->size);
		/* The hash kernel cannot read the memory of another context. */
		for (size_t k = before; k < s->piece_count && !context->ctx.primary; k++)
			s->pieces[k].hashable = false;
	}
	return ckt_save_has_memory(s);
}

static int save_module(struct ckt_saving *s, struct ckt_object *object)
{
	ckt_image_module *module = &s->image.modules.modules_val[s->image.modules.modules_len++];
	uint32_t count = object->module.option_count;
	*module = (ckt_image_module){.id = object->id, .context = object->context};
	memcpy(module->hash, object->module.hash, sizeof module->hash);
	module->option_keys.option_keys_val = ckt_save_list(s, count, sizeof(u_int));
	module->option_values.option_values_val =
		ckt_save_list(s, count, sizeof *module->option_values.option_values_val);
	if (s->no_memory)
		return ckt_save_has_memory(s);
	module->option_keys.option_keys_len = module->option_values.option_values_len = count;
	for (uint32_t i = 0; i < count; i++) {
		module->option_keys.option_keys_val[i] = object->module.option_keys[i];
		module->option_values.option_values_val[i] = object->module.option_values[i];
	}
	for (uint32_t i = 0; i < object->module.seen_count; i++)
		s->image.seen.seen_val[s->image.seen.seen_len++] =
			(ckt_image_seen){object->id, ckt_save_string(s, object->module.seen[i])};
	return save_globals(s, module, object);
}

static int prepare_functions(struct ckt_saving *s, struct ckt_object *const *objects, size_t count)
{
	(void)objects;
	s->image.functions.functions_val = ckt_save_list(s, count, sizeof(ckt_image_function));
	return 0;
}

static int save_function(struct ckt_saving *s, struct ckt_object *object)
{
	ckt_image_function *function =
		&s->image.functions.functions_val[s->image.functions.functions_len++];
	*function = (ckt_image_function){.id = object->id,
		.module = object->parent,
		.name = ckt_save_string(s, object->function.name),
		.cache_config_set = object->function.cache_config_set,
		.cache_config = object->function.cache_config};
	function->attributes.attributes_val =
		ckt_save_list(s, object->function.set_count, sizeof(ckt_image_attribute));
	if (s->no_memory)
		return ckt_save_has_memory(s);
	function->attributes.attributes_len = object->function.set_count;
	for (uint32_t i = 0; i < object->function.set_count; i++)
		function->attributes.attributes_val[i] = (ckt_image_attribute){
			object->function.sets[i].attribute, object->function.sets[i].value};
	return 0;
}

/* ---- Checking */

static const char *name_of(const ckt_image *image, uint64_t module)
{
	for (unsigned i = 0; i < image->functions.functions_len; i++)
		if (image->functions.functions_val[i].module == module)
			return image->functions.functions_val[i].name;
	return "a kernel that was not asked for";
}

/* Checks that each module has code for its new GPU, or PTX to compile. */
static int check_code(struct ckt_loading *l)
{
	const ckt_image *image = &l->image;
	for (unsigned i = 0; i < image->modules.modules_len && l->other_model; i++) {
		const ckt_image_module *module = &image->modules.modules_val[i];
		const struct ckt_blob *blob =
			ckt_blobs_find(&l->worker->blobs, (const uint8_t *)module->hash);
		unsigned d = 0;
		bool has_ptx;
		for (unsigned k = 0; k < image->contexts.contexts_len; k++)
			if (image->contexts.contexts_val[k].id == module->context)
				d = image->contexts.contexts_val[k].device;
		const struct ckt_worker_device *device =
			d < l->worker->device_count ? &l->worker->devices[d] : NULL;
		if (!blob || !device)
			return ckt_load_refuse(l, -EBADMSG,
				"the image is damaged: module 0x%llx has no contents or no GPU",
				(unsigned long long)module->id);
		if (!ckt_module_binary_fits(blob->data, blob->size,
			    (unsigned)(device->major * 10 + device->minor), &has_ptx))
			return ckt_load_refuse(l, -ENODEV,
				"module 0x%llx (%.200s) %s, and this GPU is %s "
				"(%d.%d): restore it on a GPU of the model it ran on",
				(unsigned long long)module->id, name_of(image, module->id),
				has_ptx ? "has PTX for newer GPUs only"
					: "has machine code for other GPUs only, and no PTX",
				device->name, device->major, device->minor);
	}
	return 0;
}

/* ---- The journal */

static const ckt_image_module *find_module(const ckt_image *image, uint64_t id)
{
	for (unsigned i = 0; i < image->modules.modules_len; i++)
		if (image->modules.modules_val[i].id == id)
			return &image->modules.modules_val[i];
	return NULL;
}

static int replay_load(struct ckt_loading *l, const ckt_image_journal *entry)
{
	struct ckt_worker *worker = l->worker;
	const ckt_image_module *live = find_module(&l->image, entry->id);
	uint32_t count = live ? live->option_keys.option_keys_len : 0;
	uint64_t values[CKT_IMAGE_OPTIONS];
	struct ckt_object *object;
	if (live && memcmp(live->hash, entry->hash, sizeof live->hash))
		return ckt_load_refuse(l, -EBADMSG,
			"the image is damaged: its journal describes module 0x%llx "
			"differently",
			(unsigned long long)entry->id);
	for (uint32_t i = 0; i < count; i++)
		values[i] = live->option_values.option_values_val[i];
	CUresult result = ckt_worker_use_context(worker, entry->context);
	if (!result)
		result = ckt_module_load(worker, entry->id, (const uint8_t *)entry->hash,
			live ? live->option_keys.option_keys_val : NULL, values, count, &object);
	/*
	 * An unloaded module is loaded only to repeat the history of addresses, which differs on
	 * another GPU model anyway.
	 */
	if (result && !live && l->other_model)
		return 0;
	return result ? ckt_load_fail(l, result, "module", entry->id) : 0;
}

static int replay_unload(struct ckt_loading *l, const ckt_image_journal *entry)
{
	struct ckt_object *module =
		ckt_objects_find_kind(&l->worker->objects, entry->id, CKT_KIND_MODULE);
	if (module)
		ckt_module_unload(l->worker, module);
	return 0;
}

static const struct ckt_journal_step steps[] = {
	{.kind = CKT_JOURNAL_MODULE_LOAD, .replay = replay_load},
	{.kind = CKT_JOURNAL_MODULE_UNLOAD, .replay = replay_unload},
	{0},
};

/* ---- Loading */

static int load_function(struct ckt_loading *l, unsigned i)
{
	const ckt_image_function *saved = &l->image.functions.functions_val[i];
	struct ckt_object *module = ckt_objects_find_kind(
				  &l->worker->objects, saved->module, CKT_KIND_MODULE),
			  *object;
	if (!module)
		return ckt_load_refuse(l, -EBADMSG,
			"the image is damaged: function %.256s has no module", saved->name);
	ckt_worker_use_context(l->worker, module->context);
	CUresult result = ckt_function_get(l->worker, module, saved->id, saved->name, &object);
	for (unsigned k = 0; k < saved->attributes.attributes_len && !result; k++)
		result = ckt_function_set(object, saved->attributes.attributes_val[k].attribute,
			saved->attributes.attributes_val[k].value);
	if (!result && saved->cache_config_set) {
		object->function.cache_config_set = true;
		object->function.cache_config = saved->cache_config;
		result = ckt_driver.cuFuncSetCacheConfig(
			object->real, (CUfunc_cache)saved->cache_config);
	}
	if (result)
		return ckt_load_fail(l, result, "function", saved->id);
	return 0;
}

static int load_seen(struct ckt_loading *l)
{
	const ckt_image *image = &l->image;
	for (unsigned i = 0; i < image->seen.seen_len; i++) {
		struct ckt_object *module = ckt_objects_find_kind(
			&l->worker->objects, image->seen.seen_val[i].module, CKT_KIND_MODULE);
		if (!module)
			return ckt_load_refuse(l, -EBADMSG,
				"the image is damaged: a variable belongs to a module "
				"that does not exist");
		if (ckt_module_note_seen(module, image->seen.seen_val[i].name))
			return ckt_load_refuse(
				l, -ENOMEM, "the worker has no memory for the names of variables");
	}
	/* Older images do not record which addresses the program knows, so all count as known. */
	for (unsigned m = 0; m < image->modules.modules_len && !image->seen_known; m++)
		for (unsigned i = 0; i < image->modules.modules_val[m].globals.globals_len; i++)
			if (ckt_module_note_seen(ckt_objects_find(&l->worker->objects,
							 image->modules.modules_val[m].id),
				    image->modules.modules_val[m].globals.globals_val[i].name))
				return ckt_load_refuse(l, -ENOMEM,
					"the worker has no memory for the names of variables");
	return 0;
}

static void visit_variables(const ckt_image *image, ckt_contents_visit *visit, void *opaque)
{
	for (unsigned m = 0; m < image->modules.modules_len; m++) {
		const ckt_image_module *module = &image->modules.modules_val[m];
		for (unsigned i = 0; i < module->globals.globals_len; i++) {
			const ckt_image_global *g = &module->globals.globals_val[i];
			visit(&(struct ckt_contents){.owner = module->id,
				      .offset = g->address,
				      .address = g->address,
				      .size = g->size,
				      .device = UINT32_MAX,
				      .context = module->context},
				opaque);
		}
	}
}

const struct ckt_object_kind ckt_module_kind = {
	.name = "modules",
	.handles = CKT_HANDLES(MODULE),
	.steps = steps,
	.prepare = prepare_modules,
	.save = save_module,
	.check_code = check_code,
	.contents = visit_variables,
};

const struct ckt_object_kind ckt_function_kind = {
	.name = "functions",
	.handles = CKT_HANDLES(FUNCTION),
	.prepare = prepare_functions,
	.save = save_function,
	.stage = CKT_LOAD_HANDLES,
	.list = CKT_IMAGE_LIST(functions),
	.load = load_function,
};

const struct ckt_object_kind ckt_seen_kind = {
	.name = "addresses",
	.stage = CKT_LOAD_REST,
	.load_rest = load_seen,
};
