/* SPDX-License-Identifier: Apache-2.0 */
/* server/worker/objects/event.c: events by their commands: ids, flags, whose they are, times. */
#include <stdlib.h>

#include "tests/unit/worker/inside.h"

static uint64_t a, b, untimed, none;

static float elapsed(uint64_t start, uint64_t end, int *ret_result)
{
	struct inside_reply *reply = INSIDE(event_elapsed_time, false, .start = start, .end = end);
	struct ckt_event_elapsed_time_res res = {.milliseconds = -1};
	*ret_result = reply->result;
	if (!reply->result)
		YES(ckt_event_elapsed_time_res_get(&reply->results, &res));
	return res.milliseconds;
}

static void test_events(void)
{
	int result;
	a = ID(EVENT, 1);
	b = ID(EVENT, 2);
	untimed = ID(EVENT, 3);
	none = ID(EVENT, 9);
	IS(ASK(event_create, .id = a), CUDA_SUCCESS);
	IS(ASK(event_create, .id = a), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(event_create, .id = ID(STREAM, 1)), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(event_create, .id = none, .flags = CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
	IS(ASK(event_create, .id = none, .flags = 0x8000), CUDA_ERROR_INVALID_VALUE);
	/* what failed leaves no object */
	CU_ASSERT_PTR_NULL(ckt_objects_find(&ckt_worker.objects, none));
	IS(ASK(event_create, .id = b, .flags = CU_EVENT_BLOCKING_SYNC), CUDA_SUCCESS);
	IS(ASK(event_create, .id = untimed, .flags = CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
	NO(ckt_objects_find(&ckt_worker.objects, a)->event.recorded);
	/* Not recorded: the driver says so. */
	elapsed(a, b, &result);
	IS(result, CUDA_ERROR_INVALID_HANDLE);
	IS(ASK(event_record, .event = a, .stream = 0), CUDA_SUCCESS);
	IS(ASK(event_record, .event = b, .stream = 1), CUDA_SUCCESS);
	IS(ASK(event_record, .event = untimed, .stream = 2), CUDA_SUCCESS);
	IS(ASK(event_record, .event = none, .stream = 0), CUDA_ERROR_INVALID_HANDLE);
	IS(ASK(event_record, .event = a, .stream = ID(STREAM, 77)), CUDA_ERROR_INVALID_HANDLE);
	YES(ckt_objects_find(&ckt_worker.objects, a)->event.recorded);
	IS(ASK(event_synchronize, .event = b), CUDA_SUCCESS);
	IS(ASK(event_synchronize, .event = none), CUDA_ERROR_INVALID_HANDLE);
	IS(ASK(event_query, .event = a), CUDA_SUCCESS);
	IS(ASK(event_query, .event = none), CUDA_ERROR_INVALID_HANDLE);
	YES(elapsed(a, b, &result) >= 0);
	IS(result, CUDA_SUCCESS);
	elapsed(a, untimed, &result);
	IS(result, CUDA_ERROR_INVALID_HANDLE);
	elapsed(a, none, &result);
	IS(result, CUDA_ERROR_INVALID_HANDLE);
}

/*
 * Recorded before a restore: its time is the image's, and one recorded since counts on from there.
 */
static void test_from_image(void)
{
	int result;
	CUevent base;
	struct ckt_object *before = ckt_objects_find(&ckt_worker.objects, a);
	MUST(ckt_driver.cuEventCreate(&base, 0), CUDA_SUCCESS);
	MUST(ckt_driver.cuEventRecord(base, NULL), CUDA_SUCCESS);
	ckt_worker.time_base = base;
	ckt_worker.image_base_ms = 1000;
	before->event.from_image = true;
	before->event.image_ms = 400;
	IS(ASK(event_record, .event = b, .stream = 0), CUDA_SUCCESS);
	IS(ASK(event_synchronize, .event = b), CUDA_SUCCESS);
	float ms = elapsed(a, b, &result);
	IS(result, CUDA_SUCCESS);
	YES(ms >= 600 && ms < 60600);
	ms = elapsed(b, a, &result);
	YES(ms <= -600);
	/* Recorded anew, it is an event like others. */
	IS(ASK(event_record, .event = a, .stream = 0), CUDA_SUCCESS);
	NO(before->event.from_image);
	ms = elapsed(b, a, &result);
	YES(ms >= 0 && ms < 60000);
	ckt_worker.time_base = NULL;
	ckt_worker.image_base_ms = 0;
	ckt_driver.cuEventDestroy_v2(base);
}

static void test_contexts(void)
{
	uint64_t primary = ckt_handle_primary(0);
	IS(ASK(ctx_record_event, .context = primary, .event = none), CUDA_ERROR_INVALID_HANDLE);
	/* not the event's context */
	IS(ASK(ctx_record_event, .context = ID(CONTEXT, 9), .event = a), CUDA_ERROR_INVALID_HANDLE);
	IS(ASK(ctx_record_event, .context = primary, .event = a), CUDA_SUCCESS);
	IS(ASK(ctx_wait_event, .context = primary, .event = a), CUDA_SUCCESS);
	IS(ASK(ctx_wait_event, .context = ID(CONTEXT, 9), .event = a),
		CUDA_ERROR_CONTEXT_IS_DESTROYED);
	IS(ASK(ctx_wait_event, .context = primary, .event = none), CUDA_ERROR_INVALID_HANDLE);
}

static void test_end(void)
{
	IS(CUT(event_create, .id = none), 0);
	IS(CUT(event_record, .event = a), 0);
	IS(CUT(event_elapsed_time, .start = a, .end = b), 0);
	IS(ASK(event_destroy, .id = none), CUDA_ERROR_INVALID_HANDLE);
	IS(ASK(event_destroy, .id = a), CUDA_SUCCESS);
	IS(ASK(event_destroy, .id = a), CUDA_ERROR_INVALID_HANDLE);
	IS(ASK(event_destroy, .id = b), CUDA_SUCCESS);
	IS(ASK(event_destroy, .id = untimed), CUDA_SUCCESS);
}

UNIT_SUITE(event, {"events", test_events}, {"from an image", test_from_image},
	{"contexts", test_contexts}, {"end", test_end})
