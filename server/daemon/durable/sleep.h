/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions that sleep (--idle-context): one that had nothing to do for long has an image and no worker.
 *
 *	live, idle for long --SAVE2, held--> an image counts --SLEEP--> the client is told, its connection comes here, the worker ends
 *	asleep --HELLO RESUME--> a new worker, from the chain (automatic_restore.c) --> live
 *	       --the connection ends--> 8 s for its client to come, then the images are removed
 *	       --the server ends--> the images stay; the next server finds them
 *
 * What fails on the way in leaves the session as it was, and it is tried again later.  What fails on
 * the way out leaves it asleep.
 *
 * What sleeps is no session of the server's list: it has a chain without a session (automatic.h),
 * and the chain has a sleeper.  Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/bounds.h"
#include "rpc/session.h"
#include "rpc/worker.h"
#include "server/daemon/server.h"

struct ckt_automatic_chain;
struct ckt_identity;
struct ckt_peer;
struct ckt_session;

struct ckt_sleeper {
	struct ckt_automatic_chain *chain;
	struct ckt_sleeper *next; /* of those that sleep, by id */
	struct ckt_source client; /* its client's connection, only to see its end; fd -1 */
	bool listed;
	unsigned tries;        /* to wake it, in vain */
	int64_t not_before_ms; /* CLOCK_MONOTONIC, of the next one */
	/* For listings. */
	time_t since, started;
	char program[CKT_NAME_MAX + 1], host[CKT_ADDRESS_MAX + 1];
	uint32_t client_pid, owner;
	int gpu;
	uint64_t generation, executed, bytes; /* bytes: of its images on this host */
};

/* After the sessions of an earlier server are found: those that slept, and the timer. */
void ckt_sleep_open(struct ckt_server *server);
void ckt_sleep_close(struct ckt_server *server);

/* By id, until one of them changes. */
const struct ckt_sleeper *ckt_sleep_first(void);
/* NULL: none of that id sleeps. */
struct ckt_sleeper *ckt_sleep_find(const char *session);
/* Whether it could not be woken a moment ago: each try starts a worker. */
bool ckt_sleep_must_wait(const char *session);
/* How many of that owner sleep. */
unsigned ckt_sleep_count(const struct ckt_identity *identity);
/* "asleep since 12:30, 34 MiB on this host" */
void ckt_sleep_describe(const struct ckt_sleeper *sleeper, char *ret_text, size_t size);
/* Whether a hello brings the new connection of a client whose session sleeps. */
bool ckt_sleep_is_kept(const struct ckt_hello_args *hello);
/*
 * Keeps the peer's connection for the session that its hello names, and answers; the peer is gone then.
 * -ENOENT: that does not sleep here; -EACCES: the secret is not its; else -errno with the reason.
 */
int ckt_sleep_keep(struct ckt_peer *peer, char ret_message[CKT_MESSAGE_MAX]);
/* It ends: its images are removed. */
void ckt_sleep_end(struct ckt_sleeper *sleeper, const char *why);

/* ---- For the other files of this room */

/* What its worker says of it, for listings. */
void ckt_sleep_note(struct ckt_automatic_chain *chain, const struct ckt_worker_status_res *status);
/* The session of the chain is held, and its image counts. */
void ckt_sleep_held(struct ckt_automatic_chain *chain);
/* It goes on; told once, and tried again later. */
void ckt_sleep_failed(struct ckt_automatic_chain *chain, const char *why);
/* The chain has no session any more: its client may take its time, as long as its connection lives. */
void ckt_sleep_settle(struct ckt_automatic_chain *chain);
/* Takes it from its chain, for another one of the same session; NULL: there is none. */
struct ckt_sleeper *ckt_sleep_take(const char *session);
/* The session is live again. */
void ckt_sleep_woken(struct ckt_session *session);
/* NULL is fine. */
void ckt_sleeper_free(struct ckt_sleeper *sleeper);
