/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: making, waiting, ordering.  See pending.h for how a wait is answered. */
#include <stdlib.h>

#include "rpc/gen/cuda_codec.h"
#include "server/worker/driver.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/counted_handles.h"
#include "server/worker/objects/fence.h"
#include "server/worker/objects/stream.h"
#include "server/worker/worker.h"

/*
 * Made at the start, so that a program's streams do not shift what the driver maps later; of the
 * first primary context.
 */
static struct {
	CUstream list[CKT_STREAM_POOL];
	unsigned count;
} pools[2];

enum { ORPHANS_MAX = 4096 };

static bool poolable(struct ckt_worker *worker, uint64_t context, unsigned flags, int priority)
{
	return context == ckt_handle_primary(0) && priority == 0 &&
		(flags == CU_STREAM_DEFAULT || flags == CU_STREAM_NON_BLOCKING);
}

void ckt_worker_stream_pool_fill(void)
{
	for (unsigned flags = 0; flags < 2; flags++)
		while (pools[flags].count < CKT_STREAM_POOL &&
			ckt_driver.cuStreamCreateWithPriority(
				&pools[flags].list[pools[flags].count], flags, 0) == CUDA_SUCCESS)
			pools[flags].count++;
}

CUresult ckt_worker_stream_make(
	struct ckt_worker *worker, uint64_t id, unsigned flags, int priority)
{
	if (!worker->current)
		return CUDA_ERROR_INVALID_CONTEXT;
	/* Streams that were destroyed with work before them live on in the driver. */
	if (worker->current->ctx.fences->orphan_count >= ORPHANS_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct ckt_object *object;
	CUresult result = ckt_objects_add(&worker->objects, id, CKT_KIND_STREAM, false, &object);
	if (result)
		return result;
	CUstream real;
	if (poolable(worker, worker->current->id, flags, priority) && pools[flags].count)
		real = pools[flags].list[--pools[flags].count];
	else
		result = ckt_counted_stream_create(worker, flags, priority, &real);
	if (!result && ckt_fences_expect(worker->current->ctx.fences)) {
		ckt_counted_stream_destroy(worker, worker->current->id, real);
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (result) {
		ckt_objects_remove(&worker->objects, object);
		return result;
	}
	object->real = real;
	object->context = worker->current->id;
	object->stream.flags = flags;
	object->stream.priority = priority;
	return CUDA_SUCCESS;
}

/* Returns it to the pool if it is idle, else really destroys it. */
void ckt_worker_stream_unmake(struct ckt_worker *worker, struct ckt_object *object)
{
	unsigned flags = object->stream.flags;
	/* The next user would find this one's settings. */
	if (!object->stream.attributes &&
		poolable(worker, object->context, flags, object->stream.priority) &&
		pools[flags].count < CKT_STREAM_POOL &&
		ckt_driver.cuStreamQuery(object->real) == CUDA_SUCCESS)
		pools[flags].list[pools[flags].count++] = object->real;
	else
		ckt_counted_stream_destroy(worker, object->context, object->real);
}

int ckt_worker_stream_create(struct ckt_wcall *call)
{
	struct ckt_stream_create_args args;
	if (!ckt_stream_create_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	return ckt_worker_stream_make(call->worker, args.id, args.flags, args.priority);
}

int ckt_worker_stream_destroy(struct ckt_wcall *call)
{
	struct ckt_stream_destroy_args args;
	if (!ckt_stream_destroy_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_object *object =
		ckt_objects_find_kind(&call->worker->objects, args.id, CKT_KIND_STREAM);
	if (!object)
		return CUDA_ERROR_INVALID_HANDLE;
	ckt_object_destroy(call->worker, object);
	return CUDA_SUCCESS;
}

/* The fences of the context a stream lives in. Precondition: the stream was found. */
static struct ckt_fences *fences_of(struct ckt_worker *worker, uint64_t stream)
{
	struct ckt_object *object = stream > 2 ? ckt_objects_find(&worker->objects, stream) : NULL;
	struct ckt_object *context =
		object ? ckt_objects_find(&worker->objects, object->context) : worker->current;
	return (context ? context : worker->current)->ctx.fences;
}

int ckt_worker_stream_synchronize(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_stream_synchronize_args args;
	if (!ckt_stream_synchronize_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUstream stream;
	CUresult result = ckt_object_stream(worker, args.stream, &stream);
	if (result)
		return result;
	if (worker->current)
		ckt_worker_pools_waited(worker, args.stream, fences_of(worker, args.stream));
	result = ckt_driver.cuStreamQuery(stream);
	if (result != CUDA_ERROR_NOT_READY) {
		/*
		 * Done or failed: the driver's wait does not block, and writes out what kernels
		 * printed.
		 */
		if (!result && ckt_printed_possible(&worker->printed))
			result = ckt_driver.cuStreamSynchronize(stream);
		ckt_pending_deliver(worker);
		return result;
	}
	struct ckt_pending *pending =
		ckt_pending_new(call, CKT_PENDING_WAIT, args.stream ? args.stream : 1);
	if (!pending)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pending->fences = fences_of(worker, args.stream);
	ckt_pending_add_behind(worker, pending, stream);
	return CKT_WCALL_LATER;
}

int ckt_worker_stream_query(struct ckt_wcall *call)
{
	struct ckt_stream_query_args args;
	if (!ckt_stream_query_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUstream stream;
	CUresult result = ckt_object_stream(call->worker, args.stream, &stream);
	if (!result)
		result = ckt_driver.cuStreamQuery(stream);
	/* "Done" promises that copies to the host are there too. */
	if (!result)
		ckt_pending_deliver(call->worker);
	return result;
}

int ckt_worker_stream_wait_event(struct ckt_wcall *call)
{
	struct ckt_stream_wait_event_args args;
	if (!ckt_stream_wait_event_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUstream stream;
	CUevent event;
	CUresult result = ckt_object_stream(call->worker, args.stream, &stream);
	if (!result)
		result = ckt_object_event(call->worker, args.event, &event);
	return result ? result : ckt_driver.cuStreamWaitEvent(stream, event, args.flags);
}
