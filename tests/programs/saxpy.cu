/* SPDX-License-Identifier: Apache-2.0 */
/* y = a x + y, twice: the smallest real program, two launches with a mid point between them. */
#include "phase.h"
#include <cmath>

__global__ void saxpy(size_t n, float a, const float *x, float *y)
{
	size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

	if (i < n)
		y[i] = fmaf(a, x[i], y[i]);
}

int main(int argc, char **argv)
{
	size_t n = 300007 * (size_t)size_factor(argc, argv), bytes = n * sizeof(float), wrong = 0;
	float *x = (float *)malloc(bytes), *y = (float *)malloc(bytes), *result = (float *)malloc(bytes), *dx, *dy;
	uint32_t seed = 1;

	for (size_t i = 0; i < n; i++) {
		x[i] = random_float(&seed);
		y[i] = random_float(&seed);
	}
	CHECK(cudaMalloc(&dx, bytes));
	CHECK(cudaMalloc(&dy, bytes));
	CHECK(cudaMemcpy(dx, x, bytes, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(dy, y, bytes, cudaMemcpyHostToDevice));
	saxpy<<<(unsigned)((n + 255) / 256), 256>>>(n, 2.5f, dx, dy);
	CHECK(cudaGetLastError());
	phase();
	saxpy<<<(unsigned)((n + 127) / 128), 128>>>(n, -0.75f, dx, dy);
	CHECK(cudaGetLastError());
	CHECK(cudaMemcpy(result, dy, bytes, cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < n; i++)
		wrong += result[i] != fmaf(-0.75f, x[i], fmaf(2.5f, x[i], y[i]));
	EXPECT(wrong == 0);
	print_checksum("y", result, bytes);
	CHECK(cudaFree(dx));
	CHECK(cudaFree(dy));
	return finish();
}
