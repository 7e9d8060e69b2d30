/* SPDX-License-Identifier: Apache-2.0 */
/* Automatic images of sessions that share; see group_cut.h. */
#include "server/daemon/durable/group_cut.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/fault_point.h"
#include "base/log.h"
#include "rpc/job_cut.h"
#include "rpc/net.h"
#include "server/daemon/durable/automatic.h"
#include "server/daemon/policy/ask.h"
#include "server/daemon/session/session.h"
#include "server/daemon/session/worker_request.h"

enum {
	CALL_MS = 5000,
	LOOK_MS = 5,
	/* What one has put on its GPU may take its time, or wait for a command of another. */
	DRAIN_MS = 1000,
	/* Ranks of communicators are let on to where the others are, and may compute meanwhile. */
	MEET_MS = 5000,
};

struct member {
	char id[CKT_SESSION_ID_SIZE + 1];
	struct ckt_session *session; /* NULL: its worker is gone */
	struct ckt_automatic_chain *chain;
	struct ckt_job_rank rank; /* how far it is, and its next step */
	bool copied;
	bool working; /* its image is being written, or its next state becomes the state */
	bool saved;
	char message[CKT_MESSAGE_MAX + 1]; /* what of its work is not done */
};

struct ckt_group_cut {
	struct ckt_group_cut *next;
	struct ckt_server *server;
	uint8_t id[CKT_CHAIN_CUT];
	enum { CUT_DRAIN, CUT_NAME, CUT_SAVE, CUT_COUNT, CUT_OVER } phase;
	unsigned asked; /* answers to come, and one for the asking itself */
	bool held;      /* they are stopped until they are let go */
	bool ranked; /* there are ranks of communicators among them, which may need steps to stand still */
	struct ckt_job_cut meeting;
	int64_t began_ms;
	struct ckt_timer timer;
	char why[CKT_MESSAGE_MAX]; /* empty: it goes well */
	unsigned count;
	struct member members[CKT_CHAIN_MEMBERS_MAX];
};

static struct ckt_group_cut *cuts;

static void step(struct ckt_group_cut *cut);

/* ---- Its end */

static void cut_free(struct ckt_group_cut *cut)
{
	struct ckt_group_cut **place = &cuts;
	while (*place != cut)
		place = &(*place)->next;
	*place = cut->next;
	ckt_timer_clear(&cut->timer);
	free(cut);
}

static void __attribute__((format(printf, 2, 3)))
give_up(struct ckt_group_cut *cut, const char *format, ...)
{
	va_list arguments;
	if (*cut->why || cut->phase >= CUT_COUNT)
		return;
	va_start(arguments, format);
	vsnprintf(cut->why, sizeof cut->why, format, arguments);
	va_end(arguments);
}

static void let_go_done(struct ckt_session *session, void *context, int error, void *result)
{
	(void)context, (void)result;
	if (error && error != -ECONNRESET)
		ckt_warning("session %s: cannot let it continue with its group: %s", session->id,
			strerror(-error));
}

static void let_go(struct ckt_group_cut *cut)
{
	struct ckt_worker_hold_args args = {.action = CKT_HOLD_END};
	for (unsigned i = 0; cut->held && i < cut->count; i++)
		if (cut->members[i].session)
			ckt_session_call(cut->members[i].session, CKT_WORKER_HOLD,
				(xdrproc_t)xdr_ckt_worker_hold_args, &args, -1,
				(xdrproc_t)xdr_ckt_worker_hold_res,
				sizeof(struct ckt_worker_hold_res), CALL_MS, let_go_done, NULL);
	cut->held = false;
}

/* The members are free for the next one; the cut itself stays until all have answered. */
static void over(struct ckt_group_cut *cut)
{
	cut->phase = CUT_OVER;
	ckt_timer_clear(&cut->timer);
	let_go(cut);
	for (unsigned i = 0; i < cut->count; i++) {
		struct ckt_automatic_chain *chain = cut->members[i].chain;
		cut->members[i].chain = NULL;
		if (!chain)
			continue;
		chain->cut = NULL;
		if (chain->session && *cut->why)
			ckt_automatic_failed(chain, cut->why);
		if (chain->session)
			ckt_automatic_note_share(chain);
		if (chain->session)
			ckt_automatic_wait(chain);
		else
			ckt_automatic_ended(chain);
	}
	if (!cut->asked)
		cut_free(cut);
}

static bool works(const struct ckt_group_cut *cut)
{
	for (unsigned i = 0; i < cut->count; i++)
		if (cut->members[i].working)
			return true;
	return false;
}

/* All go on at once; images are removed when none is being written any more. */
static void abandon(struct ckt_group_cut *cut)
{
	let_go(cut);
	if (works(cut))
		return;
	for (unsigned i = 0; i < cut->count; i++)
		if (cut->members[i].saved)
			ckt_automatic_image_drop(cut->members[i].chain);
	over(cut);
}

/* ---- All members are asked, and have answered */

static struct member *member_of(struct ckt_group_cut *cut, const struct ckt_session *session)
{
	struct member *one = cut->members;
	while (one < cut->members + cut->count && one->session != session)
		one++;
	return one < cut->members + cut->count ? one : NULL;
}

static void answered(struct ckt_group_cut *cut)
{
	if (--cut->asked)
		return;
	if (cut->phase == CUT_OVER)
		cut_free(cut);
	else
		step(cut);
}

static void looked(struct ckt_session *session, void *context, int error, void *answer)
{
	struct ckt_group_cut *cut = context;
	const struct ckt_worker_hold_res *res = answer;
	struct member *one = member_of(cut, session);
	if (error || res->status || (cut->phase == CUT_DRAIN && !res->held)) {
		give_up(cut, "session %s cannot be held: %.200s", session->id,
			error                   ? ckt_daemon_request_problem(error)
				: *res->message ? res->message
						: "it goes on by itself");
	} else if (one) {
		one->rank.drained = res->drained;
		one->rank.tells = *res->message != 0;
		one->rank.commands = res->commands;
		one->rank.issued = res->issued;
		one->copied = res->copied;
		snprintf(one->message, sizeof one->message, "%s", res->message);
	}
	answered(cut);
}

static void named(struct ckt_session *session, void *context, int error, void *answer)
{
	struct ckt_group_cut *cut = context;
	const struct ckt_worker_result *res = answer;
	if (error || res->status)
		give_up(cut, "session %s: %.200s", session->id,
			error == -EPROTO ? "its worker is of an older version"
				: error  ? ckt_daemon_request_problem(error)
					 : res->message);
	answered(cut);
}

/* A look, or the step whose turn it is. */
static struct ckt_worker_hold_args next_hold(struct member *one, ckt_hold_action action)
{
	struct ckt_job_rank *rank = &one->rank;
	bool steps = rank->step && action == CKT_HOLD_LOOK;
	rank->step = false;
	return steps ? (struct ckt_worker_hold_args){.action = CKT_HOLD_STEP,
			       .commands = rank->step_commands,
			       .issued = rank->step_issued}
		     : (struct ckt_worker_hold_args){.action = action};
}

static void ask_all(struct ckt_group_cut *cut, ckt_hold_action action)
{
	cut->asked = 1;
	for (unsigned i = 0; i < cut->count; i++) {
		struct ckt_session *session = cut->members[i].session;
		struct ckt_worker_hold_args hold = next_hold(&cut->members[i], action);
		struct ckt_worker_cut_args name;
		if (!session)
			continue;
		memcpy(name.cut, cut->id, sizeof name.cut);
		int result = cut->phase == CUT_NAME
			? ckt_session_call(session, CKT_WORKER_CUT,
				  (xdrproc_t)xdr_ckt_worker_cut_args, &name, -1,
				  (xdrproc_t)xdr_ckt_worker_result,
				  sizeof(struct ckt_worker_result), CALL_MS, named, cut)
			: ckt_session_call(session, CKT_WORKER_HOLD,
				  (xdrproc_t)xdr_ckt_worker_hold_args, &hold, -1,
				  (xdrproc_t)xdr_ckt_worker_hold_res,
				  sizeof(struct ckt_worker_hold_res), CALL_MS, looked, cut);
		if (result)
			give_up(cut, "session %s: %s", session->id, strerror(-result));
		cut->asked += !result;
	}
	answered(cut);
}

static void look_again(struct ckt_timer *timer)
{
	ask_all(CKT_CONTAINER(timer, struct ckt_group_cut, timer), CKT_HOLD_LOOK);
}

/* ---- One step after the other */

static void save_all(struct ckt_group_cut *cut)
{
	ckt_fault(CKT_FAULT_CUT_HELD);
	cut->phase = CUT_SAVE;
	for (unsigned i = 0; i < cut->count && !*cut->why; i++) {
		struct member *one = &cut->members[i];
		one->working = one->session && ckt_automatic_take_of_cut(one->chain);
		/* It has said why. */
		if (!one->working)
			give_up(cut, "no image of session %s: %s", one->id,
				one->chain && *one->chain->problem ? one->chain->problem
								   : "its worker is gone");
	}
	if (*cut->why)
		abandon(cut);
	else
		ckt_timer_set(&cut->server->loop, &cut->timer, LOOK_MS);
}

/* Whether nobody has work left; if not, ranks get their next steps.  *ret_late: who has, or NULL. */
static bool stand(struct ckt_group_cut *cut, int64_t now_ms, const struct member **ret_late)
{
	struct ckt_job_rank *ranks[CKT_CHAIN_MEMBERS_MAX];
	for (unsigned i = 0; i < cut->count; i++)
		ranks[i] = &cut->members[i].rank;
	bool stands = cut->ranked ? ckt_job_cut_decide(&cut->meeting, ranks, cut->count, now_ms)
				  : ckt_job_cut_drained(ranks, cut->count) == cut->count;
	unsigned late = ckt_job_cut_late(ranks, cut->count);
	*ret_late = late < cut->count ? &cut->members[late] : NULL;
	return stands;
}

static void drain(struct ckt_group_cut *cut)
{
	const struct member *late;
	int64_t now_ms = ckt_net_now_ms();
	if (stand(cut, now_ms, &late)) {
		cut->phase = CUT_NAME;
		ask_all(cut, CKT_HOLD_LOOK);
		return;
	}
	if (!late || now_ms - cut->began_ms < (cut->ranked ? MEET_MS : DRAIN_MS)) {
		ckt_timer_set(&cut->server->loop, &cut->timer, LOOK_MS);
		return;
	}
	give_up(cut, "session %s had work left while its group stood still: %.300s", late->id,
		*late->message ? late->message : "it does not end");
	abandon(cut);
}

static void copy(struct ckt_group_cut *cut)
{
	bool all = true;
	for (unsigned i = 0; i < cut->count; i++)
		all = all && (cut->members[i].copied || cut->members[i].saved);
	if (all)
		let_go(cut);
	else if (cut->held)
		ckt_timer_set(&cut->server->loop, &cut->timer, LOOK_MS);
}

static void step(struct ckt_group_cut *cut)
{
	if (cut->phase == CUT_COUNT)
		return;
	if (*cut->why)
		abandon(cut);
	else if (cut->phase == CUT_DRAIN)
		drain(cut);
	else if (cut->phase == CUT_NAME)
		save_all(cut);
	else
		copy(cut);
}

/* From here on the cut counts, whatever happens to this server. */
static void count_all(struct ckt_group_cut *cut)
{
	ckt_fault(CKT_FAULT_CUT_SAVED);
	cut->phase = CUT_COUNT;
	struct ckt_automatic_chain *chains[CKT_CHAIN_MEMBERS_MAX];
	unsigned count = cut->count;
	ckt_timer_clear(&cut->timer);
	let_go(cut);
	for (unsigned i = 0; i < count; i++) {
		cut->members[i].working = true;
		chains[i] = cut->members[i].chain;
	}
	/* With the last one the cut is over. */
	for (unsigned i = 0; i < count; i++)
		ckt_automatic_image_count(chains[i]);
}

static struct member *chain_member(const struct ckt_automatic_chain *chain)
{
	struct ckt_group_cut *cut = chain->cut;
	unsigned i = 0;
	while (cut->members[i].chain != chain)
		i++;
	return &cut->members[i];
}

void ckt_group_cut_saved(struct ckt_automatic_chain *chain, bool good)
{
	struct ckt_group_cut *cut = chain->cut;
	struct member *one = chain_member(chain);
	one->working = false;
	one->saved = good;
	if (good)
		ckt_fault(CKT_FAULT_CUT_NEXT);
	else
		give_up(cut, "no image of session %s: %s", one->id,
			*chain->problem ? chain->problem : "its worker is gone");
	/* While it asks, the last answer goes on. */
	if (*cut->why && !cut->asked)
		abandon(cut);
	else if (!*cut->why && !works(cut))
		count_all(cut);
}

void ckt_group_cut_counted(struct ckt_automatic_chain *chain)
{
	struct ckt_group_cut *cut = chain->cut;
	chain_member(chain)->working = false;
	if (!works(cut))
		over(cut);
}

void ckt_group_cut_name(const struct ckt_automatic_chain *chain, struct ckt_chain_state *state)
{
	const struct ckt_group_cut *cut = chain->cut;
	state->shared = false;
	memcpy(state->cut, cut->id, sizeof state->cut);
	state->member_count = cut->count;
	for (unsigned i = 0; i < cut->count; i++)
		strcpy(state->members[i], cut->members[i].id);
}

void ckt_group_cut_leave(struct ckt_automatic_chain *chain)
{
	struct ckt_group_cut *cut = chain->cut;
	struct member *one = chain_member(chain);
	one->session = NULL;
	if (cut->phase != CUT_COUNT)
		give_up(cut, "the worker of session %s ended", one->id);
	if (cut->phase != CUT_COUNT && !cut->asked)
		abandon(cut);
}

bool ckt_group_cut_has(const char *session)
{
	for (const struct ckt_group_cut *cut = cuts; cut; cut = cut->next)
		for (unsigned i = 0; i < cut->count && cut->phase != CUT_OVER; i++)
			if (strcmp(cut->members[i].id, session) == 0)
				return true;
	return false;
}

void ckt_group_cut_fini(void)
{
	while (cuts)
		cut_free(cuts);
}

/* ---- Its beginning */

/* Sorted, as the states have them. */
static bool collect(struct ckt_session *session, const char *id, void *context)
{
	struct ckt_group_cut *cut = context;
	unsigned at = cut->count;
	if (cut->count == CKT_CHAIN_MEMBERS_MAX) {
		give_up(cut, "the group has more than %d sessions", CKT_CHAIN_MEMBERS_MAX);
		return false;
	}
	for (; at && strcmp(cut->members[at - 1].id, id) > 0; at--)
		cut->members[at] = cut->members[at - 1];
	cut->members[at] =
		(struct member){.session = session, .chain = session ? session->chain : NULL};
	snprintf(cut->members[at].id, sizeof cut->members[at].id, "%.12s", id);
	cut->count++;
	return true;
}

/* Whether it can be held now; if not for longer, the cut says why. */
static bool is_free(struct ckt_group_cut *cut, const struct member *one)
{
	struct ckt_session *session = one->session;
	struct ckt_decision decision;
	if (!session)
		give_up(cut, "the worker of session %s is gone, and its client has not come back",
			one->id);
	else if (session->phase == CKT_SESSION_LIVE && !one->chain)
		give_up(cut, "the client of session %s does not ask for images", one->id);
	if (!session || !one->chain || session->phase != CKT_SESSION_LIVE)
		return false;
	ckt_ask_save(session, NULL, false, &decision);
	return !decision.answer && !session->holder && !session->job_hold && !session->preloader &&
		!one->chain->sleeper && !one->chain->busy && !one->chain->committing &&
		!one->chain->cut;
}

static bool is_covered(const struct ckt_chain_state *state, const struct ckt_group_cut *cut)
{
	bool alone = cut->count == 1;
	bool same = !state->shared && state->member_count == (alone ? 0 : cut->count);
	if (alone)
		return same;
	for (unsigned i = 0; i < cut->count && same; i++)
		same = strcmp(state->members[i], cut->members[i].id) == 0;
	return same;
}

bool ckt_group_is_covered(struct ckt_automatic_chain *chain)
{
	struct ckt_group_cut cut = {.count = 0};
	return chain->session && ckt_group_each(chain->session, collect, &cut) &&
		is_covered(&chain->state, &cut);
}

/* False: not now. */
static bool begin(struct ckt_group_cut *cut)
{
	for (unsigned i = 0; i < cut->count; i++)
		if (!is_free(cut, &cut->members[i]))
			return false;
	if (getrandom(cut->id, sizeof cut->id, 0) != sizeof cut->id)
		return false;
	for (unsigned i = 0; i < cut->count; i++) {
		struct ckt_automatic_chain *chain = cut->members[i].chain;
		chain->cut = cut;
		cut->ranked |= ckt_group_has_ranks(cut->members[i].session);
		ckt_timer_clear(&chain->timer);
	}
	cut->began_ms = ckt_net_now_ms();
	ckt_job_cut_begin(&cut->meeting, cut->began_ms);
	cut->timer.fire = look_again;
	cut->held = true;
	cut->next = cuts;
	cuts = cut;
	ask_all(cut, CKT_HOLD_STOP);
	return true;
}

bool ckt_group_cut_take(struct ckt_automatic_chain *chain, bool has_news)
{
	struct ckt_group_cut *cut = calloc(1, sizeof *cut);
	if (!cut)
		return true;
	cut->server = chain->server;
	bool good = ckt_group_each(chain->session, collect, cut);
	if (good && cut->count == 1) {
		chain->shares = false;
		free(cut);
		return false;
	}
	if (good && !has_news && is_covered(&chain->state, cut)) {
		free(cut);
		return true;
	}
	if (good && begin(cut))
		return true;
	if (*cut->why)
		ckt_automatic_failed(chain, cut->why);
	free(cut);
	return true;
}

/* ---- After a server's death */

/* The state that names the cut of that one, of another member, in `state` or in `state.next`. */
static bool has_cut(struct ckt_server *server, const char *id, const struct ckt_chain_state *wanted,
	bool *ret_next)
{
	struct ckt_chain_state state;
	int fd = ckt_chain_open(server->automatic->dir_fd, id, false);
	bool found = false;
	for (int next = 0; next < 2 && !found && fd >= 0; next++) {
		int result =
			next ? ckt_chain_next_read(fd, id, &state) : ckt_chain_read(fd, id, &state);
		*ret_next = next;
		found = !result && ckt_chain_same_cut(&state, wanted);
	}
	if (fd >= 0)
		close(fd);
	return found;
}

bool ckt_group_cut_is_whole(struct ckt_server *server, const struct ckt_chain_state *wanted,
	bool ret_next[CKT_CHAIN_MEMBERS_MAX])
{
	for (unsigned i = 0; i < wanted->member_count; i++)
		if (!has_cut(server, wanted->members[i], wanted, &ret_next[i]))
			return false;
	return true;
}

static void settle_one(struct ckt_server *server, const char *id)
{
	int fd = ckt_chain_open(server->automatic->dir_fd, id, false);
	int result = fd < 0 ? fd : ckt_chain_next_settle(fd, true);
	if (result)
		ckt_warning("session %s: cannot count its newest image: %s", id, strerror(-result));
	if (fd >= 0)
		close(fd);
}

void ckt_group_settle(struct ckt_server *server, int dir_fd, const char *session)
{
	struct ckt_chain_state wanted;
	bool next[CKT_CHAIN_MEMBERS_MAX] = {false};
	/* Where this one's own is the state already, another's may not be. */
	if (ckt_chain_next_read(dir_fd, session, &wanted) &&
		ckt_chain_read(dir_fd, session, &wanted))
		return;
	bool whole = ckt_group_cut_is_whole(server, &wanted, next);
	for (unsigned i = 0; i < wanted.member_count && whole; i++)
		if (next[i])
			settle_one(server, wanted.members[i]);
}
