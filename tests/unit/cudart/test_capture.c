/* SPDX-License-Identifier: Apache-2.0 */
/* client/cudart/capture.c: the capture of streams is the driver's, and so are its answers. */
#include "files.h"

static void none(cudaStream_t stream)
{
	enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusInvalidated;
	unsigned long long id = 77;
	IS(cudaStreamIsCapturing(stream, &status), OK);
	IS(status, cudaStreamCaptureStatusNone);
	status = cudaStreamCaptureStatusInvalidated;
	IS(cudaStreamGetCaptureInfo(stream, &status, &id, NULL, NULL, NULL, NULL), OK);
	IS(status, cudaStreamCaptureStatusNone);
	IS(cudaGetLastError(), OK);
}

static void test_streams(void)
{
	cudaStream_t stream;
	enum cudaStreamCaptureStatus status;
	uint32_t *memory = files_memory(4, 0);
	MUST(cudaStreamCreate(&stream), OK);
	const cudaStream_t streams[] = {stream, cudaStreamPerThread};
	for (size_t i = 0; i < COUNT(streams); i++) {
		cudaGraph_t graph = NULL, seen = NULL;
		cudaGraphNode_t node;
		const cudaGraphNode_t *last = NULL;
		const cudaGraphEdgeData *edges = NULL;
		unsigned long long id = 0;
		size_t count = 77;
		none(streams[i]);
		IS(cudaStreamUpdateCaptureDependencies(
			   streams[i], NULL, NULL, 0, cudaStreamSetCaptureDependencies),
			cudaErrorIllegalState);
		IS(cudaGetLastError(), cudaErrorIllegalState);
		MUST(cudaStreamBeginCapture(streams[i], cudaStreamCaptureModeGlobal), OK);
		IS(cudaMemsetAsync(memory, 5, 16, streams[i]), OK);
		IS(cudaStreamIsCapturing(streams[i], &status), OK);
		IS(status, cudaStreamCaptureStatusActive);
		IS(cudaStreamGetCaptureInfo(streams[i], &status, &id, &seen, &last, &edges, &count),
			OK);
		YES(id != 0 && seen != NULL);
		IS(count, 1);
		IS(cudaStreamUpdateCaptureDependencies(
			   streams[i], NULL, NULL, 0, cudaStreamSetCaptureDependencies),
			OK);
		IS(cudaStreamGetCaptureInfo(streams[i], &status, &id, &seen, &last, &edges, &count),
			OK);
		IS(count, 0);
		IS(cudaStreamEndCapture(streams[i], &graph), OK);
		YES(graph == seen);
		count = 1;
		IS(cudaGraphGetNodes(graph, &node, &count), OK);
		IS(count, 1);
		none(streams[i]);
		/* It was recorded, not done. */
		IS(files_word(memory), 0);
		IS(cudaGraphDestroy(graph), OK);
	}
	/* The legacy stream cannot be captured. */
	none(NULL);
	IS(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeGlobal),
		cudaErrorStreamCaptureUnsupported);
	IS(cudaGetLastError(), cudaErrorStreamCaptureUnsupported);
	none(NULL);
	/* Work goes on as it did. */
	IS(cudaMemsetAsync(memory, 5, 16, stream), OK);
	IS(cudaStreamSynchronize(stream), OK);
	IS(files_word(memory), 0x05050505);
	IS(cudaStreamDestroy(stream), OK);
	YES(cudaStreamIsCapturing(stream, &status) != OK);
	IS(cudaFree(memory), OK);
	cudaGetLastError();
}

static void test_modes(void)
{
	enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	/* A thread's, handed back by the exchange. */
	IS(cudaThreadExchangeStreamCaptureMode(&mode), OK);
	IS(mode, cudaStreamCaptureModeGlobal);
	IS(cudaThreadExchangeStreamCaptureMode(&mode), OK);
	IS(mode, cudaStreamCaptureModeRelaxed);
	cudaGetLastError();
}

UNIT_SUITE(capture, {"streams", test_streams}, {"modes", test_modes})
