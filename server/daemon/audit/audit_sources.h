/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many lines of the audit log a source may cause: some in each second.  The rest of the second
 * is counted, so that a flood of connections cannot fill a disk.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/daemon/audit/audit_record.h"
#include "server/daemon/policy/identity.h"

struct ckt_server;

enum {
	CKT_AUDIT_SOURCES = 64, /* at one time; further ones share a place */
	CKT_AUDIT_SOURCE_MS = 1000,
	CKT_AUDIT_SOURCE_TEXT = 128,
	CKT_AUDIT_OWNER_TEXT = 80, /* "host:" and an address, or "token:" and a name */
};

struct ckt_audit_source {
	struct ckt_identity identity; /* CKT_IDENTITY_NONE: the place is free, or the shared one */
	int64_t until_ms;
	unsigned written;
	/* What was not written: how often, and the last one. */
	uint64_t count;
	char event[16], peer[CKT_AUDIT_SOURCE_TEXT], owner[CKT_AUDIT_OWNER_TEXT], call[32],
		reason[CKT_AUDIT_SOURCE_TEXT];
};

/* Zeroed by its owner at first. */
struct ckt_audit_sources {
	struct ckt_audit_source places[CKT_AUDIT_SOURCES + 1]; /* the last one is shared */
};

/* True: write this one.  False: it is counted, and _due will say so. */
bool ckt_audit_sources_take(struct ckt_audit_sources *sources, const struct ckt_identity *source,
	unsigned burst, const struct ckt_audit_record *record, int64_t now_ms);
/*
 * The record of a source whose second is over and that was counted; false: there is no more.  Its
 * texts last until the next call.
 */
bool ckt_audit_sources_due(
	struct ckt_audit_sources *sources, int64_t now_ms, struct ckt_audit_record *ret_record);
/* "uid:1000", "token:alice", "host:10.0.0.7", "host:2001:db8::/64". */
void ckt_audit_source_owner(struct ckt_server *server, const struct ckt_identity *identity,
	char ret_text[CKT_AUDIT_OWNER_TEXT]);
