/*
 * Ending the client's connection so that what was sent still arrives.
 *
 * Threading: the executor, frozen or about to be.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ckt_worker;

/* Sends what lies in the output, as far as the client takes it until then. */
void ckt_parting_flush(struct ckt_worker *worker, int64_t deadline_ms);
/*
 * Sends all and ends the connection.  quiesce: the client is told to be quiet and may come back;
 * else it is told what worker->parting says.
 */
void ckt_parting_end(struct ckt_worker *worker, bool quiesce);
