/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/memory/texture.c: textures and surfaces: their handles, the driver's, are waited for;
 * what they are of is known here.
 */
#include <string.h>

#include "relay.h"

static const CUDA_TEXTURE_DESC plain = {.filterMode = CU_TR_FILTER_MODE_POINT,
	.flags = CU_TRSF_READ_AS_INTEGER,
	.maxAnisotropy = 3};

static CUarray array_of(unsigned flags)
{
	CUarray array = NULL;
	CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = 16,
		.Height = 16,
		.Format = CU_AD_FORMAT_UNSIGNED_INT32,
		.NumChannels = 1,
		.Flags = flags};
	MUST(cuArray3DCreate(&array, &desc), CUDA_SUCCESS);
	return array;
}

static void test_textures(void)
{
	CUdeviceptr memory = memory_of(4096, 1);
	CUtexObject texture = 0, none;
	CUDA_RESOURCE_DESC linear = {.resType = CU_RESOURCE_TYPE_LINEAR,
				   .res.linear = {memory, CU_AD_FORMAT_UNSIGNED_INT32, 1, 4096}},
			   got;
	CUDA_TEXTURE_DESC got_desc;
	CUDA_RESOURCE_VIEW_DESC got_view;
	COST(cuTexObjectCreate(&texture, &linear, &plain, NULL), CUDA_SUCCESS, 1, 0);
	YES(texture != 0);
	LOCAL(cuTexObjectGetResourceDesc(&got, texture), CUDA_SUCCESS);
	YES(got.resType == CU_RESOURCE_TYPE_LINEAR && got.res.linear.devPtr == memory &&
		got.res.linear.sizeInBytes == 4096);
	LOCAL(cuTexObjectGetTextureDesc(&got_desc, texture), CUDA_SUCCESS);
	YES(got_desc.flags == CU_TRSF_READ_AS_INTEGER && got_desc.maxAnisotropy == 3);
	memset(&got_view, 7, sizeof got_view);
	LOCAL(cuTexObjectGetResourceViewDesc(&got_view, texture), CUDA_SUCCESS);
	IS(got_view.format + got_view.width, 0); /* it has none */
	LOCAL(cuTexObjectGetResourceDesc(NULL, texture), BAD);
	LOCAL(cuTexObjectGetTextureDesc(NULL, texture), BAD);
	LOCAL(cuSurfObjectGetResourceDesc(&got, texture), BAD); /* of the other kind */
	LOCAL(cuSurfObjectDestroy(texture), BAD);
	COST(cuTexObjectDestroy(texture), CUDA_SUCCESS, 0, 1);
	LOCAL(cuTexObjectDestroy(texture), BAD);
	LOCAL(cuTexObjectGetResourceDesc(&got, texture), BAD);
	LOCAL(cuTexObjectCreate(NULL, &linear, &plain, NULL), BAD);
	LOCAL(cuTexObjectCreate(&none, NULL, &plain, NULL), BAD);
	LOCAL(cuTexObjectCreate(&none, &linear, NULL, NULL), BAD);
	linear.resType = (CUresourcetype)9;
	LOCAL(cuTexObjectCreate(&none, &linear, &plain, NULL), BAD);
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

static void test_arrays(void)
{
	CUarray array = array_of(0);
	CUtexObject texture = 0;
	CUDA_RESOURCE_DESC of = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = array}, got;
	COST(cuTexObjectCreate(&texture, &of, &plain, NULL), CUDA_SUCCESS, 1, 0);
	LOCAL(cuTexObjectGetResourceDesc(&got, texture), CUDA_SUCCESS);
	YES(got.res.array.hArray == array);
	IS(cuTexObjectDestroy(texture), CUDA_SUCCESS);
	of.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY; /* which it is not */
	LOCAL(cuTexObjectCreate(&texture, &of, &plain, NULL), CUDA_ERROR_INVALID_HANDLE);
	of.resType = CU_RESOURCE_TYPE_ARRAY;
	IS(cuArrayDestroy(array), CUDA_SUCCESS);
	LOCAL(cuTexObjectCreate(&texture, &of, &plain, NULL), CUDA_ERROR_INVALID_HANDLE);
}

static void test_surfaces(void)
{
	CUarray array = array_of(CUDA_ARRAY3D_SURFACE_LDST);
	CUsurfObject surface = 0;
	CUDA_RESOURCE_DESC of = {.resType = CU_RESOURCE_TYPE_ARRAY, .res.array.hArray = array}, got;
	COST(cuSurfObjectCreate(&surface, &of), CUDA_SUCCESS, 1, 0);
	LOCAL(cuSurfObjectGetResourceDesc(&got, surface), CUDA_SUCCESS);
	YES(got.res.array.hArray == array);
	COST(cuSurfObjectDestroy(surface), CUDA_SUCCESS, 0, 1);
	LOCAL(cuSurfObjectDestroy(surface), BAD);
	LOCAL(cuSurfObjectCreate(NULL, &of), BAD);
	LOCAL(cuSurfObjectCreate(&surface, NULL), BAD);
	of.resType = CU_RESOURCE_TYPE_LINEAR;
	LOCAL(cuSurfObjectCreate(&surface, &of), BAD);
	of.resType = CU_RESOURCE_TYPE_ARRAY;
	of.res.array.hArray = (CUarray)0x1234;
	LOCAL(cuSurfObjectCreate(&surface, &of), CUDA_ERROR_INVALID_HANDLE);
	IS(cuArrayDestroy(array), CUDA_SUCCESS);
}

static void test_width(void)
{
	size_t elements = 0, quarter = 0;
	COST(cuDeviceGetTexture1DLinearMaxWidth(&elements, CU_AD_FORMAT_FLOAT, 1, 0), CUDA_SUCCESS,
		1, 0);
	IS(cuDeviceGetTexture1DLinearMaxWidth(&quarter, CU_AD_FORMAT_FLOAT, 4, 0), CUDA_SUCCESS);
	YES(elements >= quarter && quarter > 0);
	LOCAL(cuDeviceGetTexture1DLinearMaxWidth(NULL, CU_AD_FORMAT_FLOAT, 1, 0), BAD);
	LOCAL(cuDeviceGetTexture1DLinearMaxWidth(&elements, CU_AD_FORMAT_FLOAT, 1, 2),
		CUDA_ERROR_INVALID_DEVICE);
}

UNIT_SUITE(texture, {"textures", test_textures}, {"arrays", test_arrays},
	{"surfaces", test_surfaces}, {"width", test_width})
