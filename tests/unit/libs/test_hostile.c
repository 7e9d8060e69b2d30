/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hostile server, of client/libs/libs.c, accepted_calls.c and client/libs/cublas/handle.c:
 * whatever it answers, the shim reads its answer and nothing else, and a result that did not come
 * whole is no success.
 */
#include <stdlib.h>
#include <string.h>

#include "client/libs/cublas/cublas.h"
#include "tests/unit/libs/double_cublas.h"
#include "tests/unit/libs/loop.h"

enum { ROUNDS = 3000 };

static cublasStatus_t dot(cublasHandle_t handle, int n, const float *x, int incx, const float *y,
	int incy, float *result)
{
	*result = 10;
	return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t largest(cublasHandle_t handle, int n, const float *x, int incx, int *result)
{
	*result = 3;
	return CUBLAS_STATUS_SUCCESS;
}

static void test_answers(void)
{
	unsigned made = 0, refused = 0, short_of = 0;
	double_basics();
	ckt_cublas.cublasSdot_v2 = dot;
	ckt_cublas.cublasIsamax_v2 = largest;
	for (unsigned i = 1; i <= ROUNDS; i++) {
		cublasHandle_t handle = NULL;
		float sum[4] = {1.5f, 2.5f, 3.5f, 4.5f};
		int place = -9;
		loop_lies = i * 2654435761u | 1;
		cublasStatus_t status = cublasCreate_v2(&handle);
		if (status) {
			CU_ASSERT_PTR_NULL(handle);
			refused++;
			continue;
		}
		made++;
		cublasMath_t mode;
		cublasGetMathMode(handle, &mode);
		/*
		 * Scalars that come back to the host: the place behind them stays as it is,
		 * whatever length the answer has.
		 */
		status = cublasSdot_v2(
			handle, 3, (const float *)0x1000, 1, (const float *)0x2000, 1, &sum[1]);
		YES(sum[0] == 1.5f && sum[2] == 3.5f && sum[3] == 4.5f);
		short_of += status == CUBLAS_STATUS_INTERNAL_ERROR ||
			status == CUBLAS_STATUS_EXECUTION_FAILED;
		cublasIsamax_v2(handle, 3, (const float *)0x1000, 1, &place);
		loop_lies = 0;
		cublasDestroy_v2(handle);
	}
	loop_lies = 0;
	loop_deferred();
	YES(made > ROUNDS / 10);
	YES(refused > ROUNDS / 10);
	YES(short_of > 10);
}

UNIT_SUITE(hostile, {"a server's answers", test_answers})
