/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images of sessions that may be held frozen, chains of images, and what becomes of a held session.
 *
 *	SAVE hold -> frozen -> RELEASE end=false, or the connection that asked goes away -> goes on here
 *	                    -> RELEASE end=true -> the mark "parked" or "moved" is written, then the worker ends
 *
 * The marks come first, so that a client which loses its connection never meets a server that knows
 * nothing of its session.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "checkpoint/format/broker.h"
#include "server/daemon/image/image_mac.h"
#include "server/daemon/peer/control.h"
#include "server/daemon/peer/peer_audit.h"
#include "server/daemon/events.h"
#include "server/daemon/policy/ask.h"
#include "server/daemon/session/job.h"
#include "server/daemon/image/memory_images.h"
#include "server/daemon/metrics/counters.h"
#include "server/daemon/session/session_marks.h"
#include "server/daemon/session/restore_claim.h"
#include "server/daemon/session/worker_request.h"
#include "base/fault_point.h"
#include "base/log.h"
#include "server/daemon/image/stage.h"

enum { RELEASE_TIMEOUT_MS = 60000, STATUS_TIMEOUT_MS = 10000 };

/* ---- Held sessions */

static void let_go_done(struct ckt_session *session, void *context, int error, void *answer)
{
	struct ckt_worker_result *res = answer;
	(void)context;
	if (error || res->status)
		ckt_warning("session %s: cannot let it continue: %s", session->id,
			error ? strerror(-error) : res->message);
	else
		ckt_info("session %s: continues: no connection holds it any more", session->id);
}

void ckt_daemon_image_let_go(struct ckt_session *session)
{
	struct ckt_worker_release_args args = {.message = (char *)"", .moved_to = (char *)""};
	session->holder = NULL;
	ckt_session_mark_remove(session->server, session->id, CKT_MARK_PARKED, session->uid);
	ckt_session_mark_remove(session->server, session->id, CKT_MARK_MOVED, session->uid);
	/* A copy on another GPU of this server was to replace it. */
	for (struct ckt_session *other = session->server->sessions; other; other = other->next)
		if (strcmp(other->successor_of, session->id) == 0)
			ckt_session_kill(other, "the session that it was to replace continues");
	if (session->phase == CKT_SESSION_LIVE)
		ckt_session_call(session, CKT_WORKER_RELEASE,
			(xdrproc_t)xdr_ckt_worker_release_args, &args, -1,
			(xdrproc_t)xdr_ckt_worker_result, sizeof(struct ckt_worker_result),
			RELEASE_TIMEOUT_MS, let_go_done, NULL);
}

/* The server opens a stage's files, but not after the call or its peer has ended. */
static void drop_broker(struct ckt_peer *peer)
{
	ckt_broker_stop(peer->broker);
	peer->broker = NULL;
}

static void drop_images(struct ckt_peer *peer)
{
	for (unsigned i = 0; i < peer->image_count; i++)
		close(peer->images[i]);
	free(peer->images);
	peer->images = NULL;
	peer->image_count = 0;
}

void ckt_daemon_image_peer_gone(struct ckt_peer *peer)
{
	for (struct ckt_session *session = peer->server->sessions; session; session = session->next)
		if (session->holder == peer)
			ckt_daemon_image_let_go(session);
	for (struct ckt_session *session = peer->server->sessions; session; session = session->next)
		if (session->preloader == peer && session->phase == CKT_SESSION_STARTING)
			ckt_session_kill(
				session, "the connection that moved a session here has ended");
	drop_broker(peer);
	drop_images(peer);
}

/* ---- Save */

struct save {
	struct ckt_peer *peer;
	bool hold;
	struct ckt_memory_image *kept; /* in the making */
	/* Until the worker has reported the size of its session. */
	struct ckt_worker_save2_args call;
	char name[CKT_CONTROL_NAME_MAX + 1];
	/* While the stage's image gets its manifest-mac. */
	struct ckt_server *server;
	char session[CKT_SESSION_ID_SIZE + 1];
	struct ckt_worker_save2_res saved;
};

static void save_reply(struct ckt_peer *peer, const char *session, const ckt_control_result *result,
	const struct ckt_worker_save2_res *saved)
{
	ckt_control_save_res res = {.result = *result, .session = (char *)session};
	if (saved) {
		res.stale = saved->status == -ESTALE;
		memcpy(res.image, saved->image, sizeof res.image);
		res.bytes = saved->bytes;
		res.memory_bytes = saved->memory_bytes;
		res.changed_bytes = saved->changed_bytes;
		res.stopped_us = saved->stopped_us;
	}
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_save_res, &res);
}

static void save_vouched(void *context, const uint8_t *data, size_t size, const char *problem)
{
	struct save *save = context;
	struct ckt_session *session = ckt_session_find(save->server, save->session);
	char buffer[CKT_MESSAGE_MAX] = CKT_CONTROL_KEYED;
	ckt_control_result result = {CKT_CONTROL_OK, buffer};
	(void)data, (void)size;
	if (problem)
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED,
			"session %s: cannot vouch for its image: %.400s", save->session, problem);
	if (ckt_peer_release(save->peer))
		save_reply(save->peer, save->session, &result, &save->saved);
	else if (session && session->holder == save->peer)
		ckt_daemon_image_let_go(session);
	free(save);
}

/* The image in a stage of ours: the server vouches for it there.  False: nothing to do. */
static bool save_vouch(
	struct save *save, struct ckt_session *session, const struct ckt_worker_save2_res *res)
{
	struct ckt_stage *stage =
		session->server->image_keys && !save->kept && *save->name && !save->peer->gone
		? ckt_stage_find(save->peer, save->name)
		: NULL;
	if (!stage)
		return false;
	save->server = session->server;
	save->saved = *res;
	save->saved.message = (char *)"";
	snprintf(save->session, sizeof save->session, "%s", session->id);
	return ckt_image_mac_write(session, res->image, ckt_stage_fd(stage), save_vouched, save) ==
		0;
}

/* saved: NULL if it is not.  If nobody waits for the image any more, removes it. */
static void keep_in_memory(const struct save *save, const struct ckt_worker_save2_res *saved)
{
	if (saved && save->kept && !save->peer->gone)
		ckt_memory_image_commit(save->kept, saved->image);
	else
		ckt_memory_image_free(save->kept);
}

static void save_done(struct ckt_session *session, void *context, int error, void *answer)
{
	struct save *save = context;
	struct ckt_peer *peer = save->peer;
	struct ckt_worker_save2_res *res = answer;
	char buffer[CKT_MESSAGE_MAX] = "";
	ckt_control_result result = {
		CKT_CONTROL_OK, (char *)(save->kept ? "" : ckt_image_mac_saved_text(peer->server))};
	bool done = !error && !res->status;
	ckt_fault(CKT_FAULT_SERVER_SAVED);
	drop_broker(peer);
	if (!save->call.to_memory && *save->name && !peer->gone)
		ckt_stage_recount(peer, save->name);
	if (error)
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED,
			"session %s: its worker ended or failed while it wrote the "
			"image: %s",
			session->id, ckt_daemon_request_problem(error));
	else if (res->status)
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED, "session %s: %.400s",
			session->id, res->message);
	ckt_count_checkpoint(
		session->id, done, error ? 0 : res->bytes, error ? 0 : res->stopped_us);
	if (done)
		ckt_daemon_event(session, CKT_EVENT_SAVED, "%llu bytes, stopped for %llu us",
			(unsigned long long)res->bytes, (unsigned long long)res->stopped_us);
	if (done && save->hold)
		session->holder = peer;
	keep_in_memory(save, done ? res : NULL);
	if (done && save_vouch(save, session, res))
		return;
	if (ckt_peer_release(peer))
		save_reply(peer, session->id, &result, error ? NULL : res);
	else if (done && save->hold)
		ckt_daemon_image_let_go(session);
	free(save);
}

static struct save *save_new(struct ckt_peer *peer, const ckt_control_save_args *args)
{
	struct save *save = calloc(1, sizeof *save);
	if (!save)
		return NULL;
	*save = (struct save){.peer = peer,
		.hold = args->hold,
		.call = {.deadline_ms = args->deadline_ms,
			.compress = args->compress,
			.incremental = args->incremental,
			.to_memory = args->to_memory,
			.hold = args->hold,
			.keep_hashes = args->keep_hashes}};
	memcpy(save->call.base, args->base, sizeof save->call.base);
	return save;
}

/* NULL, or why the worker cannot be asked; then the caller frees the save. */
static const char *save_begin(struct ckt_session *session, struct save *save, int broker_fd)
{
	int pass_fd = save->kept ? -1 : fcntl(broker_fd, F_DUPFD_CLOEXEC, 3);
	if (!save->kept && pass_fd < 0)
		return strerror(errno);
	ckt_daemon_event(session, CKT_EVENT_FROZEN, "%s",
		save->hold ? "to be stopped or moved" : "an image is being written");
	int result = save->kept ? ckt_memory_image_send(save->kept, session) : 0;
	if (!result)
		result = ckt_session_call_long(session, CKT_WORKER_SAVE2,
			(xdrproc_t)xdr_ckt_worker_save2_args, &save->call, pass_fd,
			(xdrproc_t)xdr_ckt_worker_save2_res, sizeof(struct ckt_worker_save2_res),
			save->call.deadline_ms, save_done, save);
	return result ? strerror(-result) : NULL;
}

/* The session's size is known: this is the last moment to refuse before anything is frozen. */
static void save_measured(struct ckt_session *session, void *context, int error, void *answer)
{
	struct save *save = context;
	struct ckt_worker_status_res *status = answer;
	char buffer[CKT_MESSAGE_MAX] = "";
	const char *problem = error ? ckt_daemon_request_problem(error) : NULL;
	if (!error)
		save->kept =
			ckt_memory_image_make(save->peer, *save->name ? save->name : session->id,
				session, status->memory_bytes, buffer);
	if (save->kept)
		problem = save_begin(session, save, -1);
	if (save->kept && !problem)
		return;
	if (problem)
		snprintf(buffer, sizeof buffer, "session %s: cannot reach its worker: %s",
			session->id, problem);
	ckt_memory_image_free(save->kept);
	ckt_control_result result = {CKT_CONTROL_REFUSED, buffer};
	if (ckt_peer_release(save->peer))
		save_reply(save->peer, session->id, &result, NULL);
	free(save);
}

/*
 * Who opens the image's files: the caller with its own rights, or the server for a stage.
 * *ret_own: to be closed.
 */
static const char *save_broker(
	struct ckt_peer *peer, struct ckt_stage *stage, int passed_fd, int *ret_fd, int *ret_own)
{
	*ret_fd = passed_fd;
	if (!stage)
		return ckt_broker_is(passed_fd) ? NULL : CKT_NO_BROKER;
	int directory = ckt_stage_fd(stage),
	    result = ckt_broker_start(&directory, 1, CKT_BROKER_MAKE, &peer->broker, ret_own);
	*ret_fd = *ret_own;
	return result ? strerror(-result) : NULL;
}

void ckt_control_save(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_save_args *args = decoded;
	char buffer[CKT_MESSAGE_MAX] = "";
	ckt_control_result result = {0};
	struct ckt_session *session = ckt_control_select(peer, args->session, &result, buffer);
	struct ckt_stage *stage =
		*args->stage && !args->to_memory ? ckt_stage_find(peer, args->stage) : NULL;
	int broker_fd = -1, own_fd = -1;
	struct save *save = NULL;
	if (!session) {
		save_reply(peer, "", &result, NULL);
		return;
	}
	struct ckt_decision decision;
	ckt_ask_save(session, peer, false, &decision);
	if (decision.answer)
		snprintf(buffer, sizeof buffer, "%s", decision.reason);
	else if (*args->stage && !stage && !args->to_memory)
		snprintf(buffer, sizeof buffer, "this server has no stage '%s'", args->stage);
	else if (stage && !ckt_stage_has_room(peer, stage, session->status.memory_bytes, buffer))
		;
	else if (!(save = save_new(peer, args)))
		snprintf(buffer, sizeof buffer, "out of memory");
	if (save) {
		const char *problem = NULL;
		snprintf(save->name, sizeof save->name, "%s", args->stage);
		if (args->to_memory) {
			int error = ckt_session_call(session, CKT_WORKER_STATUS, NULL, NULL, -1,
				(xdrproc_t)xdr_ckt_worker_status_res,
				sizeof(struct ckt_worker_status_res), STATUS_TIMEOUT_MS,
				save_measured, save);
			problem = error ? strerror(-error) : NULL;
		} else {
			const char *why = save_broker(peer, stage, *passed_fd, &broker_fd, &own_fd);
			if (why)
				snprintf(buffer, sizeof buffer, "cannot save session %s: %s",
					session->id, why);
			else
				problem = save_begin(session, save, broker_fd);
			if (own_fd >= 0)
				close(own_fd);
		}
		if (!problem && !*buffer) {
			ckt_peer_hold(peer);
			return;
		}
		if (problem)
			snprintf(buffer, sizeof buffer, "session %s: cannot reach its worker: %s",
				session->id, problem);
		drop_broker(peer);
		free(save);
	}
	result = (ckt_control_result){CKT_CONTROL_REFUSED, buffer};
	save_reply(peer, session->id, &result, NULL);
}

/* ---- Release */

struct release {
	struct ckt_peer *peer;
	bool end, parked;
	char moved_to[CKT_ADDRESS_MAX + 1];
};

static void release_reply(struct release *release, ckt_control_result result)
{
	if (ckt_peer_release(release->peer))
		ckt_peer_reply(release->peer, (xdrproc_t)xdr_ckt_control_result, &result);
	free(release);
}

static void release_gone(struct ckt_session *session, void *context, int error, const char *message)
{
	(void)session, (void)error, (void)message;
	release_reply(context, (ckt_control_result){CKT_CONTROL_OK, (char *)""});
}

static void release_done(struct ckt_session *session, void *context, int error, void *answer)
{
	struct release *release = context;
	struct ckt_worker_result *res = answer;
	char buffer[CKT_MESSAGE_MAX] = "";
	ckt_control_result result = {CKT_CONTROL_OK, buffer};
	/*
	 * A worker that died or does not answer has ended, or is ended: its session is in the image
	 * or the copy, and the mark tells the client.
	 */
	if (error ? !release->end : res->status) {
		if (release->end)
			ckt_session_mark_remove(session->server, session->id,
				release->parked ? CKT_MARK_PARKED : CKT_MARK_MOVED, session->uid);
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED, "session %s: %.400s",
			session->id, error ? strerror(-error) : res->message);
		release_reply(release, result);
		return;
	}
	if (release->end && *release->moved_to)
		ckt_daemon_event(session, CKT_EVENT_MOVED, "%s", release->moved_to);
	if (release->end && ckt_session_wait_gone(session, release_gone, release) == 0)
		ckt_session_expect_end(session);
	else
		release_reply(release, result);
}

/* The mark must be on the disk before the worker first tells the client. */
static int release_mark(struct ckt_session *session, const ckt_control_release_args *args)
{
	if (!args->end)
		return 0;
	if (*args->moved_to) {
		ckt_session_mark_remove(
			session->server, session->id, CKT_MARK_PARKED, session->uid);
		return ckt_session_mark_write(session->server, session->id, CKT_MARK_MOVED,
			session->uid, session->proven, args->moved_to);
	}
	ckt_session_mark_remove(session->server, session->id, CKT_MARK_MOVED, session->uid);
	return args->parked ? ckt_session_mark_write(session->server, session->id, CKT_MARK_PARKED,
				      session->uid, session->proven, session->status.program_name)
			    : 0;
}

void ckt_control_release(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_release_args *args = decoded;
	char buffer[CKT_MESSAGE_MAX], message[CKT_MESSAGE_MAX] = "";
	ckt_control_result result = {0};
	struct ckt_session *session = ckt_control_select(peer, args->session, &result, buffer);
	struct release *release = session ? calloc(1, sizeof *release) : NULL;
	(void)passed_fd;
	struct ckt_worker_release_args call = {.end = args->end,
		.parked = args->parked,
		.message = message,
		.moved_to = args->moved_to};
	if (session && session->holder != peer) {
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED,
			"this connection does not hold session %s", session->id);
	} else if (release) {
		*release = (struct release){.peer = peer, .end = args->end, .parked = args->parked};
		snprintf(release->moved_to, sizeof release->moved_to, "%s", args->moved_to);
		snprintf(message, sizeof message, "stopped by a checkpoint on %s",
			peer->server->host);
		int error = release_mark(session, args);
		ckt_fault(CKT_FAULT_SERVER_RELEASE);
		if (!error)
			error = ckt_session_call(session, CKT_WORKER_RELEASE,
				(xdrproc_t)xdr_ckt_worker_release_args, &call, -1,
				(xdrproc_t)xdr_ckt_worker_result, sizeof(struct ckt_worker_result),
				RELEASE_TIMEOUT_MS, release_done, release);
		if (!error) {
			session->holder = NULL;
			ckt_peer_hold(peer);
			return;
		}
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED, "session %s: %s",
			session->id, strerror(-error));
	} else if (session) {
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED, "out of memory");
	}
	free(release);
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_result, &result);
}

/* ---- Quiet clients */

static void quiesce_done(struct ckt_session *session, void *context, int error, void *answer)
{
	struct ckt_peer *peer = context;
	struct ckt_worker_result *res = answer;
	char buffer[CKT_MESSAGE_MAX] = "";
	ckt_control_result result = {CKT_CONTROL_OK, buffer};
	if (error)
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED,
			"session %s: its worker cannot make its client quiet (%s): "
			"start the session with this version of Cricket",
			session->id, strerror(-error));
	else if (res->status)
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED, "session %s: %.400s",
			session->id, res->message);
	if (ckt_peer_release(peer))
		ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_result, &result);
}

void ckt_control_quiesce(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_session_args *args = decoded;
	char buffer[CKT_MESSAGE_MAX];
	ckt_control_result result = {0};
	struct ckt_session *session = ckt_control_select(peer, args->session, &result, buffer);
	(void)passed_fd;
	if (session && session->holder != peer) {
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED,
			"this connection does not hold session %s", session->id);
	} else if (session) {
		int error = ckt_session_call(session, CKT_WORKER_QUIESCE, NULL, NULL, -1,
			(xdrproc_t)xdr_ckt_worker_result, sizeof(struct ckt_worker_result),
			RELEASE_TIMEOUT_MS, quiesce_done, peer);
		if (!error) {
			ckt_peer_hold(peer);
			return;
		}
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED, "session %s: %s",
			session->id, strerror(-error));
	}
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_result, &result);
}

/* ---- Chains */

void ckt_control_image(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_image_args *args = decoded;
	struct ckt_decision decision;
	ckt_control_result result = {CKT_CONTROL_OK, (char *)""};
	if (!peer->images)
		peer->images = calloc(CKT_CONTROL_CHAIN_MAX, sizeof *peer->images);
	if (!ckt_broker_is(*passed_fd)) {
		result = (ckt_control_result){CKT_CONTROL_REFUSED, (char *)CKT_NO_BROKER};
	} else if (!peer->images || args->index != peer->image_count ||
		args->index >= CKT_CONTROL_CHAIN_MAX) {
		result = (ckt_control_result){CKT_CONTROL_REFUSED,
			(char *)"a chain has at most 64 images, passed one after the other"};
	} else {
		ckt_ask_descriptor(peer, &decision);
		if (decision.answer)
			result = (ckt_control_result){CKT_CONTROL_REFUSED, decision.reason};
	}
	if (!result.status) {
		peer->images[peer->image_count++] = *passed_fd;
		*passed_fd = -1;
	}
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_result, &result);
}

static void restore_done(struct ckt_session *session, void *context, int error, const char *message)
{
	struct ckt_peer *peer = context;
	char buffer[CKT_MESSAGE_MAX] = "";
	ckt_control_restore_res res = {
		.result = {CKT_CONTROL_OK, buffer}, .session = error ? (char *)"" : session->id};
	ckt_fault(CKT_FAULT_SERVER_RESTORED);
	drop_broker(peer);
	if (!ckt_peer_release(peer))
		return;
	if (error)
		ckt_control_result_set(&res.result, buffer, CKT_CONTROL_REFUSED, "%.500s", message);
	if (session->claim_refused)
		ckt_peer_audit_refused_late(peer);
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_restore_res, &res);
}

/* Replies when the session has started; at once if there is none, with the reason in buffer. */
static void answer_restore(
	struct ckt_peer *peer, struct ckt_session *session, char buffer[CKT_MESSAGE_MAX])
{
	if (session) {
		ckt_peer_hold(peer);
		if (ckt_session_wait_started(session, restore_done, peer) == 0)
			return;
		ckt_peer_release(peer);
		ckt_session_kill(session, "no connection waits for it");
		snprintf(buffer, CKT_MESSAGE_MAX, "out of memory");
	}
	drop_broker(peer);
	ckt_control_restore_res res = {
		.result = {CKT_CONTROL_REFUSED, buffer}, .session = (char *)""};
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_restore_res, &res);
}

/*
 * The brokers of the chain: those that the caller passed, which stay the peer's, or one of the
 * server's for all of its stages, to be closed once it is sent. 0, or an error with the reason in
 * buffer.
 */
static unsigned collect(struct ckt_peer *peer, const ckt_control_stage_args *stages, unsigned count,
	int ret_fds[CKT_CONTROL_CHAIN_MAX], int *ret_own, char buffer[CKT_MESSAGE_MAX])
{
	int directories[CKT_CONTROL_CHAIN_MAX];
	*ret_own = -1;
	if (!count && peer->image_count)
		memcpy(ret_fds, peer->images, peer->image_count * sizeof *ret_fds);
	else if (!count)
		snprintf(buffer, CKT_MESSAGE_MAX, CKT_NO_BROKER);
	if (!count)
		return peer->image_count;
	for (unsigned i = 0; i < count; i++) {
		struct ckt_stage *stage = ckt_stage_find(peer, stages[i].stage);
		if (!stage) {
			snprintf(buffer, CKT_MESSAGE_MAX, "this server has no stage '%s'",
				stages[i].stage);
			return 0;
		}
		directories[i] = ckt_stage_fd(stage);
	}
	int result = ckt_broker_start(directories, count, CKT_BROKER_READ, &peer->broker, ret_own);
	if (result) {
		snprintf(buffer, CKT_MESSAGE_MAX, "cannot open the image's files: %s",
			strerror(-result));
		return 0;
	}
	for (unsigned i = 0; i < count; i++)
		ret_fds[i] = *ret_own;
	return count;
}

/* Where the newest image of a chain lies; NULL: its files come through a broker. */
static struct ckt_stage *first_stage(
	struct ckt_peer *peer, const ckt_control_stage_args *stages, unsigned count)
{
	return count ? ckt_stage_find(peer, stages[0].stage) : NULL;
}

void ckt_control_restore2(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_restore2_args *args = decoded;
	int fds[CKT_CONTROL_CHAIN_MAX] = {-1}, own_fd = -1;
	char buffer[CKT_MESSAGE_MAX] = "";
	struct ckt_session *session;
	const char *name = args->stages.stages_len == 1
		? ckt_memory_image_name(args->stages.stages_val[0].stage)
		: NULL;
	struct ckt_memory_image *kept = name ? ckt_memory_image_find(peer, name) : NULL;
	unsigned count = name ? 0
			      : collect(peer, args->stages.stages_val, args->stages.stages_len, fds,
					&own_fd, buffer);
	(void)passed_fd;
	if (name && !kept)
		snprintf(buffer, sizeof buffer,
			"there is no image '%.57s' in memory on %s, or it belongs to "
			"another user",
			ckt_stage_name_good(name) ? name : "?", peer->server->host);
	else if (kept || count)
		ckt_control_restore_obstacle(peer, args->gpu, buffer);
	/* An image in memory has never left the server. */
	struct ckt_image_bond bond = {0};
	if (count && !*buffer)
		ckt_image_mac_take(peer,
			first_stage(peer, args->stages.stages_val, args->stages.stages_len), &bond,
			buffer);
	struct ckt_session_spec spec = {.bond = bond,
		.uid = ckt_peer_owner(peer),
		.claimant = ckt_claimant_of(peer),
		.identity = ckt_identity_of_peer(peer),
		.image_fd = fds[0],
		.image_fds = fds,
		.image_count = count,
		.kept = kept,
		.gpu = args->gpu};
	bool good = (kept || count) && !*buffer &&
		ckt_session_create(peer->server, &spec, &session, buffer, sizeof buffer) == 0;
	if (own_fd >= 0)
		close(own_fd);
	answer_restore(peer, good ? session : NULL, buffer);
}

/* ---- Ahead of a move */

struct ckt_session *ckt_daemon_image_find_ahead(
	struct ckt_peer *peer, const char *copy, char buffer[CKT_MESSAGE_MAX])
{
	struct ckt_session *session = *copy ? ckt_session_find(peer->server, copy) : NULL;
	bool good = session && session->preloader == peer &&
		session->phase == CKT_SESSION_STARTING && !session->preloading;
	if (*copy && !good)
		snprintf(buffer, CKT_MESSAGE_MAX, "the copy '%.12s' no longer exists",
			strspn(copy, "0123456789abcdef") == strlen(copy) ? copy : "?");
	return good ? session : NULL;
}

/* The session is STARTING: its waiters are told, or it is ended. */
static struct ckt_session *begin_ahead(struct ckt_peer *peer, const ckt_control_preload_args *args,
	const struct ckt_session_spec *spec, char buffer[CKT_MESSAGE_MAX])
{
	struct ckt_session *session = ckt_daemon_image_find_ahead(peer, args->copy, buffer);
	if (*buffer)
		return NULL;
	if (session) {
		int error = ckt_session_preload(session, spec);
		if (error)
			snprintf(buffer, CKT_MESSAGE_MAX, "cannot reach the worker of the copy: %s",
				strerror(-error));
		return error ? NULL : session;
	}
	if (ckt_session_create(peer->server, spec, &session, buffer, CKT_MESSAGE_MAX))
		return NULL;
	session->preloader = peer;
	return session;
}

void ckt_control_preload(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_preload_args *args = decoded;
	int fds[CKT_CONTROL_CHAIN_MAX] = {-1}, own_fd = -1;
	char buffer[CKT_MESSAGE_MAX] = "";
	unsigned count = collect(
		peer, args->stages.stages_val, args->stages.stages_len, fds, &own_fd, buffer);
	(void)passed_fd;
	if (count && !*args->copy)
		ckt_control_restore_obstacle(peer, args->gpu, buffer);
	struct ckt_image_bond bond = {0};
	if (count && !*buffer)
		ckt_image_mac_take(peer,
			first_stage(peer, args->stages.stages_val, args->stages.stages_len), &bond,
			buffer);
	struct ckt_session_spec spec = {.bond = bond,
		.uid = ckt_peer_owner(peer),
		.claimant = ckt_claimant_of(peer),
		.identity = ckt_identity_of_peer(peer),
		.image_fd = fds[0],
		.image_fds = fds,
		.image_count = count,
		.gpu = args->gpu,
		.ahead = !args->last};
	struct ckt_session *session =
		count && !*buffer ? begin_ahead(peer, args, &spec, buffer) : NULL;
	drop_images(peer);
	if (own_fd >= 0)
		close(own_fd);
	answer_restore(peer, session, buffer);
}
