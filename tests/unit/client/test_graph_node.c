/* SPDX-License-Identifier: Apache-2.0 */
/* cudacommon/graph_node.c: nodes and what they depend on. */
#include "graphs.h"

static void test_nodes(void)
{
	CUgraph graph, child, copy;
	CUgraphExec exec;
	CUdeviceptr memory = memory_of(4096, 0);
	CUgraphNodeType type;
	CUgraphNode found[4], in_copy;
	size_t count;
	IS(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
	CUgraphNode a = add_fill(graph, NULL, memory, 1), b = add_fill(graph, a, memory, 2),
		    c = add_fill(graph, b, memory, 3), empty;
	LOCAL(cuGraphNodeGetType(a, &type), CUDA_SUCCESS);
	IS(type, CU_GRAPH_NODE_TYPE_MEMSET);
	count = 4;
	LOCAL(cuGraphNodeGetDependencies(b, found, NULL, &count), CUDA_SUCCESS);
	YES(count == 1 && found[0] == a);
	count = 4;
	LOCAL(cuGraphNodeGetDependentNodes(b, found, NULL, &count), CUDA_SUCCESS);
	YES(count == 1 && found[0] == c);
	/* A cycle is found when the graph is made ready to run. */
	LOCAL(cuGraphAddDependencies(graph, &c, &a, NULL, 1), CUDA_SUCCESS);
	YES(cuGraphInstantiate(&exec, graph, 0) != CUDA_SUCCESS);
	LOCAL(cuGraphRemoveDependencies(graph, &c, &a, NULL, 1), CUDA_SUCCESS);
	LOCAL(cuGraphAddDependencies(graph, &a, &a, NULL, 1), BAD);
	LOCAL(cuGraphAddDependencies(graph, &a, &b, NULL, 1), BAD); /* it is there */
	LOCAL(cuGraphRemoveDependencies(graph, &a, &b, NULL, 1), CUDA_SUCCESS);
	LOCAL(cuGraphRemoveDependencies(graph, &a, &b, NULL, 1), BAD);
	count = 4;
	LOCAL(cuGraphGetRootNodes(graph, found, &count), CUDA_SUCCESS);
	IS(count, 2);
	LOCAL(cuGraphClone(&copy, graph), CUDA_SUCCESS);
	LOCAL(cuGraphNodeFindInClone(&in_copy, b, copy), CUDA_SUCCESS);
	YES(in_copy != b);
	LOCAL(cuGraphDestroyNode(b), CUDA_SUCCESS);
	LOCAL(cuGraphNodeGetType(b, &type), BAD);
	LOCAL(cuGraphNodeGetType(in_copy, &type), CUDA_SUCCESS); /* the copy has its own */
	IS(cuGraphAddChildGraphNode(&empty, graph, NULL, 0, copy), CUDA_SUCCESS);
	LOCAL(cuGraphChildGraphNodeGetGraph(empty, &child), CUDA_SUCCESS);
	LOCAL(cuGraphChildGraphNodeGetGraph(a, &child), BAD);
	IS(cuGraphDestroy(copy), CUDA_SUCCESS);
	IS(cuGraphDestroy(graph), CUDA_SUCCESS);
	LOCAL(cuGraphNodeGetType(a, &type), BAD);
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

UNIT_SUITE(graph_node, {"nodes", test_nodes})
