/* What graphs say of themselves, and nodes' parameters told and set. */
#include <stdlib.h>
#include <string.h>

#include "softgpu/graph.h"

static void lock(void)
{
	pthread_mutex_lock(&ckt_soft_graph_lock);
}

static CUresult unlock(CUresult result)
{
	pthread_mutex_unlock(&ckt_soft_graph_lock);
	return result;
}

/* ---- Edges */

static bool is_special(const CUgraphEdgeData *data)
{
	return data->from_port || data->to_port || data->type;
}

/* One more of a list that has room for `max`. */
struct listing {
	CUgraphNode *from, *to;
	CUgraphEdgeData *data;
	size_t max, n;
	bool lossy;
};

static void list_edge(struct listing *l, const struct ckt_soft_node *from, const struct ckt_soft_node *to, const CUgraphEdgeData *data)
{
	size_t i = l->n++;
	if (i >= l->max)
		return;
	if (l->from)
		l->from[i] = ckt_soft_object_handle(&from->object);
	if (l->to)
		l->to[i] = ckt_soft_object_handle(&to->object);
	if (l->data)
		l->data[i] = *data;
	else if (l->from || l->to)
		l->lossy |= is_special(data);
}

static CUresult list_end(const struct listing *l, size_t *count)
{
	for (size_t i = l->n; i < l->max; i++) {
		if (l->from)
			l->from[i] = NULL;
		if (l->to)
			l->to[i] = NULL;
	}
	if ((!l->from && !l->to) || l->n < *count)
		*count = l->n;
	return unlock(l->lossy ? CUDA_ERROR_LOSSY_QUERY : CUDA_SUCCESS);
}

CUresult CUDAAPI cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edgeData, size_t *numEdges)
{
	lock();
	const struct ckt_soft_graph *graph = ckt_soft_graph_find(hGraph);
	if (!graph || !numEdges || !from != !to || (edgeData && !from))
		return unlock(CUDA_ERROR_INVALID_VALUE);
	struct listing l = {.from = from, .to = to, .data = edgeData, .max = from ? *numEdges : 0};
	/* By the node that they begin at. */
	for (size_t i = 0; i < graph->n_nodes; i++)
		for (size_t k = 0; k < graph->n_nodes; k++)
			for (size_t e = 0; e < graph->nodes[k]->n_in; e++)
				if (graph->nodes[k]->in[e].node == graph->nodes[i])
					list_edge(&l, graph->nodes[i], graph->nodes[k], &graph->nodes[k]->in[e].data);
	return list_end(&l, numEdges);
}

CUresult CUDAAPI cuGraphGetEdges(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, size_t *numEdges)
{
	return cuGraphGetEdges_v2(hGraph, from, to, NULL, numEdges);
}

CUresult CUDAAPI cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode *dependencies, CUgraphEdgeData *edgeData, size_t *numDependencies)
{
	lock();
	const struct ckt_soft_node *node = ckt_soft_node_find(hNode);
	if (!node || !numDependencies || (edgeData && !dependencies))
		return unlock(CUDA_ERROR_INVALID_VALUE);
	struct listing l = {.from = dependencies, .data = edgeData, .max = dependencies ? *numDependencies : 0};
	for (size_t i = 0; i < node->n_in; i++)
		list_edge(&l, node->in[i].node, node, &node->in[i].data);
	return list_end(&l, numDependencies);
}

CUresult CUDAAPI cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode *dependencies, size_t *numDependencies)
{
	return cuGraphNodeGetDependencies_v2(hNode, dependencies, NULL, numDependencies);
}

CUresult CUDAAPI cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode *dependentNodes, CUgraphEdgeData *edgeData,
						 size_t *numDependentNodes)
{
	lock();
	const struct ckt_soft_node *node = ckt_soft_node_find(hNode);
	if (!node || !numDependentNodes || (edgeData && !dependentNodes))
		return unlock(CUDA_ERROR_INVALID_VALUE);
	struct listing l = {.to = dependentNodes, .data = edgeData, .max = dependentNodes ? *numDependentNodes : 0};
	const struct ckt_soft_graph *graph = node->graph;
	for (size_t k = 0; k < graph->n_nodes; k++)
		for (size_t e = 0; e < graph->nodes[k]->n_in; e++)
			if (graph->nodes[k]->in[e].node == node)
				list_edge(&l, node, graph->nodes[k], &graph->nodes[k]->in[e].data);
	return list_end(&l, numDependentNodes);
}

CUresult CUDAAPI cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode *dependentNodes, size_t *numDependentNodes)
{
	return cuGraphNodeGetDependentNodes_v2(hNode, dependentNodes, NULL, numDependentNodes);
}

static struct ckt_soft_edge *find_edge(const struct ckt_soft_node *from, const struct ckt_soft_node *to)
{
	for (size_t i = 0; i < to->n_in; i++)
		if (to->in[i].node == from)
			return &to->in[i];
	return NULL;
}

CUresult CUDAAPI cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *edgeData,
					      size_t numDependencies)
{
	lock();
	const struct ckt_soft_graph *graph = ckt_soft_graph_find(hGraph);
	CUresult result = graph && (!numDependencies || (from && to)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < numDependencies && result == CUDA_SUCCESS; i++) {
		const struct ckt_soft_node *a = ckt_soft_node_find(from[i]), *b = ckt_soft_node_find(to[i]);
		const struct ckt_soft_edge *edge = a && b && a->graph == graph ? find_edge(a, b) : NULL;
		if (!edge || (edgeData ? memcmp(&edge->data, &edgeData[i], 3) != 0 : is_special(&edge->data)))
			result = CUDA_ERROR_INVALID_VALUE;
	}
	for (size_t i = 0; i < numDependencies && result == CUDA_SUCCESS; i++) {
		struct ckt_soft_node *b = ckt_soft_node_find(to[i]);
		const struct ckt_soft_edge *edge = find_edge(ckt_soft_node_find(from[i]), b);
		if (edge) {
			size_t at = (size_t)(edge - b->in);
			memmove(&b->in[at], &b->in[at + 1], (--b->n_in - at) * sizeof(*b->in));
		}
	}
	return unlock(result);
}

CUresult CUDAAPI cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to, size_t numDependencies)
{
	return cuGraphRemoveDependencies_v2(hGraph, from, to, NULL, numDependencies);
}

/* ---- Parameters of any kind */

CUresult CUDAAPI cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData,
				   size_t numDependencies, CUgraphNodeParams *nodeParams)
{
	struct ckt_soft_node *node;
	if (!phGraphNode || !nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	lock();
	CUresult result =
		ckt_soft_node_new(ckt_soft_graph_find(hGraph), nodeParams->type, dependencies, dependencyData, numDependencies, &node);
	if (result != CUDA_SUCCESS)
		return unlock(result);
	result = ckt_soft_node_set_params(node, nodeParams);
	if (result != CUDA_SUCCESS) {
		ckt_soft_node_free(node);
		return unlock(result);
	}
	if (node->type == CU_GRAPH_NODE_TYPE_GRAPH)
		nodeParams->graph.graph = ckt_soft_object_handle(&node->child->object);
	*phGraphNode = ckt_soft_object_handle(&node->object);
	return unlock(CUDA_SUCCESS);
}

CUresult CUDAAPI cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies,
				CUgraphNodeParams *nodeParams)
{
	return cuGraphAddNode_v2(phGraphNode, hGraph, dependencies, NULL, numDependencies, nodeParams);
}

CUresult CUDAAPI cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
	lock();
	struct ckt_soft_node *node = ckt_soft_node_find(hNode);
	return unlock(node && nodeParams && node->type == nodeParams->type ? ckt_soft_node_set_params(node, nodeParams) : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
	return nodeParams ? ckt_soft_exec_set(hGraphExec, hNode, nodeParams) : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int *isEnabled)
{
	lock();
	struct ckt_soft_exec *exec = ckt_soft_object_get(hGraphExec, CKT_SOFT_GRAPH_EXEC);
	const struct ckt_soft_node *node = exec ? ckt_soft_graph_find_copy(exec->graph, (uint64_t)(uintptr_t)hNode) : NULL;
	bool can = node && isEnabled &&
		   (node->type == CU_GRAPH_NODE_TYPE_KERNEL || node->type == CU_GRAPH_NODE_TYPE_MEMCPY || node->type == CU_GRAPH_NODE_TYPE_MEMSET);
	if (can)
		*isEnabled = !node->disabled;
	if (exec)
		ckt_soft_object_put(&exec->object);
	return unlock(can ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

/* ---- Parameters of one kind */

static CUresult set(CUgraphNode handle, CUgraphNodeParams *params)
{
	return cuGraphNodeSetParams(handle, params);
}

CUresult CUDAAPI cuGraphKernelNodeSetParams_v2(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
	if (!nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&p.kernel, nodeParams, sizeof(*nodeParams));
	return set(hNode, &p);
}

CUresult CUDAAPI cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams)
{
	if (!nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .memcpy = {.copyParams = *nodeParams}};
	return set(hNode, &p);
}

CUresult CUDAAPI cuGraphMemsetNodeSetParams(CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *f)
{
	if (!f)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEMSET,
			       .memset = {.dst = f->dst, .pitch = f->pitch, .value = f->value, .elementSize = f->elementSize, .width = f->width,
					  .height = f->height}};
	return set(hNode, &p);
}

CUresult CUDAAPI cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	if (!nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_HOST, .host = {.fn = nodeParams->fn, .userData = nodeParams->userData}};
	return set(hNode, &p);
}

CUresult CUDAAPI cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = {.event = event}};
	return set(hNode, &p);
}

CUresult CUDAAPI cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait = {.event = event}};
	return set(hNode, &p);
}

CUresult CUDAAPI cuGraphBatchMemOpNodeSetParams(CUgraphNode hNode, const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};
	if (!nodeParams)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&p.memOp, nodeParams, sizeof(*nodeParams));
	return set(hNode, &p);
}

/* Precondition of the answer: locked.  NULL where it is no node of that kind. */
static struct ckt_soft_node *find(CUgraphNode handle, CUgraphNodeType type, const void *out)
{
	struct ckt_soft_node *node = ckt_soft_node_find(handle);
	return node && out && node->type == type ? node : NULL;
}

#define TELL(kind, member)                                                                                                       \
	do {                                                                                                                     \
		lock();                                                                                                          \
		const struct ckt_soft_node *node_ = find(hNode, CU_GRAPH_NODE_TYPE_##kind, out);                                 \
		if (node_)                                                                                                       \
			*out = node_->member;                                                                                    \
		return unlock(node_ ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);                                                  \
	} while (0)

CUresult CUDAAPI cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *out)
{
	TELL(MEMCPY, copy);
}

CUresult CUDAAPI cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *out)
{
	TELL(MEMSET, fill);
}

CUresult CUDAAPI cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *out)
{
	TELL(HOST, host);
}

CUresult CUDAAPI cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent *out)
{
	TELL(EVENT_RECORD, event);
}

CUresult CUDAAPI cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent *out)
{
	TELL(WAIT_EVENT, event);
}

CUresult CUDAAPI cuGraphBatchMemOpNodeGetParams(CUgraphNode hNode, CUDA_BATCH_MEM_OP_NODE_PARAMS *out)
{
	lock();
	const struct ckt_soft_node *node = find(hNode, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, out);
	if (node)
		memcpy(out, &node->memop, sizeof(*out));
	return unlock(node ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr, CUkernelNodeAttrValue *value_out)
{
	lock();
	const struct ckt_soft_node *node = find(hNode, CU_GRAPH_NODE_TYPE_KERNEL, value_out);
	if (!node)
		return unlock(CUDA_ERROR_INVALID_VALUE);
	memset(value_out, 0, sizeof(*value_out));
	for (unsigned i = 0; i < node->kernel.n_attributes; i++)
		if (node->kernel.attributes[i].id == attr)
			*value_out = node->kernel.attributes[i].value;
	return unlock(CUDA_SUCCESS);
}

CUresult CUDAAPI cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src)
{
	lock();
	struct ckt_soft_node *to = find(dst, CU_GRAPH_NODE_TYPE_KERNEL, dst);
	const struct ckt_soft_node *from = find(src, CU_GRAPH_NODE_TYPE_KERNEL, src);
	if (!to || !from)
		return unlock(CUDA_ERROR_INVALID_VALUE);
	unsigned n = to->kernel.n_attributes + from->kernel.n_attributes;
	CUlaunchAttribute *list = realloc(to->kernel.attributes, n * sizeof(*list) + 1);
	if (!list)
		return unlock(CUDA_ERROR_OUT_OF_MEMORY);
	to->kernel.attributes = list;
	/* The last of a kind counts. */
	for (unsigned i = 0; i < from->kernel.n_attributes && to != from; i++)
		list[to->kernel.n_attributes++] = from->kernel.attributes[i];
	return unlock(CUDA_SUCCESS);
}
