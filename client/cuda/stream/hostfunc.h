/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of the program that run when a stream gets there: cuLaunchHostFunc,
 * cuStreamAddCallback, host nodes of graphs.
 *
 * The worker's stream stops and tells us; the function runs on one thread of ours, made for the
 * first of them, in the order of telling; our answer lets the stream go on.  Inside such a function
 * CUDA must not be called, and says so.
 */
#pragma once

#include <cuda.h>

#include <stdbool.h>
#include <stdint.h>

extern _Atomic uint64_t ckt_host_enqueued, ckt_host_settled;

/* Announces that so many functions will be called for work that is about to be sent. */
CUresult ckt_client_host_expect(unsigned count);
void ckt_client_host_settle_slow(void);
/* Whether this is the thread that runs them: streams wait for it. */
bool ckt_client_host_thread(void);

/*
 * Before host memory is read for a copy, or something is sent that the worker can only do while the
 * GPU gets on: functions that were put on streams before may still write that memory.  Waits until
 * they have run.
 */
static inline void ckt_host_settle(void)
{
	if (__builtin_expect(ckt_host_enqueued != ckt_host_settled, 0))
		ckt_client_host_settle_slow();
}
