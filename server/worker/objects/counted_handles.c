/* SPDX-License-Identifier: Apache-2.0 */
/* How many streams and events live at once; see counted_handles.h. */
#include "server/worker/objects/counted_handles.h"

#include <stdlib.h>

#include "base/grow.h"
#include "checkpoint/journal.h"
#include "rpc/gen/cuda_driver.h"
#include "server/worker/objects/context.h"
#include "server/worker/worker.h"

struct made {
	uint64_t context;
	unsigned flags;
	int priority;
	void *real;
};

static struct {
	struct made *list;
	size_t count, room;
} ahead[2]; /* streams, events */

static struct ckt_object *context_of(struct ckt_worker *worker, uint64_t id)
{
	return ckt_objects_find_kind(&worker->objects, id, CKT_KIND_CONTEXT);
}

static CUresult create(unsigned kind, unsigned flags, int priority, void **ret_real)
{
	return kind ? ckt_driver.cuEventCreate((CUevent *)ret_real, flags)
		    : ckt_driver.cuStreamCreateWithPriority((CUstream *)ret_real, flags, priority);
}

static void destroy(unsigned kind, void *real)
{
	if (kind)
		ckt_driver.cuEventDestroy_v2(real);
	else
		ckt_driver.cuStreamDestroy_v2(real);
}

/* On an H200 1000 streams take 546 MiB, which the driver keeps for the next ones. */
static const uint64_t stream_bytes = 560 << 10;

static void count_one(struct ckt_worker *worker, struct ckt_object *context, unsigned kind,
	unsigned flags, int priority)
{
	if (++context->ctx.live[kind] <= context->ctx.most[kind])
		return;
	context->ctx.most[kind] = context->ctx.live[kind];
	ckt_journal_add(&worker->checkpoint.journal,
		(struct ckt_journal_entry){.kind = kind ? CKT_JOURNAL_EVENTS : CKT_JOURNAL_STREAMS,
			.id = 1,
			.context = context->id,
			.flags = flags,
			.device = (uint32_t)priority});
}

void ckt_counted_made(struct ckt_worker *worker, struct ckt_object *context, bool event,
	unsigned flags, int priority)
{
	/* It is there, whether the limit allows it or not. */
	if (!event && context->ctx.live[0] >= context->ctx.most[0]) {
		ckt_memory_add(&worker->devices[context->ctx.device].memory, stream_bytes);
		context->ctx.charged += stream_bytes;
	}
	count_one(worker, context, event, flags, priority);
}

void ckt_counted_gone(struct ckt_object *context, bool event)
{
	if (context->ctx.live[event])
		context->ctx.live[event]--;
}

static CUresult make(
	struct ckt_worker *worker, unsigned kind, unsigned flags, int priority, void **ret_real)
{
	struct ckt_object *context = worker->current;
	bool more = context && !kind && context->ctx.live[kind] >= context->ctx.most[kind];
	CUresult result = more ? ckt_context_charge(worker, context, stream_bytes) : CUDA_SUCCESS;
	if (result)
		return result;
	result = create(kind, flags, priority, ret_real);
	if (result && more)
		ckt_context_uncharge(worker, context, stream_bytes);
	if (result || !context)
		return result;
	count_one(worker, context, kind, flags, priority);
	return CUDA_SUCCESS;
}

static CUresult take(
	struct ckt_worker *worker, unsigned kind, unsigned flags, int priority, void **ret_real)
{
	for (size_t i = 0; i < ahead[kind].count; i++) {
		struct made *made = &ahead[kind].list[i];
		if (!worker->current || made->context != worker->current->id ||
			made->flags != flags || made->priority != priority)
			continue;
		*ret_real = made->real;
		*made = ahead[kind].list[--ahead[kind].count];
		return CUDA_SUCCESS;
	}
	return make(worker, kind, flags, priority, ret_real);
}

static void give(struct ckt_worker *worker, unsigned kind, uint64_t id, void *real)
{
	struct ckt_object *context = context_of(worker, id);
	destroy(kind, real);
	if (context && context->ctx.live[kind])
		context->ctx.live[kind]--;
}

CUresult ckt_counted_stream_create(
	struct ckt_worker *worker, unsigned flags, int priority, CUstream *ret_stream)
{
	return take(worker, 0, flags, priority, (void **)ret_stream);
}

void ckt_counted_stream_destroy(struct ckt_worker *worker, uint64_t context, CUstream stream)
{
	give(worker, 0, context, stream);
}

CUresult ckt_counted_event_create(struct ckt_worker *worker, unsigned flags, CUevent *ret_event)
{
	return take(worker, 1, flags, 0, (void **)ret_event);
}

void ckt_counted_event_destroy(struct ckt_worker *worker, uint64_t context, CUevent event)
{
	give(worker, 1, context, event);
}

CUresult ckt_counted_make_ahead(struct ckt_worker *worker, const struct ckt_journal_entry *entry)
{
	unsigned kind = entry->kind == CKT_JOURNAL_EVENTS;
	int priority = kind ? 0 : (int)entry->device;
	if (entry->id > CKT_OBJECTS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint64_t i = 0; i < entry->id; i++) {
		void *real;
		CUresult result = make(worker, kind, entry->flags, priority, &real);
		if (result)
			return result;
		if (CKT_GROW(ahead[kind].list, ahead[kind].count, ahead[kind].room, 64)) {
			give(worker, kind, worker->current->id, real);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		ahead[kind].list[ahead[kind].count++] =
			(struct made){worker->current->id, entry->flags, priority, real};
	}
	return CUDA_SUCCESS;
}

void ckt_counted_ahead_fini(struct ckt_worker *worker)
{
	for (unsigned kind = 0; kind < 2; kind++) {
		for (size_t i = 0; i < ahead[kind].count; i++)
			if (ckt_worker_use_context(worker, ahead[kind].list[i].context) ==
				CUDA_SUCCESS)
				give(worker, kind, ahead[kind].list[i].context,
					ahead[kind].list[i].real);
		free(ahead[kind].list);
		ahead[kind].list = NULL;
		ahead[kind].count = ahead[kind].room = 0;
	}
}
