/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server/worker/graph/graph_tree.c: descriptions of graphs as trees: what is found in them, and
 * what their bytes come to.
 */
#include <stdlib.h>
#include <string.h>

#include "rpc/graph.h"
#include "server/worker/graph/graph.h"
#include "tests/unit/suite.h"

/* A chain of `depth` graphs, each with an empty node before its child; ids count from `first`. */
static uint8_t *put_nested(uint8_t *p, unsigned depth, uint64_t first)
{
	p = ckt_put_u32(p, depth ? 2 : 1);
	p = ckt_put_u64(p, first);
	p = ckt_put_u32(p, CU_GRAPH_NODE_TYPE_EMPTY);
	p = ckt_put_u64(p, 1);
	p = ckt_put_opaque(p, "record", 6);
	if (depth) {
		p = ckt_put_u64(p, first + 1);
		p = ckt_put_u32(p, CU_GRAPH_NODE_TYPE_GRAPH);
		p = ckt_put_u64(p, 1);
		uint8_t *end = put_nested(p + 4, depth - 1, first + 10);
		ckt_put_u32(p, (uint32_t)(end - p - 4));
		p = end;
	}
	p = ckt_put_u32(p, depth ? 1 : 0);
	if (depth)
		p = ckt_put_u32(ckt_put_u32(ckt_put_u32(p, 0), 1), 0x10203);
	return p;
}

static CUresult visit(struct ckt_worker_graph_node *node, void *data)
{
	uint64_t *ids = data;
	ids[++ids[0]] = node->id;
	return node->id == 31 ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

static void test_tree(void)
{
	uint8_t bytes[2048], again[2048];
	size_t size = (size_t)(put_nested(bytes, 3, 1) - bytes);
	struct ckt_worker_graph *graph = ckt_worker_graph_decode(bytes, size);
	CU_ASSERT_PTR_NOT_NULL_FATAL(graph);
	IS(graph->node_count, 2);
	IS(graph->edges[0].data, 0x10203);
	IS(graph->nodes[0].record_bytes, 6);
	CU_ASSERT_PTR_NULL(graph->nodes[1].record);
	IS(ckt_worker_graph_encoded_size(graph), size);
	IS(ckt_worker_graph_encode(again, graph) - again, size);
	IS(memcmp(again, bytes, size), 0);
	/* In order, children behind their node, and no further than the first error. */
	uint64_t ids[16] = {0};
	ckt_worker_graph_find(graph, 31)->id = 32;
	IS(ckt_worker_graph_each(graph, visit, ids), CUDA_SUCCESS);
	static const uint64_t order[] = {7, 1, 2, 11, 12, 21, 22, 32};
	IS(memcmp(ids, order, sizeof order), 0);
	ckt_worker_graph_find(graph, 21)->id = 31;
	ids[0] = 0;
	IS(ckt_worker_graph_each(graph, visit, ids), CUDA_ERROR_NOT_FOUND);
	IS(ids[0], 5);
	CU_ASSERT_PTR_NULL(ckt_worker_graph_find(graph, 99));
	ckt_worker_graph_free(graph);
	ckt_worker_graph_free(NULL);
}

static void test_depth(void)
{
	static uint8_t bytes[8192];
	for (unsigned depth = CKT_GRAPH_DEPTH_MAX - 2; depth < CKT_GRAPH_DEPTH_MAX + 2; depth++) {
		struct ckt_worker_graph *graph = ckt_worker_graph_decode(
			bytes, (size_t)(put_nested(bytes, depth, 1) - bytes));
		IS(graph != NULL, depth < CKT_GRAPH_DEPTH_MAX);
		ckt_worker_graph_free(graph);
	}
}

/* Whatever is cut off or lies: no graph, and no memory left (the sanitizers look). */
static void test_lies(void)
{
	uint8_t bytes[512];
	size_t size = (size_t)(put_nested(bytes, 1, 1) - bytes);
	unsigned taken = 0;
	for (size_t cut = 0; cut < size; cut++) {
		uint8_t *copy = malloc(cut + !cut);
		memcpy(copy, bytes, cut);
		struct ckt_worker_graph *graph = ckt_worker_graph_decode(copy, cut);
		taken += graph != NULL;
		ckt_worker_graph_free(graph);
		free(copy);
	}
	IS(taken, 0);
	static const uint32_t counts[] = {
		3, 1000, CKT_GRAPH_NODES_MAX, CKT_GRAPH_NODES_MAX + 1, UINT32_MAX};
	for (size_t i = 0; i < COUNT(counts); i++) {
		put_nested(bytes, 1, 1);
		ckt_put_u32(bytes, counts[i]); /* nodes */
		CU_ASSERT_PTR_NULL(ckt_worker_graph_decode(bytes, size));
		put_nested(bytes, 1, 1);
		ckt_put_u32(bytes + size - 16, counts[i]); /* edges */
		CU_ASSERT_PTR_NULL(ckt_worker_graph_decode(bytes, size));
		put_nested(bytes, 1, 1);
		ckt_put_u32(bytes + size - 8, counts[i]); /* where one leads */
		CU_ASSERT_PTR_NULL(ckt_worker_graph_decode(bytes, size));
	}
}

static void test_node(void)
{
	uint8_t bytes[512];
	struct ckt_worker_graph_node node = {0};
	size_t size = (size_t)(put_nested(bytes, 0, 5) - bytes);
	struct ckt_cursor c = {.p = bytes + 4, .end = bytes + size};
	YES(ckt_worker_graph_node_decode(&c, 0, &node));
	IS(node.id, 5);
	IS(memcmp(node.record, "record", 6), 0);
	IS(c.end - c.p, 4);
	ckt_worker_graph_node_fini(&node);
	ckt_worker_graph_node_fini(&node);
	c = (struct ckt_cursor){.p = bytes + 4, .end = bytes + size - 8};
	NO(ckt_worker_graph_node_decode(&c, 0, &node));
}

UNIT_SUITE(graph_tree, {"tree", test_tree}, {"depth", test_depth}, {"lies", test_lies},
	{"node", test_node})
