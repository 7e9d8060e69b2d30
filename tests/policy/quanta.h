/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that share a GPU's memory by swapping, in virtual time, on the server's real policy
 * (server/daemon/policy/quantum.h): each computes on the GPU, then on its own, again and again.
 *
 * The GPU's time is divided among all that compute at one time.  A swap moves bytes at the given rate;
 * several moves in one direction share it.  With `follows` a program comes in behind others: it takes
 * what has left already.
 *
 * Threading: no shared state.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "server/daemon/policy/quantum.h"

struct quanta_program {
	uint64_t bytes;
	int64_t gpu_ns, own_ns; /* of one round */
	unsigned rounds;
	int64_t begins_ns;
	bool follows;

	/* Results. */
	int64_t ended_ns, longest_wait_ns;
	unsigned done;

	/* The run's own. */
	struct ckt_quantum_member member;
	int64_t left_ns;  /* of the phase */
	int64_t moves_ns; /* of the move that runs */
	bool here, on_gpu;
};

struct quanta_result {
	int64_t ended_ns; /* of the last one */
	unsigned finished;
	uint64_t outs;
	double switching; /* the part of the time that was spent on moves */
	uint64_t met;     /* bytes that came in while others left, behind them */
	bool overfull;    /* more on the GPU than it has: never */
};

/* Until all have ended, or end_ns.  rate: bytes a second in each direction. */
void quanta_run(struct quanta_program *programs, unsigned count, uint64_t budget_bytes, double rate,
	int64_t max_wait_ns, int64_t end_ns, struct quanta_result *ret_result);
/* How long they take one after the other. */
int64_t quanta_alone_ns(const struct quanta_program *programs, unsigned count);
