/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JIT options from the client: integers pass through, and pointers cannot come from another
 * machine.  Threading: the executor, or the thread that runs the job.
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

/* Adds an option; CUDA_ERROR_NOT_SUPPORTED if it cannot come from a client. */
CUresult ckt_worker_jit_option(struct ckt_jit *jit, uint32_t key, uint64_t value);
/* Logs of at most those sizes; the caller frees them.  NULL if there is no memory. */
struct ckt_jit_logs *ckt_worker_jit_logs_new(uint32_t info_max, uint32_t error_max);
/* Adds the options that make the driver write into the logs. */
void ckt_worker_jit_add_logs(struct ckt_jit *jit, struct ckt_jit_logs *logs);
/* Writes our own error into the error log, if the program asked for one. */
void ckt_worker_jit_say(struct ckt_jit_logs *logs, const char *text);
