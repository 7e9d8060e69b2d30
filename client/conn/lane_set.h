/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the client's lanes: the lanes that were opened together, for lane.c and lane_open.c.
 *
 *	to the device	queue --writer--> sent --ARRIVED (reader)--> the copy's list
 *	to the host	expected --DATA (reader)--> there; arrived --writer--> the worker
 *
 * A set has references: of its connection, and of copies.  Its threads end before it does.
 */
#pragma once

#include <pthread.h>

#include "client/conn/lane.h"
#include "rpc/lane.h"

enum {
	/* The most pieces on their way to the host; the worker may say less. */
	LANE_EXPECTED_MAX = 32,
	/* Several threads may ask at once for the last. */
	LANE_ARRIVED_MAX = 256,
	LANE_FAILURES_MAX = 3,
};

struct ckt_lane {
	struct ckt_lane_set *set;
	struct ckt_transport transport;
	pthread_t reader, writer;
	bool reads, writes; /* which of them exist */
	bool writing;       /* a thread writes to it: the set's lock */
};

struct ckt_lane_set {
	struct ckt_conn *conn;
	unsigned refs;   /* lane_open.c's */
	unsigned pieces; /* on their way to the host, at most */
	unsigned count;
	struct ckt_lane lanes[CKT_LANES_MAX];
	pthread_mutex_t lock;   /* of all below */
	pthread_cond_t work;    /* for writers */
	pthread_cond_t changed; /* a piece is there or lost, or the lanes have ended */
	_Atomic bool gone;
	_Atomic unsigned on_way; /* pieces between ckt_lane_expect and ckt_lane_end */
	struct ckt_lane_piece *queue, **queue_last, *sent, *expected;
	uint64_t arrived[LANE_ARRIVED_MAX];
	unsigned arrived_count;
};

/* With one reference and no lane; NULL without memory. */
struct ckt_lane_set *ckt_lane_set_new(struct ckt_conn *conn);
/* Precondition: joined, or it never had threads. */
void ckt_lane_set_free(struct ckt_lane_set *set);
/* Makes the threads: 0 or -errno, and then some may run. */
int ckt_lane_set_start(struct ckt_lane_set *set);
/* Ends the lanes: loses what is on its way, and wakes every thread. */
void ckt_lane_set_end(struct ckt_lane_set *set);
/* Waits for the threads and closes the sockets.  Precondition: ended. */
void ckt_lane_set_join(struct ckt_lane_set *set);
