/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executable graphs: creation, launch and destruction; the library provides the launched form
 * (interface.h).
 */
#include <stdlib.h>

#include "cudacommon/capture.h"

struct ckt_exec *ckt_exec_find(CUgraphExec handle)
{
	return ckt_cudacommon_object_find(ckt_handle_id(handle), CKT_KIND_GRAPH_EXEC);
}

static struct ckt_exec *find(CUgraphExec handle)
{
	return ckt_exec_find(handle);
}

enum {
	FLAGS = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
		CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD | CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH |
		CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY,
};

/* Precondition: entered.  ret_status: why the driver refused. */
static CUresult instantiate(
	struct ckt_graph *graph, uint64_t flags, uint64_t stream, CUgraphExec *ret)
{
	static bool once;
	/* Kernels would know the driver's own handle, and no restore could recreate it. */
	if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH && ckt_graph_has_conditions(graph))
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
		return ckt_cudacommon_unsupported("a graph that kernels launch", &once);
	struct ckt_exec *exec = ckt_exec_new();
	if (!exec)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = ckt_graph_copy(graph, false, &exec->graph);
	if (!result && !ckt_cudacommon_object_add(&exec->object, CKT_KIND_GRAPH_EXEC))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result) {
		ckt_graph_free(exec->graph);
		free(exec);
		return result;
	}
	exec->object.context = ckt_cudacommon_context_now();
	exec->flags = flags;
	ckt_exec_look(exec);
	result = ckt_exec_memory_init(exec);
	bool alone = !result && (exec->block_count || ckt_graph_has_conditions(exec->graph));
	if (alone && ckt_cudacommon_object_find(graph->only_exec, CKT_KIND_GRAPH_EXEC))
		result = CKT_AS_CUDA_NOT_SUPPORTED;
	if (!result)
		result = ckt_exec_make(exec, graph, flags, stream);
	if (result) {
		ckt_exec_memory_fini(exec);
		ckt_graph_free(exec->graph);
		ckt_cudacommon_object_remove(&exec->object);
		return result;
	}
	if (alone)
		graph->only_exec = exec->object.id;
	*ret = (CUgraphExec)(uintptr_t)exec->object.id;
	if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
		ckt_exec_memory_use(exec);
	return CUDA_SUCCESS;
}

/* Returns a node of a cycle, or NULL. */
static const struct ckt_node *find_circle(struct ckt_graph *graph)
{
	size_t *left = calloc(graph->count + 1, sizeof *left), ready = 0;
	struct ckt_node **order = calloc(graph->count + 1, sizeof(struct ckt_node *));
	const struct ckt_node *found = NULL;
	for (size_t i = 0; left && order && i < graph->count; i++) {
		graph->nodes[i]->index = (uint32_t)i;
		left[i] = graph->nodes[i]->in.count;
		if (!left[i])
			order[ready++] = graph->nodes[i];
	}
	for (size_t i = 0; left && order && i < ready; i++)
		for (size_t k = 0; k < order[i]->out.count; k++)
			if (--left[order[i]->out.list[k].node->index] == 0)
				order[ready++] = order[i]->out.list[k].node;
	for (size_t i = 0; left && order && i < graph->count && !found; i++)
		if (left[i])
			found = graph->nodes[i];
	free(left);
	free(order);
	return found;
}

CKT_EXPORT CUresult cuGraphInstantiateWithParams(
	CUgraphExec *ret, CUgraph handle, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	uint64_t stream = 0, context;
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	params->hErrNode_out = NULL;
	params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
	CUresult result = ckt_cudacommon_context(&context);
	if (!result && params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
		result = ckt_stream_resolve(params->hUploadStream, &stream);
	if (result)
		return result;
	ckt_graph_enter();
	struct ckt_graph *graph = ckt_graph_find(handle);
	if (graph && ckt_graph_is_body(graph))
		return ckt_graph_leave(CKT_AS_CUDA_NOT_SUPPORTED);
	if (graph && graph->call)
		return ckt_graph_leave(CKT_CUDACOMMON_UNSUPPORTED(
			"an executable graph of a captured library call alone"));
	if (!ret || !graph || graph->capturing || graph->owner ||
		params->flags & ~(cuuint64_t)FLAGS)
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	const struct ckt_node *circle = find_circle(graph);
	if (circle) {
		params->result_out = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
		params->hErrNode_out = ckt_node_handle(circle);
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	}
	if (ckt_graph_has_idle_condition(graph)) {
		params->result_out = CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	}
	const struct ckt_node *wrong = NULL;
	params->result_out = ckt_graph_check_bodies(graph, &wrong);
	if (wrong) {
		params->hErrNode_out = ckt_node_handle(wrong);
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	}
	params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
	result = instantiate(graph, params->flags, stream, ret);
	if (!result)
		params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
	return ckt_graph_leave(result);
}

CKT_EXPORT CUresult cuGraphInstantiateWithParams_ptsz(
	CUgraphExec *ret, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUstream given = params->hUploadStream;
	if (!given)
		params->hUploadStream = CU_STREAM_PER_THREAD;
	CUresult result = cuGraphInstantiateWithParams(ret, graph, params);
	params->hUploadStream = given;
	return result;
}

CKT_EXPORT CUresult cuGraphInstantiateWithFlags(
	CUgraphExec *ret, CUgraph graph, unsigned long long flags)
{
	/* An upload needs a stream. */
	if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = flags};
	return cuGraphInstantiateWithParams(ret, graph, &params);
}

CKT_EXPORT CUresult cuGraphInstantiate_v2(
	CUgraphExec *ret, CUgraph graph, CUgraphNode *error_node, char *log, size_t log_size)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
	if (log && log_size)
		*log = 0;
	CUresult result = cuGraphInstantiateWithParams(ret, graph, &params);
	if (error_node)
		*error_node = params.hErrNode_out;
	return result;
}

CKT_EXPORT CUresult cuGraphInstantiate(
	CUgraphExec *ret, CUgraph graph, CUgraphNode *error_node, char *log, size_t log_size)
{
	return cuGraphInstantiate_v2(ret, graph, error_node, log, log_size);
}

CKT_EXPORT CUresult cuGraphExecGetFlags(CUgraphExec handle, cuuint64_t *flags)
{
	const struct ckt_exec *exec = find(handle);
	if (!exec || !flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = exec->flags &
		~(uint64_t)(CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
			CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuGraphExecDestroy(CUgraphExec handle)
{
	ckt_exec_settle(find(handle));
	ckt_exec_settle_users(find(handle));
	ckt_graph_enter();
	struct ckt_exec *exec = find(handle);
	if (!exec)
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	CUresult result = ckt_exec_unmake(exec);
	ckt_exec_memory_fini(exec);
	ckt_graph_free(exec->graph);
	exec->graph = NULL;
	ckt_cudacommon_object_remove(&exec->object);
	return ckt_graph_leave(result);
}

/* ---- Disabled nodes */

/* Precondition: entered. */
static struct ckt_node *exec_node(const struct ckt_exec *exec, CUgraphNode handle)
{
	struct ckt_node *node =
		exec && handle ? ckt_graph_find_copy(exec->graph, ckt_handle_id(handle)) : NULL;
	if (!node)
		return NULL;
	bool can = node->type == CU_GRAPH_NODE_TYPE_KERNEL ||
		node->type == CU_GRAPH_NODE_TYPE_MEMSET || node->type == CU_GRAPH_NODE_TYPE_MEMCPY;
	return can ? node : NULL;
}

CKT_EXPORT CUresult cuGraphNodeSetEnabled(
	CUgraphExec handle, CUgraphNode node_handle, unsigned int enabled)
{
	ckt_graph_enter();
	struct ckt_exec *exec = find(handle);
	struct ckt_node *node = exec_node(exec, node_handle);
	if (!node)
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	CUresult result = ckt_exec_enable_node(exec, node, enabled != 0);
	if (!result) {
		node->disabled = !enabled;
		ckt_exec_look(exec);
	}
	return ckt_graph_leave(result);
}

CKT_EXPORT CUresult cuGraphNodeGetEnabled(
	CUgraphExec handle, CUgraphNode node_handle, unsigned int *ret_enabled)
{
	ckt_graph_enter();
	const struct ckt_node *node = exec_node(find(handle), node_handle);
	if (!node || !ret_enabled)
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	*ret_enabled = !node->disabled;
	return ckt_graph_leave(CUDA_SUCCESS);
}

/* ---- Launch */

CKT_EXPORT CUresult cuGraphUpload(CUgraphExec handle, CUstream stream)
{
	uint64_t id;
	struct ckt_exec *exec = find(handle);
	CUresult result = ckt_stream_resolve(stream, &id);
	if (result || !exec)
		return result ? result : CUDA_ERROR_INVALID_VALUE;
	result = ckt_capture_forbid(id);
	if (result)
		return result;
	if (exec->block_count) {
		ckt_graph_enter();
		ckt_exec_memory_use(exec);
		ckt_graph_leave(CUDA_SUCCESS);
	}
	return ckt_exec_upload(exec, id);
}

static CUresult capture_launch(struct ckt_capture_stream *capturing, const struct ckt_exec *exec)
{
	struct ckt_node *node;
	/*
	 * A child graph has its own memory and conditions; it cannot take over those of an
	 * executable graph.
	 */
	if (exec->block_count || ckt_graph_has_conditions(exec->graph))
		return CKT_AS_CUDA_NOT_SUPPORTED;
	CUresult result = ckt_capture_append(capturing, CU_GRAPH_NODE_TYPE_GRAPH, &node);
	if (result)
		return result;
	struct ckt_node whole = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = exec->graph};
	return ckt_node_copy_params(node, &whole, true);
}

CKT_EXPORT CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream)
{
	uint64_t id;
	struct ckt_exec *exec = find(handle);
	struct ckt_capture_stream *capturing;
	CUresult result = ckt_stream_resolve(stream, &id);
	if (result || !exec)
		return result ? result : CUDA_ERROR_INVALID_VALUE;
	result = ckt_capture_enter(id, &capturing);
	if (result)
		return result;
	if (capturing)
		return ckt_graph_leave(capture_launch(capturing, exec));
	if (exec->block_count) {
		result = ckt_exec_memory_launch(exec);
		if (result)
			return result;
	}
	return ckt_exec_launch(exec, id);
}
