/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What recording costs the calling thread: nanoseconds of its processor time for a call that the
 * client answers (cudaGetDevice) and for a launch.  benchmarks/trace runs it.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CALLS = 4000000, LAUNCHES = 200000, BATCH = 2000 };

static const char ptx[] = ".version 7.0\n.target sm_50\n.address_size 64\n"
			  ".visible .entry nothing() { ret; }\n";

static void *library;

static void must(int result, const char *what)
{
	if (result) {
		fprintf(stderr, "%s: %d\n", what, result);
		exit(1);
	}
}

static double thread_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

#define DRIVER(name) __typeof__(&name) p_##name = (__typeof__(&name))dlsym(library, #name)

int main(void)
{
	library = dlopen("libcuda.so.1", RTLD_NOW);
	void *runtime = dlopen("libcudart.so.13", RTLD_NOW);
	if (!library || !runtime) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	int (*get_device)(int *) = (int (*)(int *))dlsym(runtime, "cudaGetDevice");
	int (*free_memory)(void *) = (int (*)(void *))dlsym(runtime, "cudaFree");
	DRIVER(cuModuleLoadData);
	DRIVER(cuModuleGetFunction);
	DRIVER(cuLaunchKernel);
	DRIVER(cuCtxSynchronize);
	CUmodule module;
	CUfunction function;
	int device;
	must(free_memory(NULL), "cudaFree");
	must((int)p_cuModuleLoadData(&module, ptx), "cuModuleLoadData");
	must((int)p_cuModuleGetFunction(&function, module, "nothing"), "cuModuleGetFunction");
	double best_call = 1e9, best_launch = 1e9;
	for (int round = 0; round < 5; round++) {
		double begun = thread_ns();
		for (int i = 0; i < CALLS / 5; i++)
			get_device(&device);
		double ns = (thread_ns() - begun) / (CALLS / 5);
		best_call = ns < best_call ? ns : best_call;
	}
	for (int batch = 0; batch < LAUNCHES / BATCH; batch++) {
		double begun = thread_ns();
		for (int i = 0; i < BATCH; i++)
			p_cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
		double ns = (thread_ns() - begun) / BATCH;
		best_launch = ns < best_launch ? ns : best_launch;
		must((int)p_cuCtxSynchronize(), "cuCtxSynchronize");
	}
	printf("%.1f %.1f\n", best_call, best_launch);
	return 0;
}
