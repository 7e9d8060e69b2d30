/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/libs/cufft/make.c: every way to make a plan gives the one that was asked for, and every
 * way to ask for its size the same size.
 */
#include "softgpu/libs/cufft/plan.h"

#include <string.h>

#include "tests/unit/soft_cufft/api.h"

static const struct shape line = {CKT_REAL_TO_COMPLEX, CKT_SINGLE, 1, {12, 1, 1}, .batch = 3};
static const struct shape plane = {CKT_COMPLEX_TO_COMPLEX, CKT_DOUBLE, 2, {4, 6, 1}, .batch = 1};
static const struct shape cube = {CKT_COMPLEX_TO_COMPLEX, CKT_SINGLE, 3, {3, 4, 5}, .batch = 1};
static const struct shape many = {
	CKT_COMPLEX_TO_COMPLEX, CKT_SINGLE, 2, {4, 6, 1}, {4, 8, 1}, 3, 110, {5, 7, 1}, 2, 80, 2};

static void test_plans(void)
{
	cufftHandle plan;
	api_context();
	IS(cufftPlan1d(&plan, 12, CUFFT_R2C, 3), CUFFT_SUCCESS);
	api_judge(plan, &line, false, NULL);
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
	IS(cufftPlan2d(&plan, 4, 6, CUFFT_Z2Z), CUFFT_SUCCESS);
	api_judge(plan, &plane, true, NULL);
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
	IS(cufftPlan3d(&plan, 3, 4, 5, CUFFT_C2C), CUFFT_SUCCESS);
	api_judge(plan, &cube, false, NULL);
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
	int n[] = {4, 6}, in[] = {4, 8}, out[] = {5, 7};
	IS(cufftPlanMany(&plan, 2, n, in, 3, 110, out, 2, 80, CUFFT_C2C, 2), CUFFT_SUCCESS);
	api_judge(plan, &many, false, NULL);
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
}

static cufftHandle created(void)
{
	cufftHandle plan = 0;
	MUST(cufftCreate(&plan), CUFFT_SUCCESS);
	return plan;
}

static void test_make(void)
{
	size_t made = 0, estimated = 1, got = 2, held = 3;
	api_context();
	cufftHandle plan = created();
	IS(cufftGetSize(plan, &held), CUFFT_INVALID_PLAN);
	IS(cufftMakePlan1d(plan, 12, CUFFT_R2C, 3, &made), CUFFT_SUCCESS);
	IS(cufftEstimate1d(12, CUFFT_R2C, 3, &estimated), CUFFT_SUCCESS);
	IS(cufftGetSize1d(plan, 12, CUFFT_R2C, 3, &got), CUFFT_SUCCESS);
	IS(cufftGetSize(plan, &held), CUFFT_SUCCESS);
	YES(made > 0 && made == estimated && made == got && made == held);
	api_judge(plan, &line, false, NULL);
	/* A plan is made once. */
	IS(cufftMakePlan1d(plan, 12, CUFFT_R2C, 3, &made), CUFFT_INVALID_PLAN);
	IS(cufftDestroy(plan), CUFFT_SUCCESS);

	plan = created();
	IS(cufftMakePlan2d(plan, 4, 6, CUFFT_Z2Z, &made), CUFFT_SUCCESS);
	IS(cufftEstimate2d(4, 6, CUFFT_Z2Z, &estimated), CUFFT_SUCCESS);
	IS(cufftGetSize2d(plan, 4, 6, CUFFT_Z2Z, &got), CUFFT_SUCCESS);
	YES(made == estimated && made == got);
	api_judge(plan, &plane, false, NULL);
	IS(cufftDestroy(plan), CUFFT_SUCCESS);

	plan = created();
	IS(cufftMakePlan3d(plan, 3, 4, 5, CUFFT_C2C, &made), CUFFT_SUCCESS);
	IS(cufftEstimate3d(3, 4, 5, CUFFT_C2C, &estimated), CUFFT_SUCCESS);
	IS(cufftGetSize3d(plan, 3, 4, 5, CUFFT_C2C, &got), CUFFT_SUCCESS);
	YES(made == estimated && made == got);
	api_judge(plan, &cube, true, NULL);
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
}

static void test_many(void)
{
	int n[] = {4, 6}, in[] = {4, 8}, out[] = {5, 7};
	long long n64[] = {4, 6}, in64[] = {4, 8}, out64[] = {5, 7};
	size_t made = 0, estimated = 1, got = 2;
	api_context();
	cufftHandle plan = created();
	IS(cufftMakePlanMany(plan, 2, n, in, 3, 110, out, 2, 80, CUFFT_C2C, 2, &made),
		CUFFT_SUCCESS);
	IS(cufftEstimateMany(2, n, in, 3, 110, out, 2, 80, CUFFT_C2C, 2, &estimated),
		CUFFT_SUCCESS);
	IS(cufftGetSizeMany(plan, 2, n, in, 3, 110, out, 2, 80, CUFFT_C2C, 2, &got), CUFFT_SUCCESS);
	YES(made == estimated && made == got);
	api_judge(plan, &many, false, NULL);
	IS(cufftDestroy(plan), CUFFT_SUCCESS);

	plan = created();
	IS(cufftMakePlanMany64(plan, 2, n64, in64, 3, 110, out64, 2, 80, CUFFT_C2C, 2, &made),
		CUFFT_SUCCESS);
	IS(cufftGetSizeMany64(plan, 2, n64, in64, 3, 110, out64, 2, 80, CUFFT_C2C, 2, &got),
		CUFFT_SUCCESS);
	IS(made, got);
	api_judge(plan, &many, true, NULL);
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
	IS(cufftMakePlanMany64(plan, 2, n64, in64, 3, 110, out64, 2, 80, CUFFT_C2C, 2, &made),
		CUFFT_INVALID_PLAN);
}

/* Every shape by cufftXtMakePlanMany. */
static void test_extended(void)
{
	static const cudaDataType reals[] = {CUDA_R_16F, CUDA_R_16BF, CUDA_R_32F, CUDA_R_64F};
	static const cudaDataType complexes[] = {CUDA_C_16F, CUDA_C_16BF, CUDA_C_32F, CUDA_C_64F};
	api_context();
	for (size_t i = 0; i < reference_shape_count; i++) {
		struct shape s = reference_shapes[i];
		if (s.kind == CKT_COMPLEX_TO_REAL)
			continue;
		long long *in = s.in_embed[0] ? (long long *)s.in_embed : NULL,
			  *out = s.out_embed[0] ? (long long *)s.out_embed : NULL;
		cudaDataType complex = complexes[s.precision],
			     first = s.kind == CKT_REAL_TO_COMPLEX ? reals[s.precision] : complex;
		size_t made = 0, got = 1;
		cufftHandle plan = created();
		IS(cufftXtMakePlanMany(plan, s.rank, (long long *)s.n, in, s.in_stride,
			   s.in_distance, first, out, s.out_stride, s.out_distance, complex,
			   s.batch, &made, complex),
			CUFFT_SUCCESS);
		IS(cufftXtGetSizeMany(plan, s.rank, (long long *)s.n, in, s.in_stride,
			   s.in_distance, first, out, s.out_stride, s.out_distance, complex,
			   s.batch, &got, complex),
			CUFFT_SUCCESS);
		IS(made, got);
		api_judge(plan, &s, false, NULL);
		IS(cufftDestroy(plan), CUFFT_SUCCESS);
	}
}

static void test_refused(void)
{
	cufftHandle plan = 77;
	size_t size = 5;
	int n[] = {4, 0};
	api_context();
	IS(cufftPlan1d(NULL, 8, CUFFT_C2C, 1), CUFFT_INVALID_VALUE);
	IS(cufftPlan1d(&plan, 0, CUFFT_C2C, 1), CUFFT_INVALID_SIZE);
	IS(cufftPlan1d(&plan, 8, (cufftType)7, 1), CUFFT_INVALID_TYPE);
	IS(cufftPlan2d(&plan, 8, -1, CUFFT_C2C), CUFFT_INVALID_SIZE);
	IS(cufftPlanMany(&plan, 2, n, NULL, 1, 1, NULL, 1, 1, CUFFT_C2C, 1), CUFFT_INVALID_SIZE);
	IS(cufftPlanMany(&plan, 5, n, NULL, 1, 1, NULL, 1, 1, CUFFT_C2C, 1), CUFFT_INVALID_VALUE);
	IS(cufftPlanMany(&plan, 2, NULL, NULL, 1, 1, NULL, 1, 1, CUFFT_C2C, 1),
		CUFFT_INVALID_VALUE);
	IS(plan, 77);
	IS(cufftMakePlan1d(plan, 8, CUFFT_C2C, 1, &size), CUFFT_INVALID_PLAN);
	IS(cufftGetSize1d(plan, 8, CUFFT_C2C, 1, &size), CUFFT_INVALID_PLAN);
	IS(cufftEstimate1d(8, CUFFT_C2C, 1, NULL), CUFFT_INVALID_VALUE);
	IS(size, 5);
	/* More than the device has is no plan, and takes nothing with it. */
	IS(cufftPlan3d(&plan, 8192, 8192, 8192, CUFFT_Z2Z), CUFFT_INTERNAL_ERROR);
	IS(cufftPlan1d(&plan, 8, CUFFT_C2C, 1), CUFFT_SUCCESS);
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
}

UNIT_SUITE(make, {"plans", test_plans}, {"made", test_make}, {"many", test_many},
	{"extended", test_extended}, {"refused", test_refused})
