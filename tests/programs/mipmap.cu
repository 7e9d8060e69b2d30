/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mipmapped arrays: levels filled by copies and by kernels through surfaces, sampled by level, by gradient and in between; two and three dimensions, layers.
 */
#include "phase.h"

#include <cmath>

enum { SIZE = 64, LEVELS = 7, N = 256 };

struct point {
	float x, y, lod;
	int layer;
};

__global__ void halve(cudaTextureObject_t from, cudaSurfaceObject_t to, int size)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;

	if (x < size) {
		/* The four texels' mean, at their common corner. */
		float v = 0;

		for (int k = 0; k < 4; k++)
			v += tex2D<float>(from, 2 * x + (k & 1) + 0.5f, 2 * y + (k >> 1) + 0.5f);
		surf2Dwrite(v / 4, to, x * 4, y);
	}
}

__global__ void sample(cudaTextureObject_t t, const point *p, float *out, int gradient, int layered)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	float step = exp2f(p[i].lod) / SIZE;

	if (layered)
		out[i] = tex2DLayeredLod<float>(t, p[i].x, p[i].y, p[i].layer, p[i].lod);
	else if (gradient)
		out[i] = tex2DGrad<float>(t, p[i].x, p[i].y, make_float2(step, 0), make_float2(0, step));
	else
		out[i] = tex2DLod<float>(t, p[i].x, p[i].y, p[i].lod);
}

__global__ void sample_3d(cudaTextureObject_t t, const point *p, float *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	out[i] = tex3DLod<float>(t, p[i].x, p[i].y, 0.5f, p[i].lod);
}

static float levels[LEVELS][SIZE][SIZE];
static point host_points[N], *points;
static float host_results[N], *results;

static void compare(const char *name, const float *want, float tolerance)
{
	int wrong = 0;

	CHECK(cudaMemcpy(host_results, results, sizeof(host_results), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++)
		wrong += !(fabsf(host_results[i] - want[i]) <= tolerance);
	if (wrong)
		printf("%s: %d of %d are wrong\n", name, wrong, N);
	EXPECT(wrong == 0);
	print_checksum(name, host_results, sizeof(host_results));
}

static float at(int level, float x, float y)
{
	int size = SIZE >> level, i = (int)floorf(x * size), k = (int)floorf(y * size);

	i = i < 0 ? 0 : i >= size ? size - 1 : i;
	k = k < 0 ? 0 : k >= size ? size - 1 : k;
	return levels[level][k][i];
}

static cudaTextureObject_t make(cudaMipmappedArray_t m, bool between, float bias, float least, float most, const cudaResourceViewDesc *view)
{
	cudaResourceDesc r;
	cudaTextureDesc d;
	cudaTextureObject_t t;

	memset(&r, 0, sizeof(r));
	memset(&d, 0, sizeof(d));
	r.resType = cudaResourceTypeMipmappedArray;
	r.res.mipmap.mipmap = m;
	for (int k = 0; k < 3; k++)
		d.addressMode[k] = cudaAddressModeClamp;
	d.filterMode = cudaFilterModePoint;
	d.mipmapFilterMode = between ? cudaFilterModeLinear : cudaFilterModePoint;
	d.mipmapLevelBias = bias;
	d.minMipmapLevelClamp = least;
	d.maxMipmapLevelClamp = most;
	d.normalizedCoords = 1;
	CHECK(cudaCreateTextureObject(&t, &r, &d, view));
	return t;
}

static void run(cudaTextureObject_t t, int gradient, int layered)
{
	CHECK(cudaMemcpy(points, host_points, sizeof(host_points), cudaMemcpyHostToDevice));
	sample<<<N / 64, 64>>>(t, points, results, gradient, layered);
	CHECK(cudaGetLastError());
}

/* Level 0 comes from here, the others from kernels. */
static cudaMipmappedArray_t build(void)
{
	cudaMipmappedArray_t m;
	cudaArray_t level, next;
	cudaResourceDesc r;
	cudaTextureDesc d;
	cudaTextureObject_t t;
	cudaSurfaceObject_t s;
	cudaExtent extent;
	cudaChannelFormatDesc f = cudaCreateChannelDesc<float>(), said;
	unsigned flags;

	/* More levels than there can be are as many as there can be. */
	CHECK(cudaMallocMipmappedArray(&m, &f, make_cudaExtent(SIZE, SIZE, 0), 20, cudaArraySurfaceLoadStore));
	EXPECT(cudaGetMipmappedArrayLevel(&level, m, LEVELS) != cudaSuccess);
	cudaGetLastError();
	CHECK(cudaGetMipmappedArrayLevel(&level, m, 0));
	CHECK(cudaMemcpy2DToArray(level, 0, 0, levels[0], sizeof(levels[0][0]), SIZE * 4, SIZE, cudaMemcpyHostToDevice));
	for (int i = 1; i < LEVELS; i++) {
		CHECK(cudaGetMipmappedArrayLevel(&next, m, i));
		CHECK(cudaArrayGetInfo(&said, &extent, &flags, next));
		EXPECT(said.x == 32 && said.y == 0 && said.f == cudaChannelFormatKindFloat && flags & cudaArraySurfaceLoadStore);
		EXPECT(extent.width == (size_t)SIZE >> i && extent.height == (size_t)SIZE >> i && extent.depth == 0);
		memset(&r, 0, sizeof(r));
		memset(&d, 0, sizeof(d));
		r.resType = cudaResourceTypeArray;
		r.res.array.array = level;
		for (int k = 0; k < 3; k++)
			d.addressMode[k] = cudaAddressModeClamp;
		CHECK(cudaCreateTextureObject(&t, &r, &d, NULL));
		r.res.array.array = next;
		CHECK(cudaCreateSurfaceObject(&s, &r));
		halve<<<dim3(((SIZE >> i) + 31) / 32, SIZE >> i), 32>>>(t, s, SIZE >> i);
		CHECK(cudaDestroyTextureObject(t));
		CHECK(cudaDestroySurfaceObject(s));
		level = next;
	}
	return m;
}

int main(void)
{
	static float back[SIZE][SIZE];
	float want[N];
	uint32_t seed = 4;
	int wrong = 0;
	cudaArray_t level;

	for (int y = 0; y < SIZE; y++)
		for (int x = 0; x < SIZE; x++)
			levels[0][y][x] = random_float(&seed);
	for (int i = 1; i < LEVELS; i++)
		for (int y = 0; y < SIZE >> i; y++)
			for (int x = 0; x < SIZE >> i; x++) {
				float v = 0;

				for (int k = 0; k < 4; k++)
					v += levels[i - 1][2 * y + (k >> 1)][2 * x + (k & 1)];
				levels[i][y][x] = v / 4;
			}
	CHECK(cudaMalloc(&points, sizeof(host_points)));
	CHECK(cudaMalloc(&results, sizeof(host_results)));
	cudaMipmappedArray_t m = build();
	cudaTextureObject_t nearest = make(m, false, 0, 0, LEVELS, NULL), between = make(m, true, 0, 0, LEVELS, NULL),
			    biased = make(m, false, 1, 2, 4, NULL), seen;
	phase();

	for (int i = 0; i < LEVELS; i++) {
		size_t size = SIZE >> i;

		CHECK(cudaGetMipmappedArrayLevel(&level, m, i));
		CHECK(cudaMemcpy2DFromArray(back, sizeof(back[0]), level, 0, 0, size * 4, size, cudaMemcpyDeviceToHost));
		for (size_t y = 0; y < size; y++)
			wrong += memcmp(back[y], levels[i][y], size * 4) != 0;
	}
	EXPECT(wrong == 0);
	for (int i = 0; i < N; i++) {
		int lod = (int)(random_u32(&seed) % (LEVELS - 1));

		/* A quarter of a texel of the finest level in: never where rounding decides. */
		host_points[i] = (point){(random_u32(&seed) % SIZE + 0.25f) / SIZE, (random_u32(&seed) % SIZE + 0.25f) / SIZE, (float)lod, 0};
		want[i] = at(lod, host_points[i].x, host_points[i].y);
	}
	run(nearest, 0, 0);
	compare("levels", want, 0);
	run(nearest, 1, 0);
	compare("gradients", want, 0);
	for (int i = 0; i < N; i++) {
		int lod = (int)host_points[i].lod + 1;

		want[i] = at(lod < 2 ? 2 : lod > 4 ? 4 : lod, host_points[i].x, host_points[i].y);
	}
	run(biased, 0, 0);
	compare("biased and clamped", want, 0);
	for (int i = 0; i < N; i++) {
		int lod = (int)host_points[i].lod;

		host_points[i].lod += 0.25f;
		want[i] = 0.75f * at(lod, host_points[i].x, host_points[i].y) + 0.25f * at(lod + 1, host_points[i].x, host_points[i].y);
		host_points[i].layer = i % 3;
	}
	run(between, 0, 0);
	compare("between levels", want, 0.01f);
	CHECK(cudaDestroyTextureObject(nearest));
	CHECK(cudaDestroyTextureObject(between));
	CHECK(cudaDestroyTextureObject(biased));
	CHECK(cudaFreeMipmappedArray(m));

	/* Layers keep their number from level to level, slices halve. */
	cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
	cudaExtent extent;
	CHECK(cudaMallocMipmappedArray(&m, &f, make_cudaExtent(SIZE, SIZE, 3), 2, cudaArrayLayered));
	for (int i = 0; i < 2; i++) {
		CHECK(cudaGetMipmappedArrayLevel(&level, m, i));
		CHECK(cudaArrayGetInfo(NULL, &extent, NULL, level));
		EXPECT(extent.width == (size_t)SIZE >> i && extent.depth == 3);
		for (int layer = 0; layer < 3; layer++) {
			cudaMemcpy3DParms p;

			memset(&p, 0, sizeof(p));
			p.srcPtr = make_cudaPitchedPtr(levels[i], sizeof(levels[0][0]), SIZE, SIZE);
			p.dstArray = level;
			p.dstPos = make_cudaPos(0, 0, layer);
			p.extent = make_cudaExtent(SIZE >> i, SIZE >> i, 1);
			p.kind = cudaMemcpyHostToDevice;
			CHECK(cudaMemcpy3D(&p));
		}
	}
	seen = make(m, false, 0, 0, LEVELS, NULL);
	for (int i = 0; i < N; i++) {
		host_points[i].lod = (float)(i % 2);
		want[i] = at(i % 2, host_points[i].x, host_points[i].y);
	}
	run(seen, 0, 1);
	compare("layers", want, 0);
	CHECK(cudaDestroyTextureObject(seen));
	CHECK(cudaFreeMipmappedArray(m));

	CHECK(cudaMallocMipmappedArray(&m, &f, make_cudaExtent(SIZE, SIZE, 4), 3, 0));
	for (int i = 0; i < 3; i++) {
		CHECK(cudaGetMipmappedArrayLevel(&level, m, i));
		CHECK(cudaArrayGetInfo(NULL, &extent, NULL, level));
		EXPECT(extent.width == (size_t)SIZE >> i && extent.depth == (size_t)4 >> i);
		for (size_t z = 0; z < extent.depth; z++) {
			cudaMemcpy3DParms p;

			memset(&p, 0, sizeof(p));
			p.srcPtr = make_cudaPitchedPtr(levels[i], sizeof(levels[0][0]), SIZE, SIZE);
			p.dstArray = level;
			p.dstPos = make_cudaPos(0, 0, z);
			p.extent = make_cudaExtent(SIZE >> i, SIZE >> i, 1);
			p.kind = cudaMemcpyHostToDevice;
			CHECK(cudaMemcpy3D(&p));
		}
	}
	seen = make(m, false, 0, 0, LEVELS, NULL);
	for (int i = 0; i < N; i++) {
		host_points[i].lod = (float)(i % 3);
		want[i] = at(i % 3, host_points[i].x, host_points[i].y);
	}
	CHECK(cudaMemcpy(points, host_points, sizeof(host_points), cudaMemcpyHostToDevice));
	sample_3d<<<N / 64, 64>>>(seen, points, results);
	compare("slices", want, 0);
	CHECK(cudaDestroyTextureObject(seen));
	CHECK(cudaFreeMipmappedArray(m));
	CHECK(cudaFree(points));
	CHECK(cudaFree(results));
	return finish();
}
