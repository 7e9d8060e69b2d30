/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that work on two GPUs at once: each thread has its own current device, whatever the others do. */
#include "gpus.h"

#include <pthread.h>

enum { THREADS = 8, ROUNDS = 6, N = 20000 };

__device__ unsigned salt;

__global__ void mix(unsigned *data, unsigned n)
{
	for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		data[i] = data[i] * 31 + salt + i;
}

static unsigned *data[THREADS];
static unsigned sums[THREADS];

static void *work(void *opaque)
{
	int t = (int)(size_t)opaque, device = t % 2, now;
	unsigned *own = (unsigned *)malloc(N * 4);
	cudaStream_t stream;

	CHECK(cudaGetDevice(&now));
	EXPECT(now == 0);	/* a new thread's */
	CHECK(cudaSetDevice(device));
	if (!data[t]) {
		CHECK(cudaMalloc(&data[t], N * 4));
		CHECK(cudaMemset(data[t], t, N * 4));
		CHECK(cudaDeviceSynchronize());
	}
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (int round = 0; round < ROUNDS; round++) {
		mix<<<16, 128, 0, stream>>>(data[t], N);
		CHECK(cudaMemcpyAsync(own, data[t], N * 4, cudaMemcpyDefault, stream));
		CHECK(cudaStreamSynchronize(stream));
		CHECK(cudaGetDevice(&now));
		EXPECT(now == device);
	}
	CHECK(cudaStreamDestroy(stream));
	sums[t] = (unsigned)checksum(own, N * 4);
	free(own);
	return NULL;
}

static void all(void)
{
	pthread_t threads[THREADS];

	for (int t = 0; t < THREADS; t++)
		if (pthread_create(&threads[t], NULL, work, (void *)(size_t)t))
			abort();
	for (int t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	for (int t = 0; t < THREADS; t++)
		printf("thread %d: %08x\n", t, sums[t]);
}

int main(void)
{
	unsigned got;

	need_two_gpus();
	/* One variable a device. */
	for (unsigned d = 0; d < 2; d++) {
		CHECK(cudaSetDevice(d));
		got = 100 + d;
		CHECK(cudaMemcpyToSymbol(salt, &got, 4));
	}
	all();
	phase();
	all();
	for (unsigned d = 0; d < 2; d++) {
		CHECK(cudaSetDevice(d));
		CHECK(cudaMemcpyFromSymbol(&got, salt, 4));
		EXPECT(got == 100 + d);
	}
	return finish();
}
