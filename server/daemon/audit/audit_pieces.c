/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of images' files in the audit log; see audit_pieces.h. */
#include "server/daemon/audit/audit_pieces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/control.h"
#include "server/daemon/audit/audit.h"
#include "server/daemon/audit/audit_calls.h"
#include "server/daemon/audit/audit_sources.h"

struct kind {
	uint32_t proc;
	uint64_t count, failed;
	int error; /* the first */
};

enum { READS, WRITES, KINDS };

struct ckt_audit_pieces {
	struct ckt_audit *audit;
	struct kind kinds[KINDS];
	int pid;
	const char *role;
	char peer[CKT_AUDIT_SOURCE_TEXT], owner[CKT_AUDIT_OWNER_TEXT],
		object[CKT_CONTROL_NAME_MAX + 1];
};

struct ckt_audit_pieces *ckt_audit_pieces_create(
	struct ckt_audit *audit, const struct ckt_audit_record *caller)
{
	struct ckt_audit_pieces *pieces = audit ? calloc(1, sizeof *pieces) : NULL;
	if (!pieces)
		return NULL;
	pieces->audit = ckt_audit_ref(audit);
	pieces->kinds[READS].proc = CKT_CONTROL_READ;
	pieces->kinds[WRITES].proc = CKT_CONTROL_WRITE;
	pieces->pid = caller->pid;
	pieces->role = caller->role;
	snprintf(pieces->peer, sizeof pieces->peer, "%s", caller->peer);
	snprintf(pieces->owner, sizeof pieces->owner, "%s", caller->owner);
	snprintf(pieces->object, sizeof pieces->object, "%s", caller->object);
	return pieces;
}

void ckt_audit_pieces_count(struct ckt_audit_pieces *pieces, uint32_t proc, int status)
{
	if (!pieces)
		return;
	struct kind *kind = &pieces->kinds[proc == CKT_CONTROL_WRITE ? WRITES : READS];
	kind->count++;
	kind->failed += status != 0;
	if (!kind->error)
		kind->error = status;
}

static struct ckt_audit_record record_of(const struct ckt_audit_pieces *pieces)
{
	return (struct ckt_audit_record){.event = "control",
		.peer = pieces->peer,
		.pid = pieces->pid,
		.owner = pieces->owner,
		.role = pieces->role,
		.object = pieces->object,
		.result = "ok"};
}

static void write_kind(const struct ckt_audit_pieces *pieces, const struct kind *kind)
{
	char reason[CKT_AUDIT_SOURCE_TEXT];
	struct ckt_audit_record record = record_of(pieces);
	if (!kind->count)
		return;
	record.call = ckt_audit_call_name(kind->proc);
	record.count = kind->count;
	if (kind->failed) {
		snprintf(reason, sizeof reason, "%llu failed, the first: %s",
			(unsigned long long)kind->failed, strerror(-kind->error));
		record.result = "failed";
		record.reason = reason;
	}
	ckt_audit_write(pieces->audit, &record);
}

void ckt_audit_pieces_end(struct ckt_audit_pieces *pieces, bool refused)
{
	if (!pieces)
		return;
	for (int i = 0; i < KINDS; i++)
		write_kind(pieces, &pieces->kinds[i]);
	if (refused) {
		struct ckt_audit_record record = record_of(pieces);
		record.event = "refused";
		record.call = "unknown";
		record.result = "refused";
		record.reason = "a connection that carries files sent something else";
		ckt_audit_write(pieces->audit, &record);
	}
	ckt_audit_unref(pieces->audit);
	free(pieces);
}
