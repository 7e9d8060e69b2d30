/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which streams of a context may have unfinished work, and events to find out when it is done.
 *
 * Threading: everything but the spare events is the executor's; events are given back from any
 * thread.
 */
#pragma once

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct ckt_object;

struct ckt_fences {
	CUcontext real;
	pthread_mutex_t lock; /* of the spare events */
	CUevent *spare;
	size_t spare_count, spare_room;
	struct ckt_object **dirty; /* stream objects; room for each stream of the context */
	size_t dirty_count, dirty_room, stream_count;
	bool legacy, per_thread; /* the special streams may have work */
	CUevent *orphans;        /* behind the last work of destroyed streams */
	CUstream helper;         /* non-blocking, of our own */
	size_t orphan_count, orphan_room;
};

/* Precondition: real is current.  NULL where there is no memory. */
struct ckt_fences *ckt_fences_create(CUcontext real, unsigned spare_count);
/* destroy_events: false where the context is gone already. */
void ckt_fences_destroy(struct ckt_fences *fences, bool destroy_events);

/* Precondition of all below: the context is current. */
CUresult ckt_fences_event_take(struct ckt_fences *fences, CUevent *ret_event);
void ckt_fences_event_give(struct ckt_fences *fences, CUevent event);

/* A stream comes into being: from now on it can be marked without fail.  0 or -ENOMEM. */
int ckt_fences_expect(struct ckt_fences *fences);
/* Precondition: expected, or one of its context's special ones. */
void ckt_fences_mark(struct ckt_fences *fences, struct ckt_object *stream);
/*
 * The stream goes: what it still does stays known, or is waited for where there is no memory to
 * know it.
 */
void ckt_fences_forget(struct ckt_fences *fences, struct ckt_object *stream);
/*
 * Whether any stream has unfinished work; *ret_stream: the id of one that has, 0 for the default
 * streams.
 */
bool ckt_fences_busy(struct ckt_fences *fences, uint64_t *ret_stream);
/*
 * Appends an event behind the work of every stream that is not done (malloc'd array, grown).
 * Streams found done are no longer dirty.  Where there is no memory for an event it is waited for.
 * Returns the first device error met; CUDA_SUCCESS otherwise.
 *
 * ret_only (NULL: not asked): where one stream alone is not done, that stream instead of an event; else
 * untouched.
 */
CUresult ckt_fences_collect(
	struct ckt_fences *fences, CUevent **events, unsigned *count, CUstream *ret_only);
