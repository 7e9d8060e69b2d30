/* SPDX-License-Identifier: Apache-2.0 */
/* cudacommon/capture.c: what is captured, what spoils it, and that a thread's mode is its own. */
#include <pthread.h>

#include "../softgpu/files.h"

static void test_status(void)
{
	test_context();
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
	cuuint64_t id = 77;
	CUgraph graph = (CUgraph)(uintptr_t)77;
	size_t n = 77;
	OK(cuStreamIsCapturing(NULL, &status));
	IS(status, CU_STREAM_CAPTURE_STATUS_NONE);
	/* Only the status is written. */
	status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
	OK(cuStreamGetCaptureInfo(CU_STREAM_PER_THREAD, &status, &id, &graph, NULL, NULL, &n));
	IS(status, CU_STREAM_CAPTURE_STATUS_NONE);
	YES(id == 77 && graph == (CUgraph)(uintptr_t)77 && n == 77);
	CHECK_RESULT(cuStreamIsCapturing(NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuStreamIsCapturing((CUstream)(uintptr_t)0x1230, &status),
		CUDA_ERROR_INVALID_HANDLE);
	CHECK_RESULT(cuStreamGetCaptureInfo(
			     (CUstream)(uintptr_t)0x1230, &status, &id, NULL, NULL, NULL, NULL),
		CUDA_ERROR_INVALID_HANDLE);
}

static void *mode_of_thread(void *ret)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	*(CUstreamCaptureMode *)ret = mode;
	return NULL;
}

static void test_mode(void)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
			    other = CU_STREAM_CAPTURE_MODE_RELAXED;
	pthread_t thread;
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	IS(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
	pthread_create(&thread, NULL, mode_of_thread, &other);
	pthread_join(thread, NULL);
	IS(other, CU_STREAM_CAPTURE_MODE_GLOBAL);
	CHECK_RESULT(cuThreadExchangeStreamCaptureMode(NULL), CUDA_ERROR_INVALID_VALUE);
	mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
	OK(cuThreadExchangeStreamCaptureMode(&mode));
	IS(mode, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

static void CUDA_CB add_one(void *number)
{
	++*(int *)number;
}

/* Every kind of work becomes a node, and the launch does it in order. */
static void test_kinds(void)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor = {
		.Width = 4, .Height = 2, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};
	unsigned here[8] = {1, 2, 3, 4, 5, 6, 7, 8}, back[8] = {0};
	int called = 0;
	CUstream stream, other;
	CUdeviceptr p;
	CUarray array;
	CUgraph graph;
	CUgraphExec exec;
	CUgraphNode nodes[8];
	CUgraphNodeType type;
	size_t count = COUNT(nodes);
	test_context();
	CUfunction kernel = test_function("add_one");
	void *values[] = {&p};
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&p, 256));
	OK(cuMemsetD32(p, 0, 64));
	OK(cuArray3DCreate(&array, &descriptor));
	CUDA_MEMCPY2D in = {.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = here,
		.srcPitch = 16,
		.dstMemoryType = CU_MEMORYTYPE_ARRAY,
		.dstArray = array,
		.WidthInBytes = 16,
		.Height = 2};
	CUDA_MEMCPY2D out = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
		.srcArray = array,
		.srcXInBytes = 4,
		.srcY = 1,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = p,
		.WidthInBytes = 12,
		.Height = 1};
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuMemcpy2DAsync(&in, stream));
	OK(cuMemcpy2DAsync(&out, stream));
	OK(cuLaunchKernel(kernel, 1, 1, 1, 2, 1, 1, 0, stream, values, NULL));
	OK(cuMemsetD16Async(p + 12, 0x1234, 2, stream));
	OK(cuStreamWriteValue32(stream, p + 16, 99, 0));
	OK(cuLaunchHostFunc(stream, add_one, &called));
	OK(cuMemcpyDtoHAsync(back, p, sizeof(back), stream));
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphGetNodes(graph, nodes, &count));
	MUST(count, 7);
	static const CUgraphNodeType want[] = {CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_MEMCPY,
		CU_GRAPH_NODE_TYPE_KERNEL, CU_GRAPH_NODE_TYPE_MEMSET,
		CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, CU_GRAPH_NODE_TYPE_HOST,
		CU_GRAPH_NODE_TYPE_MEMCPY};
	for (size_t i = 0; i < count; i++) {
		OK(cuGraphNodeGetType(nodes[i], &type));
		IS(type, want[i]);
	}
	IS(files_word(p), 0);
	IS(called, 0);
	OK(cuGraphInstantiate(&exec, graph, 0));
	/* Also while another stream captures: what the launch does is not captured. */
	OK(cuStreamBeginCapture(other, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	static const unsigned result[] = {7, 8, 8, 0x12341234, 99};
	for (size_t i = 0; i < COUNT(result); i++)
		IS(back[i], result[i]);
	IS(called, 1);
	CUgraph none;
	OK(cuStreamEndCapture(other, &none));
	count = COUNT(nodes);
	OK(cuGraphGetNodes(none, nodes, &count));
	IS(count, 0);
	OK(cuGraphDestroy(none));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuArrayDestroy(array));
	OK(cuMemFree(p));
	OK(cuStreamDestroy(stream));
	OK(cuStreamDestroy(other));
}

/* The graph that a capture goes into is its owner's already: its end need not tell it. */
static void test_into(void)
{
	CUstream stream;
	CUgraph graph, made = NULL;
	CUdeviceptr p;
	size_t count = 0;
	test_context();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&p, 4));
	CHECK_RESULT(cuStreamEndCapture(stream, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuGraphCreate(&graph, 0));
	for (unsigned i = 1; i < 3; i++) {
		OK(cuStreamBeginCaptureToGraph(
			stream, graph, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_RELAXED));
		OK(cuMemsetD8Async(p, 1, 4, stream));
		OK(cuStreamEndCapture(stream, i == 1 ? NULL : &made));
		OK(cuGraphGetNodes(graph, NULL, &count));
		IS(count, i);
	}
	YES(made == graph);
	OK(cuGraphDestroy(graph));
	/* A graph of the capture's own would be lost. */
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	CHECK_RESULT(cuStreamEndCapture(stream, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphDestroy(graph));
	OK(cuMemFree(p));
	OK(cuStreamDestroy(stream));
}

/*
 * What a capture does not allow spoils it, from any thread in the global mode, and nothing is left
 * of it.
 */
static void test_spoilt(void)
{
	CUstream stream;
	CUevent event;
	CUgraph graph = (CUgraph)(uintptr_t)77;
	CUdeviceptr p;
	CUstreamCaptureStatus status;
	test_context();
	OK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
	OK(cuEventCreate(&event, 0));
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	CHECK_RESULT(cuMemAlloc(&p, 64), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	OK(cuStreamIsCapturing(stream, &status));
	IS(status, CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	CHECK_RESULT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	CU_ASSERT_PTR_NULL(graph);
	OK(cuMemAlloc(&p, 64));
	/* The default stream would have to wait. */
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	CHECK_RESULT(cuMemsetD8Async(p, 1, 64, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	CHECK_RESULT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	/* An event in it is for nobody else. */
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuEventRecord(event, stream));
	CHECK_RESULT(cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
	CHECK_RESULT(cuEventSynchronize(event), CUDA_ERROR_CAPTURED_EVENT);
	CHECK_RESULT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	OK(cuEventRecord(event, stream));
	OK(cuEventSynchronize(event));
	/* A stream that goes takes its capture with it. */
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuStreamDestroy(stream));
	OK(cuMemsetD8Async(p, 1, 64, NULL));
	OK(cuCtxSynchronize());
	OK(cuEventDestroy(event));
	OK(cuMemFree(p));
}

/*
 * A stream that took part and goes leaves what it captured; whether that is joined is asked at the
 * end (seen on an H200).
 */
static void test_gone(void)
{
	CUstream origin, stream;
	CUevent event;
	CUgraph graph;
	CUdeviceptr p;
	CUstreamCaptureStatus status;
	size_t count = 0;
	test_context();
	OK(cuMemAlloc(&p, 64));
	OK(cuStreamCreate(&origin, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	for (int joined = 0; joined < 2; joined++) {
		OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
		OK(cuStreamBeginCapture(origin, CU_STREAM_CAPTURE_MODE_GLOBAL));
		OK(cuEventRecord(event, origin));
		OK(cuStreamWaitEvent(stream, event, 0));
		OK(cuMemsetD8Async(p, 1, 4, stream));
		OK(cuEventRecord(event, stream));
		OK(cuStreamDestroy(stream));
		OK(cuStreamIsCapturing(origin, &status));
		IS(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
		CHECK_RESULT(cuStreamIsCapturing(stream, &status), CUDA_ERROR_INVALID_HANDLE);
		if (joined)
			OK(cuStreamWaitEvent(origin, event, 0));
		OK(cuMemsetD8Async(p + 8, 1, 4, origin));
		CHECK_RESULT(cuStreamEndCapture(origin, &graph),
			joined ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
	}
	OK(cuGraphGetNodes(graph, NULL, &count));
	IS(count, 2);
	OK(cuGraphDestroy(graph));
	OK(cuEventDestroy(event));
	OK(cuStreamDestroy(origin));
	OK(cuMemFree(p));
}

UNIT_SUITE(cudacommon / capture, {"gone", test_gone}, {"into", test_into}, {"status", test_status},
	{"mode", test_mode}, {"kinds", test_kinds}, {"spoilt", test_spoilt})
