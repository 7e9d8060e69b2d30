/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that are started ahead, and become sessions; see warm_workers.h. */
#include "server/daemon/session/session_parts.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "server/daemon/durable/automatic.h"
#include "server/daemon/session/warm_workers.h"

static void warm_late(struct ckt_timer *timer)
{
	ckt_session_kill_worker(CKT_CONTAINER(timer, struct ckt_session, timer));
}

static void warmed(struct ckt_session *session, void *context, int error, void *result)
{
	const struct ckt_worker_start_res *res = result;
	const char *message = error ? "it did not understand the server" : res->message;
	(void)context;
	if (!error)
		error = res->status > 0 ? -EPROTO : res->status;
	/* If it is dead, ckt_session_worker_gone says how it ended. */
	if (error == -ECONNRESET)
		return;
	if (session->warm && session->phase == CKT_SESSION_WARMING) {
		ckt_timer_clear(&session->timer);
		session->phase = error ? CKT_SESSION_WARMING : CKT_SESSION_WARM;
		if (error)
			ckt_mps_unusable(session, message);
		ckt_warm_ready(session, error, message);
	} else if (error && session->phase == CKT_SESSION_STARTING) {
		ckt_session_refuse(session, error, message);
	}
}

static int send_warm(struct ckt_session *session)
{
	struct ckt_server *server = session->server;
	char path[CKT_PATH_MAX];
	struct ckt_share share;
	ckt_session_path(session, path);
	ckt_session_ask_share(session, &share);
	struct ckt_worker_start_args args = {
		.session = "",
		.socket = path,
		.driver = server->driver.path,
		.gpus = {.gpus_len = ckt_session_list_gpus(session, &share),
			.gpus_val = share.gpus},
		.staging_bytes = server->options.staging,
	};
	session->timer.fire = warm_late;
	ckt_timer_set(&server->loop, &session->timer, CKT_SESSION_START_TIMEOUT_MS);
	return ckt_session_call(session, CKT_WORKER_WARM, (xdrproc_t)xdr_ckt_worker_start_args,
		&args, -1, (xdrproc_t)xdr_ckt_worker_start_res, sizeof(struct ckt_worker_start_res),
		0, warmed, NULL);
}

int ckt_session_create_warm(struct ckt_server *server, const struct ckt_warm_spec *spec,
	struct ckt_session **ret_session, char *ret_message, size_t message_size)
{
	char id[CKT_SESSION_ID_SIZE + 1];
	unsigned all[CKT_DEVICES_MAX];
	/* No session's ID, so that the next server does not take it for one. */
	snprintf(id, sizeof id, "warm-%07x", (unsigned)(server->session_serial + 1) & 0xfffffff);
	struct ckt_session *session = ckt_session_new(server, id);
	if (!session) {
		snprintf(ret_message, message_size, "out of memory");
		return -ENOMEM;
	}
	session->identity = spec->owner;
	session->mps.asked = spec->kind;
	session->child = session->warm = true;
	session->phase = CKT_SESSION_WARMING;
	session->narrowed = ckt_session_gpus(session, all) != spec->gpu_count ||
		memcmp(all, spec->gpus, spec->gpu_count * sizeof *all) != 0;
	session->visible_count = session->narrowed ? spec->gpu_count : 0;
	memcpy(session->visible, spec->gpus, session->visible_count * sizeof *session->visible);
	int result = ckt_session_spawn(session, ret_message, message_size);
	if (result)
		return result;
	*ret_session = session;
	if (send_warm(session))
		warm_late(&session->timer);
	return 0;
}

void ckt_session_end_warm(struct ckt_session *session, const char *why)
{
	if (session->phase == CKT_SESSION_ENDING)
		return;
	ckt_debug("warm worker %d: ending it: %s", (int)session->pid, why);
	session->phase = CKT_SESSION_ENDING;
	ckt_session_kill_worker(session);
}

void ckt_session_await_warm_end(struct ckt_session *session)
{
	struct pollfd dead = {.fd = session->pidfd.fd, .events = POLLIN};
	ckt_session_end_warm(session, "it is waited for");
	if (poll(&dead, 1, CKT_SESSION_KILL_TIMEOUT_MS / 2) <= 0) {
		/* Who terminates it, if anybody, is late. */
		syscall(SYS_pidfd_send_signal, session->pidfd.fd, SIGKILL, NULL, 0);
		poll(&dead, 1, CKT_SESSION_KILL_TIMEOUT_MS / 2);
	}
	ckt_session_worker_gone(&session->pidfd, EPOLLIN);
}

/* All that is the session's, and not its worker's. */
static void become(struct ckt_session *worker, struct ckt_session *wanted)
{
	struct ckt_worker_status_res status = worker->status;
	worker->status = wanted->status;
	wanted->status = status;
	strcpy(worker->id, wanted->id);
	strcpy(worker->job, wanted->job);
	worker->serial = wanted->serial;
	worker->started = wanted->started;
	worker->uid = wanted->uid;
	worker->identity = wanted->identity;
	worker->claimant = wanted->claimant;
	worker->proven = wanted->proven;
	worker->unclaimed = wanted->unclaimed;
	worker->restore = wanted->restore;
	worker->generation = wanted->generation;
	memcpy(worker->secret_hash, wanted->secret_hash, sizeof worker->secret_hash);
	worker->gpu = wanted->gpu;
	worker->narrowed = wanted->narrowed;
	worker->visible_count = wanted->visible_count;
	memcpy(worker->visible, wanted->visible, sizeof worker->visible);
	worker->warm = false;
	worker->chain = wanted->chain;
	worker->asks_for_images = wanted->asks_for_images;
	wanted->chain = NULL;
	if (worker->chain)
		worker->chain->session = worker;
	worker->phase = CKT_SESSION_STARTING;
}

bool ckt_session_take_warm(struct ckt_session **session)
{
	struct ckt_session *wanted = *session;
	struct ckt_session *worker = ckt_warm_take(wanted->server, wanted);
	char old_path[CKT_PATH_MAX], new_path[CKT_PATH_MAX];
	if (!worker)
		return false;
	ckt_session_path(worker, old_path);
	ckt_session_path(wanted, new_path);
	if (rename(old_path, new_path)) {
		ckt_session_await_warm_end(worker);
		return false;
	}
	become(worker, wanted);
	ckt_session_free(wanted, true);
	*session = worker;
	const struct ckt_cgroup_limits limits = ckt_session_cgroup_limits(worker);
	ckt_worker_cgroup_limit(worker->server, worker->cgroup, &limits);
	return true;
}
