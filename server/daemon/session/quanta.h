/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions that swap each other out: between their leases (lease.h), their swap memory (swap.h) and
 * who is served (server/daemon/policy/quantum.h).
 *
 *	a request waits, or a swapped session asks to come in --soon--> look: facts -> decisions
 *	EVICT -> CKT_WORKER_SWAP_YIELD -> its lease comes back -> look
 *	ADMIT -> the request is granted, or CKT_WORKER_SWAP_IN -> its worker asks for the lease, and gets it
 *	ADMIT behind -> CKT_WORKER_SWAP_FOLLOW -> its worker asks for a step at a time, and gets it when so much has left
 *
 * Nothing happens without swap memory.  Sessions whose when-full is swap may be swapped out for
 * others; any session that waits is served.  With --idle-memory any session leaves that is idle for so
 * long.  Never moved are sessions that are held, paused, saved or stopped with their job.  Those that are tied to
 * others by shared memory or communicators move with them (together.h).
 *
 * What a worker says is believed of itself alone: one that says that its memory left, and does not
 * give its lease back, or that does not answer three times, is ended.
 *
 * Threading: the loop's thread.  Nothing here blocks, and no hook changes anything before
 * the loop has come round.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bounds.h"
#include "rpc/activity.h"
#include "rpc/worker.h"
#include "server/daemon/policy/quantum.h"
#include "server/daemon/session/together_meet.h"

struct ckt_ledger_holder;
struct ckt_together;
struct ckt_server;
struct ckt_session;
struct ckt_wait_queue;

enum { CKT_QUANTUM_NOTE_MAX = 127 };

/* Of a session.  Zeroed memory has none. */
struct ckt_daemon_quantum {
	struct ckt_quantum_member member;
	bool is_member;
	const struct ckt_activity *page;  /* NULL: its worker does not tell whether it is idle */
	uint64_t before[CKT_DEVICES_MAX]; /* leased, when it began to leave */
	uint64_t gone[CKT_DEVICES_MAX];   /* of that, what it gave back */
	uint64_t away;                    /* bit N: it has not got it back on GPU N */
	int64_t begun_ns;                 /* of the move that runs, or ran last */
	int64_t asked_ns;                 /* when its worker last asked to come in */
	int64_t page_ns;                  /* what the page said when it had left */
	uint64_t promised_bytes;          /* that its worker says it gave back; 0: it has */
	int64_t promised_ns;
	bool follows;           /* CKT_WORKER_SWAP_FOLLOW runs */
	bool cannot_follow;     /* its worker is of an earlier version */
	bool half;              /* out, because it could not leave: it comes in unasked */
	bool returns;           /* leaving, and it asks for what has left */
	unsigned follow_gpu;    /* of follows, as the rest: */
	uint64_t arrived_bytes; /* of these: its worker has asked for the next */
	uint64_t met_bytes;     /* of these: before others had given up their last */
	struct ckt_together
		*together; /* together.h: it is that member in its place; NULL: it moves alone */
	uint64_t label;    /* of those that it belongs together with */
	bool stopped;      /* with them */
	struct ckt_together_rank meeting;
	unsigned silent;                     /* calls without an answer, in a row */
	char note[CKT_QUANTUM_NOTE_MAX + 1]; /* why it could not leave; empty: it could */
};

enum ckt_quantum_state {
	CKT_QUANTUM_RUNS,
	CKT_QUANTUM_IDLE,
	CKT_QUANTUM_WAITS,
	CKT_QUANTUM_SWAPPED,
	CKT_QUANTUM_MOVES,
	CKT_QUANTUM_STAYS
};

/* What listings show of a session. */
struct ckt_quantum_view {
	enum ckt_quantum_state state;
	unsigned gpu; /* its first one */
	uint64_t here_bytes, swapped_bytes, wanted_bytes;
	int64_t waited_ms; /* 0: it does not wait */
	uint64_t outs, ins;
	unsigned switches;  /* in the last second */
	const char *reason; /* of the last decision, or why it stays; the session's, "": none */
};

/* After the options are known; before the first session. */
void ckt_quantum_open(struct ckt_server *server);
void ckt_quantum_close(struct ckt_server *server);
/* It has its lease channel. */
void ckt_quantum_join(struct ckt_session *session);
/* Its worker has its devices: it gets its page, if the server wants to know whether it is idle. */
void ckt_quantum_watch(struct ckt_session *session);
/* Its lease is gone. */
void ckt_quantum_leave(struct ckt_session *session);
void ckt_quantum_limits_changed(struct ckt_server *server);

/* Hooks of lease.c and memory_wait.c: something has changed. */
void ckt_quantum_soon(struct ckt_server *server);
/* A question for memory was granted, or can not be now. */
void ckt_quantum_granted(struct ckt_session *session, unsigned gpu);
void ckt_quantum_refused(struct ckt_session *session, unsigned gpu, uint64_t bytes);
/* A request of it waits, or has waited and is granted: so it runs. */
void ckt_quantum_waits(struct ckt_session *session);
void ckt_quantum_waited(struct ckt_session *session);
void ckt_quantum_gave(struct ckt_session *session, unsigned gpu);

enum ckt_follow {
	CKT_FOLLOW_TAKE, /* if so much is free */
	CKT_FOLLOW_WAIT, /* it may come */
	CKT_FOLLOW_END,  /* it does not, or was not promised */
};
/* A question with CKT_LEASE_FOLLOW; the same question may be judged again and again. */
enum ckt_follow ckt_quantum_follow(struct ckt_session *session, unsigned gpu, uint64_t bytes);
/* It was granted; or so much came back unused, to be asked for again. */
void ckt_quantum_followed(struct ckt_session *session, uint64_t bytes);
void ckt_quantum_unfollowed(struct ckt_session *session, unsigned gpu, uint64_t bytes);
/* Of the queue: the room is kept for another. */
bool ckt_quantum_bars(struct ckt_wait_queue *queue, const struct ckt_ledger_holder *holder,
	unsigned gpu, uint64_t bytes);

/* Whether a session waits that this scheduler serves, or one is being moved. */
bool ckt_quantum_anybody_waits(const struct ckt_server *server);

/* Hooks of swap.c: whoever asked for it.  error 0: it is done. */
void ckt_quantum_moves(struct ckt_session *session, bool out);
void ckt_quantum_moved(
	struct ckt_session *session, bool out, int error, const ckt_worker_swap_res *res);

/* It could not leave; once for an event, until it has left after all. */
void ckt_quantum_stays(struct ckt_session *session, const char *why);
/* Its worker has answered a call, or has not in time: one that does not several times is ended. */
void ckt_quantum_answered(struct ckt_session *session, bool silent);
/* A question without bytes: of one that is off the GPU with others, its client wants something. */
void ckt_quantum_asked(struct ckt_session *session);

/* False: the session is none that could be swapped. */
bool ckt_quantum_describe(const struct ckt_session *session, struct ckt_quantum_view *ret_view);
/* What swapped sessions had of the GPU. */
uint64_t ckt_quantum_swapped_bytes(const struct ckt_server *server, unsigned gpu);

/* quantum_facts.c: what is known of every session now, for the decisions. */
void ckt_quantum_facts(struct ckt_server *server, int64_t now_ns);
/* Whether nothing and nobody else keeps it where it is. */
bool ckt_quantum_may_move(const struct ckt_session *session);
/* The word of its page, whatever it is; 0 without one. */
int64_t ckt_quantum_page_ns(const struct ckt_session *session);
