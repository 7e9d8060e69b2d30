/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/objects/counted_handles.h: what is given back and taken again is no entry of the
 * journal, and what a restore makes ahead is taken first.
 */
#include "server/worker/objects/counted_handles.h"
#include "tests/unit/worker/inside.h"

static void test_streams(void)
{
	struct ckt_object *context = ckt_worker.current;
	size_t before = ckt_worker.checkpoint.journal.count;
	uint32_t most = context->ctx.most[0], live = context->ctx.live[0];
	CUstream streams[4];
	for (unsigned i = 0; i < 4; i++)
		MUST(ckt_counted_stream_create(&ckt_worker, CU_STREAM_NON_BLOCKING, 0, &streams[i]),
			CUDA_SUCCESS);
	IS(context->ctx.live[0], live + 4);
	uint32_t now = context->ctx.most[0];
	YES(now >= most && now >= live + 4);
	size_t noted = ckt_worker.checkpoint.journal.count;
	YES(noted <= before + 1); /* all alike: one entry at most */
	/* Given back and made again: no more than ever lived at once. */
	for (unsigned round = 0; round < 10; round++) {
		ckt_counted_stream_destroy(&ckt_worker, context->id, streams[3]);
		MUST(ckt_counted_stream_create(&ckt_worker, CU_STREAM_DEFAULT, 0, &streams[3]),
			CUDA_SUCCESS);
	}
	IS(context->ctx.most[0], now);
	IS(ckt_worker.checkpoint.journal.count, noted);
	for (unsigned i = 0; i < 4; i++)
		ckt_counted_stream_destroy(&ckt_worker, context->id, streams[i]);
	IS(context->ctx.live[0], live);
	ckt_worker.checkpoint.journal.count = before;
}

static void test_ahead(void)
{
	struct ckt_object *context = ckt_worker.current;
	size_t before = ckt_worker.checkpoint.journal.count;
	uint32_t live = context->ctx.live[1];
	struct ckt_journal_entry entry = {.kind = CKT_JOURNAL_EVENTS,
		.id = 3,
		.context = context->id,
		.flags = CU_EVENT_DISABLE_TIMING};
	CUevent events[4];
	IS(ckt_counted_make_ahead(&ckt_worker, &entry), CUDA_SUCCESS);
	IS(context->ctx.live[1], live + 3);
	/* Those of the same flags are taken first, then new ones made. */
	IS(ckt_counted_event_create(&ckt_worker, CU_EVENT_DEFAULT, &events[3]), CUDA_SUCCESS);
	IS(context->ctx.live[1], live + 4);
	for (int i = 0; i < 2; i++)
		IS(ckt_counted_event_create(&ckt_worker, CU_EVENT_DISABLE_TIMING, &events[i]),
			CUDA_SUCCESS);
	IS(context->ctx.live[1], live + 4);
	/* What nobody took goes. */
	ckt_counted_ahead_fini(&ckt_worker);
	IS(context->ctx.live[1], live + 3);
	IS(ckt_counted_event_create(&ckt_worker, CU_EVENT_DISABLE_TIMING, &events[2]),
		CUDA_SUCCESS);
	IS(context->ctx.live[1], live + 4);
	for (int i = 0; i < 4; i++)
		ckt_counted_event_destroy(&ckt_worker, context->id, events[i]);
	IS(context->ctx.live[1], live);
	/* A hostile image asks for more than any session has. */
	entry.id = (uint64_t)CKT_OBJECTS_MAX + 1;
	IS(ckt_counted_make_ahead(&ckt_worker, &entry), CUDA_ERROR_INVALID_VALUE);
	ckt_worker.checkpoint.journal.count = before;
}

UNIT_SUITE(counted_handles, {"streams", test_streams}, {"ahead", test_ahead})
