/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands and their replies: results, finishing at once or later, stored replies.  See call.h and
 * replies.h.
 */
#include "server/worker/session/call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/probes.h"
#include "server/worker/libs/libs.h"
#include "server/worker/libs/nccl/nccl_members.h"
#include "server/worker/session/call_trace.h"
#include "server/worker/session/metrics.h"
#include "server/worker/session/stamps.h"
#include "server/worker/session/start.h"
#include "server/worker/worker.h"

/* A build without NCCL's headers lacks it. */
void ckt_worker_nccl_await_return(struct ckt_worker *worker) __attribute__((weak));

enum { INLINE_BODY = 512 };

struct ckt_wcall_private {
	uint64_t epoch; /* of the connection it came by */
	uint8_t *body;  /* the CUresult and the results, or NULL where there are none yet */
	size_t size;
	/*
	 * INLINE_BODY bytes that a kept reply can have for good; made before the call is executed
	 */
	uint8_t *kept_body;
	bool no_memory; /* its results went to the sink */
	uint8_t inline_body[INLINE_BODY];
};

struct call_with_private {
	struct ckt_wcall call;
	struct ckt_wcall_private private;
};

/*
 * The last one that this thread was done with: a call that is finished at once costs no allocation.
 */
static __thread struct call_with_private *spare;
static _Atomic unsigned open_calls;

/* Where results go if there is no memory for them: written by any thread, never read. */
static uint8_t sink[CKT_RECORD_MAX];

struct ckt_wcall *ckt_wcall_new(struct ckt_worker *worker)
{
	struct call_with_private *both = spare ? spare : malloc(sizeof *both);
	if (!both)
		return NULL;
	spare = NULL;
	open_calls++;
	both->call.worker = worker;
	both->call.proc = NULL;
	both->call.status = 0;
	both->call.step = NULL;
	both->call.traced = NULL;
	both->call.begun_ns = 0;
	both->call.private = &both->private;
	both->private.body = NULL;
	both->private.size = 0;
	both->private.kept_body = NULL;
	both->private.no_memory = false;
	both->private.epoch = worker->client_epoch;
	return &both->call;
}

static void body_drop(struct ckt_wcall_private *private)
{
	if (private->body != private->inline_body && private->body != private->kept_body &&
		private->body != sink)
		free(private->body);
	private->body = NULL;
	private->size = 0;
}

void ckt_wcall_free(struct ckt_wcall *call)
{
	if (!call)
		return;
	if (__builtin_expect(call->traced != NULL, 0))
		ckt_call_trace_drop(call);
	body_drop(call->private);
	free(call->private->kept_body);
	open_calls--;
	if (spare)
		free(call);
	else
		spare = (struct call_with_private *)call;
}

unsigned ckt_wcalls_open(void)
{
	return open_calls;
}

static bool is_kept(const struct ckt_wcall *call)
{
	return call->header.seq && !(call->header.flags & CKT_CALL_BATCHED);
}

int ckt_wcall_prepare(struct ckt_wcall *call)
{
	if (is_kept(call))
		call->private->kept_body = malloc(INLINE_BODY);
	return is_kept(call) && !call->private->kept_body ? -ENOMEM : 0;
}

/* Memory that small results can use without an allocation. */
static uint8_t *small_body(const struct ckt_wcall *call)
{
	return is_kept(call) ? call->private->kept_body : call->private->inline_body;
}

uint8_t *ckt_wcall_results(struct ckt_wcall *call, size_t size_bytes)
{
	struct ckt_wcall_private *private = call->private;
	body_drop(private);
	private->size = 4 + size_bytes;
	private->body = private->size > INLINE_BODY ? malloc(private->size) : small_body(call);
	private->no_memory = !private->body || private->size > sizeof sink;
	if (!private->body)
	private->body = sink;
	return private->body + 4;
}

static void count_bytes(struct ckt_worker *worker, uint32_t proc, size_t size)
{
	if (proc < CKT_STATS)
		__atomic_fetch_add(&worker->stats[proc].bytes_out, size, __ATOMIC_RELAXED);
	ckt_worker_metrics_sent(proc, size);
}

/* false: that connection is gone. */
static bool send_reply(struct ckt_worker *worker, uint64_t epoch, uint32_t proc,
	const struct ckt_reply_header *header, const uint8_t *body, size_t size)
{
	ckt_stamps_tell(worker, epoch, header->xid);
	if (!ckt_hold_keep(worker, epoch, header, body, size)) {
		uint8_t *p = ckt_output_begin(&worker->output, epoch, CKT_REPLY_HEADER_SIZE + size);
		if (!p)
			return false;
		p = ckt_reply_header_put(p, header);
		if (size)
			memcpy(p, body, size);
		ckt_output_end(&worker->output);
	}
	count_bytes(worker, proc, CKT_MARK_SIZE + CKT_REPLY_HEADER_SIZE + size);
	return true;
}

static void answer(struct ckt_wcall *call, uint32_t accept_stat)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_wcall_private *private = call->private;
	struct ckt_reply_header header = {.xid = call->header.xid,
		.executed = atomic_load(&worker->replies.executed),
		.accept_stat = accept_stat};
	uint32_t proc = ckt_stat_index(call->header.prog, call->header.proc);
	if (!is_kept(call)) {
		header.deferred = atomic_exchange(&worker->deferred, 0);
		if (!send_reply(
			    worker, private->epoch, proc, &header, private->body, private->size) &&
			header.deferred)
			ckt_worker_defer(worker, header.deferred);
		return;
	}
	pthread_mutex_lock(&worker->replies.lock);
	/*
	 * Only a call that was prepared has an entry.  One that is rejected before may have the
	 * number of another, whose reply is none of its business.
	 */
	struct ckt_stored *stored =
		private->kept_body ? ckt_replies_find(&worker->replies, call->header.seq) : NULL;
	if (stored) {
		if (private->body == private->kept_body) {
			uint8_t *fitting = realloc(private->body, private->size);
			private->body = fitting ? fitting : private->body;
			private->kept_body = NULL;
		}
		header.xid = stored->xid;
		header.deferred = atomic_exchange(&worker->deferred, 0);
		ckt_replies_store(&worker->replies, stored, private->body, private->size,
			header.deferred, accept_stat);
		send_reply(worker, stored->epoch, proc, &header, private->body, private->size);
		private->body = NULL;
	} else if (accept_stat) {
		/* The call has not begun, so nothing of it is kept. */
		send_reply(worker, private->epoch, proc, &header, NULL, 0);
	}
	pthread_mutex_unlock(&worker->replies.lock);
}

/* A failed kernel ends the worker; what MPS cannot do, its user reads once. */
static void look_in_space(struct ckt_worker *worker, CUresult result)
{
	static bool told;
	if (ckt_worker_metrics_is_fault((int)result))
		ckt_worker_end_faulted(worker, (int)result);
	if (result == CUDA_ERROR_CDP_NOT_SUPPORTED &&
		!__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
		ckt_log_user(
			"MPS has no dynamic parallelism: have this program share its GPU in time, with the limit share-mode=time");
}

void ckt_wcall_finish(struct ckt_wcall *call, CUresult result)
{
	struct ckt_wcall_private *private = call->private;
	if (__builtin_expect(call->traced != NULL, 0))
		ckt_call_trace_end(call);
	/* The driver's output about a failure comes before it: the program may end at once. */
	if (__builtin_expect(result && result != CUDA_ERROR_NOT_READY, 0)) {
		ckt_printed_send(call->worker);
		if (call->worker->space)
			look_in_space(call->worker, result);
	}
	if (call->header.flags & CKT_CALL_BATCHED) {
		if (result)
			ckt_worker_defer(call->worker, result);
		ckt_worker_metrics_end(call, (int)result);
		CKT_PROBE2(call_end, call->proc ? call->proc->name : "", (int)result);
		ckt_wcall_free(call);
		return;
	}
	if (__builtin_expect(ckt_stamps_kept(), 0) && ckt_worker_nccl_await_return)
		ckt_worker_nccl_await_return(call->worker);
	if (!result && private->no_memory)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result || !private->body) {
		body_drop(private);
		private->body = small_body(call);
		private->size = 4;
	}
	ckt_put_u32(private->body, (uint32_t)result);
	ckt_stamps_answered(call->header.xid, result);
	answer(call, 0);
	ckt_worker_metrics_end(call, (int)result);
	CKT_PROBE2(call_end, call->proc ? call->proc->name : "", (int)result);
	ckt_wcall_free(call);
}

void ckt_wcall_reject(struct ckt_wcall *call, uint32_t accept_stat)
{
	body_drop(call->private);
	if (!(call->header.flags & CKT_CALL_BATCHED))
		answer(call, accept_stat);
	ckt_wcall_free(call);
}

void ckt_wcall_replay(
	struct ckt_worker *worker, const struct ckt_call_header *header, uint64_t epoch)
{
	pthread_mutex_lock(&worker->replies.lock);
	struct ckt_stored *stored = ckt_replies_find(&worker->replies, header->seq);
	if (stored && stored->done) {
		struct ckt_reply_header reply = {.xid = header->xid,
			.executed = atomic_load(&worker->replies.executed),
			.deferred = stored->deferred,
			.accept_stat = stored->accept_stat};
		send_reply(worker, epoch, stored->proc, &reply, stored->body, stored->size);
	} else if (stored) {
		stored->xid = header->xid;
		stored->epoch = epoch;
	}
	pthread_mutex_unlock(&worker->replies.lock);
}

CUresult ckt_worker_unsupported(const char *what, bool *once)
{
	if (!__atomic_exchange_n(once, true, __ATOMIC_RELAXED)) {
		ckt_log_user("%s is not supported by the server", what);
		ckt_warning("%s is not supported", what);
	}
	return CUDA_ERROR_NOT_SUPPORTED;
}

void ckt_worker_defer(struct ckt_worker *worker, CUresult result)
{
	int none = 0;
	atomic_compare_exchange_strong(&worker->deferred, &none, (int)result);
}
