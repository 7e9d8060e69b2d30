/* Objects of the program that graphs keep alive; the thread that lets go last runs the destructor. */
#include <stdlib.h>

#include "softgpu/graph.h"

struct user_object {
	struct ckt_soft_object object;
	void *data;
	CUhostFn destroy;
	unsigned count;			/* under the graphs' lock, like everything here */
};

static void user_free(struct ckt_soft_object *object)
{
	free(object);
}

static struct user_object *find(uint64_t handle)
{
	struct user_object *user = ckt_soft_object_get((const void *)(uintptr_t)handle, CKT_SOFT_USER_OBJECT);
	if (user)
		ckt_soft_object_put(&user->object);
	return user;
}

static CUresult unlock(CUresult result)
{
	pthread_mutex_unlock(&ckt_soft_graph_lock);
	return result;
}

/* The destructor must not call CUDA, so the lock may stay. */
static void release(struct user_object *user, unsigned count)
{
	user->count -= count < user->count ? count : user->count;
	if (user->count)
		return;
	CUhostFn destroy = user->destroy;
	void *data = user->data;
	if (ckt_soft_object_remove(&user->object))
		ckt_soft_object_put(&user->object);
	destroy(data);
}

static CUresult retain(struct ckt_soft_graph *graph, uint64_t handle, unsigned count)
{
	for (size_t i = 0; i < graph->n_users; i++)
		if (graph->users[i].handle == handle) {
			graph->users[i].count += count;
			return CUDA_SUCCESS;
		}
	struct ckt_soft_user *users = realloc(graph->users, (graph->n_users + 1) * sizeof(*users));
	if (!users)
		return CUDA_ERROR_OUT_OF_MEMORY;
	graph->users = users;
	users[graph->n_users++] = (struct ckt_soft_user){.handle = handle, .count = count};
	return CUDA_SUCCESS;
}

CUresult ckt_soft_users_copy(struct ckt_soft_graph *to, const struct ckt_soft_graph *from)
{
	CUresult result = CUDA_SUCCESS;
	for (size_t i = 0; i < from->n_users && result == CUDA_SUCCESS; i++) {
		struct user_object *user = find(from->users[i].handle);
		if (!user)
			continue;
		result = retain(to, from->users[i].handle, from->users[i].count);
		if (result == CUDA_SUCCESS)
			user->count += from->users[i].count;
	}
	return result;
}

void ckt_soft_users_drop(struct ckt_soft_graph *graph)
{
	for (size_t i = 0; i < graph->n_users; i++) {
		struct user_object *user = find(graph->users[i].handle);
		if (user)
			release(user, graph->users[i].count);
	}
	free(graph->users);
	graph->users = NULL;
	graph->n_users = 0;
}

CUresult CUDAAPI cuUserObjectCreate(CUuserObject *object_out, void *ptr, CUhostFn destroy, unsigned int initialRefcount, unsigned int flags)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	if (!object_out || !destroy || !initialRefcount || initialRefcount > INT32_MAX || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
		return CUDA_ERROR_INVALID_VALUE;
	struct user_object *user = calloc(1, sizeof(*user));
	if (!user)
		return CUDA_ERROR_OUT_OF_MEMORY;
	user->data = ptr;
	user->destroy = destroy;
	user->count = initialRefcount;
	result = ckt_soft_object_init(&user->object, CKT_SOFT_USER_OBJECT, user_free);
	if (result != CUDA_SUCCESS)
		free(user);
	else
		*object_out = ckt_soft_object_handle(&user->object);
	return result;
}

CUresult CUDAAPI cuUserObjectRetain(CUuserObject object, unsigned int count)
{
	pthread_mutex_lock(&ckt_soft_graph_lock);
	struct user_object *user = find((uint64_t)(uintptr_t)object);
	bool good = user && count && count <= INT32_MAX;
	if (good)
		user->count += count;
	return unlock(good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuUserObjectRelease(CUuserObject object, unsigned int count)
{
	pthread_mutex_lock(&ckt_soft_graph_lock);
	struct user_object *user = find((uint64_t)(uintptr_t)object);
	bool good = user && count && count <= user->count;
	if (good)
		release(user, count);
	return unlock(good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags)
{
	pthread_mutex_lock(&ckt_soft_graph_lock);
	struct ckt_soft_graph *g = ckt_soft_graph_find(graph);
	struct user_object *user = find((uint64_t)(uintptr_t)object);
	if (!g || !user || !count || count > INT32_MAX || flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE)
		return unlock(CUDA_ERROR_INVALID_VALUE);
	CUresult result = retain(g, user->object.handle, count);
	if (result == CUDA_SUCCESS && !(flags & CU_GRAPH_USER_OBJECT_MOVE))
		user->count += count;
	return unlock(result);
}

CUresult CUDAAPI cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
	pthread_mutex_lock(&ckt_soft_graph_lock);
	struct ckt_soft_graph *g = ckt_soft_graph_find(graph);
	struct user_object *user = find((uint64_t)(uintptr_t)object);
	for (size_t i = 0; g && user && count && i < g->n_users; i++) {
		if (g->users[i].handle != user->object.handle || g->users[i].count < count)
			continue;
		g->users[i].count -= count;
		if (!g->users[i].count)
			g->users[i] = g->users[--g->n_users];
		release(user, count);
		return unlock(CUDA_SUCCESS);
	}
	return unlock(CUDA_ERROR_INVALID_VALUE);
}
