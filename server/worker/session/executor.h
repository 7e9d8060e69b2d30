/* SPDX-License-Identifier: Apache-2.0 */
/* The executor: the one thread that reads the client's calls in their order and executes them. */
#pragma once

#include <rpc/rpc.h>
#include <stdbool.h>

struct ckt_wcall;
struct ckt_worker;

/*
 * Made with all other threads, because its stack and buffer must precede what the driver maps for
 * modules; waits for go.
 */
int ckt_executor_start(struct ckt_worker *worker);
void ckt_executor_go(struct ckt_worker *worker);
void ckt_executor_wake(struct ckt_worker *worker);
/*
 * Only on the executor's thread: forgets the connection, and commands that came over it but were
 * not executed.
 */
void ckt_executor_disconnect(struct ckt_worker *worker, const char *why);
/*
 * Runs the handler of a call, also once more of one that has waited for memory; the call is then not
 * the caller's any more.  False: its arguments are malformed.  The executor's.
 */
bool ckt_executor_run(struct ckt_worker *worker, struct ckt_wcall *call);
/* Answers a call of the session protocol; it stays the caller's.  The executor's. */
void ckt_executor_answer(
	struct ckt_worker *worker, const struct ckt_wcall *call, xdrproc_t xdr, void *res);
/* Only on the executor's thread: wait_client of checkpoint/session.h. */
bool ckt_executor_wait_client(struct ckt_worker *worker, bool listen, int timeout_ms);
