/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends the client's connection so that everything sent still arrives.  Threading: the executor,
 * frozen or about to be.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ckt_worker;

/* Sends the output's bytes, as far as the client accepts them until then. */
void ckt_parting_flush(struct ckt_worker *worker, int64_t deadline_ms);
/*
 * Sends everything and ends the connection.  quiesce: tells the client to be quiet, and it may come
 * back; else tells it what worker->parting says.
 */
void ckt_parting_end(struct ckt_worker *worker, bool quiesce);
