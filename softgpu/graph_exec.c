/* Executable graphs: a launch puts the nodes on the stream, one after another. */
#include <stdlib.h>
#include <string.h>

#include "softgpu/graph.h"

static void exec_free(struct ckt_soft_object *object)
{
	struct ckt_soft_exec *exec = (struct ckt_soft_exec *)object;
	free(exec->order);
	free(exec);
}

/* An order in which every node comes behind those that it depends on; NULL where there is a circle (ret_circle) or no memory. */
static struct ckt_soft_node **order_of(const struct ckt_soft_graph *graph, struct ckt_soft_node **ret_circle)
{
	struct ckt_soft_node **order = calloc(graph->n_nodes + 1, sizeof(*order));
	bool *placed = calloc(graph->n_nodes + 1, sizeof(*placed));
	size_t n = 0, before;
	*ret_circle = NULL;
	if (!order || !placed) {
		free(order);
		free(placed);
		return NULL;
	}
	for (size_t i = 0; i < graph->n_nodes; i++)
		graph->nodes[i]->index = i;
	/* Nodes mostly come in a good order already, so that one round does. */
	do {
		before = n;
		for (size_t i = 0; i < graph->n_nodes; i++) {
			bool ready = !placed[i];
			for (size_t k = 0; k < graph->nodes[i]->n_in && ready; k++)
				ready = placed[graph->nodes[i]->in[k].node->index];
			if (ready) {
				placed[i] = true;
				order[n++] = graph->nodes[i];
			}
		}
	} while (n > before && n < graph->n_nodes);
	for (size_t i = 0; i < graph->n_nodes && n < graph->n_nodes; i++)
		if (!placed[i])
			*ret_circle = graph->nodes[i];
	free(placed);
	if (*ret_circle) {
		free(order);
		return NULL;
	}
	return order;
}

/* Precondition: the lock is held. */
static CUresult instantiate(CUgraphExec *ret, struct ckt_soft_graph *graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	struct ckt_soft_node *circle;
	struct ckt_soft_exec *exec = calloc(1, sizeof(*exec));
	CUresult result = exec ? ckt_soft_graph_copy(graph, &exec->graph) : CUDA_ERROR_OUT_OF_MEMORY;
	if (result != CUDA_SUCCESS) {
		free(exec);
		return result;
	}
	exec->graph->inner = true;
	exec->flags = params->flags;
	exec->order = order_of(exec->graph, &circle);
	if (circle) {
		params->result_out = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
		params->hErrNode_out = (CUgraphNode)(uintptr_t)circle->origin;
		result = CUDA_ERROR_INVALID_VALUE;
	} else if (!exec->order) {
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (result == CUDA_SUCCESS)
		result = ckt_soft_object_init(&exec->object, CKT_SOFT_GRAPH_EXEC, exec_free);
	if (result != CUDA_SUCCESS) {
		ckt_soft_graph_free(exec->graph);
		exec_free(&exec->object);
		return result;
	}
	*ret = ckt_soft_object_handle(&exec->object);
	params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph, CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
	struct ckt_soft_context *context;
	unsigned long long known = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
				   CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
	if (!instantiateParams)
		return CUDA_ERROR_INVALID_VALUE;
	instantiateParams->hErrNode_out = NULL;
	instantiateParams->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (instantiateParams->flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
		return CKT_SOFT_UNSUPPORTED("a graph that is launched by kernels");
	pthread_mutex_lock(&ckt_soft_graph_lock);
	struct ckt_soft_graph *graph = ckt_soft_graph_find(hGraph);
	result = graph && phGraphExec && !(instantiateParams->flags & ~known) ? instantiate(phGraphExec, graph, instantiateParams) :
										  CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&ckt_soft_graph_lock);
	return result;
}

CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = flags};
	return flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD ? CUDA_ERROR_INVALID_VALUE : cuGraphInstantiateWithParams(phGraphExec, hGraph, &params);
}

CUresult CUDAAPI cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags)
{
	struct ckt_soft_exec *exec = ckt_soft_object_get(hGraphExec, CKT_SOFT_GRAPH_EXEC);
	if (exec && flags)
		*flags = exec->flags & ~(cuuint64_t)CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
	if (exec)
		ckt_soft_object_put(&exec->object);
	return exec && flags ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Launches under way may use the objects that it holds. */
void ckt_soft_exec_settle_users(CUgraphExec handle)
{
	pthread_mutex_lock(&ckt_soft_graph_lock);
	struct ckt_soft_exec *exec = ckt_soft_object_get(handle, CKT_SOFT_GRAPH_EXEC);
	CUevent last = exec && exec->graph && exec->graph->n_users ? exec->last : NULL;
	pthread_mutex_unlock(&ckt_soft_graph_lock);
	if (last)
		cuEventSynchronize(last);
	if (exec)
		ckt_soft_object_put(&exec->object);
}

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec hGraphExec)
{
	ckt_soft_exec_settle_users(hGraphExec);
	pthread_mutex_lock(&ckt_soft_graph_lock);
	struct ckt_soft_exec *exec = ckt_soft_object_get(hGraphExec, CKT_SOFT_GRAPH_EXEC);
	bool mine = exec && ckt_soft_object_remove(&exec->object);
	if (mine) {
		ckt_soft_graph_free(exec->graph);
		exec->graph = NULL;
	}
	pthread_mutex_unlock(&ckt_soft_graph_lock);
	if (mine && exec->last)
		cuEventDestroy_v2(exec->last);
	if (mine)
		ckt_soft_object_put(&exec->object);
	if (exec)
		ckt_soft_object_put(&exec->object);
	return mine ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled)
{
	pthread_mutex_lock(&ckt_soft_graph_lock);
	struct ckt_soft_exec *exec = ckt_soft_object_get(hGraphExec, CKT_SOFT_GRAPH_EXEC);
	struct ckt_soft_node *node = exec ? ckt_soft_graph_find_copy(exec->graph, (uint64_t)(uintptr_t)hNode) : NULL;
	bool can = node && (node->type == CU_GRAPH_NODE_TYPE_KERNEL || node->type == CU_GRAPH_NODE_TYPE_MEMCPY || node->type == CU_GRAPH_NODE_TYPE_MEMSET);
	if (can)
		node->disabled = !isEnabled;
	if (exec)
		ckt_soft_object_put(&exec->object);
	pthread_mutex_unlock(&ckt_soft_graph_lock);
	return can ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- Launch */

static CUresult launch_graph(const struct ckt_soft_graph *graph, struct ckt_soft_node *const *order, CUstream stream);

static CUresult launch_kernel(struct ckt_soft_kernel_node *kernel, CUstream stream)
{
	const CUDA_KERNEL_NODE_PARAMS *p = &kernel->params;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, kernel->packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &kernel->packed_bytes, CU_LAUNCH_PARAM_END};
	CUlaunchConfig config = {
		.gridDimX = p->gridDimX, .gridDimY = p->gridDimY, .gridDimZ = p->gridDimZ,
		.blockDimX = p->blockDimX, .blockDimY = p->blockDimY, .blockDimZ = p->blockDimZ,
		.sharedMemBytes = p->sharedMemBytes, .hStream = stream, .attrs = kernel->attributes, .numAttrs = kernel->n_attributes,
	};
	return cuLaunchKernelEx(&config, p->func ? p->func : (CUfunction)p->kern, NULL, kernel->packed_bytes ? extra : NULL);
}

static CUresult launch_fill(const CUDA_MEMSET_NODE_PARAMS *fill, CUstream stream)
{
	size_t pitch = fill->height > 1 ? fill->pitch : fill->width * fill->elementSize;
	switch (fill->elementSize) {
	case 1:
		return cuMemsetD2D8Async(fill->dst, pitch, (unsigned char)fill->value, fill->width, fill->height, stream);
	case 2:
		return cuMemsetD2D16Async(fill->dst, pitch, (unsigned short)fill->value, fill->width, fill->height, stream);
	default:
		return cuMemsetD2D32Async(fill->dst, pitch, fill->value, fill->width, fill->height, stream);
	}
}

static CUresult launch_node(struct ckt_soft_node *node, CUstream stream)
{
	struct ckt_soft_node **order, *circle;
	CUresult result;
	switch (node->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return launch_kernel(&node->kernel, stream);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return cuMemcpy3DAsync_v2(&node->copy, stream);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return launch_fill(&node->fill, stream);
	case CU_GRAPH_NODE_TYPE_HOST:
		return cuLaunchHostFunc(stream, node->host.fn, node->host.userData);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		order = order_of(node->child, &circle);
		result = order ? launch_graph(node->child, order, stream) : CUDA_ERROR_INVALID_VALUE;
		free(order);
		return result;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return cuStreamWaitEvent(stream, node->event, 0);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return cuEventRecord(node->event, stream);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return cuStreamBatchMemOp_v2(stream, node->memop.count, node->memop.paramArray, node->memop.flags);
	default:
		return CUDA_SUCCESS;
	}
}

static CUresult launch_graph(const struct ckt_soft_graph *graph, struct ckt_soft_node *const *order, CUstream stream)
{
	CUresult result = CUDA_SUCCESS;
	for (size_t i = 0; i < graph->n_nodes && result == CUDA_SUCCESS; i++)
		if (!order[i]->disabled)
			result = launch_node(order[i], stream);
	return result;
}

CUresult CUDAAPI cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream)
{
	pthread_mutex_lock(&ckt_soft_graph_lock);
	struct ckt_soft_exec *exec = ckt_soft_object_get(hGraphExec, CKT_SOFT_GRAPH_EXEC);
	CUresult result = exec && exec->graph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	ckt_soft_in_graph = true;
	if (result == CUDA_SUCCESS && exec->last)
		result = cuStreamWaitEvent(hStream, exec->last, 0);
	else if (result == CUDA_SUCCESS)
		result = cuEventCreate(&exec->last, CU_EVENT_DISABLE_TIMING);
	if (result == CUDA_SUCCESS)
		result = launch_graph(exec->graph, exec->order, hStream);
	if (result == CUDA_SUCCESS)
		result = cuEventRecord(exec->last, hStream);
	ckt_soft_in_graph = false;
	if (exec)
		ckt_soft_object_put(&exec->object);
	pthread_mutex_unlock(&ckt_soft_graph_lock);
	return result;
}

/* There is nothing to prepare. */
CUresult CUDAAPI cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream)
{
	struct ckt_soft_context *context;
	struct ckt_soft_stream *stream;
	CUresult result = ckt_soft_enter(&context);
	struct ckt_soft_exec *exec = result == CUDA_SUCCESS ? ckt_soft_object_get(hGraphExec, CKT_SOFT_GRAPH_EXEC) : NULL;
	if (result == CUDA_SUCCESS && !exec)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = ckt_soft_stream_get(context, hStream, &stream);
	if (result == CUDA_SUCCESS)
		ckt_soft_object_put(&stream->object);
	if (exec)
		ckt_soft_object_put(&exec->object);
	return result;
}
