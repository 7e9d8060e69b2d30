/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/libs/cufft/plan.c: many plans, order on streams, captures, plans that go while they are
 * at work.
 */
#include "softgpu/libs/cufft/plan.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/soft_cufft/api.h"

static const struct shape line = {CKT_COMPLEX_TO_COMPLEX, CKT_SINGLE, 1, {16, 1, 1}, .batch = 1};

static void test_table(void)
{
	cufftHandle plans[100], again;
	size_t size;
	api_context();
	for (size_t i = 0; i < COUNT(plans); i++)
		MUST(cufftCreate(&plans[i]), CUFFT_SUCCESS);
	for (size_t i = 0; i < COUNT(plans); i++)
		for (size_t j = 0; j < i; j++)
			YES(plans[i] != plans[j] && plans[i] > 0);
	IS(cufftDestroy(plans[50]), CUFFT_SUCCESS);
	IS(cufftGetSize(plans[50], &size), CUFFT_INVALID_PLAN);
	NO(ckt_soft_cufft_plan_lock(plans[50]));
	MUST(cufftCreate(&again), CUFFT_SUCCESS);
	IS(again, plans[50]);
	for (size_t i = 0; i < COUNT(plans); i++)
		IS(cufftDestroy(plans[i]), CUFFT_SUCCESS);
	NO(ckt_soft_cufft_plan_lock(0));
	NO(ckt_soft_cufft_plan_lock(-1));
	NO(ckt_soft_cufft_plan_lock(1 << 30));
}

static void CUDA_CB wait_at_gate(void *gate)
{
	while (!atomic_load((atomic_int *)gate))
		usleep(100);
}

/*
 * Behind what the stream did before, and before what comes after; a plan that is destroyed
 * meanwhile finishes.
 */
static void test_order(void)
{
	atomic_int gate = 0;
	cufftHandle plan;
	CUstream stream;
	CUdeviceptr data;
	float numbers[32], ones[32];
	api_context();
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	MUST(cuMemAlloc(&data, sizeof numbers), CUDA_SUCCESS);
	MUST(cuMemsetD8(data, 0xff, sizeof numbers), CUDA_SUCCESS);
	MUST(cufftCreate(&plan), CUFFT_SUCCESS);
	size_t size;
	/* The area is ours: freeing the plan's own one would wait for the gate. */
	CUdeviceptr area;
	IS(cufftSetAutoAllocation(plan, 0), CUFFT_SUCCESS);
	MUST(cufftMakePlan1d(plan, 16, CUFFT_C2C, 1, &size), CUFFT_SUCCESS);
	MUST(cuMemAlloc(&area, size), CUDA_SUCCESS);
	IS(cufftSetWorkArea(plan, (void *)area), CUFFT_SUCCESS);
	for (int i = 0; i < 32; i++)
		ones[i] = i % 2 ? 0 : 1;
	IS(cufftSetStream(plan, (cudaStream_t)stream), CUFFT_SUCCESS);
	IS(cuLaunchHostFunc(stream, wait_at_gate, &gate), CUDA_SUCCESS);
	IS(cuMemcpyHtoDAsync(data, ones, sizeof ones, stream), CUDA_SUCCESS);
	IS(cufftExecC2C(plan, (void *)data, (void *)data, CUFFT_FORWARD), CUFFT_SUCCESS);
	IS(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
	atomic_store(&gate, 1);
	MUST(cuStreamSynchronize(stream), CUDA_SUCCESS);
	MUST(cuMemcpyDtoH(numbers, data, sizeof numbers), CUDA_SUCCESS);
	/* 16 ones: a delta of 16. */
	for (int i = 0; i < 32; i++)
		CU_ASSERT_DOUBLE_EQUAL(numbers[i], i ? 0 : 16, 1e-6);
	cuMemFree(data);
	cuMemFree(area);
	cuStreamDestroy(stream);
}

/* A captured execution is a node, runs with each launch of the graph and not before. */
static void test_capture(void)
{
	cufftHandle plan;
	CUstream stream;
	CUdeviceptr data;
	CUgraph graph;
	CUgraphExec exec;
	float numbers[32] = {1}, back[32];
	size_t nodes = 0;
	api_context();
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	MUST(cuMemAlloc(&data, sizeof numbers), CUDA_SUCCESS);
	MUST(cuMemcpyHtoD(data, numbers, sizeof numbers), CUDA_SUCCESS);
	MUST(cufftPlan1d(&plan, 16, CUFFT_C2C, 1), CUFFT_SUCCESS);
	IS(cufftSetStream(plan, (cudaStream_t)stream), CUFFT_SUCCESS);
	MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), CUDA_SUCCESS);
	IS(cufftExecC2C(plan, (void *)data, (void *)data, CUFFT_FORWARD), CUFFT_SUCCESS);
	MUST(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
	IS(cuGraphGetNodes(graph, NULL, &nodes), CUDA_SUCCESS);
	IS(nodes, 1);
	MUST(cuMemcpyDtoH(back, data, sizeof back), CUDA_SUCCESS);
	YES(!memcmp(back, numbers, sizeof back));
	MUST(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
	IS(cuGraphDestroy(graph), CUDA_SUCCESS);
	/* Twice forward is 16 times what was there, mirrored: of a delta at 0, that delta. */
	for (int round = 1; round <= 4; round++) {
		MUST(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
		MUST(cuStreamSynchronize(stream), CUDA_SUCCESS);
		MUST(cuMemcpyDtoH(back, data, sizeof back), CUDA_SUCCESS);
		CU_ASSERT_DOUBLE_EQUAL(back[0], round < 2 ? 1 : round < 4 ? 16 : 256, 1e-4);
		CU_ASSERT_DOUBLE_EQUAL(back[2], round == 1 ? 1 : round == 3 ? 16 : 0, 1e-4);
	}
	IS(cuGraphExecDestroy(exec), CUDA_SUCCESS);
	IS(cufftDestroy(plan), CUFFT_SUCCESS);
	cuMemFree(data);
	cuStreamDestroy(stream);
}

static void *own_plans(void *context)
{
	cuCtxSetCurrent(context);
	for (int i = 0; i < 20; i++) {
		cufftHandle plan = 0;
		CUstream stream;
		MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
		MUST(cufftPlan1d(&plan, 16, CUFFT_C2C, 1), CUFFT_SUCCESS);
		IS(cufftSetStream(plan, (cudaStream_t)stream), CUFFT_SUCCESS);
		api_judge(plan, &line, i & 1, stream);
		IS(cufftDestroy(plan), CUFFT_SUCCESS);
		cuStreamDestroy(stream);
	}
	return NULL;
}

static void test_threads(void)
{
	pthread_t threads[3];
	CUcontext context;
	api_context();
	cuCtxGetCurrent(&context);
	for (size_t i = 0; i < COUNT(threads); i++)
		pthread_create(&threads[i], NULL, own_plans, context);
	for (size_t i = 0; i < COUNT(threads); i++)
		pthread_join(threads[i], NULL);
}

static void test_shape(void)
{
	struct ckt_shape *shape = calloc(1, sizeof *shape);
	atomic_init(&shape->holders, 1);
	ckt_soft_cufft_shape_hold(shape);
	ckt_soft_cufft_shape_release(shape);
	IS(atomic_load(&shape->holders), 1);
	ckt_soft_cufft_shape_release(shape);
	ckt_soft_cufft_shape_release(NULL);
}

UNIT_SUITE(plan, {"table", test_table}, {"order", test_order}, {"capture", test_capture},
	{"threads", test_threads}, {"shape", test_shape})
