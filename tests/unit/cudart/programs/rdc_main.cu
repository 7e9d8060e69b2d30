/* SPDX-License-Identifier: Apache-2.0 */
/* -rdc=true: a kernel and a variable in one file, their parts in another. */
#include "check.h"

extern __device__ int shared_table[32];
__device__ int twice(int value);

__global__ void fill(int *out)
{
	out[threadIdx.x] = twice(shared_table[threadIdx.x]);
}

void set_table(const int *values);

int main()
{
	int *out = NULL, host[32];
	for (int i = 0; i < 32; i++)
		host[i] = i * i;
	OK(cudaMalloc(&out, sizeof host));
	set_table(host);
	fill<<<1, 32>>>(out);
	OK(cudaGetLastError());
	OK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
	for (int i = 0; i < 32; i++)
		CHECK(host[i] == 2 * i * i);
	return failed;
}
