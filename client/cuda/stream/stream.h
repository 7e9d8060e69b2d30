/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, as the other files of client/cuda use them. */
#pragma once

#include <cuda.h>

#include <stdbool.h>
#include <stdint.h>

/*
 * Whether work of the program may run beside the legacy default stream, or another process sees its
 * memory: a second context, a stream that waits for no other, memory that is shared.  Once true it
 * stays so.
 */
extern _Atomic bool ckt_stream_beside;
/*
 * The stream has done what it was given, and the program has what came of it.  The stream:
 * resolved.
 */
CUresult ckt_client_stream_wait(uint64_t stream);
/*
 * All calls with numbers below `mark` that were for the stream are done; the program has what came
 * of them (known.h).
 */
void ckt_client_stream_done(uint64_t stream, uint64_t mark);
/* Whether that is known of a call's number: a call for the stream, or for all of its context. */
bool ckt_client_stream_knows(uint64_t stream, uint64_t context, uint64_t number);
/* A stream of the context's for our own copies, which waits for no other. */
CUresult ckt_client_stream_aside(uint64_t context, uint64_t *ret_id);
/* Of a context that has ended or was reset: its handles are no handles any more. */
void ckt_client_stream_forget_context(uint64_t context);
