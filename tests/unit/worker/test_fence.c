/* SPDX-License-Identifier: Apache-2.0 */
/* Fences: which streams still work, also those that are gone, and events that are used again. */
#include <stdlib.h>

#include "server/worker/objects/fence.h"
#include "tests/unit/worker/inside.h"

static unsigned collect(struct ckt_fences *fences, bool wait)
{
	CUevent *events = NULL;
	unsigned count = 0;
	IS(ckt_fences_collect(fences, &events, &count, NULL), CUDA_SUCCESS);
	for (unsigned i = 0; i < count; i++) {
		if (wait)
			IS(ckt_driver.cuEventSynchronize(events[i]), CUDA_SUCCESS);
		ckt_fences_event_give(fences, events[i]);
	}
	free(events);
	return count;
}

static void test_events(void)
{
	struct ckt_fences *fences = ckt_fences_create(ckt_worker.first_context, 3);
	CUevent events[5];
	IS(fences->spare_count, 3);
	for (int i = 0; i < 5; i++) {
		IS(ckt_fences_event_take(fences, &events[i]), CUDA_SUCCESS);
		for (int k = 0; k < i; k++)
			YES(events[k] != events[i]);
	}
	IS(fences->spare_count, 0);
	for (int i = 0; i < 5; i++)
		ckt_fences_event_give(fences, events[i]);
	CUevent again;
	IS(ckt_fences_event_take(fences, &again), CUDA_SUCCESS);
	YES(again == events[4]);
	ckt_fences_event_give(fences, again);
	/* More than there was room for at first. */
	for (int i = 0; i < 40; i++) {
		CUevent event;
		IS(ckt_driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
		ckt_fences_event_give(fences, event);
	}
	IS(fences->spare_count, 45);
	ckt_fences_destroy(fences, true);
	ckt_fences_destroy(NULL, true);
}

static void test_collect(void)
{
	struct ckt_fences *fences = ckt_fences_create(ckt_worker.first_context, 0);
	struct ckt_object streams[3] = {0};
	for (int i = 0; i < 3; i++) {
		CUstream real;
		MUST(ckt_driver.cuStreamCreate(&real, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
		streams[i].real = real;
		ckt_fences_mark(fences, &streams[i]);
		YES(streams[i].stream.dirty);
	}
	IS(fences->dirty_count, 3);
	/* Two of them have work; the third is found done and forgotten. */
	inside_spin(streams[0].real);
	inside_spin(streams[2].real);
	IS(collect(fences, false), 2);
	IS(fences->dirty_count, 2);
	NO(streams[1].stream.dirty);
	IS(fences->spare_count, 2);
	/* A stream that goes leaves its work behind; one that was never dirty leaves nothing. */
	ckt_fences_forget(fences, &streams[0]);
	ckt_fences_forget(fences, &streams[1]);
	NO(streams[0].stream.dirty);
	IS(fences->orphan_count, 1);
	IS(fences->dirty_count, 1);
	IS(collect(fences, false), 2);
	IS(collect(fences, false), 2); /* asked twice, each with events of its own */
	/* Several do not stand in for one. */
	CUevent *events = NULL;
	unsigned count = 0;
	CUstream only = NULL;
	IS(ckt_fences_collect(fences, &events, &count, &only), CUDA_SUCCESS);
	IS(count, 2);
	NO(only);
	while (count)
		ckt_fences_event_give(fences, events[--count]);
	free(events);
	inside_stop();
	inside_stop();
	while (collect(fences, true))
		;
	IS(fences->orphan_count, 0);
	IS(fences->dirty_count, 0);
	/* Forgotten when it is done: no orphan. */
	ckt_fences_mark(fences, &streams[2]);
	ckt_fences_forget(fences, &streams[2]);
	IS(fences->orphan_count, 0);
	fences->legacy = fences->per_thread = true;
	IS(collect(fences, false), 0);
	NO(fences->legacy || fences->per_thread);
	for (int i = 0; i < 3; i++)
		ckt_driver.cuStreamDestroy_v2(streams[i].real);
	ckt_fences_destroy(fences, true);
}

/* One stream that works needs no event. */
static void test_only(void)
{
	struct ckt_fences *fences = ckt_fences_create(ckt_worker.first_context, 0);
	struct ckt_object streams[2] = {0};
	CUevent *events = NULL;
	unsigned count = 0;
	CUstream only = NULL;
	for (int i = 0; i < 2; i++) {
		CUstream real;
		MUST(ckt_driver.cuStreamCreate(&real, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
		streams[i].real = real;
		ckt_fences_mark(fences, &streams[i]);
	}
	inside_spin(streams[1].real);
	IS(ckt_fences_collect(fences, &events, &count, &only), CUDA_SUCCESS);
	IS(count, 0);
	NO(events);
	YES(only == streams[1].real);
	YES(streams[1].stream.dirty);
	inside_stop();
	IS(ckt_driver.cuStreamSynchronize(streams[1].real), CUDA_SUCCESS);
	only = NULL;
	IS(ckt_fences_collect(fences, &events, &count, &only), CUDA_SUCCESS);
	NO(only || count);
	for (int i = 0; i < 2; i++)
		ckt_driver.cuStreamDestroy_v2(streams[i].real);
	ckt_fences_destroy(fences, true);
}

UNIT_SUITE(fence, {"events", test_events}, {"collect", test_collect}, {"only", test_only})
