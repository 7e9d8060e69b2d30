/* SPDX-License-Identifier: Apache-2.0 */
/* Events, as the other files of client/cuda use them. */
#pragma once

#include <cuda.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * A graph of the program has recorded events, or may: what is known of an event may be over with
 * any launch of a graph.  Once true it stays so.
 */
extern _Atomic bool ckt_client_event_graphs_record;
/*
 * The event is about to be recorded otherwise than by cuEventRecord: from here on the worker is
 * asked about it each time.  0 and what is no event: nothing.
 */
void ckt_client_event_beside(uint64_t event);
/* Of a context that has ended or was reset: its handles are no handles any more. */
void ckt_client_event_forget_context(uint64_t context);
/*
 * Of an event of several processes: what was put on a stream for it is there when the call returns,
 * as another process may be told so next.
 */
CUresult ckt_client_event_arrived(uint64_t event);
