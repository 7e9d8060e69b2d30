/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/graph/worker_graph.c: executable graphs: their description travels once, a launch is
 * one command that nobody waits for.
 */
#include "graphs.h"

static void test_launches(void)
{
	CUgraph graph;
	CUdeviceptr memory = memory_of(4096, 0);
	CUgraphExec exec;
	IS(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
	CUgraphNode a = add_fill(graph, NULL, memory, 5), b = add_kernel(graph, a, memory, 1);
	COST(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS, 1, 1);
	IS(relay_count("graph_data") * 10 + relay_count("graph_instantiate"), 11);
	COST(cuGraphLaunch(exec, NULL), CUDA_SUCCESS, 0, 1);
	IS(relay_count("graph_launch"), 1);
	IS(word_at(memory), 6);
	COST(cuGraphUpload(exec, NULL), CUDA_SUCCESS, 0, 1);
	LOCAL(cuGraphLaunch((CUgraphExec)0x1234, NULL), BAD);
	LOCAL(cuGraphLaunch(exec, (CUstream)0x1234), CUDA_ERROR_INVALID_HANDLE);
	/* Nodes switched off and on. */
	unsigned enabled = 7;
	COST(cuGraphNodeSetEnabled(exec, b, 0), CUDA_SUCCESS, 1, 0);
	LOCAL(cuGraphNodeGetEnabled(exec, b, &enabled), CUDA_SUCCESS);
	IS(enabled, 0);
	IS(cuGraphLaunch(exec, NULL), CUDA_SUCCESS);
	IS(word_at(memory), 5);
	LOCAL(cuGraphInstantiate(NULL, graph, 0), BAD);
	LOCAL(cuGraphInstantiate(&exec, (CUgraph)0x1234, 0), BAD);
	IS(cuGraphDestroy(graph), CUDA_SUCCESS); /* the executable one stays */
	IS(cuGraphLaunch(exec, NULL), CUDA_SUCCESS);
	COST(cuGraphExecDestroy(exec), CUDA_SUCCESS, 0, 1);
	LOCAL(cuGraphExecDestroy(exec), BAD);
	LOCAL(cuGraphLaunch(exec, NULL), BAD);
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

UNIT_SUITE(graph_exec, {"launches", test_launches})
