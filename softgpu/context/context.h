/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts, and the current context of a thread. */
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
	bool first; /* created by the first version of cuCtxCreate */
	atomic_bool alive;
	/* of a primary context: counts resets, to recognise stale objects */
	atomic_uint epoch;
	atomic_int sticky; /* the first device fault, or CUDA_SUCCESS */
	_Atomic uint32_t flags;
	/* protects the order of submission over all streams, and the stream list */
	pthread_mutex_t submit_lock;
	/* the default stream; lives as long as the context */
	struct ckt_soft_stream *legacy;
	struct ckt_soft_stream *streams; /* every other stream */
	pthread_mutex_t lock;            /* protects the fields below */
	struct ckt_soft_module *modules;
	size_t limits[CU_LIMIT_MAX];
	CUfunc_cache cache_config;
	CUsharedconfig shared_config;
	uint64_t peers;              /* one bit for each device ordinal */
	struct ckt_soft_arena *heap; /* see heap.c; NULL until a kernel calls malloc */
	pthread_mutex_t output_lock;
	struct ckt_soft_output *output, *output_last;
	size_t output_bytes;
};

/*
 * The calling thread's current context, valid and without a device fault.  Takes no reference: the
 * thread's stack holds one.
 */
CUresult ckt_soft_enter(struct ckt_soft_context **ret_context);
/* Like ckt_soft_enter, but ignores a device fault. */
CUresult ckt_soft_enter_faulted(struct ckt_soft_context **ret_context);
/* The calling thread's current context, even if it is destroyed; NULL if there is none. */
struct ckt_soft_context *ckt_soft_context_last(void);
/* NULL: the current context.  Takes a reference; put it after use. */
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
/* Creates a context with a valid handle; the caller owns the table's reference. */
CUresult ckt_soft_context_create(struct ckt_soft_device *device, unsigned flags, bool primary,
	struct ckt_soft_context **ret_context);
/*
 * Finishes the context's work and frees what it owns.  A primary context keeps its handle, and the
 * next retain can revive it.
 */
void ckt_soft_context_close(struct ckt_soft_context *context);
CUresult ckt_soft_context_revive(struct ckt_soft_context *context);
