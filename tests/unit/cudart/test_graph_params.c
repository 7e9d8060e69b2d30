/* SPDX-License-Identifier: Apache-2.0 */
/* client/cudart/graph_params.c: what nodes of graphs are told. */
#include "files.h"

static void test_params(void)
{
	cudaGraph_t graph;
	cudaGraphNode_t copy, kernel, fill;
	cudaGraphExec_t exec;
	uint32_t words[4] = {1, 2, 3, 4};
	uint32_t *memory = files_memory(8, 0);
	void *arguments[] = {&memory};
	struct cudaKernelNodeParams launch = {.func = (void *)files_kernel(),
		.gridDim = {1, 1, 1},
		.blockDim = {4, 1, 1},
		.kernelParams = arguments};
	struct cudaMemsetParams set = {.dst = memory + 4,
					.value = 5,
					.elementSize = 4,
					.width = 4,
					.height = 1},
				got;
	MUST(cudaGraphCreate(&graph, 0), OK);
	IS(cudaGraphAddMemcpyNode1D(
		   &copy, graph, NULL, 0, memory, words, sizeof words, cudaMemcpyHostToDevice),
		OK);
	IS(cudaGraphAddKernelNode(&kernel, graph, &copy, 1, &launch), OK);
	IS(cudaGraphAddMemsetNode(&fill, graph, NULL, 0, &set), OK);
	IS(cudaGraphMemsetNodeGetParams(fill, &got), OK);
	YES(got.dst == set.dst && got.value == 5 && got.width == 4);
	set.value = 6;
	IS(cudaGraphMemsetNodeSetParams(fill, &set), OK);
	IS(cudaGraphMemsetNodeGetParams(copy, &got), BAD); /* of another kind */
	set.elementSize = 3;
	IS(cudaGraphMemsetNodeSetParams(fill, &set), BAD);
	MUST(cudaGraphInstantiate(&exec, graph, 0), OK);
	set.elementSize = 4;
	set.value = 7;
	IS(cudaGraphExecMemsetNodeSetParams(exec, fill, &set), OK); /* of this one alone */
	IS(cudaGraphLaunch(exec, NULL), OK);
	IS(cudaDeviceSynchronize(), OK);
	IS(files_word(memory + 3), 5);
	IS(files_word(memory + 7), 7);
	IS(cudaGraphMemsetNodeGetParams(fill, &got), OK);
	IS(got.value, 6);
	IS(cudaGraphExecDestroy(exec), OK);
	IS(cudaGraphDestroy(graph), OK);
	IS(cudaFree(memory), OK);
	cudaGetLastError();
}

UNIT_SUITE(graph_params, {"params", test_params})
