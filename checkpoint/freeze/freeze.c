/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stops the session at a command boundary: the executor stops between two commands, every call that
 * waited for the GPU has been answered and its reply passed to the socket, and the GPU is idle.
 */
#include "checkpoint/freeze/freeze.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/timed_wait.h"
#include "checkpoint/session.h"
#include "checkpoint/state.h"
#include "rpc/net.h"

/* How long a thaw may wait, and how long a swapped session that was granted no memory. */
enum { SWAPPED_LOOK_MS = 100, SWAP_RETRY_MS = 100 };

static const struct ckt_session_operations *const session = &ckt_session_operations;

int ckt_checkpoint_freeze(
	struct ckt_worker *worker, unsigned deadline_ms, char *ret_message, size_t message_size)
{
	struct ckt_freeze *freeze = &ckt_checkpoint_of(worker)->freeze;
	pthread_mutex_t *lock = session->lock(worker);
	int64_t deadline = ckt_net_now_ms() + (deadline_ms ? deadline_ms : 60000);
	pthread_mutex_lock(lock);
	/* The executor may be on its way out of a freeze that it has ended itself. */
	while (freeze->frozen && !freeze->wanted)
		pthread_cond_wait(session->changed(worker), lock);
	freeze->deadline_ms = deadline;
	freeze->error = 0;
	freeze->message[0] = 0;
	freeze->end = false;
	freeze->wanted = true;
	session->wake(worker);
	/*
	 * The executor keeps the deadline itself; if it is stuck inside the driver, no other thread
	 * can tell why.
	 */
	int64_t until = ckt_now_ns() +
		((deadline_ms ? deadline_ms : 60000) / 1000 + 2) * INT64_C(1000000000);
	int error = 0;
	while (!freeze->frozen && !freeze->error && !error)
		error = ckt_cond_wait_until(session->changed(worker), lock, until);
	int result = freeze->error;
	if (!freeze->frozen && !result) {
		result = -ETIMEDOUT;
		if (!freeze->message[0])
			snprintf(freeze->message, sizeof freeze->message,
				"the worker is inside a driver call that does not "
				"return");
	}
	if (result) {
		freeze->wanted = false;
		snprintf(ret_message, message_size, "%s", freeze->message);
	}
	pthread_mutex_unlock(lock);
	return result;
}

void ckt_checkpoint_thaw(struct ckt_worker *worker, bool end)
{
	struct ckt_freeze *freeze = &ckt_checkpoint_of(worker)->freeze;
	pthread_mutex_t *lock = session->lock(worker);
	pthread_mutex_lock(lock);
	freeze->end = end;
	freeze->wanted = false;
	pthread_cond_broadcast(session->changed(worker));
	/* The executor has left: the next freeze must not take this time for its own. */
	while (freeze->frozen)
		pthread_cond_wait(session->changed(worker), lock);
	pthread_mutex_unlock(lock);
}

void ckt_checkpoint_quiesce(struct ckt_worker *worker)
{
	struct ckt_freeze *freeze = &ckt_checkpoint_of(worker)->freeze;
	pthread_mutex_t *lock = session->lock(worker);
	pthread_mutex_lock(lock);
	freeze->quiesce = true;
	pthread_cond_broadcast(session->changed(worker));
	while (freeze->quiesce)
		pthread_cond_wait(session->changed(worker), lock);
	pthread_mutex_unlock(lock);
}

/*
 * The client sends again what it had sent beyond the boundary.  Precondition: frozen, locked
 * (unlocked meanwhile).
 */
static void quiesce(struct ckt_worker *worker, struct ckt_freeze *freeze)
{
	pthread_mutex_t *lock = session->lock(worker);
	pthread_mutex_unlock(lock);
	session->part(worker, true);
	pthread_mutex_lock(lock);
	freeze->quiesce = false;
	pthread_cond_broadcast(session->changed(worker));
}

/*
 * Finishes what was begun: 0, or an error and a sentence in the message.  ret_again: this needs
 * further commands, and there is time for them.
 */
static int finish(struct ckt_worker *worker, struct ckt_freeze *freeze, bool *ret_again)
{
	char *message = freeze->message;
	const size_t size = sizeof freeze->message;
	*ret_again = false;
	/*
	 * The work of other ranks may depend on later commands of this session: the executor
	 * continues, and the next attempt is made when the call ends.
	 */
	if (session->waits_for_others(worker)) {
		snprintf(message, size,
			"a call of the program waits for other ranks that do not "
			"arrive: save the whole job, or give a longer deadline");
		*ret_again = ckt_net_now_ms() < freeze->deadline_ms;
		return -ETIMEDOUT;
	}
	if (session->is_shared_with_running(worker, message, size))
		return -EOPNOTSUPP;
	int error = session->finish_calls(worker, freeze->deadline_ms);
	if (!error)
		error = session->finish_waits(worker, freeze->deadline_ms);
	if (!error)
		error = session->finish_streams(worker, freeze->deadline_ms, message, size);
	/*
	 * A host function must run in the client before the GPU becomes idle, and its end is a
	 * command: the executor continues, and the next attempt is made when it ends.
	 */
	*ret_again = error == -EAGAIN && ckt_net_now_ms() < freeze->deadline_ms;
	if (error == -EAGAIN)
		snprintf(message, size, "a host function of the program does not return");
	else if (error == -ETIMEDOUT)
		snprintf(message, size,
			"a call of the program waits for GPU work that does not "
			"finish: end it, or give a longer deadline");
	if (error)
		return error;
	session->settle_notes(worker);
	session->deliver(worker);
	/*
	 * All replies must have left before the image becomes the truth: the client considers what
	 * it received as done.
	 */
	session->flush(worker, freeze->deadline_ms);
	/* This look also covers sessions that opened something before. */
	session->close_sharing();
	return session->is_shared_with_running(worker, message, size) ? -EOPNOTSUPP : 0;
}

/*
 * A swapped session comes in when its client wants something: looks for that, and for a thaw, which
 * wakes.  Precondition: locked (unlocked meanwhile).
 */
static void sleep_swapped(struct ckt_worker *worker)
{
	struct ckt_checkpoint *state = ckt_checkpoint_of(worker);
	pthread_mutex_t *lock = session->lock(worker);
	pthread_mutex_unlock(lock);
	int64_t now = ckt_net_now_ms();
	bool may = now >= state->swap_retry_ms;
	bool called = session->wait_client(worker, may, SWAPPED_LOOK_MS);
	if (may && called && !session->come_in(worker))
		state->swap_retry_ms = ckt_net_now_ms() + SWAP_RETRY_MS;
	pthread_mutex_lock(lock);
}

/* Until the freeze is lifted.  Precondition: locked. */
static void sleep_frozen(struct ckt_worker *worker, struct ckt_freeze *freeze)
{
	while (freeze->wanted) {
		if (freeze->quiesce)
			quiesce(worker, freeze);
		else if (ckt_checkpoint_of(worker)->swapped)
			sleep_swapped(worker);
		else
			pthread_cond_wait(session->changed(worker), session->lock(worker));
	}
}

void ckt_checkpoint_freeze_executor(struct ckt_worker *worker)
{
	struct ckt_freeze *freeze = &ckt_checkpoint_of(worker)->freeze;
	pthread_mutex_t *lock = session->lock(worker);
	ckt_hold_give(worker);
	bool again;
	int error = finish(worker, freeze, &again);
	if (again)
		return;
	pthread_mutex_lock(lock);
	if (error) {
		freeze->error = error;
		freeze->wanted = false;
	} else {
		freeze->frozen = true;
		freeze->since_ns = ckt_now_ns();
	}
	pthread_cond_broadcast(session->changed(worker));
	session->begin_sleep(worker);
	sleep_frozen(worker, freeze);
	bool end = freeze->end && freeze->frozen;
	session->end_sleep(worker, end);
	pthread_mutex_unlock(lock);
	if (end)
		session->part(worker, false);
	else
		session->reopen_sharing();
	pthread_mutex_lock(lock);
	freeze->frozen = false;
	pthread_cond_broadcast(session->changed(worker));
	pthread_mutex_unlock(lock);
}
