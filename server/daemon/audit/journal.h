/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Systemd's journal, by its native protocol: one datagram for each entry, with a field for each key
 * of the JSON object (CRICKET_CALL and so on) and the line itself as MESSAGE.
 *
 * Errors: 0 or -errno with a sentence.  Threading: _put from any thread; it never waits.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#define CKT_AUDIT_JOURNAL_SOCKET "/run/systemd/journal/socket"

struct ckt_audit_journal;

/* path: of the journal's socket. */
int ckt_audit_journal_open(const char *path, struct ckt_audit_journal **ret_journal,
	char *ret_message, size_t message_size);
void ckt_audit_journal_close(struct ckt_audit_journal *journal);
/* The object stays the caller's; NULL counts as lost. */
void ckt_audit_journal_put(struct ckt_audit_journal *journal, json_t *object);
