/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that share a GPU's memory in virtual time, on the server's real ledger and queue.
 *
 * Each program allocates and frees blocks, computes between them, and ends with everything freed.
 * What the server refuses ends a program, as an uncaught error of CUDA does.  The same seed gives
 * the same run.
 *
 * Threading: no shared state.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/daemon/policy/wait_queue.h"

enum { SIMULATION_STEPS_MAX = 128 };

struct simulation_step {
	int64_t mib; /* above 0: allocates them, below: frees so many; 0: computes only */
	int64_t ms;  /* computes so long afterwards */
};

struct simulation_program {
	int64_t arrives_ms;
	uint64_t declared_mib; /* 0: none */
	struct simulation_step steps[SIMULATION_STEPS_MAX];
	unsigned step_count;

	/* Results. */
	bool finished, refused;
	enum ckt_memory_reason reason;
	int64_t ended_ms, waited_ms;
	unsigned waits;

	/* The run's own. */
	struct ckt_ledger_holder holder;
	char id[CKT_SESSION_ID_SIZE + 1];
	int64_t due_ms, since_ms;
	unsigned step;
	bool here, waiting, granted;
};

struct simulation_result {
	unsigned finished, refused, hung;
	int64_t ended_ms;             /* of the last one */
	double mean_ms, mean_wait_ms; /* from arrival to end; of that, waiting */
	int64_t longest_wait_ms;
	uint64_t grants, events;
};

/* A number below that one, from a state that changes. */
uint64_t simulation_draw(uint64_t *state, uint64_t below);
/* A random mix: half of them declare if declared is 2, all if 1, none if 0. */
void simulation_mix(struct simulation_program *programs, unsigned count, uint64_t budget_mib,
	int declared, uint64_t seed);
/*
 * Runs them until none can go on.  context_mib: what each takes of the budget beside its blocks.
 * Checks the ledger after every event: false where it says more than the budget.
 */
bool simulation_run(struct simulation_program *programs, unsigned count, uint64_t budget_mib,
	uint64_t context_mib, const struct ckt_wait_policy *policy, uint64_t seed,
	struct simulation_result *ret_result);
