/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions that share GPUs in time: the daemon's side of their turn channels (rpc/turn.h), between
 * them and the order of turns (server/daemon/policy/turn_order.h).
 *
 * While no limit sets share=, cap=, class= or priority=, no worker has a channel, and all run when they
 * like.  With one, every session has a channel, and each GPU a ring of those that use it.
 *
 * A turn that is not given back --drain after its end is overdue: a kernel runs on, or the worker is
 * stuck.  The next one then gets its turn beside it; ckt_turn_overdue tells listings of it until the
 * worker gives the turn back.  No worker is ended for it.
 *
 * What a worker sends is believed of its own turn alone, and how long that was is measured here.  A
 * worker that sends what makes no sense loses its channel and runs at no time any more: its turns are
 * never given.
 *
 * Threading: the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bounds.h"
#include "server/daemon/loop.h"
#include "server/daemon/policy/turn_order.h"

struct ckt_server;
struct ckt_session;

/* Of a session.  Zeroed memory has none. */
struct ckt_daemon_turn {
	struct ckt_source channel;
	bool open;
	uint64_t member_of, overdue;     /* bit N: of GPU N's ring */
	struct ckt_turn_member *members; /* CKT_DEVICES_MAX of them; NULL: none yet */
	uint32_t overdue_number[CKT_DEVICES_MAX];
	int64_t wanted_ns[CKT_DEVICES_MAX]; /* since when it wants a turn, if it does */
	/* of its share lately, for listings */
	uint64_t seen_used_ns;
	int64_t seen_ns; /* 0: not yet */
	int share_permille;
};

/* Of the server: one a GPU. */
struct ckt_turn_gpu {
	struct ckt_turn_ring ring;
	struct ckt_timer timer;
	struct ckt_server *server;
	bool told; /* that the present turn is overdue */
};

/*
 * What limits say of a session that shares its GPUs in space, where nobody takes turns: the percentage of its cap
 * (0: none; 90 for best-effort without a cap), and whether its class is best-effort.
 */
void ckt_turn_bounds(const struct ckt_session *session, unsigned *ret_percent, bool *ret_below);
/* Gives the session's worker a channel if limits share GPUs in time.  0 or -errno. */
int ckt_turn_open(struct ckt_session *session);
/* The session ends.  Does nothing if it was never opened. */
void ckt_turn_close(struct ckt_session *session);
/* The limits have changed: channels come or go, weights change. */
void ckt_turns_limits_changed(struct ckt_server *server);
/*
 * The part of the time that it had its GPUs, since about a second ago; of all of them the largest.
 * -1: it shares none.
 */
int ckt_turn_share_permille(struct ckt_session *session);
/* For how long it has been waiting for a turn; 0: it is not. */
int64_t ckt_turn_waiting_ms(const struct ckt_session *session);
/* How often it lost a GPU to another or gave it back; -1: it shares none. */
int64_t ckt_turn_switches(const struct ckt_session *session);
/*
 * A decision from outside, on each GPU that it shares: its turn is next, or, without `give`, the turn
 * that it has ends.  False: nothing was decided, and ret_message says why.  by: whose it is.
 */
bool ckt_turn_decided(struct ckt_session *session, bool give, const char *by, char *ret_message,
	size_t message_size);
void ckt_turns_fini(struct ckt_server *server);
