/* SPDX-License-Identifier: Apache-2.0 */
/* Eight host threads at once: own streams, own memory, launches, copies; errors and the current device stay with their thread. */
#include "phase.h"
#include <pthread.h>

#define THREADS 8
#define ROUNDS 20

struct job {
	unsigned id;
	uint64_t sum;
	int wrong;
	pthread_barrier_t *barrier;
};

__global__ void mix(unsigned *data, unsigned n, unsigned salt)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		data[i] = (data[i] ^ salt) * 2654435761u + i;
}

static void *work(void *arg)
{
	struct job *job = (struct job *)arg;
	unsigned n = 1000 + 37 * job->id, *host = (unsigned *)malloc(n * 4ul), *expected = (unsigned *)malloc(n * 4ul), *d;
	cudaStream_t stream;

	for (unsigned i = 0; i < n; i++)
		expected[i] = host[i] = i * job->id;
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMalloc(&d, n * 4ul));
	CHECK(cudaMemcpyAsync(d, host, n * 4ul, cudaMemcpyHostToDevice, stream));
	for (unsigned r = 0; r < ROUNDS; r++) {
		if (r == ROUNDS / 2) {
			pthread_barrier_wait(job->barrier);	/* the main thread passes the mid point */
			pthread_barrier_wait(job->barrier);
		}
		mix<<<(n + 127) / 128, 128, 0, stream>>>(d, n, r * job->id);
		for (unsigned i = 0; i < n; i++)
			expected[i] = (expected[i] ^ (r * job->id)) * 2654435761u + i;
		if (job->id % 2) {
			/* An error here must not show in another thread. */
			if (cudaSetDevice(1000) != cudaErrorInvalidDevice || cudaGetLastError() != cudaErrorInvalidDevice)
				job->wrong++;
		} else if (cudaGetLastError() != cudaSuccess) {
			job->wrong++;
		}
		if (r % 5 == job->id % 5) {
			CHECK(cudaMemcpyAsync(host, d, n * 4ul, cudaMemcpyDeviceToHost, stream));
			CHECK(cudaStreamSynchronize(stream));
			job->wrong += memcmp(host, expected, n * 4ul) != 0;
		}
	}
	CHECK(cudaMemcpyAsync(host, d, n * 4ul, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	job->wrong += memcmp(host, expected, n * 4ul) != 0;
	job->sum = checksum(host, n * 4ul);
	CHECK(cudaFree(d));
	CHECK(cudaStreamDestroy(stream));
	free(host);
	free(expected);
	return NULL;
}

int main(void)
{
	pthread_t thread[THREADS];
	struct job job[THREADS];
	pthread_barrier_t barrier;

	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (unsigned t = 0; t < THREADS; t++) {
		job[t] = (struct job){ t, 0, 0, &barrier };
		if (pthread_create(&thread[t], NULL, work, &job[t]) != 0)
			return 1;
	}
	pthread_barrier_wait(&barrier);
	phase();
	pthread_barrier_wait(&barrier);
	for (unsigned t = 0; t < THREADS; t++) {
		pthread_join(thread[t], NULL);
		printf("thread %u: %016llx\n", t, (unsigned long long)job[t].sum);
		EXPECT(job[t].wrong == 0);
	}
	return finish();
}
