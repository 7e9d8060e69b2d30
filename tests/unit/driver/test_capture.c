/* driver/capture.c: what is captured, what spoils it, and that a thread's mode is its own. */
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
	CHECK_RESULT(cuStreamIsCapturing((CUstream)(uintptr_t)0x1230, &status), CUDA_ERROR_INVALID_HANDLE);
	CHECK_RESULT(cuStreamGetCaptureInfo((CUstream)(uintptr_t)0x1230, &status, &id, NULL, NULL, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
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
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, other = CU_STREAM_CAPTURE_MODE_RELAXED;
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

UNIT_SUITE(driver/capture, {"status", test_status}, {"mode", test_mode})
