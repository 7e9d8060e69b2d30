/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters of nodes of any kind, and queries of parameters.  Kernels are named by their stubs,
 * and copies count elements of their arrays.
 */
#include <string.h>

#include "client/cudart/graph_params.h"
#include "client/cudart/api.h"
#include "client/cudart/array.h"
#include "client/cudart/function.h"
#include "client/cudart/memcpy3d.h"
#include "client/cudart/registration.h"

cudaError_t ckt_rt_kernel_params(
	const struct cudaKernelNodeParamsV2 *p, CUDA_KERNEL_NODE_PARAMS *ret)
{
	*ret = (CUDA_KERNEL_NODE_PARAMS){
		.gridDimX = p->gridDim.x,
		.gridDimY = p->gridDim.y,
		.gridDimZ = p->gridDim.z,
		.blockDimX = p->blockDim.x,
		.blockDimY = p->blockDim.y,
		.blockDimZ = p->blockDim.z,
		.sharedMemBytes = p->sharedMemBytes,
		.kernelParams = p->kernelParams,
		.extra = p->extra,
	};
	return ckt_rt_function(p->func, &ret->func);
}

static cudaError_t params_to_driver(const struct cudaGraphNodeParams *p, CUgraphNodeParams *ret)
{
	CUDA_KERNEL_NODE_PARAMS kernel;
	cudaError_t error = cudaSuccess;
	_Static_assert(sizeof kernel == sizeof ret->kernel && sizeof p->alloc == sizeof ret->alloc,
		"one layout");
	memset(ret, 0, sizeof *ret);
	/* The node types have the same numbers in both APIs. */
	ret->type = (CUgraphNodeType)p->type;
	switch (p->type) {
	case cudaGraphNodeTypeKernel:
		error = ckt_rt_kernel_params(&p->kernel, &kernel);
		memcpy(&ret->kernel, &kernel, sizeof kernel);
		break;
	case cudaGraphNodeTypeMemcpy:
		error = ckt_rt_copy_3d(&p->memcpy.copyParams, &ret->memcpy.copyParams);
		ret->memcpy.copyCtx = ckt_rt_thread.context;
		break;
	case cudaGraphNodeTypeMemset:
		ret->memset.dst = ckt_rt_address(p->memset.dst);
		ret->memset.pitch = p->memset.pitch;
		ret->memset.value = p->memset.value;
		ret->memset.elementSize = p->memset.elementSize;
		ret->memset.width = p->memset.width;
		ret->memset.height = p->memset.height;
		ret->memset.ctx = ckt_rt_thread.context;
		break;
	case cudaGraphNodeTypeHost:
		ret->host.fn = p->host.fn;
		ret->host.userData = p->host.userData;
		break;
	case cudaGraphNodeTypeGraph:
		ret->graph.graph = p->graph.graph;
		ret->graph.ownership = (CUgraphChildGraphNodeOwnership)p->graph.ownership;
		break;
	case cudaGraphNodeTypeEmpty:
		break;
	case cudaGraphNodeTypeWaitEvent:
		ret->eventWait.event = p->eventWait.event;
		break;
	case cudaGraphNodeTypeEventRecord:
		ret->eventRecord.event = p->eventRecord.event;
		break;
	case cudaGraphNodeTypeMemAlloc:
		memcpy(&ret->alloc, &p->alloc, sizeof ret->alloc);
		break;
	case cudaGraphNodeTypeMemFree:
		ret->free.dptr = ckt_rt_address(p->free.dptr);
		break;
	case cudaGraphNodeTypeConditional:
		ret->conditional.handle = p->conditional.handle;
		ret->conditional.type = (CUgraphConditionalNodeType)p->conditional.type;
		ret->conditional.size = p->conditional.size;
		ret->conditional.ctx = ckt_rt_thread.context;
		break;
	default: {
		static bool once;
		error = (cudaError_t)ckt_rt_unsupported("a graph node of this type", &once);
	}
	}
	return error;
}

CKT_RT_API cudaError_t cudaGraphAddNode(cudaGraphNode_t *pGraphNode, cudaGraph_t graph,
	const cudaGraphNode_t *pDependencies, const cudaGraphEdgeData *dependencyData,
	size_t numDependencies, struct cudaGraphNodeParams *nodeParams)
{
	CUgraphNodeParams driver;
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(nodeParams, cudaErrorInvalidValue);
	cudaError_t error = params_to_driver(nodeParams, &driver);
	CKT_RT_REQUIRE(!error, error);
	CUresult result = cuGraphAddNode(pGraphNode, graph, pDependencies,
		(const CUgraphEdgeData *)dependencyData, numDependencies, &driver);
	/*
	 * Return the driver's outputs: the address of an allocation, and the bodies of a
	 * conditional node.
	 */
	if (result == CUDA_SUCCESS && nodeParams->type == cudaGraphNodeTypeMemAlloc)
		nodeParams->alloc.dptr = (void *)(uintptr_t)driver.alloc.dptr;
	if (result == CUDA_SUCCESS && nodeParams->type == cudaGraphNodeTypeConditional)
		nodeParams->conditional.phGraph_out = driver.conditional.phGraph_out;
	return ckt_rt_cu(result);
}

CKT_RT_API cudaError_t cudaGraphNodeSetParams(
	cudaGraphNode_t node, struct cudaGraphNodeParams *nodeParams)
{
	CUgraphNodeParams driver;
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(nodeParams, cudaErrorInvalidValue);
	cudaError_t error = params_to_driver(nodeParams, &driver);
	return error ? ckt_rt_return(error) : ckt_rt_cu(cuGraphNodeSetParams(node, &driver));
}

CKT_RT_API cudaError_t cudaGraphExecNodeSetParams(
	cudaGraphExec_t graphExec, cudaGraphNode_t node, struct cudaGraphNodeParams *nodeParams)
{
	CUgraphNodeParams driver;
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(nodeParams, cudaErrorInvalidValue);
	cudaError_t error = params_to_driver(nodeParams, &driver);
	return error ? ckt_rt_return(error)
		     : ckt_rt_cu(cuGraphExecNodeSetParams(graphExec, node, &driver));
}

CKT_RT_API cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *pHandle_out,
	cudaGraph_t graph, unsigned int defaultLaunchValue, unsigned int flags)
{
	CUgraphConditionalHandle handle;
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(pHandle_out, cudaErrorInvalidValue);
	CUresult result = cuGraphConditionalHandleCreate(
		&handle, graph, ckt_rt_thread.context, defaultLaunchValue, flags);
	if (result == CUDA_SUCCESS)
		*pHandle_out = handle;
	return ckt_rt_cu(result);
}

CKT_RT_API cudaError_t cudaGraphKernelNodeGetParams(
	cudaGraphNode_t node, struct cudaKernelNodeParams *pNodeParams)
{
	CUDA_KERNEL_NODE_PARAMS driver = {0};
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(pNodeParams, cudaErrorInvalidValue);
	CUresult result = cuGraphKernelNodeGetParams(node, &driver);
	CKT_RT_REQUIRE(!result, (cudaError_t)result);
	/* A kernel that the program did not register with the runtime has no stub. */
	const void *stub = ckt_rt_kernel_host(driver.func, driver.kern);
	CKT_RT_REQUIRE(stub, cudaErrorInvalidDeviceFunction);
	*pNodeParams = (struct cudaKernelNodeParams){
		.func = (void *)(uintptr_t)stub,
		.gridDim = {driver.gridDimX, driver.gridDimY, driver.gridDimZ},
		.blockDim = {driver.blockDimX, driver.blockDimY, driver.blockDimZ},
		.sharedMemBytes = driver.sharedMemBytes,
		.kernelParams = driver.kernelParams,
		.extra = driver.extra,
	};
	return cudaSuccess;
}

/* The direction of a copy, from the driver's memory types; an array is on the device. */
static enum cudaMemcpyKind kind_of(CUmemorytype src, CUmemorytype dst)
{
	if (src == CU_MEMORYTYPE_UNIFIED || dst == CU_MEMORYTYPE_UNIFIED)
		return cudaMemcpyDefault;
	if (src == CU_MEMORYTYPE_HOST)
		return dst == CU_MEMORYTYPE_HOST ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
	return dst == CU_MEMORYTYPE_HOST ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

CKT_RT_API cudaError_t cudaGraphMemcpyNodeGetParams(
	cudaGraphNode_t node, struct cudaMemcpy3DParms *pNodeParams)
{
	CUDA_MEMCPY3D d;
	size_t element = 1;
	cudaError_t error = cudaSuccess;
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(pNodeParams, cudaErrorInvalidValue);
	CUresult result = cuGraphMemcpyNodeGetParams(node, &d);
	CKT_RT_REQUIRE(!result, (cudaError_t)result);
	struct cudaMemcpy3DParms p = {.kind = kind_of(d.srcMemoryType, d.dstMemoryType)};
	if (d.srcMemoryType == CU_MEMORYTYPE_ARRAY) {
		p.srcArray = (cudaArray_t)d.srcArray;
		error = ckt_rt_array_element(p.srcArray, &element);
	} else {
		void *pointer = d.srcMemoryType == CU_MEMORYTYPE_HOST
			? (void *)(uintptr_t)d.srcHost
			: (void *)(uintptr_t)d.srcDevice;
		p.srcPtr = (struct cudaPitchedPtr){pointer, d.srcPitch, d.srcPitch, d.srcHeight};
	}
	if (!error && d.dstMemoryType == CU_MEMORYTYPE_ARRAY) {
		p.dstArray = (cudaArray_t)d.dstArray;
		error = ckt_rt_array_element(p.dstArray, &element);
	} else if (!error) {
		void *pointer = d.dstMemoryType == CU_MEMORYTYPE_HOST
			? d.dstHost
			: (void *)(uintptr_t)d.dstDevice;
		p.dstPtr = (struct cudaPitchedPtr){pointer, d.dstPitch, d.dstPitch, d.dstHeight};
	}
	CKT_RT_REQUIRE(!error && element, error ? error : cudaErrorInvalidValue);
	p.srcPos = (struct cudaPos){d.srcXInBytes / element, d.srcY, d.srcZ};
	p.dstPos = (struct cudaPos){d.dstXInBytes / element, d.dstY, d.dstZ};
	p.extent = (struct cudaExtent){d.WidthInBytes / element, d.Height, d.Depth};
	*pNodeParams = p;
	return cudaSuccess;
}
