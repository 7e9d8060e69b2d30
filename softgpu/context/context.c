/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts: the thread's stack of current contexts, primary contexts, limits and the sticky error.
 * A thread's stack holds references.  A destroyed context's memory therefore stays while the
 * context is current in any thread.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/context/context.h"
#include "softgpu/context/device.h"
#include "softgpu/context/log.h"
#include "softgpu/context/object.h"
#include "softgpu/memory/array.h"
#include "softgpu/memory/heap.h"
#include "softgpu/memory/memory.h"
#include "softgpu/memory/pool.h"
#include "softgpu/memory/range.h"
#include "softgpu/module/kernel_output.h"
#include "softgpu/module/library.h"
#include "softgpu/module/module.h"
#include "softgpu/stream/capture.h"
#include "softgpu/stream/stream.h"

static __thread struct {
	struct ckt_soft_context **entries;
	size_t n, n_max;
} stack;
static pthread_key_t stack_key;
static pthread_once_t stack_once = PTHREAD_ONCE_INIT;

static void stack_free(void *entries)
{
	(void)entries;
	for (size_t i = 0; i < stack.n; i++)
		ckt_soft_object_put((struct ckt_soft_object *)stack.entries[i]);
	free(stack.entries);
	memset(&stack, 0, sizeof(stack));
}

static void stack_make_key(void)
{
	pthread_key_create(&stack_key, stack_free);
}

/* Takes a reference. */
static CUresult stack_push(struct ckt_soft_context *context)
{
	pthread_once(&stack_once, stack_make_key);
	if (stack.n == stack.n_max) {
		size_t n = stack.n_max ? 2 * stack.n_max : 4;
		struct ckt_soft_context **bigger = realloc(stack.entries, n * sizeof(*bigger));
		if (!bigger)
			return CUDA_ERROR_OUT_OF_MEMORY;
		stack.entries = bigger;
		stack.n_max = n;
		pthread_setspecific(stack_key, bigger);
	}
	ckt_soft_object_ref(&context->object);
	stack.entries[stack.n++] = context;
	return CUDA_SUCCESS;
}

static void stack_pop(void)
{
	ckt_soft_object_put(&stack.entries[--stack.n]->object);
}

static struct ckt_soft_context *stack_top(void)
{
	return stack.n ? stack.entries[stack.n - 1] : NULL;
}

struct ckt_soft_context *ckt_soft_context_last(void)
{
	return stack_top();
}

CUresult ckt_soft_enter_faulted(struct ckt_soft_context **ret_context)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	if (ckt_soft_in_host_function)
		return CUDA_ERROR_NOT_PERMITTED;
	struct ckt_soft_context *context = stack_top();
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!atomic_load_explicit(&context->alive, memory_order_acquire))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	*ret_context = context;
	return CUDA_SUCCESS;
}

CUresult ckt_soft_enter(struct ckt_soft_context **ret_context)
{
	CUresult result = ckt_soft_enter_faulted(ret_context);
	return result == CUDA_SUCCESS ? ckt_soft_context_result(*ret_context) : result;
}

CUresult ckt_soft_context_get(CUcontext handle, struct ckt_soft_context **ret_context)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	struct ckt_soft_context *context;
	if (!handle) {
		result = ckt_soft_enter_faulted(&context);
		if (result != CUDA_SUCCESS)
			return result;
		ckt_soft_object_ref(&context->object);
	} else {
		context = ckt_soft_object_get(handle, CKT_SOFT_CONTEXT);
		if (!context)
			return CUDA_ERROR_INVALID_CONTEXT;
		if (!atomic_load(&context->alive)) {
			ckt_soft_object_put(&context->object);
			return CUDA_ERROR_CONTEXT_IS_DESTROYED;
		}
	}
	*ret_context = context;
	return CUDA_SUCCESS;
}

void ckt_soft_context_fault(struct ckt_soft_context *context, CUresult result)
{
	int none = CUDA_SUCCESS;
	/*
	 * The assertion's message must be written before a caller sees the error.  Nobody may wait
	 * in a failed context.
	 */
	ckt_soft_output_flush(context);
	atomic_compare_exchange_strong(&context->sticky, &none, (int)result);
}

static void context_free(struct ckt_soft_object *object)
{
	struct ckt_soft_context *context = (struct ckt_soft_context *)object;
	pthread_mutex_destroy(&context->submit_lock);
	pthread_mutex_destroy(&context->lock);
	pthread_mutex_destroy(&context->output_lock);
	free(context);
}

/* Creates the parts that a context gets at each start. */
static CUresult context_start(struct ckt_soft_context *context)
{
	static atomic_uint_fast64_t ids;
	context->id = atomic_fetch_add(&ids, 1) + 1;
	atomic_store(&context->sticky, CUDA_SUCCESS);
	memset(context->limits, 0, sizeof(context->limits));
	context->limits[CU_LIMIT_STACK_SIZE] = 1024;
	context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20;
	context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
	context->limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
	context->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
	context->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
	context->cache_config = CU_FUNC_CACHE_PREFER_NONE;
	context->shared_config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
	context->peers = 0;
	CUresult result = ckt_soft_device_prepare(context->device);
	if (result == CUDA_SUCCESS)
		result = ckt_soft_stream_create(context, CU_STREAM_DEFAULT, 0, &context->legacy);
	if (result == CUDA_SUCCESS)
		atomic_store_explicit(&context->alive, true, memory_order_release);
	return result;
}

CUresult ckt_soft_context_create(struct ckt_soft_device *device, unsigned flags, bool primary,
	struct ckt_soft_context **ret_context)
{
	struct ckt_soft_context *context = calloc(1, sizeof(*context));
	if (!context)
		return CUDA_ERROR_OUT_OF_MEMORY;
	context->device = device;
	context->primary = primary;
	context->flags = flags;
	pthread_mutex_init(&context->submit_lock, NULL);
	pthread_mutex_init(&context->lock, NULL);
	pthread_mutex_init(&context->output_lock, NULL);
	CUresult result = ckt_soft_object_init(&context->object, CKT_SOFT_CONTEXT, context_free);
	if (result != CUDA_SUCCESS) {
		free(context);
		return result;
	}
	result = primary ? CUDA_SUCCESS : context_start(context);
	if (result != CUDA_SUCCESS) {
		ckt_soft_object_remove(&context->object);
		ckt_soft_object_put(&context->object);
		return result;
	}
	*ret_context = context;
	return CUDA_SUCCESS;
}

CUresult ckt_soft_context_revive(struct ckt_soft_context *context)
{
	return atomic_load(&context->alive) ? CUDA_SUCCESS : context_start(context);
}

CUresult ckt_soft_context_synchronize(struct ckt_soft_context *context)
{
	/* A snapshot of streams and tickets; later work is not waited for. */
	struct waiting {
		struct ckt_soft_stream *stream;
		uint64_t ticket;
	} *list = NULL;
	size_t n = 0, n_max = 0;
	pthread_mutex_lock(&context->submit_lock);
	for (struct ckt_soft_stream *s = context->legacy; s;
		s = s == context->legacy ? context->streams : s->next) {
		pthread_mutex_lock(&s->lock);
		bool pending = s->completed < s->submitted;
		uint64_t ticket = s->submitted;
		pthread_mutex_unlock(&s->lock);
		if (!pending)
			continue;
		if (n == n_max) {
			n_max = n_max ? 2 * n_max : 8;
			struct waiting *bigger = realloc(list, n_max * sizeof(*list));
			if (!bigger) {
				pthread_mutex_unlock(&context->submit_lock);
				for (size_t i = 0; i < n; i++)
					ckt_soft_object_put(&list[i].stream->object);
				free(list);
				return CUDA_ERROR_OUT_OF_MEMORY;
			}
			list = bigger;
		}
		ckt_soft_object_ref(&s->object);
		list[n++] = (struct waiting){.stream = s, .ticket = ticket};
	}
	pthread_mutex_unlock(&context->submit_lock);
	for (size_t i = 0; i < n; i++) {
		ckt_soft_stream_wait(list[i].stream, list[i].ticket);
		ckt_soft_object_put(&list[i].stream->object);
	}
	free(list);
	ckt_soft_output_flush(context);
	ckt_soft_pools_settle();
	return ckt_soft_context_result(context);
}

void ckt_soft_context_close(struct ckt_soft_context *context)
{
	if (!atomic_exchange(&context->alive, false))
		return;
	ckt_soft_context_synchronize(context);
	for (;;) {
		pthread_mutex_lock(&context->submit_lock);
		struct ckt_soft_stream *stream = context->streams;
		if (stream)
			ckt_soft_object_ref(&stream->object);
		pthread_mutex_unlock(&context->submit_lock);
		if (!stream)
			break;
		ckt_capture_stream_gone(stream->object.handle);
		ckt_soft_stream_close(stream);
		ckt_soft_stream_unlink(stream);
		ckt_soft_object_put(&stream->object);
	}
	ckt_soft_stream_close(context->legacy);
	context->legacy = NULL;
	ckt_soft_pools_forget(context);
	ckt_soft_libraries_forget(context);
	for (;;) {
		pthread_mutex_lock(&context->lock);
		struct ckt_soft_module *module = context->modules;
		pthread_mutex_unlock(&context->lock);
		if (!module)
			break;
		ckt_soft_module_close(module);
	}
	ckt_soft_arrays_forget(context);
	ckt_soft_heap_fini(context);
	struct ckt_soft_range range;
	while (ckt_soft_range_of_context(context, &range)) {
		if (ckt_soft_range_remove(range.base, ~0u, &range))
			ckt_soft_memory_release(&range);
	}
	ckt_soft_output_flush(context);
	atomic_fetch_add(&context->epoch, 1);
}

/* ---- Primary contexts */

static CUresult primary_device(CUdevice dev, struct ckt_soft_device **ret_device)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	*ret_device = ckt_soft_device(dev);
	return *ret_device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static pthread_mutex_t primary_lock =
	PTHREAD_MUTEX_INITIALIZER; /* guards primary, primary_refs, primary_flags of all */

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	struct ckt_soft_device *device;
	CUresult result = primary_device(dev, &device);
	if (result != CUDA_SUCCESS)
		return result;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&primary_lock);
	if (!device->primary)
		result = ckt_soft_context_create(
			device, device->primary_flags, true, &device->primary);
	if (result == CUDA_SUCCESS)
		result = ckt_soft_context_revive(device->primary);
	if (result == CUDA_SUCCESS) {
		device->primary_refs++;
		atomic_store(&device->primary->flags, device->primary_flags);
		*pctx = ckt_soft_context_handle(device->primary);
	}
	pthread_mutex_unlock(&primary_lock);
	return result;
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	struct ckt_soft_device *device;
	CUresult result = primary_device(dev, &device);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&primary_lock);
	if (device->primary_refs == 0)
		result = CUDA_ERROR_INVALID_CONTEXT;
	else if (--device->primary_refs == 0)
		ckt_soft_context_close(device->primary);
	pthread_mutex_unlock(&primary_lock);
	return result;
}

/* The first version ignores a release without a retain. */
CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice dev)
{
	CUresult result = cuDevicePrimaryCtxRelease_v2(dev);
	return result == CUDA_ERROR_INVALID_CONTEXT ? CUDA_SUCCESS : result;
}

CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	struct ckt_soft_device *device;
	CUresult result = primary_device(dev, &device);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&primary_lock);
	device->primary_refs = 0;
	device->primary_flags = 0;
	if (device->primary)
		ckt_soft_context_close(device->primary);
	pthread_mutex_unlock(&primary_lock);
	return CUDA_SUCCESS;
}

static bool flags_good(unsigned flags)
{
	unsigned scheduling = flags & CU_CTX_SCHED_MASK;
	return !(flags & ~(unsigned)CU_CTX_FLAGS_MASK) &&
		(scheduling == 0 || scheduling == 1 || scheduling == 2 || scheduling == 4);
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	struct ckt_soft_device *device;
	CUresult result = primary_device(dev, &device);
	if (result != CUDA_SUCCESS)
		return result;
	if (!flags_good(flags))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&primary_lock);
	device->primary_flags = flags;
	if (device->primary)
		atomic_store(&device->primary->flags, flags);
	pthread_mutex_unlock(&primary_lock);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	struct ckt_soft_device *device;
	CUresult result = primary_device(dev, &device);
	if (result != CUDA_SUCCESS)
		return result;
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&primary_lock);
	*flags = device->primary_flags;
	*active = device->primary && atomic_load(&device->primary->alive);
	pthread_mutex_unlock(&primary_lock);
	return CUDA_SUCCESS;
}

/* ---- Contexts of cuCtxCreate */

/* The number of living contexts from the first cuCtxCreate, and from later versions of it. */
static atomic_int first_count, newer_count;

static CUresult create(CUcontext *pctx, unsigned flags, CUdevice dev, bool first)
{
	struct ckt_soft_device *device;
	CUresult result = primary_device(dev, &device);
	if (result != CUDA_SUCCESS)
		return result;
	if (!pctx || !flags_good(flags))
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_soft_context *context;
	result = ckt_soft_context_create(device, flags, false, &context);
	if (result != CUDA_SUCCESS)
		return result;
	result = stack_push(context);
	if (result != CUDA_SUCCESS) {
		ckt_soft_context_close(context);
		ckt_soft_object_remove(&context->object);
		ckt_soft_object_put(&context->object);
		return result;
	}
	context->first = first;
	atomic_fetch_add(first ? &first_count : &newer_count, 1);
	*pctx = ckt_soft_context_handle(context);
	return CUDA_SUCCESS;
}

static bool any_primary(void)
{
	bool any = false;
	pthread_mutex_lock(&primary_lock);
	for (int i = 0; i < ckt_soft_device_count(); i++)
		any |= ckt_soft_device(i)->primary_refs > 0;
	pthread_mutex_unlock(&primary_lock);
	return any;
}

/*
 * Contexts of the first version (before CUDA 3.2) have 32-bit addresses.  They cannot exist
 * together with newer contexts; an H200 behaves so.
 */
CUresult CUDAAPI cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	return atomic_load(&first_count) ? CUDA_ERROR_OUT_OF_MEMORY
					 : create(pctx, flags, dev, false);
}

CUresult CUDAAPI cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	struct ckt_soft_device *device;
	CUresult result = primary_device(dev, &device);
	if (result != CUDA_SUCCESS)
		return result;
	if (!pctx || !flags_good(flags))
		return CUDA_ERROR_INVALID_VALUE;
	return atomic_load(&newer_count) || any_primary() ? CUDA_ERROR_OUT_OF_MEMORY
							  : create(pctx, flags, dev, true);
}

CUresult CUDAAPI cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
	unsigned int flags, CUdevice dev)
{
	if (numParams != 0)
		return numParams > 0 && paramsArray ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY
						    : CUDA_ERROR_INVALID_VALUE;
	return create(pctx, flags, dev, false);
}

CUresult CUDAAPI cuCtxCreate_v4(
	CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags, CUdevice dev)
{
	if (ctxCreateParams && ctxCreateParams->cigParams)
		return CKT_SOFT_UNSUPPORTED("cuCtxCreate_v4 with graphics parameters");
	if (ctxCreateParams && ctxCreateParams->numExecAffinityParams)
		return cuCtxCreate_v3(pctx, ctxCreateParams->execAffinityParams,
			ctxCreateParams->numExecAffinityParams, flags, dev);
	return create(pctx, flags, dev, false);
}

CUresult CUDAAPI cuCtxDestroy_v2(CUcontext ctx)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	if (!ctx)
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_soft_context *context = ckt_soft_object_get(ctx, CKT_SOFT_CONTEXT);
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	/* The program can release a primary context but cannot destroy it. */
	if (context->primary || !ckt_soft_object_remove(&context->object)) {
		ckt_soft_object_put(&context->object);
		return CUDA_ERROR_INVALID_CONTEXT;
	}
	atomic_fetch_sub(context->first ? &first_count : &newer_count, 1);
	ckt_soft_context_close(context);
	if (stack_top() == context)
		stack_pop();
	ckt_soft_object_put(&context->object);
	ckt_soft_object_put(&context->object);
	return CUDA_SUCCESS;
}

static void ghost_free(struct ckt_soft_object *object)
{
	free(object);
}

/*
 * Returns the context with a reference.  CUDA lets a thread make a destroyed context current; later
 * calls then return the error.  A placeholder with the same handle, which is not alive, represents
 * a destroyed context.
 */
static CUresult find_past(CUcontext ctx, struct ckt_soft_context **ret_context)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	*ret_context = ckt_soft_object_get(ctx, CKT_SOFT_CONTEXT);
	if (*ret_context)
		return CUDA_SUCCESS;
	if (!ckt_soft_object_was(ctx, CKT_SOFT_CONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	struct ckt_soft_context *ghost = calloc(1, sizeof(*ghost));
	if (!ghost)
		return CUDA_ERROR_OUT_OF_MEMORY;
	ghost->object.kind = CKT_SOFT_CONTEXT;
	ghost->object.handle = (uint64_t)(uintptr_t)ctx;
	ghost->object.destroy = ghost_free;
	atomic_store(&ghost->object.refs, 1);
	*ret_context = ghost;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext ctx)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_initialized();
	if (result == CUDA_SUCCESS)
		result = ctx ? find_past(ctx, &context) : CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	result = stack_push(context);
	ckt_soft_object_put(&context->object);
	return result;
}

/* Before CUDA 4.0, a thread could not push a context that was already on its stack. */
CUresult CUDAAPI cuCtxPushCurrent(CUcontext ctx)
{
	for (size_t i = 0; ctx && i < stack.n; i++)
		if (ckt_soft_context_handle(stack.entries[i]) == ctx)
			return CUDA_ERROR_INVALID_CONTEXT;
	return cuCtxPushCurrent_v2(ctx);
}

CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext *pctx)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	if (!stack_top())
		return CUDA_ERROR_INVALID_CONTEXT;
	if (pctx)
		*pctx = ckt_soft_context_handle(stack_top());
	stack_pop();
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext ctx)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	if (!ctx) {
		if (stack_top())
			stack_pop();
		return CUDA_SUCCESS;
	}
	struct ckt_soft_context *context;
	result = find_past(ctx, &context);
	if (result != CUDA_SUCCESS)
		return result;
	if (stack_top() != context) {
		if (stack_top())
			stack_pop();
		result = stack_push(context);
	}
	ckt_soft_object_put(&context->object);
	return result;
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext *pctx)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	*pctx = stack_top() ? ckt_soft_context_handle(stack_top()) : NULL;
	return CUDA_SUCCESS;
}
