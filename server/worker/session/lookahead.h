/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a host function, taken from the input by another thread while the executor is stuck.
 *
 * A call on the executor may wait for the GPU by itself: a library's first kernel loads a module, a
 * launch finds its stream's queue full, the driver ends a registration.  Where the GPU waits for a
 * host function meanwhile, whose end is a command behind that call, nobody would ever go on.
 *
 *	host function's turn -> the executor neither takes a command nor sleeps for LOOK_NS -> this thread sends CALLBACK_HOST_CALL, takes host_func_done
 *	from the input ahead -> the GPU goes on -> the executor's call returns, and host_func_done finds nothing to do in its turn
 *
 * A host_func_done is left to the executor where a command of the same thread of the client lies
 * before it that has not been executed: such commands bring the GPU what the function wrote (memory
 * that both sides keep coherent by copies).
 *
 * The thread sleeps for good while no host function waits.  Whether the executor is stuck is no
 * question of correctness: it may always look.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ckt_worker;

struct ckt_lookahead {
	_Atomic uint64_t beats; /* the executor's steps: commands, and looks for them */
	/* it waits for input, and reads what comes; or it is frozen */
	_Atomic bool asleep;
};

/* Both the executor's. */
static inline void ckt_lookahead_beat(struct ckt_lookahead *lookahead)
{
	uint64_t beats = atomic_load_explicit(&lookahead->beats, memory_order_relaxed);
	atomic_store_explicit(&lookahead->beats, beats + 1, memory_order_relaxed);
}

static inline void ckt_lookahead_asleep(struct ckt_lookahead *lookahead, bool asleep)
{
	atomic_store_explicit(&lookahead->asleep, asleep, memory_order_relaxed);
}

/* Makes the thread: 0 or -errno. */
int ckt_lookahead_start(struct ckt_worker *worker);
/* One look, by that thread or by a test. */
void ckt_lookahead_look(struct ckt_worker *worker);
