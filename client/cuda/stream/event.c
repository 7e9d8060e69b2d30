/* SPDX-License-Identifier: Apache-2.0 */
/* Events.  Create, record and destroy wait for no reply.  The worker answers queries and waits. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "client/cuda/stream/event.h"
#include "client/cuda/call.h"
#include "client/cuda/context/context.h"
#include "client/cuda/context/route.h"
#include "client/cuda/memory/early_writes.h"
#include "client/cuda/memory/ipc.h"
#include "client/cuda/stream/known.h"
#include "client/cuda/stream/stream.h"
#include "cudacommon/capture.h"
#include "rpc/ipc.h"

struct ckt_event {
	struct ckt_cudacommon_object object;
	unsigned flags;
	/*
	 * Counts the starts and ends of recordings.  A query notes the number at its start.  If the
	 * event was finished, that result stays valid until the number changes.
	 */
	_Atomic uint64_t records, finished;
	/*
	 * Something other than cuEventRecord records the event too, so the client asks the worker
	 * each time.
	 */
	_Atomic bool beside;
	/* The latest recording, under `lock`: the number of its call (0: none), and its stream. */
	pthread_mutex_t lock;
	uint64_t number, stream;
};

_Atomic bool ckt_client_event_graphs_record;

static struct ckt_event *find(CUevent handle)
{
	return ckt_cudacommon_object_find(ckt_handle_id(handle), CKT_KIND_EVENT);
}

CUresult ckt_cudacommon_event_flags(CUevent handle, unsigned *ret_flags)
{
	const struct ckt_event *event = find(handle);
	if (event)
		*ret_flags = event->flags;
	return event ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static struct ckt_event *new_event(const struct ckt_context *context, unsigned flags)
{
	struct ckt_event *event = calloc(1, sizeof *event);
	if (!event)
		return NULL;
	event->object.context = context->object.id;
	event->flags = flags;
	if (ckt_cudacommon_object_add(&event->object, CKT_KIND_EVENT))
		return event;
	free(event);
	return NULL;
}

bool ckt_client_event_of_several(uint64_t id)
{
	const struct ckt_event *event = ckt_cudacommon_object_find(id, CKT_KIND_EVENT);
	return event && event->flags & CU_EVENT_INTERPROCESS;
}

CKT_EXPORT CUresult cuEventCreate(CUevent *ret_event, unsigned int flags)
{
	struct ckt_context *context;
	if (!ret_event)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_context_current(&context);
	if (result)
		return result;
	unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
	if (flags & ~known || (flags & CU_EVENT_INTERPROCESS && !(flags & CU_EVENT_DISABLE_TIMING)))
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_event *event = new_event(context, flags);
	if (!event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = CKT_BATCHED(event_create, EVENT_CREATE, .id = event->object.id, .flags = flags);
	if (result)
		ckt_cudacommon_object_remove(&event->object);
	else
		*ret_event = (CUevent)(uintptr_t)event->object.id;
	return result;
}

CKT_EXPORT CUresult cuEventDestroy_v2(CUevent handle)
{
	struct ckt_event *event = find(handle);
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	CKT_ROUTE_CONTEXT(event->object.context);
	ckt_capture_event_forget(event->object.id);
	CUresult result = CKT_BATCHED(event_destroy, EVENT_DESTROY, .id = event->object.id);
	if (result)
		return result;
	/*
	 * Other processes must not be able to open the event after this call.  So wait for a reply
	 * that follows the destruction.  The expected reply is that there is no such event.
	 */
	if (event->flags & CU_EVENT_INTERPROCESS)
		result = CKT_WAITED(event_query, EVENT_QUERY, 0, NULL, .event = event->object.id);
	ckt_cudacommon_object_remove(&event->object);
	return result == CUDA_ERROR_INVALID_HANDLE ? CUDA_SUCCESS : result;
}

static void forget(struct ckt_cudacommon_object *object)
{
	ckt_capture_event_forget(object->id);
	ckt_cudacommon_object_remove(object);
}

void ckt_client_event_forget_context(uint64_t context)
{
	ckt_cudacommon_object_each_of_context(CKT_KIND_EVENT, context, forget);
}

/* If two threads record at once, the later call counts. */
static void note(struct ckt_event *event, uint64_t number, uint64_t stream)
{
	pthread_mutex_lock(&event->lock);
	if (number > event->number) {
		event->number = number;
		event->stream = stream;
	}
	pthread_mutex_unlock(&event->lock);
}

void ckt_client_event_beside(uint64_t id)
{
	struct ckt_event *event = ckt_cudacommon_object_find(id, CKT_KIND_EVENT);
	if (event)
		atomic_store(&event->beside, true);
}

static CUresult record(struct ckt_event *event, uint64_t stream, unsigned flags)
{
	struct ckt_event_record_args args = {
		.event = event->object.id, .stream = stream, .flags = flags};
	struct ckt_call call;
	bool idle = false, several = event->flags & CU_EVENT_INTERPROCESS;
	uint64_t records = atomic_fetch_add(&event->records, 1) + 1;
	CUresult result =
		ckt_call_begin(&call, CKT_PROC_EVENT_RECORD, ckt_event_record_args_size(&args),
			several ? CKT_CALL_F_NUMBERED : CKT_CALL_F_BATCHED);
	if (!result) {
		ckt_event_record_args_put(call.p, &args);
		result = several ? ckt_call_wait(&call, NULL) : ckt_call_queue(&call);
		note(event, call.seq, stream);
		/* Only the worker knows when the GPU took the time of an event with one. */
		idle = !result && event->flags & CU_EVENT_DISABLE_TIMING &&
			ckt_client_stream_stays_idle(stream, call.seq);
	}
	/* Another thread's recording may be the later one. */
	if (atomic_fetch_add(&event->records, 1) == records && idle)
		atomic_store(&event->finished, records + 2);
	return result;
}

CKT_EXPORT CUresult cuEventRecordWithFlags(CUevent handle, CUstream stream, unsigned int flags)
{
	uint64_t id;
	struct ckt_event *event = find(handle);
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	CKT_ROUTE_STREAM(stream);
	CUresult result = ckt_stream_resolve(stream, &id);
	if (result)
		return result;
	/* Event and stream must belong to the same context. */
	const struct ckt_cudacommon_object *of =
		id > 1 ? ckt_cudacommon_object_find(id, CKT_KIND_STREAM) : NULL;
	if (event->object.context != (of ? of->context : ckt_call_context))
		return CUDA_ERROR_INVALID_HANDLE;
	bool done;
	result = ckt_capture_record(event->object.id, id, flags, &done);
	if (result || done)
		return result;
	/* CU_EVENT_RECORD_EXTERNAL is for captures only. */
	if (flags & CU_EVENT_RECORD_EXTERNAL)
		return CUDA_ERROR_ILLEGAL_STATE;
	return record(event, id, flags);
}

CKT_EXPORT CUresult cuEventRecord(CUevent handle, CUstream stream)
{
	return cuEventRecordWithFlags(handle, stream, CU_EVENT_RECORD_DEFAULT);
}

/* Records all work that the context has now. */
CKT_EXPORT CUresult cuCtxRecordEvent(CUcontext handle, CUevent event_handle)
{
	struct ckt_event *event = find(event_handle);
	struct ckt_context *context =
		ckt_cudacommon_object_find(ckt_handle_id(handle), CKT_KIND_CONTEXT);
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!event || event->object.context != context->object.id)
		return CUDA_ERROR_INVALID_HANDLE;
	CKT_ROUTE_CONTEXT(context->object.id);
	CUresult result = ckt_capture_context_check(context->object.id);
	if (result)
		return result;
	ckt_capture_event_forget(event->object.id);
	atomic_store(&event->beside, true);
	return CKT_WAITED(ctx_record_event, CTX_RECORD_EVENT, CKT_CALL_F_NUMBERED, NULL,
		.context = ckt_call_id(context->object.id), .event = event->object.id);
}

/* Makes all future work of the context wait for the event. */
CKT_EXPORT CUresult cuCtxWaitEvent(CUcontext handle, CUevent event_handle)
{
	struct ckt_event *event = find(event_handle);
	struct ckt_context *context =
		ckt_cudacommon_object_find(ckt_handle_id(handle), CKT_KIND_CONTEXT);
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = ckt_capture_context_check(context->object.id);
	if (!result)
		result = ckt_capture_event_check(event->object.id);
	/*
	 * The event is on another server, so this thread waits.  Later work of the context then
	 * follows it.
	 */
	if (!result && ckt_conn_count > 1 &&
		ckt_client_context_conn(event->object.context) !=
			ckt_client_context_conn(context->object.id))
		return cuEventSynchronize(event_handle);
	CKT_ROUTE_CONTEXT(context->object.id);
	return result
		? result
		: CKT_WAITED(ctx_wait_event, CTX_WAIT_EVENT, CKT_CALL_F_NUMBERED, NULL,
			  .context = ckt_call_id(context->object.id), .event = event->object.id);
}

/* The number for which a result about the event is valid; 0: ask the worker each time. */
static uint64_t question_of(const struct ckt_event *event)
{
	if (event->flags & CU_EVENT_INTERPROCESS || atomic_load(&event->beside) ||
		atomic_load_explicit(&ckt_client_event_graphs_record, memory_order_relaxed) ||
		!ckt_known_now())
		return 0;
	return atomic_load(&event->records) + 1;
}

static bool is_finished(struct ckt_event *event, uint64_t question)
{
	if (atomic_load(&event->finished) == question)
		return true;
	pthread_mutex_lock(&event->lock);
	uint64_t number = event->number, stream = event->stream;
	pthread_mutex_unlock(&event->lock);
	return number && ckt_client_stream_knows(stream, event->object.context, number);
}

/* Queries the event, or waits for it. */
static CUresult ask(CUevent handle, bool wait)
{
	CKT_ROUTE_EVENT(handle);
	struct ckt_event *event = find(handle);
	CUresult result =
		event ? ckt_capture_event_check(event->object.id) : CUDA_ERROR_INVALID_HANDLE;
	uint64_t question = result ? 0 : question_of(event);
	if (question && is_finished(event, question))
		return CUDA_SUCCESS;
	if (!result)
		result = wait
			? CKT_WAITED(event_synchronize, EVENT_SYNCHRONIZE, 0, NULL,
				  .event = event->object.id)
			: CKT_WAITED(event_query, EVENT_QUERY, 0, NULL, .event = event->object.id);
	event = result ? NULL : find(handle);
	if (event && question)
		atomic_store(&event->finished, question);
	return result;
}

CKT_EXPORT CUresult cuEventQuery(CUevent handle)
{
	return CKT_WAIT_FOR_GPU(ask(handle, false), 0);
}

CKT_EXPORT CUresult cuEventSynchronize(CUevent handle)
{
	return CKT_WAIT_FOR_GPU(ask(handle, true), 0);
}

CKT_EXPORT CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end)
{
	struct ckt_event *first = find(start), *second = find(end);
	if (!milliseconds || !first || !second ||
		(first->flags | second->flags) & CU_EVENT_DISABLE_TIMING)
		return CUDA_ERROR_INVALID_HANDLE;
	/* Servers have different clocks, so there is no time between their events. */
	if (ckt_conn_count > 1 &&
		ckt_client_context_conn(first->object.context) !=
			ckt_client_context_conn(second->object.context))
		return CUDA_ERROR_INVALID_HANDLE;
	struct ckt_reply reply;
	struct ckt_event_elapsed_time_res res;
	CKT_ROUTE_EVENT(start);
	CUresult result = CKT_WAITED(event_elapsed_time, EVENT_ELAPSED_TIME, 0, &reply,
		.start = first->object.id, .end = second->object.id);
	if (result)
		return result;
	if (ckt_event_elapsed_time_res_get(&reply.results, &res))
		*milliseconds = res.milliseconds;
	else
		result = CUDA_ERROR_UNKNOWN;
	ckt_call_reply_release(&reply);
	return result;
}

/*
 * ---- Events of several processes, whose sessions belong to one owner at one server; see
 * rpc/ipc.h
 */

_Static_assert(sizeof(CUipcEventHandle) == CKT_IPC_HANDLE, "a handle fits");

CKT_EXPORT CUresult cuIpcGetEventHandle(CUipcEventHandle *ret, CUevent handle)
{
	const struct ckt_event *event = find(handle);
	struct ckt_reply reply;
	struct ckt_ipc_event_get_res res;
	if (!ret || !handle)
		return CUDA_ERROR_INVALID_VALUE;
	if (!event || !(event->flags & CU_EVENT_INTERPROCESS))
		return CUDA_ERROR_INVALID_HANDLE;
	CKT_ROUTE_EVENT(handle);
	CUresult result = CKT_WAITED(ipc_event_get, IPC_EVENT_GET, CKT_CALL_F_NUMBERED, &reply,
		.event = event->object.id);
	if (result)
		return result;
	if (ckt_ipc_event_get_res_get(&reply.results, &res) && res.handle_len == sizeof *ret)
		memcpy(ret, res.handle, sizeof *ret);
	else
		result = CUDA_ERROR_UNKNOWN;
	ckt_call_reply_release(&reply);
	return result;
}

CKT_EXPORT CUresult cuIpcOpenEventHandle(CUevent *ret_event, CUipcEventHandle handle)
{
	struct ckt_context *context;
	struct ckt_ipc_handle ours;
	memcpy(&ours, &handle, sizeof ours);
	if (!ret_event)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_context_current(&context);
	if (result)
		return result;
	if (memcmp(ours.magic, CKT_IPC_MAGIC, sizeof ours.magic) != 0 || ours.kind != CKT_IPC_EVENT)
		return CUDA_ERROR_MAP_FAILED;
	/* CUDA returns this error if a process opens its own event or memory. */
	if (ckt_client_ipc_own(&ours))
		return CUDA_ERROR_INVALID_CONTEXT;
	struct ckt_event *event =
		new_event(context, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
	if (!event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = CKT_WAITED(ipc_event_open, IPC_EVENT_OPEN, CKT_CALL_F_NUMBERED, NULL,
		.id = event->object.id, .handle = (const uint8_t *)&ours,
		.handle_len = sizeof ours);
	if (result)
		ckt_cudacommon_object_remove(&event->object);
	else
		*ret_event = (CUevent)(uintptr_t)event->object.id;
	return result;
}
