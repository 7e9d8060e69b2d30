/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pauses: the worker releases its GPU memory and its client's calls wait.
 *
 *	PAUSE -> worker PAUSE -> SOCKET.d/SESSION.paused says until when (a server started again goes by it) -> timer -> worker UNPAUSE
 *
 * A session whose memory is taken meanwhile stays paused; where a time had been said, it is tried
 * again until the memory is there.
 */
#include <errno.h>
#include <stdlib.h>

#include "server/daemon/peer/control.h"
#include "server/daemon/events.h"
#include "server/daemon/policy/ask.h"
#include "server/daemon/session/session_marks.h"
#include "server/daemon/session/pause.h"
#include "server/daemon/session/worker_request.h"
#include "base/clock.h"
#include "base/fault_point.h"
#include "base/log.h"

enum { RETRY_MS = 10000, STATUS_TIMEOUT_MS = 2000, UNPAUSE_MS = 4000 };

static void bytes_reply(struct ckt_peer *peer, const char *session,
	const ckt_control_result *result, uint64_t bytes)
{
	ckt_control_bytes_res res = {.result = *result, .session = (char *)session, .bytes = bytes};
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_bytes_res, &res);
}

/* NULL: already answered. */
static struct ckt_session *select_allowed(struct ckt_peer *peer, const char *prefix,
	void (*ask)(const struct ckt_session *session, struct ckt_decision *ret_decision))
{
	char buffer[CKT_MESSAGE_MAX];
	struct ckt_decision decision;
	ckt_control_result result = {0};
	struct ckt_session *session = ckt_control_select(peer, prefix, &result, buffer);
	if (session) {
		ask(session, &decision);
		if (!decision.answer)
			return session;
		result = (ckt_control_result){CKT_CONTROL_REFUSED, decision.reason};
	}
	bytes_reply(peer, "", &result, 0);
	return NULL;
}

/* A worker pauses and goes on in the order in which it is asked. */
struct ckt_session_pause {
	struct ckt_session_pause *next;
	struct ckt_peer *peer;
	int64_t until;
};

/*
 * Says what is so, or will be soon: a server that dies before the worker tells leaves no session
 * paused for ever.
 */
static int mark(struct ckt_session *session)
{
	char text[32];
	const struct ckt_session_pause *asked = session->pause.asked;
	bool paused = session->metrics.paused || asked;
	int64_t until = session->metrics.paused ? session->pause.until : asked ? asked->until : 0;
	if (session->pause.marked == paused && session->pause.marked_until == until)
		return 0;
	int error = 0;
	snprintf(text, sizeof text, "%lld", (long long)until);
	if (paused)
		error = ckt_session_mark_write(session->server, session->id, CKT_MARK_PAUSED,
			session->uid, session->proven, text);
	else
		ckt_session_mark_remove(session->server, session->id, CKT_MARK_PAUSED, 0);
	if (!error) {
		session->pause.marked = paused;
		session->pause.marked_until = until;
	}
	return error;
}

static void mark_or_warn(struct ckt_session *session)
{
	int error = mark(session);
	if (error)
		ckt_warning("session %s: its pause is not written down: %s", session->id,
			strerror(-error));
}

/* ---- Going on */

static void unpause_late(struct ckt_timer *timer);

static void set_timer(struct ckt_session *session, int64_t until)
{
	int64_t delay_s = until - time(NULL);
	session->pause_timer.fire = unpause_late;
	ckt_timer_set(
		&session->server->loop, &session->pause_timer, delay_s < 0 ? 0 : delay_s * 1000);
}

/* Writes the sentence for a failure to buffer. */
static bool unpaused(struct ckt_session *session, int error, const struct ckt_worker_result *res,
	char buffer[CKT_MESSAGE_MAX])
{
	if (!error && !res->status) {
		ckt_timer_clear(&session->pause_timer);
		session->metrics.paused = false;
		mark_or_warn(session);
		ckt_daemon_event(
			session, CKT_EVENT_RESUMED, "%llu bytes", (unsigned long long)res->bytes);
		return true;
	}
	if (!error && res->status == -ENOMEM)
		snprintf(buffer, CKT_MESSAGE_MAX,
			"session %s stays paused: the GPU lacks %llu bytes of free "
			"memory",
			session->id, (unsigned long long)res->bytes);
	else
		snprintf(buffer, CKT_MESSAGE_MAX, "session %s: %.400s", session->id,
			error ? ckt_daemon_request_problem(error) : res->message);
	return false;
}

static void timed_done(struct ckt_session *session, void *context, int error, void *answer)
{
	char buffer[CKT_MESSAGE_MAX] = "";
	(void)context;
	if (unpaused(session, error, answer, buffer))
		return;
	ckt_warning("%s", buffer);
	/* After another caller's resume nothing remains to do. */
	struct ckt_worker_result *res = answer;
	if (error || res->status != -EINVAL) {
		ckt_timer_set(&session->server->loop, &session->pause_timer, RETRY_MS);
	} else {
		session->metrics.paused = false;
		mark_or_warn(session);
	}
}

static int call_unpause(struct ckt_session *session, ckt_request_done done, void *context)
{
	return ckt_session_call_long(session, CKT_WORKER_UNPAUSE, NULL, NULL, -1,
		(xdrproc_t)xdr_ckt_worker_result, sizeof(struct ckt_worker_result), UNPAUSE_MS,
		done, context);
}

static void unpause_late(struct ckt_timer *timer)
{
	struct ckt_session *session = CKT_CONTAINER(timer, struct ckt_session, pause_timer);
	if (session->phase == CKT_SESSION_LIVE && call_unpause(session, timed_done, NULL))
		ckt_timer_set(&session->server->loop, timer, RETRY_MS);
}

static void unpause_done(struct ckt_session *session, void *context, int error, void *answer)
{
	struct ckt_peer *peer = context;
	struct ckt_worker_result *res = answer;
	char buffer[CKT_MESSAGE_MAX] = "";
	ckt_control_result result = {CKT_CONTROL_OK, buffer};
	if (!unpaused(session, error, res, buffer))
		result.status = CKT_CONTROL_REFUSED;
	if (ckt_peer_release(peer))
		bytes_reply(peer, session->id, &result, error ? 0 : res->bytes);
}

void ckt_control_unpause(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_session_args *args = decoded;
	struct ckt_session *session = select_allowed(peer, args->session, ckt_ask_resume);
	(void)passed_fd;
	if (!session)
		return;
	ckt_peer_hold(peer);
	int error = call_unpause(session, unpause_done, peer);
	if (error)
		unpause_done(session, peer, error, NULL);
}

void ckt_daemon_pause_adopt(struct ckt_session *session)
{
	char text[64];
	uint32_t owner;
	if (!ckt_session_mark_read(
		    session->server, session->id, CKT_MARK_PAUSED, &owner, text, sizeof text))
		return;
	int64_t until = strtoll(text, NULL, 10);
	session->metrics.paused = true;
	session->pause.until = session->pause.marked_until = until;
	session->pause.marked = true;
	ckt_info("session %s: paused%s", session->id, until ? ", and resumes at its time" : "");
	if (until)
		set_timer(session, until);
}

/* ---- Pausing */

static void append(struct ckt_session *session, struct ckt_session_pause *pause)
{
	struct ckt_session_pause **place = &session->pause.asked;
	while (*place)
		place = &(*place)->next;
	*place = pause;
}

static void unlink_pause(struct ckt_session *session, struct ckt_session_pause *pause)
{
	struct ckt_session_pause **place = &session->pause.asked;
	while (*place != pause)
		place = &(*place)->next;
	*place = pause->next;
}

static void pause_done(struct ckt_session *session, void *context, int error, void *answer)
{
	struct ckt_session_pause *pause = context;
	struct ckt_worker_result *res = answer;
	char buffer[CKT_MESSAGE_MAX] = "", text[32];
	ckt_control_result result = {CKT_CONTROL_OK, buffer};
	ckt_fault(CKT_FAULT_SERVER_PAUSED);
	unlink_pause(session, pause);
	if (error || res->status) {
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED, "session %s: %.400s",
			session->id, error ? ckt_daemon_request_problem(error) : res->message);
	} else {
		snprintf(text, sizeof text, "%lld", (long long)pause->until);
		session->metrics.paused = true;
		session->pause.until = pause->until;
		ckt_daemon_event(session, CKT_EVENT_PAUSED, "%llu bytes%s%s",
			(unsigned long long)res->bytes, pause->until ? " until " : "",
			pause->until ? text : "");
		if (pause->until)
			set_timer(session, pause->until);
	}
	mark_or_warn(session);
	if (ckt_peer_release(pause->peer))
		bytes_reply(pause->peer, session->id, &result, error ? 0 : res->bytes);
	free(pause);
}

/* Its memory would stay, and others would have its addresses. */
static void refuse_together(struct ckt_peer *peer, const struct ckt_session *session)
{
	char buffer[CKT_MESSAGE_MAX];
	ckt_control_result result;
	ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED,
		"session %s shares memory with other sessions: cricketctl swap out moves all of them off the GPU",
		session->id);
	bytes_reply(peer, session->id, &result, 0);
}

void ckt_control_pause(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_pause_args *args = decoded;
	struct ckt_session *session = select_allowed(peer, args->session, ckt_ask_pause);
	struct ckt_session_pause *pause = session ? calloc(1, sizeof *pause) : NULL;
	struct ckt_worker_pause_args call = {.deadline_ms = args->deadline_ms};
	(void)passed_fd;
	if (!session)
		return;
	ckt_quantum_facts(session->server, ckt_now_ns());
	if (session->quantum.together) {
		refuse_together(peer, session);
		free(pause);
		return;
	}
	int error = pause ? 0 : -ENOMEM;
	if (!error) {
		*pause = (struct ckt_session_pause){.peer = peer, .until = args->until};
		append(session, pause);
		error = mark(session);
		if (!error)
			error = ckt_session_call_long(session, CKT_WORKER_PAUSE,
				(xdrproc_t)xdr_ckt_worker_pause_args, &call, -1,
				(xdrproc_t)xdr_ckt_worker_result, sizeof(struct ckt_worker_result),
				call.deadline_ms, pause_done, pause);
		if (!error) {
			ckt_peer_hold(peer);
			return;
		}
		unlink_pause(session, pause);
		mark_or_warn(session);
		free(pause);
	}
	ckt_control_result result = {CKT_CONTROL_REFUSED, strerror(-error)};
	bytes_reply(peer, session->id, &result, 0);
}

/* ---- Progress */

static void progress_done(struct ckt_session *session, void *context, int error, void *answer)
{
	struct ckt_peer *peer = context;
	struct ckt_worker_progress_res *progress = answer;
	ckt_control_progress_res res = {
		.result = {CKT_CONTROL_OK, (char *)""}, .phase = (char *)""};
	(void)session;
	if (!ckt_peer_release(peer))
		return;
	if (error) {
		res.result = (ckt_control_result){CKT_CONTROL_REFUSED, strerror(-error)};
	} else {
		res.phase = progress->phase;
		res.done_bytes = progress->done_bytes;
		res.total_bytes = progress->total_bytes;
	}
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_progress_res, &res);
}

/* Until it is restored, other processes do not know the session's name. */
static struct ckt_session *find_restoring(struct ckt_peer *peer)
{
	for (struct ckt_session *session = peer->server->sessions; session; session = session->next)
		if (session->restore && session->phase == CKT_SESSION_STARTING &&
			ckt_peer_may_session(peer, session))
			return session;
	return NULL;
}

void ckt_control_progress(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_session_args *args = decoded;
	char buffer[CKT_MESSAGE_MAX];
	ckt_control_progress_res res = {
		.result = {CKT_CONTROL_OK, (char *)""}, .phase = (char *)""};
	struct ckt_session *session = *args->session
		? ckt_control_select(peer, args->session, &res.result, buffer)
		: find_restoring(peer);
	(void)passed_fd;
	int error = !session ? 0
			     : ckt_session_call(session, CKT_WORKER_PROGRESS, NULL, NULL, -1,
				       (xdrproc_t)xdr_ckt_worker_progress_res,
				       sizeof(struct ckt_worker_progress_res), STATUS_TIMEOUT_MS,
				       progress_done, peer);
	if (session && !error) {
		ckt_peer_hold(peer);
		return;
	}
	if (session)
		ckt_control_result_set(&res.result, buffer, CKT_CONTROL_REFUSED, "session %s: %s",
			session->id, strerror(-error));
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_progress_res, &res);
}
