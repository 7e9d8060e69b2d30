/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lifetime of what queued work of an executable graph uses: the nodes whose host functions it
 * calls, and the buffers that its copies and those of graph_data.c read and write.  A program may
 * destroy a graph before the GPU has run its queued work.
 *
 *	launch, bytes being copied -> an event behind them, one for each stream
 *	destroyed -> buried when all events have completed
 *
 * The burial runs on the thread beside the executor: the driver unregisters memory only when the
 * context is idle, and for that it may need a reply that only the executor can take.
 */
#include <stdlib.h>

#include "server/worker/driver.h"
#include "server/worker/graph/graph.h"
#include "server/worker/objects/context.h"
#include "server/worker/session/long_call.h"
#include "server/worker/worker.h"

/* An executable graph that is being destroyed. */
struct remains {
	struct ckt_long_call_job job;
	struct remains *next;
	struct ckt_worker_graph_exec exec;
};

static struct remains *remains;

/* ---- Uses */

static uint64_t context_of(struct ckt_worker *worker, uint64_t stream)
{
	const struct ckt_object *object =
		stream > 2 ? ckt_objects_find(&worker->objects, stream) : NULL;
	return object ? object->context : worker->current ? worker->current->id : 0;
}

static bool is_past(const struct ckt_worker_graph_use *use)
{
	return ckt_driver.cuEventQuery(use->event) == CUDA_SUCCESS;
}

/*
 * Finds the entry of the stream, or reuses a completed entry of the same context, or adds one with
 * a new event.
 */
static CUresult place(struct ckt_worker *worker, struct ckt_worker_graph_exec *exec,
	uint64_t stream, struct ckt_worker_graph_use **ret_use)
{
	uint64_t context = context_of(worker, stream);
	struct ckt_worker_graph_use *found = NULL;
	for (size_t i = 0; i < exec->use_count; i++)
		if (exec->uses[i].context == context && exec->uses[i].stream == stream)
			found = &exec->uses[i];
	for (size_t i = 0; i < exec->use_count && !found; i++)
		if (exec->uses[i].context == context && is_past(&exec->uses[i]))
			found = &exec->uses[i];
	if (found) {
		found->stream = stream;
		*ret_use = found;
		return CUDA_SUCCESS;
	}
	struct ckt_worker_graph_use *uses =
		realloc(exec->uses, (exec->use_count + 1) * sizeof *uses);
	if (!uses)
		return CUDA_ERROR_OUT_OF_MEMORY;
	exec->uses = uses;
	/* An event belongs to a context; this one belongs to the stream's context. */
	const struct ckt_object *before = worker->current;
	CUevent event;
	CUresult result = before && before->id == context ? CUDA_SUCCESS
							  : ckt_worker_use_context(worker, context);
	if (!result)
		result = ckt_driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
	if (before && worker->current != before)
		ckt_worker_use_context(worker, before->id);
	if (!result)
		uses[exec->use_count++] = (struct ckt_worker_graph_use){
			.context = context, .stream = stream, .event = event};
	*ret_use = &uses[exec->use_count - 1];
	return result;
}

CUresult ckt_worker_graph_use_begin(struct ckt_worker *worker, struct ckt_worker_graph_exec *exec,
	uint64_t stream, CUevent *ret_event)
{
	struct ckt_worker_graph_use *use;
	*ret_event = NULL;
	if (!exec->segments.count && !exec->has_host_nodes)
		return CUDA_SUCCESS;
	CUresult result = place(worker, exec, stream, &use);
	if (!result)
		*ret_event = use->event;
	return result;
}

CUresult ckt_worker_graph_use_end(
	struct ckt_worker_graph_exec *exec, CUevent event, CUstream stream)
{
	CUresult result = event ? ckt_driver.cuEventRecord(event, stream) : CUDA_SUCCESS;
	/* No event reports the end of this work, so the graph is never freed. */
	if (result)
		exec->immortal = true;
	return result;
}

CUresult ckt_worker_graph_use_wait(struct ckt_worker *worker,
	const struct ckt_worker_graph_exec *exec, uint64_t stream_id, CUstream stream)
{
	uint64_t context = context_of(worker, stream_id);
	CUresult result = CUDA_SUCCESS;
	for (size_t i = 0; i < exec->use_count && !result; i++)
		if (exec->uses[i].stream != stream_id || exec->uses[i].context != context)
			result = ckt_driver.cuStreamWaitEvent(stream, exec->uses[i].event, 0);
	return result;
}

/* ---- Destruction */

static bool all_past(const struct ckt_worker_graph_exec *exec)
{
	for (size_t i = 0; i < exec->use_count; i++)
		if (!is_past(&exec->uses[i]))
			return false;
	return !exec->immortal;
}

/* Runs beside the executor. */
static void bury(struct ckt_long_call_job *job)
{
	struct ckt_worker_graph_exec *exec = &((struct remains *)job)->exec;
	ckt_worker_graph_segments_fini(&exec->segments);
	ckt_worker_graph_conditions_fini(&exec->conditions);
	ckt_worker_graph_free(exec->graph);
}

static void buried(struct ckt_worker *worker, struct ckt_long_call_job *job)
{
	(void)worker;
	free(job);
}

static void drop_events(struct ckt_worker_graph_exec *exec)
{
	for (size_t i = 0; i < exec->use_count; i++)
		ckt_driver.cuEventDestroy_v2(exec->uses[i].event);
	free(exec->uses);
	exec->uses = NULL;
	exec->use_count = 0;
}

void ckt_worker_graph_life_poll(struct ckt_worker *worker)
{
	for (struct remains **r = &remains; *r;) {
		struct remains *dead = *r;
		if (!all_past(&dead->exec)) {
			r = &dead->next;
			continue;
		}
		*r = dead->next;
		drop_events(&dead->exec);
		/* The first device's primary context, which lasts as long as the session. */
		dead->job.context = worker->first_context;
		ckt_long_call_submit(worker, &dead->job);
	}
}

void ckt_worker_graph_exec_drop(struct ckt_worker *worker, struct ckt_worker_graph_exec *exec)
{
	if (exec->real)
		ckt_driver.cuGraphExecDestroy(exec->real);
	exec->real = NULL;
	ckt_memory_uncharge(&worker->devices[exec->device].memory, exec->device_bytes);
	struct remains *dead = calloc(1, sizeof *dead);
	if (!dead)
		return; /* leak the graph rather than free memory in use */
	dead->job = (struct ckt_long_call_job){.run = bury, .finish = buried};
	dead->exec = *exec;
	free(exec);
	if (!dead->exec.segments.count && !dead->exec.use_count && !dead->exec.immortal) {
		bury(&dead->job);
		free(dead);
		return;
	}
	dead->next = remains;
	remains = dead;
	ckt_worker_graph_life_poll(worker);
}

static void forget(struct ckt_worker_graph_exec *exec, uint64_t context)
{
	for (size_t i = 0; i < exec->use_count;) {
		if (exec->uses[i].context != context) {
			i++;
			continue;
		}
		/* A failed context does not report which of its work still runs. */
		exec->immortal |= !is_past(&exec->uses[i]);
		ckt_driver.cuEventDestroy_v2(exec->uses[i].event);
		exec->uses[i] = exec->uses[--exec->use_count];
	}
}

void ckt_worker_graph_forget_context(struct ckt_worker *worker, uint64_t context)
{
	struct ckt_object *object;
	for (uint32_t cursor = 0; (object = ckt_objects_next(&worker->objects, &cursor));)
		if (ckt_handle_kind(object->id) == CKT_KIND_GRAPH_EXEC && object->real)
			forget(object->real, context);
	for (struct remains *r = remains; r; r = r->next)
		forget(&r->exec, context);
}
