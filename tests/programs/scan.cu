/* SPDX-License-Identifier: Apache-2.0 */
/* Inclusive prefix sum in three kernels: blocks (warp shuffles), block sums, addition. */
#include "phase.h"

#define BLOCK 256

__device__ unsigned block_scan(unsigned v)
{
	__shared__ unsigned sums[BLOCK / 32];
	unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5;

	for (unsigned d = 1; d < 32; d <<= 1) {
		unsigned other = __shfl_up_sync(0xffffffffu, v, d);

		if (lane >= d)
			v += other;
	}
	__syncthreads();
	if (lane == 31)
		sums[warp] = v;
	__syncthreads();
	for (unsigned w = 0; w < warp; w++)
		v += sums[w];
	__syncthreads();
	return v;
}

__global__ void scan_blocks(const unsigned *in, unsigned *out, unsigned *block_sums, unsigned n)
{
	unsigned i = blockIdx.x * BLOCK + threadIdx.x;
	unsigned v = block_scan(i < n ? in[i] : 0);

	if (i < n)
		out[i] = v;
	if (threadIdx.x == BLOCK - 1)
		block_sums[blockIdx.x] = v;
}

/* One block walks over all the sums. */
__global__ void scan_sums(unsigned *sums, unsigned count)
{
	__shared__ unsigned carry;

	if (threadIdx.x == 0)
		carry = 0;
	for (unsigned base = 0; base < count; base += BLOCK) {
		unsigned i = base + threadIdx.x;
		unsigned v = block_scan(i < count ? sums[i] : 0) + carry;

		if (i < count)
			sums[i] = v;
		__syncthreads();
		if (threadIdx.x == BLOCK - 1)
			carry = v;
		__syncthreads();
	}
}

__global__ void add_sums(unsigned *out, const unsigned *sums, unsigned n)
{
	unsigned i = blockIdx.x * BLOCK + threadIdx.x;

	if (i < n && blockIdx.x > 0)
		out[i] += sums[blockIdx.x - 1];
}

int main(int argc, char **argv)
{
	unsigned n = 200003 * size_factor(argc, argv), blocks = (n + BLOCK - 1) / BLOCK, sum = 0, wrong = 0;
	unsigned *in = (unsigned *)malloc(n * 4ul), *out = (unsigned *)malloc(n * 4ul), *din, *dout, *dsums;
	uint32_t seed = 4;

	for (unsigned i = 0; i < n; i++)
		in[i] = random_u32(&seed) & 0xffff;
	CHECK(cudaMalloc(&din, n * 4ul));
	CHECK(cudaMalloc(&dout, n * 4ul));
	CHECK(cudaMalloc(&dsums, blocks * 4ul));
	CHECK(cudaMemcpy(din, in, n * 4ul, cudaMemcpyHostToDevice));
	scan_blocks<<<blocks, BLOCK>>>(din, dout, dsums, n);
	phase();
	scan_sums<<<1, BLOCK>>>(dsums, blocks);
	add_sums<<<blocks, BLOCK>>>(dout, dsums, n);
	CHECK(cudaMemcpy(out, dout, n * 4ul, cudaMemcpyDeviceToHost));
	for (unsigned i = 0; i < n; i++) {
		sum += in[i];
		wrong += sum != out[i];
	}
	EXPECT(wrong == 0);
	print_checksum("scan", out, n * 4ul);
	CHECK(cudaFree(din));
	CHECK(cudaFree(dout));
	CHECK(cudaFree(dsums));
	return finish();
}
