/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that graphs allocate and free. */
#include "graph.h"

/* Rules about memory that is allocated by one graph and freed by it or another. */
CASE(memory)
{
	CUgraph graph, other, clone = NULL;
	CUgraphNode alloc = NULL, release = NULL, node = NULL;
	CUgraphExec exec = NULL, second = NULL;
	CUdeviceptr got = 0;
	CUDA_MEM_ALLOC_NODE_PARAMS
	params = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			  .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
		.bytesize = 1000},
	told;
	start();
	graph = new_graph();
	CALL(cuGraphAddMemAllocNode, &alloc, graph, NULL, 0, &params);
	YES("some", params.dptr != 0);
	CALL(cuGraphMemAllocNodeGetParams, alloc, &told);
	YES("same", told.dptr == params.dptr);
	NUMBER("size", (long long)told.bytesize);
	CALL(cuGraphAddMemFreeNode, &release, graph, &alloc, 1, params.dptr);
	CALL(cuGraphMemFreeNodeGetParams, release, &got);
	YES("same", got == params.dptr);
	CALL(cuGraphAddMemFreeNode, &node, graph, &release, 1, params.dptr);
	CALL(cuGraphAddMemFreeNode, &node, graph, NULL, 0, 0x1234);
	CALL(cuGraphClone, &clone, graph);
	CALL(cuGraphDestroyNode, release);
	CALL(cuGraphRemoveDependencies, graph, &alloc, &release, 1);
	other = new_graph();
	CALL(cuGraphAddChildGraphNode, &node, other, NULL, 0, graph);
	CALL(cuGraphAddMemFreeNode, &node, other, NULL, 0, params.dptr);
	CALL(cuGraphInstantiateWithFlags, &exec, graph, 0);
	CALL(cuGraphInstantiateWithFlags, &second, graph, 0);
	CALL(cuMemFree_v2, params.dptr);
	CALL(cuGraphLaunch, exec, NULL);
	CALL(cuGraphLaunch, exec, NULL);
	CALL(cuStreamSynchronize, NULL);
	CALL(cuMemFreeAsync, params.dptr, NULL);
	CALL(cuGraphExecDestroy, exec);
	params.bytesize = 0;
	CALL(cuGraphAddMemAllocNode, &alloc, graph, NULL, 0, &params);
	CALL(cuGraphAddMemAllocNode, &alloc, graph, NULL, 0, NULL);
}

CASE(memory_left)
{
	CUgraph graph, freeing;
	CUgraphNode alloc = NULL, node = NULL;
	CUgraphExec exec, free_exec, auto_exec = NULL;
	cuuint64_t value = 77, zero = 0, one = 1;
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
		.bytesize = 1000};
	start();
	graph = new_graph();
	QUIET(cuGraphAddMemAllocNode, &alloc, graph, NULL, 0, &params);
	exec = instantiate(graph);
	CALL(cuMemFreeAsync, params.dptr, NULL);
	CALL(cuGraphLaunch, exec, NULL);
	CALL(cuMemsetD8_v2, params.dptr, 3, 1000);
	CALL(cuDeviceGetGraphMemAttribute, 0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &value);
	YES("some", value >= 1000);
	CALL(cuDeviceGetGraphMemAttribute, 0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, &value);
	YES("some", value >= 1000);
	CALL(cuGraphLaunch, exec, NULL);
	CALL(cuMemFreeAsync, params.dptr, NULL);
	CALL(cuMemFreeAsync, params.dptr, NULL);
	CALL(cuGraphLaunch, exec, NULL);
	CALL(cuMemFree_v2, params.dptr);
	freeing = new_graph();
	CALL(cuGraphAddMemFreeNode, &node, freeing, NULL, 0, params.dptr);
	CALL(cuGraphAddMemFreeNode, &node, graph, &alloc, 1, params.dptr);
	free_exec = instantiate(freeing);
	CALL(cuGraphLaunch, free_exec, NULL);
	CALL(cuGraphLaunch, exec, NULL);
	CALL(cuGraphLaunch, free_exec, NULL);
	CALL(cuStreamSynchronize, NULL);
	QUIET(cuGraphExecDestroy, exec);
	CALL(cuGraphInstantiateWithFlags, &auto_exec, graph,
		CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
	CALL(cuGraphLaunch, auto_exec, NULL);
	CALL(cuGraphLaunch, auto_exec, NULL);
	CALL(cuMemFree_v2, params.dptr);
	CALL(cuGraphExecDestroy, auto_exec);
	CALL(cuDeviceGraphMemTrim, 0);
	CALL(cuDeviceGetGraphMemAttribute, 0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &value);
	NUMBER("used", (long long)value);
	CALL(cuDeviceSetGraphMemAttribute, 0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &zero);
	CALL(cuDeviceGetGraphMemAttribute, 0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value);
	NUMBER("high", (long long)value);
	CALL(cuDeviceSetGraphMemAttribute, 0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &one);
	CALL(cuDeviceSetGraphMemAttribute, 0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &zero);
	CALL(cuDeviceGetGraphMemAttribute, 0, 77, &value);
	CALL(cuDeviceGraphMemTrim, 99);
}
