/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that its owner has given up while others have it open: the GPU keeps it, so those others count
 * it from then on; see ipc.h.
 *
 *	the owner frees it		LEFT to each that fetched anything of the owner
 *	the owner's worker ends		the server says so (CKT_WORKER_OWNER_GONE)
 *
 * The owner, or the server in its place, waits for the answers, so that for a moment both count the
 * memory, and never nobody.  Of several that have it open each counts it, because none knows when the
 * others close it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpc/group.h"
#include "server/worker/ipc/ipc.h"
#include "server/worker/ipc/ipc_state.h"
#include "server/worker/memory/memory.h"

/* ---- The owner's side */

bool ckt_ipc_nth_taker(size_t nth, struct ckt_ipc_taker *ret_taker)
{
	pthread_mutex_lock(&ckt_ipc.lock);
	bool found = nth < ckt_ipc.taker_count;
	if (found)
		*ret_taker = ckt_ipc.takers[nth];
	pthread_mutex_unlock(&ckt_ipc.lock);
	return found;
}

/* One that is gone has nothing open any more. */
static void leave(struct ckt_worker *worker, const struct ckt_ipc_handle *handle)
{
	const struct ckt_ipc_question question =
		ckt_ipc_question(worker, CKT_IPC_LEFT, handle->kind, handle->secret);
	struct ckt_ipc_answer ignored;
	struct ckt_ipc_taker one;
	int error = 0;
	/* Without a server nobody is found, and each try would wait for one. */
	for (size_t i = 0; error != -ENOTCONN && ckt_ipc_nth_taker(i, &one); i++)
		error = ckt_ipc_ask_session(one.session, &question, &ignored, NULL);
}

void ckt_ipc_leave(struct ckt_worker *worker, struct ckt_ipc_export *gone)
{
	for (struct ckt_ipc_export *next; gone; gone = next) {
		if (gone->taken && gone->handle.kind != CKT_IPC_EVENT)
			leave(worker, &gone->handle);
		next = gone->next;
		if (gone->fd >= 0)
			close(gone->fd);
		free(gone);
	}
}

/* ---- The other side */

/* Precondition: lock held.  The first that is open, not counted, and of that owner; secret NULL: any. */
static struct ckt_ipc_import *find_left(
	const char session[CKT_IPC_SESSION], uint32_t kind, const uint8_t *secret)
{
	for (struct ckt_ipc_import *i = ckt_ipc.imports; i; i = i->next)
		if (i->handle.kind != CKT_IPC_EVENT && !i->counted && !i->away && !i->lost &&
			memcmp(i->handle.session, session, CKT_IPC_SESSION) == 0 &&
			(!secret ||
				(i->handle.kind == kind &&
					ckt_ipc_same_secret(i->handle.secret, secret))))
			return i;
	return NULL;
}

void ckt_ipc_count_left(struct ckt_worker *worker, const char session[CKT_IPC_SESSION],
	uint32_t kind, const uint8_t *secret)
{
	pthread_mutex_lock(&ckt_ipc.lock);
	for (struct ckt_ipc_import *import; (import = find_left(session, kind, secret));) {
		/* Counting may wait for the server, and meanwhile the program may close it. */
		struct ckt_memory *memory = &worker->devices[import->device].memory;
		uint64_t bytes = import->whole;
		pthread_mutex_unlock(&ckt_ipc.lock);
		ckt_memory_add(memory, bytes);
		pthread_mutex_lock(&ckt_ipc.lock);
		import = find_left(session, kind, secret);
		if (import && import->whole == bytes &&
			memory == &worker->devices[import->device].memory) {
			import->counted = true;
		} else {
			pthread_mutex_unlock(&ckt_ipc.lock);
			ckt_memory_uncharge(memory, bytes);
			pthread_mutex_lock(&ckt_ipc.lock);
		}
	}
	pthread_mutex_unlock(&ckt_ipc.lock);
}

void ckt_ipc_closed(struct ckt_worker *worker, const struct ckt_ipc_import *import)
{
	if (import->counted)
		ckt_memory_uncharge(&worker->devices[import->device].memory, import->whole);
}

void ckt_ipc_owner_gone(struct ckt_worker *worker, const struct ckt_group_name *name)
{
	if (ckt_group_is_session(name))
		ckt_ipc_count_left(
			worker, (const char *)name->bytes + CKT_GROUP_SESSION_PREFIX, 0, NULL);
}
