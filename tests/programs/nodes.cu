/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPUs of two servers as devices of one program: memory, kernels, symbols, streams and events of each, copies between them, and what there
 * is none of.  With "lost" as its argument it waits at its mid point until the last device's server is gone, and goes on with the first.
 */
#include "phase.h"

enum { N = 300007 };

__device__ unsigned salt;

__global__ void fill(unsigned *data, unsigned n)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		data[i] = i * 2654435761u + salt;
}

static unsigned *data[2], *copy[2], *host;
static cudaStream_t streams[2];
static cudaEvent_t events[2];
static int devices[2];

static unsigned wrong(unsigned with)
{
	unsigned count = 0;

	for (unsigned i = 0; i < N; i++)
		count += host[i] != i * 2654435761u + with;
	return count;
}

static void launch(int p, unsigned with)
{
	CHECK(cudaSetDevice(devices[p]));
	CHECK(cudaMemcpyToSymbol(salt, &with, sizeof(with)));
	fill<<<(N + 255) / 256, 256, 0, streams[p]>>>(data[p], N);
	CHECK(cudaEventRecord(events[p], streams[p]));
}

static void settle(int count)
{
	for (int p = 0; p < count; p++) {
		CHECK(cudaSetDevice(devices[p]));
		CHECK(cudaMalloc(&data[p], N * 4));
		CHECK(cudaMalloc(&copy[p], N * 4));
		CHECK(cudaStreamCreateWithFlags(&streams[p], cudaStreamNonBlocking));
		CHECK(cudaEventCreate(&events[p]));
		launch(p, 1000 + p);
	}
}

/* Each has its own; then the other's, behind the other's kernel. */
static void exchange(unsigned first)
{
	for (int p = 0; p < 2; p++) {
		cudaPointerAttributes attributes;
		unsigned got = 0;

		CHECK(cudaSetDevice(devices[p]));
		CHECK(cudaMemcpyFromSymbol(&got, salt, sizeof(got)));
		EXPECT(got == first + p);
		CHECK(cudaStreamWaitEvent(streams[p], events[1 - p], 0));
		CHECK(cudaMemcpyPeerAsync(copy[p], devices[p], data[1 - p], devices[1 - p], N * 4, streams[p]));
		CHECK(cudaMemcpyAsync(host, copy[p], N * 4, cudaMemcpyDeviceToHost, streams[p]));
		CHECK(cudaStreamSynchronize(streams[p]));
		EXPECT(wrong(first + 1 - p) == 0);
		CHECK(cudaMemcpy(copy[p], data[1 - p], N * 4, cudaMemcpyDefault));
		CHECK(cudaMemcpy(host, copy[p], N * 4, cudaMemcpyDefault));
		EXPECT(wrong(first + 1 - p) == 0);
		print_checksum("copy", host, N * 4);
		CHECK(cudaPointerGetAttributes(&attributes, data[1 - p]));
		EXPECT(attributes.type == cudaMemoryTypeDevice && attributes.device == devices[1 - p]);
	}
}

static void what_there_is_not(void)
{
	int can = 7;
	void *pinned, *address;
	float milliseconds;

	CHECK(cudaSetDevice(devices[0]));
	CHECK(cudaDeviceCanAccessPeer(&can, devices[0], devices[1]));
	if (can)
		return; /* Of one machine. */
	EXPECT_ERROR(cudaDeviceEnablePeerAccess(devices[1], 0), cudaErrorPeerAccessUnsupported);
	EXPECT_ERROR(cudaMemset(data[1], 0, 4), cudaErrorInvalidValue);
	EXPECT_ERROR(cudaEventElapsedTime(&milliseconds, events[0], events[1]), cudaErrorInvalidResourceHandle);
	CHECK(cudaMallocHost(&pinned, 4096));
	EXPECT_ERROR(cudaHostGetDevicePointer(&address, pinned, 0), cudaErrorNotSupported);
	CHECK(cudaFreeHost(pinned));
	cudaGetLastError();
}

/* A captured graph lives at the server it was captured for. */
static void graph(int p, unsigned with)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CHECK(cudaSetDevice(devices[p]));
	CHECK(cudaMemset(data[p], 0, N * 4));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaStreamBeginCapture(streams[p], cudaStreamCaptureModeGlobal));
	fill<<<(N + 255) / 256, 256, 0, streams[p]>>>(data[p], N);
	CHECK(cudaStreamEndCapture(streams[p], &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaSetDevice(devices[1 - p]));
	CHECK(cudaGraphLaunch(exec, streams[p]));
	CHECK(cudaStreamSynchronize(streams[p]));
	CHECK(cudaMemcpy(host, data[p], N * 4, cudaMemcpyDeviceToHost));
	EXPECT(wrong(with) == 0);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

static void count_up(void *count)
{
	__atomic_fetch_add((unsigned *)count, 1, __ATOMIC_RELAXED);
}

static int lost(void)
{
	void *memory;

	phase();
	CHECK(cudaSetDevice(devices[1]));
	printf("its device: %s\n", cudaGetErrorName(cudaMemcpy(host, data[1], N * 4, cudaMemcpyDeviceToHost)));
	printf("again: %s\n", cudaGetErrorName(cudaMalloc(&memory, 16)));
	printf("to it: %s\n", cudaGetErrorName(cudaMemcpyPeer(copy[1], devices[1], data[0], devices[0], N * 4)));
	CHECK(cudaSetDevice(devices[0]));
	cudaGetLastError();
	CHECK(cudaStreamSynchronize(streams[0]));
	launch(0, 3000);
	CHECK(cudaStreamSynchronize(streams[0]));
	CHECK(cudaMemcpy(host, data[0], N * 4, cudaMemcpyDeviceToHost));
	EXPECT(wrong(3000) == 0);
	return finish();
}

/* With one device there is nothing to exchange; what it has lives through the mid point all the same. */
static int one(void)
{
	settle(1);
	phase();
	CHECK(cudaStreamSynchronize(streams[0]));
	CHECK(cudaMemcpy(host, data[0], N * 4, cudaMemcpyDeviceToHost));
	EXPECT(wrong(1000) == 0);
	graph(0, 1000);
	return finish();
}

int main(int argc, char **argv)
{
	int count;
	unsigned called[2] = {0, 0};

	CHECK(cudaGetDeviceCount(&count));
	printf("%d devices\n", count);
	devices[1] = count - 1;
	host = (unsigned *)malloc(N * 4);
	if (count < 2)
		return one();
	settle(2);
	if (argc > 1 && strcmp(argv[1], "lost") == 0)
		return lost();
	phase();
	exchange(1000);
	what_there_is_not();
	for (int p = 0; p < 2; p++)
		launch(p, 2000 + p);
	exchange(2000);
	for (int p = 0; p < 2; p++)
		graph(p, 2000 + p);
	for (int i = 0; i < 20; i++)
		CHECK(cudaLaunchHostFunc(streams[i % 2], count_up, &called[i % 2]));
	for (int p = 0; p < 2; p++) {
		CHECK(cudaStreamSynchronize(streams[p]));
		EXPECT(called[p] == 10);
		CHECK(cudaFree(data[p]));
		CHECK(cudaFree(copy[p]));
		CHECK(cudaStreamDestroy(streams[p]));
		CHECK(cudaEventDestroy(events[p]));
	}
	return finish();
}
