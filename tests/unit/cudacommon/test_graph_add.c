/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudacommon/graph_add.c: every kind of node through the general function, and what is refused of
 * all.
 */
#include "../softgpu/files.h"

static void test_kinds(void)
{
	CUgraph graph, child;
	CUgraphNode node, list[2];
	CUevent event;
	test_context();
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphCreate(&child, 0));
	OK(cuEventCreate(&event, 0));
	CUgraphNodeParams empty = {.type = CU_GRAPH_NODE_TYPE_EMPTY},
			  record = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
				  .eventRecord = {.event = event}},
			  inner = {.type = CU_GRAPH_NODE_TYPE_GRAPH,
				  .graph = {.graph = child,
					  .ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE}},
			  none = {.type = (CUgraphNodeType)99},
			  conditional = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
	OK(cuGraphAddNode(&list[0], graph, NULL, NULL, 0, &empty));
	list[1] = list[0];
	CHECK_RESULT(cuGraphAddNode(&node, graph, list, NULL, 2, &empty), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphAddNode(&node, graph, NULL, NULL, 1, &empty), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphAddNode(&node, child, list, NULL, 1, &empty), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphAddNode(&node, graph, NULL, NULL, 0, &none), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphAddNode(&node, graph, NULL, NULL, 0, &conditional),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphAddNode(&node, graph, NULL, NULL, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	/* What the kind does not use of the union is zero, to its last byte. */
	CUgraphNodeParams soiled = {
		.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = {.event = event}};
	((char *)soiled.reserved1)[sizeof soiled.reserved1 - 1] = 1;
	CHECK_RESULT(
		cuGraphAddNode(&node, graph, list, NULL, 1, &soiled), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphAddNode(&node, graph, list, NULL, 1, &record));
	CHECK_RESULT(cuGraphNodeSetParams(node, &empty), CUDA_ERROR_INVALID_VALUE);
	record.eventRecord.event = NULL;
	CHECK_RESULT(cuGraphNodeSetParams(node, &record), CUDA_ERROR_INVALID_VALUE);
	/* The graph itself becomes the node's: it goes with it. */
	OK(cuGraphAddNode(&node, graph, NULL, NULL, 0, &inner));
	YES(inner.graph.graph == child);
	CHECK_RESULT(cuGraphDestroy(child), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphAddNode(&node, graph, NULL, NULL, 0, &inner), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphDestroy(graph));
	size_t count;
	CHECK_RESULT(cuGraphGetNodes(child, NULL, &count), CUDA_ERROR_INVALID_VALUE);
	OK(cuEventDestroy(event));
}

UNIT_SUITE(cudacommon / graph_add, {"kinds", test_kinds})
