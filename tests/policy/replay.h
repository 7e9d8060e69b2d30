/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run that was recorded (cricketctl --json events --follow), as programs for the simulation: what
 * each session took and gave back, and how long it did something else in between.  The time that it
 * waited is left out, because the policy of the simulation decides that anew.
 *
 * Threading: no shared state.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/policy/simulation.h"

enum { REPLAY_SESSIONS_MAX = 20000, REPLAY_GPUS_MAX = 1024 };

struct replay_session {
	char id[CKT_SESSION_ID_SIZE + 1];
	unsigned gpu;
	struct simulation_program program;
	/* As recorded. */
	int64_t ended_ms, waited_ms;
	unsigned waits;
	/* Of the reading. */
	int64_t last_ms, held_mib;
	bool ended;
};

struct replay {
	struct replay_session *sessions;
	unsigned count;
	int64_t began_ms;
	uint64_t budgets_mib[REPLAY_GPUS_MAX];
	uint64_t context_mib;
	uint64_t missed; /* events that the record lacks */
};

/*
 * False: it is no record; ret_message says why.  What it has read is freed by replay_free in every
 * case.
 */
bool replay_read(FILE *file, struct replay *ret_replay, char *ret_message, size_t message_size);
void replay_free(struct replay *replay);
