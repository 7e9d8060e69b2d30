/*
 * Updates of executable graphs.  Nodes are paired from the graphs' ends: exit nodes in the order of their making, then what a pair depends
 * on, edge by edge; and some parameters may not change, as with a real driver.
 */
#include <stdlib.h>

#include "softgpu/graph.h"

struct pairing {
	const struct ckt_soft_graph *graph, *update;
	struct ckt_soft_node **partner;		/* of graph's node i: the update's */
	bool *taken;				/* of update's node i */
	bool *inner[2];				/* nodes that others depend on */
	size_t *todo, count;
	CUgraphExecUpdateResultInfo info;
};

static CUgraphNode handle(const struct ckt_soft_node *node)
{
	return node ? ckt_soft_object_handle(&node->object) : NULL;
}

static CUgraphExecUpdateResult fail(struct pairing *p, CUgraphExecUpdateResult result, const struct ckt_soft_node *node,
				    const struct ckt_soft_node *from)
{
	p->info = (CUgraphExecUpdateResultInfo){.result = result, .errorNode = handle(node), .errorFromNode = handle(from)};
	return result;
}

static bool has_attribute(const struct ckt_soft_kernel_node *kernel, CUlaunchAttributeID id)
{
	for (unsigned i = 0; i < kernel->n_attributes; i++)
		if (kernel->attributes[i].id == id)
			return id != CU_LAUNCH_ATTRIBUTE_COOPERATIVE || kernel->attributes[i].value.cooperative;
	return false;
}

static bool same_shape(const CUDA_MEMSET_NODE_PARAMS *a, const CUDA_MEMSET_NODE_PARAMS *b)
{
	/* In one dimension everything may change. */
	return (a->height == 1 && b->height == 1) ||
	       (a->height == b->height && a->width == b->width && a->pitch == b->pitch && a->elementSize == b->elementSize);
}

static bool same_operations(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *a, const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *b)
{
	for (unsigned i = 0; i < a->count && a->count == b->count; i++)
		if (a->paramArray[i].operation != b->paramArray[i].operation)
			return false;
	return a->count == b->count;
}

static CUgraphExecUpdateResult pair(const struct ckt_soft_graph *graph, const struct ckt_soft_graph *update, struct ckt_soft_node **partners,
				    CUgraphExecUpdateResultInfo *ret_info);

CUgraphExecUpdateResult ckt_soft_node_change(const struct ckt_soft_node *from, const struct ckt_soft_node *to)
{
	CUgraphExecUpdateResultInfo info;
	bool good = true;
	switch (from->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		if (from->kernel.params.ctx && to->kernel.params.ctx && from->kernel.params.ctx != to->kernel.params.ctx)
			return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
		/* A node that is set by itself keeps its attributes. */
		if (to->object.handle &&
		    has_attribute(&from->kernel, CU_LAUNCH_ATTRIBUTE_COOPERATIVE) != has_attribute(&to->kernel, CU_LAUNCH_ATTRIBUTE_COOPERATIVE))
			return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		good = from->copy.srcMemoryType == to->copy.srcMemoryType && from->copy.dstMemoryType == to->copy.dstMemoryType;
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		good = same_shape(&from->fill, &to->fill);
		break;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		good = same_operations(&from->memop, &to->memop);
		break;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return pair(from->child, to->child, NULL, &info);
	default:
		break;
	}
	return good ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

static CUgraphExecUpdateResult join(struct pairing *p, const struct ckt_soft_node *a, struct ckt_soft_node *b, const struct ckt_soft_node *behind)
{
	if (p->partner[a->index] == b)
		return CU_GRAPH_EXEC_UPDATE_SUCCESS;
	if (p->partner[a->index] || p->taken[b->index])
		return fail(p, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, behind, b);
	p->partner[a->index] = b;
	p->taken[b->index] = true;
	p->todo[p->count++] = a->index;
	return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

static void find_inner(const struct ckt_soft_graph *graph, bool *inner)
{
	for (size_t i = 0; i < graph->n_nodes; i++)
		graph->nodes[i]->index = i;
	for (size_t i = 0; i < graph->n_nodes; i++)
		for (size_t k = 0; k < graph->nodes[i]->n_in; k++)
			inner[graph->nodes[i]->in[k].node->index] = true;
}

static CUgraphExecUpdateResult compare(struct pairing *p, const struct ckt_soft_node *a, const struct ckt_soft_node *b)
{
	if (a->type != b->type)
		return fail(p, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, b, NULL);
	if (a->n_in != b->n_in)
		return fail(p, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, b, NULL);
	for (size_t i = 0; i < a->n_in; i++) {
		CUgraphExecUpdateResult result = join(p, a->in[i].node, b->in[i].node, b);
		if (result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
			return result;
	}
	if (a->type == CU_GRAPH_NODE_TYPE_GRAPH)
		return pair(a->child, b->child, NULL, &p->info);
	CUgraphExecUpdateResult result = ckt_soft_node_change(a, b);
	return result == CU_GRAPH_EXEC_UPDATE_SUCCESS ? result : fail(p, result, b, NULL);
}

static CUgraphExecUpdateResult pair_all(struct pairing *p)
{
	size_t k = p->graph->n_nodes;
	find_inner(p->graph, p->inner[0]);
	find_inner(p->update, p->inner[1]);
	/* The last ends first, as an H200's driver names one too many. */
	for (size_t i = p->update->n_nodes; i-- > 0;) {
		if (p->inner[1][i])
			continue;
		while (k > 0 && p->inner[0][k - 1])
			k--;
		if (k == 0)
			return fail(p, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, p->update->nodes[i], NULL);
		join(p, p->graph->nodes[--k], p->update->nodes[i], NULL);
	}
	CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
	for (size_t i = 0; i < p->count && result == CU_GRAPH_EXEC_UPDATE_SUCCESS; i++)
		result = compare(p, p->graph->nodes[p->todo[i]], p->partner[p->todo[i]]);
	return result == CU_GRAPH_EXEC_UPDATE_SUCCESS && p->count < p->graph->n_nodes ?
		       fail(p, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, NULL, NULL) :
		       result;
}

/* partners: NULL, or room for a node of the update for each of the graph's. */
static CUgraphExecUpdateResult pair(const struct ckt_soft_graph *graph, const struct ckt_soft_graph *update, struct ckt_soft_node **partners,
				    CUgraphExecUpdateResultInfo *ret_info)
{
	size_t n = graph->n_nodes;
	struct pairing p = {.graph = graph, .update = update};
	if (n != update->n_nodes) {
		fail(&p, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, NULL, NULL);
	} else {
		p.partner = calloc(n + 1, sizeof(*p.partner));
		p.todo = calloc(n + 1, sizeof(*p.todo));
		bool *flags = calloc(3 * n + 1, sizeof(*flags));
		p.taken = flags;
		p.inner[0] = flags + n;
		p.inner[1] = flags + 2 * n;
		if (!p.partner || !p.todo || !flags)
			fail(&p, CU_GRAPH_EXEC_UPDATE_ERROR, NULL, NULL);
		else if (pair_all(&p) == CU_GRAPH_EXEC_UPDATE_SUCCESS && partners)
			for (size_t i = 0; i < n; i++)
				partners[i] = p.partner[i];
		free(flags);
	}
	free(p.partner);
	free(p.todo);
	*ret_info = p.info;
	return p.info.result;
}

CUresult ckt_soft_graph_adopt(struct ckt_soft_graph *graph, const struct ckt_soft_graph *update)
{
	CUgraphExecUpdateResultInfo info;
	struct ckt_soft_node **partners = calloc(graph->n_nodes + 1, sizeof(*partners));
	CUresult result = partners ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS && pair(graph, update, partners, &info) != CU_GRAPH_EXEC_UPDATE_SUCCESS)
		result = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	for (size_t i = 0; i < graph->n_nodes && result == CUDA_SUCCESS; i++)
		/* The nodes of a child graph stay those that have been asked for. */
		result = graph->nodes[i]->type == CU_GRAPH_NODE_TYPE_GRAPH ?
				 ckt_soft_graph_adopt(graph->nodes[i]->child, partners[i]->child) :
				 ckt_soft_node_copy_params(graph->nodes[i], partners[i]);
	free(partners);
	return result;
}

CUresult CUDAAPI cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo *resultInfo)
{
	if (!resultInfo)
		return CUDA_ERROR_INVALID_VALUE;
	*resultInfo = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_ERROR};
	ckt_soft_exec_settle_users(hGraphExec);
	pthread_mutex_lock(&ckt_soft_graph_lock);
	struct ckt_soft_exec *exec = ckt_soft_object_get(hGraphExec, CKT_SOFT_GRAPH_EXEC);
	const struct ckt_soft_graph *graph = ckt_soft_graph_find(hGraph);
	CUresult result = exec && graph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS && pair(exec->graph, graph, NULL, resultInfo) != CU_GRAPH_EXEC_UPDATE_SUCCESS)
		result = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	if (result == CUDA_SUCCESS)
		result = ckt_soft_graph_adopt(exec->graph, graph);
	if (result == CUDA_SUCCESS) {
		struct ckt_soft_graph before = {.users = exec->graph->users, .n_users = exec->graph->n_users};
		exec->graph->users = NULL;
		exec->graph->n_users = 0;
		result = ckt_soft_users_copy(exec->graph, graph);
		ckt_soft_users_drop(&before);
	}
	if (exec)
		ckt_soft_object_put(&exec->object);
	pthread_mutex_unlock(&ckt_soft_graph_lock);
	return result;
}
