/* SPDX-License-Identifier: Apache-2.0 */
/* What the audit log hears of peers; see peer_audit.h. */
#include "server/daemon/peer/peer_audit.h"

#include <stdio.h>
#include <string.h>

#include "rpc/control.h"
#include "server/daemon/audit/audit.h"
#include "server/daemon/audit/audit_calls.h"
#include "server/daemon/audit/audit_pieces.h"
#include "server/daemon/audit/audit_sources.h"
#include "server/daemon/peer/peer.h"
#include "server/daemon/policy/ask.h"

/* More lines in one second come from a flood. */
enum { REFUSED_BURST = 10, DROPPED_BURST = 1 };

/* A record about the peer; owner: room for its name. */
static struct ckt_audit_record record_of(
	const struct ckt_peer *peer, const char *event, char owner[CKT_AUDIT_OWNER_TEXT])
{
	struct ckt_identity identity = ckt_identity_of_peer(peer);
	ckt_audit_source_owner(peer->server, &identity, owner);
	return (struct ckt_audit_record){.event = event,
		.peer = peer->who.text,
		.pid = peer->who.pid,
		.owner = owner,
		.role = ckt_role_name(ckt_peer_role(peer))};
}

void ckt_peer_audit_begin(struct ckt_peer *peer, uint32_t proc, const void *args)
{
	struct ckt_audit_record record = {0};
	if (!peer->server->audit)
		return;
	ckt_audit_call_arguments(proc, args, &record);
	peer->audited = (struct ckt_peer_audited){.open = true};
	snprintf(peer->audited.session, sizeof peer->audited.session, "%s",
		record.session ? record.session : "");
	snprintf(peer->audited.object, sizeof peer->audited.object, "%s",
		record.object ? record.object : "");
}

void ckt_peer_audit_session(struct ckt_peer *peer, const char *id)
{
	snprintf(peer->audited.session, sizeof peer->audited.session, "%s", id);
}

void ckt_peer_audit_object(struct ckt_peer *peer, const char *object)
{
	snprintf(peer->audited.object, sizeof peer->audited.object, "%s", object);
}

void ckt_peer_audit_tried(struct ckt_peer *peer)
{
	peer->audited.tried = true;
}

void ckt_peer_audit_refused_late(struct ckt_peer *peer)
{
	peer->audited.tried = false;
}

static struct ckt_audit_record record_of_call(
	struct ckt_peer *peer, char owner[CKT_AUDIT_OWNER_TEXT])
{
	struct ckt_audit_record record = record_of(peer, "control", owner);
	record.call = ckt_audit_call_name(peer->proc);
	record.session = peer->audited.session;
	record.object = peer->audited.object;
	peer->audited.open = false;
	return record;
}

void ckt_peer_audit_end(struct ckt_peer *peer, const void *result)
{
	char owner[CKT_AUDIT_OWNER_TEXT];
	if (!peer->audited.open)
		return;
	struct ckt_audit_record record = record_of_call(peer, owner);
	ckt_audit_call_answer(peer->proc, result, &record);
	/*
	 * A trace is read ten times a second; the calls that start and end it are in the log.
	 * cricketctl top, too, would fill it.
	 */
	if ((peer->proc == CKT_CONTROL_TRACE_READ || peer->proc == CKT_CONTROL_WATCH ||
		    peer->proc == CKT_CONTROL_REPLICA_LEASE ||
		    (peer->proc == CKT_CONTROL_FACTS && peer->facts_calls > 1)) &&
		strcmp(record.result, "ok") == 0)
		return;
	if (peer->audited.tried && strcmp(record.result, "refused") == 0)
		record.result = "failed";
	ckt_audit_write(peer->server->audit, &record);
}

void ckt_peer_audit_cut(struct ckt_peer *peer, const char *reason)
{
	char owner[CKT_AUDIT_OWNER_TEXT];
	if (!peer->audited.open)
		return;
	struct ckt_audit_record record = record_of_call(peer, owner);
	record.result = peer->audited.tried ? "failed" : "refused";
	record.reason = reason;
	ckt_audit_write(peer->server->audit, &record);
}

struct ckt_audit_pieces *ckt_peer_audit_pieces(const struct ckt_peer *peer)
{
	char owner[CKT_AUDIT_OWNER_TEXT];
	struct ckt_audit_record record = record_of(peer, "control", owner);
	record.object = peer->audited.object;
	return ckt_audit_pieces_create(peer->server->audit, &record);
}

void ckt_peer_audit_refused(struct ckt_peer *peer, const char *call, const char *reason)
{
	char owner[CKT_AUDIT_OWNER_TEXT];
	bool is_hello = peer->phase != CKT_PEER_CONTROL;
	if (is_hello && peer->audited.hello_refused)
		return;
	peer->audited.hello_refused = is_hello;
	struct ckt_audit_record record = record_of(peer, "refused", owner);
	record.call = call;
	record.session = peer->hello.session;
	record.program = peer->hello.program_name;
	record.result = "refused";
	record.reason = reason;
	ckt_audit_write_limited(peer->server->audit, &peer->source, REFUSED_BURST, &record);
}

void ckt_peer_audit_dropped(struct ckt_peer *peer, const char *reason)
{
	char owner[CKT_AUDIT_OWNER_TEXT];
	struct ckt_audit_record record = record_of(peer, "refused", owner);
	record.call = "connect";
	record.result = "refused";
	record.reason = reason;
	ckt_audit_write_limited(peer->server->audit, &peer->source, DROPPED_BURST, &record);
}

void ckt_peer_audit_turned_away(
	struct ckt_server *server, const struct ckt_identity *source, const char *reason)
{
	char owner[CKT_AUDIT_OWNER_TEXT];
	ckt_audit_source_owner(server, source, owner);
	const struct ckt_audit_record record = {.event = "refused",
		.peer = source->kind == CKT_IDENTITY_USER ? "local" : strchr(owner, ':') + 1,
		.owner = owner,
		.call = "connect",
		.result = "refused",
		.reason = reason};
	ckt_audit_write_limited(server->audit, source, DROPPED_BURST, &record);
}
