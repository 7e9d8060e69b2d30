/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the client knows to be finished, so that a wait for it or a query needs no question.
 *
 *	a stream, a context	nothing was issued since a wait that covered it
 *	an event		seen finished, or recorded before a wait that covered its stream, and
 *				not recorded since
 *
 * A mark M says that all calls with numbers below M are done, of a stream or of a context: a wait
 * sets it to the number of calls that were issued (ckt_call_issued) before it began, and a copy to
 * the host to the number behind its own.  Calls of other threads and for other streams change the
 * number of issued calls, too: then the worker is asked, as before.
 *
 * Where the program's writes and the GPU's meet at waits (memory that it registered, managed memory
 * that it writes early) every wait is a real one.
 *
 * Threading: any.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/conn/call.h"
#include "client/cuda/memory/early_writes.h"
#include "client/cuda/memory/registered.h"

/* Marks only grow.  The mark for a wait that begins now, and for what is to be known; 0: ask. */
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
