/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudacommon/graph.c: graphs, nodes and edges as structures: what is refused, copied, listed and
 * freed.
 */
#include "../softgpu/files.h"

static CUgraph graph;

static CUgraphNode empty(CUgraph of, const CUgraphNode *behind, size_t n)
{
	CUgraphNode node = NULL;
	OK(cuGraphAddEmptyNode(&node, of, behind, n));
	return node;
}

static void test_edges(void)
{
	CUgraph other;
	CUgraphNode node, list[4];
	size_t n = 4;
	test_context();
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphCreate(&other, 0));
	CUgraphNode a = empty(graph, NULL, 0), b = empty(graph, &a, 1),
		    foreign = empty(other, NULL, 0);
	/* Once only, never to itself, never between graphs. */
	CHECK_RESULT(cuGraphAddDependencies(graph, &a, &b, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphAddDependencies(graph, &a, &a, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(
		cuGraphAddDependencies(graph, &a, &foreign, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphAddDependencies(other, &a, &b, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphAddDependencies(graph, NULL, &b, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphAddDependencies(graph, NULL, NULL, NULL, 0));
	CHECK_RESULT(cuGraphAddEmptyNode(&node, graph, &foreign, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphAddEmptyNode(&node, graph, (CUgraphNode[]){a, a}, 2),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphAddEmptyNode(&node, graph, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	/* A refused node leaves nothing behind. */
	OK(cuGraphGetNodes(graph, NULL, &n));
	IS(n, 2);
	/* The end of a node takes its edges along. */
	CUgraphNode c = empty(graph, &b, 1);
	OK(cuGraphDestroyNode(b));
	CHECK_RESULT(cuGraphDestroyNode(b), CUDA_ERROR_INVALID_VALUE);
	n = 4;
	OK(cuGraphGetRootNodes(graph, list, &n));
	IS(n, 2);
	YES(list[0] == a && list[1] == c && !list[2] && !list[3]);
	/* A list too short: as many as it holds, and the count stays. */
	n = 1;
	OK(cuGraphGetNodes(graph, list, &n));
	IS(n, 1);
	YES(list[0] == a);
	CHECK_RESULT(cuGraphGetNodes(graph, list, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphDestroy(other));
	CHECK_RESULT(cuGraphDestroy(other), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphGetNodes(other, NULL, &n), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphDestroyNode(foreign), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphDestroy(graph));
	CHECK_RESULT(cuGraphCreate(&graph, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
}

static void test_clone(void)
{
	CUgraph clone, inner, of_node;
	CUgraphNode in_clone, node;
	CUgraphNodeType type;
	size_t n = 0;
	test_context();
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphCreate(&inner, 0));
	CUgraphNode a = empty(graph, NULL, 0), b = empty(graph, &a, 1),
		    deep = empty(inner, NULL, 0), child;
	OK(cuGraphAddChildGraphNode(&child, graph, &b, 1, inner));
	OK(cuGraphClone(&clone, graph));
	OK(cuGraphNodeFindInClone(&in_clone, b, clone));
	YES(in_clone != b);
	OK(cuGraphNodeGetDependencies(in_clone, NULL, NULL, &n));
	IS(n, 1);
	OK(cuGraphNodeFindInClone(&node, child, clone));
	OK(cuGraphNodeGetType(node, &type));
	IS(type, CU_GRAPH_NODE_TYPE_GRAPH);
	/* A child graph is a copy: it is the node's, nobody else's to destroy. */
	OK(cuGraphChildGraphNodeGetGraph(node, &of_node));
	YES(of_node != inner);
	CHECK_RESULT(cuGraphDestroy(of_node), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphNodeFindInClone(&node, deep, clone), CUDA_ERROR_INVALID_VALUE);
	/* The original may change or go without the clone. */
	OK(cuGraphDestroyNode(a));
	OK(cuGraphDestroy(graph));
	OK(cuGraphDestroy(inner));
	OK(cuGraphGetNodes(clone, NULL, &n));
	IS(n, 3);
	CHECK_RESULT(cuGraphNodeFindInClone(&node, (CUgraphNode)(uintptr_t)0x1230, clone),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphNodeFindInClone(NULL, b, clone), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphClone(NULL, clone), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphClone(&graph, inner), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphNodeGetType(in_clone, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphDestroy(clone));
	CHECK_RESULT(cuGraphNodeGetType(in_clone, &type), CUDA_ERROR_INVALID_VALUE);
}

static void test_dot(void)
{
	char path[] = "/tmp/cricket-graph-XXXXXX", text[1024];
	int fd = mkstemp(path);
	CUdeviceptr p;
	CUDA_MEMSET_NODE_PARAMS fill = {.value = 1, .elementSize = 4, .width = 1, .height = 1};
	CUgraphNode set;
	test_context();
	OK(cuMemAlloc(&p, 4));
	fill.dst = p;
	OK(cuGraphCreate(&graph, 0));
	CUgraphNode a = empty(graph, NULL, 0);
	OK(cuGraphAddMemsetNode(&set, graph, &a, 1, &fill, NULL));
	OK(cuGraphDebugDotPrint(graph, path, 0));
	FILE *file = fdopen(fd, "r");
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	remove(path);
	TEXT(text,
		"digraph dot {\n\"graph_node_0\"[label=\"0\\nEMPTY\"];\n\"graph_node_1\"[label=\"1\\nMEMSET\"];\n"
		"\"graph_node_0\" -> \"graph_node_1\";\n}\n");
	CHECK_RESULT(cuGraphDebugDotPrint(graph, NULL, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphDebugDotPrint(graph, "/nonexistent/x", 0), CUDA_ERROR_OPERATING_SYSTEM);
	OK(cuGraphDestroy(graph));
	OK(cuMemFree(p));
}

/* More nodes than the first list has room for, in the order of their making. */
static void test_many(void)
{
	enum { N = 300 };
	static CUgraphNode made[N], list[N];
	size_t n = N;
	int wrong = 0;
	test_context();
	OK(cuGraphCreate(&graph, 0));
	for (int i = 0; i < N; i++)
		made[i] = empty(graph, i > 1 ? (CUgraphNode[]){made[i - 1], made[i - 2]} : NULL,
			i > 1 ? 2 : 0);
	OK(cuGraphGetNodes(graph, list, &n));
	for (int i = 0; i < N; i++)
		wrong += list[i] != made[i];
	IS(wrong, 0);
	IS(n, N);
	for (int i = 0; i < N; i += 2)
		OK(cuGraphDestroyNode(made[i]));
	OK(cuGraphGetRootNodes(graph, NULL, &n));
	IS(n, 1); /* each of the rest but the first is behind the one before */
	OK(cuGraphDestroy(graph));
}

UNIT_SUITE(cudacommon / graph, {"edges", test_edges}, {"clone", test_clone}, {"dot", test_dot},
	{"many", test_many})
