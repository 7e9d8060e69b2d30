/* SPDX-License-Identifier: Apache-2.0 */
/* assert() in a kernel: the message goes to stderr, the error is sticky. */
#include "phase.h"
#include <cassert>

__global__ void check(int limit, int *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	assert(i < limit);
	out[i] = i;
}

int main(void)
{
	int *out, values[64];

	CHECK(cudaMalloc(&out, sizeof(values)));
	check<<<2, 32>>>(64, out);
	CHECK(cudaMemcpy(values, out, sizeof(values), cudaMemcpyDeviceToHost));
	EXPECT(values[63] == 63);
	phase();
	check<<<2, 32>>>(63, out);
	EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorAssert);
	EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorAssert);
	EXPECT_ERROR(cudaMemset(out, 0, 4), cudaErrorAssert);
	return finish();
}
