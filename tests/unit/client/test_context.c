/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/context/context.c: the stack of contexts of a thread is our own; that there is one is
 * the worker's to know.
 */
#include "relay.h"

enum { GONE = CUDA_ERROR_CONTEXT_IS_DESTROYED, NONE = CUDA_ERROR_INVALID_CONTEXT };

static void test_stack(void)
{
	CUcontext made = NULL, got = NULL;
	COST(cuCtxCreate(&made, NULL, CU_CTX_SCHED_SPIN, 1), CUDA_SUCCESS, 1, 0);
	LOCAL(cuCtxGetCurrent(&got), CUDA_SUCCESS);
	YES(got == made && made != primary);
	LOCAL(cuCtxPushCurrent(primary), CUDA_SUCCESS);
	LOCAL(cuCtxPopCurrent(&got), CUDA_SUCCESS);
	YES(got == primary);
	LOCAL(cuCtxPopCurrent(&got), CUDA_SUCCESS);
	YES(got == made);
	LOCAL(cuCtxSetCurrent(primary), CUDA_SUCCESS); /* where it was current all along */
	static const uintptr_t wrong[] = {0x1234, UINTPTR_MAX};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		LOCAL(cuCtxSetCurrent((CUcontext)wrong[i]), NONE);
		LOCAL(cuCtxPushCurrent((CUcontext)wrong[i]), NONE);
		LOCAL(cuCtxDestroy((CUcontext)wrong[i]), NONE);
	}
	LOCAL(cuCtxPushCurrent(NULL), BAD);
	LOCAL(cuCtxGetCurrent(NULL), BAD);
	LOCAL(cuCtxDestroy(NULL), BAD);
	LOCAL(cuCtxDestroy(primary), NONE);
	/* 64 deep with what lies there already, and as it was again. */
	unsigned depth = 0;
	while (depth < 100 && cuCtxPushCurrent(primary) == CUDA_SUCCESS)
		depth++;
	YES(depth >= 60 && depth < 64);
	IS(cuCtxPushCurrent(primary), NONE);
	while (depth--)
		IS(cuCtxPopCurrent(NULL), CUDA_SUCCESS);
	COST(cuCtxDestroy(made), CUDA_SUCCESS, 1, 0);
	LOCAL(cuCtxDestroy(made), NONE);
	IS(cuCtxGetCurrent(&got), CUDA_SUCCESS);
	YES(got == primary);
}

static void test_destroyed(void)
{
	CUcontext made;
	CUstream stream;
	CUdevice device = 77;
	CUdeviceptr memory;
	unsigned flags;
	unsigned long long id;
	MUST(cuCtxCreate(&made, NULL, 0, 1), CUDA_SUCCESS);
	MUST(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
	memory = memory_of(64, 1);
	IS(cuCtxPopCurrent(NULL), CUDA_SUCCESS);
	IS(cuCtxSetCurrent(primary), CUDA_SUCCESS);
	IS(cuCtxDestroy(made), CUDA_SUCCESS);
	/* What was in it went with it. */
	LOCAL(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
	LOCAL(cuMemFree(memory), BAD);
	/* It can be made current; the calls in it say what it is. */
	LOCAL(cuCtxPushCurrent(made), CUDA_SUCCESS);
	IS(cuCtxGetFlags(&flags), GONE);
	IS(cuCtxSynchronize(), GONE);
	IS(cuMemAlloc(&memory, 4), GONE);
	IS(cuCtxGetDevice(&device), CUDA_SUCCESS);
	IS(device, 1);
	IS(cuCtxGetId(made, &id), GONE);
	IS(cuCtxPopCurrent(NULL), CUDA_SUCCESS);
}

static void test_questions(void)
{
	CUdevice device = 77;
	unsigned flags = 0, version = 0;
	unsigned long long id = 0, other = 0;
	int least = 77, greatest = 77;
	LOCAL(cuCtxGetDevice(&device), CUDA_SUCCESS);
	IS(device, 0);
	LOCAL(cuCtxGetDevice(NULL), BAD);
	LOCAL(cuCtxGetFlags(&flags), CUDA_SUCCESS);
	YES(flags & CU_CTX_MAP_HOST);
	LOCAL(cuCtxGetFlags(NULL), BAD);
	LOCAL(cuCtxSetFlags(1 << 30), BAD);
	LOCAL(cuCtxGetApiVersion(primary, &version), CUDA_SUCCESS);
	IS(version, 3020);
	LOCAL(cuCtxGetApiVersion((CUcontext)0x1234, &version), NONE);
	LOCAL(cuCtxGetApiVersion(primary, NULL), BAD);
	LOCAL(cuCtxGetId(NULL, &id), CUDA_SUCCESS);
	LOCAL(cuCtxGetId(primary, &other), CUDA_SUCCESS);
	IS(id, other);
	LOCAL(cuCtxGetId(primary, NULL), BAD);
	LOCAL(cuCtxGetStreamPriorityRange(&least, &greatest), CUDA_SUCCESS);
	YES(least >= greatest);
	LOCAL(cuCtxGetStreamPriorityRange(NULL, NULL), CUDA_SUCCESS);
	CUdeviceptr memory = memory_of(64, 1);
	IS(cuMemFree(memory), CUDA_SUCCESS);
	COST(cuCtxSynchronize(), CUDA_SUCCESS, 1, 0);
	LOCAL(cuCtxSynchronize(), CUDA_SUCCESS); /* nothing was issued since */
	/* Of a thread's first days: users of a context are counted. */
	CUcontext attached = NULL;
	LOCAL(cuCtxAttach(&attached, 1), BAD);
	LOCAL(cuCtxAttach(&attached, 0), CUDA_SUCCESS);
	YES(attached == primary);
	LOCAL(cuCtxDetach(attached), CUDA_SUCCESS);
	LOCAL(cuCtxDetach((CUcontext)0x1234), NONE);
}

static void test_primary(void)
{
	CUcontext context;
	unsigned flags = 77;
	int active = 77;
	LOCAL(cuDevicePrimaryCtxGetState(1, &flags, &active), CUDA_SUCCESS);
	IS(active, 0);
	LOCAL(cuDevicePrimaryCtxSetFlags(1, CU_CTX_SCHED_YIELD), CUDA_SUCCESS);
	static const unsigned wrong[] = {3, 5, 1u << 31};
	for (size_t i = 0; i < COUNT(wrong); i++)
		LOCAL(cuDevicePrimaryCtxSetFlags(1, wrong[i]), BAD);
	COST(cuDevicePrimaryCtxRetain(&context, 1), CUDA_SUCCESS, 1, 0);
	LOCAL(cuDevicePrimaryCtxRetain(&context, 1), CUDA_SUCCESS);
	IS(cuDevicePrimaryCtxGetState(1, &flags, &active), CUDA_SUCCESS);
	IS(flags, CU_CTX_SCHED_YIELD);
	IS(active, 1);
	LOCAL(cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
	LOCAL(cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
	LOCAL(cuDevicePrimaryCtxRelease(1), NONE);
	IS(cuDevicePrimaryCtxGetState(1, &flags, &active), CUDA_SUCCESS);
	IS(active, 0);
	COST(cuDevicePrimaryCtxReset(1), CUDA_SUCCESS, 1, 0);
	IS(cuDevicePrimaryCtxSetFlags(1, 0), CUDA_SUCCESS);
	LOCAL(cuDevicePrimaryCtxRetain(&context, 2), CUDA_ERROR_INVALID_DEVICE);
	LOCAL(cuDevicePrimaryCtxRetain(NULL, 0), BAD);
	LOCAL(cuDevicePrimaryCtxReset(-1), CUDA_ERROR_INVALID_DEVICE);
	LOCAL(cuDevicePrimaryCtxGetState(0, NULL, &active), BAD);
}

static void test_peers(void)
{
	CUcontext other;
	int can = 0;
	MUST(cuCtxCreate(&other, NULL, 0, 1), CUDA_SUCCESS);
	IS(cuCtxPopCurrent(NULL), CUDA_SUCCESS);
	IS(cuCtxSetCurrent(primary), CUDA_SUCCESS);
	IS(cuDeviceCanAccessPeer(&can, 0, 1), CUDA_SUCCESS);
	LOCAL(cuCtxEnablePeerAccess(other, 1), BAD);
	/* with itself */
	LOCAL(cuCtxEnablePeerAccess(primary, 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
	LOCAL(cuCtxEnablePeerAccess((CUcontext)0x1234, 0), NONE);
	LOCAL(cuCtxDisablePeerAccess(other), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	LOCAL(cuCtxEnablePeerAccess(other, 0),
		can ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
	if (can) {
		LOCAL(cuCtxEnablePeerAccess(other, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
		LOCAL(cuCtxDisablePeerAccess(other), CUDA_SUCCESS);
	}
	IS(cuCtxDestroy(other), CUDA_SUCCESS);
}

UNIT_SUITE(context, {"stack", test_stack}, {"destroyed", test_destroyed},
	{"questions", test_questions}, {"primary", test_primary}, {"peers", test_peers})
