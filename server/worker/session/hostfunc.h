/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host functions: the driver calls one of ours on a thread of its own, which tells the client and
 * sleeps until the client answers.
 *
 *	driver's thread: waiting, not sent -> executor sends CALLBACK_HOST_CALL -> client runs it -> host_func_done -> thread returns
 *
 * Where the executor is inside a call that waits for the GPU, another thread does its part of it
 * (lookahead.h).  Only that stream stands still.  A client that comes back is told again of what it
 * has not answered; one that does not come back ends the worker, and with it everything on the GPU.
 */
#pragma once

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ckt_host_call;
struct ckt_worker;

struct ckt_host_calls {
	pthread_mutex_t lock;
	pthread_cond_t done, come;
	/* on the stacks of the driver's threads, in the order of their coming */
	struct ckt_host_call *first;
	_Atomic unsigned count;
	_Atomic uint64_t ended; /* since the worker began */
	uint64_t next_instance;
};

/*
 * The driver's host function of a graph's host node; data: its ckt_graph_node, alive as long as the
 * executable graph.
 */
void ckt_hostcall_graph(void *data);
/* The executor's: sends calls that the client has not been told.  Data that is ready goes first. */
void ckt_hostcalls_send(struct ckt_worker *worker);
/*
 * The same for another thread while the executor is stuck.  The driver, which may hold a lock of
 * its own for the executor's call, is asked only where copies of other streams are pending: what a
 * function's own stream had copied before its turn is there.
 */
void ckt_hostcalls_send_stuck(struct ckt_worker *worker);
/* The executor's: a new connection has not been told any calls. */
void ckt_hostcalls_resend(struct ckt_worker *worker);
/*
 * True while a host function waits for the client: the GPU will not become idle before it is
 * answered.
 */
bool ckt_hostcalls_waiting(struct ckt_worker *worker);
/* From any thread: the client has run it.  False: no such function waits. */
bool ckt_hostcall_end(struct ckt_worker *worker, uint64_t instance);
/* Blocks until a host function waits for the client. */
void ckt_hostcalls_await(void);
/* How many have ended so far. */
uint64_t ckt_hostcalls_ended(void);
/*
 * A short sleep for a thread that waits for the GPU until deadline_ms: 0, -ETIMEDOUT, or -EAGAIN if
 * a host function waits for the client, because only the executor can receive its end. deadline_ms
 * -1: always 0.
 */
int ckt_hostcalls_rest(struct ckt_worker *worker, int64_t deadline_ms);
