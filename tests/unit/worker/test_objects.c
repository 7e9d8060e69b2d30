/* SPDX-License-Identifier: Apache-2.0 */
/* server/worker/libs/objects.c: what libraries make for a session. */
#include <stdlib.h>

#include "server/worker/libs/libs.h"
#include "server/worker/objects/context.h"
#include "tests/unit/worker/inside.h"

static void *ended;

static void destroy(struct ckt_worker *worker, struct ckt_object *object)
{
	ended = object->real;
}

static const struct ckt_library library = {.name = "toy", .lib = CKT_LIB_CUDNN, .destroy = destroy};

static void test_life(void)
{
	int real;
	struct ckt_object *object, *other;
	uint64_t id = ID(LIB_OBJECT, 1);
	MUST(ckt_library_object_add(&ckt_worker, &library, 3, id, &real, malloc(16), &object),
		CUDA_SUCCESS);
	IS(object->context, ckt_handle_primary(0));
	YES(ckt_library_object_find(&ckt_worker, CKT_LIB_CUDNN, 3, id) == object);
	/* Another type, another library, another id, another kind of object. */
	YES(ckt_library_object_find(&ckt_worker, CKT_LIB_CUDNN, 2, id) == NULL);
	YES(ckt_library_object_find(&ckt_worker, CKT_LIB_CUBLAS, 3, id) == NULL);
	YES(ckt_library_object_find(&ckt_worker, CKT_LIB_CUDNN, 3, id + 1) == NULL);
	YES(ckt_library_object_find(&ckt_worker, CKT_LIB_CUDNN, 3, ckt_handle_primary(0)) == NULL);
	IS(ckt_library_object_add(&ckt_worker, &library, 3, id, &real, NULL, &other),
		CUDA_ERROR_INVALID_VALUE);
	IS(ckt_library_object_add(&ckt_worker, &library, 3, ID(STREAM, 1), &real, NULL, &other),
		CUDA_ERROR_INVALID_VALUE);
	ckt_object_destroy(&ckt_worker, object);
	YES(ended == &real);
	YES(ckt_library_object_find(&ckt_worker, CKT_LIB_CUDNN, 3, id) == NULL);
}

static void test_context_ends(void)
{
	int real;
	struct ckt_object *object, *context;
	MUST(ckt_context_create(&ckt_worker, ID(CONTEXT, 77), 0, 0, &context), CUDA_SUCCESS);
	MUST(ckt_worker_use_context(&ckt_worker, context->id), CUDA_SUCCESS);
	MUST(ckt_library_object_add(
		     &ckt_worker, &library, 1, ID(LIB_OBJECT, 2), &real, NULL, &object),
		CUDA_SUCCESS);
	IS(object->context, context->id);
	ended = NULL;
	IS(ckt_context_destroy(&ckt_worker, context), CUDA_SUCCESS);
	ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0));
	YES(ended == &real);
	YES(ckt_library_object_find(&ckt_worker, CKT_LIB_CUDNN, 1, ID(LIB_OBJECT, 2)) == NULL);
}

static void test_batched(void)
{
	static const struct ckt_proc proc = {.name = "toyMultiply"};
	const struct ckt_wcall call = {.worker = &ckt_worker, .proc = &proc};
	bool once = false;
	IS(ckt_library_batched(&call, 0, &once), CUDA_SUCCESS);
	NO(once);
	IS(ckt_library_batched(&call, 7, &once), CUDA_ERROR_UNKNOWN);
	YES(once);
}

UNIT_SUITE(objects, {"life", test_life}, {"context ends", test_context_ends},
	{"batched", test_batched})
