/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the GPU has work of the session; see drain.h. */
#include "server/worker/session/drain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "rpc/gen/cuda_driver.h"
#include "rpc/net.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/fence.h"
#include "server/worker/session/hostfunc.h"
#include "server/worker/worker.h"

/* The stream that has unfinished work, in words. */
static void name_stream(struct ckt_fences *fences, char *ret_message, size_t message_size)
{
	for (size_t i = 0; i < fences->dirty_count; i++)
		if (ckt_driver.cuStreamQuery(fences->dirty[i]->real) == CUDA_ERROR_NOT_READY) {
			snprintf(ret_message, message_size,
				"a kernel or copy on stream 0x%llx does not finish: "
				"end it, or give a longer deadline",
				(unsigned long long)fences->dirty[i]->id);
			return;
		}
	snprintf(ret_message, message_size,
		"a kernel or copy on the default stream does not finish: end it, or give a longer deadline");
}

/* Waits by asking: a driver's wait has no deadline. */
static int drain_context(struct ckt_worker *worker, struct ckt_object *context, int64_t deadline_ms,
	char *ret_message, size_t message_size)
{
	struct ckt_fences *fences = context->ctx.fences;
	if (ckt_worker_use_context(worker, context->id))
		return 0; /* a faulted context has nothing to wait for; saving will say so */
	for (;;) {
		CUevent *events = NULL;
		unsigned count = 0, ready = 0;
		ckt_fences_collect(fences, &events, &count, NULL);
		while (ready < count && ckt_net_now_ms() < deadline_ms) {
			if (ckt_driver.cuEventQuery(events[ready]) != CUDA_ERROR_NOT_READY)
				ready++;
			else if (ckt_hostcalls_waiting(worker))
				break;
			else
				nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
		}
		for (unsigned i = 0; i < count; i++)
			ckt_fences_event_give(fences, events[i]);
		free(events);
		if (!count)
			return 0;
		if (ckt_hostcalls_waiting(worker))
			return -EAGAIN;
		if (ready < count) {
			name_stream(fences, ret_message, message_size);
			return -EBUSY;
		}
	}
}

int ckt_streams_drain(
	struct ckt_worker *worker, int64_t deadline_ms, char *ret_message, size_t message_size)
{
	struct ckt_object *object, *before = worker->current;
	int result = 0;
	for (uint32_t cursor = 0;
		!result && (object = ckt_objects_next(&worker->objects, &cursor));)
		if (ckt_handle_kind(object->id) == CKT_KIND_CONTEXT)
			result = drain_context(
				worker, object, deadline_ms, ret_message, message_size);
	if (before)
		ckt_worker_use_context(worker, before->id);
	return result;
}

bool ckt_streams_busy(struct ckt_worker *worker, char *ret_message, size_t message_size)
{
	struct ckt_object *object, *before = worker->current;
	uint64_t stream = 0;
	bool busy = false;
	for (uint32_t cursor = 0; !busy && (object = ckt_objects_next(&worker->objects, &cursor));)
		/* A faulted context has nothing to wait for; saving will say so. */
		if (ckt_handle_kind(object->id) == CKT_KIND_CONTEXT &&
			!ckt_worker_use_context(worker, object->id))
			busy = ckt_fences_busy(object->ctx.fences, &stream);
	if (before)
		ckt_worker_use_context(worker, before->id);
	if (busy && stream)
		snprintf(ret_message, message_size,
			"a kernel or copy on stream 0x%llx does not finish",
			(unsigned long long)stream);
	else if (busy)
		snprintf(ret_message, message_size,
			"a kernel or copy on the default stream does not finish");
	return busy;
}

bool ckt_streams_busy_on(struct ckt_worker *worker, unsigned device)
{
	struct ckt_object *object, *before = worker->current;
	uint64_t stream;
	bool busy = false;
	for (uint32_t cursor = 0; !busy && (object = ckt_objects_next(&worker->objects, &cursor));)
		if (ckt_handle_kind(object->id) == CKT_KIND_CONTEXT &&
			object->ctx.device == device && !ckt_worker_use_context(worker, object->id))
			busy = ckt_fences_busy(object->ctx.fences, &stream);
	if (before)
		ckt_worker_use_context(worker, before->id);
	return busy;
}
