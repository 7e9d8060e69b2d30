/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of cricket-replicator; see main.c.
 *
 * Threading: what two threads use is under the lock.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctl/command.h"
#include "ctl/server.h"
#include "rpc/session.h"

struct replicated {
	struct replicated *next;
	char id[CKT_SESSION_ID_SIZE + 1];
	bool wanted, dropped;  /* to be sent; to be removed there */
	bool leased;           /* the lease thread renews its lease */
	int64_t not_before_ms; /* CLOCK_MONOTONIC: after a failure */
};

struct replicator {
	struct ckt_ctl_args args;
	const char *directory;
	unsigned lease_ms;
	struct ckt_ctl_server server; /* of the main thread; fd -1: none */
	pthread_mutex_t lock;
	struct replicated *all; /* under the lock */
};

/* Until the server is gone.  The exit status. */
int ckt_replicator_run(struct replicator *replicator);
/* A line to the server; any thread. */
void ckt_replicator_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* CLOCK_BOOTTIME. */
int64_t ckt_replicator_boot_ms(void);

/* ---- send.c */

enum ckt_replica_outcome {
	CKT_REPLICA_KEPT,
	CKT_REPLICA_LOST,
	CKT_REPLICA_REFUSED,
	CKT_REPLICA_UNREACHABLE,
	CKT_REPLICA_STOPPED, /* our server does not want it now */
};

/* go: asks our server, once the images are there, whether they may count. */
enum ckt_replica_outcome ckt_replica_transfer(struct replicator *replicator, const char *session,
	bool (*go)(struct replicator *replicator, const char *session), char *ret_reason,
	size_t reason_size);
enum ckt_replica_outcome ckt_replica_remove(struct replicator *replicator, const char *session);
/* Over any connection: the lease begins anew.  0, -ENOENT: it went on there; other -errno. */
int ckt_replica_renew(struct ckt_ctl_server *server, const char *session, unsigned lease_ms);
