/* SPDX-License-Identifier: Apache-2.0 */
/* Launching in every way, attributes of kernels, occupancy; compiled a second time with the launches of older compilers. */
#include "check.h"

#include <cooperative_groups.h>
#include <cstring>

struct pair {
	char small;
	double large;
};

__global__ void __launch_bounds__(256) combine(int *out, pair p, short s)
{
	out[threadIdx.x + blockIdx.x * blockDim.x] = (int)p.large + p.small + s;
}

extern "C" __global__ void reverse(int *data)
{
	extern __shared__ int shared[];
	shared[threadIdx.x] = data[threadIdx.x];
	__syncthreads();
	data[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}

__global__ void grid_wide(int *data, int *sum)
{
	atomicAdd(sum, data[blockIdx.x * blockDim.x + threadIdx.x]);
	cooperative_groups::this_grid().sync();
	data[blockIdx.x * blockDim.x + threadIdx.x] = *sum;
}

template <int N> __global__ void templated(int *out)
{
	out[threadIdx.x] = N * (int)threadIdx.x;
}

static int nested(int *data)
{
	templated<2><<<1, 32>>>(data);
	return 3;
}

__global__ void scale(int *data, int factor)
{
	data[threadIdx.x] *= factor;
}

int main()
{
	int *data = NULL, *sum = NULL, host[64] = {0}, blocks = 0;
	pair p = {1, 40.5};
	short s = 2;
	OK(cudaMalloc(&data, sizeof host));
	OK(cudaMalloc(&sum, sizeof(int)));
	OK(cudaMemset(sum, 0, sizeof(int)));

	combine<<<dim3(2, 1, 1), dim3(32, 1, 1)>>>(data, p, s);
	OK(cudaGetLastError());
	OK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
	CHECK(host[0] == 43 && host[63] == 43);

	p.small = 2;
	void *args[] = {&data, &p, &s};
	OK(cudaLaunchKernel(combine, dim3(2), dim3(32), args, 0, (cudaStream_t)0));
	OK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
	CHECK(host[0] == 44 && host[63] == 44);

	scale<<<1, 32>>>(data, nested(data));
	OK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
	CHECK(host[31] == 2 * 31 * 3);

	templated<1><<<1, 64>>>(data);
	cudaLaunchConfig_t config = {};
	config.gridDim = dim3(1);
	config.blockDim = dim3(64);
	config.dynamicSmemBytes = 64 * sizeof(int);
	OK(cudaLaunchKernelEx(&config, reverse, data));
	OK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
	CHECK(host[0] == 63 && host[63] == 0);

	void *cooperative[] = {&data, &sum};
	OK(cudaLaunchCooperativeKernel(grid_wide, dim3(2), dim3(32), cooperative, 0, (cudaStream_t)0));
	OK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
	CHECK(host[0] == 63 * 64 / 2 && host[63] == host[0]);

	cudaFuncAttributes attributes;
	OK(cudaFuncGetAttributes(&attributes, combine));
	CHECK(attributes.maxThreadsPerBlock == 256 && attributes.sharedSizeBytes == 0);
	OK(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 * 1024));
	OK(cudaFuncGetAttributes(&attributes, reverse));
	CHECK(attributes.maxDynamicSharedSizeBytes == 64 * 1024);
	OK(cudaFuncSetCacheConfig(reverse, cudaFuncCachePreferShared));
	const char *name = NULL;
	OK(cudaFuncGetName(&name, (const void *)reverse));
	CHECK(name && strcmp(name, "reverse") == 0);
	size_t offset = 0, size = 0;
	OK(cudaFuncGetParamInfo((const void *)combine, 1, &offset, &size));
	CHECK(offset == 8 && size == sizeof(pair));
	OK(cudaFuncGetParamInfo((const void *)combine, 2, &offset, &size));
	CHECK(offset == 24 && size == 2);
	RESULT(cudaFuncGetParamInfo((const void *)combine, 3, &offset, &size), cudaErrorInvalidValue);
	OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, combine, 128, 0));
	CHECK(blocks >= 1);
	OK(cudaOccupancyAvailableDynamicSMemPerBlock(&size, reverse, 1, 64));
	CHECK(size >= 1024);
	int grid = 0, block = 0;
	OK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, combine, 0, 0));
	CHECK(grid >= 1 && block >= 32 && block <= 256);

	cudaFunction_t function = NULL;
	OK(cudaGetFuncBySymbol(&function, (const void *)reverse));
	CHECK(function != NULL);
	cudaKernel_t kernel = NULL;
	OK(cudaGetKernel(&kernel, (const void *)reverse));
	void *reverse_args[] = {&data};
	templated<1><<<1, 64>>>(data);
	OK(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(64), reverse_args, 256, (cudaStream_t)0));
	OK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
	CHECK(host[0] == 63 && host[62] == 1);

	RESULT(cudaLaunchKernel((const void *)host, dim3(1), dim3(1), args, 0, (cudaStream_t)0), cudaErrorInvalidResourceHandle);
	cudaGetLastError();
	scale<<<1, 4096>>>(data, 1);
	RESULT(cudaGetLastError(), cudaErrorInvalidValue);
	scale<<<0, 32>>>(data, 1);
	RESULT(cudaGetLastError(), cudaErrorInvalidValue);
	scale<<<1, 32, 1 << 24>>>(data, 1);
	RESULT(cudaGetLastError(), cudaErrorInvalidValue);
	OK(cudaDeviceSynchronize());
	return failed;
}
