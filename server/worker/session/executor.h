/* SPDX-License-Identifier: Apache-2.0 */
/* The executor: the one thread that reads the client's calls in their order and executes them. */
#pragma once

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
/* Runs the handler of a call once more that has waited for memory.  The executor's. */
void ckt_executor_run_again(struct ckt_worker *worker, struct ckt_wcall *call);
