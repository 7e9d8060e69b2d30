/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel that waits for the program's write to pinned memory, with work behind it on the stream; and pinned memory of which the program
 * writes one part while a kernel writes the other.
 */
#include "phase.h"

__global__ void wait_for(volatile unsigned *latch)
{
	while (latch[0] < 1)
		;
}

__global__ void add(unsigned *p, unsigned n, unsigned what)
{
	for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
		p[i] += what;
}

/* Writes while the program does: words the program leaves alone. */
__global__ void write_odd(volatile unsigned *p, volatile unsigned *latch, unsigned n)
{
	for (unsigned i = 1; i < n; i += 2)
		p[i] = i;
	while (latch[0] < 2)
		;
	for (unsigned i = 1; i < n; i += 2)
		p[i] = 2 * i;
}

int main(void)
{
	unsigned *latch, *both, *data, host[256], wrong = 0;
	cudaStream_t stream;

	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMallocHost(&latch, sizeof(*latch)));
	CHECK(cudaMallocHost(&both, 4096));
	CHECK(cudaMalloc(&data, sizeof(host)));
	CHECK(cudaMemset(data, 0, sizeof(host)));
	CHECK(cudaDeviceSynchronize());
	for (int round = 0; round < 3; round++) {
		*latch = 0;
		wait_for<<<1, 1, 0, stream>>>(latch);
		add<<<1, 64, 0, stream>>>(data, 256, 1);
		*latch = 1;
		CHECK(cudaStreamSynchronize(stream));
	}
	CHECK(cudaMemcpy(host, data, sizeof(host), cudaMemcpyDeviceToHost));
	EXPECT(host[0] == 3 && host[255] == 3 && *latch == 1);
	phase();
	for (int i = 0; i < 1024; i++)
		both[i] = 7;
	*latch = 0;
	write_odd<<<1, 1, 0, stream>>>(both, latch, 1024);
	for (int i = 0; i < 1024; i += 2)
		both[i] = 3 * i;
	*latch = 2;
	CHECK(cudaStreamSynchronize(stream));
	for (int i = 0; i < 1024; i++)
		wrong += both[i] != (unsigned)(i % 2 ? 2 * i : 3 * i);
	EXPECT(wrong == 0);
	add<<<1, 64, 0, stream>>>(both, 1024, 1);
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(both[0] == 1 && both[1023] == 2047);
	print_checksum("both", both, 4096);
	CHECK(cudaFreeHost(latch));
	CHECK(cudaFreeHost(both));
	return finish();
}
