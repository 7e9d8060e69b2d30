/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation: alignment, many sizes freed in another order and reused, pointers that stay valid, memset, copies inside the device. */
#include "phase.h"

#define COUNT 200

__global__ void stamp(unsigned *p, size_t words, unsigned value)
{
	size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

	if (i < words)
		p[i] = value + (unsigned)i;
}

/* Reads through a table of addresses that lies in device memory itself. */
__global__ void gather(unsigned *const *table, const unsigned *words, unsigned long long *sum, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n && table[i])
		atomicAdd(sum, (unsigned long long)table[i][words[i] - 1]);
}

int main(void)
{
	static unsigned *p[COUNT], words[COUNT], value[COUNT];
	unsigned **dtable, *dwords, *h, *big, *copy;
	unsigned long long *dsum, sum, expected = 0;
	uint32_t seed = 9;
	int wrong = 0;

	h = (unsigned *)malloc(1 << 20);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < COUNT; i++) {
			if (p[i])
				continue;
			words[i] = 1 + random_u32(&seed) % (i % 10 ? 300 : 60000);
			value[i] = random_u32(&seed) & 0xffffff;
			CHECK(cudaMalloc(&p[i], words[i] * 4ul));
			wrong += (uintptr_t)p[i] % 256 != 0;
			stamp<<<(words[i] + 255) / 256, 256>>>(p[i], words[i], value[i]);
		}
		if (round == 1)
			phase();
		for (int i = round; i < COUNT; i += 2 + round) {
			CHECK(cudaMemcpy(h, p[i], words[i] * 4ul, cudaMemcpyDeviceToHost));
			for (unsigned k = 0; k < words[i]; k++)
				wrong += h[k] != value[i] + k;
			CHECK(cudaFree(p[i]));
			p[i] = NULL;
		}
	}
	EXPECT(wrong == 0);
	CHECK(cudaMalloc(&dtable, sizeof(p)));
	CHECK(cudaMalloc(&dwords, sizeof(words)));
	CHECK(cudaMalloc(&dsum, sizeof(sum)));
	CHECK(cudaMemcpy(dtable, p, sizeof(p), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(dwords, words, sizeof(words), cudaMemcpyHostToDevice));
	CHECK(cudaMemset(dsum, 0, sizeof(sum)));
	gather<<<(COUNT + 31) / 32, 32>>>(dtable, dwords, dsum, COUNT);
	CHECK(cudaMemcpy(&sum, dsum, sizeof(sum), cudaMemcpyDeviceToHost));
	for (int i = 0; i < COUNT; i++)
		if (p[i])
			expected += value[i] + words[i] - 1;
	EXPECT(sum == expected);
	printf("sum %llu\n", sum);

	/* Larger than one message, at odd offsets, through the device and back. */
	CHECK(cudaMalloc(&big, 24 << 20));
	CHECK(cudaMalloc(&copy, 24 << 20));
	CHECK(cudaMemset(big, 0x3c, 24 << 20));
	CHECK(cudaMemset(copy, 0, 24 << 20));
	for (int i = 0; i < 1 << 18; i++)
		h[i] = random_u32(&seed);
	CHECK(cudaMemcpy((char *)big + 12345677, h, 1 << 20, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy((char *)copy + 3, (char *)big + 1, (24 << 20) - 4, cudaMemcpyDeviceToDevice));
	unsigned char *all = (unsigned char *)malloc(24 << 20);

	CHECK(cudaMemcpy(all, copy, 24 << 20, cudaMemcpyDeviceToHost));
	EXPECT(memcmp(all + 12345679, h, 1 << 20) == 0);
	EXPECT(all[0] == 0 && all[2] == 0 && all[3] == 0x3c && all[(24 << 20) - 1] == 0 && all[(24 << 20) - 2] == 0x3c);
	print_checksum("copy", all, 24 << 20);
	CHECK(cudaFree(big));
	CHECK(cudaFree(copy));
	for (int i = 0; i < COUNT; i++)
		CHECK(cudaFree(p[i]));
	return finish();
}
