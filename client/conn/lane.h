/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lanes of a connection (rpc/lane.h), as the client sees them: threads that send pieces of large
 * copies straight from the program's memory, and receive pieces straight into it.
 *
 * The first large copy makes a thread that opens them; until it has, and wherever there are none,
 * copies go over the connection itself.  A lane that breaks ends all: pieces that have not arrived
 * are lost, and whoever waits for them learns that.  The next large copy opens lanes again, unless
 * they broke LANE_FAILURES_MAX times in a row.  So nothing depends on lanes but speed.
 *
 * Threading: any thread, except where it says so.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ckt_conn;
struct ckt_hello_ok;
struct ckt_lane_set;

enum ckt_lane_state {
	CKT_LANE_IDLE,
	CKT_LANE_WAITING, /* for its turn, or for its bytes */
	CKT_LANE_MOVING,  /* some of its bytes */
	CKT_LANE_SENT,
	CKT_LANE_THERE, /* the other side, or the program, has all of it */
	CKT_LANE_LOST,
};

/* A piece of a copy.  The caller's, and in one place, until it is there or ckt_lane_leave. */
struct ckt_lane_piece {
	struct ckt_lane_piece *next;
	struct ckt_lane_set *set;
	uint64_t number;
	uint8_t *data; /* in the program's memory */
	uint32_t size;
	bool to_host;
	/*
	 * Of a copy in the background: set before ckt_lane_expect, the rest is lane.c's.  announced:
	 * the worker says that it is on its way; settled: it is there, or was left.
	 */
	bool background, announced, settled;
	struct ckt_lane_piece *next_background;
	bool inside; /* a thread of a lane is in the program's memory */
	enum ckt_lane_state state;
	/* to the device: where it goes once it is there, or lost; see ckt_lane_next */
	struct ckt_lane_copy *copy;
};

/* The pieces of one copy to the device that are there, or lost, and were not taken yet. */
struct ckt_lane_copy {
	struct ckt_lane_piece *first, **last;
	_Atomic unsigned ready; /* how many */
};

/* Of one connection; lane_open.c's. */
struct ckt_lanes {
	pthread_mutex_t lock;
	struct ckt_lane_set *set;
	unsigned offered; /* by the worker; 0: none, or the connection is broken */
	unsigned pieces;  /* on their way to the host, at most */
	unsigned failures;
	uint64_t number; /* of the set; the opener's */
	pthread_t opener;
	bool has_opener; /* the thread is to be joined */
	bool opening;
	_Atomic uint64_t last_piece;       /* the number */
	struct ckt_lane_piece *background; /* from ckt_lane_expect to ckt_lane_end */
	_Atomic unsigned announced;        /* of those that are not settled */
};

/*
 * The lanes of the connection now; NULL: none, or none yet.  A reference of the caller's:
 * ckt_lanes_release.
 */
struct ckt_lane_set *ckt_lanes_get(struct ckt_conn *conn);
void ckt_lanes_release(struct ckt_lane_set *set);
/* How many there are. */
unsigned ckt_lanes_count(const struct ckt_lane_set *set);

/* Sends the piece, or loses it.  piece: data, size and copy are set, the rest is zero. */
void ckt_lane_send(struct ckt_lane_set *set, struct ckt_lane_piece *piece);
/*
 * The caller is about to wait, and sends one of the pieces itself if a lane is idle: that needs no
 * wake-up.
 */
void ckt_lane_help(struct ckt_lane_set *set);
/* Waits for the next piece of the copy that is there or lost. */
struct ckt_lane_piece *ckt_lane_next(struct ckt_lane_set *set, struct ckt_lane_copy *copy);

/*
 * Whether another piece may be on its way to the host: the worker's staging memory has room for
 * some.
 */
bool ckt_lanes_have_room(struct ckt_lane_set *set);
/*
 * Gives the piece its number: its bytes may come from now on, until ckt_lane_leave.  If the lanes
 * have ended, they do not come.
 */
void ckt_lane_expect(struct ckt_lane_set *set, struct ckt_lane_piece *piece);
/*
 * The piece is not to be touched any more: waits for a thread that is inside.  True: all its bytes
 * had come.
 */
bool ckt_lane_leave(struct ckt_lane_piece *piece);
/* After it, once the bytes that had not come are there from elsewhere. */
void ckt_lane_end(struct ckt_lane_piece *piece);

/*
 * The worker says that the piece of a copy in the background is on its way: what it says from here
 * on may mean that the copy is done.
 */
void ckt_lanes_announce(struct ckt_conn *conn, uint64_t number);
/*
 * Waits for pieces that are announced.  After every reply that may tell the program of work that is
 * done; the order of the connection puts the announcement before it.
 */
void ckt_lanes_settle(struct ckt_conn *conn);

/* In a forked child: closes its copies of the descriptors. */
void ckt_lanes_forked(struct ckt_conn *conn);
/* The connection has ended: ends its lanes.  When it returns, no thread or descriptor is left. */
void ckt_lanes_close(struct ckt_conn *conn);
/* The connection has begun, with this reply to its hello: lanes may be opened. */
void ckt_lanes_allow(struct ckt_conn *conn, const struct ckt_hello_ok *ok);
