/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Misuses of the API, and what each call and the calls after it answer.  Every case runs in a process of its own.
 *
 *	misuse          all cases
 *	misuse NAME...  these
 *
 * The text recorded on a real GPU is misuse.txt; nothing printed depends on the machine.
 */
#include <cuda.h>
#include <cuda_runtime.h>

#include <assert.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

__global__ void nothing(void) {}
__global__ void store(int *p, long offset) { *(volatile int *)((char *)p + offset) = 1; }
__global__ void load(const int *p, int *out) { *out = *(const volatile int *)p; }
__global__ void trap(void) { __trap(); }
__global__ void failing(int x) { assert(x == 1); }
__global__ void shared_store(long offset)
{
	__shared__ int cells[32];
	cells[threadIdx.x] = 0;
	*(volatile int *)((char *)cells + offset) = 1;
}
__global__ void spin(long long cycles)
{
	long long start = clock64();
	while (clock64() - start < cycles)
		;
}
__global__ void wants_shared(void)
{
	extern __shared__ int dynamic[];
	dynamic[threadIdx.x] = 1;
}
__device__ int symbol[4];
__constant__ int fixed[4];
static int plain_host[4];
static void not_a_kernel(void) {}
static void CUDART_CB host_function(void *) {}

/* One line for each call. */
static void say(const char *what, cudaError_t e)
{
	printf("  %s: %d %s\n", what, (int)e, cudaGetErrorName(e));
	fflush(stdout);
}
static void say_driver(const char *what, int e)
{
	printf("  %s: driver %d\n", what, e);
	fflush(stdout);
}
static void say_value(const char *what, long v)
{
	printf("  %s = %ld\n", what, v);
	fflush(stdout);
}
#define R(call) say(#call, call)
#define D(name, ...) say_driver(#name "(" #__VA_ARGS__ ")", driver_##name(__VA_ARGS__))
#define LAST() say("cudaPeekAtLastError()", cudaPeekAtLastError()), say("cudaGetLastError()", cudaGetLastError()), say("cudaGetLastError() again", cudaGetLastError())

/* What every program does next. */
static void after(void)
{
	int *p = NULL;
	LAST();
	R(cudaMalloc(&p, 256));
	R(cudaMemset(p, 0, 256));
	nothing<<<1, 1>>>();
	say("nothing<<<1, 1>>>()", cudaGetLastError());
	R(cudaDeviceSynchronize());
	R(cudaFree(p));
	LAST();
}

#define DRIVER(name) static decltype(&name) driver_##name;
#define DRIVERS                                                                                                                        \
	DRIVER(cuInit) DRIVER(cuDeviceGet) DRIVER(cuDeviceGetCount) DRIVER(cuDeviceGetAttribute) DRIVER(cuDeviceGetName) DRIVER(cuCtxGetCurrent)   \
	DRIVER(cuCtxSetCurrent) DRIVER(cuCtxSynchronize) DRIVER(cuModuleLoadData) DRIVER(cuModuleGetFunction)     \
	DRIVER(cuModuleUnload) DRIVER(cuLaunchKernel) DRIVER(cuMemsetD8Async) DRIVER(cuFuncGetAttribute) DRIVER(cuFuncSetAttribute)                 \
	DRIVER(cuDevicePrimaryCtxRetain) DRIVER(cuStreamSynchronize) DRIVER(cuEventQuery) DRIVER(cuEventRecord) DRIVER(cuStreamQuery)               \
	DRIVER(cuMemAddressReserve) DRIVER(cuMemCreate) DRIVER(cuMemMap) DRIVER(cuMemSetAccess) DRIVER(cuMemRelease) DRIVER(cuMemUnmap)             \
	DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor) DRIVER(cuGetErrorName) DRIVER(cuDriverGetVersion) DRIVER(cuPointerGetAttribute)         \
	DRIVER(cuCtxGetDevice) DRIVER(cuStreamCreate) DRIVER(cuEventCreate) DRIVER(cuMemHostGetFlags) DRIVER(cuGetErrorString)                      \
	DRIVER(cuLibraryLoadData) DRIVER(cuLibraryGetKernel) DRIVER(cuCtxGetLimit) DRIVER(cuCtxSetLimit) DRIVER(cuMemAllocManaged)                  \
	DRIVER(cuLinkComplete) DRIVER(cuModuleGetLoadingMode)
DRIVERS
/* Names that the header maps to later versions. */
static CUresult (*driver_cuMemAlloc)(CUdeviceptr *, size_t);
static CUresult (*driver_cuMemFree)(CUdeviceptr);
static CUresult (*driver_cuMemcpyHtoD)(CUdeviceptr, const void *, size_t);
static CUresult (*driver_cuMemcpyDtoH)(void *, CUdeviceptr, size_t);
static CUresult (*driver_cuModuleGetGlobal)(CUdeviceptr *, size_t *, CUmodule, const char *);
static CUresult (*driver_cuCtxPopCurrent)(CUcontext *);
static CUresult (*driver_cuCtxDestroy)(CUcontext);
static CUresult (*driver_cuDevicePrimaryCtxRelease)(CUdevice);
static CUresult (*driver_cuStreamDestroy)(CUstream);
static CUresult (*driver_cuEventDestroy)(CUevent);
static CUresult (*driver_cuEventElapsedTime)(float *, CUevent, CUevent);
static CUresult (*driver_cuGetProcAddress)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
static CUresult (*driver_cuDeviceTotalMem)(size_t *, CUdevice);
static CUresult (*driver_cuMemHostRegister)(void *, size_t, unsigned);
static CUresult (*driver_cuMemGetAddressRange)(CUdeviceptr *, size_t *, CUdeviceptr);

static void find(void *library, const char *name, void **place)
{
	*place = dlsym(library, name);
	if (!*place) {
		printf("  no %s\n", name);
		_exit(3);
	}
}

static void open_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library) {
		printf("  no driver: %s\n", dlerror());
		_exit(3);
	}
#undef DRIVER
#define DRIVER(name) find(library, #name, (void **)&driver_##name);
	DRIVERS
#define LATER(name, symbol) find(library, symbol, (void **)&driver_##name);
	LATER(cuMemAlloc, "cuMemAlloc_v2") LATER(cuMemFree, "cuMemFree_v2") LATER(cuMemcpyHtoD, "cuMemcpyHtoD_v2")
	LATER(cuMemcpyDtoH, "cuMemcpyDtoH_v2") LATER(cuModuleGetGlobal, "cuModuleGetGlobal_v2") LATER(cuCtxPopCurrent, "cuCtxPopCurrent_v2")
	LATER(cuCtxDestroy, "cuCtxDestroy_v2") LATER(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2")
	LATER(cuStreamDestroy, "cuStreamDestroy_v2") LATER(cuEventDestroy, "cuEventDestroy_v2") LATER(cuEventElapsedTime, "cuEventElapsedTime")
	LATER(cuGetProcAddress, "cuGetProcAddress_v2") LATER(cuDeviceTotalMem, "cuDeviceTotalMem_v2")
	LATER(cuMemHostRegister, "cuMemHostRegister_v2") LATER(cuMemGetAddressRange, "cuMemGetAddressRange_v2")
}

static int *device_memory(void)
{
	int *p = NULL;
	if (cudaMalloc(&p, 1024) != cudaSuccess)
		printf("  no memory\n");
	return p;
}

struct misuse { const char *name; void (*run)(void); };
#define CASE(name) static void name(void)

#include "misuse_cases.h"

static const struct misuse cases[] = {
#define CASE_NAME(name) {#name, name},
	MISUSES
};

static int run_apart(const char *self, const char *name)
{
	int status = 0;
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		execl(self, "misuse", "--in-this-process", name, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 1;
	if (WIFSIGNALED(status))
		printf("  killed by signal %d\n", WTERMSIG(status));
	else if (WEXITSTATUS(status))
		printf("  exit status %d\n", WEXITSTATUS(status));
	return 0;
}

int main(int argc, char **argv)
{
	bool inside = argc == 3 && !strcmp(argv[1], "--in-this-process");
	int found = 0;
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		bool wanted = argc < 2;
		for (int a = 1 + inside; a < argc; a++)
			wanted |= !strcmp(argv[a], cases[k].name);
		if (!wanted)
			continue;
		found++;
		if (inside) {
			alarm(60);	/* a call that never returns is an answer, too */
			open_driver();
			cases[k].run();
			continue;
		}
		printf("%s\n", cases[k].name);
		if (run_apart("/proc/self/exe", cases[k].name))
			return 1;
	}
	return found ? 0 : 2;
}
