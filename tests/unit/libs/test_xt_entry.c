/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/libs/cublas/xt_entry.c: what the functions of cublasXt.h refuse.  What they give:
 * tests/programs/blas_xt.cu.
 */
#include "tests/unit/libs/xt_bench.h"

static void test_refused(void)
{
	double d[16] = {0}, one = 1;
	cuDoubleComplex z[16] = {{0, 0}}, unit = {1, 0};
	cublasXtHandle_t handle = bench_begin(4), fresh;
	const cublasOperation_t no_op = (cublasOperation_t)3, n = CUBLAS_OP_N, c = CUBLAS_OP_C,
				t = CUBLAS_OP_T;
	const cublasFillMode_t lower = CUBLAS_FILL_MODE_LOWER, full = CUBLAS_FILL_MODE_FULL;
	const cublasSideMode_t left = CUBLAS_SIDE_LEFT, no_side = (cublasSideMode_t)2;
	MUST(cublasXtCreate(&fresh), CUBLAS_STATUS_SUCCESS);
	IS(cublasXtDgemm(NULL, n, n, 2, 2, 2, &one, d, 2, d, 2, &one, d, 2),
		CUBLAS_STATUS_NOT_INITIALIZED);
	IS(cublasXtDgemm(fresh, n, n, 2, 2, 2, &one, d, 2, d, 2, &one, d, 2),
		CUBLAS_STATUS_NOT_INITIALIZED);
	IS(cublasXtDestroy(fresh), CUBLAS_STATUS_SUCCESS);
	IS(cublasXtDgemm(handle, no_op, n, 2, 2, 2, &one, d, 2, d, 2, &one, d, 2),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasXtDgemm(handle, t, n, 2, 2, 3, &one, d, 2, d, 3, &one, d, 2),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasXtDgemm(handle, n, t, 2, 3, 2, &one, d, 2, d, 2, &one, d, 2),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasXtDgemm(handle, n, n, 2, 2, 2, &one, d, 2, d, 2, &one, d, 1),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasXtDgemm(handle, n, n, 2, 2, 2, NULL, d, 2, d, 2, &one, d, 2),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasXtDsymm(handle, no_side, lower, 2, 2, &one, d, 2, d, 2, &one, d, 2),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasXtDsymm(handle, left, full, 2, 2, &one, d, 2, d, 2, &one, d, 2),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasXtDsymm(handle, left, lower, 3, 2, &one, d, 2, d, 3, &one, d, 3),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasXtDspmm(handle, left, lower, 3, 2, &one, d, d, 2, &one, d, 3),
		CUBLAS_STATUS_INVALID_VALUE);
	/* Complex: no conjugate of what is symmetric, no transpose of what is hermitian. */
	IS(cublasXtZsyrk(handle, lower, c, 2, 2, &unit, z, 2, &unit, z, 2),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasXtZherk(handle, lower, t, 2, 2, &one, z, 2, &one, z, 2),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasXtZher2k(handle, full, n, 2, 2, &unit, z, 2, z, 2, &one, z, 2),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasXtDtrsm(handle, left, lower, n, (cublasDiagType_t)2, 2, 2, &one, d, 2, d, 2),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasXtDtrmm(handle, left, lower, n, CUBLAS_DIAG_UNIT, 2, 2, &one, d, 1, d, 2, d, 2),
		CUBLAS_STATUS_INVALID_VALUE);
	IS(bench_calls, 0);
	/* Nothing is nothing. */
	IS(cublasXtDgemm(handle, n, n, 0, 0, 0, &one, NULL, 1, NULL, 1, &one, NULL, 1),
		CUBLAS_STATUS_SUCCESS);
	IS(bench_calls, 0);
	bench_end(handle);
}

UNIT_SUITE(xt_entry, {"refused", test_refused})
