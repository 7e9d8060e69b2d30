/* SPDX-License-Identifier: Apache-2.0 */
/* client/libs/cufft/plan.c: numbers of plans, settings, versions, and a session that fails. */
#include "client/libs/cufft/cufft.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/worker/cufft_double.h"

static int real_of(cufftHandle plan)
{
	size_t bytes;
	int real = -1;
	double_calls();
	cufftGetSize(plan, &bytes);
	sscanf(double_calls(), "get_size(%d", &real);
	return real;
}

static void test_table(void)
{
	cufftHandle plans[60];
	double_begin();
	for (size_t i = 0; i < COUNT(plans); i++) {
		MUST(cufftCreate(&plans[i]), CUFFT_SUCCESS);
		YES(plans[i] > 0);
	}
	for (size_t i = 0; i < COUNT(plans); i++)
		for (size_t j = 0; j < i; j++)
			YES(plans[i] != plans[j] && real_of(plans[i]) != real_of(plans[j]));
	IS(cufftDestroy(plans[30]), CUFFT_SUCCESS);
	IS(cufftDestroy(plans[30]), CUFFT_INVALID_PLAN);
	IS(real_of(plans[30]), -1);
	MUST(cufftCreate(&plans[30]), CUFFT_SUCCESS);
	for (size_t i = 0; i < COUNT(plans); i++)
		IS(cufftDestroy(plans[i]), CUFFT_SUCCESS);
	IS(cufftDestroy(CUFFT_PLAN_NULL), CUFFT_SUCCESS);
	IS(cufftDestroy(0), CUFFT_INVALID_PLAN);
	YES(ckt_cufft_take_plan(1 << 20) == NULL);
	YES(ckt_cufft_take_plan(-1) == NULL);
}

static void test_settings(void)
{
	cufftHandle plan;
	char wanted[256];
	void *areas[] = {(void *)0x5000};
	double_begin();
	MUST(cufftCreate(&plan), CUFFT_SUCCESS);
	int real = real_of(plan);
	unsigned waited = double_waited;
	IS(cufftSetAutoAllocation(plan, 0), CUFFT_SUCCESS);
	IS(cufftSetWorkArea(plan, (void *)0x4000), CUFFT_SUCCESS);
	IS(cufftXtSetWorkArea(plan, areas), CUFFT_SUCCESS);
	IS(cufftXtSetWorkArea(plan, NULL), CUFFT_INVALID_VALUE);
	IS(cufftSetStream(plan, (cudaStream_t)3), CUFFT_SUCCESS);
	/* None of them waits. */
	IS(double_waited, waited);
	IS(double_batched, 3);
	snprintf(wanted, sizeof wanted,
		"set_auto_allocation(%d 0)\nset_work_area(%d 0x4000)\nset_work_area(%d 0x5000)\n",
		real, real, real);
	TEXT(double_calls(), wanted);
	long long value = 0;
	IS(cufftSetPlanPropertyInt64(
		   plan, NVFFT_PLAN_PROPERTY_INT64_MAX_NUM_HOST_THREADS, -(1ll << 40)),
		CUFFT_SUCCESS);
	IS(cufftResetPlanProperty(plan, NVFFT_PLAN_PROPERTY_INT64_PATIENT_JIT), CUFFT_SUCCESS);
	IS(cufftGetPlanPropertyInt64(plan, (cufftProperty)9, &value), CUFFT_SUCCESS);
	IS(value, -77);
	snprintf(wanted, sizeof wanted,
		"set_property(%d 2 -1099511627776)\nreset_property(%d 1)\nget_property(%d 9)\n",
		real, real, real);
	TEXT(double_calls(), wanted);
	size_t bytes = 99;
	IS(cufftXtSetWorkAreaPolicy(plan, CUFFT_WORKAREA_USER, &bytes), CUFFT_SUCCESS);
	IS(bytes, 4096);
	IS(cufftXtSetWorkAreaPolicy(plan, CUFFT_WORKAREA_MINIMAL, NULL), CUFFT_SUCCESS);
	snprintf(wanted, sizeof wanted, "set_policy(%d 1 99)\nset_policy(%d 0 -1)\n", real, real);
	TEXT(double_calls(), wanted);
	double_status = CUFFT_INVALID_SIZE;
	IS(cufftXtSetWorkAreaPolicy(plan, CUFFT_WORKAREA_USER, &bytes), CUFFT_INVALID_SIZE);
	IS(cufftGetPlanPropertyInt64(plan, (cufftProperty)9, &value), CUFFT_INVALID_SIZE);
	IS(cufftGetPlanPropertyInt64(plan, (cufftProperty)9, NULL), CUFFT_INVALID_VALUE);
	double_status = CUFFT_SUCCESS;
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
	IS(cufftSetStream(plan, NULL), CUFFT_INVALID_PLAN);
	IS(cufftSetWorkArea(plan, NULL), CUFFT_INVALID_PLAN);
	IS(cufftSetAutoAllocation(plan, 1), CUFFT_INVALID_PLAN);
	IS(cufftXtSetWorkAreaPolicy(plan, CUFFT_WORKAREA_USER, &bytes), CUFFT_INVALID_PLAN);
	IS(cufftSetPlanPropertyInt64(plan, (cufftProperty)1, 1), CUFFT_INVALID_PLAN);
	IS(cufftGetPlanPropertyInt64(plan, (cufftProperty)1, &value), CUFFT_INVALID_PLAN);
}

static void test_version(void)
{
	int value = 0;
	double_begin();
	IS(cufftGetVersion(&value), CUFFT_SUCCESS);
	IS(value, 12345);
	IS(cufftGetProperty(MAJOR_VERSION, &value), CUFFT_SUCCESS);
	IS(value, 12);
	IS(cufftGetProperty(MINOR_VERSION, &value), CUFFT_SUCCESS);
	IS(value, 3);
	IS(cufftGetProperty(PATCH_LEVEL, &value), CUFFT_SUCCESS);
	IS(value, 45);
	IS(cufftGetProperty((libraryPropertyType)7, &value), CUFFT_INVALID_VALUE);
	IS(cufftGetProperty(MAJOR_VERSION, NULL), CUFFT_INVALID_VALUE);
	IS(cufftGetVersion(NULL), CUFFT_INVALID_VALUE);
	IS(value, 45);
}

static void test_failures(void)
{
	cufftHandle plan = -4;
	double_begin();
	IS(cufftCreate(NULL), CUFFT_INVALID_VALUE);
	double_status = CUFFT_ALLOC_FAILED;
	IS(cufftCreate(&plan), CUFFT_ALLOC_FAILED);
	double_status = CUFFT_SUCCESS;
	double_begin_fails = CUDA_ERROR_NOT_INITIALIZED;
	IS(cufftCreate(&plan), CUFFT_SETUP_FAILED);
	double_begin_fails = CUDA_SUCCESS;
	IS(plan, -4);
	IS(ckt_cufft_failed(CUDA_SUCCESS), CUFFT_SUCCESS);
	IS(ckt_cufft_failed(CUDA_ERROR_OUT_OF_MEMORY), CUFFT_ALLOC_FAILED);
	IS(ckt_cufft_failed(CUDA_ERROR_NOT_SUPPORTED), CUFFT_NOT_SUPPORTED);
	IS(ckt_cufft_failed(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED), CUFFT_SETUP_FAILED);
	IS(ckt_cufft_failed(CUDA_ERROR_LAUNCH_FAILED), CUFFT_INTERNAL_ERROR);
}

UNIT_SUITE(plan, {"table", test_table}, {"settings", test_settings}, {"version", test_version},
	{"failures", test_failures})
