/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/libs/cufft/execute.c: executions by type, settings, properties, versions. */
#include "softgpu/libs/cufft/plan.h"

#include <string.h>

#include "tests/unit/soft_cufft/api.h"

static cufftHandle made(cufftType type)
{
	cufftHandle plan = 0;
	MUST(cufftPlan1d(&plan, 6, type, 1), CUFFT_SUCCESS);
	return plan;
}

/* A delta at 0 becomes ones, forward and inverse, in every type. */
static void test_types(void)
{
	CUdeviceptr in, out;
	double doubles[16];
	float floats[16];
	api_context();
	MUST(cuMemAlloc(&in, 256), CUDA_SUCCESS);
	MUST(cuMemAlloc(&out, 256), CUDA_SUCCESS);
	for (int type = 0; type < 6; type++) {
		static const cufftType types[] = {
			CUFFT_C2C, CUFFT_R2C, CUFFT_C2R, CUFFT_Z2Z, CUFFT_D2Z, CUFFT_Z2D};
		cufftHandle plan = made(types[type]);
		double one = 1;
		float single = 1;
		cuMemsetD8(in, 0, 256);
		cuMemsetD8(out, 0, 256);
		if (type < 3)
			cuMemcpyHtoD(in, &single, sizeof single);
		else
			cuMemcpyHtoD(in, &one, sizeof one);
		void *i = (void *)in, *o = (void *)out;
		IS(cufftExecC2C(plan, i, o, CUFFT_FORWARD),
			type == 0 ? CUFFT_SUCCESS : CUFFT_INVALID_TYPE);
		IS(cufftExecR2C(plan, i, o), type == 1 ? CUFFT_SUCCESS : CUFFT_INVALID_TYPE);
		IS(cufftExecC2R(plan, i, o), type == 2 ? CUFFT_SUCCESS : CUFFT_INVALID_TYPE);
		IS(cufftExecZ2Z(plan, i, o, CUFFT_INVERSE),
			type == 3 ? CUFFT_SUCCESS : CUFFT_INVALID_TYPE);
		IS(cufftExecD2Z(plan, i, o), type == 4 ? CUFFT_SUCCESS : CUFFT_INVALID_TYPE);
		IS(cufftExecZ2D(plan, i, o), type == 5 ? CUFFT_SUCCESS : CUFFT_INVALID_TYPE);
		MUST(cuCtxSynchronize(), CUDA_SUCCESS);
		cuMemcpyDtoH(floats, out, sizeof floats);
		cuMemcpyDtoH(doubles, out, sizeof doubles);
		/*
		 * The halves of a real transform of 6 have 4 numbers; real ones have no imaginary
		 * part between them.
		 */
		int step = type % 3 == 2 ? 1 : 2, count = type % 3 == 1 ? 4 : 6;
		for (int k = 0; k < count; k++)
			YES((type < 3 ? floats[k * step] : doubles[k * step]) == 1);
		YES((type < 3 ? floats[count * step] : doubles[count * step]) == 0);
		IS(cufftDestroy(plan), CUFFT_SUCCESS);
	}
	cuMemFree(in);
	cuMemFree(out);
}

static void test_refused(void)
{
	CUdeviceptr memory;
	api_context();
	MUST(cuMemAlloc(&memory, 4096), CUDA_SUCCESS);
	cufftHandle plan = made(CUFFT_C2C), empty = 0;
	void *p = (void *)memory;
	MUST(cufftCreate(&empty), CUFFT_SUCCESS);
	IS(cufftExecC2C(plan, p, p, 0), CUFFT_INVALID_VALUE);
	IS(cufftExecC2C(plan, NULL, p, CUFFT_FORWARD), CUFFT_INVALID_VALUE);
	IS(cufftExecC2C(plan, p, NULL, CUFFT_FORWARD), CUFFT_INVALID_VALUE);
	IS(cufftXtExec(plan, p, p, 3), CUFFT_INVALID_VALUE);
	/* No memory of the device's, and less than the transform takes. */
	IS(cufftExecC2C(plan, (void *)64, p, CUFFT_FORWARD), CUFFT_EXEC_FAILED);
	IS(cufftExecC2C(empty, p, p, CUFFT_FORWARD), CUFFT_INVALID_PLAN);
	IS(cufftXtExec(empty, p, p, CUFFT_FORWARD), CUFFT_INVALID_PLAN);
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
	IS(cufftDestroy(plan), CUFFT_INVALID_PLAN);
	IS(cufftDestroy(CUFFT_PLAN_NULL), CUFFT_INVALID_PLAN);
	IS(cufftExecC2C(plan, p, p, CUFFT_FORWARD), CUFFT_INVALID_PLAN);
	IS(cufftXtExec(plan, p, p, CUFFT_FORWARD), CUFFT_INVALID_PLAN);
	IS(cufftSetStream(plan, NULL), CUFFT_INVALID_PLAN);
	IS(cufftSetWorkArea(plan, p), CUFFT_INVALID_PLAN);
	IS(cufftSetAutoAllocation(plan, 0), CUFFT_INVALID_PLAN);
	IS(cufftCreate(NULL), CUFFT_INVALID_VALUE);
	IS(cufftDestroy(empty), CUFFT_SUCCESS);
	cuMemFree(memory);
}

static const struct shape line = {CKT_COMPLEX_TO_COMPLEX, CKT_SINGLE, 1, {37, 1, 1}, .batch = 1};

/* Without an area of its own a plan takes the program's, and writes inside of it only. */
static void test_work_area(void)
{
	cufftHandle plan = 0;
	size_t size = 0, same = 0;
	CUdeviceptr area;
	api_context();
	MUST(cufftCreate(&plan), CUFFT_SUCCESS);
	IS(cufftSetAutoAllocation(plan, 0), CUFFT_SUCCESS);
	IS(cufftMakePlan1d(plan, 37, CUFFT_C2C, 1, &size), CUFFT_SUCCESS);
	MUST(cuMemAlloc(&area, size + 64), CUDA_SUCCESS);
	MUST(cuMemsetD8(area, 0x5a, size + 64), CUDA_SUCCESS);
	IS(cufftExecC2C(plan, (void *)area, (void *)area, CUFFT_FORWARD), CUFFT_NO_WORKSPACE);
	IS(cufftSetWorkArea(plan, (void *)area), CUFFT_SUCCESS);
	api_judge(plan, &line, false, NULL);
	unsigned char behind[64], expected[64], first;
	memset(expected, 0x5a, sizeof expected);
	cuMemcpyDtoH(behind, area + size, sizeof behind);
	cuMemcpyDtoH(&first, area, 1);
	YES(!memcmp(behind, expected, sizeof behind));
	void *areas[] = {(void *)area};
	IS(cufftSetWorkArea(plan, NULL), CUFFT_SUCCESS);
	IS(cufftExecC2C(plan, (void *)area, (void *)area, CUFFT_FORWARD), CUFFT_NO_WORKSPACE);
	IS(cufftXtSetWorkArea(plan, areas), CUFFT_SUCCESS);
	IS(cufftXtSetWorkArea(plan, NULL), CUFFT_INVALID_VALUE);
	api_judge(plan, &line, true, NULL);
	IS(cufftXtSetWorkAreaPolicy(plan, CUFFT_WORKAREA_PERFORMANCE, &same), CUFFT_SUCCESS);
	IS(same, size);
	same = size - 1;
	IS(cufftXtSetWorkAreaPolicy(plan, CUFFT_WORKAREA_USER, &same), CUFFT_INVALID_SIZE);
	IS(cufftXtSetWorkAreaPolicy(plan, (cufftXtWorkAreaPolicy)9, &same), CUFFT_INVALID_VALUE);
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
	cuMemFree(area);
}

static void test_properties(void)
{
	cufftHandle plan = 0;
	long long value = -1;
	api_context();
	MUST(cufftCreate(&plan), CUFFT_SUCCESS);
	IS(cufftGetPlanPropertyInt64(plan, NVFFT_PLAN_PROPERTY_INT64_MAX_NUM_HOST_THREADS, &value),
		CUFFT_SUCCESS);
	IS(value, 1);
	IS(cufftSetPlanPropertyInt64(plan, NVFFT_PLAN_PROPERTY_INT64_MAX_NUM_HOST_THREADS, 4),
		CUFFT_SUCCESS);
	IS(cufftGetPlanPropertyInt64(plan, NVFFT_PLAN_PROPERTY_INT64_MAX_NUM_HOST_THREADS, &value),
		CUFFT_SUCCESS);
	IS(value, 4);
	IS(cufftResetPlanProperty(plan, NVFFT_PLAN_PROPERTY_INT64_MAX_NUM_HOST_THREADS),
		CUFFT_SUCCESS);
	IS(cufftGetPlanPropertyInt64(plan, NVFFT_PLAN_PROPERTY_INT64_MAX_NUM_HOST_THREADS, &value),
		CUFFT_SUCCESS);
	IS(value, 1);
	IS(cufftSetPlanPropertyInt64(plan, (cufftProperty)9, 4), CUFFT_INVALID_VALUE);
	IS(cufftSetPlanPropertyInt64(plan, NVFFT_PLAN_PROPERTY_INT64_PATIENT_JIT, -4),
		CUFFT_INVALID_VALUE);
	IS(cufftGetPlanPropertyInt64(plan, NVFFT_PLAN_PROPERTY_INT64_PATIENT_JIT, NULL),
		CUFFT_INVALID_VALUE);
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
	IS(cufftGetPlanPropertyInt64(plan, NVFFT_PLAN_PROPERTY_INT64_PATIENT_JIT, &value),
		CUFFT_INVALID_PLAN);
}

static void test_version(void)
{
	int version = 0, major = 0, minor = -1, patch = -1;
	IS(cufftGetVersion(&version), CUFFT_SUCCESS);
	IS(cufftGetProperty(MAJOR_VERSION, &major), CUFFT_SUCCESS);
	IS(cufftGetProperty(MINOR_VERSION, &minor), CUFFT_SUCCESS);
	IS(cufftGetProperty(PATCH_LEVEL, &patch), CUFFT_SUCCESS);
	IS(version, major * 1000 + minor * 100 + patch);
	IS(cufftGetVersion(NULL), CUFFT_INVALID_VALUE);
	IS(cufftGetProperty((libraryPropertyType)3, &major), CUFFT_INVALID_VALUE);
}

UNIT_SUITE(execute, {"types", test_types}, {"refused", test_refused}, {"work area", test_work_area},
	{"properties", test_properties}, {"version", test_version})
