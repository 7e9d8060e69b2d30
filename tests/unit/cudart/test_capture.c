/* client/cudart/capture.c: the capture of streams is the driver's, and so are its answers; the soft GPU captures nothing. */
#include "files.h"

static void test_streams(void)
{
	cudaStream_t stream;
	cudaGraph_t graph = (cudaGraph_t)77;
	enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusInvalidated;
	unsigned long long id = 77;
	uint32_t *memory = files_memory(4, 0);
	MUST(cudaStreamCreate(&stream), OK);
	const cudaStream_t streams[] = {stream, NULL, cudaStreamPerThread};
	for (size_t i = 0; i < COUNT(streams); i++) {
		status = cudaStreamCaptureStatusInvalidated;
		IS(cudaStreamIsCapturing(streams[i], &status), OK);
		IS(status, cudaStreamCaptureStatusNone);
		status = cudaStreamCaptureStatusInvalidated;
		IS(cudaStreamGetCaptureInfo(streams[i], &status, &id, NULL, NULL, NULL, NULL), OK);
		IS(status, cudaStreamCaptureStatusNone);
		IS(cudaGetLastError(), OK);
		IS(cudaStreamBeginCapture(streams[i], cudaStreamCaptureModeGlobal), cudaErrorNotSupported);
		IS(cudaGetLastError(), cudaErrorNotSupported);
		IS(cudaStreamEndCapture(streams[i], &graph), cudaErrorNotSupported);
		IS(cudaStreamUpdateCaptureDependencies(streams[i], NULL, NULL, 0, cudaStreamSetCaptureDependencies), cudaErrorNotSupported);
		IS(cudaGetLastError(), cudaErrorNotSupported);
	}
	/* Nothing is recorded: work goes on as it did. */
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
