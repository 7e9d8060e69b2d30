/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes descriptions of graphs; see rpc/graph.h. */
#include <stdlib.h>
#include <string.h>

#include "client/cuda/graph/graph_wire.h"
#include "client/cuda/call.h"
#include "client/cuda/memory/array.h"
#include "client/cuda/module/function.h"
#include "client/cuda/stream/event.h"
#include "client/cuda/stream/memop.h"
#include "cudacommon/graph.h"
#include "rpc/graph.h"

_Static_assert((int)CKT_GRAPH_BODIES_MAX == (int)CKT_CONDITIONAL_BODIES_MAX, "one bound");

static size_t conditional_size(const struct ckt_conditional_node *c)
{
	size_t size = CKT_GRAPH_CONDITIONAL_BYTES;
	for (unsigned i = 0; i < c->count; i++)
		size += ckt_client_graph_wire_size(c->bodies[i]);
	return size;
}

static size_t record_size(const struct ckt_node *node)
{
	enum { SIDE = 4 + 6 * 8 };
	switch (node->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return 8 + 7 * 4 + 4 +
			node->kernel.attribute_count * (4 + CKT_GRAPH_ATTRIBUTE_BYTES) + 4 +
			ckt_padded(node->kernel.param_bytes);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return 2 * SIDE + 3 * 8;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return 4 * 8 + 2 * 4;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return node->child->call ? 8 : ckt_client_graph_wire_size(node->child);
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return conditional_size(&node->conditional);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return 8;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		return 16;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return 4 + ckt_client_memop_wire_size(node->memop.count);
	default:
		return 0;
	}
}

size_t ckt_client_node_wire_size(const struct ckt_node *node)
{
	return 24 + record_size(node);
}

size_t ckt_client_graph_wire_size(const struct ckt_graph *graph)
{
	size_t size = 8;
	for (size_t i = 0; i < graph->count; i++)
		size += ckt_client_node_wire_size(graph->nodes[i]) + 12 * graph->nodes[i]->in.count;
	return size;
}

static uint8_t *put_kernel(uint8_t *p, const struct ckt_kernel_node *k)
{
	p = ckt_put_u64(p, k->function->object.id);
	for (int i = 0; i < 3; i++)
		p = ckt_put_u32(p, k->grid[i]);
	for (int i = 0; i < 3; i++)
		p = ckt_put_u32(p, k->block[i]);
	p = ckt_put_u32(p, k->shared_bytes);
	p = ckt_put_u32(p, k->attribute_count * (4 + CKT_GRAPH_ATTRIBUTE_BYTES));
	for (unsigned i = 0; i < k->attribute_count; i++) {
		p = ckt_put_u32(p, k->attributes[i].id);
		memset(p, 0, CKT_GRAPH_ATTRIBUTE_BYTES);
		memcpy(p, &k->attributes[i].value, sizeof k->attributes[i].value);
		p += CKT_GRAPH_ATTRIBUTE_BYTES;
	}
	return ckt_put_opaque(p, k->params, (uint32_t)k->param_bytes);
}

static uint8_t *put_side(uint8_t *p, CUmemorytype type, const void *host, CUdeviceptr device,
	size_t x, size_t y, size_t z, size_t pitch, size_t height)
{
	p = ckt_put_u32(p, type);
	p = ckt_put_u64(p, type == CU_MEMORYTYPE_HOST ? ckt_handle_id(host) : device);
	p = ckt_put_u64(p, x);
	p = ckt_put_u64(p, y);
	p = ckt_put_u64(p, z);
	p = ckt_put_u64(p, pitch);
	return ckt_put_u64(p, height);
}

static uint8_t *put_array_side(uint8_t *p, CUarray handle, size_t x, size_t y, size_t z)
{
	/* If the array is gone, the worker does not know it either. */
	const struct ckt_array *array = ckt_client_array_find(handle);
	return put_side(p, CU_MEMORYTYPE_ARRAY, NULL, array ? array->wire : 0, x, y, z, 0,
		array ? array->level : 0);
}

static uint8_t *put_copy(uint8_t *p, const CUDA_MEMCPY3D *c)
{
	p = c->srcMemoryType == CU_MEMORYTYPE_ARRAY
		? put_array_side(p, c->srcArray, c->srcXInBytes, c->srcY, c->srcZ)
		: put_side(p, c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes, c->srcY,
			  c->srcZ, c->srcPitch, c->srcHeight);
	p = c->dstMemoryType == CU_MEMORYTYPE_ARRAY
		? put_array_side(p, c->dstArray, c->dstXInBytes, c->dstY, c->dstZ)
		: put_side(p, c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes, c->dstY,
			  c->dstZ, c->dstPitch, c->dstHeight);
	p = ckt_put_u64(p, c->WidthInBytes);
	p = ckt_put_u64(p, c->Height);
	return ckt_put_u64(p, c->Depth);
}

static uint8_t *put_conditional(uint8_t *p, const struct ckt_conditional_node *c)
{
	p = ckt_put_u64(p, c->handle);
	p = ckt_put_u64(p, ckt_call_id(c->context));
	p = ckt_put_u32(p, c->value);
	p = ckt_put_u32(p, c->flags);
	p = ckt_put_u32(p, c->up);
	p = ckt_put_u32(p, c->type);
	p = ckt_put_u32(p, c->count);
	for (unsigned i = 0; i < c->count; i++)
		p = ckt_client_graph_wire_put(p, c->bodies[i]);
	return p;
}

static uint8_t *put_record(uint8_t *p, const struct ckt_node *node)
{
	switch (node->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return put_kernel(p, &node->kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return put_copy(p, &node->copy);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		p = ckt_put_u64(p, node->fill.dst);
		p = ckt_put_u64(p, node->fill.pitch);
		p = ckt_put_u32(p, node->fill.value);
		p = ckt_put_u32(p, node->fill.elementSize);
		p = ckt_put_u64(p, node->fill.width);
		return ckt_put_u64(p, node->fill.height);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return node->child->call ? ckt_put_u64(p, ckt_graph_call_id(node->child))
					 : ckt_client_graph_wire_put(p, node->child);
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return put_conditional(p, &node->conditional);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		atomic_store(&ckt_client_event_graphs_record, true);
		return ckt_put_u64(p, ckt_handle_id(node->event));
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return ckt_put_u64(p, ckt_handle_id(node->event));
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		return ckt_put_u64(ckt_put_u64(p, ckt_graph_block_address(node->memory.block)),
			node->memory.size);
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return ckt_put_u64(p, ckt_graph_block_address(node->memory.block));
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return ckt_client_memop_wire_put(
			ckt_put_u32(p, node->memop.flags), node->memop.ops, node->memop.count);
	default:
		return p;
	}
}

uint8_t *ckt_client_node_wire_put(uint8_t *p, const struct ckt_node *node)
{
	/*
	 * A copied node has no handle in the program.  The program names it by the handle of the
	 * original, so the worker gets that id.
	 */
	p = ckt_put_u64(p, node->object.id ? node->object.id : node->origin);
	bool is_call = node->type == CU_GRAPH_NODE_TYPE_GRAPH && node->child->call;
	p = ckt_put_u32(p, is_call ? (uint32_t)CKT_GRAPH_NODE_LIBRARY : node->type);
	p = ckt_put_u64(p, ckt_call_id(node->context));
	return put_record(ckt_put_u32(p, (uint32_t)record_size(node)), node);
}

uint8_t *ckt_client_graph_wire_put(uint8_t *p, const struct ckt_graph *graph)
{
	uint32_t edges = 0;
	p = ckt_put_u32(p, (uint32_t)graph->count);
	for (size_t i = 0; i < graph->count; i++) {
		graph->nodes[i]->index = (uint32_t)i;
		edges += (uint32_t)graph->nodes[i]->in.count;
		p = ckt_client_node_wire_put(p, graph->nodes[i]);
	}
	p = ckt_put_u32(p, edges);
	for (size_t i = 0; i < graph->count; i++)
		for (size_t k = 0; k < graph->nodes[i]->in.count; k++) {
			const struct ckt_edge *edge = &graph->nodes[i]->in.list[k];
			p = ckt_put_u32(p, edge->node->index);
			p = ckt_put_u32(p, (uint32_t)i);
			p = ckt_put_u32(p,
				(uint32_t)edge->data.from_port << 16 |
					(uint32_t)edge->data.to_port << 8 | edge->data.type);
		}
	return p;
}

CUresult ckt_client_graph_send(const struct ckt_graph *graph, uint64_t id)
{
	size_t size = ckt_client_graph_wire_size(graph);
	if (size > CKT_GRAPH_BYTES_MAX || graph->count > CKT_GRAPH_NODES_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	uint8_t *data = malloc(size);
	if (!data)
		return CUDA_ERROR_OUT_OF_MEMORY;
	ckt_client_graph_wire_put(data, graph);
	CUresult result = CUDA_SUCCESS;
	for (size_t at = 0; at < size && !result; at += CKT_DATA_MAX) {
		size_t piece = size - at < CKT_DATA_MAX ? size - at : CKT_DATA_MAX;
		result = CKT_BATCHED(graph_data, GRAPH_DATA, .graph = id, .total = size,
			.offset = at, .data = data + at, .data_len = (uint32_t)piece);
	}
	free(data);
	return result;
}
