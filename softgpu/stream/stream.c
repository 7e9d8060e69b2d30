/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams as queues.  The first work that cannot run in the call itself creates the stream's
 * thread.
 *
 * submit -> [ queue ] -> worker: wait for the conditions, run, completed = ticket, wake waiters
 *
 * Tickets number a stream's work; `completed` only grows.  Work may have conditions of the form
 * "stream S has completed ticket T".  The legacy default stream and the blocking streams wait for
 * each other by conditions, and so does cuStreamWaitEvent.  Conditions always name work submitted
 * earlier, under the context's submit_lock, so there is no cycle.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/stream/stream.h"
#include "base/thread.h"
#include "softgpu/context/context.h"
#include "softgpu/context/log.h"
#include "softgpu/context/object.h"

struct condition {
	struct ckt_soft_stream *stream; /* referenced */
	uint64_t ticket;
};

struct ckt_soft_command {
	struct ckt_soft_command *next;
	uint64_t ticket;
	ckt_soft_work run;
	unsigned flags;
	size_t n_conditions;
	struct condition *conditions;
	_Alignas(16) unsigned char payload[];
};

__thread int ckt_soft_per_thread_default;
__thread bool ckt_soft_in_graph, ckt_soft_in_host_function;

static void stream_free(struct ckt_soft_object *object)
{
	struct ckt_soft_stream *stream = (struct ckt_soft_stream *)object;
	pthread_mutex_destroy(&stream->lock);
	pthread_cond_destroy(&stream->work);
	pthread_cond_destroy(&stream->done);
	ckt_soft_object_put(&stream->context->object);
	free(stream);
}

CUresult ckt_soft_stream_create(struct ckt_soft_context *context, unsigned flags, int priority,
	struct ckt_soft_stream **ret_stream)
{
	static atomic_uint_fast64_t ids;
	struct ckt_soft_stream *stream = calloc(1, sizeof(*stream));
	if (!stream)
		return CUDA_ERROR_OUT_OF_MEMORY;
	stream->context = context;
	stream->flags = flags;
	stream->priority = priority;
	stream->id = atomic_fetch_add(&ids, 1) + 1;
	stream->tail = &stream->head;
	/* The initial value of an H200's streams. */
	stream->attributes[CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY].syncPolicy =
		(CUsynchronizationPolicy)-1;
	stream->attributes[CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP].memSyncDomainMap.remote = 1;
	pthread_mutex_init(&stream->lock, NULL);
	pthread_cond_init(&stream->work, NULL);
	pthread_cond_init(&stream->done, NULL);
	ckt_soft_object_ref(&context->object);
	CUresult result = ckt_soft_object_init(&stream->object, CKT_SOFT_STREAM, stream_free);
	if (result != CUDA_SUCCESS) {
		stream_free(&stream->object);
		return result;
	}
	/* The default stream is created before context->legacy is set, and is in no list. */
	if (context->legacy) {
		pthread_mutex_lock(&context->submit_lock);
		stream->next = context->streams;
		stream->link = &context->streams;
		if (stream->next)
			stream->next->link = &stream->next;
		context->streams = stream;
		pthread_mutex_unlock(&context->submit_lock);
	}
	*ret_stream = stream;
	return CUDA_SUCCESS;
}

void ckt_soft_stream_unlink(struct ckt_soft_stream *stream)
{
	pthread_mutex_lock(&stream->context->submit_lock);
	if (stream->link) {
		*stream->link = stream->next;
		if (stream->next)
			stream->next->link = stream->link;
		stream->link = NULL;
	}
	pthread_mutex_unlock(&stream->context->submit_lock);
}

void ckt_soft_stream_close(struct ckt_soft_stream *stream)
{
	if (!ckt_soft_object_remove(&stream->object))
		return;
	pthread_mutex_lock(&stream->lock);
	stream->closing = true;
	bool has_thread = stream->has_thread;
	pthread_cond_broadcast(&stream->work);
	pthread_mutex_unlock(&stream->lock);
	/*
	 * A stream with a thread stays in the list until its work is done, because cuCtxSynchronize
	 * still waits for it.
	 */
	if (!has_thread)
		ckt_soft_stream_unlink(stream);
	ckt_soft_object_put(&stream->object);
}

bool ckt_soft_stream_reached(struct ckt_soft_stream *stream, uint64_t ticket)
{
	pthread_mutex_lock(&stream->lock);
	bool reached = stream->completed >= ticket;
	pthread_mutex_unlock(&stream->lock);
	return reached;
}

void ckt_soft_stream_wait(struct ckt_soft_stream *stream, uint64_t ticket)
{
	pthread_mutex_lock(&stream->lock);
	while (stream->completed < ticket)
		pthread_cond_wait(&stream->done, &stream->lock);
	pthread_mutex_unlock(&stream->lock);
}

static void command_free(struct ckt_soft_command *command)
{
	for (size_t i = 0; i < command->n_conditions; i++)
		ckt_soft_object_put(&command->conditions[i].stream->object);
	free(command->conditions);
	free(command);
}

static void complete(struct ckt_soft_stream *stream, uint64_t ticket)
{
	pthread_mutex_lock(&stream->lock);
	stream->completed = ticket;
	pthread_cond_broadcast(&stream->done);
	pthread_mutex_unlock(&stream->lock);
}

static void run_work(
	struct ckt_soft_stream *stream, ckt_soft_work run, unsigned flags, void *payload)
{
	if ((flags & CKT_SOFT_ALWAYS) || ckt_soft_context_result(stream->context) == CUDA_SUCCESS)
		run(stream->context, payload);
}

static void *stream_main(void *data)
{
	struct ckt_soft_stream *stream = data;
	for (;;) {
		pthread_mutex_lock(&stream->lock);
		while (!stream->head && !stream->closing)
			pthread_cond_wait(&stream->work, &stream->lock);
		struct ckt_soft_command *command = stream->head;
		if (!command) {
			pthread_mutex_unlock(&stream->lock);
			break;
		}
		/* The previous work may be running inside a call. */
		while (stream->completed + 1 < command->ticket)
			pthread_cond_wait(&stream->done, &stream->lock);
		stream->head = command->next;
		if (!stream->head)
			stream->tail = &stream->head;
		pthread_mutex_unlock(&stream->lock);
		for (size_t i = 0; i < command->n_conditions; i++)
			ckt_soft_stream_wait(
				command->conditions[i].stream, command->conditions[i].ticket);
		run_work(stream, command->run, command->flags, command->payload);
		uint64_t ticket = command->ticket;
		command_free(command);
		complete(stream, ticket);
	}
	ckt_soft_stream_unlink(stream);
	ckt_soft_object_put(&stream->object);
	return NULL;
}

/* Precondition: stream->lock is held. */
static CUresult start_thread(struct ckt_soft_stream *stream)
{
	if (stream->has_thread)
		return CUDA_SUCCESS;
	ckt_soft_object_ref(&stream->object);
	int error = ckt_thread_start(NULL, 0, stream_main, stream);
	if (error) {
		ckt_soft_object_put(&stream->object);
		ckt_soft_say("cannot make a stream's thread: %s", strerror(-error));
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	stream->has_thread = true;
	return CUDA_SUCCESS;
}

static CUresult add_condition(
	struct condition **list, size_t *n, struct ckt_soft_stream *stream, uint64_t ticket)
{
	struct condition *bigger = realloc(*list, (*n + 1) * sizeof(**list));
	if (!bigger)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*list = bigger;
	ckt_soft_object_ref(&stream->object);
	bigger[(*n)++] = (struct condition){.stream = stream, .ticket = ticket};
	return CUDA_SUCCESS;
}

/* Adds the condition "all work submitted to other", unless that work is complete. */
static CUresult add_pending(struct condition **list, size_t *n, struct ckt_soft_stream *other)
{
	pthread_mutex_lock(&other->lock);
	uint64_t ticket = other->submitted;
	bool pending = other->completed < ticket;
	pthread_mutex_unlock(&other->lock);
	return pending ? add_condition(list, n, other, ticket) : CUDA_SUCCESS;
}

/* Precondition: submit_lock is held. */
static CUresult default_stream_conditions(
	struct ckt_soft_stream *stream, struct condition **list, size_t *n)
{
	struct ckt_soft_context *context = stream->context;
	CUresult result = CUDA_SUCCESS;
	if (stream == context->legacy) {
		for (struct ckt_soft_stream *s = context->streams; s && result == CUDA_SUCCESS;
			s = s->next)
			if (!(s->flags & CU_STREAM_NON_BLOCKING))
				result = add_pending(list, n, s);
	} else if (!(stream->flags & CU_STREAM_NON_BLOCKING) && context->legacy) {
		result = add_pending(list, n, context->legacy);
	}
	return result;
}

void ckt_soft_nothing(struct ckt_soft_context *context, void *payload)
{
	(void)context;
	(void)payload;
}

CUresult ckt_soft_stream_submit(struct ckt_soft_stream *stream, ckt_soft_work run,
	const void *payload, size_t payload_bytes, unsigned flags, struct ckt_soft_stream *wait_for,
	uint64_t wait_ticket, uint64_t *ret_ticket)
{
	struct ckt_soft_context *context = stream->context;
	struct ckt_soft_command *command = malloc(sizeof(*command) + payload_bytes);
	if (!command)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*command = (struct ckt_soft_command){.run = run, .flags = flags};
	if (payload_bytes)
		memcpy(command->payload, payload, payload_bytes);
	bool inline_now = false;
	pthread_mutex_lock(&context->submit_lock);
	CUresult result =
		default_stream_conditions(stream, &command->conditions, &command->n_conditions);
	if (result == CUDA_SUCCESS && wait_for && wait_for != stream &&
		!ckt_soft_stream_reached(wait_for, wait_ticket))
		result = add_condition(
			&command->conditions, &command->n_conditions, wait_for, wait_ticket);
	pthread_mutex_lock(&stream->lock);
	if (result == CUDA_SUCCESS && stream->closing)
		result = CUDA_ERROR_INVALID_HANDLE;
	if (result == CUDA_SUCCESS) {
		inline_now = (flags & (CKT_SOFT_INLINE | CKT_SOFT_BLOCK)) &&
			!command->n_conditions && stream->completed == stream->submitted;
		if (!inline_now)
			result = start_thread(stream);
	}
	if (result == CUDA_SUCCESS) {
		command->ticket = ++stream->submitted;
		if (!inline_now) {
			*stream->tail = command;
			stream->tail = &command->next;
			pthread_cond_signal(&stream->work);
		}
	}
	uint64_t ticket = stream->submitted;
	pthread_mutex_unlock(&stream->lock);
	pthread_mutex_unlock(&context->submit_lock);
	if (result != CUDA_SUCCESS) {
		command_free(command);
		return result;
	}
	if (inline_now) {
		run_work(stream, run, flags, command->payload);
		command_free(command);
		complete(stream, ticket);
	} else if (flags & CKT_SOFT_BLOCK) {
		ckt_soft_stream_wait(stream, ticket);
	}
	if (ret_ticket)
		*ret_ticket = ticket;
	return CUDA_SUCCESS;
}

/* ---- Finding a stream */

static CUresult per_thread_stream(
	struct ckt_soft_context *context, struct ckt_soft_stream **ret_stream)
{
	pthread_mutex_lock(&context->submit_lock);
	for (struct ckt_soft_stream *s = context->streams; s; s = s->next) {
		if (s->per_thread && pthread_equal(s->owner, pthread_self())) {
			ckt_soft_object_ref(&s->object);
			*ret_stream = s;
			pthread_mutex_unlock(&context->submit_lock);
			return CUDA_SUCCESS;
		}
	}
	pthread_mutex_unlock(&context->submit_lock);
	CUresult result = ckt_soft_stream_create(context, CU_STREAM_DEFAULT, 0, ret_stream);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&context->submit_lock);
	(*ret_stream)->owner = pthread_self();
	(*ret_stream)->per_thread = true;
	ckt_soft_object_ref(&(*ret_stream)->object);
	pthread_mutex_unlock(&context->submit_lock);
	return CUDA_SUCCESS;
}

CUresult ckt_soft_stream_get(
	struct ckt_soft_context *context, CUstream handle, struct ckt_soft_stream **ret_stream)
{
	if (handle == CU_STREAM_PER_THREAD || (!handle && ckt_soft_per_thread_default > 0))
		return per_thread_stream(context, ret_stream);
	struct ckt_soft_stream *stream;
	if (!handle || handle == CU_STREAM_LEGACY) {
		stream = context->legacy;
		ckt_soft_object_ref(&stream->object);
	} else {
		stream = ckt_soft_object_get(handle, CKT_SOFT_STREAM);
		if (!stream)
			return CUDA_ERROR_INVALID_HANDLE;
	}
	*ret_stream = stream;
	return CUDA_SUCCESS;
}

CUresult ckt_soft_stream_by_number(uint64_t number, struct ckt_soft_stream **ret_stream)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	return result == CUDA_SUCCESS
		? ckt_soft_stream_get(context,
			  number ? (CUstream)(uintptr_t)number : CU_STREAM_LEGACY, ret_stream)
		: result;
}
