/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/module/module.c: modules, functions, launches, libraries, occupancy, what kernels print.
 */
#include <fcntl.h>
#include <unistd.h>

#include "soft_test.h"

static void test_load(void)
{
	test_context();
	CUmodule module;
	CUfunction function, list[8] = {NULL};
	CUdeviceptr p;
	size_t size;
	unsigned count = 0;
	int value = 0;
	OK(cuModuleLoadData(&module, test_ptx));
	OK(cuModuleGetFunctionCount(&count, module));
	CU_ASSERT_EQUAL(count, 4);
	OK(cuModuleEnumerateFunctions(list, 8, module));
	CU_ASSERT_PTR_NOT_NULL(list[3]);
	CU_ASSERT_PTR_NULL(list[4]);
	OK(cuModuleGetFunction(&function, module, "touch"));
	CHECK_RESULT(cuModuleGetFunction(&function, module, "banana"), CUDA_ERROR_NOT_FOUND);
	OK(cuModuleGetGlobal(&p, &size, module, "counter"));
	CU_ASSERT_EQUAL(size, 4);
	OK(cuMemcpyDtoH(&value, p, 4));
	CU_ASSERT_EQUAL(value, 7);
	CHECK_RESULT(cuModuleGetGlobal(&p, &size, module, "banana"), CUDA_ERROR_NOT_FOUND);
	CHECK_RESULT(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
	const char *name = NULL;
	OK(cuFuncGetName(&name, function));
	CU_ASSERT_STRING_EQUAL(name, "touch");
	CUmodule of = NULL;
	OK(cuFuncGetModule(&of, function));
	CU_ASSERT_PTR_EQUAL(of, module);
	OK(cuModuleUnload(module));
	CHECK_RESULT(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
	CHECK_RESULT(cuFuncGetName(&name, function), CUDA_ERROR_INVALID_HANDLE);
	CHECK_RESULT(cuMemcpyDtoH(&value, p, 4), CUDA_ERROR_INVALID_VALUE);
	size_t left, total;
	OK(cuMemGetInfo(&left, &total));
	CU_ASSERT_EQUAL(left, total);
}

static void test_errors(void)
{
	test_context();
	CUmodule module;
	char log[256] = "untouched";
	static const char unknown[] = PTX_HEADER ".visible .entry k()\n{\nbanana.b32;\nret;\n}\n";
	CUjit_option options[] = {
		CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_WALL_TIME};
	void *values[] = {log, (void *)sizeof(log), NULL};
	CHECK_RESULT(
		cuModuleLoadDataEx(&module, unknown, 3, options, values), CUDA_ERROR_INVALID_PTX);
	CU_ASSERT_PTR_NOT_NULL(strstr(log, "banana"));
	CU_ASSERT_PTR_NOT_NULL(strstr(log, "6")); /* its line */
	CU_ASSERT_EQUAL((size_t)values[1], strlen(log));
	CHECK_RESULT(cuModuleLoadData(&module, "what is this"), CUDA_ERROR_INVALID_IMAGE);
	CHECK_RESULT(cuModuleLoadData(&module, ""), CUDA_ERROR_INVALID_IMAGE);
	CHECK_RESULT(cuModuleLoadData(&module,
			     "\x7f"
			     "ELF\2\1\1"),
		CUDA_ERROR_NO_BINARY_FOR_GPU);
	CHECK_RESULT(cuModuleLoadData(&module, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuModuleLoad(&module, "/nonexistent.ptx"), CUDA_ERROR_FILE_NOT_FOUND);
	CHECK_RESULT(cuModuleLoadData(&module, ".version 8.7\n.target sm_121\n.address_size 64\n"),
		CUDA_ERROR_NO_BINARY_FOR_GPU);
	static const unsigned char empty[16] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0};
	CHECK_RESULT(cuModuleLoadData(&module, empty), CUDA_ERROR_NO_BINARY_FOR_GPU);
	/* A damaged container: its length reaches further than its entries make sense. */
	static const unsigned char damaged[64] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 48, 0, 0, 0,
		0, 0, 0, 0, 1, 0, 1, 1, 255, 255, 255, 255};
	CHECK_RESULT(cuModuleLoadData(&module, damaged), CUDA_ERROR_NO_BINARY_FOR_GPU);
}

/*
 * A kernel with an instruction that is refused is refused when it is asked for, others of its
 * module run; said once a process.
 */
static void test_refused_kernel(void)
{
	test_context();
	CUmodule module;
	CUlibrary library;
	CUkernel kernels[2];
	CUfunction bad = NULL, good, list[2];
	CUdeviceptr p;
	unsigned n = 0;
	static const char text[] = PTX_HEADER
		".visible .entry bad()\n{\n.reg .b32 %r<2>;\nbanana.b32 %r1, 5;\nret;\n}\n"
		".visible .entry good(.param .u64 p) { .reg .b64 %rd<2>; ld.param.u64 %rd1, [p]; st.global.u32 [%rd1], 7; ret; }\n";
	char said[4096] = "";
	int pipes[2], saved = dup(2);
	OK(cuMemAlloc(&p, 4));
	void *params[] = {&p};
	int value = 0;
	CU_ASSERT_FATAL(!pipe(pipes));
	fflush(stderr);
	dup2(pipes[1], 2);
	OK(cuModuleLoadData(&module, text));
	CHECK_RESULT(cuModuleGetFunction(&bad, module, "bad"), CUDA_ERROR_INVALID_PTX);
	CHECK_RESULT(cuModuleGetFunction(&bad, module, "bad"), CUDA_ERROR_INVALID_PTX);
	CU_ASSERT_PTR_NULL(bad);
	OK(cuModuleGetFunctionCount(&n, module));
	CU_ASSERT_EQUAL(n, 2);
	OK(cuModuleEnumerateFunctions(list, 2, module));
	CHECK_RESULT(cuFuncLoad(list[0]), CUDA_ERROR_INVALID_PTX);
	CHECK_RESULT(cuLaunchKernel(list[0], 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL),
		CUDA_ERROR_INVALID_PTX);
	OK(cuModuleGetFunction(&good, module, "good"));
	OK(cuLaunchKernel(good, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	OK(cuMemcpyDtoH(&value, p, 4));
	CUgraph graph;
	CUgraphNode node;
	CUDA_KERNEL_NODE_PARAMS params_of = {.func = list[0],
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1};
	OK(cuGraphCreate(&graph, 0));
	CHECK_RESULT(
		cuGraphAddKernelNode(&node, graph, NULL, 0, &params_of), CUDA_ERROR_INVALID_PTX);
	OK(cuGraphDestroy(graph));
	OK(cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
	CHECK_RESULT(cuLibraryGetKernel(&kernels[0], library, "bad"), CUDA_ERROR_INVALID_PTX);
	CHECK_RESULT(cuLibraryGetKernel(&kernels[0], library, "bad"), CUDA_ERROR_INVALID_PTX);
	OK(cuLibraryEnumerateKernels(kernels, 2, library));
	OK(cuLibraryGetKernel(&kernels[1], library, "good"));
	OK(cuLaunchKernel((CUfunction)kernels[1], 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	OK(cuLibraryUnload(library));
	OK(cuModuleUnload(module));
	fflush(stderr);
	dup2(saved, 2);
	close(saved);
	close(pipes[1]);
	CU_ASSERT(read(pipes[0], said, sizeof said - 1) > 0);
	close(pipes[0]);
	CU_ASSERT_EQUAL(value, 7);
	static const char line[] = "kernel bad cannot run: ";
	const char *first = strstr(said, line);
	CU_ASSERT_PTR_NOT_NULL(first);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "unknown instruction 'banana': banana.b32 %r1, 5"));
	/* the library's is the same, refused for the same */
	CU_ASSERT(first && !strstr(first + 1, line));
}

static void test_launch_checks(void)
{
	test_context();
	CUfunction f = test_function("add_one");
	CUdeviceptr p;
	int values[32] = {0};
	OK(cuMemAlloc(&p, sizeof(values)));
	void *params[] = {&p};
	CHECK_RESULT(cuLaunchKernel(f, 0, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuLaunchKernel(f, 1, 65536, 1, 1, 1, 1, 0, NULL, params, NULL),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuLaunchKernel(f, 1, 1, 1, 1025, 1, 1, 0, NULL, params, NULL),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuLaunchKernel(f, 1, 1, 1, 32, 64, 1, 0, NULL, params, NULL),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuLaunchKernel(f, 1, 1, 1, 1, 1, 65, 0, NULL, params, NULL),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 49153, NULL, params, NULL),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL),
		CUDA_ERROR_INVALID_HANDLE);
	CHECK_RESULT(
		cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuLaunchCooperativeKernel(f, 1 << 20, 1, 1, 32, 1, 1, 0, NULL, params),
		CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	/* More shared memory after asking for it, but not more than there is. */
	OK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000));
	OK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 60000, NULL, params, NULL));
	CHECK_RESULT(
		cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 300 << 10),
		CUDA_ERROR_INVALID_VALUE);
	/* Parameters in one buffer, and through cuLaunchKernelEx. */
	size_t size = sizeof(p);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &p, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
		CU_LAUNCH_PARAM_END};
	OK(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra));
	size = 4;
	CHECK_RESULT(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra),
		CUDA_ERROR_INVALID_VALUE);
	CUlaunchAttribute attributes[2] = {
		{.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value = {.cooperative = 1}},
		{.id = CU_LAUNCH_ATTRIBUTE_PRIORITY}};
	CUlaunchConfig config = {.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 32,
		.blockDimY = 1,
		.blockDimZ = 1,
		.attrs = attributes,
		.numAttrs = 2};
	OK(cuLaunchKernelEx(&config, f, params, NULL));
	attributes[1].id = (CUlaunchAttributeID)999;
	CHECK_RESULT(cuLaunchKernelEx(&config, f, params, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemcpyDtoH(values, p, sizeof(values)));
	CU_ASSERT_EQUAL(values[0], 3);
	CU_ASSERT_EQUAL(values[31], 3);
	size_t offset = 9, bytes = 9;
	OK(cuFuncGetParamInfo(f, 0, &offset, &bytes));
	CU_ASSERT_EQUAL(offset, 0);
	CU_ASSERT_EQUAL(bytes, 8);
	CHECK_RESULT(cuFuncGetParamInfo(f, 1, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
}

static void test_occupancy(void)
{
	test_context();
	CUfunction f = test_function("touch");
	int blocks = 0, grid = 0, block = 0, sm = 0, threads = 0;
	size_t shared = 0;
	OK(cuDeviceGetAttribute(&sm, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	OK(cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0));
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 256, 0));
	CU_ASSERT_EQUAL(blocks, threads / 256);
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 256, 40 << 10));
	CU_ASSERT_EQUAL(blocks, 2); /* 100 KiB of shared memory, 41 each */
	OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, 0));
	CU_ASSERT_EQUAL(grid * block, sm * threads);
	OK(cuOccupancyAvailableDynamicSMemPerBlock(&shared, f, 2, 256));
	CU_ASSERT_EQUAL(shared, 49 << 10);
	CHECK_RESULT(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 0, 0),
		CUDA_ERROR_INVALID_VALUE);
}

static void test_library(void)
{
	CUcontext primary = test_context(), second = NULL;
	CUlibrary library;
	CUkernel kernel, none;
	CUfunction one, two;
	CUdeviceptr p, counter_one, counter_two;
	size_t size;
	unsigned count = 0;
	int value = 0;
	OK(cuLibraryLoadData(&library, test_ptx, NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernelCount(&count, library));
	CU_ASSERT_EQUAL(count, 4);
	OK(cuLibraryGetKernel(&kernel, library, "add_one"));
	CHECK_RESULT(cuLibraryGetKernel(&none, library, "banana"), CUDA_ERROR_NOT_FOUND);
	OK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 50000, kernel, 0));
	OK(cuKernelGetFunction(&one, kernel));
	OK(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, one));
	CU_ASSERT_EQUAL(value, 50000);
	OK(cuLibraryGetGlobal(&counter_one, &size, library, "counter"));
	OK(cuMemAlloc(&p, 4));
	OK(cuMemsetD32(p, 5, 1));
	void *params[] = {&p};
	/* A kernel stands for the function of the current context. */
	OK(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	OK(cuMemcpyDtoH(&value, p, 4));
	CU_ASSERT_EQUAL(value, 6);
	OK(cuCtxCreate(&second, NULL, 0, 0));
	OK(cuKernelGetFunction(&two, kernel));
	CU_ASSERT_PTR_NOT_EQUAL(one, two);
	OK(cuLibraryGetGlobal(&counter_two, &size, library, "counter"));
	CU_ASSERT_NOT_EQUAL(counter_one, counter_two);
	OK(cuCtxDestroy(second));
	OK(cuCtxSetCurrent(primary));
	CUmodule module;
	OK(cuLibraryGetModule(&module, library));
	CHECK_RESULT(cuModuleUnload(module), CUDA_ERROR_NOT_PERMITTED);
	OK(cuLibraryUnload(library));
	CHECK_RESULT(cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
	CHECK_RESULT(cuKernelGetFunction(&one, kernel), CUDA_ERROR_INVALID_HANDLE);
	CHECK_RESULT(cuMemcpyDtoH(&value, counter_one, 4), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuLibraryLoadData(&library, "nonsense", NULL, NULL, 0, NULL, NULL, 0),
		CUDA_ERROR_INVALID_IMAGE);
}

static const char print_ptx[] = PTX_HEADER
	".extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);\n"
	".global .align 1 .b8 text[4] = {104, 105, 10, 0};\n"
	".visible .entry hi()\n{\n.reg .b64 %rd<4>; .reg .b32 %r<2>;\n"
	"mov.u64 %rd1, text; cvta.global.u64 %rd2, %rd1; mov.u64 %rd3, 0;\n"
	"{ .param .b64 p0; st.param.b64 [p0], %rd2; .param .b64 p1; st.param.b64 [p1], %rd3; .param .b32 rv;\n"
	"call.uni (rv), vprintf, (p0, p1); ld.param.b32 %r1, [rv]; }\nret;\n}\n";

/* What a kernel prints comes out at a synchronisation, on standard output. */
static void test_printf(void)
{
	test_context();
	CUmodule module;
	CUfunction hi;
	CUstream stream;
	OK(cuModuleLoadData(&module, print_ptx));
	OK(cuModuleGetFunction(&hi, module, "hi"));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	fflush(stdout);
	int fds[2], saved = dup(1);
	CU_ASSERT_EQUAL(pipe2(fds, O_NONBLOCK), 0);
	dup2(fds[1], 1);
	OK(cuLaunchKernel(hi, 1, 1, 1, 2, 1, 1, 0, stream, NULL, NULL));
	while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY)
		usleep(100);
	char text[64] = "";
	ssize_t early = read(fds[0], text, sizeof(text));
	OK(cuStreamSynchronize(stream));
	ssize_t n = read(fds[0], text, sizeof(text) - 1);
	dup2(saved, 1);
	close(saved);
	close(fds[0]);
	close(fds[1]);
	CU_ASSERT_EQUAL(early, -1);
	CU_ASSERT_EQUAL(n, 6);
	CU_ASSERT_EQUAL(memcmp(text, "hi\nhi\n", 6), 0);
}

int main(void)
{
	static const struct soft_test tests[] = {
		{"load", test_load},
		{"errors", test_errors},
		{"refused kernel", test_refused_kernel},
		{"launch checks", test_launch_checks},
		{"occupancy", test_occupancy},
		{"library", test_library},
		{"printf", test_printf},
	};
	return RUN_TESTS("soft module", tests);
}
