/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger of a certificate authority: the file ledger.jsonl in its directory, one JSON object a line, only ever
 * longer.  It says what was issued and revoked, and the revocation list is made of it.
 *
 *	{"time": "2026-11-28T18:00:00Z", "event": "issue", "kind": "client", "name": "alice", "serial": "51a0...",
 *	 "not_after": 1795888800, "role": "operator", "projects": ["vision"], "fingerprint": "SHA256:..."}
 *
 * A last line without its end is of a process that was killed: it counts as not written, and the
 * next line replaces it.
 *
 * Errors: 0 or -errno, said in the problem.  Precondition of all: the authority is locked.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "ctl/certificate/certificate_files.h"

struct ckt_ctl_ledger {
	int fd;
	const char *path; /* for messages; the authority's */
	json_t *lines;    /* array */
};

/* directory: of the authority. */
int ckt_ctl_ledger_open(int directory, const char *path, struct ckt_ctl_ledger *ret_ledger,
	struct ckt_ctl_problem *problem);
void ckt_ctl_ledger_close(struct ckt_ctl_ledger *ledger);
/* Takes the line over, and adds the time.  On the disk then, or not there. */
int ckt_ctl_ledger_add(
	struct ckt_ctl_ledger *ledger, json_t *line, struct ckt_ctl_problem *problem);

/* "issue" and "renew" are certificates; borrowed. */
bool ckt_ctl_ledger_is_certificate(const json_t *line);
/* The member's text, or "". */
const char *ckt_ctl_ledger_text(const json_t *line, const char *member);
int64_t ckt_ctl_ledger_not_after(const json_t *line);
/* When the serial was revoked; 0: it is not. */
int64_t ckt_ctl_ledger_revoked(const struct ckt_ctl_ledger *ledger, const char *serial);
/*
 * The last certificate of the name, or of the serial; kind: "server", "client" or NULL for any.
 * NULL: none.  Borrowed.
 */
const json_t *ckt_ctl_ledger_find(
	const struct ckt_ctl_ledger *ledger, const char *kind, const char *name);
/* Whether there are certificates of that name of both kinds. */
bool ckt_ctl_ledger_is_ambiguous(const struct ckt_ctl_ledger *ledger, const char *name);
