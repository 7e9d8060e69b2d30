/* Descriptions of graphs: from bytes and to bytes; see rpc/graph.h. */
#include <stdlib.h>
#include <string.h>

#include "rpc/graph.h"
#include "server/worker/driver.h"
#include "server/worker/graph.h"

static struct ckt_graph *decode(struct ckt_cursor *c, unsigned depth);

void ckt_graph_node_fini(struct ckt_graph_node *node)
{
	free(node->record);
	ckt_graph_free(node->child);
	node->record = NULL;
	node->child = NULL;
}

void ckt_graph_free(struct ckt_graph *graph)
{
	if (!graph)
		return;
	if (graph->real)
		ckt_driver.cuGraphDestroy(graph->real);
	for (uint32_t i = 0; i < graph->node_count; i++)
		ckt_graph_node_fini(&graph->nodes[i]);
	free(graph->nodes);
	free(graph->edges);
	free(graph);
}

bool ckt_graph_node_decode(struct ckt_cursor *c, unsigned depth, struct ckt_graph_node *ret_node)
{
	struct ckt_graph_node node = {.id = ckt_get_u64(c), .type = ckt_get_u32(c), .context = ckt_get_u64(c)};
	uint32_t size;
	const uint8_t *record = ckt_get_opaque(c, CKT_GRAPH_BYTES_MAX, &size);
	if (!record)
		return false;
	if (node.type == CU_GRAPH_NODE_TYPE_GRAPH) {
		struct ckt_cursor inner = {.p = record, .end = record + size};
		node.child = decode(&inner, depth + 1);
		if (!node.child || !ckt_cursor_done(&inner)) {
			ckt_graph_free(node.child);
			return false;
		}
	} else {
		node.record = malloc(size + 1);
		if (!node.record)
			return false;
		memcpy(node.record, record, size);
		node.record_bytes = size;
	}
	*ret_node = node;
	return true;
}

static struct ckt_graph *decode(struct ckt_cursor *c, unsigned depth)
{
	enum { NODE_BYTES_MIN = 24, EDGE_BYTES = 12 };
	struct ckt_graph *graph = depth < CKT_GRAPH_DEPTH_MAX ? calloc(1, sizeof *graph) : NULL;
	if (!graph)
		return NULL;
	uint32_t count = ckt_get_u32(c);
	/* Not more than the bytes can hold, so that a number alone cannot take our memory. */
	if (c->bad || count > CKT_GRAPH_NODES_MAX || count > (size_t)(c->end - c->p) / NODE_BYTES_MIN)
		goto bad;
	graph->nodes = calloc(count + 1, sizeof *graph->nodes);
	while (graph->nodes && graph->node_count < count) {
		if (!ckt_graph_node_decode(c, depth, &graph->nodes[graph->node_count]))
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
		struct ckt_graph_edge *edge = &graph->edges[graph->edge_count];
		*edge = (struct ckt_graph_edge){.from = ckt_get_u32(c), .to = ckt_get_u32(c), .data = ckt_get_u32(c)};
		if (c->bad || edge->from >= count || edge->to >= count)
			goto bad;
	}
	return graph;
bad:
	ckt_graph_free(graph);
	return NULL;
}

struct ckt_graph *ckt_graph_decode(const uint8_t *data, size_t size)
{
	struct ckt_cursor c = {.p = data, .end = data + size};
	struct ckt_graph *graph = decode(&c, 0);
	if (graph && !ckt_cursor_done(&c)) {
		ckt_graph_free(graph);
		return NULL;
	}
	return graph;
}

static size_t record_size(const struct ckt_graph_node *node)
{
	return node->child ? ckt_graph_encoded_size(node->child) : node->record_bytes;
}

size_t ckt_graph_encoded_size(const struct ckt_graph *graph)
{
	size_t size = 8 + 12 * (size_t)graph->edge_count;
	for (uint32_t i = 0; i < graph->node_count; i++)
		size += 24 + ckt_padded(record_size(&graph->nodes[i]));
	return size;
}

uint8_t *ckt_graph_encode(uint8_t *p, const struct ckt_graph *graph)
{
	p = ckt_put_u32(p, graph->node_count);
	for (uint32_t i = 0; i < graph->node_count; i++) {
		const struct ckt_graph_node *node = &graph->nodes[i];
		p = ckt_put_u64(p, node->id);
		p = ckt_put_u32(p, node->type);
		p = ckt_put_u64(p, node->context);
		if (node->child)
			p = ckt_graph_encode(ckt_put_u32(p, (uint32_t)record_size(node)), node->child);
		else
			p = ckt_put_opaque(p, node->record, node->record_bytes);
	}
	p = ckt_put_u32(p, graph->edge_count);
	for (uint32_t i = 0; i < graph->edge_count; i++) {
		p = ckt_put_u32(p, graph->edges[i].from);
		p = ckt_put_u32(p, graph->edges[i].to);
		p = ckt_put_u32(p, graph->edges[i].data);
	}
	return p;
}

CUresult ckt_graph_each(struct ckt_graph *graph, CUresult (*visit)(struct ckt_graph_node *node, void *data), void *data)
{
	CUresult result = CUDA_SUCCESS;
	for (uint32_t i = 0; i < graph->node_count && !result; i++) {
		result = visit(&graph->nodes[i], data);
		if (!result && graph->nodes[i].child)
			result = ckt_graph_each(graph->nodes[i].child, visit, data);
	}
	return result;
}

struct ckt_graph_node *ckt_graph_find(struct ckt_graph *graph, uint64_t id)
{
	for (uint32_t i = 0; i < graph->node_count; i++) {
		if (graph->nodes[i].id == id)
			return &graph->nodes[i];
		struct ckt_graph_node *inner = graph->nodes[i].child ? ckt_graph_find(graph->nodes[i].child, id) : NULL;
		if (inner)
			return inner;
	}
	return NULL;
}
