/* SPDX-License-Identifier: Apache-2.0 */
/* A double of cuBLAS in place of the genuine library: handles, and what is set of them. */
#pragma once

#include "server/worker/libs/cublas/cublas.h"

/* What was told to the handle, and how often anything was. */
struct double_cublas {
	unsigned created, destroyed, calls;
	cudaStream_t stream;
	void *workspace;
	size_t workspace_bytes;
	int pointer_mode, math_mode, atomics_mode, sm_count_target, environment_mode;
	int status; /* of the next cublasCreate_v2 */
};
extern struct double_cublas double_cublas;

/* The functions that make and set handles, in the worker's table; the library counts as open. */
void double_basics(void);
cublasHandle_t double_handle(void);
