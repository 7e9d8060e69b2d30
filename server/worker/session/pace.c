/* SPDX-License-Identifier: Apache-2.0 */
/* A bound of unfinished work; see pace.h. */
#include "server/worker/session/pace.h"

#include <stdlib.h>

#include "base/clock.h"
#include "rpc/gen/cuda_driver.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/fence.h"
#include "server/worker/objects/object.h"
#include "server/worker/worker.h"

enum { SEGMENTS = 2 };

struct segment {
	struct ckt_fences *fences;
	CUevent *events;
	unsigned count, commands;
	int64_t begun_ns;
};

static struct {
	struct segment segments[SEGMENTS]; /* oldest first */
	unsigned count;
	unsigned size;   /* commands of a segment; 0: not known yet */
	unsigned issued; /* since the last segment */
	int64_t begun_ns, done_ns;
} pace;

static void drop_first(void)
{
	struct segment *first = &pace.segments[0];
	for (unsigned i = 0; i < first->count; i++)
		ckt_fences_event_give(first->fences, first->events[i]);
	free(first->events);
	for (unsigned i = 1; i < pace.count; i++)
		pace.segments[i - 1] = pace.segments[i];
	pace.count--;
}

/* Of a fault, too: what waits behind it is told of it. */
static bool is_done(const struct segment *segment)
{
	for (unsigned i = 0; i < segment->count; i++)
		if (ckt_driver.cuEventQuery(segment->events[i]) == CUDA_ERROR_NOT_READY)
			return false;
	return true;
}

/* From how long the oldest segment took. */
static void adapt(int64_t now_ns, int64_t bound_ns)
{
	const struct segment *first = &pace.segments[0];
	int64_t from = first->begun_ns > pace.done_ns ? first->begun_ns : pace.done_ns;
	int64_t each = (now_ns - from) / first->commands + 1;
	int64_t size = bound_ns / SEGMENTS / each;
	/* Found late, it says too much; a step of two does little harm. */
	if (size > 2 * (int64_t)pace.size)
		size = 2 * (int64_t)pace.size;
	pace.size = size < 1                  ? 1
		: size > CKT_PACE_SEGMENT_MAX ? CKT_PACE_SEGMENT_MAX
					      : (unsigned)size;
	pace.done_ns = now_ns;
}

static void reap(int64_t bound_ns)
{
	while (pace.count && is_done(&pace.segments[0])) {
		adapt(ckt_now_ns(), bound_ns);
		drop_first();
	}
}

static void close_segment(struct ckt_worker *worker, struct ckt_object *context)
{
	struct segment segment = {
		.fences = context->ctx.fences, .commands = pace.issued, .begun_ns = pace.begun_ns};
	pace.issued = 0;
	/* A faulted context has nothing to wait for. */
	if (ckt_worker_use_context(worker, context->id))
		return;
	ckt_fences_collect(segment.fences, &segment.events, &segment.count, NULL);
	if (segment.count) {
		pace.segments[pace.count++] = segment;
		return;
	}
	free(segment.events);
	pace.done_ns = ckt_now_ns();
	pace.size = pace.size < CKT_PACE_SEGMENT_MAX / 2 ? 2 * pace.size : CKT_PACE_SEGMENT_MAX;
}

bool ckt_pace_stops(struct ckt_worker *worker, struct ckt_object *context, int64_t bound_ns)
{
	if (!pace.size)
		pace.size = 1;
	reap(bound_ns);
	if (pace.count < SEGMENTS && pace.issued >= pace.size)
		close_segment(worker, context);
	if (pace.count == SEGMENTS)
		return true;
	if (!pace.issued++)
		pace.begun_ns = ckt_now_ns();
	return false;
}

void ckt_pace_reset(void)
{
	while (pace.count)
		drop_first();
	pace.issued = pace.size = 0;
}

void ckt_pace_forget(const struct ckt_fences *fences)
{
	for (unsigned i = 0; i < pace.count; i++)
		if (pace.segments[i].fences == fences) {
			ckt_pace_reset();
			return;
		}
}
