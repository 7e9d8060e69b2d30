/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that may last for ever, each on a thread of its own: what a library does together with
 * other workers waits until those do their part. long_call.h is for calls that end by themselves,
 * and has one thread for all of them, in their order.
 *
 *	executor submits -> run, on a thread made for it -> mail -> executor finishes: enters objects, answers
 *
 * Whoever needs an order among such jobs submits the next one when the one before has finished.  A
 * session is frozen when none of them runs.
 */
#pragma once

#include <stdint.h>

#include "server/worker/session/long_call.h"

/*
 * All users of a server may have their workers under one uid, whose threads are counted together.
 */
enum { CKT_APART_MAX = 512 };

/*
 * The executor's, or the restoring thread's.  job->context as in long_call.h.  0 or -EAGAIN: there
 * is no thread for it, and the job is still the caller's.
 */
int ckt_blocking_call_submit(struct ckt_worker *worker, struct ckt_long_call_job *job);
/* Finishes what has run. */
void ckt_blocking_call_finish(struct ckt_worker *worker);
/* The same; returns whether something still runs. */
bool ckt_blocking_call_is_busy(struct ckt_worker *worker);
/*
 * Waits until done(data), and finishes jobs meanwhile; deadline_ms -1: none.  For the restoring
 * thread: the executor must not wait for other workers. 0 or -ETIMEDOUT.
 */
int ckt_blocking_call_wait(
	struct ckt_worker *worker, bool (*done)(void *data), void *data, int64_t deadline_ms);
