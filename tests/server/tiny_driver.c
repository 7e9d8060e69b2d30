/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A CUDA driver with one device and nothing else: what cricket-server asks of a driver when it
 * starts.
 */
#include <stddef.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int cuInit(unsigned flags);
EXPORT int cuDeviceGetCount(int *count);
EXPORT int cuDeviceGet(int *device, int ordinal);
EXPORT int cuDeviceGetName(char *name, int length, int device);
EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device);

int cuInit(unsigned flags)
{
	return flags ? 1 : 0;
}

int cuDeviceGetCount(int *count)
{
	*count = 2;
	return 0;
}

int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return 0;
}

int cuDeviceGetName(char *name, int length, int device)
{
	strncpy(name, device ? "Tiny 1" : "Tiny 0", (size_t)length);
	return 0;
}

int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	*bytes = (size_t)(device + 1) << 30;
	return 0;
}
