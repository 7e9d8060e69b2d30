/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cudart/texture.c: descriptions of textures to the driver and back, and what the runtime
 * refuses itself.
 */
#include "files.h"

static void test_round_trip(void)
{
	uint32_t *memory = files_memory(64, 1);
	cudaTextureObject_t texture = 0;
	struct cudaResourceDesc of = {.resType = cudaResourceTypeLinear}, got;
	struct cudaTextureDesc desc = {.addressMode = {cudaAddressModeClamp, cudaAddressModeBorder,
					       cudaAddressModeClamp},
				       .readMode = cudaReadModeElementType,
				       .maxAnisotropy = 4,
				       .borderColor = {1, 2, 3, 4}},
			       got_desc;
	of.res.linear.devPtr = memory;
	of.res.linear.sizeInBytes = 256;
	of.res.linear.desc = cudaCreateChannelDesc(32, 32, 0, 0, cudaChannelFormatKindSigned);
	MUST(cudaCreateTextureObject(&texture, &of, &desc, NULL), OK);
	IS(cudaGetTextureObjectResourceDesc(&got, texture), OK);
	YES(got.resType == cudaResourceTypeLinear && got.res.linear.devPtr == memory &&
		got.res.linear.sizeInBytes == 256);
	YES(got.res.linear.desc.x == 32 && got.res.linear.desc.y == 32 &&
		got.res.linear.desc.f == cudaChannelFormatKindSigned);
	IS(cudaGetTextureObjectTextureDesc(&got_desc, texture), OK);
	YES(got_desc.addressMode[1] == cudaAddressModeBorder &&
		got_desc.readMode == cudaReadModeElementType);
	YES(got_desc.maxAnisotropy == 4 && got_desc.borderColor[3] == 4 &&
		!got_desc.normalizedCoords && !got_desc.sRGB);
	IS(cudaGetTextureObjectResourceDesc(NULL, texture), BAD);
	IS(cudaGetTextureObjectTextureDesc(NULL, texture), BAD);
	IS(cudaDestroyTextureObject(texture), OK);
	IS(cudaDestroyTextureObject(texture), OK); /* what is none is no error */
	IS(cudaGetTextureObjectTextureDesc(&got_desc, texture), BAD);
	IS(cudaDestroySurfaceObject(77), OK);
	IS(cudaFree(memory), OK);
	cudaGetLastError();
}

static void test_refused(void)
{
	static const struct {
		int bits, kind, read, filter;
		cudaError_t error;
	} cases[] = {
		{8, cudaChannelFormatKindUnsigned, cudaReadModeElementType, cudaFilterModeLinear,
			cudaErrorInvalidFilterSetting},
		{32, cudaChannelFormatKindSigned, cudaReadModeElementType, cudaFilterModeLinear,
			cudaErrorInvalidFilterSetting},
		{32, cudaChannelFormatKindSigned, cudaReadModeNormalizedFloat, cudaFilterModePoint,
			cudaErrorInvalidNormSetting},
		{32, cudaChannelFormatKindFloat, cudaReadModeNormalizedFloat, cudaFilterModePoint,
			cudaErrorInvalidNormSetting},
		{64, cudaChannelFormatKindFloat, cudaReadModeElementType, cudaFilterModePoint,
			cudaErrorInvalidChannelDescriptor},
	};
	uint32_t *memory = files_memory(64, 1);
	struct cudaResourceDesc of = {.resType = cudaResourceTypeLinear};
	struct cudaTextureDesc desc = {0};
	cudaTextureObject_t texture;
	cudaSurfaceObject_t surface;
	of.res.linear.devPtr = memory;
	of.res.linear.sizeInBytes = 256;
	for (size_t i = 0; i < COUNT(cases); i++) {
		of.res.linear.desc = cudaCreateChannelDesc(
			cases[i].bits, 0, 0, 0, (enum cudaChannelFormatKind)cases[i].kind);
		desc.readMode = (enum cudaTextureReadMode)cases[i].read;
		desc.filterMode = (enum cudaTextureFilterMode)cases[i].filter;
		IS(cudaCreateTextureObject(&texture, &of, &desc, NULL), cases[i].error);
		IS(cudaGetLastError(), cases[i].error);
	}
	IS(cudaCreateTextureObject(&texture, &of, NULL, NULL), cudaErrorInvalidResourceHandle);
	IS(cudaCreateTextureObject(&texture, NULL, &desc, NULL), BAD);
	IS(cudaCreateTextureObject(NULL, &of, &desc, NULL), BAD);
	IS(cudaCreateSurfaceObject(NULL, &of), BAD);
	of.res.linear.desc = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
	IS(cudaCreateSurfaceObject(&surface, &of), BAD); /* only of arrays */
	of.resType = (enum cudaResourceType)9;
	IS(cudaCreateTextureObject(&texture, &of, &desc, NULL), BAD);
	IS(cudaFree(memory), OK);
	cudaGetLastError();
}

UNIT_SUITE(texture, {"round trip", test_round_trip}, {"refused", test_refused})
