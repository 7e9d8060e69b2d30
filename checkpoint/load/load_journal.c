/*
 * The journal of a session, gone through again: modules, contexts, arrays and what else moves the
 * addresses of what comes after it.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "server/worker/objects/array_image.h"
#include "checkpoint/kernels/digest.h"
#include "server/worker/driver.h"
#include "server/worker/session/fault.h"
#include "checkpoint/load/image_load.h"
#include "server/worker/libs/code/code.h"
#include "server/worker/libs/state.h"
#include "checkpoint/load/preload.h"

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
			"the image is damaged: module 0x%llx is another in its journal",
			(unsigned long long)entry->id);
	for (uint32_t i = 0; i < count; i++)
		values[i] = live->option_values.option_values_val[i];
	CUresult result = ckt_worker_use_context(worker, entry->context);
	if (!result)
		result = ckt_module_load(worker, entry->id, (const uint8_t *)entry->hash,
			live ? live->option_keys.option_keys_val : NULL, values, count, &object);
	/* A dead one is loaded for the history of addresses alone, and that is another here. */
	if (result && !live && l->other_model)
		return 0;
	return result ? ckt_load_fail(l, result, "module", entry->id) : 0;
}

/* For tests: something else takes the place of the next variables. */
static void take_place(struct ckt_loading *l)
{
	static const char ptx[] =
		".version 6.4\n.target sm_70\n.address_size 64\n.visible .global .align 8 .b8 place[65536];\n";
	CUmodule module;
	struct ckt_object *primary;
	if (!ckt_fault_fails(CKT_FAULT_RESTORE_MOVED) ||
		ckt_context_primary(l->worker, 0, &primary) ||
		ckt_worker_use_context(l->worker, primary->id))
		return;
	if (ckt_driver.cuModuleLoadDataEx(&module, ptx, 0, NULL, NULL))
		ckt_warning("told to fail, and could not");
}

static int replay_array(struct ckt_loading *l, uint64_t id)
{
	for (unsigned i = 0; i < l->image.arrays.arrays_len; i++) {
		const ckt_image_array *saved = &l->image.arrays.arrays_val[i];
		if (saved->id != id)
			continue;
		CUresult result = ckt_array_load(l->worker, saved);
		return result ? ckt_load_fail(l, result, "array", id) : 0;
	}
	return ckt_load_refuse(l, -EBADMSG,
		"the image is damaged: its journal names an array that it does not describe");
}

int ckt_load_journal(struct ckt_loading *l)
{
	struct ckt_worker *worker = l->worker;
	ckt_image_journal part;
	int first = ckt_preload_replayed(&l->image, &part);
	if (first < 0)
		return ckt_load_refuse(l, first,
			"the session's modules have another past than what was pre-loaded");
	if (!ckt_preload_active())
		take_place(l);
	for (unsigned i = (unsigned)first; i < l->image.journal.journal_len; i++) {
		const ckt_image_journal *entry =
			i == (unsigned)first ? &part : &l->image.journal.journal_val[i];
		struct ckt_object *object = ckt_objects_find(&worker->objects, entry->id);
		int error = 0;
		CUresult result;
		switch (entry->kind) {
		case CKT_JOURNAL_MODULE_LOAD:
			error = replay_load(l, entry);
			break;
		case CKT_JOURNAL_MODULE_UNLOAD:
			if (object && ckt_handle_kind(object->id) == CKT_KIND_MODULE)
				ckt_module_unload(worker, object);
			break;
		case CKT_JOURNAL_CONTEXT_CREATE:
			result = ckt_context_create(
				worker, entry->id, entry->flags, entry->device, &object);
			if (result)
				error = ckt_load_fail(l, result, "context", entry->id);
			break;
		case CKT_JOURNAL_PRIMARY:
			if (entry->device >= worker->device_count)
				error = ckt_load_refuse(l, -EBADMSG,
					"the image is damaged: its journal has a context of GPU %u",
					entry->device);
			else if ((result = ckt_context_primary(worker, entry->device, &object)))
				error = ckt_load_fail(
					l, result, "the primary context of GPU", entry->device);
			else
				error = ckt_load_check_memory(l, entry->device);
			break;
		case CKT_JOURNAL_CONTEXT_DESTROY:
			if (object && ckt_handle_kind(object->id) == CKT_KIND_CONTEXT &&
				!object->ctx.primary)
				ckt_context_destroy(worker, object);
			break;
		case CKT_JOURNAL_DIGEST:
			if (entry->device < worker->device_count)
				ckt_digest_load(worker, entry->device);
			break;
		case CKT_JOURNAL_LIMIT:
			result = ckt_worker_use_context(worker, entry->context);
			if (!result)
				result = ckt_driver.cuCtxSetLimit((CUlimit)entry->flags, entry->id);
			if (result && !l->other_model)
				error = ckt_load_fail(
					l, result, "a limit of context", entry->context);
			break;
		case CKT_JOURNAL_STREAMS:
		case CKT_JOURNAL_EVENTS:
			result = ckt_worker_use_context(worker, entry->context);
			if (!result)
				result = ckt_journal_make_ahead(worker,
					&(struct ckt_journal_entry){.kind = entry->kind,
						.id = entry->id,
						.flags = entry->flags,
						.device = entry->device});
			if (result)
				error = ckt_load_fail(
					l, result, "streams or events of context", entry->context);
			break;
		case CKT_JOURNAL_LIBRARY:
			error = ckt_lib_load_first(l, entry);
			break;
		case CKT_JOURNAL_CODE:
			error = ckt_code_again(l, entry);
			break;
		case CKT_JOURNAL_ARRAY_CREATE:
			error = replay_array(l, entry->id);
			break;
		case CKT_JOURNAL_ARRAY_DESTROY:
			if (object &&
				(ckt_handle_kind(object->id) == CKT_KIND_ARRAY ||
					ckt_handle_kind(object->id) == CKT_KIND_MIPMAP) &&
				!ckt_worker_use_context(worker, object->context))
				ckt_array_destroy(worker, object);
			break;
		default:
			error = ckt_load_refuse(l, -EPROTONOSUPPORT,
				"the image holds a journal entry (%u) that this Cricket does not know",
				entry->kind);
		}
		if (error)
			return error;
	}
	return 0;
}
