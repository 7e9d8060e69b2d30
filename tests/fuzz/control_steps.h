/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inputs of the target `control`: their steps, what a call or an answer holds, mutations and
 * seeds of them.
 *
 *	circumstances (HEAD bytes) | step | how | length (2 bytes) | bytes | step | ...
 *
 * Threading: one thread.
 */
#pragma once

#include "tests/fuzz/mutate_xdr.h"

enum { HEAD = 4, STEP_HEAD = 4, STEPS_MAX = 24, BODY_MAX = 3000, PEERS = 2, SESSIONS = 3 };
enum { REQUESTS_MAX = 64, OWNER_ONE = 1000, OWNER_TWO = 1001 };
/* The first byte of the circumstances. */
enum { STOPPING = 1, WITH_TOKENS = 2, INSECURE = 4, FULL = 8, ON_DISK = 16, MARKED = 32 };
enum step {
	STEP_HELLO,
	STEP_CALL,
	STEP_ANSWER,
	STEP_RAW,
	STEP_FAIL,
	STEP_GONE,
	STEP_LIVE,
	STEP_LATE,
	STEP_HANG_UP,
	STEP_READ,
	STEP_POOR,
	STEPS
};
/* How a hello proves itself. */
enum {
	PROVE_NOTHING,
	PROVE_HMAC,
	PROVE_WRONG,
	PROVE_USER,
	PROVE_ADMIN,
	PROVE_OLD,
	PROVE_KEY,
	PROOFS
};

struct control_routine {
	xdrproc_t xdr;
	size_t bytes;
};
/* Answers of workers; the first byte of a STEP_ANSWER is an index. */
extern const struct control_routine control_answers[];
extern const unsigned control_answer_count;
/* Sessions that the server may have. */
extern const char *const control_ids[SESSIONS];

/* One input for each call, each hello, and some stories; ends the process where that fails. */
void control_write_seeds(const char *directory);
