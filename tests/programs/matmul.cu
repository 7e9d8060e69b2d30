/* SPDX-License-Identifier: Apache-2.0 */
/* C = A B with 16x16 tiles in static shared memory, dim3 grids and a size that is no multiple of the tile. */
#include "phase.h"

#define TILE 16

__global__ void matmul(const float *a, const float *b, float *c, int n)
{
	__shared__ float as[TILE][TILE], bs[TILE][TILE];
	int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
	float sum = 0;

	for (int t = 0; t < n; t += TILE) {
		as[threadIdx.y][threadIdx.x] = row < n && t + threadIdx.x < n ? a[row * n + t + threadIdx.x] : 0;
		bs[threadIdx.y][threadIdx.x] = col < n && t + threadIdx.y < n ? b[(t + threadIdx.y) * n + col] : 0;
		__syncthreads();
		for (int k = 0; k < TILE; k++)
			sum += as[threadIdx.y][k] * bs[k][threadIdx.x];
		__syncthreads();
	}
	if (row < n && col < n)
		c[row * n + col] = sum;
}

int main(int argc, char **argv)
{
	int n = 125 + 64 * ((int)size_factor(argc, argv) - 1), wrong = 0;
	size_t count = (size_t)n * n, bytes = count * sizeof(float);
	float *a = (float *)malloc(bytes), *b = (float *)malloc(bytes), *c = (float *)malloc(bytes), *da, *db, *dc;
	uint32_t seed = 2;
	dim3 block(TILE, TILE), grid((n + TILE - 1) / TILE, (n + TILE - 1) / TILE);

	/* Small integers: every partial sum is exact, so the order of additions does not matter. */
	for (size_t i = 0; i < count; i++) {
		a[i] = (float)(int)(random_u32(&seed) % 17) - 8;
		b[i] = (float)(int)(random_u32(&seed) % 17) - 8;
	}
	CHECK(cudaMalloc(&da, bytes));
	CHECK(cudaMalloc(&db, bytes));
	CHECK(cudaMalloc(&dc, bytes));
	CHECK(cudaMemcpy(da, a, bytes, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(db, b, bytes, cudaMemcpyHostToDevice));
	matmul<<<grid, block>>>(da, db, dc, n);	/* C = A B */
	CHECK(cudaDeviceSynchronize());
	phase();
	matmul<<<grid, block>>>(da, dc, db, n);	/* B = A (A B) */
	CHECK(cudaMemcpy(c, dc, bytes, cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++) {
			float sum = 0;

			for (int k = 0; k < n; k++)
				sum += a[i * n + k] * b[k * n + j];
			wrong += sum != c[i * n + j];
		}
	EXPECT(wrong == 0);
	print_checksum("AB", c, bytes);
	CHECK(cudaMemcpy(c, db, bytes, cudaMemcpyDeviceToHost));
	print_checksum("AAB", c, bytes);
	CHECK(cudaFree(da));
	CHECK(cudaFree(db));
	CHECK(cudaFree(dc));
	return finish();
}
