/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA arrays and mipmapped arrays.  Creating one waits for the reply, and destroying one waits for
 * the work that uses it.  The client answers all other calls itself.  See array.h.
 */
#include <stdlib.h>

#include "client/cuda/memory/array.h"
#include "client/cuda/call.h"
#include "client/cuda/context/context.h"
#include "client/cuda/context/route.h"
#include "client/cuda/memory/texture.h"
#include "client/cuda/memory/worker_pool.h"
#include "cudacommon/capture.h"

struct ckt_array *ckt_client_array_find(CUarray handle)
{
	return ckt_cudacommon_object_find(ckt_handle_id(handle), CKT_KIND_ARRAY);
}

static struct ckt_mipmap *find_mipmap(CUmipmappedArray handle)
{
	return ckt_cudacommon_object_find(ckt_handle_id(handle), CKT_KIND_MIPMAP);
}

bool ckt_client_array_holds(const struct ckt_array *array, uint64_t x, uint64_t y, uint64_t z,
	uint64_t width, uint64_t height, uint64_t depth)
{
	const struct ckt_array_extent *e = &array->extent;
	return x <= e->row_bytes && width <= e->row_bytes - x && y <= e->rows &&
		height <= e->rows - y && z <= e->slices && depth <= e->slices - z;
}

/* Refuses unsupported arrays and invalid descriptions. */
static CUresult check(const CUDA_ARRAY3D_DESCRIPTOR *desc, struct ckt_array_extent *ret_extent)
{
	static bool once;
	if (!desc)
		return CUDA_ERROR_INVALID_VALUE;
	if (desc->Flags &
		(CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING |
			CUDA_ARRAY3D_VIDEO_ENCODE_DECODE))
		return ckt_call_unsupported(
			"sparse arrays, arrays without memory and arrays for video", &once);
	return ckt_array_extent(desc, ret_extent) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult create(uint64_t id, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels)
{
	CUresult result = CUDA_SUCCESS;
	for (int attempt = 0; attempt < 2; attempt++) {
		result = CKT_WAITED(array_create, ARRAY_CREATE, CKT_CALL_F_NUMBERED, NULL, .id = id,
			.width = desc->Width, .height = desc->Height, .depth = desc->Depth,
			.format = desc->Format, .channels = desc->NumChannels, .flags = desc->Flags,
			.levels = levels);
		/* Memory that was freed on a stream is available once the stream is done. */
		if (result != CUDA_ERROR_OUT_OF_MEMORY || !ckt_pool_may_settle() ||
			cuCtxSynchronize())
			break;
	}
	return result;
}

static struct ckt_array *array_new(const CUDA_ARRAY3D_DESCRIPTOR *desc, uint64_t context)
{
	struct ckt_array *array = calloc(1, sizeof *array);
	if (!array)
		return NULL;
	array->object.context = context;
	array->desc = *desc;
	ckt_array_extent(desc, &array->extent);
	if (!ckt_cudacommon_object_add(&array->object, CKT_KIND_ARRAY)) {
		free(array);
		return NULL;
	}
	array->wire = array->object.id;
	return array;
}

static CUresult enter(const void *out, struct ckt_context **ret_context)
{
	CUresult result = ckt_client_context_current(ret_context);
	if (!result && !out)
		result = CUDA_ERROR_INVALID_VALUE;
	return result ? result : ckt_capture_unsafe();
}

/* ---- Arrays */

CKT_EXPORT CUresult cuArray3DCreate_v2(CUarray *ret_array, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
	struct ckt_context *context;
	struct ckt_array_extent extent;
	CUresult result = enter(ret_array, &context);
	if (!result)
		result = check(desc, &extent);
	if (result)
		return result;
	struct ckt_array *array = array_new(desc, context->object.id);
	if (!array)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = create(array->object.id, desc, 0);
	if (result)
		ckt_cudacommon_object_remove(&array->object);
	else
		*ret_array = (CUarray)(uintptr_t)array->object.id;
	return result;
}

CKT_EXPORT CUresult cuArrayCreate_v2(CUarray *ret_array, const CUDA_ARRAY_DESCRIPTOR *desc)
{
	if (!desc)
		return CUDA_ERROR_INVALID_VALUE;
	return cuArray3DCreate_v2(ret_array,
		&(CUDA_ARRAY3D_DESCRIPTOR){.Width = desc->Width,
			.Height = desc->Height,
			.Format = desc->Format,
			.NumChannels = desc->NumChannels});
}

/* Waits for work that uses the memory: programs rely on this, as with cuMemFree. */
static CUresult destroy(uint64_t id, uint64_t context)
{
	uint64_t saved = ckt_call_context;
	ckt_client_context_use(context);
	CUresult result =
		CKT_WAITED(ctx_synchronize, CTX_SYNCHRONIZE, 0, NULL, .id = ckt_call_id(context));
	CUresult sent = CKT_BATCHED(array_destroy, ARRAY_DESTROY, .id = id);
	ckt_client_context_use(saved);
	return result ? result : sent;
}

CKT_EXPORT CUresult cuArrayDestroy(CUarray handle)
{
	struct ckt_context *context;
	CUresult result = enter(&context, &context);
	if (result)
		return result;
	struct ckt_array *array = ckt_client_array_find(handle);
	if (!array || array->is_level)
		return CUDA_ERROR_INVALID_HANDLE;
	uint64_t id = array->wire, owner = array->object.context;
	/* Remove the array first: if two threads destroy the same array, one gets an error. */
	ckt_cudacommon_object_remove(&array->object);
	return destroy(id, owner);
}

CKT_EXPORT CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *desc, CUarray handle)
{
	struct ckt_context *context;
	CUresult result = ckt_client_context_current(&context);
	if (result)
		return result;
	if (!desc)
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_array *array = ckt_client_array_find(handle);
	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	*desc = array->desc;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *desc, CUarray handle)
{
	CUDA_ARRAY3D_DESCRIPTOR whole;
	CUresult result = cuArray3DGetDescriptor_v2(desc ? &whole : NULL, handle);
	if (!result)
		*desc = (CUDA_ARRAY_DESCRIPTOR){.Width = whole.Width,
			.Height = whole.Height,
			.Format = whole.Format,
			.NumChannels = whole.NumChannels};
	return result;
}

/*
 * No array here has planes (only planar formats do) or the properties below (only sparse arrays and
 * arrays without memory do).
 */
static CUresult none_of(const void *out, bool found)
{
	struct ckt_context *context;
	CUresult result = ckt_client_context_current(&context);
	if (result)
		return result;
	return !found ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
}

CKT_EXPORT CUresult cuArrayGetPlane(CUarray *plane, CUarray handle, unsigned int index)
{
	return none_of(plane, ckt_client_array_find(handle));
}

CKT_EXPORT CUresult cuArrayGetSparseProperties(
	CUDA_ARRAY_SPARSE_PROPERTIES *properties, CUarray handle)
{
	return none_of(properties, ckt_client_array_find(handle));
}

CKT_EXPORT CUresult cuArrayGetMemoryRequirements(
	CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements, CUarray handle, CUdevice device)
{
	return none_of(requirements, ckt_client_array_find(handle));
}

/* ---- Mipmapped arrays */

static void drop_levels(struct ckt_mipmap *mipmap)
{
	for (unsigned i = 0; i < mipmap->level_count; i++) {
		struct ckt_array *array =
			ckt_cudacommon_object_find(mipmap->levels[i], CKT_KIND_ARRAY);
		if (array)
			ckt_cudacommon_object_remove(&array->object);
	}
}

static CUresult add_levels(struct ckt_mipmap *mipmap, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		CUDA_ARRAY3D_DESCRIPTOR desc = ckt_array_level(&mipmap->desc, i);
		struct ckt_array *array = array_new(&desc, mipmap->object.context);
		if (!array)
			return CUDA_ERROR_OUT_OF_MEMORY;
		array->wire = mipmap->object.id;
		array->level = i;
		array->is_level = true;
		mipmap->levels[mipmap->level_count++] = array->object.id;
	}
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuMipmappedArrayCreate(
	CUmipmappedArray *ret_mipmap, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned int levels)
{
	struct ckt_context *context;
	struct ckt_array_extent extent;
	CUresult result = enter(ret_mipmap, &context);
	if (!result)
		result = check(desc, &extent);
	if (result)
		return result;
	struct ckt_mipmap *mipmap = calloc(1, sizeof *mipmap);
	if (!mipmap)
		return CUDA_ERROR_OUT_OF_MEMORY;
	mipmap->object.context = context->object.id;
	mipmap->desc = *desc;
	if (!ckt_cudacommon_object_add(&mipmap->object, CKT_KIND_MIPMAP)) {
		free(mipmap);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	levels = ckt_array_levels(desc, levels);
	result = add_levels(mipmap, levels);
	if (!result)
		result = create(mipmap->object.id, desc, levels);
	if (result) {
		drop_levels(mipmap);
		ckt_cudacommon_object_remove(&mipmap->object);
		return result;
	}
	*ret_mipmap = (CUmipmappedArray)(uintptr_t)mipmap->object.id;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuMipmappedArrayGetLevel(
	CUarray *ret_level, CUmipmappedArray handle, unsigned int level)
{
	struct ckt_context *context;
	CUresult result = ckt_client_context_current(&context);
	if (result)
		return result;
	struct ckt_mipmap *mipmap = find_mipmap(handle);
	if (!mipmap)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!ret_level || level >= mipmap->level_count)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_level = (CUarray)(uintptr_t)mipmap->levels[level];
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray handle)
{
	struct ckt_context *context;
	CUresult result = enter(&context, &context);
	if (result)
		return result;
	struct ckt_mipmap *mipmap = find_mipmap(handle);
	if (!mipmap)
		return CUDA_ERROR_INVALID_HANDLE;
	uint64_t id = mipmap->object.id, owner = mipmap->object.context;
	drop_levels(mipmap);
	ckt_cudacommon_object_remove(&mipmap->object);
	return destroy(id, owner);
}

CKT_EXPORT CUresult cuMipmappedArrayGetSparseProperties(
	CUDA_ARRAY_SPARSE_PROPERTIES *properties, CUmipmappedArray handle)
{
	return none_of(properties, find_mipmap(handle));
}

CKT_EXPORT CUresult cuMipmappedArrayGetMemoryRequirements(
	CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements, CUmipmappedArray handle, CUdevice device)
{
	return none_of(requirements, find_mipmap(handle));
}

/* ---- The end of a context */

void ckt_client_array_forget_context(uint64_t context)
{
	ckt_cudacommon_object_each_of_context(
		CKT_KIND_MIPMAP, context, ckt_cudacommon_object_remove);
	ckt_cudacommon_object_each_of_context(
		CKT_KIND_ARRAY, context, ckt_cudacommon_object_remove);
	ckt_client_texture_forget_context(context);
}
