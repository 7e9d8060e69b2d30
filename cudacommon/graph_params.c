/* SPDX-License-Identifier: Apache-2.0 */
/* Returns parameters of nodes, and attributes of kernel nodes. */
#include <stdlib.h>
#include <string.h>

#include "cudacommon/graph.h"

/* Precondition: entered.  NULL if the handle is not a node of that kind. */
static struct ckt_node *find(CUgraphNode handle, CUgraphNodeType type)
{
	struct ckt_node *node = ckt_node_find(handle);
	return node && node->type == type ? node : NULL;
}

CKT_EXPORT CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS *ret)
{
	ckt_graph_enter();
	struct ckt_node *node = find(handle, CU_GRAPH_NODE_TYPE_KERNEL);
	if (!node || !ret)
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	struct ckt_kernel_node *k = &node->kernel;
	bool is_kernel = ckt_cudacommon_is_kernel(k->handle);
	*ret = (CUDA_KERNEL_NODE_PARAMS){.func = is_kernel ? NULL : k->handle,
		.kern = is_kernel ? (CUkernel)k->handle : NULL,
		.gridDimX = k->grid[0],
		.gridDimY = k->grid[1],
		.gridDimZ = k->grid[2],
		.blockDimX = k->block[0],
		.blockDimY = k->block[1],
		.blockDimZ = k->block[2],
		.sharedMemBytes = k->shared_bytes,
		.kernelParams = k->pointers,
		.extra = k->pointers || !k->param_bytes ? NULL : k->extra,
		.ctx = (CUcontext)(uintptr_t)node->context};
	return ckt_graph_leave(CUDA_SUCCESS);
}

CKT_EXPORT CUresult cuGraphKernelNodeGetParams(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v1 *ret)
{
	CUDA_KERNEL_NODE_PARAMS params;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = cuGraphKernelNodeGetParams_v2(handle, &params);
	if (!result)
		memcpy(ret, &params, sizeof *ret);
	if (!result && !ret->func)
		ret->func = (CUfunction)params.kern;
	return result;
}

/* Host memory that the GPU can access is device memory only internally. */
static CUmemorytype side_of_program(CUmemorytype type, CUdeviceptr address)
{
	return type == CU_MEMORYTYPE_DEVICE && ckt_cudacommon_is_reached(address)
		? CU_MEMORYTYPE_HOST
		: type;
}

CKT_EXPORT CUresult cuGraphMemcpyNodeGetParams(CUgraphNode handle, CUDA_MEMCPY3D *ret)
{
	ckt_graph_enter();
	const struct ckt_node *node = find(handle, CU_GRAPH_NODE_TYPE_MEMCPY);
	if (!node || !ret)
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	*ret = node->copy;
	ret->srcMemoryType = side_of_program(ret->srcMemoryType, ret->srcDevice);
	ret->dstMemoryType = side_of_program(ret->dstMemoryType, ret->dstDevice);
	return ckt_graph_leave(CUDA_SUCCESS);
}

CKT_EXPORT CUresult cuGraphMemsetNodeGetParams(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS *ret)
{
	ckt_graph_enter();
	const struct ckt_node *node = find(handle, CU_GRAPH_NODE_TYPE_MEMSET);
	if (!node || !ret)
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	*ret = node->fill;
	return ckt_graph_leave(CUDA_SUCCESS);
}

CKT_EXPORT CUresult cuGraphHostNodeGetParams(CUgraphNode handle, CUDA_HOST_NODE_PARAMS *ret)
{
	ckt_graph_enter();
	const struct ckt_node *node = find(handle, CU_GRAPH_NODE_TYPE_HOST);
	if (!node || !ret)
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	*ret = node->host;
	return ckt_graph_leave(CUDA_SUCCESS);
}

CKT_EXPORT CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode handle, CUgraph *ret)
{
	ckt_graph_enter();
	const struct ckt_node *node = find(handle, CU_GRAPH_NODE_TYPE_GRAPH);
	if (!node || !ret)
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	*ret = (CUgraph)(uintptr_t)node->child->object.id;
	return ckt_graph_leave(CUDA_SUCCESS);
}

static CUresult get_event(CUgraphNode handle, CUgraphNodeType type, CUevent *ret)
{
	ckt_graph_enter();
	const struct ckt_node *node = find(handle, type);
	if (!node || !ret)
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	*ret = node->event;
	return ckt_graph_leave(CUDA_SUCCESS);
}

CKT_EXPORT CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent *event)
{
	return get_event(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CKT_EXPORT CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent *event)
{
	return get_event(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

CKT_EXPORT CUresult cuGraphBatchMemOpNodeGetParams(
	CUgraphNode handle, CUDA_BATCH_MEM_OP_NODE_PARAMS *ret)
{
	ckt_graph_enter();
	const struct ckt_node *node = ckt_node_find(handle);
	if (!node || !ret || node->type != CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	*ret = (CUDA_BATCH_MEM_OP_NODE_PARAMS){.ctx = (CUcontext)(uintptr_t)node->context,
		.count = node->memop.count,
		.paramArray = node->memop.ops,
		.flags = node->memop.flags};
	return ckt_graph_leave(CUDA_SUCCESS);
}

/* ---- Attributes of kernel nodes */

/* Attributes whose values mean the same in the worker. */
static bool plain_attribute(CUlaunchAttributeID id)
{
	switch ((int)id) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
	case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
		return true;
	default:
		return false;
	}
}

static CUlaunchAttribute *find_attribute(const struct ckt_node *node, CUlaunchAttributeID id)
{
	for (unsigned i = 0; i < node->kernel.attribute_count; i++)
		if (node->kernel.attributes[i].id == id)
			return &node->kernel.attributes[i];
	return NULL;
}

static CUresult set_attribute(
	struct ckt_node *node, CUlaunchAttributeID id, const CUlaunchAttributeValue *value)
{
	CUlaunchAttribute *attribute = find_attribute(node, id);
	if (!attribute) {
		unsigned count = node->kernel.attribute_count;
		CUlaunchAttribute *list =
			realloc(node->kernel.attributes, (count + 1) * sizeof *list);
		if (!list)
			return CUDA_ERROR_OUT_OF_MEMORY;
		node->kernel.attributes = list;
		node->kernel.attribute_count++;
		attribute = &list[count];
		memset(attribute, 0, sizeof *attribute);
		attribute->id = id;
	}
	attribute->value = *value;
	return CUDA_SUCCESS;
}

CKT_EXPORT CUresult cuGraphKernelNodeSetAttribute(
	CUgraphNode handle, CUkernelNodeAttrID id, const CUkernelNodeAttrValue *value)
{
	ckt_graph_enter();
	struct ckt_node *node = find(handle, CU_GRAPH_NODE_TYPE_KERNEL);
	CUresult result = node && value ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	if (!result && plain_attribute(id))
		result = set_attribute(node, id, value);
	else if (!result && id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
		result = value->deviceUpdatableKernelNode.deviceUpdatable
			? CKT_CUDACOMMON_UNSUPPORTED("a device-updatable kernel node")
			: CUDA_SUCCESS;
	else if (!result)
		result = CUDA_ERROR_INVALID_VALUE;
	return ckt_graph_leave(result);
}

CKT_EXPORT CUresult cuGraphKernelNodeGetAttribute(
	CUgraphNode handle, CUkernelNodeAttrID id, CUkernelNodeAttrValue *ret)
{
	ckt_graph_enter();
	const struct ckt_node *node = find(handle, CU_GRAPH_NODE_TYPE_KERNEL);
	const CUlaunchAttribute *attribute = node ? find_attribute(node, id) : NULL;
	/*
	 * Two attributes can be set, and one of them can only be queried after that (seen on an
	 * H200).
	 */
	bool told = id == CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION ? attribute != NULL
		: id == CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING
		? false
		: plain_attribute(id) || id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE;
	if (!node || !ret || !told)
		return ckt_graph_leave(CUDA_ERROR_INVALID_VALUE);
	memset(ret, 0, sizeof *ret);
	if (attribute)
		*ret = attribute->value;
	else if (id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP)
		ret->memSyncDomainMap.remote = 1;
	return ckt_graph_leave(CUDA_SUCCESS);
}

CKT_EXPORT CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src)
{
	ckt_graph_enter();
	struct ckt_node *to = find(dst, CU_GRAPH_NODE_TYPE_KERNEL);
	const struct ckt_node *from = find(src, CU_GRAPH_NODE_TYPE_KERNEL);
	CUresult result = to && from ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; !result && i < from->kernel.attribute_count; i++)
		result = set_attribute(
			to, from->kernel.attributes[i].id, &from->kernel.attributes[i].value);
	return ckt_graph_leave(result);
}
