/*
 * Stopping at a command boundary: the executor stands between two commands, every call that waited
 * for the GPU is answered and its reply given to the socket, and the GPU has nothing left to do.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "checkpoint/freeze/freeze.h"
#include "checkpoint/session.h"
#include "rpc/gen/cuda_driver.h"
#include "rpc/net.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/fence.h"
#include "server/worker/session/executor.h"
#include "server/worker/worker.h"

enum { PART_MS = 1000 };

int ckt_worker_freeze(
	struct ckt_worker *worker, unsigned deadline_ms, char *ret_message, size_t message_size)
{
	int64_t deadline = ckt_net_now_ms() + (deadline_ms ? deadline_ms : 60000);
	pthread_mutex_lock(&worker->mail_lock);
	worker->freeze_deadline_ms = deadline;
	worker->freeze_error = 0;
	worker->freeze_message[0] = 0;
	worker->end_after_freeze = false;
	worker->freeze = true;
	atomic_store(&worker->mail, true);
	ckt_executor_wake(worker);
	/*
	 * The executor keeps the deadline itself; should it be stuck inside the driver, nobody else
	 * can tell why.
	 */
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += (deadline_ms ? deadline_ms : 60000) / 1000 + 2;
	int error = 0;
	while (!worker->frozen && !worker->freeze_error && !error)
		error = pthread_cond_timedwait(&worker->mail_cond, &worker->mail_lock, &until);
	int result = worker->freeze_error;
	if (!worker->frozen && !result) {
		result = -ETIMEDOUT;
		if (!worker->freeze_message[0])
			snprintf(worker->freeze_message, sizeof worker->freeze_message,
				"the worker is inside a call of the driver that does not return");
	}
	if (result) {
		worker->freeze = false;
		snprintf(ret_message, message_size, "%s", worker->freeze_message);
	}
	pthread_mutex_unlock(&worker->mail_lock);
	return result;
}

void ckt_worker_thaw(struct ckt_worker *worker, bool end)
{
	pthread_mutex_lock(&worker->mail_lock);
	worker->end_after_freeze = end;
	worker->freeze = false;
	pthread_cond_broadcast(&worker->mail_cond);
	/* The executor has left: whoever freezes next must not take this time for the next one. */
	while (worker->frozen)
		pthread_cond_wait(&worker->mail_cond, &worker->mail_lock);
	pthread_mutex_unlock(&worker->mail_lock);
}

void ckt_worker_quiesce(struct ckt_worker *worker)
{
	pthread_mutex_lock(&worker->mail_lock);
	worker->quiesce = true;
	pthread_cond_broadcast(&worker->mail_cond);
	while (worker->quiesce)
		pthread_cond_wait(&worker->mail_cond, &worker->mail_lock);
	pthread_mutex_unlock(&worker->mail_lock);
}

/* The stream that has unfinished work, in words. */
static void name_stream(struct ckt_fences *fences, char *ret_message, size_t message_size)
{
	for (size_t i = 0; i < fences->dirty_count; i++)
		if (ckt_driver.cuStreamQuery(fences->dirty[i]->real) == CUDA_ERROR_NOT_READY) {
			snprintf(ret_message, message_size,
				"a kernel or copy on stream 0x%llx does not finish: end it, or give a longer deadline",
				(unsigned long long)fences->dirty[i]->id);
			return;
		}
	snprintf(ret_message, message_size,
		"a kernel or copy on the default stream does not finish: end it, or give a longer deadline");
}

/* Waits by asking: a driver's wait has no deadline. */
static int drain_context(struct ckt_worker *worker, struct ckt_object *context)
{
	struct ckt_fences *fences = context->ctx.fences;
	if (ckt_worker_use_context(worker, context->id))
		return 0; /* a faulted context has nothing to wait for; saving will say so */
	for (;;) {
		CUevent *events = NULL;
		unsigned count = 0, ready = 0;
		ckt_fences_collect(fences, &events, &count);
		while (ready < count && ckt_net_now_ms() < worker->freeze_deadline_ms) {
			if (ckt_driver.cuEventQuery(events[ready]) != CUDA_ERROR_NOT_READY)
				ready++;
			else if (ckt_session_operations.host_function_runs(worker))
				break;
			else
				nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
		}
		for (unsigned i = 0; i < count; i++)
			ckt_fences_event_give(fences, events[i]);
		free(events);
		if (!count)
			return 0;
		if (ckt_session_operations.host_function_runs(worker))
			return -EAGAIN;
		if (ready < count) {
			name_stream(fences, worker->freeze_message, sizeof worker->freeze_message);
			return -EBUSY;
		}
	}
}

static int drain(struct ckt_worker *worker)
{
	struct ckt_object *object, *before = worker->current;
	int result = 0;
	for (uint32_t cursor = 0;
		!result && (object = ckt_objects_next(&worker->objects, &cursor));)
		if (ckt_handle_kind(object->id) == CKT_KIND_CONTEXT)
			result = drain_context(worker, object);
	if (before)
		ckt_worker_use_context(worker, before->id);
	return result;
}

/*
 * What is answered must have left before the image counts as the truth: the client takes what it
 * was sent as done.
 */
static void flush_all(struct ckt_worker *worker)
{
	while (worker->client_fd >= 0 && ckt_output_flush(&worker->output) == -EAGAIN &&
		ckt_net_now_ms() < worker->freeze_deadline_ms)
		ckt_transport_wait(&worker->input.transport, CKT_TRANSPORT_WRITE, 100);
}

/* A callback; text NULL: without arguments. */
static void tell(struct ckt_worker *worker, uint32_t proc, const char *text)
{
	uint32_t length = text ? (uint32_t)strlen(text) : 0;
	uint8_t *p = ckt_output_begin(&worker->output, worker->client_epoch,
		CKT_CALL_HEADER_SIZE + (text ? 4 + ckt_padded(length) : 0));
	if (!p)
		return;
	p = ckt_call_header_put(p,
		&(struct ckt_call_header){.prog = CRICKET_CALLBACK_PROG, .vers = 1, .proc = proc});
	if (text)
		ckt_put_opaque(p, text, length);
	ckt_output_end(&worker->output);
}

/* Tells the client where its session went, or that it was stopped on purpose. */
static void say_goodbye(struct ckt_worker *worker)
{
	const struct ckt_parting *parting = &worker->parting;
	if (parting->moved_to[0])
		tell(worker, CKT_CALLBACK_MOVED, parting->moved_to);
	else if (parting->parked)
		tell(worker, CKT_CALLBACK_PARKED, parting->message);
}

/*
 * Ends the session's connection so that what was sent still arrives: a close() with unread input
 * resets the connection, and what the peer's kernel has not acknowledged by then is lost.  What it
 * has is safe, whether the client reads now or in an hour.
 */
static void part_from_client(struct ckt_worker *worker)
{
	if (worker->client_fd < 0)
		return;
	int64_t deadline = ckt_net_now_ms() + PART_MS;
	worker->freeze_deadline_ms = deadline;
	if (worker->quiesce)
		tell(worker, CKT_CALLBACK_QUIESCE, NULL);
	else
		say_goodbye(worker);
	flush_all(worker);
	ckt_transport_finish(&worker->input.transport);
	for (;;) {
		ckt_input_discard(&worker->input);
		if (!ckt_transport_undelivered(&worker->input.transport) ||
			ckt_net_now_ms() >= deadline)
			return;
		poll(NULL, 0, 1);
	}
}

/*
 * The client sends again what it had sent beyond the boundary.  Precondition: frozen, mail_lock
 * held (given up meanwhile).
 */
static void quiesce(struct ckt_worker *worker)
{
	pthread_mutex_unlock(&worker->mail_lock);
	part_from_client(worker);
	ckt_executor_disconnect(worker, "it was told to be quiet");
	pthread_mutex_lock(&worker->mail_lock);
	worker->quiesce = false;
	pthread_cond_broadcast(&worker->mail_cond);
}

void ckt_executor_freeze(struct ckt_worker *worker)
{
	ckt_hold_give(worker);
	/*
	 * What other ranks do may depend on commands of this session that are still to come: we go
	 * on serving, and the call's end is our next attempt.
	 */
	bool apart = ckt_session_operations.waits_for_others(worker);
	if (apart)
		snprintf(worker->freeze_message, sizeof worker->freeze_message,
			"a call of the program waits for other ranks that do not come: save the whole job, or give a longer deadline");
	if (apart && ckt_net_now_ms() < worker->freeze_deadline_ms)
		return;
	int error = apart ? -ETIMEDOUT : 0;
	if (!error &&
		ckt_session_operations.is_shared_with_running(
			worker, worker->freeze_message, sizeof worker->freeze_message))
		error = -EOPNOTSUPP;
	if (!error)
		error = ckt_session_operations.finish_calls(worker, worker->freeze_deadline_ms);
	if (!error)
		error = ckt_pending_drain(worker, NULL, worker->freeze_deadline_ms);
	if (!error)
		error = drain(worker);
	/*
	 * A host function must run in the client before the GPU becomes idle, and its answer is a
	 * command: we go on serving, and its end is our next attempt.
	 */
	if (error == -EAGAIN && ckt_net_now_ms() < worker->freeze_deadline_ms)
		return;
	if (error == -EAGAIN)
		snprintf(worker->freeze_message, sizeof worker->freeze_message,
			"a host function of the program does not return");
	else if (error == -ETIMEDOUT && !apart)
		snprintf(worker->freeze_message, sizeof worker->freeze_message,
			"a call of the program waits for work on the GPU that does not finish: end it, or give a longer deadline");
	if (!error) {
		ckt_session_operations.settle_notes(worker);
		ckt_pending_deliver(worker);
		flush_all(worker);
	}
	/* Whoever opened something before that is in this look. */
	if (!error) {
		ckt_session_operations.close_sharing();
		if (ckt_session_operations.is_shared_with_running(
			    worker, worker->freeze_message, sizeof worker->freeze_message))
			error = -EOPNOTSUPP;
	}
	pthread_mutex_lock(&worker->mail_lock);
	if (error) {
		worker->freeze_error = error;
		worker->freeze = false;
	} else {
		worker->frozen = true;
		worker->frozen_ns = ckt_now_ns();
	}
	pthread_cond_broadcast(&worker->mail_cond);
	ckt_lookahead_asleep(&worker->lookahead, true);
	while (worker->freeze) {
		if (worker->quiesce)
			quiesce(worker);
		else
			pthread_cond_wait(&worker->mail_cond, &worker->mail_lock);
	}
	ckt_lookahead_asleep(&worker->lookahead, false);
	/* A client that was told to be quiet has had no chance to come back so far. */
	worker->detached_ms = ckt_net_now_ms();
	bool end = worker->end_after_freeze && worker->frozen;
	if (end)
		worker->state = CKT_STATE_ENDING;
	pthread_mutex_unlock(&worker->mail_lock);
	if (end)
		part_from_client(worker);
	else
		ckt_session_operations.reopen_sharing();
	pthread_mutex_lock(&worker->mail_lock);
	worker->frozen = false;
	pthread_cond_broadcast(&worker->mail_cond);
	pthread_mutex_unlock(&worker->mail_lock);
}
