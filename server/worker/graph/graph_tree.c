/* SPDX-License-Identifier: Apache-2.0 */
/* Converts descriptions of graphs from and to bytes; see rpc/graph.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/graph.h"
#include "server/worker/session/host_budget.h"
#include "server/worker/driver.h"
#include "server/worker/graph/graph.h"

static struct ckt_worker_graph *decode(struct ckt_cursor *c, unsigned depth);

void ckt_worker_graph_node_fini(struct ckt_worker_graph_node *node)
{
	free(node->record);
	for (uint32_t i = 0; i < node->graph_count; i++)
		ckt_worker_graph_free(node->graphs[i]);
	free(node->graphs);
	node->record = NULL;
	node->graphs = NULL;
	node->graph_count = 0;
}

void ckt_worker_graph_free(struct ckt_worker_graph *graph)
{
	if (!graph)
		return;
	if (graph->real)
		ckt_driver.cuGraphDestroy(graph->real);
	for (uint32_t i = 0; i < graph->node_count; i++)
		ckt_worker_graph_node_fini(&graph->nodes[i]);
	ckt_budget_uncharge(graph->charged);
	free(graph->nodes);
	free(graph->edges);
	free(graph);
}

static bool decode_record(struct ckt_worker_graph_node *node, const uint8_t *record, uint32_t size)
{
	node->record = malloc(size + 1);
	if (!node->record)
		return false;
	memcpy(node->record, record, size);
	node->record_bytes = size;
	return true;
}

static bool decode_graphs(
	struct ckt_worker_graph_node *node, struct ckt_cursor *c, uint32_t count, unsigned depth)
{
	enum { GRAPH_BYTES_MIN = 8 };
	if (c->bad || count > CKT_GRAPH_BODIES_MAX ||
		count > (size_t)(c->end - c->p) / GRAPH_BYTES_MIN)
		return false;
	node->graphs = calloc(count + 1, sizeof(struct ckt_worker_graph *));
	while (node->graphs && node->graph_count < count) {
		node->graphs[node->graph_count] = decode(c, depth + 1);
		if (!node->graphs[node->graph_count])
			return false;
		node->graph_count++;
	}
	return node->graphs && ckt_cursor_done(c);
}

/* The bodies of a conditional node follow its record, whose last word gives their number. */
static bool decode_conditional(
	struct ckt_worker_graph_node *node, const uint8_t *record, uint32_t size, unsigned depth)
{
	struct ckt_cursor inner = {
		.p = record + CKT_GRAPH_CONDITIONAL_BYTES - 4, .end = record + size};
	return size >= CKT_GRAPH_CONDITIONAL_BYTES &&
		decode_record(node, record, CKT_GRAPH_CONDITIONAL_BYTES) &&
		decode_graphs(node, &inner, ckt_get_u32(&inner), depth);
}

bool ckt_worker_graph_node_decode(
	struct ckt_cursor *c, unsigned depth, struct ckt_worker_graph_node *ret_node)
{
	struct ckt_worker_graph_node node = {
		.id = ckt_get_u64(c), .type = ckt_get_u32(c), .context = ckt_get_u64(c)};
	uint32_t size;
	const uint8_t *record = ckt_get_opaque(c, CKT_GRAPH_BYTES_MAX, &size);
	if (!record)
		return false;
	struct ckt_cursor inner = {.p = record, .end = record + size};
	bool good = node.type == CU_GRAPH_NODE_TYPE_GRAPH ? decode_graphs(&node, &inner, 1, depth)
		: node.type == CU_GRAPH_NODE_TYPE_CONDITIONAL
		? decode_conditional(&node, record, size, depth)
		: decode_record(&node, record, size);
	if (!good) {
		ckt_worker_graph_node_fini(&node);
		return false;
	}
	*ret_node = node;
	return true;
}

static struct ckt_worker_graph *decode(struct ckt_cursor *c, unsigned depth)
{
	enum { NODE_BYTES_MIN = 24, EDGE_BYTES = 12 };
	struct ckt_worker_graph *graph =
		depth < CKT_GRAPH_DEPTH_MAX ? calloc(1, sizeof *graph) : NULL;
	if (!graph)
		return NULL;
	uint32_t count = ckt_get_u32(c);
	/*
	 * Limit the count by what the bytes can hold, so that a number alone cannot exhaust memory.
	 */
	if (c->bad || count > CKT_GRAPH_NODES_MAX ||
		count > (size_t)(c->end - c->p) / NODE_BYTES_MIN)
		goto bad;
	graph->nodes = calloc(count + 1, sizeof *graph->nodes);
	while (graph->nodes && graph->node_count < count) {
		if (!ckt_worker_graph_node_decode(c, depth, &graph->nodes[graph->node_count]))
			goto bad;
		graph->node_count++;
	}
	uint32_t edges = ckt_get_u32(c);
	if (c->bad || edges > (size_t)(c->end - c->p) / EDGE_BYTES)
		goto bad;
	graph->edges = calloc(edges + 1, sizeof *graph->edges);
	if (!graph->nodes || !graph->edges)
		goto bad;
	for (; graph->edge_count < edges; graph->edge_count++) {
		struct ckt_worker_graph_edge *edge = &graph->edges[graph->edge_count];
		*edge = (struct ckt_worker_graph_edge){
			.from = ckt_get_u32(c), .to = ckt_get_u32(c), .data = ckt_get_u32(c)};
		if (c->bad || edge->from >= count || edge->to >= count)
			goto bad;
	}
	return graph;
bad:
	ckt_worker_graph_free(graph);
	return NULL;
}

struct ckt_worker_graph *ckt_worker_graph_decode(const uint8_t *data, size_t size)
{
	struct ckt_cursor c = {.p = data, .end = data + size};
	errno = 0;
	struct ckt_worker_graph *graph = decode(&c, 0);
	if (graph && !ckt_cursor_done(&c)) {
		ckt_worker_graph_free(graph);
		return NULL;
	}
	return graph;
}

static size_t record_size(const struct ckt_worker_graph_node *node)
{
	size_t size = node->record_bytes;
	for (uint32_t i = 0; i < node->graph_count; i++)
		size += ckt_worker_graph_encoded_size(node->graphs[i]);
	return size;
}

size_t ckt_worker_graph_encoded_size(const struct ckt_worker_graph *graph)
{
	size_t size = 8 + 12 * (size_t)graph->edge_count;
	for (uint32_t i = 0; i < graph->node_count; i++)
		size += 24 + ckt_padded(record_size(&graph->nodes[i]));
	return size;
}

uint8_t *ckt_worker_graph_encode(uint8_t *p, const struct ckt_worker_graph *graph)
{
	p = ckt_put_u32(p, graph->node_count);
	for (uint32_t i = 0; i < graph->node_count; i++) {
		const struct ckt_worker_graph_node *node = &graph->nodes[i];
		p = ckt_put_u64(p, node->id);
		p = ckt_put_u32(p, node->type);
		p = ckt_put_u64(p, node->context);
		if (!node->graph_count) {
			p = ckt_put_opaque(p, node->record, node->record_bytes);
			continue;
		}
		/* A record before child graphs is empty or consists of whole words. */
		p = ckt_put_u32(p, (uint32_t)record_size(node));
		if (node->record_bytes)
			memcpy(p, node->record, node->record_bytes);
		p += node->record_bytes;
		for (uint32_t k = 0; k < node->graph_count; k++)
			p = ckt_worker_graph_encode(p, node->graphs[k]);
	}
	p = ckt_put_u32(p, graph->edge_count);
	for (uint32_t i = 0; i < graph->edge_count; i++) {
		p = ckt_put_u32(p, graph->edges[i].from);
		p = ckt_put_u32(p, graph->edges[i].to);
		p = ckt_put_u32(p, graph->edges[i].data);
	}
	return p;
}

CUresult ckt_worker_graph_each(struct ckt_worker_graph *graph,
	CUresult (*visit)(struct ckt_worker_graph_node *node, void *data), void *data)
{
	CUresult result = CUDA_SUCCESS;
	for (uint32_t i = 0; i < graph->node_count && !result; i++) {
		result = visit(&graph->nodes[i], data);
		for (uint32_t k = 0; k < graph->nodes[i].graph_count && !result; k++)
			result = ckt_worker_graph_each(graph->nodes[i].graphs[k], visit, data);
	}
	return result;
}

struct ckt_worker_graph_node *ckt_worker_graph_find(struct ckt_worker_graph *graph, uint64_t id)
{
	for (uint32_t i = 0; i < graph->node_count; i++) {
		if (graph->nodes[i].id == id)
			return &graph->nodes[i];
		for (uint32_t k = 0; k < graph->nodes[i].graph_count; k++) {
			struct ckt_worker_graph_node *inner =
				ckt_worker_graph_find(graph->nodes[i].graphs[k], id);
			if (inner)
				return inner;
		}
	}
	return NULL;
}

static CUresult count_node(struct ckt_worker_graph_node *node, void *data)
{
	(void)node;
	++*(uint64_t *)data;
	return CUDA_SUCCESS;
}

bool ckt_worker_graph_charge(struct ckt_worker_graph *graph)
{
	/*
	 * An estimate for a node with the driver's part, in the graph and in the executable graph;
	 * generous, and measured only on NVIDIA's 580.
	 */
	enum { NODE_BYTES = 4096 };
	uint64_t nodes = 0, before = graph->charged;
	ckt_worker_graph_each(graph, count_node, &nodes);
	uint64_t now = nodes * NODE_BYTES + 2 * ckt_worker_graph_encoded_size(graph);
	if (now > before && !ckt_budget_charge(now - before, "graphs"))
		return false;
	if (now < before)
		ckt_budget_uncharge(before - now);
	graph->charged = now;
	return true;
}
