/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/context/notify.c: whoever asked is told when an allocation leaves a device over its
 * budget, and nobody else.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "soft_test.h"

struct told {
	_Atomic unsigned count, leaves, hold;
	_Atomic unsigned long long over;
	CUasyncCallbackHandle handle;
	CUresult nested, nested_end;
};

static void notified(CUasyncNotificationInfo *info, void *data, CUasyncCallbackHandle handle)
{
	struct told *told = data;
	CUasyncCallbackHandle other;
	CU_ASSERT_EQUAL(info->type, CU_ASYNC_NOTIFICATION_TYPE_OVER_BUDGET);
	told->over = info->info.overBudget.bytesOverBudget;
	told->handle = handle;
	told->nested = cuDeviceRegisterAsyncNotification(0, notified, data, &other);
	told->nested_end = cuDeviceUnregisterAsyncNotification(0, handle);
	told->count++;
	while (told->hold)
		usleep(1000);
	told->leaves++;
}

static void wait_for(const _Atomic unsigned *count, unsigned wanted)
{
	for (int i = 0; i < 60000 && *count < wanted; i++)
		usleep(1000);
	CU_ASSERT_EQUAL(*count, wanted);
}

static void test_told(void)
{
	struct told first = {0}, second = {0}, elsewhere = {0};
	CUasyncCallbackHandle a, b, c;
	CUdeviceptr within, more, most;
	test_context();
	OK(cuDeviceRegisterAsyncNotification(0, notified, &first, &a));
	OK(cuDeviceRegisterAsyncNotification(0, notified, &second, &b));
	OK(cuDeviceRegisterAsyncNotification(1, notified, &elsewhere, &c));
	CU_ASSERT_TRUE(a && b && c && a != b && b != c);
	OK(cuMemAlloc(&within, 32 << 20));
	OK(cuMemAlloc(&more, 40 << 20));
	wait_for(&first.leaves, 1);
	wait_for(&second.leaves, 1);
	CU_ASSERT_TRUE(first.handle == a && second.handle == b);
	CU_ASSERT_TRUE(first.over >= 8 << 20 && first.over < 72 << 20);
	CU_ASSERT_EQUAL(first.nested, CUDA_ERROR_NOT_PERMITTED);
	CU_ASSERT_EQUAL(first.nested_end, CUDA_ERROR_NOT_PERMITTED);
	/* Memory that is given back brings none; more over the budget does. */
	OK(cuMemFree(within));
	unsigned long long before = second.over;
	OK(cuDeviceUnregisterAsyncNotification(0, a));
	OK(cuMemAlloc(&most, 64 << 20));
	wait_for(&second.leaves, 2);
	CU_ASSERT_EQUAL(second.over, before + (32 << 20));
	CU_ASSERT_EQUAL(first.count, 1);
	CU_ASSERT_EQUAL(elsewhere.count, 0);
	CHECK_RESULT(cuMemAlloc(&within, 512 << 20), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuDeviceUnregisterAsyncNotification(0, b));
	CHECK_RESULT(cuDeviceUnregisterAsyncNotification(0, c), CUDA_ERROR_INVALID_VALUE);
	OK(cuDeviceUnregisterAsyncNotification(1, c));
	CHECK_RESULT(cuDeviceUnregisterAsyncNotification(1, c), CUDA_ERROR_INVALID_VALUE);
	CU_ASSERT_EQUAL(second.count, 2);
	OK(cuMemFree(more));
	OK(cuMemFree(most));
}

static void *let_go(void *data)
{
	usleep(50000);
	((struct told *)data)->hold = 0;
	return NULL;
}

/* What the callback uses may go as soon as it is unregistered. */
static void test_unregister_waits(void)
{
	struct told told = {.hold = 1};
	CUasyncCallbackHandle handle;
	CUdeviceptr memory;
	pthread_t thread;
	OK(cuDeviceRegisterAsyncNotification(0, notified, &told, &handle));
	OK(cuMemAlloc(&memory, 80 << 20));
	wait_for(&told.count, 1);
	CU_ASSERT_EQUAL(told.leaves, 0);
	pthread_create(&thread, NULL, let_go, &told);
	OK(cuDeviceUnregisterAsyncNotification(0, handle));
	CU_ASSERT_EQUAL(told.leaves, 1);
	pthread_join(thread, NULL);
	OK(cuMemFree(memory));
}

static void test_wrong(void)
{
	CUasyncCallbackHandle handle;
	CHECK_RESULT(cuDeviceRegisterAsyncNotification(99, notified, NULL, &handle),
		CUDA_ERROR_INVALID_DEVICE);
	CHECK_RESULT(cuDeviceRegisterAsyncNotification(0, NULL, NULL, &handle),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuDeviceRegisterAsyncNotification(0, notified, NULL, NULL),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuDeviceUnregisterAsyncNotification(99, NULL), CUDA_ERROR_INVALID_DEVICE);
	CHECK_RESULT(cuDeviceUnregisterAsyncNotification(0, NULL), CUDA_ERROR_INVALID_VALUE);
}

int main(void)
{
	setenv("CRICKET_SOFT_DEVICES", "12.0:256M:64M,12.0:256M", 1);
	static const struct soft_test tests[] = {{"told", test_told},
		{"unregister waits", test_unregister_waits}, {"wrong", test_wrong}};
	return RUN_TESTS("softgpu/notify", tests);
}
