/* SPDX-License-Identifier: Apache-2.0 */
/* client/cudart/peer.c: access between devices. */
#include "files.h"

static void test_peers(void)
{
	int can = -1;
	static const struct {
		int a, b;
		cudaError_t error;
	} cases[] = {{0, 1, OK}, {1, 0, OK}, {0, 0, OK}, {0, 2, cudaErrorInvalidDevice},
		{-1, 0, cudaErrorInvalidDevice}};
	for (size_t i = 0; i < COUNT(cases); i++)
		IS(cudaDeviceCanAccessPeer(&can, cases[i].a, cases[i].b), cases[i].error);
	IS(cudaDeviceCanAccessPeer(&can, 0, 0), OK);
	IS(can, 0); /* a device is no peer of itself */
	IS(cudaDeviceCanAccessPeer(NULL, 0, 1), BAD);
	IS(cudaDeviceEnablePeerAccess(1, 1), BAD);
	IS(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessUnsupported); /* itself */
	IS(cudaDeviceEnablePeerAccess(2, 0), cudaErrorInvalidDevice);
	IS(cudaDeviceDisablePeerAccess(0), cudaErrorPeerAccessNotEnabled);
	IS(cudaDeviceDisablePeerAccess(1), cudaErrorPeerAccessNotEnabled);
	IS(cudaDeviceDisablePeerAccess(5), cudaErrorInvalidDevice);
	cudaGetLastError();
}

UNIT_SUITE(peer, {"peers", test_peers})
