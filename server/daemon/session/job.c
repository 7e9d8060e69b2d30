/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs; see job.h. */
#include "server/daemon/session/job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "server/daemon/peer/control.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/session/worker_request.h"
#include "base/log.h"

enum { CALL_MS = 5000 };

/* ---- Which sessions */

void ckt_daemon_job_of_hello(const ckt_hello_args *hello, char ret_job[CKT_JOB_NAME_MAX + 1])
{
	*ret_job = 0;
	for (u_int i = 0; i < hello->capabilities.capabilities_len; i++) {
		const char *job =
			ckt_job_of_capability(hello->capabilities.capabilities_val[i].name);
		if (job)
			strcpy(ret_job, job);
	}
}

static void adopted(struct ckt_session *session, void *context, int error, void *result)
{
	const struct ckt_worker_job_res *res = result;
	(void)context;
	/* A worker of an older version does not know jobs. */
	if (!error && ckt_job_name_good(res->job))
		strcpy(session->job, res->job);
}

void ckt_daemon_job_adopt(struct ckt_session *session)
{
	int result = ckt_session_call(session, CKT_WORKER_JOB, NULL, NULL, -1,
		(xdrproc_t)xdr_ckt_worker_job_res, sizeof(struct ckt_worker_job_res), CALL_MS,
		adopted, NULL);
	if (result)
		ckt_debug("session %s: its worker does not report its job: %s", session->id,
			strerror(-result));
}

static bool is_of(const struct ckt_session *session, const struct ckt_peer *peer, const char *job)
{
	return strcmp(session->job, job) == 0 && ckt_peer_may_session(peer, session);
}

/*
 * The caller's own job of that name if there is one; else, for privileged callers, the only one
 * that has it.  False: the reason is in buffer.
 */
static bool find_owner(const struct ckt_peer *peer, const char *job, uint32_t *ret_uid,
	char buffer[CKT_MESSAGE_MAX])
{
	uint32_t own = ckt_peer_owner(peer);
	const struct ckt_session *first = NULL, *other = NULL;
	for (const struct ckt_session *session = peer->server->sessions; session;
		session = session->next) {
		if (!is_of(session, peer, job))
			continue;
		*ret_uid = session->uid;
		if (session->uid == own)
			return true;
		if (!first)
			first = session;
		else if (session->uid != first->uid)
			other = session;
	}
	if (other)
		snprintf(buffer, CKT_MESSAGE_MAX,
			"several users have a job '%s' on %s: run cricketctl as the "
			"user whose job you mean",
			job, peer->server->host);
	else if (!first)
		snprintf(buffer, CKT_MESSAGE_MAX,
			"there is no session of a job '%s' on %s, or it belongs to "
			"another user: see cricketctl ps",
			job, peer->server->host);
	return first && !other;
}

void ckt_control_jobs(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_list_args *args = decoded;
	ckt_control_job *sessions = calloc(CKT_CONTROL_LIST_MAX, sizeof *sessions);
	ckt_control_jobs_res res = {.sessions = {0, sessions}};
	(void)passed_fd;
	for (struct ckt_session *session = peer->server->sessions; sessions && session;
		session = session->next) {
		if (!*session->job || strcmp(session->id, args->after) <= 0 ||
			!ckt_peer_may_session(peer, session))
			continue;
		if (res.sessions.sessions_len < CKT_CONTROL_LIST_MAX)
			sessions[res.sessions.sessions_len++] =
				(ckt_control_job){session->id, session->job};
		else
			res.more = true;
	}
	if (sessions)
		ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_jobs_res, &res);
	else
		ckt_peer_close(peer);
	free(sessions);
}

/* ---- Asking all workers of a job at one time */

struct round {
	struct ckt_peer *peer;
	unsigned asked; /* answers to come, and one for the asking itself */
	enum { ROUND_HOLD, ROUND_LOOK, ROUND_END } kind;
	char failure[CKT_MESSAGE_MAX]; /* the first reason why a session cannot be held */
};

static bool holds(const struct ckt_peer *peer, const struct ckt_session *session)
{
	return session->job_hold && session->job_hold->peer == peer;
}

static void forget(struct ckt_session *session)
{
	free(session->job_hold);
	session->job_hold = NULL;
}

static void let_go_done(struct ckt_session *session, void *context, int error, void *result)
{
	(void)context, (void)result;
	if (error)
		ckt_warning("session %s: cannot let it continue with its job: %s", session->id,
			strerror(-error));
}

static int ask(struct ckt_session *session, ckt_hold_action action, uint64_t commands,
	uint64_t issued, ckt_request_done done, void *context)
{
	struct ckt_worker_hold_args args = {
		.action = action, .commands = commands, .issued = issued};
	return ckt_session_call(session, CKT_WORKER_HOLD, (xdrproc_t)xdr_ckt_worker_hold_args,
		&args, -1, (xdrproc_t)xdr_ckt_worker_hold_res, sizeof(struct ckt_worker_hold_res),
		CALL_MS, done, context);
}

static void let_go(struct ckt_session *session)
{
	forget(session);
	if (session->phase == CKT_SESSION_LIVE)
		ask(session, CKT_HOLD_END, 0, 0, let_go_done, NULL);
}

static void let_all_go(struct ckt_peer *peer)
{
	for (struct ckt_session *session = peer->server->sessions; session; session = session->next)
		if (holds(peer, session))
			let_go(session);
	peer->holds_job = false;
}

void ckt_daemon_job_peer_gone(struct ckt_peer *peer)
{
	if (peer->holds_job)
		ckt_info("%s: no connection holds its job any more: the sessions continue",
			peer->who.text);
	let_all_go(peer);
}

/* Strings stay the sessions'. */
static void round_reply(struct round *round)
{
	struct ckt_peer *peer = round->peer;
	ckt_control_rank *ranks = calloc(CKT_CONTROL_JOB_SESSIONS, sizeof *ranks);
	ckt_control_job_res res = {.result = {CKT_CONTROL_OK, round->failure}, .ranks = {0, ranks}};
	memcpy(res.key, peer->job_key, sizeof res.key);
	if (*round->failure)
		res.result.status = CKT_CONTROL_REFUSED;
	for (struct ckt_session *session = peer->server->sessions; ranks && session;
		session = session->next) {
		const struct ckt_job_hold *hold = session->job_hold;
		if (!holds(peer, session) || res.ranks.ranks_len == CKT_CONTROL_JOB_SESSIONS)
			continue;
		ranks[res.ranks.ranks_len++] = (ckt_control_rank){.session = session->id,
			.program_name = session->status.program_name,
			.client = session->status.client,
			.client_pid = session->status.client_pid,
			.gpu = session->status.gpu,
			.memory_bytes = session->status.memory_bytes,
			.held = !hold->lost,
			.drained = hold->drained,
			.copied = hold->copied,
			.commands = hold->commands,
			.issued = hold->issued,
			.executed = hold->executed,
			.message = (char *)hold->message};
	}
	if (ranks)
		ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_job_res, &res);
	free(ranks);
	if (!ranks)
		ckt_peer_close(peer);
}

static void round_answered(struct round *round)
{
	struct ckt_peer *peer = round->peer;
	if (--round->asked)
		return;
	if (ckt_peer_release(peer)) {
		/* All or none. */
		if (*round->failure)
			let_all_go(peer);
		round_reply(round);
		if (!peer->gone && round->kind == ROUND_END) {
			for (struct ckt_session *session = peer->server->sessions; session;
				session = session->next)
				if (holds(peer, session))
					forget(session);
			peer->holds_job = false;
		}
	}
	free(round);
}

static void answered(struct ckt_session *session, void *context, int error, void *answer)
{
	struct round *round = context;
	struct ckt_job_hold *hold = session->job_hold;
	const struct ckt_worker_hold_res *res = answer;
	bool failed = error || res->status;
	if (failed && round->kind == ROUND_HOLD && !*round->failure)
		snprintf(round->failure, sizeof round->failure,
			"cannot hold session %s with its job: %.400s", session->id,
			error == -EPROTO ? "its worker is of an older version"
				: error  ? ckt_daemon_request_problem(error)
					 : res->message);
	if (hold && (failed || (!res->held && round->kind != ROUND_END)))
		hold->lost = true;
	if (hold && !failed) {
		hold->drained = res->drained;
		hold->copied = res->copied;
		hold->commands = res->commands;
		hold->issued = res->issued;
		hold->executed = res->executed;
		snprintf(hold->message, sizeof hold->message, "%s", res->message);
	}
	round_answered(round);
}

static void round_ask(struct round *round, struct ckt_session *session, ckt_hold_action action,
	uint64_t commands, uint64_t issued)
{
	round->asked++;
	int error = session->phase == CKT_SESSION_LIVE
		? ask(session, action, commands, issued, answered, round)
		: -ESRCH;
	if (error)
		answered(session, round, error, NULL);
}

static struct round *round_new(struct ckt_peer *peer, int kind)
{
	struct round *round = calloc(1, sizeof *round);
	if (!round) {
		ckt_peer_close(peer);
		return NULL;
	}
	round->peer = peer;
	round->kind = kind;
	round->asked = 1;
	ckt_peer_hold(peer);
	return round;
}

/* ---- The calls */

/* Why the session cannot be held; NULL if it can. */
static const char *obstacle(const struct ckt_session *session)
{
	if (session->phase != CKT_SESSION_LIVE)
		return "is starting or ending";
	return session->holder || session->job_hold ? "is held by another checkpoint or migration"
						    : NULL;
}

/* 0 or -errno: then none is held. */
static int take_all(
	struct ckt_peer *peer, const char *job, uint32_t uid, char buffer[CKT_MESSAGE_MAX])
{
	unsigned count = 0;
	for (struct ckt_session *session = peer->server->sessions; session;
		session = session->next) {
		if (!is_of(session, peer, job) || session->uid != uid)
			continue;
		const char *why = obstacle(session);
		if (why || ++count > CKT_CONTROL_JOB_SESSIONS) {
			snprintf(buffer, CKT_MESSAGE_MAX, "job '%s': session %s %s: try again", job,
				session->id, why ? why : "exceeds the number of sessions in a job");
			return -EBUSY;
		}
	}
	if (getrandom(peer->job_key, sizeof peer->job_key, 0) != sizeof peer->job_key)
		return -EIO;
	for (struct ckt_session *session = peer->server->sessions; session;
		session = session->next) {
		if (!is_of(session, peer, job) || session->uid != uid)
			continue;
		session->job_hold = calloc(1, sizeof *session->job_hold);
		if (!session->job_hold)
			return -ENOMEM;
		session->job_hold->peer = peer;
	}
	return 0;
}

static void refuse(struct ckt_peer *peer, char *why)
{
	ckt_control_job_res res = {.result = {CKT_CONTROL_REFUSED, why}};
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_job_res, &res);
}

void ckt_control_job_hold(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_job_args *args = decoded;
	char buffer[CKT_MESSAGE_MAX] = "";
	uint32_t uid = CKT_UID_UNKNOWN;
	(void)passed_fd;
	if (peer->holds_job)
		snprintf(buffer, sizeof buffer, "this connection already holds a job");
	else if (!ckt_job_name_good(args->job))
		snprintf(buffer, sizeof buffer,
			"not a job name: use at most %d letters, digits and . _ : -, "
			"with a letter or digit first",
			CKT_JOB_NAME_MAX);
	else if (find_owner(peer, args->job, &uid, buffer)) {
		int error = take_all(peer, args->job, uid, buffer);
		if (error && !*buffer)
			snprintf(buffer, sizeof buffer, "cannot hold job '%s': %s", args->job,
				strerror(-error));
		if (*buffer)
			for (struct ckt_session *session = peer->server->sessions; session;
				session = session->next)
				if (holds(peer, session))
					forget(session);
	}
	if (*buffer) {
		refuse(peer, buffer);
		return;
	}
	struct round *round = round_new(peer, ROUND_HOLD);
	peer->holds_job = true;
	for (struct ckt_session *session = peer->server->sessions; round && session;
		session = session->next)
		if (holds(peer, session))
			round_ask(round, session, CKT_HOLD_STOP, 0, 0);
	if (round)
		round_answered(round);
}

static const ckt_control_step *find_step(const ckt_control_job_look_args *args, const char *session)
{
	for (u_int i = 0; i < args->steps.steps_len; i++)
		if (strcmp(args->steps.steps_val[i].session, session) == 0)
			return &args->steps.steps_val[i];
	return NULL;
}

void ckt_control_job_look(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_job_look_args *args = decoded;
	(void)passed_fd;
	if (!peer->holds_job) {
		refuse(peer, (char *)"this connection does not hold a job");
		return;
	}
	struct round *round = round_new(peer, ROUND_LOOK);
	for (struct ckt_session *session = peer->server->sessions; round && session;
		session = session->next) {
		if (!holds(peer, session))
			continue;
		const ckt_control_step *step = find_step(args, session->id);
		round_ask(round, session, step ? CKT_HOLD_STEP : CKT_HOLD_LOOK,
			step ? step->commands : 0, step ? step->issued : 0);
	}
	if (round)
		round_answered(round);
}

void ckt_control_job_end(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	(void)decoded, (void)passed_fd;
	if (!peer->holds_job) {
		refuse(peer, (char *)"this connection does not hold a job");
		return;
	}
	struct round *round = round_new(peer, ROUND_END);
	for (struct ckt_session *session = peer->server->sessions; round && session;
		session = session->next)
		if (holds(peer, session))
			round_ask(round, session, CKT_HOLD_END, 0, 0);
	if (round)
		round_answered(round);
}

/* ---- The key */

void ckt_control_job_key(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	const ckt_control_job_key_args *args = decoded;
	ckt_control_result result = {CKT_CONTROL_OK, (char *)""};
	(void)passed_fd;
	memcpy(peer->job_key_shown, args->key, sizeof peer->job_key_shown);
	peer->shows_job_key = true;
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_result, &result);
}

bool ckt_daemon_job_is_foreign(const struct ckt_session *session, const struct ckt_peer *peer)
{
	const struct ckt_job_hold *hold = session->job_hold;
	unsigned differ = 0;
	if (!hold || hold->peer == peer)
		return false;
	for (size_t i = 0; i < sizeof peer->job_key_shown; i++)
		differ |= (unsigned char)(peer->job_key_shown[i] ^ hold->peer->job_key[i]);
	return !peer->shows_job_key || differ;
}
