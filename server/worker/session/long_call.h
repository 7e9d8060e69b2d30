/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long calls of the driver beside the executor, so that they hold up no other thread's commands:
 * loading modules (the driver compiles PTX), linking, instantiating graphs; and ends for which the
 * driver waits until the GPU is idle: of modules, arrays, registered memory.
 *
 *	executor submits -> run, on a thread made at the start -> mail -> executor finishes: enters objects, answers
 *
 * One at a time and in the order of submission, so that modules are placed in the order of the
 * journal.  Whoever destroys what a job may use, or adds to the journal, drains first: a context's
 * end, a module's, a freeze.
 */
#pragma once

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct ckt_worker;

struct ckt_long_call_job {
	struct ckt_long_call_job *next;
	/* current while it runs; NULL: the one that is current at its submission */
	CUcontext context;
	/* Calls the driver and touches nothing but the job. */
	void (*run)(struct ckt_long_call_job *job);
	/* On the executor; frees the job. */
	void (*finish)(struct ckt_worker *worker, struct ckt_long_call_job *job);
};

/* 0 or -errno. */
int ckt_long_call_start(struct ckt_worker *worker);
/* All below: the executor's. */
void ckt_long_call_submit(struct ckt_worker *worker, struct ckt_long_call_job *job);
/* Finishes what has run. */
void ckt_long_call_finish(struct ckt_worker *worker);
/*
 * Waits until every job is finished.  deadline_ms -1: none; else -ETIMEDOUT, or -EAGAIN if a host
 * function waits for the client.
 */
int ckt_long_call_drain(struct ckt_worker *worker, int64_t deadline_ms);
/*
 * Before memory is counted or missed: waits until pending frees are done, but no longer than a
 * second. True: they are.
 */
bool ckt_long_call_settle(struct ckt_worker *worker);
