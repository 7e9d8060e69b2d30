/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/libs/cublas/call.c: when factors are read and work is done: both pointer modes, the
 * stream's order, captures.
 */
#include <stdatomic.h>
#include <unistd.h>

#include "softlibs.h"

struct gate {
	atomic_int open;
};

static void CUDA_CB wait_at_gate(void *data)
{
	struct gate *gate = data;
	while (!atomic_load(&gate->open))
		usleep(100);
}

/* c = alpha * 2 * 3 + beta * c, of one number each. */
static cublasStatus_t six(const float *alpha, const float *beta, float *abc)
{
	return cublasSgemm_v2(lib_handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, alpha, abc, 1, abc + 1,
		1, beta, abc + 2, 1);
}

static float *numbers(float c)
{
	CUdeviceptr p;
	MUST(cuMemAlloc(&p, 64), CUDA_SUCCESS);
	float *abc = (float *)(uintptr_t)p;
	abc[0] = 2, abc[1] = 3, abc[2] = c;
	return abc;
}

static void test_host_mode(void)
{
	struct gate gate = {0};
	float alpha = 1, beta = 0;
	lib_begin();
	float *abc = numbers(100);
	OK(cuLaunchHostFunc(lib_stream, wait_at_gate, &gate));
	OK(six(&alpha, &beta, abc));
	/* The call did not wait, and took what the factors were. */
	alpha = 50, beta = 50;
	IS(abc[2], 100);
	atomic_store(&gate.open, 1);
	OK(cuStreamSynchronize(lib_stream));
	IS(abc[2], 6);
	OK(cuMemFree((CUdeviceptr)(uintptr_t)abc));
	lib_end();
}

static void test_device_mode(void)
{
	struct gate gate = {0};
	lib_begin();
	float *abc = numbers(10), *factors = numbers(0);
	factors[0] = 1, factors[1] = 0;
	OK(cublasSetPointerMode_v2(lib_handle, CUBLAS_POINTER_MODE_DEVICE));
	OK(cuLaunchHostFunc(lib_stream, wait_at_gate, &gate));
	/* What the stream writes before is what is read. */
	float late[2] = {2, 3};
	OK(cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)factors, late, sizeof late, lib_stream));
	OK(six(factors, factors + 1, abc));
	atomic_store(&gate.open, 1);
	OK(cuStreamSynchronize(lib_stream));
	IS(abc[2], 2 * 6 + 3 * 10);
	OK(cuMemFree((CUdeviceptr)(uintptr_t)abc));
	OK(cuMemFree((CUdeviceptr)(uintptr_t)factors));
	lib_end();
}

/* Copies before and after, and another stream's event between. */
static void test_order(void)
{
	CUstream other;
	CUevent event;
	float one = 1, got = 0;
	lib_begin();
	float *abc = numbers(0);
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&event, 0));
	for (int i = 0; i < 20; i++) {
		float start = (float)i;
		OK(cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)(abc + 2), &start, 4, lib_stream));
		OK(cuStreamSynchronize(lib_stream));
		OK(six(&one, &one, abc));
		OK(six(&one, &one, abc));
		OK(cuEventRecord(event, lib_stream));
		OK(cuStreamWaitEvent(other, event, 0));
		OK(cublasSetStream_v2(lib_handle, (cudaStream_t)other));
		OK(six(&one, &one, abc));
		OK(cuMemcpyDtoHAsync(&got, (CUdeviceptr)(uintptr_t)(abc + 2), 4, other));
		OK(cuStreamSynchronize(other));
		OK(cublasSetStream_v2(lib_handle, (cudaStream_t)lib_stream));
		IS(got, i + 18);
	}
	OK(cuEventDestroy(event));
	OK(cuStreamDestroy(other));
	OK(cuMemFree((CUdeviceptr)(uintptr_t)abc));
	lib_end();
}

/*
 * A graph runs what was captured as often as it is launched, also when the graph that was captured
 * and the handle are gone.
 */
static void test_capture(void)
{
	CUgraph graph, copy;
	CUgraphExec exec, second;
	size_t nodes = 0;
	float alpha = 1, beta = 1;
	lib_begin();
	float *abc = numbers(0);
	OK(cuStreamBeginCapture(lib_stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(six(&alpha, &beta, abc));
	OK(six(&alpha, &beta, abc));
	OK(cuStreamEndCapture(lib_stream, &graph));
	alpha = 1000;
	IS(abc[2], 0);
	OK(cuGraphGetNodes(graph, NULL, &nodes));
	IS(nodes, 2);
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphClone(&copy, graph));
	OK(cuGraphDestroy(graph));
	for (int i = 0; i < 3; i++)
		OK(cuGraphLaunch(exec, lib_stream));
	OK(cuStreamSynchronize(lib_stream));
	IS(abc[2], 36);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphInstantiate(&second, copy, 0));
	OK(cuGraphDestroy(copy));
	OK(cuGraphLaunch(second, lib_stream));
	OK(cuStreamSynchronize(lib_stream));
	IS(abc[2], 48);
	OK(cuGraphExecDestroy(second));
	OK(cuMemFree((CUdeviceptr)(uintptr_t)abc));
	lib_end();
}

/* More streams at a time than OpenBLAS has room for. */
static void test_many_streams(void)
{
	enum { STREAMS = 40, N = 64 };
	CUstream streams[STREAMS];
	struct lib_array c[STREAMS];
	float one = 1, zero = 0;
	struct gate gate = {0};
	lib_begin();
	struct lib_array a = lib_array(CUDA_R_32F, N * N);
	for (int i = 0; i < STREAMS; i++) {
		c[i] = lib_array(CUDA_R_32F, N * N);
		OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
		OK(cuLaunchHostFunc(streams[i], wait_at_gate, &gate));
		OK(cublasSetStream_v2(lib_handle, (cudaStream_t)streams[i]));
		for (int again = 0; again < 5; again++)
			OK(cublasSgemm_v2(lib_handle, CUBLAS_OP_N, CUBLAS_OP_T, N, N, N, &one,
				(float *)a.p, N, (float *)a.p, N, &zero, (float *)c[i].p, N));
	}
	atomic_store(&gate.open, 1);
	for (int i = 0; i < STREAMS; i++)
		OK(cuStreamSynchronize(streams[i]));
	double complex first = 0;
	for (int l = 0; l < N; l++)
		first += lib_get(a.p, a.type, l * N) * lib_get(a.p, a.type, l * N);
	YES(((float *)c[0].p)[0] == (float)creal(first));
	for (int i = 0; i < STREAMS; i++) {
		YES(!memcmp(c[i].p, c[0].p, N * N * 4));
		OK(cuStreamDestroy(streams[i]));
	}
	for (int i = 0; i < STREAMS; i++)
		lib_free(&c[i]);
	lib_free(&a);
	lib_end();
}

UNIT_SUITE(call, {"factors on the host are those of the call", test_host_mode},
	{"factors on the device those of the run", test_device_mode},
	{"in the stream's order", test_order}, {"captured", test_capture},
	{"many streams", test_many_streams})
