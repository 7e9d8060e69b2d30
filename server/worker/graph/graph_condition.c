/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditions of graphs.  A client's handle is a random number.  The driver makes its own handle for
 * each new graph, and the worker replaces the client's handles in the parameters of kernels.  So a
 * graph that a restore makes again gets new driver handles, and no saved value needs translation.
 */
#include <stdlib.h>
#include <string.h>

#include "rpc/graph.h"
#include "server/worker/driver.h"
#include "server/worker/graph/graph_record.h"
#include "server/worker/worker.h"

static const struct ckt_worker_graph_condition *find(
	const struct ckt_worker_graph_conditions *conditions, uint64_t handle)
{
	for (size_t i = 0; i < conditions->count; i++)
		if (conditions->list[i].handle == handle)
			return &conditions->list[i];
	return NULL;
}

static CUresult add(struct ckt_worker_graph_conditions *conditions, uint64_t handle,
	CUgraphConditionalHandle real)
{
	struct ckt_worker_graph_condition *list =
		realloc(conditions->list, (conditions->count + 1) * sizeof *list);
	if (!list)
		return CUDA_ERROR_OUT_OF_MEMORY;
	conditions->list = list;
	list[conditions->count++] =
		(struct ckt_worker_graph_condition){.handle = handle, .real = real};
	return CUDA_SUCCESS;
}

static CUresult make(const struct ckt_worker_graph_build *build, CUgraph real,
	const struct ckt_worker_graph_node *node, uint32_t depth)
{
	struct ckt_worker_graph_conditional c;
	CUgraphConditionalHandle handle;
	CUcontext context;
	if (!ckt_worker_graph_conditional_get(node, &c) || !c.handle)
		return CUDA_ERROR_INVALID_VALUE;
	if (c.up != depth || find(build->conditions, c.handle))
		return CUDA_SUCCESS;
	if (!ckt_driver.cuGraphConditionalHandleCreate)
		return CKT_WORKER_UNSUPPORTED("a conditional node with the server's driver");
	CUresult result = ckt_object_context(build->worker, c.context, &context);
	if (!result)
		result = ckt_driver.cuGraphConditionalHandleCreate(
			&handle, real, context, c.value, c.flags);
	return result ? result : add(build->conditions, c.handle, handle);
}

static CUresult make_all(const struct ckt_worker_graph_build *build, CUgraph real,
	const struct ckt_worker_graph *graph, uint32_t depth)
{
	CUresult result = CUDA_SUCCESS;
	for (uint32_t i = 0; i < graph->node_count && !result; i++) {
		const struct ckt_worker_graph_node *node = &graph->nodes[i];
		if (node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
			result = make(build, real, node, depth);
		for (uint32_t k = 0; k < node->graph_count && !result; k++)
			result = make_all(build, real, node->graphs[k], depth + 1);
	}
	return result;
}

CUresult ckt_worker_graph_conditions_make(const struct ckt_worker_graph_build *build, CUgraph real,
	const struct ckt_worker_graph *graph)
{
	return make_all(build, real, graph, 0);
}

void ckt_worker_graph_conditions_replace(
	const struct ckt_worker_graph_conditions *conditions, uint8_t *params, size_t size)
{
	for (size_t at = 0; conditions->count && at + sizeof(uint64_t) <= size;
		at += sizeof(uint64_t)) {
		uint64_t word;
		memcpy(&word, params + at, sizeof word);
		const struct ckt_worker_graph_condition *condition = find(conditions, word);
		if (condition)
			memcpy(params + at, &condition->real, sizeof condition->real);
	}
}

CUresult ckt_worker_graph_conditional_add(const struct ckt_worker_graph_build *build, CUgraph graph,
	struct ckt_worker_graph_node *node)
{
	struct ckt_worker_graph_conditional c;
	CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
	if (!ckt_worker_graph_conditional_get(node, &c))
		return CUDA_ERROR_INVALID_VALUE;
	const struct ckt_worker_graph_condition *condition = find(build->conditions, c.handle);
	if (!condition)
		return CUDA_ERROR_INVALID_VALUE;
	params.conditional.handle = condition->real;
	params.conditional.type = (CUgraphConditionalNodeType)c.type;
	params.conditional.size = c.count;
	CUresult result = ckt_object_context(build->worker, c.context, &params.conditional.ctx);
	if (!result)
		result = ckt_driver.cuGraphAddNode_v2
			? ckt_driver.cuGraphAddNode_v2(&node->real, graph, NULL, NULL, 0, &params)
			: ckt_driver.cuGraphAddNode
			? ckt_driver.cuGraphAddNode(&node->real, graph, NULL, 0, &params)
			: CKT_WORKER_UNSUPPORTED("a conditional node with the server's driver");
	for (uint32_t i = 0; i < c.count && !result; i++)
		node->graphs[i]->real = params.conditional.phGraph_out[i];
	return result;
}

CUresult ckt_worker_graph_conditions_take(
	struct ckt_worker_graph_conditions *conditions, struct ckt_worker_graph_conditions *from)
{
	for (size_t i = 0; i < from->count; i++) {
		const struct ckt_worker_graph_condition *known =
			find(conditions, from->list[i].handle);
		CUresult result = known ? CUDA_SUCCESS : add(conditions, from->list[i].handle, 0);
		if (result)
			return result;
		conditions
			->list[known ? known - conditions->list : (ptrdiff_t)conditions->count - 1]
			.real = from->list[i].real;
	}
	ckt_worker_graph_conditions_fini(from);
	return CUDA_SUCCESS;
}

void ckt_worker_graph_conditions_fini(struct ckt_worker_graph_conditions *conditions)
{
	free(conditions->list);
	*conditions = (struct ckt_worker_graph_conditions){0};
}
