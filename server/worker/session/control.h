/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request on the control socket, as its handlers see it.  Threading: each belongs to the thread
 * that serves its connection.
 */
#pragma once

#include <rpc/rpc.h>
#include <stdbool.h>
#include <stdint.h>

#include "rpc/transport/transport.h"
#include "rpc/wire.h"

struct ckt_worker;

struct ckt_request {
	struct ckt_worker *worker;
	struct ckt_transport *connection; /* the control thread's */
	uint32_t xid;
	struct ckt_cursor args;
	int passed_fd; /* owned; -1 when taken */
	/*
	 * the descriptor that HOST_MEMORY brought over this connection; owned by it, -1 when taken
	 */
	int *memory_fd;
	bool end; /* after the reply */
	/* the worker ends after the reply, and its session sleeps: it has not ended */
	bool asleep;
	bool ahead; /* a session was preloaded: it ends with this connection */
	/* commands wait until HOLD's END: they continue when this connection ends without it */
	bool stopped;
	/*
	 * the session was frozen until RELEASE: it continues when this connection ends without it
	 */
	bool held;
	/* the session stands still with others: each goes on by itself when this connection ends */
	bool together;
};

/* 0 or -errno: the connection cannot be used any more. */
int ckt_worker_control_reply(struct ckt_request *request, xdrproc_t xdr, void *res);
/* The same with a descriptor, which stays the caller's. */
int ckt_worker_control_reply_with(
	struct ckt_request *request, xdrproc_t xdr, void *res, int pass_fd);
/*
 * The connection over which the session was frozen has ended: nothing else would let the session
 * continue.
 */
void ckt_operation_let_go(struct ckt_worker *worker);
/* The same for one that stands still with those that it shares memory with; returns once it has gone on. */
void ckt_operation_leader_gone(struct ckt_worker *worker);
/* START has succeeded. */
bool ckt_worker_control_started(void);

int ckt_worker_control_start(struct ckt_worker *worker, int listen_fd);
