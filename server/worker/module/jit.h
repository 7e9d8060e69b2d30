/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JIT options as they travel: integers go through, pointers cannot come from another machine.  The
 * executor's, or whoever has the job.
 */
#pragma once

#include <cuda.h>
#include <stdint.h>

#include "server/worker/objects/object.h"

enum { CKT_JIT_LOG_MAX = 65536 };

struct ckt_jit {
	CUjit_option keys[CKT_JIT_OPTIONS_MAX + 4];
	void *values[CKT_JIT_OPTIONS_MAX + 4];
	unsigned count;
};

struct ckt_jit_logs {
	char info[CKT_JIT_LOG_MAX], error[CKT_JIT_LOG_MAX];
	uint32_t info_size, error_size;
};

/* Adds one; CUDA_ERROR_NOT_SUPPORTED where it cannot travel. */
CUresult ckt_worker_jit_option(struct ckt_jit *jit, uint32_t key, uint64_t value);
/* Of at most those sizes; free() it.  NULL where there is no memory. */
struct ckt_jit_logs *ckt_worker_jit_logs_new(uint32_t info_max, uint32_t error_max);
/* The options that make the driver write there. */
void ckt_worker_jit_add_logs(struct ckt_jit *jit, struct ckt_jit_logs *logs);
/* An error of our own, where the program wants to hear of errors. */
void ckt_worker_jit_say(struct ckt_jit_logs *logs, const char *text);
