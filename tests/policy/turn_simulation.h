/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions that share a GPU in turns in virtual time, on the server's real order of turns.
 *
 * Each member has bursts of work with pauses between them.  The same seed gives the same run.
 *
 * Threading: no shared state.
 */
#pragma once

#include <stdint.h>

enum { TURN_SIMULATION_MEMBERS_MAX = 64 };

struct turn_simulation_result {
	unsigned finished;
	int64_t ended_ms;
	uint64_t turns, waits;
	double waited_ms; /* of all bursts, for their first turns */
	int64_t longest_wait_ms;
};

/* count: TURN_SIMULATION_MEMBERS_MAX at most.  Adds to the result; ended_ms is that of the last. */
void turn_simulation_run(unsigned count, uint64_t seed, struct turn_simulation_result *result);
