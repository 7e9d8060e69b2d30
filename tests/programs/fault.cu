/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel that writes where nothing is: the error is reported by the next synchronisation and by everything after it. */
#include "phase.h"

__global__ void good(int *p)
{
	*p = 5;
}

__global__ void bad(int *p)
{
	*p = 6;
}

int main(void)
{
	int *p, value = 0;

	CHECK(cudaMalloc(&p, sizeof(*p)));
	good<<<1, 1>>>(p);
	CHECK(cudaMemcpy(&value, p, sizeof(value), cudaMemcpyDeviceToHost));
	EXPECT(value == 5);
	phase();
	bad<<<1, 1>>>((int *)16);
	EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
	EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
	EXPECT_ERROR(cudaMemcpy(&value, p, sizeof(value), cudaMemcpyDeviceToHost), cudaErrorIllegalAddress);
	EXPECT_ERROR(cudaMalloc(&p, 4), cudaErrorIllegalAddress);
	good<<<1, 1>>>(p);
	EXPECT_ERROR(cudaGetLastError(), cudaErrorIllegalAddress);
	printf("%s: %s\n", cudaGetErrorName(cudaErrorIllegalAddress), cudaGetErrorString(cudaErrorIllegalAddress));
	return finish();
}
