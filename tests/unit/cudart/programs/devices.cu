/* SPDX-License-Identifier: Apache-2.0 */
/* Two devices: each thread its own, modules and variables on both, copies between them, reset of one. */
#include "check.h"

#include <cstring>
#include <thread>

__device__ int value = 10;

__global__ void add(int *out, int n)
{
	*out = value + n;
}

static void on_device(int device, int n, int expected)
{
	int *out = NULL, host = 0, current = -1;
	OK(cudaGetDevice(&current));
	CHECK(current == 0);
	OK(cudaSetDevice(device));
	OK(cudaMalloc(&out, sizeof host));
	add<<<1, 1>>>(out, n);
	OK(cudaGetLastError());
	OK(cudaMemcpy(&host, out, sizeof host, cudaMemcpyDeviceToHost));
	CHECK(host == expected);
	cudaPointerAttributes attributes;
	OK(cudaPointerGetAttributes(&attributes, out));
	CHECK(attributes.device == device);
	OK(cudaFree(out));
	OK(cudaGetDevice(&current));
	CHECK(current == device);
}

int main()
{
	int count = 0, changed = 20, can = -1;
	void *first = NULL, *second = NULL;
	char from[64] = "across", to[64] = "";
	cudaStream_t stream;
	OK(cudaGetDeviceCount(&count));
	CHECK(count == 2);
	OK(cudaSetDevice(1));
	OK(cudaGetSymbolAddress(&second, value));
	OK(cudaMemcpyToSymbol(value, &changed, sizeof changed));
	OK(cudaSetDevice(0));
	OK(cudaGetSymbolAddress(&first, value));
	CHECK(first != second);
	std::thread one(on_device, 0, 1, 11), two(on_device, 1, 2, 22), three(on_device, 1, 3, 23);
	one.join();
	two.join();
	three.join();
	OK(cudaMalloc(&first, sizeof from));
	OK(cudaSetDevice(1));
	OK(cudaMalloc(&second, sizeof from));
	OK(cudaMemcpy(second, from, sizeof from, cudaMemcpyHostToDevice));
	OK(cudaMemcpyPeer(first, 0, second, 1, sizeof from));
	OK(cudaMemcpy(to, first, sizeof to, cudaMemcpyDefault));
	CHECK(strcmp(to, "across") == 0);
	OK(cudaDeviceCanAccessPeer(&can, 0, 1));
	if (can) {
		OK(cudaDeviceEnablePeerAccess(0, 0));
		RESULT(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessAlreadyEnabled);
		OK(cudaDeviceDisablePeerAccess(0));
		cudaGetLastError();
	}
	RESULT(cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessUnsupported);
	cudaGetLastError();
	OK(cudaStreamCreate(&stream));
	OK(cudaSetDevice(0));
	OK(cudaStreamGetDevice(stream, &count));
	CHECK(count == 1);
	/* Device 1 starts anew, device 0 does not notice. */
	OK(cudaSetDevice(1));
	OK(cudaDeviceReset());
	int host = 0, *out = NULL;
	OK(cudaMalloc(&out, sizeof host));
	add<<<1, 1>>>(out, 5);
	OK(cudaMemcpy(&host, out, sizeof host, cudaMemcpyDeviceToHost));
	CHECK(host == 15);
	OK(cudaSetDevice(0));
	OK(cudaMemcpy(to, first, sizeof to, cudaMemcpyDeviceToHost));
	CHECK(strcmp(to, "across") == 0);
	return failed;
}
