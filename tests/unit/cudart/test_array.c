/* SPDX-License-Identifier: Apache-2.0 */
/* client/cudart/array.c: channel descriptions as the driver's formats and back; arrays. */
#include "files.h"

static void test_formats(void)
{
	static const struct {
		struct cudaChannelFormatDesc desc;
		cudaError_t error;
	} cases[] = {
		{{8, 0, 0, 0, cudaChannelFormatKindSigned}, OK},
		{{8, 8, 0, 0, cudaChannelFormatKindUnsigned}, OK},
		{{16, 16, 16, 16, cudaChannelFormatKindUnsigned}, OK},
		{{16, 0, 0, 0, cudaChannelFormatKindFloat}, OK},
		{{32, 32, 0, 0, cudaChannelFormatKindFloat}, OK},
		{{32, 32, 32, 32, cudaChannelFormatKindSigned}, OK},
		{{0, 0, 0, 0, cudaChannelFormatKindSigned}, cudaErrorInvalidChannelDescriptor},
		{{32, 32, 32, 0, cudaChannelFormatKindFloat},
			cudaErrorInvalidChannelDescriptor}, /* three channels */
		{{32, 16, 0, 0, cudaChannelFormatKindFloat},
			cudaErrorInvalidChannelDescriptor}, /* of two widths */
		{{32, 0, 32, 0, cudaChannelFormatKindFloat},
			cudaErrorInvalidChannelDescriptor}, /* with a gap */
		{{8, 0, 0, 0, cudaChannelFormatKindFloat}, cudaErrorInvalidChannelDescriptor},
		{{64, 0, 0, 0, cudaChannelFormatKindSigned}, cudaErrorInvalidChannelDescriptor},
		{{32, 0, 0, 0, cudaChannelFormatKindNone}, cudaErrorInvalidChannelDescriptor},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct cudaChannelFormatDesc *desc = &cases[i].desc;
		struct cudaChannelFormatDesc got;
		cudaArray_t array = NULL;
		IS(cudaMallocArray(&array, desc, 16, 4, 0), cases[i].error);
		IS(cudaGetLastError(), cases[i].error);
		if (cases[i].error)
			continue;
		IS(cudaGetChannelDesc(&got, array), OK);
		YES(got.x == desc->x && got.y == desc->y && got.z == desc->z && got.w == desc->w &&
			got.f == desc->f);
		IS(cudaFreeArray(array), OK);
	}
}

static void test_arrays(void)
{
	const struct cudaChannelFormatDesc words =
		cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindUnsigned);
	struct cudaChannelFormatDesc got;
	struct cudaExtent extent;
	struct cudaArrayMemoryRequirements requirements;
	cudaArray_t array, level;
	cudaMipmappedArray_t mipmap;
	unsigned flags = 77;
	YES(words.x == 32 && words.y == 0 && words.f == cudaChannelFormatKindUnsigned);
	IS(cudaMalloc3DArray(&array, &words, (struct cudaExtent){8, 4, 2}, 0), OK);
	IS(cudaArrayGetInfo(&got, &extent, &flags, array), OK);
	YES(extent.width == 8 && extent.height == 4 && extent.depth == 2 && flags == 0 &&
		got.x == 32);
	IS(cudaArrayGetInfo(NULL, NULL, NULL, array), OK);
	IS(cudaGetChannelDesc(NULL, array), BAD);
	IS(cudaArrayGetMemoryRequirements(&requirements, array, 2), cudaErrorInvalidDevice);
	IS(cudaFreeArray(array), OK);
	IS(cudaFreeArray(NULL), OK);
	IS(cudaMallocArray(NULL, &words, 4, 4, 0), BAD);
	IS(cudaMallocArray(&array, NULL, 4, 4, 0), BAD);
	YES(cudaMallocArray(&array, &words, 0, 0, 0) != OK);
	IS(cudaMallocMipmappedArray(&mipmap, &words, (struct cudaExtent){8, 4, 0}, 2, 0), OK);
	IS(cudaGetMipmappedArrayLevel(&level, mipmap, 1), OK);
	IS(cudaArrayGetInfo(NULL, &extent, NULL, level), OK);
	YES(extent.width == 4 && extent.height == 2);
	YES(cudaGetMipmappedArrayLevel(&level, mipmap, 2) != OK);
	IS(cudaMipmappedArrayGetMemoryRequirements(&requirements, mipmap, -1),
		cudaErrorInvalidDevice);
	IS(cudaFreeMipmappedArray(mipmap), OK);
	IS(cudaFreeMipmappedArray(NULL), OK);
	IS(cudaMallocMipmappedArray(NULL, &words, extent, 1, 0), BAD);
	cudaGetLastError();
}

UNIT_SUITE(array, {"formats", test_formats}, {"arrays", test_arrays})
