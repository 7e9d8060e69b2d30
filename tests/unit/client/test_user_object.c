/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudacommon/user_object.c: user objects: the destructor runs once, when the last reference goes,
 * of graphs too.
 */
#include "relay.h"

static unsigned destroyed;

static void destroy(void *data)
{
	YES(data == &destroyed);
	destroyed++;
}

static void test_references(void)
{
	CUuserObject object;
	CUgraph graph, copy;
	LOCAL(cuUserObjectCreate(
		      &object, &destroyed, destroy, 2, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
		CUDA_SUCCESS);
	LOCAL(cuUserObjectCreate(&object, &destroyed, NULL, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
		BAD);
	IS(cuUserObjectCreate(&object, &destroyed, destroy, 0, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
		BAD);
	IS(cuUserObjectCreate(&object, &destroyed, destroy, 1, 0), BAD);
	LOCAL(cuUserObjectRetain(object, 1), CUDA_SUCCESS);
	LOCAL(cuUserObjectRelease(object, 2), CUDA_SUCCESS);
	IS(destroyed, 0);
	LOCAL(cuUserObjectRelease(object, 2), BAD); /* more than there are */
	LOCAL(cuUserObjectRelease(object, 1), CUDA_SUCCESS);
	IS(destroyed, 1);
	LOCAL(cuUserObjectRelease(object, 1), BAD);
	LOCAL(cuUserObjectRetain(object, 1), BAD);
	/* A graph's reference, and that of its copy. */
	IS(cuUserObjectCreate(&object, &destroyed, destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
		CUDA_SUCCESS);
	IS(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
	LOCAL(cuGraphRetainUserObject(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE), CUDA_SUCCESS);
	LOCAL(cuGraphRetainUserObject(graph, object, 0, 0), BAD);
	LOCAL(cuGraphClone(&copy, graph), CUDA_SUCCESS);
	IS(cuGraphDestroy(graph), CUDA_SUCCESS);
	IS(destroyed, 1);
	IS(cuGraphReleaseUserObject(copy, object, 2), BAD);
	IS(cuGraphDestroy(copy), CUDA_SUCCESS);
	IS(destroyed, 2);
}

UNIT_SUITE(user_object, {"references", test_references})
