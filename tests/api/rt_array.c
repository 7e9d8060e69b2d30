/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime's arrays, textures and surfaces, and its copies with arrays. */
#include "api.h"
#undef __CUDA_API_VERSION_INTERNAL
#include <cuda_runtime_api.h>

#define QUIET(name, ...)                                           \
	do {                                                       \
		int quiet_ = (int)FUNCTION(name)(__VA_ARGS__);     \
		if (quiet_) {                                      \
			REMARK(#name " for the test: %d", quiet_); \
			api_end_case();                            \
		}                                                  \
	} while (0)

static struct cudaChannelFormatDesc channels(int bits, int count, enum cudaChannelFormatKind kind)
{
	struct cudaChannelFormatDesc d = {count > 0 ? bits : 0, count > 1 ? bits : 0,
		count > 2 ? bits : 0, count > 3 ? bits : 0, kind};
	return d;
}

static struct cudaExtent extent(size_t width, size_t height, size_t depth)
{
	struct cudaExtent e = {width, height, depth};
	return e;
}

static void FORMAT(const struct cudaChannelFormatDesc *d)
{
	NUMBER("x", d->x);
	NUMBER("y", d->y);
	NUMBER("z", d->z);
	NUMBER("w", d->w);
	NUMBER("kind", d->f);
}

static void EXTENT(const struct cudaExtent *e)
{
	NUMBER("width", (long long)e->width);
	NUMBER("height", (long long)e->height);
	NUMBER("depth", (long long)e->depth);
}

static void *numbers(void *data, size_t size, int first)
{
	for (size_t i = 0; i < size; i++)
		((uint8_t *)data)[i] = (uint8_t)(first + (int)i);
	return data;
}

static cudaArray_t words(size_t width, size_t height, size_t depth, unsigned flags)
{
	struct cudaChannelFormatDesc d = channels(32, 1, cudaChannelFormatKindUnsigned);
	cudaArray_t array = NULL;
	QUIET(cudaMalloc3DArray, &array, &d, extent(width, height, depth), flags);
	return array;
}

/* The first slice, by a plain copy. */
static void ARRAY(const char *what, cudaArray_t array, size_t bytes, size_t rows)
{
	static uint8_t data[1 << 16];
	memset(data, 0xcd, sizeof(data));
	QUIET(cudaDeviceSynchronize);
	QUIET(cudaMemcpy2DFromArray, data, bytes, array, 0, 0, bytes, rows, cudaMemcpyDeviceToHost);
	BYTES(what, data, bytes * rows);
}

CASE(channel)
{
	struct cudaChannelFormatDesc d = FUNCTION(cudaCreateChannelDesc)(
					     8, 8, 8, 8, cudaChannelFormatKindUnsigned),
				     said;
	cudaArray_t array = NULL;
	CALLED(cudaCreateChannelDesc);
	FORMAT(&d);
	QUIET(cudaMallocArray, &array, &d, 4, 4, 0);
	memset(&said, 0xff, sizeof(said));
	CALL(cudaGetChannelDesc, &said, array);
	FORMAT(&said);
	CALL(cudaGetChannelDesc, NULL, array);
}

CASE(array)
{
	static const struct {
		int bits, count;
		enum cudaChannelFormatKind kind;
		size_t width, height;
		unsigned flags;
	} list[] = {
		{8, 1, cudaChannelFormatKindUnsigned, 10, 0, 0},
		{16, 2, cudaChannelFormatKindSigned, 10, 6, 0},
		{32, 4, cudaChannelFormatKindFloat, 10, 6, cudaArraySurfaceLoadStore},
		{16, 4, cudaChannelFormatKindFloat, 10, 6, 0},
		{32, 1, cudaChannelFormatKindFloat, 16, 16, cudaArrayTextureGather},
		/* What is none. */
		{32, 3, cudaChannelFormatKindFloat, 10, 6, 0},
		{24, 1, cudaChannelFormatKindUnsigned, 10, 6, 0},
		{8, 1, cudaChannelFormatKindFloat, 10, 6, 0},
		{32, 1, cudaChannelFormatKindFloat, 0, 6, 0},
		{32, 1, cudaChannelFormatKindFloat, 200000, 6, 0},
		{32, 1, cudaChannelFormatKindNone, 10, 6, 0},
	};
	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
		struct cudaChannelFormatDesc said,
			d = channels(list[i].bits, list[i].count, list[i].kind);
		struct cudaExtent e;
		unsigned flags = 77;
		cudaArray_t array = NULL;
		if (CALL(cudaMallocArray, &array, &d, list[i].width, list[i].height, list[i].flags))
			continue;
		YES("some", array != NULL);
		memset(&said, 0xff, sizeof(said));
		memset(&e, 0xff, sizeof(e));
		CALL(cudaArrayGetInfo, &said, &e, &flags, array);
		FORMAT(&said);
		EXTENT(&e);
		HEX("flags", flags);
		CALL(cudaFreeArray, array);
	}
	CALL(cudaFreeArray, NULL);
	CALL(cudaMallocArray, NULL, NULL, 4, 4, 0);
}

CASE(array_3d)
{
	static const struct {
		size_t width, height, depth;
		unsigned flags;
	} list[] = {
		{10, 0, 0, 0},
		{10, 6, 0, 0},
		{10, 6, 4, 0},
		{10, 0, 4, cudaArrayLayered},
		{10, 6, 4, cudaArrayLayered},
		{8, 8, 6, cudaArrayCubemap},
		{8, 8, 12, cudaArrayCubemap | cudaArrayLayered},
		{0, 0, 0, 0},
		{10, 0, 4, 0},
		{8, 9, 6, cudaArrayCubemap},
		{8, 8, 5, cudaArrayCubemap},
		{10, 6, 0, cudaArrayLayered},
	};
	struct cudaChannelFormatDesc d = channels(32, 1, cudaChannelFormatKindFloat);
	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
		struct cudaExtent e;
		unsigned flags = 77;
		cudaArray_t array = NULL;
		if (CALL(cudaMalloc3DArray, &array, &d,
			    extent(list[i].width, list[i].height, list[i].depth), list[i].flags))
			continue;
		memset(&e, 0xff, sizeof(e));
		CALL(cudaArrayGetInfo, NULL, &e, &flags, array);
		EXTENT(&e);
		HEX("flags", flags);
		CALL(cudaFreeArray, array);
	}
}

CASE(properties)
{
	struct cudaArraySparseProperties sparse;
	struct cudaArrayMemoryRequirements needs;
	struct cudaChannelFormatDesc d = channels(32, 1, cudaChannelFormatKindFloat);
	cudaArray_t plane = NULL, array = words(16, 16, 0, 0);
	cudaMipmappedArray_t mipmap = NULL;
	QUIET(cudaMallocMipmappedArray, &mipmap, &d, extent(16, 16, 0), 2, 0);
	CALL(cudaArrayGetPlane, &plane, array, 0);
	CALL(cudaArrayGetSparseProperties, &sparse, array);
	CALL(cudaArrayGetMemoryRequirements, &needs, array, 0);
	CALL(cudaMipmappedArrayGetSparseProperties, &sparse, mipmap);
	CALL(cudaMipmappedArrayGetMemoryRequirements, &needs, mipmap, 0);
}

CASE(mipmap)
{
	cudaMipmappedArray_t mipmap = NULL;
	cudaArray_t level = NULL;
	struct cudaChannelFormatDesc d = channels(32, 1, cudaChannelFormatKindFloat);
	struct cudaExtent e;
	CALL(cudaMallocMipmappedArray, &mipmap, &d, extent(20, 12, 0), 9,
		cudaArraySurfaceLoadStore);
	for (unsigned i = 0; i < 6; i++) {
		if (CALL(cudaGetMipmappedArrayLevel, &level, mipmap, i))
			continue;
		memset(&e, 0xff, sizeof(e));
		CALL(cudaArrayGetInfo, NULL, &e, NULL, level);
		EXTENT(&e);
	}
	CALL(cudaFreeMipmappedArray, mipmap);
	CALL(cudaFreeMipmappedArray, NULL);
	CALL(cudaMallocMipmappedArray, &mipmap, &d, extent(0, 12, 0), 1, 0);
}

CASE(copy_2d)
{
	uint8_t out[512], back[512];
	cudaArray_t a = words(8, 6, 0, 0), b = words(8, 6, 0, 0);
	void *p = NULL;
	cudaStream_t stream;
	numbers(out, sizeof(out), 1);
	memset(back, 0xee, sizeof(back));
	QUIET(cudaMalloc, &p, 512);
	QUIET(cudaMemset, p, 0xab, 512);
	QUIET(cudaStreamCreate, &stream);
	CALL(cudaMemcpy2DToArray, a, 0, 0, out, 40, 32, 6, cudaMemcpyHostToDevice);
	ARRAY("array", a, 32, 6);
	CALL(cudaMemcpy2DToArray, a, 8, 1, out + 7, 20, 12, 4, cudaMemcpyHostToDevice);
	ARRAY("array", a, 32, 6);
	CALL(cudaMemcpy2DArrayToArray, b, 0, 0, a, 0, 0, 32, 6, cudaMemcpyDeviceToDevice);
	CALL(cudaMemcpy2DArrayToArray, b, 4, 2, a, 8, 0, 20, 3, cudaMemcpyDeviceToDevice);
	ARRAY("array", b, 32, 6);
	CALL(cudaMemcpy2DFromArray, p, 64, b, 0, 0, 32, 6, cudaMemcpyDeviceToDevice);
	CALL(cudaMemcpy2DFromArray, back, 40, b, 4, 1, 16, 4, cudaMemcpyDeviceToHost);
	BYTES("bytes", back, 160);
	CALL(cudaMemcpy2DToArrayAsync, a, 0, 0, p, 64, 32, 6, cudaMemcpyDeviceToDevice, stream);
	CALL(cudaMemcpy2DFromArrayAsync, back, 32, a, 0, 0, 32, 6, cudaMemcpyDefault, stream);
	CALL(cudaStreamSynchronize, stream);
	BYTES("bytes", back, 192);
	CALL(cudaMemcpy2DToArray, a, 4, 0, out, 40, 32, 6, cudaMemcpyHostToDevice);
	CALL(cudaMemcpy2DToArray, a, 0, 1, out, 40, 32, 6, cudaMemcpyHostToDevice);
	CALL(cudaMemcpy2DToArray, a, 0, 0, out, 20, 32, 6, cudaMemcpyHostToDevice);
	CALL(cudaMemcpy2DFromArray, NULL, 32, a, 0, 0, 32, 6, cudaMemcpyDeviceToHost);
	CALL(cudaMemcpy2DToArray, a, 0, 0, out, 40, 0, 6, cudaMemcpyHostToDevice);
	CALL(cudaGetLastError);
}

CASE(copy_2d_per_thread)
{
	uint8_t out[512], back[512];
	cudaArray_t a = words(8, 6, 0, 0), b = words(8, 6, 0, 0);
	numbers(out, sizeof(out), 1);
	memset(back, 0xee, sizeof(back));
	CALL_AS(cudaMemcpy2DToArray, cudaMemcpy2DToArray_ptds, a, 0, 0, out, 40, 32, 6,
		cudaMemcpyHostToDevice);
	CALL_AS(cudaMemcpy2DArrayToArray, cudaMemcpy2DArrayToArray_ptds, b, 0, 0, a, 0, 0, 32, 6,
		cudaMemcpyDeviceToDevice);
	ARRAY("array", b, 32, 6);
	CALL_AS(cudaMemcpy2DFromArray, cudaMemcpy2DFromArray_ptds, back, 40, b, 4, 1, 16, 4,
		cudaMemcpyDeviceToHost);
	BYTES("bytes", back, 160);
	CALL_AS(cudaMemcpy2DToArrayAsync, cudaMemcpy2DToArrayAsync_ptsz, a, 0, 0, out + 5, 40, 32,
		6, cudaMemcpyHostToDevice, NULL);
	CALL_AS(cudaMemcpy2DFromArrayAsync, cudaMemcpy2DFromArrayAsync_ptsz, back, 32, a, 0, 0, 32,
		6, cudaMemcpyDeviceToHost, NULL);
	CALL(cudaDeviceSynchronize);
	BYTES("bytes", back, 192);
}

CASE(copy_linear)
{
	uint8_t out[256], back[256];
	cudaArray_t a = words(8, 6, 0, 0), b = words(8, 6, 0, 0);
	cudaStream_t stream;
	numbers(out, sizeof(out), 1);
	memset(back, 0xee, sizeof(back));
	QUIET(cudaStreamCreate, &stream);
	CALL(cudaMemcpyToArray, a, 0, 0, out, 192, cudaMemcpyHostToDevice);
	ARRAY("array", a, 32, 6);
	CALL(cudaMemcpyToArray, a, 12, 1, out + 3, 68, cudaMemcpyHostToDevice);
	ARRAY("array", a, 32, 6);
	CALL(cudaMemcpyFromArray, back, a, 8, 2, 60, cudaMemcpyDeviceToHost);
	BYTES("bytes", back, 64);
	QUIET(cudaMemcpyToArray, b, 0, 0, out, 192, cudaMemcpyHostToDevice);
	CALL(cudaMemcpyArrayToArray, b, 4, 1, a, 0, 0, 64, cudaMemcpyDeviceToDevice);
	ARRAY("array", b, 32, 6);
	CALL(cudaMemcpyToArrayAsync, a, 0, 0, out + 50, 64, cudaMemcpyHostToDevice, stream);
	CALL(cudaMemcpyFromArrayAsync, back, a, 0, 0, 64, cudaMemcpyDeviceToHost, stream);
	CALL(cudaStreamSynchronize, stream);
	BYTES("bytes", back, 68);
	CALL(cudaMemcpyToArray, a, 0, 5, out, 64, cudaMemcpyHostToDevice);
	CALL(cudaGetLastError);
}

CASE(copy_linear_per_thread)
{
	uint8_t out[256], back[256];
	cudaArray_t a = words(8, 6, 0, 0), b = words(8, 6, 0, 0);
	numbers(out, sizeof(out), 1);
	memset(back, 0xee, sizeof(back));
	QUIET(cudaMemcpyToArray, b, 0, 0, out, 192, cudaMemcpyHostToDevice);
	CALL_AS(cudaMemcpyToArray, cudaMemcpyToArray_ptds, a, 0, 0, out, 192,
		cudaMemcpyHostToDevice);
	CALL_AS(cudaMemcpyArrayToArray, cudaMemcpyArrayToArray_ptds, b, 4, 1, a, 0, 0, 64,
		cudaMemcpyDeviceToDevice);
	ARRAY("array", b, 32, 6);
	CALL_AS(cudaMemcpyFromArray, cudaMemcpyFromArray_ptds, back, b, 8, 2, 60,
		cudaMemcpyDeviceToHost);
	BYTES("bytes", back, 64);
	CALL_AS(cudaMemcpyToArrayAsync, cudaMemcpyToArrayAsync_ptsz, a, 0, 0, out + 50, 64,
		cudaMemcpyHostToDevice, NULL);
	CALL_AS(cudaMemcpyFromArrayAsync, cudaMemcpyFromArrayAsync_ptsz, back, a, 0, 0, 64,
		cudaMemcpyDeviceToHost, NULL);
	CALL(cudaDeviceSynchronize);
	BYTES("bytes", back, 68);
}

static struct cudaMemcpy3DParms box(
	size_t width, size_t height, size_t depth, enum cudaMemcpyKind kind)
{
	struct cudaMemcpy3DParms p;
	memset(&p, 0, sizeof(p));
	p.extent = extent(width, height, depth);
	p.kind = kind;
	return p;
}

static struct cudaPitchedPtr at(void *pointer, size_t pitch, size_t width, size_t height)
{
	struct cudaPitchedPtr p = {pointer, pitch, width, height};
	return p;
}

CASE(copy_3d)
{
	static uint8_t out[4096], back[4096];
	cudaArray_t a = words(8, 6, 4, 0), b = words(8, 6, 4, 0);
	struct cudaMemcpy3DParms p;
	struct cudaMemcpy3DPeerParms peer;
	cudaStream_t stream;
	numbers(out, sizeof(out), 1);
	QUIET(cudaStreamCreate, &stream);
	p = box(8, 6, 4, cudaMemcpyHostToDevice);
	p.srcPtr = at(out, 40, 8, 7);
	p.dstArray = a;
	CALL(cudaMemcpy3D, &p);
	p.dstArray = b;
	p.srcPtr.ptr = out + 99;
	CALL_AS(cudaMemcpy3D, cudaMemcpy3D_ptds, &p);
	p = box(4, 4, 2, cudaMemcpyDeviceToDevice);
	p.srcArray = a;
	p.srcPos.x = 2;
	p.srcPos.y = 1;
	p.srcPos.z = 1;
	p.dstArray = b;
	p.dstPos.x = 1;
	p.dstPos.z = 2;
	CALL(cudaMemcpy3DAsync, &p, stream);
	CALL(cudaStreamSynchronize, stream);
	memset(back, 0xee, sizeof(back));
	p = box(8, 6, 4, cudaMemcpyDeviceToHost);
	p.srcArray = b;
	p.dstPtr = at(back, 32, 8, 6);
	CALL_AS(cudaMemcpy3DAsync, cudaMemcpy3DAsync_ptsz, &p, NULL);
	CALL(cudaDeviceSynchronize);
	BYTES("bytes", back, 1024);
	memset(&peer, 0, sizeof(peer));
	peer.srcArray = b;
	peer.dstArray = a;
	peer.extent = extent(8, 6, 4);
	CALL(cudaMemcpy3DPeer, &peer);
	ARRAY("array", a, 32, 6);
	CALL_AS(cudaMemcpy3DPeer, cudaMemcpy3DPeer_ptds, &peer);
	CALL(cudaMemcpy3DPeerAsync, &peer, stream);
	CALL_AS(cudaMemcpy3DPeerAsync, cudaMemcpy3DPeerAsync_ptsz, &peer, stream);
	CALL(cudaStreamSynchronize, stream);
	/* Beyond the array, of no array, both sides twice. */
	p.srcPos.z = 1;
	CALL(cudaMemcpy3D, &p);
	p = box(8, 6, 4, cudaMemcpyDeviceToHost);
	p.dstPtr = at(back, 32, 8, 6);
	CALL(cudaMemcpy3D, &p);
	p = box(0, 6, 4, cudaMemcpyDeviceToHost);
	p.srcArray = b;
	p.dstPtr = at(back, 32, 8, 6);
	CALL(cudaMemcpy3D, &p);
	CALL(cudaGetLastError);
}

CASE(batch)
{
	cudaArray_t a = words(8, 6, 4, 0), b = words(8, 6, 4, 0);
	struct cudaMemcpy3DBatchOp ops[3];
	cudaStream_t stream;
	void *pinned = NULL;
	QUIET(cudaMallocHost, &pinned, 4096);
	numbers(pinned, 4096, 1);
	QUIET(cudaStreamCreate, &stream);
	memset(ops, 0, sizeof(ops));
	ops[0].src.type = cudaMemcpyOperandTypePointer;
	ops[0].src.op.ptr.ptr = pinned;
	ops[0].src.op.ptr.rowLength = 8;
	ops[0].src.op.ptr.layerHeight = 6;
	ops[0].dst.type = cudaMemcpyOperandTypeArray;
	ops[0].dst.op.array.array = a;
	ops[0].extent = extent(8, 6, 4);
	ops[0].srcAccessOrder = cudaMemcpySrcAccessOrderStream;
	CALL(cudaMemcpy3DBatchAsync, 1, ops, 0, stream);
	CALL(cudaStreamSynchronize, stream);
	ARRAY("array", a, 32, 6);
	ops[0].src.op.ptr.ptr = (uint8_t *)pinned + 64;
	ops[0].dst.op.array.array = b;
	CALL_AS(cudaMemcpy3DBatchAsync, cudaMemcpy3DBatchAsync_ptsz, 1, ops, 0, stream);
	CALL(cudaStreamSynchronize, stream);
	ARRAY("array", b, 32, 6);
	CALL(cudaMemcpy3DBatchAsync, 0, ops, 0, stream);
	CALL(cudaMemcpy3DBatchAsync, 1, NULL, 0, stream);
	CALL(cudaMemcpy3DBatchAsync, 1, ops, 1, stream);
	ops[0].extent.width = 0;
	CALL(cudaMemcpy3DBatchAsync, 1, ops, 0, stream);
}

CASE(texture)
{
	cudaTextureObject_t t = 0;
	cudaArray_t a = words(8, 6, 0, 0);
	struct cudaResourceDesc r, said;
	struct cudaTextureDesc d, said_texture;
	struct cudaResourceViewDesc v, said_view;
	memset(&r, 0, sizeof(r));
	memset(&d, 0, sizeof(d));
	memset(&v, 0, sizeof(v));
	r.resType = cudaResourceTypeArray;
	r.res.array.array = a;
	d.addressMode[0] = cudaAddressModeBorder;
	d.addressMode[1] = cudaAddressModeClamp;
	d.borderColor[1] = 0.5f;
	v.format = cudaResViewFormatSignedInt1;
	v.width = 8;
	v.height = 6;
	CALL(cudaCreateTextureObject, &t, &r, &d, &v);
	YES("some", t != 0);
	memset(&said, 0xff, sizeof(said));
	CALL(cudaGetTextureObjectResourceDesc, &said, t);
	NUMBER("type", said.resType);
	YES("array", said.res.array.array == a);
	memset(&said_texture, 0xff, sizeof(said_texture));
	CALL(cudaGetTextureObjectTextureDesc, &said_texture, t);
	NUMBER("mode", said_texture.addressMode[0]);
	NUMBER("filter", said_texture.filterMode);
	NUMBER("read", said_texture.readMode);
	NUMBER("normalized", said_texture.normalizedCoords);
	FLOAT("border", said_texture.borderColor[1]);
	memset(&said_view, 0xff, sizeof(said_view));
	CALL(cudaGetTextureObjectResourceViewDesc, &said_view, t);
	NUMBER("format", said_view.format);
	NUMBER("width", (long long)said_view.width);
	CALL(cudaDestroyTextureObject, t);
	CALL(cudaCreateTextureObject, &t, &r, &d, NULL);
	CALL(cudaGetTextureObjectResourceViewDesc, &said_view, t);
	CALL(cudaDestroyTextureObject, t);
	CALL(cudaCreateTextureObject, NULL, &r, &d, NULL);
	CALL(cudaCreateTextureObject, &t, NULL, &d, NULL);
	CALL(cudaCreateTextureObject, &t, &r, NULL, NULL);
	d.filterMode = cudaFilterModeLinear;
	CALL(cudaCreateTextureObject, &t, &r, &d, NULL);
	d.filterMode = cudaFilterModePoint;
	d.readMode = cudaReadModeNormalizedFloat;
	CALL(cudaCreateTextureObject, &t, &r, &d, NULL);
	CALL(cudaDestroyTextureObject, 0);
	CALL(cudaGetLastError);
}

CASE(texture_memory)
{
	cudaTextureObject_t t = 0;
	struct cudaResourceDesc r, said;
	struct cudaTextureDesc d;
	void *p = NULL;
	QUIET(cudaMalloc, &p, 4096);
	memset(&r, 0, sizeof(r));
	memset(&d, 0, sizeof(d));
	r.resType = cudaResourceTypeLinear;
	r.res.linear.devPtr = p;
	r.res.linear.desc = channels(32, 4, cudaChannelFormatKindFloat);
	r.res.linear.sizeInBytes = 1024;
	CALL(cudaCreateTextureObject, &t, &r, &d, NULL);
	memset(&said, 0xff, sizeof(said));
	CALL(cudaGetTextureObjectResourceDesc, &said, t);
	NUMBER("type", said.resType);
	YES("address", said.res.linear.devPtr == p);
	NUMBER("bytes", (long long)said.res.linear.sizeInBytes);
	FORMAT(&said.res.linear.desc);
	CALL(cudaDestroyTextureObject, t);
	r.res.linear.devPtr = (char *)p + 16;
	CALL(cudaCreateTextureObject, &t, &r, &d, NULL);
	memset(&r, 0, sizeof(r));
	r.resType = cudaResourceTypePitch2D;
	r.res.pitch2D.devPtr = p;
	r.res.pitch2D.desc = channels(8, 2, cudaChannelFormatKindUnsigned);
	r.res.pitch2D.width = 16;
	r.res.pitch2D.height = 4;
	r.res.pitch2D.pitchInBytes = 64;
	d.readMode = cudaReadModeNormalizedFloat;
	d.filterMode = cudaFilterModeLinear;
	CALL(cudaCreateTextureObject, &t, &r, &d, NULL);
	memset(&said, 0xff, sizeof(said));
	CALL(cudaGetTextureObjectResourceDesc, &said, t);
	NUMBER("width", (long long)said.res.pitch2D.width);
	NUMBER("pitch", (long long)said.res.pitch2D.pitchInBytes);
	CALL(cudaDestroyTextureObject, t);
	r.res.pitch2D.pitchInBytes = 40;
	CALL(cudaCreateTextureObject, &t, &r, &d, NULL);
	CALL(cudaGetLastError);
}

CASE(surface)
{
	cudaSurfaceObject_t s = 0;
	cudaArray_t a = words(8, 6, 0, cudaArraySurfaceLoadStore);
	struct cudaResourceDesc r, said;
	memset(&r, 0, sizeof(r));
	r.resType = cudaResourceTypeArray;
	r.res.array.array = a;
	CALL(cudaCreateSurfaceObject, &s, &r);
	YES("some", s != 0);
	memset(&said, 0xff, sizeof(said));
	CALL(cudaGetSurfaceObjectResourceDesc, &said, s);
	NUMBER("type", said.resType);
	YES("array", said.res.array.array == a);
	CALL(cudaDestroySurfaceObject, s);
	r.res.array.array = words(8, 6, 0, 0);
	CALL(cudaCreateSurfaceObject, &s, &r);
	CALL(cudaDestroySurfaceObject, 0);
	CALL(cudaGetLastError);
}

CASE(linear_width)
{
	struct cudaChannelFormatDesc d = channels(32, 1, cudaChannelFormatKindFloat);
	size_t width = 0;
	CALL(cudaDeviceGetTexture1DLinearMaxWidth, &width, &d, 0);
	YES("2^27 or more", width >= 1 << 27);
	CALL(cudaDeviceGetTexture1DLinearMaxWidth, NULL, &d, 0);
	CALL(cudaDeviceGetTexture1DLinearMaxWidth, &width, &d, 999);
	CALL(cudaGetLastError);
}

/* Arrays whose memory comes later, and what they will need. */
CASE(memory_requirements)
{
	struct cudaChannelFormatDesc d = channels(8, 4, cudaChannelFormatKindUnsigned);
	struct cudaArrayMemoryRequirements needs;
	cudaArray_t array = NULL;
	cudaMipmappedArray_t mipmap = NULL;
	if (!CALL(cudaMalloc3DArray, &array, &d, extent(256, 128, 0), cudaArrayDeferredMapping)) {
		memset(&needs, 0xff, sizeof(needs));
		CALL(cudaArrayGetMemoryRequirements, &needs, array, 0);
		YES("enough",
			needs.size >= 256 * 128 * 4 && needs.alignment &&
				needs.size % needs.alignment == 0);
		CALL(cudaArrayGetMemoryRequirements, &needs, array, 999);
		CALL(cudaFreeArray, array);
	}
	if (!CALL(cudaMallocMipmappedArray, &mipmap, &d, extent(256, 128, 0), 3,
		    cudaArrayDeferredMapping)) {
		memset(&needs, 0xff, sizeof(needs));
		CALL(cudaMipmappedArrayGetMemoryRequirements, &needs, mipmap, 0);
		YES("enough",
			needs.size >= 256 * 128 * 5 && needs.alignment &&
				needs.size % needs.alignment == 0);
		CALL(cudaFreeMipmappedArray, mipmap);
	}
	CALL(cudaGetLastError);
}

CASE(sparse)
{
	struct cudaChannelFormatDesc d = channels(8, 4, cudaChannelFormatKindUnsigned);
	struct cudaArraySparseProperties tiles;
	cudaArray_t array = NULL;
	cudaMipmappedArray_t mipmap = NULL;
	if (!CALL(cudaMalloc3DArray, &array, &d, extent(1024, 1024, 0), cudaArraySparse)) {
		memset(&tiles, 0xff, sizeof(tiles));
		CALL(cudaArrayGetSparseProperties, &tiles, array);
		NUMBER("width", tiles.tileExtent.width);
		NUMBER("height", tiles.tileExtent.height);
		NUMBER("depth", tiles.tileExtent.depth);
		CALL(cudaFreeArray, array);
	}
	if (!CALL(cudaMallocMipmappedArray, &mipmap, &d, extent(1024, 1024, 0), 3,
		    cudaArraySparse)) {
		memset(&tiles, 0xff, sizeof(tiles));
		CALL(cudaMipmappedArrayGetSparseProperties, &tiles, mipmap);
		NUMBER("width", tiles.tileExtent.width);
		NUMBER("first", tiles.miptailFirstLevel);
		CALL(cudaFreeMipmappedArray, mipmap);
	}
	CALL(cudaGetLastError);
}

/* Pictures of several planes. */
CASE(planes)
{
	struct cudaChannelFormatDesc d, said;
	struct cudaExtent e;
	cudaArray_t array = NULL, plane = NULL;
	unsigned flags = 77;
	memset(&d, 0, sizeof(d));
	d.x = d.y = d.z = 8;
	d.f = cudaChannelFormatKindNV12;
	if (CALL(cudaMallocArray, &array, &d, 64, 32, 0))
		return;
	for (unsigned i = 0; i < 3; i++) {
		memset(&said, 0xff, sizeof(said));
		memset(&e, 0xff, sizeof(e));
		if (CALL(cudaArrayGetPlane, &plane, array, i))
			continue;
		YES("another", plane != array);
		CALL(cudaArrayGetInfo, &said, &e, &flags, plane);
		FORMAT(&said);
		EXTENT(&e);
	}
	CALL(cudaFreeArray, array);
	CALL(cudaGetLastError);
}

CASE(surface_ends)
{
	cudaArray_t a = words(8, 6, 0, cudaArraySurfaceLoadStore);
	cudaSurfaceObject_t s = 0;
	struct cudaResourceDesc r;
	memset(&r, 0, sizeof(r));
	r.resType = cudaResourceTypeArray;
	r.res.array.array = a;
	CALL(cudaCreateSurfaceObject, &s, &r);
	YES("some", s != 0);
	CALL(cudaDestroySurfaceObject, s);
	CALL(cudaFreeArray, a);
	CALL(cudaGetLastError);
}

/* All of a texture's description but the border. */
CASE(texture_description)
{
	cudaTextureObject_t t = 0;
	cudaMipmappedArray_t mipmap = NULL;
	struct cudaChannelFormatDesc c = channels(8, 4, cudaChannelFormatKindUnsigned);
	struct cudaResourceDesc r, said_resource;
	struct cudaTextureDesc d, said;
	memset(&r, 0, sizeof(r));
	memset(&d, 0, sizeof(d));
	QUIET(cudaMallocMipmappedArray, &mipmap, &c, extent(16, 8, 0), 3, 0);
	r.resType = cudaResourceTypeMipmappedArray;
	r.res.mipmap.mipmap = mipmap;
	d.addressMode[0] = cudaAddressModeMirror;
	d.addressMode[1] = cudaAddressModeWrap;
	d.addressMode[2] = cudaAddressModeClamp;
	d.filterMode = cudaFilterModeLinear;
	d.readMode = cudaReadModeNormalizedFloat;
	d.sRGB = 1;
	d.normalizedCoords = 1;
	d.maxAnisotropy = 4;
	d.mipmapFilterMode = cudaFilterModeLinear;
	d.mipmapLevelBias = 0.5f;
	d.minMipmapLevelClamp = 0.25f;
	d.maxMipmapLevelClamp = 1.5f;
	CALL(cudaCreateTextureObject, &t, &r, &d, NULL);
	memset(&said, 0xff, sizeof(said));
	CALL(cudaGetTextureObjectTextureDesc, &said, t);
	NUMBER("mode", said.addressMode[0]);
	NUMBER("mode", said.addressMode[1]);
	NUMBER("mode", said.addressMode[2]);
	NUMBER("filter", said.filterMode);
	NUMBER("read", said.readMode);
	NUMBER("srgb", said.sRGB);
	NUMBER("normalized", said.normalizedCoords);
	NUMBER("anisotropy", said.maxAnisotropy);
	NUMBER("between", said.mipmapFilterMode);
	FLOAT("bias", said.mipmapLevelBias);
	FLOAT("least", said.minMipmapLevelClamp);
	FLOAT("most", said.maxMipmapLevelClamp);
	NUMBER("no optimization", said.disableTrilinearOptimization);
	NUMBER("seamless", said.seamlessCubemap);
	CALL(cudaGetTextureObjectResourceDesc, &said_resource, t);
	YES("mipmap",
		said_resource.resType == cudaResourceTypeMipmappedArray &&
			said_resource.res.mipmap.mipmap == mipmap);
	CALL(cudaDestroyTextureObject, t);
	CALL(cudaFreeMipmappedArray, mipmap);
	CALL(cudaGetLastError);
}

/* Which ways to read go with which format and kind of memory. */
CASE(texture_modes)
{
	static const struct {
		int bits, count;
		enum cudaChannelFormatKind kind;
	} formats[] = {
		{8, 4, cudaChannelFormatKindUnsigned},
		{16, 2, cudaChannelFormatKindSigned},
		{32, 1, cudaChannelFormatKindUnsigned},
		{16, 1, cudaChannelFormatKindFloat},
		{32, 4, cudaChannelFormatKindFloat},
	};
	static const struct {
		enum cudaTextureFilterMode filter;
		enum cudaTextureReadMode read;
	} modes[] = {
		{cudaFilterModePoint, cudaReadModeElementType},
		{cudaFilterModePoint, cudaReadModeNormalizedFloat},
		{cudaFilterModeLinear, cudaReadModeElementType},
		{cudaFilterModeLinear, cudaReadModeNormalizedFloat},
	};
	void *p = NULL;
	QUIET(cudaMalloc, &p, 65536);
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		struct cudaChannelFormatDesc c =
			channels(formats[i].bits, formats[i].count, formats[i].kind);
		cudaArray_t array = NULL;
		cudaMipmappedArray_t mipmap = NULL;
		QUIET(cudaMallocArray, &array, &c, 16, 8, 0);
		QUIET(cudaMallocMipmappedArray, &mipmap, &c, extent(16, 8, 0), 2, 0);
		for (int kind = cudaResourceTypeArray; kind <= cudaResourceTypePitch2D; kind++) {
			struct cudaResourceDesc r;
			memset(&r, 0, sizeof(r));
			r.resType = (enum cudaResourceType)kind;
			switch (r.resType) {
			case cudaResourceTypeArray:
				r.res.array.array = array;
				break;
			case cudaResourceTypeMipmappedArray:
				r.res.mipmap.mipmap = mipmap;
				break;
			case cudaResourceTypeLinear:
				r.res.linear.devPtr = p;
				r.res.linear.desc = c;
				r.res.linear.sizeInBytes = 4096;
				break;
			default:
				r.res.pitch2D.devPtr = p;
				r.res.pitch2D.desc = c;
				r.res.pitch2D.width = 16;
				r.res.pitch2D.height = 8;
				r.res.pitch2D.pitchInBytes = 512;
			}
			for (size_t k = 0; k < sizeof(modes) / sizeof(*modes); k++) {
				struct cudaTextureDesc d;
				cudaTextureObject_t t = 0;
				memset(&d, 0, sizeof(d));
				d.filterMode = modes[k].filter;
				d.readMode = modes[k].read;
				d.normalizedCoords = kind == cudaResourceTypeMipmappedArray;
				if (!CALL(cudaCreateTextureObject, &t, &r, &d, NULL))
					QUIET(cudaDestroyTextureObject, t);
			}
		}
	}
}

CASE(no_objects)
{
	CALL(cudaFree, NULL);
	CALL(cudaDestroyTextureObject, 0);
	CALL(cudaDestroySurfaceObject, 0);
	CALL(cudaDestroyTextureObject, 12345);
	CALL(cudaDestroySurfaceObject, 12345);
	CALL(cudaGetLastError);
}
