/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host threads on several streams that never stop, the mid point included: each stirs its own memory on its stream, adds to a counter
 * that all share and looks at what came back, while the main thread waits to be let go.
 */
#include "phase.h"
#include <atomic>
#include <pthread.h>

#define THREADS 4

struct member {
	pthread_t thread;
	unsigned id, rounds, wrong;
	uint64_t sum;
};

static std::atomic<bool> stop;
static std::atomic<unsigned> ready;
__device__ unsigned counter;

__global__ void stir(unsigned *data, unsigned n, unsigned salt)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		data[i] = (data[i] ^ salt) * 2654435761u + i;
	if (i == 0)
		atomicAdd(&counter, 1u);
}

static void *work(void *opaque)
{
	struct member *m = (struct member *)opaque;
	unsigned n = 700 + 41 * m->id, *host = (unsigned *)malloc(n * 4ul), *d;
	cudaStream_t stream;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMalloc(&d, n * 4ul));
	do {
		uint64_t sum;

		for (unsigned i = 0; i < n; i++)
			host[i] = i * m->id;
		CHECK(cudaMemcpyAsync(d, host, n * 4ul, cudaMemcpyHostToDevice, stream));
		for (unsigned k = 0; k < 3; k++)
			stir<<<(n + 63) / 64, 64, 0, stream>>>(d, n, k + m->id);
		CHECK(cudaMemcpyAsync(host, d, n * 4ul, cudaMemcpyDeviceToHost, stream));
		CHECK(cudaStreamSynchronize(stream));
		sum = checksum(host, n * 4ul);
		m->wrong += m->rounds && sum != m->sum;
		m->sum = sum;
		if (m->rounds++ == 0)
			ready++;
		usleep(2000);
	} while (!stop);
	CHECK(cudaFree(d));
	CHECK(cudaStreamDestroy(stream));
	free(host);
	return NULL;
}

int main(void)
{
	static struct member members[THREADS];
	unsigned count = 0, rounds = 0;

	for (unsigned t = 0; t < THREADS; t++) {
		members[t].id = t;
		if (pthread_create(&members[t].thread, NULL, work, &members[t]) != 0)
			return 1;
	}
	while (ready < THREADS)
		usleep(1000);
	phase();
	stop = true;
	for (unsigned t = 0; t < THREADS; t++) {
		pthread_join(members[t].thread, NULL);
		rounds += members[t].rounds;
		printf("thread %u: %016llx\n", t, (unsigned long long)members[t].sum);
		EXPECT(members[t].wrong == 0);
	}
	/* Each launch once, and none twice. */
	CHECK(cudaMemcpyFromSymbol(&count, counter, sizeof(count)));
	EXPECT(count == rounds * 3);
	return finish();
}
