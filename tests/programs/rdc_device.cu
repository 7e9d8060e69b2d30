/* SPDX-License-Identifier: Apache-2.0 */
/* The other half of rdc_main.cu. */
#include "rdc.h"

__device__ unsigned rdc_calls;
__constant__ unsigned rdc_salt = 1;

__device__ unsigned rdc_mix(unsigned v)
{
	atomicAdd(&rdc_calls, 1);
	return (v ^ v >> 7) * 0x2545f491u;
}

__global__ void rdc_fill(unsigned *data, unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		data[i] = i * 3;
}
