/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/libs/cublas/xt_triangle.c: blocks go in the order in which they depend on each other, in
 * place too.
 */
#include "tests/unit/libs/xt_bench.h"

#include <math.h>

enum { M = 7, N = 5, LD = 9 };

static void triangle(double *a, bool upper)
{
	bench_fill(a, LD * LD, 1);
	for (int j = 0; j < LD; j++)
		for (int i = 0; i < LD; i++)
			if (upper ? i > j : i < j)
				a[i + j * LD] = NAN;
			else if (i == j)
				a[i + j * LD] = 2;
}

/* op(A) is lower both times, once stored as it is and once as its transpose. */
static void test_both_ways(void)
{
	double a[LD * LD], b[LD * LD], product[LD * LD], alpha = 0.5, two = 2;
	for (int upper = 0; upper < 2; upper++) {
		cublasFillMode_t uplo = upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
		cublasOperation_t op = upper ? CUBLAS_OP_T : CUBLAS_OP_N;
		cublasXtHandle_t handle = bench_begin(3);
		triangle(a, upper);
		bench_fill(b, LD * LD, 3);
		memcpy(product, b, sizeof b);
		IS(cublasXtDtrmm(handle, CUBLAS_SIDE_LEFT, uplo, op, CUBLAS_DIAG_NON_UNIT, M, N,
			   &alpha, a, LD, product, LD, product, LD),
			CUBLAS_STATUS_SUCCESS);
		/* Three rows of blocks with one, two and three terms, twice. */
		IS(bench_calls, 12);
		for (int j = 0; j < N; j++)
			for (int i = 0; i < M; i++) {
				double sum = 0;
				for (int l = 0; l <= i; l++)
					sum += (upper ? a[l + i * LD] : a[i + l * LD]) *
						b[l + j * LD];
				IS(product[i + j * LD], alpha * sum);
			}
		IS(cublasXtDtrsm(handle, CUBLAS_SIDE_LEFT, uplo, op, CUBLAS_DIAG_NON_UNIT, M, N,
			   &two, a, LD, product, LD),
			CUBLAS_STATUS_SUCCESS);
		IS(bench_calls, 24);
		for (int j = 0; j < N; j++)
			for (int i = 0; i < M; i++)
				YES(fabs(product[i + j * LD] - b[i + j * LD]) < 1e-9);
		bench_end(handle);
	}
}

UNIT_SUITE(xt_triangle, {"both ways", test_both_ways})
