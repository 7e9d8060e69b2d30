/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface objects: what they take, what they say of themselves, what kernels read and
 * write by them.
 */
#include "driver.h"

static const char texture_ptx[] =
	".version 7.8\n"
	".target sm_75\n"
	".address_size 64\n"
	/* out[i] = tex2D(t, i + 0.5, 1.5) */
	".visible .entry fetch(.param .u64 t, .param .u64 out)\n"
	"{\n"
	"	.reg .b32 i; .reg .f32 x, y; .reg .b32 v<5>; .reg .b64 h, a, o;\n"
	"	mov.u32 i, %tid.x;\n"
	"	ld.param.u64 h, [t];\n"
	"	ld.param.u64 a, [out];\n"
	"	cvt.rn.f32.u32 x, i;\n"
	"	add.f32 x, x, 0f3f000000;\n"
	"	mov.f32 y, 0f3fc00000;\n"
	"	tex.2d.v4.u32.f32 {v1, v2, v3, v4}, [h, {x, y}];\n"
	"	mul.wide.u32 o, i, 4;\n"
	"	add.u64 a, a, o;\n"
	"	st.global.u32 [a], v1;\n"
	"	ret;\n"
	"}\n"
	/* out[i] = tex1Dfetch(t, i) */
	".visible .entry fetch_linear(.param .u64 t, .param .u64 out)\n"
	"{\n"
	"	.reg .b32 i; .reg .b32 v<5>; .reg .b64 h, a, o;\n"
	"	mov.u32 i, %tid.x;\n"
	"	ld.param.u64 h, [t];\n"
	"	ld.param.u64 a, [out];\n"
	"	tex.1d.v4.u32.s32 {v1, v2, v3, v4}, [h, {i}];\n"
	"	mul.wide.u32 o, i, 4;\n"
	"	add.u64 a, a, o;\n"
	"	st.global.u32 [a], v1;\n"
	"	ret;\n"
	"}\n"
	/* surface(i, 2) = i + 100 */
	".visible .entry store(.param .u64 s)\n"
	"{\n"
	"	.reg .b32 i, x, y, v; .reg .b64 h;\n"
	"	mov.u32 i, %tid.x;\n"
	"	ld.param.u64 h, [s];\n"
	"	shl.b32 x, i, 2;\n"
	"	mov.u32 y, 2;\n"
	"	add.u32 v, i, 100;\n"
	"	sust.b.2d.b32.trap [h, {x, y}], {v};\n"
	"	ret;\n"
	"}\n";

static CUmodule load_texture(void)
{
	CUmodule module = NULL;
	QUIET(cuModuleLoadData, &module, texture_ptx);
	return module;
}

static CUarray words(size_t width, size_t height, size_t depth, unsigned flags)
{
	CUarray array = NULL;
	CUDA_ARRAY3D_DESCRIPTOR d;
	memset(&d, 0, sizeof(d));
	d.Width = width;
	d.Height = height;
	d.Depth = depth;
	d.Format = CU_AD_FORMAT_UNSIGNED_INT32;
	d.NumChannels = 1;
	d.Flags = flags;
	QUIET(cuArray3DCreate_v2, &array, &d);
	return array;
}

/* Rows of eight words. */
static CUarray filled(int rows, unsigned flags)
{
	uint32_t data[64];
	CUDA_MEMCPY2D copy;
	CUarray array = words(8, (size_t)rows, 0, flags);
	for (int i = 0; i < 64; i++)
		data[i] = (uint32_t)i * 0x01030507u;
	memset(&copy, 0, sizeof(copy));
	copy.srcMemoryType = CU_MEMORYTYPE_HOST;
	copy.srcHost = data;
	copy.srcPitch = 32;
	copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.dstArray = array;
	copy.WidthInBytes = 32;
	copy.Height = (size_t)rows;
	QUIET(cuMemcpy2D_v2, &copy);
	return array;
}

static CUDA_RESOURCE_DESC of_array(CUarray array)
{
	CUDA_RESOURCE_DESC r;
	memset(&r, 0, sizeof(r));
	r.resType = CU_RESOURCE_TYPE_ARRAY;
	r.res.array.hArray = array;
	return r;
}

static CUDA_RESOURCE_DESC of_linear(CUdeviceptr p, size_t bytes)
{
	CUDA_RESOURCE_DESC r;
	memset(&r, 0, sizeof(r));
	r.resType = CU_RESOURCE_TYPE_LINEAR;
	r.res.linear.devPtr = p;
	r.res.linear.format = CU_AD_FORMAT_UNSIGNED_INT32;
	r.res.linear.numChannels = 1;
	r.res.linear.sizeInBytes = bytes;
	return r;
}

static CUDA_RESOURCE_DESC of_pitched(CUdeviceptr p, size_t width, size_t height, size_t pitch)
{
	CUDA_RESOURCE_DESC r;
	memset(&r, 0, sizeof(r));
	r.resType = CU_RESOURCE_TYPE_PITCH2D;
	r.res.pitch2D.devPtr = p;
	r.res.pitch2D.format = CU_AD_FORMAT_UNSIGNED_INT32;
	r.res.pitch2D.numChannels = 1;
	r.res.pitch2D.width = width;
	r.res.pitch2D.height = height;
	r.res.pitch2D.pitchInBytes = pitch;
	return r;
}

static CUDA_TEXTURE_DESC plain(void)
{
	CUDA_TEXTURE_DESC d;
	memset(&d, 0, sizeof(d));
	for (int i = 0; i < 3; i++)
		d.addressMode[i] = CU_TR_ADDRESS_MODE_CLAMP;
	d.flags = CU_TRSF_READ_AS_INTEGER;
	return d;
}

static void run(CUmodule module, const char *name, unsigned long long handle, CUdeviceptr out)
{
	void *params[] = {&handle, &out};
	QUIET(cuLaunchKernel, kernel(module, name), 1, 1, 1, 8, 1, 1, 0, NULL, params, NULL);
}

CASE(array)
{
	CUtexObject t = 0;
	CUDA_RESOURCE_DESC said, r;
	CUDA_TEXTURE_DESC said_texture, d = plain();
	CUDA_RESOURCE_VIEW_DESC view;
	CUdeviceptr out;
	CUmodule module;
	start();
	module = load_texture();
	out = memory(64);
	r = of_array(filled(4, 0));
	CALL(cuTexObjectCreate, &t, &r, &d, NULL);
	YES("some", t != 0);
	run(module, "fetch", t, out);
	CONTENT("words", out, 32);
	memset(&said, 0xff, sizeof(said));
	CALL(cuTexObjectGetResourceDesc, &said, t);
	NUMBER("type", said.resType);
	YES("array", said.res.array.hArray == r.res.array.hArray);
	NUMBER("flags", said.flags);
	memset(&said_texture, 0xff, sizeof(said_texture));
	CALL(cuTexObjectGetTextureDesc, &said_texture, t);
	NUMBER("mode", said_texture.addressMode[1]);
	NUMBER("filter", said_texture.filterMode);
	NUMBER("flags", said_texture.flags);
	CALL(cuTexObjectGetResourceViewDesc, &view, t);
	CALL(cuTexObjectGetResourceDesc, NULL, t);
	CALL(cuTexObjectGetTextureDesc, NULL, t);
	CALL(cuTexObjectDestroy, t);
	CALL(cuTexObjectGetResourceDesc, &said, 0);
}

CASE(view)
{
	CUtexObject t = 0;
	CUDA_RESOURCE_DESC r;
	CUDA_TEXTURE_DESC d = plain();
	CUDA_RESOURCE_VIEW_DESC view, said;
	CUdeviceptr out;
	CUmodule module;
	start();
	module = load_texture();
	out = memory(64);
	r = of_array(filled(4, 0));
	memset(&view, 0, sizeof(view));
	view.format = CU_RES_VIEW_FORMAT_UINT_4X8;
	view.width = 8;
	view.height = 4;
	CALL(cuTexObjectCreate, &t, &r, &d, &view);
	run(module, "fetch", t, out);
	CONTENT("words", out, 32);
	memset(&said, 0xff, sizeof(said));
	CALL(cuTexObjectGetResourceViewDesc, &said, t);
	NUMBER("format", said.format);
	NUMBER("width", (long long)said.width);
	NUMBER("height", (long long)said.height);
	NUMBER("first", said.firstMipmapLevel);
	NUMBER("last", said.lastMipmapLevel);
	CALL(cuTexObjectDestroy, t);
	/* Of another size, and of other extents. */
	view.format = CU_RES_VIEW_FORMAT_UINT_4X32;
	CALL(cuTexObjectCreate, &t, &r, &d, &view);
	view.format = CU_RES_VIEW_FORMAT_UINT_1X32;
	view.width = 4;
	CALL(cuTexObjectCreate, &t, &r, &d, &view);
}

CASE(linear)
{
	CUtexObject t = 0;
	CUDA_RESOURCE_DESC said, r;
	CUDA_TEXTURE_DESC d = plain();
	CUdeviceptr p, out;
	CUmodule module;
	uint8_t data[64];
	start();
	module = load_texture();
	out = memory(64);
	p = memory(1024);
	numbers(data, sizeof(data), 1);
	QUIET(cuMemcpyHtoD_v2, p, data, 64);
	r = of_linear(p, 24);
	CALL(cuTexObjectCreate, &t, &r, &d, NULL);
	run(module, "fetch_linear", t, out);
	CONTENT("words", out, 32);
	memset(&said, 0xff, sizeof(said));
	CALL(cuTexObjectGetResourceDesc, &said, t);
	NUMBER("type", said.resType);
	YES("address", said.res.linear.devPtr == p);
	NUMBER("bytes", (long long)said.res.linear.sizeInBytes);
	CALL(cuTexObjectDestroy, t);
	/* A filter is not looked at. */
	d.filterMode = CU_TR_FILTER_MODE_LINEAR;
	CALL(cuTexObjectCreate, &t, &r, &d, NULL);
	d = plain();
	r = of_linear(p + 4, 24);
	CALL(cuTexObjectCreate, &t, &r, &d, NULL);
	r = of_linear(0, 24);
	CALL(cuTexObjectCreate, &t, &r, &d, NULL);
	r = of_linear(p, 0);
	CALL(cuTexObjectCreate, &t, &r, &d, NULL);
	r = of_linear(p, 24);
	r.res.linear.numChannels = 3;
	CALL(cuTexObjectCreate, &t, &r, &d, NULL);
}

CASE(pitched)
{
	CUtexObject t = 0;
	CUDA_RESOURCE_DESC r;
	CUDA_TEXTURE_DESC d = plain();
	CUdeviceptr p, out;
	CUmodule module;
	uint8_t data[128];
	start();
	module = load_texture();
	out = memory(64);
	p = memory(1024);
	numbers(data, sizeof(data), 1);
	QUIET(cuMemcpyHtoD_v2, p, data, 128);
	r = of_pitched(p, 7, 4, 32);
	CALL(cuTexObjectCreate, &t, &r, &d, NULL);
	run(module, "fetch", t, out);
	CONTENT("words", out, 32);
	CALL(cuTexObjectDestroy, t);
	r = of_pitched(p, 8, 4, 36);
	CALL(cuTexObjectCreate, &t, &r, &d, NULL);
	r = of_pitched(p + 32, 8, 4, 32);
	CALL(cuTexObjectCreate, &t, &r, &d, NULL);
	r = of_pitched(p, 0, 4, 32);
	CALL(cuTexObjectCreate, &t, &r, &d, NULL);
	r = of_pitched(p, 9, 4, 32);
	CALL(cuTexObjectCreate, &t, &r, &d, NULL);
}

CASE(wrong)
{
	CUtexObject t = 0;
	CUDA_RESOURCE_DESC r;
	CUDA_TEXTURE_DESC d = plain();
	start();
	r = of_array(filled(4, 0));
	CALL(cuTexObjectCreate, NULL, &r, &d, NULL);
	CALL(cuTexObjectCreate, &t, NULL, &d, NULL);
	CALL(cuTexObjectCreate, &t, &r, NULL, NULL);
	r.resType = (CUresourcetype)77;
	CALL(cuTexObjectCreate, &t, &r, &d, NULL);
	r.resType = CU_RESOURCE_TYPE_ARRAY;
	r.flags = 1;
	CALL(cuTexObjectCreate, &t, &r, &d, NULL);
	r.flags = 0;
	d.addressMode[0] = (CUaddress_mode)9;
	CALL(cuTexObjectCreate, &t, &r, &d, NULL);
	d = plain();
	d.filterMode = (CUfilter_mode)9;
	CALL(cuTexObjectCreate, &t, &r, &d, NULL);
	d = plain();
	d.filterMode = CU_TR_FILTER_MODE_LINEAR;
	CALL(cuTexObjectCreate, &t, &r, &d, NULL);
	d = plain();
	d.flags |= CU_TRSF_SEAMLESS_CUBEMAP;
	CALL(cuTexObjectCreate, &t, &r, &d, NULL);
	d = plain();
	d.flags |= 0x8000;
	CALL(cuTexObjectCreate, &t, &r, &d, NULL);
	d = plain();
	d.maxAnisotropy = 99;
	CALL(cuTexObjectCreate, &t, &r, &d, NULL);
}

CASE(mipmap)
{
	CUmipmappedArray mipmap = NULL;
	CUtexObject t = 0;
	CUDA_ARRAY3D_DESCRIPTOR a;
	CUDA_RESOURCE_DESC said, r;
	CUDA_TEXTURE_DESC d = plain();
	start();
	memset(&a, 0, sizeof(a));
	a.Width = 16;
	a.Height = 16;
	a.Format = CU_AD_FORMAT_UNSIGNED_INT32;
	a.NumChannels = 1;
	QUIET(cuMipmappedArrayCreate, &mipmap, &a, 3);
	memset(&r, 0, sizeof(r));
	r.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
	r.res.mipmap.hMipmappedArray = mipmap;
	/* Coordinates of mipmaps are normalized. */
	CALL(cuTexObjectCreate, &t, &r, &d, NULL);
	d.flags |= CU_TRSF_NORMALIZED_COORDINATES;
	d.maxMipmapLevelClamp = 2;
	CALL(cuTexObjectCreate, &t, &r, &d, NULL);
	memset(&said, 0xff, sizeof(said));
	CALL(cuTexObjectGetResourceDesc, &said, t);
	NUMBER("type", said.resType);
	YES("mipmap", said.res.mipmap.hMipmappedArray == mipmap);
	CALL(cuTexObjectDestroy, t);
	CALL(cuSurfObjectCreate, &t, &r);
}

CASE(surface)
{
	CUsurfObject s = 0;
	CUDA_RESOURCE_DESC said, r;
	CUmodule module;
	CUarray array;
	uint32_t back[8];
	CUDA_MEMCPY2D copy;
	start();
	module = load_texture();
	array = filled(4, CUDA_ARRAY3D_SURFACE_LDST);
	r = of_array(array);
	CALL(cuSurfObjectCreate, &s, &r);
	YES("some", s != 0);
	run(module, "store", s, 0);
	memset(&copy, 0, sizeof(copy));
	copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.srcArray = array;
	copy.srcY = 2;
	copy.dstMemoryType = CU_MEMORYTYPE_HOST;
	copy.dstHost = back;
	copy.WidthInBytes = 32;
	copy.Height = 1;
	CALL(cuMemcpy2D_v2, &copy);
	BYTES("row", back, 32);
	memset(&said, 0xff, sizeof(said));
	CALL(cuSurfObjectGetResourceDesc, &said, s);
	NUMBER("type", said.resType);
	YES("array", said.res.array.hArray == array);
	CALL(cuSurfObjectGetResourceDesc, NULL, s);
	CALL(cuSurfObjectDestroy, s);
	r = of_array(filled(4, 0));
	CALL(cuSurfObjectCreate, &s, &r);
	r = of_linear(memory(512), 512);
	CALL(cuSurfObjectCreate, &s, &r);
}

/* The array goes first; the object can still be destroyed. */
CASE(order)
{
	CUtexObject t = 0;
	CUsurfObject s = 0;
	CUDA_RESOURCE_DESC r;
	CUDA_TEXTURE_DESC d = plain();
	CUarray array;
	start();
	array = filled(4, CUDA_ARRAY3D_SURFACE_LDST);
	r = of_array(array);
	QUIET(cuTexObjectCreate, &t, &r, &d, NULL);
	QUIET(cuSurfObjectCreate, &s, &r);
	CALL(cuArrayDestroy, array);
	CALL(cuTexObjectDestroy, t);
	CALL(cuSurfObjectDestroy, s);
	CALL(cuCtxSynchronize);
}

CASE(linear_width)
{
	static const CUarray_format formats[] = {
		CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_HALF, CU_AD_FORMAT_FLOAT};
	size_t width;
	start();
	for (int f = 0; f < 3; f++)
		for (unsigned channels = 1; channels <= 4; channels *= 2) {
			width = 0;
			CALL(cuDeviceGetTexture1DLinearMaxWidth, &width, formats[f], channels, 0);
			YES("2^27 or more", width >= 1 << 27);
		}
	CALL(cuDeviceGetTexture1DLinearMaxWidth, NULL, CU_AD_FORMAT_FLOAT, 1, 0);
	CALL(cuDeviceGetTexture1DLinearMaxWidth, &width, CU_AD_FORMAT_FLOAT, 1, 999);
	CALL(cuDeviceGetTexture1DLinearMaxWidth, &width, CU_AD_FORMAT_FLOAT, 3, 0);
}
