/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shim and the worker in one process, with nothing between them but the messages: the table that
 * a shim finds has the worker's handlers behind it (tests/unit/worker/inside.h), which run in the
 * calls' order on the soft GPU.
 */
#pragma once

#include "client/libs/libs.h"
#include "tests/unit/worker/inside.h"

/* What has been sent since loop_mark: calls that were queued, and calls that were waited for. */
extern unsigned loop_batched, loop_waited;
void loop_mark(void);
/* The first error that a queued call left behind, forgotten now. */
CUresult loop_deferred(void);
/* As CRICKET_SYNC=1: queued calls are waited for. */
extern bool loop_sync;
/* What begin, enter and workspace_alloc say instead of doing it; CUDA_SUCCESS: they do it. */
extern CUresult loop_error;
/* The last copy that was asked for. */
extern CUDA_MEMCPY2D loop_copy;
extern bool loop_copy_async;
/* Streams capture; what call was captured last, and the workspace that it uses. */
/* With loop_capture_ended the capture has ended when the call comes to it. */
extern bool loop_captures, loop_capture_ended;
extern uint32_t loop_captured;
extern uint64_t loop_captured_workspace;
/* Of the session: changes where it is restored. */
extern uint64_t loop_generation;
/*
 * Not 0: a hostile server, whose replies are other bytes than the worker's, or fewer or more; where
 * what comes from.
 */
extern unsigned loop_lies;
