/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/libs/cufft/make.c: every function's parameters reach the genuine function, and its answers
 * come back.
 */
#include "client/libs/cufft/cufft.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/worker/cufft_double.h"

/* The genuine function was called once, as that; %d is its plan. */
#define CALLED(expected)                                           \
	do {                                                       \
		char wanted_[256];                                 \
		snprintf(wanted_, sizeof wanted_, expected, real); \
		TEXT(double_calls(), wanted_);                     \
	} while (0)

static cufftHandle plan;
static int real;

static void begin(void)
{
	double_begin();
	plan = -5;
	MUST(cufftCreate(&plan), CUFFT_SUCCESS);
	double_calls();
	size_t bytes;
	cufftGetSize(plan, &bytes);
	sscanf(double_calls(), "get_size(%d", &real);
}

static void end(void)
{
	double_status = CUFFT_SUCCESS;
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
	CALLED("destroy(%d)\n");
	IS(double_deferred(), CUDA_SUCCESS);
}

static void test_make(void)
{
	size_t bytes = 0;
	int n[] = {4, 6, -1}, in[] = {5, 7, 9}, out[] = {6, 8, 10};
	begin();
	IS(cufftMakePlan1d(plan, 12, CUFFT_R2C, 3, &bytes), CUFFT_SUCCESS);
	CALLED("make_1d(%d 12 42 3)\n");
	IS(bytes, 4096);
	double_bytes = 1ull << 40;
	IS(cufftMakePlan2d(plan, -3, 2147483647, CUFFT_Z2Z, &bytes), CUFFT_SUCCESS);
	CALLED("make_2d(%d -3 2147483647 105)\n");
	IS(bytes, 1ull << 40);
	IS(cufftMakePlan3d(plan, 3, 4, 5, (cufftType)7, &bytes), CUFFT_SUCCESS);
	CALLED("make_3d(%d 3 4 5 7)\n");
	IS(cufftMakePlanMany(plan, 3, n, in, 3, 110, out, 2, 80, CUFFT_C2C, 2, &bytes),
		CUFFT_SUCCESS);
	CALLED("make_many(%d [4 6 -1] [5 7 9] 3 110 [6 8 10] 2 80 41 2)\n");
	IS(cufftMakePlanMany(plan, 1, n, NULL, 3, 110, out, -2, 80, CUFFT_C2C, 2, &bytes),
		CUFFT_SUCCESS);
	CALLED("make_many(%d [4] - 3 110 [6] -2 80 41 2)\n");
	IS(cufftMakePlanMany(plan, 2, n, in, 3, 110, NULL, 2, 80, CUFFT_C2C, -2, &bytes),
		CUFFT_SUCCESS);
	CALLED("make_many(%d [4 6] [5 7] 3 110 - 2 80 41 -2)\n");
	double_bytes = 4096;
	end();
}

static void test_wide(void)
{
	size_t bytes = 0;
	long long n[] = {1ll << 33, 6, 7}, in[] = {-5, 7, 9}, out[] = {6, 8, 10};
	begin();
	IS(cufftMakePlanMany64(
		   plan, 3, n, in, 1ll << 34, 110, out, 2, -80, CUFFT_D2Z, 1ll << 35, &bytes),
		CUFFT_SUCCESS);
	CALLED("make_many64(%d [8589934592 6 7] [-5 7 9] 17179869184 110 [6 8 10] 2 -80 106 34359738368)\n");
	IS(cufftGetSizeMany64(plan, 2, n, NULL, 3, 110, NULL, 2, 80, CUFFT_D2Z, 2, &bytes),
		CUFFT_SUCCESS);
	CALLED("size_many64(%d [8589934592 6] - 3 110 - 2 80 106 2)\n");
	IS(cufftXtMakePlanMany(plan, 2, n, in, 3, 110, CUDA_R_32F, out, 2, 80, CUDA_C_32F, 2,
		   &bytes, CUDA_C_64F),
		CUFFT_SUCCESS);
	CALLED("make_xt(%d [8589934592 6] [-5 7] 3 110 0 [6 8] 2 80 4 2 5)\n");
	IS(cufftXtGetSizeMany(plan, 1, n, in, 3, 110, CUDA_C_16F, out, 2, 80, CUDA_R_16F, 2, &bytes,
		   CUDA_C_16F),
		CUFFT_SUCCESS);
	CALLED("size_xt(%d [8589934592] [-5] 3 110 6 [6] 2 80 2 2 6)\n");
	IS(bytes, 4096);
	end();
}

static void test_sizes(void)
{
	size_t bytes = 0;
	int n[] = {4, 6}, in[] = {5, 7}, out[] = {6, 8};
	begin();
	IS(cufftEstimate1d(12, CUFFT_R2C, 3, &bytes), CUFFT_SUCCESS);
	TEXT(double_calls(), "estimate_1d(12 42 3)\n");
	IS(bytes, 4096);
	IS(cufftEstimate2d(12, 13, CUFFT_R2C, &bytes), CUFFT_SUCCESS);
	TEXT(double_calls(), "estimate_2d(12 13 42)\n");
	IS(cufftEstimate3d(12, 13, 14, CUFFT_R2C, &bytes), CUFFT_SUCCESS);
	TEXT(double_calls(), "estimate_3d(12 13 14 42)\n");
	IS(cufftEstimateMany(2, n, in, 3, 110, out, 2, 80, CUFFT_C2C, 2, &bytes), CUFFT_SUCCESS);
	TEXT(double_calls(), "estimate_many( [4 6] [5 7] 3 110 [6 8] 2 80 41 2)\n");
	IS(cufftGetSize1d(plan, 12, CUFFT_R2C, 3, &bytes), CUFFT_SUCCESS);
	CALLED("size_1d(%d 12 42 3)\n");
	IS(cufftGetSize2d(plan, 12, 13, CUFFT_R2C, &bytes), CUFFT_SUCCESS);
	CALLED("size_2d(%d 12 13 42)\n");
	IS(cufftGetSize3d(plan, 12, 13, 14, CUFFT_R2C, &bytes), CUFFT_SUCCESS);
	CALLED("size_3d(%d 12 13 14 42)\n");
	IS(cufftGetSizeMany(plan, 2, n, in, 3, 110, out, 2, 80, CUFFT_C2C, 2, &bytes),
		CUFFT_SUCCESS);
	CALLED("size_many(%d [4 6] [5 7] 3 110 [6 8] 2 80 41 2)\n");
	/* The library's status comes back, and nothing is written. */
	bytes = 7;
	double_status = CUFFT_INVALID_SIZE;
	IS(cufftEstimate1d(12, CUFFT_R2C, 3, &bytes), CUFFT_INVALID_SIZE);
	IS(cufftGetSize(plan, &bytes), CUFFT_INVALID_SIZE);
	IS(cufftMakePlan1d(plan, 12, CUFFT_R2C, 3, &bytes), CUFFT_INVALID_SIZE);
	IS(bytes, 7);
	double_calls();
	end();
}

static void test_plans(void)
{
	int n[] = {4, 6}, in[] = {5, 7}, out[] = {6, 8}, created;
	begin();
	cufftHandle other = -1;
	IS(cufftPlan1d(&other, 12, CUFFT_C2C, 3), CUFFT_SUCCESS);
	IS(sscanf(double_calls(), "create()\nmake_1d(%d 12 41 3)", &created), 1);
	IS(cufftDestroy(other), CUFFT_SUCCESS);
	double_calls();
	IS(cufftPlan2d(&other, 12, 13, CUFFT_C2C), CUFFT_SUCCESS);
	IS(sscanf(double_calls(), "create()\nmake_2d(%d 12 13 41)", &created), 1);
	IS(cufftDestroy(other), CUFFT_SUCCESS);
	double_calls();
	IS(cufftPlan3d(&other, 12, 13, 14, CUFFT_C2C), CUFFT_SUCCESS);
	IS(sscanf(double_calls(), "create()\nmake_3d(%d 12 13 14 41)", &created), 1);
	IS(cufftDestroy(other), CUFFT_SUCCESS);
	double_calls();
	IS(cufftPlanMany(&other, 2, n, in, 3, 110, out, 2, 80, CUFFT_C2C, 2), CUFFT_SUCCESS);
	IS(sscanf(double_calls(), "create()\nmake_many(%d [4 6] [5 7] 3 110 [6 8] 2 80 41 2)",
		   &created),
		1);
	IS(cufftDestroy(other), CUFFT_SUCCESS);
	double_calls();
	end();
}

/* What is refused here calls nothing. */
static void test_refused(void)
{
	size_t bytes = 7;
	int n[] = {4};
	long long n64[] = {4};
	begin();
	IS(cufftMakePlan1d(plan, 4, CUFFT_C2C, 1, NULL), CUFFT_INVALID_VALUE);
	IS(cufftMakePlan1d(-1, 4, CUFFT_C2C, 1, &bytes), CUFFT_INVALID_PLAN);
	IS(cufftMakePlanMany(plan, 0, n, NULL, 1, 1, NULL, 1, 1, CUFFT_C2C, 1, &bytes),
		CUFFT_INVALID_VALUE);
	IS(cufftMakePlanMany(plan, 4, n, NULL, 1, 1, NULL, 1, 1, CUFFT_C2C, 1, &bytes),
		CUFFT_INVALID_VALUE);
	IS(cufftMakePlanMany(plan, 1, NULL, NULL, 1, 1, NULL, 1, 1, CUFFT_C2C, 1, &bytes),
		CUFFT_INVALID_VALUE);
	IS(cufftMakePlanMany64(plan, 4, n64, NULL, 1, 1, NULL, 1, 1, CUFFT_C2C, 1, &bytes),
		CUFFT_INVALID_VALUE);
	IS(cufftXtMakePlanMany(plan, -1, n64, NULL, 1, 1, CUDA_C_32F, NULL, 1, 1, CUDA_C_32F, 1,
		   &bytes, CUDA_C_32F),
		CUFFT_INVALID_VALUE);
	IS(cufftEstimate1d(4, CUFFT_C2C, 1, NULL), CUFFT_INVALID_VALUE);
	IS(cufftGetSize1d(1 << 30, 4, CUFFT_C2C, 1, &bytes), CUFFT_INVALID_PLAN);
	IS(cufftGetSize(plan, NULL), CUFFT_INVALID_VALUE);
	IS(cufftGetSize(0, &bytes), CUFFT_INVALID_PLAN);
	IS(cufftPlan1d(NULL, 4, CUFFT_C2C, 1), CUFFT_INVALID_VALUE);
	TEXT(double_calls(), "");
	/* A plan that cannot be made is not left behind, and the program's variable stays. */
	cufftHandle other = -3;
	double_wait_fails = CUDA_ERROR_LAUNCH_FAILED;
	IS(cufftPlan1d(&other, 4, CUFFT_C2C, 1), CUFFT_INTERNAL_ERROR);
	double_wait_fails = CUDA_SUCCESS;
	IS(other, -3);
	IS(bytes, 7);
	double_calls();
	end();
}

UNIT_SUITE(make, {"make", test_make}, {"wide", test_wide}, {"sizes", test_sizes},
	{"plans", test_plans}, {"refused", test_refused})
