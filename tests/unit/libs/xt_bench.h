/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the tests of cublasXt: devices whose memory is the test's own, and doubles of cuBLAS's
 * functions of double that compute plainly.  What all of cublasXt's functions give is compared on
 * the soft GPU by tests/programs/blas_xt.cu.
 */
#pragma once

#include "client/libs/cublas/xt.h"
#include "tests/unit/libs/double_cublas.h"
#include "tests/unit/libs/loop.h"

enum { BENCH_DEVICES = 2 };

/*
 * Since bench_begin: calls of cuBLAS, memory that devices have now, contexts that are current now,
 * and copies.
 */
extern unsigned bench_calls, bench_allocated, bench_entered, bench_copies;
/* The next allocation for a device fails. */
extern bool bench_fails;

/* A handle with both devices and that block dimension. */
cublasXtHandle_t bench_begin(int block);
void bench_end(cublasXtHandle_t handle);
/* Memory from there on is device's. */
void bench_on_device(const void *memory, size_t bytes, int device);
/* Small whole numbers, so that sums are exact. */
void bench_fill(double *values, size_t count, int seed);
/* c = alpha op(a) op(b) + beta c. */
void bench_gemm(cublasOperation_t transa, cublasOperation_t transb, int64_t m, int64_t n, int64_t k,
	double alpha, const double *a, int64_t lda, const double *b, int64_t ldb, double beta,
	double *c, int64_t ldc);
