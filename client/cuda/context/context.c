/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts.  The worker makes and destroys them.  This process alone knows which context a thread
 * uses: each thread has a stack.  ckt_call_context is its top, which every call carries to the
 * worker.
 */
#include <stdlib.h>

#include "client/cuda/context/context.h"
#include "base/fork.h"
#include "client/conn/conn.h"
#include "client/conn/spin.h"
#include "client/cuda/call.h"
#include "client/cuda/context/device.h"
#include "client/cuda/context/route.h"
#include "client/cuda/memory/array.h"
#include "client/cuda/memory/early_writes.h"
#include "client/cuda/memory/ipc.h"
#include "client/cuda/memory/managed.h"
#include "client/cuda/memory/range.h"
#include "client/cuda/memory/registered.h"
#include "client/cuda/module/module.h"
#include "client/cuda/stream/event.h"
#include "client/cuda/stream/hostfunc.h"
#include "client/cuda/stream/known.h"
#include "client/cuda/stream/stream.h"
#include "client/cuda/stream/stream_hints.h"
#include "cudacommon/capture.h"

enum { STACK_MAX = 64 };

struct context_stack {
	unsigned depth;
	uint64_t ids[STACK_MAX]; /* the top is also ckt_call_context */
};

static __thread struct context_stack *stack __attribute__((tls_model("initial-exec")));
static struct ckt_context primaries[CKT_DEVICES_MAX];
static CKT_LOCK(primary_lock);
static pthread_key_t stack_key;

static void init_once(void)
{
	pthread_key_create(&stack_key, free);
	for (unsigned d = 0; d < ckt_client_device_count(); d++) {
		primaries[d].device = (CUdevice)d;
		primaries[d].primary = true;
		primaries[d].api_version = 3020;
		ckt_cudacommon_object_add_fixed(&primaries[d].object, ckt_handle_primary(d));
	}
}

void ckt_client_context_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, init_once);
}

/* In the child of a fork, the only thread has no current context. */
static void forked(void)
{
	if (stack)
		stack->depth = 0;
	ckt_call_context = 0;
}
CKT_IN_CHILD(forked);

static struct context_stack *thread_stack(void)
{
	if (!stack) {
		stack = calloc(1, sizeof *stack);
		if (stack)
			pthread_setspecific(stack_key, stack);
	}
	return stack;
}

/* CUDA_SUCCESS after cuInit, otherwise CUDA_ERROR_NOT_INITIALIZED. */
static CUresult initialised(void)
{
	return ckt_client_device_get(0, &(CUresult){0}) ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

CUresult ckt_client_context_current(struct ckt_context **ret_context)
{
	if (!ckt_call_context)
		return initialised() ? CUDA_ERROR_NOT_INITIALIZED : CUDA_ERROR_INVALID_CONTEXT;
	struct ckt_context *context =
		ckt_cudacommon_object_find(ckt_call_context, CKT_KIND_CONTEXT);
	if (!context || context->destroyed)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	*ret_context = context;
	return CUDA_SUCCESS;
}

static struct ckt_context *find(CUcontext handle)
{
	return ckt_cudacommon_object_find(ckt_handle_id(handle), CKT_KIND_CONTEXT);
}

/*
 * CUDA lets a thread make a destroyed context current.  Calls in that context then return
 * CUDA_ERROR_CONTEXT_IS_DESTROYED.
 */
static bool is_or_was(CUcontext handle)
{
	return find(handle) || ckt_cudacommon_object_was(ckt_handle_id(handle), CKT_KIND_CONTEXT);
}

static void make_current(uint64_t id)
{
	static _Atomic uint64_t first;
	uint64_t none = 0;
	ckt_client_context_use(id);
	/* With several contexts, work in one does not wait for work in another. */
	if (id && !atomic_compare_exchange_strong(&first, &none, id) && none != id)
		ckt_stream_beside = true;
}

static CUresult push(uint64_t id)
{
	struct context_stack *s = thread_stack();
	if (!s)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (s->depth == STACK_MAX)
		return CUDA_ERROR_INVALID_CONTEXT;
	s->ids[s->depth++] = id;
	make_current(id);
	return CUDA_SUCCESS;
}

static void pop(void)
{
	stack->depth--;
	ckt_client_context_use(stack->depth ? stack->ids[stack->depth - 1] : 0);
}

/* The worker has destroyed everything in the context. */
static void forget_contents(uint64_t context)
{
	struct ckt_context *of = ckt_cudacommon_object_find(context, CKT_KIND_CONTEXT);
	if (of)
		of->hints = (struct ckt_stream_hints){0};
	ckt_registered_forget_context(context);
	ckt_managed_forget_context(context);
	ckt_client_module_forget_context(context);
	ckt_client_ipc_forget_context(context);
	ckt_range_remove_context(context);
	ckt_client_array_forget_context(context);
	ckt_client_stream_forget_context(context);
	ckt_client_event_forget_context(context);
	ckt_call_forget_fault(context);
}

/* ---- Primary contexts */

/* A session that is lost says so to the next call as well. */
static void retained(void *data, CUresult result, struct ckt_cursor *results)
{
	(void)data, (void)result, (void)results;
}

/*
 * The worker makes the primary context of its first GPU before the first command
 * (server/worker/session/start.c), so the result is known, and nobody waits for it.
 */
static CUresult retain(const struct ckt_context *primary, CUdevice device)
{
	const struct ckt_primary_ctx_retain_args args = {
		.device = ckt_call_device((unsigned)device), .flags = primary->flags};
	struct ckt_call call;
	CUresult result = ckt_call_begin(&call, CKT_PROC_PRIMARY_CTX_RETAIN,
		ckt_primary_ctx_retain_args_size(&args), CKT_CALL_F_ANYWAY | CKT_CALL_F_NUMBERED);
	if (result)
		return result;
	ckt_primary_ctx_retain_args_put(call.p, &args);
	if (args.device || primary->destroyed)
		return ckt_call_wait(&call, NULL);
	ckt_call_async(&call, retained, NULL);
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	CUresult result;
	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	if (!ckt_client_device_get(device, &result))
		return result;
	struct ckt_context *primary = &primaries[device];
	CKT_ROUTE_DEVICE(device);
	pthread_mutex_lock(&primary_lock);
	if (primary->retained == 0 || primary->destroyed) {
		result = retain(primary, device);
		if (!result)
			primary->destroyed = false;
	}
	if (!result)
		primary->retained++;
	pthread_mutex_unlock(&primary_lock);
	if (!result)
		*context = (CUcontext)(uintptr_t)primary->object.id;
	return result;
}

CKT_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	CUresult result;
	if (!ckt_client_device_get(device, &result))
		return result;
	struct ckt_context *primary = &primaries[device];
	CKT_ROUTE_DEVICE(device);
	ckt_host_settle();
	pthread_mutex_lock(&primary_lock);
	result = CKT_WAITED(primary_ctx_reset, PRIMARY_CTX_RESET,
		CKT_CALL_F_NUMBERED | CKT_CALL_F_ANYWAY, NULL,
		.device = ckt_call_device((unsigned)device));
	if (!result) {
		forget_contents(ckt_handle_primary((unsigned)device));
		primary->aside = 0;
		atomic_store(&primary->peers, 0);
		/* Threads where it is current get an error until it is retained again. */
		primary->destroyed = true;
	}
	pthread_mutex_unlock(&primary_lock);
	return result;
}

CKT_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	CUresult result;
	if (!ckt_client_device_get(device, &result))
		return result;
	struct ckt_context *primary = &primaries[device];
	pthread_mutex_lock(&primary_lock);
	if (primary->retained == 0)
		result = CUDA_ERROR_INVALID_CONTEXT;
	else
		primary->retained--; /* the context stays: making another is slow */
	pthread_mutex_unlock(&primary_lock);
	return result;
}

/* The first version accepts the release of a context that is not retained. */
CKT_EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
	CUresult result = cuDevicePrimaryCtxRelease_v2(device);
	return result == CUDA_ERROR_INVALID_CONTEXT ? CUDA_SUCCESS : result;
}

CKT_EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags)
{
	CUresult result;
	if (!ckt_client_device_get(device, &result))
		return result;
	if (flags & ~(unsigned)CU_CTX_FLAGS_MASK || (flags & CU_CTX_SCHED_MASK) == 3 ||
		(flags & CU_CTX_SCHED_MASK) > 4)
		return CUDA_ERROR_INVALID_VALUE;
	primaries[device].flags = flags;
	ckt_spin_schedule(flags);
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
	CUresult result;
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	if (!ckt_client_device_get(device, &result))
		return result;
	*flags = primaries[device].flags;
	*active = primaries[device].retained > 0 && !primaries[device].destroyed;
	return CUDA_SUCCESS;
}

/* ---- Other contexts */

static CUresult create_there(const struct ckt_context *context)
{
	CKT_ROUTE_DEVICE(context->device);
	return CKT_WAITED(ctx_create, CTX_CREATE, CKT_CALL_F_NUMBERED, NULL,
		.id = context->object.id, .flags = context->flags,
		.device = ckt_call_device((unsigned)context->device));
}

static CUresult create(
	CUcontext *ret_context, unsigned flags, CUdevice device, unsigned api_version)
{
	CUresult result;
	if (!ret_context)
		return CUDA_ERROR_INVALID_VALUE;
	if (!ckt_client_device_get(device, &result))
		return result;
	if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_context *context = calloc(1, sizeof *context);
	if (!context)
		return CUDA_ERROR_OUT_OF_MEMORY;
	context->device = device;
	context->flags = flags;
	context->api_version = api_version;
	if (!ckt_cudacommon_object_add(&context->object, CKT_KIND_CONTEXT)) {
		free(context);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	uint64_t current = ckt_call_context;
	if (current && !ckt_cudacommon_object_find(current, CKT_KIND_CONTEXT))
		ckt_client_context_use(0); /* a destroyed current context does not prevent this */
	result = create_there(context);
	ckt_client_context_use(current);
	if (!result)
		result = push(context->object.id);
	if (result) {
		ckt_cudacommon_object_remove(&context->object);
		return result;
	}
	ckt_spin_schedule(flags);
	*ret_context = (CUcontext)(uintptr_t)context->object.id;
	return CUDA_SUCCESS;
}

struct others {
	bool first, newer;
};

static void look(struct ckt_cudacommon_object *object, void *data)
{
	const struct ckt_context *context = (const struct ckt_context *)object;
	struct others *others = data;
	others->first |= context->first;
	others->newer |= !context->first && (!context->primary || context->retained);
}

/*
 * Contexts of cuCtxCreate, the version before CUDA 3.2, have 32-bit addresses.  They cannot exist
 * beside newer contexts, in either order (measured on an H200).
 */
static bool has_room(bool first)
{
	struct others others = {0};
	ckt_cudacommon_object_each(CKT_KIND_CONTEXT, look, &others);
	return !(first ? others.newer : others.first);
}

CKT_EXPORT CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
	return has_room(false) ? create(context, flags, device, 3020) : CUDA_ERROR_OUT_OF_MEMORY;
}

CKT_EXPORT CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device)
{
	CUresult result;
	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	if (!ckt_client_device_get(device, &result))
		return result;
	if ((flags & CU_CTX_SCHED_MASK) == 3)
		return CUDA_ERROR_INVALID_VALUE;
	if (!has_room(true))
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = create(context, flags, device, 3020);
	if (!result)
		find(*context)->first = true;
	return result;
}

CKT_EXPORT CUresult cuCtxCreate_v3(CUcontext *context, CUexecAffinityParam *params, int n_params,
	unsigned int flags, CUdevice device)
{
	return n_params
		? CKT_CUDACOMMON_UNSUPPORTED(
			  "a context on a part of the device (cuCtxCreate_v3 with parameters)")
		: create(context, flags, device, 3020);
}

CKT_EXPORT CUresult cuCtxCreate_v4(
	CUcontext *context, CUctxCreateParams *params, unsigned int flags, CUdevice device)
{
	if (params && (params->numExecAffinityParams || params->cigParams))
		return CKT_CUDACOMMON_UNSUPPORTED(
			"a context on a part of the device, or for graphics (cuCtxCreate_v4 with parameters)");
	return create(context, flags, device, 3020);
}

CKT_EXPORT CUresult cuCtxDestroy_v2(CUcontext handle)
{
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_context *context = find(handle);
	if (!context || context->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	CKT_ROUTE_CONTEXT(context->object.id);
	ckt_host_settle();
	CUresult result = CKT_WAITED(ctx_destroy, CTX_DESTROY,
		CKT_CALL_F_NUMBERED | CKT_CALL_F_ANYWAY, NULL, .id = context->object.id);
	if (result)
		return result;
	context->destroyed = true;
	forget_contents(context->object.id);
	if (stack && stack->depth && stack->ids[stack->depth - 1] == context->object.id)
		pop();
	ckt_cudacommon_object_remove(&context->object);
	return CUDA_SUCCESS;
}

/* Before CUDA had stacks of contexts, it counted the users of a context. */
CKT_EXPORT CUresult cuCtxAttach(CUcontext *ret_context, unsigned int flags)
{
	struct ckt_context *context;
	if (!ret_context || flags)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_context_current(&context);
	if (result)
		return result;
	context->attached++;
	*ret_context = (CUcontext)(uintptr_t)context->object.id;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuCtxDetach(CUcontext handle)
{
	struct ckt_context *context = find(handle);
	if (!context || ckt_call_context != context->object.id)
		return initialised() ? CUDA_ERROR_NOT_INITIALIZED : CUDA_ERROR_INVALID_CONTEXT;
	if (!context->attached)
		return cuCtxDestroy_v2(handle);
	context->attached--;
	return CUDA_SUCCESS;
}

/* ---- The thread's stack */

CKT_EXPORT CUresult cuCtxSetCurrent(CUcontext handle)
{
	if (!handle) {
		if (initialised())
			return CUDA_ERROR_NOT_INITIALIZED;
		if (stack && stack->depth)
			pop();
		return CUDA_SUCCESS;
	}
	if (!is_or_was(handle))
		return initialised() ? CUDA_ERROR_NOT_INITIALIZED : CUDA_ERROR_INVALID_CONTEXT;
	if (ckt_call_context == ckt_handle_id(handle))
		return CUDA_SUCCESS;
	struct context_stack *s = thread_stack();
	if (!s)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!s->depth)
		return push(ckt_handle_id(handle));
	s->ids[s->depth - 1] = ckt_handle_id(handle);
	make_current(ckt_handle_id(handle));
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuCtxGetCurrent(CUcontext *context)
{
	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	if (!ckt_call_context && initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	*context = (CUcontext)(uintptr_t)ckt_call_context;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext handle)
{
	if (initialised())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	return is_or_was(handle) ? push(ckt_handle_id(handle)) : CUDA_ERROR_INVALID_CONTEXT;
}

/* Before CUDA 4.0, a thread could not push a context that was on its stack already. */
CKT_EXPORT CUresult cuCtxPushCurrent(CUcontext handle)
{
	for (unsigned i = 0; handle && stack && i < stack->depth; i++)
		if (stack->ids[i] == ckt_handle_id(handle))
			return CUDA_ERROR_INVALID_CONTEXT;
	return cuCtxPushCurrent_v2(handle);
}

CKT_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
	if (!stack || !stack->depth)
		return initialised() ? CUDA_ERROR_NOT_INITIALIZED : CUDA_ERROR_INVALID_CONTEXT;
	if (context)
		*context = (CUcontext)(uintptr_t)ckt_call_context;
	pop();
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
	struct ckt_context *context;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_context_current(&context);
	/* A destroyed context has a device, too. */
	const struct ckt_context *past = result == CUDA_ERROR_CONTEXT_IS_DESTROYED
		? ckt_cudacommon_object_past(ckt_call_context, CKT_KIND_CONTEXT)
		: NULL;
	if (!result)
		*device = context->device;
	else if (past)
		*device = past->device;
	return past ? CUDA_SUCCESS : result;
}

CKT_EXPORT CUresult cuCtxGetDevice_v2(CUdevice *device, CUcontext handle)
{
	if (!handle)
		return cuCtxGetDevice(device);
	struct ckt_context *context = find(handle);
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	*device = context->device;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuCtxGetFlags(unsigned int *flags)
{
	struct ckt_context *context;
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_client_context_current(&context);
	if (!result)
		*flags = context->flags | (context->primary ? CU_CTX_MAP_HOST : 0);
	return result;
}

CKT_EXPORT CUresult cuCtxSetFlags(unsigned int flags)
{
	struct ckt_context *context;
	CUresult result = ckt_client_context_current(&context);
	if (result)
		return result;
	if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
		return CUDA_ERROR_INVALID_VALUE;
	context->flags = flags;
	ckt_spin_schedule(flags);
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuCtxGetId(CUcontext handle, unsigned long long *id)
{
	struct ckt_context *context;
	if (!id)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = CUDA_SUCCESS;
	if (handle)
		result = (context = find(handle)) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
	else
		result = ckt_client_context_current(&context);
	if (!result)
		*id = context->object.id;
	return result;
}

CKT_EXPORT CUresult cuCtxGetApiVersion(CUcontext handle, unsigned int *version)
{
	struct ckt_context *context;
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = CUDA_SUCCESS;
	if (handle)
		result = (context = find(handle)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
	else
		result = ckt_client_context_current(&context);
	if (!result)
		*version = context->api_version;
	return result;
}

CKT_EXPORT CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	struct ckt_context *context;
	CUresult result = ckt_client_context_current(&context);
	if (result)
		return result;
	const struct ckt_device *device = ckt_client_device_get(context->device, NULL);
	if (least)
		*least = device->least_priority;
	if (greatest)
		*greatest = device->greatest_priority;
	return CUDA_SUCCESS;
}

static CUresult synchronize(struct ckt_context *context)
{
	uint64_t id = context->object.id, now = ckt_known_now();
	if (ckt_known_is(&context->idle, now))
		return CUDA_SUCCESS;
	CUresult result = CKT_WAIT_FOR_GPU(
		CKT_WAITED(ctx_synchronize, CTX_SYNCHRONIZE, 0, NULL, .id = ckt_call_id(id)), id);
	context = result ? NULL : ckt_cudacommon_object_find(id, CKT_KIND_CONTEXT);
	if (context)
		ckt_known_set(&context->idle, now);
	return result;
}

CKT_EXPORT CUresult cuCtxSynchronize(void)
{
	struct ckt_context *context;
	CUresult result = ckt_client_context_current(&context);
	if (!result)
		result = ckt_capture_context_check(context->object.id);
	return result ? result : synchronize(context);
}

CKT_EXPORT CUresult cuCtxSynchronize_v2(CUcontext handle)
{
	struct ckt_context *context = find(handle);
	if (!handle)
		return cuCtxSynchronize();
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	CKT_ROUTE_CONTEXT(context->object.id);
	return synchronize(context);
}

/*
 * ---- Peer access.  Every device that can access the session's memory may do so.  The client keeps
 * which peers the program enabled, for CUDA's return values only.
 */

static CUresult peer_of(
	CUcontext handle, struct ckt_context **ret_context, struct ckt_context **ret_peer)
{
	CUresult result = ckt_client_context_current(ret_context);
	if (result)
		return result;
	*ret_peer = find(handle);
	if (!*ret_peer)
		return CUDA_ERROR_INVALID_CONTEXT;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuCtxEnablePeerAccess(CUcontext handle, unsigned int flags)
{
	struct ckt_context *context, *peer;
	int can;
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = peer_of(handle, &context, &peer);
	if (!result)
		result = cuDeviceCanAccessPeer(&can, context->device, peer->device);
	if (result)
		return result;
	if (context->device == peer->device)
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	if (!can)
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	uint64_t bit = 1ull << peer->device;
	return atomic_fetch_or(&context->peers, bit) & bit ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED
							   : CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuCtxDisablePeerAccess(CUcontext handle)
{
	struct ckt_context *context, *peer;
	CUresult result = peer_of(handle, &context, &peer);
	if (result)
		return result;
	uint64_t bit = 1ull << peer->device;
	return atomic_fetch_and(&context->peers, ~bit) & bit ? CUDA_SUCCESS
							     : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}
