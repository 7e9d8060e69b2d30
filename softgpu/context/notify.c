/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Async notifications.  A thread of ours calls the registered callbacks when an allocation raises
 * the process's memory on a device above its budget in CRICKET_SOFT_DEVICES.  The allocation itself
 * succeeds: a budget is no limit.
 */
#include <pthread.h>
#include <stdlib.h>

#include "softgpu/context/notify.h"
#include "base/fork.h"
#include "base/thread.h"
#include "softgpu/context/device.h"

struct registration {
	struct registration *next;
	uintptr_t number; /* the handle */
	const struct ckt_soft_device *device;
	CUasyncCallback call;
	void *data;
	uint64_t over_bytes; /* the latest figure for the callback */
	bool running;
};

static CKT_LOCK(lock);
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct registration *registrations;
static bool have_thread;
static __thread bool in_callback;

static struct registration *to_be_told(void)
{
	struct registration *r = registrations;
	while (r && !r->over_bytes)
		r = r->next;
	return r;
}

static void *tell(void *unused)
{
	in_callback = true;
	pthread_mutex_lock(&lock);
	for (;;) {
		struct registration *r = to_be_told();
		if (!r) {
			pthread_cond_wait(&changed, &lock);
			continue;
		}
		CUasyncNotificationInfo info = {.type = CU_ASYNC_NOTIFICATION_TYPE_OVER_BUDGET};
		info.info.overBudget.bytesOverBudget = r->over_bytes;
		r->over_bytes = 0;
		r->running = true;
		pthread_mutex_unlock(&lock);
		r->call(&info, r->data, (CUasyncCallbackHandle)r->number);
		pthread_mutex_lock(&lock);
		r->running = false;
		pthread_cond_broadcast(&changed);
	}
	return unused;
}

/* Precondition: the lock is held. */
static bool start_thread(void)
{
	if (!have_thread)
		have_thread = ckt_thread_start(NULL, 0, tell, NULL) == 0;
	return have_thread;
}

void ckt_soft_notify_over(const struct ckt_soft_device *device, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	for (struct registration *r = registrations; r; r = r->next)
		if (r->device == device)
			r->over_bytes = bytes;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

/* ---- API */

CUresult CUDAAPI cuDeviceRegisterAsyncNotification(CUdevice device, CUasyncCallback callbackFunc,
	void *userData, CUasyncCallbackHandle *callback)
{
	static uintptr_t numbers;
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	if (in_callback)
		return CUDA_ERROR_NOT_PERMITTED;
	if (!callbackFunc || !callback)
		return CUDA_ERROR_INVALID_VALUE;
	if (!ckt_soft_device(device))
		return CUDA_ERROR_INVALID_DEVICE;
	struct registration *r = calloc(1, sizeof *r);
	if (!r)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&lock);
	bool started = start_thread();
	if (started) {
		*r = (struct registration){.next = registrations,
			.number = ++numbers,
			.device = ckt_soft_device(device),
			.call = callbackFunc,
			.data = userData};
		registrations = r;
		*callback = (CUasyncCallbackHandle)r->number;
	}
	pthread_mutex_unlock(&lock);
	if (!started)
		free(r);
	return started ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult CUDAAPI cuDeviceUnregisterAsyncNotification(
	CUdevice device, CUasyncCallbackHandle callback)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	if (in_callback)
		return CUDA_ERROR_NOT_PERMITTED;
	if (!ckt_soft_device(device))
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	struct registration **link = &registrations;
	while (*link &&
		((*link)->number != (uintptr_t)callback ||
			(*link)->device != ckt_soft_device(device)))
		link = &(*link)->next;
	struct registration *found = *link;
	if (found) {
		*link = found->next;
		/*
		 * The program may free the callback's data when this call returns, so wait for a
		 * running callback.
		 */
		while (found->running)
			pthread_cond_wait(&changed, &lock);
		free(found);
	}
	pthread_mutex_unlock(&lock);
	return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
