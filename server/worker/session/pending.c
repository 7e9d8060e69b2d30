/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that wait for the GPU; see pending.h. */
#include "server/worker/session/pending.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/crowd.h"
#include "server/worker/driver.h"
#include "server/worker/objects/fence.h"
#include "server/worker/session/executor.h"
#include "server/worker/session/hostfunc.h"
#include "server/worker/session/lane.h"
#include "server/worker/worker.h"

struct ckt_pending *ckt_pending_new(
	struct ckt_wcall *call, enum ckt_pending_kind kind, uint64_t chain)
{
	struct ckt_pending *pending = calloc(1, sizeof *pending);
	if (!pending)
		return NULL;
	pending->call = call;
	pending->kind = kind;
	pending->chain = chain;
	pending->events = &pending->one;
	return pending;
}

static void pending_free(struct ckt_pending *pending)
{
	if (pending->own_events)
		for (unsigned i = 0; i < pending->count; i++)
			ckt_fences_event_give(pending->fences, pending->events[i]);
	if (pending->events != &pending->one)
		free(pending->events);
	free(pending);
}

/*
 * A stream is asked for by ckt_pending_poll alone: other threads have other current contexts.  Such an
 * item is the latest command's, and who answers an earlier call need not deliver it first.
 */
static CUresult query(const struct ckt_pending *pending)
{
	if (pending->behind)
		return CUDA_ERROR_NOT_READY;
	if (pending->failed)
		return pending->failed;
	for (unsigned i = 0; i < pending->count; i++) {
		CUresult result = ckt_driver.cuEventQuery(pending->events[i]);
		if (result)
			return result;
	}
	return CUDA_SUCCESS;
}

/*
 * cuEventQuery does not make the driver write out what kernels printed; a wait for what is finished
 * does, and takes 1.5 us.
 */
static CUresult settle(
	const struct ckt_worker *worker, const struct ckt_pending *pending, CUresult result)
{
	if (result || !ckt_printed_possible(&worker->printed))
		return result;
	if (pending->behind)
		return ckt_driver.cuStreamSynchronize(pending->behind);
	for (unsigned i = 0; i < pending->count && !result; i++)
		result = ckt_driver.cuEventSynchronize(pending->events[i]);
	return result;
}

/* The driver itself tells of a failure. */
static void send_printed(struct ckt_worker *worker, CUresult result)
{
	if (result || ckt_printed_possible(&worker->printed))
		ckt_printed_send(worker);
}

/* Precondition of the static functions below: pending.lock held. */

static void unlink_item(struct ckt_pendings *list, struct ckt_pending *pending)
{
	*(pending->previous ? &pending->previous->next : &list->first) = pending->next;
	*(pending->next ? &pending->next->previous : &list->last) = pending->previous;
	list->count--;
	if (pending->kind == CKT_PENDING_DATA)
		list->data_count--;
	if (!pending->cold)
		list->hot_count--;
	if (pending->behind)
		list->behind_count--;
	pending->done = true;
}

static void deliver_data(struct ckt_worker *worker, struct ckt_pending *pending, CUresult result)
{
	if (!result && pending->lane_piece &&
		ckt_worker_lanes_send(worker, pending->call,
			&(struct ckt_worker_lane_piece){.staged = pending->piece,
				.size = pending->size,
				.number = pending->lane_piece,
				.background = pending->background}))
		return;
	if (!result)
		ckt_put_opaque(ckt_wcall_results(pending->call, 4 + ckt_padded(pending->size)),
			pending->piece->data, (uint32_t)pending->size);
	ckt_staging_give(&worker->staging, pending->piece);
	ckt_wcall_finish(pending->call, result);
}

/* An answered item goes at once, unless a waiter is still inside the driver with its events. */
static void release(struct ckt_pendings *list, struct ckt_pending *pending)
{
	if (pending->taken)
		list->zombies++;
	else
		pending_free(pending);
}

/* Takes the item off the list and answers it; the caller releases it. */
static void complete(struct ckt_worker *worker, struct ckt_pending *pending, CUresult result)
{
	struct ckt_pendings *list = &worker->pending;
	unlink_item(list, pending);
	if (pending->kind == CKT_PENDING_STAGE) {
		ckt_staging_give(&worker->staging, pending->piece);
		return;
	}
	/*
	 * A copy that blocks makes visible what kernels printed, as a wait does; and the text goes
	 * before every reply below.
	 */
	send_printed(worker, result);
	if (pending->kind == CKT_PENDING_DATA) {
		deliver_data(worker, pending, result);
	} else {
		for (struct ckt_pending *p = list->first, *next; p && list->data_count; p = next) {
			next = p->next;
			if (p->kind == CKT_PENDING_DATA && query(p) == CUDA_SUCCESS) {
				unlink_item(list, p);
				deliver_data(worker, p, CUDA_SUCCESS);
				release(list, p);
			}
		}
		if (pending->kind == CKT_PENDING_FREE)
			ckt_memory_free_end(
				&worker->devices[pending->device].memory, pending->address);
		ckt_wcall_finish(pending->call, result);
	}
	pending->call = NULL;
}

void ckt_pending_deliver(struct ckt_worker *worker)
{
	struct ckt_pendings *list = &worker->pending;
	/*
	 * With the lock also where the list is empty: a waiter may have taken the last item off it
	 * and not have answered it yet.
	 */
	pthread_mutex_lock(&list->lock);
	for (struct ckt_pending *p = list->first, *next; p && list->data_count; p = next) {
		next = p->next;
		if (p->kind == CKT_PENDING_DATA && query(p) == CUDA_SUCCESS) {
			complete(worker, p, CUDA_SUCCESS);
			release(list, p);
		}
	}
	pthread_mutex_unlock(&list->lock);
	send_printed(worker, CUDA_SUCCESS);
}

bool ckt_pending_deliver_known(struct ckt_worker *worker, uint64_t chain, uint64_t upto)
{
	struct ckt_pendings *list = &worker->pending;
	bool all = true;
	pthread_mutex_lock(&list->lock);
	for (struct ckt_pending *p = list->first, *next; p && list->data_count; p = next) {
		next = p->next;
		if (p->kind != CKT_PENDING_DATA || p->order > upto)
			continue;
		if (p->chain == chain) {
			complete(worker, p, CUDA_SUCCESS);
			release(list, p);
		} else {
			all = false;
		}
	}
	pthread_mutex_unlock(&list->lock);
	send_printed(worker, CUDA_SUCCESS);
	return all;
}

static void *waiter(void *opaque);

static int waiter_start(struct ckt_worker *worker)
{
	pthread_t thread;
	int error = pthread_create(&thread, NULL, waiter, worker);
	if (error)
		return -error;
	pthread_detach(thread);
	worker->pending.waiters++;
	worker->pending.idle++;
	return 0;
}

int ckt_pendings_init(struct ckt_worker *worker)
{
	struct ckt_pendings *list = &worker->pending;
	pthread_mutex_init(&list->lock, NULL);
	pthread_cond_init(&list->work, NULL);
	int result = 0;
	pthread_mutex_lock(&list->lock);
	for (int i = 0; i < CKT_WAITERS_AT_START && !result; i++)
		result = waiter_start(worker);
	pthread_mutex_unlock(&list->lock);
	return result;
}

/*
 * Nobody waits for an item without a call: it gives staging memory back.  Precondition: pending.lock
 * held.
 */
static int64_t hot_ns(
	const struct ckt_worker *worker, const struct ckt_pending *pending, int64_t now_ns)
{
	bool polls = worker->spin_ns > CKT_SPIN_NS &&
		worker->pending.hot_count < CKT_PENDING_HOT_MAX && pending->call &&
		!(pending->call->header.flags & CKT_CALL_SLEEPS);
	return polls ? ckt_crowd_spin_ns(&worker->crowd, now_ns, CKT_SPIN_WAIT_NS) : CKT_SPIN_NS;
}

void ckt_pending_add(struct ckt_worker *worker, struct ckt_pending *pending)
{
	struct ckt_pendings *list = &worker->pending;
	pthread_mutex_lock(&list->lock);
	int64_t now_ns = ckt_now_ns();
	pending->hot_until_ns = now_ns + hot_ns(worker, pending, now_ns);
	/*
	 * A chain's items cool in their order: when one is completed while it is hot, no waiter is told
	 * of the next one.
	 */
	for (const struct ckt_pending *p = list->last; p; p = p->previous)
		if (p->chain == pending->chain && p->hot_until_ns > pending->hot_until_ns)
			pending->hot_until_ns = p->hot_until_ns;
	pending->previous = list->last;
	*(list->last ? &list->last->next : &list->first) = pending;
	list->last = pending;
	pending->order = ++list->added;
	list->count++;
	list->hot_count++;
	if (pending->kind == CKT_PENDING_DATA)
		list->data_count++;
	if (pending->behind)
		list->behind_count++;
	pthread_mutex_unlock(&list->lock);
}

void ckt_pending_add_behind(struct ckt_worker *worker, struct ckt_pending *pending, CUstream stream)
{
	/* NULL says that there are events: the name that the driver also knows it by. */
	pending->behind = stream ? stream : CU_STREAM_LEGACY;
	ckt_pending_add(worker, pending);
}

bool ckt_pending_add_behind_all(
	struct ckt_worker *worker, struct ckt_pending *pending, CUresult *ret_result)
{
	CUevent *events = NULL;
	CUstream only = NULL;
	pending->own_events = true;
	*ret_result = ckt_fences_collect(pending->fences, &events, &pending->count, &only);
	if (events)
		pending->events = events;
	if (!only && !pending->count) {
		pending_free(pending);
		return false;
	}
	if (only)
		ckt_pending_add_behind(worker, pending, only);
	else
		ckt_pending_add(worker, pending);
	return true;
}

static void record_event(struct ckt_pendings *list, struct ckt_pending *pending)
{
	CUstream stream = pending->behind;
	pending->behind = NULL;
	list->behind_count--;
	pending->failed = ckt_fences_event_take(pending->fences, &pending->one);
	if (pending->failed)
		return;
	pending->failed = ckt_driver.cuEventRecord(pending->one, stream);
	pending->own_events = !pending->failed;
	pending->count = !pending->failed;
	if (pending->failed) {
		/* The item's memory is given back soon. */
		ckt_driver.cuStreamSynchronize(stream);
		ckt_fences_event_give(pending->fences, pending->one);
	}
}

void ckt_pending_fence(struct ckt_worker *worker)
{
	struct ckt_pendings *list = &worker->pending;
	if (__builtin_expect(!atomic_load_explicit(&list->behind_count, memory_order_relaxed), 1))
		return;
	pthread_mutex_lock(&list->lock);
	for (struct ckt_pending *p = list->last; p && list->behind_count; p = p->previous)
		if (p->behind)
			record_event(list, p);
	pthread_mutex_unlock(&list->lock);
}

/* True where an earlier item of the chain is still in the list. */
static bool has_earlier(const struct ckt_pending *pending)
{
	for (const struct ckt_pending *p = pending->previous; p; p = p->previous)
		if (p->chain == pending->chain)
			return true;
	return false;
}

/*
 * Wakes waiters for what they may take; where there are fewer than that, more are made, up to the
 * bound.
 */
static void call_waiters(struct ckt_worker *worker)
{
	struct ckt_pendings *list = &worker->pending;
	unsigned wanted = 0;
	for (struct ckt_pending *p = list->first; p; p = p->next)
		wanted += p->cold && !p->taken && !has_earlier(p);
	for (unsigned i = 0; i < wanted && i < list->idle; i++)
		pthread_cond_signal(&list->work);
	while (wanted > list->idle && list->waiters < CKT_WAITERS_MAX && !waiter_start(worker))
		;
}

bool ckt_pending_poll(struct ckt_worker *worker)
{
	struct ckt_pendings *list = &worker->pending;
	if (!list->hot_count)
		return false;
	pthread_mutex_lock(&list->lock);
	int64_t now = ckt_now_ns();
	for (struct ckt_pending *p = list->first, *next; p; p = next) {
		next = p->next;
		if (p->cold || has_earlier(p))
			continue;
		CUresult result = p->behind ? ckt_driver.cuStreamQuery(p->behind) : query(p);
		if (result != CUDA_ERROR_NOT_READY) {
			complete(worker, p, settle(worker, p, result));
			release(list, p);
			/* Completion may have delivered and freed any other item. */
			next = list->first;
		}
	}
	bool cooled = false;
	for (struct ckt_pending *p = list->first; p; p = p->next)
		if (!p->cold && now >= p->hot_until_ns) {
			if (p->behind)
				record_event(list, p);
			p->cold = cooled = true;
			list->hot_count--;
		}
	if (cooled)
		call_waiters(worker);
	bool hot = list->hot_count > 0;
	pthread_mutex_unlock(&list->lock);
	return hot;
}

static struct ckt_pending *eligible(struct ckt_pendings *list)
{
	for (struct ckt_pending *p = list->first; p; p = p->next)
		if (p->cold && !p->taken && !has_earlier(p))
			return p;
	return NULL;
}

/* As settle, for what may not be finished. */
static CUresult wait_for(const struct ckt_pending *pending)
{
	CUresult result = pending->failed;
	for (unsigned i = 0; i < pending->count && !result; i++)
		result = ckt_driver.cuEventSynchronize(pending->events[i]);
	return result;
}

static void *waiter(void *opaque)
{
	struct ckt_worker *worker = opaque;
	struct ckt_pendings *list = &worker->pending;
	CUcontext current = NULL;
	pthread_mutex_lock(&list->lock);
	list->idle--;
	for (;;) {
		struct ckt_pending *p = eligible(list);
		if (!p) {
			list->idle++;
			pthread_cond_wait(&list->work, &list->lock);
			list->idle--;
			continue;
		}
		p->taken = true;
		CUcontext real = p->fences->real;
		pthread_mutex_unlock(&list->lock);
		if (current != real && ckt_driver.cuCtxSetCurrent(real) == CUDA_SUCCESS)
			current = real;
		CUresult result = wait_for(p);
		pthread_mutex_lock(&list->lock);
		if (p->done)
			list->zombies--;
		else
			complete(worker, p, result);
		pending_free(p);
		pthread_mutex_unlock(&list->lock);
		/*
		 * Also where all went out: the program's next command comes soon, and the executor
		 * wakes up while the answer travels.
		 */
		if (ckt_output_flush(&worker->output) || worker->spin_ns > CKT_SPIN_NS)
			ckt_executor_wake(worker);
		pthread_mutex_lock(&list->lock);
	}
	return NULL;
}

int ckt_pending_drain(struct ckt_worker *worker, struct ckt_fences *fences, int64_t deadline_ms)
{
	struct ckt_pendings *list = &worker->pending;
	for (;;) {
		ckt_pending_poll(worker);
		pthread_mutex_lock(&list->lock);
		bool left = list->zombies > 0;
		for (struct ckt_pending *p = list->first; p && !left; p = p->next)
			left = !fences || p->fences == fences;
		pthread_mutex_unlock(&list->lock);
		if (!left)
			return 0;
		int result = ckt_hostcalls_rest(worker, deadline_ms);
		if (result)
			return result;
	}
}
