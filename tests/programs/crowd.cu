/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hundreds of host threads, in waves: each works on its default stream or one of its own, and they end in any order, some without giving
 * back what they made, some from deep inside a call of pthread_exit().  What ended threads leave behind must not add up or be missed.
 */
#include "phase.h"

#include <atomic>
#include <pthread.h>

enum { THREADS = 300, WAVES = 3, N = 512 };

__device__ unsigned total;

__global__ void work(unsigned *data, unsigned n, unsigned salt)
{
	for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
		data[i] = data[i] * 5 + salt;
	if (threadIdx.x == 0)
		atomicAdd(&total, salt);
}

static std::atomic<unsigned> wrong, done;

static void leave(unsigned t)
{
	done++;
	if (t % 3 == 0)
		pthread_exit(NULL);
}

static void *member(void *opaque)
{
	unsigned t = (unsigned)(size_t)opaque, host[N], *data;
	cudaStream_t stream = t % 4 == 0 ? cudaStreamPerThread : t % 4 == 1 ? cudaStreamLegacy : NULL;
	cudaEvent_t event;
	bool own = t % 4 > 1;

	if (own)
		CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	CHECK(cudaMallocAsync(&data, sizeof(host), stream));
	for (unsigned i = 0; i < N; i++)
		host[i] = i + t;
	CHECK(cudaMemcpyAsync(data, host, sizeof(host), cudaMemcpyHostToDevice, stream));
	work<<<1, 64, 0, stream>>>(data, N, t);
	CHECK(cudaMemcpyAsync(host, data, sizeof(host), cudaMemcpyDeviceToHost, stream));
	CHECK(cudaEventRecord(event, stream));
	CHECK(cudaEventSynchronize(event));
	for (unsigned i = 0; i < N; i++)
		wrong += host[i] != (i + t) * 5 + t;
	CHECK(cudaFreeAsync(data, stream));
	/* Every fifth leaves its stream and event to the end of the program. */
	if (t % 5) {
		CHECK(cudaEventDestroy(event));
		if (own)
			CHECK(cudaStreamDestroy(stream));
	}
	leave(t);
	return NULL;
}

static void wave(void)
{
	static pthread_t thread[THREADS];
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 256 << 10);
	for (unsigned t = 0; t < THREADS; t++)
		if (pthread_create(&thread[t], &small, member, (void *)(size_t)t))
			abort();
	/* Joined from the last to the first, the others detached. */
	for (unsigned t = THREADS; t-- > 0;)
		if (t % 7 == 0)
			pthread_detach(thread[t]);
		else
			pthread_join(thread[t], NULL);
	while (done % THREADS)
		usleep(1000);
}

int main(void)
{
	unsigned got = 0, expected = 0;

	for (unsigned w = 0; w < WAVES; w++) {
		if (w == 1)
			phase();
		wave();
		for (unsigned t = 0; t < THREADS; t++)
			expected += t;
	}
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemcpyFromSymbol(&got, total, 4));
	EXPECT(got == expected);
	EXPECT(wrong == 0);
	printf("%u threads\n", done.load());
	return finish();
}
