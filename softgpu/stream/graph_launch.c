/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executable graphs.  A launch submits the nodes to the stream one after another, in an order that
 * their edges allow.  The launch holds the graphs' lock, which is taken before the stream's lock.
 * ckt_soft_in_graph is true meanwhile.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cudacommon/graph.h"
#include "cudacommon/memop.h"
#include "softgpu/context/context.h"
#include "softgpu/context/device.h"
#include "softgpu/context/object.h"
#include "softgpu/memory/memory.h"
#include "softgpu/memory/pool.h"
#include "softgpu/memory/range.h"
#include "softgpu/stream/condition.h"
#include "softgpu/stream/event.h"
#include "softgpu/stream/stream.h"

/*
 * Registered host memory of a copy or memset node.  As on an H200, the node keeps this registration
 * and ignores a later registration of the same memory.
 */
struct pinned {
	const struct ckt_node *node;
	uint64_t address, id;
};

struct soft_exec {
	struct ckt_exec exec;
	struct pinned *pinned; /* owned */
	size_t pinned_count;
	struct ckt_node **order;                /* owned */
	struct ckt_soft_conditions *conditions; /* counted */
	/* recorded after the latest launch: two launches of one graph do not run at once */
	CUevent last;
};

static struct soft_exec *own(struct ckt_exec *exec)
{
	return (struct soft_exec *)exec;
}

/*
 * The nodes in an order in which each follows its dependencies; NULL if there is a cycle or no
 * memory.
 */
static struct ckt_node **order_of(const struct ckt_graph *graph)
{
	struct ckt_node **order = calloc(graph->count + 1, sizeof(struct ckt_node *));
	bool *placed = calloc(graph->count + 1, sizeof(*placed));
	size_t n = 0, before;
	for (size_t i = 0; i < graph->count; i++)
		graph->nodes[i]->index = (uint32_t)i;
	/* Nodes are mostly in a valid order already, so one round is usually enough. */
	do {
		before = n;
		for (size_t i = 0; order && placed && i < graph->count; i++) {
			bool ready = !placed[i];
			for (size_t k = 0; k < graph->nodes[i]->in.count && ready; k++)
				ready = placed[graph->nodes[i]->in.list[k].node->index];
			if (ready) {
				placed[i] = true;
				order[n++] = graph->nodes[i];
			}
		}
	} while (n > before && n < graph->count);
	free(placed);
	if (n == graph->count)
		return order;
	free(order);
	return NULL;
}

static void forget(struct soft_exec *exec, const struct ckt_node *node)
{
	size_t kept = 0;
	for (size_t i = 0; i < exec->pinned_count; i++)
		if (exec->pinned[i].node != node)
			exec->pinned[kept++] = exec->pinned[i];
	exec->pinned_count = kept;
}

static bool note(struct soft_exec *exec, const struct ckt_node *node, uint64_t address)
{
	struct ckt_soft_range range;
	if (!ckt_soft_range_find(address, &range) || range.kind != CKT_SOFT_RANGE_REGISTERED)
		return true;
	struct pinned *list = realloc(exec->pinned, (exec->pinned_count + 1) * sizeof(*list));
	if (!list)
		return false;
	exec->pinned = list;
	list[exec->pinned_count++] = (struct pinned){node, address, range.id};
	return true;
}

/*
 * The node takes over the other node's parameters, including those of inner nodes.  False if there
 * is no memory.
 */
static bool keep_pinned(
	struct soft_exec *exec, const struct ckt_node *node, const struct ckt_node *params)
{
	size_t count, others;
	struct ckt_graph *const *graphs = ckt_node_graphs(node, &count),
				*const *from = ckt_node_graphs(params, &others);
	bool good = true;
	forget(exec, node);
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < graphs[i]->count; k++)
			good &= keep_pinned(exec, graphs[i]->nodes[k], from[i]->nodes[k]);
	if (node->type == CU_GRAPH_NODE_TYPE_MEMSET)
		good &= note(exec, node, params->fill.dst);
	if (node->type != CU_GRAPH_NODE_TYPE_MEMCPY)
		return good;
	const CUDA_MEMCPY3D *copy = &params->copy;
	if (copy->srcMemoryType != CU_MEMORYTYPE_ARRAY)
		good &= note(exec, node,
			copy->srcMemoryType == CU_MEMORYTYPE_HOST
				? (uint64_t)(uintptr_t)copy->srcHost
				: copy->srcDevice);
	if (copy->dstMemoryType != CU_MEMORYTYPE_ARRAY)
		good &= note(exec, node,
			copy->dstMemoryType == CU_MEMORYTYPE_HOST
				? (uint64_t)(uintptr_t)copy->dstHost
				: copy->dstDevice);
	return good;
}

static bool has_pinned(const struct soft_exec *exec)
{
	struct ckt_soft_range range;
	for (size_t i = 0; i < exec->pinned_count; i++)
		if (!exec->pinned[i].node->disabled &&
			(!ckt_soft_range_find(exec->pinned[i].address, &range) ||
				range.id != exec->pinned[i].id))
			return false;
	return true;
}

struct ckt_exec *ckt_exec_new(void)
{
	struct soft_exec *exec = calloc(1, sizeof(*exec));
	return exec ? &exec->exec : NULL;
}

CUresult ckt_exec_make(
	struct ckt_exec *exec, const struct ckt_graph *graph, uint64_t flags, uint64_t stream)
{
	(void)graph, (void)flags, (void)stream;
	bool kept = true;
	for (size_t i = 0; i < exec->graph->count; i++)
		kept &= keep_pinned(own(exec), exec->graph->nodes[i], exec->graph->nodes[i]);
	own(exec)->order = order_of(exec->graph);
	own(exec)->conditions =
		kept && own(exec)->order ? ckt_soft_conditions_make(exec->graph) : NULL;
	if (own(exec)->conditions)
		return CUDA_SUCCESS;
	free(own(exec)->order);
	own(exec)->order = NULL;
	free(own(exec)->pinned);
	own(exec)->pinned = NULL;
	own(exec)->pinned_count = 0;
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult ckt_exec_unmake(struct ckt_exec *exec)
{
	free(own(exec)->order);
	own(exec)->order = NULL;
	free(own(exec)->pinned);
	own(exec)->pinned = NULL;
	own(exec)->pinned_count = 0;
	ckt_soft_conditions_put(own(exec)->conditions);
	own(exec)->conditions = NULL;
	ckt_soft_in_graph = true;
	if (own(exec)->last)
		cuEventDestroy_v2(own(exec)->last);
	ckt_soft_in_graph = false;
	own(exec)->last = NULL;
	return CUDA_SUCCESS;
}

void ckt_exec_look(struct ckt_exec *exec)
{
	(void)exec;
}

void ckt_exec_settle_users(const struct ckt_exec *exec)
{
	ckt_graph_enter();
	CUevent last = exec && exec->graph && exec->graph->user_count
		? ((const struct soft_exec *)exec)->last
		: NULL;
	ckt_graph_leave(CUDA_SUCCESS);
	ckt_soft_in_graph = true;
	if (last)
		cuEventSynchronize(last);
	ckt_soft_in_graph = false;
}

void ckt_exec_settle(const struct ckt_exec *exec)
{
	(void)exec;
}

/* ---- Updates: some parameters must not change, as with a real driver */

static bool is_cooperative(const struct ckt_kernel_node *kernel)
{
	for (unsigned i = 0; i < kernel->attribute_count; i++)
		if (kernel->attributes[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
			return kernel->attributes[i].value.cooperative;
	return false;
}

static bool same_shape(const CUDA_MEMSET_NODE_PARAMS *a, const CUDA_MEMSET_NODE_PARAMS *b)
{
	/* In one dimension, all parameters may change. */
	return (a->height == 1 && b->height == 1) ||
		(a->height == b->height && a->width == b->width && a->pitch == b->pitch &&
			a->elementSize == b->elementSize);
}

static bool same_operations(const struct ckt_memop_node *a, const struct ckt_memop_node *b)
{
	for (unsigned i = 0; i < a->count && a->count == b->count; i++)
		if (a->ops[i].operation != b->ops[i].operation)
			return false;
	return a->count == b->count;
}

/* The memory's real location: pinned memory may be given as device memory. */
static CUmemorytype place_of(CUmemorytype type, const void *host, CUdeviceptr device)
{
	if (type != CU_MEMORYTYPE_HOST && type != CU_MEMORYTYPE_DEVICE)
		return type;
	return ckt_cudacommon_on_device(
		       type == CU_MEMORYTYPE_HOST ? (uint64_t)(uintptr_t)host : device)
		? CU_MEMORYTYPE_DEVICE
		: CU_MEMORYTYPE_HOST;
}

static bool same_places(const CUDA_MEMCPY3D *a, const CUDA_MEMCPY3D *b)
{
	return place_of(a->srcMemoryType, a->srcHost, a->srcDevice) ==
		place_of(b->srcMemoryType, b->srcHost, b->srcDevice) &&
		place_of(a->dstMemoryType, a->dstHost, a->dstDevice) ==
		place_of(b->dstMemoryType, b->dstHost, b->dstDevice);
}

static CUgraphExecUpdateResult change(const struct ckt_node *from, const struct ckt_node *to)
{
	bool good = true;
	switch (from->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		if (from->context != to->context)
			return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
		if (is_cooperative(&from->kernel) != is_cooperative(&to->kernel))
			return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		good = same_places(&from->copy, &to->copy);
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		good = same_shape(&from->fill, &to->fill);
		break;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		good = same_operations(&from->memop, &to->memop);
		break;
	default:
		break;
	}
	return good ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
}

/*
 * Finds the first node with a forbidden change, including child graphs and bodies.  Precondition:
 * the nodes are paired.
 */
static CUgraphExecUpdateResult change_all(const struct ckt_graph *graph,
	const struct ckt_graph *update, const struct ckt_node **ret_node)
{
	CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
	for (size_t i = 0; i < graph->count && result == CU_GRAPH_EXEC_UPDATE_SUCCESS; i++) {
		const struct ckt_node *from = graph->nodes[i], *to = update->nodes[i];
		size_t n, others;
		struct ckt_graph *const *graphs = ckt_node_graphs(from, &n),
					*const *updates = ckt_node_graphs(to, &others);
		for (size_t k = 0; k < n && result == CU_GRAPH_EXEC_UPDATE_SUCCESS; k++)
			result = change_all(graphs[k], updates[k], ret_node);
		if (n)
			continue;
		result = change(from, to);
		*ret_node = to;
	}
	return result;
}

CUresult ckt_exec_change_node(
	struct ckt_exec *exec, const struct ckt_node *node, const struct ckt_node *to)
{
	const struct ckt_node *first;
	bool child = node->type == CU_GRAPH_NODE_TYPE_GRAPH;
	if ((child ? change_all(node->child, to->child, &first) : change(node, to)) !=
		CU_GRAPH_EXEC_UPDATE_SUCCESS)
		return child ? CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE : CUDA_ERROR_INVALID_VALUE;
	return keep_pinned(own(exec), node, to) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult ckt_exec_enable_node(struct ckt_exec *exec, const struct ckt_node *node, bool enabled)
{
	(void)exec, (void)node, (void)enabled;
	return CUDA_SUCCESS;
}

CUresult ckt_exec_update(
	struct ckt_exec *exec, const struct ckt_graph *graph, CUgraphExecUpdateResultInfo *ret_info)
{
	const struct ckt_node *first = NULL;
	CUgraphExecUpdateResult result = change_all(exec->graph, graph, &first);
	*ret_info = (CUgraphExecUpdateResultInfo){.result = result};
	if (result == CU_GRAPH_EXEC_UPDATE_SUCCESS) {
		struct ckt_soft_conditions *conditions = ckt_soft_conditions_make(graph);
		if (!conditions)
			return CUDA_ERROR_OUT_OF_MEMORY;
		ckt_soft_conditions_put(own(exec)->conditions);
		own(exec)->conditions = conditions;
		bool kept = true;
		for (size_t i = 0; i < graph->count; i++)
			kept &= keep_pinned(own(exec), exec->graph->nodes[i], graph->nodes[i]);
		return kept ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	}
	ret_info->errorNode = ckt_node_handle(first);
	return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

/* ---- Launch */

static CUresult launch_graph(const struct soft_exec *exec, const struct ckt_graph *graph,
	struct ckt_node *const *order, CUstream stream);

static CUresult launch_inner(
	const struct soft_exec *exec, const struct ckt_graph *graph, CUstream stream)
{
	struct ckt_node **order = order_of(graph);
	CUresult result =
		order ? launch_graph(exec, graph, order, stream) : CUDA_ERROR_INVALID_VALUE;
	free(order);
	return result;
}

static CUresult launch_kernel(struct ckt_kernel_node *k, CUstream stream)
{
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, k->params, CU_LAUNCH_PARAM_BUFFER_SIZE,
		&k->param_bytes, CU_LAUNCH_PARAM_END};
	CUlaunchConfig config = {
		.gridDimX = k->grid[0],
		.gridDimY = k->grid[1],
		.gridDimZ = k->grid[2],
		.blockDimX = k->block[0],
		.blockDimY = k->block[1],
		.blockDimZ = k->block[2],
		.sharedMemBytes = k->shared_bytes,
		.hStream = stream,
		.attrs = k->attributes,
		.numAttrs = k->attribute_count,
	};
	return cuLaunchKernelEx(&config, k->handle, NULL, k->param_bytes ? extra : NULL);
}

static CUresult launch_fill(const CUDA_MEMSET_NODE_PARAMS *fill, CUstream stream)
{
	size_t pitch = fill->height > 1 ? fill->pitch : fill->width * fill->elementSize;
	switch (fill->elementSize) {
	case 1:
		return cuMemsetD2D8Async(fill->dst, pitch, (unsigned char)fill->value, fill->width,
			fill->height, stream);
	case 2:
		return cuMemsetD2D16Async(fill->dst, pitch, (unsigned short)fill->value,
			fill->width, fill->height, stream);
	default:
		return cuMemsetD2D32Async(
			fill->dst, pitch, fill->value, fill->width, fill->height, stream);
	}
}

/*
 * Work that runs when the stream reaches it.  The executable graph may be updated or destroyed by
 * then, so the work has a copy of the node and holds the conditions.
 */
struct pending {
	struct ckt_soft_conditions *conditions; /* counted */
	struct ckt_node *node;                  /* owned; NULL: assign the defaults */
};

static void run_assign(struct ckt_soft_context *context, void *payload)
{
	const struct pending *pending = payload;
	(void)context;
	ckt_soft_conditions_assign(pending->conditions);
	ckt_soft_conditions_put(pending->conditions);
}

static const struct ckt_graph *choose(const struct ckt_conditional_node *c)
{
	uint32_t value = ckt_soft_condition_value(c->handle);
	unsigned which = c->type == CU_GRAPH_COND_TYPE_SWITCH ? value : value ? 0 : 1;
	return which < c->count ? c->bodies[which] : NULL;
}

/* False if the body is finished or failed. */
static bool run_body(const struct pending *pending, CUstream stream)
{
	const struct ckt_conditional_node *c = &pending->node->conditional;
	const struct soft_exec exec = {.conditions = pending->conditions};
	const struct ckt_graph *body = choose(c);
	if (!body)
		return false;
	ckt_graph_enter();
	ckt_soft_in_graph = true;
	CUresult result = launch_inner(&exec, body, stream);
	ckt_soft_in_graph = false;
	ckt_graph_leave(CUDA_SUCCESS);
	return cuStreamSynchronize(stream) == CUDA_SUCCESS && result == CUDA_SUCCESS &&
		c->type == CU_GRAPH_COND_TYPE_WHILE;
}

/* Runs on the stream's own thread, which waits while bodies run on another stream. */
static void run_conditional(struct ckt_soft_context *context, void *payload)
{
	const struct pending *pending = payload;
	CUstream stream;
	if (ckt_soft_context_result(context) == CUDA_SUCCESS &&
		cuCtxSetCurrent(ckt_soft_context_handle(context)) == CUDA_SUCCESS &&
		cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS) {
		while (run_body(pending, stream))
			continue;
		cuStreamDestroy_v2(stream);
	}
	ckt_graph_enter();
	ckt_node_drop_params(pending->node);
	ckt_graph_leave(CUDA_SUCCESS);
	free(pending->node);
	ckt_soft_conditions_put(pending->conditions);
}

/* Takes over the node on success. */
static CUresult submit(const struct soft_exec *exec, struct ckt_node *node, CUstream handle)
{
	struct ckt_soft_context *context;
	struct ckt_soft_stream *stream;
	struct pending pending = {.conditions = exec->conditions, .node = node};
	CUresult result = ckt_soft_enter(&context);
	if (result == CUDA_SUCCESS)
		result = ckt_soft_stream_get(context, handle, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	ckt_soft_conditions_ref(exec->conditions);
	result = ckt_soft_stream_submit(stream, node ? run_conditional : run_assign, &pending,
		sizeof(pending), CKT_SOFT_ALWAYS, NULL, 0, NULL);
	if (result != CUDA_SUCCESS)
		ckt_soft_conditions_put(exec->conditions);
	ckt_soft_object_put(&stream->object);
	return result;
}

static CUresult launch_conditional(
	const struct soft_exec *exec, const struct ckt_node *node, CUstream stream)
{
	struct ckt_node *copy = calloc(1, sizeof(*copy));
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	copy->type = node->type;
	CUresult result = ckt_node_copy_conditional(copy, node);
	if (result == CUDA_SUCCESS)
		result = submit(exec, copy, stream);
	if (result != CUDA_SUCCESS) {
		ckt_node_drop_params(copy);
		free(copy);
	}
	return result;
}

/* Checks the address again, because the memory may be freed by now. */
static CUresult launch_memop(const struct ckt_memop_node *memop, CUstream stream)
{
	CUresult result = ckt_memop_check(memop->ops, memop->count, memop->flags);
	return result == CUDA_SUCCESS
		? ckt_memop_submit((uint64_t)(uintptr_t)stream, memop->ops, memop->count)
		: result;
}

static CUresult launch_node(const struct soft_exec *exec, struct ckt_node *node, CUstream stream)
{
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
		return launch_inner(exec, node->child, stream);
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return launch_conditional(exec, node, stream);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return cuStreamWaitEvent(stream, node->event, 0);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return cuEventRecord(node->event, stream);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return launch_memop(&node->memop, stream);
	default:
		return CUDA_SUCCESS;
	}
}

static CUresult launch_graph(const struct soft_exec *exec, const struct ckt_graph *graph,
	struct ckt_node *const *order, CUstream stream)
{
	CUresult result = CUDA_SUCCESS;
	for (size_t i = 0; i < graph->count && result == CUDA_SUCCESS; i++)
		if (!order[i]->disabled)
			result = launch_node(exec, order[i], stream);
	return result;
}

CUresult ckt_exec_launch(struct ckt_exec *exec, uint64_t number)
{
	/* Use the explicit handle, because NULL may mean the per-thread default stream. */
	CUstream stream = number ? (CUstream)(uintptr_t)number : CU_STREAM_LEGACY;
	struct soft_exec *e = own(exec);
	ckt_graph_enter();
	CUresult result = !exec->graph ? CUDA_ERROR_INVALID_VALUE
		: !has_pinned(e)       ? CUDA_ERROR_LAUNCH_FAILED
				       : CUDA_SUCCESS;
	ckt_soft_in_graph = true;
	if (result == CUDA_SUCCESS && e->last)
		result = cuStreamWaitEvent(stream, e->last, 0);
	else if (result == CUDA_SUCCESS)
		result = cuEventCreate(&e->last, CU_EVENT_DISABLE_TIMING);
	if (result == CUDA_SUCCESS && ckt_soft_conditions_any(e->conditions))
		result = submit(e, NULL, stream);
	if (result == CUDA_SUCCESS)
		result = launch_graph(e, exec->graph, e->order, stream);
	if (result == CUDA_SUCCESS)
		result = cuEventRecord(e->last, stream);
	ckt_soft_in_graph = false;
	return ckt_graph_leave(result);
}

/* The soft GPU needs no preparation. */
CUresult ckt_exec_upload(struct ckt_exec *exec, uint64_t stream)
{
	(void)exec, (void)stream;
	return CUDA_SUCCESS;
}

/* ---- Memory of graphs */

CUresult ckt_cudacommon_graph_memory(
	CUdevice device, size_t size, uint64_t *ret_address, uint64_t *ret_granted)
{
	struct ckt_soft_context *context;
	CUresult result = ckt_soft_enter(&context);
	if (result != CUDA_SUCCESS)
		return result;
	struct ckt_soft_range range = {.size = size,
		.kind = CKT_SOFT_RANGE_DEVICE,
		.context = context,
		.device = ckt_soft_device(device)};
	result = ckt_soft_memory_make(&range);
	if (result == CUDA_ERROR_OUT_OF_MEMORY && ckt_soft_pools_release(range.device))
		result = ckt_soft_memory_make(&range);
	*ret_address = range.base;
	*ret_granted = size;
	return result;
}

static void release(struct ckt_soft_context *context, void *payload)
{
	struct ckt_soft_range range;
	if (ckt_soft_range_find(*(uint64_t *)payload, &range) && range.context == context &&
		ckt_soft_range_remove(range.base, 1u << CKT_SOFT_RANGE_DEVICE, &range))
		ckt_soft_memory_release(&range);
}

void ckt_cudacommon_graph_memory_free(uint64_t address, uint64_t number)
{
	struct ckt_soft_context *context;
	if (ckt_soft_context_get((CUcontext)(uintptr_t)number, &context) != CUDA_SUCCESS)
		return;
	ckt_soft_context_behind(context, release, &address, sizeof(address));
	ckt_soft_object_put(&context->object);
}

/*
 * The soft GPU's graphs have no library calls: the work that a library submits to a capturing
 * stream becomes ordinary nodes.
 */
void ckt_cudacommon_call_end(uint64_t id)
{
	(void)id;
}

/* ---- Drawing */

CKT_EXPORT CUresult cuGraphDebugDotPrint(CUgraph hGraph, const char *path, unsigned int flags)
{
	static const char *const names[] = {"KERNEL", "MEMCPY", "MEMSET", "HOST", "GRAPH", "EMPTY",
		"WAIT_EVENT", "EVENT_RECORD", [CU_GRAPH_NODE_TYPE_CONDITIONAL] = "CONDITIONAL"};
	(void)flags;
	FILE *file = path ? fopen(path, "we") : NULL;
	if (!file)
		return path ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_ERROR_INVALID_VALUE;
	ckt_graph_enter();
	const struct ckt_graph *graph = ckt_graph_find(hGraph);
	fprintf(file, "digraph dot {\n");
	for (size_t i = 0; graph && i < graph->count; i++) {
		const struct ckt_node *node = graph->nodes[i];
		graph->nodes[i]->index = (uint32_t)i;
		fprintf(file, "\"graph_node_%zu\"[label=\"%zu\\n%s\"];\n", i, i,
			(unsigned)node->type < sizeof(names) / sizeof(*names) && names[node->type]
				? names[node->type]
				: "OTHER");
	}
	for (size_t i = 0; graph && i < graph->count; i++)
		for (size_t k = 0; k < graph->nodes[i]->in.count; k++)
			fprintf(file, "\"graph_node_%u\" -> \"graph_node_%zu\";\n",
				graph->nodes[i]->in.list[k].node->index, i);
	fprintf(file, "}\n");
	CUresult result = graph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	if (fclose(file) && result == CUDA_SUCCESS)
		result = CUDA_ERROR_OPERATING_SYSTEM;
	return ckt_graph_leave(result);
}
