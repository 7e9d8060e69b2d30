/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/objects/stream.c: streams by their commands: ids, flags, the pool that default ones
 * come from, waiting, ordering.
 */
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

#include "server/worker/objects/stream.h"
#include "tests/unit/worker/inside.h"

static CUstream real_of(uint64_t id)
{
	CUstream real = NULL;
	IS(ckt_object_stream(&ckt_worker, id, &real), CUDA_SUCCESS);
	return real;
}

static void test_make(void)
{
	uint64_t a = ID(STREAM, 201), none = ID(STREAM, 299);
	IS(ASK(stream_create, .id = a, .flags = CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	IS(ASK(stream_create, .id = a), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(stream_create, .id = ID(EVENT, 201)), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(stream_create, .id = 0), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(stream_create, .id = none, .flags = 0x40), CUDA_ERROR_INVALID_VALUE);
	/* what failed leaves no object */
	CU_ASSERT_PTR_NULL(ckt_objects_find(&ckt_worker.objects, none));
	struct ckt_object *object = ckt_objects_find(&ckt_worker.objects, a);
	IS(object->context, ckt_handle_primary(0));
	IS(object->stream.flags, CU_STREAM_NON_BLOCKING);
	/* Idle, its real stream goes back to the pool, and the next one gets it. */
	CUstream real = object->real;
	IS(ASK(stream_destroy, .id = a), CUDA_SUCCESS);
	IS(ASK(stream_destroy, .id = a), CUDA_ERROR_INVALID_HANDLE);
	IS(ASK(stream_create, .id = a, .flags = CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	YES(real_of(a) == real);
	/* One of another kind does not. */
	IS(ASK(stream_destroy, .id = a), CUDA_SUCCESS);
	IS(ASK(stream_create, .id = a, .flags = CU_STREAM_DEFAULT), CUDA_SUCCESS);
	YES(real_of(a) != real);
	IS(ASK(stream_destroy, .id = a), CUDA_SUCCESS);
	IS(CUT(stream_create, .id = none), 0);
	IS(CUT(stream_destroy, .id = none), 0);
}

/* More than the pool has. */
static void test_many(void)
{
	enum { MANY = CKT_STREAM_POOL + 8 };
	CUstream real[MANY];
	uint64_t before = ckt_worker.objects.count;
	for (unsigned i = 0; i < MANY; i++) {
		IS(ASK(stream_create, .id = ID(STREAM, 300 + i), .flags = CU_STREAM_NON_BLOCKING),
			CUDA_SUCCESS);
		real[i] = real_of(ID(STREAM, 300 + i));
		for (unsigned k = 0; k < i; k++)
			YES(real[k] != real[i]);
	}
	IS(ckt_worker.objects.count, before + MANY);
	for (unsigned i = 0; i < MANY; i++)
		IS(ASK(stream_destroy, .id = ID(STREAM, 300 + i)), CUDA_SUCCESS);
	IS(ckt_worker.objects.count, before);
}

static void *stop_soon(void *unused)
{
	poll(NULL, 0, 20);
	inside_stop();
	return unused;
}

static void test_wait(void)
{
	uint64_t a = ID(STREAM, 211), b = ID(STREAM, 212), event = ID(EVENT, 211);
	pthread_t thread;
	MUST(ASK(stream_create, .id = a, .flags = CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	MUST(ASK(stream_create, .id = b, .flags = CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	MUST(ASK(event_create, .id = event), CUDA_SUCCESS);
	IS(ASK(stream_query, .stream = a), CUDA_SUCCESS);
	inside_spin(real_of(a));
	IS(ASK(event_record, .event = event, .stream = a), CUDA_SUCCESS);
	IS(ASK(stream_query, .stream = a), CUDA_ERROR_NOT_READY);
	IS(ASK(stream_query, .stream = b), CUDA_SUCCESS);
	IS(ASK(stream_wait_event, .stream = b, .event = event), CUDA_SUCCESS);
	IS(ASK(stream_query, .stream = b), CUDA_ERROR_NOT_READY);
	IS(ASK(stream_wait_event, .stream = b, .event = ID(EVENT, 299)), CUDA_ERROR_INVALID_HANDLE);
	IS(ASK(stream_wait_event, .stream = ID(STREAM, 299), .event = event),
		CUDA_ERROR_INVALID_HANDLE);
	/* The answer comes when the work is done: of the stream that waits for the other's, too. */
	pthread_create(&thread, NULL, stop_soon, NULL);
	IS(ASK(stream_synchronize, .stream = b), CUDA_SUCCESS);
	pthread_join(thread, NULL);
	IS(ASK(stream_query, .stream = b), CUDA_SUCCESS);
	IS(ASK(stream_synchronize, .stream = a), CUDA_SUCCESS);
	static const uint64_t special[] = {0, 1, 2};
	for (size_t i = 0; i < COUNT(special); i++) {
		IS(ASK(stream_synchronize, .stream = special[i]), CUDA_SUCCESS);
		IS(ASK(stream_query, .stream = special[i]), CUDA_SUCCESS);
		IS(ASK(stream_destroy, .id = special[i]), CUDA_ERROR_INVALID_HANDLE);
	}
	const uint64_t wrong[] = {3, UINT64_MAX, event, ID(STREAM, 299)};
	for (size_t i = 0; i < COUNT(wrong); i++) {
		IS(ASK(stream_synchronize, .stream = wrong[i]), CUDA_ERROR_INVALID_HANDLE);
		IS(ASK(stream_query, .stream = wrong[i]), CUDA_ERROR_INVALID_HANDLE);
		IS(ASK(stream_destroy, .id = wrong[i]), CUDA_ERROR_INVALID_HANDLE);
	}
	IS(CUT(stream_synchronize, .stream = a), 0);
	IS(CUT(stream_query, .stream = a), 0);
	IS(CUT(stream_wait_event, .stream = b, .event = event), 0);
	IS(ASK(stream_destroy, .id = a), CUDA_SUCCESS);
	IS(ASK(stream_destroy, .id = b), CUDA_SUCCESS);
	IS(ASK(event_destroy, .id = event), CUDA_SUCCESS);
}

UNIT_SUITE(stream, {"make", test_make}, {"many", test_many}, {"wait", test_wait})
