/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program can do that a replay must bring back: memory whose addresses depend on when the GPU
 * was done, addresses kept in device memory, refusals that steer what comes next, streams that wait
 * for one another, events that are asked for, graphs, and results that steer launches.
 */
#include "phase.h"

enum { STEPS = 60, BLOCKS = 24, STREAMS = 3, WORDS = 4096 };

struct block {
	uint32_t *words;
	size_t count;
	bool pooled;
};

static struct block blocks[BLOCKS];
static cudaStream_t streams[STREAMS];
static cudaEvent_t events[STREAMS];
static uint32_t seed = 7;
static uint64_t sum = 0xcbf29ce484222325ull;

__global__ void fill(uint32_t *words, size_t count, uint32_t value, unsigned rounds)
{
	size_t i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= count)
		return;
	uint32_t x = value + (uint32_t)i;
	for (unsigned r = 0; r < rounds; r++)
		x = x * 1664525u + 1013904223u;
	words[i] = x;
}

/* The address travels through device memory. */
__global__ void link(uint64_t *table, unsigned index, uint32_t *words)
{
	table[index] = (uint64_t)words;
}

__global__ void follow(const uint64_t *table, unsigned index, size_t count, uint32_t *result)
{
	const uint32_t *words = (const uint32_t *)table[index];
	uint32_t total = 0;

	for (size_t i = 0; i < count; i += 97)
		total = total * 31 + words[i];
	*result += total;
}

static void mix(uint64_t value)
{
	sum = (sum ^ value) * 0x100000001b3ull;
}

static void drop(struct block *block, cudaStream_t stream)
{
	if (!block->words)
		return;
	if (block->pooled)
		CHECK(cudaFreeAsync(block->words, stream));
	else
		CHECK(cudaFree(block->words));
	block->words = NULL;
}

static void make(struct block *block, cudaStream_t stream)
{
	block->count = WORDS + random_u32(&seed) % WORDS * (random_u32(&seed) % 8 ? 1 : 256);
	block->pooled = random_u32(&seed) % 2;
	if (block->pooled)
		CHECK(cudaMallocAsync(&block->words, block->count * sizeof *block->words, stream));
	else
		CHECK(cudaMalloc(&block->words, block->count * sizeof *block->words));
}

/* How many pieces the GPU still has decides nothing but the sum. */
static void fill_up(void)
{
	void *pieces[64];
	unsigned count = 0;

	while (count < 64 && cudaMalloc(&pieces[count], (size_t)512 << 20) == cudaSuccess)
		count++;
	mix(count < 64 ? cudaGetLastError() : count);
	while (count)
		CHECK(cudaFree(pieces[--count]));
}

static void run_graph(uint32_t *words, size_t count, uint32_t value, cudaStream_t stream)
{
	cudaGraph_t graph;
	cudaGraphExec_t exec;

	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	fill<<<(unsigned)(count + 255) / 256, 256, 0, stream>>>(words, count, value, 3);
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaGraphExecDestroy(exec));
}

int main(void)
{
	static uint32_t host[WORDS];
	uint64_t *table;
	uint32_t *result, value;

	CHECK(cudaMalloc(&table, BLOCKS * sizeof *table));
	CHECK(cudaMalloc(&result, sizeof *result));
	CHECK(cudaMemset(result, 0, sizeof *result));
	for (unsigned s = 0; s < STREAMS; s++) {
		CHECK(cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking));
		CHECK(cudaEventCreateWithFlags(&events[s], cudaEventDisableTiming));
	}
	for (unsigned step = 0; step < STEPS; step++) {
		unsigned index = random_u32(&seed) % BLOCKS, s = random_u32(&seed) % STREAMS;
		struct block *block = &blocks[index];
		cudaStream_t stream = streams[s];

		drop(block, stream);
		make(block, stream);
		unsigned grid = (unsigned)(block->count + 255) / 256;
		if (step % 7 == 3)
			run_graph(block->words, block->count, step, stream);
		else
			fill<<<grid, 256, 0, stream>>>(block->words, block->count, step, step % 5 ? 1 : 40);
		link<<<1, 1, 0, stream>>>(table, index, block->words);
		CHECK(cudaEventRecord(events[s], stream));
		if (step % 3 == 0)
			while (cudaEventQuery(events[s]) == cudaErrorNotReady)
				usleep(100);
		else if (step % 3 == 1)
			CHECK(cudaStreamSynchronize(stream));
		/* Another stream reads it: only the program knows that it is done. */
		cudaStream_t other = streams[(s + 1) % STREAMS];
		if (step % 3 == 2)
			CHECK(cudaStreamWaitEvent(other, events[s], 0));
		follow<<<1, 1, 0, other>>>(table, index, block->count, result);
		CHECK(cudaMemcpyAsync(&value, result, sizeof value, cudaMemcpyDeviceToHost, other));
		CHECK(cudaStreamSynchronize(other));
		mix(value);
		/* What came back steers what comes next. */
		seed ^= value;
		if (step % 20 == 10)
			fill_up();
		if (step % 10 == 5) {
			CHECK(cudaMemcpy(host, block->words, sizeof host, cudaMemcpyDeviceToHost));
			mix(checksum(host, sizeof host));
		}
		if (step == STEPS / 2)
			phase();
	}
	for (unsigned i = 0; i < BLOCKS; i++)
		drop(&blocks[i], streams[0]);
	CHECK(cudaDeviceSynchronize());
	printf("sum: %016llx\n", (unsigned long long)sum);
	return finish();
}
