/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes of graphs and their parameters.  Both APIs describe events, host functions, memsets and
 * allocations in the same way.  The runtime names kernels by their stubs.  The driver describes
 * every copy as a three-dimensional one.
 */
#include "client/cudart/api.h"
#include "client/cudart/graph_params.h"
#include "client/cudart/memcpy3d.h"
#include "client/cudart/symbol.h"

_Static_assert(sizeof(struct cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS), "one layout");
_Static_assert(sizeof(struct cudaMemsetParams) == sizeof(CUDA_MEMSET_NODE_PARAMS), "one layout");
_Static_assert(
	sizeof(struct cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS), "one layout");

#define NODE_ARGUMENTS pGraphNode, graph, pDependencies, numDependencies

CKT_RT_API cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
	const cudaGraphNode_t *pDependencies, size_t numDependencies)
{
	CKT_RT_CALL(cuGraphAddEmptyNode(NODE_ARGUMENTS));
}

CKT_RT_API cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
	const cudaGraphNode_t *pDependencies, size_t numDependencies, cudaGraph_t childGraph)
{
	CKT_RT_CALL(cuGraphAddChildGraphNode(NODE_ARGUMENTS, childGraph));
}

CKT_RT_API cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *pGraph)
{
	CKT_RT_CALL(cuGraphChildGraphNodeGetGraph(node, pGraph));
}

CKT_RT_API cudaError_t cudaGraphExecChildGraphNodeSetParams(
	cudaGraphExec_t hGraphExec, cudaGraphNode_t node, cudaGraph_t childGraph)
{
	CKT_RT_CALL(cuGraphExecChildGraphNodeSetParams(hGraphExec, node, childGraph));
}

CKT_RT_API cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
	const cudaGraphNode_t *pDependencies, size_t numDependencies, cudaEvent_t event)
{
	CKT_RT_CALL(cuGraphAddEventRecordNode(NODE_ARGUMENTS, event));
}

CKT_RT_API cudaError_t cudaGraphEventRecordNodeGetEvent(
	cudaGraphNode_t node, cudaEvent_t *event_out)
{
	CKT_RT_CALL(cuGraphEventRecordNodeGetEvent(node, event_out));
}

CKT_RT_API cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event)
{
	CKT_RT_CALL(cuGraphEventRecordNodeSetEvent(node, event));
}

CKT_RT_API cudaError_t cudaGraphExecEventRecordNodeSetEvent(
	cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode, cudaEvent_t event)
{
	CKT_RT_CALL(cuGraphExecEventRecordNodeSetEvent(hGraphExec, hNode, event));
}

CKT_RT_API cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
	const cudaGraphNode_t *pDependencies, size_t numDependencies, cudaEvent_t event)
{
	CKT_RT_CALL(cuGraphAddEventWaitNode(NODE_ARGUMENTS, event));
}

CKT_RT_API cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event_out)
{
	CKT_RT_CALL(cuGraphEventWaitNodeGetEvent(node, event_out));
}

CKT_RT_API cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event)
{
	CKT_RT_CALL(cuGraphEventWaitNodeSetEvent(node, event));
}

CKT_RT_API cudaError_t cudaGraphExecEventWaitNodeSetEvent(
	cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode, cudaEvent_t event)
{
	CKT_RT_CALL(cuGraphExecEventWaitNodeSetEvent(hGraphExec, hNode, event));
}

CKT_RT_API cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
	const cudaGraphNode_t *pDependencies, size_t numDependencies,
	const struct cudaHostNodeParams *pNodeParams)
{
	CKT_RT_CALL(cuGraphAddHostNode(NODE_ARGUMENTS, (const CUDA_HOST_NODE_PARAMS *)pNodeParams));
}

CKT_RT_API cudaError_t cudaGraphHostNodeGetParams(
	cudaGraphNode_t node, struct cudaHostNodeParams *pNodeParams)
{
	CKT_RT_CALL(cuGraphHostNodeGetParams(node, (CUDA_HOST_NODE_PARAMS *)pNodeParams));
}

CKT_RT_API cudaError_t cudaGraphHostNodeSetParams(
	cudaGraphNode_t node, const struct cudaHostNodeParams *pNodeParams)
{
	CKT_RT_CALL(cuGraphHostNodeSetParams(node, (const CUDA_HOST_NODE_PARAMS *)pNodeParams));
}

CKT_RT_API cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t hGraphExec,
	cudaGraphNode_t node, const struct cudaHostNodeParams *pNodeParams)
{
	CKT_RT_CALL(cuGraphExecHostNodeSetParams(
		hGraphExec, node, (const CUDA_HOST_NODE_PARAMS *)pNodeParams));
}

CKT_RT_API cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
	const cudaGraphNode_t *pDependencies, size_t numDependencies,
	const struct cudaMemsetParams *pMemsetParams)
{
	CKT_RT_CALL(cuGraphAddMemsetNode(NODE_ARGUMENTS,
		(const CUDA_MEMSET_NODE_PARAMS *)pMemsetParams, ckt_rt_thread.context));
}

CKT_RT_API cudaError_t cudaGraphMemsetNodeGetParams(
	cudaGraphNode_t node, struct cudaMemsetParams *pNodeParams)
{
	CKT_RT_CALL(cuGraphMemsetNodeGetParams(node, (CUDA_MEMSET_NODE_PARAMS *)pNodeParams));
}

CKT_RT_API cudaError_t cudaGraphMemsetNodeSetParams(
	cudaGraphNode_t node, const struct cudaMemsetParams *pNodeParams)
{
	CKT_RT_CALL(cuGraphMemsetNodeSetParams(node, (const CUDA_MEMSET_NODE_PARAMS *)pNodeParams));
}

CKT_RT_API cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t hGraphExec,
	cudaGraphNode_t node, const struct cudaMemsetParams *pNodeParams)
{
	CKT_RT_CALL(cuGraphExecMemsetNodeSetParams(hGraphExec, node,
		(const CUDA_MEMSET_NODE_PARAMS *)pNodeParams, ckt_rt_thread.context));
}

CKT_RT_API cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
	const cudaGraphNode_t *pDependencies, size_t numDependencies,
	struct cudaMemAllocNodeParams *nodeParams)
{
	CKT_RT_CALL(
		cuGraphAddMemAllocNode(NODE_ARGUMENTS, (CUDA_MEM_ALLOC_NODE_PARAMS *)nodeParams));
}

CKT_RT_API cudaError_t cudaGraphMemAllocNodeGetParams(
	cudaGraphNode_t node, struct cudaMemAllocNodeParams *params_out)
{
	CKT_RT_CALL(cuGraphMemAllocNodeGetParams(node, (CUDA_MEM_ALLOC_NODE_PARAMS *)params_out));
}

CKT_RT_API cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
	const cudaGraphNode_t *pDependencies, size_t numDependencies, void *dptr)
{
	CKT_RT_CALL(cuGraphAddMemFreeNode(NODE_ARGUMENTS, ckt_rt_address(dptr)));
}

CKT_RT_API cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *dptr_out)
{
	CKT_RT_CALL(cuGraphMemFreeNodeGetParams(node, dptr_out));
}

static cudaError_t kernel_params(const struct cudaKernelNodeParams *p, CUDA_KERNEL_NODE_PARAMS *ret)
{
	if (!p)
		return cudaErrorInvalidValue;
	return ckt_rt_kernel_params(&(struct cudaKernelNodeParamsV2){.func = p->func,
					    .gridDim = p->gridDim,
					    .blockDim = p->blockDim,
					    .sharedMemBytes = p->sharedMemBytes,
					    .kernelParams = p->kernelParams,
					    .extra = p->extra},
		ret);
}

CKT_RT_API cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
	const cudaGraphNode_t *pDependencies, size_t numDependencies,
	const struct cudaKernelNodeParams *pNodeParams)
{
	CUDA_KERNEL_NODE_PARAMS driver;
	cudaError_t error = kernel_params(pNodeParams, &driver);
	return error ? ckt_rt_return(error)
		     : ckt_rt_cu(cuGraphAddKernelNode(NODE_ARGUMENTS, &driver));
}

CKT_RT_API cudaError_t cudaGraphKernelNodeSetParams(
	cudaGraphNode_t node, const struct cudaKernelNodeParams *pNodeParams)
{
	CUDA_KERNEL_NODE_PARAMS driver;
	cudaError_t error = kernel_params(pNodeParams, &driver);
	return error ? ckt_rt_return(error) : ckt_rt_cu(cuGraphKernelNodeSetParams(node, &driver));
}

CKT_RT_API cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t hGraphExec,
	cudaGraphNode_t node, const struct cudaKernelNodeParams *pNodeParams)
{
	CUDA_KERNEL_NODE_PARAMS driver;
	cudaError_t error = kernel_params(pNodeParams, &driver);
	return error ? ckt_rt_return(error)
		     : ckt_rt_cu(cuGraphExecKernelNodeSetParams(hGraphExec, node, &driver));
}

CKT_RT_API cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t hDst, cudaGraphNode_t hSrc)
{
	CKT_RT_CALL(cuGraphKernelNodeCopyAttributes(hDst, hSrc));
}

CKT_RT_API cudaError_t cudaGraphKernelNodeGetAttribute(
	cudaGraphNode_t hNode, cudaLaunchAttributeID attr, cudaLaunchAttributeValue *value_out)
{
	CKT_RT_CALL(cuGraphKernelNodeGetAttribute(
		hNode, (CUkernelNodeAttrID)attr, (CUkernelNodeAttrValue *)value_out));
}

CKT_RT_API cudaError_t cudaGraphKernelNodeSetAttribute(
	cudaGraphNode_t hNode, cudaLaunchAttributeID attr, const cudaLaunchAttributeValue *value)
{
	CKT_RT_CALL(cuGraphKernelNodeSetAttribute(
		hNode, (CUkernelNodeAttrID)attr, (const CUkernelNodeAttrValue *)value));
}

/* Translate parameters of memcpy nodes into three-dimensional copies.  All enter. */
static cudaError_t copy_3d(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *ret)
{
	cudaError_t error = ckt_rt_enter();
	if (error)
		return error;
	return p ? ckt_rt_copy_3d(p, ret) : cudaErrorInvalidValue;
}

static cudaError_t copy_1d(
	void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, CUDA_MEMCPY3D *ret)
{
	struct cudaMemcpy3DParms p = {
		.srcPtr = {(void *)(uintptr_t)src, count, count, 1},
		.dstPtr = {dst, count, count, 1},
		.extent = {count, 1, 1},
		.kind = kind,
	};
	return copy_3d(&p, ret);
}

static cudaError_t copy_from_symbol(void *dst, const void *symbol, size_t count, size_t offset,
	enum cudaMemcpyKind kind, CUDA_MEMCPY3D *ret)
{
	CUdeviceptr address;
	cudaError_t error = ckt_rt_symbol(symbol, offset, count, &address);
	if (!error && (kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice))
		error = cudaErrorInvalidMemcpyDirection;
	return error ? error : copy_1d(dst, (const void *)(uintptr_t)address, count, kind, ret);
}

static cudaError_t copy_to_symbol(const void *symbol, const void *src, size_t count, size_t offset,
	enum cudaMemcpyKind kind, CUDA_MEMCPY3D *ret)
{
	CUdeviceptr address;
	cudaError_t error = ckt_rt_symbol(symbol, offset, count, &address);
	if (!error && (kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost))
		error = cudaErrorInvalidMemcpyDirection;
	return error ? error : copy_1d((void *)(uintptr_t)address, src, count, kind, ret);
}

CKT_RT_API cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
	const cudaGraphNode_t *pDependencies, size_t numDependencies,
	const struct cudaMemcpy3DParms *pCopyParams)
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = copy_3d(pCopyParams, &copy);
	return error
		? ckt_rt_return(error)
		: ckt_rt_cu(cuGraphAddMemcpyNode(NODE_ARGUMENTS, &copy, ckt_rt_thread.context));
}

CKT_RT_API cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
	const cudaGraphNode_t *pDependencies, size_t numDependencies, void *dst, const void *src,
	size_t count, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = copy_1d(dst, src, count, kind, &copy);
	return error
		? ckt_rt_return(error)
		: ckt_rt_cu(cuGraphAddMemcpyNode(NODE_ARGUMENTS, &copy, ckt_rt_thread.context));
}

CKT_RT_API cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *pGraphNode,
	cudaGraph_t graph, const cudaGraphNode_t *pDependencies, size_t numDependencies, void *dst,
	const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = copy_from_symbol(dst, symbol, count, offset, kind, &copy);
	return error
		? ckt_rt_return(error)
		: ckt_rt_cu(cuGraphAddMemcpyNode(NODE_ARGUMENTS, &copy, ckt_rt_thread.context));
}

CKT_RT_API cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *pGraphNode,
	cudaGraph_t graph, const cudaGraphNode_t *pDependencies, size_t numDependencies,
	const void *symbol, const void *src, size_t count, size_t offset, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = copy_to_symbol(symbol, src, count, offset, kind, &copy);
	return error
		? ckt_rt_return(error)
		: ckt_rt_cu(cuGraphAddMemcpyNode(NODE_ARGUMENTS, &copy, ckt_rt_thread.context));
}

CKT_RT_API cudaError_t cudaGraphMemcpyNodeSetParams(
	cudaGraphNode_t node, const struct cudaMemcpy3DParms *pNodeParams)
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = copy_3d(pNodeParams, &copy);
	return error ? ckt_rt_return(error) : ckt_rt_cu(cuGraphMemcpyNodeSetParams(node, &copy));
}

CKT_RT_API cudaError_t cudaGraphMemcpyNodeSetParams1D(
	cudaGraphNode_t node, void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = copy_1d(dst, src, count, kind, &copy);
	return error ? ckt_rt_return(error) : ckt_rt_cu(cuGraphMemcpyNodeSetParams(node, &copy));
}

CKT_RT_API cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *dst,
	const void *symbol, size_t count, size_t offset, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = copy_from_symbol(dst, symbol, count, offset, kind, &copy);
	return error ? ckt_rt_return(error) : ckt_rt_cu(cuGraphMemcpyNodeSetParams(node, &copy));
}

CKT_RT_API cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node,
	const void *symbol, const void *src, size_t count, size_t offset, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = copy_to_symbol(symbol, src, count, offset, kind, &copy);
	return error ? ckt_rt_return(error) : ckt_rt_cu(cuGraphMemcpyNodeSetParams(node, &copy));
}

CKT_RT_API cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t hGraphExec,
	cudaGraphNode_t node, const struct cudaMemcpy3DParms *pNodeParams)
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = copy_3d(pNodeParams, &copy);
	return error ? ckt_rt_return(error)
		     : ckt_rt_cu(cuGraphExecMemcpyNodeSetParams(
			       hGraphExec, node, &copy, ckt_rt_thread.context));
}

CKT_RT_API cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t hGraphExec,
	cudaGraphNode_t node, void *dst, const void *src, size_t count, enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = copy_1d(dst, src, count, kind, &copy);
	return error ? ckt_rt_return(error)
		     : ckt_rt_cu(cuGraphExecMemcpyNodeSetParams(
			       hGraphExec, node, &copy, ckt_rt_thread.context));
}

CKT_RT_API cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t hGraphExec,
	cudaGraphNode_t node, void *dst, const void *symbol, size_t count, size_t offset,
	enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = copy_from_symbol(dst, symbol, count, offset, kind, &copy);
	return error ? ckt_rt_return(error)
		     : ckt_rt_cu(cuGraphExecMemcpyNodeSetParams(
			       hGraphExec, node, &copy, ckt_rt_thread.context));
}

CKT_RT_API cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t hGraphExec,
	cudaGraphNode_t node, const void *symbol, const void *src, size_t count, size_t offset,
	enum cudaMemcpyKind kind)
{
	CUDA_MEMCPY3D copy;
	cudaError_t error = copy_to_symbol(symbol, src, count, offset, kind, &copy);
	return error ? ckt_rt_return(error)
		     : ckt_rt_cu(cuGraphExecMemcpyNodeSetParams(
			       hGraphExec, node, &copy, ckt_rt_thread.context));
}
