/* SPDX-License-Identifier: Apache-2.0 */
/* client/cuda/memory/array.c: arrays wait for being made; what they are is known here. */
#include "relay.h"

static void test_arrays(void)
{
	CUarray array, other;
	CUDA_ARRAY_DESCRIPTOR flat = {.Width = 64,
				      .Height = 32,
				      .Format = CU_AD_FORMAT_FLOAT,
				      .NumChannels = 2},
			      got_flat;
	CUDA_ARRAY3D_DESCRIPTOR got;
	COST(cuArrayCreate(&array, &flat), CUDA_SUCCESS, 1, 0);
	LOCAL(cuArray3DGetDescriptor(&got, array), CUDA_SUCCESS);
	YES(got.Width == 64 && got.Height == 32 && got.Depth == 0 && got.NumChannels == 2 &&
		got.Format == CU_AD_FORMAT_FLOAT);
	LOCAL(cuArrayGetDescriptor(&got_flat, array), CUDA_SUCCESS);
	YES(got_flat.Width == 64 && got_flat.Height == 32);
	LOCAL(cuArrayGetDescriptor(NULL, array), BAD);
	LOCAL(cuArray3DGetDescriptor(&got, (CUarray)0x1234), CUDA_ERROR_INVALID_HANDLE);
	/* Of sparse and planar arrays, of which this is none. */
	LOCAL(cuArrayGetPlane(&other, array, 0), BAD);
	LOCAL(cuArrayGetPlane(&other, (CUarray)0x1234, 0), CUDA_ERROR_INVALID_HANDLE);
	LOCAL(cuArrayGetSparseProperties(NULL, array), BAD);
	LOCAL(cuArrayGetMemoryRequirements(NULL, array, 0), BAD);
	/* The wait for what uses it, and the message. */
	relay_mark();
	IS(cuArrayDestroy(array), CUDA_SUCCESS);
	relay_settle();
	IS(relay_waited * 10 + relay_batched, 11);
	IS(relay_count("array_destroy"), 1);
	LOCAL(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
	LOCAL(cuArray3DGetDescriptor(&got, array), CUDA_ERROR_INVALID_HANDLE);
	LOCAL(cuArrayCreate(&array, NULL), BAD);
	LOCAL(cuArrayCreate(NULL, &flat), BAD);
}

static void test_descriptors(void)
{
	CUarray array;
	const CUarray_format real = CU_AD_FORMAT_FLOAT;
	const struct {
		CUDA_ARRAY3D_DESCRIPTOR desc;
		int result;
	} cases[] = {
		{{.Width = 0, .Format = real, .NumChannels = 1}, BAD},
		{{.Width = 4, .Format = real, .NumChannels = 0}, BAD},
		{{.Width = 4, .Format = real, .NumChannels = 5}, BAD},
		{{.Width = 4, .Format = (CUarray_format)0x7777, .NumChannels = 1}, BAD},
		{{.Width = SIZE_MAX, .Height = SIZE_MAX, .Format = real, .NumChannels = 1}, BAD},
		{{.Width = 4, .Format = real, .NumChannels = 1, .Flags = CUDA_ARRAY3D_SPARSE},
			CUDA_ERROR_NOT_SUPPORTED},
		{{.Width = 4,
			 .Format = real,
			 .NumChannels = 1,
			 .Flags = CUDA_ARRAY3D_DEFERRED_MAPPING},
			CUDA_ERROR_NOT_SUPPORTED},
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		LOCAL(cuArray3DCreate(&array, &cases[i].desc), cases[i].result);
	LOCAL(cuArray3DCreate(&array, NULL), BAD);
	/* The driver's to say. */
	COST(cuArray3DCreate(&array,
		     &(CUDA_ARRAY3D_DESCRIPTOR){.Width = 4, .Format = real, .NumChannels = 3}),
		BAD, 1, 0);
}

static void test_mipmaps(void)
{
	CUmipmappedArray mipmap;
	CUarray levels[8];
	CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = 16,
					.Height = 8,
					.Format = CU_AD_FORMAT_UNSIGNED_INT8,
					.NumChannels = 4},
				got;
	/* More levels than there can be: 16, 8, 4, 2, 1. */
	COST(cuMipmappedArrayCreate(&mipmap, &desc, 100), CUDA_SUCCESS, 1, 0);
	for (unsigned i = 0; i < 5; i++) {
		LOCAL(cuMipmappedArrayGetLevel(&levels[i], mipmap, i), CUDA_SUCCESS);
		IS(cuArray3DGetDescriptor(&got, levels[i]), CUDA_SUCCESS);
		IS(got.Width, 16 >> i);
		IS(got.Height, 8 >> i ? 8 >> i : 1);
	}
	LOCAL(cuMipmappedArrayGetLevel(&levels[5], mipmap, 5), BAD);
	LOCAL(cuMipmappedArrayGetLevel(NULL, mipmap, 0), BAD);
	LOCAL(cuMipmappedArrayGetLevel(&levels[5], (CUmipmappedArray)0x1234, 0),
		CUDA_ERROR_INVALID_HANDLE);
	LOCAL(cuMipmappedArrayGetSparseProperties(NULL, mipmap), BAD);
	LOCAL(cuMipmappedArrayGetMemoryRequirements(NULL, (CUmipmappedArray)0x1234, 0),
		CUDA_ERROR_INVALID_HANDLE);
	/* it goes with the others */
	LOCAL(cuArrayDestroy(levels[0]), CUDA_ERROR_INVALID_HANDLE);
	IS(cuMipmappedArrayDestroy(mipmap), CUDA_SUCCESS);
	LOCAL(cuArray3DGetDescriptor(&got, levels[4]), CUDA_ERROR_INVALID_HANDLE);
	LOCAL(cuMipmappedArrayDestroy(mipmap), CUDA_ERROR_INVALID_HANDLE);
	LOCAL(cuMipmappedArrayCreate(&mipmap, NULL, 1), BAD);
	LOCAL(cuMipmappedArrayCreate(NULL, &desc, 1), BAD);
}

UNIT_SUITE(array, {"arrays", test_arrays}, {"descriptors", test_descriptors},
	{"mipmaps", test_mipmaps})
