/* The journal is short: what repeats is one entry, what is given back and taken again is none. */
#include <string.h>

#include "checkpoint/journal.h"
#include "tests/unit/worker/inside.h"

static struct ckt_journal_entry *last(void)
{
	return &ckt_worker.journal[ckt_worker.journal_count - 1];
}

static void test_merge(void)
{
	static const struct {
		struct ckt_journal_entry entry;
		bool added;
		uint64_t id; /* of the last entry then */
	} steps[] = {
		{{.kind = CKT_JOURNAL_MODULE_LOAD, .id = 1}, true, 1},
		{{.kind = CKT_JOURNAL_MODULE_LOAD, .id = 1}, true,
			1}, /* loads never count as one */
		{{.kind = CKT_JOURNAL_STREAMS, .id = 2, .context = 5}, true, 2},
		{{.kind = CKT_JOURNAL_STREAMS, .id = 3, .context = 5}, false, 5}, /* they add up */
		{{.kind = CKT_JOURNAL_STREAMS, .id = 1, .context = 6}, true, 1},
		{{.kind = CKT_JOURNAL_STREAMS, .id = 1, .context = 6, .flags = 1}, true, 1},
		{{.kind = CKT_JOURNAL_STREAMS, .id = 1, .context = 6, .flags = 1, .device = 1},
			true, 1},
		{{.kind = CKT_JOURNAL_EVENTS, .id = 1, .context = 6, .flags = 1, .device = 1}, true,
			1},
		{{.kind = CKT_JOURNAL_EVENTS, .id = 9, .context = 6, .flags = 1, .device = 1},
			false, 10},
		{{.kind = CKT_JOURNAL_LIMIT, .id = 1024, .context = 6, .flags = 0}, true, 1024},
		{{.kind = CKT_JOURNAL_LIMIT, .id = 512, .context = 6, .flags = 0}, false,
			512}, /* the last one holds */
		{{.kind = CKT_JOURNAL_LIMIT, .id = 512, .context = 6, .flags = 2}, true, 512},
		{{.kind = CKT_JOURNAL_ARRAY_DESTROY, .id = 7}, true, 7},
		{{.kind = CKT_JOURNAL_ARRAY_DESTROY, .id = 7}, true, 7},
	};
	size_t before = ckt_worker.journal_count;
	for (size_t i = 0; i < COUNT(steps); i++) {
		size_t count = ckt_worker.journal_count;
		ckt_journal_add(&ckt_worker, steps[i].entry);
		IS(ckt_worker.journal_count - count, steps[i].added);
		IS(last()->id, steps[i].id);
	}
	for (unsigned i = 0; i < 1000; i++)
		ckt_journal_add(&ckt_worker,
			(struct ckt_journal_entry){.kind = CKT_JOURNAL_MODULE_UNLOAD, .id = i});
	IS(last()->id, 999);
	ckt_worker.journal_count = before;
}

static void test_streams(void)
{
	struct ckt_object *context = ckt_worker.current;
	size_t before = ckt_worker.journal_count;
	uint32_t most = context->ctx.most[0], live = context->ctx.live[0];
	CUstream streams[4];
	for (unsigned i = 0; i < 4; i++)
		MUST(ckt_journal_stream_create(&ckt_worker, CU_STREAM_NON_BLOCKING, 0, &streams[i]),
			CUDA_SUCCESS);
	IS(context->ctx.live[0], live + 4);
	uint32_t now = context->ctx.most[0];
	YES(now >= most && now >= live + 4);
	size_t noted = ckt_worker.journal_count;
	YES(noted <= before + 1); /* all alike: one entry at most */
	/* Given back and made again: no more than ever lived at once. */
	for (unsigned round = 0; round < 10; round++) {
		ckt_journal_stream_destroy(&ckt_worker, context->id, streams[3]);
		MUST(ckt_journal_stream_create(&ckt_worker, CU_STREAM_DEFAULT, 0, &streams[3]),
			CUDA_SUCCESS);
	}
	IS(context->ctx.most[0], now);
	IS(ckt_worker.journal_count, noted);
	for (unsigned i = 0; i < 4; i++)
		ckt_journal_stream_destroy(&ckt_worker, context->id, streams[i]);
	IS(context->ctx.live[0], live);
	ckt_worker.journal_count = before;
}

static void test_ahead(void)
{
	struct ckt_object *context = ckt_worker.current;
	size_t before = ckt_worker.journal_count;
	uint32_t live = context->ctx.live[1];
	struct ckt_journal_entry entry = {.kind = CKT_JOURNAL_EVENTS,
		.id = 3,
		.context = context->id,
		.flags = CU_EVENT_DISABLE_TIMING};
	CUevent events[4];
	IS(ckt_journal_make_ahead(&ckt_worker, &entry), CUDA_SUCCESS);
	IS(context->ctx.live[1], live + 3);
	/* Those of the same flags are taken first, then new ones made. */
	IS(ckt_journal_event_create(&ckt_worker, CU_EVENT_DEFAULT, &events[3]), CUDA_SUCCESS);
	IS(context->ctx.live[1], live + 4);
	for (int i = 0; i < 2; i++)
		IS(ckt_journal_event_create(&ckt_worker, CU_EVENT_DISABLE_TIMING, &events[i]),
			CUDA_SUCCESS);
	IS(context->ctx.live[1], live + 4);
	/* What nobody took goes. */
	ckt_journal_ahead_fini(&ckt_worker);
	IS(context->ctx.live[1], live + 3);
	IS(ckt_journal_event_create(&ckt_worker, CU_EVENT_DISABLE_TIMING, &events[2]),
		CUDA_SUCCESS);
	IS(context->ctx.live[1], live + 4);
	for (int i = 0; i < 4; i++)
		ckt_journal_event_destroy(&ckt_worker, context->id, events[i]);
	IS(context->ctx.live[1], live);
	/* A hostile image asks for more than any session has. */
	entry.id = (uint64_t)CKT_OBJECTS_MAX + 1;
	IS(ckt_journal_make_ahead(&ckt_worker, &entry), CUDA_ERROR_INVALID_VALUE);
	ckt_worker.journal_count = before;
}

static void test_limits(void)
{
	size_t value, before = ckt_worker.journal_count;
	IS(ckt_driver.cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE), CUDA_SUCCESS);
	IS(ckt_driver.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, value + 1024), CUDA_SUCCESS);
	IS(ckt_worker.journal_count, before + 1);
	IS(last()->kind, CKT_JOURNAL_LIMIT);
	IS(last()->id, value + 1024);
	IS(ckt_worker.current->ctx.stack_bytes, value + 1024);
	/* One that the driver refuses is no step. */
	YES(ckt_driver.cuCtxSetLimit((CUlimit)999, 1) != CUDA_SUCCESS);
	IS(ckt_worker.journal_count, before + 1);
	/* A kernel's local memory counts where the limit has grown by it. */
	struct ckt_object function = {.function.local_bytes = 64};
	ckt_journal_local(&ckt_worker, &function);
	IS(ckt_worker.local_bytes, 64);
	IS(ckt_worker.journal_count, before + 1);
	ckt_worker.current->ctx.journal_stack_bytes = value;
	ckt_journal_local(&ckt_worker, &function);
	IS(last()->id, value + 1024);
	IS(ckt_worker.current->ctx.journal_stack_bytes, value + 1024);
	ckt_driver.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, value);
	ckt_worker.local_bytes = 0;
	ckt_worker.journal_count = before;
	ckt_journal_watch(&ckt_worker); /* again: it does not watch itself */
	IS(ckt_driver.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, value), CUDA_SUCCESS);
	ckt_worker.journal_count = before;
}

UNIT_SUITE(journal, {"merge", test_merge}, {"streams", test_streams}, {"ahead", test_ahead},
	{"limits", test_limits})
