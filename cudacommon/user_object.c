/* SPDX-License-Identifier: Apache-2.0 */
/*
 * User objects: the program's data, kept alive by the graphs that use it.  The thread that drops
 * the last reference runs the destructor.
 */
#include <stdlib.h>

#include "cudacommon/graph.h"

struct user_object {
	struct ckt_cudacommon_object object;
	void *data;
	CUhostFn destroy;
	unsigned count;
};

static struct user_object *find(uint64_t id)
{
	return ckt_cudacommon_object_find(id, CKT_KIND_USER_OBJECT);
}

/* Precondition: entered.  CUDA forbids CUDA calls in the destructor, so the lock stays held. */
static void release(struct user_object *user, unsigned count)
{
	user->count -= count < user->count ? count : user->count;
	if (user->count)
		return;
	CUhostFn destroy = user->destroy;
	void *data = user->data;
	ckt_cudacommon_object_remove(&user->object);
	destroy(data);
}

static CUresult graph_retain(struct ckt_graph *graph, uint64_t object, unsigned count)
{
	for (size_t i = 0; i < graph->user_count; i++)
		if (graph->users[i].object == object) {
			graph->users[i].count += count;
			return CUDA_SUCCESS;
		}
	struct ckt_user_ref *users = realloc(graph->users, (graph->user_count + 1) * sizeof *users);
	if (!users)
		return CUDA_ERROR_OUT_OF_MEMORY;
	graph->users = users;
	users[graph->user_count++] = (struct ckt_user_ref){.object = object, .count = count};
	return CUDA_SUCCESS;
}

CUresult ckt_user_copy(struct ckt_graph *to, const struct ckt_graph *from)
{
	CUresult result = CUDA_SUCCESS;
	for (size_t i = 0; i < from->user_count && !result; i++) {
		struct user_object *user = find(from->users[i].object);
		if (!user)
			continue;
		result = graph_retain(to, user->object.id, from->users[i].count);
		if (!result)
			user->count += from->users[i].count;
	}
	return result;
}

void ckt_user_drop(struct ckt_graph *graph)
{
	for (size_t i = 0; i < graph->user_count; i++) {
		struct user_object *user = find(graph->users[i].object);
		if (user)
			release(user, graph->users[i].count);
	}
	free(graph->users);
	graph->users = NULL;
	graph->user_count = 0;
}

CKT_EXPORT CUresult cuUserObjectCreate(
	CUuserObject *ret, void *data, CUhostFn destroy, unsigned int count, unsigned int flags)
{
	CUresult result = ckt_cudacommon_initialized();
	if (result)
		return result;
	if (!ret || !destroy || !count || count > INT32_MAX ||
		flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
		return CUDA_ERROR_INVALID_VALUE;
	struct user_object *user = calloc(1, sizeof *user);
	if (!user)
		return CUDA_ERROR_OUT_OF_MEMORY;
	user->data = data;
	user->destroy = destroy;
	user->count = count;
	if (!ckt_cudacommon_object_add(&user->object, CKT_KIND_USER_OBJECT)) {
		free(user);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret = (CUuserObject)(uintptr_t)user->object.id;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuUserObjectRetain(CUuserObject handle, unsigned int count)
{
	ckt_graph_enter();
	struct user_object *user = find(ckt_handle_id(handle));
	if (!user || !count || count > INT32_MAX)
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	user->count += count;
	return ckt_graph_leave(CUDA_SUCCESS);
}

CKT_EXPORT CUresult cuUserObjectRelease(CUuserObject handle, unsigned int count)
{
	ckt_graph_enter();
	struct user_object *user = find(ckt_handle_id(handle));
	if (!user || !count || count > user->count)
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	release(user, count);
	return ckt_graph_leave(CUDA_SUCCESS);
}

CKT_EXPORT CUresult cuGraphRetainUserObject(
	CUgraph graph_handle, CUuserObject handle, unsigned int count, unsigned int flags)
{
	ckt_graph_enter();
	struct ckt_graph *graph = ckt_graph_find(graph_handle);
	struct user_object *user = find(ckt_handle_id(handle));
	if (!graph || !user || !count || count > INT32_MAX ||
		flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE)
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	CUresult result = graph_retain(graph, user->object.id, count);
	if (!result && !(flags & CU_GRAPH_USER_OBJECT_MOVE))
		user->count += count;
	return ckt_graph_leave(result);
}

CKT_EXPORT CUresult cuGraphReleaseUserObject(
	CUgraph graph_handle, CUuserObject handle, unsigned int count)
{
	ckt_graph_enter();
	struct ckt_graph *graph = ckt_graph_find(graph_handle);
	struct user_object *user = find(ckt_handle_id(handle));
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; graph && user && count && i < graph->user_count; i++) {
		if (graph->users[i].object != user->object.id || graph->users[i].count < count)
			continue;
		graph->users[i].count -= count;
		if (!graph->users[i].count)
			graph->users[i] = graph->users[--graph->user_count];
		release(user, count);
		result = CUDA_SUCCESS;
		break;
	}
	return ckt_graph_leave(result);
}
