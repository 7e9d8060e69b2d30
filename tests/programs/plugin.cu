/* SPDX-License-Identifier: Apache-2.0 */
/* A library with kernels and variables of its own and a static CUDA runtime, opened and closed by `plugins`. */
#include <cuda_runtime.h>

__device__ unsigned calls = 1000;
__constant__ unsigned factor = 3;

__global__ void scale(unsigned *data, unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		data[i] = data[i] * factor + PLUGIN;
	if (i == 0)
		calls++;
}

/* How often it was called since it was opened, plus 1000; 0 when something failed. */
extern "C" unsigned plugin_scale(unsigned *data, unsigned n, cudaStream_t stream)
{
	unsigned got = 0;

	scale<<<(n + 127) / 128, 128, 0, stream>>>(data, n);
	if (cudaStreamSynchronize(stream) != cudaSuccess || cudaMemcpyFromSymbol(&got, calls, sizeof(got)) != cudaSuccess)
		return 0;
	return got;
}
