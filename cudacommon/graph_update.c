/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Updates a whole executable graph from a graph of the same shape.  As in CUDA, nodes are paired
 * from the graphs' ends: exit nodes in the order of creation, then the dependencies of each pair,
 * edge by edge.  ckt_exec_update checks the other restrictions of an update, except those about
 * memory, which are checked here.
 */
#include <stdlib.h>
#include <string.h>

#include "cudacommon/capture.h"

struct pairing {
	const struct ckt_graph *graph, *update;
	struct ckt_node **partner; /* by index of a node in graph: the update's node */
	bool *taken;               /* by index of a node in update */
	size_t *todo, count;       /* indices of pairs to check */
	CUgraphExecUpdateResultInfo info;
};

static CUgraphExecUpdateResult fail(struct pairing *p, CUgraphExecUpdateResult result,
	const struct ckt_node *node, const struct ckt_node *from)
{
	p->info = (CUgraphExecUpdateResultInfo){.result = result,
		.errorNode = node ? ckt_node_handle(node) : NULL,
		.errorFromNode = from ? ckt_node_handle(from) : NULL};
	return result;
}

/* from: the update's node that depends on b, or NULL. */
static CUgraphExecUpdateResult join(struct pairing *p, const struct ckt_node *a, struct ckt_node *b,
	const struct ckt_node *behind)
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

/* Begin with the last, because an H200's driver reports the surplus exit node in this order. */
static CUgraphExecUpdateResult join_exits(struct pairing *p)
{
	size_t k = p->graph->count;
	for (size_t i = p->update->count; i-- > 0;) {
		if (p->update->nodes[i]->out.count)
			continue;
		while (k > 0 && p->graph->nodes[k - 1]->out.count)
			k--;
		if (k == 0)
			return fail(p, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED,
				p->update->nodes[i], NULL);
		join(p, p->graph->nodes[--k], p->update->nodes[i], NULL);
	}
	return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

/* Checks that need data only available here. */
static bool same_kind(const struct ckt_node *a, const struct ckt_node *b)
{
	return !ckt_node_is_memory(a) ||
		(a->memory.block == b->memory.block && a->memory.size == b->memory.size);
}

static CUgraphExecUpdateResult compare(
	struct pairing *p, const struct ckt_node *a, const struct ckt_node *b)
{
	if (a->type != b->type)
		return fail(p, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, b, NULL);
	if (a->in.count != b->in.count)
		return fail(p, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, b, NULL);
	for (size_t i = 0; i < a->in.count; i++) {
		CUgraphExecUpdateResult result = join(p, a->in.list[i].node, b->in.list[i].node, b);
		if (result)
			return result;
	}
	if (!same_kind(a, b))
		return fail(p, CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, b, NULL);
	/*
	 * The nodes of an exec's own graph have no handles.  In that case one child graph is
	 * updated, and the caller needs no names.
	 */
	size_t count, others;
	struct ckt_graph *const *graphs = ckt_node_graphs(a, &count),
				*const *from = ckt_node_graphs(b, &others);
	if (a->type == CU_GRAPH_NODE_TYPE_CONDITIONAL &&
		(a->conditional.type != b->conditional.type || count != others))
		return fail(p, CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, b, NULL);
	CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
	for (size_t i = 0; i < count && !result; i++)
		result = ckt_graph_pair(graphs[i], from[i], &p->info);
	return result;
}

static CUgraphExecUpdateResult pair_all(struct pairing *p)
{
	for (size_t i = 0; i < p->graph->count; i++)
		p->graph->nodes[i]->index = p->update->nodes[i]->index = (uint32_t)i;
	CUgraphExecUpdateResult result = join_exits(p);
	for (size_t i = 0; i < p->count && !result; i++)
		result = compare(p, p->graph->nodes[p->todo[i]], p->partner[p->todo[i]]);
	/* A cycle has no exit node. */
	return !result && p->count < p->graph->count
		? fail(p, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, NULL, NULL)
		: result;
}

CUgraphExecUpdateResult ckt_graph_pair(
	struct ckt_graph *graph, struct ckt_graph *update, CUgraphExecUpdateResultInfo *ret_info)
{
	size_t count = graph->count;
	struct pairing p = {.graph = graph, .update = update};
	if (count != update->count || !graph->call != !update->call) {
		fail(&p, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, NULL, NULL);
	} else {
		p.partner = calloc(count + 1, sizeof(struct ckt_node *));
		p.taken = calloc(count + 1, sizeof *p.taken);
		p.todo = calloc(count + 1, sizeof *p.todo);
		if (!p.partner || !p.taken || !p.todo)
			fail(&p, CU_GRAPH_EXEC_UPDATE_ERROR, NULL, NULL);
		else if (!pair_all(&p) && count)
			memcpy(update->nodes, p.partner, count * sizeof(struct ckt_node *));
	}
	free(p.partner);
	free(p.taken);
	free(p.todo);
	if (ret_info)
		*ret_info = p.info;
	return p.info.result;
}

CUresult ckt_graph_adopt(struct ckt_graph *to, const struct ckt_graph *from)
{
	CUresult result = CUDA_SUCCESS;
	ckt_graph_call_share(to, from);
	for (size_t i = 0; i < to->count && i < from->count && !result; i++) {
		struct ckt_node *node = to->nodes[i];
		size_t count, others;
		struct ckt_graph *const *graphs = ckt_node_graphs(node, &count),
					*const *updates = ckt_node_graphs(from->nodes[i], &others);
		for (size_t k = 0; k < count && !result; k++)
			result = ckt_graph_adopt(graphs[k], updates[k]);
		if (node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
			ckt_node_adopt_condition(node, from->nodes[i]);
		if (count)
			continue;
		node->context = from->nodes[i]->context;
		result = ckt_node_copy_params(node, from->nodes[i], false);
	}
	return result;
}

/* Replaces the exec's user objects with the update's. */
static CUresult exchange_users(struct ckt_graph *to, const struct ckt_graph *from)
{
	struct ckt_graph before = {.users = to->users, .user_count = to->user_count};
	to->users = NULL;
	to->user_count = 0;
	CUresult result = ckt_user_copy(to, from);
	ckt_user_drop(&before);
	return result;
}

/* The order of the program's nodes, which pairing changes temporarily. */
struct order {
	struct order *next;
	struct ckt_graph *graph;
	struct ckt_node *nodes[];
};

static bool save_order(struct ckt_graph *graph, struct order **orders)
{
	size_t bytes = graph->count * sizeof(struct ckt_node *);
	struct order *order = malloc(sizeof *order + bytes);
	if (!order)
		return false;
	*order = (struct order){.next = *orders, .graph = graph};
	if (bytes)
		memcpy(order->nodes, graph->nodes, bytes);
	*orders = order;
	for (size_t i = 0; i < graph->count; i++) {
		size_t count;
		struct ckt_graph *const *graphs = ckt_node_graphs(graph->nodes[i], &count);
		for (size_t k = 0; k < count; k++)
			if (!save_order(graphs[k], orders))
				return false;
	}
	return true;
}

static void restore_order(struct order *order)
{
	while (order) {
		struct order *next = order->next;
		if (order->graph->count)
			memcpy(order->graph->nodes, order->nodes,
				order->graph->count * sizeof(struct ckt_node *));
		free(order);
		order = next;
	}
}

/* Precondition: entered. */
static CUresult update(
	struct ckt_exec *exec, struct ckt_graph *graph, CUgraphExecUpdateResultInfo *ret_info)
{
	struct order *orders = NULL;
	if (!save_order(graph, &orders)) {
		restore_order(orders);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	CUresult result = ckt_graph_pair(exec->graph, graph, ret_info)
		? CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE
		: CUDA_SUCCESS;
	if (!result)
		result = ckt_exec_update(exec, graph, ret_info);
	if (!result) {
		result = ckt_graph_adopt(exec->graph, graph);
		ckt_exec_look(exec);
	}
	if (!result)
		result = exchange_users(exec->graph, graph);
	restore_order(orders);
	return result;
}

CKT_EXPORT CUresult cuGraphExecUpdate_v2(
	CUgraphExec exec_handle, CUgraph handle, CUgraphExecUpdateResultInfo *ret_info)
{
	if (!ret_info)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_info = (CUgraphExecUpdateResultInfo){0};
	ckt_exec_settle_users(ckt_exec_find(exec_handle));
	ckt_graph_enter();
	struct ckt_exec *exec = ckt_exec_find(exec_handle);
	struct ckt_graph *graph = ckt_graph_find(handle);
	if (!exec || !graph || graph->owner || graph->capturing)
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	*ret_info = (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_ERROR};
	return ckt_graph_leave(update(exec, graph, ret_info));
}

CKT_EXPORT CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *error_node,
	CUgraphExecUpdateResult *ret_result)
{
	CUgraphExecUpdateResultInfo info = {.result = CU_GRAPH_EXEC_UPDATE_ERROR};
	if (!ret_result)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = cuGraphExecUpdate_v2(exec, graph, &info);
	*ret_result = info.result;
	if (error_node)
		*error_node = info.errorNode;
	return result;
}
