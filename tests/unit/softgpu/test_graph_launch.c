/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/stream/graph_launch.c: what executable graphs run, what may not change in them, and when
 * memory of graphs goes.
 */
#include "files.h"
#include "softgpu/context/device.h"
#include "softgpu/memory/range.h"

static CUgraphNode fill(CUgraph graph, CUdeviceptr at, unsigned value, const CUgraphNode *behind,
	size_t n, unsigned width)
{
	CUDA_MEMSET_NODE_PARAMS params = {.dst = at,
		.value = value,
		.elementSize = 4,
		.width = width,
		.height = 2,
		.pitch = 64};
	CUgraphNode node = NULL;
	OK(cuGraphAddMemsetNode(&node, graph, behind, n, &params, NULL));
	return node;
}

/* Edges that go against the order of the nodes' making. */
static void test_order(void)
{
	CUdeviceptr memory;
	CUgraph graph;
	CUgraphExec exec;
	test_context();
	OK(cuMemAlloc(&memory, 256));
	OK(cuGraphCreate(&graph, 0));
	CUgraphNode last = fill(graph, memory, 2, NULL, 0, 1),
		    first = fill(graph, memory, 1, NULL, 0, 1);
	OK(cuGraphAddDependencies(graph, &first, &last, NULL, 1));
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	IS(files_word(memory), 2);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuMemFree(memory));
}

static void test_changes(void)
{
	CUdeviceptr memory;
	CUgraph graph, other;
	CUgraphExec exec;
	CUgraphExecUpdateResultInfo info;
	test_context();
	OK(cuMemAlloc(&memory, 256));
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphCreate(&other, 0));
	fill(graph, memory, 1, NULL, 0, 1);
	CUgraphNode wider = fill(other, memory, 1, NULL, 0, 2);
	OK(cuGraphInstantiate(&exec, graph, 0));
	CHECK_RESULT(cuGraphExecUpdate(exec, other, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	IS(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED);
	YES(info.errorNode == wider);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuGraphDestroy(other));
	OK(cuMemFree(memory));
}

/*
 * Registered again at the same place, the memory is another one for copies and fills, until they
 * are told.
 */
static void test_pinned(void)
{
	static _Alignas(4096) uint32_t host[1024];
	CUcontext context = test_context();
	CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = (CUdeviceptr)(uintptr_t)host,
		.WidthInBytes = 4,
		.Height = 1,
		.Depth = 1};
	CUgraph graph, child;
	CUgraphNode nodes[2];
	CUgraphExec exec;
	OK(cuMemAlloc(&copy.dstDevice, 256));
	OK(cuMemHostRegister(host, sizeof(host), CU_MEMHOSTREGISTER_DEVICEMAP));
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphCreate(&child, 0));
	fill(child, (CUdeviceptr)(uintptr_t)host + 512, 3, NULL, 0, 1);
	OK(cuGraphAddMemcpyNode(&nodes[0], graph, NULL, 0, &copy, context));
	OK(cuGraphAddChildGraphNode(&nodes[1], graph, NULL, 0, child));
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	OK(cuMemHostUnregister(host));
	CHECK_RESULT(cuGraphLaunch(exec, NULL), CUDA_ERROR_LAUNCH_FAILED);
	host[0] = 7;
	host[128] = 0;
	OK(cuMemHostRegister(host, sizeof(host), CU_MEMHOSTREGISTER_DEVICEMAP));
	CHECK_RESULT(cuGraphLaunch(exec, NULL), CUDA_ERROR_LAUNCH_FAILED);
	OK(cuGraphExecMemcpyNodeSetParams(exec, nodes[0], &copy, context));
	CHECK_RESULT(cuGraphLaunch(exec, NULL), CUDA_ERROR_LAUNCH_FAILED);
	OK(cuGraphExecChildGraphNodeSetParams(exec, nodes[1], child));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	IS(files_word(copy.dstDevice), 7);
	IS(host[128], 3);
	/* An update tells all of them. */
	OK(cuMemHostUnregister(host));
	OK(cuMemHostRegister(host, sizeof(host), CU_MEMHOSTREGISTER_DEVICEMAP));
	CUgraphExecUpdateResultInfo info;
	OK(cuGraphExecUpdate(exec, graph, &info));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuCtxSynchronize());
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuGraphDestroy(child));
	OK(cuMemHostUnregister(host));
	OK(cuMemFree(copy.dstDevice));
}

static void test_memory(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}},
		.bytesize = 1 << 20};
	CUgraph graph;
	CUgraphNode node;
	struct ckt_soft_range range;
	test_context();
	CUstream gate = files_gated();
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
	YES(ckt_soft_range_find(params.dptr, &range));
	OK(cuGraphDestroy(graph));
	/* What runs may use it still, and what comes later does not wait for that. */
	YES(ckt_soft_range_find(params.dptr, &range));
	OK(cuStreamSynchronize(NULL));
	files_open();
	OK(cuCtxSynchronize());
	NO(ckt_soft_range_find(params.dptr, &range));
	OK(cuStreamDestroy(gate));
	/* Another device's. */
	OK(cuGraphCreate(&graph, 0));
	params.poolProps.location.id = 1;
	OK(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
	YES(ckt_soft_range_find(params.dptr, &range) && range.device == ckt_soft_device(1));
	OK(cuGraphDestroy(graph));
}

UNIT_SUITE(softgpu / stream / graph_launch, {"order", test_order}, {"changes", test_changes},
	{"pinned", test_pinned}, {"memory", test_memory})
