/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of the JIT compiler and linker from programs: values in void * slots with numbers cast
 * into them.  Some values are written back.
 */
#pragma once

#include "cudacommon/interface.h"

enum {
	CKT_JIT_GIVEN_MAX = 64,       /* the worker's limit */
	CKT_JIT_LOG_GIVEN_MAX = 65536 /* of a log: a longer log is cut off */
};

struct ckt_cudacommon_jit {
	/* Numbers for the compiler, without output buffers and lists of this process. */
	uint32_t keys[CKT_JIT_GIVEN_MAX];
	uint64_t values[CKT_JIT_GIVEN_MAX];
	uint32_t count;
	/* The program owns the fields below. */
	char *info_log, *error_log;
	uint32_t info_log_max, error_log_max; /* the sizes of the buffers */
	void **info_size_slot, **error_size_slot, **wall_time_slot;
	uint64_t start_ns;
};

/* Keeps pointers into values for the outputs.  CUDA_ERROR_INVALID_VALUE for an unknown option. */
CUresult ckt_jit_read(struct ckt_cudacommon_jit *jit, unsigned n_options,
	const CUjit_option *options, void **values);
/* The same for the linker, which has no strategy for a missing image. */
CUresult ckt_jit_read_linker(struct ckt_cudacommon_jit *jit, unsigned n_options,
	const CUjit_option *options, void **values);
/* Whether an option's value is an output buffer of the call that received it. */
bool ckt_jit_writes(CUjit_option option);
/* Writes the outputs after the compilation. */
void ckt_jit_finish(const struct ckt_cudacommon_jit *jit, const char *info, uint32_t info_len,
	const char *error, uint32_t error_len);
