/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forks while another thread is somewhere in CUDA's initialisation, whenever test_fork.py says so.
 *
 *	fork_client runtime|driver
 *
 * A thread calls CUDA from its first call on; each line on stdin forks, and the child's answers are
 * a line on stdout: its exit status, or the signal that ended it, and what every call returned.
 * The end of stdin lets the thread end, and its result is the last line.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loaded.h"

enum { CHILD_SECONDS = 20, TEXT = 512 };

static bool runtime;

#define CALL(name, ...) ((int)((__typeof__(&name))function(#name))(__VA_ARGS__))

static int use_runtime(void)
{
	void *p = NULL;
	unsigned char byte = 0;
	cudaStream_t stream = NULL;
	int result = CALL(cudaFree, NULL);
	if (!result)
		result = CALL(cudaStreamCreate, &stream);
	if (!result)
		result = CALL(cudaMalloc, &p, 4096);
	if (!result)
		result = CALL(cudaMemset, p, 7, 4096);
	if (!result)
		result = CALL(cudaMemcpy, &byte, p, 1, cudaMemcpyDeviceToHost);
	return result ? result : byte == 7 ? 0 : -1;
}

static int use_driver(void)
{
	CUcontext context = NULL;
	CUdeviceptr p = 0;
	unsigned char byte = 0;
	int result = CALL(cuInit, 0);
	if (!result)
		result = CALL(cuDevicePrimaryCtxRetain, &context, 0);
	if (!result)
		result = CALL(cuCtxSetCurrent, context);
	if (!result)
		result = CALL(cuMemAlloc_v2, &p, 4096);
	if (!result)
		result = CALL(cuMemsetD8_v2, p, 7, 4096);
	if (!result)
		result = CALL(cuMemcpyDtoH_v2, &byte, p, 1);
	return result ? result : byte == 7 ? 0 : -1;
}

static pthread_t first; /* main()'s */

static void *work(void *ret)
{
	*(int *)ret = runtime ? use_runtime() : use_driver();
	/* For whoever looks at the process from outside. */
	pthread_setname_np(first, "done");
	return NULL;
}

/* What a child asks; every answer is to be "not initialised". */
static void ask(char *text)
{
	int results[12], n = 0, count = 0;
	if (runtime) {
		void *p = NULL;
		cudaStream_t stream = NULL;
		cudaEvent_t event = NULL;
		results[n++] = CALL(cudaGetDeviceCount, &count);
		results[n++] = CALL(cudaSetDevice, 0);
		results[n++] = CALL(cudaFree, NULL);
		results[n++] = CALL(cudaMalloc, &p, 64);
		results[n++] = CALL(cudaStreamCreate, &stream);
		results[n++] = CALL(cudaEventCreate, &event);
		results[n++] = CALL(cudaDeviceSynchronize);
	} else {
		CUcontext context = NULL;
		CUdevice device = 0;
		CUdeviceptr p = 0;
		CUgraph graph = NULL;
		CUevent event = NULL;
		results[n++] = CALL(cuInit, 0);
		results[n++] = CALL(cuDeviceGetCount, &count);
		results[n++] = CALL(cuDeviceGet, &device, 0);
		results[n++] = CALL(cuDevicePrimaryCtxRetain, &context, 0);
		results[n++] = CALL(cuMemAlloc_v2, &p, 64);
		results[n++] = CALL(cuEventCreate, &event, 0);
		results[n++] = CALL(cuGraphCreate, &graph, 0);
		results[n++] = CALL(cuCtxSynchronize);
	}
	for (int i = 0; i < n; i++)
		snprintf(text + strlen(text), TEXT - strlen(text), " %d", results[i]);
}

static void fork_now(void)
{
	char text[TEXT] = "";
	int ends[2], status = 0;
	fflush(stdout);
	if (pipe(ends))
		exit(2);
	pid_t pid = fork();
	if (pid == 0) {
		alarm(CHILD_SECONDS);
		ask(text);
		if (write(ends[1], text, strlen(text) + 1) < 0)
			_exit(2);
		/* Not _exit: what runs at a process's end must not wait for anybody either. */
		exit(0);
	}
	close(ends[1]);
	waitpid(pid, &status, 0);
	if (read(ends[0], text, sizeof text) < 0)
		text[0] = 0;
	close(ends[0]);
	printf(WIFSIGNALED(status) ? "signal %d:%s\n" : "status %d:%s\n",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), text);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int result = -2;
	char line[64];
	runtime = argc == 2 && !strcmp(argv[1], "runtime");
	library = dlopen(runtime ? "libcudart.so.13" : "libcuda.so.1", RTLD_NOW);
	if (!library) {
		printf("%s\n", dlerror());
		return 2;
	}
	first = pthread_self();
	pthread_create(&thread, NULL, work, &result);
	while (fgets(line, sizeof line, stdin))
		fork_now();
	pthread_join(thread, NULL);
	printf("thread %d\n", result);
	return 0;
}
