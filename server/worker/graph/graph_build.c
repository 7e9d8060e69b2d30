/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the driver's graphs from descriptions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/graph.h"
#include "base/log.h"
#include "server/worker/objects/array.h"
#include "server/worker/driver.h"
#include "server/worker/graph/graph_record.h"
#include "server/worker/libs/state.h"
#include "server/worker/objects/context_limits.h"
#include "server/worker/session/hostfunc.h"
#include "server/worker/objects/memop.h"
#include "server/worker/worker.h"

enum { PARAMS_MAX = 4096 };
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Only the executor uses them: a restore runs before it, and a freeze stops it. */
static _Alignas(64) uint8_t packed[32768 + 64];
static void *pointers[PARAMS_MAX + 1];

struct kernel_params {
	CUDA_KERNEL_NODE_PARAMS_v2 node;
	size_t size;
	void *extra[5];
};

/*
 * Whether to pass one pointer for each parameter.  The driver must report the layout.  Cooperative
 * kernels accept no packed buffer.
 */
static bool by_pointers(CUfunction function, uint32_t size)
{
	if (!ckt_driver.cuFuncGetParamInfo)
		return false;
	for (size_t i = 0; i <= PARAMS_MAX; i++) {
		size_t offset, bytes;
		if (ckt_driver.cuFuncGetParamInfo(function, i, &offset, &bytes))
			return i > 0;
		if (offset > size || bytes > size - offset)
			return false;
		pointers[i] = packed + offset;
	}
	return false;
}

static CUresult kernel_params(const struct ckt_worker_graph_build *build,
	const struct ckt_worker_graph_node *node, struct kernel_params *ret,
	struct ckt_worker_graph_kernel *ret_kernel)
{
	struct ckt_worker_graph_kernel *k = ret_kernel;
	CUfunction function;
	CUcontext context;
	if (!ckt_worker_graph_kernel_get(node, k))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_object_function(build->worker, k->function, &function);
	/* The graph can be launched from now on, so its kernels' local memory counts. */
	if (!result)
		result = ckt_limits_charge_local(
			build->worker, ckt_objects_find(&build->worker->objects, k->function));
	if (!result)
		result = ckt_object_context(build->worker, node->context, &context);
	if (result)
		return result;
	ckt_objects_find(&build->worker->objects, k->function)->function.launched = true;
	memcpy(packed, k->params, k->params_bytes);
	ckt_worker_graph_conditions_replace(build->conditions, packed, k->params_bytes);
	ret->size = k->params_bytes;
	ret->extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
	ret->extra[1] = packed;
	ret->extra[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
	ret->extra[3] = &ret->size;
	ret->extra[4] = CU_LAUNCH_PARAM_END;
	bool list = k->params_bytes && by_pointers(function, k->params_bytes);
	ret->node = (CUDA_KERNEL_NODE_PARAMS_v2){.func = function,
		.gridDimX = k->grid[0],
		.gridDimY = k->grid[1],
		.gridDimZ = k->grid[2],
		.blockDimX = k->block[0],
		.blockDimY = k->block[1],
		.blockDimZ = k->block[2],
		.sharedMemBytes = k->shared_bytes,
		.kernelParams = list ? pointers : NULL,
		.extra = k->params_bytes && !list ? ret->extra : NULL,
		.ctx = context};
	return CUDA_SUCCESS;
}

/*
 * Whether an attribute's value means the same here as in the client: a number, or the address of a
 * window of device memory.  Other attributes contain an event or a node handle of the client, which
 * the driver would take for a pointer.
 */
static bool attribute_travels(CUlaunchAttributeID id)
{
	switch ((int)id) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
	case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
		return true;
	default:
		return false;
	}
}

static CUresult refuse_attribute(CUlaunchAttributeID id)
{
	static const char *const names[] = {
		[CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY] = "synchronization policy",
		[CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION] =
			"programmatic stream serialization",
		[CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT] = "programmatic event",
		[CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT] = "launch completion event",
		[CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE] =
			"device-updatable kernel node"};
	static bool said[32];
	unsigned index = (unsigned)id < COUNT(said) ? (unsigned)id : 0;
	char what[128];
	snprintf(what, sizeof what, "a graph kernel's attribute: %s (%d)",
		index < COUNT(names) && names[index] ? names[index] : "unknown", id);
	return ckt_worker_unsupported(what, &said[index]);
}

static CUresult add_kernel(const struct ckt_worker_graph_build *build, CUgraph graph,
	struct ckt_worker_graph_node *node)
{
	struct kernel_params params;
	struct ckt_worker_graph_kernel kernel;
	CUresult result = kernel_params(build, node, &params, &kernel);
	if (!result)
		result = ckt_driver.cuGraphAddKernelNode_v2(
			&node->real, graph, NULL, 0, &params.node);
	for (uint32_t at = 0; at < kernel.attributes_bytes && !result;
		at += 4 + CKT_GRAPH_ATTRIBUTE_BYTES) {
		struct ckt_cursor c = {.p = kernel.attributes + at,
			.end = kernel.attributes + kernel.attributes_bytes};
		CUlaunchAttributeID id = (CUlaunchAttributeID)ckt_get_u32(&c);
		CUlaunchAttributeValue value;
		_Static_assert(sizeof value <= CKT_GRAPH_ATTRIBUTE_BYTES,
			"an attribute's value has grown");
		if (id == CU_LAUNCH_ATTRIBUTE_IGNORE)
			continue;
		if (!attribute_travels(id))
			return refuse_attribute(id);
		memcpy(&value, c.p, sizeof value);
		result = ckt_driver.cuGraphKernelNodeSetAttribute(node->real, id, &value);
	}
	return result;
}

/*
 * Translates a client address to the address in the buffer.  The first touched byte selects the
 * buffer, so that offsets stay the same.
 */
static CUresult map_side(const struct ckt_worker_graph_build *build,
	const struct ckt_worker_graph_copy *copy, struct ckt_worker_graph_side *side)
{
	uint64_t begin, size;
	if (side->type != CU_MEMORYTYPE_HOST)
		return CUDA_SUCCESS;
	if (!ckt_worker_graph_side_span(copy, side, &begin, &size))
		return CUDA_ERROR_INVALID_VALUE;
	uint8_t *data = ckt_worker_graph_segments_find(build->segments, begin, size);
	if (!data && size)
		return CUDA_ERROR_INVALID_VALUE;
	side->address = (uint64_t)(uintptr_t)data - (begin - side->address);
	return CUDA_SUCCESS;
}

/* The array of a side that is one.  Its height field holds the level and is not a height. */
static CUresult array_side(const struct ckt_worker_graph_build *build,
	struct ckt_worker_graph_side *side, CUarray *ret_array)
{
	if (side->type != CU_MEMORYTYPE_ARRAY)
		return CUDA_SUCCESS;
	if (side->height >= CKT_ARRAY_LEVELS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result =
		ckt_array_real(build->worker, side->address, (uint32_t)side->height, ret_array);
	side->address = 0;
	side->height = 0;
	return result;
}

static CUresult copy_params(const struct ckt_worker_graph_build *build,
	const struct ckt_worker_graph_node *node, CUDA_MEMCPY3D *ret, CUcontext *ret_context)
{
	struct ckt_worker_graph_copy c;
	if (!ckt_worker_graph_copy_get(node, &c))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = ckt_object_context(build->worker, node->context, ret_context);
	if (!result)
		result = map_side(build, &c, &c.src);
	if (!result)
		result = map_side(build, &c, &c.dst);
	if (result)
		return result;
	/* The driver does not know the client's memory, so the worker checks every type. */
	if ((c.src.type != CU_MEMORYTYPE_HOST && c.src.type != CU_MEMORYTYPE_DEVICE &&
		    c.src.type != CU_MEMORYTYPE_ARRAY) ||
		(c.dst.type != CU_MEMORYTYPE_HOST && c.dst.type != CU_MEMORYTYPE_DEVICE &&
			c.dst.type != CU_MEMORYTYPE_ARRAY))
		return CKT_WORKER_UNSUPPORTED("a copy of this kind in a graph");
	CUarray src_array = NULL, dst_array = NULL;
	result = array_side(build, &c.src, &src_array);
	if (!result)
		result = array_side(build, &c.dst, &dst_array);
	if (result)
		return result;
	*ret = (CUDA_MEMCPY3D){.srcXInBytes = c.src.x,
		.srcY = c.src.y,
		.srcZ = c.src.z,
		.srcMemoryType = (CUmemorytype)c.src.type,
		.srcArray = src_array,
		.srcPitch = c.src.pitch,
		.srcHeight = c.src.height,
		.dstXInBytes = c.dst.x,
		.dstY = c.dst.y,
		.dstZ = c.dst.z,
		.dstMemoryType = (CUmemorytype)c.dst.type,
		.dstArray = dst_array,
		.dstPitch = c.dst.pitch,
		.dstHeight = c.dst.height,
		.WidthInBytes = c.width,
		.Height = c.height,
		.Depth = c.depth};
	if (c.src.type == CU_MEMORYTYPE_HOST)
		ret->srcHost = (void *)(uintptr_t)c.src.address;
	else
		ret->srcDevice = c.src.address;
	if (c.dst.type == CU_MEMORYTYPE_HOST)
		ret->dstHost = (void *)(uintptr_t)c.dst.address;
	else
		ret->dstDevice = c.dst.address;
	return CUDA_SUCCESS;
}

static CUresult fill_params(const struct ckt_worker_graph_build *build,
	const struct ckt_worker_graph_node *node, CUDA_MEMSET_NODE_PARAMS_v1 *ret,
	CUcontext *ret_context)
{
	struct ckt_worker_graph_fill fill;
	if (!ckt_worker_graph_fill_get(node, &fill))
		return CUDA_ERROR_INVALID_VALUE;
	*ret = (CUDA_MEMSET_NODE_PARAMS_v1){.dst = fill.dst,
		.pitch = fill.pitch,
		.value = fill.value,
		.elementSize = fill.element_size,
		.width = fill.width,
		.height = fill.height};
	return ckt_object_context(build->worker, node->context, ret_context);
}

static CUresult node_event(const struct ckt_worker_graph_build *build,
	const struct ckt_worker_graph_node *node, CUevent *ret_event)
{
	uint64_t id;
	return ckt_worker_graph_event_get(node, &id)
		? ckt_object_event(build->worker, id, ret_event)
		: CUDA_ERROR_INVALID_VALUE;
}

static CUresult memop_params(const struct ckt_worker_graph_build *build,
	const struct ckt_worker_graph_node *node, CUDA_BATCH_MEM_OP_NODE_PARAMS *ret)
{
	/* used only by the executor, as above */
	static CUstreamBatchMemOpParams ops[CKT_MEMOPS_MAX];
	struct ckt_cursor c = {.p = node->record, .end = node->record + node->record_bytes};
	*ret = (CUDA_BATCH_MEM_OP_NODE_PARAMS){.flags = ckt_get_u32(&c), .paramArray = ops};
	if (c.bad || !ckt_memops_decode(c.p, (size_t)(c.end - c.p), ops, &ret->count))
		return CUDA_ERROR_INVALID_VALUE;
	if (!ckt_driver.cuGraphAddBatchMemOpNode)
		return CKT_WORKER_UNSUPPORTED(
			"memory operations in a graph with the server's driver");
	return ckt_object_context(build->worker, node->context, &ret->ctx);
}

static CUresult add_child(const struct ckt_worker_graph_build *build, CUgraph graph,
	struct ckt_worker_graph_node *node)
{
	struct ckt_worker_graph *child = node->graphs[0];
	CUresult result = ckt_worker_graph_make(build, child);
	if (!result)
		result = ckt_driver.cuGraphAddChildGraphNode(
			&node->real, graph, NULL, 0, child->real);
	/*
	 * The driver has copied the child graph.  Later changes of parameters need the nodes of the
	 * copy, which the driver lists in the order of their creation.
	 */
	CUgraph inner;
	size_t count = child->node_count;
	CUgraphNode *nodes = calloc(count + 1, sizeof *nodes);
	if (!nodes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!result)
		result = ckt_driver.cuGraphChildGraphNodeGetGraph(node->real, &inner);
	if (!result && count)
		result = ckt_driver.cuGraphGetNodes(inner, nodes, &count);
	for (size_t i = 0; i < count && !result; i++)
		child->nodes[i].real = nodes[i];
	free(nodes);
	if (child->real)
		ckt_driver.cuGraphDestroy(child->real);
	child->real = NULL;
	return result;
}

/* The graph that a library call was captured into. */
static CUresult call_graph(const struct ckt_worker_graph_build *build,
	const struct ckt_worker_graph_node *node, CUgraph *ret_graph)
{
	uint64_t id;
	return ckt_worker_graph_event_get(node, &id) &&
			ckt_worker_lib_call_find(build->worker, id, ret_graph)
		? CUDA_SUCCESS
		: CUDA_ERROR_INVALID_VALUE;
}

static CUresult fill(
	const struct ckt_worker_graph_build *build, CUgraph real, struct ckt_worker_graph *graph);

/* The driver makes the bodies and the node owns them. */
static CUresult add_conditional(const struct ckt_worker_graph_build *build, CUgraph graph,
	struct ckt_worker_graph_node *node)
{
	CUresult result = ckt_worker_graph_conditional_add(build, graph, node);
	for (uint32_t i = 0; i < node->graph_count; i++) {
		if (!result)
			result = fill(build, node->graphs[i]->real, node->graphs[i]);
		node->graphs[i]->real = NULL;
	}
	return result;
}

static CUresult add_node(const struct ckt_worker_graph_build *build, CUgraph graph,
	struct ckt_worker_graph_node *node)
{
	CUDA_MEMCPY3D copy;
	CUDA_MEMSET_NODE_PARAMS_v1 fill;
	CUDA_BATCH_MEM_OP_NODE_PARAMS memops;
	CUDA_HOST_NODE_PARAMS_v1 host = {
		.fn = ckt_hostcall_graph, .userData = node->updates ? node->updates : node};
	CUcontext context;
	CUevent event;
	CUgraph child;
	CUresult result;
	switch (node->type) {
	case CKT_GRAPH_NODE_LIBRARY:
		result = call_graph(build, node, &child);
		return result
			? result
			: ckt_driver.cuGraphAddChildGraphNode(&node->real, graph, NULL, 0, child);
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return add_kernel(build, graph, node);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		result = copy_params(build, node, &copy, &context);
		return result ? result
			      : ckt_driver.cuGraphAddMemcpyNode(
					&node->real, graph, NULL, 0, &copy, context);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		result = fill_params(build, node, &fill, &context);
		return result ? result
			      : ckt_driver.cuGraphAddMemsetNode(
					&node->real, graph, NULL, 0, &fill, context);
	case CU_GRAPH_NODE_TYPE_HOST:
		node->exec = build->exec;
		return ckt_driver.cuGraphAddHostNode(&node->real, graph, NULL, 0, &host);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return add_child(build, graph, node);
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return add_conditional(build, graph, node);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		return ckt_driver.cuGraphAddEmptyNode(&node->real, graph, NULL, 0);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		result = node_event(build, node, &event);
		return result
			? result
			: ckt_driver.cuGraphAddEventRecordNode(&node->real, graph, NULL, 0, event);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		result = node_event(build, node, &event);
		return result
			? result
			: ckt_driver.cuGraphAddEventWaitNode(&node->real, graph, NULL, 0, event);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		result = memop_params(build, node, &memops);
		return result
			? result
			: ckt_driver.cuGraphAddBatchMemOpNode(&node->real, graph, NULL, 0, &memops);
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		/* The memory exists as long as the client's graph has such a node. */
		return ckt_driver.cuGraphAddEmptyNode(&node->real, graph, NULL, 0);
	default:
		return CKT_WORKER_UNSUPPORTED("a node of this kind");
	}
}

static CUresult add_ordinary_edges(
	CUgraph real, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
	if (!count)
		return CUDA_SUCCESS;
	return ckt_driver.cuGraphAddDependencies
		? ckt_driver.cuGraphAddDependencies(real, from, to, count)
		: ckt_driver.cuGraphAddDependencies_v2(real, from, to, NULL, count);
}

static bool add_programmatic_edge(CUgraph real, CUgraphNode from, CUgraphNode to, uint32_t word)
{
	const CUgraphEdgeData data = {.from_port = (unsigned char)(word >> 16),
		.to_port = (unsigned char)(word >> 8),
		.type = (unsigned char)word};
	return ckt_driver.cuGraphAddDependencies_v2 &&
		ckt_driver.cuGraphAddDependencies_v2(real, &from, &to, &data, 1) == CUDA_SUCCESS;
}

/*
 * Programmatic edges are added one by one: driver 580.159.04 treats all edges of one call like the
 * first (docs/decisions.md).  If a driver or a device rejects a programmatic edge, an ordinary edge
 * replaces it; the ordinary edge orders more.
 */
static CUresult add_edges(CUgraph real, struct ckt_worker_graph *graph)
{
	size_t ordinary = 0;
	CUgraphNode *from = calloc(graph->edge_count + 1, sizeof *from);
	CUgraphNode *to = calloc(graph->edge_count + 1, sizeof *to);
	CUresult result = from && to ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < graph->edge_count && !result; i++) {
		const struct ckt_worker_graph_edge *edge = &graph->edges[i];
		from[ordinary] = graph->nodes[edge->from].real;
		to[ordinary] = graph->nodes[edge->to].real;
		if (!edge->data ||
			!add_programmatic_edge(real, from[ordinary], to[ordinary], edge->data))
			ordinary++;
	}
	if (!result)
		result = add_ordinary_edges(real, from, to, ordinary);
	free(from);
	free(to);
	return result;
}

static CUresult fill(
	const struct ckt_worker_graph_build *build, CUgraph real, struct ckt_worker_graph *graph)
{
	CUresult result = ckt_worker_graph_conditions_make(build, real, graph);
	for (uint32_t i = 0; i < graph->node_count && !result; i++)
		result = add_node(build, real, &graph->nodes[i]);
	return !result && graph->edge_count ? add_edges(real, graph) : result;
}

CUresult ckt_worker_graph_make(
	const struct ckt_worker_graph_build *build, struct ckt_worker_graph *graph)
{
	CUresult result = ckt_driver.cuGraphCreate(&graph->real, 0);
	if (result)
		graph->real = NULL;
	return result ? result : fill(build, graph->real, graph);
}

CUresult ckt_worker_graph_node_apply(const struct ckt_worker_graph_build *build, CUgraphExec exec,
	struct ckt_worker_graph_node *node)
{
	struct kernel_params kernel;
	struct ckt_worker_graph_kernel record;
	CUDA_MEMCPY3D copy;
	CUDA_MEMSET_NODE_PARAMS_v1 fill;
	CUDA_BATCH_MEM_OP_NODE_PARAMS memops;
	CUcontext context;
	CUevent event;
	CUgraph child;
	CUresult result;
	switch (node->type) {
	case CKT_GRAPH_NODE_LIBRARY:
		result = call_graph(build, node, &child);
		return result
			? result
			: ckt_driver.cuGraphExecChildGraphNodeSetParams(exec, node->real, child);
	case CU_GRAPH_NODE_TYPE_KERNEL:
		result = kernel_params(build, node, &kernel, &record);
		return result ? result
			      : ckt_driver.cuGraphExecKernelNodeSetParams_v2(
					exec, node->real, &kernel.node);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		result = copy_params(build, node, &copy, &context);
		return result ? result
			      : ckt_driver.cuGraphExecMemcpyNodeSetParams(
					exec, node->real, &copy, context);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		result = fill_params(build, node, &fill, &context);
		return result ? result
			      : ckt_driver.cuGraphExecMemsetNodeSetParams(
					exec, node->real, &fill, context);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		result = ckt_worker_graph_make(build, node->graphs[0]);
		if (!result)
			result = ckt_driver.cuGraphExecChildGraphNodeSetParams(
				exec, node->real, node->graphs[0]->real);
		return result;
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		result = node_event(build, node, &event);
		return result
			? result
			: ckt_driver.cuGraphExecEventRecordNodeSetEvent(exec, node->real, event);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		result = node_event(build, node, &event);
		return result
			? result
			: ckt_driver.cuGraphExecEventWaitNodeSetEvent(exec, node->real, event);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		result = memop_params(build, node, &memops);
		return result
			? result
			: ckt_driver.cuGraphExecBatchMemOpNodeSetParams(exec, node->real, &memops);
	default:
		return CKT_WORKER_UNSUPPORTED("a change to a node of this kind");
	}
}
