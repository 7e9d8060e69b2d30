/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image filter in many small steps: pngfilter [IN.png|-] [OUT.png|-] [STEPS].  Each step blurs along edges (integer weights that fall
 * with the difference to the neighbour) and every eighth step sharpens; the mid point is half way.  Without a picture one is drawn.
 */
#include "phase.h"
#include <png.h>
#include <vector>

/* One step's result for a pixel; the CPU check calls the same function. */
__host__ __device__ static int filter_channel(int c, int n, int s, int w, int e, bool sharpen)
{
	int v[4] = { n, s, w, e }, sum = c * 64, weight = 64;

	if (sharpen) {
		int r = (c * 8 - (n + s + w + e)) / 4;

		return r < 0 ? 0 : r > 255 ? 255 : r;
	}
	for (int i = 0; i < 4; i++) {
		int difference = v[i] > c ? v[i] - c : c - v[i], k = difference >= 32 ? 0 : 32 - difference;

		sum += v[i] * k;
		weight += k;
	}
	return (sum + weight / 2) / weight;
}

__host__ __device__ static uchar4 filter_pixel(const uchar4 *p, int x, int y, int width, int height, bool sharpen)
{
	size_t at = (size_t)y * width + x;
	uchar4 c = p[at], n = p[y > 0 ? at - width : at], s = p[y < height - 1 ? at + width : at], w = p[x > 0 ? at - 1 : at],
	       e = p[x < width - 1 ? at + 1 : at];

	return make_uchar4((unsigned char)filter_channel(c.x, n.x, s.x, w.x, e.x, sharpen),
			   (unsigned char)filter_channel(c.y, n.y, s.y, w.y, e.y, sharpen),
			   (unsigned char)filter_channel(c.z, n.z, s.z, w.z, e.z, sharpen), c.w);
}

__global__ void filter(const uchar4 *in, uchar4 *out, int width, int height, bool sharpen)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;

	if (x < width && y < height)
		out[(size_t)y * width + x] = filter_pixel(in, x, y, width, height, sharpen);
}

static void read_png(const char *path, std::vector<uchar4> &pixels, int &width, int &height)
{
	png_image image = {};

	image.version = PNG_IMAGE_VERSION;
	if (!png_image_begin_read_from_file(&image, path)) {
		printf("%s: %s\n", path, image.message);
		exit(1);
	}
	image.format = PNG_FORMAT_RGBA;
	if (image.width > 8192 || image.height > 8192) {
		printf("%s: larger than 8192 x 8192\n", path);
		exit(1);
	}
	width = (int)image.width;
	height = (int)image.height;
	pixels.resize((size_t)width * height);
	if (!png_image_finish_read(&image, NULL, pixels.data(), 0, NULL)) {
		printf("%s: %s\n", path, image.message);
		exit(1);
	}
}

static void write_png(const char *path, const std::vector<uchar4> &pixels, int width, int height)
{
	png_image image = {};

	image.version = PNG_IMAGE_VERSION;
	image.width = (png_uint_32)width;
	image.height = (png_uint_32)height;
	image.format = PNG_FORMAT_RGBA;
	if (!png_image_write_to_file(&image, path, 0, pixels.data(), 0, NULL)) {
		printf("%s: %s\n", path, image.message);
		exit(1);
	}
}

/* Smooth noise from a hash of lattice points, in integers so that every machine draws the same picture. */
static int noise(int x, int y, int cell, uint32_t seed)
{
	int fx = x % cell, fy = y % cell, corner[4];

	for (int i = 0; i < 4; i++) {
		uint32_t h = seed ^ (uint32_t)(x / cell + (i & 1)) * 0x9e3779b1u ^ (uint32_t)(y / cell + (i >> 1)) * 0x85ebca77u;

		h = (h ^ h >> 15) * 0x2c1b3c6du;
		h = (h ^ h >> 12) * 0x297a2d39u;
		corner[i] = (int)((h ^ h >> 15) & 255);
	}
	return ((corner[0] * (cell - fx) + corner[1] * fx) * (cell - fy) + (corner[2] * (cell - fx) + corner[3] * fx) * fy) / (cell * cell);
}

/* A landscape at dusk with film grain: sky, sun, three ranges of hills, water. */
static void draw(std::vector<uchar4> &pixels, int width, int height)
{
	uint32_t grain = 99;

	pixels.resize((size_t)width * height);
	for (int y = 0; y < height; y++)
		for (int x = 0; x < width; x++) {
			int r = 70 + 150 * y / height, g = 80 + 60 * y / height, b = 150 - 70 * y / height;
			int dx = x - width * 2 / 3, dy = y - height * 2 / 5, d = dx * dx + dy * dy, sun = height * height / 80;
			int cloud = (noise(x, y * 3, 48, 1) * 2 + noise(x, y * 3, 19, 2)) / 3;
			int shade = (int)(random_u32(&grain) >> 27);

			r += cloud / 4;
			g += cloud / 5;
			b += cloud / 6;
			if (d < sun)
				r = 250, g = 225, b = 160;
			for (int k = 0; k < 3; k++) {
				int ridge = height * (9 + 2 * k) / 20 + (128 - noise(x + 1000 * k, 7, 60 - 12 * k, 10 + k)) * height / 900 +
					    (128 - noise(x, 3, 11, 20 + k)) * height / 3000;

				if (y > ridge)
					r = 90 - 25 * k + noise(x, y, 9, 30 + k) / 12, g = 85 - 18 * k + noise(x, y, 9, 30 + k) / 10,
					b = 110 - 30 * k;
			}
			if (y > height * 4 / 5)
				r = 60 + noise(x, y * 6, 30, 40) / 3, g = 70 + noise(x, y * 6, 30, 40) / 4, b = 100 + noise(x, y * 6, 30, 41) / 5;
			r += shade - 16;
			g += shade - 16;
			b += shade - 16;
			pixels[(size_t)y * width + x] = make_uchar4((unsigned char)(r < 0 ? 0 : r > 255 ? 255 : r),
								    (unsigned char)(g < 0 ? 0 : g > 255 ? 255 : g),
								    (unsigned char)(b < 0 ? 0 : b > 255 ? 255 : b), 255);
		}
}

int main(int argc, char **argv)
{
	std::vector<uchar4> pixels, expected, next;
	int width = 480, height = 360, steps = argc > 3 ? atoi(argv[3]) : 16;
	uchar4 *d[2];
	size_t bytes;
	dim3 block(32, 8), grid;

	if (argc > 1 && strcmp(argv[1], "-") != 0)
		read_png(argv[1], pixels, width, height);
	else
		draw(pixels, width, height);
	bytes = pixels.size() * sizeof(uchar4);
	grid = dim3((width + 31) / 32, (height + 7) / 8);
	printf("%d x %d pixels, %d steps\n", width, height, steps);
	CHECK(cudaMalloc(&d[0], bytes));
	CHECK(cudaMalloc(&d[1], bytes));
	CHECK(cudaMemcpy(d[0], pixels.data(), bytes, cudaMemcpyHostToDevice));
	expected = pixels;
	for (int s = 0; s < steps; s++) {
		if (s == steps / 2) {
			printf("half way\n");
			phase();
		}
		filter<<<grid, block>>>(d[s & 1], d[!(s & 1)], width, height, s % 8 == 7);
		CHECK(cudaGetLastError());
	}
	CHECK(cudaMemcpy(pixels.data(), d[steps & 1], bytes, cudaMemcpyDeviceToHost));
	next.resize(expected.size());
	for (int s = 0; s < steps; s++) {
		for (int y = 0; y < height; y++)
			for (int x = 0; x < width; x++)
				next[(size_t)y * width + x] = filter_pixel(expected.data(), x, y, width, height, s % 8 == 7);
		expected.swap(next);
	}
	EXPECT(memcmp(pixels.data(), expected.data(), bytes) == 0);
	print_checksum("pixels", pixels.data(), bytes);
	if (argc > 2 && strcmp(argv[2], "-") != 0)
		write_png(argv[2], pixels, width, height);
	CHECK(cudaFree(d[0]));
	CHECK(cudaFree(d[1]));
	return finish();
}
