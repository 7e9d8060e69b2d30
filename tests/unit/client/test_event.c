/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/stream/event.c: events: made, recorded and destroyed without an answer, asked and
 * waited for at the worker.
 */
#include "relay.h"

static void test_events(void)
{
	CUevent event, other;
	CUstream stream;
	float ms;
	COST(cuEventCreate(&event, 0), CUDA_SUCCESS, 0, 1);
	COST(cuEventRecord(event, NULL), CUDA_SUCCESS, 0, 1);
	COST(cuEventSynchronize(event), CUDA_SUCCESS, 1, 0);
	COST(cuEventQuery(event), CUDA_SUCCESS, 1, 0);
	LOCAL(cuEventCreate(NULL, 0), BAD);
	LOCAL(cuEventCreate(&other, 0x100), BAD);
	LOCAL(cuEventCreate(&other, CU_EVENT_INTERPROCESS), BAD); /* only without timing */
	CUipcEventHandle shared;
	IS(cuEventCreate(&other, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
	LOCAL(cuIpcGetEventHandle(NULL, other), BAD);
	COST(cuIpcGetEventHandle(&shared, other), CUDA_SUCCESS, 1, 0);
	/* its own */
	LOCAL(cuIpcOpenEventHandle(&other, shared), CUDA_ERROR_INVALID_CONTEXT);
	memset(&shared, 0x5a, sizeof shared);
	LOCAL(cuIpcOpenEventHandle(&other, shared), CUDA_ERROR_MAP_FAILED);
	/* no other process opens it behind this */
	COST(cuEventDestroy(other), CUDA_SUCCESS, 1, 1);
	LOCAL(cuEventRecordWithFlags(event, NULL, 2), BAD);
	LOCAL(cuEventRecord((CUevent)0x1234, NULL), CUDA_ERROR_INVALID_HANDLE);
	IS(cuEventCreate(&other, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
	IS(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
	COST(cuEventRecord(other, stream), CUDA_SUCCESS, 0, 1);
	IS(cuEventElapsedTime(&ms, event, other), CUDA_ERROR_INVALID_HANDLE);
	COST(cuCtxRecordEvent(primary, event), CUDA_SUCCESS, 1, 0);
	COST(cuCtxWaitEvent(primary, event), CUDA_SUCCESS, 1, 0);
	LOCAL(cuCtxWaitEvent((CUcontext)0x1234, event), CUDA_ERROR_INVALID_CONTEXT);
	COST(cuEventDestroy(event), CUDA_SUCCESS, 0, 1);
	LOCAL(cuEventDestroy(event), CUDA_ERROR_INVALID_HANDLE);
	LOCAL(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
	IS(cuEventDestroy(other), CUDA_SUCCESS);
	IS(cuStreamDestroy(stream), CUDA_SUCCESS);
}

UNIT_SUITE(event, {"events", test_events})
