/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/session/session_audit.c: lines of sessions, and of clients that workers refuse. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/audit/audit.h"
#include "server/daemon/session/session_audit.h"

static char path[256];

static void audit_begin(void)
{
	char message[512] = "";
	snprintf(path, sizeof path, "%s/audit-session", directory);
	unlink(path);
	MUST(ckt_audit_open(path, &server.loop, &server.audit, message, sizeof message), 0);
}

/* The lines without the key "time" of the first. */
static const char *audit_end(void)
{
	ckt_audit_close(server.audit);
	server.audit = NULL;
	const char *text = read_file(path), *event = strstr(text, "\"event\"");
	return event ? event : text;
}

static void test_session(void)
{
	struct ckt_session *session = session_new("0000000000b1");
	session->uid = 4001;
	session->pid = 77;
	audit_begin();
	ckt_session_audit(session, "started", false, "");
	TEXT(audit_end(),
		"\"event\":\"session\",\"owner\":\"uid:4001\",\"call\":\"started\","
		"\"session\":\"0000000000b1\",\"program\":\"program\",\"worker\":77,\"result\":\"ok\"}\n");
	audit_begin();
	session->uid = CKT_UID_UNKNOWN;
	session->identity = (struct ckt_identity){.kind = CKT_IDENTITY_ADDRESS,
		.network = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 7}};
	ckt_session_audit(session, "lost", true, "signal 9, Killed");
	TEXT(audit_end(),
		"\"event\":\"session\",\"owner\":\"host:10.0.0.7\",\"call\":\"lost\","
		"\"session\":\"0000000000b1\",\"program\":\"program\",\"worker\":77,\"result\":\"failed\","
		"\"reason\":\"signal 9, Killed\"}\n");
	session->pid = -1;
	/* Without --audit. */
	ckt_session_audit(session, "ended", false, "");
	session_drop(session);
}

static void test_client(void)
{
	static const struct {
		ckt_hello_status status;
		int error;
		const char *says;
	} cases[] = {
		{CKT_HELLO_OK, 0, "\"event\":\"session\",\"peer\":\"local\",\"pid\":9,"},
		{CKT_HELLO_OK, 0,
			"\"call\":\"connected\",\"session\":\"0000000000b2\","
			"\"program\":\"a\\nb\",\"result\":\"ok\"}\n"},
		{CKT_HELLO_DENIED, 0,
			"\"event\":\"refused\",\"peer\":\"local\",\"pid\":9,"
			"\"owner\":\"uid:4001\",\"call\":\"hello\","},
		{CKT_HELLO_DENIED, 0,
			"\"result\":\"refused\",\"reason\":\"the worker refused it: "
			"the secret is not the session's"},
		{CKT_HELLO_STALE, 0, "the client has seen another state of the session\"}\n"},
		{CKT_HELLO_PARKED, 0, "the worker refused it: status 9\"}\n"},
		{CKT_HELLO_FAILED, -ETIMEDOUT,
			"\"result\":\"failed\",\"reason\":\"the worker does not answer: "
			"Connection timed out\"}\n"},
	};
	struct ckt_session *session = session_new("0000000000b2");
	struct ckt_session_client client = {
		.who = {.kind = CKT_PEER_UNIX, .uid = 4001, .pid = 9, .text = "local"},
		.program = "a\nb"};
	session->pid = 0;
	for (size_t i = 0; i < COUNT(cases); i++) {
		audit_begin();
		ckt_session_audit_client(session, &client, cases[i].status, cases[i].error);
		HAS(audit_end(), cases[i].says);
	}
	/* Guesses fill no disk. */
	unsigned lines = 0;
	audit_begin();
	for (int i = 0; i < 500; i++)
		ckt_session_audit_client(session, &client, CKT_HELLO_DENIED, 0);
	for (const char *p = audit_end(); (p = strchr(p, '\n')); p++)
		lines++;
	IS(lines, 11);
	HAS(read_file(path), "\"count\":490}\n");
	session_drop(session);
}

UNIT_SUITE(session_audit, {"session", test_session}, {"client", test_client})
