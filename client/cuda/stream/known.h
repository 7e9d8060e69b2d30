/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that the client knows to be finished, so that waits and queries need no round trip:
 *
 *	a stream, a context	nothing was issued since a wait that covered it
 *	an event		seen finished, or recorded before a wait that covered its stream, or
 *				recorded without time in a stream that had no work; and not
 *				recorded since
 *
 * A mark M of a stream or a context says that all its calls with numbers below M are done.  A wait
 * sets the mark to the number of calls issued (ckt_call_issued) before the wait began.  A copy to
 * the host sets it to the number after its own call.  Calls of other threads and for other streams
 * change the number of issued calls, too.  Then the client asks the worker.
 *
 * Every wait asks the worker if waits also transfer memory: registered memory, and managed memory
 * that the program writes early.
 *
 * Any thread may use these functions.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/conn/call.h"
#include "client/cuda/memory/early_writes.h"
#include "client/cuda/memory/registered.h"

/* The mark for a wait or query that begins now; 0: ask the worker.  Marks only grow. */
static inline uint64_t ckt_known_now(void)
{
	return ckt_registered_any() || ckt_managed_early ? 0 : ckt_call_issued();
}

static inline bool ckt_known_is(const _Atomic uint64_t *mark, uint64_t now)
{
	return now && atomic_load_explicit(mark, memory_order_relaxed) == now;
}

static inline void ckt_known_set(_Atomic uint64_t *mark, uint64_t now)
{
	uint64_t before = atomic_load_explicit(mark, memory_order_relaxed);
	while (before < now && !atomic_compare_exchange_weak(mark, &before, now))
		;
}
