/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls to a worker that are in progress; the part of session.c that knows records.  Threading: the
 * loop's thread.
 */
#pragma once

#include "server/daemon/session/session.h"

/* 0 or -errno. */
int ckt_daemon_request_connect(struct ckt_session *session, enum ckt_link_kind kind);
/*
 * Ends the connection: calls that wait for a reply over it get the error, and the worker drops
 * those that it has not begun.
 */
void ckt_daemon_request_hang_up(struct ckt_session *session, enum ckt_link_kind kind, int error);
/*
 * worker_long_call.c: as ckt_session_call, for calls over CKT_LINK_LONG, which may take any time as
 * long as they make progress.  deadline_ms: the worker's deadline.  After it the server asks for
 * the progress; if the worker does not answer, or makes none for ten minutes, the call ends with
 * -ETIMEDOUT.
 */
int ckt_session_call_long(struct ckt_session *session, uint32_t proc, xdrproc_t xdr_args,
	void *args, int pass_fd, xdrproc_t xdr_result, size_t result_size, unsigned deadline_ms,
	ckt_request_done done, void *context);
/*
 * Within the done of a call over CKT_LINK_LONG: the descriptor that came with the answer, the caller's
 * from here on; -1: none came.
 */
int ckt_daemon_request_take_fd(void);
/* What became of a worker, for a message: "session ...: its worker ...: %s". */
const char *ckt_daemon_request_problem(int error);
/* Whether the loop has not yet read all that the worker sent while replies are missing. */
bool ckt_daemon_request_unread(struct ckt_session *session);
/* Tells all waiting callers that no reply will come. */
void ckt_daemon_request_fail_all(struct ckt_session *session, int error);
