/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/memory/texture.c: what a texture or surface may be made of and how read, views, and what
 * is told back.
 */
#include "files.h"

static CUdeviceptr memory;

static CUresult make(const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *how,
	const CUDA_RESOURCE_VIEW_DESC *view)
{
	CUtexObject texture = 0;
	CUresult result = cuTexObjectCreate(&texture, resource, how, view);
	if (result == CUDA_SUCCESS)
		OK(cuTexObjectDestroy(texture));
	else
		IS(texture, 0);
	return result;
}

static void test_memory(void)
{
	test_context();
	OK(cuMemAlloc(&memory, 8192));
	const CUDA_TEXTURE_DESC how = {0};
	const CUDA_RESOURCE_DESC linear = {.resType = CU_RESOURCE_TYPE_LINEAR,
		.res.linear = {.devPtr = memory,
			.format = CU_AD_FORMAT_FLOAT,
			.numChannels = 4,
			.sizeInBytes = 8192}};
	const CUDA_RESOURCE_DESC pitched = {.resType = CU_RESOURCE_TYPE_PITCH2D,
		.res.pitch2D = {.devPtr = memory,
			.format = CU_AD_FORMAT_UNSIGNED_INT8,
			.numChannels = 1,
			.width = 100,
			.height = 16,
			.pitchInBytes = 512}};
	OK(make(&linear, &how, NULL));
	OK(make(&pitched, &how, NULL));
	for (unsigned i = 0; i < 16; i++) {
		CUDA_RESOURCE_DESC r = i < 8 ? linear : pitched;
		switch (i) {
		case 0:
			r.res.linear.devPtr += 256;
			break; /* not aligned to 512 */
		case 1:
			r.res.linear.devPtr = 0;
			break;
		case 2:
			r.res.linear.sizeInBytes = 8193;
			break;
		case 3:
			r.res.linear.numChannels = 3;
			break;
		case 4:
			r.res.linear.numChannels = 0;
			break;
		case 5:
			r.res.linear.format = (CUarray_format)0x77;
			break;
		case 6:
			r.flags = 1;
			break;
		case 7:
			r.resType = (CUresourcetype)4;
			break;
		case 8:
			r.res.pitch2D.pitchInBytes = 513;
			break;
		case 9:
			r.res.pitch2D.pitchInBytes = 2097120 + 32;
			break;
		case 10:
			r.res.pitch2D.height = 17;
			break; /* the last row is outside */
		case 11:
			r.res.pitch2D.height = 0;
			break;
		case 12:
			r.res.pitch2D.width = 131073;
			break;
		case 13:
			r.res.pitch2D.height = 65001;
			break;
		case 14:
			r.res.pitch2D.devPtr += 32;
			break;
		case 15:
			r.res.pitch2D.numChannels = 8;
			break;
		}
		CUresult result = make(&r, &how, NULL);
		if (result != CUDA_ERROR_INVALID_VALUE)
			fprintf(stderr, "texture memory %u\n", i);
		IS(result, CUDA_ERROR_INVALID_VALUE);
	}
	CHECK_RESULT(make(NULL, &how, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(make(&linear, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuTexObjectCreate(NULL, &linear, &how, NULL), CUDA_ERROR_INVALID_VALUE);
	/* How it is read. */
	for (unsigned i = 0; i < 6; i++) {
		CUDA_TEXTURE_DESC bad = how;
		switch (i) {
		case 0:
			bad.addressMode[2] = (CUaddress_mode)4;
			break;
		case 1:
			bad.filterMode = (CUfilter_mode)2;
			break;
		case 2:
			bad.mipmapFilterMode = (CUfilter_mode)2;
			break;
		case 3:
			bad.flags = 0x80;
			break;
		case 4:
			bad.flags = CU_TRSF_SEAMLESS_CUBEMAP;
			break; /* of a cubemap only */
		case 5:
			bad.addressMode[0] = (CUaddress_mode)-1;
			break;
		}
		CHECK_RESULT(make(&linear, &bad, NULL), CUDA_ERROR_INVALID_VALUE);
	}
	OK(cuMemFree(memory));
}

static CUarray layers(unsigned n)
{
	CUarray array = NULL;
	CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = 16,
		.Height = 8,
		.Depth = n,
		.Format = CU_AD_FORMAT_UNSIGNED_INT16,
		.NumChannels = 2,
		.Flags = CUDA_ARRAY3D_LAYERED};
	OK(cuArray3DCreate(&array, &desc));
	return array;
}

static void test_views(void)
{
	test_context();
	CUarray array = layers(4);
	const CUDA_TEXTURE_DESC how = {.flags = CU_TRSF_READ_AS_INTEGER};
	const CUDA_RESOURCE_DESC resource = {
		.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = array};
	static const struct {
		CUresourceViewFormat format;
		size_t width, height;
		unsigned first, last;
		CUresult result;
	} table[] = {
		{CU_RES_VIEW_FORMAT_NONE, 0, 0, 0, 0, CUDA_SUCCESS},
		{CU_RES_VIEW_FORMAT_UINT_1X32, 16, 8, 0, 0, CUDA_SUCCESS},
		{CU_RES_VIEW_FORMAT_UINT_4X8, 16, 8, 1, 3, CUDA_SUCCESS},
		{CU_RES_VIEW_FORMAT_FLOAT_1X32, 16, 8, 3, 3, CUDA_SUCCESS},
		{CU_RES_VIEW_FORMAT_UINT_2X32, 16, 8, 0, 0,
			CUDA_ERROR_INVALID_VALUE}, /* another size */
		{CU_RES_VIEW_FORMAT_NONE, 15, 8, 0, 0, CUDA_ERROR_INVALID_VALUE},
		{CU_RES_VIEW_FORMAT_NONE, 16, 9, 0, 0, CUDA_ERROR_INVALID_VALUE},
		{CU_RES_VIEW_FORMAT_NONE, 16, 8, 2, 1, CUDA_ERROR_INVALID_VALUE},
		{CU_RES_VIEW_FORMAT_NONE, 16, 8, 0, 4, CUDA_ERROR_INVALID_VALUE},
		{CU_RES_VIEW_FORMAT_NONE, 16, 8, 0, UINT32_MAX, CUDA_ERROR_INVALID_VALUE},
		{CU_RES_VIEW_FORMAT_NONE, 16, 8, 5, UINT32_MAX, CUDA_ERROR_INVALID_VALUE},
		{CU_RES_VIEW_FORMAT_UNSIGNED_BC1, 16, 8, 0, 0, CUDA_ERROR_NOT_SUPPORTED},
		{(CUresourceViewFormat)99, 16, 8, 0, 0, CUDA_ERROR_INVALID_VALUE},
	};
	for (size_t i = 0; i < COUNT(table); i++) {
		CUDA_RESOURCE_VIEW_DESC view = {.format = table[i].format,
			.width = table[i].width,
			.height = table[i].height,
			.firstLayer = table[i].first,
			.lastLayer = table[i].last};
		CUresult result = make(&resource, &how, &view);
		if (result != table[i].result)
			fprintf(stderr, "view %zu\n", i);
		IS(result, table[i].result);
	}
	/* Memory has no views. */
	OK(cuMemAlloc(&memory, 512));
	CUDA_RESOURCE_DESC linear = {.resType = CU_RESOURCE_TYPE_LINEAR,
		.res.linear = {.devPtr = memory,
			.format = CU_AD_FORMAT_FLOAT,
			.numChannels = 1,
			.sizeInBytes = 512}};
	CUDA_RESOURCE_VIEW_DESC none = {0};
	CHECK_RESULT(make(&linear, &how, &none), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(memory));
	OK(cuArrayDestroy(array));
	CHECK_RESULT(make(&resource, &how, NULL), CUDA_ERROR_INVALID_HANDLE);
}

static void test_told(void)
{
	test_context();
	CUarray array = layers(2);
	const CUDA_TEXTURE_DESC how = {.flags = CU_TRSF_READ_AS_INTEGER,
		.addressMode = {CU_TR_ADDRESS_MODE_CLAMP},
		.maxAnisotropy = 3,
		.borderColor = {1, 2, 3, 4}};
	const CUDA_RESOURCE_DESC resource = {
		.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = array};
	CUDA_RESOURCE_DESC r = {0};
	CUDA_TEXTURE_DESC t = {0};
	CUDA_RESOURCE_VIEW_DESC v = {.width = 77};
	CUtexObject texture, again;
	CUsurfObject surface;
	OK(cuTexObjectCreate(&texture, &resource, &how, NULL));
	OK(cuSurfObjectCreate(&surface, &resource));
	YES(texture && surface && texture != surface);
	OK(cuTexObjectGetResourceDesc(&r, texture));
	YES(r.resType == CU_RESOURCE_TYPE_ARRAY && r.res.array.hArray == array);
	OK(cuTexObjectGetTextureDesc(&t, texture));
	IS(memcmp(&t, &how, sizeof(t)), 0);
	OK(cuTexObjectGetResourceViewDesc(&v, texture));
	IS(v.width, 0);
	OK(cuSurfObjectGetResourceDesc(&r, surface));
	/* One is not the other, nor of another context. */
	CHECK_RESULT(cuTexObjectGetResourceDesc(&r, surface), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuSurfObjectGetResourceDesc(&r, texture), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuTexObjectDestroy(surface), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuSurfObjectDestroy(texture), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuTexObjectGetTextureDesc(NULL, texture), CUDA_ERROR_INVALID_VALUE);
	CUcontext second = files_second();
	CHECK_RESULT(cuTexObjectGetResourceDesc(&r, texture), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuTexObjectDestroy(texture), CUDA_ERROR_INVALID_VALUE);
	files_second_end(second);
	static const uint64_t strange[] = {0, 999, 1 << 20, UINT64_MAX};
	for (size_t i = 0; i < COUNT(strange); i++)
		CHECK_RESULT(cuTexObjectDestroy(strange[i]), CUDA_ERROR_INVALID_VALUE);
	/* The lowest that is free comes next, of whatever kind. */
	OK(cuTexObjectDestroy(texture));
	CHECK_RESULT(cuTexObjectDestroy(texture), CUDA_ERROR_INVALID_VALUE);
	OK(cuSurfObjectCreate(&again, &resource));
	IS(again, texture);
	OK(cuSurfObjectDestroy(again));
	OK(cuSurfObjectDestroy(surface));
	CUDA_RESOURCE_DESC linear = {.resType = CU_RESOURCE_TYPE_LINEAR};
	CHECK_RESULT(cuSurfObjectCreate(&surface, &linear), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuSurfObjectCreate(NULL, &resource), CUDA_ERROR_INVALID_VALUE);
	size_t width = 0;
	OK(cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 4, 0));
	IS(width, 1 << 28);
	CHECK_RESULT(cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 3, 0),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 4, 2),
		CUDA_ERROR_INVALID_DEVICE);
	OK(cuArrayDestroy(array));
}

UNIT_SUITE(softgpu / memory / texture, {"memory", test_memory}, {"views", test_views},
	{"told", test_told})
