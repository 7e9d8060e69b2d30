/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs: their structure, instantiation and launch.  Handles of graphs, nodes and executable
 * graphs are the driver's handles.
 */
#include "client/cudart/api.h"
#include "client/cudart/variants.h"

_Static_assert(
	sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS), "one layout");
_Static_assert(
	sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo), "one layout");

CKT_RT_API cudaError_t cudaGraphCreate(cudaGraph_t *pGraph, unsigned int flags)
{
	CKT_RT_CALL(cuGraphCreate(pGraph, flags));
}

CKT_RT_API cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	CKT_RT_CALL(cuGraphDestroy(graph));
}

CKT_RT_API cudaError_t cudaGraphClone(cudaGraph_t *pGraphClone, cudaGraph_t originalGraph)
{
	CKT_RT_CALL(cuGraphClone(pGraphClone, originalGraph));
}

CKT_RT_API cudaError_t cudaGraphNodeFindInClone(
	cudaGraphNode_t *pNode, cudaGraphNode_t originalNode, cudaGraph_t clonedGraph)
{
	CKT_RT_CALL(cuGraphNodeFindInClone(pNode, originalNode, clonedGraph));
}

CKT_RT_API cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *pType)
{
	CKT_RT_ENTER();
	CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
	CUresult result = cuGraphNodeGetType(node, pType ? &type : NULL);
	/*
	 * Only the driver API has memory operation nodes: the runtime has no name for their type.
	 */
	if (!result && type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
		result = CUDA_ERROR_UNKNOWN;
	else if (!result)
		*pType = (enum cudaGraphNodeType)type;
	return ckt_rt_cu(result);
}

CKT_RT_API cudaError_t cudaGraphGetNodes(
	cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *numNodes)
{
	CKT_RT_CALL(cuGraphGetNodes(graph, nodes, numNodes));
}

CKT_RT_API cudaError_t cudaGraphGetRootNodes(
	cudaGraph_t graph, cudaGraphNode_t *pRootNodes, size_t *pNumRootNodes)
{
	CKT_RT_CALL(cuGraphGetRootNodes(graph, pRootNodes, pNumRootNodes));
}

CKT_RT_API cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from,
	cudaGraphNode_t *to, cudaGraphEdgeData *edgeData, size_t *numEdges)
{
	CKT_RT_CALL(cuGraphGetEdges(graph, from, to, (CUgraphEdgeData *)edgeData, numEdges));
}

CKT_RT_API cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node,
	cudaGraphNode_t *pDependencies, cudaGraphEdgeData *edgeData, size_t *pNumDependencies)
{
	CKT_RT_CALL(cuGraphNodeGetDependencies(
		node, pDependencies, (CUgraphEdgeData *)edgeData, pNumDependencies));
}

CKT_RT_API cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node,
	cudaGraphNode_t *pDependentNodes, cudaGraphEdgeData *edgeData, size_t *pNumDependentNodes)
{
	CKT_RT_CALL(cuGraphNodeGetDependentNodes(
		node, pDependentNodes, (CUgraphEdgeData *)edgeData, pNumDependentNodes));
}

CKT_RT_API cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
	const cudaGraphNode_t *to, const cudaGraphEdgeData *edgeData, size_t numDependencies)
{
	CKT_RT_CALL(cuGraphAddDependencies(
		graph, from, to, (const CUgraphEdgeData *)edgeData, numDependencies));
}

CKT_RT_API cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
	const cudaGraphNode_t *to, const cudaGraphEdgeData *edgeData, size_t numDependencies)
{
	CKT_RT_CALL(cuGraphRemoveDependencies(
		graph, from, to, (const CUgraphEdgeData *)edgeData, numDependencies));
}

CKT_RT_API cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node)
{
	CKT_RT_CALL(cuGraphDestroyNode(node));
}

CKT_RT_API cudaError_t cudaGraphInstantiate(
	cudaGraphExec_t *pGraphExec, cudaGraph_t graph, unsigned long long flags)
{
	CKT_RT_CALL(cuGraphInstantiate(pGraphExec, graph, flags));
}

CKT_RT_API cudaError_t cudaGraphInstantiateWithFlags(
	cudaGraphExec_t *pGraphExec, cudaGraph_t graph, unsigned long long flags)
{
	CKT_RT_CALL(cuGraphInstantiate(pGraphExec, graph, flags));
}

CKT_RT_API cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *pGraphExec,
	cudaGraph_t graph, cudaGraphInstantiateParams *instantiateParams)
{
	CKT_RT_CALL(cuGraphInstantiateWithParams(
		pGraphExec, graph, (CUDA_GRAPH_INSTANTIATE_PARAMS *)instantiateParams));
}

CKT_RT_API cudaError_t cudaGraphInstantiateWithParams_ptsz(cudaGraphExec_t *pGraphExec,
	cudaGraph_t graph, cudaGraphInstantiateParams *instantiateParams)
{
	CKT_RT_REQUIRE(instantiateParams, cudaErrorInvalidValue);
	cudaStream_t given = instantiateParams->uploadStream;
	if (!given)
		instantiateParams->uploadStream = cudaStreamPerThread;
	cudaError_t error = cudaGraphInstantiateWithParams(pGraphExec, graph, instantiateParams);
	instantiateParams->uploadStream = given;
	return error;
}

CKT_RT_API cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t graphExec, unsigned long long *flags)
{
	cuuint64_t driver;
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(flags, cudaErrorInvalidValue);
	CUresult result = cuGraphExecGetFlags(graphExec, &driver);
	if (result == CUDA_SUCCESS)
		*flags = driver;
	return ckt_rt_cu(result);
}

CKT_RT_API cudaError_t cudaGraphExecUpdate(
	cudaGraphExec_t hGraphExec, cudaGraph_t hGraph, cudaGraphExecUpdateResultInfo *resultInfo)
{
	CKT_RT_CALL(
		cuGraphExecUpdate(hGraphExec, hGraph, (CUgraphExecUpdateResultInfo *)resultInfo));
}

CKT_RT_API cudaError_t cudaGraphUpload(cudaGraphExec_t graphExec, cudaStream_t stream)
{
	CKT_RT_CALL(cuGraphUpload(graphExec, stream));
}

CKT_RT_API cudaError_t cudaGraphLaunch(cudaGraphExec_t graphExec, cudaStream_t stream)
{
	CKT_RT_CALL(cuGraphLaunch(graphExec, stream));
}

CKT_RT_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graphExec)
{
	CKT_RT_CALL(cuGraphExecDestroy(graphExec));
}

CKT_RT_API cudaError_t cudaGraphNodeSetEnabled(
	cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode, unsigned int isEnabled)
{
	CKT_RT_CALL(cuGraphNodeSetEnabled(hGraphExec, hNode, isEnabled));
}

CKT_RT_API cudaError_t cudaGraphNodeGetEnabled(
	cudaGraphExec_t hGraphExec, cudaGraphNode_t hNode, unsigned int *isEnabled)
{
	CKT_RT_CALL(cuGraphNodeGetEnabled(hGraphExec, hNode, isEnabled));
}

CKT_RT_API cudaError_t cudaGraphDebugDotPrint(
	cudaGraph_t graph, const char *path, unsigned int flags)
{
	CKT_RT_CALL(cuGraphDebugDotPrint(graph, path, flags));
}

CKT_RT_API cudaError_t cudaUserObjectCreate(cudaUserObject_t *object_out, void *ptr,
	cudaHostFn_t destroy, unsigned int initialRefcount, unsigned int flags)
{
	CKT_RT_CALL(cuUserObjectCreate(object_out, ptr, destroy, initialRefcount, flags));
}

CKT_RT_API cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count)
{
	CKT_RT_CALL(cuUserObjectRetain(object, count));
}

CKT_RT_API cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count)
{
	CKT_RT_CALL(cuUserObjectRelease(object, count));
}

CKT_RT_API cudaError_t cudaGraphRetainUserObject(
	cudaGraph_t graph, cudaUserObject_t object, unsigned int count, unsigned int flags)
{
	CKT_RT_CALL(cuGraphRetainUserObject(graph, object, count, flags));
}

CKT_RT_API cudaError_t cudaGraphReleaseUserObject(
	cudaGraph_t graph, cudaUserObject_t object, unsigned int count)
{
	CKT_RT_CALL(cuGraphReleaseUserObject(graph, object, count));
}
