/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leases of workers (rpc/lease.h): the daemon's side of their channels, between them and the ledger
 * (server/daemon/policy/ledger.h).
 *
 *	worker asks --> enough is left -----------------------------------> answered at once
 *	            \-> not, or a neighbour is unsettled: the neighbours
 *	                give back what they do not use, all at one time ---> answered with the last one
 *
 *	a session that comes in behind one that leaves asks --> answered when so much has left, or nothing does
 *
 * So a question is refused only if the memory is in use.  Then it may wait (memory_wait.h), if its
 * worker says so.  A neighbour that does not answer within two
 * seconds keeps its lease.
 *
 * What a worker sends is checked against what the ledger knows: it can make its own lease no smaller
 * than the daemon has it, and no other's.  A worker that sends anything else loses its channel, and
 * gets no more memory.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/daemon/loop.h"
#include "server/daemon/policy/ledger.h"

struct ckt_server;
struct ckt_session;

/* Of a session.  Zeroed memory has none. */
struct ckt_daemon_lease {
	struct ckt_ledger_holder holder;
	struct ckt_source channel;
	bool is_holder, open;
	bool unknown;                    /* of a worker of an earlier server: what it has */
	bool pressed;                    /* see memory_wait.h */
	uint64_t early[CKT_DEVICES_MAX]; /* given back while the holder was unsettled */
	struct {
		bool pending;
		uint64_t serial;  /* of the question, among all of the server */
		unsigned awaited; /* neighbours */
		bool recalled;    /* nobody has any more that is not used */
		uint32_t number, gpu;
		bool force, wait, follow;
		int64_t since_ms;
		uint64_t bytes, want;
	} question;
};

/*
 * A worker of an earlier server, which has not told yet what it has: nobody's question is answered
 * before ckt_lease_open, or ckt_lease_is_known where that is never called.
 */
void ckt_lease_is_unknown(struct ckt_session *session);
void ckt_lease_is_known(struct ckt_session *session);
/* Enters the session into the ledger and gives its worker a channel.  0 or -errno. */
int ckt_lease_open(struct ckt_session *session);
/* The worker is gone, and what it had is free.  Does nothing if it was never opened. */
void ckt_lease_close(struct ckt_session *session);
/* Takes what its worker has sent so far, before the loop would. */
void ckt_lease_read(struct ckt_session *session);
/* Questions of sessions that come in behind others: what has left meanwhile is theirs. */
void ckt_lease_look(struct ckt_server *server);
/* The limits have changed: sessions without a limit that have one now begin to count. */
void ckt_lease_limits_changed(struct ckt_server *server);
/* Whom limits may fit, as the session is now. */
struct ckt_limit_subject ckt_lease_subject(const struct ckt_session *session);
