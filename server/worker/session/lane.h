/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The session's lanes (rpc/lane.h), as the worker sees them: threads that receive pieces of large
 * copies into pinned staging memory, and send pieces out of it, while the executor runs commands.
 *
 *	to the device	socket --reader--> staging --> arrivals, ARRIVED to the client --lane_htod takes it (executor)--> copy on its stream
 *	to the host	lane_dtoh --> copy into staging, done --> queue --writer--> socket --> unacknowledged --ARRIVED (reader)--> the reply, without bytes
 *
 * A lane that breaks ends all lanes, and nothing else: a piece to the device that had not been taken
 * is gone, and its command says so; the bytes of a piece to the host that was not acknowledged go
 * with its reply.  So nothing depends on lanes but speed.  Lanes belong to the client's present
 * connection and end with it.
 *
 * No reader waits for a writer: acknowledgements have a queue.  So two peers that both send never
 * wait for each other.
 *
 * Threading: any, except where it says so.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc/lane.h"
#include "rpc/session.h"

struct ckt_worker_lane_set;
struct ckt_staging_piece;
struct ckt_wcall;
struct ckt_worker;

struct ckt_worker_lanes {
	pthread_mutex_t lock;
	struct ckt_worker_lane_set *current; /* NULL: there are none */
	bool barred;
};

void ckt_worker_lanes_init(struct ckt_worker_lanes *lanes);
/*
 * A further lane: fd is the worker's in any case.  Answers its hello, xid.  number: lanes of another
 * number end, because their client knows that they broke before the worker may.  Precondition: the
 * hello proved the session's key, and the session has a client.
 */
ckt_hello_status ckt_worker_lanes_accept(
	struct ckt_worker *worker, int fd, uint32_t xid, uint64_t number);
/* Those that are open. */
unsigned ckt_worker_lanes_count(struct ckt_worker *worker);
/* Ends all lanes: when it returns, no piece is on its way. */
void ckt_worker_lanes_end(struct ckt_worker *worker);
/* The same, and until it is called with false no lane is taken: a session that freezes has none. */
void ckt_worker_lanes_bar(struct ckt_worker *worker, bool barred);

/*
 * The executor's: takes the piece out of the arrivals.  0; -ENOENT: it has not arrived, or was lost
 * with its lane; -EPROTO: it is of another size.
 */
int ckt_worker_lanes_take(struct ckt_worker *worker, uint64_t piece, uint32_t size,
	struct ckt_staging_piece **ret_staged);
/* A piece for the host, in staging memory. */
struct ckt_worker_lane_piece {
	struct ckt_staging_piece *staged;
	size_t size;
	uint64_t number;
	/*
	 * The client is told at once that it is on its way (CKT_CALLBACK_LANE_PIECE), before any
	 * reply that says that work is done.
	 */
	bool background;
};

/*
 * Sends the piece and answers the call once the client has it.  Takes call and staging memory over,
 * or returns false.
 */
bool ckt_worker_lanes_send(struct ckt_worker *worker, struct ckt_wcall *call,
	const struct ckt_worker_lane_piece *piece);
