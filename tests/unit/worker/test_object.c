/* SPDX-License-Identifier: Apache-2.0 */
/* The object table. */
#include <stdlib.h>

#include "server/worker/objects/object.h"
#include "tests/unit/suite.h"

static void test_objects(void)
{
	static struct ckt_objects objects;
	struct ckt_object *object, *other;
	uint64_t id = ckt_handle_make(CKT_KIND_STREAM, 3, 5000);
	CU_ASSERT_PTR_NULL(ckt_objects_find(&objects, id));
	CU_ASSERT_EQUAL(
		ckt_objects_add(&objects, id, CKT_KIND_STREAM, false, &object), CUDA_SUCCESS);
	CU_ASSERT_PTR_EQUAL(ckt_objects_find(&objects, id), object);
	/* Another generation of the slot, another kind: not it. */
	CU_ASSERT_PTR_NULL(ckt_objects_find(&objects, ckt_handle_make(CKT_KIND_STREAM, 4, 5000)));
	CU_ASSERT_PTR_NULL(ckt_objects_find_kind(&objects, id, CKT_KIND_EVENT));
	CU_ASSERT_NOT_EQUAL(ckt_objects_add(&objects, ckt_handle_make(CKT_KIND_EVENT, 1, 5000),
				    CKT_KIND_EVENT, false, &other),
		CUDA_SUCCESS);
	CU_ASSERT_NOT_EQUAL(ckt_objects_add(&objects, ckt_handle_make(CKT_KIND_EVENT, 1, 5001),
				    CKT_KIND_STREAM, false, &other),
		CUDA_SUCCESS);
	CU_ASSERT_NOT_EQUAL(ckt_objects_add(&objects, ckt_handle_make(CKT_KIND_EVENT, 1, 63),
				    CKT_KIND_EVENT, false, &other),
		CUDA_SUCCESS);
	CU_ASSERT_NOT_EQUAL(ckt_objects_add(&objects,
				    ckt_handle_make(CKT_KIND_EVENT, 1, 70) | (uint64_t)1 << 63,
				    CKT_KIND_EVENT, false, &other),
		CUDA_SUCCESS);
	CU_ASSERT_EQUAL(
		ckt_objects_add(&objects, ckt_handle_primary(0), CKT_KIND_CONTEXT, true, &other),
		CUDA_SUCCESS);
	CU_ASSERT_EQUAL(
		ckt_objects_add(&objects, ckt_handle_make(CKT_KIND_EVENT, 1, CKT_HANDLE_SLOTS - 1),
			CKT_KIND_EVENT, false, &other),
		CUDA_SUCCESS);
	size_t count;
	struct ckt_object **list = ckt_objects_in_order(&objects, &count);
	CU_ASSERT_EQUAL_FATAL(count, 3);
	CU_ASSERT_EQUAL(list[0]->id, id);
	CU_ASSERT_EQUAL(list[1]->id, ckt_handle_primary(0));
	free(list);
	ckt_objects_remove(&objects, object);
	CU_ASSERT_PTR_NULL(ckt_objects_find(&objects, id));
	uint32_t cursor = 0;
	CU_ASSERT_EQUAL(ckt_objects_next(&objects, &cursor)->id, ckt_handle_primary(0));
	CU_ASSERT_PTR_NOT_NULL(ckt_objects_next(&objects, &cursor));
	CU_ASSERT_PTR_NULL(ckt_objects_next(&objects, &cursor));
	ckt_objects_fini(&objects);
	CU_ASSERT_EQUAL(objects.count, 0);
}

UNIT_SUITE(object, {"objects", test_objects})
