/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries in a checkpoint image: the log of state.h, and its repetition in a restore.
 *
 *	check	the libraries are present and every step is well-formed, before anything changes
 *	journal	the first object of each library in each context, in its place among modules and
 *		contexts; its memory comes later
 *	load	memory exists: the other objects, their settings, and captured calls, in log order
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "checkpoint/load/image_load.h"
#include "checkpoint/save/image_save.h"
#include "server/worker/driver.h"
#include "server/worker/libs/environment.h"
#include "server/worker/libs/id_map.h"
#include "server/worker/libs/libs.h"
#include "server/worker/libs/state.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/object_kinds.h"
#include "server/worker/session/call.h"
#include "server/worker/session/long_call.h"
#include "server/worker/session/start.h"
#include "server/worker/worker.h"

/* Places that checks and loading probed; for tests. */
uint64_t ckt_lib_load_looks;

/* ---- Saving */

static int save_library(struct ckt_saving *s, enum ckt_lib lib, u_int *ret_place)
{
	ckt_image *image = &s->image;
	for (u_int i = 0; i < image->libraries.libraries_len; i++)
		if (image->libraries.libraries_val[i].number == lib) {
			*ret_place = i;
			return 0;
		}
	const struct ckt_library *library = ckt_library_of(lib);
	const struct ckt_library_loaded *loaded = ckt_library_loaded(lib);
	*ret_place = image->libraries.libraries_len++;
	image->libraries.libraries_val[*ret_place] =
		(ckt_image_library){.name = ckt_save_string(s, library ? library->name : ""),
			.number = lib,
			.major = loaded->major,
			.api_version = loaded->version,
			.file = ckt_save_string(s, loaded->file)};
	return ckt_save_has_memory(s);
}

static int save_step(struct ckt_saving *s, const struct ckt_lib_step *step)
{
	ckt_image_library_step *saved =
		&s->image.library_steps
			 .library_steps_val[s->image.library_steps.library_steps_len++];
	*saved = (ckt_image_library_step){.kind = step->kind,
		.proc = step->proc,
		.id = step->id,
		.context = step->context,
		.number = step->number,
		.life = step->kind == CKT_LIB_CREATE ? ckt_worker_lib_step_life(step)
						     : CKT_LIB_ALIVE,
		.workspace = step->workspace,
		.workspace_bytes = step->workspace_bytes};
	int error = save_library(s, step->lib, &saved->library);
	saved->args.args_val = ckt_save_list(s, step->args_bytes, 1);
	if (error || s->no_memory)
		return ckt_save_has_memory(s);
	saved->args.args_len = step->args_bytes;
	memcpy(saved->args.args_val, step->args, step->args_bytes);
	return 0;
}

static void save_settings(struct ckt_saving *s)
{
	const ckt_environment_args *taken = ckt_worker_environment_settings();
	ckt_image *image = &s->image;
	image->library_settings.library_settings_val =
		ckt_save_list(s, taken->settings.settings_len, sizeof(ckt_image_setting));
	for (u_int i = 0; i < taken->settings.settings_len && !s->no_memory; i++) {
		const ckt_setting *setting = &taken->settings.settings_val[i];
		image->library_settings
			.library_settings_val[image->library_settings.library_settings_len++] =
			(ckt_image_setting){ckt_save_string(s, setting->name),
				ckt_save_string(s, setting->value)};
	}
}

int ckt_worker_lib_save(struct ckt_saving *s)
{
	save_settings(s);
	s->image.libraries.libraries_val =
		ckt_save_list(s, CKT_LIB_COUNT, sizeof(ckt_image_library));
	s->image.library_steps.library_steps_val =
		ckt_save_list(s, ckt_worker_lib_log_count(), sizeof(ckt_image_library_step));
	int error = ckt_save_has_memory(s);
	for (const struct ckt_lib_step *step = ckt_worker_lib_log(); step && !error;
		step = step->next)
		error = save_step(s, step);
	return error;
}

/* ---- Checking */

static const struct ckt_library *library_of(const ckt_image *image, u_int place)
{
	const struct ckt_library *library = place < image->libraries.libraries_len
		? ckt_library_named(image->libraries.libraries_val[place].name)
		: NULL;
	return library && library->lib != CKT_LIB_CUDA ? library : NULL;
}

static int check_library(struct ckt_loading *l, const ckt_image_library *saved)
{
	char message[1024] = "";
	const struct ckt_library *library =
		library_of(&l->image, (u_int)(saved - l->image.libraries.libraries_val));
	if (!library || library->lib != saved->number)
		return ckt_load_refuse(l, -EPROTONOSUPPORT,
			"the session uses the library %.64s (%u), which this Cricket "
			"does not know",
			saved->name, saved->number);
	if (library->soname &&
		ckt_library_open(l->worker, library, saved->api_version, message, sizeof message))
		return ckt_load_refuse(
			l, -ENOENT, "the session uses %.64s: %.900s", saved->name, message);
	const struct ckt_library_loaded *loaded = ckt_library_loaded(library->lib);
	if (loaded->major != saved->major)
		return ckt_load_refuse(l, -ENOENT,
			"the session uses %.64s of major version %u, but this server "
			"has %u (%.512s): install the session's version",
			saved->name, saved->major, loaded->major, loaded->file);
	if (loaded->version != saved->api_version)
		ckt_worker_note(l->worker,
			"was saved with version %u of %.64s and resumes with version "
			"%u: results may differ in their last bits",
			saved->api_version, saved->name, loaded->version);
	return 0;
}

/*
 * The tables that steps are checked against.  An image may have as many steps as objects, so no
 * check searches a list.
 */
struct judged {
	const ckt_image *image;
	struct ckt_id_map contexts, blocks; /* by id, by address */
};

static bool judged_init(struct judged *judged, const ckt_image *image)
{
	bool enough = true;
	*judged = (struct judged){.image = image};
	for (u_int i = 0; i < image->contexts.contexts_len && enough; i++)
		enough = ckt_id_map_put(&judged->contexts, image->contexts.contexts_val[i].id,
			&image->contexts.contexts_val[i]);
	for (u_int d = 0; d < image->devices.devices_len; d++) {
		const ckt_image_device *device = &image->devices.devices_val[d];
		for (u_int i = 0; i < device->blocks.blocks_len && enough; i++)
			/*
			 * The first block of an address counts; load_check.c refuses a second one.
			 */
			if (!ckt_id_map_find(&judged->blocks, device->blocks.blocks_val[i].address))
				enough = ckt_id_map_put(&judged->blocks,
					device->blocks.blocks_val[i].address,
					&device->blocks.blocks_val[i]);
	}
	return enough;
}

static void judged_fini(struct judged *judged)
{
	ckt_lib_load_looks += judged->contexts.looks + judged->blocks.looks;
	ckt_id_map_fini(&judged->contexts);
	ckt_id_map_fini(&judged->blocks);
}

static bool has_context(struct judged *judged, uint64_t id)
{
	return ckt_id_map_find(&judged->contexts, id) != NULL;
}

static bool has_block(struct judged *judged, uint64_t address, uint64_t bytes)
{
	const ckt_image_block *block = ckt_id_map_find(&judged->blocks, address);
	return block && bytes <= block->size;
}

/* Checks a step against the table of its library.  NULL, or the error. */
/* Whether the step calls a procedure of its kind, for the object that it names. */
static const char *judge_call(const ckt_image_library_step *step, const struct ckt_proc *proc)
{
	enum { STATE = CKT_PROC_CREATES | CKT_PROC_SETS | CKT_PROC_DESTROYS };
	unsigned wanted = step->kind == CKT_LIB_CREATE ? CKT_PROC_CREATES
		: step->kind == CKT_LIB_SET            ? CKT_PROC_SETS
						       : 0;
	bool captured = step->kind == CKT_LIB_CAPTURE;
	if ((!wanted && !captured) || (proc->flags & STATE) != wanted ||
		(captured && !ckt_worker_lib_is_work(proc)))
		return "its procedure is of another kind";
	struct ckt_cursor id = {.p = (const uint8_t *)step->args.args_val + proc->id_at,
		.end = (const uint8_t *)step->args.args_val + step->args.args_len};
	if (!captured &&
		(step->args.args_len < (u_int)proc->id_at + 8 || ckt_get_u64(&id) != step->id))
		return "its arguments are for another object";
	if (ckt_handle_kind(step->id) != (captured ? CKT_KIND_LIB_CALL : CKT_KIND_LIB_OBJECT) ||
		step->id >> 63)
		return "its object is of another kind";
	return NULL;
}

/* Whether the object can have lived so, with memory and a context of the session. */
static const char *judge_life(struct judged *judged, const ckt_image_library_step *step)
{
	bool created = step->kind == CKT_LIB_CREATE;
	if (step->life > CKT_LIB_PAST || (!created && (step->life || step->workspace)))
		return "its object cannot have ended in this way";
	if (step->workspace &&
		(step->life == CKT_LIB_PAST ||
			!has_block(judged, step->workspace, step->workspace_bytes)))
		return "its workspace is not memory of the session";
	/*
	 * A setting applies in the object's own context.  The context of an object that only
	 * captured calls use may have ended.
	 */
	bool needed = step->kind == CKT_LIB_CAPTURE || (created && step->life == CKT_LIB_ALIVE);
	if (needed && !has_context(judged, step->context))
		return "its context is not in the image";
	return NULL;
}

static const char *judge(struct judged *judged, const ckt_image_library_step *step,
	const struct ckt_library *library)
{
	if (!library)
		return "its library is not in the image";
	if (step->proc >= *library->proc_count || !library->procs[step->proc].handler)
		return "the library has no such procedure";
	const char *fault = judge_call(step, &library->procs[step->proc]);
	return fault ? fault : judge_life(judged, step);
}

/* Created objects by id, with their library. */
struct created {
	uint64_t id, number;
	u_int library;
};

static int by_id(const void *a, const void *b)
{
	const struct created *x = a, *y = b;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* Each object is created once, and before any setting of it. */
static const char *judge_order(const ckt_image *image, const struct created *list, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (list[i].id == list[i - 1].id)
			return "an object is created twice";
	for (u_int i = 0; i < image->library_steps.library_steps_len; i++) {
		const ckt_image_library_step *step = &image->library_steps.library_steps_val[i];
		if (i && step->number <= step[-1].number)
			return "its steps are out of order";
		if (step->kind != CKT_LIB_SET)
			continue;
		size_t low = 0, high = count;
		while (low < high) {
			size_t middle = (low + high) / 2;
			if (list[middle].id < step->id)
				low = middle + 1;
			else
				high = middle;
		}
		if (low == count || list[low].id != step->id || list[low].number > step->number ||
			list[low].library != step->library)
			return "a step sets an object that does not exist";
	}
	return NULL;
}

static const ckt_image_library_step *find_number(const ckt_image *image, uint64_t number)
{
	u_int low = 0, high = image->library_steps.library_steps_len;
	while (low < high) {
		u_int middle = (low + high) / 2;
		if (image->library_steps.library_steps_val[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	const ckt_image_library_step *found = &image->library_steps.library_steps_val[low];
	return low < image->library_steps.library_steps_len && found->number == number ? found
										       : NULL;
}

static bool journal_agrees(const ckt_image *image, const ckt_image_journal *entry)
{
	const ckt_image_library_step *step = find_number(image, entry->id);
	return step && step->kind == CKT_LIB_CREATE && step->context == entry->context &&
		image->libraries.libraries_val[step->library].number == entry->flags;
}

static int check_order(struct ckt_loading *l)
{
	const ckt_image *image = &l->image;
	size_t count = 0;
	struct created *list = calloc(image->library_steps.library_steps_len + 1, sizeof *list);
	if (!list)
		return ckt_load_refuse(
			l, -ENOMEM, "the worker has no memory for the list of libraries' objects");
	for (u_int i = 0; i < image->library_steps.library_steps_len; i++) {
		const ckt_image_library_step *step = &image->library_steps.library_steps_val[i];
		if (step->kind == CKT_LIB_CREATE && step->life != CKT_LIB_PAST)
			list[count++] = (struct created){step->id, step->number, step->library};
	}
	qsort(list, count, sizeof *list, by_id);
	const char *wrong = judge_order(image, list, count);
	free(list);
	for (u_int i = 0; i < image->journal.journal_len && !wrong; i++)
		if (image->journal.journal_val[i].kind == CKT_JOURNAL_LIBRARY &&
			!journal_agrees(image, &image->journal.journal_val[i]))
			wrong = "its journal names a library's object that it does not describe";
	return wrong ? ckt_load_refuse(l, -EBADMSG, "the image is damaged: libraries: %s", wrong)
		     : 0;
}

/*
 * Runs before any library is opened, because a library reads its settings then.  An image may hold
 * only settings that a client may send.
 */
static int load_settings(struct ckt_loading *l)
{
	static ckt_setting list[CKT_SETTINGS_MAX];
	const ckt_image *image = &l->image;
	_Static_assert((int)CKT_IMAGE_SETTINGS == (int)CKT_SETTINGS_MAX,
		"a list of one holds all of the other");
	ckt_environment_args args = {
		.settings = {image->library_settings.library_settings_len, list}};
	for (u_int i = 0; i < args.settings.settings_len; i++)
		list[i] = (ckt_setting){image->library_settings.library_settings_val[i].name,
			image->library_settings.library_settings_val[i].value};
	int error = ckt_worker_environment_take(&args);
	if (error == -EINVAL)
		return ckt_load_refuse(l, -EBADMSG,
			"the image is damaged: it sets a variable for libraries to a "
			"value that is not allowed, or a variable that is not allowed");
	return error ? ckt_load_refuse(l, error,
			       "cannot restore the settings of the session's libraries "
			       "(%s)",
			       strerror(-error))
		     : 0;
}

static int check_steps(struct ckt_loading *l)
{
	const ckt_image *image = &l->image;
	struct judged judged;
	int error = judged_init(&judged, image)
		? 0
		: ckt_load_refuse(l, -ENOMEM,
			  "the worker has no memory for the list of libraries' objects");
	for (u_int i = 0; i < image->library_steps.library_steps_len && !error; i++) {
		const ckt_image_library_step *step = &image->library_steps.library_steps_val[i];
		const struct ckt_library *library = library_of(image, step->library);
		/* An unknown library has its own message. */
		bool known = library || step->library >= image->libraries.libraries_len;
		const char *wrong = known ? judge(&judged, step, library) : NULL;
		if (wrong)
			error = ckt_load_refuse(l, -EBADMSG,
				"the image is damaged: step %llu of %.64s: %s",
				(unsigned long long)step->number,
				library ? library->name : "a library", wrong);
	}
	judged_fini(&judged);
	return error;
}

int ckt_worker_lib_load_check(struct ckt_loading *l)
{
	const ckt_image *image = &l->image;
	int wrong_settings = load_settings(l);
	if (wrong_settings)
		return wrong_settings;
	int error = check_steps(l);
	for (u_int i = 0; i < image->libraries.libraries_len && !error; i++)
		error = check_library(l, &image->libraries.libraries_val[i]);
	return error ? error : check_order(l);
}

/*
 * ---- Repeating steps
 */

static int run_step(struct ckt_worker *worker, const struct ckt_library *library,
	const ckt_image_library_step *saved, uint64_t context, int *ret_status)
{
	struct ckt_wcall *call = ckt_wcall_new(worker);
	*ret_status = 0;
	if (!call)
		return CUDA_ERROR_OUT_OF_MEMORY;
	call->proc = &library->procs[saved->proc];
	call->header = (struct ckt_call_header){.prog = ckt_lib_prog(library->lib),
		.proc = saved->proc,
		.flags = CKT_CALL_BATCHED,
		.context = context};
	call->args = (struct ckt_cursor){.p = (const uint8_t *)saved->args.args_val,
		.end = (const uint8_t *)saved->args.args_val + saved->args.args_len};
	int result = ckt_worker_lib_state_run(call);
	if (result == CKT_WCALL_LATER) {
		ckt_long_call_drain(worker, -1);
		return atomic_exchange(&worker->deferred, 0);
	}
	*ret_status = call->status;
	ckt_wcall_free(call);
	return result;
}

static struct ckt_object *find(struct ckt_worker *worker, uint64_t id)
{
	struct ckt_object *object = ckt_worker_lib_dead_find(id);
	return object ? object : ckt_objects_find_kind(&worker->objects, id, CKT_KIND_LIB_OBJECT);
}

static bool is_there(struct ckt_worker *worker, uint64_t context)
{
	return ckt_objects_find_kind(&worker->objects, context, CKT_KIND_CONTEXT) != NULL;
}

/*
 * The context to repeat a step in.  A setting: the context of its object.  An object that captured
 * calls use after its context has ended: the context of the next capture.
 */
static uint64_t context_of(struct ckt_loading *l, const ckt_image_library_step *saved)
{
	const ckt_image_library_step *end =
		l->image.library_steps.library_steps_val + l->image.library_steps.library_steps_len;
	struct ckt_object *object = saved->kind == CKT_LIB_SET ? find(l->worker, saved->id) : NULL;
	if (object)
		return object->context;
	if (saved->kind != CKT_LIB_CREATE || saved->life != CKT_LIB_USED ||
		is_there(l->worker, saved->context))
		return saved->context;
	/* Steps arrive in order, so all searches together pass over the list once. */
	if (!l->next_capture || l->next_capture < saved)
		l->next_capture = saved;
	while (l->next_capture < end &&
		(l->next_capture->kind != CKT_LIB_CAPTURE ||
			!is_there(l->worker, l->next_capture->context)))
		l->next_capture++;
	return l->next_capture < end ? l->next_capture->context : saved->context;
}

static int replay(struct ckt_loading *l, const ckt_image_library_step *saved, bool dead)
{
	struct ckt_worker *worker = l->worker;
	uint64_t context = context_of(l, saved);
	const struct ckt_library *library = library_of(&l->image, saved->library);
	const char *name = library->procs[saved->proc].name;
	const struct ckt_lib_replay how = {.number = saved->number,
		.workspace = saved->workspace,
		.workspace_bytes = saved->workspace_bytes,
		.dead = dead};
	int status = 0, result = (int)ckt_worker_use_context(worker, context);
	ckt_worker_lib_replay_set(&how);
	if (!result && saved->kind == CKT_LIB_CAPTURE)
		result = (int)ckt_worker_lib_call_make(worker, saved->id, library->lib, saved->proc,
			(const uint8_t *)saved->args.args_val, saved->args.args_len);
	else if (!result)
		result = run_step(worker, library, saved, context, &status);
	ckt_worker_lib_replay_set(NULL);
	if (result == CKT_WCALL_GARBAGE)
		return ckt_load_refuse(
			l, -EBADMSG, "the image is damaged: malformed arguments of %s", name);
	if (!result && (status || (saved->kind == CKT_LIB_CREATE && !find(worker, saved->id))))
		return ckt_load_refuse(l, -EIO,
			"cannot repeat %s of object 0x%llx: the library returned %d", name,
			(unsigned long long)saved->id, status);
	return result ? ckt_load_fail(l, (CUresult)result, name, saved->id) : 0;
}

static void end_dead(struct ckt_worker *worker)
{
	struct ckt_object *object;
	while ((object = ckt_worker_lib_dead_take())) {
		if (ckt_worker_use_context(worker, object->context) == CUDA_SUCCESS)
			ckt_library_object_end(worker, object);
		ckt_library_object_free(object->library);
		free(object);
	}
}

int ckt_worker_lib_load_first(struct ckt_loading *l, const struct ckt_image_journal *entry)
{
	struct ckt_worker *worker = l->worker;
	const ckt_image_library_step *saved = find_number(&l->image, entry->id);
	if (!saved)
		return ckt_load_refuse(l, -EBADMSG,
			"the image is damaged: its journal names a library's object "
			"that it does not describe");
	/*
	 * The session's memory comes later; what the library allocates for itself must not take its
	 * place.
	 */
	for (unsigned d = 0; d < worker->device_count; d++)
		ckt_memory_hide(&worker->devices[d].memory);
	int error = replay(l, saved, saved->life != CKT_LIB_ALIVE);
	for (unsigned d = 0; d < worker->device_count; d++)
		ckt_memory_show(&worker->devices[d].memory);
	if (!error)
		end_dead(worker);
	return error;
}

/*
 * Ends objects that an earlier round of a pre-load made and that the session has destroyed since.
 */
static int end_others(struct ckt_loading *l)
{
	struct ckt_worker *worker = l->worker;
	struct ckt_object *object;
	struct ckt_id_map alive = {0};
	bool enough = true;
	for (u_int i = 0; i < l->image.library_steps.library_steps_len && enough; i++) {
		ckt_image_library_step *step = &l->image.library_steps.library_steps_val[i];
		if (step->kind == CKT_LIB_CREATE && step->life == CKT_LIB_ALIVE)
			enough = ckt_id_map_put(&alive, step->id, step);
	}
	for (uint32_t cursor = 0; enough && (object = ckt_objects_next(&worker->objects, &cursor));)
		if (ckt_handle_kind(object->id) == CKT_KIND_LIB_OBJECT &&
			!ckt_id_map_find(&alive, object->id) &&
			ckt_worker_use_context(worker, object->context) == CUDA_SUCCESS)
			ckt_object_destroy(worker, object);
	ckt_lib_load_looks += alive.looks;
	ckt_id_map_fini(&alive);
	return enough ? 0
		      : ckt_load_refuse(l, -ENOMEM,
				"the worker has no memory for the list of libraries' objects");
}

static int finish_libraries(struct ckt_loading *l)
{
	char message[512] = "";
	for (u_int i = 0; i < l->image.libraries.libraries_len; i++) {
		const struct ckt_library *library = library_of(&l->image, i);
		int error = library && library->loaded
			? library->loaded(l->worker, message, sizeof message)
			: 0;
		if (error)
			return ckt_load_refuse(l, error, "%s", message);
	}
	return 0;
}

int ckt_worker_lib_load(struct ckt_loading *l)
{
	struct ckt_worker *worker = l->worker;
	uint64_t looks = ckt_worker_lib_dead_looks();
	int error = end_others(l);
	for (u_int i = 0; i < l->image.library_steps.library_steps_len && !error; i++) {
		const ckt_image_library_step *saved = &l->image.library_steps.library_steps_val[i];
		bool create = saved->kind == CKT_LIB_CREATE;
		struct ckt_object *there = create
			? ckt_objects_find_kind(&worker->objects, saved->id, CKT_KIND_LIB_OBJECT)
			: NULL;
		if (create && saved->life == CKT_LIB_PAST)
			continue;
		if (there && there->library->recipe->create) {
			/* The journal made it.  In a pre-load it may not have had memory yet. */
			there->library->recipe->create->workspace = saved->workspace;
			there->library->recipe->create->workspace_bytes = saved->workspace_bytes;
			continue;
		}
		error = replay(l, saved, create && saved->life == CKT_LIB_USED);
	}
	if (!error)
		error = finish_libraries(l);
	ckt_lib_load_looks += ckt_worker_lib_dead_looks() - looks;
	if (!error)
		end_dead(worker);
	return error;
}

static const struct ckt_journal_step steps[] = {
	{.kind = CKT_JOURNAL_LIBRARY, .replay = ckt_worker_lib_load_first},
	{0},
};

/* The log of libraries saves objects and captured calls, so none is saved by itself. */
const struct ckt_object_kind ckt_library_kind = {
	.name = "libraries",
	.handles = CKT_HANDLES(LIB_OBJECT) | CKT_HANDLES(LIB_CALL),
	.steps = steps,
	.save_rest = ckt_worker_lib_save,
	.check = ckt_worker_lib_load_check,
	.stage = CKT_LOAD_REST,
	.load_rest = ckt_worker_lib_load,
};
