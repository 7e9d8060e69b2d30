/* SPDX-License-Identifier: Apache-2.0 */
/* Byte histogram with shared and global atomics; compare-and-swap, exchange, min and bitwise atomics beside it. */
#include "phase.h"

struct extra {
	unsigned minimum, bits_or, bits_and, bits_xor, tickets;
	unsigned long long square_sum;
	float cas_max;
};

__global__ void histogram(const unsigned char *data, size_t n, unsigned *bins)
{
	__shared__ unsigned local[256];

	for (unsigned i = threadIdx.x; i < 256; i += blockDim.x)
		local[i] = 0;
	__syncthreads();
	for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
		atomicAdd(&local[data[i]], 1);
	__syncthreads();
	for (unsigned i = threadIdx.x; i < 256; i += blockDim.x)
		atomicAdd(&bins[i], local[i]);
}

__global__ void atomics(const unsigned char *data, unsigned n, struct extra *extra)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x, old, assumed;
	unsigned *slot = (unsigned *)&extra->cas_max;
	float v;

	if (i >= n)
		return;
	v = sqrtf((float)(data[i] * (i % 977)));
	atomicMin(&extra->minimum, data[i] * 1000u + i % 1000u);
	atomicOr(&extra->bits_or, 1u << (data[i] & 31));
	atomicAnd(&extra->bits_and, ~(data[i] == 77 ? 0x10u : 0u));
	atomicXor(&extra->bits_xor, i * 2654435761u);
	atomicInc(&extra->tickets, 0xffffffffu);
	atomicAdd(&extra->square_sum, (unsigned long long)data[i] * data[i]);
	old = *slot;
	do {
		assumed = old;
		if (__uint_as_float(assumed) >= v)
			break;
		old = atomicCAS(slot, assumed, __float_as_uint(v));
	} while (old != assumed);
}

int main(int argc, char **argv)
{
	size_t n = 600011 * (size_t)size_factor(argc, argv);
	unsigned few = 50021, bins[256], expected[256] = { 0 }, *dbins;
	unsigned char *data = (unsigned char *)malloc(n), *ddata;
	struct extra extra = { 0xffffffffu, 0, 0xffffffffu, 0, 0, 0, 0 }, want = extra, *dextra;
	uint32_t seed = 5;

	for (size_t i = 0; i < n; i++) {
		data[i] = (unsigned char)((random_u32(&seed) >> 9) & random_u32(&seed));
		expected[data[i]]++;
	}
	for (unsigned i = 0; i < few; i++) {
		unsigned m = data[i] * 1000u + i % 1000u;
		float v = sqrtf((float)(data[i] * (i % 977)));

		want.minimum = m < want.minimum ? m : want.minimum;
		want.bits_or |= 1u << (data[i] & 31);
		want.bits_and &= ~(data[i] == 77 ? 0x10u : 0u);
		want.bits_xor ^= i * 2654435761u;
		want.tickets++;
		want.square_sum += (unsigned long long)data[i] * data[i];
		want.cas_max = v > want.cas_max ? v : want.cas_max;
	}
	CHECK(cudaMalloc(&ddata, n));
	CHECK(cudaMalloc(&dbins, sizeof(bins)));
	CHECK(cudaMalloc(&dextra, sizeof(extra)));
	CHECK(cudaMemcpy(ddata, data, n, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(dextra, &extra, sizeof(extra), cudaMemcpyHostToDevice));
	CHECK(cudaMemset(dbins, 0, sizeof(bins)));
	histogram<<<16, 192>>>(ddata, n, dbins);
	phase();
	atomics<<<(few + 255) / 256, 256>>>(ddata, few, dextra);
	CHECK(cudaMemcpy(bins, dbins, sizeof(bins), cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(&extra, dextra, sizeof(extra), cudaMemcpyDeviceToHost));
	EXPECT(memcmp(bins, expected, sizeof(bins)) == 0);
	EXPECT(extra.minimum == want.minimum);
	EXPECT(extra.bits_or == want.bits_or);
	EXPECT(extra.bits_and == want.bits_and);
	EXPECT(extra.bits_xor == want.bits_xor);
	EXPECT(extra.tickets == want.tickets);
	EXPECT(extra.square_sum == want.square_sum);
	EXPECT(extra.cas_max == want.cas_max);
	print_checksum("bins", bins, sizeof(bins));
	CHECK(cudaFree(ddata));
	CHECK(cudaFree(dbins));
	CHECK(cudaFree(dextra));
	return finish();
}
