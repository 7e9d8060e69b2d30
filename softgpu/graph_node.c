/* Parameters of graph nodes, and the functions that add nodes and set parameters. */
#include <stdlib.h>
#include <string.h>

#include "softgpu/graph.h"

static CUresult pack(struct ckt_soft_kernel_node *kernel, const struct ckt_ptx_function_info *info, const CUDA_KERNEL_NODE_PARAMS *p)
{
	if (p->kernelParams) {
		for (size_t i = 0; i < info->n_params; i++) {
			if (!p->kernelParams[i])
				return CUDA_ERROR_INVALID_VALUE;
			memcpy(kernel->packed + info->params[i].offset_bytes, p->kernelParams[i], info->params[i].size_bytes);
		}
		return CUDA_SUCCESS;
	}
	const void *buffer = NULL;
	size_t size = 0;
	for (void **e = p->extra; e && *e != CU_LAUNCH_PARAM_END; e += 2) {
		if (*e == CU_LAUNCH_PARAM_BUFFER_POINTER)
			buffer = e[1];
		else if (*e == CU_LAUNCH_PARAM_BUFFER_SIZE && e[1])
			size = *(const size_t *)e[1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (info->n_params && (!buffer || size < info->param_bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (buffer)
		memcpy(kernel->packed, buffer, info->param_bytes);
	return CUDA_SUCCESS;
}

static CUresult set_kernel(struct ckt_soft_node *node, const CUDA_KERNEL_NODE_PARAMS *p)
{
	struct ckt_soft_context *context;
	struct ckt_soft_function *function;
	CUresult result = ckt_soft_context_get(p->ctx, &context);
	if (result != CUDA_SUCCESS)
		return result;
	result = ckt_soft_function_get(p->func ? p->func : (CUfunction)p->kern, context, &function);
	if (p->ctx)
		ckt_soft_object_put(&context->object);
	if (result != CUDA_SUCCESS)
		return result;
	struct ckt_soft_kernel_node kernel = {.params = *p, .packed_bytes = function->info->param_bytes};
	if (!p->gridDimX || !p->gridDimY || !p->gridDimZ || !p->blockDimX || !p->blockDimY || !p->blockDimZ || (p->kernelParams && p->extra))
		result = CUDA_ERROR_INVALID_VALUE;
	kernel.params.kernelParams = kernel.params.extra = NULL;
	kernel.packed = calloc(1, kernel.packed_bytes + 1);
	if (result == CUDA_SUCCESS)
		result = kernel.packed ? pack(&kernel, function->info, p) : CUDA_ERROR_OUT_OF_MEMORY;
	ckt_soft_object_put(&function->object);
	if (result != CUDA_SUCCESS) {
		free(kernel.packed);
		return result;
	}
	kernel.attributes = node->kernel.attributes;
	kernel.n_attributes = node->kernel.n_attributes;
	free(node->kernel.packed);
	free(node->kernel.pointers);
	node->kernel = kernel;
	return CUDA_SUCCESS;
}

static CUresult set_memop(struct ckt_soft_node *node, const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *p)
{
	CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 copy = *p;
	copy.paramArray = malloc(p->count * sizeof(*copy.paramArray) + 1);
	if (!copy.paramArray)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(copy.paramArray, p->paramArray, p->count * sizeof(*copy.paramArray));
	free(node->memop.paramArray);
	node->memop = copy;
	return CUDA_SUCCESS;
}

CUresult ckt_soft_node_copy_params(struct ckt_soft_node *to, const struct ckt_soft_node *from)
{
	const struct ckt_soft_kernel_node *k = &from->kernel;
	struct ckt_soft_graph *child;
	CUresult result;
	switch (from->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL: {
		struct ckt_soft_kernel_node copy = *k;
		copy.pointers = NULL;
		copy.packed = malloc(k->packed_bytes + 1);
		copy.attributes = malloc(k->n_attributes * sizeof(*k->attributes) + 1);
		if (!copy.packed || !copy.attributes) {
			free(copy.packed);
			free(copy.attributes);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		memcpy(copy.packed, k->packed, k->packed_bytes);
		if (k->n_attributes)
			memcpy(copy.attributes, k->attributes, k->n_attributes * sizeof(*k->attributes));
		ckt_soft_node_drop_params(to);
		to->kernel = copy;
		return CUDA_SUCCESS;
	}
	case CU_GRAPH_NODE_TYPE_GRAPH:
		result = ckt_soft_graph_copy(from->child, &child);
		if (result != CUDA_SUCCESS)
			return result;
		child->inner = true;
		ckt_soft_graph_free(to->child);
		to->child = child;
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		to->copy = from->copy;
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		to->fill = from->fill;
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_HOST:
		to->host = from->host;
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return set_memop(to, &from->memop);
	default:
		to->event = from->event;
		return CUDA_SUCCESS;
	}
}

static CUresult set_event(struct ckt_soft_node *node, CUevent event)
{
	void *object = ckt_soft_object_get(event, CKT_SOFT_EVENT);
	if (!object)
		return CUDA_ERROR_INVALID_VALUE;
	ckt_soft_object_put(object);
	node->event = event;
	return CUDA_SUCCESS;
}

CUresult ckt_soft_node_set_params(struct ckt_soft_node *node, const CUgraphNodeParams *p)
{
	CUDA_KERNEL_NODE_PARAMS kernel;
	struct ckt_soft_graph *child, *copy;
	CUresult result;
	switch (p->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		memcpy(&kernel, &p->kernel, sizeof(kernel));
		return set_kernel(node, &kernel);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		if (!p->memcpy.copyParams.WidthInBytes || !p->memcpy.copyParams.Height || !p->memcpy.copyParams.Depth)
			return CUDA_ERROR_INVALID_VALUE;
		node->copy = p->memcpy.copyParams;
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		if (!p->memset.dst || !p->memset.width || !p->memset.height ||
		    (p->memset.elementSize != 1 && p->memset.elementSize != 2 && p->memset.elementSize != 4))
			return CUDA_ERROR_INVALID_VALUE;
		node->fill = (CUDA_MEMSET_NODE_PARAMS){.dst = p->memset.dst, .pitch = p->memset.pitch, .value = p->memset.value,
						       .elementSize = p->memset.elementSize, .width = p->memset.width, .height = p->memset.height};
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_HOST:
		if (!p->host.fn)
			return CUDA_ERROR_INVALID_VALUE;
		node->host = (CUDA_HOST_NODE_PARAMS){.fn = p->host.fn, .userData = p->host.userData};
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		child = ckt_soft_graph_find(p->graph.graph);
		result = child && child != node->graph ? ckt_soft_graph_copy(child, &copy) : CUDA_ERROR_INVALID_VALUE;
		if (result != CUDA_SUCCESS)
			return result;
		copy->inner = true;
		ckt_soft_graph_free(node->child);
		node->child = copy;
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_EMPTY:
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return set_event(node, p->eventWait.event);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return set_event(node, p->eventRecord.event);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		result = ckt_soft_memops_check(p->memOp.paramArray, p->memOp.count, p->memOp.flags);
		return result == CUDA_SUCCESS ? set_memop(node, &p->memOp) : result;
	default:
		return CKT_SOFT_UNSUPPORTED("a graph node of this kind");
	}
}

static CUresult add(CUgraphNode *ret, CUgraph graph, const CUgraphNode *list, size_t count, const CUgraphNodeParams *params)
{
	struct ckt_soft_node *node;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&ckt_soft_graph_lock);
	CUresult result = ckt_soft_node_new(ckt_soft_graph_find(graph), params->type, list, NULL, count, &node);
	if (result == CUDA_SUCCESS) {
		result = ckt_soft_node_set_params(node, params);
		if (result != CUDA_SUCCESS)
			ckt_soft_node_free(node);
		else
			*ret = ckt_soft_object_handle(&node->object);
	}
	pthread_mutex_unlock(&ckt_soft_graph_lock);
	return result;
}

/* The executable graph's node that was made from this one. */
CUresult ckt_soft_exec_set(CUgraphExec exec_handle, CUgraphNode handle, const CUgraphNodeParams *params)
{
	pthread_mutex_lock(&ckt_soft_graph_lock);
	struct ckt_soft_exec *exec = ckt_soft_object_get(exec_handle, CKT_SOFT_GRAPH_EXEC);
	struct ckt_soft_node *node = exec ? ckt_soft_graph_find_copy(exec->graph, (uint64_t)(uintptr_t)handle) : NULL;
	struct ckt_soft_node trial = {.graph = node ? node->graph : NULL, .type = params->type};
	CUresult result = node && node->type == params->type ? ckt_soft_node_set_params(&trial, params) : CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS && ckt_soft_node_change(node, &trial) != CU_GRAPH_EXEC_UPDATE_SUCCESS)
		result = node->type == CU_GRAPH_NODE_TYPE_GRAPH ? CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE : CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS && node->type == CU_GRAPH_NODE_TYPE_GRAPH)
		result = ckt_soft_graph_adopt(node->child, trial.child);
	else if (result == CUDA_SUCCESS)
		result = ckt_soft_node_set_params(node, params);
	ckt_soft_node_drop_params(&trial);
	if (exec)
		ckt_soft_object_put(&exec->object);
	pthread_mutex_unlock(&ckt_soft_graph_lock);
	return result;
}

#define REQUIRE(pointer)                                                                                                         \
	do {                                                                                                                     \
		if (!(pointer))                                                                                                  \
			return CUDA_ERROR_INVALID_VALUE;                                                                         \
	} while (0)

CUresult CUDAAPI cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
					 const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	REQUIRE(nodeParams);
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
	memcpy(&p.kernel, nodeParams, sizeof(*nodeParams));
	return add(phGraphNode, hGraph, dependencies, numDependencies, &p);
}

/* Precondition: the lock is held. */
static CUresult tell_kernel(struct ckt_soft_kernel_node *kernel, CUDA_KERNEL_NODE_PARAMS *ret)
{
	struct ckt_soft_context *context;
	struct ckt_soft_function *function;
	const CUDA_KERNEL_NODE_PARAMS *p = &kernel->params;
	CUresult result = ckt_soft_enter(&context);
	if (result == CUDA_SUCCESS)
		result = ckt_soft_function_get(p->func ? p->func : (CUfunction)p->kern, context, &function);
	if (result != CUDA_SUCCESS)
		return result;
	const struct ckt_ptx_function_info *info = function->info;
	if (!kernel->pointers)
		kernel->pointers = calloc(info->n_params + 1, sizeof(*kernel->pointers));
	for (size_t i = 0; kernel->pointers && i < info->n_params; i++)
		kernel->pointers[i] = kernel->packed + info->params[i].offset_bytes;
	ckt_soft_object_put(&function->object);
	*ret = *p;
	ret->kernelParams = kernel->pointers;
	return kernel->pointers ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult CUDAAPI cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	pthread_mutex_lock(&ckt_soft_graph_lock);
	struct ckt_soft_node *node = ckt_soft_node_find(hNode);
	CUresult result = node && nodeParams && node->type == CU_GRAPH_NODE_TYPE_KERNEL ? tell_kernel(&node->kernel, nodeParams) :
											   CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&ckt_soft_graph_lock);
	return result;
}

CUresult CUDAAPI cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	REQUIRE(nodeParams);
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
	memcpy(&p.kernel, nodeParams, sizeof(*nodeParams));
	return ckt_soft_exec_set(hGraphExec, hNode, &p);
}

CUresult CUDAAPI cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr, const CUkernelNodeAttrValue *value)
{
	REQUIRE(value);
	pthread_mutex_lock(&ckt_soft_graph_lock);
	struct ckt_soft_node *node = ckt_soft_node_find(hNode);
	CUresult result = node && node->type == CU_GRAPH_NODE_TYPE_KERNEL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS) {
		CUlaunchAttribute *list = realloc(node->kernel.attributes, (node->kernel.n_attributes + 1) * sizeof(*list));
		if (list) {
			memset(&list[node->kernel.n_attributes], 0, sizeof(*list));
			list[node->kernel.n_attributes].id = attr;
			list[node->kernel.n_attributes].value = *value;
			node->kernel.attributes = list;
			node->kernel.n_attributes++;
		} else {
			result = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	pthread_mutex_unlock(&ckt_soft_graph_lock);
	return result;
}

CUresult CUDAAPI cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
				      const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
	REQUIRE(copyParams);
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .memcpy = {.copyCtx = ctx, .copyParams = *copyParams}};
	return add(phGraphNode, hGraph, dependencies, numDependencies, &p);
}

CUresult CUDAAPI cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
	REQUIRE(copyParams);
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .memcpy = {.copyCtx = ctx, .copyParams = *copyParams}};
	return ckt_soft_exec_set(hGraphExec, hNode, &p);
}

static CUgraphNodeParams fill_params(const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext ctx)
{
	return (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_MEMSET,
				   .memset = {.dst = fill->dst, .pitch = fill->pitch, .value = fill->value, .elementSize = fill->elementSize,
					      .width = fill->width, .height = fill->height, .ctx = ctx}};
}

CUresult CUDAAPI cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
				      const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx)
{
	REQUIRE(memsetParams);
	CUgraphNodeParams p = fill_params(memsetParams, ctx);
	return add(phGraphNode, hGraph, dependencies, numDependencies, &p);
}

CUresult CUDAAPI cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *memsetParams,
						CUcontext ctx)
{
	REQUIRE(memsetParams);
	CUgraphNodeParams p = fill_params(memsetParams, ctx);
	return ckt_soft_exec_set(hGraphExec, hNode, &p);
}

CUresult CUDAAPI cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
				    const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	REQUIRE(nodeParams);
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_HOST, .host = {.fn = nodeParams->fn, .userData = nodeParams->userData}};
	return add(phGraphNode, hGraph, dependencies, numDependencies, &p);
}

CUresult CUDAAPI cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	REQUIRE(nodeParams);
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_HOST, .host = {.fn = nodeParams->fn, .userData = nodeParams->userData}};
	return ckt_soft_exec_set(hGraphExec, hNode, &p);
}

CUresult CUDAAPI cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
					  CUgraph childGraph)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {.graph = childGraph}};
	return add(phGraphNode, hGraph, dependencies, numDependencies, &p);
}

CUresult CUDAAPI cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraph childGraph)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = {.graph = childGraph}};
	return ckt_soft_exec_set(hGraphExec, hNode, &p);
}

CUresult CUDAAPI cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph)
{
	pthread_mutex_lock(&ckt_soft_graph_lock);
	const struct ckt_soft_node *node = ckt_soft_node_find(hNode);
	bool good = node && phGraph && node->type == CU_GRAPH_NODE_TYPE_GRAPH;
	if (good)
		*phGraph = ckt_soft_object_handle(&node->child->object);
	pthread_mutex_unlock(&ckt_soft_graph_lock);
	return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
	return add(phGraphNode, hGraph, dependencies, numDependencies, &p);
}

CUresult CUDAAPI cuGraphAddEventRecordNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
					   CUevent event)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = {.event = event}};
	return add(phGraphNode, hGraph, dependencies, numDependencies, &p);
}

CUresult CUDAAPI cuGraphExecEventRecordNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = {.event = event}};
	return ckt_soft_exec_set(hGraphExec, hNode, &p);
}

CUresult CUDAAPI cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
					 CUevent event)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait = {.event = event}};
	return add(phGraphNode, hGraph, dependencies, numDependencies, &p);
}

CUresult CUDAAPI cuGraphExecEventWaitNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait = {.event = event}};
	return ckt_soft_exec_set(hGraphExec, hNode, &p);
}

CUresult CUDAAPI cuGraphAddBatchMemOpNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
					  const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
	REQUIRE(nodeParams);
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
	memcpy(&p.memOp, nodeParams, sizeof(*nodeParams));
	return add(phGraphNode, hGraph, dependencies, numDependencies, &p);
}

CUresult CUDAAPI cuGraphExecBatchMemOpNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
	REQUIRE(nodeParams);
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
	memcpy(&p.memOp, nodeParams, sizeof(*nodeParams));
	return ckt_soft_exec_set(hGraphExec, hNode, &p);
}
