/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver operations of libraries on threads that must not touch the session's tables: the thread
 * notes them, and the executor enters them; see inside.h.
 *
 * Two threads that make things concurrently have no order in the driver either; the notes follow
 * the order in which the driver calls returned.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/grow.h"
#include "checkpoint/journal.h"
#include "server/worker/libs/code/code.h"
#include "server/worker/libs/inside/inside.h"
#include "server/worker/objects/context_limits.h"
#include "server/worker/objects/counted_handles.h"
#include "server/worker/worker.h"

static struct {
	pthread_mutex_t lock;
	struct ckt_inside_note *list;
	size_t room;
	_Atomic size_t count;
} notes = {.lock = PTHREAD_MUTEX_INITIALIZER};

void ckt_inside_note(struct ckt_inside_note note)
{
	pthread_mutex_lock(&notes.lock);
	size_t count = atomic_load(&notes.count);
	if (CKT_GROW(notes.list, count, notes.room, 32)) {
		ckt_warning("no memory to record what a library created: variables of "
			    "modules may move at a restore");
	} else {
		notes.list[count] = note;
		atomic_store(&notes.count, count + 1);
	}
	pthread_mutex_unlock(&notes.lock);
}

static struct ckt_object *context_of(struct ckt_worker *worker, CUcontext real)
{
	struct ckt_object *object;
	for (uint32_t cursor = 0; (object = ckt_objects_next(&worker->objects, &cursor));)
		if (ckt_handle_kind(object->id) == CKT_KIND_CONTEXT && object->real == real)
			return object;
	return NULL;
}

static void enter(struct ckt_worker *worker, const struct ckt_inside_note *note)
{
	struct ckt_object *context = context_of(worker, note->context);
	if (!context)
		return;
	switch (note->kind) {
	case CKT_NOTE_STREAM:
	case CKT_NOTE_EVENT:
		ckt_counted_made(
			worker, context, note->kind == CKT_NOTE_EVENT, note->flags, note->priority);
		break;
	case CKT_NOTE_STREAM_END:
	case CKT_NOTE_EVENT_END:
		ckt_counted_gone(context, note->kind == CKT_NOTE_EVENT_END);
		break;
	case CKT_NOTE_CODE:
		ckt_code_keep(worker, note->use);
		ckt_limits_grown(worker, context);
		ckt_journal_add(&worker->checkpoint.journal,
			(struct ckt_journal_entry){
				.kind = CKT_JOURNAL_CODE, .id = note->use, .context = context->id});
		break;
	}
}

void ckt_inside_notes_settle(struct ckt_worker *worker)
{
	if (!atomic_load(&notes.count))
		return;
	pthread_mutex_lock(&notes.lock);
	struct ckt_inside_note *list = notes.list;
	size_t count = atomic_load(&notes.count);
	notes.list = NULL;
	notes.room = 0;
	atomic_store(&notes.count, 0);
	pthread_mutex_unlock(&notes.lock);
	for (size_t i = 0; i < count; i++)
		enter(worker, &list[i]);
	free(list);
}
