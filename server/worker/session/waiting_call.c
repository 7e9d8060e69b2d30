/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that wait for memory; see waiting_call.h. */
#include "server/worker/session/waiting_call.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "rpc/session.h"
#include "server/worker/memory/lease.h"
#include "server/worker/session/call.h"
#include "server/worker/session/executor.h"
#include "server/worker/session/host_budget.h"
#include "server/worker/worker.h"

enum {
	/* Grants that did not suffice, in a row: what else the call needs is then not to be had. */
	TRIES_MAX = 16,
};

struct ckt_waiting_call {
	struct ckt_waiting_call *next;
	struct ckt_wcall *call;
	struct ckt_lease_wait wait;
	unsigned tries;
	bool charged; /* in the budget of host memory */
	size_t size;
	uint8_t args[];
};

static struct ckt_waiting_call *first;
static unsigned count;
/* that runs again now, and is still run_again's */
static struct ckt_waiting_call *running;

static void wake(void)
{
	atomic_store(&ckt_worker.mail, true);
	ckt_executor_wake(&ckt_worker);
}

void ckt_waiting_calls_init(struct ckt_worker *worker)
{
	(void)worker;
	ckt_lease_changed = wake;
}

unsigned ckt_waiting_calls_count(void)
{
	return count;
}

static uint64_t bytes_of(const struct ckt_waiting_call *waiting)
{
	return sizeof *waiting + waiting->size;
}

static void append(struct ckt_waiting_call *waiting)
{
	struct ckt_waiting_call **place = &first;
	while (*place)
		place = &(*place)->next;
	waiting->next = NULL;
	*place = waiting;
	count++;
}

static void drop(struct ckt_waiting_call *waiting)
{
	struct ckt_waiting_call **place = &first;
	while (*place != waiting)
		place = &(*place)->next;
	*place = waiting->next;
	count--;
}

static bool charge(struct ckt_waiting_call *waiting)
{
	if (!waiting->charged)
		waiting->charged =
			ckt_budget_charge(bytes_of(waiting), "calls that wait for memory");
	return waiting->charged;
}

static void release(struct ckt_waiting_call *waiting)
{
	if (waiting && waiting->charged)
		ckt_budget_uncharge(bytes_of(waiting));
	free(waiting);
}

static void answer(struct ckt_waiting_call *waiting, CUresult result)
{
	struct ckt_wcall *call = waiting->call;
	drop(waiting);
	release(waiting);
	ckt_wcall_finish(call, result);
}

static CUresult again_for(const struct ckt_worker *worker)
{
	return worker->client_takes_again ? (CUresult)CKT_RESULT_AGAIN : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Replies leave first: the question is a round trip to the server. */
static void ask(struct ckt_worker *worker, struct ckt_waiting_call *waiting)
{
	ckt_output_flush(&worker->output);
	ckt_lease_wait_begin(&waiting->wait);
}

struct ckt_waiting_call *ckt_waiting_call_prepare(const struct ckt_cursor *args)
{
	size_t size = (size_t)(args->end - args->p);
	struct ckt_waiting_call *waiting = malloc(sizeof *waiting + size);
	if (!waiting)
		return NULL;
	*waiting =
		(struct ckt_waiting_call){.tries = running ? running->tries + 1 : 0, .size = size};
	memcpy(waiting->args, args->p, size);
	return waiting;
}

struct ckt_waiting_call *ckt_waiting_call_take_along(const struct ckt_wcall *call)
{
	struct ckt_waiting_call *waiting = running;
	if (!waiting || waiting->call != call)
		return NULL;
	running = NULL;
	waiting->tries++;
	return waiting;
}

void ckt_waiting_call_use(struct ckt_waiting_call *waiting)
{
	ckt_lease_use_reserved(waiting ? &waiting->wait : NULL);
}

void ckt_waiting_call_end(struct ckt_waiting_call *waiting)
{
	if (waiting)
		ckt_lease_wait_end(&waiting->wait, false);
	release(waiting);
}

static bool can_wait(const struct ckt_wcall *call)
{
	return call->header.seq && !(call->header.flags & CKT_CALL_BATCHED);
}

bool ckt_waiting_call_keep_later(struct ckt_wcall *call, struct ckt_waiting_call *waiting,
	const struct ckt_lease_wait *refused)
{
	struct ckt_worker *worker = call->worker;
	bool waits = refused->bytes && can_wait(call) && waiting && waiting->tries < TRIES_MAX;
	bool stops = waits && worker->checkpoint.hold.on;
	if (!waits || stops || !charge(waiting)) {
		if (stops)
			ckt_wcall_finish(call, again_for(worker));
		ckt_waiting_call_end(waiting);
		return stops;
	}
	/* What did not suffice goes back first: nobody holds it while he waits for more. */
	ckt_lease_wait_end(&waiting->wait, false);
	waiting->call = call;
	waiting->wait = *refused;
	append(waiting);
	/* Without a client it is asked for when one is back. */
	if (worker->client_fd < 0)
		return true;
	ask(worker, waiting);
	/* Granted or refused already: in its turn. */
	if (ckt_lease_wait_state(&waiting->wait) != CKT_LEASE_WAITING)
		wake();
	return true;
}

bool ckt_waiting_call_keep(struct ckt_wcall *call, const struct ckt_cursor *args)
{
	struct ckt_lease_wait refused;
	return ckt_lease_refused(&refused) && call->header.prog == CKT_CUDA_PROG &&
		can_wait(call) &&
		ckt_waiting_call_keep_later(call, ckt_waiting_call_prepare(args), &refused);
}

static void run_again(struct ckt_worker *worker, struct ckt_waiting_call *waiting)
{
	struct ckt_wcall *call = waiting->call;
	drop(waiting);
	call->args = (struct ckt_cursor){.p = waiting->args, .end = waiting->args + waiting->size};
	running = waiting;
	ckt_waiting_call_use(waiting);
	/* Its arguments were good the first time. */
	ckt_executor_run(worker, call);
	ckt_waiting_call_use(NULL);
	ckt_waiting_call_end(running);
	running = NULL;
}

/* One that can go on; NULL: none. */
static struct ckt_waiting_call *find_ready(void)
{
	bool joined = ckt_lease_is_joined();
	for (struct ckt_waiting_call *w = first; w; w = w->next) {
		enum ckt_lease_wait_state state = ckt_lease_wait_state(&w->wait);
		if (state == CKT_LEASE_GRANTED || state == CKT_LEASE_REFUSED ||
			(state == CKT_LEASE_NOT_ASKED && joined))
			return w;
	}
	return NULL;
}

static void put_off(struct ckt_worker *worker)
{
	while (first) {
		struct ckt_waiting_call *waiting = first;
		ckt_lease_wait_end(&waiting->wait, true);
		answer(waiting, again_for(worker));
	}
}

void ckt_waiting_calls_look(struct ckt_worker *worker, bool stops)
{
	struct ckt_waiting_call *waiting;
	if (stops)
		put_off(worker);
	/* Without a client nobody hears the answer. */
	while (first && worker->client_fd >= 0 && (waiting = find_ready())) {
		switch (ckt_lease_wait_state(&waiting->wait)) {
		case CKT_LEASE_GRANTED:
			run_again(worker, waiting);
			break;
		case CKT_LEASE_REFUSED:
			ckt_lease_wait_end(&waiting->wait, false);
			answer(waiting, CUDA_ERROR_OUT_OF_MEMORY);
			break;
		default:
			ask(worker, waiting);
			/* The server went again: it tells when it is back. */
			if (ckt_lease_wait_state(&waiting->wait) == CKT_LEASE_NOT_ASKED)
				return;
			break;
		}
	}
}

void ckt_waiting_calls_withdraw(struct ckt_worker *worker)
{
	(void)worker;
	for (struct ckt_waiting_call *w = first; w; w = w->next)
		ckt_lease_wait_end(&w->wait, false);
}
