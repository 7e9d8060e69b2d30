/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/libs/cublas/xt_product.c: the sum of all blocks is the product, with as many calls as
 * there are blocks, and no triangle too much.
 */
#include "tests/unit/libs/xt_bench.h"

enum { M = 7, N = 5, K = 8, LD = 9 };

static void same(const double *expected, const double *got, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (expected[i] != got[i]) {
			IS(got[i], expected[i]);
			return;
		}
}

static void test_gemm(void)
{
	static const cublasOperation_t ops[] = {CUBLAS_OP_N, CUBLAS_OP_T};
	double a[LD * LD], b[LD * LD], expected[LD * LD], got[LD * LD], alpha = 2, beta = 3,
									zero = 0;
	cublasXtHandle_t handle = bench_begin(3);
	bench_fill(a, LD * LD, 1);
	bench_fill(b, LD * LD, 2);
	for (unsigned i = 0; i < 4; i++) {
		bench_fill(expected, LD * LD, 3);
		bench_fill(got, LD * LD, 3);
		bench_calls = 0;
		bench_gemm(
			ops[i / 2], ops[i % 2], M, N, K, alpha, a, LD, b, LD, beta, expected, LD);
		IS(cublasXtDgemm(handle, ops[i / 2], ops[i % 2], M, N, K, &alpha, a, LD, b, LD,
			   &beta, got, LD),
			CUBLAS_STATUS_SUCCESS);
		same(expected, got, LD * LD);
		IS(bench_calls, 3 * 2 * 3);
	}
	/* C is not read where beta is 0, and stays as it is where k is. */
	bench_copies = 0;
	IS(cublasXtDgemm(
		   handle, CUBLAS_OP_N, CUBLAS_OP_N, 3, 3, 3, &alpha, a, LD, b, LD, &zero, got, LD),
		CUBLAS_STATUS_SUCCESS);
	IS(bench_copies, 3);
	bench_fill(expected, LD * LD, 3);
	bench_fill(got, LD * LD, 3);
	IS(cublasXtDgemm(
		   handle, CUBLAS_OP_N, CUBLAS_OP_N, M, N, 0, &alpha, a, LD, b, LD, &beta, got, LD),
		CUBLAS_STATUS_SUCCESS);
	same(expected, got, LD * LD);
	bench_end(handle);
}

static void test_triangle(void)
{
	double a[LD * LD], whole[LD * LD], got[LD * LD], before[LD * LD], alpha = 2, beta = 3;
	cublasXtHandle_t handle = bench_begin(3);
	bench_fill(a, LD * LD, 1);
	for (int upper = 0; upper < 2; upper++) {
		bench_fill(whole, LD * LD, 3);
		bench_fill(got, LD * LD, 3);
		bench_fill(before, LD * LD, 3);
		bench_calls = 0;
		bench_gemm(CUBLAS_OP_T, CUBLAS_OP_N, M, M, K, alpha, a, LD, a, LD, beta, whole, LD);
		IS(cublasXtDsyrk(handle, upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER,
			   CUBLAS_OP_T, M, K, &alpha, a, LD, &beta, got, LD),
			CUBLAS_STATUS_SUCCESS);
		IS(bench_calls, 6 * 3);
		for (int j = 0; j < M; j++)
			for (int i = 0; i < M; i++)
				IS(got[i + j * LD],
					(upper ? i <= j : i >= j) ? whole[i + j * LD]
								  : before[i + j * LD]);
	}
	bench_end(handle);
}

/* No memory at a device: nothing is left behind, and the next call works. */
static void test_no_memory(void)
{
	double a[9], one = 1;
	cublasXtHandle_t handle = bench_begin(3);
	bench_fill(a, 9, 1);
	bench_fails = true;
	IS(cublasXtDgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 3, 3, 3, &one, a, 3, a, 3, &one, a, 3),
		CUBLAS_STATUS_ALLOC_FAILED);
	bench_fails = false;
	IS(bench_entered, 0);
	IS(cublasXtDgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 3, 3, 3, &one, a, 3, a, 3, &one, a, 3),
		CUBLAS_STATUS_SUCCESS);
	bench_end(handle);
}

UNIT_SUITE(
	xt_product, {"gemm", test_gemm}, {"triangle", test_triangle}, {"no memory", test_no_memory})
