/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/inside/inside_objects.c: a library's streams and events stand in the journal
 * as the program's do; its modules are counted.
 */
#include <pthread.h>

#include "checkpoint/journal.h"
#include "server/worker/libs/inside/inside.h"
#include "tests/unit/worker/inside.h"
#include "tests/unit/worker/toy.h"

static void test_streams_and_events(void)
{
	const struct toy *toy = toy_library();
	struct ckt_object *context = ckt_worker.current;
	pthread_t executor = ckt_worker.executor;
	void *object[2];
	uint32_t streams = context->ctx.live[0], events = context->ctx.live[1];
	struct ckt_inside_figures before = ckt_inside_figures();
	/*
	 * On a thread of its own a library's are the driver's until the executor looks
	 * (test_inside_deferred.c).
	 */
	IS(toy->toy_stream(&object[0]), CUDA_SUCCESS);
	IS(context->ctx.live[0], streams);
	IS(toy->toy_stream_destroy(object[0]), CUDA_SUCCESS);
	ckt_inside_notes_settle(&ckt_worker);
	IS(context->ctx.live[0], streams);
	ckt_worker.executor = pthread_self();
	context->ctx.most[0] = streams;
	context->ctx.most[1] = events;
	size_t steps = ckt_worker.checkpoint.journal.count;
	IS(toy->toy_stream(&object[0]), CUDA_SUCCESS);
	IS(toy->toy_event(&object[1]), CUDA_SUCCESS);
	IS(context->ctx.live[0], streams + 1);
	IS(context->ctx.live[1], events + 1);
	/* A step each, or one more of the last step. */
	YES(ckt_worker.checkpoint.journal.count > steps);
	IS(ckt_worker.checkpoint.journal.list[ckt_worker.checkpoint.journal.count - 1].kind,
		CKT_JOURNAL_EVENTS);
	IS(ckt_inside_figures().streams, before.streams + 1);
	IS(ckt_inside_figures().events, before.events + 1);
	IS(toy->toy_stream_destroy(object[0]), CUDA_SUCCESS);
	IS(toy->toy_event_destroy(object[1]), CUDA_SUCCESS);
	IS(context->ctx.live[0], streams);
	IS(context->ctx.live[1], events);
	IS(toy->toy_event_destroy(NULL), CUDA_ERROR_INVALID_HANDLE);
	ckt_worker.executor = executor;
	IS(ckt_inside_figures().streams, before.streams);
	IS(ckt_inside_figures().events, before.events);
}

static void test_limits(void)
{
	const struct toy *toy = toy_library();
	pthread_t executor = ckt_worker.executor;
	ckt_worker.executor = pthread_self();
	IS(toy->toy_limit(2048), CUDA_SUCCESS);
	IS(ckt_worker.checkpoint.journal.list[ckt_worker.checkpoint.journal.count - 1].kind,
		CKT_JOURNAL_LIMIT);
	IS(ckt_worker.checkpoint.journal.list[ckt_worker.checkpoint.journal.count - 1].id, 2048);
	ckt_worker.executor = executor;
	size_t steps = ckt_worker.checkpoint.journal.count;
	IS(toy->toy_limit(1024), CUDA_SUCCESS);
	IS(ckt_worker.checkpoint.journal.count, steps);
}

static void test_modules(void)
{
	const struct toy *toy = toy_library();
	uint64_t before = ckt_inside_figures().modules, address, variable = 0;
	MUST(toy->toy_alloc(TOY_LINKED, 4, &address), CUDA_SUCCESS);
	inside_fill(address, 5, 4);
	IS(toy->toy_run(address, 20, &variable), CUDA_SUCCESS);
	IS(ckt_inside_figures().modules, before + 1);
	IS(inside_word(address), 25);
	IS(inside_word(variable), 37);
	IS(toy->toy_run(address, 1, &variable), CUDA_SUCCESS);
	IS(ckt_inside_figures().modules, before + 1);
	IS(inside_word(address), 26);
	IS(toy->toy_free(address, 0), CUDA_SUCCESS);
}

/* Devices have the session's numbers, whatever the driver's are. */
static void test_devices(void)
{
	const struct toy *toy = toy_library();
	struct ckt_worker_device *devices = ckt_worker.devices;
	int count, first, current;
	MUST(ckt_worker.device_count, 2);
	CUdevice ordinals[] = {devices[0].ordinal, devices[1].ordinal};
	IS(toy->toy_devices(&count, &first, &current), CUDA_SUCCESS);
	IS(count, 2);
	IS(first, ordinals[0]);
	IS(current, 0);
	/* As in a session of the second GPU and the first. */
	devices[0].ordinal = ordinals[1];
	devices[1].ordinal = ordinals[0];
	IS(toy->toy_devices(&count, &first, &current), CUDA_SUCCESS);
	IS(first, ordinals[1]);
	IS(current, 1);
	/* Of the first alone. */
	devices[0].ordinal = ordinals[0];
	devices[1].ordinal = ordinals[1];
	ckt_worker.device_count = 1;
	IS(toy->toy_devices(&count, &first, &current), CUDA_SUCCESS);
	IS(count, 1);
	IS(current, 0);
	ckt_worker.device_count = 2;
}

UNIT_SUITE(libs_inside_objects, {"streams and events", test_streams_and_events},
	{"limits", test_limits}, {"devices", test_devices}, {"modules", test_modules})
