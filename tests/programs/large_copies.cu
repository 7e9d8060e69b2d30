/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies large enough to take a way of their own (docs/memory.md): of every kind of host memory and
 * of odd sizes, from several threads both ways at once, in order with kernels on their streams, and
 * while the session is stopped or moved.
 */
#include "phase.h"
#include <pthread.h>

#define THREADS 3
#define MIB (1ul << 20)

static unsigned factor;

__global__ void add(unsigned *data, size_t n, unsigned what)
{
	size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;

	if (i < n)
		data[i] += what;
}

struct job {
	unsigned id;
	size_t bytes;
	unsigned *host, *back, *device;
	cudaStream_t stream;
	unsigned rounds;
};

static void fill(unsigned *data, size_t bytes, uint32_t seed)
{
	for (size_t i = 0; i < bytes / 4; i++)
		data[i] = random_u32(&seed);
}

/* There, one more on some of it, and back; the source changes as soon as the copy returns. */
static void round_trip(struct job *job, bool async)
{
	size_t some = 1000, n = job->bytes / 4;
	uint32_t seed = job->id * 1000 + ++job->rounds, again = seed, wrong = 0;

	fill(job->host, job->bytes, seed);
	if (async)
		CHECK(cudaMemcpyAsync(job->device, job->host, job->bytes, cudaMemcpyHostToDevice, job->stream));
	else
		CHECK(cudaMemcpy(job->device, job->host, job->bytes, cudaMemcpyHostToDevice));
	memset(job->back, 0xff, job->bytes);
	if (!async)
		CHECK(cudaDeviceSynchronize());
	add<<<(some + 127) / 128, 128, 0, job->stream>>>(job->device, some, job->id);
	add<<<(some + 127) / 128, 128, 0, job->stream>>>(job->device + n - some, some, job->id);
	CHECK(cudaMemcpyAsync(job->back, job->device, job->bytes, cudaMemcpyDeviceToHost, job->stream));
	CHECK(cudaStreamSynchronize(job->stream));
	for (size_t i = 0; i < n; i++)
		wrong += job->back[i] != random_u32(&again) + (i < some || i >= n - some ? job->id : 0);
	EXPECT(wrong == 0);
}

static void *work(void *opaque)
{
	struct job *job = (struct job *)opaque;

	for (int i = 0; i < 3; i++)
		round_trip(job, job->id % 2);
	return NULL;
}

static void all_at_once(void *opaque)
{
	struct job *jobs = (struct job *)opaque;
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, &jobs[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* The device's bytes are those of the host, whatever the offsets. */
static void odd_parts(struct job *job)
{
	static const size_t offsets[] = {0, 1, 4095, MIB + 3}, sizes[] = {MIB - 1, MIB, MIB + 1, 2 * MIB + 77};
	unsigned char *host = (unsigned char *)job->host, *back = (unsigned char *)job->back;

	for (size_t offset : offsets) {
		for (size_t size : sizes) {
			fill(job->host, job->bytes, (uint32_t)(offset + size));
			memset(back, 0, job->bytes);
			CHECK(cudaMemset(job->device, 0x55, job->bytes));
			CHECK(cudaMemcpy((char *)job->device + offset, host + 1, size, cudaMemcpyHostToDevice));
			CHECK(cudaMemcpy(back + 2, (char *)job->device + offset, size, cudaMemcpyDeviceToHost));
			EXPECT(memcmp(host + 1, back + 2, size) == 0);
			EXPECT(back[1] == 0 && back[size + 2] == 0);
		}
	}
}

int main(int argc, char **argv)
{
	struct job jobs[THREADS];

	factor = size_factor(argc, argv);
	for (unsigned i = 0; i < THREADS; i++) {
		struct job *job = &jobs[i];

		memset(job, 0, sizeof *job);
		job->id = i + 1;
		job->bytes = (4 + 3 * i) * MIB * (factor > 10 ? 10 : factor);
		if (i == 1) {
			CHECK(cudaMallocHost(&job->host, job->bytes));
			CHECK(cudaMallocHost(&job->back, job->bytes));
		} else {
			job->host = (unsigned *)malloc(job->bytes);
			job->back = (unsigned *)malloc(job->bytes);
		}
		CHECK(cudaMalloc(&job->device, job->bytes));
		CHECK(cudaStreamCreateWithFlags(&job->stream, cudaStreamNonBlocking));
	}
	odd_parts(&jobs[0]);
	odd_parts(&jobs[1]);
	all_at_once(jobs);
	phase_with(all_at_once, jobs);
	all_at_once(jobs);
	for (unsigned i = 0; i < THREADS; i++) {
		jobs[i].rounds = 0;
		round_trip(&jobs[i], true);
		print_checksum("bytes", jobs[i].back, jobs[i].bytes);
	}
	return finish();
}
