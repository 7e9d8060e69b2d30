/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: functions for the other files of client/cuda. */
#pragma once

#include <cuda.h>

#include <stdbool.h>
#include <stdint.h>

/*
 * Whether work of the program may run concurrently with the legacy default stream, or another
 * process may access its memory.  The causes are a second context, a non-blocking stream, and
 * shared memory.  Once true, it stays true.
 */
extern _Atomic bool ckt_stream_beside;
/* Waits until the stream's work is done and the program has its results.  stream: resolved. */
CUresult ckt_client_stream_wait(uint64_t stream);
/*
 * Notes that all calls for the stream with numbers below `mark` are done, and that the program has
 * their results (known.h).
 */
void ckt_client_stream_done(uint64_t stream, uint64_t mark);
/*
 * Whether the call with this number, for the stream or for its whole context, is known to be done.
 */
bool ckt_client_stream_knows(uint64_t stream, uint64_t context, uint64_t number);
/*
 * Whether the stream had no work when the call with this number was issued, which gives it none (an
 * event's recording).  Then it still has none.
 */
bool ckt_client_stream_stays_idle(uint64_t stream, uint64_t number);
/*
 * Finds or makes the context's stream for this library's own copies, which waits for no other
 * stream.
 */
CUresult ckt_client_stream_aside(uint64_t context, uint64_t *ret_id);
/* Forgets the streams of a context that was destroyed or reset; their handles become invalid. */
void ckt_client_stream_forget_context(uint64_t context);
