/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit log: one JSON line for each control call once it is answered, for each refusal, and
 * for each session that begins or ends.
 *
 *	record (below) --audit_line.c--> JSON object --audit_file.c--> a line of FILE, by a thread
 *	                                             --journal.c-----> a datagram to systemd's journal
 *
 * Texts of peers are data: JSON escapes what could end a line.  Tokens, secrets and proofs never
 * come here.
 *
 * Errors: 0 or -errno, with a sentence that names the thing, the cause and the remedy.
 * Threading: ckt_audit_write, ckt_audit_ref and ckt_audit_unref from any thread, the rest from the
 * loop's.  Nothing here waits for a disk, except ckt_audit_close.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "server/daemon/audit/audit_record.h"

struct ckt_audit;
struct ckt_identity;
struct ckt_loop;

/* The value of --audit that means systemd's journal. */
#define CKT_AUDIT_JOURNAL "journal"

/* where: an absolute path or CKT_AUDIT_JOURNAL.  The loop outlives ckt_audit_close. */
int ckt_audit_open(const char *where, struct ckt_loop *loop, struct ckt_audit **ret_audit,
	char *ret_message, size_t message_size);
/*
 * Writes what is still counted and queued, for two seconds at most, and takes no records from then
 * on.  Gives the caller's reference back.
 */
void ckt_audit_close(struct ckt_audit *audit);
/* For a thread that writes later: it may do so after the end, and then nothing happens. */
struct ckt_audit *ckt_audit_ref(struct ckt_audit *audit);
void ckt_audit_unref(struct ckt_audit *audit);
/* The file has been renamed: the next line goes into a new one. */
void ckt_audit_reopen(struct ckt_audit *audit);

/* All of these do nothing where audit is NULL. */
void ckt_audit_write(struct ckt_audit *audit, const struct ckt_audit_record *record);
/*
 * The same for what a stranger causes: `burst` lines a second from one source, and then, a second
 * later, one line with the count of the rest.
 */
void ckt_audit_write_limited(struct ckt_audit *audit, const struct ckt_identity *source,
	unsigned burst, const struct ckt_audit_record *record);
