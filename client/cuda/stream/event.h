/* SPDX-License-Identifier: Apache-2.0 */
/* Events, as the other files of client/cuda use them. */
#pragma once

#include <cuda.h>

#include <stdint.h>

/* Of a context that has ended or was reset: its handles are no handles any more. */
void ckt_client_event_forget_context(uint64_t context);
/*
 * Of an event of several processes: what was put on a stream for it is there when the call returns,
 * as another process may be told so next.
 */
CUresult ckt_client_event_arrived(uint64_t event);
