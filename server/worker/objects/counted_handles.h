/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams and events of the driver, counted for each context: the journal says how many lived at
 * once, and a restore makes so many ahead.
 *
 * Threading: the executor, or who restores.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "checkpoint/journal.h"

struct ckt_object;
struct ckt_worker;

/*
 * Create: in the current context; what a restore has made ahead is taken first.  Destroy: of any
 * context.
 */
CUresult ckt_counted_stream_create(
	struct ckt_worker *worker, unsigned flags, int priority, CUstream *ret_stream);
void ckt_counted_stream_destroy(struct ckt_worker *worker, uint64_t context, CUstream stream);
CUresult ckt_counted_event_create(struct ckt_worker *worker, unsigned flags, CUevent *ret_event);
void ckt_counted_event_destroy(struct ckt_worker *worker, uint64_t context, CUevent event);
/* Counts one that another thread has made of the driver in that context, and one that it ended. */
void ckt_counted_made(struct ckt_worker *worker, struct ckt_object *context, bool event,
	unsigned flags, int priority);
void ckt_counted_gone(struct ckt_object *context, bool event);
/* Repeats a step of kind STREAMS or EVENTS in the current context: makes them ahead. */
CUresult ckt_counted_make_ahead(struct ckt_worker *worker, const struct ckt_journal_entry *entry);
/* Ends what was made ahead and was not taken. */
void ckt_counted_ahead_fini(struct ckt_worker *worker);
