/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding a moment at which no session of a job has anything left to do.
 *
 *	all stand --done--> the cut
 *	          --not done for a while--> some are let on for a few commands, twice as many each time --one that was stuck is done--> all stand
 *
 * Work that is not done either takes its time, or waits for something that another session has yet
 * to put on its GPU: its part of a collective, a flag.  Where the sessions count the collectives
 * that they issued, those with fewer are the ones to let on, and no further than the others are.
 * Without counts those that are done are let on; where none is, or where they find nothing to do,
 * all are.  A phase begins with a single command, and more come only once what that began is done:
 * so nobody runs ahead of the others by more than the distance that there was, the distances
 * shrink, and the sessions meet.  Since long work is no reason to let others put more of it there,
 * the wait before a phase grows.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ctl/command.h"
#include "ctl/files.h"
#include "ctl/job/job.h"
#include "ctl/print.h"
#include "rpc/net.h"
#include "rpc/session.h"

enum {
	GRACE_MS = 20,
	COUNTED_GRACE_MS = 5, /* where counts say who lags */
	COUNTED_QUANTUM = 64, /* the counts bound it */
	STEP_MS = 2,
	IDLE_MS = 20, /* after which whoever was let on has nothing to do, or waits too */
	LOOK_NS = 1000000,
	SLOW_LOOK_NS = 10000000,
	SLOW_MS = 1000,
};

void ckt_ctl_cut_begin(struct ckt_ctl_cut *cut, int64_t now_ms)
{
	*cut = (struct ckt_ctl_cut){.since_ms = now_ms, .grace_ms = GRACE_MS};
}

static uint64_t most_issued(const struct ckt_ctl_rank *ranks, unsigned count)
{
	uint64_t most = 0;
	for (unsigned i = 0; i < count; i++)
		most = ranks[i].issued > most ? ranks[i].issued : most;
	return most;
}

static bool anybody_lags(const struct ckt_ctl_rank *ranks, unsigned count)
{
	uint64_t most = most_issued(ranks, count);
	for (unsigned i = 0; i < count; i++)
		if (ranks[i].issued < most)
			return true;
	return false;
}

static unsigned count_done(const struct ckt_ctl_rank *ranks, unsigned count)
{
	unsigned done = 0;
	for (unsigned i = 0; i < count; i++)
		done += ranks[i].drained;
	return done;
}

static void tell(struct ckt_ctl_rank *rank, uint64_t commands, uint64_t issued)
{
	rank->step = true;
	rank->step_commands = commands;
	rank->step_issued = issued;
}

static bool stop_all(struct ckt_ctl_rank *ranks, unsigned count)
{
	bool any = false;
	for (unsigned i = 0; i < count; i++)
		if (ranks[i].commands) {
			tell(&ranks[i], 0, 0);
			any = true;
		}
	return any;
}

/* Lets those continue whose turn it is; if none is done, all. */
static void let_on(const struct ckt_ctl_cut *cut, struct ckt_ctl_rank *ranks, unsigned count,
	uint64_t quantum, bool everybody)
{
	uint64_t most = most_issued(ranks, count);
	for (unsigned i = 0; i < count; i++) {
		struct ckt_ctl_rank *rank = &ranks[i];
		if (cut->counted ? rank->issued < most : everybody || rank->drained)
			tell(rank, quantum, cut->counted ? most : 0);
	}
}

/* A session that others were let on for has finished its work. */
static bool has_progress(const struct ckt_ctl_rank *ranks, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (ranks[i].stuck && ranks[i].drained)
			return true;
	return false;
}

/* They have issued their commands, which did not help, and others can continue further. */
static bool used_up(const struct ckt_ctl_rank *ranks, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (ranks[i].commands)
			return false;
	return count_done(ranks, count) > 0;
}

static void wait_again(
	struct ckt_ctl_cut *cut, struct ckt_ctl_rank *ranks, unsigned count, int64_t now_ms)
{
	stop_all(ranks, count);
	cut->stepping = false;
	cut->since_ms = now_ms;
	cut->grace_ms += cut->grace_ms / 5 + 1;
}

static void begin_phase(struct ckt_ctl_cut *cut, struct ckt_ctl_rank *ranks, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		ranks[i].stuck = !ranks[i].drained;
	cut->stepping = true;
	cut->counted = anybody_lags(ranks, count);
	cut->quantum = cut->counted ? COUNTED_QUANTUM : 1;
	cut->idle_quantum = 1;
}

bool ckt_ctl_cut_decide(
	struct ckt_ctl_cut *cut, struct ckt_ctl_rank *ranks, unsigned count, int64_t now_ms)
{
	int64_t passed_ms = now_ms - cut->since_ms;
	if (count_done(ranks, count) == count) {
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
	let_on(cut, ranks, count, cut->quantum, !count_done(ranks, count));
	return false;
}

const struct ckt_ctl_rank *ckt_ctl_cut_late(const struct ckt_ctl_rank *ranks, unsigned count)
{
	const struct ckt_ctl_rank *late = NULL;
	unsigned best = 0;
	for (unsigned i = 0; i < count; i++) {
		if (ranks[i].drained)
			continue;
		/* One that was let on just now has work, too, but is not what the others wait for. */
		unsigned blame = 1 + (*ranks[i].message != 0) + 2 * ranks[i].stuck;
		if (blame > best) {
			best = blame;
			late = &ranks[i];
		}
	}
	return late;
}

static int refuse_late(const struct ckt_ctl_job *job, unsigned deadline_ms)
{
	char text[600], message[2400], clean[CKT_MESSAGE_MAX + 1];
	unsigned others = job->rank_count - count_done(job->ranks, job->rank_count) - 1;
	const struct ckt_ctl_rank *first = ckt_ctl_cut_late(job->ranks, job->rank_count);
	if (!first)
		return ckt_ctl_refuse(job->name,
			"the sessions did not freeze together within the deadline: try "
			"again, or give a longer --deadline");
	int used = snprintf(message, sizeof message, "%s did not drain within %u s: %s",
		ckt_ctl_rank_text(first, text, sizeof text), deadline_ms / 1000,
		*first->message ? ckt_ctl_clean(first->message, clean, sizeof clean)
				: "its work does not finish");
	if (most_issued(job->ranks, job->rank_count))
		used += snprintf(message + used, sizeof message - (size_t)used,
			"; it has issued %llu collectives, the furthest session %llu",
			(unsigned long long)first->issued,
			(unsigned long long)most_issued(job->ranks, job->rank_count));
	if (others)
		used += snprintf(message + used, sizeof message - (size_t)used,
			"; %u other session%s did not drain either", others,
			others == 1 ? "" : "s");
	snprintf(message + used, sizeof message - (size_t)used,
		"; all sessions continue: end that work, or give a longer --deadline");
	return ckt_ctl_refuse(job->name, message);
}

int ckt_ctl_job_cut(struct ckt_ctl_job *job, unsigned deadline_ms)
{
	struct ckt_ctl_cut cut;
	ckt_ctl_cut_begin(&cut, ckt_net_now_ms());
	for (;;) {
		int status = ckt_ctl_job_look(job);
		int64_t now_ms = ckt_net_now_ms();
		if (status != CKT_EXIT_DONE)
			return status;
		if (ckt_ctl_cut_decide(&cut, job->ranks, job->rank_count, now_ms))
			return CKT_EXIT_DONE;
		if (now_ms - job->held_ms >= deadline_ms)
			return refuse_late(job, deadline_ms);
		nanosleep(&(struct timespec){.tv_nsec = !cut.stepping &&
						  now_ms - cut.since_ms > SLOW_MS
					  ? SLOW_LOOK_NS
					  : LOOK_NS},
			NULL);
	}
}
