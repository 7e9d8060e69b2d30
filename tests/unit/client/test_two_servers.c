/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/memory/two_servers.c: copies, waits and graphs where two servers have a part in it.
 */
#include <stdlib.h>
#include <string.h>

#include "pair.h"

/* Words that tell their place. */
static uint32_t *numbered(size_t size, uint32_t first)
{
	uint32_t *words = malloc(size);
	for (size_t i = 0; i < size / 4; i++)
		words[i] = first + (uint32_t)i;
	return words;
}

static void test_copies(void)
{
	/* Less than a piece, and more than one. */
	static const size_t sizes[] = {4, 4096, (4 << 20) + 4};
	CUstream streams[2];
	for (int d = 0; d < 2; d++) {
		use(d);
		IS(cuStreamCreate(&streams[d], CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	}
	use(0);
	for (size_t s = 0; s < COUNT(sizes); s++) {
		size_t size = sizes[s];
		uint32_t *words = numbered(size, 77), *back = malloc(size);
		CUdeviceptr a = memory_with(size, 1), b;
		use(1);
		b = memory_with(size, 2);
		use(0);
		/* Up on the other's stream, over to there, and down on this one's. */
		IS(cuMemcpyHtoDAsync(a, words, size, streams[1]), CUDA_SUCCESS);
		IS(cuMemcpyPeerAsync(b, contexts[1], a, contexts[0], size, streams[0]),
			CUDA_SUCCESS);
		memset(back, 0, size);
		IS(cuMemcpyDtoHAsync(back, b, size, streams[0]), CUDA_SUCCESS);
		IS(memcmp(words, back, size), 0);
		IS(cuMemsetD32(a, 3, size / 4), CUDA_SUCCESS);
		IS(cuMemcpyPeer(a, contexts[0], b, contexts[1], size), CUDA_SUCCESS);
		IS(cuMemcpyDtoH(back, a, size), CUDA_SUCCESS);
		IS(memcmp(words, back, size), 0);
		/* The pointers alone say where they are. */
		IS(cuMemsetD32(a, 4, size / 4), CUDA_SUCCESS);
		IS(cuMemcpy(b, a, size), CUDA_SUCCESS);
		IS(words_not(b, size, 4), 0);
		IS(cuMemcpyDtoD(b, a, size + (8 << 20)), CUDA_ERROR_INVALID_VALUE);
		IS(cuMemcpyDtoDAsync(b + 4, a, size, streams[0]), CUDA_ERROR_INVALID_VALUE);
		IS(cuMemFree(a), CUDA_SUCCESS);
		IS(cuMemFree(b), CUDA_SUCCESS);
		free(words);
		free(back);
	}
	for (int d = 0; d < 2; d++)
		IS(cuStreamDestroy(streams[d]), CUDA_SUCCESS);
}

static void test_rows(void)
{
	enum { WIDTH = 4 << 20, FROM = WIDTH + 512, TO = WIDTH + 1024, HEIGHT = 3 };
	CUdeviceptr a = memory_with(FROM * HEIGHT, 5), b;
	use(1);
	b = memory_with(TO * HEIGHT, 6);
	use(0);
	for (unsigned row = 0; row < HEIGHT; row++)
		IS(cuMemsetD32(a + row * FROM, row + 10, WIDTH / 4), CUDA_SUCCESS);
	CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = a,
		.srcPitch = FROM,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = b,
		.dstPitch = TO,
		.WidthInBytes = WIDTH,
		.Height = HEIGHT};
	IS(cuMemcpy2D(&copy), CUDA_SUCCESS);
	for (unsigned row = 0; row < HEIGHT; row++) {
		IS(words_not(b + row * TO, WIDTH, row + 10), 0);
		IS(words_not(b + row * TO + WIDTH, TO - WIDTH, 6), 0);
	}
	/* Narrow rows go many at once. */
	copy.WidthInBytes = 8;
	copy.srcPitch = copy.dstPitch = 512;
	copy.Height = 9000;
	IS(cuMemsetD32(a, 99, 512 * 9000 / 4), CUDA_SUCCESS);
	IS(cuMemcpy2D(&copy), CUDA_SUCCESS);
	IS(words_not(b + 512 * 8999, 8, 99), 0);
	YES(words_not(b + 512 * 8999 + 8, 8, 99) == 2);
	copy.Height = 1 << 20;
	IS(cuMemcpy2D(&copy), CUDA_ERROR_INVALID_VALUE);
	IS(cuMemFree(a), CUDA_SUCCESS);
	IS(cuMemFree(b), CUDA_SUCCESS);
}

/* What waits for an event of another server begins when that is done. */
static void test_events(void)
{
	CUstream streams[2];
	CUevent events[2];
	CUdeviceptr memory[2];
	float ms;
	enum { SIZE = 64 << 10, ROUNDS = 20 };
	for (int d = 0; d < 2; d++) {
		use(d);
		IS(cuStreamCreate(&streams[d], CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
		IS(cuEventCreate(&events[d], 0), CUDA_SUCCESS);
		memory[d] = memory_with(SIZE, 0);
	}
	use(0);
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		int d = (int)round % 2;
		IS(cuMemsetD32Async(memory[d], round, SIZE / 4, streams[d]), CUDA_SUCCESS);
		IS(cuEventRecord(events[d], streams[d]), CUDA_SUCCESS);
		IS(cuStreamWaitEvent(streams[1 - d], events[d], 0), CUDA_SUCCESS);
		IS(cuMemcpyPeerAsync(memory[1 - d], contexts[1 - d], memory[d], contexts[d], SIZE,
			   streams[1 - d]),
			CUDA_SUCCESS);
		IS(words_not(memory[1 - d], SIZE, round), 0);
	}
	IS(cuEventElapsedTime(&ms, events[0], events[1]), CUDA_ERROR_INVALID_HANDLE);
	for (int d = 0; d < 2; d++) {
		IS(cuStreamDestroy(streams[d]), CUDA_SUCCESS);
		IS(cuEventDestroy(events[d]), CUDA_SUCCESS);
		IS(cuMemFree(memory[d]), CUDA_SUCCESS);
	}
}

static void test_graphs(void)
{
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec;
	CUstream streams[2];
	CUdeviceptr memory[2];
	CUevent event;
	for (int d = 0; d < 2; d++) {
		use(d);
		IS(cuStreamCreate(&streams[d], CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
		memory[d] = memory_with(4096, 0);
	}
	IS(cuEventCreate(&event, 0), CUDA_SUCCESS);
	/* Of one server, made and launched while the other's device is current. */
	CUDA_MEMSET_NODE_PARAMS fill = {
		.dst = memory[1], .value = 7, .elementSize = 4, .width = 1024, .height = 1};
	MUST(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
	IS(cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, contexts[1]), CUDA_SUCCESS);
	use(0);
	MUST(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
	IS(cuGraphLaunch(exec, streams[1]), CUDA_SUCCESS);
	IS(cuStreamSynchronize(streams[1]), CUDA_SUCCESS);
	IS(words_not(memory[1], 4096, 7), 0);
	IS(cuGraphLaunch(exec, streams[0]), CUDA_ERROR_NOT_SUPPORTED);
	IS(cuGraphExecDestroy(exec), CUDA_SUCCESS);
	/* Of two. */
	fill.dst = memory[0];
	IS(cuGraphAddMemsetNode(&node, graph, NULL, 0, &fill, contexts[0]), CUDA_SUCCESS);
	IS(cuGraphInstantiate(&exec, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
	IS(cuGraphDestroy(graph), CUDA_SUCCESS);
	/* Nor does a capture get there. */
	IS(cuEventRecord(event, streams[1]), CUDA_SUCCESS);
	IS(cuStreamBeginCapture(streams[0], CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
	IS(cuStreamWaitEvent(streams[0], event, 0), CUDA_ERROR_NOT_SUPPORTED);
	IS(cuMemcpyDtoDAsync(memory[0], memory[1], 4096, streams[0]), CUDA_ERROR_NOT_SUPPORTED);
	CUresult ended = cuStreamEndCapture(streams[0], &graph);
	if (!ended)
		IS(cuGraphDestroy(graph), CUDA_SUCCESS);
	for (int d = 0; d < 2; d++) {
		IS(cuStreamDestroy(streams[d]), CUDA_SUCCESS);
		IS(cuMemFree(memory[d]), CUDA_SUCCESS);
	}
	IS(cuEventDestroy(event), CUDA_SUCCESS);
}

static void count_up(void *data)
{
	__atomic_fetch_add((unsigned *)data, 1, __ATOMIC_RELAXED);
}

static void test_host_functions(void)
{
	enum { EACH = 30 };
	CUstream streams[2];
	unsigned counts[2] = {0};
	for (int d = 0; d < 2; d++) {
		use(d);
		IS(cuStreamCreate(&streams[d], CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
	}
	use(0);
	for (int i = 0; i < EACH; i++)
		for (int d = 0; d < 2; d++)
			IS(cuLaunchHostFunc(streams[d], count_up, &counts[d]), CUDA_SUCCESS);
	for (int d = 0; d < 2; d++) {
		IS(cuStreamSynchronize(streams[d]), CUDA_SUCCESS);
		IS(__atomic_load_n(&counts[d], __ATOMIC_RELAXED), EACH);
		IS(cuStreamDestroy(streams[d]), CUDA_SUCCESS);
	}
}

/* Copies have pinned memory of everybody; kernels have it of nobody. */
static void test_host_memory(void)
{
	enum { SIZE = 1 << 20 };
	void *pinned;
	CUdeviceptr address, memory[2], to[2], managed;
	MUST(cuMemHostAlloc(&pinned, SIZE, CU_MEMHOSTALLOC_PORTABLE), CUDA_SUCCESS);
	IS(cuMemHostGetDevicePointer(&address, pinned, 0), CUDA_ERROR_NOT_SUPPORTED);
	for (int d = 0; d < 2; d++) {
		use(d);
		memory[d] = memory_with(SIZE, 20 + (uint32_t)d);
		to[d] = memory_with(SIZE, 1);
	}
	use(0);
	for (int d = 0; d < 2; d++) {
		IS(cuMemcpyDtoHAsync(pinned, memory[d], SIZE, NULL), CUDA_SUCCESS);
		IS(cuCtxSynchronize(), CUDA_SUCCESS);
		IS(((uint32_t *)pinned)[SIZE / 4 - 1], 20 + (uint32_t)d);
		IS(cuMemcpyHtoD(to[1 - d], pinned, SIZE), CUDA_SUCCESS);
		IS(words_not(to[1 - d], SIZE, 20 + (uint32_t)d), 0);
	}
	/* Managed memory is its device's, and a copy away for the others. */
	use(1);
	MUST(cuMemAllocManaged(&managed, SIZE, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
	use(0);
	for (unsigned i = 0; i < SIZE / 4; i++)
		((uint32_t *)(uintptr_t)managed)[i] = 31;
	IS(cuMemcpyDtoD(memory[0], managed, SIZE), CUDA_SUCCESS);
	IS(words_not(memory[0], SIZE, 31), 0);
	use(1);
	IS(cuMemsetD32(managed, 32, SIZE / 4), CUDA_SUCCESS);
	use(0);
	IS(((uint32_t *)(uintptr_t)managed)[SIZE / 4 - 1], 32);
	IS(cuMemFree(managed), CUDA_SUCCESS);
	for (int d = 0; d < 2; d++) {
		IS(cuMemFree(memory[d]), CUDA_SUCCESS);
		IS(cuMemFree(to[d]), CUDA_SUCCESS);
	}
	IS(cuMemFreeHost(pinned), CUDA_SUCCESS);
}

UNIT_SUITE(between, {"copies", test_copies}, {"rows", test_rows}, {"events", test_events},
	{"graphs", test_graphs}, {"host functions", test_host_functions},
	{"host memory", test_host_memory})
