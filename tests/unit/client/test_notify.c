/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/context/notify.c: callbacks of the program run for what the worker's driver tells,
 * once each, until they are unregistered.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "relay.h"

struct told {
	_Atomic unsigned count, leaves, hold;
	_Atomic unsigned long long over;
	CUasyncCallbackHandle handle;
	CUresult nested, nested_end, other;
};

static void notified(CUasyncNotificationInfo *info, void *data, CUasyncCallbackHandle handle)
{
	struct told *told = data;
	CUasyncCallbackHandle none;
	size_t left, total;
	told->over = info->type == CU_ASYNC_NOTIFICATION_TYPE_OVER_BUDGET
		? info->info.overBudget.bytesOverBudget
		: 0;
	told->handle = handle;
	told->nested = cuDeviceRegisterAsyncNotification(0, notified, data, &none);
	told->nested_end = cuDeviceUnregisterAsyncNotification(0, handle);
	/* All else may be called. */
	told->other = cuCtxSetCurrent(primary);
	if (!told->other)
		told->other = cuMemGetInfo(&left, &total);
	told->count++;
	while (told->hold)
		usleep(1000);
	told->leaves++;
}

static bool reaches(const _Atomic unsigned *count, unsigned wanted)
{
	for (int i = 0; i < 60000 && *count < wanted; i++)
		usleep(1000);
	return *count >= wanted;
}

/* More than there was by so much that the worker must ask its driver. */
static CUdeviceptr allocate(size_t size)
{
	CUdeviceptr memory = 0;
	IS(cuMemAlloc(&memory, size), CUDA_SUCCESS);
	return memory;
}

static void test_told(void)
{
	struct told first = {0}, second = {0};
	CUasyncCallbackHandle a, b;
	COST(cuDeviceRegisterAsyncNotification(0, notified, &first, &a), CUDA_SUCCESS, 1, 0);
	IS(cuDeviceRegisterAsyncNotification(0, notified, &second, &b), CUDA_SUCCESS);
	YES(a != b);
	CUdeviceptr most = allocate(1100 << 20);
	/* While the program makes no call at all. */
	YES(reaches(&first.leaves, 1));
	YES(reaches(&second.leaves, 1));
	YES(first.handle == a && second.handle == b);
	YES(first.over >= 76 << 20);
	IS(first.nested, CUDA_ERROR_NOT_PERMITTED);
	IS(first.nested_end, CUDA_ERROR_NOT_PERMITTED);
	IS(first.other, CUDA_SUCCESS);
	/* What was told is told again over a new connection, and called once. */
	unsigned before = second.count;
	relay_break(false);
	relay_mark();
	IS(second.count, before);
	IS(cuDeviceUnregisterAsyncNotification(0, a), CUDA_SUCCESS);
	unsigned first_count = first.count;
	CUdeviceptr more = allocate(128 << 20);
	YES(reaches(&second.leaves, before + 1));
	IS(first.count, first_count);
	LOCAL(cuDeviceUnregisterAsyncNotification(0, a), BAD);
	LOCAL(cuDeviceUnregisterAsyncNotification(1, b), BAD);
	COST(cuDeviceUnregisterAsyncNotification(0, b), CUDA_SUCCESS, 1, 0);
	IS(cuMemFree(most), CUDA_SUCCESS);
	IS(cuMemFree(more), CUDA_SUCCESS);
}

static void *let_go(void *data)
{
	usleep(50000);
	((struct told *)data)->hold = 0;
	return NULL;
}

static void test_unregister_waits(void)
{
	struct told told = {.hold = 1};
	CUasyncCallbackHandle handle;
	pthread_t thread;
	IS(cuDeviceRegisterAsyncNotification(0, notified, &told, &handle), CUDA_SUCCESS);
	CUdeviceptr memory = allocate(1300 << 20);
	YES(reaches(&told.count, 1));
	IS(told.leaves, 0);
	pthread_create(&thread, NULL, let_go, &told);
	IS(cuDeviceUnregisterAsyncNotification(0, handle), CUDA_SUCCESS);
	YES(told.leaves >= 1);
	IS(told.leaves, told.count);
	pthread_join(thread, NULL);
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

/* The child has no session, and its parent's goes on. */
static void test_fork(void)
{
	struct told told = {0};
	CUasyncCallbackHandle handle;
	int status = -1;
	IS(cuDeviceRegisterAsyncNotification(0, notified, &told, &handle), CUDA_SUCCESS);
	pid_t child = fork();
	if (child == 0)
		_exit(cuDeviceUnregisterAsyncNotification(0, handle) == CUDA_SUCCESS);
	waitpid(child, &status, 0);
	IS(status, 0);
	CUdeviceptr memory = allocate(1500 << 20);
	YES(reaches(&told.leaves, 1));
	IS(cuDeviceUnregisterAsyncNotification(0, handle), CUDA_SUCCESS);
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

static void test_wrong(void)
{
	CUasyncCallbackHandle handle;
	LOCAL(cuDeviceRegisterAsyncNotification(99, notified, NULL, &handle),
		CUDA_ERROR_INVALID_DEVICE);
	LOCAL(cuDeviceRegisterAsyncNotification(0, NULL, NULL, &handle), BAD);
	LOCAL(cuDeviceRegisterAsyncNotification(0, notified, NULL, NULL), BAD);
	LOCAL(cuDeviceUnregisterAsyncNotification(99, NULL), CUDA_ERROR_INVALID_DEVICE);
	LOCAL(cuDeviceUnregisterAsyncNotification(0, NULL), BAD);
}

UNIT_SUITE(notify, {"told", test_told}, {"unregister waits", test_unregister_waits},
	{"fork", test_fork}, {"wrong", test_wrong})
