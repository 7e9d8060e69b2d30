/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/context/device.c: what there is was told with the hello: nothing about devices
 * travels, but what concerns two of them.
 */
#include <stdio.h>
#include <string.h>

#include "relay.h"

enum { NONE = CUDA_ERROR_INVALID_DEVICE };

static void test_init(void)
{
	int version = 0, count = 0;
	CUdevice device = 77;
	LOCAL(cuInit(0), CUDA_SUCCESS); /* again */
	LOCAL(cuInit(1), BAD);
	LOCAL(cuDriverGetVersion(&version), CUDA_SUCCESS);
	YES(version >= 12000 && version <= CUDA_VERSION);
	LOCAL(cuDriverGetVersion(NULL), BAD);
	LOCAL(cuDeviceGetCount(&count), CUDA_SUCCESS);
	IS(count, 2);
	LOCAL(cuDeviceGetCount(NULL), BAD);
	LOCAL(cuDeviceGet(&device, 1), CUDA_SUCCESS);
	IS(device, 1);
	static const int wrong[] = {-1, 2, 1 << 30};
	for (size_t i = 0; i < COUNT(wrong); i++)
		LOCAL(cuDeviceGet(&device, wrong[i]), NONE);
	IS(device, 1); /* left alone */
	LOCAL(cuDeviceGet(NULL, 0), BAD);
}

static void test_properties(void)
{
	char name[64] = "", short_name[4];
	size_t bytes = 0, other = 0;
	CUuuid uuids[2];
	int value = 77, major = 0, minor = 77;
	CUdevprop prop;
	LOCAL(cuDeviceGetName(name, sizeof name, 0), CUDA_SUCCESS);
	IS(cuDeviceGetName(short_name, sizeof short_name, 0), CUDA_SUCCESS);
	IS(strlen(short_name), 3); /* what there is room for */
	IS(strncmp(name, short_name, 3), 0);
	LOCAL(cuDeviceGetName(name, 0, 0), BAD);
	LOCAL(cuDeviceGetName(NULL, 9, 0), BAD);
	LOCAL(cuDeviceGetName(name, 9, 2), NONE);
	LOCAL(cuDeviceTotalMem(&bytes, 0), CUDA_SUCCESS);
	LOCAL(cuDeviceTotalMem(&other, 1), CUDA_SUCCESS);
	YES(bytes > other && other > 0);
	LOCAL(cuDeviceTotalMem(NULL, 0), BAD);
	LOCAL(cuDeviceGetUuid(&uuids[0], 0), CUDA_SUCCESS);
	LOCAL(cuDeviceGetUuid(&uuids[1], 1), CUDA_SUCCESS);
	YES(memcmp(&uuids[0], &uuids[1], sizeof uuids[0]) != 0);
	LOCAL(cuDeviceComputeCapability(&major, &minor, 0), CUDA_SUCCESS);
	IS(major * 10 + minor, 120);
	LOCAL(cuDeviceComputeCapability(&major, NULL, 0), BAD);
	LOCAL(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0), CUDA_SUCCESS);
	IS(value, 32);
	static const int wrong[] = {0, -1, 100000};
	for (size_t i = 0; i < COUNT(wrong); i++)
		LOCAL(cuDeviceGetAttribute(&value, (CUdevice_attribute)wrong[i], 0), BAD);
	LOCAL(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, -1), NONE);
	LOCAL(cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0), BAD);
	LOCAL(cuDeviceGetProperties(&prop, 0), CUDA_SUCCESS);
	IS(prop.SIMDWidth, 32);
	IS(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 0), CUDA_SUCCESS);
	IS(prop.maxThreadsDim[2], value);
	LOCAL(cuDeviceGetProperties(NULL, 0), BAD);
	LOCAL(cuDeviceGetProperties(&prop, 9), NONE);
}

static void test_bus(void)
{
	char id[32], less[32];
	CUdevice device = 77;
	unsigned parts[4];
	for (int i = 0; i < 2; i++) {
		LOCAL(cuDeviceGetPCIBusId(id, sizeof id, i), CUDA_SUCCESS);
		LOCAL(cuDeviceGetByPCIBusId(&device, id), CUDA_SUCCESS);
		IS(device, i);
	}
	/*
	 * The function can be left out where it is 0, and so can the domain, which here is another.
	 */
	MUST(sscanf(id, "%x:%x:%x.%x", &parts[0], &parts[1], &parts[2], &parts[3]), 4);
	IS(parts[3], 0);
	snprintf(less, sizeof less, "%x:%x:%x", parts[0], parts[1], parts[2]);
	LOCAL(cuDeviceGetByPCIBusId(&device, less), CUDA_SUCCESS);
	IS(device, 1);
	snprintf(less, sizeof less, "%x:%x.0", parts[1], parts[2]);
	LOCAL(cuDeviceGetByPCIBusId(&device, less), parts[0] ? NONE : CUDA_SUCCESS);
	static const char *const wrong[] = {"", "nonsense", "1", "0:0:0.0 ", "0:0:0:0:0"};
	for (size_t i = 0; i < COUNT(wrong); i++)
		LOCAL(cuDeviceGetByPCIBusId(&device, wrong[i]), BAD);
	LOCAL(cuDeviceGetByPCIBusId(&device, "fefe:fe:1e.7"), NONE);
	LOCAL(cuDeviceGetByPCIBusId(NULL, id), BAD);
	/* without room for its end */
	LOCAL(cuDeviceGetPCIBusId(id, (int)strlen(id), 0), BAD);
	LOCAL(cuDeviceGetPCIBusId(NULL, 32, 0), BAD);
}

static void test_pairs(void)
{
	int can = 77, value = 77;
	static const struct {
		int a, b, result;
	} cases[] = {{0, 1, CUDA_SUCCESS}, {1, 0, CUDA_SUCCESS}, {0, 2, NONE}, {-1, 0, NONE}};
	for (size_t i = 0; i < COUNT(cases); i++)
		LOCAL(cuDeviceCanAccessPeer(&can, cases[i].a, cases[i].b), cases[i].result);
	LOCAL(cuDeviceCanAccessPeer(&can, 1, 1), CUDA_SUCCESS);
	IS(can, 0);
	LOCAL(cuDeviceCanAccessPeer(NULL, 0, 1), BAD);
	COST(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1),
		CUDA_SUCCESS, 1, 0);
	IS(cuDeviceCanAccessPeer(&can, 0, 1), CUDA_SUCCESS);
	IS(value, can);
	LOCAL(cuDeviceGetP2PAttribute(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 1, 1),
		NONE);
	LOCAL(cuDeviceGetP2PAttribute(NULL, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1), BAD);
}

UNIT_SUITE(device, {"init", test_init}, {"properties", test_properties}, {"bus", test_bus},
	{"pairs", test_pairs})
