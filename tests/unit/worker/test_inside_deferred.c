/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/libs/inside/inside_deferred.c: what a library makes on a thread of its own stands
 * in the journal once the executor looks.
 */
#include <pthread.h>

#include "checkpoint/journal.h"
#include "server/worker/libs/inside/inside.h"
#include "tests/unit/worker/inside.h"
#include "tests/unit/worker/toy.h"

static CUcontext real;

static void *make(void *opaque)
{
	void **made = opaque;
	const struct toy *toy = toy_library();
	ckt_driver.cuCtxSetCurrent(real);
	IS(toy->toy_stream(&made[0]), CUDA_SUCCESS);
	IS(toy->toy_stream(&made[1]), CUDA_SUCCESS);
	IS(toy->toy_event(&made[2]), CUDA_SUCCESS);
	return NULL;
}

static void *end(void *opaque)
{
	void **made = opaque;
	const struct toy *toy = toy_library();
	ckt_driver.cuCtxSetCurrent(real);
	IS(toy->toy_stream_destroy(made[0]), CUDA_SUCCESS);
	IS(toy->toy_stream_destroy(made[1]), CUDA_SUCCESS);
	IS(toy->toy_event_destroy(made[2]), CUDA_SUCCESS);
	return NULL;
}

static void on_thread(void *(*function)(void *), void *opaque)
{
	pthread_t thread;
	MUST(pthread_create(&thread, NULL, function, opaque), 0);
	pthread_join(thread, NULL);
}

static void test_threads(void)
{
	struct ckt_object *context = ckt_worker.current;
	void *made[3];
	toy_library();
	real = context->real;
	ckt_inside_notes_settle(&ckt_worker);
	uint32_t streams = context->ctx.live[0], events = context->ctx.live[1];
	context->ctx.most[0] = streams;
	context->ctx.most[1] = events;
	uint64_t charged = context->ctx.charged;
	on_thread(make, made);
	size_t steps = ckt_worker.checkpoint.journal.count;
	IS(context->ctx.live[0], streams);
	ckt_inside_notes_settle(&ckt_worker);
	IS(context->ctx.live[0], streams + 2);
	IS(context->ctx.live[1], events + 1);
	YES(context->ctx.charged > charged);
	/* In their order: two streams, an event. */
	MUST(ckt_worker.checkpoint.journal.count, steps + 2);
	IS(ckt_worker.checkpoint.journal.list[steps].kind, CKT_JOURNAL_STREAMS);
	IS(ckt_worker.checkpoint.journal.list[steps].id, 2);
	IS(ckt_worker.checkpoint.journal.list[steps].context, context->id);
	IS(ckt_worker.checkpoint.journal.list[steps + 1].kind, CKT_JOURNAL_EVENTS);
	on_thread(end, made);
	ckt_inside_notes_settle(&ckt_worker);
	IS(context->ctx.live[0], streams);
	IS(context->ctx.live[1], events);
	/* What came back the driver hands out again: no step. */
	on_thread(make, made);
	on_thread(end, made);
	ckt_inside_notes_settle(&ckt_worker);
	IS(ckt_worker.checkpoint.journal.count, steps + 2);
}

/* One of a context that is gone is nobody's. */
static void test_unknown_context(void)
{
	size_t steps = ckt_worker.checkpoint.journal.count;
	ckt_inside_note(
		(struct ckt_inside_note){.kind = CKT_NOTE_STREAM, .context = (CUcontext)&steps});
	ckt_inside_notes_settle(&ckt_worker);
	IS(ckt_worker.checkpoint.journal.count, steps);
}

UNIT_SUITE(libs_inside_notes, {"threads", test_threads}, {"unknown context", test_unknown_context})
