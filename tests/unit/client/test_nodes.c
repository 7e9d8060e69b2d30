/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/conn/nodes.c: devices of two servers as one list, in the order of CUDA_VISIBLE_DEVICES,
 * with numbers of their own at each.
 */
#include "pair.h"

static void test_devices(void)
{
	static const size_t bytes[DEVICES] = {1ull << 30, 2ull << 30, 2ull << 30};
	int count = 0, value;
	CUdevice device;
	IS(cuDeviceGetCount(&count), CUDA_SUCCESS);
	MUST(count, DEVICES);
	for (int d = 0; d < DEVICES; d++) {
		size_t total = 0, left = 0;
		IS(cuDeviceTotalMem(&total, d), CUDA_SUCCESS);
		IS(total, bytes[d]);
		use(d);
		IS(cuCtxGetDevice(&device), CUDA_SUCCESS);
		IS(device, d);
		/* The server looks for it under its own number. */
		IS(cuMemGetInfo(&left, &total), CUDA_SUCCESS);
		IS(total, bytes[d]);
		value = 7;
		IS(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, d),
			CUDA_SUCCESS);
		IS(value, 0);
	}
	use(0);
	IS(cuDeviceGet(&device, DEVICES), CUDA_ERROR_INVALID_DEVICE);
	IS(cuDevicePrimaryCtxReset(DEVICES), CUDA_ERROR_INVALID_DEVICE);
}

/* 0 and 2 are at one server. */
static void test_peers(void)
{
	for (int d = 0; d < DEVICES; d++) {
		for (int peer = 0; peer < DEVICES; peer++) {
			bool together = d != peer && d != 1 && peer != 1;
			int can = 7, value = 7;
			IS(cuDeviceCanAccessPeer(&can, d, peer), CUDA_SUCCESS);
			IS(can, together);
			if (d == peer)
				continue;
			IS(cuDeviceGetP2PAttribute(
				   &value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, d, peer),
				CUDA_SUCCESS);
			IS(value, together);
			IS(cuDeviceGetP2PAttribute(&value, (CUdevice_P2PAttribute)77, d, peer),
				CUDA_ERROR_INVALID_VALUE);
			use(d);
			IS(cuCtxEnablePeerAccess(contexts[peer], 0),
				together ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
			IS(cuCtxDisablePeerAccess(contexts[peer]),
				together ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
		}
	}
	use(0);
}

/* Addresses of two servers are never the same, and each tells its device. */
static void test_addresses(void)
{
	enum { EACH = 20, SIZE = 3 << 20 };
	CUdeviceptr memory[DEVICES][EACH];
	for (int d = 0; d < DEVICES; d++) {
		use(d);
		for (int i = 0; i < EACH; i++) {
			MUST(cuMemAlloc(&memory[d][i], SIZE), CUDA_SUCCESS);
			IS(cuMemsetD32(memory[d][i], (uint32_t)(d * 1000 + i), 1024), CUDA_SUCCESS);
		}
	}
	unsigned overlaps = 0, wrong = 0;
	for (int a = 0; a < DEVICES * EACH; a++)
		for (int b = 0; b < a; b++) {
			CUdeviceptr x = memory[a / EACH][a % EACH], y = memory[b / EACH][b % EACH];
			overlaps += x < y + SIZE && y < x + SIZE;
		}
	IS(overlaps, 0);
	use(0);
	for (int d = 0; d < DEVICES; d++)
		for (int i = 0; i < EACH; i++) {
			int ordinal = 7;
			CUcontext of = NULL;
			wrong += cuPointerGetAttribute(&ordinal,
					 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, memory[d][i]) ||
				ordinal != d;
			wrong += cuPointerGetAttribute(
					 &of, CU_POINTER_ATTRIBUTE_CONTEXT, memory[d][i]) ||
				of != contexts[d];
			wrong += words_not(memory[d][i], 4096, (uint32_t)(d * 1000 + i));
			wrong += cuMemFree(memory[d][i]) != CUDA_SUCCESS;
			wrong += cuMemFree(memory[d][i]) != CUDA_ERROR_INVALID_VALUE;
		}
	IS(wrong, 0);
}

UNIT_SUITE(nodes, {"devices", test_devices}, {"peers", test_peers}, {"addresses", test_addresses})
