/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts: which is current, what may still run in them, their making and end; and the look-ups of
 * call.h.
 */
#include <stdlib.h>

#include "base/log.h"
#include "checkpoint/kernels/hash.h"
#include "rpc/gen/cuda_codec.h"
#include "server/worker/driver.h"
#include "server/worker/graph/graph.h"
#include "server/worker/ipc/ipc.h"
#include "server/worker/libs/inside/inside.h"
#include "server/worker/libs/libs.h"
#include "server/worker/libs/state.h"
#include "server/worker/memory/freed_memory.h"
#include "server/worker/module/module.h"
#include "server/worker/objects/array.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/context_limits.h"
#include "server/worker/objects/device.h"
#include "server/worker/objects/event.h"
#include "server/worker/objects/fence.h"
#include "server/worker/objects/stream.h"
#include "server/worker/session/long_call.h"
#include "server/worker/session/pace.h"
#include "server/worker/worker.h"

/* ---- Look-ups */

CUresult ckt_object_context(struct ckt_worker *worker, uint64_t id, CUcontext *ret_context)
{
	struct ckt_object *object = ckt_objects_find_kind(&worker->objects, id, CKT_KIND_CONTEXT);
	if (!object) {
		bool made = ckt_handle_kind(id) == CKT_KIND_CONTEXT &&
			ckt_handle_slot(id) >= CKT_HANDLE_FIRST_SLOT;
		CUresult result =
			made ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
		for (unsigned d = 0; d < worker->device_count; d++)
			if (id == ckt_handle_primary(d))
				result = ckt_context_primary(worker, d, &object);
		if (result)
			return result;
	}
	*ret_context = object->real;
	return CUDA_SUCCESS;
}

CUresult ckt_object_stream(struct ckt_worker *worker, uint64_t id, CUstream *ret_stream)
{
	/*
	 * A library call that is captured puts its work on one stream, which is none of the
	 * program's.
	 */
	if (__builtin_expect(ckt_lib_capture_stream != NULL, 0)) {
		*ret_stream = ckt_lib_capture_stream;
		return CUDA_SUCCESS;
	}
	if (id <= 2) {
		if (!worker->current)
			return CUDA_ERROR_INVALID_CONTEXT;
		struct ckt_fences *fences = worker->current->ctx.fences;
		*(id == 2 ? &fences->per_thread : &fences->legacy) = true;
		*ret_stream = (CUstream)(uintptr_t)id;
		return CUDA_SUCCESS;
	}
	struct ckt_object *object = ckt_objects_find_kind(&worker->objects, id, CKT_KIND_STREAM);
	if (!object)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!object->stream.dirty)
		ckt_worker_mark_dirty(worker, object);
	*ret_stream = object->real;
	return CUDA_SUCCESS;
}

static CUresult find_real(struct ckt_worker *worker, uint64_t id, enum ckt_kind kind, void **ret)
{
	struct ckt_object *object = ckt_objects_find_kind(&worker->objects, id, kind);
	if (!object)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret = object->real;
	return CUDA_SUCCESS;
}

CUresult ckt_object_event(struct ckt_worker *worker, uint64_t id, CUevent *ret_event)
{
	return find_real(worker, id, CKT_KIND_EVENT, (void **)ret_event);
}

CUresult ckt_object_module(struct ckt_worker *worker, uint64_t id, CUmodule *ret_module)
{
	return find_real(worker, id, CKT_KIND_MODULE, (void **)ret_module);
}

CUresult ckt_object_function(struct ckt_worker *worker, uint64_t id, CUfunction *ret_function)
{
	return find_real(worker, id, CKT_KIND_FUNCTION, (void **)ret_function);
}

void ckt_worker_mark_dirty(struct ckt_worker *worker, struct ckt_object *stream)
{
	struct ckt_object *context = ckt_objects_find(&worker->objects, stream->context);
	if (context)
		ckt_fences_mark(context->ctx.fences, stream);
}

/* ---- Current, primary, created */

static CUresult make_current(struct ckt_worker *worker, struct ckt_object *context)
{
	CUresult result = ckt_driver.cuCtxSetCurrent(context ? context->real : NULL);
	worker->current = result ? NULL : context;
	return result;
}

CUresult ckt_worker_use_context(struct ckt_worker *worker, uint64_t id)
{
	CUcontext real;
	CUresult result = ckt_object_context(worker, id, &real);
	if (result)
		return result;
	return make_current(worker, ckt_objects_find(&worker->objects, id));
}

CUresult ckt_context_primary(
	struct ckt_worker *worker, unsigned device, struct ckt_object **ret_object)
{
	enum { SPARE_EVENTS = 256 };
	if (device >= worker->device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	uint64_t id = ckt_handle_primary(device);
	struct ckt_object *object = ckt_objects_find(&worker->objects, id),
			  *before = worker->current;
	if (!object) {
		CUcontext real;
		CUresult result =
			ckt_driver.cuDevicePrimaryCtxRetain(&real, worker->devices[device].ordinal);
		if (result == CUDA_ERROR_OUT_OF_MEMORY &&
			ckt_freed_memory_ask(worker->devices[device].number))
			result = ckt_driver.cuDevicePrimaryCtxRetain(
				&real, worker->devices[device].ordinal);
		if (!result)
			result = ckt_objects_add(
				&worker->objects, id, CKT_KIND_CONTEXT, true, &object);
		if (result)
			return result;
		object->context = id;
		object->real = real;
		object->ctx.device = device;
		object->ctx.primary = true;
		make_current(worker, object);
		object->ctx.fences = ckt_fences_create(real, SPARE_EVENTS);
		if (!object->ctx.fences) {
			ckt_objects_remove(&worker->objects, object);
			ckt_driver.cuDevicePrimaryCtxRelease_v2(worker->devices[device].ordinal);
			make_current(worker, before);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		ckt_limits_begin(object);
		if (device)
			ckt_journal_add(&worker->checkpoint.journal,
				(struct ckt_journal_entry){
					.kind = CKT_JOURNAL_PRIMARY, .device = device});
		ckt_hash_load(worker, device);
		if (before)
			make_current(worker, before);
	}
	*ret_object = object;
	return CUDA_SUCCESS;
}

CUresult ckt_context_charge(struct ckt_worker *worker, struct ckt_object *context, uint64_t bytes)
{
	CUresult result = ckt_memory_charge(&worker->devices[context->ctx.device].memory, bytes);
	if (!result)
		context->ctx.charged += bytes;
	return result;
}

/* The driver keeps what a context began with, so no more than was charged comes back. */
void ckt_context_uncharge(struct ckt_worker *worker, struct ckt_object *context, uint64_t bytes)
{
	if (bytes > context->ctx.charged)
		bytes = context->ctx.charged;
	ckt_memory_uncharge(&worker->devices[context->ctx.device].memory, bytes);
	context->ctx.charged -= bytes;
}

/* Free memory of the current context's device; 0 if unknown. */
static uint64_t free_bytes(void)
{
	size_t free_bytes, total;
	return ckt_driver.cuMemGetInfo_v2(&free_bytes, &total) == CUDA_SUCCESS ? free_bytes : 0;
}

/*
 * What a context takes by itself (524 MiB on an H200), by what is free before and after.  Other
 * sessions take and give meanwhile, so it is bounded by what contexts were seen to take.
 */
static uint64_t context_bytes(uint64_t before, uint64_t after)
{
	const uint64_t most = (uint64_t)640 << 20;
	uint64_t bytes = before > after ? before - after : 0;
	return bytes < most ? bytes : most;
}

CUresult ckt_context_create(struct ckt_worker *worker, uint64_t id, unsigned flags, unsigned device,
	struct ckt_object **ret_object)
{
	enum { SPARE_EVENTS = 16 };
	struct ckt_worker_device *d = ckt_worker_device_find(worker, device);
	if (!d)
		return CUDA_ERROR_INVALID_DEVICE;
	struct ckt_object *object, *before = worker->current;
	CUresult result = ckt_objects_add(&worker->objects, id, CKT_KIND_CONTEXT, false, &object);
	if (result)
		return result;
	CUcontext real;
	ckt_long_call_drain(worker, -1);
	uint64_t free_before = before && before->ctx.device == device ? free_bytes() : 0;
	result = ckt_driver.cuCtxCreate_v2
		? ckt_driver.cuCtxCreate_v2(&real, flags, d->ordinal)
		: ckt_driver.cuCtxCreate_v4(&real, NULL, flags, d->ordinal);
	if (result) {
		ckt_objects_remove(&worker->objects, object);
		return result;
	}
	object->context = id;
	object->real = real;
	object->ctx.device = device;
	object->ctx.flags = flags;
	result = ckt_context_charge(worker, object, context_bytes(free_before, free_bytes()));
	if (result) {
		ckt_driver.cuCtxDestroy_v2(real);
		ckt_objects_remove(&worker->objects, object);
		make_current(worker, before);
		return result;
	}
	object->ctx.fences = ckt_fences_create(real, SPARE_EVENTS);
	if (!object->ctx.fences) {
		ckt_objects_remove(&worker->objects, object);
		ckt_driver.cuCtxDestroy_v2(real);
		make_current(worker, before);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	ckt_limits_begin(object);
	ckt_journal_add(&worker->checkpoint.journal,
		(struct ckt_journal_entry){.kind = CKT_JOURNAL_CONTEXT_CREATE,
			.id = id,
			.flags = flags,
			.device = device});
	/* cuCtxCreate left the new one on the thread's stack, where we keep one entry only. */
	CUcontext popped;
	ckt_driver.cuCtxPopCurrent_v2(&popped);
	make_current(worker, before);
	*ret_object = object;
	return CUDA_SUCCESS;
}

/* ---- The end of objects */

void ckt_object_destroy(struct ckt_worker *worker, struct ckt_object *object)
{
	struct ckt_object *context = ckt_objects_find(&worker->objects, object->context);
	switch (ckt_handle_kind(object->id)) {
	case CKT_KIND_STREAM:
		if (context)
			ckt_fences_forget(context->ctx.fences, object);
		ckt_worker_stream_unmake(worker, object);
		break;
	case CKT_KIND_EVENT:
		ckt_event_unmake(worker, object);
		break;
	case CKT_KIND_MODULE:
		ckt_module_unload(worker, object);
		return;
	case CKT_KIND_ARRAY:
	case CKT_KIND_MIPMAP:
		ckt_array_destroy(worker, object);
		return;
	case CKT_KIND_TEXTURE:
	case CKT_KIND_SURFACE:
		ckt_texture_unmake(object);
		break;
	case CKT_KIND_GRAPH:
	case CKT_KIND_GRAPH_EXEC:
		ckt_worker_graph_object_fini(worker, object);
		break;
	case CKT_KIND_LIB_OBJECT:
		ckt_library_object_end(worker, object);
		break;
	case CKT_KIND_LIB_CALL:
		ckt_worker_lib_call_fini(object);
		break;
	default:
		break;
	}
	ckt_objects_remove(&worker->objects, object);
}

static struct ckt_object *last_of(struct ckt_worker *worker, const struct ckt_object *context)
{
	struct ckt_object *object, *last = NULL;
	for (uint32_t cursor = 0; (object = ckt_objects_next(&worker->objects, &cursor));)
		if (object != context && object->context == context->id &&
			(!last || object->order > last->order))
			last = object;
	return last;
}

/* Everything that lives in the context, and its memory. */
static void destroy_contents(struct ckt_worker *worker, struct ckt_object *context)
{
	ckt_long_call_drain(worker, -1);
	ckt_pending_drain(worker, context->ctx.fences, -1);
	ckt_driver.cuCtxSynchronize();
	size_t count;
	struct ckt_object **list = ckt_objects_in_order(&worker->objects, &count), *last;
	/* Without memory for a list: destroys the newest one, again and again. */
	while (!list && (last = last_of(worker, context)))
		ckt_object_destroy(worker, last);
	/* Backwards, so that functions go before their modules. */
	for (size_t i = count; i-- > 0;)
		if (list[i] != context && list[i]->context == context->id)
			ckt_object_destroy(worker, list[i]);
	free(list);
	/* Libraries end some of their objects beside the executor. */
	ckt_long_call_drain(worker, -1);
	ckt_ipc_forget_context(worker, context->id);
	ckt_worker_pools_forget_context(worker, context);
	ckt_worker_lib_forget_workspaces(context->id);
	ckt_memory_free_owned(&worker->devices[context->ctx.device].memory, context->id);
}

CUresult ckt_context_destroy(struct ckt_worker *worker, struct ckt_object *context)
{
	struct ckt_object *before = worker->current == context ? NULL : worker->current;
	CUresult result = make_current(worker, context);
	if (result)
		return result;
	destroy_contents(worker, context);
	ckt_inside_context_ended(worker, context);
	ckt_worker_lib_capture_forget_context(context->id);
	ckt_worker_graph_forget_context(worker, context->id);
	ckt_staging_forget(&worker->staging, context->ctx.fences);
	ckt_pace_forget(context->ctx.fences);
	ckt_fences_destroy(context->ctx.fences, true);
	free(context->ctx.stream_attributes);
	context->ctx.stream_attributes = NULL;
	make_current(worker, before);
	result = ckt_driver.cuCtxDestroy_v2(context->real);
	ckt_context_uncharge(worker, context, context->ctx.charged);
	ckt_journal_add(&worker->checkpoint.journal,
		(struct ckt_journal_entry){.kind = CKT_JOURNAL_CONTEXT_DESTROY, .id = context->id});
	ckt_objects_remove(&worker->objects, context);
	return result;
}

/* ---- Handlers */

int ckt_worker_ctx_create(struct ckt_wcall *call)
{
	struct ckt_ctx_create_args args;
	struct ckt_object *object;
	if (!ckt_ctx_create_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	return ckt_context_create(call->worker, args.id, args.flags, args.device, &object);
}

int ckt_worker_ctx_destroy(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_ctx_destroy_args args;
	if (!ckt_ctx_destroy_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_object *context =
		ckt_objects_find_kind(&worker->objects, args.id, CKT_KIND_CONTEXT);
	if (!context || context->ctx.primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	return ckt_context_destroy(worker, context);
}

int ckt_worker_ctx_synchronize(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_ctx_synchronize_args args;
	if (!ckt_ctx_synchronize_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	if (args.id && (!worker->current || worker->current->id != args.id)) {
		CUresult result = ckt_worker_use_context(worker, args.id);
		if (result)
			return result;
	}
	if (!worker->current)
		return CUDA_ERROR_INVALID_CONTEXT;
	ckt_worker_pools_waited(worker, 0, worker->current->ctx.fences);
	struct ckt_fences *fences = worker->current->ctx.fences;
	struct ckt_pending *pending = ckt_pending_new(call, CKT_PENDING_WAIT, worker->current->id);
	if (!pending)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pending->fences = fences;
	CUresult result;
	if (ckt_pending_add_behind_all(worker, pending, &result))
		return CKT_WCALL_LATER;
	/*
	 * All is done: the driver's own wait returns at once, writes out what kernels printed and
	 * knows of sticky errors.
	 */
	CUresult waited = ckt_driver.cuCtxSynchronize();
	if (!result)
		result = waited;
	ckt_pending_deliver(worker);
	return result;
}

int ckt_worker_primary_ctx_retain(struct ckt_wcall *call)
{
	struct ckt_primary_ctx_retain_args args;
	struct ckt_object *object;
	if (!ckt_primary_ctx_retain_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	/*
	 * The flags are about how threads of the program wait and whether host memory may be
	 * mapped: the program's threads wait in the client, and the worker's own choice stays.
	 */
	return ckt_context_primary(call->worker, args.device, &object);
}

/*
 * The real context stays: our staging, pools and reservations live in it.  What the program had in
 * it goes.  A context in which a kernel faulted stays faulted, as the process would with a driver
 * that has seen such an error.
 */
int ckt_worker_primary_ctx_reset(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_primary_ctx_reset_args args;
	if (!ckt_primary_ctx_reset_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	if (args.device >= worker->device_count)
		return CUDA_ERROR_INVALID_DEVICE;
	struct ckt_object *context = ckt_objects_find(
				  &worker->objects, ckt_handle_primary(args.device)),
			  *before = worker->current;
	if (!context)
		return CUDA_SUCCESS;
	make_current(worker, context);
	destroy_contents(worker, context);
	/* Nothing owns the memory that kernels allocated any more. */
	context->ctx.heap_kernel[0] = 0;
	if (before)
		make_current(worker, before);
	ckt_pending_deliver(worker);
	return CUDA_SUCCESS;
}
