/* SPDX-License-Identifier: Apache-2.0 */
/* client/cudart/init.c: the first call, and the device of a thread. */
#include "files.h"

static void test_initialisation(void)
{
	int device = -1, count = 0;
	IS(cudaGetDeviceCount(&count), OK);
	IS(count, 2);
	IS(cudaGetDevice(&device), OK);
	IS(device, 0);
	IS(cudaSetDevice(2), cudaErrorInvalidDevice);
	IS(cudaSetDevice(-1), cudaErrorInvalidDevice);
	IS(cudaGetDevice(&device), OK);
	IS(device, 0); /* the refused ones chose nothing */
	IS(cudaInitDevice(1, 0, 0), OK);
	IS(cudaGetDevice(&device), OK);
	IS(device, 0);
	IS(cudaInitDevice(7, 0, 0), cudaErrorInvalidDevice);
	cudaGetLastError();
}

UNIT_SUITE(init, {"initialisation", test_initialisation})
