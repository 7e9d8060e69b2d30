/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of cricketctl.  A peer has one call at a time; a call that asks a worker replies from a
 * callback, with the peer held.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "checkpoint/format/broker.h"
#include "server/daemon/durable/replica.h"
#include "server/daemon/image/image_mac.h"
#include "server/daemon/peer/control.h"
#include "server/daemon/session/job.h"
#include "server/daemon/image/memory_images.h"
#include "server/daemon/metrics/counters.h"
#include "server/daemon/session/session_marks.h"
#include "server/daemon/session/warm_workers.h"
#include "server/daemon/nvml/nvml.h"
#include "server/daemon/durable/automatic.h"
#include "server/daemon/durable/sleep.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/peer/peer_audit.h"
#include "server/daemon/policy/ask.h"
#include "server/daemon/session/worker_request.h"
#include "server/daemon/session/restore_claim.h"
#include "base/log.h"
#include "server/daemon/session/session.h"

enum {
	/* a worker that does not answer is listed with its last known state */
	STATUS_TIMEOUT_MS = 1000,
	STATS_TIMEOUT_MS = 10000,
};

static void finish_void(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	(void)decoded, (void)passed_fd;
	ckt_peer_reply(peer, NULL, NULL);
}

void ckt_control_result_set(ckt_control_result *result, char buffer[CKT_MESSAGE_MAX],
	ckt_control_status status, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(buffer, CKT_MESSAGE_MAX, format, arguments);
	va_end(arguments);
	result->status = status;
	result->message = buffer;
}

/* ---- Which session */

/* Of that prefix: the only one that the peer may see; NULL: none, or several. */
static struct ckt_sleeper *find_asleep(const struct ckt_peer *peer, const char *prefix)
{
	struct ckt_sleeper *found = NULL;
	unsigned count = 0;
	for (const struct ckt_sleeper *one = ckt_sleep_first(); one; one = one->next)
		if (strncmp(one->chain->id, prefix, strlen(prefix)) == 0 &&
			ckt_peer_may(peer, one->owner)) {
			found = (struct ckt_sleeper *)one;
			count++;
		}
	return *prefix && count == 1 ? found : NULL;
}

/* A session that the peer may see. NULL: result says why. */
struct ckt_session *ckt_control_select(struct ckt_peer *peer, const char *prefix,
	ckt_control_result *ret_result, char buffer[CKT_MESSAGE_MAX])
{
	struct ckt_session *found = NULL;
	unsigned count = 0;
	size_t length = strlen(prefix);
	for (struct ckt_session *session = peer->server->sessions; session;
		session = session->next) {
		if (strncmp(session->id, prefix, length) == 0 &&
			ckt_peer_may_session(peer, session)) {
			found = session;
			count++;
		}
	}
	if (length && count == 1) {
		ckt_peer_audit_session(peer, found->id);
		return found;
	}
	const struct ckt_sleeper *asleep = count ? NULL : find_asleep(peer, prefix);
	if (asleep)
		ckt_control_result_set(ret_result, buffer, CKT_CONTROL_REFUSED,
			"session %s sleeps (--idle-context): wait until its program's next command "
			"has woken it, or end it with cricketctl kill",
			asleep->chain->id);
	else if (length && count > 1)
		ckt_control_result_set(ret_result, buffer, CKT_CONTROL_AMBIGUOUS,
			"'%s' is a prefix of %u session IDs: write more of the ID", prefix, count);
	else
		ckt_control_result_set(ret_result, buffer, CKT_CONTROL_NO_SESSION,
			ckt_peer_is_anonymous(peer)
				? "cannot control session '%s' on %s over TCP without a "
				  "token: use the server's UNIX socket, or --token-file "
				  "there and CRICKET_TOKEN_FILE here"
				: "there is no session '%s' on %s, or it belongs to "
				  "another user",
			prefix, peer->server->host);
	return NULL;
}

/* ---- info */

static void call_info(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	(void)decoded, (void)passed_fd;
	struct ckt_server *server = peer->server;
	ckt_control_gpu gpus[CKT_DEVICES_MAX];
	ckt_control_address listening[CKT_CONTROL_LISTEN_MAX];
	unsigned gpu_count = 0, listening_count = 0;
	struct ckt_share share;
	ckt_ask_share_of_peer(peer, &share);
	for (unsigned i = 0; i < share.gpu_count; i++) {
		struct ckt_driver_gpu *gpu = &server->driver.gpus[share.gpus[i]];
		if (share.gpus[i] < server->driver.gpu_count)
			gpus[gpu_count++] =
				(ckt_control_gpu){share.gpus[i], gpu->name, gpu->memory_bytes};
	}
	for (unsigned i = 1; i < server->listener_count && listening_count < CKT_CONTROL_LISTEN_MAX;
		i++)
		listening[listening_count++].text = server->listeners[i].text;
	ckt_control_info_res res = {
		.build = CKT_VERSION,
		.host = server->host,
		.pid = (u_int)getpid(),
		.uid = geteuid(),
		.started = server->started,
		.driver = server->driver.path,
		.soft = server->driver.soft,
		.gpus = {gpu_count, gpus},
		.socket = server->socket_path,
		.listening = {listening_count, listening},
		.sessions = server->session_count,
		.max_sessions = server->options.max_sessions,
		.session_memory_bytes = server->options.session_memory,
		.token = ckt_tokens_known(server),
		.insecure = server->options.insecure,
		.stopping = server->stopping,
	};
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_info_res, &res);
}

/* ---- list */

enum { NOTE_SIZE = 96 };

struct list {
	struct ckt_peer *peer;
	unsigned asked; /* answers still to come, and one for the asking itself */
	char after[CKT_SESSION_ID_SIZE + 1];
	unsigned answered_count;
	uint64_t answered[CKT_CONTROL_LIST_MAX]; /* serials of the sessions whose workers did */
};

/* What an answer is made of. */
struct page {
	ckt_control_session sessions[CKT_CONTROL_LIST_MAX];
	bool_t answered[CKT_CONTROL_LIST_MAX];
	char notes[CKT_CONTROL_LIST_MAX][NOTE_SIZE];
	u_int count;
	bool more; /* than there was room for */
};

ckt_control_session ckt_control_describe(const struct ckt_session *session)
{
	const struct ckt_worker_status_res *status = &session->status;
	ckt_session_state state = session->phase == CKT_SESSION_STARTING ? CKT_STATE_STARTING
		: session->phase == CKT_SESSION_ENDING                   ? CKT_STATE_ENDING
									 : status->state;
	return (ckt_control_session){
		.session = (char *)session->id,
		.program_name = status->program_name,
		.client = status->client,
		.client_pid = status->client_pid,
		.uid = session->uid,
		.worker_pid = (u_int)session->pid,
		.gpu = status->gpu,
		.memory_bytes = status->memory_bytes,
		.state = state,
		.started = session->started,
		.generation = status->generation,
		.executed = status->executed,
		.note = *status->note || !*session->sleep.note ? status->note
							       : (char *)session->sleep.note,
	};
}

static bool listed(const struct list *list, const struct ckt_session *session)
{
	return strcmp(session->id, list->after) > 0 && ckt_peer_may_session(list->peer, session);
}

/* Of a session that starts or ends the server itself knows the state. */
static bool is_of_now(const struct list *list, const struct ckt_session *session)
{
	bool found = session->phase != CKT_SESSION_LIVE;
	for (unsigned i = 0; i < list->answered_count && !found; i++)
		found = list->answered[i] == session->serial;
	return found;
}

static void add(struct page *page, ckt_control_session session, bool answered)
{
	page->sessions[page->count] = session;
	page->answered[page->count++] = answered;
}

static void add_asleep(
	const struct list *list, const struct ckt_sleeper *sleeper, struct page *page)
{
	if (strcmp(sleeper->chain->id, list->after) <= 0 ||
		!ckt_peer_may(list->peer, sleeper->owner))
		return;
	page->more |= page->count == CKT_CONTROL_LIST_MAX;
	if (page->count == CKT_CONTROL_LIST_MAX)
		return;
	char *note = page->notes[page->count];
	ckt_sleep_describe(sleeper, note, NOTE_SIZE);
	add(page,
		(ckt_control_session){.session = sleeper->chain->id,
			.program_name = (char *)sleeper->program,
			.client = (char *)sleeper->host,
			.client_pid = sleeper->client_pid,
			.uid = sleeper->owner,
			.gpu = sleeper->gpu,
			.state = CKT_STATE_ASLEEP,
			.started = (u_quad_t)sleeper->started,
			.generation = sleeper->generation,
			.executed = sleeper->executed,
			.note = note},
		true);
}

static void fill(const struct list *list, struct page *page)
{
	const struct ckt_sleeper *asleep = ckt_sleep_first();
	for (struct ckt_session *session = list->peer->server->sessions; session;
		session = session->next) {
		for (; asleep && strcmp(asleep->chain->id, session->id) < 0; asleep = asleep->next)
			add_asleep(list, asleep, page);
		if (!listed(list, session))
			continue;
		if (page->count < CKT_CONTROL_LIST_MAX)
			add(page, ckt_control_describe(session), is_of_now(list, session));
		else
			page->more = true;
	}
	for (; asleep; asleep = asleep->next)
		add_asleep(list, asleep, page);
}

static void reply(struct ckt_peer *peer, struct page *page)
{
	ckt_control_list2_res res = {.list = {{page->count, page->sessions}, page->more},
		.answered = {page->count, page->answered}};
	if (peer->proc == CKT_CONTROL_LIST2)
		ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_list2_res, &res);
	else
		ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_list_res, &res.list);
}

static void list_answered(struct list *list)
{
	if (--list->asked)
		return;
	struct ckt_peer *peer = list->peer;
	struct page *page = calloc(1, sizeof *page);
	if (page)
		fill(list, page);
	if (ckt_peer_release(peer)) {
		if (page)
			reply(peer, page);
		else
			ckt_peer_close(peer);
	}
	free(page);
	free(list);
}

void ckt_control_keep_status(
	struct ckt_session *session, int error, struct ckt_worker_status_res *status)
{
	if (error)
		return;
	struct ckt_worker_status_res old = session->status;
	session->status = *status;
	*status = old;
}

static void list_status(struct ckt_session *session, void *context, int error, void *result)
{
	struct list *list = context;
	ckt_control_keep_status(session, error, result);
	if (!error)
		list->answered[list->answered_count++] = session->serial;
	list_answered(list);
}

int ckt_control_ask_status(
	struct ckt_session *session, int timeout_ms, ckt_request_done done, void *context)
{
	return ckt_session_call(session, CKT_WORKER_STATUS, NULL, NULL, -1,
		(xdrproc_t)xdr_ckt_worker_status_res, sizeof(struct ckt_worker_status_res),
		timeout_ms, done, context);
}

static void call_list(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_list_args *args = decoded;
	(void)passed_fd;
	unsigned asked = 0;
	struct list *list = calloc(1, sizeof *list);
	if (!list) {
		ckt_peer_close(peer);
		return;
	}
	list->peer = peer;
	list->asked = 1;
	strcpy(list->after, args->after);
	ckt_peer_hold(peer);
	for (struct ckt_session *session = peer->server->sessions;
		session && asked < CKT_CONTROL_LIST_MAX; session = session->next) {
		if (!listed(list, session))
			continue;
		asked++;
		if (session->phase == CKT_SESSION_LIVE &&
			ckt_control_ask_status(session, STATUS_TIMEOUT_MS, list_status, list) == 0)
			list->asked++;
	}
	list_answered(list);
}

/* ---- owners */

static void call_owners(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_owners_args *args = decoded;
	(void)passed_fd;
	static char names[CKT_CONTROL_OWNERS_MAX][CKT_OWNER_NAME_SIZE];
	static ckt_control_owner owners[CKT_CONTROL_OWNERS_MAX];
	ckt_control_owners_res res = {.owners = {args->owners.owners_len, owners}};
	for (u_int i = 0; i < args->owners.owners_len; i++) {
		uint32_t owner = args->owners.owners_val[i];
		bool may = ckt_peer_may(peer, owner);
		names[i][0] = 0;
		if (may)
			ckt_owner_text(peer->server, owner, names[i]);
		owners[i].name = names[i];
		owners[i].project = (char *)(may ? ckt_tokens_project(peer->server, owner) : "");
	}
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_owners_res, &res);
}

/* ---- warm */

static void call_warm(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_warm_res res;
	(void)decoded, (void)passed_fd;
	ckt_warm_count(peer->server, &res.wanted, &res.making, &res.ready);
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_warm_res, &res);
}

/* ---- kill */

static void kill_done(struct ckt_session *session, void *context, int error, const char *message)
{
	struct ckt_peer *peer = context;
	(void)session, (void)error;
	ckt_control_result result = {CKT_CONTROL_OK, (char *)message};
	if (ckt_peer_release(peer))
		ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_result, &result);
}

static void call_kill(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_session_args *args = decoded;
	(void)passed_fd;
	char buffer[CKT_MESSAGE_MAX];
	ckt_control_result result = {0};
	struct ckt_session *session = ckt_control_select(peer, args->session, &result, buffer);
	struct ckt_sleeper *asleep = session ? NULL : find_asleep(peer, args->session);
	if (asleep && result.status == CKT_CONTROL_REFUSED) {
		ckt_control_result_set(&result, buffer, CKT_CONTROL_OK, "it ended in its sleep");
		ckt_peer_audit_session(peer, asleep->chain->id);
		ckt_sleep_end(asleep, "cricketctl kill");
	}
	if (session && ckt_session_wait_gone(session, kill_done, peer) == 0) {
		ckt_peer_hold(peer);
		ckt_session_kill(session, "cricketctl kill");
		return;
	}
	if (session)
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED, "out of memory");
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_result, &result);
}

/* ---- stats */

static void stats_reply(struct ckt_peer *peer, ckt_control_result result,
	struct ckt_session *session, struct ckt_worker_stats_res *stats)
{
	ckt_control_stats_res res = {.result = result,
		.session = {.session = "", .program_name = "", .client = "", .note = ""}};
	ckt_control_stat *list = NULL;
	if (session && stats) {
		res.session = ckt_control_describe(session);
		list = calloc(stats->stats.stats_len ? stats->stats.stats_len : 1, sizeof *list);
		for (u_int i = 0; list && i < stats->stats.stats_len; i++) {
			const struct ckt_worker_stat *stat = &stats->stats.stats_val[i];
			list[i] = (ckt_control_stat){
				stat->name, stat->calls, stat->batched, stat->waited, stat->bytes};
		}
		res.stats.stats_val = list;
		res.stats.stats_len = list ? stats->stats.stats_len : 0;
	}
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_stats_res, &res);
	free(list);
}

static void stats_done(struct ckt_session *session, void *context, int error, void *stats)
{
	struct ckt_peer *peer = context;
	char buffer[CKT_MESSAGE_MAX] = "";
	ckt_control_result result = {CKT_CONTROL_OK, buffer};
	if (!ckt_peer_release(peer))
		return;
	if (error)
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED,
			"session %s: its worker %d: %s", session->id, (int)session->pid,
			ckt_daemon_request_problem(error));
	stats_reply(peer, result, error ? NULL : session, stats);
}

static void call_stats(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_session_args *args = decoded;
	(void)passed_fd;
	char buffer[CKT_MESSAGE_MAX];
	ckt_control_result result = {0};
	struct ckt_session *session = ckt_control_select(peer, args->session, &result, buffer);
	if (session) {
		int error = session->phase != CKT_SESSION_LIVE
			? -EAGAIN
			: ckt_session_call(session, CKT_WORKER_STATS, NULL, NULL, -1,
				  (xdrproc_t)xdr_ckt_worker_stats_res,
				  sizeof(struct ckt_worker_stats_res), STATS_TIMEOUT_MS, stats_done,
				  peer);
		if (!error) {
			ckt_peer_hold(peer);
			return;
		}
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED, "session %s is %s",
			session->id,
			session->phase == CKT_SESSION_ENDING             ? "ending"
				: session->phase == CKT_SESSION_STARTING ? "starting"
									 : "not answering");
	}
	stats_reply(peer, result, NULL, NULL);
}

/* ---- checkpoint and restore */

struct save {
	struct ckt_peer *peer;
	bool stop;
	uint64_t bytes;
};

static void save_finish(
	struct ckt_session *session, struct save *save, const ckt_control_result *result)
{
	ckt_control_checkpoint_res res = {
		.result = *result, .session = session->id, .bytes = save->bytes};
	ckt_info("session %s: checkpoint %s%s", session->id,
		result->status ? "failed: " : "written", result->message);
	if (ckt_peer_release(save->peer))
		ckt_peer_reply(save->peer, (xdrproc_t)xdr_ckt_control_checkpoint_res, &res);
	free(save);
}

/*
 * With --stop the reply waits for the worker's end, so that a restore at this server does not meet
 * it.
 */
static void save_stopped(struct ckt_session *session, void *context, int error, const char *message)
{
	(void)error, (void)message;
	save_finish(session, context, &(ckt_control_result){CKT_CONTROL_OK, ""});
}

static void save_done(struct ckt_session *session, void *context, int error, void *answer)
{
	struct save *save = context;
	struct ckt_worker_save_res *res = answer;
	char buffer[CKT_MESSAGE_MAX] = "";
	ckt_control_result result = {CKT_CONTROL_OK, buffer};
	if (error)
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED,
			"session %s: its worker ended or failed while it wrote the "
			"image: %s",
			session->id, ckt_daemon_request_problem(error));
	else if (res->status)
		ckt_control_result_set(&result, buffer, CKT_CONTROL_REFUSED, "session %s: %.400s",
			session->id, res->message);
	else
		save->bytes = res->bytes;
	ckt_count_checkpoint(session->id, result.status == CKT_CONTROL_OK, save->bytes, 0);
	if (result.status == CKT_CONTROL_OK && save->stop)
		ckt_session_mark_write(session->server, session->id, CKT_MARK_PARKED, session->uid,
			session->proven, session->status.program_name);
	if (result.status == CKT_CONTROL_OK && save->stop &&
		ckt_session_wait_gone(session, save_stopped, save) == 0)
		ckt_session_expect_end(session);
	else
		save_finish(session, save, &result);
}

static int save_start(struct ckt_peer *peer, struct ckt_session *session,
	const ckt_control_checkpoint_args *args, int broker_fd)
{
	struct ckt_worker_save_args call = {.stop = args->stop, .deadline_ms = args->deadline_ms};
	struct save *save = calloc(1, sizeof *save);
	if (!save) {
		close(broker_fd);
		return -ENOMEM;
	}
	*save = (struct save){.peer = peer, .stop = args->stop};
	int result =
		ckt_session_call_long(session, CKT_WORKER_SAVE, (xdrproc_t)xdr_ckt_worker_save_args,
			&call, broker_fd, (xdrproc_t)xdr_ckt_worker_save_res,
			sizeof(struct ckt_worker_save_res), args->deadline_ms, save_done, save);
	if (result)
		free(save);
	else
		ckt_peer_hold(peer);
	return result;
}

static void call_checkpoint(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_checkpoint_args *args = decoded;
	int broker_fd = *passed_fd;
	*passed_fd = -1;
	char buffer[CKT_MESSAGE_MAX];
	ckt_control_checkpoint_res res = {.session = ""};
	struct ckt_decision decision = {0};
	struct ckt_session *session = ckt_control_select(peer, args->session, &res.result, buffer);
	if (session)
		ckt_ask_save(session, peer, true, &decision);
	if (decision.answer) {
		res.result = (ckt_control_result){CKT_CONTROL_REFUSED, decision.reason};
	} else if (session && !ckt_broker_is(broker_fd)) {
		res.result = (ckt_control_result){CKT_CONTROL_REFUSED, (char *)CKT_NO_BROKER};
	} else if (session) {
		int error = save_start(peer, session, args, broker_fd);
		broker_fd = -1;
		if (!error)
			return;
		ckt_control_result_set(&res.result, buffer, CKT_CONTROL_REFUSED,
			"session %s: cannot reach its worker: %s", session->id, strerror(-error));
	}
	if (broker_fd >= 0)
		close(broker_fd);
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_checkpoint_res, &res);
}

static void restore_done(struct ckt_session *session, void *context, int error, const char *message)
{
	struct ckt_peer *peer = context;
	char buffer[CKT_MESSAGE_MAX] = "";
	ckt_control_restore_res res = {
		.result = {CKT_CONTROL_OK, buffer}, .session = error ? "" : session->id};
	if (!ckt_peer_release(peer))
		return;
	if (error)
		ckt_control_result_set(&res.result, buffer, CKT_CONTROL_REFUSED, "%.500s", message);
	if (session->claim_refused)
		ckt_peer_audit_refused_late(peer);
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_restore_res, &res);
}

/* Why a restore cannot even begin; empty if it can. */
void ckt_control_restore_obstacle(struct ckt_peer *peer, int gpu, char buffer[CKT_MESSAGE_MAX])
{
	struct ckt_decision decision;
	ckt_ask_session(peer, true, gpu, &decision);
	snprintf(buffer, CKT_MESSAGE_MAX, "%s", decision.reason);
}

static void call_restore(struct ckt_peer *peer, void *decoded, int *passed_fd)
{
	ckt_control_restore_args *args = decoded;
	int broker_fd = *passed_fd;
	*passed_fd = -1;
	struct ckt_session *session;
	struct ckt_session_spec spec = {.uid = ckt_peer_owner(peer),
		.claimant = ckt_claimant_of(peer),
		.identity = ckt_identity_of_peer(peer),
		.image_fd = broker_fd,
		.gpu = args->gpu};
	char buffer[CKT_MESSAGE_MAX];
	ckt_control_restore_obstacle(peer, args->gpu, buffer);
	if (!ckt_broker_is(broker_fd))
		snprintf(buffer, sizeof buffer, CKT_NO_BROKER);
	if (!*buffer)
		ckt_image_mac_take(peer, NULL, &spec.bond, buffer);
	if (!*buffer &&
		ckt_session_create(peer->server, &spec, &session, buffer, sizeof buffer) == 0) {
		ckt_peer_hold(peer);
		if (ckt_session_wait_started(session, restore_done, peer) == 0) {
			close(broker_fd);
			return;
		}
		ckt_peer_release(peer);
		ckt_session_kill(session, "no connection waits for it");
		snprintf(buffer, sizeof buffer, "out of memory");
	}
	if (broker_fd >= 0)
		close(broker_fd);
	ckt_control_restore_res res = {.result = {CKT_CONTROL_REFUSED, buffer}, .session = ""};
	ckt_peer_reply(peer, (xdrproc_t)xdr_ckt_control_restore_res, &res);
}

/* ---- Dispatch */

union control_args {
	ckt_control_list_args list;
	ckt_control_session_args session;
	ckt_control_checkpoint_args checkpoint;
	ckt_control_restore_args restore;
	ckt_control_stage_args stage;
	ckt_control_save_args save;
	ckt_control_base_args base;
	ckt_control_release_args release;
	ckt_control_image_args image;
	ckt_control_restore2_args restore2;
	ckt_control_preload_args preload;
	ckt_control_pause_args pause;
	ckt_control_events_args events;
	ckt_control_keep_args keep;
	ckt_control_nvml_args nvml;
	ckt_control_gpu_args gpu;
	ckt_control_job_args job;
	ckt_control_job_look_args job_look;
	ckt_control_job_key_args job_key;
	ckt_control_nccl_make_args nccl_make;
	ckt_control_nccl_ids_args nccl_ids;
	ckt_control_trace_args trace;
	ckt_control_limit_args limit;
	ckt_control_drain_args drain;
	ckt_control_replica_look_args replica_look;
	ckt_control_replicas_args replicas;
	ckt_control_replica_image_args replica_image;
	ckt_control_replica_keep_args replica_keep;
	ckt_control_replica_lease_args replica_lease;
	ckt_control_image_mac_args image_mac;
	ckt_control_decide_args decide;
};

/*
 * passed_fd: the descriptor that came with the call; set to -1 by the function that takes it over.
 */
struct call {
	xdrproc_t decoder; /* NULL: no arguments */
	void (*call)(struct ckt_peer *peer, void *args, int *passed_fd);
};

static const struct call calls[] = {
	[CKT_CONTROL_NULL] = {NULL, finish_void},
	[CKT_CONTROL_INFO] = {NULL, call_info},
	[CKT_CONTROL_LIST] = {(xdrproc_t)xdr_ckt_control_list_args, call_list},
	[CKT_CONTROL_LIST2] = {(xdrproc_t)xdr_ckt_control_list_args, call_list},
	[CKT_CONTROL_KILL] = {(xdrproc_t)xdr_ckt_control_session_args, call_kill},
	[CKT_CONTROL_STATS] = {(xdrproc_t)xdr_ckt_control_session_args, call_stats},
	[CKT_CONTROL_TRACE] = {(xdrproc_t)xdr_ckt_control_trace_args, ckt_control_trace},
	[CKT_CONTROL_TRACE_READ] = {(xdrproc_t)xdr_ckt_control_trace_args, ckt_control_trace_read},
	[CKT_CONTROL_LIMIT_SET] = {(xdrproc_t)xdr_ckt_control_limit_args, ckt_control_limit_set},
	[CKT_CONTROL_LIMIT_SHOW] = {NULL, ckt_control_limit_show},
	[CKT_CONTROL_LIMIT_CLEAR] = {(xdrproc_t)xdr_ckt_control_limit_args,
		ckt_control_limit_clear},
	[CKT_CONTROL_CHECKPOINT] = {(xdrproc_t)xdr_ckt_control_checkpoint_args, call_checkpoint},
	[CKT_CONTROL_RESTORE] = {(xdrproc_t)xdr_ckt_control_restore_args, call_restore},
	[CKT_CONTROL_STAGE_MAKE] = {NULL, ckt_control_stage_make},
	[CKT_CONTROL_STAGE_LIST] = {(xdrproc_t)xdr_ckt_control_stage_args, ckt_control_stage_list},
	[CKT_CONTROL_STAGE_REMOVE] = {(xdrproc_t)xdr_ckt_control_stage_args,
		ckt_control_stage_remove},
	[CKT_CONTROL_STAGE_DATA] = {(xdrproc_t)xdr_ckt_control_stage_args, ckt_control_stage_data},
	[CKT_CONTROL_SAVE] = {(xdrproc_t)xdr_ckt_control_save_args, ckt_control_save},
	[CKT_CONTROL_BASE] = {(xdrproc_t)xdr_ckt_control_base_args, ckt_control_base},
	[CKT_CONTROL_RELEASE] = {(xdrproc_t)xdr_ckt_control_release_args, ckt_control_release},
	[CKT_CONTROL_IMAGE] = {(xdrproc_t)xdr_ckt_control_image_args, ckt_control_image},
	[CKT_CONTROL_PRELOAD] = {(xdrproc_t)xdr_ckt_control_preload_args, ckt_control_preload},
	[CKT_CONTROL_RESTORE2] = {(xdrproc_t)xdr_ckt_control_restore2_args, ckt_control_restore2},
	[CKT_CONTROL_PAUSE] = {(xdrproc_t)xdr_ckt_control_pause_args, ckt_control_pause},
	[CKT_CONTROL_SWAP] = {(xdrproc_t)xdr_ckt_control_swap_args, ckt_control_swap},
	[CKT_CONTROL_SWAP_LOOK] = {(xdrproc_t)xdr_ckt_control_session_args, ckt_control_swap_look},
	[CKT_CONTROL_QUANTA] = {(xdrproc_t)xdr_ckt_control_list_args, ckt_control_quanta},
	[CKT_CONTROL_UNPAUSE] = {(xdrproc_t)xdr_ckt_control_session_args, ckt_control_unpause},
	[CKT_CONTROL_PROGRESS] = {(xdrproc_t)xdr_ckt_control_session_args, ckt_control_progress},
	[CKT_CONTROL_EVENTS] = {(xdrproc_t)xdr_ckt_control_events_args, ckt_control_events},
	[CKT_CONTROL_STAGE_KEEP] = {(xdrproc_t)xdr_ckt_control_keep_args, ckt_control_stage_keep},
	[CKT_CONTROL_KEPT_LIST] = {NULL, ckt_control_kept_list},
	[CKT_CONTROL_KEPT_REMOVE] = {(xdrproc_t)xdr_ckt_control_stage_args,
		ckt_control_kept_remove},
	[CKT_CONTROL_QUIESCE] = {(xdrproc_t)xdr_ckt_control_session_args, ckt_control_quiesce},
	[CKT_CONTROL_DEVICES] = {NULL, ckt_control_devices},
	[CKT_CONTROL_NVML] = {(xdrproc_t)xdr_ckt_control_nvml_args, ckt_control_nvml},
	[CKT_CONTROL_GPU_USE] = {(xdrproc_t)xdr_ckt_control_gpu_args, ckt_control_gpu_use},
	[CKT_CONTROL_OWNERS] = {(xdrproc_t)xdr_ckt_control_owners_args, call_owners},
	[CKT_CONTROL_WARM] = {NULL, call_warm},
	[CKT_CONTROL_WAITS] = {(xdrproc_t)xdr_ckt_control_waits_args, ckt_control_waits},
	[CKT_CONTROL_OWNED_EVENTS] = {(xdrproc_t)xdr_ckt_control_events_args,
		ckt_control_owned_events},
	[CKT_CONTROL_JOBS] = {(xdrproc_t)xdr_ckt_control_list_args, ckt_control_jobs},
	[CKT_CONTROL_CONNECTIONS] = {(xdrproc_t)xdr_ckt_control_list_args, ckt_control_connections},
	[CKT_CONTROL_REPLACE] = {NULL, ckt_control_replace},
	[CKT_CONTROL_DRAIN] = {(xdrproc_t)xdr_ckt_control_drain_args, ckt_control_drain},
	[CKT_CONTROL_REPLICA_LOOK] = {(xdrproc_t)xdr_ckt_control_replica_look_args,
		ckt_control_replica_look},
	[CKT_CONTROL_REPLICA_IMAGE] = {(xdrproc_t)xdr_ckt_control_replica_image_args,
		ckt_control_replica_image},
	[CKT_CONTROL_REPLICA_KEEP] = {(xdrproc_t)xdr_ckt_control_replica_keep_args,
		ckt_control_replica_keep},
	[CKT_CONTROL_REPLICA_LEASE] = {(xdrproc_t)xdr_ckt_control_replica_lease_args,
		ckt_control_replica_lease},
	[CKT_CONTROL_REPLICA_DROP] = {(xdrproc_t)xdr_ckt_control_session_args,
		ckt_control_replica_drop},
	[CKT_CONTROL_DURABLE] = {(xdrproc_t)xdr_ckt_control_list_args, ckt_control_durable_list},
	[CKT_CONTROL_REPLICAS] = {(xdrproc_t)xdr_ckt_control_replicas_args,
		ckt_control_replicas_list},
	[CKT_CONTROL_DECIDE] = {(xdrproc_t)xdr_ckt_control_decide_args, ckt_control_decide},
	[CKT_CONTROL_FACTS] = {(xdrproc_t)xdr_ckt_control_events_args, ckt_control_facts},
	[CKT_CONTROL_SHARINGS] = {(xdrproc_t)xdr_ckt_control_list_args, ckt_control_sharings},
	[CKT_CONTROL_SHARE_GROUPS] = {(xdrproc_t)xdr_ckt_control_list_args,
		ckt_control_share_groups},
	[CKT_CONTROL_SHARE_MODES] = {NULL, ckt_control_share_modes},
	[CKT_CONTROL_TURNS] = {(xdrproc_t)xdr_ckt_control_list_args, ckt_control_turns},
	[CKT_CONTROL_IMAGE_MAC] = {(xdrproc_t)xdr_ckt_control_image_mac_args,
		ckt_control_image_mac},
	[CKT_CONTROL_WATCH] = {(xdrproc_t)xdr_ckt_control_list_args, ckt_control_watch},
	[CKT_CONTROL_JOB_HOLD] = {(xdrproc_t)xdr_ckt_control_job_args, ckt_control_job_hold},
	[CKT_CONTROL_JOB_LOOK] = {(xdrproc_t)xdr_ckt_control_job_look_args, ckt_control_job_look},
	[CKT_CONTROL_JOB_END] = {NULL, ckt_control_job_end},
	[CKT_CONTROL_JOB_KEY_SHOW] = {(xdrproc_t)xdr_ckt_control_job_key_args, ckt_control_job_key},
	[CKT_CONTROL_NCCL_MAKE] = {(xdrproc_t)xdr_ckt_control_nccl_make_args,
		ckt_control_nccl_make},
	[CKT_CONTROL_NCCL_IDS] = {(xdrproc_t)xdr_ckt_control_nccl_ids_args, ckt_control_nccl_ids},
};

void ckt_control_call(struct ckt_peer *peer, uint8_t *data, size_t size, int passed_fd)
{
	struct ckt_cursor c = {.p = data, .end = data + size};
	struct ckt_call_header header = {0};
	union control_args args = {0};
	bool good = ckt_call_header_get(&c, &header) && header.prog == CRICKET_CONTROL_PROG &&
		header.vers == CRICKET_CONTROL_VERS && header.proc < sizeof calls / sizeof *calls &&
		calls[header.proc].call;
	xdrproc_t decoder = good ? calls[header.proc].decoder : NULL;
	if (good)
		good = decoder ? ckt_net_decode(&c, decoder, &args) == 0 : c.p == c.end;
	free(data);
	if (good) {
		peer->xid = header.xid;
		peer->proc = header.proc;
		ckt_peer_audit_begin(peer, header.proc, &args);
		/*
		 * No further call is read before this one is answered, but a hang-up is noticed.
		 * The hold keeps the peer alive if the call ends it.
		 */
		ckt_peer_hold(peer);
		ckt_record_stream_pause(&peer->stream, true);
		calls[header.proc].call(peer, &args, &passed_fd);
		ckt_peer_audit_tried(peer);
		ckt_peer_release(peer);
		if (decoder)
			xdr_free(decoder, (char *)&args);
	} else {
		ckt_debug("%s: unknown control call for this version", peer->who.text);
		ckt_peer_audit_refused(peer, "unknown", "the control call is unknown or malformed");
		ckt_peer_close(peer);
	}
	if (passed_fd >= 0)
		close(passed_fd);
}
