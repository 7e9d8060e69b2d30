/* SPDX-License-Identifier: Apache-2.0 */
/* client/cudart/device.c: the device that a thread uses, flags, limits, names on the bus. */
#include <pthread.h>

#include "files.h"

enum { NONE = cudaErrorInvalidDevice };

static void *first_device(void *device)
{
	IS(cudaFree(NULL), OK);
	IS(cudaGetDevice(device), OK);
	return NULL;
}

static void test_choice(void)
{
	int device = 77, count = 0, order[] = {1, 0}, wrong[] = {0, 2};
	pthread_t thread;
	IS(cudaGetDeviceCount(&count), OK);
	IS(count, 2);
	IS(cudaGetDeviceCount(NULL), BAD);
	IS(cudaSetDevice(1), OK);
	IS(cudaGetDevice(&device), OK);
	IS(device, 1);
	IS(cudaSetDevice(2), NONE);
	IS(cudaSetDevice(-1), NONE);
	IS(cudaGetDevice(&device), OK);
	IS(device, 1); /* as it was */
	IS(cudaGetDevice(NULL), BAD);
	IS(cudaSetDevice(0), OK);
	/* Of threads that choose none. */
	IS(cudaSetValidDevices(wrong, 2), NONE);
	IS(cudaSetValidDevices(order, 3), BAD);
	IS(cudaSetValidDevices(order, -1), BAD);
	IS(cudaSetValidDevices(NULL, 1), BAD);
	IS(cudaSetValidDevices(order, 2), OK);
	MUST(pthread_create(&thread, NULL, first_device, &device), 0);
	MUST(pthread_join(thread, NULL), 0);
	IS(device, 1);
	IS(cudaSetValidDevices(NULL, 0), OK);
	MUST(pthread_create(&thread, NULL, first_device, &device), 0);
	MUST(pthread_join(thread, NULL), 0);
	IS(device, 0);
	IS(cudaInitDevice(2, 0, 0), NONE);
	IS(cudaInitDevice(1, 0, 0), OK);
	IS(cudaInitDevice(1, 1u << 30, 0), OK); /* flags that are not said to be any */
	YES(cudaInitDevice(1, 1u << 30, cudaInitDeviceFlagsAreValid) != OK);
	cudaGetLastError();
}

static void test_flags(void)
{
	static const struct {
		unsigned flags;
		cudaError_t error;
	} cases[] = {{cudaDeviceScheduleYield, OK},
		{cudaDeviceScheduleSpin | cudaDeviceMapHost, OK},
		{cudaDeviceScheduleBlockingSync, OK},
		{cudaDeviceScheduleSpin | cudaDeviceScheduleYield, BAD}, {1u << 20, BAD}, {0, OK}};
	unsigned flags = 77;
	for (size_t i = 0; i < COUNT(cases); i++) {
		IS(cudaSetDeviceFlags(cases[i].flags), cases[i].error);
		if (cases[i].error)
			continue;
		IS(cudaGetDeviceFlags(&flags), OK);
		IS(flags, cases[i].flags | cudaDeviceMapHost); /* always on */
	}
	IS(cudaGetDeviceFlags(NULL), BAD);
	cudaGetLastError();
}

static void test_questions(void)
{
	int value = 77, device = 77, least = 77, greatest = 77, version = 0;
	char id[32];
	size_t limit = 0;
	enum cudaSharedMemConfig banks = cudaSharedMemBankSizeDefault;
	for (int i = 0; i < 2; i++) {
		IS(cudaDeviceGetPCIBusId(id, sizeof id, i), OK);
		IS(cudaDeviceGetByPCIBusId(&device, id), OK);
		IS(device, i);
	}
	IS(cudaDeviceGetByPCIBusId(&device, "nonsense"), BAD);
	IS(cudaDeviceGetByPCIBusId(&device, NULL), BAD);
	IS(cudaDeviceGetPCIBusId(id, sizeof id, 2), NONE);
	IS(cudaDeviceGetPCIBusId(id, 3, 0), BAD);
	IS(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 1), OK);
	IS(value, 9);
	IS(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 2), NONE);
	IS(cudaDeviceGetAttribute(NULL, cudaDevAttrComputeCapabilityMajor, 0), BAD);
	IS(cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)100000, 0), BAD);
	IS(cudaDeviceGetStreamPriorityRange(&least, &greatest), OK);
	YES(greatest <= least);
	IS(cudaDeviceGetLimit(&limit, cudaLimitStackSize), OK);
	YES(limit > 0);
	IS(cudaDeviceGetSharedMemConfig(&banks), OK);
	IS(banks, cudaSharedMemBankSizeFourByte);
	IS(cudaDeviceGetSharedMemConfig(NULL), BAD);
	IS(cudaDeviceSetSharedMemConfig(cudaSharedMemBankSizeEightByte), OK);
	IS(cudaDeviceSetSharedMemConfig((enum cudaSharedMemConfig)3), BAD);
	IS(cudaDeviceGetCacheConfig(NULL), BAD);
	IS(cudaRuntimeGetVersion(&version), OK);
	IS(version, CUDART_VERSION);
	IS(cudaRuntimeGetVersion(NULL), BAD);
	IS(cudaDriverGetVersion(NULL), BAD);
	IS(cudaDeviceGetTexture1DLinearMaxWidth(&limit, NULL, 0), BAD);
	IS(cudaDeviceUnregisterAsyncNotification(0, NULL), BAD);
	cudaGetLastError();
}

/* Another device's, so that what other tests hold stays. */
static void test_reset(void)
{
	IS(cudaSetDevice(1), OK);
	uint32_t *memory = files_memory(4, 1);
	IS(cudaDeviceReset(), OK);
	IS(cudaFree(memory), BAD);   /* it went */
	memory = files_memory(4, 2); /* and all is made anew */
	IS(files_word(memory), 0x02020202);
	IS(cudaDeviceSynchronize(), OK);
	IS(cudaFree(memory), OK);
	IS(cudaSetDevice(0), OK);
	cudaGetLastError();
}

UNIT_SUITE(device, {"choice", test_choice}, {"flags", test_flags}, {"questions", test_questions},
	{"reset", test_reset})
