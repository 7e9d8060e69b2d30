/* SPDX-License-Identifier: Apache-2.0 */
/* cudacommon/graph.c: graphs are made, copied and asked about here; nothing of them travels. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "graphs.h"

/* a before b, and c beside them. */
static CUgraph three(CUgraphNode nodes[3])
{
	CUgraph graph = NULL;
	MUST(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
	for (int i = 0; i < 3; i++)
		MUST(cuGraphAddEmptyNode(&nodes[i], graph, i == 1 ? &nodes[0] : NULL, i == 1),
			CUDA_SUCCESS);
	return graph;
}

static void test_lists(void)
{
	CUgraphNode made[3], nodes[5], to[5];
	CUgraphNodeType type;
	relay_mark();
	CUgraph graph = three(made);
	relay_settle();
	IS(relay_waited + relay_batched, 0);
	size_t count = 77;
	LOCAL(cuGraphGetNodes(graph, NULL, &count), CUDA_SUCCESS);
	IS(count, 3);
	count = 2; /* as many as asked for */
	LOCAL(cuGraphGetNodes(graph, nodes, &count), CUDA_SUCCESS);
	YES(count == 2 && nodes[0] == made[0] && nodes[1] == made[1]);
	count = 5;
	LOCAL(cuGraphGetNodes(graph, nodes, &count), CUDA_SUCCESS);
	YES(count == 3 && nodes[2] == made[2] && !nodes[3] && !nodes[4]);
	count = 5;
	LOCAL(cuGraphGetRootNodes(graph, nodes, &count), CUDA_SUCCESS);
	YES(count == 2 && nodes[0] == made[0] && nodes[1] == made[2]);
	count = 5;
	LOCAL(cuGraphGetEdges(graph, nodes, to, NULL, &count), CUDA_SUCCESS);
	YES(count == 1 && nodes[0] == made[0] && to[0] == made[1] && !nodes[1]);
	LOCAL(cuGraphGetEdges(graph, nodes, NULL, NULL, &count), BAD);
	count = 5;
	LOCAL(cuGraphNodeGetDependencies(made[1], nodes, NULL, &count), CUDA_SUCCESS);
	YES(count == 1 && nodes[0] == made[0]);
	count = 5;
	LOCAL(cuGraphNodeGetDependentNodes(made[0], nodes, NULL, &count), CUDA_SUCCESS);
	YES(count == 1 && nodes[0] == made[1]);
	LOCAL(cuGraphNodeGetType(made[0], &type), CUDA_SUCCESS);
	IS(type, CU_GRAPH_NODE_TYPE_EMPTY);
	LOCAL(cuGraphNodeGetType(made[0], NULL), BAD);
	LOCAL(cuGraphGetNodes(graph, nodes, NULL), BAD);
	LOCAL(cuGraphGetNodes((CUgraph)0x1234, nodes, &count), BAD);
	LOCAL(cuGraphNodeGetDependencies((CUgraphNode)0x1234, nodes, NULL, &count), BAD);
	LOCAL(cuGraphDestroy(graph), CUDA_SUCCESS);
	LOCAL(cuGraphDestroy(graph), BAD);
	LOCAL(cuGraphNodeGetType(made[0], &type), BAD);
	LOCAL(cuGraphCreate(&graph, 1), BAD);
	LOCAL(cuGraphCreate(NULL, 0), BAD);
}

static void test_edges(void)
{
	CUgraphNode n[3], other[3], stranger = NULL;
	CUgraph graph = three(n), second = three(other);
	size_t count = 0;
	const struct {
		CUgraphNode from, to;
		/* There already, to itself, of another graph, to none. */
	} wrong[] = {{n[0], n[1]}, {n[2], n[2]}, {n[0], other[1]}, {n[0], stranger}};
	for (size_t i = 0; i < COUNT(wrong); i++)
		LOCAL(cuGraphAddDependencies(graph, &wrong[i].from, &wrong[i].to, NULL, 1), BAD);
	/* All or none. */
	const CUgraphNode from[] = {n[1], n[1]}, to[] = {n[2], n[2]}, to_two[] = {n[2], other[0]};
	LOCAL(cuGraphAddDependencies(graph, from, to, NULL, 2), BAD);
	LOCAL(cuGraphAddDependencies(graph, from, to_two, NULL, 2), BAD);
	IS(cuGraphGetEdges(graph, NULL, NULL, NULL, &count), CUDA_SUCCESS);
	IS(count, 1);
	LOCAL(cuGraphAddDependencies(graph, from, to, NULL, 1), CUDA_SUCCESS);
	LOCAL(cuGraphAddDependencies(graph, NULL, NULL, NULL, 0), CUDA_SUCCESS);
	LOCAL(cuGraphAddDependencies(graph, NULL, to, NULL, 1), BAD);
	/* the other way round */
	LOCAL(cuGraphRemoveDependencies(graph, to, from, NULL, 1), BAD);
	LOCAL(cuGraphRemoveDependencies(graph, from, to, NULL, 1), CUDA_SUCCESS);
	LOCAL(cuGraphRemoveDependencies(graph, from, to, NULL, 1), BAD);
	/* A node goes with its edges. */
	LOCAL(cuGraphDestroyNode(n[0]), CUDA_SUCCESS);
	LOCAL(cuGraphDestroyNode(n[0]), BAD);
	IS(cuGraphGetEdges(graph, NULL, NULL, NULL, &count), CUDA_SUCCESS);
	IS(count, 0);
	IS(cuGraphNodeGetDependencies(n[1], NULL, NULL, &count), CUDA_SUCCESS);
	IS(count, 0);
	IS(cuGraphDestroy(graph), CUDA_SUCCESS);
	IS(cuGraphDestroy(second), CUDA_SUCCESS);
}

static void test_clones(void)
{
	CUgraphNode n[3], found = NULL, nodes[3];
	CUgraph graph = three(n), clone, child;
	size_t count = 3;
	LOCAL(cuGraphClone(&clone, graph), CUDA_SUCCESS);
	LOCAL(cuGraphNodeFindInClone(&found, n[1], clone), CUDA_SUCCESS);
	YES(found && found != n[1]);
	IS(cuGraphNodeGetDependencies(found, nodes, NULL, &count), CUDA_SUCCESS);
	IS(count, 1);
	YES(nodes[0] != n[0]); /* the copy's own */
	LOCAL(cuGraphNodeFindInClone(&found, n[1], graph), BAD);
	LOCAL(cuGraphNodeFindInClone(NULL, n[1], clone), BAD);
	IS(cuGraphAddChildGraphNode(&found, graph, NULL, 0, clone), CUDA_SUCCESS);
	IS(cuGraphChildGraphNodeGetGraph(found, &child), CUDA_SUCCESS);
	LOCAL(cuGraphDestroy(child), BAD); /* it goes with its node */
	IS(cuGraphDestroy(clone), CUDA_SUCCESS);
	IS(cuGraphDestroy(graph), CUDA_SUCCESS);
	LOCAL(cuGraphClone(&clone, graph), BAD);
	LOCAL(cuGraphClone(NULL, graph), BAD);
}

static void test_drawing(void)
{
	CUgraphNode n[3];
	CUgraph graph = three(n);
	char path[] = "/tmp/ckt-graph-XXXXXX", text[64] = "";
	int fd = mkstemp(path);
	MUST(fd >= 0, true);
	IS(cuGraphDebugDotPrint(graph, path, 0), CUDA_SUCCESS);
	YES(read(fd, text, sizeof text - 1) > 0);
	HAS(text, "digraph");
	close(fd);
	unlink(path);
	LOCAL(cuGraphDebugDotPrint(graph, NULL, 0), BAD);
	LOCAL(cuGraphDebugDotPrint((CUgraph)0x1234, path, 0), BAD);
	IS(cuGraphDebugDotPrint(graph, "/nowhere/at/all", 0), CUDA_ERROR_OPERATING_SYSTEM);
	IS(cuGraphDestroy(graph), CUDA_SUCCESS);
}

UNIT_SUITE(graph, {"lists", test_lists}, {"edges", test_edges}, {"clones", test_clones},
	{"drawing", test_drawing})
