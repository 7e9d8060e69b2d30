/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs: which sessions belong to one, and holding all of them for a connection of cricketctl.
 *
 *	JOB_HOLD -> every session of the job is stopped
 *		 -> JOB_LOOK with steps, as often as needed -> all are stopped with no work left
 *		 -> each is saved over a connection of its own, which shows the key
 *		 -> JOB_END, or the connection's end -> all continue
 *
 * A job is a name and a user: sessions of another user with the same name never belong to it.  A
 * caller may hold a session only if it may save it.  Three things let the sessions continue: the
 * connection's end, ten seconds without a message on it, and the end of this server.  The server
 * notices the first two, the workers the last one.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>

#include "rpc/control.h"
#include "rpc/job.h"
#include "server/daemon/session/session.h"

/* Of a session that is held with its job. */
struct ckt_job_hold {
	struct ckt_peer *peer; /* whose connection holds it */
	bool lost;             /* its worker let it continue meanwhile */
	bool drained, copied;
	uint64_t commands, issued, executed;
	char message[CKT_MESSAGE_MAX + 1];
};

/* The job that the hello names; empty for none. */
void ckt_daemon_job_of_hello(const ckt_hello_args *hello, char ret_job[CKT_JOB_NAME_MAX + 1]);
/* Asks the worker of a session that an earlier server started. */
void ckt_daemon_job_adopt(struct ckt_session *session);
/* Whether a connection stopped it other than this one, or one that showed its key. */
bool ckt_daemon_job_is_foreign(const struct ckt_session *session, const struct ckt_peer *peer);
/* The peer ends: releases the sessions that it holds. */
void ckt_daemon_job_peer_gone(struct ckt_peer *peer);

void ckt_control_jobs(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_job_hold(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_job_look(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_job_end(struct ckt_peer *peer, void *args, int *passed_fd);
void ckt_control_job_key(struct ckt_peer *peer, void *args, int *passed_fd);
