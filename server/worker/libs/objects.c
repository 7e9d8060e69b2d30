/* SPDX-License-Identifier: Apache-2.0 */
/* Handles, plans and descriptors that libraries make for a session; see libs.h. */
#include <stdlib.h>

#include "base/log.h"
#include "server/worker/session/long_call.h"
#include "server/worker/session/host_budget.h"
#include "server/worker/libs/library_long_call.h"
#include "server/worker/libs/inside/inside.h"
#include "server/worker/libs/libs.h"
#include "server/worker/libs/state.h"
#include "server/worker/worker.h"

/* An object that only captured calls need is not in the table: another object may have its slot. */
static CUresult enter(struct ckt_worker *worker, uint64_t id, struct ckt_object **ret_object)
{
	if (!ckt_worker_lib_replay_is_dead())
		return ckt_objects_add(
			&worker->objects, id, CKT_KIND_LIB_OBJECT, false, ret_object);
	struct ckt_object *object =
		ckt_handle_kind(id) == CKT_KIND_LIB_OBJECT ? calloc(1, sizeof *object) : NULL;
	if (object)
		object->id = id;
	if (!object || !ckt_worker_lib_dead_add(object)) {
		free(object);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_object = object;
	return CUDA_SUCCESS;
}

/* Includes the library's notes and its own estimated memory for the object. */
static uint64_t object_bytes(const struct ckt_library *library)
{
	return sizeof(struct ckt_library_object) + sizeof(struct ckt_lib_recipe) +
		library->object_bytes;
}

CUresult ckt_library_object_add(struct ckt_worker *worker, const struct ckt_library *library,
	unsigned type, uint64_t id, void *real, void *data, struct ckt_object **ret_object)
{
	struct ckt_object *object;
	if (!ckt_budget_charge(object_bytes(library), "objects of libraries"))
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct ckt_library_object *made = malloc(sizeof *made);
	struct ckt_lib_recipe *recipe = calloc(1, sizeof *recipe);
	CUresult result = made && recipe ? enter(worker, id, &object) : CUDA_ERROR_OUT_OF_MEMORY;
	if (result) {
		free(made);
		free(recipe);
		ckt_budget_uncharge(object_bytes(library));
		return result;
	}
	*made = (struct ckt_library_object){
		.library = library, .type = type, .data = data, .recipe = recipe};
	object->context = worker->current ? worker->current->id : 0;
	object->real = real;
	object->library = made;
	*ret_object = object;
	return CUDA_SUCCESS;
}

struct ckt_object *ckt_library_object_find(
	struct ckt_worker *worker, enum ckt_lib lib, unsigned type, uint64_t id)
{
	struct ckt_object *object = ckt_worker_lib_dead_find(id);
	if (!object)
		object = ckt_objects_find_kind(&worker->objects, id, CKT_KIND_LIB_OBJECT);
	if (!object || object->library->library->lib != lib || object->library->type != type)
		return NULL;
	/* A call for this object runs beside the executor, and this call comes after it. */
	if (__builtin_expect(object->library->beside, 0))
		ckt_long_call_drain(worker, -1);
	if (__builtin_expect(ckt_lib_capture_stream != NULL, 0))
		ckt_worker_lib_capture_use(worker, object);
	return object;
}

/*
 * ---- Ends: a library's destroy may wait for the GPU, so it runs beside the executor if the library
 * says so
 */

struct end {
	struct ckt_library_long_call beside;
	struct ckt_object object; /* a copy; no look-up finds the object any more */
	struct ckt_library_object made;
};

static void end_run(struct ckt_library_long_call *beside)
{
	struct end *end = (struct end *)beside;
	end->made.library->destroy(&ckt_worker, &end->object);
}

static int end_done(struct ckt_library_long_call *beside)
{
	struct end *end = (struct end *)beside;
	free(end->made.data);
	ckt_inside_owner_ended(&ckt_worker, end->object.id, end->object.context);
	return CUDA_SUCCESS;
}

static bool end_beside(struct ckt_worker *worker, struct ckt_object *object)
{
	struct end *end =
		worker->go && object->library->library->ends_beside ? calloc(1, sizeof *end) : NULL;
	if (!end)
		return false;
	*end = (struct end){.beside = {.run = end_run,
				    .done = end_done,
				    .owner = object->id,
				    .context = object->context},
		.object = *object,
		.made = *object->library};
	end->object.library = &end->made;
	object->library->data = NULL;
	ckt_library_long_call(NULL, &end->beside);
	return true;
}

void ckt_library_object_end(struct ckt_worker *worker, struct ckt_object *object)
{
	const struct ckt_library *library = object->library->library;
	if (library->destroy && !end_beside(worker, object)) {
		uint64_t before = ckt_inside_enter(object->id);
		library->destroy(worker, object);
		ckt_inside_leave(before);
		ckt_inside_owner_ended(worker, object->id, object->context);
	}
	object->real = NULL;
}

void ckt_library_object_free(struct ckt_library_object *made)
{
	if (!made)
		return;
	free(made->data);
	ckt_worker_lib_recipe_free(made->recipe);
	ckt_budget_uncharge(object_bytes(made->library));
	free(made);
}

CUresult ckt_library_batched(const struct ckt_wcall *call, int status, bool *once)
{
	if (!status)
		return CUDA_SUCCESS;
	if (!__atomic_exchange_n(once, true, __ATOMIC_RELAXED)) {
		ckt_log_user(
			"%s: the server's library returned status %d", call->proc->name, status);
		ckt_warning("%s: status %d", call->proc->name, status);
	}
	return CUDA_ERROR_UNKNOWN;
}
