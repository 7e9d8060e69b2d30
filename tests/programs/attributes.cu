/* SPDX-License-Identifier: Apache-2.0 */
/* Function attributes, occupancy, limits, cache preferences and versions: questions about kernels and the device. */
#include "phase.h"

__global__ void __launch_bounds__(256) bounded(float *p)
{
	__shared__ float s[300];
	__shared__ double t[10];

	s[threadIdx.x] = p[threadIdx.x];
	t[threadIdx.x % 10] = 1;
	__syncthreads();
	p[threadIdx.x] = s[255 - threadIdx.x] + (float)t[0];
}

__constant__ int table[100];

__global__ void plain(int *p)
{
	p[threadIdx.x] = table[threadIdx.x];
}

int main(void)
{
	struct cudaFuncAttributes a;
	int blocks, grid, block, runtime, driver, value;
	size_t limit, dynamic;
	cudaFuncCache cache;
	float *d, h[256];
	cudaFunction_t function;
	const char *name;

	CHECK(cudaRuntimeGetVersion(&runtime));
	CHECK(cudaDriverGetVersion(&driver));
	EXPECT(runtime >= 13000 && runtime / 1000 <= driver / 1000);
	CHECK(cudaFuncGetAttributes(&a, bounded));
	EXPECT(a.sharedSizeBytes >= 1280 && a.sharedSizeBytes < 1400);
	EXPECT(a.maxThreadsPerBlock == 256);
	EXPECT(a.numRegs > 0 && a.numRegs <= 255);
	EXPECT(a.binaryVersion >= 75 && a.ptxVersion >= 75);
	CHECK(cudaFuncGetAttributes(&a, plain));
	EXPECT(a.sharedSizeBytes == 0 && a.maxThreadsPerBlock == 1024);
	CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, plain, 256, 0));
	EXPECT(blocks >= 1 && blocks <= 32);
	CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, plain, 0, 0));
	EXPECT(grid >= 1 && block >= 32 && block <= 1024);
	CHECK(cudaOccupancyAvailableDynamicSMemPerBlock(&dynamic, plain, 1, 128));
	EXPECT(dynamic >= 48 << 10);
	CHECK(cudaFuncSetCacheConfig(plain, cudaFuncCachePreferShared));
	CHECK(cudaDeviceSetCacheConfig(cudaFuncCachePreferL1));
	CHECK(cudaDeviceGetCacheConfig(&cache));
	CHECK(cudaDeviceGetLimit(&limit, cudaLimitStackSize));
	EXPECT(limit >= 1024);
	CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
	CHECK(cudaDeviceGetLimit(&limit, cudaLimitStackSize));
	EXPECT(limit == 4096);
	CHECK(cudaFuncGetName(&name, (const void *)plain));
	EXPECT(strstr(name, "plain") != NULL);
	CHECK(cudaGetFuncBySymbol(&function, (const void *)plain));
	EXPECT(function != NULL);
	CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0));
	EXPECT(value == 32);
	CHECK(cudaMalloc(&d, sizeof(h)));
	CHECK(cudaMemset(d, 0, sizeof(h)));
	phase();
	bounded<<<1, 256>>>(d);
	CHECK(cudaMemcpy(h, d, sizeof(h), cudaMemcpyDeviceToHost));
	EXPECT(h[0] == 1 && h[255] == 1);
	bounded<<<1, 257>>>(d);	/* beyond __launch_bounds__ */
	EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
	CHECK(cudaFree(d));
	return finish();
}
