/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture. */
#include "client/cudart/api.h"

_Static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData), "one layout");

CKT_RT_API cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	CKT_RT_CALL(cuStreamBeginCapture(stream, (CUstreamCaptureMode)mode));
}

CKT_RT_API cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
	const cudaGraphNode_t *dependencies, const cudaGraphEdgeData *dependencyData,
	size_t numDependencies, enum cudaStreamCaptureMode mode)
{
	CKT_RT_CALL(cuStreamBeginCaptureToGraph(stream, graph, dependencies,
		(const CUgraphEdgeData *)dependencyData, numDependencies,
		(CUstreamCaptureMode)mode));
}

CKT_RT_API cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *pGraph)
{
	CKT_RT_CALL(cuStreamEndCapture(stream, pGraph));
}

CKT_RT_API cudaError_t cudaStreamIsCapturing(
	cudaStream_t stream, enum cudaStreamCaptureStatus *pCaptureStatus)
{
	CKT_RT_CALL(cuStreamIsCapturing(stream, (CUstreamCaptureStatus *)pCaptureStatus));
}

CKT_RT_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
	enum cudaStreamCaptureStatus *captureStatus_out, unsigned long long *id_out,
	cudaGraph_t *graph_out, const cudaGraphNode_t **dependencies_out,
	const cudaGraphEdgeData **edgeData_out, size_t *numDependencies_out)
{
	cuuint64_t id = 0;
	CKT_RT_ENTER();
	CUresult result = cuStreamGetCaptureInfo(stream, (CUstreamCaptureStatus *)captureStatus_out,
		id_out ? &id : NULL, graph_out, dependencies_out,
		(const CUgraphEdgeData **)edgeData_out, numDependencies_out);
	if (result == CUDA_SUCCESS && id_out)
		*id_out = id;
	return ckt_rt_cu(result);
}

CKT_RT_API cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream,
	cudaGraphNode_t *dependencies, const cudaGraphEdgeData *dependencyData,
	size_t numDependencies, unsigned int flags)
{
	CKT_RT_CALL(cuStreamUpdateCaptureDependencies(stream, dependencies,
		(const CUgraphEdgeData *)dependencyData, numDependencies, flags));
}

/* The mode is a property of the thread, so this needs no context. */
CKT_RT_API cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	CKT_RT_DRIVER();
	return ckt_rt_cu(cuThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)mode));
}
