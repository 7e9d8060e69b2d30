/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled for one kind of machine code that the soft GPU is not: the launch says so, and the rest works. */
#include "check.h"

__device__ int variable;

__global__ void nothing()
{
}

int main()
{
	void *p = NULL;
	nothing<<<1, 1>>>();
	RESULT(cudaGetLastError(), cudaErrorNoKernelImageForDevice);
	RESULT(cudaGetSymbolAddress(&p, variable), cudaErrorNoKernelImageForDevice);
	RESULT(cudaGetLastError(), cudaErrorNoKernelImageForDevice);
	OK(cudaMalloc(&p, 16));
	OK(cudaFree(p));
	OK(cudaDeviceSynchronize());
	return failed;
}
