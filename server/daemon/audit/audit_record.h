/* SPDX-License-Identifier: Apache-2.0 */
/* What one line of the audit log says.  Texts stay the caller's; NULL, "" and 0 are left out. */
#pragma once

#include <stdint.h>

struct ckt_audit_record {
	const char *event;   /* "control", "refused", "session" */
	const char *peer;    /* its address, or "local" */
	int pid;             /* of a local peer, as the kernel reports it */
	const char *owner;   /* "uid:1000", "token:alice", "host:10.0.0.7" */
	const char *role;    /* "user", "operator", "administrator" */
	const char *call;    /* "save", "hello"; of a session: "started", "ended" ... */
	const char *session; /* its ID, or the prefix that the peer wrote */
	const char *object;  /* the name of a stage, an image in memory or a job */
	const char *program; /* as the client names itself */
	int worker;          /* pid of the session's worker */
	const char *result;  /* "ok", "refused", "failed" */
	const char *reason;
	uint64_t count; /* of the events that the line stands for; 0 and 1: one */
};
