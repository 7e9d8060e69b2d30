/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime over a driver that only remembers: when it initialises, how errors are kept, what a launch and a copy become, and what
 * registration finds.  Each test runs in a process of its own, because initialisation happens once.
 */
#include "fake_driver.h"

#include <cuda_runtime_api.h>

#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CUnit/Basic.h>

/* Rows of macros that no separator parts. */
/* clang-format off */

void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaUnregisterFatBinary(void **handle);
void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit, void *tid, void *bid, void *block,
			    void *grid, int *warp);
void __cudaRegisterVar(void **handle, char *host, char *address, const char *name, int ext, size_t size, int constant, int global);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream);
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, void *stream);
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *entry);
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared_bytes, cudaStream_t stream);
cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared_bytes, cudaStream_t stream);
cudaError_t cudaMemcpy_ptds(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync_ptsz(void *dst, const void *src, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream);

static const uint64_t image[] = {UINT64_C(0x00100001ba55ed50), 8, 0};
static struct {
	uint32_t magic, version;
	const void *image;
	const void *more;
} wrapper = {0x466243b1, 1, image, NULL};

static const dim3 one = {1, 1, 1};
static char stub_a[16], stub_b[16], stub_missing[16], variable[64];
static const char *const name_a = "kernel_a";

/* Registers stub_a, stub_missing and variable. */
static void **register_module(void)
{
	void **handle = __cudaRegisterFatBinary(&wrapper);
	__cudaRegisterFunction(handle, stub_a, NULL, name_a, -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterFunction(handle, stub_missing, NULL, "missing", -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterVar(handle, variable, NULL, "variable", 0, sizeof variable, 0, 0);
	__cudaRegisterFatBinaryEnd(handle);
	return handle;
}

static int failed; /* in this process */

/* CUnit prints failures at its end only, which a child does not reach. */
#define CHECK(condition)                                                                                                                   \
	do {                                                                                                                               \
		if (!(condition)) {                                                                                                        \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                                    \
			failed++;                                                                                                          \
		}                                                                                                                          \
	} while (0)

/* Runs the body in a child, so that it sees an uninitialised runtime. */
static void in_child(void (*body)(void))
{
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		body();
		_exit(failed != 0);
	}
	int status = -1;
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT_EQUAL(status, 0);
}

static void lazy(void)
{
	void *p = (void *)1;
	cudaKernel_t kernel;
	int version = 0;
	register_module();
	CHECK(__cudaGetKernel(&kernel, stub_a) == cudaSuccess);
	CHECK(cudaGetLastError() == cudaSuccess && cudaPeekAtLastError() == cudaSuccess);
	CHECK(cudaRuntimeGetVersion(&version) == cudaSuccess && version == CUDART_VERSION);
	CHECK(fake.inits == 0);
	CHECK(cudaGetDeviceCount(&version) == cudaSuccess && version == 2);
	CHECK(fake.inits == 1 && fake.retains == 0);
	CHECK(cudaGetDevice(&version) == cudaSuccess && version == 0);
	CHECK(fake.retains == 0);
	CHECK(cudaMalloc(&p, 0) == cudaSuccess && !p);
	CHECK(fake.retains == 1 && fake.library_loads == 0);
	CHECK(cudaSetDevice(1) == cudaSuccess && fake.retains == 2);
	CHECK(cudaGetDevice(&version) == cudaSuccess && version == 1);
	CHECK(cudaSetDevice(2) == cudaErrorInvalidDevice && cudaSetDevice(-1) == cudaErrorInvalidDevice);
	CHECK(cudaGetDevice(&version) == cudaSuccess && version == 1);
	CHECK(cudaFree(NULL) == cudaSuccess && fake.inits == 1 && fake.retains == 2);
}

static void errors(void)
{
	void *p;
	char byte;
	cudaFree(NULL);
	fake.next_result = CUDA_ERROR_OUT_OF_MEMORY;
	CHECK(cudaMalloc(&p, 16) == cudaErrorMemoryAllocation);
	CHECK(cudaMalloc(&p, 16) == cudaSuccess);
	CHECK(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
	CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
	CHECK(cudaGetLastError() == cudaSuccess);
	fake.next_result = CUDA_ERROR_NOT_READY;
	CHECK(cudaStreamQuery(NULL) == cudaErrorNotReady);
	CHECK(cudaGetLastError() == cudaSuccess);
	CHECK(cudaMemcpy(&byte, &byte, 1, (enum cudaMemcpyKind)9) == cudaErrorInvalidMemcpyDirection);
	CHECK(cudaGetLastError() == cudaErrorInvalidMemcpyDirection);
	CHECK(cudaLaunchKernel(stub_b, one, one, NULL, 0, NULL) == cudaErrorInvalidResourceHandle);
	CHECK(cudaGetSymbolAddress(&p, stub_b) == cudaErrorInvalidSymbol);
	CHECK(cudaGetLastError() == cudaErrorInvalidSymbol && cudaGetLastError() == cudaSuccess);
	fake.sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
	CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
	CHECK(cudaGetLastError() == cudaErrorIllegalAddress && cudaGetLastError() == cudaSuccess);
	CHECK(cudaMalloc(&p, 16) == cudaErrorIllegalAddress);
	CHECK(cudaDeviceReset() == cudaSuccess && cudaGetLastError() == cudaSuccess);
	CHECK(cudaMalloc(&p, 16) == cudaSuccess);
	CHECK(cudaGetExportTable((const void **)&p, NULL) == cudaErrorNotSupported && cudaGetLastError() == cudaErrorNotSupported);
	CHECK(strcmp(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress") == 0);
	CHECK(strcmp(cudaGetErrorString(cudaErrorNoDevice), "no CUDA-capable device is detected") == 0);
	CHECK(strcmp(cudaGetErrorString((cudaError_t)12345), "unrecognized error code") == 0);
}

static void no_device(void)
{
	int count = 77;
	fake.init_result = CUDA_ERROR_NO_DEVICE;
	CHECK(cudaGetLastError() == cudaSuccess);
	CHECK(cudaGetDeviceCount(&count) == cudaErrorNoDevice && count == 77);
	CHECK(cudaGetLastError() == cudaErrorNoDevice && cudaGetLastError() == cudaErrorNoDevice);
	CHECK(cudaFree(NULL) == cudaErrorNoDevice && fake.inits == 1);
}

static void old_driver(void)
{
	fake.version = 12080;
	CHECK(cudaFree(NULL) == cudaErrorInsufficientDriver);
	CHECK(cudaDriverGetVersion(&fake.devices) == cudaSuccess && fake.devices == 12080);
}

static void launches(void)
{
	cudaKernel_t kernel;
	int value = 5;
	void *args[] = {&value};
	void **handle = register_module();
	CHECK(__cudaGetKernel(&kernel, stub_a) == cudaSuccess && fake.library_loads == 0);
	CHECK(__cudaLaunchKernel(kernel, (dim3){7, 6, 5}, (dim3){4, 3, 2}, args, 99, (cudaStream_t)0x77) == cudaSuccess);
	CHECK(fake.library_loads == 1 && fake.last_image == image && fake.last_argument == &value && fake.last_stream == (CUstream)0x77);
	const unsigned shape[] = {7, 6, 5, 4, 3, 2, 99};
	CHECK(memcmp(fake.last_shape, shape, sizeof shape) == 0);
	CHECK(fake.last_function == (CUfunction)(uintptr_t)name_a);
	CHECK(cudaLaunchKernel(stub_a, one, one, args, 0, NULL) == cudaSuccess && fake.gets == 1 && fake.last_stream == NULL);
	CHECK(__cudaLaunchKernel_ptsz(kernel, one, one, args, 0, NULL) == cudaSuccess && fake.last_stream == CU_STREAM_PER_THREAD);
	CHECK(cudaSetDevice(1) == cudaSuccess && __cudaLaunchKernel(kernel, one, one, args, 0, NULL) == cudaSuccess);
	CHECK(fake.last_function == (CUfunction)(uintptr_t)(name_a + 1) && fake.gets == 2 && fake.library_loads == 1);
	CHECK(cudaLaunchKernel(stub_a, one, (dim3){2048, 1, 1}, args, 0, NULL) == cudaErrorInvalidValue);
	CHECK(cudaLaunchKernel(stub_a, (dim3){0, 1, 1}, one, args, 0, NULL) == cudaErrorInvalidValue);
	fake.next_result = CUDA_ERROR_INVALID_VALUE;
	CHECK(cudaLaunchKernel(stub_a, one, one, args, 1 << 20, NULL) == cudaErrorInvalidValue);
	CHECK(cudaLaunchKernel(stub_missing, one, one, args, 0, NULL) == cudaErrorSymbolNotFound);
	/* A context of the program's own: the function is looked up there every time. */
	cuCtxSetCurrent((CUcontext)0x1000);
	CHECK(__cudaLaunchKernel(kernel, one, one, args, 0, NULL) == cudaSuccess && fake.last_function == (CUfunction)(uintptr_t)name_a);
	CHECK(cudaGetDevice(&value) == cudaSuccess && value == 0);
	CHECK(cudaDeviceReset() == cudaSuccess && __cudaLaunchKernel(kernel, one, one, args, 0, NULL) == cudaSuccess && fake.retains == 3);
	__cudaUnregisterFatBinary(handle);
	CHECK(fake.unloads == 1 && __cudaLaunchKernel(kernel, one, one, args, 0, NULL) == cudaErrorInvalidResourceHandle);
	/* Closed and opened again: the stub's cached handle works. */
	handle = register_module();
	CHECK(__cudaLaunchKernel(kernel, one, one, args, 0, NULL) == cudaSuccess && fake.library_loads == 2);
}

static void early_get_kernel(void)
{
	cudaKernel_t kernel;
	/* As an H200's runtime does: what is not registered yet has no handle. */
	CHECK(__cudaGetKernel(&kernel, stub_a) == cudaErrorInvalidDeviceFunction);
	register_module();
	CHECK(__cudaGetKernel(&kernel, stub_a) == cudaSuccess);
	CHECK(__cudaLaunchKernel(kernel, one, one, NULL, 0, NULL) == cudaSuccess);
}

static void modules_only(void)
{
	fake.library_result = CUDA_ERROR_NOT_SUPPORTED;
	void **handle = register_module();
	cudaKernel_t kernel;
	CHECK(cudaLaunchKernel(stub_a, one, one, NULL, 0, NULL) == cudaSuccess && fake.module_loads == 1);
	CHECK(cudaLaunchKernel(stub_a, one, one, NULL, 0, NULL) == cudaSuccess && fake.module_loads == 1 && fake.library_loads == 1);
	CHECK(cudaSetDevice(1) == cudaSuccess && cudaLaunchKernel(stub_a, one, one, NULL, 0, NULL) == cudaSuccess &&
	      fake.module_loads == 2);
	CHECK(cudaGetKernel(&kernel, stub_a) == cudaErrorNotSupported);
	__cudaUnregisterFatBinary(handle);
	CHECK(fake.unloads == 2);
}

static void no_binary(void)
{
	static const void *parts[] = {image, image, NULL};
	register_module();
	fake.library_result = CUDA_ERROR_NO_BINARY_FOR_GPU;
	CHECK(cudaLaunchKernel(stub_a, one, one, NULL, 0, NULL) == cudaErrorNoKernelImageForDevice && fake.links == 0);
	wrapper.version = 2;
	wrapper.more = parts;
	void **handle = __cudaRegisterFatBinary(&wrapper);
	__cudaRegisterFunction(handle, stub_b, NULL, "kernel_b", -1, NULL, NULL, NULL, NULL, NULL);
	CHECK(cudaLaunchKernel(stub_b, one, one, NULL, 0, NULL) == cudaSuccess && fake.links == 2);
	CHECK(strcmp(fake.last_image, "linked") == 0);
	/* A wrapper of a version that nobody knows yet. */
	wrapper.version = 3;
	handle = __cudaRegisterFatBinary(&wrapper);
	__cudaRegisterFunction(handle, stub_b + 1, NULL, "kernel_c", -1, NULL, NULL, NULL, NULL, NULL);
	CHECK(cudaLaunchKernel(stub_b + 1, one, one, NULL, 0, NULL) == cudaErrorInvalidKernelImage);
}

static void call_configurations(void)
{
	dim3 grid, block;
	size_t shared_bytes;
	cudaStream_t stream;
	for (unsigned i = 1; i <= 10; i++)
		CHECK(__cudaPushCallConfiguration((dim3){i, 2, 3}, (dim3){4, i, 6}, i * 10, (cudaStream_t)(uintptr_t)(i + 100)) == 0);
	for (unsigned i = 10; i >= 1; i--) {
		CHECK(__cudaPopCallConfiguration(&grid, &block, &shared_bytes, &stream) == cudaSuccess);
		CHECK(grid.x == i && grid.z == 3 && block.y == i && shared_bytes == i * 10 && (uintptr_t)stream == i + 100);
	}
	CHECK(__cudaPopCallConfiguration(&grid, &block, &shared_bytes, &stream) == cudaErrorMissingConfiguration);
}

static void copies(void)
{
	char a[16] = "source", b[16] = "";
	void *device = (void *)0x7000;
	CHECK(cudaMemcpy(device, a, 6, cudaMemcpyHostToDevice) == cudaSuccess && strcmp(fake.last_call, "HtoD") == 0);
	CHECK(fake.last_dst == 0x7000 && fake.last_src == (CUdeviceptr)(uintptr_t)a && fake.last_count == 6);
	CHECK(cudaMemcpy(b, device, 6, cudaMemcpyDeviceToHost) == cudaSuccess && strcmp(fake.last_call, "DtoH") == 0);
	CHECK(cudaMemcpy(device, device, 6, cudaMemcpyDeviceToDevice) == cudaSuccess && strcmp(fake.last_call, "DtoD") == 0);
	CHECK(cudaMemcpy(device, a, 6, cudaMemcpyDefault) == cudaSuccess && strcmp(fake.last_call, "default") == 0);
	CHECK(cudaMemcpy(b, a, 7, cudaMemcpyHostToHost) == cudaSuccess && strcmp(b, "source") == 0);
	int syncs = fake.syncs;
	CHECK(cudaMemcpy_ptds(b, device, 6, cudaMemcpyDeviceToHost) == cudaSuccess && fake.syncs == syncs + 1);
	CHECK(fake.last_stream == CU_STREAM_PER_THREAD);
	CHECK(cudaMemcpy_ptds(device, device, 6, cudaMemcpyDeviceToDevice) == cudaSuccess && fake.syncs == syncs + 1);
	CHECK(cudaMemcpyAsync_ptsz(device, a, 6, cudaMemcpyHostToDevice, NULL) == cudaSuccess && fake.last_stream == CU_STREAM_PER_THREAD);
	CHECK(cudaMemcpyAsync_ptsz(device, a, 6, cudaMemcpyHostToDevice, (cudaStream_t)1) == cudaSuccess &&
	      fake.last_stream == CU_STREAM_LEGACY);
	CHECK(cudaMemcpy(NULL, a, 6, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
	CHECK(cudaMemcpy(NULL, a, 0, cudaMemcpyHostToDevice) == cudaSuccess);
	CHECK(cudaMemcpy2D(device, 8, a, 4, 8, 2, cudaMemcpyHostToDevice) == cudaErrorInvalidPitchValue);
	CHECK(cudaMemcpy2D(device, 8, a, 8, 8, 2, cudaMemcpyHostToDevice) == cudaSuccess && fake.last_count == 16);
	register_module();
	CHECK(cudaMemcpyToSymbol(variable, a, 6, 8, cudaMemcpyHostToDevice) == cudaSuccess && fake.last_dst == 0x50008);
	CHECK(cudaMemcpyToSymbol(variable, a, 6, 60, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
	CHECK(cudaMemcpyToSymbol(variable, a, 6, SIZE_MAX, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
	CHECK(cudaMemcpyFromSymbol(b, variable, 6, 0, cudaMemcpyHostToDevice) == cudaErrorInvalidMemcpyDirection);
	CHECK(cudaMemcpyFromSymbol(b, variable, 64, 0, cudaMemcpyDeviceToHost) == cudaSuccess && fake.last_src == 0x50000);
}

static void after_fork(void)
{
	int device = 7, status = -1;
	cudaFree(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		bool good = cudaGetDevice(&device) == cudaErrorInitializationError && device == 7 &&
			    cudaFree(NULL) == cudaErrorInitializationError && cudaGetDeviceCount(&device) == cudaErrorInitializationError &&
			    cudaGetLastError() == cudaErrorInitializationError && fake.inits == 1;
		_exit(good ? 0 : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(cudaGetDevice(&device) == cudaSuccess && device == 0);
}

static void *reset_first(void *unused)
{
	CHECK(cudaDeviceReset() == cudaSuccess);
	return NULL;
}

/* A thread whose context another one has reset retains it anew, and looks its functions up again. */
static void reset_elsewhere(void)
{
	pthread_t thread;
	register_module();
	CHECK(cudaLaunchKernel(stub_a, one, one, NULL, 0, NULL) == cudaSuccess && fake.retains == 1 && fake.gets == 1);
	CHECK(pthread_create(&thread, NULL, reset_first, NULL) == 0 && pthread_join(thread, NULL) == 0);
	CHECK(cudaLaunchKernel(stub_a, one, one, NULL, 0, NULL) == cudaSuccess && fake.retains == 2 && fake.gets == 2);
	CHECK(cudaLaunchKernel(stub_a, one, one, NULL, 0, NULL) == cudaSuccess && fake.retains == 2 && fake.gets == 2);
}

static void **exit_module;

static void unregister_at_exit(void)
{
	__cudaUnregisterFatBinary(exit_module);
	_exit(fake.unloads == 0 && fake.library_loads == 1 ? 0 : 1);
}

/* As nvcc's host code does it: registered at start, unregistered by a handler; the process is ending, so nothing is unloaded. */
static void at_exit(void)
{
	exit_module = register_module();
	atexit(unregister_at_exit);
	CHECK(cudaLaunchKernel(stub_a, one, one, NULL, 0, NULL) == cudaSuccess);
	if (!failed)
		exit(2);
}

/* What programs call all the time asks the driver for nothing but the launch itself, and allocates nothing. */
static void hot(void)
{
	enum { CALLS = 2000 };
	struct fake before;
	cudaKernel_t kernel;
	int device = -1;
	register_module();
	__cudaGetKernel(&kernel, stub_a);
	CHECK(cudaSetDevice(0) == cudaSuccess);
	CHECK(__cudaLaunchKernel(kernel, one, one, NULL, 0, NULL) == cudaSuccess);
	memcpy(&before, &fake, sizeof fake);
	size_t allocated = mallinfo2().uordblks;
	for (int i = 0; i < CALLS; i++)
		CHECK(cudaGetDevice(&device) == cudaSuccess && device == 0);
	CHECK(memcmp(&before, &fake, sizeof fake) == 0);
	for (int i = 0; i < CALLS; i++) {
		dim3 grid, block;
		size_t shared_bytes;
		cudaStream_t stream;
		__cudaPushCallConfiguration(one, one, 0, NULL);
		__cudaPopCallConfiguration(&grid, &block, &shared_bytes, &stream);
		CHECK(__cudaLaunchKernel(kernel, grid, block, NULL, shared_bytes, stream) == cudaSuccess);
	}
	CHECK(fake.launches == before.launches + CALLS);
	before.launches = fake.launches;
	CHECK(memcmp(&before, &fake, sizeof fake) == 0);
	CHECK(mallinfo2().uordblks == allocated);
}

#define TESTS(X)                                                                                                                           \
	X(lazy)                                                                                                                            \
	X(errors)                                                                                                                          \
	X(no_device) X(old_driver) X(launches) X(early_get_kernel) X(modules_only) X(no_binary) X(call_configurations) X(copies)           \
		X(after_fork) X(reset_elsewhere) X(at_exit) X(hot)
#define IN_CHILD(name)                                                                                                                     \
	static void test_##name(void)                                                                                                      \
	{                                                                                                                                  \
		in_child(name);                                                                                                            \
	}
TESTS(IN_CHILD)

int main(void)
{
	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	CU_pSuite suite = CU_add_suite("cudart", NULL, NULL);
#define ADD(name) CU_add_test(suite, #name, test_##name);
	TESTS(ADD)
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures != 0;
}
