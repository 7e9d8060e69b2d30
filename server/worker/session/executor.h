/*
 * The executor: the one thread that takes the client's calls in their order and makes them.
 */
#pragma once

struct ckt_worker;

/*
 * Made with all other threads, because its stack and buffer must lie before what the driver maps
 * for modules; waits for go.
 */
int ckt_executor_start(struct ckt_worker *worker);
void ckt_executor_go(struct ckt_worker *worker);
void ckt_executor_wake(struct ckt_worker *worker);
/*
 * Of the executor's thread alone: forgets the connection and what came over it without being
 * executed.
 */
void ckt_executor_disconnect(struct ckt_worker *worker, const char *why);
