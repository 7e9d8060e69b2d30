/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: building, asking, instantiating, updating, launching, objects of the program. */
#include "graph.h"

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
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {
		.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD, .result_out = 77};
	start();
	graph = new_graph();
	empty(graph, NULL, 0);
	CALL(cuGraphInstantiate, &exec, graph, &error, log, sizeof(log));
	CALL(cuGraphInstantiate_v2, &exec, graph, &error, log, sizeof(log));
	CALL(cuGraphInstantiateWithFlags, &exec, graph,
		CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
	CALL(cuGraphExecGetFlags, exec, &flags);
	NUMBER("flags", (long long)flags);
	CALL(cuGraphInstantiateWithFlags, &exec, graph,
		CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
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
	for (int i = 0; i < 60000 && !gone; i++)
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
