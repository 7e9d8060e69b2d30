/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the soft GPU's libraries share: numbers of every type that all of them hold
 * exactly, matrices in device memory between guards, and plain loops to compare with.
 *
 * Elements are quarters between -4 and 4: products and short sums of them are exact in single
 * precision, so results are compared bit by bit, and halves with the one nearest value.  A device
 * address of the soft GPU is the address itself, so the tests read it directly.
 */
#pragma once

#include <complex.h>
#include <cublas_v2.h>
#include <cuda.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../suite.h"
#include "softgpu/libs/blas/blas.h"

#define OK(call) IS(call, 0)

static const cudaDataType lib_types4[] = {CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F};

/*
 * A matrix or vector: count elements of device memory, all of which are compared, guards included.
 */
struct lib_array {
	cudaDataType type;
	size_t count;
	char *p;
	char *expected;
};

/* Made anew for each test: a context, a handle of a stream of its own. */
extern cublasHandle_t lib_handle;
extern CUstream lib_stream;
void lib_begin(void);
void lib_end(void);

double complex lib_get(const void *p, cudaDataType type, int64_t i);
/* Rounded to the nearest even. */
void lib_set(void *p, cudaDataType type, int64_t i, double complex value);
void lib_set_nan(void *p, cudaDataType type, int64_t i);
double complex lib_op(double complex value, int op);

/* Filled with quarters. */
struct lib_array lib_array(cudaDataType type, size_t count);
/*
 * Waits for the stream and compares all with `expected`, which lib_array made equal: tolerance 0 is
 * bit by bit.
 */
bool lib_same(const struct lib_array *array, double tolerance);
void lib_free(struct lib_array *array);

/*
 * A factor's address for the handle's mode: on the host value itself, else a copy in device memory
 * that the test's end frees.
 */
const void *lib_scalar(cudaDataType type, double complex value);

/*
 * The function of the four types: they differ only in what their pointers lead to, so they are
 * called without a prototype.
 */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
typedef cublasStatus_t (*lib_function)();
#pragma GCC diagnostic pop
#define LIB_CALL(type, S, D, C, Z, ...)                                  \
	(((type) == CUDA_R_32F                 ? (lib_function)(void *)S \
			: (type) == CUDA_R_64F ? (lib_function)(void *)D \
			: (type) == CUDA_C_32F ? (lib_function)(void *)C \
					       : (lib_function)(void *)Z)(__VA_ARGS__))
