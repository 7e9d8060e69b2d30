/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event sets. The server reports no GPU events, so no event type is supported and a set stays
 * empty. Programs may still create a set and wait with a timeout, so these functions exist. All
 * handles of sets are the same object.
 */
#include <time.h>

#include "client/nvml/device.h"
#include "rpc/nvml.h"

#pragma GCC visibility push(default)

int nvmlEventSetCreate(void **set);
int nvmlEventSetFree(void *set);
int nvmlEventSetWait(void *set, void *data, unsigned timeout_ms);
int nvmlEventSetWait_v2(void *set, void *data, unsigned timeout_ms);
int nvmlDeviceGetSupportedEventTypes(void *device, unsigned long long *types);
int nvmlDeviceRegisterEvents(void *device, unsigned long long types, void *set);

#pragma GCC visibility pop

static char the_set;

static int check(const void *set)
{
	struct ckt_nvml_device *devices;
	unsigned count;
	int version, result = ckt_nvml_devices(&devices, &count, &version);
	return result ? result : set == &the_set ? CKT_NVML_SUCCESS : CKT_NVML_INVALID_ARGUMENT;
}

int nvmlEventSetCreate(void **set)
{
	int result = check(&the_set);
	if (!result && !set)
		result = CKT_NVML_INVALID_ARGUMENT;
	if (!result)
		*set = &the_set;
	return result;
}

int nvmlEventSetFree(void *set)
{
	return check(set);
}

int nvmlEventSetWait_v2(void *set, void *data, unsigned timeout_ms)
{
	struct timespec rest = {
		.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L};
	int result = check(set);
	if (!result && !data)
		result = CKT_NVML_INVALID_ARGUMENT;
	if (result)
		return result;
	while (nanosleep(&rest, &rest))
		;
	return CKT_NVML_TIMEOUT;
}

int nvmlEventSetWait(void *set, void *data, unsigned timeout_ms)
{
	return nvmlEventSetWait_v2(set, data, timeout_ms);
}

int nvmlDeviceGetSupportedEventTypes(void *handle, unsigned long long *types)
{
	struct ckt_nvml_device *device;
	int result = ckt_nvml_device(handle, &device);
	if (!result && !types)
		result = CKT_NVML_INVALID_ARGUMENT;
	if (!result)
		*types = 0;
	return result;
}

int nvmlDeviceRegisterEvents(void *handle, unsigned long long types, void *set)
{
	struct ckt_nvml_device *device;
	int result = ckt_nvml_device(handle, &device);
	if (!result)
		result = check(set);
	return result ? result : types ? CKT_NVML_NOT_SUPPORTED : CKT_NVML_SUCCESS;
}
