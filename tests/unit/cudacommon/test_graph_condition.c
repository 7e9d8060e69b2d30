/* SPDX-License-Identifier: Apache-2.0 */
/* cudacommon/graph_condition.c: handles, nodes and the bodies that a condition chooses. */
#include "../softgpu/files.h"

static CUdeviceptr memory;
static CUcontext context;

static CUgraph begin(void)
{
	CUgraph graph = NULL;
	context = test_context();
	OK(cuMemAlloc(&memory, 64));
	OK(cuMemsetD32(memory, 0, 16));
	OK(cuGraphCreate(&graph, 0));
	return graph;
}

static CUgraphConditionalHandle new_handle(CUgraph graph, unsigned value)
{
	CUgraphConditionalHandle handle = 0;
	OK(cuGraphConditionalHandleCreate(
		&handle, graph, context, value, CU_GRAPH_COND_ASSIGN_DEFAULT));
	return handle;
}

static CUresult add(CUgraph graph, CUgraphConditionalHandle handle, CUgraphConditionalNodeType type,
	unsigned size, CUgraph **ret_bodies)
{
	CUgraphNode node = NULL;
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
	params.conditional.handle = handle;
	params.conditional.type = type;
	params.conditional.size = size;
	params.conditional.ctx = context;
	CUresult result = cuGraphAddNode(&node, graph, NULL, NULL, 0, &params);
	*ret_bodies = params.conditional.phGraph_out;
	return result;
}

static void fill(CUgraph graph, unsigned index, unsigned value)
{
	CUDA_MEMSET_NODE_PARAMS params = {.dst = memory + 4 * index,
		.value = value,
		.elementSize = 4,
		.width = 1,
		.height = 1};
	CUgraphNode node = NULL;
	OK(cuGraphAddMemsetNode(&node, graph, NULL, 0, &params, NULL));
}

static uint32_t word(unsigned index)
{
	uint32_t value = 0;
	OK(cuStreamSynchronize(NULL));
	OK(cuMemcpyDtoH(&value, memory + 4 * index, 4));
	return value;
}

static void test_choice(void)
{
	begin();
	for (unsigned value = 0; value < 4; value++) {
		CUgraph graph, *bodies;
		CUgraphExec exec;
		OK(cuGraphCreate(&graph, 0));
		OK(add(graph, new_handle(graph, value), CU_GRAPH_COND_TYPE_SWITCH, 3, &bodies));
		for (unsigned i = 0; i < 3; i++)
			fill(bodies[i], 0, 100 + i);
		OK(cuMemsetD32(memory, 7, 1));
		OK(cuGraphInstantiate(&exec, graph, 0));
		CHECK_RESULT(cuGraphInstantiate(&exec, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
		OK(cuGraphLaunch(exec, NULL));
		IS(word(0), value < 3 ? 100 + value : 7);
		OK(cuGraphExecDestroy(exec));
		OK(cuGraphDestroy(graph));
	}
}

static void test_refused(void)
{
	CUgraph graph = begin(), other, clone, *bodies;
	CUgraphNode node;
	CUgraphExec exec;
	CUgraphConditionalHandle handle = new_handle(graph, 1);
	CHECK_RESULT(cuGraphConditionalHandleCreate(&handle, graph, context, 0, 4),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphConditionalHandleCreate(NULL, graph, context, 0, 0),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphConditionalHandleCreate(&handle, (CUgraph)0x77, context, 0, 0),
		CUDA_ERROR_INVALID_VALUE);
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
	CHECK_RESULT(cuGraphInstantiateWithParams(&exec, graph, &params), CUDA_ERROR_INVALID_VALUE);
	IS(params.result_out, CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);
	OK(cuGraphCreate(&other, 0));
	CHECK_RESULT(
		add(other, handle, CU_GRAPH_COND_TYPE_IF, 1, &bodies), CUDA_ERROR_INVALID_VALUE);
	static const struct {
		int type;
		unsigned size;
	} forms[] = {{CU_GRAPH_COND_TYPE_IF, 0}, {CU_GRAPH_COND_TYPE_IF, 3},
		{CU_GRAPH_COND_TYPE_WHILE, 2}, {CU_GRAPH_COND_TYPE_SWITCH, 0}, {7, 1}};
	for (size_t i = 0; i < COUNT(forms); i++)
		CHECK_RESULT(add(graph, handle, (CUgraphConditionalNodeType)forms[i].type,
				     forms[i].size, &bodies),
			CUDA_ERROR_INVALID_VALUE);
	OK(add(graph, handle, CU_GRAPH_COND_TYPE_WHILE, 1, &bodies));
	CUgraph *none;
	CHECK_RESULT(
		add(bodies[0], handle, CU_GRAPH_COND_TYPE_IF, 1, &none), CUDA_ERROR_INVALID_VALUE);
	OK(add(bodies[0], new_handle(graph, 0), CU_GRAPH_COND_TYPE_IF, 1, &none));
	CHECK_RESULT(cuGraphConditionalHandleCreate(&handle, graph, NULL, 0, 0),
		CUDA_ERROR_INVALID_CONTEXT);
	const CUgraph copied[] = {graph, bodies[0], none[0]};
	for (size_t i = 0; i < COUNT(copied); i++) {
		CHECK_RESULT(cuGraphClone(&clone, copied[i]), CUDA_ERROR_NOT_SUPPORTED);
		CHECK_RESULT(cuGraphAddChildGraphNode(&node, other, NULL, 0, copied[i]),
			CUDA_ERROR_NOT_SUPPORTED);
	}
	CHECK_RESULT(cuGraphInstantiate(&exec, bodies[0], 0), CUDA_ERROR_NOT_SUPPORTED);
	CHECK_RESULT(cuGraphInstantiate(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphDestroy(bodies[0]), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphDestroy(graph));
	OK(cuGraphDestroy(other));
}

/* The node goes, and its bodies; its handle, of the body or not, is good for another. */
static void test_handle_again(void)
{
	CUgraph graph = begin(), *bodies, *inner;
	CUgraphExec exec;
	CUgraphNode node;
	size_t count = 1;
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
	CUgraphConditionalHandle outer = new_handle(graph, 1), of_body;
	OK(add(graph, outer, CU_GRAPH_COND_TYPE_IF, 1, &bodies));
	of_body = new_handle(bodies[0], 1);
	OK(add(bodies[0], of_body, CU_GRAPH_COND_TYPE_IF, 1, &inner));
	OK(cuGraphGetNodes(graph, &node, &count));
	OK(cuGraphDestroyNode(node));
	CHECK_RESULT(cuGraphInstantiateWithParams(&exec, graph, &params), CUDA_ERROR_INVALID_VALUE);
	IS(params.result_out, CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);
	OK(add(graph, of_body, CU_GRAPH_COND_TYPE_IF, 1, &bodies));
	OK(add(bodies[0], outer, CU_GRAPH_COND_TYPE_IF, 1, &inner));
	fill(inner[0], 0, 5);
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphLaunch(exec, NULL));
	IS(word(0), 5);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

static void nothing(void *data)
{
	(void)data;
}

/* What a body may not hold shows when its graph is made executable, and which node it is. */
static void test_body_nodes(void)
{
	static char pageable[16];
	char *pinned;
	begin();
	OK(cuMemHostAlloc((void **)&pinned, 16, 0));
	for (unsigned i = 0; i < 4; i++) {
		CUgraph graph, child, *bodies;
		CUgraphExec exec;
		CUgraphNode node, around;
		CUDA_HOST_NODE_PARAMS host = {.fn = nothing};
		CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			.srcDevice = memory,
			.dstMemoryType = CU_MEMORYTYPE_HOST,
			.dstHost = i == 1 ? pageable : pinned,
			.WidthInBytes = 16,
			.Height = 1,
			.Depth = 1};
		CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
		const CUgraphInstantiateResult expected[] = {CUDA_GRAPH_INSTANTIATE_SUCCESS,
			CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED,
			CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED,
			CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED};
		OK(cuGraphCreate(&graph, 0));
		OK(cuGraphCreate(&child, 0));
		OK(add(graph, new_handle(graph, 1), CU_GRAPH_COND_TYPE_IF, 1, &bodies));
		if (i < 2)
			OK(cuGraphAddMemcpyNode(&node, bodies[0], NULL, 0, &copy, context));
		else
			OK(cuGraphAddHostNode(&node, i == 2 ? bodies[0] : child, NULL, 0, &host));
		if (i == 3)
			OK(cuGraphAddChildGraphNode(&around, bodies[0], NULL, 0, child));
		IS(cuGraphInstantiateWithParams(&exec, graph, &params),
			i ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
		IS(params.result_out, expected[i]);
		if (!i)
			OK(cuGraphExecDestroy(exec));
		YES(i == 3 ? params.hErrNode_out != NULL
			   : params.hErrNode_out == (i ? node : NULL));
		OK(cuGraphDestroy(child));
		OK(cuGraphDestroy(graph));
	}
	OK(cuMemFreeHost(pinned));
}

UNIT_SUITE(cudacommon / graph_condition, {"choice", test_choice}, {"refused", test_refused},
	{"handle_again", test_handle_again}, {"body_nodes", test_body_nodes})
