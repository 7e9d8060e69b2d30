/* SPDX-License-Identifier: Apache-2.0 */
/* Managed variables and memory, where the device has them. */
#include "check.h"

__managed__ int shared_value = 4;
__device__ __managed__ int shared_table[8];

__global__ void fill(int *extra)
{
	shared_table[threadIdx.x] = (int)threadIdx.x * shared_value;
	extra[threadIdx.x]++;
}

int main()
{
	int supported = 0, *memory = NULL;
	OK(cudaDeviceGetAttribute(&supported, cudaDevAttrManagedMemory, 0));
	if (!supported)
		return 77;
	shared_value = 6;
	OK(cudaMallocManaged(&memory, 8 * sizeof(int)));
	for (int i = 0; i < 8; i++)
		memory[i] = i;
	fill<<<1, 8>>>(memory);
	OK(cudaDeviceSynchronize());
	for (int i = 0; i < 8; i++)
		CHECK(shared_table[i] == i * 6 && memory[i] == i + 1);
	cudaPointerAttributes attributes;
	OK(cudaPointerGetAttributes(&attributes, memory));
	CHECK(attributes.type == cudaMemoryTypeManaged);
	OK(cudaFree(memory));
	return failed;
}
