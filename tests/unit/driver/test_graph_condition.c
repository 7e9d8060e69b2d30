/* driver/graph_condition.c: handles, nodes and the bodies that a condition chooses. */
#include "../softgpu/files.h"

static CUdeviceptr memory;

static CUgraph begin(void)
{
	CUgraph graph = NULL;
	test_context();
	OK(cuMemAlloc(&memory, 64));
	OK(cuMemsetD32(memory, 0, 16));
	OK(cuGraphCreate(&graph, 0));
	return graph;
}

static CUgraphConditionalHandle new_handle(CUgraph graph, unsigned value)
{
	CUgraphConditionalHandle handle = 0;
	OK(cuGraphConditionalHandleCreate(&handle, graph, NULL, value, CU_GRAPH_COND_ASSIGN_DEFAULT));
	return handle;
}

static CUresult add(CUgraph graph, CUgraphConditionalHandle handle, CUgraphConditionalNodeType type, unsigned size, CUgraph **ret_bodies)
{
	CUgraphNode node = NULL;
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
	params.conditional.handle = handle;
	params.conditional.type = type;
	params.conditional.size = size;
	CUresult result = cuGraphAddNode(&node, graph, NULL, NULL, 0, &params);
	*ret_bodies = params.conditional.phGraph_out;
	return result;
}

static void fill(CUgraph graph, unsigned index, unsigned value)
{
	CUDA_MEMSET_NODE_PARAMS params = {.dst = memory + 4 * index, .value = value, .elementSize = 4, .width = 1, .height = 1};
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
	CHECK_RESULT(cuGraphConditionalHandleCreate(&handle, graph, NULL, 0, 4), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphConditionalHandleCreate(NULL, graph, NULL, 0, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphConditionalHandleCreate(&handle, (CUgraph)0x77, NULL, 0, 0), CUDA_ERROR_INVALID_VALUE);
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
	CHECK_RESULT(cuGraphInstantiateWithParams(&exec, graph, &params), CUDA_ERROR_INVALID_VALUE);
	IS(params.result_out, CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);
	OK(cuGraphCreate(&other, 0));
	CHECK_RESULT(add(other, handle, CU_GRAPH_COND_TYPE_IF, 1, &bodies), CUDA_ERROR_INVALID_VALUE);
	static const struct {
		int type;
		unsigned size;
	} forms[] = {{CU_GRAPH_COND_TYPE_IF, 0}, {CU_GRAPH_COND_TYPE_IF, 3}, {CU_GRAPH_COND_TYPE_WHILE, 2}, {CU_GRAPH_COND_TYPE_SWITCH, 0}, {7, 1}};
	for (size_t i = 0; i < COUNT(forms); i++)
		CHECK_RESULT(add(graph, handle, (CUgraphConditionalNodeType)forms[i].type, forms[i].size, &bodies), CUDA_ERROR_INVALID_VALUE);
	OK(add(graph, handle, CU_GRAPH_COND_TYPE_WHILE, 1, &bodies));
	CUgraph *none;
	CHECK_RESULT(add(bodies[0], handle, CU_GRAPH_COND_TYPE_IF, 1, &none), CUDA_ERROR_INVALID_VALUE);
	OK(add(bodies[0], new_handle(graph, 0), CU_GRAPH_COND_TYPE_IF, 1, &none));
	CHECK_RESULT(cuGraphClone(&clone, graph), CUDA_ERROR_NOT_SUPPORTED);
	CHECK_RESULT(cuGraphAddChildGraphNode(&node, other, NULL, 0, graph), CUDA_ERROR_NOT_SUPPORTED);
	CHECK_RESULT(cuGraphDestroy(bodies[0]), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphDestroy(graph));
	OK(cuGraphDestroy(other));
}

UNIT_SUITE(driver/graph_condition, {"choice", test_choice}, {"refused", test_refused})
