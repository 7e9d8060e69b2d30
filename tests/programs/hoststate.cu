/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose own state matters as much as the GPU's: threads that go on working through the mid point, heap memory, a child process and
 * a pipe to it.  What is printed depends on how much was done, never on when.
 */
#include "phase.h"
#include <pthread.h>
#include <sys/wait.h>

#define THREADS 3
#define ROUNDS 120
#define COUNT 2048

struct cell {
	struct cell *next;
	unsigned value;
};

struct job {
	unsigned id;
	struct cell *list;	/* on the heap, in an order of its own */
	uint64_t sum;
	int wrong;
	pthread_barrier_t *begun;
};

__global__ void turn(unsigned *data, unsigned n, unsigned salt)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		data[i] = data[i] * 1664525u + salt + i;
}

/* The other side of the pipe adds up what it gets until the end. */
static pid_t start_child(int *ret_to, int *ret_from)
{
	int to[2], from[2];
	unsigned char buffer[256];
	uint64_t sum = 0;

	if (pipe(to) || pipe(from))
		exit(1);
	pid_t pid = fork();
	if (pid) {
		close(to[0]);
		close(from[1]);
		*ret_to = to[1];
		*ret_from = from[0];
		return pid;
	}
	close(to[1]);
	close(from[0]);
	for (ssize_t n; (n = read(to[0], buffer, sizeof(buffer))) > 0;)
		for (ssize_t i = 0; i < n; i++)
			sum = sum * 31 + buffer[i];
	_exit(write(from[1], &sum, sizeof(sum)) != sizeof(sum));
}

static struct cell *make_list(unsigned id)
{
	struct cell *list = NULL;

	for (unsigned i = 0; i < COUNT; i++) {
		struct cell *cell = (struct cell *)malloc(sizeof(*cell) + i % 7 * 16);
		*cell = (struct cell){ list, i * (id + 3) };
		list = cell;
	}
	return list;
}

static void *work(void *arg)
{
	struct job *job = (struct job *)arg;
	unsigned *host = (unsigned *)malloc(COUNT * 4), *d, n;
	cudaStream_t stream;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMalloc(&d, COUNT * 4));
	for (unsigned round = 0; round < ROUNDS; round++) {
		n = 0;
		for (struct cell *cell = job->list; cell; cell = cell->next)
			host[n++] = cell->value;
		CHECK(cudaMemcpyAsync(d, host, COUNT * 4, cudaMemcpyHostToDevice, stream));
		turn<<<COUNT / 128, 128, 0, stream>>>(d, COUNT, round + job->id);
		CHECK(cudaMemcpyAsync(host, d, COUNT * 4, cudaMemcpyDeviceToHost, stream));
		CHECK(cudaStreamSynchronize(stream));
		n = 0;
		for (struct cell *cell = job->list; cell; cell = cell->next, n++) {
			cell->value = cell->value * 1664525u + round + job->id + n;
			job->wrong += cell->value != host[n];
		}
		if (round == 0)
			pthread_barrier_wait(job->begun);
		usleep(2000);	/* there is work left when an image is taken */
	}
	job->sum = checksum(host, COUNT * 4);
	CHECK(cudaFree(d));
	CHECK(cudaStreamDestroy(stream));
	free(host);
	return NULL;
}

int main(void)
{
	pthread_t thread[THREADS];
	struct job job[THREADS];
	int to, from, status = 1;
	uint64_t sum = 0;
	pthread_barrier_t begun;
	pid_t child = start_child(&to, &from);

	pthread_barrier_init(&begun, NULL, THREADS + 1);
	for (unsigned t = 0; t < THREADS; t++) {
		job[t] = (struct job){ t, make_list(t), 0, 0, &begun };
		if (pthread_create(&thread[t], NULL, work, &job[t]) != 0)
			return 1;
	}
	pthread_barrier_wait(&begun);
	phase();
	for (unsigned t = 0; t < THREADS; t++) {
		pthread_join(thread[t], NULL);
		printf("thread %u: %016llx\n", t, (unsigned long long)job[t].sum);
		EXPECT(job[t].wrong == 0);
		EXPECT(write(to, &job[t].sum, sizeof(job[t].sum)) == sizeof(job[t].sum));
	}
	close(to);
	EXPECT(read(from, &sum, sizeof(sum)) == sizeof(sum));
	EXPECT(waitpid(child, &status, 0) == child && status == 0);
	printf("child: %016llx\n", (unsigned long long)sum);
	return finish();
}
