/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/stream/stream_api.c: what a stream tells, attributes, callbacks, and handles that are
 * none.
 */
#include "files.h"

static void test_told(void)
{
	static const int priorities[][2] = {{0, 0}, {-3, -3}, {5, 0}, {-100, -5}};
	CUstream stream;
	CUcontext context = test_context(), of = NULL;
	CUdevice device = 77;
	unsigned flags = 77;
	int priority = 77;
	for (size_t i = 0; i < COUNT(priorities); i++) {
		OK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, priorities[i][0]));
		OK(cuStreamGetPriority(stream, &priority));
		IS(priority, priorities[i][1]);
		OK(cuStreamDestroy(stream));
	}
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuStreamGetFlags(stream, &flags));
	IS(flags, CU_STREAM_NON_BLOCKING);
	OK(cuStreamGetFlags(NULL, &flags));
	IS(flags, CU_STREAM_DEFAULT);
	OK(cuStreamGetCtx(stream, &of));
	YES(of == context);
	OK(cuStreamGetDevice(stream, &device));
	IS(device, 0);
	CHECK_RESULT(cuStreamCreate(&stream, 2), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuStreamCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuStreamGetFlags(stream, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuStreamGetPriority(stream, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuStreamGetId(stream, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuStreamGetCtx(stream, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuStreamGetDevice(stream, NULL), CUDA_ERROR_INVALID_VALUE);
	for (uintptr_t special = 0; special < 3; special++)
		CHECK_RESULT(cuStreamDestroy((CUstream)special), CUDA_ERROR_INVALID_HANDLE);
	/*
	 * Known by its handle while another context is current, too; the default stream is the
	 * current one's.
	 */
	CUcontext second = files_second();
	OK(cuStreamSynchronize(stream));
	OK(cuStreamGetCtx(stream, &of));
	YES(of == context);
	OK(cuStreamGetCtx(NULL, &of));
	YES(of == second);
	OK(cuStreamGetDevice(CU_STREAM_PER_THREAD, &device));
	IS(device, 1);
	files_second_end(second);
	OK(cuStreamDestroy(stream));
	CHECK_RESULT(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
	CHECK_RESULT(cuStreamGetId(stream, &(unsigned long long){0}), CUDA_ERROR_INVALID_HANDLE);
}

static void test_attributes(void)
{
	CUstream a, b;
	CUstreamAttrValue value = {.syncPolicy = CU_SYNC_POLICY_YIELD}, told;
	int priority = 77;
	test_context();
	OK(cuStreamCreate(&a, 0));
	OK(cuStreamCreate(&b, 0));
	OK(cuStreamSetAttribute(a, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
	value = (CUstreamAttrValue){.priority = -2};
	OK(cuStreamSetAttribute(a, CU_STREAM_ATTRIBUTE_PRIORITY, &value));
	OK(cuStreamCopyAttributes(b, a));
	OK(cuStreamGetAttribute(b, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY, &told));
	IS(told.syncPolicy, CU_SYNC_POLICY_YIELD);
	OK(cuStreamGetAttribute(b, CU_STREAM_ATTRIBUTE_PRIORITY, &told));
	IS(told.priority, -2);
	OK(cuStreamGetPriority(b, &priority));
	IS(priority, -2);
	CHECK_RESULT(cuStreamSetAttribute(a, CU_STREAM_ATTRIBUTE_PRIORITY, NULL),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuStreamGetAttribute(a, CU_STREAM_ATTRIBUTE_PRIORITY, NULL),
		CUDA_ERROR_INVALID_VALUE);
	static const int strange[] = {-1, 0, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 31, 32, 1000};
	for (size_t i = 0; i < COUNT(strange); i++) {
		CHECK_RESULT(cuStreamSetAttribute(a, (CUstreamAttrID)strange[i], &value),
			CUDA_ERROR_INVALID_VALUE);
		CHECK_RESULT(cuStreamGetAttribute(a, (CUstreamAttrID)strange[i], &told),
			CUDA_ERROR_INVALID_VALUE);
	}
	CHECK_RESULT(
		cuStreamCopyAttributes(b, (CUstream)(uintptr_t)0x1230), CUDA_ERROR_INVALID_HANDLE);
	CHECK_RESULT(
		cuStreamCopyAttributes((CUstream)(uintptr_t)0x1230, b), CUDA_ERROR_INVALID_HANDLE);
	OK(cuStreamCopyAttributes(b, b));
	OK(cuStreamDestroy(a));
	OK(cuStreamDestroy(b));
}

static struct {
	CUstream stream;
	CUresult status;
	int n;
} called;

static void CUDA_CB back(CUstream stream, CUresult status, void *data)
{
	called.stream = stream;
	called.status = status;
	called.n += *(int *)data;
}

static void CUDA_CB host(void *data)
{
	called.n += *(int *)data;
}

static void test_callbacks(void)
{
	CUstream stream;
	int one = 1, ten = 10;
	test_context();
	OK(cuStreamCreate(&stream, 0));
	called.n = 0;
	OK(cuStreamAddCallback(stream, back, &one, 0));
	OK(cuLaunchHostFunc(stream, host, &ten));
	OK(cuStreamSynchronize(stream));
	YES(called.stream == stream && called.status == CUDA_SUCCESS);
	IS(called.n, 11);
	CHECK_RESULT(cuStreamAddCallback(stream, back, &one, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuStreamAddCallback(stream, NULL, &one, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuLaunchHostFunc(stream, NULL, &one), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuLaunchHostFunc((CUstream)(uintptr_t)0x1230, host, &one),
		CUDA_ERROR_INVALID_HANDLE);
	IS(called.n, 11);
	OK(cuStreamDestroy(stream));
}

static void CUDA_CB ask(void *ret)
{
	CUdeviceptr p;
	*(CUresult *)ret = cuMemAlloc(&p, 64);
}

/* They may not ask the driver for anything. */
static void test_asking(void)
{
	CUresult told = CUDA_SUCCESS;
	test_context();
	OK(cuLaunchHostFunc(NULL, ask, &told));
	OK(cuStreamSynchronize(NULL));
	IS(told, CUDA_ERROR_NOT_PERMITTED);
	ask(&told);
	IS(told, CUDA_SUCCESS);
}

static void test_attach(void)
{
	CUdeviceptr managed, plain;
	test_context();
	OK(cuMemAllocManaged(&managed, 8192, CU_MEM_ATTACH_HOST));
	OK(cuMemAlloc(&plain, 8192));
	OK(cuStreamAttachMemAsync(NULL, managed, 0, CU_MEM_ATTACH_GLOBAL));
	OK(cuStreamAttachMemAsync(NULL, managed, 8192, CU_MEM_ATTACH_HOST));
	CHECK_RESULT(cuStreamAttachMemAsync(NULL, managed, 8193, CU_MEM_ATTACH_HOST),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuStreamAttachMemAsync(NULL, managed, 0, 3), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuStreamAttachMemAsync(NULL, managed, 0, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuStreamAttachMemAsync(NULL, plain, 0, CU_MEM_ATTACH_GLOBAL),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(managed));
	OK(cuMemFree(plain));
}

UNIT_SUITE(softgpu / stream / stream_api, {"told", test_told}, {"attributes", test_attributes},
	{"callbacks", test_callbacks}, {"asking", test_asking}, {"attach", test_attach})
