/* SPDX-License-Identifier: Apache-2.0 */
/* Conditional nodes of graphs: handles, bodies, what may stand in them, when a condition counts. */
#include "conditional.h"

CASE(handle)
{
	CUgraph graph = begin(), other = new_graph();
	CUgraphConditionalHandle a = 0, b = 0;
	CUcontext second = NULL;
	CALL(cuGraphConditionalHandleCreate, &a, graph, context, 0, 0);
	CALL(cuGraphConditionalHandleCreate, &b, graph, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
	YES("another", a && b && a != b);
	CALL(cuGraphConditionalHandleCreate, &b, other, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
	YES("another", a != b);
	CALL(cuGraphConditionalHandleCreate, &b, graph, context, 0, 2);
	CALL(cuGraphConditionalHandleCreate, &b, graph, NULL, 0, 0);
	CALL(cuGraphConditionalHandleCreate, &b, NULL, context, 0, 0);
	CALL(cuGraphConditionalHandleCreate, NULL, graph, context, 0, 0);
	QUIET(cuCtxCreate_v4, &second, NULL, 0, 0);
	QUIET(cuCtxSetCurrent, context);
	CALL(cuGraphConditionalHandleCreate, &b, graph, second, 0, 0);
	QUIET(cuCtxSetCurrent, NULL);
	CALL(cuGraphConditionalHandleCreate, &b, graph, context, 0, 0);
	CALL(cuGraphConditionalHandleCreate, &b, graph, NULL, 0, 0);
}

CASE(if_default)
{
	CUgraph graph = begin(), *bodies;
	CUgraphNode node = NULL, inner[2] = {NULL, NULL};
	CUgraphNodeType type = (CUgraphNodeType)77;
	size_t nodes = 77;
	for (unsigned value = 0; value < 3; value++) {
		graph = new_graph();
		bodies = add_conditional(graph, NULL,
			new_handle(graph, value, CU_GRAPH_COND_ASSIGN_DEFAULT),
			CU_GRAPH_COND_TYPE_IF, 1);
		YES("a body", bodies && bodies[0] && bodies[0] != graph);
		add_add(bodies[0], NULL, p, 1);
		run(instantiate(graph));
	}
	nodes = 1;
	CALL(cuGraphGetNodes, graph, &node, &nodes);
	NUMBER("count", (long long)nodes);
	CALL(cuGraphNodeGetType, node, &type);
	NUMBER("type", type);
	nodes = 2;
	CALL(cuGraphGetNodes, bodies[0], inner, &nodes);
	NUMBER("count", (long long)nodes);
	CALL(cuGraphDestroy, bodies[0]);
	CALL(cuGraphDestroyNode, inner[0]);
	CALL(cuGraphDestroy, graph);
	CALL(cuGraphGetNodes, bodies[0], inner, &nodes);
}

CASE(if_set)
{
	CUgraph graph = begin(), *bodies;
	CUgraphConditionalHandle handle = new_handle(graph, 0, 0);
	CUgraphNode setting = add_set_from(graph, NULL, handle, p + 8);
	CUgraphExec exec;
	bodies = add_conditional(graph, setting, handle, CU_GRAPH_COND_TYPE_IF, 1);
	add_add(bodies[0], NULL, p, 1);
	exec = instantiate(graph);
	run(exec);
	QUIET(cuMemsetD32_v2, p + 8, 7, 1);
	run(exec);
	run(exec);
	QUIET(cuMemsetD32_v2, p + 8, 0, 1);
	run(exec);
}

CASE(if_else)
{
	CUgraph graph = begin(), *bodies;
	CUgraphConditionalHandle handle = new_handle(graph, 0, CU_GRAPH_COND_ASSIGN_DEFAULT);
	CUgraphNode setting = add_set_from(graph, NULL, handle, p + 8);
	CUgraphExec exec;
	bodies = add_conditional(graph, setting, handle, CU_GRAPH_COND_TYPE_IF, 2);
	YES("two bodies", bodies[0] && bodies[1] && bodies[0] != bodies[1]);
	add_add(bodies[0], NULL, p, 1);
	add_add(bodies[1], NULL, p + 4, 1);
	exec = instantiate(graph);
	run(exec);
	QUIET(cuMemsetD32_v2, p + 8, 7, 1);
	run(exec);
}

CASE(loop)
{
	CUgraph graph = begin(), *bodies;
	CUgraphConditionalHandle handle = new_handle(graph, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
	CUgraphNode adding;
	CUgraphExec exec;
	bodies = add_conditional(
		graph, add_add(graph, NULL, p + 4, 1), handle, CU_GRAPH_COND_TYPE_WHILE, 1);
	adding = add_add(bodies[0], NULL, p, 1);
	add_count(bodies[0], adding, handle, p + 8, 5);
	exec = instantiate(graph);
	run(exec);
	run(exec);
}

CASE(many)
{
	CUgraph graph = begin(), *bodies;
	CUgraphConditionalHandle handle = new_handle(graph, 0, CU_GRAPH_COND_ASSIGN_DEFAULT);
	CUgraphNode setting = add_set_from(graph, NULL, handle, p + 12);
	CUgraphExec exec;
	bodies = add_conditional(graph, setting, handle, CU_GRAPH_COND_TYPE_SWITCH, 3);
	for (unsigned i = 0; i < 3; i++)
		add_add(bodies[i], NULL, p + 4 * i, 1);
	exec = instantiate(graph);
	for (unsigned i = 0; i < 5; i++) {
		QUIET(cuMemsetD32_v2, p + 12, i, 1);
		run(exec);
	}
}

/* A loop in a loop; the inner one's handle is of the graph or of the outer one's body. */
CASE(nested)
{
	begin();
	for (int of_body = 0; of_body < 2; of_body++) {
		CUgraph graph = new_graph(), *outer_body, *inner_body;
		CUgraphConditionalHandle outer = new_handle(graph, 1, CU_GRAPH_COND_ASSIGN_DEFAULT),
					 inner;
		CUgraphNode setting, adding;
		outer_body = add_conditional(graph, NULL, outer, CU_GRAPH_COND_TYPE_WHILE, 1);
		inner = new_handle(of_body ? outer_body[0] : graph, 0, 0);
		setting = add_set(outer_body[0], NULL, inner, 1);
		inner_body =
			add_conditional(outer_body[0], setting, inner, CU_GRAPH_COND_TYPE_WHILE, 1);
		adding = add_add(inner_body[0], NULL, p, 1);
		add_count(inner_body[0], adding, inner, p + 8, 4);
		add_count(outer_body[0], setting, outer, p + 12, 3);
		run(instantiate(graph));
	}
}

/*
 * How often a default is assigned to a condition inside of a loop: that of the graph or of the
 * body.
 */
CASE(nested_default)
{
	begin();
	for (int of_body = 0; of_body < 2; of_body++) {
		CUgraph graph = new_graph(), *outer_body, *inner_body;
		CUgraphConditionalHandle outer = new_handle(graph, 1, CU_GRAPH_COND_ASSIGN_DEFAULT),
					 inner;
		CUgraphNode adding;
		outer_body = add_conditional(graph, NULL, outer, CU_GRAPH_COND_TYPE_WHILE, 1);
		inner = new_handle(
			of_body ? outer_body[0] : graph, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
		inner_body = add_conditional(outer_body[0],
			add_count(outer_body[0], NULL, outer, p + 12, 3), inner,
			CU_GRAPH_COND_TYPE_IF, 1);
		adding = add_add(inner_body[0], NULL, p, 1);
		add_set(inner_body[0], adding, inner, 0);
		run(instantiate(graph));
	}
}

/* A condition outlives its launch where no default is assigned. */
CASE(kept)
{
	begin();
	for (unsigned flags = 0; flags < 2; flags++) {
		CUgraph graph = new_graph(), *bodies;
		CUgraphConditionalHandle handle = new_handle(graph, 0, flags);
		CUgraphNode node = NULL, first = add_set_from(graph, NULL, handle, p + 8);
		CUgraphNodeParams params = conditional(handle, CU_GRAPH_COND_TYPE_IF, 1);
		CUgraphExec exec;
		QUIET(cuGraphAddNode_v2, &node, graph, &first, NULL, 1, &params);
		bodies = params.conditional.phGraph_out;
		add_add(bodies[0], NULL, p, 1);
		add_set(graph, node, handle, 1);
		exec = instantiate(graph);
		run(exec);
		QUIET(cuGraphNodeSetEnabled, exec, first, 0);
		run(exec);
		run(exec);
	}
}

CASE(parameters_wrong)
{
	static const struct {
		int type;
		unsigned size;
	} forms[] = {{CU_GRAPH_COND_TYPE_IF, 0}, {CU_GRAPH_COND_TYPE_IF, 3},
		{CU_GRAPH_COND_TYPE_WHILE, 0}, {CU_GRAPH_COND_TYPE_WHILE, 2},
		{CU_GRAPH_COND_TYPE_SWITCH, 0}, {CU_GRAPH_COND_TYPE_SWITCH, 1},
		{CU_GRAPH_COND_TYPE_SWITCH, 100}, {3, 1}, {-1, 1}};
	CUgraph graph = begin(), other = new_graph();
	CUgraphNode node = NULL;
	CUgraphNodeParams params;
	CUgraphConditionalHandle handle, elsewhere = new_handle(other, 0, 0);
	for (unsigned i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		params = conditional(new_handle(graph, 0, 0),
			(CUgraphConditionalNodeType)forms[i].type, forms[i].size);
		CALL(cuGraphAddNode, &node, graph, NULL, 0, &params);
		NUMBER("form", i);
	}
	handle = new_handle(graph, 0, 0);
	params = conditional(0, CU_GRAPH_COND_TYPE_IF, 1);
	CALL(cuGraphAddNode, &node, graph, NULL, 0, &params);
	params = conditional(elsewhere, CU_GRAPH_COND_TYPE_IF, 1);
	CALL(cuGraphAddNode, &node, graph, NULL, 0, &params);
	params = conditional(handle, CU_GRAPH_COND_TYPE_IF, 1);
	params.conditional.ctx = NULL;
	CALL(cuGraphAddNode, &node, graph, NULL, 0, &params);
	params = conditional(handle, CU_GRAPH_COND_TYPE_IF, 1);
	CALL(cuGraphAddNode, NULL, graph, NULL, 0, &params);
	CALL(cuGraphAddNode, &node, NULL, NULL, 0, &params);
	CALL(cuGraphAddNode, &node, graph, NULL, 1, &params);
}

CASE(handle_twice)
{
	CUgraph graph = begin(), *bodies;
	CUgraphConditionalHandle handle = new_handle(graph, 0, 0), inner;
	CUgraphNode node = NULL;
	CUgraphNodeParams params = conditional(handle, CU_GRAPH_COND_TYPE_IF, 1);
	CUgraphExec exec = NULL;
	CALL(cuGraphAddNode, &node, graph, NULL, 0, &params);
	bodies = params.conditional.phGraph_out;
	params = conditional(handle, CU_GRAPH_COND_TYPE_IF, 1);
	CALL(cuGraphAddNode, &node, graph, NULL, 0, &params);
	CALL(cuGraphAddNode, &node, bodies[0], NULL, 0, &params);
	inner = new_handle(bodies[0], 0, 0);
	params = conditional(inner, CU_GRAPH_COND_TYPE_IF, 1);
	CALL(cuGraphAddNode, &node, graph, NULL, 0, &params);
	try_instantiate(graph, &exec);
}

CASE(handle_bogus)
{
	CUgraph graph = begin();
	CUgraphNode node = NULL;
	CUgraphNodeParams params = conditional(0x123456789abcdef0, CU_GRAPH_COND_TYPE_IF, 1);
	CALL(cuGraphAddNode, &node, graph, NULL, 0, &params);
}

CASE(unused)
{
	CUgraph graph = begin();
	CUgraphExec exec = NULL;
	CUgraphNode node = NULL;
	CUgraphNodeParams params;
	new_handle(graph, 0, 0);
	try_instantiate(graph, &exec);
	CALL(cuGraphInstantiateWithFlags, &exec, graph, 0);
	graph = new_graph();
	params = conditional(
		new_handle(graph, 1, CU_GRAPH_COND_ASSIGN_DEFAULT), CU_GRAPH_COND_TYPE_IF, 1);
	CALL(cuGraphAddNode, &node, graph, NULL, 0, &params);
	new_handle(params.conditional.phGraph_out[0], 0, 0);
	try_instantiate(graph, &exec);
}

/* The node goes: its handle is left. */
CASE(destroyed)
{
	CUgraph graph = begin();
	CUgraphExec exec = NULL;
	CUgraphNode node = NULL, second = NULL, edge_from, edge_to;
	size_t edges = 1;
	CUgraphConditionalHandle handle = new_handle(graph, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
	CUgraphNodeParams params = conditional(handle, CU_GRAPH_COND_TYPE_IF, 1);
	CALL(cuGraphAddNode, &node, graph, NULL, 0, &params);
	second = add_add(graph, node, p, 1);
	CALL(cuGraphRemoveDependencies, graph, &node, &second, 1);
	CALL(cuGraphGetEdges, graph, &edge_from, &edge_to, &edges);
	NUMBER("count", (long long)edges);
	CALL(cuGraphDestroyNode, second);
	CALL(cuGraphDestroyNode, node);
	try_instantiate(graph, &exec);
	params = conditional(handle, CU_GRAPH_COND_TYPE_IF, 1);
	CALL(cuGraphAddNode, &node, graph, NULL, 0, &params);
}

static void nothing(void *data)
{
	(void)data;
}

/* What may stand in a body; each in a graph of its own. */
CASE(bodies)
{
	CUgraph graph = begin();
	CUevent event = NULL;
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUstreamBatchMemOpParams op;
	char pageable[16] = "in host memory.";
	char *pinned = NULL;
	static const char *const names[] = {"empty", "kernel", "fill", "copy", "copy from host",
		"copy to host", "copy to pinned", "child", "host", "record", "wait", "allocation",
		"memory operation"};
	QUIET(cuEventCreate, &event, 0);
	QUIET(cuMemHostAlloc, (void **)&pinned, 64, 0);
	memset(&op, 0, sizeof(op));
	op.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
	op.writeValue.address = p;
	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		CUgraph body, child = new_graph();
		CUgraphNode node = NULL;
		CUgraphExec exec = NULL;
		CUgraphNodeParams params;
		void *arguments[2] = {&p, &i};
		QUIET(cuMemsetD8_v2, p, 0, 64);
		graph = new_graph();
		body = add_conditional(graph, NULL,
			new_handle(graph, 1, CU_GRAPH_COND_ASSIGN_DEFAULT), CU_GRAPH_COND_TYPE_IF,
			1)[0];
		memset(&params, 0, sizeof(params));
		params.memcpy.copyParams = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			.srcDevice = p + 32,
			.dstMemoryType = CU_MEMORYTYPE_DEVICE,
			.dstDevice = p,
			.WidthInBytes = 16,
			.Height = 1,
			.Depth = 1};
		switch (i) {
		case 0:
			params.type = CU_GRAPH_NODE_TYPE_EMPTY;
			break;
		case 1:
			params.type = CU_GRAPH_NODE_TYPE_KERNEL;
			params.kernel = (CUDA_KERNEL_NODE_PARAMS_v3){.func = add,
				.gridDimX = 1,
				.gridDimY = 1,
				.gridDimZ = 1,
				.blockDimX = 1,
				.blockDimY = 1,
				.blockDimZ = 1,
				.kernelParams = arguments};
			break;
		case 2:
			params.type = CU_GRAPH_NODE_TYPE_MEMSET;
			params.memset = (CUDA_MEMSET_NODE_PARAMS_v2){
				.dst = p, .value = 5, .elementSize = 4, .width = 2, .height = 1};
			break;
		case 4:
			params.memcpy.copyParams.srcMemoryType = CU_MEMORYTYPE_HOST;
			params.memcpy.copyParams.srcHost = pageable;
			break;
		case 5:
			params.memcpy.copyParams.dstMemoryType = CU_MEMORYTYPE_HOST;
			params.memcpy.copyParams.dstHost = pageable;
			break;
		case 6:
			params.memcpy.copyParams.dstMemoryType = CU_MEMORYTYPE_HOST;
			params.memcpy.copyParams.dstHost = pinned;
			break;
		case 7:
			add_add(child, NULL, p, 9);
			params.type = CU_GRAPH_NODE_TYPE_GRAPH;
			params.graph.graph = child;
			break;
		case 8:
			params.type = CU_GRAPH_NODE_TYPE_HOST;
			params.host.fn = nothing;
			break;
		case 9:
			params.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
			params.eventRecord.event = event;
			break;
		case 10:
			params.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT;
			params.eventWait.event = event;
			break;
		case 11:
			params.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
			params.alloc.poolProps = props;
			params.alloc.bytesize = 64;
			break;
		case 12:
			params.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
			params.memOp = (CUDA_BATCH_MEM_OP_NODE_PARAMS_v2){
				.ctx = context, .count = 1, .paramArray = &op};
			break;
		default:
			break;
		}
		if (i >= 3 && i <= 6)
			params.type = CU_GRAPH_NODE_TYPE_MEMCPY;
		REMARK("%s", names[i]);
		if (CALL(cuGraphAddNode_v2, &node, body, NULL, NULL, 0, &params))
			continue;
		if (try_instantiate(graph, &exec) == CUDA_GRAPH_INSTANTIATE_SUCCESS) {
			CALL(cuGraphLaunch, exec, NULL);
			CALL(cuStreamSynchronize, NULL);
			CONTENT("p", p, 16);
			BYTES("host", pageable, 16);
			BYTES("pinned", pinned, 16);
		}
	}
}

/* The same inside a child graph inside a body, and in a child graph that comes later. */
CASE(bodies_deep)
{
	CUgraph graph = begin(), body, child = new_graph();
	CUgraphNode node = NULL;
	CUgraphExec exec = NULL;
	CUDA_HOST_NODE_PARAMS host = {.fn = nothing};
	QUIET(cuGraphAddHostNode, &node, child, NULL, 0, &host);
	body = add_conditional(graph, NULL, new_handle(graph, 1, CU_GRAPH_COND_ASSIGN_DEFAULT),
		CU_GRAPH_COND_TYPE_IF, 1)[0];
	CALL(cuGraphAddChildGraphNode, &node, body, NULL, 0, child);
	try_instantiate(graph, &exec);
}

/* Copying and embedding what has a conditional node. */
CASE(copies)
{
	CUgraph graph = begin(), around = new_graph(), clone = NULL, body;
	CUgraphNode node = NULL;
	CUgraphNodeParams params;
	CUgraphExec exec = NULL;
	CUgraphConditionalHandle handle = new_handle(graph, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
	body = add_conditional(graph, NULL, handle, CU_GRAPH_COND_TYPE_IF, 1)[0];
	add_add(body, NULL, p, 1);
	CALL(cuGraphClone, &clone, graph);
	CALL(cuGraphClone, &clone, body);
	CALL(cuGraphAddChildGraphNode, &node, around, NULL, 0, graph);
	CALL(cuGraphAddChildGraphNode, &node, around, NULL, 0, body);
	CALL(cuGraphInstantiateWithFlags, &exec, body, 0);
	memset(&params, 0, sizeof(params));
	params.type = CU_GRAPH_NODE_TYPE_GRAPH;
	params.graph.graph = graph;
	params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
	CALL(cuGraphAddNode, &node, around, NULL, 0, &params);
	if (!CALL(cuGraphInstantiateWithFlags, &exec, around, 0))
		run(exec);
}

/* A handle alone, without a node. */
CASE(copies_of_a_handle)
{
	CUgraph graph = begin(), around = new_graph(), clone = NULL;
	CUgraphNode node = NULL;
	new_handle(graph, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
	CALL(cuGraphClone, &clone, graph);
	CALL(cuGraphAddChildGraphNode, &node, around, NULL, 0, graph);
}

CASE(instances)
{
	CUgraph graph = begin(), body;
	CUgraphExec exec = NULL, second = NULL;
	CUgraphConditionalHandle handle = new_handle(graph, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
	body = add_conditional(graph, NULL, handle, CU_GRAPH_COND_TYPE_IF, 1)[0];
	add_add(body, NULL, p, 1);
	CALL(cuGraphInstantiateWithFlags, &exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
	CALL(cuGraphInstantiateWithFlags, &exec, graph, 0);
	try_instantiate(graph, &second);
	CALL(cuGraphExecDestroy, exec);
	CALL(cuGraphInstantiateWithFlags, &second, graph,
		CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
	run(second);
	CALL(cuGraphUpload, second, NULL);
	CALL(cuGraphDestroy, graph);
	run(second);
	run(second);
}

CASE(set_parameters)
{
	CUgraph graph = begin(), body;
	CUgraphExec exec = NULL;
	CUgraphNode node = NULL, adding, filling = NULL;
	CUgraphConditionalHandle handle = new_handle(graph, 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
	CUgraphNodeParams params = conditional(handle, CU_GRAPH_COND_TYPE_IF, 1), same;
	CUDA_KERNEL_NODE_PARAMS kernel_params = {.func = add,
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1};
	CUDA_MEMSET_NODE_PARAMS fill = {
		.dst = p + 4, .value = 3, .elementSize = 4, .width = 1, .height = 1};
	unsigned value = 10, enabled = 77;
	CUdeviceptr to = p;
	void *arguments[2] = {&to, &value};
	QUIET(cuGraphAddNode, &node, graph, NULL, 0, &params);
	body = params.conditional.phGraph_out[0];
	adding = add_add(body, NULL, p, 1);
	QUIET(cuGraphAddMemsetNode, &filling, body, &adding, 1, &fill, context);
	exec = instantiate(graph);
	same = conditional(handle, CU_GRAPH_COND_TYPE_IF, 1);
	CALL(cuGraphNodeSetParams, node, &same);
	CALL(cuGraphExecNodeSetParams, exec, node, &same);
	kernel_params.kernelParams = arguments;
	CALL(cuGraphExecKernelNodeSetParams_v2, exec, adding, &kernel_params);
	fill.value = 4;
	CALL(cuGraphExecMemsetNodeSetParams, exec, filling, &fill, context);
	run(exec);
	CALL(cuGraphNodeSetEnabled, exec, adding, 0);
	CALL(cuGraphNodeGetEnabled, exec, adding, &enabled);
	NUMBER("enabled", enabled);
	run(exec);
	CALL(cuGraphNodeSetEnabled, exec, adding, 1);
	run(exec);
	CALL(cuGraphNodeSetEnabled, exec, node, 0);
	CALL(cuGraphNodeGetEnabled, exec, node, &enabled);
}

/* A kernel that tells another handle, of the same graph. */
CASE(set_handle)
{
	CUgraph graph = begin();
	CUgraphConditionalHandle a = new_handle(graph, 0, CU_GRAPH_COND_ASSIGN_DEFAULT),
				 b = new_handle(graph, 0, CU_GRAPH_COND_ASSIGN_DEFAULT), said;
	CUgraphNode setting = add_set(graph, NULL, a, 1);
	CUDA_KERNEL_NODE_PARAMS kernel_params;
	unsigned value = 1;
	void *arguments[2] = {&b, &value};
	CUgraphExec exec;
	add_add(add_conditional(graph, setting, a, CU_GRAPH_COND_TYPE_IF, 1)[0], NULL, p, 1);
	add_add(add_conditional(graph, setting, b, CU_GRAPH_COND_TYPE_IF, 1)[0], NULL, p + 4, 1);
	exec = instantiate(graph);
	run(exec);
	CALL(cuGraphKernelNodeGetParams_v2, setting, &kernel_params);
	memcpy(&said, kernel_params.kernelParams[0], sizeof(said));
	YES("the handle", said == a);
	kernel_params.kernelParams = arguments;
	CALL(cuGraphExecKernelNodeSetParams_v2, exec, setting, &kernel_params);
	run(exec);
}

/* condition, adding */
static CUgraph of_kind(unsigned value, unsigned flags, CUgraphConditionalNodeType type,
	unsigned size, unsigned adds, CUgraphNode *node)
{
	CUgraph graph = new_graph();
	CUgraphNodeParams params = conditional(new_handle(graph, value, flags), type, size);
	QUIET(cuGraphAddNode, node, graph, NULL, 0, &params);
	for (unsigned i = 0; i < size; i++)
		add_add(params.conditional.phGraph_out[i], NULL, p + 4 * i, adds);
	return graph;
}

static void try_update(CUgraphExec exec, CUgraph graph, CUgraphNode node)
{
	CUgraphExecUpdateResultInfo info;
	memset(&info, 0x77, sizeof(info));
	CALL(cuGraphExecUpdate_v2, exec, graph, &info);
	NUMBER("result", info.result);
	YES("the node", info.errorNode == node);
	YES("no node", info.errorNode == NULL);
}

CASE(update)
{
	CUgraphNode node = NULL;
	CUgraph graph, other;
	CUgraphExec exec;
	begin();
	graph = of_kind(1, CU_GRAPH_COND_ASSIGN_DEFAULT, CU_GRAPH_COND_TYPE_IF, 2, 1, &node);
	exec = instantiate(graph);
	run(exec);
	try_update(exec, graph, node);
	run(exec);
	other = of_kind(0, CU_GRAPH_COND_ASSIGN_DEFAULT, CU_GRAPH_COND_TYPE_IF, 2, 4, &node);
	try_update(exec, other, node);
	run(exec);
	CALL(cuGraphDestroy, other);
	CALL(cuGraphDestroy, graph);
	run(exec);
	other = of_kind(0, CU_GRAPH_COND_ASSIGN_DEFAULT, CU_GRAPH_COND_TYPE_IF, 1, 4, &node);
	try_update(exec, other, node);
	other = of_kind(0, CU_GRAPH_COND_ASSIGN_DEFAULT, CU_GRAPH_COND_TYPE_SWITCH, 2, 4, &node);
	try_update(exec, other, node);
	run(exec);
}

/* Kernels that set the condition, in an update. */
CASE(update_handle)
{
	CUgraph graphs[2];
	CUgraphNode node = NULL;
	CUgraphExec exec = NULL;
	begin();
	for (unsigned i = 0; i < 2; i++) {
		CUgraphConditionalHandle handle;
		CUgraph *bodies;
		graphs[i] = new_graph();
		handle = new_handle(graphs[i], 1, CU_GRAPH_COND_ASSIGN_DEFAULT);
		bodies = add_conditional(graphs[i], NULL, handle, CU_GRAPH_COND_TYPE_WHILE, 1);
		node = add_add(bodies[0], NULL, p, 1 + i);
		add_count(bodies[0], node, handle, p + 8, 3 + i);
	}
	exec = instantiate(graphs[0]);
	run(exec);
	try_update(exec, graphs[1], node);
	run(exec);
	CALL(cuGraphDestroy, graphs[1]);
	run(exec);
	CALL(cuGraphDestroy, graphs[0]);
	run(exec);
}

/* A body changed after its graph was made executable, and the node of another size of body. */
CASE(update_body)
{
	CUgraph graph = begin(), *bodies;
	CUgraphExec exec;
	CUgraphNode first;
	bodies = add_conditional(graph, NULL, new_handle(graph, 1, CU_GRAPH_COND_ASSIGN_DEFAULT),
		CU_GRAPH_COND_TYPE_IF, 1);
	first = add_add(bodies[0], NULL, p, 1);
	exec = instantiate(graph);
	add_add(bodies[0], first, p + 4, 1);
	run(exec);
	try_update(exec, graph, NULL);
	CALL(cuGraphExecDestroy, exec);
	run(instantiate(graph));
}

/* A conditional node added to what a stream captures, its body captured too. */
CASE(captured)
{
	CUgraph graph = begin(), captured = NULL, body;
	CUstream stream = NULL, second = NULL;
	CUstreamCaptureStatus status;
	cuuint64_t id;
	CUgraphConditionalHandle handle;
	CUgraphNodeParams params;
	CUgraphNode node = NULL;
	const CUgraphNode *list = NULL;
	size_t nodes = 77;
	unsigned value = 3;
	void *arguments[2] = {&p, &value}, *counting[3] = {&handle, NULL, &value};
	CUdeviceptr counter = p + 8;
	counting[1] = &counter;
	QUIET(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	QUIET(cuStreamCreate, &second, CU_STREAM_NON_BLOCKING);
	QUIET(cuStreamBeginCapture_v2, stream, CU_STREAM_CAPTURE_MODE_RELAXED);
	QUIET(cuLaunchKernel, add, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL);
	QUIET(cuStreamGetCaptureInfo_v3, stream, &status, &id, &graph, &list, NULL, &nodes);
	CALL(cuGraphConditionalHandleCreate, &handle, graph, context, 1,
		CU_GRAPH_COND_ASSIGN_DEFAULT);
	params = conditional(handle, CU_GRAPH_COND_TYPE_WHILE, 1);
	CALL(cuGraphAddNode_v2, &node, graph, list, NULL, nodes, &params);
	body = params.conditional.phGraph_out[0];
	CALL(cuStreamUpdateCaptureDependencies_v2, stream, &node, NULL, 1,
		CU_STREAM_SET_CAPTURE_DEPENDENCIES);
	CALL(cuStreamBeginCaptureToGraph, second, body, NULL, NULL, 0,
		CU_STREAM_CAPTURE_MODE_RELAXED);
	QUIET(cuLaunchKernel, add, 1, 1, 1, 1, 1, 1, 0, second, arguments, NULL);
	QUIET(cuLaunchKernel, count, 1, 1, 1, 1, 1, 1, 0, second, counting, NULL);
	CALL(cuStreamEndCapture, second, &captured);
	YES("the body", captured == body);
	QUIET(cuLaunchKernel, add, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL);
	CALL(cuStreamEndCapture, stream, &graph);
	run(instantiate(graph));
}

/* What a body does not hold, captured. */
CASE(captured_wrong)
{
	CUgraph graph = begin(), body, captured = NULL;
	CUstream stream = NULL;
	CUevent event = NULL;
	CUdeviceptr q = 0;
	CUgraphExec exec = NULL;
	body = add_conditional(graph, NULL, new_handle(graph, 1, CU_GRAPH_COND_ASSIGN_DEFAULT),
		CU_GRAPH_COND_TYPE_IF, 1)[0];
	QUIET(cuEventCreate, &event, 0);
	QUIET(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
	CALL(cuStreamBeginCaptureToGraph, stream, body, NULL, NULL, 0,
		CU_STREAM_CAPTURE_MODE_RELAXED);
	CALL(cuLaunchHostFunc, stream, nothing, NULL);
	CALL(cuMemAllocAsync, &q, 64, stream);
	CALL(cuEventRecordWithFlags, event, stream, CU_EVENT_RECORD_EXTERNAL);
	CALL(cuStreamEndCapture, stream, &captured);
	YES("the body", captured == body);
	try_instantiate(graph, &exec);
}

/* Beside memory of the graph. */
CASE(with_memory)
{
	CUgraph graph = begin(), *bodies;
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
		.bytesize = 64};
	CUgraphNode node = NULL, freeing = NULL;
	CUgraphExec exec = NULL;
	CALL(cuGraphAddMemAllocNode, &node, graph, NULL, 0, &params);
	bodies = add_conditional(graph, node, new_handle(graph, 1, CU_GRAPH_COND_ASSIGN_DEFAULT),
		CU_GRAPH_COND_TYPE_IF, 1);
	add_add(bodies[0], NULL, p, 2);
	CALL(cuGraphAddMemFreeNode, &freeing, graph, &node, 1, params.dptr);
	if (try_instantiate(graph, &exec) == CUDA_GRAPH_INSTANTIATE_SUCCESS)
		run(exec);
}

CASE(drawn)
{
	CUgraph graph = begin(), *bodies;
	char path[] = "/tmp/ckt-api-XXXXXX", first[16] = "";
	int fd = mkstemp(path);
	bodies = add_conditional(graph, NULL, new_handle(graph, 1, CU_GRAPH_COND_ASSIGN_DEFAULT),
		CU_GRAPH_COND_TYPE_IF, 2);
	add_add(bodies[0], NULL, p, 1);
	CALL(cuGraphDebugDotPrint, graph, path, CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS);
	if (read(fd, first, 7) != 7)
		first[0] = 0;
	TEXT("begins", first);
	CALL(cuGraphDebugDotPrint, bodies[0], path, 0);
	unlink(path);
}
