/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream capture.  Every function that submits work to a stream calls these functions first;
 * without a capture this costs one load.  Errors are CUDA's for calls that a capture forbids.  Such
 * a call invalidates the capture, as CUDA documents.
 */
#pragma once

#include "cudacommon/graph.h"

struct ckt_capture_stream;

extern _Atomic unsigned ckt_capture_count;  /* running captures */
extern _Atomic unsigned ckt_capture_events; /* events last recorded in a capture */

CUresult ckt_capture_enter_slow(uint64_t stream, struct ckt_capture_stream **ret);
CUresult ckt_capture_forbid_slow(uint64_t stream);
CUresult ckt_capture_unsafe_slow(void);
CUresult ckt_capture_context_check_slow(uint64_t context);
CUresult ckt_capture_event_check_slow(uint64_t event);
void ckt_capture_event_forget_slow(uint64_t event);
CUresult ckt_capture_record_slow(uint64_t event, uint64_t stream, unsigned flags, bool *ret_done);
CUresult ckt_capture_wait_slow(uint64_t stream, uint64_t event, unsigned flags, bool *ret_done);

/*
 * ret is NULL if the stream does not capture; else the caller holds the graphs' lock: append a
 * node, then call ckt_graph_leave.
 */
static inline CUresult ckt_capture_enter(uint64_t stream, struct ckt_capture_stream **ret)
{
	*ret = NULL;
	return __builtin_expect(
		       atomic_load_explicit(&ckt_capture_count, memory_order_relaxed) == 0, 1)
		? CUDA_SUCCESS
		: ckt_capture_enter_slow(stream, ret);
}

/* A stream that captures can be neither waited for nor queried. */
static inline CUresult ckt_capture_forbid(uint64_t stream)
{
	return __builtin_expect(ckt_capture_count == 0, 1) ? CUDA_SUCCESS
							   : ckt_capture_forbid_slow(stream);
}

/*
 * Checks a call that CUDA defines as potentially unsafe for captures, including captures of other
 * threads.
 */
static inline CUresult ckt_capture_unsafe(void)
{
	return __builtin_expect(ckt_capture_count == 0, 1) ? CUDA_SUCCESS
							   : ckt_capture_unsafe_slow();
}

/* A context in which a stream captures cannot be synchronized. */
static inline CUresult ckt_capture_context_check(uint64_t context)
{
	return __builtin_expect(ckt_capture_count == 0, 1)
		? CUDA_SUCCESS
		: ckt_capture_context_check_slow(context);
}

/* Checks a query of an event, or a wait for it on the host. */
static inline CUresult ckt_capture_event_check(uint64_t event)
{
	return __builtin_expect((ckt_capture_count | ckt_capture_events) == 0, 1)
		? CUDA_SUCCESS
		: ckt_capture_event_check_slow(event);
}

static inline void ckt_capture_event_forget(uint64_t event)
{
	if (ckt_capture_events)
		ckt_capture_event_forget_slow(event);
}

/* ret_done: the capture took the call, and the caller must not send it. */
static inline CUresult ckt_capture_record(
	uint64_t event, uint64_t stream, unsigned flags, bool *ret_done)
{
	*ret_done = false;
	return __builtin_expect((ckt_capture_count | ckt_capture_events) == 0, 1)
		? CUDA_SUCCESS
		: ckt_capture_record_slow(event, stream, flags, ret_done);
}

static inline CUresult ckt_capture_wait(
	uint64_t stream, uint64_t event, unsigned flags, bool *ret_done)
{
	*ret_done = false;
	return __builtin_expect((ckt_capture_count | ckt_capture_events) == 0, 1)
		? CUDA_SUCCESS
		: ckt_capture_wait_slow(stream, event, flags, ret_done);
}

/*
 * Precondition: entered.  Appends a node of the type after what the stream has captured; the caller
 * sets its parameters.
 */
CUresult ckt_capture_append(
	struct ckt_capture_stream *stream, CUgraphNodeType type, struct ckt_node **ret_node);
/* Precondition: entered.  Captures a launch; the spec's attributes are the launch's. */
CUresult ckt_capture_kernel(
	struct ckt_capture_stream *stream, const struct ckt_kernel_spec *spec, bool cooperative);
/* Precondition: entered.  On a stream that captures, allocations and frees become nodes. */
CUresult ckt_capture_alloc(
	struct ckt_capture_stream *stream, CUdevice device, size_t size, uint64_t *ret_address);
CUresult ckt_capture_free(struct ckt_capture_stream *stream, uint64_t address);
/* Call it before the stream is destroyed. */
void ckt_capture_stream_gone(uint64_t stream);
