/* SPDX-License-Identifier: Apache-2.0 */
/* What the audit log hears of sessions; see session_audit.h. */
#include "server/daemon/session/session_audit.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "server/daemon/audit/audit.h"
#include "server/daemon/audit/audit_sources.h"

/* More in one second come from somebody who guesses. */
enum { REFUSED_BURST = 10 };

static struct ckt_identity owner_of(const struct ckt_session *session)
{
	return session->uid != CKT_UID_UNKNOWN ? ckt_identity_of_owner(session->uid)
					       : session->identity;
}

void ckt_session_audit(
	const struct ckt_session *session, const char *call, bool failed, const char *detail)
{
	struct ckt_identity owner = owner_of(session);
	char owner_text[CKT_AUDIT_OWNER_TEXT];
	ckt_audit_source_owner(session->server, &owner, owner_text);
	const struct ckt_audit_record record = {.event = "session",
		.owner = owner_text,
		.call = call,
		.session = session->id,
		.program = session->status.program_name,
		.worker = session->pid,
		.result = failed ? "failed" : "ok",
		.reason = detail};
	ckt_audit_write(session->server->audit, &record);
}

static void refusal_text(ckt_hello_status status, int error, char ret_text[CKT_AUDIT_SOURCE_TEXT])
{
	if (error)
		snprintf(ret_text, CKT_AUDIT_SOURCE_TEXT, "the worker does not answer: %s",
			strerror(-error));
	else if (status == CKT_HELLO_DENIED)
		snprintf(ret_text, CKT_AUDIT_SOURCE_TEXT,
			"the worker refused it: the secret is not the session's, or the user may "
			"not have it");
	else if (status == CKT_HELLO_STALE)
		snprintf(ret_text, CKT_AUDIT_SOURCE_TEXT,
			"the worker refused it: the client has seen another state of the session");
	else
		snprintf(ret_text, CKT_AUDIT_SOURCE_TEXT, "the worker refused it: status %d",
			(int)status);
}

void ckt_session_audit_client(const struct ckt_session *session,
	const struct ckt_session_client *client, ckt_hello_status status, int error)
{
	struct ckt_identity source = client->who.uid == CKT_UID_UNKNOWN
		? ckt_identity_of(&client->who)
		: ckt_identity_of_owner(client->who.uid);
	char owner[CKT_AUDIT_OWNER_TEXT], reason[CKT_AUDIT_SOURCE_TEXT];
	bool is_accepted = !error && status == CKT_HELLO_OK;
	ckt_audit_source_owner(session->server, &source, owner);
	struct ckt_audit_record record = {.event = is_accepted ? "session" : "refused",
		.peer = client->who.text,
		.pid = client->who.pid,
		.owner = owner,
		.call = is_accepted ? "connected" : "hello",
		.session = session->id,
		.program = client->program,
		.worker = session->pid,
		.result = "ok"};
	if (is_accepted) {
		ckt_audit_write(session->server->audit, &record);
		return;
	}
	refusal_text(status, error, reason);
	record.result = error ? "failed" : "refused";
	record.reason = reason;
	ckt_audit_write_limited(session->server->audit, &source, REFUSED_BURST, &record);
}

void ckt_session_audit_share(const struct ckt_session *session, const struct ckt_session *stranger)
{
	struct ckt_identity source = owner_of(session), other = owner_of(stranger);
	char owner[CKT_AUDIT_OWNER_TEXT], others[CKT_AUDIT_OWNER_TEXT],
		reason[CKT_AUDIT_OWNER_TEXT + 80]; /* an owner's name and the sentence around it */
	ckt_audit_source_owner(session->server, &source, owner);
	ckt_audit_source_owner(session->server, &other, others);
	snprintf(reason, sizeof reason,
		"session %s belongs to %s: sessions of different owners share nothing",
		stranger->id, others);
	const struct ckt_audit_record record = {.event = "refused",
		.owner = owner,
		.call = "share",
		.session = session->id,
		.program = session->status.program_name,
		.worker = session->pid,
		.result = "refused",
		.reason = reason};
	ckt_info("session %s (%s) may not share memory with session %s: it belongs to %s",
		session->id, owner, stranger->id, others);
	ckt_audit_write_limited(session->server->audit, &source, REFUSED_BURST, &record);
}
