/* SPDX-License-Identifier: Apache-2.0 */
/* The start of a session: what its worker is told, and what it answers; see session_parts.h. */
#include "server/daemon/session/session_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "server/daemon/durable/afresh.h"
#include "server/daemon/durable/automatic.h"
#include "server/daemon/events.h"
#include "server/daemon/image/memory_images.h"
#include "server/daemon/session/group.h"
#include "server/daemon/session/restore_again.h"
#include "server/daemon/session/warm_workers.h"

enum {
	/*
	 * A worker without a client must be gone within ten seconds; the rest is for noticing and
	 * freeing.
	 */
	DETACHED_TIMEOUT_MS = 8000,
};

void ckt_session_refuse(struct ckt_session *session, int error, const char *message)
{
	ckt_warning("session %s: not started: %s", session->id, message);
	ckt_mps_unusable(session, message);
	session->failure = error;
	snprintf(session->failure_message, sizeof session->failure_message, "%s", message);
	ckt_session_kill(session, "not started");
}

static void start_late(struct ckt_timer *timer)
{
	ckt_session_refuse(CKT_CONTAINER(timer, struct ckt_session, timer), -ETIMEDOUT,
		"the worker did not get ready in time");
}

void ckt_session_live(struct ckt_session *session)
{
	ckt_timer_clear(&session->timer);
	session->phase = CKT_SESSION_LIVE;
	/* What its worker is from here on; it has not been asked yet. */
	if (session->restore)
		session->status.state = CKT_STATE_RESTORED;
	ckt_info("session %s: worker %d ready%s", session->id, (int)session->pid,
		session->restore ? ", restored" : "");
	if (session->restore && !*session->successor_of)
		ckt_session_remove_marks(session);
	ckt_session_metrics_open(session);
	ckt_automatic_begin(session);
	ckt_quantum_watch(session);
	ckt_daemon_event(session, session->restore ? CKT_EVENT_RESTORED : CKT_EVENT_STARTED,
		"worker %d", (int)session->pid);
	ckt_session_tell_waiters(&session->on_started, session, 0, "");
}

/* Whether the worker has done the first calls of its start; if not, its waiters are told. */
static bool has_answered(
	struct ckt_session *session, int error, const struct ckt_worker_start_res *res)
{
	/* If the worker is dead, ckt_session_worker_gone tells the waiters how it ended. */
	if (session->phase != CKT_SESSION_STARTING || error == -ECONNRESET)
		return false;
	if (!error && !res->status) {
		ckt_restore_again_destroy(session->again);
		session->again = NULL;
		return true;
	}
	if (!error && res->status == -EXDEV && session->again) {
		ckt_info("session %s: %s", session->id, res->message);
		session->pidfd.ready = ckt_session_start_afresh;
		ckt_session_kill_worker(session);
		return false;
	}
	ckt_session_refuse(session,
		error                     ? error
			: res->status > 0 ? -EPROTO
					  : res->status,
		error ? "the worker did not understand the server" : res->message);
	return false;
}

static void started(struct ckt_session *session, void *context, int error, void *result)
{
	(void)context;
	if (!has_answered(session, error, result))
		return;
	if (session->restore &&
		ckt_session_call(session, CKT_WORKER_ORIGIN, NULL, NULL, -1,
			(xdrproc_t)xdr_ckt_worker_origin_res, sizeof(struct ckt_worker_origin_res),
			CKT_SESSION_CALL_TIMEOUT_MS, ckt_session_restored_named, NULL) == 0)
		return;
	if (session->restore)
		ckt_session_refuse(session, -EIO, "the restored worker does not answer");
	else
		ckt_session_live(session);
}

/* It stays STARTING: more images come. */
static void preloaded(struct ckt_session *session, void *context, int error, void *result)
{
	(void)context;
	session->preloading = false;
	if (!has_answered(session, error, result))
		return;
	ckt_timer_clear(&session->timer);
	ckt_info("session %s: worker %d has preloaded an image", session->id, (int)session->pid);
	ckt_session_tell_waiters(&session->on_started, session, 0, "");
}

static void image_taken(struct ckt_session *session, void *context, int error, void *answer)
{
	struct ckt_worker_result *res = answer;
	(void)context;
	if (session->phase == CKT_SESSION_STARTING && !error && res->status)
		ckt_session_refuse(session, res->status, res->message);
}

/* A chain goes to the worker image by image, before START. */
static int send_images(struct ckt_session *session, const struct ckt_session_spec *spec)
{
	for (u_int i = 0; spec->image_count > 1 && i < spec->image_count; i++) {
		struct ckt_worker_image_args args = {.index = i};
		int fd = fcntl(spec->image_fds[i], F_DUPFD_CLOEXEC, 3);
		int result = fd < 0
			? -errno
			: ckt_session_call(session, CKT_WORKER_IMAGE,
				  (xdrproc_t)xdr_ckt_worker_image_args, &args, fd,
				  (xdrproc_t)xdr_ckt_worker_result,
				  sizeof(struct ckt_worker_result), 0, image_taken, NULL);
		if (result)
			return result;
	}
	return 0;
}

/* Before START: no byte of another manifest is looked at. */
static int send_bond(struct ckt_session *session, const struct ckt_image_bond *bond)
{
	struct ckt_worker_manifest_args args = {.expect = true};
	session->bond = *bond;
	memcpy(args.hash, bond->hash, sizeof args.hash);
	return bond->set ? ckt_session_call(session, CKT_WORKER_MANIFEST,
				   (xdrproc_t)xdr_ckt_worker_manifest_args, &args, -1,
				   (xdrproc_t)xdr_ckt_worker_manifest_res,
				   sizeof(struct ckt_worker_manifest_res), 0, image_taken, NULL)
			 : 0;
}

static int send_start(struct ckt_session *session, int image_fd, bool ahead)
{
	struct ckt_server *server = session->server;
	char path[CKT_PATH_MAX];
	struct ckt_share share;
	int pass_fd = -1;
	ckt_session_path(session, path);
	ckt_session_ask_share(session, &share);
	if (image_fd >= 0) {
		pass_fd = fcntl(image_fd, F_DUPFD_CLOEXEC, 3);
		if (pass_fd < 0)
			return -errno;
	}
	struct ckt_worker_start_args args = {
		.session = session->restore ? "" : session->id,
		.socket = path,
		.driver = server->driver.path,
		.gpus = {.gpus_len = ckt_session_list_gpus(session, &share),
			.gpus_val = share.gpus},
		.memory_limit_bytes = share.device_memory_bytes,
		.claim_timeout_ms = session->restore ? server->options.claim_timeout * 1000
						     : DETACHED_TIMEOUT_MS,
		.disconnect_timeout_ms = DETACHED_TIMEOUT_MS,
		.restore = session->restore,
		.host_memory_bytes = share.host_memory_bytes,
		.staging_bytes = server->options.staging,
	};
	int result = ckt_session_call(session, ahead ? CKT_WORKER_PRELOAD : CKT_WORKER_START,
		(xdrproc_t)xdr_ckt_worker_start_args, &args, pass_fd,
		(xdrproc_t)xdr_ckt_worker_start_res, sizeof(struct ckt_worker_start_res), 0,
		ahead ? preloaded : started, NULL);
	session->preloading = ahead && !result;
	return result;
}

/* The start must end in time. */
static void begin_timer(struct ckt_session *session)
{
	session->timer.fire = start_late;
	ckt_timer_set(&session->server->loop, &session->timer, CKT_SESSION_START_TIMEOUT_MS);
}

/* The images, and START or PRELOAD, unless an earlier call had an error. */
static int send_all(struct ckt_session *session, const struct ckt_session_spec *spec, int error)
{
	int result = error;
	if (!result)
		result = spec->kept ? ckt_memory_image_send(spec->kept, session)
				    : send_images(session, spec);
	if (!result)
		result = send_bond(session, &spec->bond);
	if (!result)
		result = send_start(session, spec->image_fd, spec->ahead);
	if (result)
		ckt_session_give_up(session, "cannot reach its worker");
	return result;
}

int ckt_session_preload(struct ckt_session *session, const struct ckt_session_spec *spec)
{
	begin_timer(session);
	return send_all(session, spec, 0);
}

int ckt_session_tell(struct ckt_session *session, const struct ckt_session_spec *spec)
{
	int result = ckt_session_tell_owner(session);
	if (!result)
		result = ckt_automatic_tell(session);
	if (!result)
		result = ckt_afresh_tell(session, spec);
	if (!result)
		result = ckt_group_open(session);
	if (!result)
		result = ckt_lease_open(session);
	if (!result)
		result = ckt_turn_open(session);
	return send_all(session, spec, result);
}

static int start(struct ckt_session *session, const struct ckt_session_spec *spec)
{
	ckt_session_insert(session);
	session->server->session_count++;
	begin_timer(session);
	return ckt_session_tell(session, spec);
}

int ckt_session_create(struct ckt_server *server, const struct ckt_session_spec *spec,
	struct ckt_session **ret_session, char *ret_message, size_t message_size)
{
	struct ckt_session *session;
	int result = ckt_session_from_spec(server, spec, &session, ret_message, message_size);
	if (result)
		return result;
	bool warm = ckt_session_take_warm(&session);
	result = warm ? 0 : ckt_session_spawn(session, ret_message, message_size);
	if (result)
		return result;
	if (warm && session->restore)
		session->again = ckt_restore_again_create(spec);
	result = start(session, spec);
	if (result) {
		snprintf(ret_message, message_size, "cannot reach the new worker: %s",
			strerror(-result));
		return result;
	}
	ckt_info("session %s: %sworker %d started for %s", session->id, warm ? "warm " : "",
		(int)session->pid, spec->hello ? spec->hello->program_name : "a restore");
	ckt_warm_follow(server, session);
	*ret_session = session;
	return 0;
}
