/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams.  Create and destroy wait for no reply.  A thread's per-thread default stream is an
 * ordinary stream that the client makes for the thread.
 */
#include <stdlib.h>

#include "client/cuda/stream/stream.h"
#include "base/fork.h"
#include "client/cuda/call.h"
#include "client/cuda/context/context.h"
#include "client/cuda/context/device.h"
#include "client/cuda/context/route.h"
#include "client/cuda/memory/early_writes.h"
#include "client/cuda/memory/two_servers.h"
#include "client/cuda/stream/event.h"
#include "client/cuda/stream/known.h"
#include "client/cuda/stream/stream_hints.h"
#include "cudacommon/capture.h"
#include "rpc/session.h"

struct ckt_client_stream {
	struct ckt_cudacommon_object object;
	unsigned flags;
	CUdevice device;
	unsigned long long unique;
	struct ckt_stream_hints hints;
	_Atomic uint64_t idle; /* mark, see known.h */
};

struct thread_stream {
	struct thread_stream *next;
	uint64_t context;
	uint64_t stream;
};

static __thread struct thread_stream *thread_streams __attribute__((tls_model("initial-exec")));
static pthread_key_t thread_streams_key;
static pthread_once_t thread_streams_once = PTHREAD_ONCE_INIT;
static _Atomic unsigned long long next_unique = 16;

_Atomic bool ckt_stream_beside;

static void destroy_stream(struct ckt_client_stream *stream)
{
	CKT_ROUTE_CONTEXT(stream->object.context);
	ckt_capture_stream_gone(stream->object.id);
	CKT_BATCHED(stream_destroy, STREAM_DESTROY, .id = stream->object.id);
	ckt_cudacommon_object_remove(&stream->object);
}

/* Destroys the default streams of a thread that ends, as CUDA does. */
static void thread_ends(void *list)
{
	struct thread_stream *s = list;
	while (s) {
		struct thread_stream *next = s->next;
		struct ckt_client_stream *stream =
			ckt_cudacommon_object_find(s->stream, CKT_KIND_STREAM);
		if (stream)
			destroy_stream(stream);
		free(s);
		s = next;
	}
}

static void make_key(void)
{
	pthread_key_create(&thread_streams_key, thread_ends);
}

/* Precondition: the thread's calls go to the context's server. */
static CUresult create_in(const struct ckt_context *context, unsigned flags, int priority,
	struct ckt_client_stream **ret_stream)
{
	const struct ckt_device *device = ckt_client_device_get(context->device, NULL);
	if (priority > device->least_priority)
		priority = device->least_priority;
	if (priority < device->greatest_priority)
		priority = device->greatest_priority;
	struct ckt_client_stream *stream = calloc(1, sizeof *stream);
	if (!stream)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stream->object.context = context->object.id;
	stream->flags = flags;
	stream->hints.priority = priority;
	stream->device = context->device;
	stream->unique = atomic_fetch_add(&next_unique, 1);
	if (!ckt_cudacommon_object_add(&stream->object, CKT_KIND_STREAM)) {
		free(stream);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	CUresult result = CKT_BATCHED(stream_create, STREAM_CREATE, .id = stream->object.id,
		.flags = flags, .priority = priority);
	if (result)
		ckt_cudacommon_object_remove(&stream->object);
	else
		*ret_stream = stream;
	return result;
}

static CUresult create(unsigned flags, int priority, struct ckt_client_stream **ret_stream)
{
	struct ckt_context *context;
	CUresult result = ckt_client_context_current(&context);
	return result ? result : create_in(context, flags, priority, ret_stream);
}

CUresult ckt_client_stream_aside(uint64_t context_id, uint64_t *ret_id)
{
	static CKT_LOCK(lock);
	struct ckt_context *context = ckt_cudacommon_object_find(context_id, CKT_KIND_CONTEXT);
	struct ckt_client_stream *stream = NULL;
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&lock);
	CUresult result = CUDA_SUCCESS;
	/*
	 * The stream is gone if its context was destroyed or reset.  A primary context can come
	 * back.
	 */
	if (!ckt_cudacommon_object_find(context->aside, CKT_KIND_STREAM)) {
		uint64_t saved = ckt_call_context;
		ckt_client_context_use(context_id);
		result = create_in(context, CU_STREAM_NON_BLOCKING, 0, &stream);
		ckt_client_context_use(saved);
		if (!result)
			context->aside = stream->object.id;
	}
	*ret_id = context->aside;
	pthread_mutex_unlock(&lock);
	return result;
}

/* Finds or makes the calling thread's default stream in its current context. */
static CUresult per_thread(uint64_t *ret_id)
{
	struct ckt_context *context;
	CUresult result = ckt_client_context_current(&context);
	if (result)
		return result;
	struct thread_stream *entry = thread_streams;
	while (entry && entry->context != context->object.id)
		entry = entry->next;
	/*
	 * The stream is gone if its context was destroyed or reset.  A primary context can come
	 * back.
	 */
	if (entry && ckt_cudacommon_object_find(entry->stream, CKT_KIND_STREAM)) {
		*ret_id = entry->stream;
		return CUDA_SUCCESS;
	}
	struct ckt_client_stream *stream;
	result = create(CU_STREAM_DEFAULT, 0, &stream);
	if (result)
		return result;
	if (entry) {
		*ret_id = entry->stream = stream->object.id;
		return CUDA_SUCCESS;
	}
	entry = malloc(sizeof *entry);
	if (!entry)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*entry = (struct thread_stream){
		.next = thread_streams, .context = context->object.id, .stream = stream->object.id};
	thread_streams = entry;
	pthread_once(&thread_streams_once, make_key);
	pthread_setspecific(thread_streams_key, thread_streams);
	*ret_id = entry->stream;
	return CUDA_SUCCESS;
}

CUresult ckt_stream_resolve(CUstream handle, uint64_t *ret_id)
{
	uint64_t id = ckt_handle_id(handle);
	if (id == ckt_handle_id(CU_STREAM_PER_THREAD))
		return per_thread(ret_id);
	if (id > ckt_handle_id(CU_STREAM_LEGACY) &&
		!ckt_cudacommon_object_find(id, CKT_KIND_STREAM))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!ckt_call_context) {
		struct ckt_context *context;
		CUresult result = ckt_client_context_current(&context);
		if (result)
			return result;
	}
	*ret_id = id;
	return CUDA_SUCCESS;
}

unsigned ckt_stream_flags(uint64_t id)
{
	const struct ckt_client_stream *stream = ckt_cudacommon_object_find(id, CKT_KIND_STREAM);
	return stream ? stream->flags : CU_STREAM_DEFAULT;
}

/* Finds the stream's record. *ret_stream is NULL for the legacy default stream. */
static CUresult find(CUstream handle, struct ckt_client_stream **ret_stream)
{
	uint64_t id;
	CUresult result = ckt_stream_resolve(handle, &id);
	if (!result)
		*ret_stream = id > 1 ? ckt_cudacommon_object_find(id, CKT_KIND_STREAM) : NULL;
	return result;
}

CUresult ckt_client_stream_hints(CUstream handle, struct ckt_stream_hints **ret_hints)
{
	struct ckt_client_stream *stream;
	struct ckt_context *context;
	CUresult result = find(handle, &stream);
	if (!result && !stream)
		result = ckt_client_context_current(&context);
	if (!result)
		*ret_hints = stream ? &stream->hints : &context->hints;
	return result;
}

CKT_EXPORT CUresult cuStreamCreateWithPriority(
	CUstream *ret_stream, unsigned int flags, int priority)
{
	struct ckt_client_stream *stream;
	if (!ret_stream || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_STREAM_NON_BLOCKING)
		ckt_stream_beside = true;
	CUresult result = create(flags, priority, &stream);
	if (!result)
		*ret_stream = (CUstream)(uintptr_t)stream->object.id;
	return result;
}

CKT_EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned int flags)
{
	return cuStreamCreateWithPriority(stream, flags, 0);
}

CKT_EXPORT CUresult cuStreamDestroy_v2(CUstream handle)
{
	struct ckt_client_stream *stream =
		ckt_cudacommon_object_find(ckt_handle_id(handle), CKT_KIND_STREAM);
	if (!stream)
		return ckt_call_context ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_CONTEXT;
	CKT_ROUTE_CONTEXT(stream->object.context);
	ckt_capture_stream_gone(stream->object.id);
	CUresult result = CKT_BATCHED(stream_destroy, STREAM_DESTROY, .id = stream->object.id);
	if (!result)
		ckt_cudacommon_object_remove(&stream->object);
	return result;
}

static void forget(struct ckt_cudacommon_object *object)
{
	ckt_capture_stream_gone(object->id);
	ckt_cudacommon_object_remove(object);
}

void ckt_client_stream_forget_context(uint64_t context)
{
	ckt_cudacommon_object_each_of_context(CKT_KIND_STREAM, context, forget);
}

/* Finds the stream's context and mark (known.h).  NULL if the stream is gone. */
static _Atomic uint64_t *mark_of(uint64_t id, struct ckt_context **ret_context)
{
	struct ckt_client_stream *stream = id > ckt_handle_id(CU_STREAM_LEGACY)
		? ckt_cudacommon_object_find(id, CKT_KIND_STREAM)
		: NULL;
	if (id > ckt_handle_id(CU_STREAM_LEGACY) && !stream)
		return NULL;
	*ret_context = ckt_cudacommon_object_find(
		stream ? stream->object.context : ckt_call_context, CKT_KIND_CONTEXT);
	if (!*ret_context)
		return NULL;
	return stream ? &stream->idle : &(*ret_context)->default_idle;
}

static bool is_idle(uint64_t id, uint64_t now)
{
	struct ckt_context *context;
	const _Atomic uint64_t *mark = now ? mark_of(id, &context) : NULL;
	return mark && (ckt_known_is(mark, now) || ckt_known_is(&context->idle, now));
}

void ckt_client_stream_done(uint64_t id, uint64_t now)
{
	struct ckt_context *context;
	_Atomic uint64_t *mark = mark_of(id, &context);
	if (mark)
		ckt_known_set(mark, now);
}

bool ckt_client_stream_stays_idle(uint64_t id, uint64_t number)
{
	struct ckt_context *context;
	_Atomic uint64_t *mark = mark_of(id, &context);
	if (!mark)
		return false;
	bool all = ckt_known_is(&context->idle, number);
	/* Work of the legacy default stream holds up the streams that are not beside it. */
	bool own = ckt_known_is(mark, number) && ckt_stream_flags(id) & CU_STREAM_NON_BLOCKING;
	if (all)
		ckt_known_set(&context->idle, number + 1);
	if (own)
		ckt_known_set(mark, number + 1);
	return all || own;
}

bool ckt_client_stream_knows(uint64_t id, uint64_t context_id, uint64_t number)
{
	struct ckt_context *context = ckt_cudacommon_object_find(context_id, CKT_KIND_CONTEXT);
	struct ckt_client_stream *stream = id > ckt_handle_id(CU_STREAM_LEGACY)
		? ckt_cudacommon_object_find(id, CKT_KIND_STREAM)
		: NULL;
	if (!context || (id > ckt_handle_id(CU_STREAM_LEGACY) && !stream))
		return false;
	return atomic_load(&context->idle) > number ||
		atomic_load(stream ? &stream->idle : &context->default_idle) > number;
}

CUresult ckt_client_stream_wait(uint64_t stream)
{
	uint64_t now = ckt_known_now();
	if (is_idle(stream, now))
		return CUDA_SUCCESS;
	CUresult result = CKT_WAIT_FOR_GPU(
		CKT_WAITED(stream_synchronize, STREAM_SYNCHRONIZE, 0, NULL, .stream = stream), 0);
	if (!result)
		ckt_client_stream_done(stream, now);
	return result;
}

CKT_EXPORT CUresult cuStreamSynchronize(CUstream handle)
{
	uint64_t id;
	CKT_ROUTE_STREAM(handle);
	CUresult result = ckt_stream_resolve(handle, &id);
	if (!result)
		result = ckt_capture_forbid(id);
	return result ? result : ckt_client_stream_wait(id);
}

CKT_EXPORT CUresult cuStreamQuery(CUstream handle)
{
	uint64_t id;
	CKT_ROUTE_STREAM(handle);
	CUresult result = ckt_stream_resolve(handle, &id);
	if (!result)
		result = ckt_capture_forbid(id);
	uint64_t now = ckt_known_now();
	if (!result && is_idle(id, now))
		return CUDA_SUCCESS;
	result = CKT_WAIT_FOR_GPU(
		result ? result : CKT_WAITED(stream_query, STREAM_QUERY, 0, NULL, .stream = id), 0);
	if (!result)
		ckt_client_stream_done(id, now);
	return result;
}

CKT_EXPORT CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int flags)
{
	uint64_t id;
	CKT_ROUTE_STREAM(handle);
	CUresult result = ckt_stream_resolve(handle, &id);
	if (result)
		return result;
	if (!ckt_cudacommon_object_find(ckt_handle_id(event), CKT_KIND_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	if (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	if (__builtin_expect(ckt_conn_count > 1, 0) &&
		ckt_client_object_conn(ckt_handle_id(event), CKT_KIND_EVENT) != ckt_call_conn)
		return ckt_wait_between(id, event);
	bool done;
	result = ckt_capture_wait(id, ckt_handle_id(event), flags, &done);
	if (result || done)
		return result;
	if (flags & CU_EVENT_WAIT_EXTERNAL)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (__builtin_expect(ckt_client_event_of_several(ckt_handle_id(event)), 0))
		return CKT_WAITED(stream_wait_event, STREAM_WAIT_EVENT, CKT_CALL_F_NUMBERED, NULL,
			.stream = id, .event = ckt_handle_id(event), .flags = flags);
	return CKT_BATCHED(stream_wait_event, STREAM_WAIT_EVENT, .stream = id,
		.event = ckt_handle_id(event), .flags = flags);
}

CKT_EXPORT CUresult cuStreamGetPriority(CUstream handle, int *priority)
{
	struct ckt_stream_hints *hints;
	if (!priority)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_stream_hints(handle, &hints);
	if (!result)
		*priority = hints->priority;
	return result;
}

CKT_EXPORT CUresult cuStreamGetFlags(CUstream handle, unsigned int *flags)
{
	struct ckt_client_stream *stream;
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = find(handle, &stream);
	if (!result)
		*flags = stream ? stream->flags : CU_STREAM_DEFAULT;
	return result;
}

CKT_EXPORT CUresult cuStreamGetDevice(CUstream handle, CUdevice *device)
{
	struct ckt_client_stream *stream;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = find(handle, &stream);
	if (result)
		return result;
	if (!stream)
		return cuCtxGetDevice(device);
	*device = stream->device;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuStreamGetId(CUstream handle, unsigned long long *id)
{
	struct ckt_client_stream *stream;
	if (!id)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = find(handle, &stream);
	if (!result)
		*id = stream ? stream->unique : 1;
	return result;
}

CKT_EXPORT CUresult cuStreamGetCtx(CUstream handle, CUcontext *context)
{
	struct ckt_client_stream *stream;
	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = find(handle, &stream);
	if (!result)
		*context =
			(CUcontext)(uintptr_t)(stream ? stream->object.context : ckt_call_context);
	return result;
}

CKT_EXPORT CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext *context, CUgreenCtx *green)
{
	CUresult result = cuStreamGetCtx(handle, context);
	if (!result && green)
		*green = NULL;
	return result;
}

/* A session has no green contexts. */
CKT_EXPORT CUresult cuStreamGetGreenCtx(CUstream handle, CUgreenCtx *green)
{
	struct ckt_client_stream *stream;
	if (!green)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = find(handle, &stream);
	if (!result)
		*green = NULL;
	return result;
}
