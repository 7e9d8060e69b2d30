/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a thread waits for a reply.  The reply depends on the GPU, so the thread waits as the program
 * asked CUDA to wait for the GPU (CU_CTX_SCHED_*).  Sleeping and waking costs tens of microseconds
 * in each step of a program that waits for a reply in each step.
 *
 *	spin		polls
 *	yield, auto	polls if at most half of the processors then poll; yield also calls sched_yield after each look
 *	block		sleeps
 *
 * A thread polls for CKT_SPIN_LONG_US at most: after that time a wake-up costs less than a
 * thousandth of the wait.  A thread that finds the machine crowded (base/crowd.h) polls briefly for a
 * while, however the program asked.  Every wait begins with CRICKET_SPIN microseconds of polling; if the user
 * set that variable, threads do not poll longer.  Threading: any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { CKT_SPIN_LONG_US = 100000 };

struct ckt_spin {
	int64_t until_us; /* of CLOCK_MONOTONIC; 0: do not poll */
	bool yield;
	bool looks; /* long enough to ask whether the machine is crowded */
};

/* The program's latest request, for any context. */
void ckt_spin_schedule(unsigned flags);
/* Whether that was to sleep (CU_CTX_SCHED_BLOCKING_SYNC): then the worker does not poll either. */
bool ckt_spin_sleeps(void);
/* Begins a wait for a reply; the caller must call ckt_spin_end afterwards. */
struct ckt_spin ckt_spin_begin(void);
void ckt_spin_end(void);
/* For a wait for an event that may never come: polls for CRICKET_SPIN only. */
struct ckt_spin ckt_spin_short(void);
/* True if the thread must poll again at once. */
bool ckt_spin_again(const struct ckt_spin *spin);
