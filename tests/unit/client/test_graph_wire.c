/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/graph/graph_wire.c: a graph's description as it travels: counts, kinds and edges as
 * rpc/graph.h has them, in pieces where it is large.
 */
#include <stdlib.h>

#include "graphs.h"
#include "rpc/gen/cuda_codec.h"
#include "rpc/graph.h"

static void test_bytes(void)
{
	CUgraph graph;
	CUdeviceptr memory = memory_of(4096, 0);
	IS(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
	CUgraphNode a = add_fill(graph, NULL, memory + 16, 0x0a0b0c0d);
	add_fill(graph, a, memory, 2);
	relay_mark();
	CUgraphExec exec = instantiate(graph);
	relay_settle();
	size_t size;
	struct ckt_graph_data_args data;
	const uint8_t *bytes = relay_args("graph_data", &size);
	CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
	struct ckt_cursor c = {.p = bytes, .end = bytes + size};
	MUST(ckt_graph_data_args_get(&c, &data), true);
	IS(data.offset, 0);
	IS(data.total, data.data_len);
	c = (struct ckt_cursor){.p = data.data, .end = data.data + data.data_len};
	uint32_t record;
	IS(ckt_get_u32(&c), 2);
	for (int i = 0; i < 2; i++) {
		ckt_get_u64(&c);
		IS(ckt_get_u32(&c), CU_GRAPH_NODE_TYPE_MEMSET);
		IS(ckt_get_u64(&c), (uintptr_t)primary);
		const uint8_t *p = ckt_get_opaque(&c, 100, &record);
		IS(record, 40);
		struct ckt_cursor r = {.p = p, .end = p + record};
		IS(ckt_get_u64(&r), i ? memory : memory + 16);
		ckt_get_u64(&r);
		IS(ckt_get_u32(&r), i ? 2 : 0x0a0b0c0d);
		IS(ckt_get_u32(&r), 4);
	}
	IS(ckt_get_u32(&c), 1);
	IS(ckt_get_u32(&c), 0);
	IS(ckt_get_u32(&c), 1);
	IS(ckt_get_u32(&c), 0);
	YES(ckt_cursor_done(&c));
	IS(cuGraphExecDestroy(exec), CUDA_SUCCESS);
	/* More than a record holds: in pieces. */
	for (unsigned i = 0; i < 20000; i++)
		a = add_fill(graph, a, memory, i);
	relay_mark();
	exec = instantiate(graph);
	relay_settle();
	YES(relay_count("graph_data") > 1);
	IS(cuGraphLaunch(exec, NULL), CUDA_SUCCESS);
	IS(word_at(memory), 19999);
	IS(cuGraphExecDestroy(exec), CUDA_SUCCESS);
	IS(cuGraphDestroy(graph), CUDA_SUCCESS);
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

UNIT_SUITE(graph_wire, {"bytes", test_bytes})
