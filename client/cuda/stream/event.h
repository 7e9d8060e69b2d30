/* SPDX-License-Identifier: Apache-2.0 */
/* Events: functions for the other files of client/cuda. */
#pragma once

#include <cuda.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * A graph of the program records events, or may do so.  Then each launch of a graph can make an
 * event unfinished, so the client asks the worker each time.  Once true, it stays true.
 */
extern _Atomic bool ckt_client_event_graphs_record;
/*
 * Something other than cuEventRecord is about to record the event.  From now on, the client asks
 * the worker about it each time.  Ignores 0 and ids of other objects.
 */
void ckt_client_event_beside(uint64_t event);
/* Forgets the events of a context that was destroyed or reset; their handles become invalid. */
void ckt_client_event_forget_context(uint64_t context);
/*
 * Whether other processes may have it.  Calls that record it, or wait for it, then return once the
 * worker has executed them, because the program may tell another process so.  They are numbered, so
 * that a replay keeps that order (docs/durable.md).
 */
bool ckt_client_event_of_several(uint64_t event);
