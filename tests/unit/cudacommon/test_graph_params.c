/* SPDX-License-Identifier: Apache-2.0 */
/* cudacommon/graph_params.c: edges listed and removed, parameters told as they were given. */
#include "../softgpu/files.h"

static CUgraph graph;

static CUgraphNode empty(const CUgraphNode *behind, size_t n)
{
	CUgraphNode node = NULL;
	OK(cuGraphAddEmptyNode(&node, graph, behind, n));
	return node;
}

static void test_edges(void)
{
	test_context();
	OK(cuGraphCreate(&graph, 0));
	CUgraphNode a = empty(NULL, 0), b = empty(NULL, 0), c = empty((CUgraphNode[]){a, b}, 2),
		    d = empty(&a, 1), from[5], to[5];
	size_t n = 5;
	/* By the node that they begin at. */
	OK(cuGraphGetEdges(graph, from, to, NULL, &n));
	IS(n, 3);
	YES(from[0] == a && to[0] == c && from[1] == a && to[1] == d && from[2] == b &&
		to[2] == c && !from[3] && !to[4]);
	n = 0;
	OK(cuGraphGetEdges(graph, NULL, NULL, NULL, &n));
	IS(n, 3);
	n = 2;
	OK(cuGraphGetEdges(graph, from, to, NULL, &n));
	IS(n, 2);
	CHECK_RESULT(cuGraphGetEdges(graph, from, NULL, NULL, &n), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphGetEdges(graph, from, to, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	n = 5;
	OK(cuGraphNodeGetDependencies(c, from, NULL, &n));
	YES(n == 2 && from[0] == a && from[1] == b && !from[2]);
	n = 5;
	OK(cuGraphNodeGetDependentNodes(a, to, NULL, &n));
	YES(n == 2 && to[0] == c && to[1] == d && !to[2]);
	CHECK_RESULT(cuGraphNodeGetDependencies((CUgraphNode)(uintptr_t)0x1230, NULL, NULL, &n),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphNodeGetDependentNodes(a, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	/* All of a list or none of it. */
	CHECK_RESULT(cuGraphRemoveDependencies(
			     graph, (CUgraphNode[]){a, b}, (CUgraphNode[]){c, d}, NULL, 2),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphGetEdges(graph, NULL, NULL, NULL, &n));
	IS(n, 3);
	OK(cuGraphRemoveDependencies(graph, (CUgraphNode[]){a, b}, (CUgraphNode[]){c, c}, NULL, 2));
	OK(cuGraphGetEdges(graph, NULL, NULL, NULL, &n));
	IS(n, 1);
	OK(cuGraphDestroy(graph));
}

/* Edges that say more than "behind" are not told without it. */
static void test_lossy(void)
{
	test_context();
	OK(cuGraphCreate(&graph, 0));
	CUgraphNode a = empty(NULL, 0), b = empty(NULL, 0), from[2], to[2];
	CUgraphEdgeData data = {.from_port = 1, .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC},
			told[2] = {{0}};
	size_t n = 2;
	OK(cuGraphAddDependencies(graph, &a, &b, &data, 1));
	CHECK_RESULT(cuGraphGetEdges(graph, from, to, NULL, &n), CUDA_ERROR_LOSSY_QUERY);
	n = 2;
	CHECK_RESULT(cuGraphNodeGetDependencies(b, from, NULL, &n), CUDA_ERROR_LOSSY_QUERY);
	n = 2;
	OK(cuGraphGetEdges(graph, from, to, told, &n));
	YES(n == 1 && told[0].from_port == 1 &&
		told[0].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
	CHECK_RESULT(cuGraphRemoveDependencies(graph, &a, &b, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	data.from_port = 2;
	CHECK_RESULT(cuGraphRemoveDependencies(graph, &a, &b, &data, 1), CUDA_ERROR_INVALID_VALUE);
	data.from_port = 1;
	OK(cuGraphRemoveDependencies(graph, &a, &b, &data, 1));
	OK(cuGraphDestroy(graph));
}

static void CUDA_CB nothing(void *data)
{
	(void)data;
}

static void test_told(void)
{
	CUdeviceptr p;
	CUevent event, other;
	test_context();
	OK(cuMemAlloc(&p, 64));
	OK(cuEventCreate(&event, 0));
	OK(cuEventCreate(&other, 0));
	OK(cuGraphCreate(&graph, 0));
	CUgraphNode copy, fill, host, record, wait, ops;
	CUDA_MEMCPY3D c = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			      .srcDevice = p,
			      .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			      .dstDevice = p + 32,
			      .WidthInBytes = 4,
			      .Height = 1,
			      .Depth = 1},
		      c_told;
	CUDA_MEMSET_NODE_PARAMS f = {.dst = p,
					.value = 3,
					.elementSize = 4,
					.width = 2,
					.height = 1},
				f_told;
	CUDA_HOST_NODE_PARAMS h = {.fn = nothing, .userData = &p}, h_told;
	CUstreamBatchMemOpParams op = {.operation = CU_STREAM_MEM_OP_BARRIER};
	CUDA_BATCH_MEM_OP_NODE_PARAMS b = {.count = 1, .paramArray = &op}, b_told;
	CUevent e_told = NULL;
	OK(cuGraphAddMemcpyNode(&copy, graph, NULL, 0, &c, NULL));
	OK(cuGraphAddMemsetNode(&fill, graph, NULL, 0, &f, NULL));
	OK(cuGraphAddHostNode(&host, graph, NULL, 0, &h));
	OK(cuGraphAddEventRecordNode(&record, graph, NULL, 0, event));
	OK(cuGraphAddEventWaitNode(&wait, graph, NULL, 0, event));
	OK(cuGraphAddBatchMemOpNode(&ops, graph, NULL, 0, &b));
	c.WidthInBytes = 8;
	f.value = 9;
	h.userData = &c;
	OK(cuGraphMemcpyNodeSetParams(copy, &c));
	OK(cuGraphMemsetNodeSetParams(fill, &f));
	OK(cuGraphHostNodeSetParams(host, &h));
	OK(cuGraphEventRecordNodeSetEvent(record, other));
	OK(cuGraphEventWaitNodeSetEvent(wait, other));
	OK(cuGraphMemcpyNodeGetParams(copy, &c_told));
	IS(c_told.WidthInBytes, 8);
	OK(cuGraphMemsetNodeGetParams(fill, &f_told));
	YES(f_told.value == 9 && f_told.dst == p && f_told.width == 2);
	OK(cuGraphHostNodeGetParams(host, &h_told));
	YES(h_told.fn == nothing && h_told.userData == &c);
	OK(cuGraphEventRecordNodeGetEvent(record, &e_told));
	YES(e_told == other);
	OK(cuGraphEventWaitNodeGetEvent(wait, &e_told));
	YES(e_told == other);
	OK(cuGraphBatchMemOpNodeGetParams(ops, &b_told));
	YES(b_told.count == 1 && b_told.paramArray != &op &&
		b_told.paramArray[0].operation == CU_STREAM_MEM_OP_BARRIER);
	/* Of another kind, or of none, nothing is told or set. */
	CHECK_RESULT(cuGraphMemcpyNodeGetParams(fill, &c_told), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphMemsetNodeGetParams(copy, &f_told), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphHostNodeGetParams(copy, &h_told), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphEventRecordNodeGetEvent(wait, &e_told), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphEventWaitNodeGetEvent(record, &e_told), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphBatchMemOpNodeGetParams(copy, &b_told), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphMemcpyNodeGetParams(copy, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphMemcpyNodeSetParams(copy, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphMemcpyNodeSetParams(fill, &c), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphDestroy(graph));
	CHECK_RESULT(cuGraphMemcpyNodeGetParams(copy, &c_told), CUDA_ERROR_INVALID_VALUE);
	OK(cuEventDestroy(event));
	OK(cuEventDestroy(other));
	OK(cuMemFree(p));
}

static void test_enabled(void)
{
	CUdeviceptr p;
	CUgraphNode fill;
	CUgraphExec exec;
	unsigned enabled = 77;
	test_context();
	OK(cuMemAlloc(&p, 64));
	CUDA_MEMSET_NODE_PARAMS f = {.dst = p, .elementSize = 1, .width = 1, .height = 1};
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddMemsetNode(&fill, graph, NULL, 0, &f, NULL));
	CUgraphNode e = empty(NULL, 0);
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphNodeGetEnabled(exec, fill, &enabled));
	IS(enabled, 1);
	OK(cuGraphNodeSetEnabled(exec, fill, 0));
	OK(cuGraphNodeGetEnabled(exec, fill, &enabled));
	IS(enabled, 0);
	CHECK_RESULT(cuGraphNodeGetEnabled(exec, e, &enabled), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphNodeGetEnabled(exec, fill, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphExecDestroy(exec));
	CHECK_RESULT(cuGraphNodeGetEnabled(exec, fill, &enabled), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphDestroy(graph));
	OK(cuMemFree(p));
}

static void test_kernel_attributes(void)
{
	test_context();
	OK(cuGraphCreate(&graph, 0));
	CUgraphNode a, b;
	CUDA_KERNEL_NODE_PARAMS params = {.func = test_function("trap_now"),
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1};
	CUlaunchAttributeValue value = {.priority = -2}, told;
	OK(cuGraphAddKernelNode(&a, graph, NULL, 0, &params));
	OK(cuGraphAddKernelNode(&b, graph, NULL, 0, &params));
	OK(cuGraphKernelNodeSetAttribute(a, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	OK(cuGraphKernelNodeGetAttribute(b, CU_LAUNCH_ATTRIBUTE_PRIORITY, &told));
	IS(told.priority, 0);
	OK(cuGraphKernelNodeCopyAttributes(b, a));
	OK(cuGraphKernelNodeCopyAttributes(a, a));
	OK(cuGraphKernelNodeGetAttribute(b, CU_LAUNCH_ATTRIBUTE_PRIORITY, &told));
	IS(told.priority, -2);
	CHECK_RESULT(cuGraphKernelNodeCopyAttributes(b, empty(NULL, 0)), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphKernelNodeGetAttribute(b, CU_LAUNCH_ATTRIBUTE_PRIORITY, NULL),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphDestroy(graph));
}

UNIT_SUITE(cudacommon / graph_params, {"edges", test_edges}, {"lossy", test_lossy},
	{"told", test_told}, {"enabled", test_enabled},
	{"kernel attributes", test_kernel_attributes})
