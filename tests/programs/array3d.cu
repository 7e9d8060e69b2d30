/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays and every copy that the runtime has for them: two and three dimensions, between arrays, memory of the device and of the host, in
 * streams and not, whole and in part; what arrays say of themselves; memory that comes back.
 */
#include "phase.h"

enum { W = 37, H = 23, D = 11 };

static float in[D][H][W], out[D][H][W], plane[H][W];

static void fill(void *data, size_t bytes, uint32_t seed)
{
	float *p = (float *)data;

	for (size_t i = 0; i < bytes / 4; i++)
		p[i] = random_float(&seed);
}

static cudaMemcpy3DParms whole(cudaMemcpyKind kind)
{
	cudaMemcpy3DParms p;

	memset(&p, 0, sizeof(p));
	p.extent = make_cudaExtent(W, H, D);
	p.kind = kind;
	return p;
}

/* Rows, planes and boxes by way of everything there is. */
static void three_dimensions(cudaArray_t a, cudaStream_t stream)
{
	cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
	cudaPitchedPtr memory;
	cudaArray_t b;
	cudaMemcpy3DParms p;
	int wrong = 0;

	CHECK(cudaMalloc3DArray(&b, &f, make_cudaExtent(W, H, D), 0));
	CHECK(cudaMalloc3D(&memory, make_cudaExtent(W * sizeof(float), H, D)));
	/* Array to memory, memory to array, array to host. */
	p = whole(cudaMemcpyDeviceToDevice);
	p.srcArray = a;
	p.dstPtr = memory;
	CHECK(cudaMemcpy3D(&p));
	p = whole(cudaMemcpyDeviceToDevice);
	p.srcPtr = memory;
	p.dstArray = b;
	CHECK(cudaMemcpy3DAsync(&p, stream));
	p = whole(cudaMemcpyDeviceToHost);
	p.srcArray = b;
	p.dstPtr = make_cudaPitchedPtr(out, sizeof(out[0][0]), W, H);
	CHECK(cudaMemcpy3DAsync(&p, stream));
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(memcmp(in, out, sizeof(in)) == 0);
	/* A box from one array into another, elsewhere. */
	p = whole(cudaMemcpyDeviceToDevice);
	p.srcArray = a;
	p.srcPos = make_cudaPos(3, 4, 5);
	p.dstArray = b;
	p.dstPos = make_cudaPos(10, 1, 2);
	p.extent = make_cudaExtent(20, 15, 6);
	CHECK(cudaMemcpy3D(&p));
	p = whole(cudaMemcpyDefault);
	p.srcArray = b;
	p.dstPtr = make_cudaPitchedPtr(out, sizeof(out[0][0]), W, H);
	CHECK(cudaMemcpy3D(&p));
	for (int z = 0; z < D; z++)
		for (int y = 0; y < H; y++)
			for (int x = 0; x < W; x++) {
				bool inside = x >= 10 && x < 30 && y >= 1 && y < 16 && z >= 2 && z < 8;

				wrong += out[z][y][x] != (inside ? in[z - 2 + 5][y - 1 + 4][x - 10 + 3] : in[z][y][x]);
			}
	EXPECT(wrong == 0);
	/* A box from the host into the middle, and a box out. */
	static float box[4][5][6], box_back[4][5][6];
	fill(box, sizeof(box), 99);
	p = whole(cudaMemcpyHostToDevice);
	p.srcPtr = make_cudaPitchedPtr(box, sizeof(box[0][0]), 6, 5);
	p.dstArray = b;
	p.dstPos = make_cudaPos(1, 2, 3);
	p.extent = make_cudaExtent(6, 5, 4);
	CHECK(cudaMemcpy3D(&p));
	p = whole(cudaMemcpyDeviceToHost);
	p.srcArray = b;
	p.srcPos = make_cudaPos(1, 2, 3);
	p.dstPtr = make_cudaPitchedPtr(box_back, sizeof(box[0][0]), 6, 5);
	p.extent = make_cudaExtent(6, 5, 4);
	CHECK(cudaMemcpy3D(&p));
	EXPECT(memcmp(box, box_back, sizeof(box)) == 0);
	print_checksum("box", box_back, sizeof(box_back));
	/* Between "two" devices. */
	cudaMemcpy3DPeerParms peer;
	memset(&peer, 0, sizeof(peer));
	peer.srcArray = a;
	peer.dstArray = b;
	peer.extent = make_cudaExtent(W, H, D);
	CHECK(cudaMemcpy3DPeer(&peer));
	CHECK(cudaMemcpy3DPeerAsync(&peer, stream));
	CHECK(cudaStreamSynchronize(stream));
	p = whole(cudaMemcpyDeviceToHost);
	p.srcArray = b;
	p.dstPtr = make_cudaPitchedPtr(out, sizeof(out[0][0]), W, H);
	memset(out, 0, sizeof(out));
	CHECK(cudaMemcpy3D(&p));
	EXPECT(memcmp(in, out, sizeof(in)) == 0);
	/* Beyond the array. */
	p.srcPos = make_cudaPos(1, 0, 0);
	EXPECT_ERROR(cudaMemcpy3D(&p), cudaErrorInvalidValue);
	cudaGetLastError();
	CHECK(cudaFreeArray(b));
	CHECK(cudaFree(memory.ptr));
}

static void two_dimensions(cudaArray_t a, cudaStream_t stream)
{
	cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
	static float got[H][W], rows[H * W];
	float *memory, *pinned;
	size_t pitch;
	cudaArray_t b;

	CHECK(cudaMallocArray(&b, &f, W, H));
	CHECK(cudaMallocPitch(&memory, &pitch, W * sizeof(float), H));
	CHECK(cudaMallocHost(&pinned, sizeof(plane)));
	CHECK(cudaMemcpy2DFromArray(got, sizeof(got[0]), a, 0, 0, sizeof(got[0]), H, cudaMemcpyDeviceToHost));
	EXPECT(memcmp(got, plane, sizeof(got)) == 0);
	CHECK(cudaMemcpy2DArrayToArray(b, 0, 0, a, 0, 0, sizeof(got[0]), H, cudaMemcpyDeviceToDevice));
	CHECK(cudaMemcpy2DFromArrayAsync(memory, pitch, b, 0, 0, sizeof(got[0]), H, cudaMemcpyDeviceToDevice, stream));
	CHECK(cudaMemcpy2DAsync(pinned, sizeof(got[0]), memory, pitch, sizeof(got[0]), H, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(memcmp(pinned, plane, sizeof(plane)) == 0);
	/* A part: columns 5 to 15, rows 3 to 9, from memory that is pinned. */
	for (int i = 0; i < H * W; i++)
		pinned[i] = (float)i;
	CHECK(cudaMemcpy2DToArrayAsync(b, 5 * sizeof(float), 3, pinned, sizeof(got[0]), 10 * sizeof(float), 6, cudaMemcpyHostToDevice, stream));
	CHECK(cudaMemcpy2DFromArrayAsync(pinned, sizeof(got[0]), b, 0, 0, sizeof(got[0]), H, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	int wrong = 0;
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++) {
			bool inside = x >= 5 && x < 15 && y >= 3 && y < 9;

			wrong += pinned[y * W + x] != (inside ? (float)((y - 3) * W + x - 5) : plane[y][x]);
		}
	EXPECT(wrong == 0);
	print_checksum("part", pinned, sizeof(plane));
	/* Bytes along the rows: from inside one to inside another. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	for (int i = 0; i < H * W; i++)
		rows[i] = (float)(1000 + i);
	CHECK(cudaMemcpyToArray(b, 10 * sizeof(float), 2, rows, 100 * sizeof(float), cudaMemcpyHostToDevice));
	memset(rows, 0, sizeof(rows));
	CHECK(cudaMemcpyFromArray(rows, b, 10 * sizeof(float), 2, 100 * sizeof(float), cudaMemcpyDeviceToHost));
#pragma GCC diagnostic pop
	wrong = 0;
	for (int i = 0; i < 100; i++)
		wrong += rows[i] != (float)(1000 + i);
	EXPECT(wrong == 0);
	EXPECT_ERROR(cudaMemcpy2DToArray(b, 0, 1, plane, sizeof(got[0]), sizeof(got[0]), H, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
	cudaGetLastError();
	CHECK(cudaFreeHost(pinned));
	CHECK(cudaFreeArray(b));
	CHECK(cudaFree(memory));
}

/* Rows of 2 MiB, more than one message carries. */
static void wide(void)
{
	enum { WIDE = 131072, ROWS = 3 };
	cudaChannelFormatDesc f = cudaCreateChannelDesc<float4>();
	size_t bytes = (size_t)WIDE * 16 * ROWS;
	float *a = (float *)malloc(bytes), *b = (float *)malloc(bytes);
	cudaArray_t array;

	fill(a, bytes, 41);
	memset(b, 0, bytes);
	CHECK(cudaMallocArray(&array, &f, WIDE, ROWS));
	CHECK(cudaMemcpy2DToArray(array, 0, 0, a, WIDE * 16, WIDE * 16, ROWS, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy2DFromArray(b, WIDE * 16, array, 0, 0, WIDE * 16, ROWS, cudaMemcpyDeviceToHost));
	EXPECT(memcmp(a, b, bytes) == 0);
	print_checksum("wide", b, bytes);
	CHECK(cudaFreeArray(array));
	free(a);
	free(b);
}

static void what_arrays_say(void)
{
	static const struct {
		int x, y, z, w;
		cudaChannelFormatKind kind;
	} formats[] = {{8, 0, 0, 0, cudaChannelFormatKindUnsigned},   {8, 8, 0, 0, cudaChannelFormatKindSigned},
		       {16, 16, 16, 16, cudaChannelFormatKindUnsigned}, {32, 0, 0, 0, cudaChannelFormatKindSigned},
		       {16, 16, 0, 0, cudaChannelFormatKindFloat},      {32, 32, 32, 32, cudaChannelFormatKindFloat}};
	cudaArray_t a;
	cudaChannelFormatDesc f, said;
	cudaExtent extent;
	unsigned flags;

	for (const auto &format : formats) {
		f = cudaCreateChannelDesc(format.x, format.y, format.z, format.w, format.kind);
		CHECK(cudaMalloc3DArray(&a, &f, make_cudaExtent(20, 10, 4), cudaArrayLayered));
		CHECK(cudaArrayGetInfo(&said, &extent, &flags, a));
		EXPECT(memcmp(&said, &f, sizeof(f)) == 0 && extent.width == 20 && extent.height == 10 && extent.depth == 4);
		EXPECT(flags == cudaArrayLayered);
		memset(&said, 0, sizeof(said));
		CHECK(cudaGetChannelDesc(&said, a));
		EXPECT(memcmp(&said, &f, sizeof(f)) == 0);
		CHECK(cudaFreeArray(a));
	}
	f = cudaCreateChannelDesc(32, 32, 32, 0, cudaChannelFormatKindFloat);
	EXPECT(cudaMallocArray(&a, &f, 8, 8) != cudaSuccess);
	cudaGetLastError();
	f = cudaCreateChannelDesc<float>();
	/* No size, a cubemap that is none, too large. */
	EXPECT(cudaMallocArray(&a, &f, 0, 0) != cudaSuccess);
	EXPECT(cudaMalloc3DArray(&a, &f, make_cudaExtent(8, 9, 6), cudaArrayCubemap) != cudaSuccess);
	EXPECT(cudaMalloc3DArray(&a, &f, make_cudaExtent(8, 8, 7), cudaArrayCubemap) != cudaSuccess);
	EXPECT(cudaMalloc3DArray(&a, &f, make_cudaExtent(1 << 24, 8, 0), 0) != cudaSuccess);
	cudaGetLastError();
	CHECK(cudaFreeArray(NULL));
	size_t width = 0;
	CHECK(cudaDeviceGetTexture1DLinearMaxWidth(&width, &f, 0));
	EXPECT(width >= 1 << 27);
}

int main(void)
{
	cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
	cudaArray_t a, b, many[40];
	cudaStream_t stream;
	cudaMemcpy3DParms p;

	fill(in, sizeof(in), 1);
	fill(plane, sizeof(plane), 2);
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMalloc3DArray(&a, &f, make_cudaExtent(W, H, D), 0));
	CHECK(cudaMallocArray(&b, &f, W, H));
	p = whole(cudaMemcpyHostToDevice);
	p.srcPtr = make_cudaPitchedPtr(in, sizeof(in[0][0]), W, H);
	p.dstArray = a;
	CHECK(cudaMemcpy3D(&p));
	CHECK(cudaMemcpy2DToArrayAsync(b, 0, 0, plane, sizeof(plane[0]), sizeof(plane[0]), H, cudaMemcpyHostToDevice, stream));
	phase();
	CHECK(cudaStreamSynchronize(stream));
	two_dimensions(b, stream);
	three_dimensions(a, stream);
	what_arrays_say();
	/* Again half way through. */
	phase();
	p = whole(cudaMemcpyDeviceToHost);
	p.srcArray = a;
	p.dstPtr = make_cudaPitchedPtr(out, sizeof(out[0][0]), W, H);
	memset(out, 0, sizeof(out));
	CHECK(cudaMemcpy3D(&p));
	EXPECT(memcmp(in, out, sizeof(in)) == 0);
	wide();
	for (int i = 0; i < 40; i++)
		CHECK(cudaMallocArray(&many[i], &f, 1024, 512));
	for (int i = 0; i < 40; i++)
		CHECK(cudaFreeArray(many[i]));
	CHECK(cudaFreeArray(a));
	CHECK(cudaFreeArray(b));
	CHECK(cudaStreamDestroy(stream));
	return finish();
}
