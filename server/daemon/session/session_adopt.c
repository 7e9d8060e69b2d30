/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of an earlier server; see session.h. */
#include "server/daemon/session/session_parts.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "server/daemon/durable/automatic.h"
#include "server/daemon/peer/control.h"
#include "server/daemon/session/group.h"
#include "server/daemon/session/job.h"
#include "server/daemon/session/module_cache.h"
#include "server/daemon/session/owner_file.h"
#include "server/daemon/session/pause.h"
#include "server/daemon/session/server_key.h"
#include "server/daemon/session/uid_group.h"
#include "server/daemon/session/worker_request.h"

static void set_owner(struct ckt_session *session, uint32_t owner)
{
	session->uid = owner;
	if (owner != CKT_UID_UNKNOWN)
		session->identity = ckt_identity_of_owner(owner);
	/* Root may have restored it for a user who has not come yet. */
	session->unclaimed = owner == 0 || owner == CKT_UID_UNKNOWN ||
		owner == ckt_owner_of_token(CKT_SINGLE_TOKEN_NAME);
}

/* told: its owner is known, from the earlier server; NULL: it is not. */
static void adopted_status(struct ckt_session *session, void *told, int error, void *result)
{
	struct ckt_worker_status_res *status = result;
	if (error || session->phase != CKT_SESSION_LIVE) {
		session->unclaimed = false;
		ckt_lease_is_known(session);
		return;
	}
	if (!told)
		set_owner(session, status->uid);
	/* What started us may have taken them off: see worker_cgroup.h. */
	const struct ckt_cgroup_limits limits = ckt_session_cgroup_limits(session);
	ckt_worker_cgroup_limit(session->server, session->cgroup, &limits);
	session->started = status->started;
	memcpy(session->secret_hash, status->secret_hash, sizeof session->secret_hash);
	session->generation = status->generation;
	/* The rest of the earlier server's knowledge is lost. */
	session->proven = ckt_server_key_fits(session->id, (const uint8_t *)status->secret_hash);
	session->unclaimed &= status->state == CKT_STATE_RESTORED;
	ckt_daemon_pause_adopt(session);
	ckt_daemon_job_adopt(session);
	/* The connection that held it frozen was the dead server's. */
	if (status->state == CKT_STATE_FROZEN)
		ckt_daemon_image_let_go(session);
	/* Its server died before it told the worker what it becomes. */
	if (status->state == CKT_STATE_STARTING && !*status->program_name) {
		ckt_session_give_up(session, "it was never started");
		return;
	}
	/* Last: a worker of an older server does not know these calls, and hangs up. */
	ckt_group_open(session);
	ckt_module_cache_open(session);
	ckt_lease_open(session);
	ckt_turn_open(session);
	ckt_session_metrics_open(session);
	ckt_automatic_begin(session);
	ckt_quantum_watch(session);
}

static int adopt(struct ckt_server *server, const char *id)
{
	pid_t pid = 0;
	uid_t uid = 0;
	uint32_t owner = CKT_UID_UNKNOWN;
	struct ckt_session *session = ckt_session_new(server, id);
	if (!session)
		return -ENOMEM;
	int result = ckt_daemon_request_connect(session, CKT_LINK_SHORT);
	if (!result)
		result = ckt_transport_peer_process(
			&session->links[CKT_LINK_SHORT].stream.transport, &pid, &uid);
	/* The process that called listen() on it: see spawn.c. */
	if (!result)
		result = ckt_session_watch_worker(session, pid);
	if (result) {
		/* Removes only a dead worker's socket: nothing else leads to a live one. */
		ckt_session_free(session, result != -ECONNREFUSED && result != -ESRCH);
		return result;
	}
	/* Before anybody can ask for it, or count it. */
	bool told = ckt_owner_file_read(session, &owner);
	set_owner(session, owner);
	session->uid_group = ckt_uid_group_adopt(server, uid);
	ckt_mps_adopt(session);
	ckt_worker_cgroup_adopt(server, pid, session->cgroup);
	session->phase = CKT_SESSION_LIVE;
	/* Until its worker has answered: nothing is ended on a doubt. */
	session->proven = true;
	ckt_session_insert(session);
	server->session_count++;
	ckt_info("session %s: found again, worker %d", session->id, (int)session->pid);
	ckt_lease_is_unknown(session);
	result = ckt_session_call(session, CKT_WORKER_STATUS, NULL, NULL, -1,
		(xdrproc_t)xdr_ckt_worker_status_res, sizeof(struct ckt_worker_status_res),
		CKT_SESSION_CALL_TIMEOUT_MS, adopted_status, told ? session : NULL);
	if (result)
		ckt_lease_is_known(session);
	return result;
}

int ckt_session_adopt_all(struct ckt_server *server)
{
	DIR *dir = opendir(server->socket_dir);
	bool unknown = false;
	if (!dir)
		return -errno;
	ckt_uid_groups_load(server);
	for (struct dirent *entry; (entry = readdir(dir));) {
		char id[CKT_SESSION_ID_SIZE + 1] = "";
		/*
		 * The server died before it named the session: the worker has been told nothing,
		 * and ends.
		 */
		if (strncmp(entry->d_name, "new-", 4) == 0 ||
			strncmp(entry->d_name, "warm-", 5) == 0)
			unlinkat(dirfd(dir), entry->d_name, 0);
		if (strlen(entry->d_name) != CKT_SESSION_ID_SIZE + 5 ||
			strcmp(entry->d_name + CKT_SESSION_ID_SIZE, ".sock") != 0 ||
			strspn(entry->d_name, "0123456789abcdef") != CKT_SESSION_ID_SIZE)
			continue;
		memcpy(id, entry->d_name, CKT_SESSION_ID_SIZE);
		int result = adopt(server, id);
		bool dead = result == -ECONNREFUSED || result == -ESRCH;
		if (result)
			ckt_log(dead ? CKT_LOG_INFO : CKT_LOG_WARNING,
				"session %s: cannot reach its worker: %s", id, strerror(-result));
		unknown |= result && !dead;
	}
	closedir(dir);
	/* A worker that is not found may still serve its client, as the user of any group. */
	if (!unknown)
		ckt_uid_groups_settle(server);
	ckt_owner_files_sweep(server);
	return 0;
}
