/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/context/context.c: the stack of current contexts, primary contexts, flags and limits. */
#include <pthread.h>

#include "soft_test.h"

static void test_stack(void)
{
	CUcontext primary = test_context(), first, second, current = NULL;
	OK(cuCtxCreate(&first, NULL, 0, 0));
	OK(cuCtxCreate(&second, NULL, CU_CTX_SCHED_BLOCKING_SYNC, 0));
	OK(cuCtxGetCurrent(&current));
	CU_ASSERT_PTR_EQUAL(current, second);
	unsigned flags = 0;
	OK(cuCtxGetFlags(&flags));
	CU_ASSERT_EQUAL(flags, CU_CTX_SCHED_BLOCKING_SYNC);
	OK(cuCtxPopCurrent(&current));
	CU_ASSERT_PTR_EQUAL(current, second);
	OK(cuCtxGetCurrent(&current));
	CU_ASSERT_PTR_EQUAL(current, first);
	OK(cuCtxPushCurrent(second));
	OK(cuCtxSetCurrent(primary));
	OK(cuCtxPopCurrent(&current));
	CU_ASSERT_PTR_EQUAL(current, primary);
	OK(cuCtxGetCurrent(&current));
	CU_ASSERT_PTR_EQUAL(current, first);
	/* One that is destroyed while current elsewhere in the stack is known to be gone. */
	OK(cuCtxPushCurrent(second));
	OK(cuCtxDestroy(first));
	OK(cuCtxPopCurrent(NULL));
	size_t bytes;
	CHECK_RESULT(cuMemGetInfo(&bytes, &bytes), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	/* It can be made current still, and is what it was; what never was one cannot. */
	OK(cuCtxPushCurrent(first));
	CHECK_RESULT(cuMemGetInfo(&bytes, &bytes), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	CHECK_RESULT(cuCtxDestroy(first), CUDA_ERROR_INVALID_CONTEXT);
	CUcontext popped = NULL;
	OK(cuCtxPopCurrent(&popped));
	CU_ASSERT_PTR_EQUAL(popped, first);
	CHECK_RESULT(cuCtxPushCurrent((CUcontext)&bytes), CUDA_ERROR_INVALID_CONTEXT);
	CHECK_RESULT(cuCtxPushCurrent(NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuCtxDestroy(second));
	OK(cuCtxPopCurrent(NULL));
	OK(cuCtxSetCurrent(NULL));
	OK(cuCtxGetCurrent(&current));
	while (current) {
		OK(cuCtxPopCurrent(NULL));
		OK(cuCtxGetCurrent(&current));
	}
	CHECK_RESULT(cuCtxPopCurrent(NULL), CUDA_ERROR_INVALID_CONTEXT);
	CHECK_RESULT(cuMemGetInfo(&bytes, &bytes), CUDA_ERROR_INVALID_CONTEXT);
	CHECK_RESULT(cuCtxDestroy(primary), CUDA_ERROR_INVALID_CONTEXT);
	CHECK_RESULT(cuCtxCreate(&first, NULL, 0x1000, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuCtxCreate(&first, NULL, 0, 5), CUDA_ERROR_INVALID_DEVICE);
}

static void test_primary(void)
{
	CUcontext context, again;
	unsigned flags = 1;
	int active = 1;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxReset(0));
	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	CU_ASSERT_EQUAL(active, 0);
	OK(cuDevicePrimaryCtxSetFlags(0, CU_CTX_SCHED_SPIN));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuDevicePrimaryCtxRetain(&again, 0));
	CU_ASSERT_PTR_EQUAL(context, again);
	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	CU_ASSERT_EQUAL(flags, CU_CTX_SCHED_SPIN);
	CU_ASSERT_EQUAL(active, 1);
	OK(cuDevicePrimaryCtxRelease(0));
	OK(cuCtxSetCurrent(context));
	CUdeviceptr p;
	OK(cuMemAlloc(&p, 4));
	OK(cuDevicePrimaryCtxRelease(0));
	CHECK_RESULT(cuMemAlloc(&p, 4), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	/* It comes back under the same handle, without what it had. */
	OK(cuDevicePrimaryCtxRetain(&again, 0));
	CU_ASSERT_PTR_EQUAL(context, again);
	size_t left, total;
	OK(cuMemGetInfo(&left, &total));
	CU_ASSERT_EQUAL(left, total);
	CHECK_RESULT(cuDevicePrimaryCtxRetain(&again, 7), CUDA_ERROR_INVALID_DEVICE);
}

static void test_limits(void)
{
	test_context();
	size_t value = 0;
	OK(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
	CU_ASSERT_EQUAL(value, 1024);
	OK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
	OK(cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE));
	CU_ASSERT_EQUAL(value, 4096);
	CHECK_RESULT(cuCtxGetLimit(&value, CU_LIMIT_MAX), CUDA_ERROR_INVALID_VALUE);
	int least = 9, greatest = 9;
	OK(cuCtxGetStreamPriorityRange(&least, &greatest));
	CU_ASSERT(greatest < least);
	unsigned version = 0;
	unsigned long long id = 0;
	OK(cuCtxGetApiVersion(NULL, &version));
	OK(cuCtxGetId(NULL, &id));
	CU_ASSERT_NOT_EQUAL(id, 0);
	/*
	 * The same calls give the same addresses in every process: checked against the constant
	 * they begin at.
	 */
	CUdeviceptr p;
	OK(cuMemAlloc(&p, 100));
#if !defined(__SANITIZE_THREAD__)
	CU_ASSERT_EQUAL(p, 0x300000000000);
#endif
}

static void *without_context(void *data)
{
	size_t bytes;
	*(CUresult *)data = cuMemGetInfo(&bytes, &bytes);
	return NULL;
}

static void test_thread(void)
{
	test_context();
	CUresult seen = CUDA_SUCCESS;
	pthread_t thread;
	pthread_create(&thread, NULL, without_context, &seen);
	pthread_join(thread, NULL);
	CU_ASSERT_EQUAL(seen, CUDA_ERROR_INVALID_CONTEXT);
}

int main(void)
{
	static const struct soft_test tests[] = {
		{"stack", test_stack},
		{"primary", test_primary},
		{"limits", test_limits},
		{"threads", test_thread},
	};
	return RUN_TESTS("soft context", tests);
}
