/* The journal; see journal.h. */
#include "checkpoint/journal.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "checkpoint/object_kind.h"
#include "rpc/gen/cuda_driver.h"
#include "server/worker/objects/context.h"
#include "server/worker/worker.h"

enum { JOURNAL_MAX = 100000 };

/* Whether the entry only repeats the last one, or overrules it. */
static bool merge(struct ckt_worker *worker, const struct ckt_journal_entry *entry)
{
	struct ckt_journal_entry *last =
		worker->journal_count ? &worker->journal[worker->journal_count - 1] : NULL;
	if (!last || last->kind != entry->kind || last->context != entry->context ||
		last->flags != entry->flags || last->device != entry->device)
		return false;
	const struct ckt_journal_step *step = ckt_journal_step_of(entry->kind);
	if (!step || step->merge == CKT_JOURNAL_APART)
		return false;
	last->id = entry->id + (step->merge == CKT_JOURNAL_ADDS ? last->id : 0);
	return true;
}

bool ckt_journal_add(struct ckt_worker *worker, struct ckt_journal_entry entry)
{
	if (merge(worker, &entry))
		return true;
	if (worker->journal_count == worker->journal_room) {
		size_t room = worker->journal_room ? worker->journal_room * 2 : 64;
		struct ckt_journal_entry *journal = room > JOURNAL_MAX
			? NULL
			: realloc(worker->journal, room * sizeof *journal);
		/*
		 * A restore then makes the live modules only and checks their addresses as always.
		 */
		if (!journal)
			return false;
		worker->journal = journal;
		worker->journal_room = room;
	}
	worker->journal[worker->journal_count++] = entry;
	return true;
}

/* ---- Limits */

static size_t current_limit(CUlimit limit)
{
	size_t value;
	return ckt_driver.cuCtxGetLimit && ckt_driver.cuCtxGetLimit(&value, limit) == CUDA_SUCCESS
		? value
		: 0;
}

/*
 * What the driver takes of the device's memory for a limit; on an H200, exactly that for a stack.
 */
static uint64_t limit_bytes(const struct ckt_worker *worker, CUlimit limit, uint64_t value)
{
	uint64_t bytes = value;
	switch ((int)limit) {
	case CU_LIMIT_MALLOC_HEAP_SIZE:
	case CU_LIMIT_PRINTF_FIFO_SIZE:
		return value;
	case CU_LIMIT_STACK_SIZE:
		return worker->current &&
				__builtin_mul_overflow(value,
					worker->devices[worker->current->ctx.device].threads,
					&bytes)
			? UINT64_MAX
			: bytes;
	default:
		return 0;
	}
}

CUresult ckt_journal_local_charge(struct ckt_worker *worker, const struct ckt_object *function)
{
	struct ckt_object *context = worker->current;
	uint64_t need = function->function.local_bytes;
	if (!context || need <= context->ctx.stack_bytes)
		return CUDA_SUCCESS;
	uint64_t before = limit_bytes(worker, CU_LIMIT_STACK_SIZE, context->ctx.stack_bytes),
		 now = limit_bytes(worker, CU_LIMIT_STACK_SIZE, need);
	CUresult result = ckt_context_charge(worker, context, now - before);
	if (!result)
		context->ctx.stack_bytes = need;
	return result;
}

static CUresult(CUDAAPI *real_set_limit)(CUlimit, size_t);

static CUresult CUDAAPI set_limit(CUlimit limit, size_t value)
{
	struct ckt_worker *worker = &ckt_worker;
	struct ckt_object *context = worker->current;
	uint64_t before = limit_bytes(worker, limit, current_limit(limit)),
		 now = limit_bytes(worker, limit, value);
	CUresult result = context && now > before
		? ckt_context_charge(worker, context, now - before)
		: CUDA_SUCCESS;
	if (result)
		return result;
	result = real_set_limit(limit, value);
	if (context && result && now > before)
		ckt_context_uncharge(worker, context, now - before);
	else if (context && !result && now < before)
		ckt_context_uncharge(worker, context, before - now);
	if (!result && worker->current) {
		ckt_journal_add(worker,
			(struct ckt_journal_entry){.kind = CKT_JOURNAL_LIMIT,
				.id = value,
				.context = worker->current->id,
				.flags = limit});
		if (limit == CU_LIMIT_STACK_SIZE)
			worker->current->ctx.stack_bytes =
				worker->current->ctx.journal_stack_bytes = value;
	}
	return result;
}

void ckt_journal_watch(struct ckt_worker *worker)
{
	(void)worker;
	if (!ckt_driver.cuCtxSetLimit || ckt_driver.cuCtxSetLimit == set_limit)
		return;
	real_set_limit = ckt_driver.cuCtxSetLimit;
	ckt_driver.cuCtxSetLimit = set_limit;
}

/* The driver takes more local memory for it, and its limit tells how much. */
void ckt_journal_local(struct ckt_worker *worker, const struct ckt_object *function)
{
	struct ckt_object *context = worker->current;
	worker->local_bytes = function->function.local_bytes;
	size_t value = current_limit(CU_LIMIT_STACK_SIZE);
	if (!context || value <= context->ctx.journal_stack_bytes)
		return;
	ckt_journal_add(worker,
		(struct ckt_journal_entry){.kind = CKT_JOURNAL_LIMIT,
			.id = value,
			.context = context->id,
			.flags = CU_LIMIT_STACK_SIZE});
	context->ctx.journal_stack_bytes = value;
}

void ckt_journal_grown(struct ckt_worker *worker, struct ckt_object *context)
{
	CUcontext current;
	if (!context || ckt_driver.cuCtxGetCurrent(&current) || current != context->real)
		return;
	size_t value = current_limit(CU_LIMIT_STACK_SIZE);
	if (value <= context->ctx.journal_stack_bytes)
		return;
	ckt_journal_add(worker,
		(struct ckt_journal_entry){.kind = CKT_JOURNAL_LIMIT,
			.id = value,
			.context = context->id,
			.flags = CU_LIMIT_STACK_SIZE});
	context->ctx.journal_stack_bytes = value;
}

void ckt_journal_context(struct ckt_object *context)
{
	size_t value;
	if (ckt_driver.cuCtxGetLimit &&
		ckt_driver.cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE) == CUDA_SUCCESS)
		context->ctx.stack_bytes = context->ctx.journal_stack_bytes = value;
}

/* ---- Streams and events */

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
	ckt_journal_add(worker,
		(struct ckt_journal_entry){.kind = kind ? CKT_JOURNAL_EVENTS : CKT_JOURNAL_STREAMS,
			.id = 1,
			.context = context->id,
			.flags = flags,
			.device = (uint32_t)priority});
}

void ckt_journal_made(struct ckt_worker *worker, struct ckt_object *context, bool event,
	unsigned flags, int priority)
{
	/* It is there, whether the limit allows it or not. */
	if (!event && context->ctx.live[0] >= context->ctx.most[0]) {
		ckt_memory_add(&worker->devices[context->ctx.device].memory, stream_bytes);
		context->ctx.charged += stream_bytes;
	}
	count_one(worker, context, event, flags, priority);
}

void ckt_journal_gone(struct ckt_object *context, bool event)
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

CUresult ckt_journal_stream_create(
	struct ckt_worker *worker, unsigned flags, int priority, CUstream *ret_stream)
{
	return take(worker, 0, flags, priority, (void **)ret_stream);
}

void ckt_journal_stream_destroy(struct ckt_worker *worker, uint64_t context, CUstream stream)
{
	give(worker, 0, context, stream);
}

CUresult ckt_journal_event_create(struct ckt_worker *worker, unsigned flags, CUevent *ret_event)
{
	return take(worker, 1, flags, 0, (void **)ret_event);
}

void ckt_journal_event_destroy(struct ckt_worker *worker, uint64_t context, CUevent event)
{
	give(worker, 1, context, event);
}

CUresult ckt_journal_make_ahead(struct ckt_worker *worker, const struct ckt_journal_entry *entry)
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

void ckt_journal_ahead_fini(struct ckt_worker *worker)
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
