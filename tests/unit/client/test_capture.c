/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudacommon/capture.c: stream capture: its rules are applied here, what is captured does not
 * travel, what spoils it is told.
 */
#include "graphs.h"

static void test_capture(void)
{
	CUstream stream, other;
	CUdeviceptr memory = memory_of(4096, 0);
	CUgraph graph = NULL;
	CUevent event;
	CUstreamCaptureStatus status;
	size_t count = 0;
	relay_add();
	IS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	IS(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	IS(cuEventCreate(&event, 0), CUDA_SUCCESS);
	relay_mark();
	IS(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
	IS(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_ERROR_ILLEGAL_STATE);
	IS(cuMemsetD32Async(memory, 5, 1, stream), CUDA_SUCCESS);
	IS(cuEventRecord(event, stream), CUDA_SUCCESS);
	/* the other stream is captured too */
	IS(cuStreamWaitEvent(other, event, 0), CUDA_SUCCESS);
	IS(cuStreamIsCapturing(other, &status), CUDA_SUCCESS);
	IS(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
	IS(cuMemsetD32Async(memory + 4, 6, 1, other), CUDA_SUCCESS);
	IS(cuEventRecord(event, other), CUDA_SUCCESS);
	IS(cuStreamWaitEvent(stream, event, 0), CUDA_SUCCESS);
	IS(cuStreamEndCapture(other, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	IS(cuStreamIsCapturing(stream, &status), CUDA_SUCCESS);
	if (status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
		IS(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
		IS(cuGraphGetNodes(graph, NULL, &count), CUDA_SUCCESS);
		IS(count, 2);
		IS(cuGraphDestroy(graph), CUDA_SUCCESS);
	} else {
		IS(cuStreamEndCapture(stream, &graph) != CUDA_SUCCESS, true);
	}
	relay_settle();
	IS(relay_batched + relay_waited, 0);
	IS(word_at(memory), 0); /* nothing has run */
	/* Waiting for a stream that is captured spoils it. */
	IS(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
	IS(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	IS(cuStreamIsCapturing(stream, &status), CUDA_SUCCESS);
	IS(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	IS(cuMemsetD32Async(memory, 5, 1, stream), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	IS(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	CU_ASSERT_PTR_NULL(graph);
	IS(cuStreamEndCapture(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
	/* never the legacy stream */
	IS(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_RELAXED),
		CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	IS(cuStreamBeginCapture(stream, (CUstreamCaptureMode)9), BAD);
	IS(cuMemsetD32Async(memory, 5, 1, stream), CUDA_SUCCESS); /* as ever */
	IS(cuStreamSynchronize(stream), CUDA_SUCCESS);
	IS(word_at(memory), 5);
	IS(cuEventDestroy(event), CUDA_SUCCESS);
	IS(cuStreamDestroy(stream), CUDA_SUCCESS);
	IS(cuStreamDestroy(other), CUDA_SUCCESS);
	IS(cuMemFree(memory), CUDA_SUCCESS);
}

UNIT_SUITE(capture, {"capture", test_capture})
