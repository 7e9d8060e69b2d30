/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/libs/cufft/execute.c: every execution reaches its function on the plan's stream, without
 * waiting; what is refused does not travel.
 */
#include "client/libs/cufft/cufft.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/worker/cufft_double.h"

static cufftHandle plan_of(cufftType type)
{
	cufftHandle plan = 0;
	MUST(cufftPlan1d(&plan, 8, type, 1), CUFFT_SUCCESS);
	double_calls();
	return plan;
}

#define IN ((void *)0x1000)
#define OUT ((void *)0x2000)

static cufftResult run(int i, cufftHandle plan)
{
	switch (i) {
	case 0:
		return cufftExecC2C(plan, IN, OUT, CUFFT_INVERSE);
	case 1:
		return cufftExecR2C(plan, IN, OUT);
	case 2:
		return cufftExecC2R(plan, IN, OUT);
	case 3:
		return cufftExecZ2Z(plan, IN, OUT, CUFFT_FORWARD);
	case 4:
		return cufftExecD2Z(plan, IN, OUT);
	default:
		return cufftExecZ2D(plan, IN, OUT);
	}
}

/*
 * A plan of another type is the genuine library's business: it answers success (seen on an H200).
 */
static void test_types(void)
{
	static const cufftType types[] = {
		CUFFT_C2C, CUFFT_R2C, CUFFT_C2R, CUFFT_Z2Z, CUFFT_D2Z, CUFFT_Z2D};
	static const char *const called[] = {"exec_c2c(%d 0x1100 0x2100 1)",
		"exec_r2c(%d 0x1100 0x2100)", "exec_c2r(%d 0x1100 0x2100)",
		"exec_z2z(%d 0x1100 0x2100 -1)", "exec_d2z(%d 0x1100 0x2100)",
		"exec_z2d(%d 0x1100 0x2100)"};
	double_begin();
	for (size_t i = 0; i < COUNT(types); i++) {
		cufftHandle plan = plan_of(types[i]);
		unsigned waited = double_waited;
		for (int j = 0; j < (int)COUNT(called); j++) {
			int real, end = 0;
			char format[64];
			double_calls();
			IS(run(j, plan), CUFFT_SUCCESS);
			/* What was pinned memory has the device's address. */
			snprintf(format, sizeof format, "%s\n%%n", called[j]);
			const char *calls = double_calls();
			IS(sscanf(calls, format, &real, &end), 1);
			IS(end, strlen(calls));
		}
		IS(cufftXtExec(plan, IN, OUT, CUFFT_INVERSE), CUFFT_SUCCESS);
		HAS(double_calls(), "exec_xt(");
		IS(double_waited, waited);
		IS(cufftDestroy(plan), CUFFT_SUCCESS);
	}
	IS(double_deferred(), CUDA_SUCCESS);
}

static void test_stream(void)
{
	double_begin();
	cufftHandle plan = plan_of(CUFFT_C2C);
	IS(cufftExecC2C(plan, IN, OUT, CUFFT_FORWARD), CUFFT_SUCCESS);
	NO(strstr(double_calls(), "set_stream"));
	/* The per-thread default stream of the driver: a stream that the worker knows. */
	IS(cufftSetStream(plan, (cudaStream_t)2), CUFFT_SUCCESS);
	TEXT(double_calls(), "");
	IS(cufftExecC2C(plan, IN, OUT, CUFFT_FORWARD), CUFFT_SUCCESS);
	HAS(double_calls(), "set_stream(");
	/* A stream that captures gets a node, and nothing travels. */
	unsigned batched = double_batched;
	IS(cufftSetStream(plan, (cudaStream_t)7), CUFFT_SUCCESS);
	IS(cufftExecC2C(plan, IN, OUT, CUFFT_FORWARD), CUFFT_SUCCESS);
	/* With the addresses that the device has. */
	TEXT(double_calls(), "capture(30050 36 1100 2100)\n");
	double_capture_ended = true;
	IS(cufftExecC2C(plan, IN, OUT, CUFFT_FORWARD), CUFFT_EXEC_FAILED);
	double_capture_ended = false;
	double_calls();
	IS(double_batched, batched);
	IS(cufftSetStream(plan, (cudaStream_t)0xbad), CUFFT_SUCCESS);
	IS(cufftExecC2C(plan, IN, OUT, CUFFT_FORWARD), CUFFT_EXEC_FAILED);
	TEXT(double_calls(), "");
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
}

static void test_refused(void)
{
	cufftHandle empty;
	double_begin();
	cufftHandle plan = plan_of(CUFFT_C2C), real = plan_of(CUFFT_R2C);
	MUST(cufftCreate(&empty), CUFFT_SUCCESS);
	double_calls();
	IS(cufftExecC2C(plan, IN, OUT, 0), CUFFT_INVALID_VALUE);
	IS(cufftXtExec(plan, IN, OUT, 7), CUFFT_INVALID_VALUE);
	IS(cufftExecC2C(empty, IN, OUT, CUFFT_FORWARD), CUFFT_INVALID_PLAN);
	IS(cufftExecC2C(-1, IN, OUT, CUFFT_FORWARD), CUFFT_INVALID_PLAN);
	/* Another GPU than the plan was made on. */
	double_context = ckt_handle_primary(1);
	IS(cufftExecC2C(plan, IN, OUT, CUFFT_FORWARD), CUFFT_INVALID_DEVICE);
	double_context = ckt_handle_primary(0);
	TEXT(double_calls(), "");
	IS(cufftSetStream(plan, (cudaStream_t)7), CUFFT_SUCCESS);
	double_capture = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	IS(cufftExecC2C(plan, IN, OUT, CUFFT_FORWARD), CUFFT_EXEC_FAILED);
	double_capture = CUDA_SUCCESS;
	IS(cufftSetStream(plan, NULL), CUFFT_SUCCESS);
	double_calls();
	double_before_work = CUDA_ERROR_LAUNCH_FAILED;
	IS(cufftExecC2C(plan, IN, OUT, CUFFT_FORWARD), CUFFT_EXEC_FAILED);
	double_before_work = CUDA_SUCCESS;
	double_begin_fails = CUDA_ERROR_LAUNCH_FAILED;
	IS(cufftExecC2C(plan, IN, OUT, CUFFT_FORWARD), CUFFT_EXEC_FAILED);
	double_begin_fails = CUDA_SUCCESS;
	TEXT(double_calls(), "");
	/* A plan with a real side has its direction. */
	IS(cufftXtExec(real, IN, OUT, 0), CUFFT_SUCCESS);
	/* What the genuine library says comes with the next call that is waited for. */
	double_status = CUFFT_EXEC_FAILED;
	IS(cufftExecC2C(plan, IN, OUT, CUFFT_FORWARD), CUFFT_SUCCESS);
	IS(double_deferred(), CUDA_ERROR_UNKNOWN);
	double_status = CUFFT_SUCCESS;
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
	IS(cufftDestroy(real), CUFFT_SUCCESS);
	IS(cufftDestroy(empty), CUFFT_SUCCESS);
}

UNIT_SUITE(execute, {"types", test_types}, {"stream", test_stream}, {"refused", test_refused})
