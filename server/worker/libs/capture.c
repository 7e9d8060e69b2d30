/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Library calls on streams that capture.  The client keeps the capture and sends the call in the
 * order of its commands.  The worker captures the call at once, with the present settings of its
 * handles, into a graph of the driver; the program's graphs contain that graph as a child.
 *
 *	lib_capture -> begin on a private stream -> the call's handler, on that stream
 *	            -> end: a graph, and the objects that the call used
 *
 * The call and the steps that made and set its objects stay in the log (state.h), so that a restore
 * captures the same call again.
 */
#include <stdlib.h>

#include "base/log.h"
#include "rpc/gen/cuda_codec.h"
#include "server/worker/driver.h"
#include "server/worker/libs/inside/inside.h"
#include "server/worker/libs/libs.h"
#include "server/worker/libs/state.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/counted_handles.h"
#include "server/worker/session/call.h"
#include "server/worker/session/host_budget.h"
#include "server/worker/session/long_call.h"
#include "server/worker/worker.h"

/*
 * The size of a node and of the driver's copies, in the graph and in its instances, as in
 * graph_tree.c.
 */
enum { NODE_BYTES = 4096, CONTEXTS_MAX = 64, CAPTURE_ATTEMPTS = 3 };

CUstream ckt_lib_capture_stream;
uint64_t ckt_lib_capture_id;

static struct {
	struct ckt_object *used[CKT_LIB_USES_MAX];
	uint32_t used_count;
	bool too_many;
	bool astray;    /* an object could not be put on the stream */
	bool later;     /* the handler kept the call, against its contract */
	bool disturbed; /* another thread waited for the context during the capture */
} running;

/* ---- Private streams */

static struct {
	uint64_t context;
	CUstream stream;
} streams[CONTEXTS_MAX];

static CUresult private_stream(struct ckt_worker *worker, CUstream *ret_stream)
{
	unsigned place = CONTEXTS_MAX;
	for (unsigned i = 0; i < CONTEXTS_MAX; i++) {
		if (streams[i].stream && streams[i].context == worker->current->id) {
			*ret_stream = streams[i].stream;
			return CUDA_SUCCESS;
		}
		if (!streams[i].stream && place == CONTEXTS_MAX)
			place = i;
	}
	if (place == CONTEXTS_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = ckt_counted_stream_create(
		worker, CU_STREAM_NON_BLOCKING, 0, &streams[place].stream);
	if (result)
		streams[place].stream = NULL;
	else
		streams[place].context = worker->current->id;
	*ret_stream = streams[place].stream;
	return result;
}

void ckt_worker_lib_capture_forget_context(uint64_t context)
{
	for (unsigned i = 0; i < CONTEXTS_MAX; i++)
		if (streams[i].stream && streams[i].context == context) {
			ckt_counted_stream_destroy(&ckt_worker, context, streams[i].stream);
			streams[i].stream = NULL;
		}
}

/*
 * ---- The capture
 */

void ckt_worker_lib_capture_use(struct ckt_worker *worker, struct ckt_object *object)
{
	const struct ckt_library *library = object->library->library;
	for (uint32_t i = 0; i < running.used_count; i++)
		if (running.used[i] == object)
			return;
	running.too_many |= running.used_count == CKT_LIB_USES_MAX;
	if (running.too_many)
		return;
	running.used[running.used_count++] = object;
	if (library->use_stream && library->use_stream(worker, object, ckt_lib_capture_stream))
		running.astray = true;
}

/*
 * Runs the call while the stream captures.  In every case the capture ends, and handles get their
 * own streams back.
 */
static CUresult capture(struct ckt_wcall *call, uint64_t id, CUstream stream, CUgraph *ret_graph)
{
	struct ckt_worker *worker = call->worker;
	CUgraph graph = NULL;
	CUresult result =
		ckt_driver.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
	if (result)
		return result;
	running.used_count = 0;
	running.too_many = running.astray = false;
	ckt_lib_capture_stream = stream;
	ckt_lib_capture_id = id;
	int handled = ckt_worker_lib_state_run(call);
	running.later = handled == CKT_WCALL_LATER;
	ckt_lib_capture_stream = NULL;
	for (uint32_t i = 0; i < running.used_count; i++) {
		const struct ckt_library *library = running.used[i]->library->library;
		if (library->use_stream)
			library->use_stream(worker, running.used[i], (CUstream)-1);
	}
	ckt_lib_capture_id = 0;
	result = ckt_driver.cuStreamEndCapture(stream, &graph);
	running.disturbed = result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (handled == CKT_WCALL_GARBAGE || handled == CKT_WCALL_LATER || running.too_many)
		result = CUDA_ERROR_INVALID_VALUE;
	else if (handled)
		result = (CUresult)handled;
	else if (!result && (call->status || running.astray || !graph))
		result = CUDA_ERROR_UNKNOWN;
	if (result && graph)
		ckt_driver.cuGraphDestroy(graph);
	if (result && !running.disturbed)
		ckt_warning("cannot capture %s: CUDA error %d, the library's status %d",
			call->proc->name, result, call->status);
	*ret_graph = graph;
	return result;
}

/* Takes references to the steps that made and set the objects. */
static bool take_uses(struct ckt_lib_call *made)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < running.used_count; i++)
		count += running.used[i]->library->recipe
			? 1 + running.used[i]->library->recipe->set_count
			: 0;
	uint64_t bytes = sizeof *made + (count + 1) * sizeof(struct ckt_lib_step *);
	if (!ckt_budget_charge(bytes, "captured library calls"))
		return false;
	made->charged += bytes;
	made->uses = calloc(count + 1, sizeof(struct ckt_lib_step *));
	if (!made->uses)
		return false;
	for (uint32_t i = 0; i < running.used_count; i++) {
		const struct ckt_lib_recipe *recipe = running.used[i]->library->recipe;
		if (!recipe || !recipe->create)
			continue;
		made->uses[made->use_count++] = recipe->create;
		for (uint32_t k = 0; k < recipe->set_count; k++)
			made->uses[made->use_count++] = recipe->sets[k];
	}
	for (uint32_t i = 0; i < made->use_count; i++)
		ckt_worker_lib_step_ref(made->uses[i]);
	return true;
}

void ckt_worker_lib_call_free(struct ckt_lib_call *made)
{
	if (!made)
		return;
	for (uint32_t i = 0; i < made->use_count; i++)
		ckt_worker_lib_step_unref(made->uses[i]);
	free(made->uses);
	if (made->step)
		ckt_worker_lib_step_unref(made->step);
	ckt_budget_uncharge(made->charged);
	free(made);
}

void ckt_worker_lib_call_fini(struct ckt_object *object)
{
	if (object->real)
		ckt_driver.cuGraphDestroy(object->real);
	object->real = NULL;
	ckt_inside_owner_ended(&ckt_worker, object->id, object->context);
}

/* Enters the object of a captured graph; takes over the step. */
static CUresult enter(
	struct ckt_worker *worker, uint64_t id, CUgraph graph, struct ckt_lib_step *step)
{
	struct ckt_object *object;
	size_t nodes = 0;
	struct ckt_lib_call *made = calloc(1, sizeof *made);
	CUresult result =
		made ? ckt_driver.cuGraphGetNodes(graph, NULL, &nodes) : CUDA_ERROR_OUT_OF_MEMORY;
	if (!result &&
		(nodes > UINT32_MAX ||
			!ckt_budget_charge(nodes * NODE_BYTES, "captured library calls")))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (!result)
		made->charged = nodes * NODE_BYTES;
	if (!result && !take_uses(made))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (!result)
		result = ckt_objects_add(&worker->objects, id, CKT_KIND_LIB_CALL, false, &object);
	if (result) {
		ckt_worker_lib_call_free(made);
		ckt_worker_lib_step_unref(step);
		return result;
	}
	made->node_count = (uint32_t)nodes;
	made->step = step;
	step->id = id;
	ckt_worker_lib_step_enter(step);
	object->context = worker->current->id;
	object->real = graph;
	object->lib_call = made;
	return CUDA_SUCCESS;
}

bool ckt_worker_lib_is_work(const struct ckt_proc *proc)
{
	unsigned others = CKT_PROC_CREATES | CKT_PROC_SETS | CKT_PROC_DESTROYS;
	return proc->handler && (proc->flags & (CKT_PROC_BATCHED | others)) == CKT_PROC_BATCHED;
}

CUresult ckt_worker_lib_call_make(struct ckt_worker *worker, uint64_t id, enum ckt_lib lib,
	uint32_t proc, const uint8_t *args, size_t size)
{
	const struct ckt_library *library = lib == CKT_LIB_CUDA ? NULL : ckt_library_of(lib);
	CUstream stream;
	CUgraph graph = NULL;
	if (!library || proc >= *library->proc_count ||
		!ckt_worker_lib_is_work(&library->procs[proc]) || !worker->current)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = private_stream(worker, &stream);
	struct ckt_wcall *call = result ? NULL : ckt_wcall_new(worker);
	if (!call)
		return result ? result : CUDA_ERROR_OUT_OF_MEMORY;
	call->proc = &library->procs[proc];
	call->header = (struct ckt_call_header){.prog = ckt_lib_prog(lib),
		.proc = proc,
		.flags = CKT_CALL_BATCHED,
		.context = worker->current->id};
	struct ckt_lib_step *step = ckt_worker_lib_step_new(CKT_LIB_CAPTURE, call, args, size);
	if (!step) {
		ckt_wcall_free(call);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	/*
	 * Memory that a library freed is waited for beside the executor, and such a wait
	 * invalidates a capture in its context.  Capture again without it.
	 */
	for (unsigned attempt = 0; attempt < CAPTURE_ATTEMPTS; attempt++) {
		call->args = (struct ckt_cursor){.p = step->args, .end = step->args + size};
		result = capture(call, id, stream, &graph);
		if (!running.disturbed || running.later)
			break;
		call->status = 0;
		ckt_long_call_settle(worker);
	}
	if (!running.later)
		ckt_wcall_free(call);
	if (result) {
		ckt_worker_lib_step_unref(step);
	} else {
		result = enter(worker, id, graph, step);
		if (result)
			ckt_driver.cuGraphDestroy(graph);
	}
	if (result)
		ckt_inside_owner_ended(worker, id, worker->current->id);
	return result;
}

const struct ckt_lib_call *ckt_worker_lib_call_find(
	struct ckt_worker *worker, uint64_t id, CUgraph *ret_graph)
{
	const struct ckt_object *object =
		ckt_objects_find_kind(&worker->objects, id, CKT_KIND_LIB_CALL);
	*ret_graph = object ? object->real : NULL;
	return object ? object->lib_call : NULL;
}

/* ---- Handlers */

int ckt_worker_lib_capture(struct ckt_wcall *call)
{
	struct ckt_lib_capture_args args;
	if (!ckt_lib_capture_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	return ckt_worker_lib_call_make(call->worker, args.id, (enum ckt_lib)args.library,
		args.proc, args.args, args.args_len);
}

int ckt_worker_lib_capture_end(struct ckt_wcall *call)
{
	struct ckt_lib_capture_end_args args;
	if (!ckt_lib_capture_end_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	/* A call that could not be captured has no object. */
	struct ckt_object *object =
		ckt_objects_find_kind(&call->worker->objects, args.id, CKT_KIND_LIB_CALL);
	if (object)
		ckt_object_destroy(call->worker, object);
	return CUDA_SUCCESS;
}
