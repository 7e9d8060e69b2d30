/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions that share memory or communicators leave the GPU and come in together: for the scheduler (quanta.h)
 * they are one member, with the sum of their memory.
 *
 *	ranks of communicators	meet before they STOP (together_meet.h)
 *	out	STOP -> DROP -> OUT	each step for all of them (CKT_WORKER_TOGETHER), before the next begins
 *	in	IN -> OPEN -> GO
 *	STOP or DROP fails	OPEN -> GO: all go on, as if nothing had been
 *	OUT fails		what has left stays out, and all come in as soon as there is room
 *	IN fails		DROP -> OUT: what has come in leaves again
 *
 * Who is in is known by the connections that the server made between their workers (group.h), and by
 * their own word that they share something (rpc/activity.h).  Each worker looks itself whether all stand still that
 * it shares with; so a session that the server does not know of makes the others stay, and is known from
 * then on.  A session that dies leaves the rest: what it had is gone.
 *
 * The workers' connections are what leads them: when the server dies, each worker comes in by itself.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/worker.h"
#include "server/daemon/policy/quantum.h"
#include "server/daemon/session/swap.h"
#include "server/daemon/session/together_meet.h"

struct ckt_server;
struct ckt_session;

/* Before the first step. */
enum { CKT_TOGETHER_MEET = 0x100 };

/* Of a server, in a list. */
struct ckt_together {
	struct ckt_together *next;
	struct ckt_server *server;
	struct ckt_quantum_member member;
	unsigned count; /* sessions */

	/* The move that runs: a step, or CKT_TOGETHER_MEET; 0: none does. */
	unsigned step;
	bool out, returns; /* which way; returns: it has failed */
	unsigned awaited;  /* answers */
	struct ckt_together_meeting meeting;
	int error; /* the first one */
	char message[CKT_MESSAGE_MAX];
	int64_t skip_ns; /* of half: before they are tried again */
	bool half;       /* out, because some could not leave: they come in unasked */
	/* Of a caller who asked for the move: called once for that session.  NULL: none. */
	ckt_swap_done done;
	void *data;
	struct ckt_session *asked;
};

/* Before decisions: who belongs together now, and then what is known of them, from what is known of each. */
void ckt_together_gather(struct ckt_server *server, int64_t now_ns);
void ckt_together_facts(struct ckt_server *server, int64_t now_ns);
/* Those with --idle-memory that have been idle for so long leave. */
void ckt_together_evict_idle(struct ckt_server *server, int64_t now_ns, int64_t after_ns);
/* Decided: they leave, or come in if there is room for all of it. */
void ckt_together_evict(struct ckt_together *together, enum ckt_quantum_reason reason);
void ckt_together_admit(struct ckt_together *together);
/*
 * Those that stand still, and of whom nothing is off the GPU, go on.  Those that were to come in when one GPU had room
 * do so when all have.
 */
void ckt_together_continue(struct ckt_server *server, int64_t now_ns);
/*
 * Somebody asked for one of them: as ckt_session_swap_out and _in, and all of them move.  -EBUSY: they are on
 * their way, or one of them is held.
 */
int ckt_together_move(struct ckt_session *session, bool out, ckt_swap_done done, void *data);
/* Hook of together_meet.c: they stand, or together->error says why not. */
void ckt_together_met(struct ckt_together *together);
/* The session ends. */
void ckt_together_leave(struct ckt_session *session);
void ckt_together_close(struct ckt_server *server);
/*
 * Whether it comes in with the others and asks for no more than it had: the room for all was there when that was
 * decided, and is kept.
 */
bool ckt_together_grants(const struct ckt_session *session, unsigned gpu, uint64_t bytes);
/* Whether it is off the GPU with the others, and may not have memory alone. */
bool ckt_together_bars(const struct ckt_session *session);
