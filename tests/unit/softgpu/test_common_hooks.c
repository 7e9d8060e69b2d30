/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/context/common_hooks.c: what cudacommon/ asks the soft GPU: streams by number, addresses,
 * arrays, functions and their parameters.
 */
#include "cudacommon/graph.h"
#include "files.h"
#include "softgpu/stream/stream.h"

static void test_streams(void)
{
	CUstream stream;
	uint64_t number = 77, other = 77;
	test_context();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(ckt_stream_resolve(NULL, &number));
	IS(number, 0);
	OK(ckt_stream_resolve(CU_STREAM_LEGACY, &number));
	IS(number, 0);
	OK(ckt_stream_resolve(stream, &number));
	IS(number, (uintptr_t)stream);
	IS(ckt_stream_flags(number), CU_STREAM_NON_BLOCKING);
	IS(ckt_stream_flags(0), CU_STREAM_DEFAULT);
	/* The thread's own is one stream, whichever way it is named. */
	OK(ckt_stream_resolve(CU_STREAM_PER_THREAD, &number));
	ckt_soft_per_thread_default++;
	OK(ckt_stream_resolve(NULL, &other));
	ckt_soft_per_thread_default--;
	YES(number > 2);
	IS(other, number);
	OK(cuStreamDestroy(stream));
	CHECK_RESULT(ckt_stream_resolve(stream, &number), CUDA_ERROR_INVALID_HANDLE);
}

static void test_places(void)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor = {
		.Width = 8, .Height = 4, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};
	CUarray array;
	CUdeviceptr memory;
	void *host;
	int here;
	test_context();
	OK(cuMemAlloc(&memory, 256));
	OK(cuMemAllocHost(&host, 256));
	OK(cuArray3DCreate(&array, &descriptor));
	YES(ckt_cudacommon_on_device(memory + 255));
	NO(ckt_cudacommon_on_device((uintptr_t)host));
	NO(ckt_cudacommon_on_device((uintptr_t)&here));
	OK(ckt_cudacommon_array_box(array, (size_t[3]){16, 1, 0}, (size_t[3]){16, 3, 1}));
	CHECK_RESULT(ckt_cudacommon_array_box(array, (size_t[3]){20, 1, 0}, (size_t[3]){16, 3, 1}),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(ckt_cudacommon_array_box((CUarray)&here, (size_t[3]){0}, (size_t[3]){4, 1, 1}),
		CUDA_ERROR_INVALID_HANDLE);
	OK(cuArrayDestroy(array));
	OK(cuMemFreeHost(host));
	OK(cuMemFree(memory));
}

static void test_functions(void)
{
	struct ckt_kernel_spec spec = {.grid = {1, 1, 1}, .block = {32, 1, 1}};
	size_t offset = 77, size = 77;
	test_context();
	spec.handle =
		files_kernel(".visible .entry two(.param .u32 a, .param .u64 b) { ret; }\n", "two");
	OK(ckt_cudacommon_kernel(&spec));
	IS(spec.param_count, 2);
	IS(spec.param_bytes, 16);
	ckt_cudacommon_kernel_param(&spec, 1, &offset, &size);
	IS(offset, 8);
	IS(size, 8);
	NO(ckt_cudacommon_is_kernel(spec.handle));
	spec.block[0] = 2048;
	CHECK_RESULT(ckt_cudacommon_kernel(&spec), CUDA_ERROR_INVALID_VALUE);
	spec.handle = (CUfunction)&spec;
	CHECK_RESULT(ckt_cudacommon_kernel(&spec), CUDA_ERROR_INVALID_HANDLE);
}

UNIT_SUITE(softgpu / context / common_hooks, {"streams", test_streams}, {"places", test_places},
	{"functions", test_functions})
