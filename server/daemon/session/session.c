/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions; see session.h. */
#include "server/daemon/session/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/daemon/durable/automatic.h"
#include "server/daemon/session/group.h"
#include "server/daemon/session/group_domain.h"
#include "server/daemon/session/owner_file.h"
#include "server/daemon/session/restore_again.h"
#include "server/daemon/session/session_marks.h"
#include "server/daemon/session/session_parts.h"
#include "server/daemon/session/uid_group.h"

void ckt_session_path(const struct ckt_session *session, char ret_path[CKT_PATH_MAX])
{
	snprintf(ret_path, CKT_PATH_MAX, "%.4000s/%s.sock", session->server->socket_dir,
		session->id);
}

bool ckt_session_any_ends(const struct ckt_server *server)
{
	const struct ckt_session *session = server->sessions;
	while (session && session->phase != CKT_SESSION_ENDING)
		session = session->next;
	return session;
}

struct ckt_session *ckt_session_find(struct ckt_server *server, const char *id)
{
	for (struct ckt_session *session = server->sessions; session; session = session->next)
		if (strcmp(session->id, id) == 0)
			return session;
	return NULL;
}

void ckt_session_insert(struct ckt_session *session)
{
	struct ckt_session **place = &session->server->sessions;
	while (*place && strcmp((*place)->id, session->id) < 0)
		place = &(*place)->next;
	session->next = *place;
	*place = session;
}

void ckt_session_take_out(struct ckt_session *session)
{
	struct ckt_session **place = &session->server->sessions;
	while (*place && *place != session)
		place = &(*place)->next;
	if (*place)
		*place = session->next;
}

static int wait_add(struct ckt_wait **list, ckt_session_waiter call, void *context)
{
	struct ckt_wait *wait = calloc(1, sizeof *wait);
	if (!wait)
		return -ENOMEM;
	wait->call = call;
	wait->context = context;
	while (*list)
		list = &(*list)->next;
	*list = wait;
	return 0;
}

void ckt_session_tell_waiters(
	struct ckt_wait **list, struct ckt_session *session, int error, const char *message)
{
	while (*list) {
		struct ckt_wait *wait = *list;
		*list = wait->next;
		wait->call(session, wait->context, error, message);
		free(wait);
	}
}

int ckt_session_wait_started(struct ckt_session *session, ckt_session_waiter call, void *context)
{
	if (session->phase == CKT_SESSION_STARTING)
		return wait_add(&session->on_started, call, context);
	if (session->phase == CKT_SESSION_ENDING)
		return -ESRCH;
	call(session, context, 0, "");
	return 0;
}

int ckt_session_wait_gone(struct ckt_session *session, ckt_session_waiter call, void *context)
{
	return wait_add(&session->on_gone, call, context);
}

static char *copy(const char *text)
{
	return strdup(text ? text : "");
}

struct ckt_session *ckt_session_new(struct ckt_server *server, const char *id)
{
	struct ckt_session *session = calloc(1, sizeof *session);
	if (!session)
		return NULL;
	session->server = server;
	session->serial = ++server->session_serial;
	session->pidfd.fd = -1;
	for (int kind = 0; kind < CKT_LINKS; kind++)
		session->links[kind].stream.source.fd = -1;
	ckt_refused_calls_init(&session->refused, server, session->id);
	session->uid = CKT_UID_UNKNOWN;
	session->gpu = -1;
	session->started = time(NULL);
	snprintf(session->id, sizeof session->id, "%s", id);
	session->status = (struct ckt_worker_status_res){.session = copy(id),
		.program_name = copy(""),
		.client = copy(""),
		.note = copy(""),
		.uid = CKT_UID_UNKNOWN,
		.started = session->started};
	const struct ckt_worker_status_res *status = &session->status;
	if (!status->session || !status->program_name || !status->client || !status->note) {
		xdr_free((xdrproc_t)xdr_ckt_worker_status_res, (char *)&session->status);
		free(session);
		return NULL;
	}
	return session;
}

void ckt_session_free(struct ckt_session *session, bool keep_socket)
{
	char path[CKT_PATH_MAX];
	ckt_session_path(session, path);
	ckt_automatic_end(session, true);
	ckt_session_metrics_close(session);
	if (!keep_socket) {
		unlink(path);
		ckt_owner_file_remove(session->server, session->id);
		ckt_session_mark_remove(session->server, session->id, CKT_MARK_PAUSED, 0);
	}
	ckt_timer_clear(&session->timer);
	ckt_timer_clear(&session->pause_timer);
	for (int kind = 0; kind < CKT_LINKS; kind++)
		ckt_record_stream_fini(&session->links[kind].stream);
	ckt_refused_calls_close(&session->refused);
	ckt_group_close(session);
	free(session->group.partners);
	ckt_lease_close(session);
	ckt_turn_close(session);
	ckt_swap_close(session);
	int fd = ckt_loop_remove(&session->server->loop, &session->pidfd);
	if (fd >= 0)
		close(fd);
	xdr_free((xdrproc_t)xdr_ckt_worker_status_res, &session->status);
	free(session->job_hold);
	ckt_mps_leave(session);
	/* Kills what the worker left there, which has its user id. */
	ckt_worker_cgroup_remove(session->server, session->cgroup);
	ckt_group_domain_leave(session->domain);
	ckt_uid_group_leave(session->uid_group);
	ckt_restore_again_destroy(session->again);
	free(session);
}
