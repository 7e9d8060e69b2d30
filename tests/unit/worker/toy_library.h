/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A made-up library inside the test's own process: objects with a seed and four settings, whose one
 * call writes the sum of all that to device memory, on the stream that the object has or that a
 * capture gives it.  toy_make takes the settings as they are for a plan, as cuFFT does.
 */
#pragma once

#include "server/worker/libs/libs.h"
#include "server/worker/libs/state.h"
#include "tests/unit/worker/inside.h"

#define TOY_LIB CKT_LIB_NCCL /* which no build has yet */
enum {
	TOY_CREATE = 1,
	TOY_SET = 2,
	TOY_WRITE = 3,
	TOY_DESTROY = 4,
	TOY_LATER = 5,
	TOY_WRITE_TO = 6,
	TOY_ASK = 7,
	TOY_MAKE = 8,
	TOY_PROCS = 9
};

struct toy {
	uint32_t seed, settings[4];
	uint32_t planned[4], made; /* the settings when the plan was made, and how often */
	uint64_t stream;           /* that the program has set; the wire's id */
	CUstream own, capturing;
	uint64_t workspace, workspace_bytes;
};

/* How many of its real objects there are. */
extern unsigned toy_alive, toy_created;
/* The next call of it answers that. */
extern int toy_status;
/* As many of its next calls have the context waited for, which ends a capture. */
extern unsigned toy_disturbed;
/* Bytes of workspace that new objects ask for; 0: none. */
extern uint64_t toy_workspace;

/* What one of its objects is taken to cost. */
void toy_account(uint32_t object_bytes);
void toy_begin(void);
void toy_end(void);
/*
 * Runs a call of it as the executor does; the handler's result, or the library's status as
 * CUDA_ERROR_UNKNOWN.
 */
int toy_call(uint32_t proc, const uint8_t *args, size_t size);
int toy_create(uint64_t id, uint32_t seed);
int toy_set(uint64_t id, uint32_t key, uint32_t value);
int toy_make(uint64_t id);
int toy_write(uint64_t id, uint64_t address);
int toy_destroy(uint64_t id);
struct toy *toy_find(uint64_t id);
/* How a captured call of toy_write goes. */
int toy_capture(uint64_t call, uint64_t id, uint64_t address);
int toy_capture_end(uint64_t call);
