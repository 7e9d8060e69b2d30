/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/objects/texture.c: textures and surfaces: descriptions of the right size, resources
 * that are there, and their end.
 */
#include <stdlib.h>
#include <string.h>

#include "server/worker/objects/array.h"
#include "tests/unit/worker/inside.h"

static CUDA_TEXTURE_DESC desc = {.filterMode = CU_TR_FILTER_MODE_POINT};

static struct ckt_texture_create_args good(uint64_t id)
{
	return (struct ckt_texture_create_args){.id = id,
		.type = CU_RESOURCE_TYPE_ARRAY,
		.array = ID(ARRAY, 221),
		.desc = (const uint8_t *)&desc,
		.desc_len = sizeof desc};
}

static int ask(struct ckt_texture_create_args args, uint64_t *ret_handle)
{
	uint8_t bytes[1024];
	struct ckt_texture_create_res res = {0};
	ckt_texture_create_args_put(bytes, &args);
	struct inside_reply *reply =
		inside_call("texture_create", bytes, ckt_texture_create_args_size(&args), false);
	if (!reply->result)
		YES(ckt_texture_create_res_get(&reply->results, &res));
	if (ret_handle)
		*ret_handle = res.handle;
	return reply->result;
}

static void test_textures(void)
{
	uint64_t id = ID(TEXTURE, 221), handle, memory = inside_memory(4096, 5), before;
	MUST(ASK(array_create, .id = ID(ARRAY, 221), .width = 16, .height = 16,
		     .format = CU_AD_FORMAT_FLOAT, .channels = 1,
		     .flags = CUDA_ARRAY3D_SURFACE_LDST),
		CUDA_SUCCESS);
	before = ckt_worker.objects.count;
	MUST(ask(good(id), &handle), CUDA_SUCCESS);
	YES(handle != 0);
	struct ckt_object *object = ckt_objects_find(&ckt_worker.objects, id);
	CU_ASSERT_PTR_NOT_NULL_FATAL(object);
	IS(object->texture->handle, handle);
	IS(object->texture->array, ID(ARRAY, 221));
	NO(object->texture->has_view);
	/* the id is taken */
	IS(ask(good(id), NULL), CUDA_ERROR_INVALID_VALUE);
	IS(ask(good(ID(SURFACE, 222)), NULL), CUDA_ERROR_INVALID_VALUE); /* another kind's */
	struct ckt_texture_create_args args = good(ID(TEXTURE, 222));
	static const uint32_t sizes[] = {0, 1, sizeof desc - 1, sizeof desc + 1, 256};
	uint8_t view[256] = {0}, long_desc[256] = {0};
	for (size_t i = 0; i < COUNT(sizes); i++) {
		args.desc = long_desc;
		args.desc_len = sizes[i];
		IS(ask(args, NULL), INSIDE_GARBAGE);
	}
	args = good(ID(TEXTURE, 222));
	args.view = view;
	for (uint32_t size = 1; size <= sizeof view; size += 3)
		if (size != sizeof(CUDA_RESOURCE_VIEW_DESC)) {
			args.view_len = size;
			IS(ask(args, NULL), INSIDE_GARBAGE);
		}
	const struct {
		uint32_t type, level;
		uint64_t array;
		CUresult result;
	} wrong[] = {
		{CU_RESOURCE_TYPE_ARRAY, 1, ID(ARRAY, 221), CUDA_ERROR_INVALID_HANDLE},
		{CU_RESOURCE_TYPE_ARRAY, 0, ID(ARRAY, 299), CUDA_ERROR_INVALID_HANDLE},
		{CU_RESOURCE_TYPE_ARRAY, 0, id, CUDA_ERROR_INVALID_HANDLE},
		{CU_RESOURCE_TYPE_MIPMAPPED_ARRAY, 0, ID(ARRAY, 221), CUDA_ERROR_INVALID_HANDLE},
		{4, 0, ID(ARRAY, 221), CUDA_ERROR_INVALID_VALUE},
		{UINT32_MAX, 0, ID(ARRAY, 221), CUDA_ERROR_INVALID_VALUE},
	};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		args = good(ID(TEXTURE, 222));
		args.type = wrong[i].type;
		args.level = wrong[i].level;
		args.array = wrong[i].array;
		IS(ask(args, NULL), wrong[i].result);
	}
	args = good(ID(TEXTURE, 222));
	args.flags = 1;
	IS(ask(args, NULL), CUDA_ERROR_INVALID_VALUE);
	IS(ckt_worker.objects.count, before + 1);
	args = good(ID(TEXTURE, 222));
	args.type = CU_RESOURCE_TYPE_LINEAR;
	args.address = memory;
	args.width = 4096;
	args.format = CU_AD_FORMAT_UNSIGNED_INT32;
	args.channels = 1;
	uint64_t other;
	IS(ask(args, &other), CUDA_SUCCESS);
	YES(other != handle);
	IS(ASK(surface_destroy, .id = id), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(texture_destroy, .id = ID(TEXTURE, 299)), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(texture_destroy, .id = id), CUDA_SUCCESS);
	IS(ASK(texture_destroy, .id = id), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(texture_destroy, .id = ID(TEXTURE, 222)), CUDA_SUCCESS);
	IS(ckt_worker.objects.count, before);
	IS(CUT(texture_create, .id = id, .desc = long_desc, .desc_len = sizeof desc), 0);
	IS(CUT(texture_destroy, .id = id), 0);
	inside_free(memory);
}

static void test_surfaces(void)
{
	uint64_t id = ID(SURFACE, 223);
	IS(ASK(surface_create, .id = id, .array = ID(ARRAY, 299)), CUDA_ERROR_INVALID_HANDLE);
	IS(ASK(surface_create, .id = id, .array = ID(ARRAY, 221), .level = 1),
		CUDA_ERROR_INVALID_HANDLE);
	IS(ASK(surface_create, .id = ID(TEXTURE, 223), .array = ID(ARRAY, 221)),
		CUDA_ERROR_INVALID_VALUE);
	IS(ASK(surface_create, .id = id, .array = ID(ARRAY, 221)), CUDA_SUCCESS);
	IS(ASK(surface_create, .id = id, .array = ID(ARRAY, 221)), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(texture_destroy, .id = id), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(surface_destroy, .id = id), CUDA_SUCCESS);
	IS(ASK(surface_destroy, .id = id), CUDA_ERROR_INVALID_VALUE);
	IS(CUT(surface_create, .id = id, .array = ID(ARRAY, 221)), 0);
	IS(CUT(surface_destroy, .id = id), 0);
	IS(ASK(array_destroy, .id = ID(ARRAY, 221)), CUDA_SUCCESS);
}

static void test_width(void)
{
	struct inside_reply *reply = INSIDE(texture_linear_width, false, .device = 0,
		.format = CU_AD_FORMAT_FLOAT, .channels = 1);
	struct ckt_texture_linear_width_res res = {0};
	MUST(reply->result, CUDA_SUCCESS);
	YES(ckt_texture_linear_width_res_get(&reply->results, &res) && res.elements > 0);
	IS(ASK(texture_linear_width, .device = 64, .format = CU_AD_FORMAT_FLOAT, .channels = 1),
		CUDA_ERROR_INVALID_DEVICE);
	IS(ASK(texture_linear_width, .device = UINT32_MAX, .format = CU_AD_FORMAT_FLOAT,
		   .channels = 1),
		CUDA_ERROR_INVALID_DEVICE);
	IS(ASK(texture_linear_width, .device = 0, .format = CU_AD_FORMAT_FLOAT, .channels = 3),
		CUDA_ERROR_INVALID_VALUE);
	IS(CUT(texture_linear_width, .channels = 1), 0);
}

UNIT_SUITE(texture, {"textures", test_textures}, {"surfaces", test_surfaces}, {"width", test_width})
