/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces of a running session for cricketctl: what the executor runs while somebody reads.
 *
 *	executor --begin, issued--> call --end (any thread)--> ring --read (control thread)--> cricketctl
 *	                              \--event pair of the stream--> GPU time, once the GPU is done
 *
 * What nobody has read when the worker ends is counted in a page that the server keeps.
 *
 * One trace at a time.  Memory is bounded: a ring of CKT_CALL_TRACE_RING records and
 * CKT_CALL_TRACE_PAIRS pairs of events; what does not fit is dropped and counted.  A trace of
 * cricketctl that nobody reads for CKT_CALL_TRACE_IDLE_NS ends by itself; one of the client's own
 * (CRICKET_TRACE_GPU=1) ends with its session, holds only what the GPU did, and is read over the
 * client's connection.  Without a trace a command costs one test.  The executor takes one lock, a
 * leaf, for moments only.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/worker.h"

struct ckt_worker;
struct ckt_wcall;
struct ckt_traced;       /* a command that has begun */
struct ckt_traced_event; /* two events of its stream */

enum { CKT_CALL_TRACE_RING = 16384, CKT_CALL_TRACE_PAIRS = 512 };
#define CKT_CALL_TRACE_IDLE_NS 10000000000

extern _Atomic bool ckt_call_trace_on;

/* From the executor, with the call's context current.  NULL: no GPU time. */
struct ckt_traced_event *ckt_call_trace_begin(struct ckt_wcall *call);
/* From the executor, after the handler has returned; the call may be gone. */
void ckt_call_trace_issued(struct ckt_traced_event *event);
/* The call is answered; takes call->traced. */
void ckt_call_trace_end(struct ckt_wcall *call);
/*
 * The session ends: waits until its trace is read, or CKT_CALL_TRACE_IDLE_NS after the last time that somebody
 * read.  worker: from the executor, which gives turns back meanwhile; NULL: from another thread.
 */
void ckt_call_trace_linger(struct ckt_worker *worker);
/* The call is given up; takes call->traced. */
void ckt_call_trace_drop(struct ckt_wcall *call);

/*
 * Answers CKT_SESSION_GPU_TRACE, from the executor, whose context stays current.
 * Precondition: ckt_call_trace_try_lock was true; the answer is the trace's, valid until the unlock.
 */
bool ckt_call_trace_try_lock(void);
void ckt_call_trace_serve_client(
	struct ckt_worker *worker, const ckt_gpu_trace_args *args, ckt_gpu_trace_res *ret_res);

/*
 * Answers TRACE.  After STOP, READ gives what is left while the answer says `more`.
 * Precondition: ckt_call_trace_lock held; the answer is the trace's, valid until the unlock.
 */
void ckt_call_trace_lock(void);
void ckt_call_trace_serve(struct ckt_worker *worker, const ckt_worker_trace_args *args,
	ckt_worker_trace_res *ret_res, char message[CKT_MESSAGE_MAX]);
/* The answer that was made last has been sent, or has not: what it holds is then dropped. */
void ckt_call_trace_sent(bool sent);
/* Of the trace that has begun: where the server reads what would be lost (rpc/trace_page.h).  The descriptor stays the caller's. */
int ckt_call_trace_use_page(int fd);
void ckt_call_trace_unlock(void);
