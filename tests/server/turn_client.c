/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that keeps a GPU busy as lines of its standard input say; test_turns.py reads one line of
 * numbers for each.
 *
 *	run KERNELS LOOPS	that many kernels, then a wait: the CUresult
 *	busy LOOPS DEPTH	a thread runs kernels until stop, and waits after each DEPTH of them: 0
 *	stop			the kernels that it ran
 *	long LOOPS		a kernel, without a wait: the CUresult
 */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaded.h"

/* name is CUDA's macro, so its versions are resolved. */
#define TEXT_OF(name) #name
#define CALL(name, ...) (((__typeof__(&name))function(TEXT_OF(name)))(__VA_ARGS__))

#define MUST(call)                                          \
	do {                                                \
		int result_ = (int)(call);                  \
		if (result_) {                              \
			printf("%s: %d\n", #call, result_); \
			exit(2);                            \
		}                                           \
	} while (0)

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry count(.param .u64 out, .param .u64 loops)\n"
			  "{\n"
			  ".reg .b64 %rd<6>;\n.reg .pred %p;\n"
			  "ld.param.u64 %rd1, [out];\nld.param.u64 %rd2, [loops];\n"
			  "mov.u64 %rd3, 0;\n"
			  "again:\n"
			  "mad.lo.u64 %rd3, %rd3, 6364136223846793005, 1442695040888963407;\n"
			  "sub.u64 %rd2, %rd2, 1;\n"
			  "setp.ne.u64 %p, %rd2, 0;\n"
			  "@%p bra again;\n"
			  "st.global.u64 [%rd1], %rd3;\n"
			  "ret;\n}\n";

static CUfunction count;
static CUcontext context;
static CUdeviceptr out;
static pthread_t busy;
static _Atomic int stop;
static unsigned long long busy_loops, busy_depth, done;

static int launch(unsigned long long loops)
{
	void *params[] = {&out, &loops};
	return (int)CALL(cuLaunchKernel, count, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
}

static void *run_busy(void *unused)
{
	(void)unused;
	MUST(CALL(cuCtxSetCurrent, context));
	while (!atomic_load(&stop)) {
		for (unsigned long long i = 0; i < busy_depth; i++)
			MUST(launch(busy_loops));
		MUST(CALL(cuCtxSynchronize));
		done += busy_depth;
	}
	return NULL;
}

static void obey(const char *command, unsigned long long a, unsigned long long b)
{
	int result = 0;
	if (!strcmp(command, "run")) {
		for (unsigned long long i = 0; i < a && !result; i++)
			result = launch(b);
		if (!result)
			result = (int)CALL(cuCtxSynchronize);
	} else if (!strcmp(command, "long")) {
		result = launch(a);
	} else if (!strcmp(command, "busy")) {
		busy_loops = a;
		busy_depth = b;
		done = 0;
		atomic_store(&stop, 0);
		result = pthread_create(&busy, NULL, run_busy, NULL);
	} else if (!strcmp(command, "stop")) {
		atomic_store(&stop, 1);
		pthread_join(busy, NULL);
		printf("%llu\n", done);
		fflush(stdout);
		return;
	}
	printf("%d\n", result);
	fflush(stdout);
}

int main(void)
{
	char line[96], command[32];
	CUdevice device;
	CUmodule module;
	library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library)
		return 2;
	MUST(CALL(cuInit, 0));
	MUST(CALL(cuDeviceGet, &device, 0));
	MUST(CALL(cuDevicePrimaryCtxRetain, &context, device));
	MUST(CALL(cuCtxSetCurrent, context));
	MUST(CALL(cuModuleLoadData, &module, ptx));
	MUST(CALL(cuModuleGetFunction, &count, module, "count"));
	MUST(CALL(cuMemAlloc, &out, 8));
	printf("0\n");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		unsigned long long a = 0, b = 0;
		if (sscanf(line, "%31s %llu %llu", command, &a, &b) >= 1)
			obey(command, a, b);
	}
	return 0;
}
