/* SPDX-License-Identifier: Apache-2.0 */
/* Memory filled with words that say where they lie, and how many of them are wrong. */
#pragma once

__global__ void fill(unsigned *p, size_t n, unsigned value)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		p[i] = value ^ (unsigned)i;
}

__global__ void check(const unsigned *p, size_t n, unsigned value, unsigned *wrong)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		if (p[i] != (value ^ (unsigned)i))
			atomicAdd(wrong, 1);
}
