/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/stream/event.c: flags, what a recording stands for, times, contexts, and whole contexts
 * as streams.
 */
#include <unistd.h>

#include "files.h"

static void test_flags(void)
{
	static const struct {
		unsigned flags;
		CUresult result;
	} table[] = {
		{0, CUDA_SUCCESS},
		{CU_EVENT_BLOCKING_SYNC, CUDA_SUCCESS},
		{CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING, CUDA_SUCCESS},
		{CU_EVENT_INTERPROCESS, CUDA_ERROR_INVALID_VALUE}, /* needs DISABLE_TIMING */
		{CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING, CUDA_SUCCESS},
		{8, CUDA_ERROR_INVALID_VALUE},
		{UINT32_MAX, CUDA_ERROR_INVALID_VALUE},
	};
	CUevent event;
	test_context();
	for (size_t i = 0; i < COUNT(table); i++) {
		CHECK_RESULT(cuEventCreate(&event, table[i].flags), table[i].result);
		if (table[i].result == CUDA_SUCCESS) {
			OK(cuEventQuery(event)); /* never recorded: done */
			OK(cuEventDestroy(event));
			CHECK_RESULT(cuEventDestroy(event), CUDA_ERROR_INVALID_HANDLE);
			CHECK_RESULT(cuEventSynchronize(event), CUDA_ERROR_INVALID_HANDLE);
			CHECK_RESULT(cuEventRecord(event, NULL), CUDA_ERROR_INVALID_HANDLE);
		}
	}
	CHECK_RESULT(cuEventCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
}

/* The latest recording counts, for those who ask afterwards only. */
static void test_latest(void)
{
	CUevent event;
	CUdeviceptr p;
	test_context();
	OK(cuMemAlloc(&p, 8));
	OK(cuMemsetD32(p, 0, 2));
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	CUstream gated = files_gated(), free_one, waiting;
	OK(cuStreamCreate(&free_one, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&waiting, CU_STREAM_NON_BLOCKING));
	OK(cuEventRecord(event, gated));
	OK(cuStreamWaitEvent(waiting, event, 0));
	OK(cuMemsetD32Async(p, 1, 1, waiting));
	CHECK_RESULT(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	/* Recorded again on an idle stream: done at once, while who waited before still waits. */
	OK(cuEventRecord(event, free_one));
	OK(cuEventSynchronize(event));
	OK(cuEventQuery(event));
	usleep(5000); /* time for what must not happen */
	CHECK_RESULT(cuStreamQuery(waiting), CUDA_ERROR_NOT_READY);
	IS(files_word(p), 0);
	files_open();
	OK(cuStreamSynchronize(waiting));
	IS(files_word(p), 1);
	CHECK_RESULT(cuEventRecordWithFlags(event, free_one, 2), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuStreamWaitEvent(waiting, event, 2), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuEventRecordWithFlags(event, free_one, CU_EVENT_RECORD_EXTERNAL),
		CUDA_ERROR_ILLEGAL_STATE);
	CHECK_RESULT(cuStreamWaitEvent(waiting, event, CU_EVENT_WAIT_EXTERNAL),
		CUDA_ERROR_ILLEGAL_STATE);
	OK(cuStreamDestroy(gated));
	OK(cuStreamDestroy(free_one));
	OK(cuStreamDestroy(waiting));
	OK(cuEventDestroy(event));
	OK(cuMemFree(p));
}

static void test_times(void)
{
	CUevent a, b, untimed;
	float ms = -1;
	test_context();
	OK(cuEventCreate(&a, 0));
	OK(cuEventCreate(&b, 0));
	OK(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
	OK(cuEventRecord(a, NULL));
	CHECK_RESULT(cuEventElapsedTime(&ms, a, b), CUDA_ERROR_INVALID_HANDLE);
	OK(cuEventRecord(b, NULL));
	OK(cuEventRecord(untimed, NULL));
	OK(cuCtxSynchronize());
	OK(cuEventElapsedTime(&ms, a, b));
	YES(ms >= 0);
	float back = 1;
	OK(cuEventElapsedTime(&back, b, a));
	YES(back == -ms);
	OK(cuEventElapsedTime(&ms, a, a));
	YES(ms == 0);
	CHECK_RESULT(cuEventElapsedTime(NULL, a, b), CUDA_ERROR_INVALID_HANDLE);
	CHECK_RESULT(cuEventElapsedTime(&ms, a, untimed), CUDA_ERROR_INVALID_HANDLE);
	CHECK_RESULT(cuEventElapsedTime(&ms, untimed, b), CUDA_ERROR_INVALID_HANDLE);
	CHECK_RESULT(
		cuEventElapsedTime(&ms, a, (CUevent)(uintptr_t)0x1230), CUDA_ERROR_INVALID_HANDLE);
}

static void test_contexts(void)
{
	CUevent first, second_event;
	CUstream stream;
	float ms;
	CUcontext primary = test_context();
	OK(cuEventCreate(&first, 0));
	OK(cuEventRecord(first, NULL));
	CUcontext second = files_second();
	OK(cuEventCreate(&second_event, 0));
	OK(cuStreamCreate(&stream, 0));
	/* Recorded on a stream of its own context only; waited for from anywhere. */
	CHECK_RESULT(cuEventRecord(first, stream), CUDA_ERROR_INVALID_HANDLE);
	OK(cuStreamWaitEvent(stream, first, 0));
	OK(cuEventRecord(second_event, stream));
	OK(cuEventSynchronize(second_event));
	CHECK_RESULT(cuEventElapsedTime(&ms, first, second_event), CUDA_ERROR_INVALID_HANDLE);
	files_second_end(second);
	OK(cuCtxSetCurrent(primary));
	CHECK_RESULT(cuEventQuery(second_event), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	/* A reset context is another one. */
	test_context();
	CHECK_RESULT(cuEventQuery(first), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	OK(cuEventDestroy(first));
}

static void test_whole_context(void)
{
	CUevent event, early;
	CUcontext context = test_context();
	CUstream idle;
	OK(cuEventCreate(&event, 0));
	OK(cuEventCreate(&early, 0));
	CUstream gated = files_gated();
	OK(cuStreamCreate(&idle, CU_STREAM_NON_BLOCKING));
	OK(cuEventRecord(early, idle));
	/* Behind all streams' work, also of those that do not block. */
	OK(cuCtxRecordEvent(context, event));
	CHECK_RESULT(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	/* And every stream waits for it. */
	OK(cuCtxWaitEvent(context, event));
	usleep(5000);
	CHECK_RESULT(cuStreamQuery(idle), CUDA_ERROR_NOT_READY);
	OK(cuEventQuery(early));
	files_open();
	OK(cuStreamSynchronize(idle));
	OK(cuEventQuery(event));
	CHECK_RESULT(
		cuCtxRecordEvent((CUcontext)(uintptr_t)0x1230, event), CUDA_ERROR_INVALID_CONTEXT);
	CHECK_RESULT(
		cuCtxWaitEvent(context, (CUevent)(uintptr_t)0x1230), CUDA_ERROR_INVALID_HANDLE);
	CUcontext second = files_second();
	CHECK_RESULT(cuCtxRecordEvent(second, event), CUDA_ERROR_INVALID_HANDLE);
	OK(cuCtxWaitEvent(second, event));
	files_second_end(second);
	OK(cuStreamDestroy(gated));
	OK(cuStreamDestroy(idle));
}

UNIT_SUITE(softgpu / stream / event, {"flags", test_flags}, {"latest", test_latest},
	{"times", test_times}, {"contexts", test_contexts}, {"whole context", test_whole_context})
