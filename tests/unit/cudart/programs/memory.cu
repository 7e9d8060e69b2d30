/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation, pointers, filling and copying of every kind. */
#include "check.h"

#include <cstdlib>
#include <cstring>

__global__ void add_one(int *p, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		p[i]++;
}

static void linear()
{
	enum { N = 1000 };
	int *device = NULL, *other = NULL, host[N], back[N];
	OK(cudaMalloc(&device, sizeof host));
	OK(cudaMalloc(&other, sizeof host));
	for (int i = 0; i < N; i++)
		host[i] = i * 3;
	OK(cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice));
	add_one<<<4, 256>>>(device, N);
	OK(cudaGetLastError());
	OK(cudaMemcpy(other, device, sizeof host, cudaMemcpyDeviceToDevice));
	OK(cudaMemcpy(back, other, sizeof host, cudaMemcpyDefault));
	for (int i = 0; i < N; i++)
		CHECK(back[i] == i * 3 + 1);
	OK(cudaMemcpy(back, host, sizeof host, cudaMemcpyHostToHost));
	CHECK(memcmp(back, host, sizeof host) == 0);
	OK(cudaMemset(device, 0x5a, sizeof host));
	OK(cudaMemsetAsync(device, 0x01, 4, 0));
	OK(cudaMemcpyAsync(back, device, sizeof host, cudaMemcpyDeviceToHost, 0));
	OK(cudaStreamSynchronize(0));
	CHECK(back[0] == 0x01010101 && back[1] == 0x5a5a5a5a && back[N - 1] == 0x5a5a5a5a);
	OK(cudaMemcpyPeer(other, 0, device, 0, sizeof host));
	OK(cudaMemcpy(back, other, sizeof host, cudaMemcpyDeviceToHost));
	CHECK(back[0] == 0x01010101);
	OK(cudaFree(device));
	OK(cudaFree(other));
	RESULT(cudaFree(device), cudaErrorInvalidValue);
	void *p = &p;
	OK(cudaMalloc(&p, 0));
	CHECK(!p);
	RESULT(cudaMalloc(&p, (size_t)1 << 60), cudaErrorMemoryAllocation);
	RESULT(cudaGetLastError(), cudaErrorMemoryAllocation);
}

static void two_dimensions()
{
	enum { W = 37, H = 11 };
	unsigned char host[H][W], back[H][W];
	void *device = NULL;
	size_t pitch = 0;
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++)
			host[y][x] = (unsigned char)(y * 16 + x);
	OK(cudaMallocPitch(&device, &pitch, W, H));
	CHECK(pitch >= W && pitch % 32 == 0);
	OK(cudaMemcpy2D(device, pitch, host, W, W, H, cudaMemcpyHostToDevice));
	memset(back, 0, sizeof back);
	OK(cudaMemcpy2DAsync(back, W, device, pitch, W, H, cudaMemcpyDeviceToHost, 0));
	OK(cudaStreamSynchronize(0));
	CHECK(memcmp(host, back, sizeof host) == 0);
	OK(cudaMemset2D((char *)device + 2, pitch, 0xee, 3, H - 1));
	OK(cudaMemcpy2D(back, W, device, pitch, W, H, cudaMemcpyDefault));
	CHECK(back[0][1] == host[0][1] && back[0][2] == 0xee && back[0][4] == 0xee && back[0][5] == host[0][5]);
	CHECK(back[H - 2][3] == 0xee && back[H - 1][3] == host[H - 1][3]);
	RESULT(cudaMemcpy2D(back, W - 1, device, pitch, W, H, cudaMemcpyDeviceToHost), cudaErrorInvalidPitchValue);
	cudaGetLastError();
	OK(cudaFree(device));
}

static void three_dimensions()
{
	enum { W = 13, H = 5, D = 4 };
	unsigned char host[D][H][W], back[D][H][W];
	cudaPitchedPtr device;
	cudaExtent extent = make_cudaExtent(W, H, D);
	for (int i = 0; i < W * H * D; i++)
		(&host[0][0][0])[i] = (unsigned char)(i + 1);
	OK(cudaMalloc3D(&device, extent));
	CHECK(device.xsize == W && device.ysize == H && device.pitch >= W);
	cudaMemcpy3DParms up = {};
	up.srcPtr = make_cudaPitchedPtr(host, W, W, H);
	up.dstPtr = device;
	up.extent = extent;
	up.kind = cudaMemcpyHostToDevice;
	OK(cudaMemcpy3D(&up));
	OK(cudaMemset3D(device, 7, make_cudaExtent(2, 3, D)));
	cudaMemcpy3DParms down = {};
	down.srcPtr = device;
	down.dstPtr = make_cudaPitchedPtr(back, W, W, H);
	down.extent = extent;
	down.kind = cudaMemcpyDeviceToHost;
	OK(cudaMemcpy3D(&down));
	for (int z = 0; z < D; z++)
		for (int y = 0; y < H; y++)
			for (int x = 0; x < W; x++)
				CHECK(back[z][y][x] == (x < 2 && y < 3 ? 7 : host[z][y][x]));
	OK(cudaFree(device.ptr));
}

static void pinned()
{
	int *host = NULL, *mapped = NULL;
	unsigned flags = 0;
	cudaPointerAttributes attributes;
	OK(cudaMallocHost(&host, 4096));
	OK(cudaPointerGetAttributes(&attributes, host));
	CHECK(attributes.type == cudaMemoryTypeHost && attributes.hostPointer == host);
	OK(cudaFreeHost(host));
	OK(cudaHostAlloc(&host, 4096, cudaHostAllocPortable | cudaHostAllocMapped));
	OK(cudaHostGetFlags(&flags, host));
	CHECK(flags & cudaHostAllocPortable);
	memset(host, 0, 4096);
	cudaError_t has_address = cudaHostGetDevicePointer(&mapped, host, 0);
	CHECK(has_address == cudaErrorNotSupported || (has_address == cudaSuccess && mapped));
	OK(cudaFreeHost(host));
	OK(cudaFreeHost(NULL));
	void *page = aligned_alloc(4096, 8192);
	OK(cudaHostRegister(page, 8192, cudaHostRegisterDefault));
	RESULT(cudaHostRegister(page, 8192, cudaHostRegisterDefault), cudaErrorHostMemoryAlreadyRegistered);
	OK(cudaHostUnregister(page));
	RESULT(cudaHostUnregister(page), cudaErrorHostMemoryNotRegistered);
	free(page);
	RESULT(cudaHostAlloc(&host, 4096, 0x1000), cudaErrorInvalidValue);
	int local;
	OK(cudaPointerGetAttributes(&attributes, &local));
	CHECK(attributes.type == cudaMemoryTypeUnregistered && !attributes.devicePointer);
	OK(cudaMalloc(&mapped, 4096));
	OK(cudaPointerGetAttributes(&attributes, mapped));
	CHECK(attributes.type == cudaMemoryTypeDevice && attributes.device == 0 && attributes.devicePointer == mapped);
	OK(cudaFree(mapped));
	cudaGetLastError();
}

int main()
{
	linear();
	two_dimensions();
	three_dimensions();
	pinned();
	OK(cudaGetLastError());
	return failed;
}
