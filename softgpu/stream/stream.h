/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: ordered work, on one thread for each stream. */
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
 * Work on a stream.  It runs on the stream's thread.  With CKT_SOFT_INLINE, the caller's thread
 * runs it if the stream is idle.
 */
typedef void (*ckt_soft_work)(struct ckt_soft_context *context, void *payload);

enum {
	CKT_SOFT_INLINE = 1, /* short work: may run in the call */
	CKT_SOFT_ALWAYS = 2, /* also after a device fault */
	CKT_SOFT_BLOCK = 4,  /* return after the work has run */
};

struct ckt_soft_stream {
	struct ckt_soft_object object;
	struct ckt_soft_context *context; /* referenced */
	unsigned flags;
	int priority;
	uint64_t id;
	struct ckt_soft_stream *next, **link; /* in context->streams, under submit_lock */
	pthread_t owner;                      /* the thread of a per-thread default stream */
	bool per_thread;
	pthread_mutex_t lock; /* protects the fields below */
	pthread_cond_t work, done;
	struct ckt_soft_command *head, **tail;
	uint64_t submitted, completed; /* tickets */
	bool has_thread, closing;
	CUstreamAttrValue attributes[32];
	unsigned attributes_set; /* one bit for each attribute */
};

/*
 * The stream of a handle, with a reference.  Special handles name streams of the context; other
 * handles may name streams of another context.  CUDA_ERROR_INVALID_HANDLE if there is none.
 */
CUresult ckt_soft_stream_get(
	struct ckt_soft_context *context, CUstream handle, struct ckt_soft_stream **ret_stream);
/* The stream with cudacommon/'s number in the current context, with a reference. */
CUresult ckt_soft_stream_by_number(uint64_t number, struct ckt_soft_stream **ret_stream);
/* Empty work that only marks a position in the stream. */
void ckt_soft_nothing(struct ckt_soft_context *context, void *payload);
/* Copies payload.  wait_for/wait_ticket: a further condition, or NULL. */
CUresult ckt_soft_stream_submit(struct ckt_soft_stream *stream, ckt_soft_work run,
	const void *payload, size_t payload_bytes, unsigned flags, struct ckt_soft_stream *wait_for,
	uint64_t wait_ticket, uint64_t *ret_ticket);
void ckt_soft_stream_wait(struct ckt_soft_stream *stream, uint64_t ticket);
bool ckt_soft_stream_reached(struct ckt_soft_stream *stream, uint64_t ticket);
CUresult ckt_soft_stream_create(struct ckt_soft_context *context, unsigned flags, int priority,
	struct ckt_soft_stream **ret_stream);
/* The stream's number in cudacommon/: 0 for the legacy default stream, otherwise its handle. */
static inline uint64_t ckt_soft_stream_number(const struct ckt_soft_stream *stream)
{
	return stream == stream->context->legacy ? 0 : stream->object.handle;
}
/* Accepts no more work; the thread ends after the queue is empty. */
void ckt_soft_stream_close(struct ckt_soft_stream *stream);
/* Removes the stream from its context's list; may be called more than once. */
void ckt_soft_stream_unlink(struct ckt_soft_stream *stream);
/*
 * The _ptds and _ptsz entry points increment it: while > 0, stream 0 means the thread's default
 * stream.
 */
extern __thread int ckt_soft_per_thread_default;
/*
 * The calling thread launches a graph: all nodes go to one stream, including nodes of other
 * contexts.
 */
extern __thread bool ckt_soft_in_graph;
/* The calling thread runs a host function of the program: it must not call the driver. */
extern __thread bool ckt_soft_in_host_function;
