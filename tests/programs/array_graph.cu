/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies with arrays in graphs: captured and built by hand, from and to the host, the device and other arrays, with a kernel in between that
 * reads by a texture and writes by a surface.  The graph is launched before the mid point and behind it.
 */
#include "phase.h"

enum { W = 29, H = 17, D = 3 };

__global__ void twice(cudaTextureObject_t from, cudaSurfaceObject_t to)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;

	if (x < W)
		surf2Dwrite(2 * tex2D<float>(from, x + 0.5f, y + 0.5f), to, x * 4, y);
}

static float in[H][W], out[H][W], box_in[D][H][W], box_out[D][H][W];

static void check(float factor)
{
	int wrong = 0;

	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++)
			wrong += out[y][x] != factor * in[y][x];
	EXPECT(wrong == 0);
	print_checksum("twice", out, sizeof(out));
}

static void fill(void *data, size_t bytes, uint32_t seed)
{
	for (size_t i = 0; i < bytes / 4; i++)
		((float *)data)[i] = random_float(&seed);
}

int main(void)
{
	cudaChannelFormatDesc f = cudaCreateChannelDesc<float>();
	cudaArray_t a, b, boxes, more;
	cudaMipmappedArray_t m;
	cudaArray_t level;
	cudaResourceDesc r;
	cudaTextureDesc d;
	cudaTextureObject_t t;
	cudaSurfaceObject_t s;
	cudaStream_t stream;
	cudaGraph_t graph, built;
	cudaGraphExec_t exec, exec_built;
	cudaGraphNode_t first, second;
	cudaMemcpy3DParms p, said;
	float *memory;
	size_t pitch;

	fill(in, sizeof(in), 5);
	fill(box_in, sizeof(box_in), 6);
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMallocArray(&a, &f, W, H));
	CHECK(cudaMallocArray(&b, &f, W, H, cudaArraySurfaceLoadStore));
	CHECK(cudaMalloc3DArray(&boxes, &f, make_cudaExtent(W, H, D), 0));
	CHECK(cudaMalloc3DArray(&more, &f, make_cudaExtent(W, H, D), 0));
	CHECK(cudaMallocMipmappedArray(&m, &f, make_cudaExtent(2 * W, 2 * H, 0), 2, 0));
	CHECK(cudaGetMipmappedArrayLevel(&level, m, 1));
	CHECK(cudaMallocPitch(&memory, &pitch, W * 4, H));
	memset(&r, 0, sizeof(r));
	memset(&d, 0, sizeof(d));
	r.resType = cudaResourceTypeArray;
	r.res.array.array = a;
	CHECK(cudaCreateTextureObject(&t, &r, &d, NULL));
	r.res.array.array = b;
	CHECK(cudaCreateSurfaceObject(&s, &r));

	/* Host, array, kernel, array, level of a mipmapped array, memory, host. */
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CHECK(cudaMemcpy2DToArrayAsync(a, 0, 0, in, W * 4, W * 4, H, cudaMemcpyHostToDevice, stream));
	twice<<<dim3(1, H), 32, 0, stream>>>(t, s);
	memset(&p, 0, sizeof(p));
	p.srcArray = b;
	p.dstArray = level;
	p.extent = make_cudaExtent(W, H, 1);
	p.kind = cudaMemcpyDeviceToDevice;
	CHECK(cudaMemcpy3DAsync(&p, stream));
	CHECK(cudaMemcpy2DFromArrayAsync(memory, pitch, level, 0, 0, W * 4, H, cudaMemcpyDeviceToDevice, stream));
	CHECK(cudaMemcpy2DAsync(out, W * 4, memory, pitch, W * 4, H, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));

	/* A box into one array, from there into another, and out. */
	CHECK(cudaGraphCreate(&built, 0));
	memset(&p, 0, sizeof(p));
	p.srcPtr = make_cudaPitchedPtr(box_in, W * 4, W, H);
	p.dstArray = boxes;
	p.extent = make_cudaExtent(W, H, D);
	p.kind = cudaMemcpyHostToDevice;
	CHECK(cudaGraphAddMemcpyNode(&first, built, NULL, 0, &p));
	memset(&said, 0xff, sizeof(said));
	CHECK(cudaGraphMemcpyNodeGetParams(first, &said));
	EXPECT(said.dstArray == boxes && said.extent.width == W && said.extent.depth == D);
	memset(&p, 0, sizeof(p));
	p.srcArray = boxes;
	p.dstArray = more;
	p.extent = make_cudaExtent(W, H, D);
	p.kind = cudaMemcpyDeviceToDevice;
	CHECK(cudaGraphAddMemcpyNode(&second, built, &first, 1, &p));
	memset(&p, 0, sizeof(p));
	p.srcArray = more;
	p.dstPtr = make_cudaPitchedPtr(box_out, W * 4, W, H);
	p.extent = make_cudaExtent(W, H, D);
	p.kind = cudaMemcpyDeviceToHost;
	CHECK(cudaGraphAddMemcpyNode(&first, built, &second, 1, &p));
	/* Beyond the array. */
	p.srcPos = make_cudaPos(1, 0, 0);
	EXPECT(cudaGraphAddMemcpyNode(&second, built, NULL, 0, &p) != cudaSuccess);
	cudaGetLastError();
	CHECK(cudaGraphInstantiate(&exec_built, built, 0));

	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	check(2);
	phase();
	/* What the host has now, through graphs that were made before. */
	fill(in, sizeof(in), 7);
	memset(out, 0, sizeof(out));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	check(2);
	CHECK(cudaGraphLaunch(exec_built, stream));
	CHECK(cudaStreamSynchronize(stream));
	EXPECT(memcmp(box_in, box_out, sizeof(box_in)) == 0);
	print_checksum("boxes", box_out, sizeof(box_out));

	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphExecDestroy(exec_built));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaGraphDestroy(built));
	CHECK(cudaDestroyTextureObject(t));
	CHECK(cudaDestroySurfaceObject(s));
	CHECK(cudaFreeArray(a));
	CHECK(cudaFreeArray(b));
	CHECK(cudaFreeArray(boxes));
	CHECK(cudaFreeArray(more));
	CHECK(cudaFreeMipmappedArray(m));
	CHECK(cudaFree(memory));
	CHECK(cudaStreamDestroy(stream));
	return finish();
}
