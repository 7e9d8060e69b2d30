/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface objects.  A handle is the lowest free index of one table for both kinds.  A
 * GPU also uses an index into a table of descriptors.  The same objects in the same order therefore
 * get the same handles.  Kernels look up handles without a lock.  An object is freed after the work
 * of its context.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/context/context.h"
#include "softgpu/context/device.h"
#include "softgpu/context/log.h"
#include "softgpu/context/object.h"
#include "softgpu/memory/array.h"
#include "softgpu/memory/memmap.h"
#include "softgpu/memory/memory.h"
#include "softgpu/ptx/ptx.h"

enum {
	LEAF = 1024,
	LEAVES = 1024,
	LINEAR_MAX = 1 << 28, /* CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH */
	PITCH_WIDTH_MAX = 131072,
	PITCH_HEIGHT_MAX = 65000,
	PITCH_MAX = 2097120,
	ALIGNMENT = 512,
	PITCH_ALIGNMENT = 32,
};

struct texture {
	struct ckt_ptx_texture t; /* first: kernels get a pointer to it */
	struct ckt_ptx_image levels[CKT_SOFT_LEVELS_MAX];
	struct ckt_soft_context *context;
	bool surface;
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC desc;
	CUDA_RESOURCE_VIEW_DESC view;
	bool has_view;
	/* array or mipmapped array, referenced; NULL for linear memory */
	struct ckt_soft_object *held;
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER; /* held for changes */
static _Atomic(_Atomic(struct texture *) *) leaves[LEAVES];

static _Atomic(struct texture *) *place_of(uint64_t handle)
{
	if (handle >= (uint64_t)LEAF * LEAVES)
		return NULL;
	_Atomic(struct texture *) *leaf =
		atomic_load_explicit(&leaves[handle / LEAF], memory_order_acquire);
	return leaf ? &leaf[handle % LEAF] : NULL;
}

static const struct texture *find(uint64_t handle, bool surface)
{
	_Atomic(struct texture *) *place = place_of(handle);
	const struct texture *texture =
		place ? atomic_load_explicit(place, memory_order_acquire) : NULL;
	return texture && texture->surface == surface ? texture : NULL;
}

const struct ckt_ptx_texture *ckt_soft_texture_find(void *data, uint64_t handle)
{
	const struct texture *texture = find(handle, false);
	return texture && texture->context == data ? &texture->t : NULL;
}

const struct ckt_ptx_texture *ckt_soft_surface_find(void *data, uint64_t handle)
{
	const struct texture *texture = find(handle, true);
	return texture && texture->context == data ? &texture->t : NULL;
}

static void texture_free(struct texture *texture)
{
	ckt_soft_object_put(texture->held);
	free(texture);
}

static CUresult enter_table(struct texture *texture, uint64_t *ret_handle)
{
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&table_lock);
	/* 0 is not a valid handle. */
	for (uint64_t handle = 1; handle < (uint64_t)LEAF * LEAVES; handle++) {
		if (!leaves[handle / LEAF]) {
			_Atomic(struct texture *) *leaf = calloc(LEAF, sizeof(*leaf));
			if (!leaf)
				break;
			atomic_store_explicit(&leaves[handle / LEAF], leaf, memory_order_release);
		}
		_Atomic(struct texture *) *place = place_of(handle);
		if (atomic_load_explicit(place, memory_order_relaxed))
			continue;
		atomic_store_explicit(place, texture, memory_order_release);
		*ret_handle = handle;
		result = CUDA_SUCCESS;
		break;
	}
	pthread_mutex_unlock(&table_lock);
	return result;
}

void ckt_soft_textures_forget(struct ckt_soft_context *context)
{
	pthread_mutex_lock(&table_lock);
	for (uint64_t handle = 1; handle < (uint64_t)LEAF * LEAVES && leaves[handle / LEAF];
		handle++) {
		struct texture *texture = *place_of(handle);
		if (!texture || texture->context != context)
			continue;
		atomic_store(place_of(handle), NULL);
		texture_free(texture);
	}
	pthread_mutex_unlock(&table_lock);
}

/* ---- Resources */

static CUresult set_format(struct texture *texture, CUarray_format format, unsigned channels)
{
	struct ckt_soft_format is;
	if ((channels != 1 && channels != 2 && channels != 4) || !ckt_soft_format(format, &is))
		return CUDA_ERROR_INVALID_VALUE;
	texture->t.channels = (uint8_t)channels;
	texture->t.channel_bytes = is.channel_bytes;
	texture->t.channel = is.channel;
	texture->t.normalized_read = is.normalized;
	return CUDA_SUCCESS;
}

static CUresult use_array(struct texture *texture, CUarray handle)
{
	struct ckt_soft_array *array;
	/* A program that passes something else is told so as of a value. */
	if (!handle || ckt_soft_array_get(handle, &array) != CUDA_SUCCESS)
		return CUDA_ERROR_INVALID_HANDLE;
	texture->held = &array->object;
	texture->t.shape = array->shape;
	texture->levels[0] = array->image;
	texture->t.n_levels = 1;
	return set_format(texture, array->desc.Format, array->desc.NumChannels);
}

static CUresult use_mipmap(struct texture *texture, CUmipmappedArray handle)
{
	struct ckt_soft_mipmap *mipmap = ckt_soft_object_get(handle, CKT_SOFT_MIPMAP);
	if (!mipmap)
		return CUDA_ERROR_INVALID_HANDLE;
	texture->held = &mipmap->object;
	texture->t.shape = mipmap->levels[0]->shape;
	texture->t.n_levels = mipmap->n_levels;
	for (unsigned i = 0; i < mipmap->n_levels; i++)
		texture->levels[i] = mipmap->levels[i]->image;
	return set_format(texture, mipmap->desc.Format, mipmap->desc.NumChannels);
}

static CUresult use_memory(struct texture *texture, CUdeviceptr address, uint64_t width,
	uint64_t height, uint64_t pitch, uint64_t bytes)
{
	/* On an H200, a size of 0 is not an error. */
	if (!address || address % ALIGNMENT ||
		!ckt_soft_memory_ok(address, bytes, CKT_SOFT_PAGE_READ))
		return CUDA_ERROR_INVALID_VALUE;
	texture->levels[0] = (struct ckt_ptx_image){.memory = (uint8_t *)(uintptr_t)address,
		.width = (uint32_t)width,
		.height = (uint32_t)height,
		.depth = 1,
		.row_bytes = pitch,
		.slice_bytes = pitch * height};
	texture->t.n_levels = 1;
	texture->t.checked = true;
	return CUDA_SUCCESS;
}

static CUresult use_linear(struct texture *texture, const CUDA_RESOURCE_DESC *desc)
{
	CUresult result =
		set_format(texture, desc->res.linear.format, desc->res.linear.numChannels);
	if (result != CUDA_SUCCESS)
		return result;
	uint64_t bytes = desc->res.linear.sizeInBytes,
		 width = bytes / (texture->t.channels * texture->t.channel_bytes);
	if (width > LINEAR_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	texture->t.shape = CKT_PTX_TEXTURE_LINEAR;
	return use_memory(texture, desc->res.linear.devPtr, width, 1, bytes, bytes);
}

static CUresult use_pitch(struct texture *texture, const CUDA_RESOURCE_DESC *desc)
{
	uint64_t width = desc->res.pitch2D.width, height = desc->res.pitch2D.height,
		 pitch = desc->res.pitch2D.pitchInBytes;
	CUresult result =
		set_format(texture, desc->res.pitch2D.format, desc->res.pitch2D.numChannels);
	if (result != CUDA_SUCCESS)
		return result;
	uint64_t row = width * texture->t.channels * texture->t.channel_bytes;
	if (!height || width > PITCH_WIDTH_MAX || height > PITCH_HEIGHT_MAX || pitch > PITCH_MAX ||
		pitch % PITCH_ALIGNMENT)
		return CUDA_ERROR_INVALID_VALUE;
	texture->t.shape = CKT_PTX_TEXTURE_2D;
	return use_memory(texture, desc->res.pitch2D.devPtr, width, height, pitch,
		(height - 1) * pitch + row);
}

static CUresult use_resource(struct texture *texture, const CUDA_RESOURCE_DESC *desc)
{
	if (!desc || desc->flags)
		return CUDA_ERROR_INVALID_VALUE;
	texture->resource = *desc;
	texture->t.levels = texture->levels;
	switch (desc->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		return use_array(texture, desc->res.array.hArray);
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		return use_mipmap(texture, desc->res.mipmap.hMipmappedArray);
	case CU_RESOURCE_TYPE_LINEAR:
		return use_linear(texture, desc);
	case CU_RESOURCE_TYPE_PITCH2D:
		return use_pitch(texture, desc);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* ---- Read modes */

static CUresult use_desc(struct texture *texture, const CUDA_TEXTURE_DESC *desc)
{
	const unsigned known = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES |
		CU_TRSF_SRGB | CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION | CU_TRSF_SEAMLESS_CUBEMAP;
	struct ckt_ptx_texture *t = &texture->t;
	if (!desc || desc->flags & ~known ||
		(unsigned)desc->filterMode > CU_TR_FILTER_MODE_LINEAR ||
		(unsigned)desc->mipmapFilterMode > CU_TR_FILTER_MODE_LINEAR)
		return CUDA_ERROR_INVALID_VALUE;
	for (int i = 0; i < 3; i++) {
		if ((unsigned)desc->addressMode[i] > CU_TR_ADDRESS_MODE_BORDER)
			return CUDA_ERROR_INVALID_VALUE;
		t->address[i] = (enum ckt_ptx_address_mode)desc->addressMode[i];
	}
	texture->desc = *desc;
	bool is_float = t->channel == CKT_PTX_CHANNEL_FLOAT, by_format = t->normalized_read;
	if (!by_format)
		t->normalized_read = !is_float && t->channel_bytes < 4 &&
			!(desc->flags & CU_TRSF_READ_AS_INTEGER);
	t->normalized_coordinates = desc->flags & CU_TRSF_NORMALIZED_COORDINATES;
	t->srgb = desc->flags & CU_TRSF_SRGB;
	t->filter = (enum ckt_ptx_filter)desc->filterMode;
	bool mipmapped = texture->resource.resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
	if (desc->flags & CU_TRSF_SEAMLESS_CUBEMAP && t->shape != CKT_PTX_TEXTURE_CUBEMAP &&
		t->shape != CKT_PTX_TEXTURE_CUBEMAP_LAYERED)
		return CUDA_ERROR_INVALID_VALUE;
	if (mipmapped) {
		t->mipmap_filter = (enum ckt_ptx_filter)desc->mipmapFilterMode;
		t->mipmap_bias = desc->mipmapLevelBias;
		t->mipmap_least = desc->minMipmapLevelClamp;
		t->mipmap_most = desc->maxMipmapLevelClamp;
	}
	memcpy(t->border, desc->borderColor, sizeof(t->border));
	return CUDA_SUCCESS;
}

/* ---- Views: another format of the same size, or a part of the levels and layers */

static bool view_format(
	CUresourceViewFormat format, CUarray_format *ret_format, unsigned *ret_channels)
{
	static const CUarray_format rows[] = {CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_SIGNED_INT8,
		CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_SIGNED_INT16, CU_AD_FORMAT_UNSIGNED_INT32,
		CU_AD_FORMAT_SIGNED_INT32, CU_AD_FORMAT_HALF, CU_AD_FORMAT_FLOAT};
	unsigned i = (unsigned)format - CU_RES_VIEW_FORMAT_UINT_1X8;
	if (i >= 3 * sizeof(rows) / sizeof(*rows))
		return false;
	*ret_format = rows[i / 3];
	*ret_channels = 1u << i % 3;
	return true;
}

static CUresult use_view(struct texture *texture, const CUDA_RESOURCE_VIEW_DESC *view)
{
	struct ckt_ptx_texture *t = &texture->t;
	if (!view)
		return CUDA_SUCCESS;
	bool mipmapped = texture->resource.resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
	if (!mipmapped && texture->resource.resType != CU_RESOURCE_TYPE_ARRAY)
		return CUDA_ERROR_INVALID_VALUE;
	if (view->format >= CU_RES_VIEW_FORMAT_UNSIGNED_BC1 &&
		view->format <= CU_RES_VIEW_FORMAT_UNSIGNED_BC7)
		return CKT_SOFT_UNSUPPORTED("views of compressed formats");
	texture->view = *view;
	texture->has_view = true;
	unsigned bytes = t->channels * t->channel_bytes, channels;
	CUarray_format format;
	if (view->format != CU_RES_VIEW_FORMAT_NONE) {
		if (!view_format(view->format, &format, &channels))
			return CUDA_ERROR_INVALID_VALUE;
		CUresult result = set_format(texture, format, channels);
		if (result != CUDA_SUCCESS || (unsigned)t->channels * t->channel_bytes != bytes)
			return CUDA_ERROR_INVALID_VALUE;
	}
	const struct ckt_ptx_image *image = &texture->levels[0];
	if ((view->width && view->width != image->width) ||
		(view->height && view->height != image->height))
		return CUDA_ERROR_INVALID_VALUE;
	if (mipmapped) {
		if (view->lastMipmapLevel < view->firstMipmapLevel ||
			view->lastMipmapLevel >= t->n_levels)
			return CUDA_ERROR_INVALID_VALUE;
		t->n_levels = view->lastMipmapLevel - view->firstMipmapLevel + 1;
		t->levels += view->firstMipmapLevel;
	}
	bool layered = t->shape == CKT_PTX_TEXTURE_1D_LAYERED ||
		t->shape == CKT_PTX_TEXTURE_2D_LAYERED ||
		t->shape == CKT_PTX_TEXTURE_CUBEMAP_LAYERED;
	if (layered && (view->firstLayer || view->lastLayer)) {
		unsigned unit = t->shape == CKT_PTX_TEXTURE_CUBEMAP_LAYERED ? 6 : 1;
		if (view->lastLayer < view->firstLayer || view->lastLayer >= image->depth / unit)
			return CUDA_ERROR_INVALID_VALUE;
		for (unsigned i = 0; i < CKT_SOFT_LEVELS_MAX && texture->levels[i].memory; i++) {
			texture->levels[i].memory +=
				texture->levels[i].slice_bytes * view->firstLayer * unit;
			texture->levels[i].depth = (view->lastLayer - view->firstLayer + 1) * unit;
		}
	}
	return CUDA_SUCCESS;
}

/* ---- API */

static CUresult destroy(uint64_t handle, bool surface)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	const struct texture *known = find(handle, surface);
	if (!known || known->context != context)
		return CUDA_ERROR_INVALID_VALUE;
	/* Running kernels may use the object. */
	result = ckt_soft_context_synchronize(context);
	pthread_mutex_lock(&table_lock);
	struct texture *texture = atomic_exchange(place_of(handle), NULL);
	pthread_mutex_unlock(&table_lock);
	if (texture)
		texture_free(texture);
	return result;
}

/* Finds the object in the current context. */
static CUresult look_up(
	uint64_t handle, bool surface, const void *out, const struct texture **ret_texture)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	*ret_texture = find(handle, surface);
	return out && *ret_texture && (*ret_texture)->context == context ? CUDA_SUCCESS
									 : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuTexObjectCreate(CUtexObject *pTexObject, const CUDA_RESOURCE_DESC *pResDesc,
	const CUDA_TEXTURE_DESC *pTexDesc, const CUDA_RESOURCE_VIEW_DESC *pResViewDesc)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (!pTexObject)
		return CUDA_ERROR_INVALID_VALUE;
	struct texture *texture = calloc(1, sizeof(*texture));
	if (!texture)
		return CUDA_ERROR_OUT_OF_MEMORY;
	uint64_t handle;
	texture->context = context;
	result = use_resource(texture, pResDesc);
	if (result == CUDA_SUCCESS)
		result = use_view(texture, pResViewDesc);
	if (result == CUDA_SUCCESS)
		result = use_desc(texture, pTexDesc);
	if (result == CUDA_SUCCESS)
		result = enter_table(texture, &handle);
	if (result == CUDA_SUCCESS)
		*pTexObject = handle;
	else
		texture_free(texture);
	return result;
}

CUresult CUDAAPI cuTexObjectDestroy(CUtexObject texObject)
{
	return destroy(texObject, false);
}

CUresult CUDAAPI cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUtexObject texObject)
{
	const struct texture *texture;
	CUresult result = look_up(texObject, false, pResDesc, &texture);
	if (result == CUDA_SUCCESS)
		*pResDesc = texture->resource;
	return result;
}

CUresult CUDAAPI cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *pTexDesc, CUtexObject texObject)
{
	const struct texture *texture;
	CUresult result = look_up(texObject, false, pTexDesc, &texture);
	if (result == CUDA_SUCCESS)
		*pTexDesc = texture->desc;
	return result;
}

CUresult CUDAAPI cuTexObjectGetResourceViewDesc(
	CUDA_RESOURCE_VIEW_DESC *pResViewDesc, CUtexObject texObject)
{
	const struct texture *texture;
	CUresult result = look_up(texObject, false, pResViewDesc, &texture);
	if (result == CUDA_SUCCESS)
		*pResViewDesc = texture->view;
	return result;
}

CUresult CUDAAPI cuSurfObjectCreate(CUsurfObject *pSurfObject, const CUDA_RESOURCE_DESC *pResDesc)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (!pSurfObject || !pResDesc || pResDesc->resType != CU_RESOURCE_TYPE_ARRAY)
		return CUDA_ERROR_INVALID_VALUE;
	struct texture *surface = calloc(1, sizeof(*surface));
	if (!surface)
		return CUDA_ERROR_OUT_OF_MEMORY;
	uint64_t handle;
	surface->context = context;
	surface->surface = true;
	result = use_resource(surface, pResDesc);
	if (result == CUDA_SUCCESS)
		result = enter_table(surface, &handle);
	if (result == CUDA_SUCCESS)
		*pSurfObject = handle;
	else
		texture_free(surface);
	return result;
}

CUresult CUDAAPI cuSurfObjectDestroy(CUsurfObject surfObject)
{
	return destroy(surfObject, true);
}

CUresult CUDAAPI cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUsurfObject surfObject)
{
	const struct texture *surface;
	CUresult result = look_up(surfObject, true, pResDesc, &surface);
	if (result == CUDA_SUCCESS)
		*pResDesc = surface->resource;
	return result;
}

CUresult CUDAAPI cuDeviceGetTexture1DLinearMaxWidth(
	size_t *maxWidthInElements, CUarray_format format, unsigned numChannels, CUdevice dev)
{
	struct ckt_soft_format is;
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	if (!ckt_soft_device(dev))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!maxWidthInElements || !ckt_soft_format(format, &is) ||
		(numChannels != 1 && numChannels != 2 && numChannels != 4))
		return CUDA_ERROR_INVALID_VALUE;
	*maxWidthInElements = LINEAR_MAX;
	return CUDA_SUCCESS;
}
