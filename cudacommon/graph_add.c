/* SPDX-License-Identifier: Apache-2.0 */
/* Adds nodes to graphs and changes their parameters, for each kind of node. */
#include <stdlib.h>
#include <string.h>

#include "cudacommon/graph.h"
#include "cudacommon/memop.h"

/* Checks the graph and the nodes of a cuGraphAdd*Node call. */
static CUresult begin(CUgraphNode *ret, CUgraph handle, const CUgraphNode *list,
	const CUgraphEdgeData *data, size_t count, CUgraphNodeType type, struct ckt_node **ret_node)
{
	struct ckt_graph *graph = ckt_graph_find(handle);
	if (!ret || !graph || (count && !list))
		return CUDA_ERROR_INVALID_VALUE;
	if (graph->call)
		return CKT_CUDACOMMON_UNSUPPORTED("a node in the graph of a captured library call");
	struct ckt_node **nodes = calloc(count + 1, sizeof(struct ckt_node *));
	if (!nodes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = CUDA_SUCCESS;
	for (size_t i = 0; i < count && !result; i++) {
		nodes[i] = ckt_node_find(list[i]);
		if (!nodes[i] || nodes[i]->graph != graph)
			result = CUDA_ERROR_INVALID_VALUE;
		for (size_t k = 0; k < i; k++)
			if (list[k] == list[i])
				result = CUDA_ERROR_INVALID_VALUE;
	}
	if (!result)
		result = ckt_node_new(graph, type, nodes, data, count, ret_node);
	free(nodes);
	return result;
}

static CUresult context_of(CUcontext handle, uint64_t *ret_context)
{
	if (!handle)
		return ckt_cudacommon_context(ret_context);
	*ret_context = ckt_handle_id(handle);
	return ckt_cudacommon_context_check(handle);
}

/* The node takes over the graph, which keeps its handle. */
static CUresult move_child(struct ckt_node *node, struct ckt_graph *child)
{
	if (!node->object.id || node->child || child->owner || child->capturing)
		return CUDA_ERROR_INVALID_VALUE;
	for (const struct ckt_graph *around = node->graph; around;
		around = around->owner ? around->owner->graph : NULL)
		if (around == child)
			return CUDA_ERROR_INVALID_VALUE;
	node->child = child;
	child->owner = node;
	return CUDA_SUCCESS;
}

static CUresult set_memory(struct ckt_node *node, const CUgraphNodeParams *p)
{
	struct ckt_graph_block *block;
	if (node->type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
		CUresult result = ckt_graph_block_freeable(node->graph, p->free.dptr, &block);
		if (!result)
			ckt_node_set_free(node, block);
		return result;
	}
	CUdevice device = 0;
	struct ckt_node *self = node;
	CUresult result = node->graph->owner ? CKT_AS_CUDA_NOT_SUPPORTED
					     : ckt_alloc_params_check(&p->alloc, &device);
	if (!result)
		result = ckt_graph_block_take(
			node->graph, &self, 1, device, p->alloc.bytesize, &block);
	if (!result)
		ckt_node_set_alloc(node, block, p->alloc.bytesize);
	return result;
}

/* The bytes of the union that each kind of node uses. */
static size_t params_size(const CUgraphNodeParams *p)
{
	switch (p->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return sizeof p->kernel;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return sizeof p->memcpy;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return sizeof p->memset;
	case CU_GRAPH_NODE_TYPE_HOST:
		return sizeof p->host;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return sizeof p->graph;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return sizeof p->eventWait;
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return sizeof p->eventRecord;
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
		return sizeof p->extSemSignal;
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
		return sizeof p->extSemWait;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		return sizeof p->alloc;
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return sizeof p->free;
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return sizeof p->memOp;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return sizeof p->conditional;
	default:
		return 0;
	}
}

/* The rest of the union must be zero. */
static bool is_padded(const CUgraphNodeParams *p)
{
	const uint8_t *bytes = (const uint8_t *)p->reserved1;
	for (size_t i = params_size(p); i < sizeof p->reserved1; i++)
		if (bytes[i])
			return false;
	return true;
}

/* A separate function sets attributes, so they stay. */
static CUresult keep_attributes(
	const struct ckt_node *node, struct ckt_kernel_spec *spec, CUlaunchAttribute **ret_kept)
{
	*ret_kept = NULL;
	if (!node->kernel.attribute_count)
		return CUDA_SUCCESS;
	size_t bytes = node->kernel.attribute_count * sizeof **ret_kept;
	CUlaunchAttribute *kept = malloc(bytes);
	if (!kept)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(kept, node->kernel.attributes, bytes);
	spec->attributes = kept;
	spec->attribute_count = node->kernel.attribute_count;
	*ret_kept = kept;
	return CUDA_SUCCESS;
}

static CUresult set_kernel(struct ckt_node *node, const CUgraphNodeParams *p, uint64_t *ret_context)
{
	CUDA_KERNEL_NODE_PARAMS kernel;
	struct ckt_kernel_spec spec;
	CUlaunchAttribute *kept;
	_Static_assert(sizeof kernel == sizeof p->kernel, "one layout");
	memcpy(&kernel, &p->kernel, sizeof kernel);
	CUresult result = context_of(kernel.ctx, ret_context);
	if (!result)
		result = ckt_kernel_spec_read(&kernel, &spec);
	if (!result)
		result = keep_attributes(node, &spec, &kept);
	if (result)
		return result;
	result = ckt_node_set_kernel(node, &spec);
	free(kept);
	return result;
}

static CUresult set_copy(struct ckt_node *node, const CUgraphNodeParams *p, uint64_t *ret_context)
{
	CUresult result = context_of(p->memcpy.copyCtx, ret_context);
	return result ? result : ckt_node_set_copy(node, &p->memcpy.copyParams);
}

static CUresult set_fill(struct ckt_node *node, const CUgraphNodeParams *p, uint64_t *ret_context)
{
	CUDA_MEMSET_NODE_PARAMS fill = {.dst = p->memset.dst,
		.pitch = p->memset.pitch,
		.value = p->memset.value,
		.elementSize = p->memset.elementSize,
		.width = p->memset.width,
		.height = p->memset.height};
	CUresult result = context_of(p->memset.ctx, ret_context);
	return result ? result : ckt_node_set_fill(node, &fill);
}

static CUresult set_host(struct ckt_node *node, const CUgraphNodeParams *p, uint64_t *ret_context)
{
	if (!p->host.fn)
		return CUDA_ERROR_INVALID_VALUE;
	node->host = (CUDA_HOST_NODE_PARAMS){.fn = p->host.fn, .userData = p->host.userData};
	return CUDA_SUCCESS;
}

static CUresult set_child(struct ckt_node *node, const CUgraphNodeParams *p, uint64_t *ret_context)
{
	struct ckt_graph *copy, *child = ckt_graph_find(p->graph.graph);
	if (!child || child == node->graph)
		return CUDA_ERROR_INVALID_VALUE;
	if (ckt_graph_is_body(child) || ckt_graph_has_conditions(child))
		return CKT_AS_CUDA_NOT_SUPPORTED;
	if (p->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE)
		return move_child(node, child);
	if (p->graph.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_graph_copy(child, node->object.id != 0, &copy);
	if (result)
		return result;
	ckt_graph_free(node->child);
	node->child = copy;
	copy->owner = node;
	return CUDA_SUCCESS;
}

static CUresult set_nothing(
	struct ckt_node *node, const CUgraphNodeParams *p, uint64_t *ret_context)
{
	return CUDA_SUCCESS;
}

static CUresult set_event(struct ckt_node *node, CUevent event)
{
	CUresult result = ckt_cudacommon_event_check(event);
	if (!result)
		node->event = event;
	return result;
}

static CUresult set_wait(struct ckt_node *node, const CUgraphNodeParams *p, uint64_t *ret_context)
{
	return set_event(node, p->eventWait.event);
}

static CUresult set_record(struct ckt_node *node, const CUgraphNodeParams *p, uint64_t *ret_context)
{
	return set_event(node, p->eventRecord.event);
}

/* The parameters of such a node are fixed when it is added. */
static CUresult set_block(struct ckt_node *node, const CUgraphNodeParams *p, uint64_t *ret_context)
{
	return node->memory.block ? CKT_AS_CUDA_NOT_SUPPORTED : set_memory(node, p);
}

static CUresult set_memop(struct ckt_node *node, const CUgraphNodeParams *p, uint64_t *ret_context)
{
	CUresult result = context_of(p->memOp.ctx, ret_context);
	if (!result)
		result = ckt_memop_check(p->memOp.paramArray, p->memOp.count, p->memOp.flags);
	return result ? result : ckt_node_set_memop(node, &p->memOp);
}

/*
 * The parameters of such a node are fixed when it is added; its bodies change through their own
 * nodes.
 */
static CUresult set_conditional(
	struct ckt_node *node, const CUgraphNodeParams *p, uint64_t *ret_context)
{
	return node->object.id && !node->conditional.count
		? ckt_node_set_conditional(node, &p->conditional)
		: CKT_AS_CUDA_NOT_SUPPORTED;
}

static CUresult refuse_semaphores(
	struct ckt_node *node, const CUgraphNodeParams *p, uint64_t *ret_context)
{
	return CKT_CUDACOMMON_UNSUPPORTED("nodes for external semaphores");
}

/*
 * Depends on the node's type.  *ret_context holds the node's context; kinds with a context
 * parameter overwrite it.
 */
typedef CUresult set_function(
	struct ckt_node *node, const CUgraphNodeParams *p, uint64_t *ret_context);
static set_function *const setters[] = {
	[CU_GRAPH_NODE_TYPE_KERNEL] = set_kernel,
	[CU_GRAPH_NODE_TYPE_MEMCPY] = set_copy,
	[CU_GRAPH_NODE_TYPE_MEMSET] = set_fill,
	[CU_GRAPH_NODE_TYPE_HOST] = set_host,
	[CU_GRAPH_NODE_TYPE_GRAPH] = set_child,
	[CU_GRAPH_NODE_TYPE_EMPTY] = set_nothing,
	[CU_GRAPH_NODE_TYPE_WAIT_EVENT] = set_wait,
	[CU_GRAPH_NODE_TYPE_EVENT_RECORD] = set_record,
	[CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL] = refuse_semaphores,
	[CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT] = refuse_semaphores,
	[CU_GRAPH_NODE_TYPE_MEM_ALLOC] = set_block,
	[CU_GRAPH_NODE_TYPE_MEM_FREE] = set_block,
	[CU_GRAPH_NODE_TYPE_BATCH_MEM_OP] = set_memop,
	[CU_GRAPH_NODE_TYPE_CONDITIONAL] = set_conditional,
};

/* Precondition: locked.  Returns the new parameters of a node in the union's general form. */
static CUresult set_params(struct ckt_node *node, const CUgraphNodeParams *p)
{
	uint64_t context = node->context;
	size_t type = (size_t)p->type;
	if (!is_padded(p) || type >= sizeof setters / sizeof *setters || !setters[type])
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = setters[type](node, p, &context);
	if (!result)
		node->context = context;
	return result;
}

CKT_EXPORT CUresult cuGraphAddNode_v2(CUgraphNode *ret, CUgraph graph, const CUgraphNode *list,
	const CUgraphEdgeData *data, size_t count, CUgraphNodeParams *params)
{
	struct ckt_node *node;
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	ckt_graph_enter();
	CUresult result = begin(ret, graph, list, data, count, params->type, &node);
	if (result)
		return ckt_graph_leave(result);
	result = set_params(node, params);
	if (result) {
		ckt_node_free(node);
		return ckt_graph_leave(result);
	}
	if (node->type == CU_GRAPH_NODE_TYPE_GRAPH)
		params->graph.graph = (CUgraph)(uintptr_t)node->child->object.id;
	if (node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		params->conditional.phGraph_out = node->conditional.told;
	if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		params->alloc.dptr = ckt_graph_block_address(node->memory.block);
	*ret = ckt_node_handle(node);
	return ckt_graph_leave(CUDA_SUCCESS);
}

CKT_EXPORT CUresult cuGraphAddNode(CUgraphNode *ret, CUgraph graph, const CUgraphNode *list,
	size_t count, CUgraphNodeParams *params)
{
	return cuGraphAddNode_v2(ret, graph, list, NULL, count, params);
}

CKT_EXPORT CUresult cuGraphNodeSetParams(CUgraphNode handle, CUgraphNodeParams *params)
{
	ckt_graph_enter();
	struct ckt_node *node = ckt_node_find(handle);
	return ckt_graph_leave(node && params && node->type == params->type
			? set_params(node, params)
			: CUDA_ERROR_INVALID_VALUE);
}

/* In an executable graph, changes the copy of the node. */
CKT_EXPORT CUresult cuGraphExecNodeSetParams(
	CUgraphExec exec_handle, CUgraphNode handle, CUgraphNodeParams *params)
{
	ckt_graph_enter();
	struct ckt_exec *exec =
		ckt_cudacommon_object_find(ckt_handle_id(exec_handle), CKT_KIND_GRAPH_EXEC);
	struct ckt_node *node =
		exec && handle ? ckt_graph_find_copy(exec->graph, ckt_handle_id(handle)) : NULL;
	if (!node || !params || node->type != params->type)
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	struct ckt_node trial = {.type = node->type,
		.origin = node->origin,
		.context = node->context,
		.graph = node->graph};
	CUresult result = ckt_node_copy_params(&trial, node, false);
	/* The program names nodes of a child graph by the handles of the original graph. */
	if (!result)
		result = set_params(&trial, params);
	if (!result && node->type == CU_GRAPH_NODE_TYPE_GRAPH)
		result = ckt_graph_pair(node->child, trial.child, NULL)
			? CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE
			: CUDA_SUCCESS;
	if (!result)
		result = ckt_exec_change_node(exec, node, &trial);
	if (!result) {
		node->context = trial.context;
		/* Nodes of a child graph stay the nodes whose handles the program has. */
		result = node->type == CU_GRAPH_NODE_TYPE_GRAPH
			? ckt_graph_adopt(node->child, trial.child)
			: ckt_node_copy_params(node, &trial, false);
		ckt_exec_look(exec);
	}
	ckt_node_drop_params(&trial);
	return ckt_graph_leave(result);
}

/*
 * ---- Functions of one kind of node: convert their arguments to the union's general form, or to
 * NULL if they are invalid
 */

#define ADD_ARGUMENTS CUgraphNode *ret, CUgraph graph, const CUgraphNode *list, size_t count
#define ADD(params) cuGraphAddNode_v2(ret, graph, list, NULL, count, params)
#define FRESH                                    \
	&(CUgraphNodeParams)                     \
	{                                        \
		.type = CU_GRAPH_NODE_TYPE_EMPTY \
	}

/* The first version has a shorter struct. */
static CUgraphNodeParams *of_kernel(CUgraphNodeParams *p, const void *kernel, size_t size)
{
	if (!kernel)
		return NULL;
	p->type = CU_GRAPH_NODE_TYPE_KERNEL;
	memcpy(&p->kernel, kernel, size);
	return p;
}

static CUgraphNodeParams *of_copy(
	CUgraphNodeParams *p, const CUDA_MEMCPY3D *copy, CUcontext context)
{
	if (!copy)
		return NULL;
	p->type = CU_GRAPH_NODE_TYPE_MEMCPY;
	p->memcpy.copyParams = *copy;
	p->memcpy.copyCtx = context;
	return p;
}

static CUgraphNodeParams *of_fill(
	CUgraphNodeParams *p, const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context)
{
	if (!fill)
		return NULL;
	p->type = CU_GRAPH_NODE_TYPE_MEMSET;
	p->memset = (CUDA_MEMSET_NODE_PARAMS_v2){.dst = fill->dst,
		.pitch = fill->pitch,
		.value = fill->value,
		.elementSize = fill->elementSize,
		.width = fill->width,
		.height = fill->height,
		.ctx = context};
	return p;
}

static CUgraphNodeParams *of_host(CUgraphNodeParams *p, const CUDA_HOST_NODE_PARAMS *host)
{
	if (!host)
		return NULL;
	p->type = CU_GRAPH_NODE_TYPE_HOST;
	p->host.fn = host->fn;
	p->host.userData = host->userData;
	return p;
}

static CUgraphNodeParams *of_child(CUgraphNodeParams *p, CUgraph child)
{
	p->type = CU_GRAPH_NODE_TYPE_GRAPH;
	p->graph.graph = child;
	return p;
}

static CUgraphNodeParams *of_record(CUgraphNodeParams *p, CUevent event)
{
	p->type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
	p->eventRecord.event = event;
	return p;
}

static CUgraphNodeParams *of_wait(CUgraphNodeParams *p, CUevent event)
{
	p->type = CU_GRAPH_NODE_TYPE_WAIT_EVENT;
	p->eventWait.event = event;
	return p;
}

static CUgraphNodeParams *of_free(CUgraphNodeParams *p, CUdeviceptr address)
{
	p->type = CU_GRAPH_NODE_TYPE_MEM_FREE;
	p->free.dptr = address;
	return p;
}

static CUgraphNodeParams *of_memop(CUgraphNodeParams *p, const CUDA_BATCH_MEM_OP_NODE_PARAMS *memop)
{
	if (!memop)
		return NULL;
	p->type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
	memcpy(&p->memOp, memop, sizeof *memop);
	return p;
}

CKT_EXPORT CUresult cuGraphAddKernelNode_v2(ADD_ARGUMENTS, const CUDA_KERNEL_NODE_PARAMS *kernel)
{
	return ADD(of_kernel(FRESH, kernel, sizeof *kernel));
}

CKT_EXPORT CUresult cuGraphKernelNodeSetParams_v2(
	CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *kernel)
{
	return cuGraphNodeSetParams(node, of_kernel(FRESH, kernel, sizeof *kernel));
}

CKT_EXPORT CUresult cuGraphExecKernelNodeSetParams_v2(
	CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *kernel)
{
	return cuGraphExecNodeSetParams(exec, node, of_kernel(FRESH, kernel, sizeof *kernel));
}

CKT_EXPORT CUresult cuGraphAddKernelNode(ADD_ARGUMENTS, const CUDA_KERNEL_NODE_PARAMS_v1 *kernel)
{
	return ADD(of_kernel(FRESH, kernel, sizeof *kernel));
}

CKT_EXPORT CUresult cuGraphKernelNodeSetParams(
	CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *kernel)
{
	return cuGraphNodeSetParams(node, of_kernel(FRESH, kernel, sizeof *kernel));
}

CKT_EXPORT CUresult cuGraphExecKernelNodeSetParams(
	CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *kernel)
{
	return cuGraphExecNodeSetParams(exec, node, of_kernel(FRESH, kernel, sizeof *kernel));
}

CKT_EXPORT CUresult cuGraphAddMemcpyNode(
	ADD_ARGUMENTS, const CUDA_MEMCPY3D *copy, CUcontext context)
{
	return ADD(of_copy(FRESH, copy, context));
}

CKT_EXPORT CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *copy)
{
	return cuGraphNodeSetParams(node, of_copy(FRESH, copy, NULL));
}

CKT_EXPORT CUresult cuGraphExecMemcpyNodeSetParams(
	CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *copy, CUcontext context)
{
	return cuGraphExecNodeSetParams(exec, node, of_copy(FRESH, copy, context));
}

CKT_EXPORT CUresult cuGraphAddMemsetNode(
	ADD_ARGUMENTS, const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context)
{
	return ADD(of_fill(FRESH, fill, context));
}

CKT_EXPORT CUresult cuGraphMemsetNodeSetParams(
	CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *fill)
{
	return cuGraphNodeSetParams(node, of_fill(FRESH, fill, NULL));
}

CKT_EXPORT CUresult cuGraphExecMemsetNodeSetParams(
	CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext context)
{
	return cuGraphExecNodeSetParams(exec, node, of_fill(FRESH, fill, context));
}

CKT_EXPORT CUresult cuGraphAddHostNode(ADD_ARGUMENTS, const CUDA_HOST_NODE_PARAMS *host)
{
	return ADD(of_host(FRESH, host));
}

CKT_EXPORT CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *host)
{
	return cuGraphNodeSetParams(node, of_host(FRESH, host));
}

CKT_EXPORT CUresult cuGraphExecHostNodeSetParams(
	CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *host)
{
	return cuGraphExecNodeSetParams(exec, node, of_host(FRESH, host));
}

CKT_EXPORT CUresult cuGraphAddChildGraphNode(ADD_ARGUMENTS, CUgraph child)
{
	return ADD(of_child(FRESH, child));
}

CKT_EXPORT CUresult cuGraphExecChildGraphNodeSetParams(
	CUgraphExec exec, CUgraphNode node, CUgraph child)
{
	return cuGraphExecNodeSetParams(exec, node, of_child(FRESH, child));
}

CKT_EXPORT CUresult cuGraphAddEmptyNode(ADD_ARGUMENTS)
{
	return ADD(FRESH);
}

CKT_EXPORT CUresult cuGraphAddEventRecordNode(ADD_ARGUMENTS, CUevent event)
{
	return ADD(of_record(FRESH, event));
}

CKT_EXPORT CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event)
{
	return cuGraphNodeSetParams(node, of_record(FRESH, event));
}

CKT_EXPORT CUresult cuGraphExecEventRecordNodeSetEvent(
	CUgraphExec exec, CUgraphNode node, CUevent event)
{
	return cuGraphExecNodeSetParams(exec, node, of_record(FRESH, event));
}

CKT_EXPORT CUresult cuGraphAddEventWaitNode(ADD_ARGUMENTS, CUevent event)
{
	return ADD(of_wait(FRESH, event));
}

CKT_EXPORT CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event)
{
	return cuGraphNodeSetParams(node, of_wait(FRESH, event));
}

CKT_EXPORT CUresult cuGraphExecEventWaitNodeSetEvent(
	CUgraphExec exec, CUgraphNode node, CUevent event)
{
	return cuGraphExecNodeSetParams(exec, node, of_wait(FRESH, event));
}

CKT_EXPORT CUresult cuGraphAddMemAllocNode(ADD_ARGUMENTS, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
	_Static_assert(sizeof *params == sizeof p.alloc, "one layout");
	memcpy(&p.alloc, params, sizeof *params);
	CUresult result = cuGraphAddNode_v2(ret, graph, list, NULL, count, &p);
	if (!result)
		params->dptr = p.alloc.dptr;
	return result;
}

CKT_EXPORT CUresult cuGraphAddMemFreeNode(ADD_ARGUMENTS, CUdeviceptr address)
{
	return ADD(of_free(FRESH, address));
}

CKT_EXPORT CUresult cuGraphAddBatchMemOpNode(
	ADD_ARGUMENTS, const CUDA_BATCH_MEM_OP_NODE_PARAMS *memop)
{
	return ADD(of_memop(FRESH, memop));
}

CKT_EXPORT CUresult cuGraphBatchMemOpNodeSetParams(
	CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *memop)
{
	return cuGraphNodeSetParams(node, of_memop(FRESH, memop));
}

CKT_EXPORT CUresult cuGraphExecBatchMemOpNodeSetParams(
	CUgraphExec exec, CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *memop)
{
	return cuGraphExecNodeSetParams(exec, node, of_memop(FRESH, memop));
}
