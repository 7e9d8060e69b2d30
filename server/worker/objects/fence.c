/* SPDX-License-Identifier: Apache-2.0 */
/* Fences over a context's unfinished work; see fence.h. */
#include "server/worker/objects/fence.h"

#include <stdlib.h>

#include "server/worker/driver.h"
#include "base/grow.h"
#include "server/worker/objects/object.h"

static int push(void **array, size_t *count, size_t *room, void *entry)
{
	void ***list = (void ***)array;
	int error = CKT_GROW(*list, *count, *room, 16);
	if (!error)
		(*list)[(*count)++] = entry;
	return error;
}

struct ckt_fences *ckt_fences_create(CUcontext real, unsigned spare_count)
{
	struct ckt_fences *fences = calloc(1, sizeof *fences);
	if (!fences)
		return NULL;
	fences->real = real;
	pthread_mutex_init(&fences->lock, NULL);
	if (ckt_driver.cuStreamCreate(&fences->helper, CU_STREAM_NON_BLOCKING))
		fences->helper = NULL;
	for (unsigned i = 0; i < spare_count; i++) {
		CUevent event;
		if (ckt_driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS)
			ckt_fences_event_give(fences, event);
	}
	return fences;
}

void ckt_fences_destroy(struct ckt_fences *fences, bool destroy_events)
{
	if (!fences)
		return;
	if (destroy_events) {
		if (fences->helper)
			ckt_driver.cuStreamDestroy_v2(fences->helper);
		for (size_t i = 0; i < fences->spare_count; i++)
			ckt_driver.cuEventDestroy_v2(fences->spare[i]);
		for (size_t i = 0; i < fences->orphan_count; i++)
			ckt_driver.cuEventDestroy_v2(fences->orphans[i]);
	}
	free(fences->spare);
	free(fences->dirty);
	free(fences->orphans);
	pthread_mutex_destroy(&fences->lock);
	free(fences);
}

CUresult ckt_fences_event_take(struct ckt_fences *fences, CUevent *ret_event)
{
	pthread_mutex_lock(&fences->lock);
	bool have = fences->spare_count > 0;
	if (have)
		*ret_event = fences->spare[--fences->spare_count];
	pthread_mutex_unlock(&fences->lock);
	return have ? CUDA_SUCCESS : ckt_driver.cuEventCreate(ret_event, CU_EVENT_DISABLE_TIMING);
}

void ckt_fences_event_give(struct ckt_fences *fences, CUevent event)
{
	pthread_mutex_lock(&fences->lock);
	int error = push((void **)&fences->spare, &fences->spare_count, &fences->spare_room, event);
	pthread_mutex_unlock(&fences->lock);
	if (error)
		ckt_driver.cuEventDestroy_v2(event);
}

int ckt_fences_expect(struct ckt_fences *fences)
{
	while (fences->dirty_room <= fences->stream_count) {
		size_t room = fences->dirty_room;
		if (CKT_GROW(fences->dirty, room, fences->dirty_room, 16))
			return -ENOMEM;
	}
	fences->stream_count++;
	return 0;
}

void ckt_fences_mark(struct ckt_fences *fences, struct ckt_object *stream)
{
	stream->stream.dirty = true;
	push((void **)&fences->dirty, &fences->dirty_count, &fences->dirty_room, stream);
}

void ckt_fences_forget(struct ckt_fences *fences, struct ckt_object *stream)
{
	fences->stream_count--;
	if (!stream->stream.dirty)
		return;
	for (size_t i = 0; i < fences->dirty_count; i++)
		if (fences->dirty[i] == stream) {
			fences->dirty[i] = fences->dirty[--fences->dirty_count];
			break;
		}
	stream->stream.dirty = false;
	CUevent event;
	if (ckt_driver.cuStreamQuery(stream->real) != CUDA_ERROR_NOT_READY ||
		ckt_fences_event_take(fences, &event))
		return;
	if (ckt_driver.cuEventRecord(event, stream->real)) {
		ckt_fences_event_give(fences, event);
	} else if (push((void **)&fences->orphans, &fences->orphan_count, &fences->orphan_room,
			   event)) {
		ckt_driver.cuEventSynchronize(event);
		ckt_fences_event_give(fences, event);
	}
}

struct collection {
	struct ckt_fences *fences;
	CUevent **events;
	unsigned *count;
	CUstream *only; /* the first stream that works, while it is the only one */
	CUresult result;
};

/* True where the stream still works. */
static bool collect_stream(struct collection *c, CUstream stream)
{
	CUresult result = ckt_driver.cuStreamQuery(stream);
	if (result == CUDA_ERROR_NOT_READY) {
		CUevent event;
		if (c->only && !*c->only && !*c->count) {
			*c->only = stream;
			return true;
		}
		if (c->only && *c->only) {
			CUstream first = *c->only;
			*c->only = NULL;
			c->only = NULL;
			collect_stream(c, first);
		}
		result = ckt_fences_event_take(c->fences, &event);
		if (!result) {
			result = ckt_driver.cuEventRecord(event, stream);
			if (!result) {
				CUevent *larger =
					reallocarray(*c->events, *c->count + 1, sizeof *larger);
				if (larger) {
					*c->events = larger;
					larger[(*c->count)++] = event;
					return true;
				}
				/* No memory to record it: waits for it here. */
				result = ckt_driver.cuEventSynchronize(event);
			}
			ckt_fences_event_give(c->fences, event);
		}
	}
	if (result && !c->result)
		c->result = result;
	return false;
}

CUresult ckt_fences_collect(
	struct ckt_fences *fences, CUevent **events, unsigned *count, CUstream *ret_only)
{
	struct collection c = {
		.fences = fences, .events = events, .count = count, .only = ret_only};
	for (size_t i = 0; i < fences->dirty_count;) {
		if (collect_stream(&c, fences->dirty[i]->real)) {
			i++;
			continue;
		}
		fences->dirty[i]->stream.dirty = false;
		fences->dirty[i] = fences->dirty[--fences->dirty_count];
	}
	if (fences->legacy)
		fences->legacy = collect_stream(&c, CU_STREAM_LEGACY);
	if (fences->per_thread)
		fences->per_thread = collect_stream(&c, CU_STREAM_PER_THREAD);
	for (size_t i = 0; i < fences->orphan_count;) {
		CUresult result = ckt_driver.cuEventQuery(fences->orphans[i]);
		if (result == CUDA_ERROR_NOT_READY) {
			/*
			 * Several may wait for it, each with an event of its own: the helper
			 * carries it over.
			 */
			result = ckt_driver.cuStreamWaitEvent(
				fences->helper, fences->orphans[i++], 0);
			if (!result)
				collect_stream(&c, fences->helper);
		} else {
			ckt_fences_event_give(fences, fences->orphans[i]);
			fences->orphans[i] = fences->orphans[--fences->orphan_count];
		}
		if (result && !c.result)
			c.result = result;
	}
	return c.result;
}

bool ckt_fences_busy(struct ckt_fences *fences, uint64_t *ret_stream)
{
	for (size_t i = 0; i < fences->dirty_count; i++)
		if (ckt_driver.cuStreamQuery(fences->dirty[i]->real) == CUDA_ERROR_NOT_READY) {
			*ret_stream = fences->dirty[i]->id;
			return true;
		}
	*ret_stream = 0;
	if (fences->legacy && ckt_driver.cuStreamQuery(CU_STREAM_LEGACY) == CUDA_ERROR_NOT_READY)
		return true;
	if (fences->per_thread &&
		ckt_driver.cuStreamQuery(CU_STREAM_PER_THREAD) == CUDA_ERROR_NOT_READY)
		return true;
	for (size_t i = 0; i < fences->orphan_count; i++)
		if (ckt_driver.cuEventQuery(fences->orphans[i]) == CUDA_ERROR_NOT_READY)
			return true;
	return false;
}
