/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRICKET_TRACE_GPU=1: a thread that fetches from each worker how long the GPU took for what this
 * program gave it (CKT_SESSION_GPU_TRACE), ten times a second, and writes it to the file of
 * CRICKET_TRACE (client/trace/gpu_track.h).  The program's threads have nothing to do with it.
 */
#pragma once

#include <time.h>

/* If the program is to be traced so.  After the sessions are open. */
void ckt_gpu_trace_start(void);
/*
 * Fetches what is left, before the sessions end.  until: of CLOCK_MONOTONIC, gives up then; NULL:
 * after CKT_GPU_TRACE_END_NS.  May be called in a signal handler.  Once; later calls do nothing.
 */
void ckt_gpu_trace_end(const struct timespec *until);

#define CKT_GPU_TRACE_END_NS 2000000000
