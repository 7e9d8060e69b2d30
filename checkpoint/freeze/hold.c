/* SPDX-License-Identifier: Apache-2.0 */
/* Stopping together with a job; see hold.h. */
#include "checkpoint/freeze/hold.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "checkpoint/session.h"
#include "checkpoint/state.h"
#include "rpc/wire.h"

/*
 * How long replies are withheld without a host function's end, at first and at most, and how long
 * they are then released.
 */
#define PATIENCE_NS 50000000
#define PATIENCE_MAX_NS 1000000000
#define GIVE_NS 10000000

struct kept {
	struct kept *next;
	uint64_t epoch;
	size_t size;
	uint8_t record[];
};

static struct {
	pthread_mutex_t lock;
	struct kept *first, **last;
} replies = {.lock = PTHREAD_MUTEX_INITIALIZER, .last = &replies.first};

bool ckt_hold_keep(struct ckt_worker *worker, uint64_t epoch, const struct ckt_reply_header *header,
	const uint8_t *body, size_t size)
{
	if (!atomic_load_explicit(&ckt_checkpoint_of(worker)->hold.withhold, memory_order_relaxed))
		return false;
	struct kept *kept = malloc(sizeof *kept + CKT_REPLY_HEADER_SIZE + size);
	if (!kept)
		return false;
	*kept = (struct kept){.epoch = epoch, .size = CKT_REPLY_HEADER_SIZE + size};
	uint8_t *p = ckt_reply_header_put(kept->record, header);
	if (size)
		memcpy(p, body, size);
	pthread_mutex_lock(&replies.lock);
	/* Under the lock: an entry after the last look at the list would stay there. */
	bool keep = atomic_load(&ckt_checkpoint_of(worker)->hold.withhold);
	if (keep) {
		*replies.last = kept;
		replies.last = &kept->next;
	}
	pthread_mutex_unlock(&replies.lock);
	if (!keep)
		free(kept);
	return keep;
}

void ckt_hold_give(struct ckt_worker *worker)
{
	pthread_mutex_lock(&replies.lock);
	atomic_store(&ckt_checkpoint_of(worker)->hold.withhold, false);
	while (replies.first) {
		struct kept *kept = replies.first;
		ckt_session_operations.send_record(worker, kept->epoch, kept->record, kept->size);
		replies.first = kept->next;
		free(kept);
	}
	replies.last = &replies.first;
	pthread_mutex_unlock(&replies.lock);
}

int ckt_hold_set(struct ckt_worker *worker, uint32_t action, uint64_t commands,
	uint64_t issued_bound, char *ret_message, size_t message_size)
{
	struct ckt_hold *hold = &ckt_checkpoint_of(worker)->hold;
	int result = 0;
	pthread_mutex_lock(ckt_session_operations.lock(worker));
	if (action == CKT_HOLD_STOP && hold->wanted) {
		result = -EBUSY;
		snprintf(ret_message, message_size,
			"another checkpoint of its job holds the session: try again");
	} else if (action == CKT_HOLD_STEP && !hold->wanted) {
		result = -EINVAL;
		snprintf(ret_message, message_size, "the session is not held");
	} else {
		if (action == CKT_HOLD_STOP)
			hold->copied = false;
		if (action != CKT_HOLD_STEP)
			hold->cut[0] = 0;
		hold->wanted = action != CKT_HOLD_END;
		hold->commands = action == CKT_HOLD_STEP ? commands : 0;
		hold->issued = issued_bound;
		hold->epoch++;
	}
	pthread_mutex_unlock(ckt_session_operations.lock(worker));
	ckt_session_operations.wake(worker);
	return result;
}

int ckt_hold_name_cut(struct ckt_worker *worker, const uint8_t cut[CKT_WORKER_CUT_SIZE])
{
	struct ckt_hold *hold = &ckt_checkpoint_of(worker)->hold;
	pthread_mutex_lock(ckt_session_operations.lock(worker));
	int result = hold->wanted ? 0 : -EINVAL;
	hold->cut[0] = result ? 0 : '/';
	for (size_t i = 0; i < CKT_WORKER_CUT_SIZE && !result; i++)
		snprintf(hold->cut + 1 + 2 * i, 3, "%02x", cut[i]);
	pthread_mutex_unlock(ckt_session_operations.lock(worker));
	return result;
}

const char *ckt_hold_with(struct ckt_worker *worker)
{
	const struct ckt_hold *hold = &ckt_checkpoint_of(worker)->hold;
	return *hold->cut ? hold->cut : ckt_session_operations.job(worker);
}

void ckt_hold_look(struct ckt_worker *worker, struct ckt_worker_hold_res *ret, char *ret_message)
{
	const struct ckt_checkpoint *state = ckt_checkpoint_of(worker);
	const struct ckt_hold *hold = &state->hold;
	pthread_mutex_lock(ckt_session_operations.lock(worker));
	/* The host holds its memory and its executor is stopped: no work is left. */
	bool still = state->paused || state->freeze.frozen;
	ret->held = hold->wanted;
	ret->drained = hold->wanted && (still || atomic_load(&hold->drained) == hold->epoch);
	ret->copied = hold->copied;
	ret->commands = still               ? 0
		: hold->seen == hold->epoch ? atomic_load(&hold->left)
					    : hold->commands;
	if (!ret->drained)
		snprintf(ret_message, CKT_MESSAGE_MAX, "%s", hold->message);
	pthread_mutex_unlock(ckt_session_operations.lock(worker));
	ret->issued = ckt_session_operations.collectives_issued(worker);
	ret->executed = ckt_session_operations.executed(worker);
	ret->message = ret_message;
}

void ckt_hold_copied(struct ckt_worker *worker)
{
	pthread_mutex_lock(ckt_session_operations.lock(worker));
	ckt_checkpoint_of(worker)->hold.copied = true;
	pthread_mutex_unlock(ckt_session_operations.lock(worker));
}

void ckt_hold_take(struct ckt_worker *worker)
{
	struct ckt_hold *hold = &ckt_checkpoint_of(worker)->hold;
	if (hold->seen == hold->epoch)
		return;
	hold->on = hold->wanted;
	hold->seen = hold->epoch;
	hold->issued_bound = hold->issued;
	atomic_store(&hold->drained, 0);
	atomic_store(&hold->left, hold->commands);
	ckt_hold_give(worker);
	hold->host_seen = hold->on && hold->host_seen;
	hold->since_ns = ckt_now_ns();
	hold->patience_ns = PATIENCE_NS;
}

/* Whether replies are withheld for now. */
static bool withholds(struct ckt_worker *worker)
{
	struct ckt_hold *hold = &ckt_checkpoint_of(worker)->hold;
	int64_t now = ckt_now_ns();
	uint64_t ended = ckt_session_operations.host_functions_ended();
	hold->host_seen |= ckt_session_operations.host_function_runs(worker);
	if (!hold->host_seen || atomic_load(&hold->left))
		return false;
	if (ended != hold->host_ended) {
		hold->host_ended = ended;
		hold->since_ns = now;
		hold->patience_ns = PATIENCE_NS;
	} else if (now - hold->since_ns >= hold->patience_ns + GIVE_NS) {
		hold->since_ns = now;
		hold->patience_ns = hold->patience_ns < PATIENCE_MAX_NS ? 2 * hold->patience_ns
									: PATIENCE_MAX_NS;
	}
	return now - hold->since_ns < hold->patience_ns;
}

void ckt_hold_refresh(struct ckt_worker *worker)
{
	struct ckt_hold *hold = &ckt_checkpoint_of(worker)->hold;
	if (hold->on && atomic_load(&hold->drained) != hold->seen && withholds(worker))
		atomic_store(&hold->withhold, true);
	else if (atomic_load(&hold->withhold))
		ckt_hold_give(worker);
}

bool ckt_hold_stops(struct ckt_worker *worker)
{
	struct ckt_hold *hold = &ckt_checkpoint_of(worker)->hold;
	if (!hold->on || ckt_session_operations.host_function_runs(worker))
		return false;
	if (hold->issued_bound &&
		ckt_session_operations.collectives_issued(worker) >= hold->issued_bound)
		atomic_store(&hold->left, 0);
	return !atomic_load_explicit(&hold->left, memory_order_relaxed);
}

void ckt_hold_spend(struct ckt_worker *worker)
{
	struct ckt_hold *hold = &ckt_checkpoint_of(worker)->hold;
	uint64_t left = atomic_load_explicit(&hold->left, memory_order_relaxed);
	/* Commands around a host function's end do not count as steps. */
	if (left)
		atomic_store_explicit(&hold->left, left - 1, memory_order_relaxed);
	atomic_store_explicit(&hold->drained, 0, memory_order_relaxed);
}

static void say(struct ckt_worker *worker, const char *text)
{
	struct ckt_hold *hold = &ckt_checkpoint_of(worker)->hold;
	pthread_mutex_lock(ckt_session_operations.lock(worker));
	snprintf(hold->message, sizeof hold->message, "%s", text);
	pthread_mutex_unlock(ckt_session_operations.lock(worker));
}

static bool is_busy(struct ckt_worker *worker)
{
	char text[CKT_MESSAGE_MAX];
	if (ckt_session_operations.host_function_runs(worker)) {
		say(worker, "a host function of the program does not return");
		return true;
	}
	if (ckt_session_operations.streams_work(worker, text, sizeof text)) {
		say(worker, text);
		return true;
	}
	/* Nothing runs whose replies could lead to more work. */
	ckt_hold_give(worker);
	/*
	 * Calls that have begun and are answered later: waits, long calls of the driver, creations
	 * that wait for peers.
	 */
	if (ckt_session_operations.calls_open()) {
		say(worker, "a call of the program does not return");
		return true;
	}
	return false;
}

bool ckt_hold_check(struct ckt_worker *worker)
{
	struct ckt_hold *hold = &ckt_checkpoint_of(worker)->hold;
	if (!hold->on || atomic_load(&hold->drained) == hold->seen)
		return false;
	ckt_hold_refresh(worker);
	if (is_busy(worker))
		return true;
	atomic_store(&hold->drained, hold->seen);
	return false;
}
