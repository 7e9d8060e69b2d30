/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs for tests of the client: nodes in a row. */
#pragma once

#include "relay.h"

static inline CUgraphNode add_fill(
	CUgraph graph, CUgraphNode after, CUdeviceptr dst, uint32_t value)
{
	CUgraphNode node = NULL;
	CUDA_MEMSET_NODE_PARAMS params = {
		.dst = dst, .value = value, .elementSize = 4, .width = 1, .height = 1};
	IS(cuGraphAddMemsetNode(&node, graph, &after, after != NULL, &params, primary),
		CUDA_SUCCESS);
	return node;
}

static inline CUgraphNode add_kernel(CUgraph graph, CUgraphNode after, CUdeviceptr out, uint32_t n)
{
	CUgraphNode node = NULL;
	void *values[] = {&out, &n};
	CUDA_KERNEL_NODE_PARAMS params = {.func = relay_add(),
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = values};
	IS(cuGraphAddKernelNode(&node, graph, &after, after != NULL, &params), CUDA_SUCCESS);
	return node;
}

static inline CUgraphExec instantiate(CUgraph graph)
{
	CUgraphExec exec = NULL;
	MUST(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
	return exec;
}
