/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: work in order, each on a thread of its own. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softgpu/context/context.h"
#include "softgpu/context/object.h"
#include "softgpu/cuda_api.h"

struct ckt_soft_command;

/*
 * Work to do on a stream; runs on the stream's thread, or on the caller's when the stream is idle
 * and CKT_SOFT_INLINE is given.
 */
typedef void (*ckt_soft_work)(struct ckt_soft_context *context, void *payload);

enum {
	CKT_SOFT_INLINE = 1, /* short work: may run in the call */
	CKT_SOFT_ALWAYS = 2, /* also after a device fault */
	CKT_SOFT_BLOCK = 4,  /* return when it has run */
};

struct ckt_soft_stream {
	struct ckt_soft_object object;
	struct ckt_soft_context *context; /* referenced */
	unsigned flags;
	int priority;
	uint64_t id;
	struct ckt_soft_stream *next, **link; /* in context->streams, under submit_lock */
	pthread_t owner;                      /* per-thread default streams: whose */
	bool per_thread;
	pthread_mutex_t lock; /* everything below */
	pthread_cond_t work, done;
	struct ckt_soft_command *head, **tail;
	uint64_t submitted, completed; /* tickets */
	bool has_thread, closing;
	CUstreamAttrValue attributes[32];
	unsigned attributes_set; /* a bit each */
};

/*
 * Stream of a handle with a reference; the special ones are those of the context, any other may be
 * another context's. CUDA_ERROR_INVALID_HANDLE.
 */
CUresult ckt_soft_stream_get(
	struct ckt_soft_context *context, CUstream handle, struct ckt_soft_stream **ret_stream);
/* As cudacommon/ numbers it, in the current context; with a reference too. */
CUresult ckt_soft_stream_by_number(uint64_t number, struct ckt_soft_stream **ret_stream);
/* Work that does nothing: its place in the stream is what counts. */
void ckt_soft_nothing(struct ckt_soft_context *context, void *payload);
/* Copies payload.  wait_for/wait_ticket: a further condition, or NULL. */
CUresult ckt_soft_stream_submit(struct ckt_soft_stream *stream, ckt_soft_work run,
	const void *payload, size_t payload_bytes, unsigned flags, struct ckt_soft_stream *wait_for,
	uint64_t wait_ticket, uint64_t *ret_ticket);
void ckt_soft_stream_wait(struct ckt_soft_stream *stream, uint64_t ticket);
bool ckt_soft_stream_reached(struct ckt_soft_stream *stream, uint64_t ticket);
CUresult ckt_soft_stream_create(struct ckt_soft_context *context, unsigned flags, int priority,
	struct ckt_soft_stream **ret_stream);
/* 0 for the legacy default stream, else its handle: as cudacommon/ knows it. */
static inline uint64_t ckt_soft_stream_number(const struct ckt_soft_stream *stream)
{
	return stream == stream->context->legacy ? 0 : stream->object.handle;
}
/* No more work; its thread ends once the queue is empty. */
void ckt_soft_stream_close(struct ckt_soft_stream *stream);
/* Out of its context's list; may be called more than once. */
void ckt_soft_stream_unlink(struct ckt_soft_stream *stream);
/* The _ptds and _ptsz entry points: while > 0, stream 0 means the thread's own default stream. */
extern __thread int ckt_soft_per_thread_default;
/*
 * The calling thread launches a graph: all of it goes to one stream, also what belongs to another
 * context than that.
 */
extern __thread bool ckt_soft_in_graph;
/*
 * The calling thread runs a function of the program that a stream came to: it may not ask the
 * driver for anything.
 */
extern __thread bool ckt_soft_in_host_function;
