/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface objects.  Their handles are the driver's, because kernels get them as numbers
 * in their parameters.  So creating one waits for the reply.  The descriptions are kept here under
 * (context, handle).
 */
#include <stdlib.h>
#include <string.h>

#include "client/cuda/memory/texture.h"
#include "base/fork.h"
#include "client/cuda/call.h"
#include "client/cuda/context/context.h"
#include "client/cuda/context/device.h"
#include "client/cuda/context/route.h"
#include "client/cuda/memory/array.h"
#include "client/cuda/memory/mapped.h"
#include "cudacommon/interface.h"

enum { BUCKETS = 4096 };

struct entry {
	struct entry *next;
	uint64_t handle, context, id;
	bool surface;
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC desc;
	CUDA_RESOURCE_VIEW_DESC view;
	bool has_view;
};

static CKT_LOCK(entries_lock);
static struct entry *buckets[BUCKETS];

static struct entry **place_of(uint64_t handle, uint64_t context, bool surface)
{
	struct entry **place = &buckets[(handle ^ handle >> 20) % BUCKETS];
	while (*place &&
		((*place)->handle != handle || (*place)->context != context ||
			(*place)->surface != surface))
		place = &(*place)->next;
	return place;
}

static void drop_object(uint64_t id)
{
	struct ckt_cudacommon_object *object = ckt_cudacommon_object_find(id, ckt_handle_kind(id));
	if (object)
		ckt_cudacommon_object_remove(object);
}

/* Copies the object of the current context. */
static CUresult look_up(uint64_t handle, bool surface, const void *out, struct entry *ret_entry)
{
	struct ckt_context *context;
	CUresult result = ckt_client_context_current(&context);
	if (result)
		return result;
	pthread_mutex_lock(&entries_lock);
	struct entry *entry = *place_of(handle, context->object.id, surface);
	if (entry)
		*ret_entry = *entry;
	pthread_mutex_unlock(&entries_lock);
	return entry && out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult new_entry(bool surface, struct entry **ret_entry)
{
	struct ckt_context *context;
	CUresult result = ckt_client_context_current(&context);
	if (result)
		return result;
	struct entry *entry = calloc(1, sizeof *entry);
	struct ckt_cudacommon_object *object = calloc(1, sizeof *object);
	if (object)
		object->context = context->object.id;
	if (!entry || !object ||
		!ckt_cudacommon_object_add(object, surface ? CKT_KIND_SURFACE : CKT_KIND_TEXTURE)) {
		free(entry);
		free(object);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	entry->id = object->id;
	entry->context = context->object.id;
	entry->surface = surface;
	*ret_entry = entry;
	return CUDA_SUCCESS;
}

static void enter_table(struct entry *entry)
{
	pthread_mutex_lock(&entries_lock);
	struct entry **place = place_of(entry->handle, entry->context, entry->surface);
	struct entry *old = *place;
	/* An earlier object had the same handle from the driver; the new object replaces it. */
	if (old)
		*place = old->next;
	entry->next = buckets[(entry->handle ^ entry->handle >> 20) % BUCKETS];
	buckets[(entry->handle ^ entry->handle >> 20) % BUCKETS] = entry;
	pthread_mutex_unlock(&entries_lock);
	if (old)
		drop_object(old->id);
	free(old);
}

static void drop_entry(struct entry *entry)
{
	drop_object(entry->id);
	free(entry);
}

/* Removes the entry; the caller destroys the object at the worker and frees the entry. */
static CUresult take(uint64_t handle, bool surface, struct entry **ret_entry)
{
	struct ckt_context *context;
	CUresult result = ckt_client_context_current(&context);
	if (result)
		return result;
	pthread_mutex_lock(&entries_lock);
	struct entry **place = place_of(handle, context->object.id, surface), *entry = *place;
	if (entry)
		*place = entry->next;
	pthread_mutex_unlock(&entries_lock);
	*ret_entry = entry;
	return entry ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void ckt_client_texture_forget_context(uint64_t context)
{
	pthread_mutex_lock(&entries_lock);
	for (unsigned i = 0; i < BUCKETS; i++) {
		for (struct entry **place = &buckets[i], *entry; (entry = *place);) {
			if (entry->context != context) {
				place = &entry->next;
				continue;
			}
			*place = entry->next;
			drop_entry(entry);
		}
	}
	pthread_mutex_unlock(&entries_lock);
}

/* ---- Resources in calls */

static CUresult read_resource(const CUDA_RESOURCE_DESC *desc, struct ckt_texture_create_args *args)
{
	const struct ckt_array *array;
	const struct ckt_mipmap *mipmap;
	if (!desc)
		return CUDA_ERROR_INVALID_VALUE;
	args->type = desc->resType;
	args->flags = desc->flags;
	switch (desc->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		array = ckt_client_array_find(desc->res.array.hArray);
		if (!array)
			return CUDA_ERROR_INVALID_HANDLE;
		args->array = array->wire;
		args->level = array->level;
		return CUDA_SUCCESS;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		mipmap = ckt_cudacommon_object_find(
			ckt_handle_id(desc->res.mipmap.hMipmappedArray), CKT_KIND_MIPMAP);
		if (!mipmap)
			return CUDA_ERROR_INVALID_HANDLE;
		args->array = mipmap->object.id;
		return CUDA_SUCCESS;
	case CU_RESOURCE_TYPE_LINEAR:
		args->address = desc->res.linear.devPtr;
		args->format = desc->res.linear.format;
		args->channels = desc->res.linear.numChannels;
		args->width = desc->res.linear.sizeInBytes;
		/* The device can read pinned memory only if it is mapped. */
		return ckt_client_host_map_params(&args->address, sizeof args->address);
	case CU_RESOURCE_TYPE_PITCH2D:
		args->address = desc->res.pitch2D.devPtr;
		args->format = desc->res.pitch2D.format;
		args->channels = desc->res.pitch2D.numChannels;
		args->width = desc->res.pitch2D.width;
		args->height = desc->res.pitch2D.height;
		args->pitch = desc->res.pitch2D.pitchInBytes;
		return ckt_client_host_map_params(&args->address, sizeof args->address);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult send_create(struct ckt_texture_create_args *args, uint64_t *ret_handle)
{
	struct ckt_call call;
	struct ckt_reply reply;
	struct ckt_texture_create_res res;
	CUresult result = ckt_call_begin(&call, CKT_PROC_TEXTURE_CREATE,
		ckt_texture_create_args_size(args), CKT_CALL_F_NUMBERED);
	if (result)
		return result;
	ckt_texture_create_args_put(call.p, args);
	result = ckt_call_wait(&call, &reply);
	if (result)
		return result;
	if (ckt_texture_create_res_get(&reply.results, &res))
		*ret_handle = res.handle;
	else
		result = CUDA_ERROR_UNKNOWN;
	ckt_call_reply_release(&reply);
	return result;
}

/* ---- Textures */

CKT_EXPORT CUresult cuTexObjectCreate(CUtexObject *ret_texture, const CUDA_RESOURCE_DESC *resource,
	const CUDA_TEXTURE_DESC *desc, const CUDA_RESOURCE_VIEW_DESC *view)
{
	struct entry *entry;
	struct ckt_texture_create_args args = {.desc = (const uint8_t *)desc,
		.desc_len = sizeof *desc,
		.view = (const uint8_t *)view,
		.view_len = view ? sizeof *view : 0};
	if (!ckt_client_device_count())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!ret_texture || !desc)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = read_resource(resource, &args);
	if (!result)
		result = new_entry(false, &entry);
	if (result)
		return result;
	args.id = entry->id;
	entry->resource = *resource;
	entry->desc = *desc;
	entry->has_view = view != NULL;
	if (view)
		entry->view = *view;
	result = send_create(&args, &entry->handle);
	if (result) {
		drop_entry(entry);
		return result;
	}
	*ret_texture = entry->handle;
	enter_table(entry);
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuTexObjectDestroy(CUtexObject texture)
{
	struct entry *entry;
	CUresult result = take(texture, false, &entry);
	if (result)
		return result;
	result = CKT_BATCHED(texture_destroy, TEXTURE_DESTROY, .id = entry->id);
	drop_entry(entry);
	return result;
}

CKT_EXPORT CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *ret_desc, CUtexObject texture)
{
	struct entry entry;
	CUresult result = look_up(texture, false, ret_desc, &entry);
	if (!result)
		*ret_desc = entry.resource;
	return result;
}

CKT_EXPORT CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *ret_desc, CUtexObject texture)
{
	struct entry entry;
	CUresult result = look_up(texture, false, ret_desc, &entry);
	if (!result)
		*ret_desc = entry.desc;
	return result;
}

CKT_EXPORT CUresult cuTexObjectGetResourceViewDesc(
	CUDA_RESOURCE_VIEW_DESC *ret_view, CUtexObject texture)
{
	struct entry entry;
	CUresult result = look_up(texture, false, ret_view, &entry);
	/* Without a view, the result is all zeros (measured on an H200). */
	if (!result)
		*ret_view = entry.view;
	return result;
}

CKT_EXPORT CUresult cuDeviceGetTexture1DLinearMaxWidth(
	size_t *ret_width, CUarray_format format, unsigned channels, CUdevice device)
{
	CUresult result;
	struct ckt_reply reply;
	struct ckt_texture_linear_width_res res;
	if (!ckt_client_device_get(device, &result))
		return result;
	if (!ret_width)
		return CUDA_ERROR_INVALID_VALUE;
	CKT_ROUTE_DEVICE(device);
	result = CKT_WAITED(texture_linear_width, TEXTURE_LINEAR_WIDTH, 0, &reply,
		.device = ckt_call_device((unsigned)device), .format = format,
		.channels = channels);
	if (result)
		return result;
	if (ckt_texture_linear_width_res_get(&reply.results, &res))
		*ret_width = res.elements;
	else
		result = CUDA_ERROR_UNKNOWN;
	ckt_call_reply_release(&reply);
	return result;
}

/* ---- Surfaces */

CKT_EXPORT CUresult cuSurfObjectCreate(
	CUsurfObject *ret_surface, const CUDA_RESOURCE_DESC *resource)
{
	struct entry *entry;
	struct ckt_reply reply;
	struct ckt_surface_create_res res;
	struct ckt_texture_create_args source = {0};
	if (!ckt_client_device_count())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!ret_surface || !resource || resource->resType != CU_RESOURCE_TYPE_ARRAY)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = read_resource(resource, &source);
	if (!result)
		result = new_entry(true, &entry);
	if (result)
		return result;
	entry->resource = *resource;
	result = CKT_WAITED(surface_create, SURFACE_CREATE, CKT_CALL_F_NUMBERED, &reply,
		.id = entry->id, .array = source.array, .level = source.level,
		.flags = source.flags);
	if (!result) {
		if (ckt_surface_create_res_get(&reply.results, &res))
			entry->handle = res.handle;
		else
			result = CUDA_ERROR_UNKNOWN;
		ckt_call_reply_release(&reply);
	}
	if (result) {
		drop_entry(entry);
		return result;
	}
	*ret_surface = entry->handle;
	enter_table(entry);
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuSurfObjectDestroy(CUsurfObject surface)
{
	struct entry *entry;
	CUresult result = take(surface, true, &entry);
	if (result)
		return result;
	result = CKT_BATCHED(surface_destroy, SURFACE_DESTROY, .id = entry->id);
	drop_entry(entry);
	return result;
}

CKT_EXPORT CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *ret_desc, CUsurfObject surface)
{
	struct entry entry;
	CUresult result = look_up(surface, true, ret_desc, &entry);
	if (!result)
		*ret_desc = entry.resource;
	return result;
}
