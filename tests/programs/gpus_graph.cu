/* SPDX-License-Identifier: Apache-2.0 */
/* A graph with work on two GPUs: captured across streams of both, cloned, updated, launched again and again. */
#include "gpus.h"

enum { N = 1 << 15 };

__global__ void step(unsigned *to, const unsigned *from, unsigned n, unsigned salt)
{
	for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		to[i] = from[i] * 3 + salt + i;
}

static unsigned *data[2], *copy[2], *host;
static cudaStream_t stream[2];
static cudaEvent_t fork_event, join_event;

/* Device 0 works, device 1 takes its result over and works on, and hands the result back. */
static cudaGraph_t capture(unsigned salt)
{
	cudaGraph_t graph;

	CHECK(cudaSetDevice(0));
	CHECK(cudaStreamBeginCapture(stream[0], cudaStreamCaptureModeGlobal));
	step<<<16, 128, 0, stream[0]>>>(data[0], data[0], N, salt);
	CHECK(cudaEventRecord(fork_event, stream[0]));
	CHECK(cudaSetDevice(1));
	CHECK(cudaStreamWaitEvent(stream[1], fork_event, 0));
	CHECK(cudaMemcpyAsync(copy[1], data[0], N * 4, cudaMemcpyDefault, stream[1]));
	step<<<16, 128, 0, stream[1]>>>(data[1], copy[1], N, salt + 1);
	CHECK(cudaEventRecord(join_event, stream[1]));
	CHECK(cudaSetDevice(0));
	CHECK(cudaStreamWaitEvent(stream[0], join_event, 0));
	CHECK(cudaMemcpyAsync(copy[0], data[1], N * 4, cudaMemcpyDefault, stream[0]));
	step<<<16, 128, 0, stream[0]>>>(data[0], copy[0], N, salt + 2);
	CHECK(cudaStreamEndCapture(stream[0], &graph));
	return graph;
}

static void reference(unsigned *values, unsigned salt)
{
	for (unsigned r = 0; r < 3; r++)
		for (unsigned i = 0; i < N; i++)
			values[i] = values[i] * 3 + salt + r + i;
}

int main(void)
{
	cudaGraph_t graph, clone, other;
	cudaGraphExec_t exec, second;
	cudaGraphExecUpdateResultInfo info;
	unsigned *expected = (unsigned *)calloc(N, 4);
	size_t nodes;

	need_two_gpus();
	host = (unsigned *)malloc(N * 4);
	for (int d = 0; d < 2; d++) {
		CHECK(cudaSetDevice(d));
		CHECK(cudaMalloc(&data[d], N * 4));
		CHECK(cudaMalloc(&copy[d], N * 4));
		CHECK(cudaMemset(data[d], 0, N * 4));
		CHECK(cudaStreamCreateWithFlags(&stream[d], cudaStreamNonBlocking));
		CHECK(cudaDeviceEnablePeerAccess(1 - d, 0));
		CHECK(cudaDeviceSynchronize());
	}
	/* A copy that names two devices cannot be captured. */
	CHECK(cudaStreamBeginCapture(stream[1], cudaStreamCaptureModeGlobal));
	EXPECT_ERROR(cudaMemcpyPeerAsync(copy[1], 1, data[0], 0, N * 4, stream[1]), cudaErrorStreamCaptureUnsupported);
	EXPECT_ERROR(cudaStreamEndCapture(stream[1], &graph), cudaErrorStreamCaptureInvalidated);
	cudaGetLastError();
	CHECK(cudaSetDevice(0));
	CHECK(cudaEventCreateWithFlags(&fork_event, cudaEventDisableTiming));
	CHECK(cudaSetDevice(1));
	CHECK(cudaEventCreateWithFlags(&join_event, cudaEventDisableTiming));
	graph = capture(5);
	CHECK(cudaGraphGetNodes(graph, NULL, &nodes));
	printf("%zu nodes\n", nodes);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphClone(&clone, graph));
	CHECK(cudaGraphInstantiate(&second, clone, 0));
	for (int i = 0; i < 5; i++) {
		CHECK(cudaGraphLaunch(i % 2 ? second : exec, stream[0]));
		reference(expected, 5);
	}

	phase();

	CHECK(cudaStreamSynchronize(stream[0]));
	CHECK(cudaMemcpy(host, data[0], N * 4, cudaMemcpyDefault));
	EXPECT(memcmp(host, expected, N * 4) == 0);
	CHECK(cudaGraphLaunch(exec, stream[0]));
	CHECK(cudaGraphLaunch(second, stream[0]));
	reference(expected, 5);
	reference(expected, 5);
	/* New parameters for the same shape; and launched into a stream of the other device. */
	other = capture(77);
	CHECK(cudaGraphExecUpdate(exec, other, &info));
	CHECK(cudaStreamSynchronize(stream[0]));
	CHECK(cudaSetDevice(1));
	CHECK(cudaGraphLaunch(exec, stream[1]));
	reference(expected, 77);
	CHECK(cudaStreamSynchronize(stream[1]));
	CHECK(cudaMemcpy(host, data[0], N * 4, cudaMemcpyDefault));
	EXPECT(memcmp(host, expected, N * 4) == 0);
	print_checksum("data", host, N * 4);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphExecDestroy(second));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaGraphDestroy(clone));
	CHECK(cudaGraphDestroy(other));
	return finish();
}
