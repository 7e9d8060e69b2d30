/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs about graphs make and run. */
#pragma once

#include "driver.h"

static inline CUgraph new_graph(void)
{
	CUgraph graph = NULL;
	QUIET(cuGraphCreate, &graph, 0);
	return graph;
}

static inline CUgraphNode empty(CUgraph graph, const CUgraphNode *list, size_t count)
{
	CUgraphNode node = NULL;
	QUIET(cuGraphAddEmptyNode, &node, graph, list, count);
	return node;
}

/* fill(p, value) with one block of 32 threads. */
static inline CUDA_KERNEL_NODE_PARAMS fill_params(CUfunction function, void **params)
{
	return (CUDA_KERNEL_NODE_PARAMS){.func = function,
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 32,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = params};
}

static inline CUDA_MEMSET_NODE_PARAMS set_params(CUdeviceptr p, unsigned value, size_t width)
{
	return (CUDA_MEMSET_NODE_PARAMS){
		.dst = p, .value = value, .elementSize = 4, .width = width, .height = 1};
}

static inline CUDA_MEMCPY3D copy_params(CUdeviceptr to, CUdeviceptr from, size_t size)
{
	return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = from,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = to,
		.WidthInBytes = size,
		.Height = 1,
		.Depth = 1};
}

static inline CUgraphExec instantiate(CUgraph graph)
{
	CUgraphExec exec = NULL;
	QUIET(cuGraphInstantiateWithFlags, &exec, graph, 0);
	return exec;
}

static inline void run(CUgraphExec exec)
{
	QUIET(cuGraphLaunch, exec, NULL);
	QUIET(cuStreamSynchronize, NULL);
}
