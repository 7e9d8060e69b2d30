/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA arrays and mipmapped arrays: what they are made of, and every copy with them. */
#include "driver.h"

static void SAID(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	NUMBER("width", (long long)d->Width);
	NUMBER("height", (long long)d->Height);
	NUMBER("depth", (long long)d->Depth);
	NUMBER("format", d->Format);
	NUMBER("channels", d->NumChannels);
	HEX("flags", d->Flags);
}

static CUDA_ARRAY3D_DESCRIPTOR describe(size_t width, size_t height, size_t depth,
	CUarray_format format, unsigned channels, unsigned flags)
{
	CUDA_ARRAY3D_DESCRIPTOR d;
	memset(&d, 0, sizeof(d));
	d.Width = width;
	d.Height = height;
	d.Depth = depth;
	d.Format = format;
	d.NumChannels = channels;
	d.Flags = flags;
	return d;
}

/* One that the test needs, of words. */
static CUarray words(size_t width, size_t height, size_t depth)
{
	CUarray array = NULL;
	CUDA_ARRAY3D_DESCRIPTOR d =
		describe(width, height, depth, CU_AD_FORMAT_UNSIGNED_INT32, 1, 0);
	QUIET(cuArray3DCreate_v2, &array, &d);
	return array;
}

/* A plain copy of a whole array's first slice to the host. */
static void ARRAY(const char *what, CUarray array, size_t bytes, size_t rows)
{
	static uint8_t data[1 << 16];
	CUDA_MEMCPY2D copy;
	memset(&copy, 0, sizeof(copy));
	memset(data, 0xcd, sizeof(data));
	copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.srcArray = array;
	copy.dstMemoryType = CU_MEMORYTYPE_HOST;
	copy.dstHost = data;
	copy.dstPitch = bytes;
	copy.WidthInBytes = bytes;
	copy.Height = rows;
	QUIET(cuCtxSynchronize);
	QUIET(cuMemcpy2D_v2, &copy);
	BYTES(what, data, bytes * rows);
}

/* ---- Making */

CASE(create)
{
	CUarray array = NULL;
	CUDA_ARRAY_DESCRIPTOR d, said;
	start();
	memset(&d, 0, sizeof(d));
	d.Width = 10;
	d.Height = 6;
	d.Format = CU_AD_FORMAT_FLOAT;
	d.NumChannels = 2;
	CALL(cuArrayCreate_v2, &array, &d);
	YES("some", array != NULL);
	memset(&said, 0xff, sizeof(said));
	CALL(cuArrayGetDescriptor_v2, &said, array);
	NUMBER("width", (long long)said.Width);
	NUMBER("height", (long long)said.Height);
	NUMBER("format", said.Format);
	NUMBER("channels", said.NumChannels);
	CALL(cuArrayDestroy, array);
	d.Height = 0;
	CALL(cuArrayCreate_v2, &array, &d);
	CALL(cuArrayDestroy, array);
	d.Width = 0;
	CALL(cuArrayCreate_v2, &array, &d);
	d.Width = 10;
	d.NumChannels = 3;
	CALL(cuArrayCreate_v2, &array, &d);
	d.NumChannels = 0;
	CALL(cuArrayCreate_v2, &array, &d);
	d.NumChannels = 1;
	d.Format = (CUarray_format)0x77;
	CALL(cuArrayCreate_v2, &array, &d);
	CALL(cuArrayCreate_v2, NULL, &d);
}

CASE(create_3d)
{
	static const struct {
		size_t width, height, depth;
		CUarray_format format;
		unsigned channels, flags;
	} list[] = {
		{16, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0},
		{16, 8, 0, CU_AD_FORMAT_UNSIGNED_INT16, 2, CUDA_ARRAY3D_SURFACE_LDST},
		{16, 8, 4, CU_AD_FORMAT_SIGNED_INT32, 4, 0},
		{16, 0, 5, CU_AD_FORMAT_HALF, 4, CUDA_ARRAY3D_LAYERED},
		{16, 8, 5, CU_AD_FORMAT_SIGNED_INT8, 2,
			CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_SURFACE_LDST},
		{16, 16, 6, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_CUBEMAP},
		{16, 16, 12, CU_AD_FORMAT_SIGNED_INT16, 1,
			CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED},
		{16, 16, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_TEXTURE_GATHER},
		{16, 16, 0, CU_AD_FORMAT_UNORM_INT8X4, 4, 0},
		{131072, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0},
	};
	start();
	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
		CUarray array = NULL;
		CUDA_ARRAY3D_DESCRIPTOR said,
			d = describe(list[i].width, list[i].height, list[i].depth, list[i].format,
				list[i].channels, list[i].flags);
		CALL(cuArray3DCreate_v2, &array, &d);
		YES("some", array != NULL);
		memset(&said, 0xff, sizeof(said));
		CALL(cuArray3DGetDescriptor_v2, &said, array);
		SAID(&said);
		CALL(cuArrayDestroy, array);
	}
}

CASE(create_3d_wrong)
{
	static const struct {
		size_t width, height, depth;
		unsigned channels, flags;
	} list[] = {
		{0, 0, 0, 1, 0},
		{0, 8, 0, 1, 0},
		{8, 0, 8, 1, 0},
		{8, 8, 8, 3, 0},
		{8, 8, 0, 1, CUDA_ARRAY3D_LAYERED},
		{8, 8, 5, 1, CUDA_ARRAY3D_CUBEMAP},
		{8, 9, 6, 1, CUDA_ARRAY3D_CUBEMAP},
		{8, 8, 12, 1, CUDA_ARRAY3D_CUBEMAP},
		{8, 8, 10, 1, CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED},
		{8, 8, 8, 1, CUDA_ARRAY3D_TEXTURE_GATHER},
		{131073, 0, 0, 1, 0},
		{131073, 8, 0, 1, 0},
		{8, 65537, 0, 1, 0},
		{8, 8, 32769, 1, 0},
		{40000, 0, 4, 1, CUDA_ARRAY3D_LAYERED},
		{16, 16, 2049, 1, CUDA_ARRAY3D_LAYERED},
		{8, 8, 0, 1, 0x80000000},
	};
	CUarray array = NULL;
	CUDA_ARRAY3D_DESCRIPTOR d = describe(8, 8, 0, CU_AD_FORMAT_FLOAT, 1, 0);
	start();
	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
		d = describe(list[i].width, list[i].height, list[i].depth, CU_AD_FORMAT_FLOAT,
			list[i].channels, list[i].flags);
		CALL(cuArray3DCreate_v2, &array, &d);
		NUMBER("case", (long long)i);
	}
	d = describe(8, 8, 0, CU_AD_FORMAT_UNORM_INT8X2, 4, 0);
	CALL(cuArray3DCreate_v2, &array, &d);
	d = describe(8, 8, 0, (CUarray_format)0, 1, 0);
	CALL(cuArray3DCreate_v2, &array, &d);
	CALL(cuArray3DCreate_v2, NULL, &d);
	CALL(cuArray3DCreate_v2, &array, NULL);
	CALL(cuArray3DGetDescriptor_v2, NULL, words(4, 4, 0));
	CALL(cuArrayGetDescriptor_v2, NULL, words(4, 4, 0));
}

CASE(no_context)
{
	CUarray array = NULL;
	CUDA_ARRAY3D_DESCRIPTOR d = describe(8, 8, 0, CU_AD_FORMAT_FLOAT, 1, 0);
	QUIET(cuInit, 0);
	CALL(cuArray3DCreate_v2, &array, &d);
}

/* Arrays that were made without what these ask about. */
CASE(properties)
{
	CUarray plane = NULL, array;
	CUDA_ARRAY_SPARSE_PROPERTIES sparse;
	CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
	start();
	array = words(64, 64, 0);
	CALL(cuArrayGetPlane, &plane, array, 0);
	CALL(cuArrayGetSparseProperties, &sparse, array);
	CALL(cuArrayGetMemoryRequirements, &needs, array, 0);
	CALL(cuArrayGetMemoryRequirements, &needs, array, 999);
}

CASE(memory_counts)
{
	size_t before = 0, between = 0, after = 0, total;
	CUarray array = NULL;
	CUDA_ARRAY3D_DESCRIPTOR d = describe(4096, 4096, 0, CU_AD_FORMAT_FLOAT, 1, 0);
	start();
	QUIET(cuMemGetInfo_v2, &before, &total);
	CALL(cuArray3DCreate_v2, &array, &d);
	QUIET(cuMemGetInfo_v2, &between, &total);
	YES("less by 64 MiB", before - between >= 64 << 20);
	CALL(cuArrayDestroy, array);
	QUIET(cuMemGetInfo_v2, &after, &total);
	YES("more by 64 MiB", after - between >= 64 << 20);
}

/* ---- Mipmapped arrays */

CASE(mipmap)
{
	CUmipmappedArray mipmap = NULL;
	CUarray level = NULL, again = NULL;
	CUDA_ARRAY3D_DESCRIPTOR said,
		d = describe(32, 20, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SURFACE_LDST);
	start();
	CALL(cuMipmappedArrayCreate, &mipmap, &d, 4);
	YES("some", mipmap != NULL);
	for (unsigned i = 0; i < 5; i++) {
		level = NULL;
		if (CALL(cuMipmappedArrayGetLevel, &level, mipmap, i))
			continue;
		YES("some", level != NULL);
		memset(&said, 0xff, sizeof(said));
		CALL(cuArray3DGetDescriptor_v2, &said, level);
		SAID(&said);
	}
	CALL(cuMipmappedArrayGetLevel, &level, mipmap, 1);
	CALL(cuMipmappedArrayGetLevel, &again, mipmap, 1);
	CALL(cuMipmappedArrayGetLevel, NULL, mipmap, 0);
	CALL(cuMipmappedArrayDestroy, mipmap);
}

CASE(mipmap_shapes)
{
	static const struct {
		size_t width, height, depth;
		unsigned flags, levels, last;
	} list[] = {
		{33, 0, 0, 0, 99, 5},
		{16, 8, 4, 0, 99, 4},
		{4, 4, 16, 0, 99, 4},
		{16, 16, 5, CUDA_ARRAY3D_LAYERED, 99, 4},
		{16, 16, 6, CUDA_ARRAY3D_CUBEMAP, 2, 1},
		{16, 16, 0, 0, 0, 0},
		{1, 1, 0, 0, 3, 0},
	};
	start();
	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
		CUmipmappedArray mipmap = NULL;
		CUarray level = NULL;
		CUDA_ARRAY3D_DESCRIPTOR said,
			d = describe(list[i].width, list[i].height, list[i].depth,
				CU_AD_FORMAT_FLOAT, 1, list[i].flags);
		if (CALL(cuMipmappedArrayCreate, &mipmap, &d, list[i].levels))
			continue;
		CALL(cuMipmappedArrayGetLevel, &level, mipmap, list[i].last + 1);
		CALL(cuMipmappedArrayGetLevel, &level, mipmap, list[i].last);
		memset(&said, 0xff, sizeof(said));
		CALL(cuArray3DGetDescriptor_v2, &said, level);
		SAID(&said);
		CALL(cuMipmappedArrayDestroy, mipmap);
	}
}

CASE(mipmap_wrong)
{
	CUmipmappedArray mipmap = NULL;
	CUDA_ARRAY_SPARSE_PROPERTIES sparse;
	CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
	CUDA_ARRAY3D_DESCRIPTOR d = describe(0, 8, 0, CU_AD_FORMAT_FLOAT, 1, 0);
	start();
	CALL(cuMipmappedArrayCreate, &mipmap, &d, 1);
	d.Width = 8;
	CALL(cuMipmappedArrayCreate, NULL, &d, 1);
	CALL(cuMipmappedArrayCreate, &mipmap, NULL, 1);
	QUIET(cuMipmappedArrayCreate, &mipmap, &d, 2);
	CALL(cuMipmappedArrayGetSparseProperties, &sparse, mipmap);
	CALL(cuMipmappedArrayGetMemoryRequirements, &needs, mipmap, 0);
	CALL(cuMipmappedArrayGetMemoryRequirements, &needs, mipmap, 999);
}

/* ---- Copies of bytes */

CASE(linear)
{
	uint8_t out[64], back[64];
	CUdeviceptr p;
	CUarray a, b;
	start();
	p = memory(64);
	a = words(16, 0, 0);
	b = words(16, 0, 0);
	numbers(out, sizeof(out), 1);
	CALL(cuMemcpyHtoA_v2, a, 0, out, 64);
	ARRAY("array", a, 64, 1);
	CALL(cuMemcpyHtoA_v2, a, 8, out + 32, 8);
	ARRAY("array", a, 64, 1);
	CALL(cuMemcpyAtoA_v2, b, 4, a, 0, 60);
	CALL(cuMemcpyAtoA_v2, b, 0, a, 60, 4);
	ARRAY("array", b, 64, 1);
	CALL(cuMemcpyAtoD_v2, p, b, 8, 24);
	CONTENT("bytes", p, 32);
	CALL(cuMemcpyDtoA_v2, a, 40, p, 24);
	ARRAY("array", a, 64, 1);
	memset(back, 0xee, sizeof(back));
	CALL(cuMemcpyAtoH_v2, back, a, 32, 32);
	BYTES("bytes", back, 40);
	CALL(cuMemcpyHtoA_v2, a, 0, out, 0);
	CALL(cuMemcpyHtoA_v2, a, 32, out, 36);
	CALL(cuMemcpyAtoH_v2, back, a, 64, 4);
	CALL(cuMemcpyHtoA_v2, a, 0, NULL, 4);
	CALL(cuMemcpyAtoH_v2, NULL, a, 0, 4);
	CALL(cuMemcpyDtoA_v2, a, 0, 0, 4);
}

CASE(linear_per_thread)
{
	uint8_t out[64], back[64];
	CUdeviceptr p;
	CUarray a, b;
	start();
	p = memory(64);
	a = words(16, 0, 0);
	b = words(16, 0, 0);
	numbers(out, sizeof(out), 1);
	CALL(cuMemcpyHtoA_v2_ptds, a, 0, out, 64);
	ARRAY("array", a, 64, 1);
	CALL(cuMemcpyAtoA_v2_ptds, b, 4, a, 0, 60);
	CALL(cuMemcpyAtoD_v2_ptds, p, b, 8, 24);
	CONTENT("bytes", p, 32);
	CALL(cuMemcpyDtoA_v2_ptds, a, 40, p, 24);
	ARRAY("array", a, 64, 1);
	memset(back, 0xee, sizeof(back));
	CALL(cuMemcpyAtoH_v2_ptds, back, a, 32, 32);
	BYTES("bytes", back, 40);
}

CASE(linear_async)
{
	uint8_t out[64], back[64];
	CUstream stream;
	CUarray a;
	start();
	a = words(16, 0, 0);
	QUIET(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	numbers(out, sizeof(out), 1);
	memset(back, 0xee, sizeof(back));
	CALL(cuMemcpyHtoAAsync_v2, a, 4, out, 40, stream);
	CALL(cuMemcpyAtoHAsync_v2, back, a, 4, 40, stream);
	CALL(cuStreamSynchronize, stream);
	BYTES("bytes", back, 44);
	memset(back, 0xee, sizeof(back));
	CALL(cuMemcpyHtoAAsync_v2_ptsz, a, 0, out + 20, 40, NULL);
	CALL(cuMemcpyAtoHAsync_v2_ptsz, back, a, 0, 40, NULL);
	CALL(cuStreamSynchronize, CU_STREAM_PER_THREAD);
	BYTES("bytes", back, 44);
	CALL(cuMemcpyHtoAAsync_v2, a, 40, out, 40, stream);
}

/* ---- Rectangles */

static CUDA_MEMCPY2D from_host(
	const void *from, size_t pitch, CUarray to, size_t x, size_t y, size_t width, size_t height)
{
	CUDA_MEMCPY2D copy;
	memset(&copy, 0, sizeof(copy));
	copy.srcMemoryType = CU_MEMORYTYPE_HOST;
	copy.srcHost = from;
	copy.srcPitch = pitch;
	copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.dstArray = to;
	copy.dstXInBytes = x;
	copy.dstY = y;
	copy.WidthInBytes = width;
	copy.Height = height;
	return copy;
}

CASE(rectangles)
{
	uint8_t out[512], back[512];
	CUDA_MEMCPY2D copy;
	CUstream stream;
	CUdeviceptr p;
	CUarray a, b;
	start();
	a = words(8, 6, 0);
	b = words(8, 6, 0);
	p = memory(512);
	QUIET(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	numbers(out, sizeof(out), 1);
	copy = from_host(out, 32, a, 0, 0, 32, 6);
	CALL(cuMemcpy2D_v2, &copy);
	ARRAY("array", a, 32, 6);
	copy = from_host(out + 100, 20, a, 8, 1, 12, 4);
	CALL(cuMemcpy2DUnaligned_v2, &copy);
	ARRAY("array", a, 32, 6);
	/* From array to array, elsewhere, in a stream. */
	memset(&copy, 0, sizeof(copy));
	copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.srcArray = a;
	copy.srcXInBytes = 4;
	copy.srcY = 2;
	copy.dstArray = b;
	copy.dstXInBytes = 12;
	copy.WidthInBytes = 16;
	copy.Height = 3;
	QUIET(cuMemcpy2D_v2,
		&(CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_HOST,
			.srcHost = out,
			.srcPitch = 32,
			.dstMemoryType = CU_MEMORYTYPE_ARRAY,
			.dstArray = b,
			.WidthInBytes = 32,
			.Height = 6});
	CALL(cuMemcpy2DAsync_v2, &copy, stream);
	CALL(cuStreamSynchronize, stream);
	ARRAY("array", b, 32, 6);
	/* To memory with a pitch, and back by the unified address. */
	memset(&copy, 0, sizeof(copy));
	copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.srcArray = b;
	copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	copy.dstDevice = p;
	copy.dstPitch = 64;
	copy.dstXInBytes = 4;
	copy.dstY = 1;
	copy.WidthInBytes = 32;
	copy.Height = 6;
	CALL(cuMemcpy2D_v2, &copy);
	CONTENT("memory", p, 512);
	memset(&copy, 0, sizeof(copy));
	copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
	copy.srcDevice = p;
	copy.srcPitch = 64;
	copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.dstArray = a;
	copy.WidthInBytes = 32;
	copy.Height = 6;
	CALL(cuMemcpy2DAsync_v2_ptsz, &copy, NULL);
	CALL(cuStreamSynchronize, CU_STREAM_PER_THREAD);
	ARRAY("array", a, 32, 6);
	memset(back, 0xee, sizeof(back));
	memset(&copy, 0, sizeof(copy));
	copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.srcArray = a;
	copy.srcXInBytes = 16;
	copy.srcY = 3;
	copy.dstMemoryType = CU_MEMORYTYPE_HOST;
	copy.dstHost = back;
	copy.WidthInBytes = 8;
	copy.Height = 2;
	CALL(cuMemcpy2D_v2_ptds, &copy);
	BYTES("bytes", back, 24);
	CALL(cuMemcpy2DUnaligned_v2_ptds, &copy);
}

CASE(rectangles_wrong)
{
	uint8_t out[512];
	CUDA_MEMCPY2D copy;
	CUarray a;
	start();
	a = words(8, 6, 0);
	copy = from_host(out, 32, a, 4, 0, 32, 6);
	CALL(cuMemcpy2D_v2, &copy);
	copy = from_host(out, 32, a, 0, 1, 32, 6);
	CALL(cuMemcpy2D_v2, &copy);
	copy = from_host(out, 32, a, 2, 0, 8, 6);
	CALL(cuMemcpy2D_v2, &copy);
	copy = from_host(out, 32, a, 0, 0, 6, 6);
	CALL(cuMemcpy2D_v2, &copy);
	copy = from_host(NULL, 32, a, 0, 0, 32, 6);
	CALL(cuMemcpy2D_v2, &copy);
	copy = from_host(out, 16, a, 0, 0, 32, 6);
	CALL(cuMemcpy2D_v2, &copy);
	copy = from_host(out, 32, a, 0, 0, 0, 6);
	CALL(cuMemcpy2D_v2, &copy);
}

/* ---- Boxes */

CASE(boxes)
{
	static uint8_t out[4096], back[4096];
	CUDA_MEMCPY3D copy;
	CUDA_MEMCPY3D_PEER peer;
	CUstream stream;
	CUcontext context;
	CUdeviceptr p;
	CUarray a, b;
	context = start();
	a = words(8, 6, 4);
	b = words(8, 6, 4);
	p = memory(4096);
	QUIET(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	numbers(out, sizeof(out), 1);
	memset(&copy, 0, sizeof(copy));
	copy.srcMemoryType = CU_MEMORYTYPE_HOST;
	copy.srcHost = out;
	copy.srcPitch = 40;
	copy.srcHeight = 7;
	copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.dstArray = a;
	copy.WidthInBytes = 32;
	copy.Height = 6;
	copy.Depth = 4;
	CALL(cuMemcpy3D_v2, &copy);
	copy.dstArray = b;
	copy.srcHost = out + 77;
	CALL(cuMemcpy3D_v2_ptds, &copy);
	memset(&copy, 0, sizeof(copy));
	copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.srcArray = a;
	copy.srcXInBytes = 8;
	copy.srcY = 1;
	copy.srcZ = 1;
	copy.dstArray = b;
	copy.dstXInBytes = 4;
	copy.dstZ = 2;
	copy.WidthInBytes = 16;
	copy.Height = 4;
	copy.Depth = 2;
	CALL(cuMemcpy3DAsync_v2, &copy, stream);
	CALL(cuStreamSynchronize, stream);
	memset(&copy, 0, sizeof(copy));
	copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.srcArray = b;
	copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	copy.dstDevice = p;
	copy.dstPitch = 64;
	copy.dstHeight = 8;
	copy.dstY = 1;
	copy.WidthInBytes = 32;
	copy.Height = 6;
	copy.Depth = 4;
	CALL(cuMemcpy3DAsync_v2_ptsz, &copy, NULL);
	CALL(cuStreamSynchronize, CU_STREAM_PER_THREAD);
	CONTENT("memory", p, 4096);
	memset(back, 0xee, sizeof(back));
	copy.dstMemoryType = CU_MEMORYTYPE_HOST;
	copy.dstHost = back;
	copy.dstPitch = 0;
	copy.dstHeight = 0;
	copy.dstY = 0;
	CALL(cuMemcpy3D_v2, &copy);
	BYTES("bytes", back, 1024);
	memset(&peer, 0, sizeof(peer));
	peer.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	peer.srcDevice = p;
	peer.srcPitch = 64;
	peer.srcHeight = 8;
	peer.srcContext = peer.dstContext = context;
	peer.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	peer.dstArray = a;
	peer.WidthInBytes = 32;
	peer.Height = 6;
	peer.Depth = 4;
	CALL(cuMemcpy3DPeer, &peer);
	ARRAY("array", a, 32, 6);
	peer.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	peer.srcArray = b;
	CALL(cuMemcpy3DPeerAsync, &peer, stream);
	CALL(cuStreamSynchronize, stream);
	ARRAY("array", a, 32, 6);
}

CASE(boxes_wrong)
{
	static uint8_t out[4096];
	CUDA_MEMCPY3D copy;
	CUarray a;
	start();
	a = words(8, 6, 4);
	memset(&copy, 0, sizeof(copy));
	copy.srcMemoryType = CU_MEMORYTYPE_HOST;
	copy.srcHost = out;
	copy.srcPitch = 32;
	copy.srcHeight = 6;
	copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.dstArray = a;
	copy.WidthInBytes = 32;
	copy.Height = 6;
	copy.Depth = 5;
	CALL(cuMemcpy3D_v2, &copy);
	copy.Depth = 4;
	copy.dstZ = 1;
	CALL(cuMemcpy3D_v2, &copy);
	copy.dstZ = 0;
	copy.dstLOD = 1;
	CALL(cuMemcpy3D_v2, &copy);
	copy.dstLOD = 0;
	copy.srcHeight = 5;
	CALL(cuMemcpy3D_v2, &copy);
	copy.srcHeight = 6;
	copy.Depth = 0;
	CALL(cuMemcpy3D_v2, &copy);
	CALL(cuMemcpy3D_v2, NULL);
}

/* Layers, faces and levels by their z. */
CASE(layers)
{
	static uint8_t out[4096], back[4096];
	CUDA_MEMCPY3D copy;
	CUarray array = NULL;
	CUDA_ARRAY3D_DESCRIPTOR d =
		describe(8, 0, 3, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_LAYERED);
	start();
	numbers(out, sizeof(out), 1);
	for (int i = 0; i < 3; i++) {
		if (i == 1)
			d = describe(8, 5, 3, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_LAYERED);
		if (i == 2)
			d = describe(8, 8, 6, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_CUBEMAP);
		QUIET(cuArray3DCreate_v2, &array, &d);
		memset(&copy, 0, sizeof(copy));
		copy.srcMemoryType = CU_MEMORYTYPE_HOST;
		copy.srcHost = out;
		copy.srcPitch = 32;
		copy.srcHeight = d.Height ? d.Height : 1;
		copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
		copy.dstArray = array;
		copy.WidthInBytes = 32;
		copy.Height = copy.srcHeight;
		copy.Depth = d.Depth;
		CALL(cuMemcpy3D_v2, &copy);
		memset(&copy, 0, sizeof(copy));
		copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
		copy.srcArray = array;
		copy.srcZ = 2;
		copy.dstMemoryType = CU_MEMORYTYPE_HOST;
		copy.dstHost = back;
		copy.dstPitch = 32;
		copy.dstHeight = d.Height ? d.Height : 1;
		copy.WidthInBytes = 32;
		copy.Height = copy.dstHeight;
		copy.Depth = 1;
		memset(back, 0xee, sizeof(back));
		CALL(cuMemcpy3D_v2, &copy);
		BYTES("layer", back, 32 * copy.Height);
		copy.srcZ = d.Depth;
		CALL(cuMemcpy3D_v2, &copy);
	}
}

/* Cases run in the order in which they stand. */
#include "array_sparse.h"
