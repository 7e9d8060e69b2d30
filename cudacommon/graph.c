/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: nodes and edges, copies, queries.  See graph.h. */
#include "cudacommon/graph.h"
#include "base/fork.h"

#include <stdlib.h>
#include <string.h>

CKT_LOCK(ckt_graph_lock);

struct ckt_graph *ckt_graph_find(CUgraph handle)
{
	return ckt_cudacommon_object_find(ckt_handle_id(handle), CKT_KIND_GRAPH);
}

struct ckt_node *ckt_node_find(CUgraphNode handle)
{
	return ckt_cudacommon_object_find(ckt_handle_id(handle), CKT_KIND_GRAPH_NODE);
}

CUgraphNode ckt_node_handle(const struct ckt_node *node)
{
	return (CUgraphNode)(uintptr_t)node->object.id;
}

/* ---- Creation and destruction */

CUresult ckt_graph_new(bool named, struct ckt_graph **ret_graph)
{
	struct ckt_graph *graph = calloc(1, sizeof *graph);
	if (!graph || (named && !ckt_cudacommon_object_add(&graph->object, CKT_KIND_GRAPH))) {
		free(graph);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_graph = graph;
	return CUDA_SUCCESS;
}

static void drop_edge(struct ckt_edges *edges, const struct ckt_node *node)
{
	for (size_t i = 0; i < edges->count; i++)
		if (edges->list[i].node == node) {
			memmove(&edges->list[i], &edges->list[i + 1],
				(--edges->count - i) * sizeof *edges->list);
			return;
		}
}

/* Frees the struct at once, or the table frees it when it reuses the slot. */
static void node_dispose(struct ckt_node *node)
{
	ckt_node_drop_params(node);
	free(node->in.list);
	free(node->out.list);
	node->in = node->out = (struct ckt_edges){0};
	if (node->object.id)
		ckt_cudacommon_object_remove(&node->object);
	else
		free(node);
}

void ckt_node_free(struct ckt_node *node)
{
	struct ckt_graph *graph = node->graph;
	for (size_t i = 0; i < node->in.count; i++)
		drop_edge(&node->in.list[i].node->out, node);
	for (size_t i = 0; i < node->out.count; i++)
		drop_edge(&node->out.list[i].node->in, node);
	for (size_t i = 0; i < graph->count; i++)
		if (graph->nodes[i] == node) {
			memmove(&graph->nodes[i], &graph->nodes[i + 1],
				(--graph->count - i) * sizeof *graph->nodes);
			break;
		}
	node_dispose(node);
}

void ckt_graph_free(struct ckt_graph *graph)
{
	if (!graph)
		return;
	for (size_t i = 0; i < graph->count; i++)
		node_dispose(graph->nodes[i]);
	free(graph->nodes);
	graph->nodes = NULL;
	graph->count = 0;
	ckt_user_drop(graph);
	ckt_graph_call_drop(graph);
	free(graph->conditions);
	graph->conditions = NULL;
	graph->condition_count = 0;
	if (graph->object.id)
		ckt_cudacommon_object_remove(&graph->object);
	else
		free(graph);
}

static CUresult add_edge_to(
	struct ckt_edges *edges, struct ckt_node *node, const CUgraphEdgeData *data)
{
	struct ckt_edge *list = realloc(edges->list, (edges->count + 1) * sizeof *list);
	if (!list)
		return CUDA_ERROR_OUT_OF_MEMORY;
	edges->list = list;
	list[edges->count++] =
		(struct ckt_edge){.node = node, .data = data ? *data : (CUgraphEdgeData){0}};
	return CUDA_SUCCESS;
}

static struct ckt_edge *find_edge(const struct ckt_node *from, const struct ckt_node *to)
{
	for (size_t i = 0; i < from->out.count; i++)
		if (from->out.list[i].node == to)
			return &from->out.list[i];
	return NULL;
}

static CUresult add_edge(struct ckt_node *from, struct ckt_node *to, const CUgraphEdgeData *data)
{
	CUresult result = add_edge_to(&from->out, to, data);
	if (!result) {
		result = add_edge_to(&to->in, from, data);
		if (result)
			from->out.count--;
	}
	return result;
}

/* Precondition: dependencies are nodes of the graph. */
CUresult ckt_node_new(struct ckt_graph *graph, CUgraphNodeType type,
	struct ckt_node *const *dependencies, const CUgraphEdgeData *data, size_t count,
	struct ckt_node **ret_node)
{
	struct ckt_node *node = calloc(1, sizeof *node);
	bool named = graph->object.id != 0;
	if (!node)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (graph->count == graph->room) {
		size_t room = graph->room ? graph->room * 2 : 16;
		struct ckt_node **nodes = realloc(graph->nodes, room * sizeof *nodes);
		if (!nodes) {
			free(node);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		graph->nodes = nodes;
		graph->room = room;
	}
	if (named && !ckt_cudacommon_object_add(&node->object, CKT_KIND_GRAPH_NODE)) {
		free(node);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	node->graph = graph;
	node->type = type;
	node->context = ckt_cudacommon_context_now();
	graph->nodes[graph->count++] = node;
	CUresult result = CUDA_SUCCESS;
	for (size_t i = 0; i < count && !result; i++)
		result = add_edge(dependencies[i], node, data ? &data[i] : NULL);
	if (result)
		ckt_node_free(node);
	else
		*ret_node = node;
	return result;
}

CUresult ckt_graph_copy(const struct ckt_graph *from, bool named, struct ckt_graph **ret_graph)
{
	struct ckt_graph *graph;
	CUresult result = ckt_graph_new(named, &graph);
	if (result)
		return result;
	for (size_t i = 0; i < from->count && !result; i++) {
		struct ckt_node *node;
		from->nodes[i]->index = (uint32_t)i;
		/*
		 * Memory and conditions have one owner.  Only a copy for an executable graph may
		 * name them too.
		 */
		result = named &&
				(ckt_node_is_memory(from->nodes[i]) ||
					from->nodes[i]->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
			? CKT_AS_CUDA_NOT_SUPPORTED
			: CUDA_SUCCESS;
		if (!result)
			result = ckt_node_new(graph, from->nodes[i]->type, NULL, NULL, 0, &node);
		if (result)
			break;
		node->context = from->nodes[i]->context;
		node->origin = from->nodes[i]->object.id ? from->nodes[i]->object.id
							 : from->nodes[i]->origin;
		node->disabled = from->nodes[i]->disabled;
		result = ckt_node_copy_params(node, from->nodes[i], named);
	}
	for (size_t i = 0; i < from->count && !result; i++)
		for (size_t k = 0; k < from->nodes[i]->in.count && !result; k++) {
			const struct ckt_edge *edge = &from->nodes[i]->in.list[k];
			result = add_edge(
				graph->nodes[edge->node->index], graph->nodes[i], &edge->data);
		}
	if (!result)
		result = ckt_user_copy(graph, from);
	if (!result)
		ckt_graph_call_share(graph, from);
	if (result)
		ckt_graph_free(graph);
	else
		*ret_graph = graph;
	return result;
}

/* ---- Traversal */

void ckt_graph_unmark(struct ckt_graph *graph)
{
	for (size_t i = 0; i < graph->count; i++)
		graph->nodes[i]->mark = false;
}

void ckt_graph_mark(struct ckt_node *start, bool forward)
{
	/*
	 * Each node is entered once, so the array needs one element for each node.  Recursion could
	 * overflow the stack for a long chain.
	 */
	struct ckt_node **todo = malloc((start->graph->count + 1) * sizeof *todo);
	size_t count = 0;
	if (!todo || start->mark) {
		free(todo);
		return;
	}
	start->mark = true;
	todo[count++] = start;
	while (count) {
		struct ckt_node *node = todo[--count];
		const struct ckt_edges *edges = forward ? &node->out : &node->in;
		for (size_t i = 0; i < edges->count; i++)
			if (!edges->list[i].node->mark) {
				edges->list[i].node->mark = true;
				todo[count++] = edges->list[i].node;
			}
	}
	free(todo);
}

struct ckt_node *ckt_graph_find_copy(struct ckt_graph *graph, uint64_t origin)
{
	for (size_t i = 0; i < graph->count; i++) {
		struct ckt_node *node = graph->nodes[i];
		if (node->origin == origin)
			return node;
		size_t count;
		struct ckt_graph *const *graphs = ckt_node_graphs(node, &count);
		for (size_t k = 0; k < count; k++) {
			struct ckt_node *inner = ckt_graph_find_copy(graphs[k], origin);
			if (inner)
				return inner;
		}
	}
	return NULL;
}

/* ---- The API of graphs */

CKT_EXPORT CUresult cuGraphCreate(CUgraph *ret_graph, unsigned int flags)
{
	struct ckt_graph *graph;
	CUresult result = ckt_cudacommon_initialized();
	if (result)
		return result;
	if (!ret_graph || flags)
		return CUDA_ERROR_INVALID_VALUE;
	result = ckt_graph_new(true, &graph);
	if (!result)
		*ret_graph = (CUgraph)(uintptr_t)graph->object.id;
	return result;
}

CKT_EXPORT CUresult cuGraphDestroy(CUgraph handle)
{
	ckt_graph_enter();
	struct ckt_graph *graph = ckt_graph_find(handle);
	/* A child graph or a body is destroyed with its node. */
	if (!graph || graph->owner)
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	if (graph->capturing)
		return ckt_graph_leave(CUDA_ERROR_ILLEGAL_STATE);
	ckt_graph_free(graph);
	return ckt_graph_leave(CUDA_SUCCESS);
}

CKT_EXPORT CUresult cuGraphClone(CUgraph *ret_clone, CUgraph original)
{
	ckt_graph_enter();
	struct ckt_graph *graph = ckt_graph_find(original), *clone;
	CUresult result = graph && ret_clone ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	if (!result && (ckt_graph_is_body(graph) || ckt_graph_has_conditions(graph)))
		result = CKT_AS_CUDA_NOT_SUPPORTED;
	if (!result)
		result = ckt_graph_copy(graph, true, &clone);
	if (!result)
		*ret_clone = (CUgraph)(uintptr_t)clone->object.id;
	return ckt_graph_leave(result);
}

CKT_EXPORT CUresult cuGraphNodeFindInClone(
	CUgraphNode *ret_node, CUgraphNode original, CUgraph clone)
{
	ckt_graph_enter();
	struct ckt_graph *graph = ckt_graph_find(clone);
	const struct ckt_node *found = NULL;
	for (size_t i = 0; graph && ckt_node_find(original) && i < graph->count && !found; i++)
		if (graph->nodes[i]->origin == ckt_handle_id(original))
			found = graph->nodes[i];
	if (!ret_node || !found)
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	*ret_node = ckt_node_handle(found);
	return ckt_graph_leave(CUDA_SUCCESS);
}

CKT_EXPORT CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType *ret_type)
{
	ckt_graph_enter();
	const struct ckt_node *node = ckt_node_find(handle);
	if (!node || !ret_type)
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	*ret_type = node->type;
	return ckt_graph_leave(CUDA_SUCCESS);
}

/*
 * CUDA's convention for lists: without an array, return the number; with an array, fill it and set
 * unused elements to NULL.
 */
static CUresult list_nodes(CUgraph handle, CUgraphNode *nodes, size_t *count, bool roots_only)
{
	ckt_graph_enter();
	const struct ckt_graph *graph = ckt_graph_find(handle);
	if (!graph || !count)
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	size_t found = 0;
	for (size_t i = 0; i < graph->count; i++) {
		if (roots_only && graph->nodes[i]->in.count)
			continue;
		if (nodes && found < *count)
			nodes[found] = ckt_node_handle(graph->nodes[i]);
		found++;
	}
	for (size_t i = found; nodes && i < *count; i++)
		nodes[i] = NULL;
	if (!nodes || found < *count)
		*count = found;
	return ckt_graph_leave(CUDA_SUCCESS);
}

CKT_EXPORT CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	return list_nodes(graph, nodes, count, false);
}

CKT_EXPORT CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	return list_nodes(graph, nodes, count, true);
}

static bool is_special(const CUgraphEdgeData *data)
{
	return data->from_port || data->to_port || data->type;
}

CKT_EXPORT CUresult cuGraphGetEdges_v2(
	CUgraph handle, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *count)
{
	ckt_graph_enter();
	const struct ckt_graph *graph = ckt_graph_find(handle);
	if (!graph || !count || !from != !to || (data && !from))
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	size_t found = 0;
	bool lossy = false;
	for (size_t i = 0; i < graph->count; i++)
		for (size_t k = 0; k < graph->nodes[i]->out.count; k++, found++) {
			const struct ckt_edge *edge = &graph->nodes[i]->out.list[k];
			if (!from || found >= *count)
				continue;
			from[found] = ckt_node_handle(graph->nodes[i]);
			to[found] = ckt_node_handle(edge->node);
			if (data)
				data[found] = edge->data;
			else
				lossy |= is_special(&edge->data);
		}
	for (size_t i = found; from && i < *count; i++)
		from[i] = to[i] = NULL;
	if (!from || found < *count)
		*count = found;
	return ckt_graph_leave(lossy ? CUDA_ERROR_LOSSY_QUERY : CUDA_SUCCESS);
}

CKT_EXPORT CUresult cuGraphGetEdges(
	CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
	return cuGraphGetEdges_v2(graph, from, to, NULL, count);
}

static CUresult list_edges(
	CUgraphNode handle, CUgraphNode *nodes, CUgraphEdgeData *data, size_t *count, bool forward)
{
	ckt_graph_enter();
	const struct ckt_node *node = ckt_node_find(handle);
	if (!node || !count || (data && !nodes))
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	const struct ckt_edges *edges = forward ? &node->out : &node->in;
	bool lossy = false;
	for (size_t i = 0; nodes && i < *count; i++) {
		nodes[i] = i < edges->count ? ckt_node_handle(edges->list[i].node) : NULL;
		if (data)
			data[i] = i < edges->count ? edges->list[i].data : (CUgraphEdgeData){0};
		else if (i < edges->count)
			lossy |= is_special(&edges->list[i].data);
	}
	if (!nodes || edges->count < *count)
		*count = edges->count;
	return ckt_graph_leave(lossy ? CUDA_ERROR_LOSSY_QUERY : CUDA_SUCCESS);
}

CKT_EXPORT CUresult cuGraphNodeGetDependencies_v2(
	CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *data, size_t *count)
{
	return list_edges(node, nodes, data, count, false);
}

CKT_EXPORT CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
	return list_edges(node, nodes, NULL, count, false);
}

CKT_EXPORT CUresult cuGraphNodeGetDependentNodes_v2(
	CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *data, size_t *count)
{
	return list_edges(node, nodes, data, count, true);
}

CKT_EXPORT CUresult cuGraphNodeGetDependentNodes(
	CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
	return list_edges(node, nodes, NULL, count, true);
}

static CUresult add_dependencies(const struct ckt_graph *graph, const CUgraphNode *from,
	const CUgraphNode *to, const CUgraphEdgeData *data, size_t count)
{
	if (!graph || (count && (!from || !to)))
		return CUDA_ERROR_INVALID_VALUE;
	/* Remove all or none. */
	for (size_t i = 0; i < count; i++) {
		const struct ckt_node *a = ckt_node_find(from[i]), *b = ckt_node_find(to[i]);
		if (!a || !b || a == b || a->graph != graph || b->graph != graph || find_edge(a, b))
			return CUDA_ERROR_INVALID_VALUE;
		for (size_t k = 0; k < i; k++)
			if (from[k] == from[i] && to[k] == to[i])
				return CUDA_ERROR_INVALID_VALUE;
	}
	CUresult result = CUDA_SUCCESS;
	for (size_t i = 0; i < count && !result; i++)
		result = add_edge(
			ckt_node_find(from[i]), ckt_node_find(to[i]), data ? &data[i] : NULL);
	return result;
}

CKT_EXPORT CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from,
	const CUgraphNode *to, const CUgraphEdgeData *data, size_t count)
{
	ckt_graph_enter();
	return ckt_graph_leave(add_dependencies(ckt_graph_find(graph), from, to, data, count));
}

CKT_EXPORT CUresult cuGraphAddDependencies(
	CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
	return cuGraphAddDependencies_v2(graph, from, to, NULL, count);
}

CKT_EXPORT CUresult cuGraphRemoveDependencies_v2(CUgraph handle, const CUgraphNode *from,
	const CUgraphNode *to, const CUgraphEdgeData *data, size_t count)
{
	ckt_graph_enter();
	const struct ckt_graph *graph = ckt_graph_find(handle);
	CUresult result =
		graph && (!count || (from && to)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	if (!result && count && ckt_graph_has_memory(graph))
		result = CKT_AS_CUDA_NOT_SUPPORTED;
	for (size_t i = 0; i < count && !result; i++) {
		const struct ckt_node *a = ckt_node_find(from[i]), *b = ckt_node_find(to[i]);
		const struct ckt_edge *edge = a && b && a->graph == graph ? find_edge(a, b) : NULL;
		if (!edge ||
			(data ? memcmp(&edge->data, &data[i], 3) != 0 : is_special(&edge->data)))
			result = CUDA_ERROR_INVALID_VALUE;
	}
	for (size_t i = 0; i < count && !result; i++) {
		drop_edge(&ckt_node_find(from[i])->out, ckt_node_find(to[i]));
		drop_edge(&ckt_node_find(to[i])->in, ckt_node_find(from[i]));
	}
	return ckt_graph_leave(result);
}

CKT_EXPORT CUresult cuGraphRemoveDependencies(
	CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
	return cuGraphRemoveDependencies_v2(graph, from, to, NULL, count);
}

CKT_EXPORT CUresult cuGraphDestroyNode(CUgraphNode handle)
{
	ckt_graph_enter();
	struct ckt_node *node = ckt_node_find(handle);
	if (!node || node->graph->capturing)
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	if (ckt_graph_has_memory(node->graph))
		return ckt_graph_leave(CKT_AS_CUDA_NOT_SUPPORTED);
	ckt_node_free(node);
	return ckt_graph_leave(CUDA_SUCCESS);
}
