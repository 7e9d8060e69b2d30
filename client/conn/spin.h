/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a thread waits for a reply: in the way in which the program asked CUDA to wait for the GPU
 * (CU_CTX_SCHED_*), because the reply depends on the GPU. Sleeping and waking costs tens of
 * microseconds, in each step of a program that waits for a reply in each step.
 *
 *	spin		polls
 *	yield, auto	polls where this program's waiting threads leave processors to others; yield offers its own at each look
 *	block		sleeps
 *
 * Whoever polls does so for CKT_SPIN_LONG_US at most: behind that a wake-up is less than a
 * thousandth of the wait.  Every wait begins with CRICKET_SPIN microseconds of polling; where the
 * user gave that, it is all.  Threading: any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { CKT_SPIN_LONG_US = 100000 };

struct ckt_spin {
	int64_t until_us; /* of CLOCK_MONOTONIC; 0: do not poll */
	bool yield;
};

/* The program's latest request, for whichever context. */
void ckt_spin_schedule(unsigned flags);
/* A thread begins to wait for a reply; ckt_spin_end follows. */
struct ckt_spin ckt_spin_begin(void);
void ckt_spin_end(void);
/* A wait for an event that may never come: it polls for CRICKET_SPIN only. */
struct ckt_spin ckt_spin_short(void);
/* True if the thread must look again at once. */
bool ckt_spin_again(const struct ckt_spin *spin);
