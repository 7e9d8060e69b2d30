/* SPDX-License-Identifier: Apache-2.0 */
/* Escape times with divergent loops; every product and sum is rounded by itself, so that the CPU gets the same counts. */
#include "phase.h"

#define LIMIT 96

__host__ __device__ static inline float mul(float a, float b)
{
#ifdef __CUDA_ARCH__
	return __fmul_rn(a, b);
#else
	volatile float r = a * b;
	return r;
#endif
}

__host__ __device__ static inline float add(float a, float b)
{
#ifdef __CUDA_ARCH__
	return __fadd_rn(a, b);
#else
	volatile float r = a + b;
	return r;
#endif
}

__host__ __device__ static unsigned char escape(int x, int y, int width, int height)
{
	float cr = add(-2.0f, mul(3.0f / width, (float)x)), ci = add(-1.2f, mul(2.4f / height, (float)y)), zr = 0, zi = 0;
	int k;

	for (k = 0; k < LIMIT; k++) {
		float r2 = mul(zr, zr), i2 = mul(zi, zi), t;

		if (add(r2, i2) > 4.0f)
			break;
		t = add(add(r2, -i2), cr);
		zi = add(mul(2.0f, mul(zr, zi)), ci);
		zr = t;
	}
	return (unsigned char)k;
}

__global__ void mandelbrot(unsigned char *image, int width, int height)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;

	if (x < width && y < height)
		image[y * width + x] = escape(x, y, width, height);
}

int main(int argc, char **argv)
{
	int f = (int)size_factor(argc, argv), width = 150 + 100 * f, height = 91 + 100 * f;
	size_t n = (size_t)width * height, wrong = 0;
	unsigned char *image = (unsigned char *)malloc(n), *d;
	dim3 block(32, 8), grid((width + 31) / 32, (height + 7) / 8);

	CHECK(cudaMalloc(&d, n));
	mandelbrot<<<grid, block>>>(d, width, height);
	CHECK(cudaGetLastError());
	phase();
	CHECK(cudaMemcpy(image, d, n, cudaMemcpyDeviceToHost));
	for (int y = 0; y < height; y++)
		for (int x = 0; x < width; x++)
			wrong += image[y * (size_t)width + x] != escape(x, y, width, height);
	EXPECT(wrong == 0);
	print_checksum("image", image, n);
	CHECK(cudaFree(d));
	return finish();
}
