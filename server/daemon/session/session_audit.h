/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the audit log hears of sessions: that they begin and end, and which clients their workers
 * accept or refuse.  What is asked of them are control calls (peer_audit.h).
 *
 * Nothing is written without --audit.  Threading: the loop's thread.
 */
#pragma once

#include "rpc/identity.h"
#include "server/daemon/session/session.h"

/* A client on its way to the worker. */
struct ckt_session_client {
	struct ckt_auth_peer who;
	char program[CKT_NAME_MAX + 1];
};

/* call: "started", "restored", "ended" or "lost"; detail: how it ended. */
void ckt_session_audit(
	const struct ckt_session *session, const char *call, bool failed, const char *detail);
/* The worker's answer to a hello, or the error instead of one (-errno, 0: none). */
void ckt_session_audit_client(const struct ckt_session *session,
	const struct ckt_session_client *client, ckt_hello_status status, int error);
/* The session asked for one of another owner, to share memory or communicators with it. */
void ckt_session_audit_share(const struct ckt_session *session, const struct ckt_session *stranger);
