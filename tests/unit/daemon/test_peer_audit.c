/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/daemon/peer/peer_audit.c: one line for each control call, whether it is answered at once,
 * later or never, and lines for refusals.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/audit/audit.h"
#include "server/daemon/peer/peer_audit.h"

static char path[256];

static void audit_begin(void)
{
	char message[512] = "";
	snprintf(path, sizeof path, "%s/audit-peer", directory);
	unlink(path);
	MUST(ckt_audit_open(path, &server.loop, &server.audit, message, sizeof message), 0);
}

/* The lines. */
static const char *audit_end(void)
{
	ckt_audit_close(server.audit);
	server.audit = NULL;
	return read_file(path);
}

static unsigned count(const char *text, const char *part)
{
	unsigned found = 0;
	for (; (text = strstr(text, part)); text++)
		found++;
	return found;
}

static void test_calls(void)
{
	char expected[256];
	struct ckt_session *session = session_new("0000000000a1");
	ckt_control_session_args args = {.session = (char *)"0000"};
	ckt_control_progress_res progress = {0};
	audit_begin();
	int fd = control_new();
	YES(control(fd, CKT_CONTROL_NULL, NULL, NULL, -1, NULL, NULL));
	/* Answered by the worker, and named by a prefix. */
	YES(control(fd, CKT_CONTROL_PROGRESS, (xdrproc_t)xdr_ckt_control_session_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_progress_res, &progress));
	xdr_free((xdrproc_t)xdr_ckt_control_progress_res, (char *)&progress);
	/* What the worker could not do is a failure, and no refusal. */
	worker.garbage = true;
	YES(control(fd, CKT_CONTROL_PROGRESS, (xdrproc_t)xdr_ckt_control_session_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_progress_res, &progress));
	xdr_free((xdrproc_t)xdr_ckt_control_progress_res, (char *)&progress);
	worker.garbage = false;
	args.session = (char *)"ff\n\"ff";
	YES(control(fd, CKT_CONTROL_PROGRESS, (xdrproc_t)xdr_ckt_control_session_args, &args, -1,
		(xdrproc_t)xdr_ckt_control_progress_res, &progress));
	xdr_free((xdrproc_t)xdr_ckt_control_progress_res, (char *)&progress);
	close(fd);
	run_for(3);
	const char *text = audit_end();
	IS(count(text, "\n"), 4);
	HAS(text, "\"session\":\"0000000000a1\",\"result\":\"failed\",\"reason\":\"");
	snprintf(expected, sizeof expected,
		"\"event\":\"control\",\"peer\":\"local\",\"pid\":%d,\"owner\":\"uid:%u\","
		"\"role\":\"administrator\",\"call\":\"null\",\"result\":\"ok\"}\n",
		(int)getpid(), (unsigned)geteuid());
	HAS(text, expected);
	HAS(text, "\"call\":\"progress\",\"session\":\"0000000000a1\",\"result\":\"ok\"}\n");
	HAS(text,
		"\"call\":\"progress\",\"session\":\"ff\\n\\\"ff\",\"result\":\"refused\","
		"\"reason\":\"there is no session 'ff\\n\\\"ff' on here");
	session_drop(session);
}

/* Who hangs up before the answer leaves a line all the same. */
static void test_cut(void)
{
	struct ckt_session *session = session_new("0000000000a2");
	audit_begin();
	int fd = control_new();
	worker.silent = true;
	ckt_control_session_args args = {.session = (char *)"0000000000a2"};
	uint8_t *data;
	size_t size;
	MUST(ckt_net_encode_call(1, CRICKET_CONTROL_PROG, CKT_CONTROL_PROGRESS,
		     (xdrproc_t)xdr_ckt_control_session_args, &args, &data, &size),
		0);
	send_bytes(fd, data, size, -1);
	free(data);
	run_for(30);
	close(fd);
	run_for(30);
	const char *text = audit_end();
	IS(count(text, "\n"), 1);
	HAS(text,
		"\"call\":\"progress\",\"session\":\"0000000000a2\",\"result\":\"failed\","
		"\"reason\":\"the connection ended before the answer\"}\n");
	worker.silent = false;
	session_drop(session);
}

static void test_refused(void)
{
	static const char http[] = "GET / HTTP/1.0\r\nHost: here\r\nAccept: everything\r\n\r\n";
	static const char words[] = "this is not a control call, but it is long enough";
	char text[512];
	ckt_greeting greeting;
	ckt_hello_args args = hello_args(CKT_HELLO_RESUME, "0123456789ab");
	args.program_name = (char *)"a\nb";
	audit_begin();
	int fd = peer_new(&greeting);
	IS(hello(fd, &args, (const uint8_t *)greeting.nonce, NULL, text), CKT_HELLO_NO_SESSION);
	xdr_free((xdrproc_t)xdr_ckt_greeting, (char *)&greeting);
	close(fd);
	fd = peer_new(&greeting);
	xdr_free((xdrproc_t)xdr_ckt_greeting, (char *)&greeting);
	send_bytes(fd, http, sizeof http - 1, -1);
	run_for(3);
	close(fd);
	fd = control_new();
	send_bytes(fd, words, sizeof words - 1, -1);
	run_for(3);
	close(fd);
	/* Dropped before the hello, as a peer and as an address. */
	fd = peer_new(&greeting);
	xdr_free((xdrproc_t)xdr_ckt_greeting, (char *)&greeting);
	ckt_peer_audit_dropped(peer_last(), "too many");
	const struct ckt_identity address = {.kind = CKT_IDENTITY_ADDRESS,
		.network = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 7}};
	ckt_peer_audit_turned_away(&server, &address, "too many");
	ckt_peer_audit_turned_away(&server, &address, "too many");
	close(fd);
	run_for(3);
	const char *lines = audit_end();
	IS(count(lines, "\"event\":\"refused\""), 6);
	IS(count(lines, "\n"), 6);
	HAS(lines,
		"\"call\":\"hello\",\"session\":\"0123456789ab\",\"program\":\"a\\nb\","
		"\"result\":\"refused\",\"reason\":\"session 0123456789ab is not on here\"}");
	HAS(lines, "\"reason\":\"the first message is not a hello\"}");
	HAS(lines, "\"call\":\"unknown\",\"program\":\"");
	HAS(lines,
		"\"peer\":\"10.0.0.7\",\"owner\":\"host:10.0.0.7\",\"call\":\"connect\","
		"\"result\":\"refused\",\"reason\":\"too many\"}\n");
	IS(count(lines, "\"reason\":\"too many\"}"), 3);
}

UNIT_SUITE(peer_audit, {"calls", test_calls}, {"cut", test_cut}, {"refused", test_refused})
