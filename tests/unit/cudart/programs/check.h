/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs check with: a failed line is printed and makes the exit status 1. */
#pragma once

#include <cstdio>
#include <cuda_runtime.h>

static int failed;

#define CHECK(condition)                                                                \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			failed = 1;                                                     \
		}                                                                       \
	} while (0)
#define RESULT(call, expected)                                                        \
	do {                                                                          \
		cudaError_t got = (call);                                             \
		if (got != (expected)) {                                              \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
				cudaGetErrorName(got));                               \
			failed = 1;                                                   \
		}                                                                     \
	} while (0)
#define OK(call) RESULT(call, cudaSuccess)
