/* SPDX-License-Identifier: Apache-2.0 */
/* The object table; see object.h. */
#include "server/worker/objects/object.h"

#include <stdlib.h>
#include <string.h>

#include "server/worker/session/host_budget.h"
#include "server/worker/libs/libs.h"
#include "server/worker/libs/state.h"
#include "server/worker/module/module_variables.h"

/* With what the driver has on our side for it. */
enum {
	OBJECT_BYTES = sizeof(struct ckt_object) + 256,
	LEAF_BYTES = CKT_OBJECT_LEAF * sizeof(struct ckt_object *)
};

CUresult ckt_objects_add(struct ckt_objects *objects, uint64_t id, enum ckt_kind kind,
	bool reserved, struct ckt_object **ret_object)
{
	uint32_t slot = ckt_handle_slot(id);
	if (ckt_handle_kind(id) != kind || id >> 63 || (!reserved && slot < CKT_HANDLE_FIRST_SLOT))
		return CUDA_ERROR_INVALID_VALUE;
	if (objects->count >= CKT_OBJECTS_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct ckt_object ***leaf = &objects->root[slot >> CKT_OBJECT_LEAF_BITS];
	if (!*leaf && ckt_budget_charge(LEAF_BYTES, "objects")) {
		*leaf = calloc(CKT_OBJECT_LEAF, sizeof **leaf);
		if (!*leaf)
			ckt_budget_uncharge(LEAF_BYTES);
	}
	if (!*leaf)
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct ckt_object **place = &(*leaf)[slot & (CKT_OBJECT_LEAF - 1)];
	if (*place)
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_object *object =
		ckt_budget_charge(OBJECT_BYTES, "objects") ? calloc(1, sizeof *object) : NULL;
	if (!object)
		return CUDA_ERROR_OUT_OF_MEMORY;
	object->id = id;
	object->order = ++objects->next_order;
	*place = object;
	objects->count++;
	*ret_object = object;
	return CUDA_SUCCESS;
}

static void destroy(struct ckt_object *object)
{
	switch (ckt_handle_kind(object->id)) {
	case CKT_KIND_STREAM:
		free(object->stream.attributes);
		break;
	case CKT_KIND_CONTEXT:
		free(object->ctx.stream_attributes);
		break;
	case CKT_KIND_MODULE:
		ckt_budget_uncharge(object->module.host_bytes);
		free(object->module.option_keys);
		free(object->module.option_values);
		for (uint32_t i = 0; i < object->module.seen_count; i++)
			free(object->module.seen[i]);
		free(object->module.seen);
		ckt_module_variables_destroy(object->module.variables);
		break;
	case CKT_KIND_FUNCTION:
		if (object->function.name)
			ckt_budget_uncharge(strlen(object->function.name));
		free(object->function.name);
		free(object->function.sets);
		break;
	case CKT_KIND_POOL:
		free(object->pool);
		break;
	case CKT_KIND_ARRAY:
	case CKT_KIND_MIPMAP:
		free(object->array);
		break;
	case CKT_KIND_TEXTURE:
	case CKT_KIND_SURFACE:
		free(object->texture);
		break;
	case CKT_KIND_LIB_OBJECT:
		ckt_library_object_free(object->library);
		break;
	case CKT_KIND_LIB_CALL:
		ckt_worker_lib_call_free(object->lib_call);
		break;
	default:
		break;
	}
	free(object);
	ckt_budget_uncharge(OBJECT_BYTES);
}

void ckt_objects_remove(struct ckt_objects *objects, struct ckt_object *object)
{
	uint32_t slot = ckt_handle_slot(object->id);
	objects->root[slot >> CKT_OBJECT_LEAF_BITS][slot & (CKT_OBJECT_LEAF - 1)] = NULL;
	objects->count--;
	destroy(object);
}

struct ckt_object *ckt_objects_next(const struct ckt_objects *objects, uint32_t *cursor)
{
	while (*cursor < CKT_HANDLE_SLOTS) {
		struct ckt_object **leaf = objects->root[*cursor >> CKT_OBJECT_LEAF_BITS];
		if (!leaf) {
			*cursor = (*cursor | (CKT_OBJECT_LEAF - 1)) + 1;
			continue;
		}
		struct ckt_object *object = leaf[(*cursor)++ & (CKT_OBJECT_LEAF - 1)];
		if (object)
			return object;
	}
	return NULL;
}

static int by_order(const void *a, const void *b)
{
	uint64_t x = (*(struct ckt_object *const *)a)->order,
		 y = (*(struct ckt_object *const *)b)->order;
	return x < y ? -1 : x > y;
}

struct ckt_object **ckt_objects_in_order(const struct ckt_objects *objects, size_t *ret_count)
{
	struct ckt_object **list = calloc(objects->count + 1, sizeof(struct ckt_object *)), *object;
	*ret_count = 0;
	if (!list)
		return NULL;
	size_t count = 0;
	for (uint32_t cursor = 0; (object = ckt_objects_next(objects, &cursor));)
		list[count++] = object;
	qsort(list, count, sizeof(struct ckt_object *), by_order);
	*ret_count = count;
	return list;
}

void ckt_objects_fini(struct ckt_objects *objects)
{
	struct ckt_object *object;
	for (uint32_t cursor = 0; (object = ckt_objects_next(objects, &cursor));)
		ckt_objects_remove(objects, object);
	for (size_t i = 0; i < CKT_OBJECT_ROOT; i++) {
		if (objects->root[i])
			ckt_budget_uncharge(LEAF_BYTES);
		free(objects->root[i]);
		objects->root[i] = NULL;
	}
}
