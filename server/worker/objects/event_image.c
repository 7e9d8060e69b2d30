/* SPDX-License-Identifier: Apache-2.0 */
/* Events in an image: their times count from one event that all restores go by. */
#include <errno.h>

#include "checkpoint/load/image_load.h"
#include "checkpoint/save/image_save.h"
#include "rpc/gen/cuda_driver.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/event.h"
#include "server/worker/objects/fence.h"
#include "server/worker/objects/object_kinds.h"
#include "server/worker/worker.h"

/* ---- Saving */

static int prepare(struct ckt_saving *s, struct ckt_object *const *objects, size_t count)
{
	(void)objects;
	s->event_base = NULL;
	s->image.events.events_val = ckt_save_list(s, count, sizeof(ckt_image_event));
	return 0;
}

/*
 * Times count from the restore's own event, or, in a session that was never restored, from the
 * first event that has a time.
 */
static int save(struct ckt_saving *s, struct ckt_object *object)
{
	struct ckt_worker *worker = s->worker;
	/* Another session's: ipc_image.c. */
	if (object->event.imported)
		return 0;
	ckt_image_event *event = &s->image.events.events_val[s->image.events.events_len++];
	*event = (ckt_image_event){.id = object->id,
		.context = object->context,
		.flags = object->event.flags,
		.recorded = object->event.recorded};
	if (!object->event.recorded || object->event.flags & CU_EVENT_DISABLE_TIMING)
		return 0;
	if (object->event.from_image) {
		event->timed = true;
		event->milliseconds = object->event.image_ms;
		return 0;
	}
	if (!s->event_base)
		s->event_base = worker->time_base ? worker->time_base : object->real;
	float ms = 0;
	CUresult result = CUDA_SUCCESS;
	if (object->real != s->event_base)
		result = ckt_driver.cuEventElapsedTime_v2
			? ckt_driver.cuEventElapsedTime_v2(&ms, s->event_base, object->real)
			: ckt_driver.cuEventElapsedTime(&ms, s->event_base, object->real);
	event->timed = !result;
	event->milliseconds = ms + worker->image_base_ms;
	return 0;
}

/* ---- Loading */

static const struct ckt_journal_step steps[] = {
	{CKT_JOURNAL_EVENTS, CKT_JOURNAL_ADDS, ckt_objects_made_ahead},
	{0},
};

/* An event that was recorded had happened: it is recorded again behind nothing. */
static int load(struct ckt_loading *l, unsigned i)
{
	struct ckt_worker *worker = l->worker;
	const ckt_image_event *saved = &l->image.events.events_val[i];
	struct ckt_object *object;
	CUresult result = ckt_worker_use_context(worker, saved->context);
	if (!result)
		result = ckt_event_make(worker, saved->id, saved->flags, &object);
	if (!result && saved->recorded) {
		result =
			ckt_driver.cuEventRecord(object->real, worker->current->ctx.fences->helper);
		if (!result)
			result = ckt_driver.cuEventSynchronize(object->real);
		object->event.recorded = true;
		object->event.from_image = saved->timed;
		object->event.image_ms = saved->milliseconds;
	}
	return result ? ckt_load_fail(l, result, "event", saved->id) : 0;
}

/* The event that times of later ones count from stands behind the last one of the image. */
static int load_base(struct ckt_loading *l)
{
	struct ckt_worker *worker = l->worker;
	float last = 0;
	for (unsigned i = 0; i < l->image.events.events_len; i++) {
		const ckt_image_event *saved = &l->image.events.events_val[i];
		if (saved->recorded && saved->timed && saved->milliseconds > last)
			last = saved->milliseconds;
	}
	struct ckt_object *primary;
	if (ckt_context_primary(worker, 0, &primary) ||
		ckt_worker_use_context(worker, primary->id) ||
		ckt_driver.cuEventCreate(&worker->time_base, CU_EVENT_DEFAULT) ||
		ckt_driver.cuEventRecord(worker->time_base, primary->ctx.fences->helper) ||
		ckt_driver.cuEventSynchronize(worker->time_base))
		return ckt_load_refuse(l, -EIO, "the driver cannot record events");
	worker->image_base_ms = last;
	return 0;
}

const struct ckt_object_kind ckt_event_kind = {
	.name = "events",
	.handles = CKT_HANDLES(EVENT),
	.steps = steps,
	.prepare = prepare,
	.save = save,
	.stage = CKT_LOAD_HANDLES,
	.list = CKT_IMAGE_LIST(events),
	.load = load,
	.load_rest = load_base,
};
