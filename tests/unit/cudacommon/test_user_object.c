/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudacommon/user_object.c: counts of the program, of graphs and of executable graphs, and the
 * destructor exactly once.
 */
#include "../softgpu/files.h"

static int ended;

static void CUDA_CB end(void *data)
{
	ended += *(int *)data;
}

static CUuserObject make(unsigned count)
{
	static int one = 1;
	CUuserObject object = NULL;
	ended = 0;
	OK(cuUserObjectCreate(&object, &one, end, count, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
	return object;
}

static void test_counts(void)
{
	OK(cuInit(0));
	CUuserObject object = make(2);
	OK(cuUserObjectRetain(object, 3));
	/* more than there are */
	CHECK_RESULT(cuUserObjectRelease(object, 6), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuUserObjectRelease(object, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuUserObjectRetain(object, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuUserObjectRetain(object, 1u << 31), CUDA_ERROR_INVALID_VALUE);
	OK(cuUserObjectRelease(object, 4));
	IS(ended, 0);
	OK(cuUserObjectRelease(object, 1));
	IS(ended, 1);
	CHECK_RESULT(cuUserObjectRelease(object, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuUserObjectRetain(object, 1), CUDA_ERROR_INVALID_VALUE);
	IS(ended, 1);
	CHECK_RESULT(cuUserObjectCreate(&object, NULL, end, 0, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuUserObjectCreate(&object, NULL, end, 1, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuUserObjectCreate(&object, NULL, NULL, 1, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuUserObjectCreate(NULL, NULL, end, 1, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuUserObjectCreate(&object, NULL, end, 1u << 31, 1), CUDA_ERROR_INVALID_VALUE);
}

static void test_graphs(void)
{
	CUgraph graph, clone;
	CUgraphExec exec;
	CUgraphExecUpdateResultInfo info;
	test_context();
	CUuserObject object = make(1);
	OK(cuGraphCreate(&graph, 0));
	CHECK_RESULT(cuGraphRetainUserObject(graph, object, 0, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphRetainUserObject(graph, object, 1, 2), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuGraphReleaseUserObject(graph, object, 1), CUDA_ERROR_INVALID_VALUE);
	/* Moved: the program's own reference is the graph's now. */
	OK(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
	OK(cuGraphRetainUserObject(graph, object, 2, 0));
	CHECK_RESULT(cuGraphReleaseUserObject(graph, object, 4), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphReleaseUserObject(graph, object, 2));
	/* A copy and an executable graph hold it too. */
	OK(cuGraphClone(&clone, graph));
	OK(cuGraphDestroy(graph));
	IS(ended, 0);
	OK(cuGraphInstantiate(&exec, clone, 0));
	OK(cuGraphDestroy(clone));
	IS(ended, 0);
	/* An update takes over what the new graph holds, and lets go of the rest. */
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphExecUpdate(exec, graph, &info));
	IS(ended, 1);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	IS(ended, 1);
}

/* The end of an executable graph waits for its launch, which may use the object. */
static void test_launch(void)
{
	CUgraph graph;
	CUgraphExec exec;
	CUgraphNode node;
	static int seen;
	test_context();
	CUuserObject object = make(1);
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddEmptyNode(&node, graph, NULL, 0));
	OK(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphDestroy(graph));
	CUstream stream = files_gated();
	OK(cuGraphLaunch(exec, stream));
	seen = ended;
	IS(seen, 0);
	files_open();
	OK(cuGraphExecDestroy(exec));
	OK(cuStreamQuery(stream));
	IS(ended, 1);
	OK(cuStreamDestroy(stream));
}

UNIT_SUITE(cudacommon / user_object, {"counts", test_counts}, {"graphs", test_graphs},
	{"launch", test_launch})
