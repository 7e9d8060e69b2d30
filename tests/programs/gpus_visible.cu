/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which GPUs the program sees, as CUDA_VISIBLE_DEVICES says: how many, and each by its UUID; and that each of them computes.  It stops at
 * no mid point: what is compared is its text, with and without Cricket.
 */
#include "gpus.h"

__global__ void set(unsigned *p, unsigned value)
{
	*p = value;
}

int main(void)
{
	int count = -1;
	cudaError_t error = cudaGetDeviceCount(&count);

	printf("%d devices: %s\n", count, cudaGetErrorName(error));
	for (int d = 0; d < count; d++) {
		cudaDeviceProp prop;
		unsigned *p, value = 0;

		CHECK(cudaGetDeviceProperties(&prop, d));
		printf("%d: GPU-", d);
		for (int i = 0; i < 16; i++)
			printf("%02x%s", (unsigned char)prop.uuid.bytes[i], i == 3 || i == 5 || i == 7 || i == 9 ? "-" : "");
		printf("\n");
		CHECK(cudaSetDevice(d));
		CHECK(cudaMalloc(&p, 4));
		set<<<1, 1>>>(p, 17 + d);
		CHECK(cudaMemcpy(&value, p, 4, cudaMemcpyDefault));
		EXPECT(value == 17u + d);
	}
	phase();
	if (!error)
		EXPECT_ERROR(cudaSetDevice(count), cudaErrorInvalidDevice);
	return finish();
}
