/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events.  Each recording is an object of its own; the event and the work that completes it share
 * the object.  So the event can be recorded again or destroyed while the work runs.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "softgpu/stream/event.h"
#include "softgpu/context/context.h"
#include "softgpu/context/device.h"
#include "softgpu/context/object.h"
#include "softgpu/memory/pool.h"
#include "softgpu/module/kernel_output.h"
#include "softgpu/stream/capture.h"
#include "softgpu/stream/event_shared.h"
#include "softgpu/stream/stream.h"

struct recording {
	atomic_uint refs;
	struct ckt_soft_stream *stream; /* referenced */
	uint64_t ticket;
	_Atomic int64_t time_ns; /* 0: not reached yet */
};

struct ckt_soft_event {
	struct ckt_soft_object object;
	struct ckt_soft_context *context; /* referenced */
	unsigned epoch;                   /* of the context when the event was created */
	unsigned flags;
	pthread_mutex_t lock;
	struct recording *last; /* NULL: never recorded */
	/* for an interprocess event, holds its records; NULL otherwise */
	struct ckt_soft_shared_event *shared;
};

static void recording_put(struct recording *recording)
{
	if (recording && atomic_fetch_sub(&recording->refs, 1) == 1) {
		ckt_soft_object_put(&recording->stream->object);
		free(recording);
	}
}

static void event_free(struct ckt_soft_object *object)
{
	struct ckt_soft_event *event = (struct ckt_soft_event *)object;
	recording_put(event->last);
	ckt_soft_shared_event_put(event->shared);
	pthread_mutex_destroy(&event->lock);
	ckt_soft_object_put(&event->context->object);
	free(event);
}

static CUresult event_get(CUevent handle, struct ckt_soft_event **ret_event)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	struct ckt_soft_event *event = ckt_soft_object_get(handle, CKT_SOFT_EVENT);
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!atomic_load(&event->context->alive) ||
		atomic_load(&event->context->epoch) != event->epoch) {
		ckt_soft_object_put(&event->object);
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	}
	result = ckt_soft_context_result(event->context);
	if (result != CUDA_SUCCESS) {
		ckt_soft_object_put(&event->object);
		return result;
	}
	*ret_event = event;
	return CUDA_SUCCESS;
}

CUresult ckt_cudacommon_event_flags(CUevent handle, unsigned *ret_flags)
{
	struct ckt_soft_event *event = handle ? ckt_soft_object_get(handle, CKT_SOFT_EVENT) : NULL;
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_flags = event->flags;
	ckt_soft_object_put(&event->object);
	return CUDA_SUCCESS;
}

/* Like event_get, for queries and waits, which fail for captured events. */
static CUresult event_get_known(CUevent handle, struct ckt_soft_event **ret_event)
{
	CUresult result = event_get(handle, ret_event);
	if (result != CUDA_SUCCESS || ckt_soft_in_graph)
		return result;
	result = ckt_capture_event_check((*ret_event)->object.handle);
	if (result != CUDA_SUCCESS)
		ckt_soft_object_put(&(*ret_event)->object);
	return result;
}

/* The last recording with a reference, or NULL. */
static struct recording *event_last(struct ckt_soft_event *event)
{
	pthread_mutex_lock(&event->lock);
	struct recording *last = event->last;
	if (last)
		atomic_fetch_add(&last->refs, 1);
	pthread_mutex_unlock(&event->lock);
	return last;
}

/* Takes over `shared`. */
static CUresult create(unsigned flags, struct ckt_soft_shared_event *shared, CUevent *ret_event)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	struct ckt_soft_event *event = result == CUDA_SUCCESS ? calloc(1, sizeof(*event)) : NULL;
	if (!event) {
		ckt_soft_shared_event_put(shared);
		return result == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : result;
	}
	event->context = context;
	event->epoch = atomic_load(&context->epoch);
	event->flags = flags;
	event->shared = shared;
	pthread_mutex_init(&event->lock, NULL);
	ckt_soft_object_ref(&context->object);
	result = ckt_soft_object_init(&event->object, CKT_SOFT_EVENT, event_free);
	if (result != CUDA_SUCCESS) {
		event_free(&event->object);
		return result;
	}
	*ret_event = ckt_soft_object_handle(&event->object);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
	unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
	bool shared = Flags & CU_EVENT_INTERPROCESS;
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (!phEvent || (Flags & ~known) || (shared && !(Flags & CU_EVENT_DISABLE_TIMING)))
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_soft_shared_event *page = shared ? ckt_soft_shared_event_new() : NULL;
	return shared && !page ? CUDA_ERROR_OUT_OF_MEMORY : create(Flags, page, phEvent);
}

CUresult CUDAAPI cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent event)
{
	struct ckt_soft_event *e;
	if (!pHandle || !event)
		return CUDA_ERROR_INVALID_VALUE;
	memset(pHandle, 0, sizeof(*pHandle));
	CUresult result = event_get(event, &e);
	if (result != CUDA_SUCCESS)
		return result;
	if (!e->shared || !ckt_soft_shared_event_handle(e->shared, pHandle))
		result = CUDA_ERROR_INVALID_HANDLE;
	ckt_soft_object_put(&e->object);
	return result;
}

CUresult CUDAAPI cuIpcOpenEventHandle(CUevent *phEvent, CUipcEventHandle handle)
{
	if (!phEvent)
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_soft_shared_event *page = ckt_soft_shared_event_open(&handle);
	return page ? create(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING, page, phEvent)
		    : CUDA_ERROR_MAP_FAILED;
}

CUresult CUDAAPI cuEventDestroy_v2(CUevent hEvent)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	struct ckt_soft_event *event = ckt_soft_object_get(hEvent, CKT_SOFT_EVENT);
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!ckt_soft_in_graph)
		ckt_capture_event_forget(event->object.handle);
	if (event->shared)
		ckt_soft_shared_event_withdraw(event->shared);
	if (ckt_soft_object_remove(&event->object)) {
		result = atomic_load(&event->context->alive)
			? ckt_soft_context_result(event->context)
			: CUDA_SUCCESS;
		ckt_soft_object_put(&event->object);
	}
	ckt_soft_object_put(&event->object);
	return result;
}

/* A record of or a wait for an interprocess event. */
struct numbered {
	struct ckt_soft_shared_event *shared; /* counted */
	uint64_t number;
};

static void run_finish(struct ckt_soft_context *context, void *payload)
{
	const struct numbered *n = payload;
	(void)context;
	ckt_soft_shared_event_finish(n->shared, n->number);
	ckt_soft_shared_event_put(n->shared);
}

static void run_wait(struct ckt_soft_context *context, void *payload)
{
	const struct numbered *n = payload;
	(void)context;
	ckt_soft_shared_event_wait(n->shared, n->number);
	ckt_soft_shared_event_put(n->shared);
}

static CUresult submit_numbered(struct ckt_soft_stream *stream,
	struct ckt_soft_shared_event *shared, uint64_t number, ckt_soft_work run)
{
	struct numbered n = {.shared = shared, .number = number};
	ckt_soft_shared_event_ref(shared);
	CUresult result =
		ckt_soft_stream_submit(stream, run, &n, sizeof(n), CKT_SOFT_ALWAYS, NULL, 0, NULL);
	if (result != CUDA_SUCCESS) {
		/* Finish the record, because it will never run and others may wait for it. */
		if (run == run_finish)
			ckt_soft_shared_event_finish(shared, number);
		ckt_soft_shared_event_put(shared);
	}
	return result;
}

static void run_record(struct ckt_soft_context *context, void *payload)
{
	(void)context;
	struct recording *recording = *(struct recording **)payload;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	atomic_store(&recording->time_ns, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
	recording_put(recording);
}

/* Takes the stream's reference over. */
static CUresult record(struct ckt_soft_event *event, struct ckt_soft_stream *stream)
{
	if (event->shared) {
		CUresult result = submit_numbered(stream, event->shared,
			ckt_soft_shared_event_begin(event->shared), run_finish);
		ckt_soft_object_put(&stream->object);
		return result;
	}
	struct recording *recording = calloc(1, sizeof(*recording));
	if (!recording) {
		ckt_soft_object_put(&stream->object);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	atomic_store(&recording->refs, 2);
	recording->stream = stream;
	pthread_mutex_lock(&event->lock);
	CUresult result = ckt_soft_stream_submit(stream, run_record, &recording, sizeof(recording),
		CKT_SOFT_INLINE | CKT_SOFT_ALWAYS, NULL, 0, &recording->ticket);
	if (result == CUDA_SUCCESS) {
		struct recording *before = event->last;
		event->last = recording;
		recording = before;
	} else {
		atomic_store(&recording->refs, 1);
	}
	pthread_mutex_unlock(&event->lock);
	recording_put(recording);
	return result;
}

/* The event and the stream of a call, each with a reference. */
static CUresult event_on_stream(CUevent event_handle, CUstream stream_handle, unsigned wrong_flags,
	struct ckt_soft_event **ret_event, struct ckt_soft_stream **ret_stream)
{
	struct ckt_soft_context *context;
	struct ckt_soft_stream *stream = NULL;
	CUresult result = event_get(event_handle, ret_event);
	if (result != CUDA_SUCCESS)
		return result;
	result = ckt_soft_enter(&context);
	if (result == CUDA_SUCCESS)
		result = ckt_soft_stream_get(context, stream_handle, &stream);
	if (result == CUDA_SUCCESS && wrong_flags)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS) {
		*ret_stream = stream;
		return result;
	}
	if (stream)
		ckt_soft_object_put(&stream->object);
	ckt_soft_object_put(&(*ret_event)->object);
	return result;
}

CUresult CUDAAPI cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
	struct ckt_soft_event *event;
	struct ckt_soft_stream *stream;
	CUresult result = event_on_stream(
		hEvent, hStream, flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL, &event, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (stream->context != event->context && !ckt_soft_in_graph)
		result = CUDA_ERROR_INVALID_HANDLE;
	bool captured = false;
	if (result == CUDA_SUCCESS && !ckt_soft_in_graph)
		result = ckt_capture_record(
			event->object.handle, ckt_soft_stream_number(stream), flags, &captured);
	/* CU_EVENT_RECORD_EXTERNAL needs a capture. */
	if (result == CUDA_SUCCESS && flags && !captured && !ckt_soft_in_graph)
		result = CUDA_ERROR_ILLEGAL_STATE;
	if (result == CUDA_SUCCESS && !captured)
		result = record(event, stream);
	else
		ckt_soft_object_put(&stream->object);
	ckt_soft_object_put(&event->object);
	return result;
}

CUresult CUDAAPI cuEventRecord(CUevent hEvent, CUstream hStream)
{
	return cuEventRecordWithFlags(hEvent, hStream, 0);
}

CUresult CUDAAPI cuEventQuery(CUevent hEvent)
{
	struct ckt_soft_event *event;
	CUresult result = event_get_known(hEvent, &event);
	if (result != CUDA_SUCCESS)
		return result;
	struct recording *last = event_last(event);
	if (last && !ckt_soft_stream_reached(last->stream, last->ticket))
		result = CUDA_ERROR_NOT_READY;
	if (event->shared &&
		!ckt_soft_shared_event_reached(
			event->shared, ckt_soft_shared_event_latest(event->shared)))
		result = CUDA_ERROR_NOT_READY;
	recording_put(last);
	CUresult fault = ckt_soft_context_result(event->context);
	ckt_soft_object_put(&event->object);
	return fault != CUDA_SUCCESS ? fault : result;
}

CUresult CUDAAPI cuEventSynchronize(CUevent hEvent)
{
	struct ckt_soft_event *event;
	CUresult result = event_get_known(hEvent, &event);
	if (result != CUDA_SUCCESS)
		return result;
	struct recording *last = event_last(event);
	if (last)
		ckt_soft_stream_wait(last->stream, last->ticket);
	if (event->shared)
		ckt_soft_shared_event_wait(
			event->shared, ckt_soft_shared_event_latest(event->shared));
	recording_put(last);
	ckt_soft_output_flush(event->context);
	ckt_soft_pools_settle();
	result = ckt_soft_context_result(event->context);
	ckt_soft_object_put(&event->object);
	return result;
}

CUresult CUDAAPI cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
	if (!pMilliseconds)
		return CUDA_ERROR_INVALID_HANDLE; /* as an H200 returns */
	struct ckt_soft_event *start, *end;
	CUresult result = event_get(hStart, &start);
	if (result != CUDA_SUCCESS)
		return result;
	result = event_get(hEnd, &end);
	if (result != CUDA_SUCCESS) {
		ckt_soft_object_put(&start->object);
		return result;
	}
	struct recording *first = event_last(start), *second = event_last(end);
	if (!first || !second || ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) ||
		start->context != end->context)
		result = CUDA_ERROR_INVALID_HANDLE;
	else if (!ckt_soft_stream_reached(first->stream, first->ticket) ||
		!ckt_soft_stream_reached(second->stream, second->ticket))
		result = CUDA_ERROR_NOT_READY;
	else
		*pMilliseconds = (float)((double)(second->time_ns - first->time_ns) / 1e6);
	recording_put(first);
	recording_put(second);
	ckt_soft_object_put(&start->object);
	ckt_soft_object_put(&end->object);
	return result;
}

/* Makes the stream wait until the other stream completes the ticket. */
static CUresult wait_behind(
	struct ckt_soft_stream *stream, struct ckt_soft_stream *other, uint64_t ticket)
{
	return ckt_soft_stream_submit(stream, ckt_soft_nothing, NULL, 0,
		CKT_SOFT_INLINE | CKT_SOFT_ALWAYS, other, ticket, NULL);
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
	struct ckt_soft_event *event;
	struct ckt_soft_stream *stream;
	CUresult result = event_on_stream(
		hEvent, hStream, Flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL, &event, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	bool captured = false;
	if (result == CUDA_SUCCESS && !ckt_soft_in_graph)
		result = ckt_capture_wait(
			ckt_soft_stream_number(stream), event->object.handle, Flags, &captured);
	if (result == CUDA_SUCCESS && Flags && !captured && !ckt_soft_in_graph)
		result = CUDA_ERROR_ILLEGAL_STATE;
	struct recording *last = result == CUDA_SUCCESS && !captured ? event_last(event) : NULL;
	/* A wait for an event that was never recorded returns at once. */
	if (last)
		result = wait_behind(stream, last->stream, last->ticket);
	if (result == CUDA_SUCCESS && !captured && event->shared &&
		ckt_soft_shared_event_latest(event->shared))
		result = submit_numbered(stream, event->shared,
			ckt_soft_shared_event_latest(event->shared), run_wait);
	recording_put(last);
	ckt_soft_object_put(&stream->object);
	ckt_soft_object_put(&event->object);
	return result;
}

/* ---- Whole contexts */

struct reached {
	struct ckt_soft_stream *stream; /* referenced */
	uint64_t ticket;
};

/* Every stream of the context and its latest ticket; the legacy stream comes first. */
static CUresult all_streams(
	struct ckt_soft_context *context, struct reached **ret_list, size_t *ret_count)
{
	size_t count = 0, room = 1;
	pthread_mutex_lock(&context->submit_lock);
	for (struct ckt_soft_stream *s = context->streams; s; s = s->next)
		room++;
	struct reached *list = calloc(room, sizeof(*list));
	for (struct ckt_soft_stream *s = context->legacy; s && list;
		s = s == context->legacy ? context->streams : s->next) {
		pthread_mutex_lock(&s->lock);
		list[count++] = (struct reached){.stream = s, .ticket = s->submitted};
		pthread_mutex_unlock(&s->lock);
		ckt_soft_object_ref(&s->object);
	}
	pthread_mutex_unlock(&context->submit_lock);
	*ret_list = list;
	*ret_count = count;
	return list ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void put_streams(struct reached *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ckt_soft_object_put(&list[i].stream->object);
	free(list);
}

CUresult ckt_soft_context_behind(struct ckt_soft_context *context, ckt_soft_work run,
	const void *payload, size_t payload_bytes)
{
	struct ckt_soft_stream *aside;
	struct reached *list;
	size_t count;
	CUresult result = all_streams(context, &list, &count);
	if (result == CUDA_SUCCESS)
		result = ckt_soft_stream_create(context, CU_STREAM_NON_BLOCKING, 0, &aside);
	if (result == CUDA_SUCCESS) {
		for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
			result = wait_behind(aside, list[i].stream, list[i].ticket);
		if (result == CUDA_SUCCESS)
			result = ckt_soft_stream_submit(aside, run, payload, payload_bytes,
				CKT_SOFT_INLINE | CKT_SOFT_ALWAYS, NULL, 0, NULL);
		ckt_soft_stream_close(aside);
	}
	put_streams(list, count);
	return result;
}

/* Records on the legacy stream after all other streams. */
CUresult CUDAAPI cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent)
{
	struct ckt_soft_context *context;
	struct ckt_soft_event *event;
	struct reached *list = NULL;
	size_t count = 0;
	CUresult result = ckt_soft_context_get(hCtx, &context);
	if (result != CUDA_SUCCESS)
		return result;
	result = event_get(hEvent, &event);
	if (result != CUDA_SUCCESS) {
		ckt_soft_object_put(&context->object);
		return result;
	}
	result = event->context == context ? ckt_capture_context_check(context->object.handle)
					   : CUDA_ERROR_INVALID_HANDLE;
	if (result == CUDA_SUCCESS) {
		ckt_capture_event_forget(event->object.handle);
		result = all_streams(context, &list, &count);
	}
	for (size_t i = 1; i < count && result == CUDA_SUCCESS; i++)
		result = wait_behind(list[0].stream, list[i].stream, list[i].ticket);
	if (result == CUDA_SUCCESS) {
		ckt_soft_object_ref(&list[0].stream->object);
		result = record(event, list[0].stream);
	}
	put_streams(list, count);
	ckt_soft_object_put(&event->object);
	ckt_soft_object_put(&context->object);
	return result;
}

CUresult CUDAAPI cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent)
{
	struct ckt_soft_context *context;
	struct ckt_soft_event *event;
	struct reached *list = NULL;
	size_t count = 0;
	CUresult result = ckt_soft_context_get(hCtx, &context);
	if (result != CUDA_SUCCESS)
		return result;
	result = ckt_capture_context_check(context->object.handle);
	if (result == CUDA_SUCCESS)
		result = event_get_known(hEvent, &event);
	if (result == CUDA_SUCCESS) {
		struct recording *last = event_last(event);
		if (last)
			result = all_streams(context, &list, &count);
		for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
			result = wait_behind(list[i].stream, last->stream, last->ticket);
		put_streams(list, count);
		recording_put(last);
		ckt_soft_object_put(&event->object);
	}
	ckt_soft_object_put(&context->object);
	return result;
}
