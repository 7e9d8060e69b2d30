/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Much memory, of which little changes at a time: so many MiB (the argument, 8 without) of numbers that depend on their place, a hundredth
 * of which is stirred in each round at the mid point and put back after it.
 */
#include "phase.h"

struct churn {
	unsigned long long *data, *wrong;
	size_t words, part;
	unsigned round;
};

__device__ unsigned long long word(size_t i)
{
	unsigned long long x = i * 0x9e3779b97f4a7c15ull;

	return (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ull;
}

__global__ void fill(unsigned long long *data, size_t from, size_t count, unsigned long long salt)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (size_t)blockDim.x)
		data[from + i] = word(from + i) ^ salt;
}

__global__ void check(const unsigned long long *data, size_t count, unsigned long long *wrong)
{
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count; i += gridDim.x * (size_t)blockDim.x)
		if (data[i] != word(i))
			atomicAdd(wrong, 1ull);
}

static void stir(void *opaque)
{
	struct churn *c = (struct churn *)opaque;

	c->round++;
	fill<<<64, 256>>>(c->data, 0, c->part, c->round);
	CHECK(cudaDeviceSynchronize());
}

int main(int argc, char **argv)
{
	struct churn c = {};
	unsigned long long wrong;

	c.words = (argc > 1 ? size_factor(argc, argv) : 8) * ((size_t)1 << 17);
	c.part = c.words / 100;
	CHECK(cudaMalloc(&c.data, c.words * 8));
	CHECK(cudaMalloc(&c.wrong, 8));
	CHECK(cudaMemset(c.wrong, 0, 8));
	fill<<<64, 256>>>(c.data, 0, c.words, 0);
	phase_with(stir, &c);
	fill<<<64, 256>>>(c.data, 0, c.part, 0);
	check<<<64, 256>>>(c.data, c.words, c.wrong);
	CHECK(cudaMemcpy(&wrong, c.wrong, 8, cudaMemcpyDeviceToHost));
	EXPECT(wrong == 0);
	return finish();
}
