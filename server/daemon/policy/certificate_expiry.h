/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the server's certificate, its authority and the list of revoked certificates end.  The log
 * says so 30, 7 and 1 days before, and when it has happened; /metrics has the times.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <time.h>

#include "server/daemon/loop.h"

struct ckt_server;

enum ckt_expiring {
	CKT_EXPIRING_SERVER,
	CKT_EXPIRING_AUTHORITY,
	CKT_EXPIRING_REVOCATIONS,
	CKT_EXPIRINGS
};

struct ckt_certificate_expiry {
	struct ckt_timer timer;
	/* Of each: the end for which the log has a line, and how late that was (see LATENESS). */
	time_t told_end[CKT_EXPIRINGS];
	int told[CKT_EXPIRINGS];
};

/* The value of the label: "server", "authority", "revocations". */
const char *ckt_expiring_name(enum ckt_expiring which);
/* False: no such file is used, or it cannot be read. */
bool ckt_certificate_expiry_of(
	const struct ckt_server *server, enum ckt_expiring which, time_t *ret_end);
/* Looks now, and once an hour. */
void ckt_certificate_expiry_open(struct ckt_server *server);
void ckt_certificate_expiry_close(struct ckt_server *server);
/* One look, at that time. */
void ckt_certificate_expiry_look(struct ckt_server *server, time_t now);
