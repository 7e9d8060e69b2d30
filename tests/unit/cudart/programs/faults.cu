/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel that faults: the error stays. */
#include "check.h"

__global__ void store(int *p)
{
	*p = 1;
}

int main()
{
	void *p = NULL;
	OK(cudaFree(0));
	store<<<1, 1>>>((int *)16);
	OK(cudaGetLastError());
	RESULT(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
	RESULT(cudaPeekAtLastError(), cudaErrorIllegalAddress);
	RESULT(cudaMalloc(&p, 16), cudaErrorIllegalAddress);
	RESULT(cudaGetLastError(), cudaErrorIllegalAddress);
	RESULT(cudaStreamSynchronize(0), cudaErrorIllegalAddress);
	int device = -1;
	OK(cudaGetDevice(&device));
	return failed;
}
