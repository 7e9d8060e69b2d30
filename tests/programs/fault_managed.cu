/* SPDX-License-Identifier: Apache-2.0 */
/*
 * After a kernel has failed the program looks at managed memory: everything is there, what the kernel wrote before it failed as well, and
 * stays there though freeing it fails.
 */
#include "phase.h"

__global__ void fill(unsigned *p, size_t n, unsigned value)
{
	for (size_t i = threadIdx.x; i < n; i += blockDim.x)
		p[i] = value + (unsigned)i;
}

__global__ void bad(unsigned *p)
{
	p[0] = 77;
	p[300000] = 78;
	__threadfence_system();
	*(volatile unsigned *)16 = 1;
}

int main(void)
{
	const size_t n = 1 << 20;
	unsigned *gpu, *cpu, *none, *both, *failed;

	for (unsigned **p : {&gpu, &cpu, &none, &both, &failed})
		CHECK(cudaMallocManaged(p, n * 4));
	for (size_t i = 0; i < n; i++) {
		cpu[i] = (unsigned)i + 5;
		both[i] = 9;
	}
	fill<<<1, 256>>>(gpu, n, 1000);
	fill<<<1, 256>>>(both, n, 3000);
	CHECK(cudaDeviceSynchronize());
	phase();
	both[1] = 12345;
	bad<<<1, 1>>>(failed);
	EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
	EXPECT(gpu[10] == 1010 && gpu[900000] == 901000);
	gpu[11]++;
	EXPECT(gpu[11] == 1012);
	EXPECT(cpu[10] == 15 && cpu[n - 1] == n + 4);
	cpu[10] = 1;
	EXPECT(none[10] == 0 && none[600000] == 0);
	EXPECT(both[1] == 12345 && both[500000] == 503000);
	EXPECT(failed[0] == 77 && failed[300000] == 78 && failed[600000] == 0);
	EXPECT_ERROR(cudaFree(gpu), cudaErrorIllegalAddress);
	EXPECT(gpu[10] == 1010 && gpu[11] == 1012);
	EXPECT_ERROR(cudaMallocManaged(&none, 4), cudaErrorIllegalAddress);
	print_checksum("gpu", gpu, n * 4);
	return finish();
}
