/* SPDX-License-Identifier: Apache-2.0 */
/* client/cudart/graph_node.c: nodes of graphs. */
#include "files.h"

static void test_nodes(void)
{
	cudaGraph_t graph, child;
	cudaGraphNode_t a, b, c, found[3];
	enum cudaGraphNodeType type;
	size_t count;
	uint32_t *memory = files_memory(4, 0);
	struct cudaMemsetParams fill = {
		.dst = memory, .value = 5, .elementSize = 4, .width = 4, .height = 1};
	MUST(cudaGraphCreate(&graph, 0), OK);
	MUST(cudaGraphAddMemsetNode(&a, graph, NULL, 0, &fill), OK);
	MUST(cudaGraphAddEmptyNode(&b, graph, &a, 1), OK);
	IS(cudaGraphNodeGetType(a, &type), OK);
	IS(type, cudaGraphNodeTypeMemset);
	count = 3;
	IS(cudaGraphNodeGetDependencies(b, found, NULL, &count), OK);
	YES(count == 1 && found[0] == a);
	IS(cudaGraphClone(&child, graph), OK);
	IS(cudaGraphAddChildGraphNode(&c, graph, &b, 1, child), OK);
	IS(cudaGraphRemoveDependencies(graph, &a, &b, NULL, 1), OK);
	count = 3;
	IS(cudaGraphGetRootNodes(graph, found, &count), OK);
	IS(count, 2);
	IS(cudaGraphDestroyNode(c), OK);
	IS(cudaGraphDestroy(child), OK);
	IS(cudaGraphDestroy(graph), OK);
	IS(cudaFree(memory), OK);
	cudaGetLastError();
}

UNIT_SUITE(graph_node, {"nodes", test_nodes})
