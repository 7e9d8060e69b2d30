/* SPDX-License-Identifier: Apache-2.0 */
/* client/cudart/properties.c: properties of devices. */
#include "files.h"

static void test_properties(void)
{
	struct cudaDeviceProp prop, wish;
	int value = -1, device = -1;
	IS(cudaGetDeviceProperties(&prop, 0), OK);
	IS(prop.major, 12);
	IS(cudaDeviceGetAttribute(&value, cudaDevAttrMaxThreadsPerBlock, 0), OK);
	IS(value, prop.maxThreadsPerBlock);
	IS(cudaGetDeviceProperties(&prop, 1), OK);
	IS(prop.major * 10 + prop.minor, 90);
	YES(prop.totalGlobalMem > 0 && prop.warpSize == 32);
	IS(cudaGetDeviceProperties(&prop, 2), cudaErrorInvalidDevice);
	IS(cudaGetDeviceProperties(NULL, 0), BAD);
	memset(&wish, 0, sizeof wish);
	IS(cudaChooseDevice(&device, &wish), OK);
	IS(device, 0); /* the first of equals */
	wish.major = 9;
	IS(cudaChooseDevice(&device, &wish), OK);
	IS(device, 1); /* exactly that one */
	wish.major = 12;
	IS(cudaChooseDevice(&device, &wish), OK);
	IS(device, 0);
	IS(cudaChooseDevice(NULL, &wish), BAD);
	cudaGetLastError();
}

UNIT_SUITE(properties, {"properties", test_properties})
