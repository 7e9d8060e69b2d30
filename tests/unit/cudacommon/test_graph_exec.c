/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudacommon/graph_exec.c: instantiation, order of a launch, disabled nodes, launches behind each
 * other.
 */
#include <unistd.h>

#include "../softgpu/files.h"

static CUdeviceptr memory;
static int order[16];

static void CUDA_CB note(void *number)
{
	order[++order[0]] = (int)(intptr_t)number;
}

static CUgraphNode host(CUgraph graph, int number, const CUgraphNode *behind, size_t n)
{
	CUDA_HOST_NODE_PARAMS params = {.fn = note, .userData = (void *)(intptr_t)number};
	CUgraphNode node = NULL;
	OK(cuGraphAddHostNode(&node, graph, behind, n, &params));
	return node;
}

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

static CUgraph begin(void)
{
	CUgraph graph = NULL;
	test_context();
	OK(cuMemAlloc(&memory, 64));
	OK(cuMemsetD32(memory, 0, 16));
	OK(cuGraphCreate(&graph, 0));
	order[0] = 0;
	return graph;
}

/* The order of edges, whatever that of making. */
static void test_order(void)
{
	CUgraph graph = begin(), inner;
	CUgraphExec exec;
	CUgraphNode child;
	OK(cuGraphCreate(&inner, 0));
	host(inner, 30, (CUgraphNode[]){host(inner, 20, NULL, 0)}, 1);
	CUgraphNode last = host(graph, 9, NULL, 0), first = host(graph, 1, NULL, 0);
	OK(cuGraphAddChildGraphNode(&child, graph, &first, 1, inner));
	OK(cuGraphAddDependencies(graph, &child, &last, NULL, 1));
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuStreamSynchronize(NULL));
	static const int want[] = {4, 1, 20, 30, 9};
	IS(memcmp(order, want, sizeof(want)), 0);
	/* The executable graph is a copy. */
	OK(cuGraphDestroyNode(last));
	OK(cuGraphDestroy(graph));
	order[0] = 0;
	OK(cuGraphLaunch(exec, NULL));
	OK(cuStreamSynchronize(NULL));
	IS(order[0], 4);
	OK(cuGraphExecDestroy(exec));
	CHECK_RESULT(cuGraphExecDestroy(exec), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphLaunch(exec, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphDestroy(inner));
}

static void test_circle(void)
{
	CUgraph graph = begin();
	CUgraphExec exec = (CUgraphExec)(uintptr_t)77;
	host(graph, 0, NULL, 0);
	CUgraphNode a = host(graph, 1, NULL, 0), b = host(graph, 2, &a, 1),
		    c = host(graph, 3, &b, 1);
	OK(cuGraphAddDependencies(graph, &c, &a, NULL, 1));
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
	CHECK_RESULT(cuGraphInstantiateWithParams(&exec, graph, &params), CUDA_ERROR_INVALID_VALUE);
	IS(params.result_out, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
	YES(params.hErrNode_out == a || params.hErrNode_out == b || params.hErrNode_out == c);
	YES(exec == (CUgraphExec)(uintptr_t)77);
	OK(cuGraphRemoveDependencies(graph, &c, &a, NULL, 1));
	OK(cuGraphInstantiateWithParams(&exec, graph, &params));
	IS(params.result_out, CUDA_GRAPH_INSTANTIATE_SUCCESS);
	YES(!params.hErrNode_out);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

static void test_flags(void)
{
	static const struct {
		unsigned long long flags;
		CUresult with_flags, with_params;
	} table[] = {
		{0, CUDA_SUCCESS, CUDA_SUCCESS},
		{CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH, CUDA_SUCCESS, CUDA_SUCCESS},
		{CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD, CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS},
		{CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY, CUDA_SUCCESS, CUDA_SUCCESS},
		{CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH, CUDA_ERROR_NOT_SUPPORTED,
			CUDA_ERROR_NOT_SUPPORTED},
		{16, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE},
		{1ull << 63, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE},
	};
	CUgraph graph = begin();
	CUgraphExec exec;
	cuuint64_t flags;
	for (size_t i = 0; i < COUNT(table); i++) {
		CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = table[i].flags};
		CHECK_RESULT(cuGraphInstantiate(&exec, graph, table[i].flags), table[i].with_flags);
		if (table[i].with_flags == CUDA_SUCCESS)
			OK(cuGraphExecDestroy(exec));
		CHECK_RESULT(
			cuGraphInstantiateWithParams(&exec, graph, &params), table[i].with_params);
		if (table[i].with_params != CUDA_SUCCESS)
			continue;
		OK(cuGraphExecGetFlags(exec, &flags));
		/* As an H200 has it. */
		IS(flags,
			table[i].flags &
				~(unsigned long long)(CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
					CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY));
		OK(cuGraphUpload(exec, NULL));
		CHECK_RESULT(cuGraphUpload(exec, (CUstream)(uintptr_t)0x1230),
			CUDA_ERROR_INVALID_HANDLE);
		OK(cuGraphExecDestroy(exec));
	}
	CHECK_RESULT(cuGraphInstantiateWithParams(&exec, graph, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphInstantiate(NULL, graph, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(
		cuGraphInstantiate(&exec, (CUgraph)(uintptr_t)0x1230, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphUpload((CUgraphExec)(uintptr_t)0x1230, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphExecGetFlags((CUgraphExec)(uintptr_t)0x1230, &flags),
		CUDA_ERROR_INVALID_VALUE);
	/* Nothing in it: a launch that does nothing. */
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphLaunch(exec, NULL));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

static void test_disabled(void)
{
	CUgraph graph = begin();
	CUgraphExec exec;
	CUgraphNode a = fill(graph, 0, 7, NULL, 0), b = fill(graph, 1, 8, &a, 1),
		    h = host(graph, 1, &b, 1);
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphNodeSetEnabled(exec, a, 0));
	CHECK_RESULT(cuGraphNodeSetEnabled(exec, h, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphNodeSetEnabled(exec, (CUgraphNode)(uintptr_t)0x1230, 0),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphLaunch(exec, NULL));
	OK(cuStreamSynchronize(NULL));
	IS(files_word(memory), 0);
	IS(files_word(memory + 4), 8);
	OK(cuGraphNodeSetEnabled(exec, a, 1));
	OK(cuGraphLaunch(exec, NULL));
	IS(files_word(memory), 7);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

/*
 * Two launches of one executable graph do not run at once, also on streams that know nothing of
 * each other.
 */
static void test_launches(void)
{
	CUgraph graph = begin();
	CUgraphExec exec;
	CUstream other;
	host(graph, 1, NULL, 0);
	OK(cuGraphInstantiate(&exec, graph, 0));
	CUstream gated = files_gated();
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuGraphLaunch(exec, gated));
	OK(cuGraphLaunch(exec, other));
	usleep(5000); /* time for what must not happen */
	CHECK_RESULT(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
	IS(order[0], 0);
	files_open();
	OK(cuStreamSynchronize(other));
	IS(order[0], 2);
	CHECK_RESULT(cuGraphLaunch(exec, (CUstream)(uintptr_t)0x1230), CUDA_ERROR_INVALID_HANDLE);
	/* Gone while a launch is under way: that one ends well. */
	OK(cuGraphLaunch(exec, other));
	OK(cuGraphExecDestroy(exec));
	OK(cuStreamSynchronize(other));
	IS(order[0], 3);
	OK(cuStreamDestroy(gated));
	OK(cuStreamDestroy(other));
	OK(cuGraphDestroy(graph));
}

UNIT_SUITE(cudacommon / graph_exec, {"order", test_order}, {"circle", test_circle},
	{"flags", test_flags}, {"disabled", test_disabled}, {"launches", test_launches})
