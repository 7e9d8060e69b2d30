/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durable sessions (CRICKET_DURABLE=1): what was executed since the last image that stays can be
 * executed again, by a copy of the session that is restored from an image.  docs/durable.md.
 *
 *	ring --executed--> log --image stays (callback DURABLE)--> forgotten
 *	                    |
 *	                    +--restored copy has executed less--> sent again, replies compared --> the ring's commands follow
 *
 * A command is sent when the replies have come that the program had when it made the command.  So
 * the order of the GPU's work is the first time's, as far as the program knew it.  Addresses,
 * refusals for lack of memory and the like are imposed (IMPOSE).  A reply that differs ends the
 * session.
 *
 * Threading: the reader's place (conn.h) protects all of it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/conn/conn.h"
#include "client/conn/replay_log.h"
#include "client/conn/replay_stamps.h"

enum {
	/* Copies of the session that executed commands of the log: the latest ones. */
	CKT_REPLAY_PAST_MAX = 16,
	/* Calls that open a library or set its environment, and the bytes of one. */
	CKT_REPLAY_OPENS_MAX = 32,
	CKT_REPLAY_OPEN_BYTES = 32 << 10,
};

/*
 * A call that opens a forwarded library, or sets the environment of libraries.  It has no number, an
 * image does not hold its effect, and no cut forgets it.
 */
struct ckt_replay_open {
	uint64_t after; /* the last numbered command before it */
	uint32_t xid;
	uint8_t *record;
};

struct ckt_replay {
	struct ckt_replay_log log;
	struct ckt_replay_stamps stamps;
	uint64_t began; /* commands up to this number are forgotten */
	struct ckt_replay_past {
		uint64_t copy;
		uint64_t until; /* its last command that this client knows of */
	} past[CKT_REPLAY_PAST_MAX];
	unsigned past_count;
	uint64_t base_copy; /* whose image stays: it is not forgotten before the others */
	/* the copy in which a replay has begun, and what it had executed before; 0: none */
	uint64_t partial_copy, partial_base;
	struct ckt_replay_open opens[CKT_REPLAY_OPENS_MAX];
	unsigned open_count;
	/* A session without an image begins again from nothing: replay_afresh.c. */
	bool absent;         /* the server that was asked last has no such session */
	bool asks_afresh;    /* the next hello asks for a session that begins again */
	bool refused_afresh; /* it never does again */
	unsigned beginnings; /* at which the client had seen no command more executed than: */
	uint64_t began_at;
	int64_t absent_ms; /* since when no server has it; 0: one may */
	uint64_t last;     /* the last numbered command that was kept or forgotten */
	/* while a replay runs, for its end: the number of an image, and why the log is of no more use */
	bool running;
	uint64_t cut_later;
	const char *lose_later;
};

/* A new session begins; ok: the answer to its hello.  Without CRICKET_DURABLE nothing happens. */
void ckt_replay_open(struct ckt_conn *conn, const struct ckt_hello_ok *ok);
/* The session goes on, but cannot be replayed: logs why, once. */
void ckt_replay_lose(struct ckt_conn *conn, const char *why);
/* A record leaves the ring, because the worker has executed it. */
void ckt_replay_keep(struct ckt_conn *conn, const uint8_t *record);
/*
 * A waiting call gets its reply.  results: from the CUresult on.  Precondition: conn.lock held, and
 * the ring is trimmed up to the reply's number.
 */
void ckt_replay_note(struct ckt_conn *conn, const struct ckt_reply_header *header,
	const struct ckt_waiter *waiter, const struct ckt_cursor *results);
/* All commands up to the number are in an image that stays. */
void ckt_replay_durable(struct ckt_conn *conn, uint64_t executed);
/* The capabilities of a hello: at most CKT_REPLAY_PAST_MAX + 5.  Returns their number. */
unsigned ckt_replay_capabilities(const struct ckt_conn *conn, ckt_capability *ret);
/*
 * Whether the copy that answered holds what this client knows, or can hold it by a replay; false
 * with a message: it is another past.
 */
bool ckt_replay_accepts(const struct ckt_conn *conn, const struct ckt_hello_ok *ok,
	const char *address, char *ret_message, size_t message_size);
/*
 * Brings the copy to what this client knows, over a new connection.  0; -EILSEQ with a message: it
 * gave other results; or -errno of the connection.  Precondition: accepted; this thread is the
 * reader, and the state is RESUMING.
 */
int ckt_replay_run(struct ckt_conn *conn, struct ckt_transport *to, const struct ckt_hello_ok *ok,
	char *ret_message, size_t message_size);
/* Writes what a reply means for a replay.  body: from the CUresult on. */
void ckt_replay_describe(const struct ckt_call_header *header,
	const struct ckt_reply_header *reply_header, const struct ckt_cursor *body,
	struct ckt_log_reply *ret);
/* The name of a procedure, for messages. */
void ckt_replay_name(uint32_t prog, uint32_t proc, char *ret_name, size_t size);
/* The worker tells stamps.  0; -EPROTO; -EILSEQ: a command of the replay cannot have its place. */
int ckt_replay_take_stamps(struct ckt_conn *conn, struct ckt_cursor *c);
/* A replay begins at this copy, which has executed so much. */
void ckt_replay_begins(struct ckt_conn *conn, uint64_t copy, uint64_t executed);
/* The session goes on at this copy. */
void ckt_replay_attached(struct ckt_conn *conn, const struct ckt_hello_ok *ok);
/*
 * ---- A session that begins again from nothing (CKT_CAPABILITY_AFRESH), as its worker died and no
 * server has an image of it
 */

/* The server that was asked has no such session. */
void ckt_replay_absent(struct ckt_conn *conn);
/* Whether the hello that is said next asks for it. */
bool ckt_replay_asks_afresh(const struct ckt_conn *conn);
/*
 * No place has the session (`absent`): whether the last one is asked once more, now for a session
 * that begins again.  True: ckt_replay_afresh_end must follow, with the answer's result.
 */
bool ckt_replay_afresh_begin(struct ckt_conn *conn);
void ckt_replay_afresh_end(struct ckt_conn *conn, int result);
