/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that wait for the GPU by themselves while the GPU waits for a host function: the first launch of a kernel, launches beyond what a stream's
 * queue takes, memory and handles given back.  Natively all of them end as soon as the host function has returned.
 */
#include "held.h"

#include <thread>

enum { LAUNCHES = 3000, MANY = 40000 };

template <int N> __global__ void first(unsigned *p)
{
	*p += N;
}

__global__ void add(unsigned *p, unsigned v)
{
	*p += v;
}

static void quick(void *data)
{
	(*(unsigned *)data)++;
	held_calls++;
}

static void add_host(void *data)
{
	unsigned *p = (unsigned *)data;
	p[1] = p[0] * 10;
	held_calls++;
}

static unsigned value(const unsigned *device)
{
	unsigned v = 0;
	CHECK(cudaMemcpy(&v, device, sizeof v, cudaMemcpyDeviceToHost));
	return v;
}

static void kernels(cudaStream_t a, cudaStream_t b, unsigned *device)
{
	unsigned counter = 0;
	hold(a, &counter);
	first<1><<<1, 1, 0, b>>>(device);
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
	printf("first launch: %u, host functions %u\n", value(device), counter);

	/* The turn of the second, and of those behind it, comes while the call waits. */
	hold(a, &counter);
	for (int i = 0; i < 3; i++)
		CHECK(cudaLaunchHostFunc(a, quick, &counter));
	first<2><<<1, 1, 0, a>>>(device);
	CHECK(cudaStreamSynchronize(a));
	printf("behind four: %u, host functions %u\n", value(device), counter);

	/* More than a queue takes, and more than a connection takes before any of it is done. */
	for (int launches : {LAUNCHES, MANY}) {
		hold(a, &counter);
		for (int i = 0; i < launches; i++)
			add<<<1, 1, 0, a>>>(device, 1);
		CHECK(cudaStreamSynchronize(a));
		printf("%d launches: %u, host functions %u\n", launches, value(device), counter);
	}
}

/* What the stream has copied is there when the function begins, however late its turn is told of. */
static void data(cudaStream_t a, cudaStream_t b, unsigned *device)
{
	unsigned counter = 0, *host;
	CHECK(cudaMallocHost(&host, 2 * sizeof *host));
	memset(host, 0, 2 * sizeof *host);
	add<<<1, 1, 0, b>>>(device, 1);
	first<3><<<1, 1, 0, b>>>(device);
	CHECK(cudaMemcpyAsync(host, device, sizeof *host, cudaMemcpyDeviceToHost, b));
	CHECK(cudaLaunchHostFunc(b, add_host, host));
	first<4><<<1, 1, 0, a>>>(device + 1);
	CHECK(cudaDeviceSynchronize());
	EXPECT(host[1] == host[0] * 10);
	printf("copied before: %u, %u\n", host[0], host[1]);
	CHECK(cudaFreeHost(host));
	EXPECT(!counter);
}

static void memory(cudaStream_t a, unsigned *device)
{
	unsigned counter = 0, *block, *pinned, *own = (unsigned *)aligned_alloc(4096, 65536);
	cudaEvent_t event;
	cudaStream_t other;
	CHECK(cudaMalloc(&block, 1 << 20));
	CHECK(cudaMallocHost(&pinned, 1 << 20));
	CHECK(cudaHostRegister(own, 65536, cudaHostRegisterDefault));
	CHECK(cudaEventCreate(&event));
	CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	hold(a, &counter);
	add<<<1, 1, 0, a>>>(block, 1);
	CHECK(cudaEventRecord(event, a));
	CHECK(cudaEventDestroy(event));
	CHECK(cudaStreamDestroy(other));
	CHECK(cudaFree(block));
	hold(a, &counter);
	CHECK(cudaFreeHost(pinned));
	hold(a, &counter);
	CHECK(cudaHostUnregister(own));
	free(own);
	CHECK(cudaMalloc(&block, 1 << 20));
	CHECK(cudaFree(block));
	CHECK(cudaDeviceSynchronize());
	printf("memory: %u, host functions %u\n", value(device), counter);
}

static void graph(cudaStream_t a, cudaStream_t b, unsigned *device)
{
	unsigned counter = 0;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal));
	CHECK(cudaLaunchHostFunc(a, held_slow, &counter));
	add<<<1, 1, 0, a>>>(device, 5);
	CHECK(cudaLaunchHostFunc(a, quick, &counter));
	CHECK(cudaStreamEndCapture(a, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	held_begin();
	CHECK(cudaGraphLaunch(exec, a));
	held_let_go();
	first<5><<<1, 1, 0, b>>>(device + 1);
	CHECK(cudaDeviceSynchronize());
	printf("graph: %u, host functions %u\n", value(device), counter);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
}

/* Each with a stream of its own, and both wait at a time. */
template <int N> static void one_thread(unsigned *device, unsigned *result)
{
	cudaStream_t s;
	CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	for (int i = 0; i < 3; i++) {
		CHECK(cudaLaunchHostFunc(s, held_slow, result));
		add<<<1, 1, 0, s>>>(device, 1);
	}
	first<N><<<1, 1, 0, s>>>(device);
	CHECK(cudaStreamSynchronize(s));
	CHECK(cudaStreamDestroy(s));
}

int main()
{
	unsigned *device, counts[2] = {0, 0};
	cudaStream_t a, b;
	CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
	CHECK(cudaMalloc(&device, 4 * sizeof *device));
	CHECK(cudaMemset(device, 0, 4 * sizeof *device));
	add<<<1, 1>>>(device, 0);
	CHECK(cudaDeviceSynchronize());
	kernels(a, b, device);
	data(a, b, device);
	phase();
	memory(a, device);
	graph(a, b, device);
	std::thread one(one_thread<6>, device + 2, &counts[0]), two(one_thread<7>, device + 3, &counts[1]);
	one.join();
	two.join();
	printf("threads: %u and %u, host functions %u and %u\n", value(device + 2), value(device + 3), counts[0], counts[1]);
	printf("host functions in all: %d\n", held_calls.load());
	CHECK(cudaFree(device));
	return finish();
}
