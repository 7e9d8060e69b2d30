/* SPDX-License-Identifier: Apache-2.0 */
/* Texture and surface objects; see array.h. */
#include <stdlib.h>
#include <string.h>

#include "rpc/gen/cuda_codec.h"
#include "server/worker/driver.h"
#include "server/worker/objects/array.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/device.h"
#include "server/worker/worker.h"

static CUresult resource_of(
	struct ckt_worker *worker, const struct ckt_wtexture *texture, CUDA_RESOURCE_DESC *ret)
{
	struct ckt_object *mipmap;
	memset(ret, 0, sizeof *ret);
	ret->resType = (CUresourcetype)texture->type;
	ret->flags = texture->flags;
	switch (texture->type) {
	case CU_RESOURCE_TYPE_ARRAY:
		return ckt_array_real(
			worker, texture->array, texture->level, &ret->res.array.hArray);
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		mipmap = ckt_objects_find_kind(&worker->objects, texture->array, CKT_KIND_MIPMAP);
		if (!mipmap)
			return CUDA_ERROR_INVALID_HANDLE;
		ret->res.mipmap.hMipmappedArray = mipmap->real;
		return CUDA_SUCCESS;
	case CU_RESOURCE_TYPE_LINEAR:
		ret->res.linear.devPtr = texture->address;
		ret->res.linear.format = (CUarray_format)texture->format;
		ret->res.linear.numChannels = texture->channels;
		ret->res.linear.sizeInBytes = texture->width;
		return CUDA_SUCCESS;
	case CU_RESOURCE_TYPE_PITCH2D:
		ret->res.pitch2D.devPtr = texture->address;
		ret->res.pitch2D.format = (CUarray_format)texture->format;
		ret->res.pitch2D.numChannels = texture->channels;
		ret->res.pitch2D.width = texture->width;
		ret->res.pitch2D.height = texture->height;
		ret->res.pitch2D.pitchInBytes = texture->pitch;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult ckt_texture_real_make(struct ckt_worker *worker, bool surface,
	const struct ckt_wtexture *texture, uint64_t *ret_handle)
{
	CUDA_RESOURCE_DESC resource;
	CUtexObject handle = 0;
	CUresult result = resource_of(worker, texture, &resource);
	if (!result)
		result = surface ? ckt_driver.cuSurfObjectCreate(&handle, &resource)
				 : ckt_driver.cuTexObjectCreate(&handle, &resource, &texture->desc,
					   texture->has_view ? &texture->view : NULL);
	if (!result)
		*ret_handle = handle;
	return result;
}

void ckt_texture_real_unmake(bool surface, uint64_t handle)
{
	if (surface)
		ckt_driver.cuSurfObjectDestroy(handle);
	else
		ckt_driver.cuTexObjectDestroy(handle);
}

void ckt_texture_unmake(struct ckt_object *object)
{
	ckt_texture_real_unmake(
		ckt_handle_kind(object->id) == CKT_KIND_SURFACE, object->texture->handle);
}

CUresult ckt_texture_add(struct ckt_worker *worker, uint64_t id, bool surface,
	const struct ckt_wtexture *texture, struct ckt_object **ret_object)
{
	struct ckt_object *object;
	if (!worker->current)
		return CUDA_ERROR_INVALID_CONTEXT;
	struct ckt_wtexture *copy = malloc(sizeof *copy);
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*copy = *texture;
	CUresult result = ckt_objects_add(&worker->objects, id,
		surface ? CKT_KIND_SURFACE : CKT_KIND_TEXTURE, false, &object);
	if (result) {
		free(copy);
		return result;
	}
	object->context = worker->current->id;
	object->texture = copy;
	*ret_object = object;
	return CUDA_SUCCESS;
}

static CUresult create(
	struct ckt_worker *worker, uint64_t id, bool surface, struct ckt_wtexture *texture)
{
	struct ckt_object *object;
	CUresult result = ckt_texture_real_make(worker, surface, texture, &texture->handle);
	if (result)
		return result;
	result = ckt_texture_add(worker, id, surface, texture, &object);
	if (result)
		ckt_texture_real_unmake(surface, texture->handle);
	return result;
}

static int destroy(struct ckt_worker *worker, uint64_t id, enum ckt_kind kind)
{
	struct ckt_object *object = ckt_objects_find_kind(&worker->objects, id, kind);
	if (!object)
		return CUDA_ERROR_INVALID_VALUE;
	ckt_object_destroy(worker, object);
	return CUDA_SUCCESS;
}

/* ---- Handlers */

int ckt_worker_texture_create(struct ckt_wcall *call)
{
	struct ckt_texture_create_args args;
	struct ckt_texture_create_res res;
	if (!ckt_texture_create_args_get(&call->args, &args) ||
		args.desc_len != sizeof(CUDA_TEXTURE_DESC) ||
		(args.view_len && args.view_len != sizeof(CUDA_RESOURCE_VIEW_DESC)))
		return CKT_WCALL_GARBAGE;
	struct ckt_wtexture texture = {.type = args.type,
		.array = args.array,
		.level = args.level,
		.address = args.address,
		.width = args.width,
		.height = args.height,
		.pitch = args.pitch,
		.format = args.format,
		.channels = args.channels,
		.flags = args.flags,
		.has_view = args.view_len != 0};
	memcpy(&texture.desc, args.desc, sizeof texture.desc);
	if (args.view_len)
		memcpy(&texture.view, args.view, sizeof texture.view);
	CUresult result = create(call->worker, args.id, false, &texture);
	if (result)
		return result;
	res.handle = texture.handle;
	ckt_texture_create_res_put(
		ckt_wcall_results(call, ckt_texture_create_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

int ckt_worker_texture_destroy(struct ckt_wcall *call)
{
	struct ckt_texture_destroy_args args;
	if (!ckt_texture_destroy_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	return destroy(call->worker, args.id, CKT_KIND_TEXTURE);
}

int ckt_worker_surface_create(struct ckt_wcall *call)
{
	struct ckt_surface_create_args args;
	struct ckt_surface_create_res res;
	if (!ckt_surface_create_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_wtexture surface = {.type = CU_RESOURCE_TYPE_ARRAY,
		.array = args.array,
		.level = args.level,
		.flags = args.flags};
	CUresult result = create(call->worker, args.id, true, &surface);
	if (result)
		return result;
	res.handle = surface.handle;
	ckt_surface_create_res_put(
		ckt_wcall_results(call, ckt_surface_create_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

int ckt_worker_surface_destroy(struct ckt_wcall *call)
{
	struct ckt_surface_destroy_args args;
	if (!ckt_surface_destroy_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	return destroy(call->worker, args.id, CKT_KIND_SURFACE);
}

int ckt_worker_texture_linear_width(struct ckt_wcall *call)
{
	struct ckt_texture_linear_width_args args;
	if (!ckt_texture_linear_width_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_worker_device *device = ckt_worker_device_find(call->worker, args.device);
	size_t elements;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	CUresult result = ckt_driver.cuDeviceGetTexture1DLinearMaxWidth
		? ckt_driver.cuDeviceGetTexture1DLinearMaxWidth(
			  &elements, (CUarray_format)args.format, args.channels, device->ordinal)
		: CKT_WORKER_UNSUPPORTED(
			  "cuDeviceGetTexture1DLinearMaxWidth with the server's driver");
	if (result)
		return result;
	struct ckt_texture_linear_width_res res = {.elements = elements};
	ckt_texture_linear_width_res_put(
		ckt_wcall_results(call, ckt_texture_linear_width_res_size(&res)), &res);
	return CUDA_SUCCESS;
}
