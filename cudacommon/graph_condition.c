/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditional nodes.  The handle of a condition is a random number among the parameters of kernels.
 * When the worker makes the driver's graph, or makes it again after a restore, it replaces the
 * handle with the driver's own.  With the client, a handle is therefore valid only in parameters of
 * its graph's kernels.  A handle that a program stores in device memory is not replaced.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cudacommon/graph.h"

/* ---- Handles */

/* Random, so that no other parameter has the same value; never 0. */
static bool draw(CUgraphConditionalHandle *ret_handle)
{
	CUgraphConditionalHandle handle = 0;
	while (!handle)
		if (getrandom(&handle, sizeof handle, 0) != sizeof handle && errno != EINTR)
			return false;
	*ret_handle = handle;
	return true;
}

/* Finds the handle in the graph or in a graph around it; ret_up: the number of levels above. */
static struct ckt_condition *find(
	const struct ckt_graph *graph, CUgraphConditionalHandle handle, unsigned *ret_up)
{
	for (*ret_up = 0; graph; graph = graph->owner ? graph->owner->graph : NULL, ++*ret_up)
		for (size_t i = 0; i < graph->condition_count; i++)
			if (graph->conditions[i].handle == handle)
				return &graph->conditions[i];
	return NULL;
}

static CUresult add(struct ckt_graph *graph, uint64_t context, unsigned value, unsigned flags,
	CUgraphConditionalHandle *ret_handle)
{
	struct ckt_condition *list =
		realloc(graph->conditions, (graph->condition_count + 1) * sizeof *list);
	if (!list)
		return CUDA_ERROR_OUT_OF_MEMORY;
	graph->conditions = list;
	struct ckt_condition *condition = &list[graph->condition_count];
	*condition = (struct ckt_condition){.context = context, .value = value, .flags = flags};
	if (!draw(&condition->handle))
		return CUDA_ERROR_OPERATING_SYSTEM;
	graph->condition_count++;
	*ret_handle = condition->handle;
	return CUDA_SUCCESS;
}

/* The context must be named, as with an H200's driver; NULL does not mean the current context. */
static CUresult context_of(CUcontext handle, uint64_t *ret_context)
{
	*ret_context = ckt_handle_id(handle);
	return handle ? ckt_cudacommon_context_check(handle) : CUDA_ERROR_INVALID_CONTEXT;
}

/* A handle created for a body is valid in the whole graph that contains the body. */
static struct ckt_graph *outermost(struct ckt_graph *graph)
{
	while (ckt_graph_is_body(graph))
		graph = graph->owner->graph;
	return graph;
}

CKT_EXPORT CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *ret_handle,
	CUgraph graph_handle, CUcontext context_handle, unsigned int value, unsigned int flags)
{
	uint64_t context = 0;
	ckt_graph_enter();
	struct ckt_graph *graph = ckt_graph_find(graph_handle);
	CUresult result = graph && ret_handle && !(flags & ~CU_GRAPH_COND_ASSIGN_DEFAULT)
		? CUDA_SUCCESS
		: CUDA_ERROR_INVALID_VALUE;
	if (!result)
		result = context_of(context_handle, &context);
	if (!result)
		result = add(outermost(graph), context, value, flags, ret_handle);
	return ckt_graph_leave(result);
}

/* ---- Nodes */

static bool right_size(CUgraphConditionalNodeType type, unsigned size)
{
	switch (type) {
	case CU_GRAPH_COND_TYPE_IF:
		return size == 1 || size == 2;
	case CU_GRAPH_COND_TYPE_WHILE:
		return size == 1;
	case CU_GRAPH_COND_TYPE_SWITCH:
		return size >= 1 && size <= CKT_CONDITIONAL_BODIES_MAX;
	default:
		return false;
	}
}

/* Allocates the array of bodies, still empty. */
static CUresult make_room(struct ckt_conditional_node *c, unsigned count, bool told)
{
	c->bodies = calloc(count, sizeof(struct ckt_graph *));
	c->told = told ? calloc(count, sizeof *c->told) : NULL;
	c->count = count;
	if (c->bodies && (c->told || !told))
		return CUDA_SUCCESS;
	free(c->bodies);
	free(c->told);
	*c = (struct ckt_conditional_node){0};
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult ckt_node_set_conditional(struct ckt_node *node, const CUDA_CONDITIONAL_NODE_PARAMS *p)
{
	unsigned up;
	uint64_t context;
	struct ckt_condition *condition = find(node->graph, p->handle, &up);
	if (!condition || condition->used || !right_size(p->type, p->size))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = context_of(p->ctx, &context);
	if (result)
		return result;
	if (context != condition->context)
		return CUDA_ERROR_INVALID_VALUE;
	struct ckt_conditional_node c = {.handle = p->handle,
		.context = context,
		.value = condition->value,
		.flags = condition->flags,
		.up = up,
		.type = p->type};
	result = make_room(&c, p->size, true);
	if (result)
		return result;
	node->conditional = c;
	for (unsigned i = 0; i < c.count && !result; i++) {
		result = ckt_graph_new(true, &c.bodies[i]);
		if (result)
			break;
		c.bodies[i]->owner = node;
		c.told[i] = (CUgraph)(uintptr_t)c.bodies[i]->object.id;
	}
	/* On failure, the node is freed with all that it owns. */
	if (!result) {
		condition->used = true;
		node->context = context;
	}
	return result;
}

CUresult ckt_node_copy_conditional(struct ckt_node *to, const struct ckt_node *from)
{
	struct ckt_conditional_node c = from->conditional;
	CUresult result = make_room(&c, from->conditional.count, false);
	if (result)
		return result;
	ckt_node_drop_conditional(to);
	to->conditional = c;
	for (unsigned i = 0; i < c.count && !result; i++) {
		result = ckt_graph_copy(from->conditional.bodies[i], false, &c.bodies[i]);
		if (!result)
			c.bodies[i]->owner = to;
	}
	return result;
}

void ckt_node_adopt_condition(struct ckt_node *to, const struct ckt_node *from)
{
	struct ckt_conditional_node *c = &to->conditional;
	c->handle = from->conditional.handle;
	c->context = from->conditional.context;
	c->value = from->conditional.value;
	c->flags = from->conditional.flags;
	c->up = from->conditional.up;
	to->context = from->context;
}

void ckt_node_drop_conditional(struct ckt_node *node)
{
	struct ckt_conditional_node c = node->conditional;
	unsigned up;
	/* The handle may have another node meanwhile. */
	struct ckt_condition *condition = node->object.id ? find(node->graph, c.handle, &up) : NULL;
	if (condition)
		condition->used = false;
	node->conditional = (struct ckt_conditional_node){0};
	for (unsigned i = 0; i < c.count; i++)
		ckt_graph_free(c.bodies[i]);
	free(c.bodies);
	free(c.told);
}

/* ---- Graphs */

static bool any(const struct ckt_graph *graph, bool (*is)(const struct ckt_graph *graph))
{
	bool found = is(graph);
	for (size_t i = 0; i < graph->count && !found; i++) {
		size_t count;
		struct ckt_graph *const *graphs = ckt_node_graphs(graph->nodes[i], &count);
		for (size_t k = 0; k < count && !found; k++)
			found = any(graphs[k], is);
	}
	return found;
}

static bool has_conditional(const struct ckt_graph *graph)
{
	for (size_t i = 0; i < graph->count; i++)
		if (graph->nodes[i]->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
			return true;
	return graph->condition_count > 0;
}

bool ckt_graph_has_conditions(const struct ckt_graph *graph)
{
	return any(graph, has_conditional);
}

static bool has_idle(const struct ckt_graph *graph)
{
	for (size_t i = 0; i < graph->condition_count; i++)
		if (!graph->conditions[i].used)
			return true;
	return false;
}

bool ckt_graph_has_idle_condition(const struct ckt_graph *graph)
{
	return any(graph, has_idle);
}

bool ckt_graph_is_body(const struct ckt_graph *graph)
{
	return graph->owner && graph->owner->type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
}

/* ---- Nodes that a body may contain, checked when the graph is instantiated */

static bool is_pageable(CUmemorytype type, const void *host)
{
	return type == CU_MEMORYTYPE_HOST && !ckt_cudacommon_is_known(ckt_handle_id(host));
}

static CUgraphInstantiateResult check_node(const struct ckt_node *node)
{
	switch (node->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
	case CU_GRAPH_NODE_TYPE_MEMSET:
	case CU_GRAPH_NODE_TYPE_GRAPH:
	case CU_GRAPH_NODE_TYPE_EMPTY:
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return CUDA_GRAPH_INSTANTIATE_SUCCESS;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		/* An H200's driver returns this for pageable memory. */
		return is_pageable(node->copy.srcMemoryType, node->copy.srcHost) ||
				is_pageable(node->copy.dstMemoryType, node->copy.dstHost)
			? CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED
			: CUDA_GRAPH_INSTANTIATE_SUCCESS;
	default:
		return CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
	}
}

static CUgraphInstantiateResult check(
	const struct ckt_graph *graph, bool inside, const struct ckt_node **ret_node)
{
	CUgraphInstantiateResult result = CUDA_GRAPH_INSTANTIATE_SUCCESS;
	for (size_t i = 0; i < graph->count && !result; i++) {
		const struct ckt_node *node = graph->nodes[i];
		size_t count;
		struct ckt_graph *const *graphs = ckt_node_graphs(node, &count);
		result = inside ? check_node(node) : CUDA_GRAPH_INSTANTIATE_SUCCESS;
		if (result)
			*ret_node = node;
		for (size_t k = 0; k < count && !result; k++)
			result = check(graphs[k],
				inside || node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL, ret_node);
	}
	return result;
}

CUgraphInstantiateResult ckt_graph_check_bodies(
	const struct ckt_graph *graph, const struct ckt_node **ret_node)
{
	return check(graph, false, ret_node);
}
