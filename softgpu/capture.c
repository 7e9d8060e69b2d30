/* Stream capture, as far as there is none: no stream is ever capturing, and the thread's mode is kept for whoever asks. */
#include "softgpu/soft.h"

static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

/* Checks the stream. */
static CUresult enter_stream(CUstream handle)
{
	struct ckt_soft_context *context;
	struct ckt_soft_stream *stream;
	CUresult result = ckt_soft_enter(&context);
	if (result == CUDA_SUCCESS)
		result = ckt_soft_stream_get(context, handle, &stream);
	if (result == CUDA_SUCCESS)
		ckt_soft_object_put(&stream->object);
	return result;
}

CUresult CUDAAPI cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
	CUresult result = enter_stream(hStream);
	if (result != CUDA_SUCCESS)
		return result;
	if (!captureStatus)
		return CUDA_ERROR_INVALID_VALUE;
	*captureStatus = CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out,
					   CUgraph *graph_out, const CUgraphNode **dependencies_out, const CUgraphEdgeData **edgeData_out,
					   size_t *numDependencies_out)
{
	/* What belongs to a capture is only written while there is one. */
	(void)id_out, (void)graph_out, (void)dependencies_out, (void)edgeData_out, (void)numDependencies_out;
	return cuStreamIsCapturing(hStream, captureStatus_out);
}

CUresult CUDAAPI cuStreamGetCaptureInfo_v2(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out,
					   CUgraph *graph_out, const CUgraphNode **dependencies_out, size_t *numDependencies_out)
{
	return cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, graph_out, dependencies_out, NULL, numDependencies_out);
}

CUresult CUDAAPI cuStreamGetCaptureInfo(CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out)
{
	return cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, NULL, NULL, NULL, NULL);
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	CUresult result = ckt_soft_initialized();
	if (result != CUDA_SUCCESS)
		return result;
	if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	CUstreamCaptureMode before = thread_mode;
	thread_mode = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}
