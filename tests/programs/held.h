/* SPDX-License-Identifier: Apache-2.0 */
/* A stream that stands behind a host function of the program, for calls that are made meanwhile. */
#pragma once

#include "phase.h"

#include <atomic>

/* Until long after the program has gone on. */
enum { HELD_US = 150000 };

static std::atomic<int> held_entered, held_go, held_gone, held_calls;

/* data: a counter of the program's. */
static void held_slow(void *data)
{
	held_entered = 1;
	while (!held_go)
		usleep(1000);
	held_gone = 1;
	usleep(HELD_US);
	(*(unsigned *)data)++;
	held_calls++;
}

/* held_slow is on its stream: it runs behind this, and ends HELD_US later. */
static inline void held_let_go(void)
{
	while (!held_entered)
		usleep(100);
	held_go = 1;
	while (!held_gone)
		usleep(100);
}

static inline void held_begin(void)
{
	held_entered = held_go = held_gone = 0;
}

static inline void hold(cudaStream_t stream, unsigned *counter)
{
	held_begin();
	CHECK(cudaLaunchHostFunc(stream, held_slow, counter));
	held_let_go();
}
