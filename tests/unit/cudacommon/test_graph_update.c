/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudacommon/graph_update.c: which graph may take the place of the one that was instantiated, and
 * what is said of another.
 */
#include "../softgpu/files.h"

static CUdeviceptr memory;

static CUgraphNode fill(
	CUgraph graph, unsigned index, unsigned value, const CUgraphNode *behind, size_t n)
{
	CUDA_MEMSET_NODE_PARAMS params = {.dst = memory + 4 * index,
		.value = value,
		.elementSize = 4,
		.width = 1,
		.height = 1};
	CUgraphNode node = NULL;
	OK(cuGraphAddMemsetNode(&node, graph, behind, n, &params, NULL));
	return node;
}

static CUgraphNode empty(CUgraph graph, const CUgraphNode *behind, size_t n)
{
	CUgraphNode node = NULL;
	OK(cuGraphAddEmptyNode(&node, graph, behind, n));
	return node;
}

/* a -> b, a -> c, all sets of words 0, 1, 2 to value. */
static CUgraph fork_of(unsigned value)
{
	CUgraph graph = NULL;
	OK(cuGraphCreate(&graph, 0));
	CUgraphNode a = fill(graph, 0, value, NULL, 0);
	fill(graph, 1, value, &a, 1);
	fill(graph, 2, value, &a, 1);
	return graph;
}

static CUgraphExecUpdateResult update(
	CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
	CUgraphExecUpdateResultInfo unseen;
	info = info ? info : &unseen;
	CUresult result = cuGraphExecUpdate(exec, graph, info);
	IS(result,
		info->result == CU_GRAPH_EXEC_UPDATE_SUCCESS
			? CUDA_SUCCESS
			: CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	return info->result;
}

static void run(CUgraphExec exec, unsigned want)
{
	OK(cuMemsetD32(memory, 0, 16));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuStreamSynchronize(NULL));
	for (unsigned i = 0; i < 3; i++)
		IS(files_word(memory + 4 * i), want);
}

static void test_topology(void)
{
	CUgraphExec exec;
	CUgraphExecUpdateResultInfo info;
	test_context();
	OK(cuMemAlloc(&memory, 64));
	CUgraph one = fork_of(1), two = fork_of(2), more = fork_of(3), other_edges, other_kind;
	OK(cuGraphInstantiate(&exec, one, 0));
	IS(update(exec, two, NULL), CU_GRAPH_EXEC_UPDATE_SUCCESS);
	run(exec, 2);
	/* A node too many; edges elsewhere; another kind: refused, and the old one still runs. */
	empty(more, NULL, 0);
	IS(update(exec, more, NULL), CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	OK(cuGraphCreate(&other_edges, 0));
	CUgraphNode a = fill(other_edges, 0, 4, NULL, 0), b = fill(other_edges, 1, 4, &a, 1);
	fill(other_edges, 2, 4, &b, 1);
	IS(update(exec, other_edges, NULL), CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	OK(cuGraphCreate(&other_kind, 0));
	a = fill(other_kind, 0, 5, NULL, 0);
	fill(other_kind, 1, 5, &a, 1);
	CUgraphNode strange = empty(other_kind, &a, 1);
	IS(update(exec, other_kind, &info), CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
	YES(info.errorNode == strange);
	run(exec, 2);
	/* The graph that it was made of fits too. */
	IS(update(exec, one, NULL), CU_GRAPH_EXEC_UPDATE_SUCCESS);
	run(exec, 1);
	CHECK_RESULT(cuGraphExecUpdate(exec, one, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphExecUpdate(exec, (CUgraph)(uintptr_t)0x1230, &info),
		CUDA_ERROR_INVALID_VALUE);
	IS(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS); /* nothing was looked at */
	CHECK_RESULT(cuGraphExecUpdate((CUgraphExec)(uintptr_t)0x1230, one, &info),
		CUDA_ERROR_INVALID_VALUE);
	CUgraph all[] = {one, two, more, other_edges, other_kind};
	for (size_t i = 0; i < COUNT(all); i++)
		OK(cuGraphDestroy(all[i]));
	OK(cuGraphExecDestroy(exec));
}

/* Two graphs of one node each: the kinds' own rules. */
static CUgraphExecUpdateResult change(CUgraphNodeParams *from, CUgraphNodeParams *to)
{
	CUgraph first, second;
	CUgraphNode node;
	CUgraphExec exec;
	OK(cuGraphCreate(&first, 0));
	OK(cuGraphCreate(&second, 0));
	OK(cuGraphAddNode(&node, first, NULL, NULL, 0, from));
	OK(cuGraphAddNode(&node, second, NULL, NULL, 0, to));
	OK(cuGraphInstantiate(&exec, first, 0));
	CUgraphExecUpdateResult result = update(exec, second, NULL);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(first));
	OK(cuGraphDestroy(second));
	return result;
}

static void test_parameters(void)
{
	enum {
		GOOD = CU_GRAPH_EXEC_UPDATE_SUCCESS,
		CHANGED = CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED
	};
	test_context();
	OK(cuMemAlloc(&memory, 4096));
	CUgraphNodeParams flat = {.type = CU_GRAPH_NODE_TYPE_MEMSET,
				  .memset = {.dst = memory,
					  .elementSize = 4,
					  .width = 4,
					  .height = 1}},
			  to = flat;
	to.memset.width = 64;
	to.memset.elementSize = 1;
	IS(change(&flat, &to), GOOD);
	CUgraphNodeParams wide = flat;
	wide.memset.height = 3;
	wide.memset.pitch = 256;
	to = wide;
	to.memset.dst = memory + 1024;
	to.memset.value = 9;
	IS(change(&wide, &to), GOOD);
	to.memset.height = 2;
	IS(change(&wide, &to), CHANGED);
	to = wide;
	to.memset.pitch = 512;
	IS(change(&wide, &to), CHANGED);
	IS(change(&wide, &flat), CHANGED);
	CUstreamBatchMemOpParams ops[2] = {{.operation = CU_STREAM_MEM_OP_BARRIER},
		{.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32}};
	CUgraphNodeParams copy = {.type = CU_GRAPH_NODE_TYPE_MEMCPY,
		.memcpy.copyParams = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			.srcDevice = memory,
			.dstMemoryType = CU_MEMORYTYPE_DEVICE,
			.dstDevice = memory + 512,
			.WidthInBytes = 4,
			.Height = 1,
			.Depth = 1}};
	to = copy;
	to.memcpy.copyParams.WidthInBytes = 64;
	IS(change(&copy, &to), GOOD);
	to.memcpy.copyParams.srcMemoryType = CU_MEMORYTYPE_HOST;
	to.memcpy.copyParams.srcHost = ops;
	IS(change(&copy, &to), CHANGED);
	ops[1].writeValue.address = memory;
	CUgraphNodeParams batch = {
		.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, .memOp = {.count = 1, .paramArray = ops}};
	to = batch;
	IS(change(&batch, &to), GOOD);
	to.memOp.count = 2;
	IS(change(&batch, &to), CHANGED);
	to = batch;
	to.memOp.paramArray = ops + 1;
	IS(change(&batch, &to), CHANGED);
	/* A child graph by the same rules. */
	CUgraph a = fork_of(1), b = fork_of(2), c = fork_of(3);
	empty(c, NULL, 0);
	CUgraphNodeParams child = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph.graph = a},
			  child_b = child, child_c = child;
	child_b.graph.graph = b;
	child_c.graph.graph = c;
	IS(change(&child, &child_b), GOOD);
	child.graph.graph = a; /* it was told the copy */
	IS(change(&child, &child_c), CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
	OK(cuGraphDestroy(a));
	OK(cuGraphDestroy(b));
	OK(cuGraphDestroy(c));
	OK(cuMemFree(memory));
}

static void test_cooperative(void)
{
	CUgraph first, second;
	CUgraphNode a, b;
	CUgraphExec exec;
	CUgraphExecUpdateResultInfo info;
	CUDA_KERNEL_NODE_PARAMS params = {.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1};
	CUlaunchAttributeValue on = {.cooperative = 1};
	test_context();
	params.func = test_function("trap_now");
	OK(cuGraphCreate(&first, 0));
	OK(cuGraphCreate(&second, 0));
	OK(cuGraphAddKernelNode(&a, first, NULL, 0, &params));
	OK(cuGraphAddKernelNode(&b, second, NULL, 0, &params));
	OK(cuGraphInstantiate(&exec, first, 0));
	IS(update(exec, second, NULL), CU_GRAPH_EXEC_UPDATE_SUCCESS);
	OK(cuGraphKernelNodeSetAttribute(b, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &on));
	IS(update(exec, second, &info), CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED);
	YES(info.errorNode == b);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(first));
	OK(cuGraphDestroy(second));
}

UNIT_SUITE(cudacommon / graph_update, {"topology", test_topology}, {"parameters", test_parameters},
	{"cooperative", test_cooperative})
