/* SPDX-License-Identifier: Apache-2.0 */
/* Whom to let on, until no session of a job has anything left to do; see job_cut.h. */
#include "rpc/job_cut.h"

#include <stddef.h>

enum {
	GRACE_MS = 20,
	COUNTED_GRACE_MS = 5, /* where counts say who lags */
	COUNTED_QUANTUM = 64, /* the counts bound it */
	STEP_MS = 2,
	IDLE_MS = 20, /* after which whoever was let on has nothing to do, or waits too */
};

void ckt_job_cut_begin(struct ckt_job_cut *cut, int64_t now_ms)
{
	*cut = (struct ckt_job_cut){.since_ms = now_ms, .grace_ms = GRACE_MS};
}

uint64_t ckt_job_cut_most(struct ckt_job_rank *const ranks[], unsigned count)
{
	uint64_t most = 0;
	for (unsigned i = 0; i < count; i++)
		most = ranks[i]->issued > most ? ranks[i]->issued : most;
	return most;
}

static bool anybody_lags(struct ckt_job_rank *const ranks[], unsigned count)
{
	uint64_t most = ckt_job_cut_most(ranks, count);
	for (unsigned i = 0; i < count; i++)
		if (ranks[i]->issued < most)
			return true;
	return false;
}

unsigned ckt_job_cut_drained(struct ckt_job_rank *const ranks[], unsigned count)
{
	unsigned done = 0;
	for (unsigned i = 0; i < count; i++)
		done += ranks[i]->drained;
	return done;
}

static void tell(struct ckt_job_rank *rank, uint64_t commands, uint64_t issued)
{
	rank->step = true;
	rank->step_commands = commands;
	rank->step_issued = issued;
}

static bool stop_all(struct ckt_job_rank *const ranks[], unsigned count)
{
	bool any = false;
	for (unsigned i = 0; i < count; i++)
		if (ranks[i]->commands) {
			tell(ranks[i], 0, 0);
			any = true;
		}
	return any;
}

/* Lets those continue whose turn it is; if none is done, all. */
static void let_on(const struct ckt_job_cut *cut, struct ckt_job_rank *const ranks[],
	unsigned count, uint64_t quantum, bool everybody)
{
	uint64_t most = ckt_job_cut_most(ranks, count);
	for (unsigned i = 0; i < count; i++) {
		struct ckt_job_rank *rank = ranks[i];
		if (cut->counted ? rank->issued < most : everybody || rank->drained)
			tell(rank, quantum, cut->counted ? most : 0);
	}
}

/* A session that others were let on for has finished its work. */
static bool has_progress(struct ckt_job_rank *const ranks[], unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (ranks[i]->stuck && ranks[i]->drained)
			return true;
	return false;
}

/* They have issued their commands, which did not help, and others can continue further. */
static bool used_up(struct ckt_job_rank *const ranks[], unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (ranks[i]->commands)
			return false;
	return ckt_job_cut_drained(ranks, count) > 0;
}

static void wait_again(
	struct ckt_job_cut *cut, struct ckt_job_rank *const ranks[], unsigned count, int64_t now_ms)
{
	stop_all(ranks, count);
	cut->stepping = false;
	cut->since_ms = now_ms;
	cut->grace_ms += cut->grace_ms / 5 + 1;
}

static void begin_phase(struct ckt_job_cut *cut, struct ckt_job_rank *const ranks[], unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		ranks[i]->stuck = !ranks[i]->drained;
	cut->stepping = true;
	cut->counted = anybody_lags(ranks, count);
	cut->quantum = cut->counted ? COUNTED_QUANTUM : 1;
	cut->idle_quantum = 1;
}

bool ckt_job_cut_decide(
	struct ckt_job_cut *cut, struct ckt_job_rank *const ranks[], unsigned count, int64_t now_ms)
{
	int64_t passed_ms = now_ms - cut->since_ms;
	if (ckt_job_cut_drained(ranks, count) == count) {
		/* A session that continued and found no work is stopped before that counts. */
		if (!stop_all(ranks, count))
			return true;
		cut->stepping = false;
		cut->since_ms = now_ms;
		return false;
	}
	if (cut->stepping &&
		(has_progress(ranks, count) || (cut->counted && !anybody_lags(ranks, count)))) {
		wait_again(cut, ranks, count, now_ms);
		return false;
	}
	if (!cut->stepping) {
		if (passed_ms < (anybody_lags(ranks, count) && cut->grace_ms == GRACE_MS
						? COUNTED_GRACE_MS
						: cut->grace_ms))
			return false;
		begin_phase(cut, ranks, count);
	} else if (passed_ms >= STEP_MS && (cut->counted || used_up(ranks, count))) {
		cut->quantum *= cut->quantum < UINT32_MAX ? 2 : 1;
	} else if (passed_ms >= IDLE_MS) {
		/*
		 * All that could continue have no work: the next commands of the others may be what
		 * all wait for.
		 */
		cut->since_ms = now_ms;
		let_on(cut, ranks, count, cut->idle_quantum, true);
		cut->idle_quantum *= cut->idle_quantum < UINT32_MAX ? 2 : 1;
		return false;
	} else {
		return false;
	}
	cut->since_ms = now_ms;
	let_on(cut, ranks, count, cut->quantum, !ckt_job_cut_drained(ranks, count));
	return false;
}

unsigned ckt_job_cut_late(struct ckt_job_rank *const ranks[], unsigned count)
{
	unsigned late = count, best = 0;
	for (unsigned i = 0; i < count; i++) {
		if (ranks[i]->drained)
			continue;
		/* One that was let on just now has work, too, but is not what the others wait for. */
		unsigned blame = 1 + ranks[i]->tells + 2 * ranks[i]->stuck;
		if (blame > best) {
			best = blame;
			late = i;
		}
	}
	return late;
}
