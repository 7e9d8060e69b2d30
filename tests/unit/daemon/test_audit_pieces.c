/* SPDX-License-Identifier: Apache-2.0 */
/* server/daemon/audit/audit_pieces.c: one line for the reads of a connection, one for its writes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "inside.h"
#include "server/daemon/audit/audit.h"
#include "server/daemon/audit/audit_pieces.h"

static void test_pieces(void)
{
	static const char caller_text[] =
		"\"event\":\"control\",\"peer\":\"10.0.0.7:5\",\"owner\":\"token:alice\","
		"\"role\":\"user\",\"call\":\"%s\",\"object\":\"stage-1\",\"result\":\"%s\"";
	char path[256], message[512] = "", expected[512], peer[32] = "10.0.0.7:5";
	struct ckt_audit *audit = NULL;
	const struct ckt_audit_record caller = {
		.peer = peer, .owner = "token:alice", .role = "user", .object = "stage-1"};
	snprintf(path, sizeof path, "%s/audit-pieces", directory);
	MUST(ckt_audit_open(path, &server.loop, &audit, message, sizeof message), 0);
	struct ckt_audit_pieces *pieces = ckt_audit_pieces_create(audit, &caller),
				*idle = ckt_audit_pieces_create(audit, &caller),
				*wrong = ckt_audit_pieces_create(audit, &caller);
	/* The peer may be gone by then. */
	memset(peer, 'x', sizeof peer - 1);
	for (int i = 0; i < 1000; i++)
		ckt_audit_pieces_count(pieces, CKT_CONTROL_WRITE, 0);
	ckt_audit_pieces_count(pieces, CKT_CONTROL_READ, 0);
	ckt_audit_pieces_count(pieces, CKT_CONTROL_READ, -ENOENT);
	ckt_audit_pieces_count(pieces, CKT_CONTROL_READ, -EIO);
	ckt_audit_pieces_end(pieces, false);
	ckt_audit_pieces_end(idle, false);
	ckt_audit_pieces_end(wrong, true);
	/* It outlives the server's reference. */
	struct ckt_audit_pieces *late = ckt_audit_pieces_create(audit, &caller);
	ckt_audit_pieces_count(late, CKT_CONTROL_READ, 0);
	ckt_audit_close(audit);
	ckt_audit_pieces_end(late, false);
	const char *text = read_file(path);
	snprintf(expected, sizeof expected, caller_text, "write", "ok");
	HAS(text, strcat(expected, ",\"count\":1000}\n"));
	snprintf(expected, sizeof expected, caller_text, "read", "failed");
	HAS(text,
		strcat(expected,
			",\"reason\":\"2 failed, the first: No such file or directory\","
			"\"count\":3}\n"));
	HAS(text, "\"event\":\"refused\",\"peer\":\"10.0.0.7:5\"");
	HAS(text, "\"reason\":\"a connection that carries files sent something else\"}\n");
	unsigned lines = 0;
	for (const char *p = text; (p = strchr(p, '\n')); p++)
		lines++;
	IS(lines, 3);
	CU_ASSERT_PTR_NULL(ckt_audit_pieces_create(NULL, &caller));
	ckt_audit_pieces_count(NULL, CKT_CONTROL_READ, 0);
	ckt_audit_pieces_end(NULL, true);
}

UNIT_SUITE(audit_pieces, {"pieces", test_pieces})
