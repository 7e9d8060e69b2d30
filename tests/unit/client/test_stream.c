/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/stream/stream.c: streams are made and destroyed without an answer; what they are is
 * known here.
 */
#include <pthread.h>

#include "relay.h"

static void test_streams(void)
{
	CUstream stream, other;
	CUcontext context = NULL;
	CUdevice device = 77;
	CUgreenCtx green = (CUgreenCtx)1;
	unsigned flags = 77;
	unsigned long long id = 0, second = 0;
	int priority = 77, least, greatest;
	IS(cuCtxGetStreamPriorityRange(&least, &greatest), CUDA_SUCCESS);
	COST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS, 0, 1);
	COST(cuStreamCreateWithPriority(&other, 0, -1000), CUDA_SUCCESS, 0, 1);
	LOCAL(cuStreamGetPriority(other, &priority), CUDA_SUCCESS);
	IS(priority, greatest); /* cut to what there is */
	CUstream beyond;
	IS(cuStreamCreateWithPriority(&beyond, 0, greatest - 1), CUDA_SUCCESS);
	LOCAL(cuStreamGetPriority(beyond, &priority), CUDA_SUCCESS);
	IS(priority, greatest);
	IS(cuStreamDestroy(beyond), CUDA_SUCCESS);
	LOCAL(cuStreamGetFlags(stream, &flags), CUDA_SUCCESS);
	IS(flags, CU_STREAM_NON_BLOCKING);
	LOCAL(cuStreamGetDevice(stream, &device), CUDA_SUCCESS);
	IS(device, 0);
	LOCAL(cuStreamGetCtx(stream, &context), CUDA_SUCCESS);
	YES(context == primary);
	LOCAL(cuStreamGetCtx_v2(stream, &context, &green), CUDA_SUCCESS);
	YES(!green);
	LOCAL(cuStreamGetId(stream, &id), CUDA_SUCCESS);
	LOCAL(cuStreamGetId(other, &second), CUDA_SUCCESS);
	YES(id != second);
	LOCAL(cuStreamSynchronize(stream), CUDA_SUCCESS); /* nothing was issued since a wait */
	LOCAL(cuStreamQuery(stream), CUDA_SUCCESS);
	COST(cuStreamDestroy(stream), CUDA_SUCCESS, 0, 1);
	COST(cuStreamDestroy(other), CUDA_SUCCESS, 0, 1);
	LOCAL(cuStreamDestroy(stream), CUDA_ERROR_INVALID_HANDLE);
	LOCAL(cuStreamCreate(&stream, 2), BAD);
	LOCAL(cuStreamCreate(NULL, 0), BAD);
}

/* A wait covers what was issued before it: a second one needs no question, until more is issued. */
static void test_idle(void)
{
	static uint32_t registered[1024] __attribute__((aligned(4096)));
	CUstream stream, other;
	CUdeviceptr memory = memory_of(4096, 0), device;
	IS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	IS(cuStreamCreate(&other, 0), CUDA_SUCCESS);
	IS(cuMemsetD32Async(memory, 1, 1024, stream), CUDA_SUCCESS);
	ASKS(cuStreamSynchronize(stream), "stream_synchronize", 1);
	ASKS(cuStreamSynchronize(stream), "stream_synchronize", 0);
	ASKS(cuStreamQuery(stream), "stream_query", 0);
	/* It says nothing of others. */
	ASKS(cuStreamQuery(other), "stream_query", 1);
	ASKS(cuStreamQuery(other), "stream_query", 0);
	ASKS(cuStreamSynchronize(NULL), "stream_synchronize", 1);
	ASKS(cuStreamSynchronize(CU_STREAM_LEGACY), "stream_synchronize", 0);
	ASKS(cuCtxSynchronize(), "ctx_synchronize", 1);
	ASKS(cuCtxSynchronize(), "ctx_synchronize", 0);
	/* Work on one stream makes all of them unknown; the context's wait covers all of them. */
	IS(cuMemsetD32Async(memory, 2, 1024, other), CUDA_SUCCESS);
	ASKS(cuStreamSynchronize(stream), "stream_synchronize", 1);
	ASKS(cuCtxSynchronize(), "ctx_synchronize", 1);
	ASKS(cuStreamQuery(stream), "stream_query", 0);
	ASKS(cuStreamSynchronize(other), "stream_synchronize", 0);
	ASKS(cuStreamSynchronize(NULL), "stream_synchronize", 0);
	IS(word_at(memory), 2);
	/* Where the program registered memory, each wait brings what the GPU wrote. */
	IS(cuMemHostRegister(registered, sizeof registered, CU_MEMHOSTREGISTER_DEVICEMAP),
		CUDA_SUCCESS);
	IS(cuMemHostGetDevicePointer(&device, registered, 0), CUDA_SUCCESS);
	ASKS(cuStreamSynchronize(stream), "stream_synchronize", 1);
	ASKS(cuStreamSynchronize(stream), "stream_synchronize", 1);
	IS(cuMemHostUnregister(registered), CUDA_SUCCESS);
	IS(cuMemFree(memory), CUDA_SUCCESS);
	IS(cuStreamDestroy(stream), CUDA_SUCCESS);
	IS(cuStreamDestroy(other), CUDA_SUCCESS);
}

/* Each question with a stream that is gone or none, and without a place for its answer. */
static void test_refused(void)
{
	CUstream stream;
	CUcontext context;
	CUdevice device;
	CUevent event;
	CUgreenCtx green;
	unsigned flags;
	unsigned long long id;
	int priority;
	MUST(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
	MUST(cuEventCreate(&event, 0), CUDA_SUCCESS);
	LOCAL(cuStreamGetPriority(stream, NULL), BAD);
	LOCAL(cuStreamGetFlags(stream, NULL), BAD);
	LOCAL(cuStreamGetDevice(stream, NULL), BAD);
	LOCAL(cuStreamGetId(stream, NULL), BAD);
	LOCAL(cuStreamGetCtx(stream, NULL), BAD);
	LOCAL(cuStreamGetGreenCtx(stream, NULL), BAD);
	LOCAL(cuStreamWaitEvent(stream, (CUevent)0x1234, 0), CUDA_ERROR_INVALID_HANDLE);
	LOCAL(cuStreamWaitEvent(stream, event, 8), BAD);
	LOCAL(cuStreamWaitEvent(stream, event, CU_EVENT_WAIT_EXTERNAL), CUDA_ERROR_ILLEGAL_STATE);
	COST(cuStreamWaitEvent(stream, event, 0), CUDA_SUCCESS, 0, 1);
	IS(cuStreamDestroy(stream), CUDA_SUCCESS);
	IS(cuEventDestroy(event), CUDA_SUCCESS);
	const CUstream wrong[] = {stream, (CUstream)0x1234, (CUstream)primary};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		LOCAL(cuStreamSynchronize(wrong[i]), CUDA_ERROR_INVALID_HANDLE);
		LOCAL(cuStreamQuery(wrong[i]), CUDA_ERROR_INVALID_HANDLE);
		LOCAL(cuStreamGetPriority(wrong[i], &priority), CUDA_ERROR_INVALID_HANDLE);
		LOCAL(cuStreamGetFlags(wrong[i], &flags), CUDA_ERROR_INVALID_HANDLE);
		LOCAL(cuStreamGetDevice(wrong[i], &device), CUDA_ERROR_INVALID_HANDLE);
		LOCAL(cuStreamGetId(wrong[i], &id), CUDA_ERROR_INVALID_HANDLE);
		LOCAL(cuStreamGetCtx(wrong[i], &context), CUDA_ERROR_INVALID_HANDLE);
		LOCAL(cuStreamGetGreenCtx(wrong[i], &green), CUDA_ERROR_INVALID_HANDLE);
		LOCAL(cuStreamWaitEvent(wrong[i], event, 0), CUDA_ERROR_INVALID_HANDLE);
	}
}

static void *own_stream(void *memory)
{
	static unsigned long long id;
	IS(cuCtxSetCurrent(primary), CUDA_SUCCESS);
	IS(cuMemsetD32Async((CUdeviceptr)(uintptr_t)memory, 5, 1, CU_STREAM_PER_THREAD),
		CUDA_SUCCESS);
	IS(cuStreamGetId(CU_STREAM_PER_THREAD, &id), CUDA_SUCCESS);
	IS(cuStreamSynchronize(CU_STREAM_PER_THREAD), CUDA_SUCCESS);
	return &id;
}

/* A thread's default stream is made for its first use, and goes with the thread. */
static void test_per_thread(void)
{
	CUdeviceptr memory = memory_of(64, 0);
	unsigned long long legacy = 0, here = 0;
	pthread_t thread;
	void *there;
	LOCAL(cuStreamGetId(NULL, &legacy), CUDA_SUCCESS);
	IS(legacy, 1);
	relay_mark();
	MUST(pthread_create(&thread, NULL, own_stream, (void *)(uintptr_t)memory), 0);
	MUST(pthread_join(thread, &there), 0);
	relay_settle();
	IS(relay_count("stream_create"), 1);
	IS(relay_count("stream_destroy"), 1);
	IS(word_at(memory), 5);
	IS(cuStreamGetId(CU_STREAM_PER_THREAD, &here), CUDA_SUCCESS);
	YES(here != *(unsigned long long *)there && here != legacy);
	LOCAL(cuStreamGetId(CU_STREAM_PER_THREAD, &legacy), CUDA_SUCCESS);
	IS(legacy, here);
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

UNIT_SUITE(stream, {"streams", test_streams}, {"idle", test_idle}, {"refused", test_refused},
	{"per thread", test_per_thread})
