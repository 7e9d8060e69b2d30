/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudacommon/graph_call.c: a captured library call as a node: what the graph API says of it, its
 * copies, what may not be done with it.
 */
#include "../softgpu/files.h"
#include "cudacommon/capture.h"

static CUstream stream;

/* A graph with one captured call, which nobody has made, and a memset behind it. */
static CUgraph captured(uint64_t call, CUdeviceptr memory)
{
	struct ckt_capture_stream *capturing;
	uint64_t id;
	CUgraph graph = NULL;
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(ckt_stream_resolve(stream, &id));
	OK(ckt_capture_enter(id, &capturing));
	YES(capturing != NULL);
	OK(ckt_graph_leave(ckt_graph_call_append(capturing, call)));
	OK(cuMemsetD32Async(memory, 5, 1, stream));
	OK(cuStreamEndCapture(stream, &graph));
	return graph;
}

static uint64_t call_of(CUgraph graph)
{
	ckt_graph_enter();
	uint64_t id = ckt_graph_call_id(ckt_graph_find(graph));
	ckt_graph_leave(CUDA_SUCCESS);
	return id;
}

static CUgraph child_of(CUgraph graph)
{
	CUgraphNode nodes[2];
	CUgraphNodeType type;
	CUgraph child = NULL;
	size_t count = 2;
	OK(cuGraphGetNodes(graph, nodes, &count));
	IS(count, 2);
	OK(cuGraphNodeGetType(nodes[0], &type));
	IS(type, CU_GRAPH_NODE_TYPE_GRAPH);
	OK(cuGraphChildGraphNodeGetGraph(nodes[0], &child));
	return child;
}

static void test_node(void)
{
	CUdeviceptr memory;
	CUgraphExec exec;
	CUgraphNode node;
	size_t count = 7;
	unsigned word = 0;
	test_context();
	OK(cuMemAlloc(&memory, 64));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CUgraph graph = captured(77, memory), child = child_of(graph), clone;
	IS(call_of(child), 77);
	IS(call_of(graph), 0);
	OK(cuGraphGetEdges(graph, NULL, NULL, NULL, &count));
	IS(count, 1);
	OK(cuGraphGetNodes(child, NULL, &count));
	IS(count, 0);
	/* Nothing can be put into it, and it is launched as a node alone. */
	IS(cuGraphAddEmptyNode(&node, child, NULL, 0), CUDA_ERROR_NOT_SUPPORTED);
	IS(cuStreamBeginCaptureToGraph(stream, child, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL),
		CUDA_ERROR_NOT_SUPPORTED);
	OK(cuGraphClone(&clone, child));
	IS(call_of(clone), 77);
	IS(cuGraphInstantiate(&exec, clone, 0), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuGraphDestroy(clone));
	IS(cuGraphDestroy(child), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphClone(&clone, graph));
	IS(call_of(child_of(clone)), 77);
	OK(cuGraphDestroy(graph));
	OK(cuGraphInstantiate(&exec, clone, 0));
	OK(cuGraphDestroy(clone));
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuMemcpyDtoH(&word, memory, 4));
	IS(word, 5);
	OK(cuGraphExecDestroy(exec));
	OK(cuStreamDestroy(stream));
	OK(cuMemFree(memory));
}

/* A node is updated by one that stands for a call, too, and by no other child graph. */
static void test_update(void)
{
	CUdeviceptr memory;
	CUgraphExec exec;
	CUgraphNode node, behind;
	CUgraphExecUpdateResultInfo info;
	CUgraph empty, other;
	CUDA_MEMSET_NODE_PARAMS fill = {.value = 6, .elementSize = 4, .width = 1, .height = 1};
	test_context();
	OK(cuMemAlloc(&memory, 64));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CUgraph first = captured(1, memory), second = captured(2, memory + 4);
	OK(cuGraphInstantiate(&exec, first, 0));
	OK(cuGraphExecUpdate(exec, second, &info));
	IS(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuGraphCreate(&other, 0));
	OK(cuGraphCreate(&empty, 0));
	OK(cuGraphAddChildGraphNode(&node, other, NULL, 0, empty));
	fill.dst = memory;
	OK(cuGraphAddMemsetNode(&behind, other, &node, 1, &fill, NULL));
	IS(cuGraphExecUpdate(exec, other, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	IS(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	/* As the child of another graph's node it stands for the call there, too. */
	OK(cuGraphAddChildGraphNode(&node, empty, NULL, 0, child_of(second)));
	OK(cuGraphChildGraphNodeGetGraph(node, &other));
	IS(call_of(other), 2);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(first));
	OK(cuGraphDestroy(second));
	OK(cuGraphDestroy(empty));
	OK(cuStreamDestroy(stream));
	OK(cuMemFree(memory));
}

UNIT_SUITE(graph_call, {"node", test_node}, {"update", test_update})
