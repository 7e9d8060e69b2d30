/* SPDX-License-Identifier: Apache-2.0 */
/* Events. */
#include "rpc/gen/cuda_codec.h"
#include "server/worker/driver.h"
#include "server/worker/ipc/ipc.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/counted_handles.h"
#include "server/worker/objects/event.h"
#include "server/worker/worker.h"

CUresult ckt_event_make(
	struct ckt_worker *worker, uint64_t id, unsigned flags, struct ckt_object **ret_object)
{
	if (!worker->current)
		return CUDA_ERROR_INVALID_CONTEXT;
	struct ckt_object *object;
	CUresult result = ckt_objects_add(&worker->objects, id, CKT_KIND_EVENT, false, &object);
	if (result)
		return result;
	CUevent real;
	result = ckt_counted_event_create(worker, flags, &real);
	if (result) {
		ckt_objects_remove(&worker->objects, object);
		return result;
	}
	object->real = real;
	object->context = worker->current->id;
	object->event.flags = flags;
	*ret_object = object;
	return CUDA_SUCCESS;
}

void ckt_event_unmake(struct ckt_worker *worker, struct ckt_object *object)
{
	if (object->event.imported) {
		ckt_driver.cuEventDestroy_v2(object->real);
		ckt_ipc_event_gone(object->id);
		return;
	}
	ckt_ipc_forget(worker, object->id);
	ckt_counted_event_destroy(worker, object->context, object->real);
}

int ckt_worker_event_create(struct ckt_wcall *call)
{
	struct ckt_event_create_args args;
	struct ckt_object *object;
	if (!ckt_event_create_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	return ckt_event_make(call->worker, args.id, args.flags, &object);
}

int ckt_worker_event_destroy(struct ckt_wcall *call)
{
	struct ckt_event_destroy_args args;
	if (!ckt_event_destroy_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_object *object =
		ckt_objects_find_kind(&call->worker->objects, args.id, CKT_KIND_EVENT);
	if (!object)
		return CUDA_ERROR_INVALID_HANDLE;
	ckt_object_destroy(call->worker, object);
	return CUDA_SUCCESS;
}

int ckt_worker_event_record(struct ckt_wcall *call)
{
	struct ckt_event_record_args args;
	if (!ckt_event_record_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_object *object =
		ckt_objects_find_kind(&call->worker->objects, args.event, CKT_KIND_EVENT);
	if (!object)
		return CUDA_ERROR_INVALID_HANDLE;
	CUstream stream;
	CUresult result = ckt_object_stream(call->worker, args.stream, &stream);
	if (!result)
		result = args.flags
			? ckt_driver.cuEventRecordWithFlags(object->real, stream, args.flags)
			: ckt_driver.cuEventRecord(object->real, stream);
	if (!result) {
		object->event.recorded = true;
		object->event.from_image = false;
	}
	return result;
}

int ckt_worker_ctx_record_event(struct ckt_wcall *call)
{
	struct ckt_ctx_record_event_args args;
	CUcontext context;
	if (!ckt_ctx_record_event_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_object *object =
		ckt_objects_find_kind(&call->worker->objects, args.event, CKT_KIND_EVENT);
	if (!object || object->context != args.context)
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = ckt_object_context(call->worker, args.context, &context);
	if (!result)
		result = ckt_driver.cuCtxRecordEvent
			? ckt_driver.cuCtxRecordEvent(context, object->real)
			: CKT_WORKER_UNSUPPORTED("cuCtxRecordEvent with the server's driver");
	if (!result) {
		object->event.recorded = true;
		object->event.from_image = false;
	}
	return result;
}

int ckt_worker_ctx_wait_event(struct ckt_wcall *call)
{
	struct ckt_ctx_wait_event_args args;
	CUcontext context;
	CUevent event;
	if (!ckt_ctx_wait_event_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_object_event(call->worker, args.event, &event);
	if (!result)
		result = ckt_object_context(call->worker, args.context, &context);
	if (result)
		return result;
	return ckt_driver.cuCtxWaitEvent
		? ckt_driver.cuCtxWaitEvent(context, event)
		: CKT_WORKER_UNSUPPORTED("cuCtxWaitEvent with the server's driver");
}

int ckt_worker_event_query(struct ckt_wcall *call)
{
	struct ckt_event_query_args args;
	CUevent event;
	if (!ckt_event_query_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_object_event(call->worker, args.event, &event);
	if (!result)
		result = ckt_driver.cuEventQuery(event);
	if (!result)
		ckt_pending_deliver(call->worker);
	return result;
}

int ckt_worker_event_synchronize(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_event_synchronize_args args;
	CUevent event;
	if (!ckt_event_synchronize_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	CUresult result = ckt_object_event(worker, args.event, &event);
	if (result)
		return result;
	result = ckt_driver.cuEventQuery(event);
	/* Of which stream the event is does not matter much: what is not done stays. */
	ckt_worker_pools_waited(worker, CKT_POOL_ALL_STREAMS, NULL);
	if (result != CUDA_ERROR_NOT_READY) {
		if (!result && ckt_printed_possible(&worker->printed))
			result = ckt_driver.cuEventSynchronize(event);
		ckt_pending_deliver(worker);
		return result;
	}
	struct ckt_object *object = ckt_objects_find(&worker->objects, args.event);
	struct ckt_object *context = ckt_objects_find(&worker->objects, object->context);
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	struct ckt_pending *pending = ckt_pending_new(call, CKT_PENDING_WAIT, args.event);
	if (!pending)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pending->fences = context->ctx.fences;
	pending->one = event;
	pending->count = 1;
	ckt_pending_add(worker, pending);
	return CKT_WCALL_LATER;
}

static CUresult elapsed(float *ret, CUevent start, CUevent end)
{
	return ckt_driver.cuEventElapsedTime_v2 ? ckt_driver.cuEventElapsedTime_v2(ret, start, end)
						: ckt_driver.cuEventElapsedTime(ret, start, end);
}

/*
 * An event recorded before a restore has its time from the image; the restore recorded one event to
 * count on from.
 */
static CUresult elapsed_since_base(struct ckt_worker *worker, struct ckt_object *event, float *ret)
{
	if (event->event.from_image) {
		*ret = event->event.image_ms;
		return CUDA_SUCCESS;
	}
	CUresult result = elapsed(ret, worker->time_base, event->real);
	*ret += worker->image_base_ms;
	return result;
}

int ckt_worker_event_elapsed_time(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_event_elapsed_time_args args;
	if (!ckt_event_elapsed_time_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_object *start =
		ckt_objects_find_kind(&worker->objects, args.start, CKT_KIND_EVENT);
	struct ckt_object *end = ckt_objects_find_kind(&worker->objects, args.end, CKT_KIND_EVENT);
	if (!start || !end)
		return CUDA_ERROR_INVALID_HANDLE;
	/* The driver checks both events in any case: flags, not recorded, not ready. */
	float first = 0, second = 0;
	CUresult result = elapsed(&second, start->real, end->real);
	if (!result && worker->time_base && (start->event.from_image || end->event.from_image)) {
		result = elapsed_since_base(worker, start, &first);
		if (!result)
			result = elapsed_since_base(worker, end, &second);
	}
	if (result)
		return result;
	struct ckt_event_elapsed_time_res res = {.milliseconds = second - first};
	ckt_event_elapsed_time_res_put(
		ckt_wcall_results(call, ckt_event_elapsed_time_res_size(&res)), &res);
	return CUDA_SUCCESS;
}
