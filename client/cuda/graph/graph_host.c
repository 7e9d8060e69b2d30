/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's memory in graphs.  The client sends this memory before a launch and fetches it after
 * the launch.  It does the same around host nodes.
 */
#include <stdlib.h>
#include <string.h>

#include "client/cuda/graph/graph_host.h"
#include "client/cuda/call.h"
#include "client/cuda/memory/mapped.h"
#include "client/cuda/memory/memcpy.h"
#include "client/cuda/stream/hostfunc.h"
#include "cudacommon/graph.h"

/* The host side of a copy: depth slices, each of height rows of width bytes. */
struct rows {
	uint64_t address, pitch, slice;
	uint64_t width, height, depth;
};

static struct rows rows_of(const CUDA_MEMCPY3D *c, bool to_host)
{
	uint64_t x = to_host ? c->dstXInBytes : c->srcXInBytes, y = to_host ? c->dstY : c->srcY,
		 z = to_host ? c->dstZ : c->srcZ;
	uint64_t pitch = to_host ? c->dstPitch : c->srcPitch,
		 height = to_host ? c->dstHeight : c->srcHeight;
	struct rows r = {.pitch = pitch ? pitch : x + c->WidthInBytes,
		.width = c->WidthInBytes,
		.height = c->Height,
		.depth = c->Depth};
	r.slice = r.pitch * (height ? height : y + c->Height);
	r.address =
		ckt_handle_id(to_host ? c->dstHost : c->srcHost) + z * r.slice + y * r.pitch + x;
	/* Rows without gaps are one long row. */
	if (r.pitch == r.width || r.height == 1) {
		r.width += (r.height - 1) * r.pitch;
		r.height = 1;
	}
	return r;
}

struct visit {
	CUresult (*rows)(struct visit *visit, const struct rows *rows);
	bool to_host;     /* the host is the destination */
	bool marked_only; /* visit marked nodes only */
	bool bodies_only; /* visit copies in conditional bodies only */
	unsigned bodies;  /* conditional bodies around the visited graph */
	uint64_t exec, stream;
	unsigned count;
};

static CUresult each(struct visit *visit, const struct ckt_graph *graph)
{
	CUresult result = CUDA_SUCCESS;
	for (size_t i = 0; i < graph->count && !result; i++) {
		const struct ckt_node *node = graph->nodes[i];
		if (node->disabled || (visit->marked_only && !node->mark))
			continue;
		size_t inner;
		struct ckt_graph *const *graphs = ckt_node_graphs(node, &inner);
		bool marked_only = visit->marked_only;
		visit->marked_only = false;
		visit->bodies += node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
		for (size_t k = 0; k < inner && !result; k++)
			result = each(visit, graphs[k]);
		visit->bodies -= node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
		visit->marked_only = marked_only;
		if (node->type == CU_GRAPH_NODE_TYPE_MEMCPY &&
			(visit->bodies || !visit->bodies_only) &&
			(visit->to_host ? node->copy.dstMemoryType : node->copy.srcMemoryType) ==
				CU_MEMORYTYPE_HOST) {
			struct rows rows = rows_of(&node->copy, visit->to_host);
			visit->count++;
			result = visit->rows ? visit->rows(visit, &rows) : CUDA_SUCCESS;
		}
	}
	return result;
}

bool ckt_client_graph_has_host_memory(const struct ckt_graph *graph)
{
	struct visit visit = {0};
	each(&visit, graph);
	visit.to_host = true;
	each(&visit, graph);
	return visit.count > 0;
}

unsigned ckt_client_graph_host_nodes(const struct ckt_graph *graph)
{
	unsigned count = 0;
	for (size_t i = 0; i < graph->count; i++) {
		if (graph->nodes[i]->disabled)
			continue;
		size_t inner;
		struct ckt_graph *const *graphs = ckt_node_graphs(graph->nodes[i], &inner);
		count += graph->nodes[i]->type == CU_GRAPH_NODE_TYPE_HOST;
		for (size_t k = 0; k < inner; k++)
			count += ckt_client_graph_host_nodes(graphs[k]);
	}
	return count;
}

/* Calls piece() for pieces of at most CKT_DATA_MAX bytes. */
static CUresult each_piece(struct visit *visit, const struct rows *r,
	CUresult (*piece)(struct visit *visit, uint64_t address, uint32_t size))
{
	CUresult result = CUDA_SUCCESS;
	for (uint64_t z = 0; z < r->depth; z++)
		for (uint64_t y = 0; y < r->height; y++)
			for (uint64_t x = 0; x < r->width && !result; x += CKT_DATA_MAX)
				result = piece(visit, r->address + z * r->slice + y * r->pitch + x,
					(uint32_t)(r->width - x < CKT_DATA_MAX ? r->width - x
									       : CKT_DATA_MAX));
	return result;
}

/* ---- Around a launch */

static CUresult send_piece(struct visit *visit, uint64_t address, uint32_t size)
{
	ckt_client_copy_settle((void *)(uintptr_t)address, size);
	ckt_client_host_open(address, size, false);
	return CKT_BATCHED(graph_host_data, GRAPH_HOST_DATA, .exec = visit->exec,
		.stream = visit->stream, .address = address,
		.data = (const uint8_t *)(uintptr_t)address, .data_len = size);
}

static CUresult send_rows(struct visit *visit, const struct rows *r)
{
	return each_piece(visit, r, send_piece);
}

CUresult ckt_client_exec_send_memory(struct ckt_exec *exec, uint64_t stream)
{
	struct visit visit = {.rows = send_rows, .exec = exec->object.id, .stream = stream};
	CUresult result = each(&visit, exec->graph);
	/*
	 * A conditional body may not run.  Then the fetch after the launch must return these bytes
	 * unchanged.
	 */
	visit.to_host = visit.bodies_only = true;
	return result ? result : each(&visit, exec->graph);
}

static CUresult fetch_rows(struct visit *visit, const struct rows *r)
{
	CUresult result = CUDA_SUCCESS;
	for (uint64_t z = 0; z < r->depth && !result; z++) {
		uint64_t address = r->address + z * r->slice;
		result = ckt_client_copy_fetch(&(struct ckt_copy2d){.dst = address,
						       .src = address,
						       .dst_pitch = r->pitch,
						       .src_pitch = r->pitch,
						       .width = r->width,
						       .height = r->height,
						       .async = true},
			visit->exec, visit->stream);
	}
	return result;
}

CUresult ckt_client_exec_fetch_memory(struct ckt_exec *exec, uint64_t stream)
{
	struct visit visit = {
		.rows = fetch_rows, .to_host = true, .exec = exec->object.id, .stream = stream};
	return each(&visit, exec->graph);
}

/* ---- Around a host node */

static CUresult peek_piece(struct visit *visit, uint64_t address, uint32_t size)
{
	struct ckt_reply reply;
	struct ckt_graph_peek_res res;
	CUresult result = CKT_WAITED(graph_peek, GRAPH_PEEK, 0, &reply, .exec = visit->exec,
		.address = address, .size = size);
	if (result)
		return result;
	if (ckt_graph_peek_res_get(&reply.results, &res) && res.data_len == size)
		memcpy((void *)(uintptr_t)address, res.data, size);
	ckt_call_reply_release(&reply);
	return CUDA_SUCCESS;
}

static CUresult peek_rows(struct visit *visit, const struct rows *r)
{
	return each_piece(visit, r, peek_piece);
}

static CUresult poke_piece(struct visit *visit, uint64_t address, uint32_t size)
{
	return CKT_BATCHED(graph_poke, GRAPH_POKE, .exec = visit->exec, .address = address,
		.data = (const uint8_t *)(uintptr_t)address, .data_len = size);
}

static CUresult poke_rows(struct visit *visit, const struct rows *r)
{
	return each_piece(visit, r, poke_piece);
}

/*
 * Visits the copies before the node (forward: after it), in its graph and in the enclosing graphs.
 */
static void around(struct visit *visit, struct ckt_node *node, bool forward)
{
	for (; node; node = node->graph->owner) {
		ckt_graph_unmark(node->graph);
		ckt_graph_mark(node, forward);
		node->mark = false;
		visit->marked_only = true;
		each(visit, node->graph);
	}
}

void ckt_client_exec_before_host(
	uint64_t exec_id, uint64_t node_id, CUhostFn *ret_function, void **ret_data)
{
	ckt_graph_enter();
	const struct ckt_exec *exec = ckt_cudacommon_object_find(exec_id, CKT_KIND_GRAPH_EXEC);
	struct ckt_node *node = exec ? ckt_graph_find_copy(exec->graph, node_id) : NULL;
	if (node && node->type == CU_GRAPH_NODE_TYPE_HOST) {
		struct visit visit = {.rows = peek_rows, .to_host = true, .exec = exec_id};
		around(&visit, node, false);
		*ret_function = node->host.fn;
		*ret_data = node->host.userData;
	}
	ckt_graph_leave(CUDA_SUCCESS);
}

void ckt_client_exec_after_host(uint64_t exec_id, uint64_t node_id)
{
	ckt_graph_enter();
	const struct ckt_exec *exec = ckt_cudacommon_object_find(exec_id, CKT_KIND_GRAPH_EXEC);
	struct ckt_node *node = exec ? ckt_graph_find_copy(exec->graph, node_id) : NULL;
	if (node) {
		struct visit visit = {.rows = poke_rows, .exec = exec_id};
		around(&visit, node, true);
	}
	ckt_graph_leave(CUDA_SUCCESS);
}
