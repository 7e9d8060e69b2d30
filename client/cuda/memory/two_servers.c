/* SPDX-License-Identifier: Apache-2.0 */
/* Copies, waits and graphs that involve two servers; see two_servers.h. */
#include <stdlib.h>

#include "client/cuda/memory/two_servers.h"
#include "client/conn/conn.h"
#include "client/cuda/call.h"
#include "client/cuda/context/route.h"
#include "client/cuda/memory/memcpy.h"
#include "client/cuda/memory/range.h"
#include "client/cuda/module/function.h"
#include "cudacommon/capture.h"
#include "cudacommon/graph.h"

#define PIECE ((uint64_t)4 << 20)

static struct ckt_conn *home(CUstream stream)
{
	return ckt_client_object_conn(ckt_handle_id(stream), CKT_KIND_STREAM);
}

/* Pinned memory is usable with every server unless it is mapped. */
static bool is_device(uint64_t address, bool device)
{
	struct ckt_client_range range;
	return device && ckt_range_find(address, &range) && ckt_range_reaches_device(&range);
}

bool ckt_client_copy_is_between(const struct ckt_copy2d *c)
{
	struct ckt_conn *conn = home(c->stream);
	bool to = is_device(c->dst, c->dst_device), from = is_device(c->src, c->src_device);
	return (to && ckt_client_address_conn(c->dst) != conn) ||
		(from && ckt_client_address_conn(c->src) != conn);
}

CUresult ckt_client_graph_between(void)
{
	static bool once;
	return ckt_call_unsupported("a graph over several servers", &once);
}

/* Waits for the stream.  Refuses a stream that captures. */
static CUresult settle(CUstream stream)
{
	uint64_t id;
	struct ckt_capture_stream *capturing;
	CKT_ROUTE_STREAM(stream);
	CUresult result = ckt_stream_resolve(stream, &id);
	if (!result)
		result = ckt_capture_enter(id, &capturing);
	if (result)
		return result;
	if (capturing)
		return ckt_graph_leave(ckt_client_graph_between());
	return CKT_WAITED(stream_synchronize, STREAM_SYNCHRONIZE, 0, NULL, .stream = id);
}

/* Makes a copy whose device memory is all at the address's server, and waits for it. */
static CUresult copy_at(uint64_t address, const struct ckt_copy2d *c)
{
	struct ckt_copy2d there = *c;
	CKT_ROUTE_ADDRESS(address);
	there.stream = NULL;
	there.async = false;
	CUresult result = ckt_client_copy_2d(&there);
	return result || !there.dst_device ? result : cuStreamSynchronize(NULL);
}

/* Copies rows between servers through a buffer: many rows at once, or a part of one. */
static CUresult copy_through(const struct ckt_copy2d *c)
{
	uint64_t width = c->width < PIECE ? c->width : PIECE, rows_at_once = PIECE / width;
	uint8_t *buffer = malloc(width * (c->height < rows_at_once ? c->height : rows_at_once));
	CUresult result = buffer ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	for (uint64_t row = 0; row < c->height && !result; row += rows_at_once) {
		for (uint64_t x = 0; x < c->width && !result; x += width) {
			struct ckt_copy2d part = *c;
			part.height =
				c->height - row < rows_at_once ? c->height - row : rows_at_once;
			part.width = c->width - x < width ? c->width - x : width;
			part.src = c->src + row * c->src_pitch + x;
			part.dst = (uint64_t)(uintptr_t)buffer;
			part.dst_pitch = part.width;
			part.dst_device = false;
			result = copy_at(part.src, &part);
			if (result)
				break;
			part.src = part.dst;
			part.src_pitch = part.width;
			part.src_device = false;
			part.dst = c->dst + row * c->dst_pitch + x;
			part.dst_pitch = c->dst_pitch;
			part.dst_device = true;
			result = copy_at(part.dst, &part);
		}
	}
	free(buffer);
	return result;
}

CUresult ckt_client_copy_between(const struct ckt_copy2d *c)
{
	uint64_t extent;
	bool to = is_device(c->dst, c->dst_device), from = is_device(c->src, c->src_device);
	if (!c->width || !c->height)
		return CUDA_SUCCESS;
	/* Check the whole range before copying the first byte. */
	if (c->height > 1 && (c->dst_pitch < c->width || c->src_pitch < c->width))
		return CUDA_ERROR_INVALID_VALUE;
	if (__builtin_mul_overflow(c->height - 1,
		    c->dst_pitch > c->src_pitch ? c->dst_pitch : c->src_pitch, &extent) ||
		__builtin_add_overflow(extent, c->width, &extent))
		return CUDA_ERROR_INVALID_VALUE;
	if ((to &&
		    !ckt_range_require_device(
			    "copy to", c->dst, (c->height - 1) * c->dst_pitch + c->width)) ||
		(from &&
			!ckt_range_require_device(
				"copy from", c->src, (c->height - 1) * c->src_pitch + c->width)))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = settle(c->stream);
	if (result)
		return result;
	if (to && from && ckt_client_address_conn(c->dst) != ckt_client_address_conn(c->src))
		return copy_through(c);
	return copy_at(to ? c->dst : c->src, c);
}

CUresult ckt_wait_between(uint64_t stream, CUevent event)
{
	struct ckt_capture_stream *capturing;
	CUresult result = ckt_capture_enter(stream, &capturing);
	if (result)
		return result;
	if (capturing)
		return ckt_graph_leave(ckt_client_graph_between());
	result = ckt_capture_event_check(ckt_handle_id(event));
	return result ? result : cuEventSynchronize(event);
}

/* ---- Graphs */

struct placing {
	uint64_t context; /* the first that was found; 0: none */
	bool several;
};

static void add_context(struct placing *placing, uint64_t context)
{
	if (!context)
		return;
	if (!placing->context)
		placing->context = context;
	placing->several |=
		ckt_client_context_conn(context) != ckt_client_context_conn(placing->context);
}

static void add_memory(struct placing *placing, uint64_t address)
{
	struct ckt_client_range range;
	if (ckt_range_find(address, &range) && ckt_range_reaches_device(&range))
		add_context(placing, range.context);
}

static void add_object(struct placing *placing, uint64_t id, enum ckt_kind kind)
{
	const struct ckt_cudacommon_object *object = ckt_cudacommon_object_find(id, kind);
	if (object)
		add_context(placing, object->context);
}

static void add_copy(struct placing *placing, const CUDA_MEMCPY3D *c)
{
	if (c->srcMemoryType == CU_MEMORYTYPE_ARRAY)
		add_object(placing, ckt_handle_id(c->srcArray), CKT_KIND_ARRAY);
	else if (c->srcMemoryType != CU_MEMORYTYPE_HOST)
		add_memory(placing, c->srcDevice);
	if (c->dstMemoryType == CU_MEMORYTYPE_ARRAY)
		add_object(placing, ckt_handle_id(c->dstArray), CKT_KIND_ARRAY);
	else if (c->dstMemoryType != CU_MEMORYTYPE_HOST)
		add_memory(placing, c->dstDevice);
}

static void place(struct placing *placing, const struct ckt_graph *graph)
{
	for (size_t i = 0; i < graph->count; i++) {
		const struct ckt_node *node = graph->nodes[i];
		size_t inner;
		struct ckt_graph *const *graphs = ckt_node_graphs(node, &inner);
		for (size_t k = 0; k < inner; k++)
			place(placing, graphs[k]);
		if (node->type == CU_GRAPH_NODE_TYPE_KERNEL)
			add_context(placing, node->kernel.function->object.context);
		else if (node->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD ||
			node->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT)
			add_object(placing, ckt_handle_id(node->event), CKT_KIND_EVENT);
		else if (node->type == CU_GRAPH_NODE_TYPE_MEMCPY)
			add_copy(placing, &node->copy);
		else if (node->type == CU_GRAPH_NODE_TYPE_MEMSET)
			add_memory(placing, node->fill.dst);
		else if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
			add_context(placing, node->context);
	}
}

CUresult ckt_client_graph_place(const struct ckt_graph *graph, uint64_t *context)
{
	struct placing placing = {0};
	if (ckt_conn_count == 1)
		return CUDA_SUCCESS;
	place(&placing, graph);
	if (placing.several)
		return ckt_client_graph_between();
	if (placing.context &&
		ckt_client_context_conn(placing.context) != ckt_client_context_conn(*context))
		*context = placing.context;
	return CUDA_SUCCESS;
}
