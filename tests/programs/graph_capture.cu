/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture: one stream, fork and join, replay with changing host memory, threads and modes, and what a capture does not allow. */
#include "phase.h"

#include <thread>

__global__ void scale(unsigned *p, unsigned n, unsigned by)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] = p[i] * by + i;
}

__global__ void sum(const unsigned *p, unsigned n, unsigned *total)
{
	for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
		atomicAdd(total, p[i]);
}

static const unsigned n = 1000;
static cudaStream_t s, t;

static void name(const char *what, cudaError_t error)
{
	printf("%s: %s\n", what, cudaGetErrorName(error));
	(void)cudaGetLastError();
}

static void count(cudaGraph_t graph)
{
	size_t nodes = 0, roots = 0, edges = 0;

	CHECK(cudaGraphGetNodes(graph, NULL, &nodes));
	CHECK(cudaGraphGetRootNodes(graph, NULL, &roots));
	CHECK(cudaGraphGetEdges(graph, NULL, NULL, NULL, &edges));
	printf("nodes %zu roots %zu edges %zu\n", nodes, roots, edges);
}

/* Each begins a capture, does what is not allowed, and ends it. */
static void misuse(void)
{
	cudaGraph_t graph;
	cudaStream_t blocking;
	cudaEvent_t e, outside;
	cudaStreamCaptureStatus status;
	void *p;
	unsigned *d;

	CHECK(cudaStreamCreate(&blocking));
	CHECK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
	CHECK(cudaEventCreateWithFlags(&outside, cudaEventDisableTiming));
	CHECK(cudaMalloc(&d, n * 4));
	CHECK(cudaEventRecord(outside, t));
	CHECK(cudaDeviceSynchronize());
	name("begin on the legacy stream", cudaStreamBeginCapture(0, cudaStreamCaptureModeGlobal));
	name("end without begin", cudaStreamEndCapture(s, &graph));

	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	name("begin twice", cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	name("end", cudaStreamEndCapture(s, &graph));
	count(graph);
	CHECK(cudaGraphDestroy(graph));

	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	name("synchronize", cudaStreamSynchronize(s));
	CHECK(cudaStreamIsCapturing(s, &status));
	printf("status %d\n", status);
	scale<<<1, 1, 0, s>>>(d, 1, 1);
	name("launch when invalidated", cudaGetLastError());
	name("end", cudaStreamEndCapture(s, &graph));
	printf("graph %s\n", graph ? "there" : "null");

	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	name("query", cudaStreamQuery(s));
	name("end", cudaStreamEndCapture(s, &graph));

	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	CHECK(cudaEventRecord(e, s));
	name("query a captured event", cudaEventQuery(e));
	name("end", cudaStreamEndCapture(s, &graph));

	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	name("wait for an event from outside", cudaStreamWaitEvent(s, outside, 0));
	name("end", cudaStreamEndCapture(s, &graph));

	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	CHECK(cudaEventRecord(e, s));
	CHECK(cudaStreamWaitEvent(t, e, 0));
	scale<<<1, 1, 0, t>>>(d, 1, 1);
	name("end on another stream", cudaStreamEndCapture(t, &graph));
	name("end", cudaStreamEndCapture(s, &graph));

	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	CHECK(cudaEventRecord(e, s));
	CHECK(cudaStreamWaitEvent(t, e, 0));
	scale<<<1, 1, 0, t>>>(d, 1, 1);
	name("end unjoined", cudaStreamEndCapture(s, &graph));

	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	name("malloc, global", cudaMalloc(&p, 64));
	name("end", cudaStreamEndCapture(s, &graph));

	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
	name("malloc, relaxed", cudaMalloc(&p, 64));
	name("end", cudaStreamEndCapture(s, &graph));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaFree(p));

	CHECK(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
	scale<<<1, 1>>>(d, 1, 1);
	name("launch on the legacy stream", cudaGetLastError());
	name("end", cudaStreamEndCapture(blocking, &graph));

	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
	std::thread([&] { name("end on another thread", cudaStreamEndCapture(s, &graph)); }).join();
	name("end", cudaStreamEndCapture(s, &graph));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaFree(d));
	CHECK(cudaEventDestroy(e));
	CHECK(cudaEventDestroy(outside));
	CHECK(cudaStreamDestroy(blocking));
}

int main()
{
	unsigned *host, *out, *device, *other, *total, expect;
	cudaEvent_t fork, join;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaStreamCaptureStatus status;
	unsigned long long id;

	CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
	CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
	CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
	CHECK(cudaMallocHost(&host, n * 4));
	CHECK(cudaMallocHost(&out, 64));
	CHECK(cudaMalloc(&device, n * 4));
	CHECK(cudaMalloc(&other, n * 4));
	CHECK(cudaMalloc(&total, 8));

	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	CHECK(cudaMemcpyAsync(device, host, n * 4, cudaMemcpyHostToDevice, s));
	CHECK(cudaEventRecord(fork, s));
	CHECK(cudaStreamWaitEvent(t, fork, 0));
	CHECK(cudaStreamIsCapturing(t, &status));
	EXPECT(status == cudaStreamCaptureStatusActive);
	scale<<<(n + 127) / 128, 128, 0, s>>>(device, n, 3);
	CHECK(cudaMemsetAsync(total, 0, 8, t));
	CHECK(cudaMemcpyAsync(other, device, n * 4, cudaMemcpyDeviceToDevice, t));
	CHECK(cudaEventRecord(join, t));
	CHECK(cudaStreamWaitEvent(s, join, 0));
	sum<<<1, 32, 0, s>>>(device, n, total);
	CHECK(cudaMemcpyAsync(out, total, 8, cudaMemcpyDeviceToHost, s));
	{
		cudaGraph_t seen;
		const cudaGraphNode_t *nodes;
		size_t dependencies;

		CHECK(cudaStreamGetCaptureInfo(s, &status, &id, &seen, &nodes, NULL, &dependencies));
		printf("status %d, behind %zu nodes\n", status, dependencies);
		EXPECT(id != 0 && seen != NULL);
	}
	phase();
	CHECK(cudaStreamEndCapture(s, &graph));
	count(graph);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (unsigned k = 0; k < 4; k++) {
		for (unsigned i = 0; i < n; i++)
			host[i] = i * (k + 1);
		out[0] = 0;
		CHECK(cudaGraphLaunch(exec, s));
		if (k == 2)
			phase();
		CHECK(cudaStreamSynchronize(s));
		expect = 0;
		for (unsigned i = 0; i < n; i++)
			expect += i * (k + 1) * 3 + i;
		printf("total %u\n", out[0]);
		EXPECT(out[0] == expect);
	}
	/* Many launches, one wait; then the graph is gone and the executable one still works. */
	CHECK(cudaGraphDestroy(graph));
	for (unsigned k = 0; k < 50; k++)
		CHECK(cudaGraphLaunch(exec, k & 1 ? s : t));
	CHECK(cudaDeviceSynchronize());
	EXPECT(out[0] == expect);
	CHECK(cudaGraphExecDestroy(exec));
	misuse();

	/* After all that, capture works as before. */
	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
	std::thread([&] {
		void *p;

		CHECK(cudaMalloc(&p, 64));
		CHECK(cudaFree(p));
	}).join();
	scale<<<(n + 127) / 128, 128, 0, s>>>(device, n, 1);
	CHECK(cudaStreamEndCapture(s, &graph));
	count(graph);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphLaunch(exec, s));
	CHECK(cudaStreamSynchronize(s));
	CHECK(cudaMemcpy(host, device, n * 4, cudaMemcpyDeviceToHost));
	print_checksum("device", host, n * 4);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	return finish();
}
