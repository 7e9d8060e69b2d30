/* SPDX-License-Identifier: Apache-2.0 */
/* Recreates communicators in a restore, and answers a job's checkpoint about them; see nccl.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "rpc/net.h"
#include "server/worker/session/blocking_call.h"
#include "server/worker/libs/nccl/nccl.h"
#include "server/worker/worker.h"

enum { RESTORE_MS = 60000, GRACE_MS = 2000 };

static struct {
	struct ckt_nccl_ids *pairs;
	size_t count;
	/* for the restore's communicators; 0: none has started yet */
	int64_t deadline_ms;
} restore;

static bool is_made(void *data)
{
	const struct ckt_nccl_comm *comm = data;
	return !comm->pending;
}

int ckt_worker_nccl_ids_add(
	struct ckt_worker *worker, const struct ckt_nccl_ids *pairs, size_t count)
{
	(void)worker;
	if (count > CKT_NCCL_PAIRS_MAX - restore.count)
		return -ENOSPC;
	struct ckt_nccl_ids *all = count
		? reallocarray(restore.pairs, restore.count + count, sizeof *all)
		: restore.pairs;
	if (count && !all)
		return -ENOMEM;
	if (count)
		memcpy(all + restore.count, pairs, count * sizeof *all);
	restore.pairs = all;
	restore.count += count;
	return 0;
}

bool ckt_worker_nccl_new_id(struct ckt_worker *worker, const uint8_t *identity,
	ncclUniqueId *ret_id, int64_t *ret_deadline_ms)
{
	(void)worker;
	if (!restore.deadline_ms)
		restore.deadline_ms = ckt_net_now_ms() + RESTORE_MS;
	*ret_deadline_ms = restore.deadline_ms;
	for (size_t i = restore.count; i-- > 0;)
		if (!memcmp(restore.pairs[i].identity, identity, CKT_NCCL_ID_BYTES)) {
			memcpy(ret_id, restore.pairs[i].id, CKT_NCCL_ID_BYTES);
			return true;
		}
	return false;
}

static struct ckt_object *next_comm(struct ckt_worker *worker, uint32_t *cursor)
{
	struct ckt_object *object;
	while ((object = ckt_objects_next(&worker->objects, cursor)))
		if (ckt_handle_kind(object->id) == CKT_KIND_LIB_OBJECT &&
			object->library->library->lib == CKT_LIB_NCCL &&
			object->library->type == CKT_NCCL_TYPE_COMM && object->real)
			return object;
	return NULL;
}

static int here(struct ckt_worker *worker, const uint8_t *identity)
{
	struct ckt_object *object;
	int count = 0;
	for (uint32_t cursor = 0; (object = next_comm(worker, &cursor));) {
		const struct ckt_nccl_comm *comm = object->real;
		count += !memcmp(comm->identity, identity, CKT_NCCL_ID_BYTES);
	}
	return count;
}

CUresult ckt_worker_nccl_comm_settled(struct ckt_worker *worker, struct ckt_nccl_comm *comm)
{
	if (!comm->pending)
		return CUDA_SUCCESS;
	/*
	 * The executor does not wait: a client sends nothing for a communicator that is not made
	 * yet.
	 */
	if (worker->go)
		return CUDA_ERROR_NOT_READY;
	/* A communicator whose ranks do not meet reports that itself, before this deadline. */
	return ckt_blocking_call_wait(worker, is_made, comm, restore.deadline_ms + GRACE_MS)
		? CUDA_ERROR_TIMEOUT
		: CUDA_SUCCESS;
}

static int report(struct ckt_worker *worker, const struct ckt_nccl_comm *comm, char *ret_message,
	size_t message_size)
{
	snprintf(ret_message, message_size,
		"cannot recreate a communicator of %d ranks: %d of them are in this "
		"session, and the others did not arrive within %d s; restore the job's "
		"sessions together, by cricketctl restore --job",
		comm->ranks, here(worker, comm->identity), RESTORE_MS / 1000);
	return -ETIMEDOUT;
}

int ckt_worker_nccl_loaded(struct ckt_worker *worker, char *ret_message, size_t message_size)
{
	struct ckt_object *object;
	for (uint32_t cursor = 0; (object = next_comm(worker, &cursor));) {
		struct ckt_nccl_comm *comm = object->real;
		if (ckt_worker_nccl_comm_settled(worker, comm) || comm->status == ncclRemoteError)
			return report(worker, comm, ret_message, message_size);
		if (!comm->status)
			continue;
		snprintf(ret_message, message_size,
			"cannot recreate a communicator of %d ranks: %s", comm->ranks,
			ckt_nccl.ncclGetErrorString
				? ckt_nccl.ncclGetErrorString((ncclResult_t)comm->status)
				: "unknown error");
		return -EIO;
	}
	/* An id serves once, so the pairs are of no further use. */
	free(restore.pairs);
	restore.pairs = NULL;
	restore.count = 0;
	restore.deadline_ms = 0;
	return 0;
}
