/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts, and which one a thread has current. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softgpu/context/object.h"
#include "softgpu/cuda_api.h"

struct ckt_soft_arena;
struct ckt_soft_device;
struct ckt_soft_module;
struct ckt_soft_output;
struct ckt_soft_stream;

struct ckt_soft_context {
	struct ckt_soft_object object;
	struct ckt_soft_device *device;
	uint64_t id;
	bool primary;
	bool first; /* made by the first cuCtxCreate */
	atomic_bool alive;
	/* of a primary context: counts resets, so that what came before is known as stale */
	atomic_uint epoch;
	atomic_int sticky; /* first device fault, CUDA_SUCCESS before */
	_Atomic uint32_t flags;
	/* order of submission over all streams; the stream list */
	pthread_mutex_t submit_lock;
	/* the default stream; lives as long as the context */
	struct ckt_soft_stream *legacy;
	struct ckt_soft_stream *streams; /* every other stream */
	pthread_mutex_t lock;            /* everything below */
	struct ckt_soft_module *modules;
	size_t limits[CU_LIMIT_MAX];
	CUfunc_cache cache_config;
	CUsharedconfig shared_config;
	uint64_t peers;              /* bit per device ordinal */
	struct ckt_soft_arena *heap; /* heap.c; NULL until a kernel calls malloc */
	pthread_mutex_t output_lock;
	struct ckt_soft_output *output, *output_last;
	size_t output_bytes;
};

/*
 * The calling thread's current context, good and without a device fault; no reference is taken: the
 * thread's stack holds one.
 */
CUresult ckt_soft_enter(struct ckt_soft_context **ret_context);
/* The same, but a fault does not matter. */
CUresult ckt_soft_enter_faulted(struct ckt_soft_context **ret_context);
/* The calling thread's current context, also where it is destroyed; NULL where there is none. */
struct ckt_soft_context *ckt_soft_context_last(void);
/* NULL: the current one.  Otherwise a reference is taken too: put it after use. */
CUresult ckt_soft_context_get(CUcontext handle, struct ckt_soft_context **ret_context);
static inline CUresult ckt_soft_context_result(struct ckt_soft_context *context)
{
	return (CUresult)atomic_load_explicit(&context->sticky, memory_order_acquire);
}
void ckt_soft_context_fault(struct ckt_soft_context *context, CUresult result);
static inline CUcontext ckt_soft_context_handle(struct ckt_soft_context *context)
{
	return ckt_soft_object_handle(&context->object);
}
/* Waits for everything submitted so far, then prints what kernels printed. */
CUresult ckt_soft_context_synchronize(struct ckt_soft_context *context);
/* Makes a context whose handle is valid; the caller owns the table's reference. */
CUresult ckt_soft_context_create(struct ckt_soft_device *device, unsigned flags, bool primary,
	struct ckt_soft_context **ret_context);
/*
 * Ends its work and frees what it owns.  A primary context keeps its handle and can be revived by
 * the next retain.
 */
void ckt_soft_context_close(struct ckt_soft_context *context);
CUresult ckt_soft_context_revive(struct ckt_soft_context *context);
