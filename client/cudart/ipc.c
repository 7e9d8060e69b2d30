/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing with other processes, and the driver's log.  Handles and callbacks are the driver's. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/fork.h"
#include "client/cudart/api.h"

_Static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle), "one layout");
_Static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle), "one layout");

/*
 * A driver may write to the handle and then return an error.  The runtime does not pass such a
 * handle on.
 */
CKT_RT_API cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
	CUipcEventHandle driver;
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(handle, cudaErrorInvalidValue);
	CUresult result = cuIpcGetEventHandle(&driver, event);
	if (result == CUDA_SUCCESS)
		memcpy(handle, &driver, sizeof driver);
	return ckt_rt_cu(result);
}

CKT_RT_API cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
	CUipcEventHandle driver;
	memcpy(&driver, &handle, sizeof driver);
	CKT_RT_CALL(cuIpcOpenEventHandle(event, driver));
}

CKT_RT_API cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *devPtr)
{
	CUipcMemHandle driver;
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(handle, cudaErrorInvalidValue);
	CUresult result = cuIpcGetMemHandle(&driver, ckt_rt_address(devPtr));
	if (result == CUDA_SUCCESS)
		memcpy(handle, &driver, sizeof driver);
	return ckt_rt_cu(result);
}

/* Opened memory: the driver opens it once in a context, but the runtime may open it many times. */
struct opened {
	struct opened *next;
	CUipcMemHandle handle;
	int device;
	CUdeviceptr address;
	unsigned count;
};

static CKT_LOCK(opened_lock);
static struct opened *opened;

/* Precondition: opened_lock held. */
static CUresult open_memory(const CUipcMemHandle *handle, unsigned flags, CUdeviceptr *ret_address)
{
	CUresult result = cuIpcOpenMemHandle(ret_address, *handle, flags);
	struct opened *entry;
	if (result == CUDA_ERROR_ALREADY_MAPPED) {
		for (entry = opened; entry; entry = entry->next)
			if (entry->device == ckt_rt_thread.device &&
				memcmp(&entry->handle, handle, sizeof *handle) == 0) {
				entry->count++;
				*ret_address = entry->address;
				return CUDA_SUCCESS;
			}
		return result;
	}
	entry = result ? NULL : malloc(sizeof *entry);
	if (entry) {
		*entry = (struct opened){.next = opened,
			.handle = *handle,
			.device = ckt_rt_thread.device,
			.address = *ret_address,
			.count = 1};
		opened = entry;
	}
	return result;
}

CKT_RT_API cudaError_t cudaIpcOpenMemHandle(
	void **devPtr, cudaIpcMemHandle_t handle, unsigned int flags)
{
	CUipcMemHandle driver;
	CUdeviceptr address;
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(devPtr, cudaErrorInvalidValue);
	memcpy(&driver, &handle, sizeof driver);
	pthread_mutex_lock(&opened_lock);
	CUresult result = open_memory(&driver, flags, &address);
	pthread_mutex_unlock(&opened_lock);
	if (result == CUDA_SUCCESS)
		*devPtr = (void *)(uintptr_t)address;
	return ckt_rt_cu(result);
}

CKT_RT_API cudaError_t cudaIpcCloseMemHandle(void *devPtr)
{
	CUdeviceptr address = ckt_rt_address(devPtr);
	CUresult result = CUDA_SUCCESS;
	bool last = true;
	CKT_RT_ENTER();
	pthread_mutex_lock(&opened_lock);
	for (struct opened **place = &opened; *place; place = &(*place)->next) {
		struct opened *entry = *place;
		if (entry->address != address)
			continue;
		last = --entry->count == 0;
		if (last) {
			*place = entry->next;
			free(entry);
		}
		break;
	}
	if (last)
		result = cuIpcCloseMemHandle(address);
	pthread_mutex_unlock(&opened_lock);
	return ckt_rt_cu(result);
}

CKT_RT_API cudaError_t cudaLogsRegisterCallback(
	cudaLogsCallback_t callbackFunc, void *userData, cudaLogsCallbackHandle *callback_out)
{
	CKT_RT_DRIVER();
	return ckt_rt_cu(cuLogsRegisterCallback(
		(CUlogsCallback)(void (*)(void))callbackFunc, userData, callback_out));
}

CKT_RT_API cudaError_t cudaLogsUnregisterCallback(cudaLogsCallbackHandle callback)
{
	CKT_RT_DRIVER();
	return ckt_rt_cu(cuLogsUnregisterCallback(callback));
}

CKT_RT_API cudaError_t cudaLogsCurrent(cudaLogIterator *iterator_out, unsigned int flags)
{
	CKT_RT_DRIVER();
	return ckt_rt_cu(cuLogsCurrent(iterator_out, flags));
}

CKT_RT_API cudaError_t cudaLogsDumpToFile(
	cudaLogIterator *iterator, const char *pathToFile, unsigned int flags)
{
	CKT_RT_DRIVER();
	return ckt_rt_cu(cuLogsDumpToFile(iterator, pathToFile, flags));
}

CKT_RT_API cudaError_t cudaLogsDumpToMemory(
	cudaLogIterator *iterator, char *buffer, size_t *size, unsigned int flags)
{
	CKT_RT_DRIVER();
	return ckt_rt_cu(cuLogsDumpToMemory(iterator, buffer, size, flags));
}
