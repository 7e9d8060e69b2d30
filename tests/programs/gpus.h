/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs for several GPUs share: the driver's functions by way of the runtime, and when
 * there are too few GPUs.
 */
#pragma once

#include "phase.h"

#include <cuda.h>

#define CU(call)                                                                      \
	do {                                                                          \
		CUresult cu_error = (call);                                           \
		if (cu_error != CUDA_SUCCESS) {                                       \
			printf("%s:%d: %s: CUresult %d\n", __FILE__, __LINE__, #call, \
				(int)cu_error);                                       \
			exit(1);                                                      \
		}                                                                     \
	} while (0)

#define CU_ERROR(call, expected)                                                             \
	do {                                                                                 \
		CUresult cu_error = (call);                                                  \
		if (cu_error != (expected)) {                                                \
			printf("%s:%d: %s: CUresult %d instead of %d\n", __FILE__, __LINE__, \
				#call, (int)cu_error, (int)(expected));                      \
			test_failures++;                                                     \
		}                                                                            \
	} while (0)

template <typename F> static F driver_function(const char *name, F, unsigned version)
{
	void *function = NULL;
	cudaDriverEntryPointQueryResult found;

	CHECK(cudaGetDriverEntryPointByVersion(
		name, &function, version, cudaEnableDefault, &found));
	if (!function) {
		printf("no %s\n", name);
		exit(1);
	}
	return (F)function;
}
#define DRIVER(name) static decltype(&name) p_##name
#define LOOK_UP(name) p_##name = driver_function(#name, p_##name, 13000)
/* Where the header's declaration is not the newest version. */
#define LOOK_UP_OLD(name) p_##name = driver_function(#name, p_##name, 12000)

/* How many GPUs of the first two are worked with; the program ends where there is but one. */
static inline void need_two_gpus(void)
{
	int count;

	CHECK(cudaGetDeviceCount(&count));
	if (count < 2) {
		fprintf(stderr, "two GPUs are needed, there is %d\n", count);
		exit(77);
	}
}
