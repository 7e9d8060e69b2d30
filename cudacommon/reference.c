/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture references that a program creates itself.  No kernel of current compilers can read one.
 * References that a module declares are not supported, see cuModuleGetTexRef.  A reference is
 * therefore only its settings.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cudacommon/interface.h"
#include "base/fork.h"

struct CUtexref_st {
	struct CUtexref_st *next;
	CUarray array;
	CUmipmappedArray mipmap;
	CUdeviceptr address;
	CUarray_format format;
	int channels;
	CUaddress_mode modes[3];
	CUfilter_mode filter, mipmap_filter;
	float bias, clamp_min, clamp_max, border[4];
	unsigned anisotropy, flags;
};

static CKT_LOCK(lock);
static struct CUtexref_st *references;

/* Holds the lock after success. */
static CUresult enter(CUtexref handle)
{
	uint64_t context;
	CUresult result = ckt_cudacommon_context(&context);
	if (result)
		return result;
	pthread_mutex_lock(&lock);
	for (struct CUtexref_st *r = references; r; r = r->next)
		if (r == handle)
			return CUDA_SUCCESS;
	pthread_mutex_unlock(&lock);
	return CUDA_ERROR_INVALID_HANDLE;
}

static CUresult leave(CUresult result)
{
	pthread_mutex_unlock(&lock);
	return result;
}

CKT_EXPORT CUresult cuTexRefCreate(CUtexref *ret_reference)
{
	uint64_t context;
	if (!ret_reference)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_cudacommon_context(&context);
	if (result)
		return result;
	struct CUtexref_st *r = calloc(1, sizeof *r);
	if (!r)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r->format = CU_AD_FORMAT_FLOAT;
	r->channels = 1;
	for (int i = 0; i < 3; i++)
		r->modes[i] = CU_TR_ADDRESS_MODE_CLAMP;
	pthread_mutex_lock(&lock);
	r->next = references;
	references = r;
	pthread_mutex_unlock(&lock);
	*ret_reference = r;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuTexRefDestroy(CUtexref r)
{
	CUresult result = enter(r);
	if (result)
		return CUDA_ERROR_INVALID_HANDLE;
	struct CUtexref_st **link = &references;
	while (*link != r)
		link = &(*link)->next;
	*link = r->next;
	free(r);
	return leave(CUDA_SUCCESS);
}

/* ---- Memory */

static void attach(CUtexref r, CUarray array, CUmipmappedArray mipmap, CUdeviceptr address)
{
	r->array = array;
	r->mipmap = mipmap;
	r->address = address;
}

CKT_EXPORT CUresult cuTexRefSetArray(CUtexref r, CUarray array, unsigned int flags)
{
	CUDA_ARRAY3D_DESCRIPTOR known;
	(void)flags;
	CUresult result = array ? cuArray3DGetDescriptor_v2(&known, array) : CUDA_SUCCESS;
	if (!result)
		result = enter(r);
	if (result)
		return result;
	attach(r, array, NULL, 0);
	if (array) {
		r->format = known.Format;
		r->channels = (int)known.NumChannels;
	}
	return leave(CUDA_SUCCESS);
}

CKT_EXPORT CUresult cuTexRefSetMipmappedArray(
	CUtexref r, CUmipmappedArray mipmap, unsigned int flags)
{
	CUarray level;
	if (flags != CU_TRSA_OVERRIDE_FORMAT)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = mipmap ? cuMipmappedArrayGetLevel(&level, mipmap, 0) : CUDA_SUCCESS;
	CUDA_ARRAY3D_DESCRIPTOR known;
	if (!result && mipmap)
		result = cuArray3DGetDescriptor_v2(&known, level);
	if (!result)
		result = enter(r);
	if (result)
		return result;
	attach(r, NULL, mipmap, 0);
	if (mipmap) {
		r->format = known.Format;
		r->channels = (int)known.NumChannels;
	}
	return leave(CUDA_SUCCESS);
}

static CUresult alignment(uint64_t *ret_alignment)
{
	CUdevice device;
	int bytes = 0;
	CUresult result = cuCtxGetDevice(&device);
	if (!result)
		result =
			cuDeviceGetAttribute(&bytes, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, device);
	*ret_alignment = (uint64_t)bytes;
	return result;
}

CKT_EXPORT CUresult cuTexRefSetAddress_v2(
	size_t *ret_offset, CUtexref r, CUdeviceptr address, size_t bytes)
{
	uint64_t unit;
	CUresult result = alignment(&unit);
	if (result)
		return result;
	if (address &&
		((address % unit && !ret_offset) || !ckt_cudacommon_is_memory(address, bytes)))
		return CUDA_ERROR_INVALID_VALUE;
	result = enter(r);
	if (result)
		return result;
	attach(r, NULL, NULL, address);
	if (ret_offset)
		*ret_offset = address % unit;
	return leave(CUDA_SUCCESS);
}

CKT_EXPORT CUresult cuTexRefSetAddress2D_v3(
	CUtexref r, const CUDA_ARRAY_DESCRIPTOR *desc, CUdeviceptr address, size_t pitch)
{
	uint64_t unit;
	CUresult result = alignment(&unit);
	if (result)
		return result;
	unsigned bytes = desc ? ckt_cudacommon_element_bytes(desc->Format, desc->NumChannels) : 0;
	if (!bytes || address % unit || !desc->Width || !desc->Height ||
		pitch < desc->Width * bytes ||
		!ckt_cudacommon_is_memory(
			address, pitch * (desc->Height - 1) + desc->Width * bytes))
		return CUDA_ERROR_INVALID_VALUE;
	result = enter(r);
	if (result)
		return result;
	attach(r, NULL, NULL, address);
	r->format = desc->Format;
	r->channels = (int)desc->NumChannels;
	return leave(CUDA_SUCCESS);
}

CKT_EXPORT CUresult cuTexRefGetAddress_v2(CUdeviceptr *ret_address, CUtexref r)
{
	if (!ret_address)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = enter(r);
	if (result)
		return result;
	if (r->address)
		*ret_address = r->address;
	return leave(r->address ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CKT_EXPORT CUresult cuTexRefGetArray(CUarray *ret_array, CUtexref r)
{
	if (!ret_array)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = enter(r);
	if (result)
		return result;
	if (r->array)
		*ret_array = r->array;
	return leave(r->array ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CKT_EXPORT CUresult cuTexRefGetMipmappedArray(CUmipmappedArray *ret_mipmap, CUtexref r)
{
	if (!ret_mipmap)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = enter(r);
	if (result)
		return result;
	if (r->mipmap)
		*ret_mipmap = r->mipmap;
	return leave(r->mipmap ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

/* ---- Read modes */

/* Sets or gets one member; `ok` is the condition for the argument. */
#define SETTER(name, type, argument, ok, member)                              \
	CKT_EXPORT CUresult name(CUtexref r, type argument)                   \
	{                                                                     \
		CUresult result = (ok) ? enter(r) : CUDA_ERROR_INVALID_VALUE; \
		if (result)                                                   \
			return result;                                        \
		r->member = argument;                                         \
		return leave(CUDA_SUCCESS);                                   \
	}
#define GETTER(name, type, member)                                           \
	CKT_EXPORT CUresult name(type *ret, CUtexref r)                      \
	{                                                                    \
		CUresult result = ret ? enter(r) : CUDA_ERROR_INVALID_VALUE; \
		if (result)                                                  \
			return result;                                       \
		*ret = (type)r->member;                                      \
		return leave(CUDA_SUCCESS);                                  \
	}

enum {
	KNOWN_FLAGS = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES | CU_TRSF_SRGB |
		CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP
};

/* The use of the reference rejects an invalid mode. */
SETTER(cuTexRefSetFilterMode, CUfilter_mode, mode, true, filter)
SETTER(cuTexRefSetMipmapFilterMode, CUfilter_mode, mode, (unsigned)mode <= CU_TR_FILTER_MODE_LINEAR,
	mipmap_filter)
SETTER(cuTexRefSetMipmapLevelBias, float, bias_asked, true, bias)
SETTER(cuTexRefSetMaxAnisotropy, unsigned int, most, true, anisotropy)
SETTER(cuTexRefSetFlags, unsigned int, flags_asked, !(flags_asked & ~(unsigned)KNOWN_FLAGS), flags)
GETTER(cuTexRefGetFilterMode, CUfilter_mode, filter)
GETTER(cuTexRefGetMipmapFilterMode, CUfilter_mode, mipmap_filter)
GETTER(cuTexRefGetMipmapLevelBias, float, bias)
GETTER(cuTexRefGetMaxAnisotropy, int, anisotropy)
GETTER(cuTexRefGetFlags, unsigned int, flags)

CKT_EXPORT CUresult cuTexRefSetFormat(CUtexref r, CUarray_format format, int channels)
{
	bool known = (channels == 1 || channels == 2 || channels == 4) &&
		ckt_cudacommon_element_bytes(format, (unsigned)channels);
	CUresult result = known ? enter(r) : CUDA_ERROR_INVALID_VALUE;
	if (result)
		return result;
	r->format = format;
	r->channels = channels;
	return leave(CUDA_SUCCESS);
}

CKT_EXPORT CUresult cuTexRefGetFormat(CUarray_format *ret_format, int *ret_channels, CUtexref r)
{
	CUresult result = enter(r);
	if (result)
		return result;
	if (ret_format)
		*ret_format = r->format;
	if (ret_channels)
		*ret_channels = r->channels;
	return leave(CUDA_SUCCESS);
}

CKT_EXPORT CUresult cuTexRefSetAddressMode(CUtexref r, int dimension, CUaddress_mode mode)
{
	bool known = dimension >= 0 && dimension < 3;
	CUresult result = known ? enter(r) : CUDA_ERROR_INVALID_VALUE;
	if (result)
		return result;
	r->modes[dimension] = mode;
	return leave(CUDA_SUCCESS);
}

CKT_EXPORT CUresult cuTexRefGetAddressMode(CUaddress_mode *ret_mode, CUtexref r, int dimension)
{
	CUresult result =
		ret_mode && dimension >= 0 && dimension < 3 ? enter(r) : CUDA_ERROR_INVALID_VALUE;
	if (result)
		return result;
	*ret_mode = r->modes[dimension];
	return leave(CUDA_SUCCESS);
}

CKT_EXPORT CUresult cuTexRefSetMipmapLevelClamp(CUtexref r, float least, float most)
{
	CUresult result = enter(r);
	if (result)
		return result;
	r->clamp_min = least;
	r->clamp_max = most;
	return leave(CUDA_SUCCESS);
}

CKT_EXPORT CUresult cuTexRefGetMipmapLevelClamp(float *ret_least, float *ret_most, CUtexref r)
{
	CUresult result = ret_least && ret_most ? enter(r) : CUDA_ERROR_INVALID_VALUE;
	if (result)
		return result;
	*ret_least = r->clamp_min;
	*ret_most = r->clamp_max;
	return leave(CUDA_SUCCESS);
}

CKT_EXPORT CUresult cuTexRefSetBorderColor(CUtexref r, float *color)
{
	CUresult result = color ? enter(r) : CUDA_ERROR_INVALID_VALUE;
	if (result)
		return result;
	memcpy(r->border, color, sizeof r->border);
	return leave(CUDA_SUCCESS);
}

CKT_EXPORT CUresult cuTexRefGetBorderColor(float *ret_color, CUtexref r)
{
	CUresult result = ret_color ? enter(r) : CUDA_ERROR_INVALID_VALUE;
	if (result)
		return result;
	memcpy(ret_color, r->border, sizeof r->border);
	return leave(CUDA_SUCCESS);
}
