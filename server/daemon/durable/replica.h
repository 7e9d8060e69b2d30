/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains of automatic images that a second server keeps (--replicate), and the lease that keeps a
 * session from running at both.
 *
 *	here                                              there
 *	DIR/SESSION/replicated: a replica may count       DIR/SESSION/replica: nothing starts before the lease is over
 *	replicator --LOOK, IMAGE...--> images are there
 *	worker gets a deadline (FENCE), then KEEP ------> they count; a lease of --replicate-lease begins
 *	replicator --LEASE, again and again-------------> the lease begins anew
 *	   answered: the deadline moves                   over: HELLO RESUME removes `replica`, and starts it
 *	   not answered: the kernel kills the worker      from then on LEASE and KEEP are refused
 *
 * With keys (chain_mac.h) the state of a chain says the same as the two files, under its MAC, and
 * `replica` has a MAC of its own.  A file that is gone or was changed then makes the lease longer,
 * and never shorter.
 *
 * The deadline counts from before the call, and ends a fifth of the lease early.  So it is over
 * before the lease is, as long as the two clocks' speeds differ by less than that.  Dates are not
 * used.  While `replicated` exists, the session starts here only with a lease that is not over.
 *
 * Of sessions that share (group_cut.h) each is sent alone.  There its state is only the next one
 * until the next states of all are of one cut; then they become states, and only then may the
 * clients forget what the cut has.  Such sessions start together, at the server where none of them
 * is leased to the other one.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/session.h"
#include "server/daemon/durable/chain_job.h"

struct ckt_automatic_chain;
struct ckt_chain_state;
struct ckt_peer;
struct ckt_server;
struct ckt_session;

/* Seconds: the default, and what --replicate-lease takes. */
enum { CKT_REPLICA_LEASE_S = 20, CKT_REPLICA_LEASE_MIN_S = 2, CKT_REPLICA_LEASE_MAX_S = 3600 };

/* ---- replica_send.c: the server that has the session */

/* Starts the process that sends, if it is wanted. -errno with the reason. */
int ckt_replica_init(struct ckt_server *server, char *ret_message, size_t message_size);
void ckt_replica_fini(struct ckt_server *server);
/*
 * The chain counts here, up to that command: it is sent.  False: there is no replica, and what
 * counts here is all that counts.
 */
bool ckt_replica_send(struct ckt_automatic_chain *chain);
/* The chain is removed here, so it is there. */
void ckt_replica_drop(struct ckt_server *server, const char *session);
/*
 * Whether the session may start here from its chain: 0; -EBUSY with the reason: not now, ask again;
 * -ENOENT: it went on there.
 */
int ckt_replica_may_start(struct ckt_server *server, int dir_fd,
	const struct ckt_chain_state *state, char ret_message[CKT_MESSAGE_MAX]);
/* A session with which it shares went on there: so will it, and here it has no lease any more. */
void ckt_replica_leave(struct ckt_server *server, const char *session);
/* The worker of a session has come to be, or was found: it gets its deadline. */
void ckt_replica_begin(struct ckt_session *session);
/* Why the replica is behind; empty: it is not. */
const char *ckt_replica_problem(const struct ckt_server *server, const char *session);

/* One session's replica at the other server. */
struct ckt_replica_facts {
	char session[CKT_SESSION_ID_SIZE + 1];
	uint32_t owner;    /* of one that is here */
	uint64_t executed; /* the last command in it; 0: there is none yet */
	int64_t when;      /* seconds since the epoch, of its last renewal; 0: none */
	unsigned
		lease_ms; /* until it may start; there at the earliest, as known here; 0: not known */
	uint64_t bytes;   /* of one that is here */
	const char *problem; /* empty: none */
};
/* False: no replica of that session is wanted. */
bool ckt_replica_facts(
	const struct ckt_server *server, const char *session, struct ckt_replica_facts *ret_facts);

/* ---- replica_keep.c: the server that has the replica */

/* Those that other servers have renewed since this one started, and that did not go on here. */
unsigned ckt_replica_held(uint64_t *ret_bytes);
/* The first behind that session's name.  False: there is none. */
bool ckt_replica_held_next(const char *after, struct ckt_replica_facts *ret_facts);

void ckt_replica_keep_init(void);
void ckt_replica_keep_fini(void);
/*
 * Whether another server may still have the session; promised_ms: what its state says of its lease;
 * ret_left_s: for how long at most.
 */
bool ckt_replica_is_leased(
	int dir_fd, const char *session, unsigned promised_ms, unsigned *ret_left_s);
/* The session goes on here: its former server gets no lease any more.  0 or -errno. */
int ckt_replica_take(int dir_fd, const char *session);

/* ---- replica_cut.c */

/*
 * The next state of one member of a group is on the disk: if those of all are of its cut, they become
 * states.  done is called once, with the result, perhaps within this; -ENOMEM: never.
 */
int ckt_replica_count(struct ckt_server *server, const struct ckt_chain_state *state,
	ckt_chain_job_done done, void *context);

/* Calls of control.x. */
void ckt_control_replica_look(struct ckt_peer *peer, void *decoded, int *passed_fd);
void ckt_control_replica_image(struct ckt_peer *peer, void *decoded, int *passed_fd);
void ckt_control_replica_keep(struct ckt_peer *peer, void *decoded, int *passed_fd);
void ckt_control_replica_lease(struct ckt_peer *peer, void *decoded, int *passed_fd);
void ckt_control_replica_drop(struct ckt_peer *peer, void *decoded, int *passed_fd);
