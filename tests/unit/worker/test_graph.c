/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptions of graphs: what is one comes back byte for byte, and nothing else is taken, however
 * it is cut or changed.
 */
#include <CUnit/Basic.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/graph.h"
#include "server/worker/graph/graph.h"
#include "server/worker/graph/graph_record.h"
#include "server/worker/objects/memop.h"

static uint8_t *put_node(
	uint8_t *p, uint64_t id, uint32_t type, const uint8_t *record, uint32_t size)
{
	p = ckt_put_u64(p, id);
	p = ckt_put_u32(p, type);
	p = ckt_put_u64(p, 1);
	return ckt_put_opaque(p, record, size);
}

/* One operation. */
static uint8_t *put_op(uint8_t *p, uint32_t type, uint32_t flags)
{
	p = ckt_put_u32(ckt_put_u32(p, type), flags);
	return ckt_put_u64(ckt_put_u64(p, 0x1000), 7);
}

/* A graph with memory, a memset, memory operations and a child, in a row. */
static size_t make(uint8_t *data)
{
	uint8_t record[128], child[64], *r, *p = ckt_put_u32(data, 4);
	r = ckt_put_u64(ckt_put_u64(record, 0x2000), 4096);
	p = put_node(p, 10, CU_GRAPH_NODE_TYPE_MEM_ALLOC, record, (uint32_t)(r - record));
	r = ckt_put_u32(ckt_put_u32(ckt_put_u64(ckt_put_u64(record, 0x2000), 0), 5), 4);
	r = ckt_put_u64(ckt_put_u64(r, 16), 1);
	p = put_node(p, 11, CU_GRAPH_NODE_TYPE_MEMSET, record, (uint32_t)(r - record));
	r = put_op(put_op(ckt_put_u32(record, 0), CU_STREAM_MEM_OP_WRITE_VALUE_32, 0),
		CU_STREAM_MEM_OP_BARRIER, 1);
	p = put_node(p, 12, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, record, (uint32_t)(r - record));
	r = ckt_put_u32(put_node(ckt_put_u32(child, 1), 20, CU_GRAPH_NODE_TYPE_EMPTY, NULL, 0), 0);
	p = put_node(p, 13, CU_GRAPH_NODE_TYPE_GRAPH, child, (uint32_t)(r - child));
	p = ckt_put_u32(p, 2);
	p = ckt_put_u32(ckt_put_u32(ckt_put_u32(p, 0), 1), 0);
	p = ckt_put_u32(ckt_put_u32(ckt_put_u32(p, 1), 3), 0x010001);
	return (size_t)(p - data);
}

/* In memory of exactly that size, so that a byte too far is found by a sanitizer. */
static struct ckt_worker_graph *decode(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size + !size);
	memcpy(copy, data, size);
	struct ckt_worker_graph *graph = ckt_worker_graph_decode(copy, size);
	free(copy);
	return graph;
}

/* What the worker asks of every node. */
static CUresult look(struct ckt_worker_graph_node *node, void *data)
{
	struct ckt_worker_graph_copy copy;
	struct ckt_worker_graph_kernel kernel;
	struct ckt_worker_graph_fill fill;
	uint64_t event;
	unsigned *looked = data;
	++*looked;
	if (node->graph_count)
		return CUDA_SUCCESS;
	ckt_worker_graph_copy_get(node, &copy);
	ckt_worker_graph_kernel_get(node, &kernel);
	ckt_worker_graph_fill_get(node, &fill);
	ckt_worker_graph_event_get(node, &event);
	return CUDA_SUCCESS;
}

static void test_round_trip(void)
{
	uint8_t data[1024], again[1024];
	size_t size = make(data);
	unsigned looked = 0;
	struct ckt_worker_graph *graph = decode(data, size);
	CU_ASSERT_PTR_NOT_NULL_FATAL(graph);
	CU_ASSERT_EQUAL(graph->node_count, 4);
	CU_ASSERT_EQUAL(graph->edge_count, 2);
	CU_ASSERT_EQUAL(ckt_worker_graph_encoded_size(graph), size);
	CU_ASSERT_PTR_EQUAL(ckt_worker_graph_encode(again, graph), again + size);
	CU_ASSERT_EQUAL(memcmp(data, again, size), 0);
	CU_ASSERT_PTR_NOT_NULL(ckt_worker_graph_find(graph, 20));
	CU_ASSERT_PTR_NULL(ckt_worker_graph_find(graph, 21));
	ckt_worker_graph_each(graph, look, &looked);
	CU_ASSERT_EQUAL(looked, 5);
	ckt_worker_graph_free(graph);
}

static void test_cut(void)
{
	uint8_t data[1024];
	size_t size = make(data);
	for (size_t n = 0; n < size; n++) {
		struct ckt_worker_graph *graph = decode(data, n);
		CU_ASSERT_PTR_NULL(graph);
		ckt_worker_graph_free(graph);
	}
	/* Nor with something behind it. */
	memset(data + size, 0, 4);
	CU_ASSERT_PTR_NULL(decode(data, size + 4));
}

static void test_changed(void)
{
	static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
	uint8_t data[1024];
	size_t size = make(data);
	unsigned looked = 0;
	for (size_t i = 0; i < size; i++)
		for (unsigned v = 0; v < sizeof values; v++) {
			uint8_t before = data[i];
			data[i] = values[v];
			struct ckt_worker_graph *graph = decode(data, size);
			if (graph) {
				for (uint32_t e = 0; e < graph->edge_count; e++)
					CU_ASSERT_TRUE(graph->edges[e].from < graph->node_count &&
						graph->edges[e].to < graph->node_count);
				ckt_worker_graph_each(graph, look, &looked);
			}
			ckt_worker_graph_free(graph);
			data[i] = before;
		}
	CU_ASSERT_TRUE(looked > 0);
}

/* Graphs in graphs, without an end. */
static void test_deep(void)
{
	static uint8_t data[4096], inner[4096];
	size_t size = (size_t)(ckt_put_u32(ckt_put_u32(inner, 0), 0) - inner);
	for (unsigned depth = 1; depth < 2 * CKT_GRAPH_DEPTH_MAX; depth++) {
		uint8_t *p = put_node(ckt_put_u32(data, 1), depth, CU_GRAPH_NODE_TYPE_GRAPH, inner,
			(uint32_t)size);
		size = (size_t)(ckt_put_u32(p, 0) - data);
		memcpy(inner, data, size);
		struct ckt_worker_graph *graph = decode(data, size);
		CU_ASSERT_EQUAL(graph != NULL, depth < CKT_GRAPH_DEPTH_MAX);
		ckt_worker_graph_free(graph);
	}
}

static void test_operations(void)
{
	static uint8_t data[(CKT_MEMOPS_MAX + 1) * CKT_MEMOP_BYTES];
	CUstreamBatchMemOpParams ops[CKT_MEMOPS_MAX];
	unsigned count = 77;
	for (unsigned i = 0; i <= CKT_MEMOPS_MAX; i++)
		put_op(data + i * CKT_MEMOP_BYTES, CU_STREAM_MEM_OP_WAIT_VALUE_64, 1);
	CU_ASSERT_FALSE(ckt_memops_decode(data, 0, ops, &count));
	CU_ASSERT_FALSE(ckt_memops_decode(data, CKT_MEMOP_BYTES - 4, ops, &count));
	CU_ASSERT_FALSE(ckt_memops_decode(data, sizeof data, ops, &count));
	CU_ASSERT_EQUAL(count, 77);
	CU_ASSERT_TRUE(ckt_memops_decode(data, sizeof data - CKT_MEMOP_BYTES, ops, &count));
	CU_ASSERT_EQUAL(count, CKT_MEMOPS_MAX);
	CU_ASSERT_EQUAL(ops[255].waitValue.address, 0x1000);
	CU_ASSERT_EQUAL(ops[255].waitValue.value64, 7);
	CU_ASSERT_EQUAL(ops[255].waitValue.flags, 1);
	put_op(data, CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES, 0);
	CU_ASSERT_FALSE(ckt_memops_decode(data, CKT_MEMOP_BYTES, ops, &count));
	put_op(data, 99, 0);
	CU_ASSERT_FALSE(ckt_memops_decode(data, CKT_MEMOP_BYTES, ops, &count));
}

int main(void)
{
	CU_initialize_registry();
	CU_pSuite suite = CU_add_suite("graph", NULL, NULL);
	CU_add_test(suite, "there and back", test_round_trip);
	CU_add_test(suite, "cut", test_cut);
	CU_add_test(suite, "changed", test_changed);
	CU_add_test(suite, "deep", test_deep);
	CU_add_test(suite, "memory operations", test_operations);
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures ? 1 : 0;
}
