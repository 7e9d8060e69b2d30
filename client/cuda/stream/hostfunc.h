/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of the program that run in stream order: cuLaunchHostFunc, cuStreamAddCallback, host
 * nodes of graphs.
 *
 * The worker's stream stops and sends a message.  One thread of this library runs the functions in
 * the order of these messages; the first host function starts the thread.  The client's
 * command HOST_FUNC_DONE lets the stream continue.  CUDA calls in such a function return an error.
 */
#pragma once

#include <cuda.h>

#include <stdbool.h>
#include <stdint.h>

extern _Atomic uint64_t ckt_host_enqueued, ckt_host_settled;

/* Announces that the next work to be sent calls this number of functions. */
CUresult ckt_client_host_expect(unsigned count);
void ckt_client_host_settle_slow(void);
/* Whether the calling thread runs host functions; streams wait for that thread. */
bool ckt_client_host_thread(void);

/*
 * Waits until the host functions on streams have run.  Call it before the client reads host memory
 * for a copy, because those functions may still write that memory.  Also call it before a command
 * that the worker can execute only while the GPU progresses.
 */
static inline void ckt_host_settle(void)
{
	if (__builtin_expect(ckt_host_enqueued != ckt_host_settled, 0))
		ckt_client_host_settle_slow();
}
