/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies with the host whose bytes come and go on lanes (session/lane.h), one piece a command.
 *
 * Threading: the executor.
 */
#include <errno.h>
#include <stdlib.h>

#include "rpc/gen/cuda_codec.h"
#include "server/worker/driver.h"
#include "server/worker/memory/copy.h"
#include "server/worker/objects/context.h"
#include "server/worker/objects/fence.h"
#include "server/worker/session/lane.h"
#include "server/worker/worker.h"

/* The copy from the staging memory is queued: gives the memory back when it is done. */
static CUresult keep_until_done(
	struct ckt_worker *worker, struct ckt_staging_piece *staged, CUstream stream)
{
	/* A chain of its own: pieces become free in any order. */
	struct ckt_pending *pending =
		ckt_pending_new(NULL, CKT_PENDING_STAGE, (uint64_t)(uintptr_t)staged);
	if (!pending) {
		ckt_driver.cuStreamSynchronize(stream);
		ckt_staging_give(&worker->staging, staged);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	pending->fences = worker->current->ctx.fences;
	pending->piece = staged;
	ckt_pending_add_behind(worker, pending, stream);
	return CUDA_SUCCESS;
}

/* CUDA_ERROR_NOT_READY: the piece is not here, and the client sends it in another way. */
int ckt_worker_lane_htod(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_lane_htod_args args;
	struct ckt_staging_piece *staged;
	CUstream stream;
	if (!ckt_lane_htod_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	int error = ckt_worker_lanes_take(worker, args.piece, args.size, &staged);
	if (error)
		return error == -ENOENT ? (int)CUDA_ERROR_NOT_READY : CKT_WCALL_GARBAGE;
	CUresult result = ckt_worker_copy_stream(worker, args.stream, &stream);
	if (!result)
		result = ckt_driver.cuMemcpyHtoDAsync_v2(args.dst, staged->data, args.size, stream);
	if (result) {
		ckt_staging_give(&worker->staging, staged);
		return result;
	}
	return keep_until_done(worker, staged, stream);
}

int ckt_worker_lane_dtoh(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_lane_dtoh_args args;
	CUstream stream;
	if (!ckt_lane_dtoh_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	if (!args.size || args.size > CKT_DATA_MAX || !args.piece)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_worker_copy_stream(worker, args.stream, &stream);
	if (result)
		return result;
	struct ckt_staging_piece *piece = ckt_worker_take_piece(worker, args.size);
	result = ckt_driver.cuMemcpyDtoHAsync_v2(piece->data, args.src, args.size, stream);
	return ckt_worker_reply_on_lane(
		call, result, args.stream, stream, piece, args.size, args.piece, args.background);
}
