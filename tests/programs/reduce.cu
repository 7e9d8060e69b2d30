/* SPDX-License-Identifier: Apache-2.0 */
/* Sums, maxima and votes by warp shuffles, shared memory and 64-bit atomics. */
#include "phase.h"

__device__ unsigned long long warp_sum(unsigned long long v)
{
	for (int d = 16; d > 0; d >>= 1)
		v += __shfl_down_sync(0xffffffffu, v, d);
	return v;
}

__global__ void reduce(const int *data, size_t n, unsigned long long *sum, int *maximum, unsigned *odd)
{
	__shared__ unsigned long long partial[32];
	unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
	unsigned long long s = 0;
	int m = -2147483647 - 1;
	unsigned ballots = 0;

	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i - threadIdx.x < n; i += (size_t)gridDim.x * blockDim.x) {
		int v = i < n ? data[i] : 0;

		s += (unsigned long long)(long long)v;
		m = i < n && v > m ? v : m;
		ballots += __popc(__ballot_sync(0xffffffffu, i < n && (v & 1)));
	}
	for (int d = 16; d > 0; d >>= 1)
		m = max(m, __shfl_xor_sync(0xffffffffu, m, d));
	s = warp_sum(s);
	if (lane == 0) {
		partial[warp] = s;
		atomicMax(maximum, m);
		atomicAdd(odd, ballots);
	}
	__syncthreads();
	if (warp == 0) {
		s = warp_sum(lane < blockDim.x / 32 ? partial[lane] : 0);
		if (lane == 0)
			atomicAdd(sum, s);
	}
}

int main(int argc, char **argv)
{
	size_t n = 500009 * (size_t)size_factor(argc, argv);
	int *data = (int *)malloc(n * sizeof(int)), *ddata, *dmax, max_gpu, max_cpu = -2147483647 - 1;
	unsigned long long *dsum, sum_gpu;
	unsigned *dodd, odd_gpu, odd_cpu = 0;
	long long sum_cpu = 0;
	uint32_t seed = 3;

	for (size_t i = 0; i < n; i++) {
		data[i] = (int)random_u32(&seed);
		sum_cpu += data[i];
		odd_cpu += data[i] & 1;
		if (data[i] > max_cpu)
			max_cpu = data[i];
	}
	CHECK(cudaMalloc(&ddata, n * sizeof(int)));
	CHECK(cudaMalloc(&dsum, sizeof(*dsum)));
	CHECK(cudaMalloc(&dmax, sizeof(*dmax)));
	CHECK(cudaMalloc(&dodd, sizeof(*dodd)));
	CHECK(cudaMemcpy(ddata, data, n * sizeof(int), cudaMemcpyHostToDevice));
	CHECK(cudaMemset(dsum, 0, sizeof(*dsum)));
	CHECK(cudaMemset(dmax, 0x80, sizeof(*dmax)));
	CHECK(cudaMemset(dodd, 0, sizeof(*dodd)));
	phase();
	reduce<<<24, 256>>>(ddata, n, dsum, dmax, dodd);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpy(&sum_gpu, dsum, sizeof(sum_gpu), cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(&max_gpu, dmax, sizeof(max_gpu), cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(&odd_gpu, dodd, sizeof(odd_gpu), cudaMemcpyDeviceToHost));
	printf("sum %lld max %d odd %u\n", (long long)sum_gpu, max_gpu, odd_gpu);
	EXPECT((long long)sum_gpu == sum_cpu);
	EXPECT(max_gpu == max_cpu);
	EXPECT(odd_gpu == odd_cpu);
	CHECK(cudaFree(ddata));
	return finish();
}
