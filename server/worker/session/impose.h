/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replay: a durable client (rpc/session.x, docs/durable.md) sends commands again that its session
 * lost with an earlier worker.  What the program got from some of them is imposed.
 *
 *	restored --REPLAY {last}--> replaying: [IMPOSE {seq}] command, [IMPOSE] command, ... command `last` --> running as ever
 *
 * An address is taken instead of the first that fits; a refusal is given without a call of the
 * driver.  Everything else is executed as the first time, and the client compares the replies.
 *
 * A client can impose only on its own session, only what would be granted to it anyway: addresses
 * that are free in its window, within its limits, or a failure.
 *
 * Threading: the executor, unless it says otherwise.
 */
#pragma once

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rpc/session.h"

struct ckt_worker;
struct ckt_wcall;

struct ckt_impose {
	_Atomic bool durable; /* the client keeps its commands; any thread reads it */
	/* All commands up to this number are in an image that stays; any thread.  0: there is none. */
	_Atomic uint64_t saved;
	uint64_t last; /* of the replay; 0: there was none on this connection */
	/* the command that the next members are for; 0: none */
	uint64_t seq;
	int result;
	uint64_t address;
	int64_t deadline_ms; /* until the address is free; 0: not waited yet */
};

/* The client's connection begins. */
void ckt_impose_connect(struct ckt_worker *worker, bool durable);
/*
 * A replay begins: 0; -EPERM if the session was not restored or the client is not durable; -EINVAL
 * if `last` is not ahead.
 */
int ckt_impose_begin(struct ckt_worker *worker, const ckt_replay_args *args);
/* False: not the next command of a replay, or an address outside of the window. */
bool ckt_impose_take(struct ckt_worker *worker, const ckt_impose_args *args);
/*
 * Runs the call, for which something is imposed, as ckt_executor_run does.  Precondition: the call's
 * number is impose.seq.
 */
bool ckt_impose_run(struct ckt_worker *worker, struct ckt_wcall *call);
/*
 * A call found the imposed address taken: lets what was freed finish.  False: nothing is imposed, or
 * the time is up.
 */
bool ckt_impose_wait(struct ckt_worker *worker);

/*
 * All commands up to the number are in an image that stays: tells a durable client.  Any thread; the
 * executor must be woken.
 */
void ckt_impose_tell_durable(struct ckt_worker *worker, uint64_t executed);
