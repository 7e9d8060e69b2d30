/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Surfaces: kernels write arrays of one to three dimensions, layers and faces, read them back, and what is outside is as the access says.
 * The objects are made, and half of the arrays written, before the mid point.
 */
#include "phase.h"

enum { W = 48, H = 20, D = 6 };

__device__ unsigned value(int x, int y, int z, unsigned salt)
{
	return (unsigned)(x * 2654435761u) ^ (unsigned)(y * 40503u << 8) ^ (unsigned)(z * 977u << 20) ^ salt;
}

static unsigned host_value(int x, int y, int z, unsigned salt)
{
	return (unsigned)(x * 2654435761u) ^ (unsigned)(y * 40503u << 8) ^ (unsigned)(z * 977u << 20) ^ salt;
}

enum kind { S1D, S2D, S3D, S1D_LAYERED, S2D_LAYERED, SCUBE, SCUBE_LAYERED };

__global__ void write_all(cudaSurfaceObject_t s, int kind, int w, int h, int d, unsigned salt)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, z = blockIdx.z;

	if (x >= w || y >= h || z >= d)
		return;
	unsigned v = value(x, y, z, salt);
	switch (kind) {
	case S1D: surf1Dwrite(v, s, x * 4); break;
	case S2D: surf2Dwrite(v, s, x * 4, y); break;
	case S3D: surf3Dwrite(v, s, x * 4, y, z); break;
	case S1D_LAYERED: surf1DLayeredwrite(v, s, x * 4, z); break;
	case S2D_LAYERED: surf2DLayeredwrite(v, s, x * 4, y, z); break;
	case SCUBE: surfCubemapwrite(v, s, x * 4, y, z); break;
	default: surfCubemapLayeredwrite(v, s, x * 4, y, z); break;
	}
}

__global__ void read_all(cudaSurfaceObject_t s, int kind, int w, int h, int d, unsigned salt, unsigned *wrong)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, z = blockIdx.z;
	unsigned v = 0;

	if (x >= w || y >= h || z >= d)
		return;
	switch (kind) {
	case S1D: v = surf1Dread<unsigned>(s, x * 4); break;
	case S2D: v = surf2Dread<unsigned>(s, x * 4, y); break;
	case S3D: v = surf3Dread<unsigned>(s, x * 4, y, z); break;
	case S1D_LAYERED: v = surf1DLayeredread<unsigned>(s, x * 4, z); break;
	case S2D_LAYERED: v = surf2DLayeredread<unsigned>(s, x * 4, y, z); break;
	case SCUBE: v = surfCubemapread<unsigned>(s, x * 4, y, z); break;
	default: v = surfCubemapLayeredread<unsigned>(s, x * 4, y, z); break;
	}
	if (v != value(x, y, z, salt))
		atomicAdd(wrong, 1);
}

/* Vectors, and what lies outside.  What a kernel writes by a surface only a later one reads. */
__global__ void write_vectors(cudaSurfaceObject_t s, int w)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;

	if (x < w)
		surf2Dwrite(make_uint4(x, y, x + y, x * y), s, x * 16, y, cudaBoundaryModeTrap);
	/* Writes outside are nothing. */
	surf2Dwrite(make_uint4(7, 7, 7, 7), s, -16, y, cudaBoundaryModeZero);
	surf2Dwrite(make_uint4(7, 7, 7, 7), s, w * 16, y, cudaBoundaryModeZero);
}

__global__ void read_vectors(cudaSurfaceObject_t s, int w, uint4 *out)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;

	if (x < w) {
		uint4 in = surf2Dread<uint4>(s, x * 16, y, cudaBoundaryModeTrap);
		uint4 zero = surf2Dread<uint4>(s, (x + w) * 16, y, cudaBoundaryModeZero);
		uint4 last = surf2Dread<uint4>(s, (x + w) * 16, y, cudaBoundaryModeClamp);
		out[y * w + x] = make_uint4(in.x + zero.x, in.y + zero.y, in.z + zero.z, last.x);
	}
}

struct one {
	int kind, w, h, d;
	unsigned flags;
	cudaArray_t array;
	cudaSurfaceObject_t surface;
};

static one list[] = {
	{S1D, W, 0, 0, 0, 0, 0},
	{S2D, W, H, 0, 0, 0, 0},
	{S3D, W, H, D, 0, 0, 0},
	{S1D_LAYERED, W, 0, D, cudaArrayLayered, 0, 0},
	{S2D_LAYERED, W, H, D, cudaArrayLayered, 0, 0},
	{SCUBE, H, H, 6, cudaArrayCubemap, 0, 0},
	{SCUBE_LAYERED, H, H, 12, cudaArrayCubemap | cudaArrayLayered, 0, 0},
};

static cudaSurfaceObject_t make(cudaArray_t array)
{
	cudaResourceDesc r;
	cudaSurfaceObject_t s;

	memset(&r, 0, sizeof(r));
	r.resType = cudaResourceTypeArray;
	r.res.array.array = array;
	CHECK(cudaCreateSurfaceObject(&s, &r));
	return s;
}

static dim3 blocks(const one *o)
{
	return dim3((o->w + 31) / 32, o->h ? o->h : 1, o->d ? o->d : 1);
}

int main(void)
{
	const int count = (int)(sizeof(list) / sizeof(*list));
	static unsigned host[12 * H * W];
	unsigned *wrong, said;
	cudaChannelFormatDesc f = cudaCreateChannelDesc<unsigned>();
	cudaResourceDesc r;
	cudaMemcpy3DParms p;

	CHECK(cudaMalloc(&wrong, sizeof(*wrong)));
	CHECK(cudaMemset(wrong, 0, sizeof(*wrong)));
	for (int i = 0; i < count; i++) {
		one *o = &list[i];

		CHECK(cudaMalloc3DArray(&o->array, &f, make_cudaExtent(o->w, o->h, o->d), o->flags | cudaArraySurfaceLoadStore));
		cudaSurfaceObject_t hole = make(o->array);
		o->surface = make(o->array);
		CHECK(cudaDestroySurfaceObject(hole));
		CHECK(cudaGetSurfaceObjectResourceDesc(&r, o->surface));
		EXPECT(r.resType == cudaResourceTypeArray && r.res.array.array == o->array);
		if (i % 2 == 0)
			write_all<<<blocks(o), 32>>>(o->surface, o->kind, o->w, o->h ? o->h : 1, o->d ? o->d : 1, 1000 + i);
	}
	CHECK(cudaDeviceSynchronize());
	phase();
	for (int i = 0; i < count; i++) {
		one *o = &list[i];
		int h = o->h ? o->h : 1, d = o->d ? o->d : 1, bad = 0;

		if (i % 2)
			write_all<<<blocks(o), 32>>>(o->surface, o->kind, o->w, h, d, 1000 + i);
		read_all<<<blocks(o), 32>>>(o->surface, o->kind, o->w, h, d, 1000 + i, wrong);
		memset(&p, 0, sizeof(p));
		p.srcArray = o->array;
		p.dstPtr = make_cudaPitchedPtr(host, o->w * 4, o->w, h);
		p.extent = make_cudaExtent(o->w, h, d);
		p.kind = cudaMemcpyDeviceToHost;
		CHECK(cudaMemcpy3D(&p));
		for (int z = 0; z < d; z++)
			for (int y = 0; y < h; y++)
				for (int x = 0; x < o->w; x++)
					bad += host[(z * h + y) * o->w + x] != host_value(x, y, z, 1000 + i);
		if (bad)
			printf("kind %d: %d elements of the array are wrong\n", o->kind, bad);
		EXPECT(bad == 0);
		printf("kind %d: %016llx\n", o->kind, (unsigned long long)checksum(host, (size_t)o->w * h * d * 4));
		CHECK(cudaDestroySurfaceObject(o->surface));
		CHECK(cudaFreeArray(o->array));
	}
	CHECK(cudaMemcpy(&said, wrong, sizeof(said), cudaMemcpyDeviceToHost));
	EXPECT(said == 0);

	/* Elements of sixteen bytes. */
	static uint4 got[H * W];
	uint4 *out;
	int bad = 0;
	cudaArray_t a;
	f = cudaCreateChannelDesc<uint4>();
	CHECK(cudaMallocArray(&a, &f, W, H, cudaArraySurfaceLoadStore));
	cudaSurfaceObject_t s = make(a);
	CHECK(cudaMalloc(&out, sizeof(got)));
	write_vectors<<<dim3(1, H), 64>>>(s, W);
	read_vectors<<<dim3(1, H), 64>>>(s, W, out);
	CHECK(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++) {
			uint4 v = got[y * W + x];

			bad += v.x != (unsigned)x || v.y != (unsigned)y || v.z != (unsigned)(x + y);
		}
	EXPECT(bad == 0);
	/* Which element a clamped access of several words meets, CUDA does not say. */
	print_checksum("vectors", got, sizeof(got));
	CHECK(cudaDestroySurfaceObject(s));
	CHECK(cudaFreeArray(a));
	CHECK(cudaFree(out));
	CHECK(cudaFree(wrong));
	return finish();
}
