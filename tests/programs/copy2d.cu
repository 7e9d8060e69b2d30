/* SPDX-License-Identifier: Apache-2.0 */
/* Pitched memory and rectangles copied in every direction, synchronously and in a stream; memset in one and two dimensions. */
#include "phase.h"

#define WIDTH 333
#define HEIGHT 57

__global__ void transpose_bytes(const unsigned char *in, size_t in_pitch, unsigned char *out, size_t out_pitch)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;

	if (x < WIDTH && y < HEIGHT)
		out[x * out_pitch + y] = in[y * in_pitch + x];
}

int main(void)
{
	static unsigned char in[HEIGHT][400], out[WIDTH][64], back[HEIGHT][WIDTH], box[HEIGHT * 512];
	unsigned char *a, *b, *c;
	size_t pitch_a, pitch_b, wrong = 0;
	uint32_t seed = 8;
	cudaStream_t stream;

	for (int y = 0; y < HEIGHT; y++)
		for (int x = 0; x < 400; x++)
			in[y][x] = (unsigned char)random_u32(&seed);
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMallocPitch(&a, &pitch_a, WIDTH, HEIGHT));
	CHECK(cudaMallocPitch(&b, &pitch_b, HEIGHT, WIDTH));
	CHECK(cudaMalloc(&c, sizeof(box)));
	EXPECT(pitch_a >= WIDTH && pitch_a % 32 == 0);
	CHECK(cudaMemcpy2D(a, pitch_a, in, sizeof(in[0]), WIDTH, HEIGHT, cudaMemcpyHostToDevice));
	transpose_bytes<<<dim3((WIDTH + 31) / 32, (HEIGHT + 7) / 8), dim3(32, 8)>>>(a, pitch_a, b, pitch_b);
	phase();
	CHECK(cudaMemcpy2D(out, sizeof(out[0]), b, pitch_b, HEIGHT, WIDTH, cudaMemcpyDeviceToHost));
	for (int y = 0; y < HEIGHT; y++)
		for (int x = 0; x < WIDTH; x++)
			wrong += out[x][y] != in[y][x];
	EXPECT(wrong == 0);

	/* An inner rectangle device to device, then all of it back in a stream. */
	CHECK(cudaMemset(c, 0xa5, sizeof(box)));
	CHECK(cudaMemset2DAsync(c + 512, 512, 0x11, 200, 10, stream));
	CHECK(cudaMemcpy2DAsync(c + 20 * 512 + 7, 512, a + 3 * pitch_a + 5, pitch_a, 100, 30, cudaMemcpyDeviceToDevice, stream));
	CHECK(cudaMemcpy2DAsync(back, WIDTH, a, pitch_a, WIDTH, HEIGHT, cudaMemcpyDefault, stream));
	CHECK(cudaMemcpyAsync(box, c, sizeof(box), cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	wrong = 0;
	for (int y = 0; y < HEIGHT; y++)
		for (int x = 0; x < 512; x++) {
			int want = 0xa5;

			if (y >= 1 && y < 11 && x < 200)
				want = 0x11;
			if (y >= 20 && y < 50 && x >= 7 && x < 107)
				want = in[y - 20 + 3][x - 7 + 5];
			wrong += box[y * 512 + x] != want;
			if (x < WIDTH)
				wrong += back[y][x] != in[y][x];
		}
	EXPECT(wrong == 0);
	EXPECT_ERROR(cudaMemcpy2D(a, pitch_a, in, 10, WIDTH, HEIGHT, cudaMemcpyHostToDevice), cudaErrorInvalidPitchValue);
	EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidPitchValue);
	CHECK(cudaMemcpy2D(back, WIDTH, in, sizeof(in[0]), WIDTH, HEIGHT, cudaMemcpyHostToHost));
	EXPECT(back[HEIGHT - 1][WIDTH - 1] == in[HEIGHT - 1][WIDTH - 1]);
	print_checksum("box", box, sizeof(box));
	CHECK(cudaFree(a));
	CHECK(cudaFree(b));
	CHECK(cudaFree(c));
	CHECK(cudaStreamDestroy(stream));
	return finish();
}
