/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of communicators come to stand still; see together_meet.h. */
#include "server/daemon/session/together_meet.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fault_point.h"
#include "base/log.h"
#include "rpc/net.h"
#include "server/daemon/session/session.h"
#include "server/daemon/session/together.h"
#include "server/daemon/session/worker_request.h"

enum {
	CALL_MS = 5000,
	LOOK_MS = 1,
	SLOW_LOOK_MS = 10, /* after so long without a step: */
	SLOW_MS = 1000,
	/* More sessions than that do not leave together. */
	RANKS_MAX = 1024,
};

static bool is_of(const struct ckt_session *session, const struct ckt_together *together)
{
	return session->quantum.together == together && session->phase == CKT_SESSION_LIVE;
}

bool ckt_together_must_meet(const struct ckt_together *together)
{
	for (const struct ckt_session *s = together->server->sessions; s; s = s->next)
		if (is_of(s, together) && ckt_group_has_ranks(s))
			return true;
	return false;
}

static int ask(struct ckt_session *session, const struct ckt_worker_hold_args *args,
	ckt_request_done done, void *context)
{
	return ckt_session_call(session, CKT_WORKER_HOLD, (xdrproc_t)xdr_ckt_worker_hold_args,
		(void *)args, -1, (xdrproc_t)xdr_ckt_worker_hold_res,
		sizeof(struct ckt_worker_hold_res), CALL_MS, done, context);
}

/* ---- The end */

static void let_go_done(struct ckt_session *session, void *context, int error, void *result)
{
	(void)context, (void)result;
	if (error && error != -ECONNRESET)
		ckt_warning("session %s: cannot let it continue with its other ranks: %s",
			session->id, strerror(-error));
}

void ckt_together_meet_end(struct ckt_together *together)
{
	static const struct ckt_worker_hold_args end = {.action = CKT_HOLD_END};
	ckt_timer_clear(&together->meeting.timer);
	if (!together->meeting.held)
		return;
	together->meeting.held = false;
	for (struct ckt_session *s = together->server->sessions; s; s = s->next)
		if (is_of(s, together) && s->quantum.meeting.held) {
			s->quantum.meeting.held = false;
			ask(s, &end, let_go_done, NULL);
		}
}

/* ---- Looks */

static void round_done(struct ckt_together *together);

static void fail(struct ckt_together *together, int error, const struct ckt_session *session,
	const char *why)
{
	if (together->error)
		return;
	together->error = error;
	snprintf(together->message, sizeof together->message, "session %s: %.400s", session->id,
		why);
}

static void looked(struct ckt_session *session, void *context, int error, void *answer)
{
	struct ckt_together *together = context;
	struct ckt_together_rank *meeting = &session->quantum.meeting;
	const struct ckt_worker_hold_res *res = answer;
	/* One that has died is nobody whom the others wait for here. */
	bool gone = session->phase != CKT_SESSION_LIVE || error == -ECONNRESET || error == -EPIPE;
	if (error || res->status || !res->held) {
		if (!gone)
			fail(together,
				error                 ? error
					: res->status ? res->status
						      : -EBUSY,
				session,
				error                   ? ckt_daemon_request_problem(error)
					: *res->message ? res->message
							: "it goes on by itself");
	} else {
		meeting->held = true;
		meeting->rank.drained = res->drained;
		meeting->rank.tells = *res->message != 0;
		meeting->rank.commands = res->commands;
		meeting->rank.issued = res->issued;
		snprintf(meeting->unfinished, sizeof meeting->unfinished, "%s", res->message);
	}
	if (--together->awaited == 0)
		round_done(together);
}

static void look(struct ckt_together *together, bool first)
{
	together->awaited = 1;
	for (struct ckt_session *s = together->server->sessions; s && !together->error;
		s = s->next) {
		struct ckt_together_rank *meeting = &s->quantum.meeting;
		if (!is_of(s, together))
			continue;
		if (first)
			*meeting = (struct ckt_together_rank){0};
		const struct ckt_worker_hold_args args = {.action = first ? CKT_HOLD_STOP
				: meeting->rank.step                      ? CKT_HOLD_STEP
									  : CKT_HOLD_LOOK,
			.commands = meeting->rank.step_commands,
			.issued = meeting->rank.step_issued};
		meeting->rank.step = false;
		int error = ask(s, &args, looked, together);
		together->awaited += !error;
		if (error)
			fail(together, error, s, strerror(-error));
	}
	if (--together->awaited == 0)
		round_done(together);
}

static void look_again(struct ckt_timer *timer)
{
	look(CKT_CONTAINER(timer, struct ckt_together, meeting.timer), false);
}

/* ---- Decisions */

/* Who has not ended its work: it waits for a rank that does not come, or is the one that others wait for. */
static void too_late(struct ckt_together *together, struct ckt_session *const sessions[],
	struct ckt_job_rank *const ranks[], unsigned count)
{
	const struct ckt_session *late = sessions[ckt_job_cut_late(ranks, count)];
	char why[CKT_TOGETHER_UNFINISHED_MAX + 64];
	snprintf(why, sizeof why, "waits for a peer or computes: %s",
		*late->quantum.meeting.unfinished ? late->quantum.meeting.unfinished
						  : "its work does not finish");
	fail(together, -EBUSY, late, why);
}

static void round_done(struct ckt_together *together)
{
	struct ckt_together_meeting *meeting = &together->meeting;
	static struct ckt_session *sessions[RANKS_MAX];
	static struct ckt_job_rank *ranks[RANKS_MAX];
	int64_t now_ms = ckt_net_now_ms();
	unsigned count = 0;
	for (struct ckt_session *s = together->server->sessions; s && count < RANKS_MAX;
		s = s->next)
		if (is_of(s, together) && s->quantum.meeting.held) {
			sessions[count] = s;
			ranks[count++] = &s->quantum.meeting.rank;
		}
	bool met = !together->error && ckt_job_cut_decide(&meeting->cut, ranks, count, now_ms);
	if (met)
		ckt_fault(CKT_FAULT_TOGETHER_MET);
	else if (!together->error &&
		now_ms - meeting->since_ms >= (int64_t)together->server->options.drain * 1000)
		too_late(together, sessions, ranks, count);
	if (met || together->error)
		ckt_together_met(together);
	else
		ckt_timer_set(&together->server->loop, &meeting->timer,
			!meeting->cut.stepping && now_ms - meeting->cut.since_ms > SLOW_MS
				? SLOW_LOOK_MS
				: LOOK_MS);
}

void ckt_together_meet(struct ckt_together *together)
{
	struct ckt_together_meeting *meeting = &together->meeting;
	meeting->timer.fire = look_again;
	meeting->since_ms = ckt_net_now_ms();
	meeting->held = true;
	ckt_job_cut_begin(&meeting->cut, meeting->since_ms);
	look(together, true);
}
