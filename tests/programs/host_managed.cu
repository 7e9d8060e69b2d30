/* SPDX-License-Identifier: Apache-2.0 */
/* Managed memory in host functions, on streams and in graphs: their stream stands still meanwhile, and what they wrote is there behind them. */
#include "phase.h"

#include <atomic>

__global__ void add(unsigned *p, unsigned n, unsigned v)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] += v;
}

__global__ void sum(const unsigned *p, unsigned n, unsigned *total)
{
	for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
		atomicAdd(total, p[i]);
}

static const unsigned n = 40000;
static unsigned *managed, *other;
static unsigned long long seen[8];
static unsigned calls;
static std::atomic<int> entered, go_on;

/* Reads all of it and writes some. */
static void touch(void *data)
{
	unsigned long long s = 0;

	(void)data;
	for (unsigned i = 0; i < n; i++)
		s += managed[i];
	seen[calls++] = s;
	for (unsigned i = 0; i < n; i += 100)
		managed[i] += 1000;
}

static void touch_later(void *data)
{
	entered = 1;
	while (!go_on)
		usleep(1000);
	touch(data);
}

static unsigned long long expected(unsigned kernels, unsigned functions)
{
	return (unsigned long long)n * kernels + (unsigned long long)((n + 99) / 100) * 1000 * functions;
}

static void run(unsigned flags)
{
	cudaStream_t s, t;
	unsigned kernels = 0, total;

	calls = 0;
	memset(managed, 0, n * 4);
	memset(other, 0, 256);
	CHECK(cudaStreamCreateWithFlags(&s, flags));
	CHECK(cudaStreamCreateWithFlags(&t, flags));
	for (unsigned k = 0; k < 3; k++) {
		add<<<(n + 127) / 128, 128, 0, s>>>(managed, n, 1);
		kernels++;
		CHECK(cudaLaunchHostFunc(s, touch, NULL));
	}
	sum<<<1, 32, 0, s>>>(managed, n, other);
	CHECK(cudaStreamSynchronize(s));
	for (unsigned k = 0; k < 3; k++)
		EXPECT(seen[k] == expected(k + 1, k));
	total = *other;
	printf("stream: %llu %llu %llu, then %u\n", seen[0], seen[1], seen[2], total);
	EXPECT(total == (unsigned)expected(3, 3));

	/* While one waits, the program writes managed memory, launches elsewhere, and lets it go on. */
	entered = go_on = 0;
	add<<<(n + 127) / 128, 128, 0, s>>>(managed, n, 1);
	CHECK(cudaStreamSynchronize(s));
	other[1] = 5;
	CHECK(cudaLaunchHostFunc(s, touch_later, NULL));
	while (!entered)
		usleep(1000);
	add<<<1, 32, 0, t>>>(other, 2, 7);
	go_on = 1;
	CHECK(cudaDeviceSynchronize());
	EXPECT(seen[3] == expected(4, 3));
	printf("elsewhere: %u %u, seen %llu\n", other[0], other[1], seen[3]);
	EXPECT(other[0] == total + 7 && other[1] == 12);
	CHECK(cudaStreamDestroy(s));
	CHECK(cudaStreamDestroy(t));
}

int main()
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaStream_t s;

	CHECK(cudaMallocManaged(&managed, n * 4));
	CHECK(cudaMallocManaged(&other, 256));
	run(cudaStreamDefault);
	phase();
	run(cudaStreamNonBlocking);

	CHECK(cudaStreamCreate(&s));
	memset(managed, 0, n * 4);
	memset(other, 0, 256);
	calls = 0;
	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	add<<<(n + 127) / 128, 128, 0, s>>>(managed, n, 1);
	CHECK(cudaLaunchHostFunc(s, touch, NULL));
	add<<<(n + 127) / 128, 128, 0, s>>>(managed, n, 1);
	CHECK(cudaLaunchHostFunc(s, touch, NULL));
	sum<<<1, 32, 0, s>>>(managed, n, other);
	CHECK(cudaStreamEndCapture(s, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (unsigned k = 0; k < 3; k++) {
		CHECK(cudaGraphLaunch(exec, s));
		/* A touch that comes early waits for the graph, whose host functions get what they want meanwhile. */
		if (k == 1)
			(void)*(volatile unsigned *)other;
		CHECK(cudaStreamSynchronize(s));
		printf("graph: %u of %u\n", managed[0], managed[1]);
		EXPECT(managed[1] == 2 * (k + 1) && managed[0] == 2 * (k + 1) + 2000 * (k + 1));
	}
	phase();
	for (unsigned k = 0; k < 6; k++)
		EXPECT(seen[k] == expected(k + 1, k));
	printf("seen last %llu\n", seen[5]);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaStreamDestroy(s));
	CHECK(cudaFree(managed));
	CHECK(cudaFree(other));
	return finish();
}
