/*
 * Stopping the executor for an image.
 *
 * Threading: control threads, but for ckt_executor_freeze.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct ckt_worker;

/*
 * Stops the executor between commands with everything finished; 0 or -errno and a sentence naming
 * what would not finish.
 */
int ckt_worker_freeze(
	struct ckt_worker *worker, unsigned deadline_ms, char *ret_message, size_t message_size);
void ckt_worker_thaw(struct ckt_worker *worker, bool end);
/*
 * Tells the client to be quiet and ends its connection.  Precondition: frozen, and nobody thaws
 * meanwhile.
 */
void ckt_worker_quiesce(struct ckt_worker *worker);
/* The executor's side. */
void ckt_executor_freeze(struct ckt_worker *worker);
