/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cudart/graph.c: graphs by the driver's functions: edges with their data, executables, what
 * has another name in the runtime.
 */
#include "files.h"

static void test_structure(void)
{
	cudaGraph_t graph, clone;
	cudaGraphNode_t n[3], found, to[4], from[4];
	enum cudaGraphNodeType type;
	size_t count = 0;
	MUST(cudaGraphCreate(&graph, 0), OK);
	IS(cudaGraphCreate(NULL, 0), BAD);
	IS(cudaGraphCreate(&clone, 1), BAD);
	for (int i = 0; i < 3; i++)
		MUST(cudaGraphAddEmptyNode(&n[i], graph, NULL, 0), OK);
	IS(cudaGraphAddDependencies(graph, n, n + 1, NULL, 2), OK);
	IS(cudaGraphAddDependencies(graph, n, n + 1, NULL, 1), BAD); /* there already */
	count = 4;
	IS(cudaGraphGetEdges(graph, from, to, NULL, &count), OK);
	YES(count == 2 && from[0] == n[0] && to[1] == n[2]);
	IS(cudaGraphGetRootNodes(graph, NULL, &count), OK);
	IS(count, 1);
	IS(cudaGraphNodeGetDependencies(n[1], NULL, NULL, &count), OK);
	IS(count, 1);
	IS(cudaGraphNodeGetDependentNodes(n[2], NULL, NULL, &count), OK);
	IS(count, 0);
	IS(cudaGraphNodeGetType(n[0], &type), OK);
	IS(type, cudaGraphNodeTypeEmpty);
	IS(cudaGraphNodeGetType(n[0], NULL), BAD);
	IS(cudaGraphClone(&clone, graph), OK);
	IS(cudaGraphNodeFindInClone(&found, n[2], clone), OK);
	YES(found != n[2]);
	IS(cudaGraphDestroyNode(n[1]), OK);
	IS(cudaGraphGetNodes(graph, NULL, &count), OK);
	IS(count, 2);
	IS(cudaGraphGetNodes(clone, NULL, &count), OK);
	IS(count, 3);
	IS(cudaGraphRemoveDependencies(clone, &n[0], &n[1], NULL, 1), BAD);
	IS(cudaGraphDestroy(clone), OK);
	IS(cudaGraphDestroy(graph), OK);
	cudaGetLastError();
}

static void test_executables(void)
{
	cudaGraph_t graph;
	cudaGraphNode_t node;
	cudaGraphExec_t exec;
	cudaGraphExecUpdateResultInfo info;
	cudaGraphInstantiateParams params = {.flags = cudaGraphInstantiateFlagAutoFreeOnLaunch};
	unsigned long long flags = 77;
	unsigned enabled = 77;
	uint32_t *memory = files_memory(4, 0);
	struct cudaMemsetParams set = {
		.dst = memory, .value = 5, .elementSize = 4, .width = 4, .height = 1};
	MUST(cudaGraphCreate(&graph, 0), OK);
	MUST(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &set), OK);
	IS(cudaGraphInstantiateWithParams(&exec, graph, &params), OK);
	IS(params.result_out, cudaGraphInstantiateSuccess);
	IS(cudaGraphExecGetFlags(exec, &flags), OK);
	IS(flags, cudaGraphInstantiateFlagAutoFreeOnLaunch);
	IS(cudaGraphExecGetFlags(exec, NULL), BAD);
	IS(cudaGraphUpload(exec, NULL), OK);
	IS(cudaGraphNodeGetEnabled(exec, node, &enabled), OK);
	IS(enabled, 1);
	IS(cudaGraphNodeSetEnabled(exec, node, 0), OK);
	IS(cudaGraphLaunch(exec, NULL), OK);
	IS(files_word(memory), 0);
	IS(cudaGraphNodeSetEnabled(exec, node, 1), OK);
	set.value = 6;
	IS(cudaGraphMemsetNodeSetParams(node, &set), OK);
	IS(cudaGraphExecUpdate(exec, graph, &info), OK);
	IS(info.result, cudaGraphExecUpdateSuccess);
	IS(cudaGraphLaunch(exec, NULL), OK);
	IS(files_word(memory + 3), 6);
	IS(cudaGraphAddEmptyNode(&node, graph, NULL, 0), OK);
	IS(cudaGraphExecUpdate(exec, graph, &info), cudaErrorGraphExecUpdateFailure);
	IS(info.result, cudaGraphExecUpdateErrorTopologyChanged);
	IS(cudaGraphExecDestroy(exec), OK);
	IS(cudaGraphInstantiateWithFlags(&exec, graph, 1u << 20), BAD);
	IS(cudaGraphInstantiate(NULL, graph, 0), BAD);
	IS(cudaGraphDestroy(graph), OK);
	IS(cudaFree(memory), OK);
	cudaGetLastError();
}

UNIT_SUITE(graph, {"structure", test_structure}, {"executables", test_executables})
