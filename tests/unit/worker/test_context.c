/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/objects/context.c: contexts by their commands, the look-ups of handles, and the end
 * of what lives in one.
 */
#include <stdlib.h>

#include "rpc/handle.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/event.h"
#include "server/worker/objects/stream.h"
#include "tests/unit/worker/inside.h"

static void test_look_ups(void)
{
	CUcontext context;
	CUstream stream;
	CUevent event;
	CUmodule module;
	CUfunction function;
	const uint64_t wrong[] = {3, UINT64_MAX, ID(POOL, 299), ckt_handle_primary(0)};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		IS(ckt_object_stream(&ckt_worker, wrong[i], &stream), CUDA_ERROR_INVALID_HANDLE);
		IS(ckt_object_event(&ckt_worker, wrong[i], &event), CUDA_ERROR_INVALID_HANDLE);
		IS(ckt_object_module(&ckt_worker, wrong[i], &module), CUDA_ERROR_INVALID_HANDLE);
		IS(ckt_object_function(&ckt_worker, wrong[i], &function),
			CUDA_ERROR_INVALID_HANDLE);
	}
	for (uint64_t id = 0; id <= 2; id++) {
		IS(ckt_object_stream(&ckt_worker, id, &stream), CUDA_SUCCESS);
		IS((uintptr_t)stream, id);
	}
	IS(ckt_object_context(&ckt_worker, ckt_handle_primary(0), &context), CUDA_SUCCESS);
	IS(ckt_object_context(&ckt_worker, 0, &context), CUDA_ERROR_INVALID_CONTEXT);
	IS(ckt_object_context(&ckt_worker, ID(STREAM, 299), &context), CUDA_ERROR_INVALID_CONTEXT);
	IS(ckt_object_context(&ckt_worker, ckt_handle_primary(ckt_worker.device_count), &context),
		CUDA_ERROR_INVALID_CONTEXT);
	IS(ckt_object_context(&ckt_worker, ID(CONTEXT, 299), &context),
		CUDA_ERROR_CONTEXT_IS_DESTROYED);
	/* A failed switch leaves the one that was current. */
	IS(ckt_worker_use_context(&ckt_worker, ID(CONTEXT, 299)), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	IS(ckt_worker.current->id, ckt_handle_primary(0));
}

static void test_create(void)
{
	uint64_t id = ID(CONTEXT, 201);
	size_t journal = ckt_worker.checkpoint.journal.count;
	uint64_t before = ckt_worker.objects.count;
	IS(ASK(ctx_create, .id = id, .device = 64), CUDA_ERROR_INVALID_DEVICE);
	IS(ASK(ctx_create, .id = id, .device = UINT32_MAX), CUDA_ERROR_INVALID_DEVICE);
	IS(ASK(ctx_create, .id = ID(STREAM, 201)), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(ctx_create, .id = ckt_handle_primary(0)), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(ctx_create, .id = id, .flags = 0x80000000), CUDA_ERROR_INVALID_VALUE);
	IS(ckt_worker.objects.count, before);
	IS(ckt_worker.checkpoint.journal.count, journal);
	MUST(ASK(ctx_create, .id = id, .flags = CU_CTX_SCHED_SPIN), CUDA_SUCCESS);
	IS(ASK(ctx_create, .id = id), CUDA_ERROR_INVALID_VALUE);
	IS(ckt_worker.checkpoint.journal.count, journal + 1);
	IS(ckt_worker.checkpoint.journal.list[journal].kind, CKT_JOURNAL_CONTEXT_CREATE);
	/* It is not the current one. */
	IS(ckt_worker.current->id, ckt_handle_primary(0));
	IS(ASK(ctx_synchronize, .id = id), CUDA_SUCCESS);
	/* What lives in it ends with it: a stream, an event, memory. */
	MUST(ckt_worker_use_context(&ckt_worker, id), CUDA_SUCCESS);
	struct ckt_object *event;
	uint64_t address, owner, used = ckt_memory_used(&ckt_worker.devices[0].memory);
	IS(ckt_worker_stream_make(&ckt_worker, ID(STREAM, 202), CU_STREAM_NON_BLOCKING, 0),
		CUDA_SUCCESS);
	IS(ckt_event_make(&ckt_worker, ID(EVENT, 202), 0, &event), CUDA_SUCCESS);
	IS(ckt_memory_alloc(&ckt_worker.devices[0].memory, 4096, id, &address), CUDA_SUCCESS);
	IS(ckt_objects_find(&ckt_worker.objects, ID(STREAM, 202))->context, id);
	ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0));
	IS(ASK(ctx_destroy, .id = ckt_handle_primary(0)), CUDA_ERROR_INVALID_CONTEXT);
	IS(ASK(ctx_destroy, .id = ID(CONTEXT, 299)), CUDA_ERROR_INVALID_CONTEXT);
	IS(ASK(ctx_destroy, .id = id), CUDA_SUCCESS);
	IS(ASK(ctx_destroy, .id = id), CUDA_ERROR_INVALID_CONTEXT);
	IS(ASK(ctx_synchronize, .id = id), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	IS(ckt_worker.objects.count, before);
	IS(ckt_memory_used(&ckt_worker.devices[0].memory), used);
	IS(ckt_memory_free_begin(&ckt_worker.devices[0].memory, address, &owner),
		CUDA_ERROR_INVALID_VALUE);
	IS(ASK(stream_query, .stream = ID(STREAM, 202)), CUDA_ERROR_INVALID_HANDLE);
	IS(CUT(ctx_create, .id = id), 0);
	IS(CUT(ctx_destroy, .id = id), 0);
	IS(CUT(ctx_synchronize, .id = id), 0);
}

static void test_primary(void)
{
	struct ckt_object *object;
	MUST(ckt_worker.device_count, 2);
	IS(ASK(primary_ctx_retain, .device = 2), CUDA_ERROR_INVALID_DEVICE);
	IS(ASK(primary_ctx_retain, .device = UINT32_MAX), CUDA_ERROR_INVALID_DEVICE);
	IS(ASK(primary_ctx_reset, .device = 2), CUDA_ERROR_INVALID_DEVICE);
	IS(ASK(primary_ctx_retain, .device = 1), CUDA_SUCCESS);
	IS(ASK(primary_ctx_retain, .device = 1), CUDA_SUCCESS); /* the same one */
	object = ckt_objects_find(&ckt_worker.objects, ckt_handle_primary(1));
	CU_ASSERT_PTR_NOT_NULL_FATAL(object);
	YES(object->ctx.primary && object->ctx.device == 1);
	IS(ASK(ctx_synchronize, .id = ckt_handle_primary(1)), CUDA_SUCCESS);
	/* Reset, it is empty, and there. */
	MUST(ckt_worker_use_context(&ckt_worker, ckt_handle_primary(1)), CUDA_SUCCESS);
	IS(ckt_worker_stream_make(&ckt_worker, ID(STREAM, 203), 0, 0), CUDA_SUCCESS);
	ckt_worker_use_context(&ckt_worker, ckt_handle_primary(0));
	IS(ASK(primary_ctx_reset, .device = 1), CUDA_SUCCESS);
	CU_ASSERT_PTR_NULL(ckt_objects_find(&ckt_worker.objects, ID(STREAM, 203)));
	YES(ckt_objects_find(&ckt_worker.objects, ckt_handle_primary(1)) == object);
	IS(ckt_worker.current->id, ckt_handle_primary(0));
	IS(CUT(primary_ctx_retain, .device = 1), 0);
	IS(CUT(primary_ctx_reset, .device = 1), 0);
}

UNIT_SUITE(context, {"look-ups", test_look_ups}, {"create", test_create})

/*
 * Under a later name: the suites of content_threads.c and hash.c want a second device without a
 * context.
 */
static const struct unit_test later_tests[] = {{"reset", test_primary}};

__attribute__((constructor)) static void add_later(void)
{
	unit_add("primary", later_tests, COUNT(later_tests));
}
