/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's memory: allocation, copies and fills in every form. */
#include "runtime.h"

CASE(alloc)
{
	struct cudaPitchedPtr p;
	struct cudaExtent extent = {100, 6, 3}, flat = {100, 6, 0}, none = {0, 0, 0};
	void *q = (void *)8;
	size_t pitch = 77;
	memset(&p, 0xee, sizeof(p));
	CALL(cudaMalloc3D, &p, extent);
	YES("some", p.ptr != NULL);
	YES("pitch", p.pitch >= 100 && p.pitch % 32 == 0);
	NUMBER("x", (long long)p.xsize);
	NUMBER("y", (long long)p.ysize);
	CALL(cudaMemset, p.ptr, 1, p.pitch * 18);
	CALL(cudaFree, p.ptr);
	memset(&p, 0xee, sizeof(p));
	CALL(cudaMalloc3D, &p, flat);
	YES("null", p.ptr == NULL);
	NUMBER("pitch", (long long)p.pitch);
	CALL(cudaMalloc3D, &p, none);
	YES("null", p.ptr == NULL);
	CALL(cudaMallocPitch, &q, &pitch, 100, 6);
	YES("pitch", pitch >= 100 && pitch % 32 == 0);
	CALL(cudaFree, q);
	CALL(cudaMalloc, &q, 0);
	YES("null", q == NULL);
	CALL(cudaFree, NULL);
}

CASE(alloc_wrong)
{
	struct cudaPitchedPtr p;
	struct cudaExtent extent = {100, 6, 3}, large = {(size_t)1 << 40, 1 << 20, 3},
			  huge = {(size_t)1 << 60, (size_t)1 << 60, (size_t)1 << 60};
	void *q = (void *)8;
	CALL(cudaMalloc3D, NULL, extent);
	CALL(cudaMalloc3D, &p, large);
	CALL(cudaMalloc3D, &p, huge);
	CALL(cudaMalloc, &q, (size_t)1 << 60);
	YES("untouched", q == (void *)8);
	CALL(cudaMalloc, NULL, 16);
	CALL(cudaFree, (void *)0x1000);
	CALL(cudaGetLastError);
}

CASE(async_per_thread)
{
	void *p = NULL;
	CALL_AS(cudaMallocAsync, cudaMallocAsync_ptsz, &p, 1000, NULL);
	YES("some", p != NULL);
	CALL_AS(cudaMemsetAsync, cudaMemsetAsync_ptsz, p, 3, 1000, NULL);
	CONTENT("bytes", p, 1000);
	CALL_AS(cudaFreeAsync, cudaFreeAsync_ptsz, p, NULL);
	CALL(cudaStreamSynchronize, cudaStreamPerThread);
}

CASE(copy)
{
	uint8_t out[32], back[32], again[32];
	char *p = memory(64), *q = memory(64);
	numbers(out, sizeof(out), 1);
	memset(back, 0xee, sizeof(back));
	memset(again, 0xee, sizeof(again));
	CALL(cudaMemcpy, p, out, 16, cudaMemcpyHostToDevice);
	CONTENT("bytes", p, 20);
	CALL(cudaMemcpy, q + 4, p, 16, cudaMemcpyDeviceToDevice);
	CONTENT("bytes", q, 24);
	CALL(cudaMemcpy, back, q, 16, cudaMemcpyDeviceToHost);
	BYTES("bytes", back, 20);
	CALL(cudaMemcpy, again, back, 8, cudaMemcpyHostToHost);
	BYTES("bytes", again, 12);
	CALL(cudaMemcpy, p + 32, out + 8, 8, cudaMemcpyDefault);
	CALL(cudaMemcpy, q + 32, p + 32, 8, cudaMemcpyDefault);
	CALL(cudaMemcpy, back, q + 30, 12, cudaMemcpyDefault);
	BYTES("bytes", back, 16);
	CALL(cudaMemcpy, p, out, 0, cudaMemcpyHostToDevice);
}

CASE(copy_per_thread)
{
	uint8_t out[32], back[32], again[32];
	char *p = memory(64), *q = memory(64);
	numbers(out, sizeof(out), 1);
	memset(back, 0xee, sizeof(back));
	memset(again, 0xee, sizeof(again));
	CALL_AS(cudaMemcpy, cudaMemcpy_ptds, p, out, 16, cudaMemcpyHostToDevice);
	CALL_AS(cudaMemcpy, cudaMemcpy_ptds, q + 4, p, 16, cudaMemcpyDeviceToDevice);
	CONTENT("bytes", q, 24);
	CALL_AS(cudaMemcpy, cudaMemcpy_ptds, back, q, 16, cudaMemcpyDeviceToHost);
	BYTES("bytes", back, 20);
	CALL_AS(cudaMemcpy, cudaMemcpy_ptds, again, back, 8, cudaMemcpyHostToHost);
	BYTES("bytes", again, 12);
	CALL_AS(cudaMemcpy, cudaMemcpy_ptds, back, p, 12, cudaMemcpyDefault);
	BYTES("bytes", back, 16);
}

CASE(copy_async)
{
	uint8_t out[32], back[32], again[32];
	char *p = memory(64), *q = memory(64);
	cudaStream_t stream = new_stream();
	numbers(out, sizeof(out), 1);
	memset(back, 0xee, sizeof(back));
	memset(again, 0xee, sizeof(again));
	CALL(cudaMemcpyAsync, p, out, 16, cudaMemcpyHostToDevice, stream);
	CALL(cudaMemcpyAsync, q + 4, p, 16, cudaMemcpyDeviceToDevice, stream);
	CALL(cudaMemcpyAsync, back, q, 20, cudaMemcpyDeviceToHost, stream);
	QUIET(cudaStreamSynchronize, stream);
	BYTES("bytes", back, 24);
	CALL(cudaMemcpyAsync, again, back, 8, cudaMemcpyHostToHost, stream);
	QUIET(cudaStreamSynchronize, stream);
	BYTES("bytes", again, 12);
	CALL(cudaMemcpyAsync, again, p + 1, 8, cudaMemcpyDefault, NULL);
	QUIET(cudaStreamSynchronize, NULL);
	BYTES("bytes", again, 12);
	CALL(cudaMemcpyAsync, again, p + 2, 8, cudaMemcpyDefault, cudaStreamLegacy);
	QUIET(cudaStreamSynchronize, NULL);
	BYTES("bytes", again, 12);
	CALL(cudaMemcpyAsync, p, out, 0, cudaMemcpyHostToDevice, stream);
}

CASE(copy_async_per_thread)
{
	uint8_t out[32], back[32];
	char *p = memory(64), *q = memory(64);
	numbers(out, sizeof(out), 1);
	memset(back, 0xee, sizeof(back));
	CALL_AS(cudaMemcpyAsync, cudaMemcpyAsync_ptsz, p, out, 16, cudaMemcpyHostToDevice, NULL);
	CALL_AS(cudaMemcpyAsync, cudaMemcpyAsync_ptsz, q + 4, p, 16, cudaMemcpyDeviceToDevice,
		NULL);
	CALL_AS(cudaMemcpyAsync, cudaMemcpyAsync_ptsz, back, q, 20, cudaMemcpyDeviceToHost, NULL);
	QUIET(cudaStreamSynchronize, cudaStreamPerThread);
	BYTES("bytes", back, 24);
	CALL_AS(cudaMemcpyAsync, cudaMemcpyAsync_ptsz, back, out, 8, cudaMemcpyDefault, NULL);
	QUIET(cudaStreamSynchronize, cudaStreamPerThread);
	BYTES("bytes", back, 24);
}

CASE(copy_wrong)
{
	uint8_t host[32];
	char *p = memory(64);
	cudaStream_t stream = new_stream();
	CALL(cudaMemcpy, p, host, 16, (enum cudaMemcpyKind)77);
	CALL(cudaMemcpy, NULL, host, 16, cudaMemcpyHostToDevice);
	CALL(cudaMemcpy, p, NULL, 16, cudaMemcpyHostToDevice);
	CALL(cudaMemcpy, NULL, NULL, 0, cudaMemcpyHostToDevice);
	CALL(cudaMemcpy, NULL, p, 16, cudaMemcpyDeviceToHost);
	CALL(cudaMemcpy, p, host, 16, cudaMemcpyDeviceToDevice);
	CALL(cudaMemcpy, (void *)0x1000, p, 16, cudaMemcpyDeviceToDevice);
	CALL(cudaMemcpy, p, host, (size_t)1 << 40, cudaMemcpyHostToDevice);
	CALL(cudaMemcpy, p, (char *)p + 32, (size_t)1 << 40, cudaMemcpyDeviceToDevice);
	CALL(cudaMemcpyAsync, p, host, 16, (enum cudaMemcpyKind)77, stream);
	CALL(cudaMemcpyAsync, NULL, host, 16, cudaMemcpyHostToDevice, stream);
	CALL(cudaMemcpyAsync, p, NULL, 16, cudaMemcpyHostToDevice, stream);
	CALL(cudaMemcpyAsync, p, host, 0, (enum cudaMemcpyKind)77, stream);
	CALL(cudaGetLastError);
}

CASE(two)
{
	uint8_t out[256], back[256];
	char *p = memory(256), *q = memory(256);
	numbers(out, sizeof(out), 1);
	memset(back, 0xee, sizeof(back));
	CALL(cudaMemcpy2D, p, 16, out, 20, 12, 4, cudaMemcpyHostToDevice);
	CONTENT("bytes", p, 80);
	CALL(cudaMemcpy2D, q + 3, 24, p, 16, 10, 3, cudaMemcpyDeviceToDevice);
	CONTENT("bytes", q, 96);
	CALL(cudaMemcpy2D, back, 13, q, 24, 13, 3, cudaMemcpyDeviceToHost);
	BYTES("bytes", back, 64);
	CALL(cudaMemcpy2D, back + 100, 7, out, 9, 5, 3, cudaMemcpyHostToHost);
	BYTES("bytes", back, 128);
	CALL(cudaMemcpy2D, back, 16, p, 16, 8, 2, cudaMemcpyDefault);
	BYTES("bytes", back, 32);
	CALL(cudaMemcpy2D, p, 16, out, 16, 0, 4, cudaMemcpyHostToDevice);
	CALL(cudaMemcpy2D, p, 16, out, 16, 16, 0, cudaMemcpyHostToDevice);
}

CASE(two_others)
{
	uint8_t out[256], back[256];
	char *p = memory(256), *q = memory(256);
	cudaStream_t stream = new_stream();
	numbers(out, sizeof(out), 1);
	memset(back, 0xee, sizeof(back));
	CALL_AS(cudaMemcpy2D, cudaMemcpy2D_ptds, p, 16, out, 20, 12, 4, cudaMemcpyHostToDevice);
	CALL_AS(cudaMemcpy2D, cudaMemcpy2D_ptds, q + 3, 24, p, 16, 10, 3, cudaMemcpyDeviceToDevice);
	CONTENT("bytes", q, 96);
	CALL_AS(cudaMemcpy2D, cudaMemcpy2D_ptds, back, 13, q, 24, 13, 3, cudaMemcpyDeviceToHost);
	BYTES("bytes", back, 64);
	CALL(cudaMemcpy2DAsync, q, 32, out + 9, 16, 16, 4, cudaMemcpyHostToDevice, stream);
	CALL(cudaMemcpy2DAsync, p, 16, q, 32, 16, 4, cudaMemcpyDeviceToDevice, stream);
	CALL(cudaMemcpy2DAsync, back, 20, p, 16, 16, 4, cudaMemcpyDeviceToHost, stream);
	QUIET(cudaStreamSynchronize, stream);
	BYTES("bytes", back, 96);
	CALL_AS(cudaMemcpy2DAsync, cudaMemcpy2DAsync_ptsz, q, 32, out + 19, 16, 16, 4,
		cudaMemcpyHostToDevice, NULL);
	CALL_AS(cudaMemcpy2DAsync, cudaMemcpy2DAsync_ptsz, back, 20, q, 32, 16, 4,
		cudaMemcpyDefault, NULL);
	QUIET(cudaStreamSynchronize, cudaStreamPerThread);
	BYTES("bytes", back, 96);
}

CASE(two_wrong)
{
	uint8_t host[256];
	char *p = memory(256);
	cudaStream_t stream = new_stream();
	CALL(cudaMemcpy2D, p, 8, host, 16, 12, 4, cudaMemcpyHostToDevice);
	CALL(cudaMemcpy2D, p, 16, host, 8, 12, 4, cudaMemcpyHostToDevice);
	CALL(cudaMemcpy2D, p, 8, host, 8, 12, 1, cudaMemcpyHostToDevice);
	CALL(cudaMemcpy2D, p, (size_t)1 << 40, host, (size_t)1 << 40, 12, 1,
		cudaMemcpyHostToDevice);
	CALL(cudaMemcpy2D, p, (size_t)1 << 40, host, 16, 12, 2, cudaMemcpyHostToDevice);
	CALL(cudaMemcpy2D, NULL, 16, host, 16, 12, 2, cudaMemcpyHostToDevice);
	CALL(cudaMemcpy2D, p, 16, NULL, 16, 12, 2, cudaMemcpyHostToDevice);
	CALL(cudaMemcpy2D, p, 16, host, 16, 12, 2, (enum cudaMemcpyKind)77);
	CALL(cudaMemcpy2DAsync, p, 8, host, 16, 12, 4, cudaMemcpyHostToDevice, stream);
	CALL(cudaMemcpy2DAsync, p, 16, host, 16, 12, 4, (enum cudaMemcpyKind)77, stream);
	CALL(cudaMemcpy2DAsync, NULL, 16, host, 16, 12, 4, cudaMemcpyHostToDevice, stream);
	CALL(cudaMemcpy2DAsync, p, 16, host, 16, 0, 0, (enum cudaMemcpyKind)77, stream);
	CALL(cudaGetLastError);
}

static struct cudaMemcpy3DParms box(
	void *dst, const void *src, size_t pitch, enum cudaMemcpyKind kind)
{
	struct cudaMemcpy3DParms p;
	memset(&p, 0, sizeof(p));
	p.srcPtr.ptr = (void *)(uintptr_t)src;
	p.srcPtr.pitch = p.srcPtr.xsize = pitch;
	p.srcPtr.ysize = 5;
	p.dstPtr.ptr = dst;
	p.dstPtr.pitch = p.dstPtr.xsize = 12;
	p.dstPtr.ysize = 4;
	p.extent.width = 8, p.extent.height = 3, p.extent.depth = 2;
	p.kind = kind;
	return p;
}

CASE(three)
{
	uint8_t out[256], back[256];
	char *p = memory(256);
	struct cudaMemcpy3DParms b;
	cudaStream_t stream = new_stream();
	numbers(out, sizeof(out), 1);
	memset(back, 0xee, sizeof(back));
	b = box(p, out, 10, cudaMemcpyHostToDevice);
	b.dstPos.x = 1, b.dstPos.y = 1, b.srcPos.z = 1;
	CALL(cudaMemcpy3D, &b);
	CONTENT("bytes", p, 256);
	b = box(back, p, 12, cudaMemcpyDeviceToHost);
	b.srcPos.x = 2;
	CALL(cudaMemcpy3D, &b);
	BYTES("bytes", back, 256);
	b = box(p + 128, p, 12, cudaMemcpyDeviceToDevice);
	CALL(cudaMemcpy3DAsync, &b, stream);
	QUIET(cudaStreamSynchronize, stream);
	CONTENT("bytes", p, 256);
	b = box(back, out, 10, cudaMemcpyHostToHost);
	CALL(cudaMemcpy3D, &b);
	BYTES("bytes", back, 256);
}

CASE(three_wrong)
{
	uint8_t out[256];
	char *p = memory(256);
	struct cudaMemcpy3DParms b;
	b = box(p, out, 10, (enum cudaMemcpyKind)77);
	CALL(cudaMemcpy3D, &b);
	b = box(p, out, 4, cudaMemcpyHostToDevice);
	CALL(cudaMemcpy3D, &b);
	b = box(NULL, out, 10, cudaMemcpyHostToDevice);
	CALL(cudaMemcpy3D, &b);
	b = box(p, NULL, 10, cudaMemcpyHostToDevice);
	CALL(cudaMemcpy3D, &b);
	b = box(p, out, 10, cudaMemcpyHostToDevice);
	b.dstPtr.ysize = 2;
	CALL(cudaMemcpy3D, &b);
	b = box(p, out, 10, cudaMemcpyHostToDevice);
	b.srcPos.x = 8;
	CALL(cudaMemcpy3D, &b);
	b = box(p, out, 10, cudaMemcpyHostToDevice);
	b.extent.depth = 0;
	CALL(cudaMemcpy3D, &b);
	CALL(cudaGetLastError);
}

CASE(peer)
{
	uint8_t out[32];
	char *p = memory(64), *q = memory(64);
	cudaStream_t stream = new_stream();
	QUIET(cudaMemcpy, p, numbers(out, sizeof(out), 1), 32, cudaMemcpyHostToDevice);
	CALL(cudaMemcpyPeer, q, 0, p, 0, 16);
	CONTENT("bytes", q, 20);
	CALL(cudaMemcpyPeerAsync, q + 4, 0, p + 8, 0, 16, stream);
	QUIET(cudaStreamSynchronize, stream);
	CONTENT("bytes", q, 24);
	CALL(cudaMemcpyPeerAsync, q + 8, 0, p, 0, 4, NULL);
	CONTENT("bytes", q, 24);
	CALL(cudaMemcpyPeer, q, 0, p, 0, 0);
}

CASE(peer_wrong)
{
	char *p = memory(64), *q = memory(64);
	cudaStream_t stream = new_stream();
	CALL(cudaMemcpyPeer, q, 999, p, 0, 16);
	CALL(cudaMemcpyPeer, q, 0, p, -1, 16);
	CALL(cudaMemcpyPeer, NULL, 0, p, 0, 16);
	CALL(cudaMemcpyPeer, q, 0, NULL, 0, 16);
	CALL(cudaMemcpyPeerAsync, q, 0, p, 999, 16, stream);
	CALL(cudaMemcpyPeerAsync, NULL, 0, p, 0, 16, stream);
	CALL(cudaGetLastError);
}

CASE(set)
{
	char *p = memory(256);
	cudaStream_t stream = new_stream();
	CALL(cudaMemset, p, 0x101, 12);
	CONTENT("bytes", p, 16);
	CALL_AS(cudaMemset, cudaMemset_ptds, p + 4, 2, 4);
	CONTENT("bytes", p, 16);
	CALL(cudaMemsetAsync, p + 8, 3, 4, stream);
	QUIET(cudaStreamSynchronize, stream);
	CONTENT("bytes", p, 16);
	CALL_AS(cudaMemsetAsync, cudaMemsetAsync_ptsz, p + 10, -1, 4, NULL);
	CONTENT("bytes", p, 16);
	CALL(cudaMemset, p, 1, 0);
	CALL(cudaMemsetAsync, p, 1, 0, stream);
}

CASE(set_two)
{
	char *p = memory(256);
	cudaStream_t stream = new_stream();
	CALL(cudaMemset2D, p, 16, 1, 10, 4);
	CONTENT("bytes", p, 80);
	CALL_AS(cudaMemset2D, cudaMemset2D_ptds, p + 1, 12, 2, 3, 3);
	CONTENT("bytes", p, 80);
	CALL(cudaMemset2DAsync, p + 2, 14, 3, 5, 4, stream);
	QUIET(cudaStreamSynchronize, stream);
	CONTENT("bytes", p, 80);
	CALL_AS(cudaMemset2DAsync, cudaMemset2DAsync_ptsz, p + 3, 20, 4, 20, 3, NULL);
	CONTENT("bytes", p, 80);
	CALL(cudaMemset2D, p, 16, 1, 0, 4);
	CALL(cudaMemset2D, p, 16, 1, 4, 0);
}

static struct cudaPitchedPtr at(void *pointer, size_t pitch, size_t width, size_t height)
{
	struct cudaPitchedPtr p = {pointer, pitch, width, height};
	return p;
}

CASE(set_three)
{
	char *p = memory(256);
	struct cudaExtent extent = {6, 3, 2}, flat = {6, 3, 1}, none = {6, 3, 0};
	cudaStream_t stream = new_stream();
	CALL(cudaMemset3D, at(p, 16, 16, 5), 1, extent);
	CONTENT("bytes", p, 256);
	CALL_AS(cudaMemset3D, cudaMemset3D_ptds, at(p + 1, 8, 8, 3), 2, extent);
	CONTENT("bytes", p, 256);
	CALL(cudaMemset3DAsync, at(p + 2, 20, 8, 4), 3, extent, stream);
	QUIET(cudaStreamSynchronize, stream);
	CONTENT("bytes", p, 256);
	CALL_AS(cudaMemset3DAsync, cudaMemset3DAsync_ptsz, at(p + 3, 16, 8, 6), 4, flat, NULL);
	CONTENT("bytes", p, 256);
	CALL(cudaMemset3D, at(p, 16, 16, 5), 1, none);
	CONTENT("bytes", p, 256);
}

CASE(set_wrong)
{
	char *p = memory(256);
	struct cudaExtent extent = {6, 3, 2};
	cudaStream_t stream = new_stream();
	CALL(cudaMemset, NULL, 1, 16);
	CALL(cudaMemset, (void *)0x1000, 1, 16);
	CALL(cudaMemset, p, 1, (size_t)1 << 40);
	CALL(cudaMemsetAsync, NULL, 1, 16, stream);
	CALL(cudaMemset2D, p, 8, 1, 10, 4);
	CALL(cudaMemset2D, p, 8, 1, 10, 1);
	CALL(cudaMemset2D, NULL, 16, 1, 10, 4);
	CALL(cudaMemset2DAsync, p, 8, 1, 10, 4, stream);
	CALL(cudaMemset3D, at(NULL, 16, 16, 5), 1, extent);
	CALL(cudaMemset3D, at(p, 4, 16, 5), 1, extent);
	CALL(cudaMemset3D, at(p, 16, 16, 2), 1, extent);
	CALL(cudaMemset3D, at(p, 16, 4, 5), 1, extent);
	CALL(cudaMemset3DAsync, at(p, 4, 16, 5), 1, extent, stream);
	CALL(cudaGetLastError);
}

CASE(batch)
{
	uint8_t out[32], back[16];
	char *p = memory(64), *q = memory(64);
	void *to[3] = {p, q + 8, q + 32};
	const void *from[3] = {out, q, out + 4};
	size_t sizes[3] = {8, 4, 6}, at_first[1] = {0};
	struct cudaMemcpyAttributes attributes[1];
	cudaStream_t stream = new_stream();
	numbers(out, sizeof(out), 1);
	memset(back, 0xee, sizeof(back));
	memset(attributes, 0, sizeof(attributes));
	attributes[0].srcAccessOrder = cudaMemcpySrcAccessOrderStream;
	CALL(cudaMemcpyBatchAsync, to, from, sizes, 3, attributes, at_first, 1, stream);
	QUIET(cudaStreamSynchronize, stream);
	CONTENT("bytes", p, 12);
	CONTENT("bytes", q, 40);
	to[0] = back, from[0] = p + 1;
	CALL_AS(cudaMemcpyBatchAsync, cudaMemcpyBatchAsync_ptsz, to, from, sizes, 1, attributes,
		at_first, 1, stream);
	QUIET(cudaStreamSynchronize, stream);
	BYTES("bytes", back, 16);
}

CASE(batch_wrong)
{
	char *p = memory(64), *q = memory(64);
	void *to[1] = {p};
	const void *from[1] = {q};
	size_t sizes[1] = {8}, at_first[1] = {0};
	struct cudaMemcpyAttributes attributes[1];
	cudaStream_t stream = new_stream();
	memset(attributes, 0, sizeof(attributes));
	attributes[0].srcAccessOrder = cudaMemcpySrcAccessOrderStream;
	CALL(cudaMemcpyBatchAsync, to, from, sizes, 1, attributes, at_first, 1, NULL);
	CALL(cudaMemcpyBatchAsync, to, from, sizes, 0, attributes, at_first, 1, stream);
	CALL(cudaMemcpyBatchAsync, to, from, sizes, 1, attributes, at_first, 0, stream);
	CALL(cudaMemcpyBatchAsync, NULL, from, sizes, 1, attributes, at_first, 1, stream);
	sizes[0] = 0;
	CALL(cudaMemcpyBatchAsync, to, from, sizes, 1, attributes, at_first, 1, stream);
	CALL(cudaGetLastError);
}

static void POINTER(const void *p)
{
	struct cudaPointerAttributes a;
	memset(&a, 0xee, sizeof(a));
	CALL(cudaPointerGetAttributes, &a, p);
	NUMBER("type", a.type);
	NUMBER("device", a.device);
	YES("device pointer", a.devicePointer == p);
	YES("host pointer", a.hostPointer == p);
}

CASE(pointers)
{
	static int ordinary;
	char *p = memory(64);
	void *pinned = NULL, *managed = NULL;
	QUIET(cudaMallocHost, &pinned, 64);
	QUIET(cudaMallocManaged, &managed, 64, cudaMemAttachGlobal);
	POINTER(p);
	POINTER(p + 3);
	POINTER(pinned);
	POINTER((char *)pinned + 60);
	POINTER(managed);
	POINTER(&ordinary);
	CALL(cudaFree, p);
	CALL(cudaGetLastError);
}

CASE(pointers_wrong)
{
	struct cudaPointerAttributes a;
	memset(&a, 0xee, sizeof(a));
	CALL(cudaPointerGetAttributes, &a, NULL);
	NUMBER("type", a.type);
	NUMBER("device", a.device);
	CALL(cudaPointerGetAttributes, NULL, &a);
	CALL(cudaGetLastError);
}

CASE(info)
{
	size_t free_before = 0, total = 0, free_after = 0;
	void *p = NULL;
	QUIET(cudaDeviceSynchronize);
	CALL(cudaMemGetInfo, &free_before, &total);
	YES("less than all", free_before > 0 && free_before <= total);
	QUIET(cudaMalloc, &p, 64 << 20);
	CALL(cudaMemGetInfo, &free_after, &total);
	YES("less", free_after <= free_before - (64 << 20));
	CALL(cudaMemGetInfo, NULL, NULL);
}

CASE(nothing)
{
	uint8_t host[256];
	char *p = memory(256);
	cudaStream_t stream = new_stream();
	struct cudaMemcpy3DParms b;
	CALL(cudaMemcpy, p, host, 0, (enum cudaMemcpyKind)77);
	CALL(cudaMemcpy, NULL, NULL, 0, cudaMemcpyDefault);
	CALL(cudaMemcpyAsync, NULL, NULL, 0, cudaMemcpyDefault, stream);
	CALL(cudaMemcpy2D, p, 16, host, 16, 0, 1, (enum cudaMemcpyKind)77);
	CALL(cudaMemcpy2D, p, 8, host, 8, 16, 0, cudaMemcpyHostToDevice);
	CALL(cudaMemcpy2DAsync, NULL, 8, NULL, 8, 16, 0, cudaMemcpyHostToDevice, stream);
	b = box(p, host, 10, (enum cudaMemcpyKind)77);
	b.extent.width = 0;
	CALL(cudaMemcpy3D, &b);
	CALL(cudaMemcpy3DAsync, &b, stream);
	b = box(p, host, 4, cudaMemcpyHostToDevice);
	b.extent.height = 0;
	CALL(cudaMemcpy3D, &b);
	CALL(cudaMemcpyPeer, p, 999, p, 0, 0);
	CALL(cudaMemcpyPeerAsync, p, 0, p, 999, 0, stream);
	CALL(cudaMemset, NULL, 1, 0);
	CALL(cudaMemset2D, NULL, 8, 1, 16, 0);
	CALL(cudaMemset3D, at(NULL, 4, 4, 1), 1, (struct cudaExtent){8, 8, 0});
	CALL(cudaGetLastError);
}

CASE(single_rows)
{
	uint8_t host[256];
	char *p = memory(256);
	cudaStream_t stream = new_stream();
	struct cudaMemcpy3DParms b;
	b = box(p, host, 4, cudaMemcpyHostToDevice);
	b.extent.height = b.extent.depth = 1;
	CALL(cudaMemcpy3D, &b);
	CALL(cudaMemcpy3DAsync, &b, stream);
	b = box(p, host, 10, cudaMemcpyHostToDevice);
	b.extent.depth = 1;
	b.srcPtr.ysize = 1;
	CALL(cudaMemcpy3D, &b);
	b = box(p, host, 10, cudaMemcpyHostToDevice);
	b.extent.height = b.extent.depth = 1;
	b.srcPtr.ysize = b.dstPtr.ysize = 0;
	CALL(cudaMemcpy3D, &b);
	b = box(p, host, 10, cudaMemcpyHostToDevice);
	b.dstPtr.xsize = 2;
	CALL(cudaMemcpy3D, &b);
	b = box(p, host, 0, cudaMemcpyHostToDevice);
	b.extent.height = b.extent.depth = 1;
	CALL(cudaMemcpy3D, &b);
	CALL(cudaMemcpy2D, p, 0, host, 0, 8, 1, cudaMemcpyHostToDevice);
	CALL(cudaMemset2D, p, 0, 1, 8, 1);
	CALL(cudaMemset3D, at(p, 4, 4, 0), 1, (struct cudaExtent){8, 1, 1});
	CALL(cudaGetLastError);
}

CASE(overlap)
{
	uint8_t out[32];
	char *p = memory(64);
	QUIET(cudaMemcpy, p, numbers(out, sizeof(out), 1), 32, cudaMemcpyHostToDevice);
	CALL(cudaMemcpy, p, p, 16, cudaMemcpyDeviceToDevice);
	CONTENT("bytes", p, 20);
}
