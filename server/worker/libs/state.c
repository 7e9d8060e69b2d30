/* SPDX-License-Identifier: Apache-2.0 */
/* The log of what made the objects of forwarded libraries; see state.h. */
#include "server/worker/libs/state.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "server/worker/driver.h"
#include "server/worker/libs/id_map.h"
#include "server/worker/libs/inside/inside.h"
#include "server/worker/libs/libs.h"
#include "server/worker/session/call.h"
#include "server/worker/session/host_budget.h"
#include "server/worker/worker.h"

static struct {
	struct ckt_lib_step *first, *last;
	size_t count;                 /* of steps, including those that are not in the log yet */
	uint64_t number;              /* of the last step */
	struct ckt_lib_step *running; /* the step whose handler runs */
	const struct ckt_lib_replay *replay;
	struct ckt_object **dead;
	size_t dead_count, dead_room;
	struct ckt_id_map dead_ids;
} state;

/* ---- Steps */

static uint64_t step_bytes(uint32_t args_bytes)
{
	return sizeof(struct ckt_lib_step) + args_bytes;
}

struct ckt_lib_step *ckt_worker_lib_step_new(
	enum ckt_lib_step_kind kind, const struct ckt_wcall *call, const uint8_t *args, size_t size)
{
	if (state.count >= CKT_LIB_STEPS_MAX || size > CKT_RECORD_MAX ||
		!ckt_budget_charge(step_bytes((uint32_t)size), "what libraries have made"))
		return NULL;
	struct ckt_lib_step *step = calloc(1, step_bytes((uint32_t)size));
	if (!step) {
		ckt_budget_uncharge(step_bytes((uint32_t)size));
		return NULL;
	}
	step->kind = kind;
	step->lib = ckt_lib_of_prog(call->header.prog);
	step->proc = call->header.proc;
	step->context = call->worker->current ? call->worker->current->id : 0;
	step->refs = 1;
	step->args_bytes = (uint32_t)size;
	if (size)
		memcpy(step->args, args, size);
	if (state.replay) {
		step->workspace = state.replay->workspace;
		step->workspace_bytes = state.replay->workspace_bytes;
	}
	state.count++;
	return step;
}

static void unlink_step(struct ckt_lib_step *step)
{
	if (!step->number)
		return;
	*(step->previous ? &step->previous->next : &state.first) = step->next;
	*(step->next ? &step->next->previous : &state.last) = step->previous;
	step->next = step->previous = NULL;
	step->number = 0;
}

void ckt_worker_lib_step_enter(struct ckt_lib_step *step)
{
	uint64_t number = state.number + 1;
	if (state.replay && state.replay->number > state.number)
		number = state.replay->number;
	state.number = step->number = number;
	step->previous = state.last;
	*(state.last ? &state.last->next : &state.first) = step;
	state.last = step;
}

void ckt_worker_lib_step_ref(struct ckt_lib_step *step)
{
	step->refs++;
}

/* Batched: the memory is free when the GPU has done all work submitted so far. */
static void workspace_free(struct ckt_worker *worker, uint64_t address)
{
	uint8_t bytes[8];
	struct ckt_wcall *call = ckt_wcall_new(worker);
	if (!call || !worker->current) {
		/* The memory ends with its context. */
		ckt_wcall_free(call);
		return;
	}
	ckt_put_u64(bytes, address);
	call->header = (struct ckt_call_header){.prog = CKT_CUDA_PROG, .flags = CKT_CALL_BATCHED};
	call->args = (struct ckt_cursor){.p = bytes, .end = bytes + sizeof bytes};
	if (ckt_worker_graph_mem_free(call) != CKT_WCALL_LATER)
		ckt_wcall_free(call);
}

void ckt_worker_lib_step_unref(struct ckt_lib_step *step)
{
	step->refs--;
	if (step->refs > (step->pinned ? 1u : 0u))
		return;
	/* A step that the journal alone keeps has no memory. */
	if (step->kind == CKT_LIB_CREATE && step->workspace && !state.replay)
		workspace_free(&ckt_worker, step->workspace);
	step->workspace = step->workspace_bytes = 0;
	if (step->refs)
		return;
	unlink_step(step);
	ckt_budget_uncharge(step_bytes(step->args_bytes));
	state.count--;
	free(step);
}

enum ckt_lib_life ckt_worker_lib_step_life(const struct ckt_lib_step *step)
{
	if (!step->destroyed)
		return CKT_LIB_ALIVE;
	return step->refs > (step->pinned ? 1u : 0u) ? CKT_LIB_USED : CKT_LIB_PAST;
}

struct ckt_lib_step *ckt_worker_lib_log(void)
{
	return state.first;
}

size_t ckt_worker_lib_log_count(void)
{
	return state.count;
}

/* ---- Recipes */

void ckt_worker_lib_recipe_free(struct ckt_lib_recipe *recipe)
{
	if (!recipe)
		return;
	for (uint32_t i = 0; i < recipe->set_count; i++)
		ckt_worker_lib_step_unref(recipe->sets[i]);
	if (recipe->create) {
		recipe->create->destroyed = true;
		ckt_worker_lib_step_unref(recipe->create);
	}
	ckt_budget_uncharge(recipe->set_room * sizeof *recipe->sets);
	free(recipe->sets);
	free(recipe);
}

static struct ckt_object *find(struct ckt_worker *worker, uint64_t id)
{
	struct ckt_object *object = ckt_worker_lib_dead_find(id);
	return object ? object : ckt_objects_find_kind(&worker->objects, id, CKT_KIND_LIB_OBJECT);
}

static bool same_key(
	const struct ckt_proc *proc, const struct ckt_lib_step *a, const struct ckt_lib_step *b)
{
	size_t end = (size_t)proc->key_at + proc->key_bytes;
	if (a->proc != b->proc || a->lib != b->lib)
		return false;
	return !proc->key_bytes ||
		(a->args_bytes >= end && b->args_bytes >= end &&
			!memcmp(a->args + proc->key_at, b->args + proc->key_at, proc->key_bytes));
}

/* The setting that the new step replaces.  A sealed setting is never replaced. */
static struct ckt_lib_step **find_set(const struct ckt_lib_recipe *recipe,
	const struct ckt_proc *proc, const struct ckt_lib_step *step)
{
	for (uint32_t i = recipe->sealed; i < recipe->set_count; i++)
		if (same_key(proc, recipe->sets[i], step))
			return &recipe->sets[i];
	return NULL;
}

/* Makes room for one more setting before the call runs. */
static bool set_room(struct ckt_lib_recipe *recipe)
{
	if (recipe->set_count < recipe->set_room)
		return true;
	uint32_t room = recipe->set_room ? recipe->set_room * 2 : 8;
	size_t more = (room - recipe->set_room) * sizeof *recipe->sets;
	if (room > CKT_LIB_SETS_MAX ||
		!ckt_budget_charge(more, "what is set of libraries' objects"))
		return false;
	struct ckt_lib_step **sets = reallocarray(recipe->sets, room, sizeof *sets);
	if (!sets) {
		ckt_budget_uncharge(more);
		return false;
	}
	recipe->sets = sets;
	recipe->set_room = room;
	return true;
}

/* ---- Calls */

static void created(struct ckt_worker *worker, struct ckt_lib_step *step, struct ckt_object *object)
{
	struct ckt_object *context =
		ckt_objects_find_kind(&worker->objects, step->context, CKT_KIND_CONTEXT);
	object->library->recipe->create = step;
	ckt_worker_lib_step_enter(step);
	if (!context || context->ctx.libraries & 1u << step->lib)
		return;
	/* Nobody repeats a step that a full journal does not hold, so it is not pinned. */
	step->pinned = ckt_journal_add(&worker->checkpoint.journal,
		(struct ckt_journal_entry){.kind = CKT_JOURNAL_LIBRARY,
			.id = step->number,
			.context = step->context,
			.flags = (uint32_t)step->lib});
	step->refs += step->pinned;
	context->ctx.libraries |= 1u << step->lib;
}

static const struct ckt_proc *proc_of(const struct ckt_lib_step *step)
{
	return &ckt_library_of(step->lib)->procs[step->proc];
}

/* Seals all present settings, and drops those that only the previous sealing call used. */
static void seal(struct ckt_lib_recipe *recipe)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < recipe->set_count; i++) {
		struct ckt_lib_step *step = recipe->sets[i];
		const struct ckt_proc *proc = proc_of(step);
		if (i < recipe->sealed &&
			(proc->flags & CKT_PROC_SEALS || find_set(recipe, proc, step)))
			ckt_worker_lib_step_unref(step);
		else
			recipe->sets[kept++] = step;
	}
	recipe->set_count = kept;
}

static void set(
	struct ckt_lib_recipe *recipe, const struct ckt_proc *proc, struct ckt_lib_step *step)
{
	bool seals = proc->flags & CKT_PROC_SEALS;
	struct ckt_lib_step **before = seals ? NULL : find_set(recipe, proc, step);
	ckt_worker_lib_step_enter(step);
	if (seals)
		seal(recipe);
	if (before) {
		ckt_worker_lib_step_unref(*before);
		*before = step;
	} else {
		recipe->sets[recipe->set_count++] = step;
	}
	if (seals)
		recipe->sealed = recipe->set_count;
}

void ckt_worker_lib_state_done(struct ckt_wcall *call, CUresult result)
{
	struct ckt_lib_step *step = call->step;
	call->step = NULL;
	if (!step)
		return;
	struct ckt_object *object = result || call->status ? NULL : find(call->worker, step->id);
	struct ckt_lib_recipe *recipe = object ? object->library->recipe : NULL;
	if (recipe && step->kind == CKT_LIB_CREATE && !recipe->create) {
		created(call->worker, step, object);
	} else if (recipe && recipe->create && step->kind == CKT_LIB_SET && set_room(recipe)) {
		/* The context that is current now may end before the object does. */
		step->context = object->context;
		set(recipe, call->proc, step);
	} else {
		ckt_worker_lib_step_unref(step);
	}
}

/* Refuses an object or setting that could not be logged, because nothing could repeat it. */
static bool prepare(struct ckt_wcall *call)
{
	const struct ckt_proc *proc = call->proc;
	size_t size = (size_t)(call->args.end - call->args.p);
	enum ckt_lib_step_kind kind = proc->flags & CKT_PROC_CREATES ? CKT_LIB_CREATE : CKT_LIB_SET;
	struct ckt_cursor id = {.p = call->args.p + proc->id_at, .end = call->args.end};
	call->step = ckt_worker_lib_step_new(kind, call, call->args.p, size);
	if (!call->step)
		return false;
	call->step->id = size >= (size_t)proc->id_at + 8 ? ckt_get_u64(&id) : 0;
	struct ckt_object *object = kind == CKT_LIB_SET ? find(call->worker, call->step->id) : NULL;
	return !object || !object->library->recipe ||
		find_set(object->library->recipe, proc, call->step) ||
		set_room(object->library->recipe);
}

/* What the library allocates meanwhile belongs to the object that the call is for. */
static int serve(struct ckt_wcall *call, uint64_t id)
{
	uint64_t before = ckt_inside_enter(id);
	int result = call->proc->handler(call);
	ckt_inside_leave(before);
	return result;
}

void ckt_worker_lib_state_resume(const struct ckt_wcall *call)
{
	state.running = call ? call->step : NULL;
}

int ckt_worker_lib_state_run(struct ckt_wcall *call)
{
	const struct ckt_proc *proc = call->proc;
	if (__builtin_expect(call->header.prog == CKT_CUDA_PROG, 1))
		return proc->handler(call);
	ckt_inside_notes_settle(call->worker);
	if (!(proc->flags & (CKT_PROC_CREATES | CKT_PROC_SETS))) {
		struct ckt_cursor id = {.p = call->args.p + proc->id_at, .end = call->args.end};
		bool known = proc->flags & CKT_PROC_OBJECT &&
			call->args.end - call->args.p >= proc->id_at + 8;
		return serve(call, known ? ckt_get_u64(&id) : 0);
	}
	if (!prepare(call)) {
		ckt_worker_lib_state_done(call, CUDA_ERROR_OUT_OF_MEMORY);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	state.running = call->step;
	int result = serve(call, call->step->id);
	state.running = NULL;
	if (result != CKT_WCALL_LATER)
		ckt_worker_lib_state_done(call, (CUresult)result);
	return result;
}

/* ---- Workspaces */

CUresult ckt_worker_lib_workspace(struct ckt_worker *worker, struct ckt_object *object,
	uint64_t bytes, uint64_t *ret_address, uint64_t *ret_bytes)
{
	const struct ckt_lib_recipe *recipe = object->library->recipe;
	struct ckt_lib_step *step = recipe && recipe->create ? recipe->create : state.running;
	const struct ckt_object *context = ckt_objects_find(&worker->objects, object->context);
	if (!step || step->kind != CKT_LIB_CREATE || !context)
		return CUDA_ERROR_INVALID_VALUE;
	if (!step->workspace) {
		/* In a restore the image already assigns the memory its addresses. */
		uint64_t address;
		CUresult result = state.replay
			? CUDA_ERROR_OUT_OF_MEMORY
			: ckt_memory_alloc(&worker->devices[context->ctx.device].memory, bytes,
				  context->id, &address);
		if (result)
			return result;
		step->workspace = address;
		step->workspace_bytes = bytes;
	}
	*ret_address = step->workspace;
	*ret_bytes = step->workspace_bytes;
	return CUDA_SUCCESS;
}

void ckt_worker_lib_forget_workspaces(uint64_t context)
{
	for (struct ckt_lib_step *step = state.first; step; step = step->next)
		if (step->context == context)
			step->workspace = step->workspace_bytes = 0;
}

/* ---- Restores */

void ckt_worker_lib_replay_set(const struct ckt_lib_replay *replay)
{
	state.replay = replay;
}

bool ckt_worker_lib_is_replay(void)
{
	return state.replay != NULL;
}

bool ckt_worker_lib_replay_is_dead(void)
{
	return state.replay && state.replay->dead;
}

bool ckt_worker_lib_dead_add(struct ckt_object *object)
{
	if (CKT_GROW(state.dead, state.dead_count, state.dead_room, 16) ||
		!ckt_id_map_put(&state.dead_ids, object->id, object))
		return false;
	state.dead[state.dead_count++] = object;
	return true;
}

struct ckt_object *ckt_worker_lib_dead_find(uint64_t id)
{
	return state.dead_count ? ckt_id_map_find(&state.dead_ids, id) : NULL;
}

struct ckt_object *ckt_worker_lib_dead_take(void)
{
	if (!state.dead_count)
		return NULL;
	struct ckt_object *object = state.dead[--state.dead_count];
	ckt_id_map_drop(&state.dead_ids, object->id);
	return object;
}

uint64_t ckt_worker_lib_dead_looks(void)
{
	return state.dead_ids.looks;
}
