/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two devices of one machine that reach each other, through the runtime and through the driver.
 * Recorded on a machine with several GPUs; where there is one, every case says that it needs two.
 */
#include "runtime.h"

static void two(void)
{
	int count = 0, can = 0;
	QUIET(cudaGetDeviceCount, &count);
	if (count > 1)
		QUIET(cudaDeviceCanAccessPeer, &can, 0, 1);
	if (!can) {
		REMARK("needs two devices that reach each other");
		api_end_case();
	}
}

static char *memory_of(int device, size_t size)
{
	char *p;
	QUIET(cudaSetDevice, device);
	p = memory(size);
	QUIET(cudaDeviceSynchronize);
	return p;
}

CASE(attributes)
{
	int value = -7;
	unsigned capabilities[2] = {77, 77};
	enum cudaAtomicOperation operations[2] = {
		cudaAtomicOperationIntegerAdd, cudaAtomicOperationExchange};
	two();
	CALL(cudaDeviceCanAccessPeer, &value, 0, 1);
	NUMBER("can", value);
	CALL(cudaDeviceCanAccessPeer, &value, 1, 0);
	NUMBER("can", value);
	CALL(cudaDeviceGetP2PAttribute, &value, cudaDevP2PAttrAccessSupported, 0, 1);
	NUMBER("access", value);
	CALL(cudaDeviceGetP2PAttribute, &value, cudaDevP2PAttrCudaArrayAccessSupported, 0, 1);
	CALL(cudaDeviceGetP2PAttribute, &value, cudaDevP2PAttrPerformanceRank, 0, 1);
	CALL(cudaDeviceGetP2PAttribute, &value, cudaDevP2PAttrNativeAtomicSupported, 0, 1);
	CALL(cudaDeviceGetP2PAtomicCapabilities, capabilities, operations, 2, 0, 1);
	YES("written", capabilities[0] != 77 && capabilities[1] != 77);
}

CASE(attributes_wrong)
{
	int value = -7;
	unsigned capabilities[1] = {77};
	enum cudaAtomicOperation operations[1] = {cudaAtomicOperationIntegerAdd};
	two();
	CALL(cudaDeviceGetP2PAttribute, &value, (enum cudaDeviceP2PAttr)99, 0, 1);
	CALL(cudaDeviceGetP2PAttribute, NULL, cudaDevP2PAttrAccessSupported, 0, 1);
	CALL(cudaDeviceGetP2PAttribute, &value, cudaDevP2PAttrAccessSupported, 1, 1);
	CALL(cudaDeviceGetP2PAtomicCapabilities, NULL, operations, 1, 0, 1);
	CALL(cudaDeviceGetP2PAtomicCapabilities, capabilities, operations, 0, 0, 1);
	CALL(cudaGetLastError);
}

CASE(access)
{
	two();
	CALL(cudaSetDevice, 0);
	CALL(cudaDeviceEnablePeerAccess, 1, 0);
	CALL(cudaDeviceEnablePeerAccess, 1, 0);
	CALL(cudaGetLastError);
	CALL(cudaDeviceDisablePeerAccess, 1);
	CALL(cudaDeviceDisablePeerAccess, 1);
	CALL(cudaGetLastError);
	CALL(cudaDeviceEnablePeerAccess, 1, 0);
	CALL(cudaSetDevice, 1);
	CALL(cudaDeviceDisablePeerAccess, 0);
	CALL(cudaDeviceEnablePeerAccess, 0, 0);
	CALL(cudaDeviceDisablePeerAccess, 0);
}

CASE(access_wrong)
{
	two();
	CALL(cudaSetDevice, 0);
	CALL(cudaDeviceEnablePeerAccess, 0, 0);
	CALL(cudaDeviceEnablePeerAccess, 1, 1);
	CALL(cudaDeviceEnablePeerAccess, 999, 0);
	CALL(cudaDeviceDisablePeerAccess, 0);
	CALL(cudaDeviceDisablePeerAccess, 999);
	CALL(cudaGetLastError);
}

CASE(copies)
{
	uint8_t out[32];
	char *p, *q;
	two();
	p = memory_of(0, 64);
	q = memory_of(1, 64);
	numbers(out, sizeof(out), 1);
	CALL(cudaMemcpy, p, out, 32, cudaMemcpyHostToDevice);
	CALL(cudaMemcpyPeer, q, 1, p, 0, 16);
	CONTENT("bytes", q, 20);
	CALL(cudaMemcpy, q + 4, p, 16, cudaMemcpyDeviceToDevice);
	CONTENT("bytes", q, 24);
	CALL(cudaMemcpyPeerAsync, p + 8, 0, q, 1, 8, NULL);
	QUIET(cudaDeviceSynchronize);
	CALL(cudaMemcpy, out, p, 20, cudaMemcpyDefault);
	BYTES("bytes", out, 20);
	CALL(cudaDeviceEnablePeerAccess, 0, 0);
	CALL(cudaMemcpy, q, p, 4, cudaMemcpyDefault);
	CONTENT("bytes", q, 24);
	CALL(cudaMemset, p, 3, 8);
	CALL(cudaSetDevice, 0);
	CONTENT("bytes", p, 12);
}

CASE(pointers)
{
	struct cudaPointerAttributes a;
	char *p, *q;
	two();
	p = memory_of(0, 64);
	q = memory_of(1, 64);
	CALL(cudaPointerGetAttributes, &a, p);
	NUMBER("device", a.device);
	CALL(cudaPointerGetAttributes, &a, q);
	NUMBER("device", a.device);
	CALL(cudaSetDevice, 0);
	CALL(cudaFree, q);
	CALL(cudaPointerGetAttributes, &a, q);
	NUMBER("type", a.type);
}

CASE(streams)
{
	cudaStream_t first, second;
	cudaEvent_t event = NULL;
	char *p, *q;
	int device = -7;
	two();
	p = memory_of(0, 64);
	first = new_stream();
	QUIET(cudaEventCreate, &event);
	q = memory_of(1, 64);
	second = new_stream();
	CALL(cudaStreamGetDevice, first, &device);
	NUMBER("device", device);
	CALL(cudaStreamGetDevice, second, &device);
	NUMBER("device", device);
	CALL(cudaMemsetAsync, p, 1, 8, first);
	CALL(cudaEventRecord, event, second);
	CALL(cudaEventRecord, event, first);
	CALL(cudaStreamWaitEvent, second, event, 0);
	CALL(cudaMemcpyPeerAsync, q, 1, p, 0, 12, second);
	CALL(cudaStreamSynchronize, second);
	CONTENT("bytes", q, 16);
	CALL(cudaEventQuery, event);
	CALL(cudaStreamQuery, first);
	CALL(cudaGetLastError);
}

/* Work on one device's memory in a stream of the other. */
CASE(foreign_work)
{
	cudaStream_t first;
	char *q;
	two();
	QUIET(cudaSetDevice, 0);
	first = new_stream();
	q = memory_of(1, 64);
	CALL(cudaMemsetAsync, q, 1, 8, first);
	CALL(cudaStreamSynchronize, first);
	CONTENT("bytes", q, 12);
	CALL(cudaGetLastError);
}

static CUcontext context_of(int device)
{
	CUcontext context = NULL;
	QUIET(cuDevicePrimaryCtxRetain, &context, device);
	return context;
}

CASE(driver)
{
	CUcontext first, second;
	int value = -7;
	unsigned capabilities[2] = {77, 77};
	CUatomicOperation operations[2] = {
		CU_ATOMIC_OPERATION_INTEGER_ADD, CU_ATOMIC_OPERATION_EXCHANGE};
	two();
	first = context_of(0);
	second = context_of(1);
	CALL(cuDeviceCanAccessPeer, &value, 0, 1);
	NUMBER("can", value);
	CALL(cuDeviceGetP2PAttribute, &value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1);
	NUMBER("access", value);
	CALL(cuDeviceGetP2PAtomicCapabilities, capabilities, operations, 2, 0, 1);
	YES("written", capabilities[0] != 77 && capabilities[1] != 77);
	CALL(cuCtxSetCurrent, first);
	CALL(cuCtxEnablePeerAccess, second, 0);
	CALL(cuCtxEnablePeerAccess, second, 0);
	CALL(cuCtxDisablePeerAccess, second);
	CALL(cuCtxDisablePeerAccess, second);
	CALL(cuCtxEnablePeerAccess, second, 1);
	CALL(cuCtxEnablePeerAccess, first, 0);
}

CASE(valid)
{
	int list[2] = {1, 0}, device = -7;
	void *p = NULL;
	two();
	CALL(cudaSetValidDevices, list, 2);
	CALL(cudaMalloc, &p, 16);
	CALL(cudaGetDevice, &device);
	NUMBER("device", device);
	CALL(cudaSetDevice, 0);
	CALL(cudaGetDevice, &device);
	NUMBER("device", device);
}

CASE(by_bus)
{
	char first[32], second[32];
	int device = -7;
	two();
	CALL(cudaDeviceGetPCIBusId, first, sizeof(first), 0);
	CALL(cudaDeviceGetPCIBusId, second, sizeof(second), 1);
	YES("another", strcmp(first, second));
	CALL(cudaDeviceGetByPCIBusId, &device, second);
	NUMBER("device", device);
}
