/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies the bytes of the client's memory that a graph touches: into its buffers before a launch,
 * and out of them afterwards.  Both copies are host functions in stream order, so that they do not
 * disturb running launches.  For host nodes in the middle of a graph, the copy happens at once.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rpc/gen/cuda_codec.h"
#include "server/worker/driver.h"
#include "server/worker/graph/graph.h"
#include "server/worker/memory/copy.h"
#include "server/worker/objects/fence.h"
#include "server/worker/session/host_budget.h"
#include "server/worker/worker.h"

static struct ckt_worker_graph_exec *find_exec(struct ckt_worker *worker, uint64_t id)
{
	struct ckt_object *object =
		ckt_objects_find_kind(&worker->objects, id, CKT_KIND_GRAPH_EXEC);
	return object ? object->real : NULL;
}

/* A copy of rows of bytes, from or to packed rows. */
struct move {
	uint8_t *dst;
	const uint8_t *src;
	size_t dst_pitch, src_pitch, width, height;
	size_t charged;
	uint8_t bytes[];
};

static struct move *new_move(size_t bytes)
{
	size_t size = sizeof(struct move) + bytes;
	struct move *m =
		ckt_budget_charge(size, "bytes on their way to a graph") ? malloc(size) : NULL;
	if (m)
		m->charged = size;
	return m;
}

static void drop_move(struct move *m)
{
	if (m)
		ckt_budget_uncharge(m->charged);
	free(m);
}

/* Runs on a thread of the driver. */
static void run_move(void *data)
{
	struct move *m = data;
	for (size_t row = 0; row < m->height; row++)
		memcpy(m->dst + row * m->dst_pitch, m->src + row * m->src_pitch, m->width);
	drop_move(m);
}

static CUresult queue_move(struct move *m, CUstream stream)
{
	CUresult result = ckt_driver.cuLaunchHostFunc(stream, run_move, m);
	if (result)
		drop_move(m);
	return result;
}

int ckt_worker_graph_host_data(struct ckt_wcall *call)
{
	struct ckt_graph_host_data_args args;
	CUstream stream;
	if (!ckt_graph_host_data_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_worker_graph_exec *exec = find_exec(call->worker, args.exec);
	if (!exec)
		return CUDA_ERROR_INVALID_HANDLE;
	uint8_t *place =
		ckt_worker_graph_segments_find(&exec->segments, args.address, args.data_len);
	if (!place)
		return CUDA_ERROR_INVALID_VALUE;
	CUevent event;
	CUresult result = ckt_object_stream(call->worker, args.stream, &stream);
	/* Earlier launches may still read the buffer. */
	if (!result)
		result = ckt_worker_graph_use_wait(call->worker, exec, args.stream, stream);
	if (!result)
		result = ckt_worker_graph_use_begin(call->worker, exec, args.stream, &event);
	if (result)
		return result;
	struct move *m = new_move(args.data_len);
	if (!m)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*m = (struct move){.dst = place,
		.src = m->bytes,
		.width = args.data_len,
		.height = 1,
		.charged = m->charged};
	memcpy(m->bytes, args.data, args.data_len);
	result = queue_move(m, stream);
	return result ? result : ckt_worker_graph_use_end(exec, event, stream);
}

int ckt_worker_graph_fetch(struct ckt_wcall *call)
{
	struct ckt_worker *worker = call->worker;
	struct ckt_graph_fetch_args args;
	CUstream stream;
	if (!ckt_graph_fetch_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_worker_graph_exec *exec = find_exec(worker, args.exec);
	if (!exec)
		return CUDA_ERROR_INVALID_HANDLE;
	uint64_t size = (uint64_t)args.width * args.height, extent;
	if (!size || size > CKT_DATA_MAX ||
		__builtin_mul_overflow(args.pitch, args.height - 1, &extent) ||
		__builtin_add_overflow(extent, args.width, &extent))
		return CUDA_ERROR_INVALID_VALUE;
	const uint8_t *from = ckt_worker_graph_segments_find(&exec->segments, args.address, extent);
	if (!from)
		return CUDA_ERROR_INVALID_VALUE;
	if (!worker->current)
		return CUDA_ERROR_INVALID_CONTEXT;
	CUevent event;
	CUresult result = ckt_object_stream(worker, args.stream, &stream);
	if (!result)
		result = ckt_worker_graph_use_begin(worker, exec, args.stream, &event);
	if (result)
		return result;
	/*
	 * All pieces of the pool may be in use until a host function ends, and its end is a command
	 * after this one, so the copy gets memory of its own.
	 */
	struct ckt_staging_piece *piece = ckt_staging_own(size);
	struct move *m = new_move(0);
	if (m && piece) {
		*m = (struct move){.dst = piece->data,
			.dst_pitch = args.width,
			.src = from,
			.src_pitch = args.pitch,
			.width = args.width,
			.height = args.height,
			.charged = m->charged};
		result = queue_move(m, stream);
		if (!result)
			ckt_worker_graph_use_end(exec, event, stream);
	} else {
		drop_move(m);
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (result) {
		if (piece)
			ckt_staging_give(&worker->staging, piece);
		return result;
	}
	return ckt_worker_reply_when_done(call, result, args.stream, stream, piece, size);
}

/*
 * A host node's function is about to run in the client: sends the bytes that earlier nodes wrote.
 */
int ckt_worker_graph_peek(struct ckt_wcall *call)
{
	struct ckt_graph_peek_args args;
	if (!ckt_graph_peek_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_worker_graph_exec *exec = find_exec(call->worker, args.exec);
	if (!exec)
		return CUDA_ERROR_INVALID_HANDLE;
	const uint8_t *from = args.size <= CKT_GRAPH_PEEK_RES_DATA_MAX
		? ckt_worker_graph_segments_find(&exec->segments, args.address, args.size)
		: NULL;
	if (!from)
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_graph_peek_res res = {.data = from, .data_len = args.size};
	ckt_graph_peek_res_put(ckt_wcall_results(call, ckt_graph_peek_res_size(&res)), &res);
	return CUDA_SUCCESS;
}

/* The host node's function has run: takes the bytes that it left for later nodes. */
int ckt_worker_graph_poke(struct ckt_wcall *call)
{
	struct ckt_graph_poke_args args;
	if (!ckt_graph_poke_args_get(&call->args, &args))
		return CKT_WCALL_GARBAGE;
	struct ckt_worker_graph_exec *exec = find_exec(call->worker, args.exec);
	if (!exec)
		return CUDA_ERROR_INVALID_HANDLE;
	uint8_t *to = ckt_worker_graph_segments_find(&exec->segments, args.address, args.data_len);
	if (!to)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(to, args.data, args.data_len);
	return CUDA_SUCCESS;
}
