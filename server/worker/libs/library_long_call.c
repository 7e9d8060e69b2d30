/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of libraries beside the executor; see library_long_call.h. */
#include "server/worker/libs/library_long_call.h"

#include <stdlib.h>

#include "server/worker/libs/inside/inside.h"
#include "server/worker/libs/libs.h"
#include "server/worker/libs/state.h"
#include "server/worker/objects/context.h"
#include "server/worker/session/waiting_call.h"
#include "server/worker/worker.h"

static void serve(struct ckt_library_long_call *beside)
{
	uint64_t before = ckt_inside_enter(beside->owner);
	beside->failed = false;
	ckt_inside_missed = false;
	beside->run(beside);
	beside->missed = ckt_inside_missed;
	ckt_inside_leave(before);
}

static void run(struct ckt_long_call_job *job)
{
	struct ckt_library_long_call *beside = (struct ckt_library_long_call *)job;
	/* Of an earlier call on this thread. */
	ckt_lease_refused(&beside->refused);
	ckt_waiting_call_use(beside->waiting);
	serve(beside);
	ckt_waiting_call_use(NULL);
	ckt_lease_refused(&beside->refused);
}

/* Makes later calls for the object wait, or lets them run; the object may have ended meanwhile. */
static void mark(struct ckt_worker *worker, struct ckt_library_long_call *beside, bool on)
{
	struct ckt_object *object = beside->owner
		? ckt_objects_find_kind(&worker->objects, beside->owner, CKT_KIND_LIB_OBJECT)
		: NULL;
	if (!object || (!on && !beside->marked))
		return;
	beside->marked = on;
	object->library->beside += on ? 1 : (object->library->beside ? -1u : 0);
}

/* An allocation failed on a thread that cannot release what the pools keep; the executor can. */
static bool try_again(struct ckt_worker *worker, struct ckt_library_long_call *beside)
{
	const struct ckt_object *context = ckt_objects_find(&worker->objects, beside->context);
	if (!beside->missed || !beside->failed || beside->again || !context)
		return false;
	beside->again = true;
	ckt_inside_free_waiting(worker, 0);
	ckt_worker_pools_release(worker, context->ctx.device, true);
	/* The job queues behind the frees that wait on the same thread. */
	ckt_long_call_submit(worker, &beside->job);
	return true;
}

/* True: the call waits for memory, or was answered; it is not ours any more. */
static bool wait_for_memory(struct ckt_library_long_call *beside)
{
	struct ckt_wcall *call = beside->call;
	struct ckt_waiting_call *waiting = beside->waiting;
	/* Without a step it neither makes nor sets anything. */
	if (!beside->failed || !beside->refused.bytes || !call || !call->step)
		return false;
	beside->waiting = NULL;
	if (!waiting) {
		const uint8_t *args = call->step->args;
		waiting = ckt_waiting_call_prepare(
			&(struct ckt_cursor){.p = args, .end = args + call->step->args_bytes});
	}
	/* The next attempt has a step of its own. */
	ckt_worker_lib_state_done(call, CUDA_ERROR_OUT_OF_MEMORY);
	return ckt_waiting_call_keep_later(call, waiting, &beside->refused);
}

static void finish(struct ckt_worker *worker, struct ckt_long_call_job *job)
{
	struct ckt_library_long_call *beside = (struct ckt_library_long_call *)job;
	struct ckt_wcall *call = beside->call;
	ckt_inside_notes_settle(worker);
	if (try_again(worker, beside))
		return;
	mark(worker, beside, false);
	if (wait_for_memory(beside)) {
		free(beside);
		return;
	}
	ckt_waiting_call_end(beside->waiting);
	uint64_t before = worker->current ? worker->current->id : 0;
	int result = (int)ckt_worker_use_context(worker, beside->context);
	ckt_worker_lib_state_resume(call);
	int done = beside->done(beside);
	ckt_worker_lib_state_resume(NULL);
	result = result ? result : done;
	if (call) {
		ckt_worker_lib_state_done(call, (CUresult)result);
		ckt_wcall_finish(call, (CUresult)result);
	}
	if (before)
		ckt_worker_use_context(worker, before);
	free(beside);
}

int ckt_library_long_call(struct ckt_wcall *call, struct ckt_library_long_call *beside)
{
	struct ckt_worker *worker = &ckt_worker;
	const struct ckt_object *context;
	beside->call = call;
	if (!beside->context)
		beside->context = worker->current ? worker->current->id : 0;
	context = ckt_objects_find_kind(&worker->objects, beside->context, CKT_KIND_CONTEXT);
	if (worker->go && context && !ckt_lib_capture_stream) {
		beside->job = (struct ckt_long_call_job){
			.context = context->real, .run = run, .finish = finish};
		beside->waiting = call ? ckt_waiting_call_take_along(call) : NULL;
		mark(worker, beside, true);
		ckt_long_call_submit(worker, &beside->job);
		return CKT_WCALL_LATER;
	}
	serve(beside);
	int result = beside->done(beside);
	free(beside);
	return result;
}
