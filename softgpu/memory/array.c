/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA arrays and mipmapped arrays; see array.h. */
#include <stdlib.h>
#include <string.h>

#include "softgpu/memory/array.h"
#include "softgpu/context/context.h"
#include "softgpu/context/device.h"
#include "softgpu/context/log.h"
#include "softgpu/context/object.h"
#include "softgpu/memory/arena.h"
#include "softgpu/memory/copy.h"
#include "softgpu/memory/memmap.h"
#include "softgpu/ptx/ptx.h"
#include "softgpu/stream/capture.h"

static pthread_mutex_t lists_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ckt_soft_array *arrays;
static struct ckt_soft_mipmap *mipmaps;

/* ---- Formats */

bool ckt_soft_format(CUarray_format format, struct ckt_soft_format *ret_format)
{
	static const struct {
		CUarray_format format;
		struct ckt_soft_format is;
	} known[] = {
		{CU_AD_FORMAT_UNSIGNED_INT8, {CKT_PTX_CHANNEL_UNSIGNED, 1, false}},
		{CU_AD_FORMAT_UNSIGNED_INT16, {CKT_PTX_CHANNEL_UNSIGNED, 2, false}},
		{CU_AD_FORMAT_UNSIGNED_INT32, {CKT_PTX_CHANNEL_UNSIGNED, 4, false}},
		{CU_AD_FORMAT_SIGNED_INT8, {CKT_PTX_CHANNEL_SIGNED, 1, false}},
		{CU_AD_FORMAT_SIGNED_INT16, {CKT_PTX_CHANNEL_SIGNED, 2, false}},
		{CU_AD_FORMAT_SIGNED_INT32, {CKT_PTX_CHANNEL_SIGNED, 4, false}},
		{CU_AD_FORMAT_HALF, {CKT_PTX_CHANNEL_FLOAT, 2, false}},
		{CU_AD_FORMAT_FLOAT, {CKT_PTX_CHANNEL_FLOAT, 4, false}},
		{CU_AD_FORMAT_UNORM_INT8X1, {CKT_PTX_CHANNEL_UNSIGNED, 1, true}},
		{CU_AD_FORMAT_UNORM_INT8X2, {CKT_PTX_CHANNEL_UNSIGNED, 1, true}},
		{CU_AD_FORMAT_UNORM_INT8X4, {CKT_PTX_CHANNEL_UNSIGNED, 1, true}},
		{CU_AD_FORMAT_UNORM_INT16X1, {CKT_PTX_CHANNEL_UNSIGNED, 2, true}},
		{CU_AD_FORMAT_UNORM_INT16X2, {CKT_PTX_CHANNEL_UNSIGNED, 2, true}},
		{CU_AD_FORMAT_UNORM_INT16X4, {CKT_PTX_CHANNEL_UNSIGNED, 2, true}},
		{CU_AD_FORMAT_SNORM_INT8X1, {CKT_PTX_CHANNEL_SIGNED, 1, true}},
		{CU_AD_FORMAT_SNORM_INT8X2, {CKT_PTX_CHANNEL_SIGNED, 1, true}},
		{CU_AD_FORMAT_SNORM_INT8X4, {CKT_PTX_CHANNEL_SIGNED, 1, true}},
		{CU_AD_FORMAT_SNORM_INT16X1, {CKT_PTX_CHANNEL_SIGNED, 2, true}},
		{CU_AD_FORMAT_SNORM_INT16X2, {CKT_PTX_CHANNEL_SIGNED, 2, true}},
		{CU_AD_FORMAT_SNORM_INT16X4, {CKT_PTX_CHANNEL_SIGNED, 2, true}},
	};
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (known[i].format == format) {
			*ret_format = known[i].is;
			return true;
		}
	}
	return false;
}

/* The number of channels that the format itself defines; 0 for other formats. */
static unsigned channels_of(CUarray_format format)
{
	switch ((int)format) {
	case CU_AD_FORMAT_UNORM_INT8X1:
	case CU_AD_FORMAT_UNORM_INT16X1:
	case CU_AD_FORMAT_SNORM_INT8X1:
	case CU_AD_FORMAT_SNORM_INT16X1:
		return 1;
	case CU_AD_FORMAT_UNORM_INT8X2:
	case CU_AD_FORMAT_UNORM_INT16X2:
	case CU_AD_FORMAT_SNORM_INT8X2:
	case CU_AD_FORMAT_SNORM_INT16X2:
		return 2;
	case CU_AD_FORMAT_UNORM_INT8X4:
	case CU_AD_FORMAT_UNORM_INT16X4:
	case CU_AD_FORMAT_SNORM_INT8X4:
	case CU_AD_FORMAT_SNORM_INT16X4:
		return 4;
	default:
		return 0;
	}
}

/* CUDA formats that are not listed above: compressed, planar, ten bits. */
static bool other_format(CUarray_format format)
{
	return format == CU_AD_FORMAT_UNORM_INT_101010_2 ||
		(format >= CU_AD_FORMAT_BC1_UNORM &&
			format <= CU_AD_FORMAT_YUV444_16bit_SemiPlanar);
}

/* ---- Sizes */

static enum ckt_ptx_texture_shape shape_of(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	bool layered = desc->Flags & CUDA_ARRAY3D_LAYERED;
	if (desc->Flags & CUDA_ARRAY3D_CUBEMAP)
		return layered ? CKT_PTX_TEXTURE_CUBEMAP_LAYERED : CKT_PTX_TEXTURE_CUBEMAP;
	if (layered)
		return desc->Height ? CKT_PTX_TEXTURE_2D_LAYERED : CKT_PTX_TEXTURE_1D_LAYERED;
	return desc->Depth     ? CKT_PTX_TEXTURE_3D
		: desc->Height ? CKT_PTX_TEXTURE_2D
			       : CKT_PTX_TEXTURE_1D;
}

/* The largest sizes on a GPU of these capabilities; 0: the dimension must be 0. */
static const size_t most[][3] = {
	[CKT_PTX_TEXTURE_1D] = {131072, 0, 0},
	[CKT_PTX_TEXTURE_2D] = {131072, 65536, 0},
	[CKT_PTX_TEXTURE_3D] = {16384, 16384, 16384},
	[CKT_PTX_TEXTURE_1D_LAYERED] = {32768, 0, 2048},
	[CKT_PTX_TEXTURE_2D_LAYERED] = {32768, 32768, 2048},
	[CKT_PTX_TEXTURE_CUBEMAP] = {32768, 32768, 6},
	[CKT_PTX_TEXTURE_CUBEMAP_LAYERED] = {32768, 32768, 2046},
};

static CUresult check(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	const unsigned later = CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING |
		CUDA_ARRAY3D_VIDEO_ENCODE_DECODE;
	struct ckt_soft_format format;
	/* An H200's driver ignores flags without a meaning, and so does this one. */
	if (!desc)
		return CUDA_ERROR_INVALID_VALUE;
	if (desc->Flags & later)
		return CKT_SOFT_UNSUPPORTED(
			"sparse arrays, arrays without memory and arrays for video");
	if (other_format(desc->Format))
		return CKT_SOFT_UNSUPPORTED("arrays of compressed or planar formats");
	if (!ckt_soft_format(desc->Format, &format))
		return CUDA_ERROR_INVALID_VALUE;
	if (desc->NumChannels != 1 && desc->NumChannels != 2 && desc->NumChannels != 4)
		return CUDA_ERROR_INVALID_VALUE;
	if (channels_of(desc->Format) && channels_of(desc->Format) != desc->NumChannels)
		return CUDA_ERROR_INVALID_VALUE;
	enum ckt_ptx_texture_shape shape = shape_of(desc);
	const size_t sizes[3] = {desc->Width, desc->Height, desc->Depth};
	for (int i = 0; i < 3; i++)
		if (most[shape][i] ? !sizes[i] || sizes[i] > most[shape][i] : sizes[i])
			return CUDA_ERROR_INVALID_VALUE;
	if (desc->Flags & CUDA_ARRAY3D_CUBEMAP && (desc->Width != desc->Height || desc->Depth % 6))
		return CUDA_ERROR_INVALID_VALUE;
	if (desc->Flags & CUDA_ARRAY3D_TEXTURE_GATHER &&
		(shape != CKT_PTX_TEXTURE_2D || desc->Width > 32768 || desc->Height > 32768))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static size_t halved(size_t size, unsigned level)
{
	return !size ? 0 : size >> level ? size >> level : 1;
}

static CUDA_ARRAY3D_DESCRIPTOR level_of(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned level)
{
	CUDA_ARRAY3D_DESCRIPTOR r = *desc;
	r.Width = halved(desc->Width, level);
	r.Height = halved(desc->Height, level);
	if (shape_of(desc) == CKT_PTX_TEXTURE_3D)
		r.Depth = halved(desc->Depth, level);
	return r;
}

static uint64_t bytes_of(const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	struct ckt_soft_format format = {0};
	ckt_soft_format(desc->Format, &format);
	return (uint64_t)desc->Width * (desc->Height ? desc->Height : 1) *
		(desc->Depth ? desc->Depth : 1) * desc->NumChannels * format.channel_bytes;
}

/* ---- Creation and destruction */

static CUresult store_create(
	struct ckt_soft_device *device, uint64_t bytes, struct ckt_soft_store **ret_store)
{
	bytes = (bytes + CKT_SOFT_PAGE - 1) & ~(uint64_t)(CKT_SOFT_PAGE - 1);
	struct ckt_soft_store *store = calloc(1, sizeof(*store));
	if (!store)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = ckt_soft_device_charge(device, bytes);
	if (result == CUDA_SUCCESS) {
		store->base = ckt_soft_arena_alloc(&device->arena, bytes);
		if (!store->base) {
			ckt_soft_device_uncharge(device, bytes);
			result = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	if (result != CUDA_SUCCESS) {
		free(store);
		return result;
	}
	store->refs = 1;
	store->device = device;
	store->bytes = bytes;
	*ret_store = store;
	return CUDA_SUCCESS;
}

static void store_put(struct ckt_soft_store *store)
{
	if (!store || atomic_fetch_sub(&store->refs, 1) != 1)
		return;
	ckt_soft_arena_free(&store->device->arena, store->base, store->bytes);
	ckt_soft_device_uncharge(store->device, store->bytes);
	free(store);
}

static void array_free(struct ckt_soft_object *object)
{
	struct ckt_soft_array *array = (struct ckt_soft_array *)object;
	store_put(array->store);
	free(array);
}

/*
 * Creates an array with a handle at an offset of the store.  The caller owns the table's reference.
 */
static CUresult array_make(struct ckt_soft_context *context, const CUDA_ARRAY3D_DESCRIPTOR *desc,
	struct ckt_soft_store *store, uint64_t offset, bool is_level,
	struct ckt_soft_array **ret_array)
{
	struct ckt_soft_array *array = calloc(1, sizeof(*array));
	if (!array)
		return CUDA_ERROR_OUT_OF_MEMORY;
	ckt_soft_format(desc->Format, &array->format);
	array->context = context;
	array->desc = *desc;
	array->shape = shape_of(desc);
	array->element_bytes = array->format.channel_bytes * desc->NumChannels;
	array->is_level = is_level;
	array->image = (struct ckt_ptx_image){
		.memory = (uint8_t *)(uintptr_t)(store->base + offset),
		.width = (uint32_t)desc->Width,
		.height = desc->Height ? (uint32_t)desc->Height : 1,
		.depth = desc->Depth ? (uint32_t)desc->Depth : 1,
		.row_bytes = (uint64_t)desc->Width * array->element_bytes,
	};
	array->image.slice_bytes = array->image.row_bytes * array->image.height;
	CUresult result = ckt_soft_object_init(&array->object, CKT_SOFT_ARRAY, array_free);
	if (result != CUDA_SUCCESS) {
		free(array);
		return result;
	}
	atomic_fetch_add(&store->refs, 1);
	array->store = store;
	pthread_mutex_lock(&lists_lock);
	array->next = arrays;
	array->link = &arrays;
	if (arrays)
		arrays->link = &array->next;
	arrays = array;
	pthread_mutex_unlock(&lists_lock);
	*ret_array = array;
	return CUDA_SUCCESS;
}

/* Removes the handle; textures may keep the memory longer. */
static bool array_close(struct ckt_soft_array *array)
{
	if (!ckt_soft_object_remove(&array->object))
		return false;
	pthread_mutex_lock(&lists_lock);
	*array->link = array->next;
	if (array->next)
		array->next->link = array->link;
	pthread_mutex_unlock(&lists_lock);
	ckt_soft_object_put(&array->object);
	return true;
}

static void mipmap_free(struct ckt_soft_object *object)
{
	struct ckt_soft_mipmap *mipmap = (struct ckt_soft_mipmap *)object;
	for (unsigned i = 0; i < mipmap->n_levels; i++)
		ckt_soft_object_put(&mipmap->levels[i]->object);
	free(mipmap);
}

static bool mipmap_close(struct ckt_soft_mipmap *mipmap)
{
	if (!ckt_soft_object_remove(&mipmap->object))
		return false;
	for (unsigned i = 0; i < mipmap->n_levels; i++)
		array_close(mipmap->levels[i]);
	pthread_mutex_lock(&lists_lock);
	*mipmap->link = mipmap->next;
	if (mipmap->next)
		mipmap->next->link = mipmap->link;
	pthread_mutex_unlock(&lists_lock);
	ckt_soft_object_put(&mipmap->object);
	return true;
}

/* Precondition: n_levels is valid for desc. */
static CUresult mipmap_make(struct ckt_soft_context *context, const CUDA_ARRAY3D_DESCRIPTOR *desc,
	unsigned n_levels, struct ckt_soft_mipmap **ret_mipmap)
{
	uint64_t offsets[CKT_SOFT_LEVELS_MAX], bytes = 0;
	for (unsigned i = 0; i < n_levels; i++) {
		CUDA_ARRAY3D_DESCRIPTOR level = level_of(desc, i);
		offsets[i] = bytes;
		bytes += (bytes_of(&level) + 511) & ~(uint64_t)511;
	}
	struct ckt_soft_store *store;
	struct ckt_soft_mipmap *mipmap = calloc(1, sizeof(*mipmap));
	CUresult result =
		mipmap ? store_create(context->device, bytes, &store) : CUDA_ERROR_OUT_OF_MEMORY;
	if (result != CUDA_SUCCESS) {
		free(mipmap);
		return result;
	}
	mipmap->context = context;
	mipmap->desc = *desc;
	for (unsigned i = 0; i < n_levels && result == CUDA_SUCCESS; i++) {
		CUDA_ARRAY3D_DESCRIPTOR level = level_of(desc, i);
		result = array_make(context, &level, store, offsets[i], true, &mipmap->levels[i]);
		if (result == CUDA_SUCCESS) {
			ckt_soft_object_ref(&mipmap->levels[i]->object);
			mipmap->n_levels++;
		}
	}
	store_put(store);
	if (result == CUDA_SUCCESS)
		result = ckt_soft_object_init(&mipmap->object, CKT_SOFT_MIPMAP, mipmap_free);
	if (result != CUDA_SUCCESS) {
		for (unsigned i = 0; i < mipmap->n_levels; i++)
			array_close(mipmap->levels[i]);
		mipmap_free(&mipmap->object);
		return result;
	}
	pthread_mutex_lock(&lists_lock);
	mipmap->next = mipmaps;
	mipmap->link = &mipmaps;
	if (mipmaps)
		mipmaps->link = &mipmap->next;
	mipmaps = mipmap;
	pthread_mutex_unlock(&lists_lock);
	*ret_mipmap = mipmap;
	return CUDA_SUCCESS;
}

static struct ckt_soft_mipmap *mipmap_of_context(const struct ckt_soft_context *context)
{
	struct ckt_soft_mipmap *m;
	pthread_mutex_lock(&lists_lock);
	for (m = mipmaps; m && m->context != context; m = m->next)
		;
	if (m)
		ckt_soft_object_ref(&m->object);
	pthread_mutex_unlock(&lists_lock);
	return m;
}

static struct ckt_soft_array *array_of_context(const struct ckt_soft_context *context)
{
	struct ckt_soft_array *a;
	pthread_mutex_lock(&lists_lock);
	for (a = arrays; a && (a->context != context || a->is_level); a = a->next)
		;
	if (a)
		ckt_soft_object_ref(&a->object);
	pthread_mutex_unlock(&lists_lock);
	return a;
}

void ckt_soft_arrays_forget(struct ckt_soft_context *context)
{
	ckt_soft_textures_forget(context);
	for (struct ckt_soft_mipmap *m; (m = mipmap_of_context(context));) {
		mipmap_close(m);
		ckt_soft_object_put(&m->object);
	}
	for (struct ckt_soft_array *a; (a = array_of_context(context));) {
		array_close(a);
		ckt_soft_object_put(&a->object);
	}
}

CUresult ckt_soft_array_get(CUarray handle, struct ckt_soft_array **ret_array)
{
	struct ckt_soft_array *array = ckt_soft_object_get(handle, CKT_SOFT_ARRAY);
	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_array = array;
	return CUDA_SUCCESS;
}

CUresult ckt_soft_array_end(const struct ckt_soft_array *array, size_t x, size_t y, size_t z,
	const struct ckt_soft_copy *copy, struct ckt_soft_copy_end *ret_end)
{
	const struct ckt_ptx_image *image = &array->image;
	if (x > image->row_bytes || copy->width > image->row_bytes - x || y > image->height ||
		copy->height > image->height - y || z > image->depth ||
		copy->depth > image->depth - z)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_end = (struct ckt_soft_copy_end){
		.address = (uint64_t)(uintptr_t)image->memory + z * image->slice_bytes +
			y * image->row_bytes + x,
		.pitch = image->row_bytes,
		.slice = image->slice_bytes,
		.place = CKT_SOFT_PLACE_ARRAY,
		.array = ckt_soft_object_handle(&array->object),
		.x = x,
		.y = y,
		.z = z,
	};
	return CUDA_SUCCESS;
}

/* ---- API: arrays */

CUresult CUDAAPI cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter_unsafe(&context);
	if (result == CUDA_SUCCESS)
		result = pHandle ? check(pAllocateArray) : CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	struct ckt_soft_store *store;
	struct ckt_soft_array *array;
	result = store_create(context->device, bytes_of(pAllocateArray), &store);
	if (result != CUDA_SUCCESS)
		return result;
	result = array_make(context, pAllocateArray, store, 0, false, &array);
	store_put(store);
	if (result == CUDA_SUCCESS)
		*pHandle = ckt_soft_object_handle(&array->object);
	return result;
}

CUresult CUDAAPI cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
	if (!pAllocateArray)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_ARRAY3D_DESCRIPTOR desc = {.Width = pAllocateArray->Width,
		.Height = pAllocateArray->Height,
		.Format = pAllocateArray->Format,
		.NumChannels = pAllocateArray->NumChannels};
	return cuArray3DCreate_v2(pHandle, &desc);
}

CUresult CUDAAPI cuArrayDestroy(CUarray hArray)
{
	struct ckt_soft_context *context;
	struct ckt_soft_array *array;
	CUresult result = ckt_soft_enter_unsafe(&context);
	if (result == CUDA_SUCCESS)
		result = ckt_soft_array_get(hArray, &array);
	if (result != CUDA_SUCCESS)
		return result;
	/* Running work may use the array. */
	if (array->is_level)
		result = CUDA_ERROR_INVALID_HANDLE;
	else
		result = ckt_soft_context_synchronize(array->context);
	if (!array->is_level && !array_close(array))
		result = CUDA_ERROR_INVALID_HANDLE;
	ckt_soft_object_put(&array->object);
	return result;
}

CUresult CUDAAPI cuArray3DGetDescriptor_v2(
	CUDA_ARRAY3D_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
	struct ckt_soft_context *context;
	struct ckt_soft_array *array;
	CUresult result = ckt_soft_enter(&context);
	if (result == CUDA_SUCCESS && !pArrayDescriptor)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = ckt_soft_array_get(hArray, &array);
	if (result != CUDA_SUCCESS)
		return result;
	*pArrayDescriptor = array->desc;
	ckt_soft_object_put(&array->object);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *pArrayDescriptor, CUarray hArray)
{
	CUDA_ARRAY3D_DESCRIPTOR desc;
	CUresult result = cuArray3DGetDescriptor_v2(pArrayDescriptor ? &desc : NULL, hArray);
	if (result == CUDA_SUCCESS)
		*pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR){.Width = desc.Width,
			.Height = desc.Height,
			.Format = desc.Format,
			.NumChannels = desc.NumChannels};
	return result;
}

/*
 * Only planar formats have planes.  Only sparse arrays and arrays without memory have the
 * properties below.  The soft GPU has no such arrays.
 */
static CUresult none_of(const void *out, CUarray hArray)
{
	CUDA_ARRAY3D_DESCRIPTOR desc;
	CUresult result = cuArray3DGetDescriptor_v2(out ? &desc : NULL, hArray);
	return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result;
}

CUresult CUDAAPI cuArrayGetPlane(CUarray *pPlaneArray, CUarray hArray, unsigned int planeIdx)
{
	(void)planeIdx;
	return none_of(pPlaneArray, hArray);
}

CUresult CUDAAPI cuArrayGetSparseProperties(
	CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUarray array)
{
	return none_of(sparseProperties, array);
}

CUresult CUDAAPI cuArrayGetMemoryRequirements(
	CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUarray array, CUdevice device)
{
	(void)device;
	return none_of(memoryRequirements, array);
}

/* ---- API: mipmapped arrays */

static CUresult mipmap_get(CUmipmappedArray handle, struct ckt_soft_mipmap **ret_mipmap)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	*ret_mipmap = ckt_soft_object_get(handle, CKT_SOFT_MIPMAP);
	return *ret_mipmap ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult CUDAAPI cuMipmappedArrayCreate(CUmipmappedArray *pHandle,
	const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc, unsigned int numMipmapLevels)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter_unsafe(&context);
	if (result == CUDA_SUCCESS)
		result = pHandle ? check(pMipmappedArrayDesc) : CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	size_t longest = pMipmappedArrayDesc->Width > pMipmappedArrayDesc->Height
		? pMipmappedArrayDesc->Width
		: pMipmappedArrayDesc->Height;
	if (shape_of(pMipmappedArrayDesc) == CKT_PTX_TEXTURE_3D &&
		pMipmappedArrayDesc->Depth > longest)
		longest = pMipmappedArrayDesc->Depth;
	unsigned levels = 1;
	while (longest >> levels)
		levels++;
	if (numMipmapLevels < levels)
		levels = numMipmapLevels ? numMipmapLevels : 1;
	struct ckt_soft_mipmap *mipmap;
	result = mipmap_make(context, pMipmappedArrayDesc, levels, &mipmap);
	if (result == CUDA_SUCCESS)
		*pHandle = ckt_soft_object_handle(&mipmap->object);
	return result;
}

CUresult CUDAAPI cuMipmappedArrayGetLevel(
	CUarray *pLevelArray, CUmipmappedArray hMipmappedArray, unsigned int level)
{
	struct ckt_soft_mipmap *mipmap;
	CUresult result = mipmap_get(hMipmappedArray, &mipmap);
	if (result != CUDA_SUCCESS)
		return result;
	if (!pLevelArray || level >= mipmap->n_levels)
		result = CUDA_ERROR_INVALID_VALUE;
	else
		*pLevelArray = ckt_soft_object_handle(&mipmap->levels[level]->object);
	ckt_soft_object_put(&mipmap->object);
	return result;
}

CUresult CUDAAPI cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray)
{
	struct ckt_soft_mipmap *mipmap;
	CUresult result = mipmap_get(hMipmappedArray, &mipmap);
	if (result != CUDA_SUCCESS)
		return result;
	result = ckt_soft_context_synchronize(mipmap->context);
	if (!mipmap_close(mipmap))
		result = CUDA_ERROR_INVALID_HANDLE;
	ckt_soft_object_put(&mipmap->object);
	return result;
}

static CUresult none_of_mipmap(const void *out, CUmipmappedArray handle)
{
	struct ckt_soft_mipmap *mipmap;
	CUresult result = mipmap_get(handle, &mipmap);
	if (result != CUDA_SUCCESS)
		return result;
	(void)out;
	ckt_soft_object_put(&mipmap->object);
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuMipmappedArrayGetSparseProperties(
	CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUmipmappedArray mipmap)
{
	return none_of_mipmap(sparseProperties, mipmap);
}

CUresult CUDAAPI cuMipmappedArrayGetMemoryRequirements(
	CUDA_ARRAY_MEMORY_REQUIREMENTS *memoryRequirements, CUmipmappedArray mipmap,
	CUdevice device)
{
	(void)device;
	return none_of_mipmap(memoryRequirements, mipmap);
}
