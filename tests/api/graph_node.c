/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of each kind: their parameters, in the graph and in what was made of it. */
#include "graph.h"

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
	YES("same",
		fill_got.dst == a && fill_got.value == 0x01020304 && fill_got.width == 8 &&
			fill_got.elementSize == 4);
	CALL(cuGraphMemcpyNodeGetParams, copy, &move_got);
	YES("same",
		move_got.srcDevice == a && move_got.dstDevice == b && move_got.WidthInBytes == 64);
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
		.memset = {.dst = p,
			.value = 3,
			.elementSize = 4,
			.width = 4,
			.height = 1,
			.ctx = context}};
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
