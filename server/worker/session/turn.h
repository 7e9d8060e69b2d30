/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This worker's turns on GPUs that its session shares in time (rpc/turn.h).
 *
 *	no turn --a command for the GPU: WANT--> waits --GIVE--> has it --the end, or nothing to do,
 *	and the GPU is drained: YIELD--> no turn
 *
 * Commands with a context are for its GPU; all others are run at any time.  A command that has no turn
 * stops the executor; waits that have begun are answered all the same.  While the GPU waits for a host
 * function of the program nothing is stopped.
 *
 * Without a channel, as on every server that shares no GPU in time, nothing of this costs more than one
 * look at a variable.
 *
 * Threading: ckt_turn_join from any thread; the rest is the executor's.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

struct ckt_worker;

extern _Atomic bool ckt_turn_on;

static inline bool ckt_turns_on(void)
{
	return atomic_load_explicit(&ckt_turn_on, memory_order_relaxed);
}

/* The channel becomes ours, in place of an earlier one.  0 or -errno. */
int ckt_turn_join(struct ckt_worker *worker, int channel);
/* Whether the next command of the input has to wait.  Asked once more, it may do so no longer. */
bool ckt_turn_stops(struct ckt_worker *worker);
/*
 * Gives turns back that are over; idle: no command is there, and none is expected soon.  True: the GPU
 * is about to finish something that a turn's end, or the next command, waits for.
 */
bool ckt_turn_look(struct ckt_worker *worker, bool idle);
/* Whether the executor has to look again although nothing wakes it. */
bool ckt_turn_waits(void);
/* What ckt_turn_stops said last. */
bool ckt_turn_stopped(void);
/* The executor stands still until ckt_turn_return: others may run. */
void ckt_turn_leave(void);
void ckt_turn_return(void);
