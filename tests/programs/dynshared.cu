/* SPDX-License-Identifier: Apache-2.0 */
/* Dynamic shared memory: two types in one array, sizes up to 48 KiB, beyond that only after the opt-in. */
#include "phase.h"

extern __shared__ unsigned char pool[];

__global__ void reverse(unsigned *data, unsigned n)
{
	unsigned *words = (unsigned *)pool;
	unsigned char *marks = pool + n * 4;

	for (unsigned i = threadIdx.x; i < n; i += blockDim.x) {
		words[i] = data[blockIdx.x * n + i];
		marks[i] = (unsigned char)(words[i] >> 24);
	}
	__syncthreads();
	for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
		data[blockIdx.x * n + i] = words[n - 1 - i] + marks[i];
}

static void run(unsigned n, unsigned blocks, bool mid)
{
	size_t count = (size_t)n * blocks, wrong = 0;
	unsigned *in = (unsigned *)malloc(count * 4), *out = (unsigned *)malloc(count * 4), *d;
	uint32_t seed = n;

	for (size_t i = 0; i < count; i++)
		in[i] = random_u32(&seed);
	CHECK(cudaMalloc(&d, count * 4));
	CHECK(cudaMemcpy(d, in, count * 4, cudaMemcpyHostToDevice));
	if (mid)
		phase();
	reverse<<<blocks, 128, n * 5>>>(d, n);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpy(out, d, count * 4, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < count; i++) {
		size_t base = i / n * n, k = i - base;

		wrong += out[i] != in[base + n - 1 - k] + (in[i] >> 24);
	}
	EXPECT(wrong == 0);
	printf("%u words ", n);
	print_checksum("reversed", out, count * 4);
	CHECK(cudaFree(d));
	free(in);
	free(out);
}

int main(void)
{
	unsigned n = 13000;	/* 65000 bytes */
	struct cudaFuncAttributes attributes;

	run(100, 20, false);
	run(9800, 3, true);	/* 49000 bytes: still below 48 KiB */
	reverse<<<1, 128, n * 5>>>(NULL, n);
	EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
	EXPECT_ERROR(cudaGetLastError(), cudaSuccess);
	CHECK(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)n * 5));
	CHECK(cudaFuncGetAttributes(&attributes, reverse));
	EXPECT(attributes.maxDynamicSharedSizeBytes == (int)n * 5);
	run(n, 2, false);
	return finish();
}
