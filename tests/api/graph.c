/* Graphs: building, asking, node parameters, instantiating, updating, launching, memory of graphs, objects of the program. */
#include "driver.h"

static CUgraph new_graph(void)
{
	CUgraph graph = NULL;
	QUIET(cuGraphCreate, &graph, 0);
	return graph;
}

static CUgraphNode empty(CUgraph graph, const CUgraphNode *list, size_t count)
{
	CUgraphNode node = NULL;
	QUIET(cuGraphAddEmptyNode, &node, graph, list, count);
	return node;
}

/* fill(p, value) with one block of 32 threads. */
static CUDA_KERNEL_NODE_PARAMS fill_params(CUfunction function, void **params)
{
	return (CUDA_KERNEL_NODE_PARAMS){.func = function, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1,
					 .blockDimZ = 1, .kernelParams = params};
}

static CUDA_MEMSET_NODE_PARAMS set_params(CUdeviceptr p, unsigned value, size_t width)
{
	return (CUDA_MEMSET_NODE_PARAMS){.dst = p, .value = value, .elementSize = 4, .width = width, .height = 1};
}

static CUDA_MEMCPY3D copy_params(CUdeviceptr to, CUdeviceptr from, size_t size)
{
	return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = from, .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = to,
			       .WidthInBytes = size, .Height = 1, .Depth = 1};
}

static CUgraphExec instantiate(CUgraph graph)
{
	CUgraphExec exec = NULL;
	QUIET(cuGraphInstantiateWithFlags, &exec, graph, 0);
	return exec;
}

static void run(CUgraphExec exec)
{
	QUIET(cuGraphLaunch, exec, NULL);
	QUIET(cuStreamSynchronize, NULL);
}

CASE(create)
{
	CUgraph graph = NULL, second = NULL;
	CUgraphNode node = (CUgraphNode)7;
	CUgraphNodeType type = 77;
	size_t count = 77;
	start();
	CALL(cuGraphCreate, &graph, 0);
	YES("some", graph != NULL);
	CALL(cuGraphCreate, &second, 0);
	YES("another", graph != second);
	CALL(cuGraphCreate, &second, 1);
	CALL(cuGraphCreate, NULL, 0);
	CALL(cuGraphGetNodes, graph, NULL, &count);
	NUMBER("count", count);
	CALL(cuGraphAddEmptyNode, &node, graph, NULL, 0);
	YES("some", node != (CUgraphNode)7 && node != NULL);
	CALL(cuGraphNodeGetType, node, &type);
	NUMBER("type", type);
	CALL(cuGraphNodeGetType, node, NULL);
	CALL(cuGraphDestroyNode, node);
	CALL(cuGraphGetNodes, graph, NULL, &count);
	NUMBER("count", count);
	CALL(cuGraphDestroy, graph);
	CALL(cuGraphDestroy, second);
	CALL(cuGraphDestroy, NULL);
	CALL(cuGraphAddEmptyNode, &node, NULL, NULL, 0);
	CALL(cuGraphGetNodes, NULL, NULL, &count);
}

/* a -> b, a -> c, b -> d, c -> d */
CASE(edges)
{
	CUgraph graph;
	CUgraphNode a, b, c, d, pair[2], list[6], from[6], to[6];
	CUgraphEdgeData data[6];
	size_t count;
	start();
	graph = new_graph();
	a = empty(graph, NULL, 0);
	b = empty(graph, &a, 1);
	c = empty(graph, &a, 1);
	pair[0] = b;
	pair[1] = c;
	d = empty(graph, pair, 2);
	count = 6;
	CALL(cuGraphGetNodes, graph, list, &count);
	NUMBER("count", count);
	YES("in order", list[0] == a && list[1] == b && list[2] == c && list[3] == d);
	YES("rest", list[4] == NULL && list[5] == NULL);
	count = 2;
	CALL(cuGraphGetNodes, graph, list, &count);
	NUMBER("count", count);
	CALL(cuGraphGetRootNodes, graph, NULL, &count);
	NUMBER("count", count);
	CALL(cuGraphGetRootNodes, graph, list, &count);
	NUMBER("count", count);
	YES("a", list[0] == a);
	CALL(cuGraphGetEdges, graph, NULL, NULL, &count);
	NUMBER("count", count);
	count = 6;
	CALL(cuGraphGetEdges, graph, from, to, &count);
	NUMBER("count", count);
	YES("from a", from[0] == a && from[1] == a);
	YES("rest", from[4] == NULL && to[5] == NULL);
	count = 6;
	memset(data, 0x55, sizeof(data));
	CALL(cuGraphGetEdges_v2, graph, from, to, data, &count);
	NUMBER("count", count);
	NUMBER("type", data[0].type);
	NUMBER("port", data[0].from_port);
	CALL(cuGraphNodeGetDependencies, d, NULL, &count);
	NUMBER("count", count);
	count = 6;
	CALL(cuGraphNodeGetDependencies, d, list, &count);
	NUMBER("count", count);
	YES("b and c", list[0] == b && list[1] == c);
	count = 6;
	CALL(cuGraphNodeGetDependencies_v2, d, list, data, &count);
	NUMBER("count", count);
	CALL(cuGraphNodeGetDependentNodes, a, NULL, &count);
	NUMBER("count", count);
	count = 6;
	CALL(cuGraphNodeGetDependentNodes, a, list, &count);
	YES("b and c", list[0] == b && list[1] == c);
	count = 6;
	CALL(cuGraphNodeGetDependentNodes_v2, a, list, data, &count);
	NUMBER("count", count);
	CALL(cuGraphAddDependencies, graph, &a, &d, 1);
	CALL(cuGraphAddDependencies, graph, &a, &d, 1);
	CALL(cuGraphAddDependencies, graph, &a, &a, 1);
	CALL(cuGraphAddDependencies, graph, NULL, NULL, 0);
	CALL(cuGraphRemoveDependencies, graph, &a, &d, 1);
	CALL(cuGraphRemoveDependencies, graph, &a, &d, 1);
	memset(data, 0, sizeof(data));
	CALL(cuGraphAddDependencies_v2, graph, &a, &d, data, 1);
	CALL(cuGraphRemoveDependencies_v2, graph, &a, &d, data, 1);
	CALL(cuGraphGetEdges, graph, NULL, NULL, &count);
	NUMBER("count", count);
	CALL(cuGraphDestroyNode, b);
	CALL(cuGraphNodeGetDependencies, d, NULL, &count);
	NUMBER("count", count);
	CALL(cuGraphGetEdges, graph, NULL, NULL, &count);
	NUMBER("count", count);
}

CASE(circle)
{
	CUgraph graph;
	CUgraphNode a, b;
	CUgraphExec exec = NULL;
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {.result_out = 77};
	start();
	graph = new_graph();
	a = empty(graph, NULL, 0);
	b = empty(graph, &a, 1);
	CALL(cuGraphAddDependencies, graph, &b, &a, 1);
	CALL(cuGraphInstantiateWithFlags, &exec, graph, 0);
	CALL(cuGraphInstantiateWithParams, &exec, graph, &params);
	NUMBER("result", params.result_out);
	YES("one of them", params.hErrNode_out == a || params.hErrNode_out == b);
}

CASE(clone)
{
	CUgraph graph, clone = NULL, other;
	CUgraphNode a, b, found = NULL, foreign;
	size_t count = 77;
	start();
	graph = new_graph();
	a = empty(graph, NULL, 0);
	b = empty(graph, &a, 1);
	CALL(cuGraphClone, &clone, graph);
	CALL(cuGraphGetNodes, clone, NULL, &count);
	NUMBER("count", count);
	CALL(cuGraphNodeFindInClone, &found, b, clone);
	YES("another", found != NULL && found != b && found != a);
	CALL(cuGraphNodeGetDependencies, found, NULL, &count);
	NUMBER("count", count);
	other = new_graph();
	foreign = empty(other, NULL, 0);
	CALL(cuGraphNodeFindInClone, &found, foreign, clone);
	CALL(cuGraphNodeFindInClone, &found, b, other);
	CALL(cuGraphClone, NULL, graph);
	CALL(cuGraphClone, &clone, NULL);
	CALL(cuGraphDestroy, graph);
	CALL(cuGraphGetNodes, clone, NULL, &count);
	NUMBER("count", count);
	CALL(cuGraphDestroy, clone);
}

CASE(kernel)
{
	CUcontext context = start();
	CUfunction function = kernel(load(), "fill");
	CUdeviceptr p = memory(128);
	unsigned value = 5, later = 9;
	void *args[] = {&p, &value}, *changed[] = {&p, &later};
	CUDA_KERNEL_NODE_PARAMS params = fill_params(function, args), got;
	CUDA_KERNEL_NODE_PARAMS_v1 old, old_got;
	CUgraph graph = new_graph();
	CUgraphNode node = NULL, second = NULL;
	CUgraphExec exec;
	CUlaunchAttributeValue attribute;
	CALL(cuGraphAddKernelNode_v2, &node, graph, NULL, 0, &params);
	memset(&got, 0x55, sizeof(got));
	CALL(cuGraphKernelNodeGetParams_v2, node, &got);
	YES("function", got.func == function && got.kern == NULL);
	YES("context", got.ctx == context);
	NUMBER("threads", got.blockDimX);
	NUMBER("value", *(unsigned *)got.kernelParams[1]);
	exec = instantiate(graph);
	run(exec);
	REMARK("launched");
	CONTENT("p", p, 128);
	params.kernelParams = changed;
	params.blockDimX = 16;
	CALL(cuGraphKernelNodeSetParams_v2, node, &params);
	run(exec);
	REMARK("launched");
	CONTENT("p", p, 128);
	CALL(cuGraphExecKernelNodeSetParams_v2, exec, node, &params);
	run(exec);
	REMARK("launched");
	CONTENT("p", p, 128);
	memcpy(&old, &params, sizeof(old));
	CALL(cuGraphAddKernelNode, &second, graph, &node, 1, &old);
	CALL(cuGraphKernelNodeSetParams, second, &old);
	CALL(cuGraphKernelNodeGetParams, second, &old_got);
	NUMBER("threads", old_got.blockDimX);
	CALL(cuGraphExecKernelNodeSetParams, exec, node, &old);
	memset(&attribute, 0, sizeof(attribute));
	attribute.priority = 0;
	CALL(cuGraphKernelNodeSetAttribute, node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &attribute);
	CALL(cuGraphKernelNodeGetAttribute, node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &attribute);
	NUMBER("priority", attribute.priority);
	CALL(cuGraphKernelNodeCopyAttributes, second, node);
	CALL(cuGraphKernelNodeGetAttribute, node, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &attribute);
	NUMBER("cooperative", attribute.cooperative);
	params.blockDimX = 0;
	CALL(cuGraphAddKernelNode_v2, &second, graph, NULL, 0, &params);
	params.blockDimX = 4096;
	CALL(cuGraphAddKernelNode_v2, &second, graph, NULL, 0, &params);
	CALL(cuGraphAddKernelNode_v2, &second, graph, NULL, 0, NULL);
	CALL(cuGraphKernelNodeGetParams_v2, NULL, &got);
}

CASE(copy_and_set)
{
	CUcontext context = start();
	CUdeviceptr a = memory(256), b = memory(256);
	CUgraph graph = new_graph();
	CUgraphNode set = NULL, copy = NULL;
	CUDA_MEMSET_NODE_PARAMS fill = set_params(a, 0x01020304, 8), fill_got;
	CUDA_MEMCPY3D move = copy_params(b, a, 64), move_got;
	CUgraphExec exec;
	CALL(cuGraphAddMemsetNode, &set, graph, NULL, 0, &fill, context);
	CALL(cuGraphAddMemcpyNode, &copy, graph, &set, 1, &move, context);
	CALL(cuGraphMemsetNodeGetParams, set, &fill_got);
	YES("same", fill_got.dst == a && fill_got.value == 0x01020304 && fill_got.width == 8 && fill_got.elementSize == 4);
	CALL(cuGraphMemcpyNodeGetParams, copy, &move_got);
	YES("same", move_got.srcDevice == a && move_got.dstDevice == b && move_got.WidthInBytes == 64);
	exec = instantiate(graph);
	run(exec);
	REMARK("launched");
	CONTENT("b", b, 72);
	fill.value = 0x11;
	CALL(cuGraphMemsetNodeSetParams, set, &fill);
	CALL(cuGraphExecMemsetNodeSetParams, exec, set, &fill, context);
	move.WidthInBytes = 16;
	CALL(cuGraphMemcpyNodeSetParams, copy, &move);
	CALL(cuGraphExecMemcpyNodeSetParams, exec, copy, &move, context);
	run(exec);
	REMARK("launched");
	CONTENT("b", b, 72);
	fill.elementSize = 3;
	CALL(cuGraphAddMemsetNode, &set, graph, NULL, 0, &fill, context);
	fill.elementSize = 4;
	fill.dst = 0;
	CALL(cuGraphAddMemsetNode, &set, graph, NULL, 0, &fill, context);
	CALL(cuGraphAddMemsetNode, &set, graph, NULL, 0, NULL, context);
	CALL(cuGraphAddMemcpyNode, &copy, graph, NULL, 0, NULL, context);
	move.srcMemoryType = 77;
	CALL(cuGraphAddMemcpyNode, &copy, graph, NULL, 0, &move, context);
}

static unsigned called;

static void count_call(void *data)
{
	called += *(unsigned *)data;
}

CASE(host)
{
	static unsigned one = 1, ten = 10;
	CUgraph graph;
	CUgraphNode node = NULL;
	CUgraphExec exec;
	CUDA_HOST_NODE_PARAMS params = {.fn = count_call, .userData = &one}, got;
	start();
	graph = new_graph();
	CALL(cuGraphAddHostNode, &node, graph, NULL, 0, &params);
	CALL(cuGraphHostNodeGetParams, node, &got);
	YES("same", got.fn == count_call && got.userData == &one);
	exec = instantiate(graph);
	run(exec);
	REMARK("called %u", called);
	params.userData = &ten;
	CALL(cuGraphHostNodeSetParams, node, &params);
	run(exec);
	REMARK("called %u", called);
	CALL(cuGraphExecHostNodeSetParams, exec, node, &params);
	run(exec);
	REMARK("called %u", called);
	params.fn = NULL;
	CALL(cuGraphAddHostNode, &node, graph, NULL, 0, &params);
	CALL(cuGraphAddHostNode, &node, graph, NULL, 0, NULL);
}

CASE(events)
{
	CUgraph graph;
	CUgraphNode record = NULL, wait = NULL;
	CUgraphExec exec;
	CUevent first = NULL, second = NULL, got = NULL;
	start();
	QUIET(cuEventCreate, &first, 0);
	QUIET(cuEventCreate, &second, 0);
	graph = new_graph();
	CALL(cuGraphAddEventRecordNode, &record, graph, NULL, 0, first);
	CALL(cuGraphAddEventWaitNode, &wait, graph, &record, 1, first);
	CALL(cuGraphEventRecordNodeGetEvent, record, &got);
	YES("first", got == first);
	CALL(cuGraphEventWaitNodeGetEvent, wait, &got);
	YES("first", got == first);
	exec = instantiate(graph);
	run(exec);
	CALL(cuEventQuery, first);
	CALL(cuGraphEventRecordNodeSetEvent, record, second);
	CALL(cuGraphEventWaitNodeSetEvent, wait, second);
	CALL(cuGraphEventRecordNodeGetEvent, record, &got);
	YES("second", got == second);
	CALL(cuGraphExecEventRecordNodeSetEvent, exec, record, second);
	CALL(cuGraphExecEventWaitNodeSetEvent, exec, wait, second);
	run(exec);
	CALL(cuEventQuery, second);
	CALL(cuGraphAddEventRecordNode, &record, graph, NULL, 0, NULL);
	CALL(cuGraphEventWaitNodeGetEvent, record, &got);
}

CASE(children)
{
	CUgraph graph, child, inner = NULL, other;
	CUgraphNode node = NULL, list[2];
	CUgraphExec exec;
	CUdeviceptr p;
	CUDA_MEMSET_NODE_PARAMS fill;
	CUcontext context = start();
	size_t count = 77;
	p = memory(64);
	fill = set_params(p, 1, 4);
	child = new_graph();
	QUIET(cuGraphAddMemsetNode, &node, child, NULL, 0, &fill, context);
	graph = new_graph();
	CALL(cuGraphAddChildGraphNode, &node, graph, NULL, 0, child);
	CALL(cuGraphChildGraphNodeGetGraph, node, &inner);
	YES("a copy", inner != child && inner != graph);
	CALL(cuGraphGetNodes, inner, NULL, &count);
	NUMBER("count", count);
	exec = instantiate(graph);
	run(exec);
	REMARK("launched");
	CONTENT("p", p, 32);
	other = new_graph();
	fill = set_params(p, 2, 4);
	QUIET(cuGraphAddMemsetNode, list, other, NULL, 0, &fill, context);
	CALL(cuGraphExecChildGraphNodeSetParams, exec, node, other);
	run(exec);
	REMARK("launched");
	CONTENT("p", p, 32);
	QUIET(cuGraphAddMemsetNode, list, other, NULL, 0, &fill, context);
	CALL(cuGraphExecChildGraphNodeSetParams, exec, node, other);
	CALL(cuGraphDestroy, inner);
	CALL(cuGraphAddChildGraphNode, &node, graph, NULL, 0, graph);
	CALL(cuGraphAddChildGraphNode, &node, graph, NULL, 0, NULL);
}

/* By the parameters of any kind. */
CASE(any_node)
{
	CUcontext context = start();
	CUdeviceptr p = memory(64);
	CUgraph graph = new_graph();
	CUgraphNode node = NULL, second = NULL;
	CUgraphExec exec;
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET,
				    .memset = {.dst = p, .value = 3, .elementSize = 4, .width = 4, .height = 1, .ctx = context}};
	CALL(cuGraphAddNode, &node, graph, NULL, 0, &params);
	params.memset.value = 4;
	CALL(cuGraphAddNode_v2, &second, graph, &node, NULL, 1, &params);
	exec = instantiate(graph);
	run(exec);
	REMARK("launched");
	CONTENT("p", p, 32);
	params.memset.value = 5;
	CALL(cuGraphNodeSetParams, second, &params);
	CALL(cuGraphExecNodeSetParams, exec, second, &params);
	run(exec);
	REMARK("launched");
	CONTENT("p", p, 32);
	params.type = CU_GRAPH_NODE_TYPE_EMPTY;
	CALL(cuGraphNodeSetParams, second, &params);
	params.type = 77;
	CALL(cuGraphAddNode, &node, graph, NULL, 0, &params);
	CALL(cuGraphAddNode, &node, graph, NULL, 0, NULL);
}

CASE(enabled)
{
	CUcontext context = start();
	CUdeviceptr p = memory(64);
	CUgraph graph = new_graph();
	CUgraphNode node = NULL, nothing;
	CUgraphExec exec;
	CUDA_MEMSET_NODE_PARAMS fill = set_params(p, 6, 4);
	unsigned enabled = 77;
	QUIET(cuGraphAddMemsetNode, &node, graph, NULL, 0, &fill, context);
	nothing = empty(graph, &node, 1);
	exec = instantiate(graph);
	CALL(cuGraphNodeGetEnabled, exec, node, &enabled);
	NUMBER("enabled", enabled);
	CALL(cuGraphNodeSetEnabled, exec, node, 0);
	CALL(cuGraphNodeGetEnabled, exec, node, &enabled);
	NUMBER("enabled", enabled);
	run(exec);
	REMARK("launched");
	CONTENT("p", p, 32);
	CALL(cuGraphNodeSetEnabled, exec, node, 1);
	run(exec);
	REMARK("launched");
	CONTENT("p", p, 32);
	CALL(cuGraphNodeSetEnabled, exec, nothing, 0);
	CALL(cuGraphNodeSetEnabled, exec, NULL, 0);
}

CASE(instantiate)
{
	CUgraph graph;
	CUgraphExec exec = NULL;
	CUgraphNode error = (CUgraphNode)7;
	cuuint64_t flags = 77;
	char log[64] = "x";
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD, .result_out = 77};
	start();
	graph = new_graph();
	empty(graph, NULL, 0);
	CALL(cuGraphInstantiate, &exec, graph, &error, log, sizeof(log));
	CALL(cuGraphInstantiate_v2, &exec, graph, &error, log, sizeof(log));
	CALL(cuGraphInstantiateWithFlags, &exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
	CALL(cuGraphExecGetFlags, exec, &flags);
	NUMBER("flags", (long long)flags);
	CALL(cuGraphInstantiateWithFlags, &exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
	CALL(cuGraphExecGetFlags, exec, &flags);
	NUMBER("flags", (long long)flags);
	CALL(cuGraphInstantiateWithParams, &exec, graph, &params);
	NUMBER("result", params.result_out);
	CALL(cuGraphInstantiateWithParams_ptsz, &exec, graph, &params);
	CALL(cuGraphUpload, exec, NULL);
	CALL(cuGraphUpload_ptsz, exec, NULL);
	CALL(cuGraphLaunch, exec, NULL);
	CALL(cuGraphLaunch_ptsz, exec, NULL);
	CALL(cuCtxSynchronize);
	CALL(cuGraphExecDestroy, exec);
	CALL(cuGraphInstantiateWithFlags, &exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD);
	CALL(cuGraphInstantiateWithFlags, &exec, graph, 0x100);
	CALL(cuGraphInstantiateWithFlags, &exec, NULL, 0);
	CALL(cuGraphInstantiateWithFlags, NULL, graph, 0);
	CALL(cuGraphLaunch, NULL, NULL);
	CALL(cuGraphExecDestroy, NULL);
}

CASE(update)
{
	CUcontext context = start();
	CUdeviceptr p = memory(64);
	CUgraph graph = new_graph(), other = new_graph();
	CUgraphNode node = NULL, error = (CUgraphNode)7;
	CUDA_MEMSET_NODE_PARAMS fill = set_params(p, 1, 4);
	CUgraphExec exec;
	CUgraphExecUpdateResultInfo info;
	CUgraphExecUpdateResult result = 77;
	QUIET(cuGraphAddMemsetNode, &node, graph, NULL, 0, &fill, context);
	exec = instantiate(graph);
	fill.value = 2;
	QUIET(cuGraphAddMemsetNode, &node, other, NULL, 0, &fill, context);
	memset(&info, 0x55, sizeof(info));
	CALL(cuGraphExecUpdate_v2, exec, other, &info);
	NUMBER("result", info.result);
	YES("no node", info.errorNode == NULL && info.errorFromNode == NULL);
	run(exec);
	REMARK("launched");
	CONTENT("p", p, 32);
	CALL(cuGraphExecUpdate, exec, graph, &error, &result);
	NUMBER("result", result);
	YES("no node", error == NULL);
	empty(other, NULL, 0);
	CALL(cuGraphExecUpdate_v2, exec, other, &info);
	NUMBER("result", info.result);
	YES("no node", info.errorNode == NULL);
	QUIET(cuGraphDestroyNode, node);
	CALL(cuGraphExecUpdate_v2, exec, other, &info);
	NUMBER("result", info.result);
	YES("a node", info.errorNode != NULL);
	CALL(cuGraphExecUpdate_v2, exec, NULL, &info);
	NUMBER("result", info.result);
}

/* Rules about memory that is allocated by one graph and freed by it or another. */
CASE(memory)
{
	CUgraph graph, other, clone = NULL;
	CUgraphNode alloc = NULL, release = NULL, node = NULL;
	CUgraphExec exec = NULL, second = NULL;
	CUdeviceptr got = 0;
	CUDA_MEM_ALLOC_NODE_PARAMS params = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
					     .bytesize = 1000}, told;
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
	CUDA_MEM_ALLOC_NODE_PARAMS params = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
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
	CALL(cuGraphInstantiateWithFlags, &auto_exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
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

CASE(memory_operations)
{
	CUcontext context = start();
	CUdeviceptr p = memory(64);
	CUgraph graph = new_graph();
	CUgraphNode node = NULL;
	CUgraphExec exec;
	CUstreamBatchMemOpParams ops[2];
	CUDA_BATCH_MEM_OP_NODE_PARAMS params = {.ctx = context, .count = 2, .paramArray = ops}, got;
	memset(ops, 0, sizeof(ops));
	ops[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	ops[0].writeValue.address = p;
	ops[0].writeValue.value = 0x11223344;
	ops[1].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	ops[1].waitValue.address = p;
	ops[1].waitValue.value = 0x11223344;
	ops[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
	CALL(cuGraphAddBatchMemOpNode, &node, graph, NULL, 0, &params);
	CALL(cuGraphBatchMemOpNodeGetParams, node, &got);
	NUMBER("count", got.count);
	exec = instantiate(graph);
	run(exec);
	REMARK("launched");
	CONTENT("p", p, 8);
	ops[0].writeValue.value = ops[1].waitValue.value = 7;
	CALL(cuGraphBatchMemOpNodeSetParams, node, &params);
	CALL(cuGraphExecBatchMemOpNodeSetParams, exec, node, &params);
	run(exec);
	REMARK("launched");
	CONTENT("p", p, 8);
	CALL(cuStreamWriteValue32_v2, NULL, p, 9, 0);
	CALL(cuStreamWaitValue32_v2, NULL, p, 9, CU_STREAM_WAIT_VALUE_EQ);
	CALL(cuStreamWriteValue64_v2, NULL, p + 8, 0x0102030405060708, 0);
	CALL(cuStreamWaitValue64_v2, NULL, p + 8, 1, CU_STREAM_WAIT_VALUE_GEQ);
	CALL(cuStreamBatchMemOp_v2, NULL, 2, ops, 0);
	CALL(cuStreamWriteValue32_v2_ptsz, NULL, p + 16, 1, 0);
	CALL(cuStreamWaitValue32_v2_ptsz, NULL, p + 16, 1, CU_STREAM_WAIT_VALUE_EQ);
	CALL(cuStreamWriteValue64_v2_ptsz, NULL, p + 24, 1, 0);
	CALL(cuStreamWaitValue64_v2_ptsz, NULL, p + 24, 1, CU_STREAM_WAIT_VALUE_AND);
	CALL(cuStreamBatchMemOp_v2_ptsz, NULL, 1, ops, 0);
	REMARK("written");
	CONTENT("p", p, 32);
	CALL(cuStreamWriteValue32_v2, NULL, p + 1, 1, 0);
	CALL(cuStreamWriteValue64_v2, NULL, p + 4, 1, 0);
	CALL(cuStreamWriteValue32_v2, NULL, 0, 1, 0);
	CALL(cuStreamWriteValue32_v2, NULL, p, 1, 0x100);
	CALL(cuStreamBatchMemOp_v2, NULL, 0, ops, 0);
	CALL(cuStreamBatchMemOp_v2, NULL, 257, ops, 0);
	CALL(cuStreamBatchMemOp_v2, NULL, 1, NULL, 0);
}

static unsigned gone;

static void went(void *data)
{
	gone += *(unsigned *)data;
}

CASE(objects)
{
	static unsigned one = 1;
	CUgraph graph;
	CUuserObject object = NULL;
	start();
	graph = new_graph();
	CALL(cuUserObjectCreate, &object, &one, went, 2, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
	CALL(cuUserObjectRetain, object, 1);
	CALL(cuGraphRetainUserObject, graph, object, 1, 0);
	CALL(cuGraphRetainUserObject, graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
	CALL(cuGraphReleaseUserObject, graph, object, 1);
	CALL(cuUserObjectRelease, object, 2);
	REMARK("gone %u", gone);
	CALL(cuGraphDestroy, graph);
	QUIET(cuCtxSynchronize);
	for (int i = 0; i < 1000 && !gone; i++)
		usleep(1000);
	REMARK("gone %u", gone);
	CALL(cuUserObjectCreate, &object, &one, went, 0, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
	CALL(cuUserObjectCreate, &object, &one, went, 1, 0);
	CALL(cuUserObjectCreate, &object, &one, NULL, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
}

CASE(drawn)
{
	char path[] = "/tmp/ckt-api-XXXXXX", first[16] = "";
	int fd = mkstemp(path);
	CUgraph graph;
	start();
	graph = new_graph();
	empty(graph, NULL, 0);
	CALL(cuGraphDebugDotPrint, graph, path, 0);
	if (read(fd, first, 7) != 7)
		first[0] = 0;
	TEXT("begins", first);
	CALL(cuGraphDebugDotPrint, graph, NULL, 0);
	CALL(cuGraphDebugDotPrint, NULL, path, 0);
	unlink(path);
}

/* What is not forwarded must say so. */
CASE(others)
{
	CUgraph graph;
	CUgraphNode node = NULL;
	CUgraphConditionalHandle handle = 0;
	CUcontext context = start();
	graph = new_graph();
	CALL(cuGraphConditionalHandleCreate, &handle, graph, context, 0, 0);
	CALL(cuGraphAddExternalSemaphoresSignalNode, &node, graph, NULL, 0, NULL);
	CALL(cuGraphAddExternalSemaphoresWaitNode, &node, graph, NULL, 0, NULL);
}

CASE(child)
{
	CUgraph graph, child, other, inner = NULL;
	CUgraphNode node = NULL, set;
	CUgraphExec exec;
	CUDA_MEMSET_NODE_PARAMS fill;
	CUcontext context = start();
	CUdeviceptr p = memory(64);
	size_t count = 77;
	fill = set_params(p, 1, 4);
	child = new_graph();
	other = new_graph();
	graph = new_graph();
	QUIET(cuGraphAddMemsetNode, &set, child, NULL, 0, &fill, context);
	fill = set_params(p, 2, 4);
	QUIET(cuGraphAddMemsetNode, &set, other, NULL, 0, &fill, context);
	CALL(cuGraphAddChildGraphNode, &node, graph, NULL, 0, child);
	CALL(cuGraphChildGraphNodeGetGraph, node, &inner);
	CALL(cuGraphGetNodes, inner, NULL, &count);
	NUMBER("count", (long long)count);
	exec = instantiate(graph);
	CALL(cuGraphExecChildGraphNodeSetParams, exec, node, other);
	run(exec);
	REMARK("launched");
	CONTENT("p", p, 32);
}

CASE(child_wrong)
{
	CUgraph graph, child, other;
	CUgraphNode node = NULL, set;
	CUgraphExec exec;
	CUDA_MEMSET_NODE_PARAMS fill;
	CUcontext context = start();
	CUdeviceptr p = memory(64);
	fill = set_params(p, 1, 4);
	child = new_graph();
	other = new_graph();
	graph = new_graph();
	QUIET(cuGraphAddMemsetNode, &set, child, NULL, 0, &fill, context);
	QUIET(cuGraphAddChildGraphNode, &node, graph, NULL, 0, child);
	exec = instantiate(graph);
	CALL(cuGraphExecChildGraphNodeSetParams, exec, node, other);
	QUIET(cuGraphAddEmptyNode, &set, other, NULL, 0);
	CALL(cuGraphExecChildGraphNodeSetParams, exec, node, other);
	QUIET(cuGraphAddMemsetNode, &set, other, NULL, 0, &fill, context);
	CALL(cuGraphExecChildGraphNodeSetParams, exec, node, other);
	CALL(cuGraphExecChildGraphNodeSetParams, exec, set, child);
	CALL(cuGraphAddChildGraphNode, &node, graph, NULL, 0, graph);
}

CASE(operations_of_a_stream)
{
	CUdeviceptr p;
	CUstream stream = NULL;
	CUstreamBatchMemOpParams ops[3];
	start();
	p = memory(64);
	QUIET(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	memset(ops, 0, sizeof(ops));
	ops[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	ops[0].writeValue.address = p;
	ops[0].writeValue.value = 7;
	ops[1].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
	ops[1].waitValue.address = p;
	ops[1].waitValue.value = 7;
	ops[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
	ops[2].operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
	ops[2].writeValue.address = p + 8;
	ops[2].writeValue.value64 = 0x0102030405060708;
	CALL(cuStreamBatchMemOp_v2, stream, 3, ops, 0);
	CALL(cuStreamSynchronize, stream);
	CONTENT("p", p, 24);
	ops[0].writeValue.address = p + 16;
	CALL(cuStreamBatchMemOp_v2_ptsz, NULL, 1, ops, 0);
	CONTENT("p", p, 24);
	CALL(cuStreamBatchMemOp_v2, stream, 257, ops, 0);
	ops[0].writeValue.address = p + 1;
	CALL(cuStreamBatchMemOp_v2, stream, 1, ops, 0);
	ops[0].operation = (CUstreamBatchMemOpType)99;
	CALL(cuStreamBatchMemOp_v2, stream, 1, ops, 0);
}
