/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface objects.  Resource types and view formats have the driver's numbers.
 * Formats, read mode and flags are translated in both directions.
 */
#include <string.h>

#include "client/cudart/api.h"
#include "client/cudart/array.h"

_Static_assert(
	sizeof(struct cudaResourceViewDesc) == sizeof(CUDA_RESOURCE_VIEW_DESC), "one layout");

static cudaError_t resource_to_driver(const struct cudaResourceDesc *desc, CUDA_RESOURCE_DESC *ret)
{
	unsigned channels;
	cudaError_t error = cudaSuccess;
	memset(ret, 0, sizeof *ret);
	ret->resType = (CUresourcetype)desc->resType;
	ret->flags = desc->flags;
	switch (desc->resType) {
	case cudaResourceTypeArray:
		ret->res.array.hArray = (CUarray)desc->res.array.array;
		break;
	case cudaResourceTypeMipmappedArray:
		ret->res.mipmap.hMipmappedArray = (CUmipmappedArray)desc->res.mipmap.mipmap;
		break;
	case cudaResourceTypeLinear:
		error = ckt_rt_format(&desc->res.linear.desc, &ret->res.linear.format, &channels);
		ret->res.linear.numChannels = channels;
		ret->res.linear.devPtr = ckt_rt_address(desc->res.linear.devPtr);
		ret->res.linear.sizeInBytes = desc->res.linear.sizeInBytes;
		break;
	case cudaResourceTypePitch2D:
		error = ckt_rt_format(&desc->res.pitch2D.desc, &ret->res.pitch2D.format, &channels);
		ret->res.pitch2D.numChannels = channels;
		ret->res.pitch2D.devPtr = ckt_rt_address(desc->res.pitch2D.devPtr);
		ret->res.pitch2D.width = desc->res.pitch2D.width;
		ret->res.pitch2D.height = desc->res.pitch2D.height;
		ret->res.pitch2D.pitchInBytes = desc->res.pitch2D.pitchInBytes;
		break;
	default:
		error = cudaErrorInvalidValue;
	}
	return error;
}

static cudaError_t resource_from_driver(
	const CUDA_RESOURCE_DESC *driver, struct cudaResourceDesc *ret)
{
	cudaError_t error = cudaSuccess;
	memset(ret, 0, sizeof *ret);
	ret->resType = (enum cudaResourceType)driver->resType;
	ret->flags = driver->flags;
	switch (driver->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		ret->res.array.array = (cudaArray_t)driver->res.array.hArray;
		break;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		ret->res.mipmap.mipmap = (cudaMipmappedArray_t)driver->res.mipmap.hMipmappedArray;
		break;
	case CU_RESOURCE_TYPE_LINEAR:
		error = ckt_rt_channel(driver->res.linear.format, driver->res.linear.numChannels,
			&ret->res.linear.desc);
		ret->res.linear.devPtr = (void *)(uintptr_t)driver->res.linear.devPtr;
		ret->res.linear.sizeInBytes = driver->res.linear.sizeInBytes;
		break;
	case CU_RESOURCE_TYPE_PITCH2D:
		error = ckt_rt_channel(driver->res.pitch2D.format, driver->res.pitch2D.numChannels,
			&ret->res.pitch2D.desc);
		ret->res.pitch2D.devPtr = (void *)(uintptr_t)driver->res.pitch2D.devPtr;
		ret->res.pitch2D.width = driver->res.pitch2D.width;
		ret->res.pitch2D.height = driver->res.pitch2D.height;
		ret->res.pitch2D.pitchInBytes = driver->res.pitch2D.pitchInBytes;
		break;
	default:
		error = cudaErrorInvalidValue;
	}
	return error;
}

static void texture_to_driver(const struct cudaTextureDesc *desc, CUDA_TEXTURE_DESC *ret)
{
	memset(ret, 0, sizeof *ret);
	for (int i = 0; i < 3; i++)
		ret->addressMode[i] = (CUaddress_mode)desc->addressMode[i];
	ret->filterMode = (CUfilter_mode)desc->filterMode;
	ret->flags = (desc->readMode == cudaReadModeElementType ? CU_TRSF_READ_AS_INTEGER : 0) |
		(desc->normalizedCoords ? CU_TRSF_NORMALIZED_COORDINATES : 0) |
		(desc->sRGB ? CU_TRSF_SRGB : 0) |
		(desc->disableTrilinearOptimization ? CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION : 0) |
		(desc->seamlessCubemap ? CU_TRSF_SEAMLESS_CUBEMAP : 0);
	ret->maxAnisotropy = desc->maxAnisotropy;
	ret->mipmapFilterMode = (CUfilter_mode)desc->mipmapFilterMode;
	ret->mipmapLevelBias = desc->mipmapLevelBias;
	ret->minMipmapLevelClamp = desc->minMipmapLevelClamp;
	ret->maxMipmapLevelClamp = desc->maxMipmapLevelClamp;
	memcpy(ret->borderColor, desc->borderColor, sizeof ret->borderColor);
}

static void texture_from_driver(const CUDA_TEXTURE_DESC *driver, struct cudaTextureDesc *ret)
{
	memset(ret, 0, sizeof *ret);
	for (int i = 0; i < 3; i++)
		ret->addressMode[i] = (enum cudaTextureAddressMode)driver->addressMode[i];
	ret->filterMode = (enum cudaTextureFilterMode)driver->filterMode;
	ret->readMode = driver->flags & CU_TRSF_READ_AS_INTEGER ? cudaReadModeElementType
								: cudaReadModeNormalizedFloat;
	ret->normalizedCoords = !!(driver->flags & CU_TRSF_NORMALIZED_COORDINATES);
	ret->sRGB = !!(driver->flags & CU_TRSF_SRGB);
	ret->disableTrilinearOptimization =
		!!(driver->flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION);
	ret->seamlessCubemap = !!(driver->flags & CU_TRSF_SEAMLESS_CUBEMAP);
	ret->maxAnisotropy = driver->maxAnisotropy;
	ret->mipmapFilterMode = (enum cudaTextureFilterMode)driver->mipmapFilterMode;
	ret->mipmapLevelBias = driver->mipmapLevelBias;
	ret->minMipmapLevelClamp = driver->minMipmapLevelClamp;
	ret->maxMipmapLevelClamp = driver->maxMipmapLevelClamp;
	memcpy(ret->borderColor, driver->borderColor, sizeof ret->borderColor);
}

/* The format of the elements; false if the driver must report the error in the resource. */
static bool format_of(const CUDA_RESOURCE_DESC *resource, CUarray_format *ret_format)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	CUarray array = resource->res.array.hArray;
	switch (resource->resType) {
	case CU_RESOURCE_TYPE_LINEAR:
		*ret_format = resource->res.linear.format;
		return true;
	case CU_RESOURCE_TYPE_PITCH2D:
		*ret_format = resource->res.pitch2D.format;
		return true;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		if (cuMipmappedArrayGetLevel(&array, resource->res.mipmap.hMipmappedArray, 0))
			return false;
		break;
	default:
		break;
	}
	if (cuArray3DGetDescriptor(&descriptor, array))
		return false;
	*ret_format = descriptor.Format;
	return true;
}

/*
 * Checks that the runtime itself makes, as on an H200: linear filters need fractions, and only
 * 8-bit and 16-bit integers can be normalised to fractions.
 */
static cudaError_t check_modes(
	const CUDA_RESOURCE_DESC *resource, const struct cudaTextureDesc *desc)
{
	bool made = desc->readMode == cudaReadModeNormalizedFloat,
	     linear = desc->filterMode == cudaFilterModeLinear;
	CUarray_format format;
	if (!format_of(resource, &format))
		return cudaSuccess;
	switch (format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT16:
		return linear && !made ? cudaErrorInvalidFilterSetting : cudaSuccess;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
		return linear  ? cudaErrorInvalidFilterSetting
			: made ? cudaErrorInvalidNormSetting
			       : cudaSuccess;
	case CU_AD_FORMAT_HALF:
	case CU_AD_FORMAT_FLOAT:
		return made ? cudaErrorInvalidNormSetting : cudaSuccess;
	default:
		return cudaSuccess;
	}
}

CKT_RT_API cudaError_t cudaCreateTextureObject(cudaTextureObject_t *pTexObject,
	const struct cudaResourceDesc *pResDesc, const struct cudaTextureDesc *pTexDesc,
	const struct cudaResourceViewDesc *pResViewDesc)
{
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC texture;
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(pTexObject && pResDesc, cudaErrorInvalidValue);
	CKT_RT_REQUIRE(pTexDesc, cudaErrorInvalidResourceHandle);
	cudaError_t error = resource_to_driver(pResDesc, &resource);
	if (!error)
		error = check_modes(&resource, pTexDesc);
	CKT_RT_REQUIRE(!error, error);
	texture_to_driver(pTexDesc, &texture);
	return ckt_rt_cu(cuTexObjectCreate((CUtexObject *)pTexObject, &resource, &texture,
		(const CUDA_RESOURCE_VIEW_DESC *)pResViewDesc));
}

CKT_RT_API cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texObject)
{
	CKT_RT_ENTER();
	/* CUDA's runtime does not treat an invalid handle as an error. */
	CUresult result = cuTexObjectDestroy(texObject);
	return result == CUDA_ERROR_INVALID_VALUE ? cudaSuccess : ckt_rt_cu(result);
}

CKT_RT_API cudaError_t cudaGetTextureObjectResourceDesc(
	struct cudaResourceDesc *pResDesc, cudaTextureObject_t texObject)
{
	CUDA_RESOURCE_DESC resource;
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(pResDesc, cudaErrorInvalidValue);
	CUresult result = cuTexObjectGetResourceDesc(&resource, texObject);
	return ckt_rt_return(
		result ? (cudaError_t)result : resource_from_driver(&resource, pResDesc));
}

CKT_RT_API cudaError_t cudaGetTextureObjectTextureDesc(
	struct cudaTextureDesc *pTexDesc, cudaTextureObject_t texObject)
{
	CUDA_TEXTURE_DESC texture;
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(pTexDesc, cudaErrorInvalidValue);
	CUresult result = cuTexObjectGetTextureDesc(&texture, texObject);
	if (result == CUDA_SUCCESS)
		texture_from_driver(&texture, pTexDesc);
	return ckt_rt_cu(result);
}

CKT_RT_API cudaError_t cudaGetTextureObjectResourceViewDesc(
	struct cudaResourceViewDesc *pResViewDesc, cudaTextureObject_t texObject)
{
	CKT_RT_CALL(
		cuTexObjectGetResourceViewDesc((CUDA_RESOURCE_VIEW_DESC *)pResViewDesc, texObject));
}

CKT_RT_API cudaError_t cudaCreateSurfaceObject(
	cudaSurfaceObject_t *pSurfObject, const struct cudaResourceDesc *pResDesc)
{
	CUDA_RESOURCE_DESC resource;
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(pSurfObject && pResDesc, cudaErrorInvalidValue);
	cudaError_t error = resource_to_driver(pResDesc, &resource);
	CKT_RT_REQUIRE(!error, error);
	return ckt_rt_cu(cuSurfObjectCreate((CUsurfObject *)pSurfObject, &resource));
}

CKT_RT_API cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t surfObject)
{
	CKT_RT_ENTER();
	CUresult result = cuSurfObjectDestroy(surfObject);
	return result == CUDA_ERROR_INVALID_VALUE ? cudaSuccess : ckt_rt_cu(result);
}

CKT_RT_API cudaError_t cudaGetSurfaceObjectResourceDesc(
	struct cudaResourceDesc *pResDesc, cudaSurfaceObject_t surfObject)
{
	CUDA_RESOURCE_DESC resource;
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(pResDesc, cudaErrorInvalidValue);
	CUresult result = cuSurfObjectGetResourceDesc(&resource, surfObject);
	return ckt_rt_return(
		result ? (cudaError_t)result : resource_from_driver(&resource, pResDesc));
}
