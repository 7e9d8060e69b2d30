/* SPDX-License-Identifier: Apache-2.0 */
/* Many host threads use the runtime, a module and its kernels for the first time at once; a child has no CUDA. */
#include "check.h"

#include <atomic>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

__device__ int total;

__global__ void count(int n)
{
	atomicAdd(&total, n);
}

__global__ void count_twice(int n)
{
	atomicAdd(&total, 2 * n);
}

static std::atomic<int> waiting;

static void work(int index)
{
	cudaStream_t stream;
	waiting--;
	while (waiting > 0)
		std::this_thread::yield();
	if (index % 2) {
		OK(cudaStreamCreate(&stream));
		for (int i = 0; i < 20; i++)
			count<<<1, 4, 0, stream>>>(index);
		OK(cudaStreamSynchronize(stream));
		OK(cudaStreamDestroy(stream));
	} else {
		for (int i = 0; i < 20; i++)
			count_twice<<<1, 4, 0, cudaStreamPerThread>>>(index);
		OK(cudaStreamSynchronize(cudaStreamPerThread));
	}
	/* Errors belong to their thread. */
	RESULT(cudaMemcpy(NULL, NULL, 4, (cudaMemcpyKind)(index % 2 ? 9 : 1)), index % 2 ? cudaErrorInvalidMemcpyDirection : cudaErrorInvalidValue);
	RESULT(cudaGetLastError(), index % 2 ? cudaErrorInvalidMemcpyDirection : cudaErrorInvalidValue);
	OK(cudaGetLastError());
}

int main()
{
	enum { THREADS = 16 };
	std::vector<std::thread> threads;
	int sum = 0, expected = 0, status = -1;
	waiting = THREADS;
	for (int i = 0; i < THREADS; i++) {
		threads.emplace_back(work, i);
		expected += 20 * 4 * i * (i % 2 ? 1 : 2);
	}
	for (auto &thread : threads)
		thread.join();
	OK(cudaMemcpyFromSymbol(&sum, total, sizeof sum));
	CHECK(sum == expected);
	OK(cudaGetLastError());
	pid_t pid = fork();
	if (pid == 0) {
		int device;
		count<<<1, 1>>>(1);
		_exit(cudaGetLastError() == cudaErrorInitializationError && cudaGetDevice(&device) == cudaErrorInitializationError ? 0 : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	OK(cudaDeviceSynchronize());
	return failed;
}
