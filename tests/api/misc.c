/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors' names, entry points, the profiler, the log, core dumps, tensor maps, user objects,
 * capture modes.
 */
#include "driver.h"
#include <cudaProfiler.h>

#include <stdbool.h>

CASE(errors)
{
	static const int codes[] = {0, 1, 2, 3, 4, 100, 101, 200, 201, 209, 218, 300, 301, 304, 400,
		500, 600, 700, 701, 702, 710, 719, 800, 801, 900, 908, 999};
	const char *text;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		text = NULL;
		CALL(cuGetErrorName, (CUresult)codes[i], &text);
		TEXT("name", text);
		text = NULL;
		CALL(cuGetErrorString, (CUresult)codes[i], &text);
		TEXT("text", text);
	}
	text = "before";
	CALL(cuGetErrorName, (CUresult)12345, &text);
	TEXT("name", text);
	text = "before";
	CALL(cuGetErrorString, (CUresult)-1, &text);
	TEXT("text", text);
}

CASE(entry_points)
{
	void *f = (void *)8, *g = NULL;
	CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)77;
	QUIET(cuInit, 0);
	CALL(cuGetProcAddress_v2, "cuMemAlloc", &f, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &status);
	NUMBER("status", status);
	YES("the second version", f == api_symbol("cuMemAlloc_v2"));
	CALL(cuGetProcAddress_v2, "cuMemAlloc", &f, 2000, CU_GET_PROC_ADDRESS_DEFAULT, &status);
	NUMBER("status", status);
	YES("some", f != NULL);
	CALL(cuGetProcAddress_v2, "cuMemcpyHtoDAsync", &f, 13000,
		CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status);
	NUMBER("status", status);
	YES("per thread", f == api_symbol("cuMemcpyHtoDAsync_v2_ptsz"));
	CALL(cuGetProcAddress_v2, "cuMemcpyHtoDAsync", &g, 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM,
		&status);
	YES("another", f != g);
	CALL(cuGetProcAddress_v2, "cuNotThere", &f, 13000, 0, &status);
	NUMBER("status", status);
	YES("null", f == NULL);
	CALL(cuGetProcAddress_v2, "cuLibraryLoadData", &f, 11000, 0, &status);
	NUMBER("status", status);
	YES("null", f == NULL);
	CALL(cuGetProcAddress_v2, "cuMemAlloc_v2", &f, 13000, 0, &status);
	NUMBER("status", status);
	CALL(cuGetProcAddress_v2, "cuMemAlloc", &f, 13000, 0x80, &status);
	CALL(cuGetProcAddress_v2, NULL, &f, 13000, 0, &status);
	CALL(cuGetProcAddress_v2, "", &f, 13000, 0, &status);
	CALL(cuGetProcAddress, "cuMemAlloc", &f, 13000, 0);
	YES("the second version", f == api_symbol("cuMemAlloc_v2"));
	CALL(cuGetProcAddress, "cuNotThere", &f, 13000, 0);
	CALL(cuGetProcAddress, "cuGetProcAddress", &f, 13000, 0);
	YES("the second version", f == api_symbol("cuGetProcAddress_v2"));
}

CASE(profiler)
{
	CALL(cuProfilerStart);
	CALL(cuProfilerStop);
	start();
	CALL(cuProfilerStart);
	CALL(cuProfilerStop);
	CALL(cuProfilerStop);
	CALL(cuProfilerInitialize, "nothing", "/dev/null", CU_OUT_CSV);
}

CASE(capture_mode)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	start();
	CALL(cuThreadExchangeStreamCaptureMode, &mode);
	NUMBER("mode", mode);
	CALL(cuThreadExchangeStreamCaptureMode, &mode);
	NUMBER("mode", mode);
	mode = (CUstreamCaptureMode)9;
	CALL(cuThreadExchangeStreamCaptureMode, &mode);
	CALL(cuThreadExchangeStreamCaptureMode, NULL);
}

static int destroyed;
static void CUDA_CB destroy(void *data)
{
	destroyed += *(int *)data;
}

CASE(user_objects)
{
	CUuserObject object = NULL;
	int one = 1;
	start();
	CALL(cuUserObjectCreate, &object, &one, destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
	CALL(cuUserObjectRetain, object, 2);
	CALL(cuUserObjectRelease, object, 2);
	CALL(cuUserObjectRelease, object, 1);
	for (int i = 0; i < 6000 && !destroyed; i++)
		usleep(10000);
	NUMBER("destroyed", destroyed);
	CALL(cuUserObjectCreate, NULL, &one, destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
	CALL(cuUserObjectCreate, &object, &one, NULL, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
	CALL(cuUserObjectCreate, &object, &one, destroy, 0, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
	CALL(cuUserObjectCreate, &object, &one, destroy, 1, 0);
}

CASE(core_dumps)
{
	bool on = true;
	size_t size = sizeof(on);
	char name[1024] = "";
	QUIET(cuInit, 0);
	CALL(cuCoredumpGetAttributeGlobal, CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &size);
	NUMBER("on", on);
	NUMBER("size", (long long)size);
	on = true;
	CALL(cuCoredumpGetAttributeGlobal, CU_COREDUMP_TRIGGER_HOST, &on, &size);
	NUMBER("on", on);
	CALL(cuCoredumpGetAttributeGlobal, CU_COREDUMP_LIGHTWEIGHT, &on, &size);
	NUMBER("on", on);
	CALL(cuCoredumpGetAttributeGlobal, CU_COREDUMP_ENABLE_USER_TRIGGER, &on, &size);
	NUMBER("on", on);
	size = sizeof(name);
	CALL(cuCoredumpGetAttributeGlobal, CU_COREDUMP_FILE, name, &size);
	CALL(cuCoredumpGetAttributeGlobal, (CUcoredumpSettings)99, &on, &size);
	CALL(cuCoredumpGetAttributeGlobal, CU_COREDUMP_LIGHTWEIGHT, &on, NULL);
	on = true;
	size = sizeof(on);
	CALL(cuCoredumpSetAttributeGlobal, CU_COREDUMP_LIGHTWEIGHT, &on, &size);
	on = false;
	CALL(cuCoredumpGetAttributeGlobal, CU_COREDUMP_LIGHTWEIGHT, &on, &size);
	NUMBER("on", on);
	size = 2;
	CALL(cuCoredumpSetAttributeGlobal, CU_COREDUMP_FILE, (void *)"x", &size);
	size = sizeof(name);
	CALL(cuCoredumpGetAttributeGlobal, CU_COREDUMP_FILE, name, &size);
	TEXT("name", name);
	NUMBER("size", (long long)size);
}

CASE(core_dumps_context)
{
	bool on = true;
	size_t size = sizeof(on);
	QUIET(cuInit, 0);
	CALL(cuCoredumpGetAttribute, CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &size);
	start();
	CALL(cuCoredumpGetAttribute, CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &size);
	NUMBER("on", on);
	on = true;
	CALL(cuCoredumpSetAttribute, CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &size);
	on = false;
	CALL(cuCoredumpGetAttribute, CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &size);
	NUMBER("on", on);
	CALL(cuCoredumpGetAttribute, CU_COREDUMP_ENABLE_ON_EXCEPTION, NULL, &size);
	CALL(cuCoredumpSetAttribute, (CUcoredumpSettings)99, &on, &size);
}

static int logged;
static void CUDA_CB take_log(void *data, CUlogLevel level, char *message, size_t length)
{
	(void)data, (void)level, (void)message, (void)length;
	logged++;
}

CASE(logs)
{
	CUlogIterator iterator = 77;
	CUlogsCallbackHandle handle = NULL;
	char buffer[256];
	size_t size = sizeof(buffer);
	start();
	CALL(cuLogsCurrent, &iterator, 0);
	CALL(cuLogsDumpToMemory, &iterator, buffer, &size, 0);
	NUMBER("size", (long long)size);
	YES("ends", buffer[0] == 0 || size > 0);
	CALL(cuLogsRegisterCallback, take_log, NULL, &handle);
	YES("some", handle != NULL);
	CALL(cuLogsUnregisterCallback, handle);
	CALL(cuLogsDumpToFile, &iterator, "/dev/null", 0);
	CALL(cuLogsCurrent, NULL, 0);
	CALL(cuLogsCurrent, &iterator, 1);
	CALL(cuLogsDumpToMemory, &iterator, NULL, &size, 0);
	CALL(cuLogsDumpToMemory, &iterator, buffer, NULL, 0);
	CALL(cuLogsDumpToFile, &iterator, NULL, 0);
	CALL(cuLogsRegisterCallback, NULL, NULL, &handle);
	CALL(cuLogsUnregisterCallback, NULL);
}

CASE(tensor_maps)
{
	CUtensorMap map __attribute__((aligned(64)));
	void *base = (void *)0x7f0000000000;
	cuuint64_t dims[] = {64, 32, 8, 4}, strides[] = {256, 8192, 65536};
	cuuint32_t box[] = {16, 8, 2, 2}, steps[] = {1, 1, 1, 1};
	int lower[] = {-1, -1}, upper[] = {1, 1};
	start();
	memset(&map, 0xee, sizeof(map));
	CALL(cuTensorMapEncodeTiled, &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, dims, strides,
		box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
		CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	BYTES("map", &map, sizeof(map));
	CALL(cuTensorMapReplaceAddress, &map, (char *)base + 4096);
	BYTES("map", &map, sizeof(map));
	CALL(cuTensorMapEncodeTiled, &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, base, dims, strides,
		box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_32B,
		CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
		CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
	BYTES("map", &map, sizeof(map));
	CALL(cuTensorMapEncodeIm2col, &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, base, dims, strides,
		lower, upper, 16, 32, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
		CU_TENSOR_MAP_SWIZZLE_32B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
		CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	BYTES("map", &map, sizeof(map));
	CALL(cuTensorMapEncodeIm2colWide, &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, base, dims,
		strides, -1, 1, 16, 32, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
		CU_TENSOR_MAP_IM2COL_WIDE_MODE_W, CU_TENSOR_MAP_SWIZZLE_128B,
		CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	CALL(cuTensorMapEncodeTiled, NULL, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, dims, strides,
		box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
		CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	CALL(cuTensorMapEncodeTiled, &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 6, base, dims, strides,
		box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
		CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	CALL(cuTensorMapEncodeTiled, &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, (char *)base + 4,
		dims, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
		CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
		CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	box[0] = 300;
	CALL(cuTensorMapEncodeTiled, &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, dims, strides,
		box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
		CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	CALL(cuTensorMapReplaceAddress, NULL, base);
	CALL(cuTensorMapReplaceAddress, &map, (char *)base + 4);
}

CASE(resources)
{
	CUdevResource resource, part[2], rest;
	CUdevResourceDesc description = NULL;
	unsigned count = 2;
	CUcontext context = start();
	memset(&resource, 0xee, sizeof(resource));
	CALL(cuDeviceGetDevResource, 0, &resource, CU_DEV_RESOURCE_TYPE_SM);
	NUMBER("type", resource.type);
	YES("some", resource.sm.smCount > 0);
	CALL(cuCtxGetDevResource, context, &resource, CU_DEV_RESOURCE_TYPE_SM);
	YES("some", resource.sm.smCount > 0);
	CALL(cuDevSmResourceSplitByCount, part, &count, &resource, &rest, 0, 8);
	NUMBER("count", count);
	NUMBER("processors", part[0].sm.smCount);
	CALL(cuDevResourceGenerateDesc, &description, part, 1);
	YES("some", description != NULL);
	CALL(cuDeviceGetDevResource, 0, NULL, CU_DEV_RESOURCE_TYPE_SM);
	CALL(cuDeviceGetDevResource, 0, &resource, CU_DEV_RESOURCE_TYPE_INVALID);
	CALL(cuDevResourceGenerateDesc, NULL, part, 1);
	CALL(cuDevResourceGenerateDesc, &description, part, 0);
}

CASE(green)
{
	CUdevResource resource, part[1], rest, got;
	CUdevResourceDesc description = NULL;
	CUgreenCtx green = NULL, of = NULL;
	CUcontext context = NULL, stream_context = NULL;
	CUstream stream = NULL;
	CUevent event;
	CUdeviceptr p;
	unsigned count = 1;
	unsigned long long id = 0;
	int priority = -77;
	start();
	p = memory(64);
	QUIET(cuEventCreate, &event, 0);
	QUIET(cuDeviceGetDevResource, 0, &resource, CU_DEV_RESOURCE_TYPE_SM);
	QUIET(cuDevSmResourceSplitByCount, part, &count, &resource, &rest, 0, 8);
	QUIET(cuDevResourceGenerateDesc, &description, part, 1);
	CALL(cuGreenCtxCreate, &green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM);
	YES("some", green != NULL);
	CALL(cuGreenCtxCreate, &green, description, 0, 0);
	CALL(cuGreenCtxGetId, green, &id);
	YES("some", id != 0);
	memset(&got, 0xee, sizeof(got));
	CALL(cuGreenCtxGetDevResource, green, &got, CU_DEV_RESOURCE_TYPE_SM);
	YES("as asked", got.sm.smCount == part[0].sm.smCount);
	CALL(cuGreenCtxStreamCreate, &stream, green, CU_STREAM_NON_BLOCKING, 0);
	CALL(cuStreamGetGreenCtx, stream, &of);
	YES("the same", of == green);
	CALL(cuStreamGetPriority, stream, &priority);
	NUMBER("priority", priority);
	CALL(cuGreenCtxRecordEvent, green, event);
	CALL(cuGreenCtxWaitEvent, green, event);
	CALL(cuMemsetD8Async, p, 6, 16, stream);
	CALL(cuStreamSynchronize, stream);
	CONTENT("bytes", p, 20);
	CALL(cuCtxFromGreenCtx, &context, green);
	YES("some", context != NULL);
	CALL(cuStreamGetCtx_v2, stream, &stream_context, &of);
	YES("the same", of == green);
	CALL(cuStreamDestroy_v2, stream);
	CALL(cuGreenCtxStreamCreate, &stream, green, CU_STREAM_DEFAULT, 0);
	CALL(cuCtxSetCurrent, context);
	CALL(cuCtxSynchronize);
	CALL(cuGreenCtxDestroy, green);
	CALL(cuGreenCtxCreate, NULL, description, 0, CU_GREEN_CTX_DEFAULT_STREAM);
	CALL(cuGreenCtxDestroy, NULL);
}

CASE(devices)
{
	size_t width = 77;
	start();
	CALL(cuDeviceGetTexture1DLinearMaxWidth, &width, CU_AD_FORMAT_FLOAT, 1, 0);
	YES("some", width >= 1 << 20);
	CALL(cuDeviceGetTexture1DLinearMaxWidth, NULL, CU_AD_FORMAT_FLOAT, 1, 0);
	CALL(cuDeviceGetTexture1DLinearMaxWidth, &width, CU_AD_FORMAT_FLOAT, 3, 0);
	CALL(cuFlushGPUDirectRDMAWrites, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
		CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER);
	CALL(cuFlushGPUDirectRDMAWrites, (CUflushGPUDirectRDMAWritesTarget)9,
		CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER);
}

CASE(atomics)
{
	unsigned capabilities[2] = {77, 77};
	CUatomicOperation operations[2] = {
		CU_ATOMIC_OPERATION_INTEGER_ADD, CU_ATOMIC_OPERATION_EXCHANGE};
	start();
	CALL(cuDeviceGetHostAtomicCapabilities, capabilities, operations, 2, 0);
	CALL(cuDeviceGetP2PAtomicCapabilities, capabilities, operations, 2, 0, 0);
	CALL(cuDeviceGetHostAtomicCapabilities, NULL, operations, 2, 0);
	CALL(cuDeviceGetHostAtomicCapabilities, capabilities, operations, 0, 0);
}

static void CUDA_CB notified(
	CUasyncNotificationInfo *info, void *data, CUasyncCallbackHandle handle)
{
	(void)info, (void)data, (void)handle;
}

CASE(notifications)
{
	CUasyncCallbackHandle handle = NULL;
	start();
	CALL(cuDeviceRegisterAsyncNotification, 0, notified, NULL, &handle);
	YES("some", handle != NULL);
	CALL(cuDeviceUnregisterAsyncNotification, 0, handle);
	CALL(cuDeviceRegisterAsyncNotification, 999, notified, NULL, &handle);
	CALL(cuDeviceRegisterAsyncNotification, 0, NULL, NULL, &handle);
	CALL(cuDeviceRegisterAsyncNotification, 0, notified, NULL, NULL);
}

CASE(entry_points_first)
{
	void *f = (void *)8, *g = NULL;
	QUIET(cuInit, 0);
	CALL(cuGetProcAddress, "cuMemAlloc", &f, 13000, 0);
	YES("the second version", f == api_symbol("cuMemAlloc_v2"));
	CALL(cuGetProcAddress, "cuMemcpyHtoDAsync", &f, 13000,
		CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
	YES("per thread", f == api_symbol("cuMemcpyHtoDAsync_v2_ptsz"));
	CALL(cuGetProcAddress, "cuMemcpyHtoDAsync", &g, 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
	YES("another", f != g);
	CALL(cuGetProcAddress, "cuNotThere", &f, 13000, 0);
	YES("null", f == NULL);
	CALL(cuGetProcAddress, "cuLibraryLoadData", &f, 11000, 0);
	YES("null", f == NULL);
	CALL(cuGetProcAddress, "cuMemAlloc", &f, 13000, 0x80);
	CALL(cuGetProcAddress, "", &f, 13000, 0);
	CALL(cuGetProcAddress, "cuGetProcAddress", &f, 11030, 0);
	YES("the first version", f == api_symbol("cuGetProcAddress"));
	CALL(cuGetProcAddress, "cuGetProcAddress", &f, 13000, 0);
	YES("the second version", f == api_symbol("cuGetProcAddress_v2"));
}

/* The bytes are the device's own affair; what depends on what is not. */
CASE(tensor_map_tiled)
{
	CUtensorMap map[4] __attribute__((aligned(64)));
	char *base = (char *)0x7f0000000000;
	cuuint64_t dims[] = {64, 32, 8, 4}, strides[] = {256, 8192, 65536};
	cuuint32_t box[] = {16, 8, 2, 2}, steps[] = {1, 1, 1, 1};
	start();
	memset(map, 0xee, sizeof(map));
	CALL(cuTensorMapEncodeTiled, &map[0], CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, dims,
		strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
		CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	CALL(cuTensorMapEncodeTiled, &map[1], CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, dims,
		strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
		CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	YES("the same", !memcmp(&map[0], &map[1], sizeof(CUtensorMap)));
	CALL(cuTensorMapReplaceAddress, &map[1], base + 4096);
	YES("the same", !memcmp(&map[0], &map[1], sizeof(CUtensorMap)));
	CALL(cuTensorMapEncodeTiled, &map[2], CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base + 4096, dims,
		strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
		CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	YES("as replaced", !memcmp(&map[1], &map[2], sizeof(CUtensorMap)));
	CALL(cuTensorMapEncodeTiled, &map[3], CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, base, dims,
		strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_32B,
		CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
		CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
	YES("the same", !memcmp(&map[0], &map[3], sizeof(CUtensorMap)));
	CALL(cuTensorMapReplaceAddress, &map[1], base + 4);
	YES("as before", !memcmp(&map[1], &map[2], sizeof(CUtensorMap)));
	strides[0] = 250;
	CALL(cuTensorMapEncodeTiled, &map[3], CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, dims,
		strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
		CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	strides[0] = 256;
	dims[1] = 0;
	CALL(cuTensorMapEncodeTiled, &map[3], CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, dims,
		strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
		CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	dims[1] = 32;
	CALL(cuTensorMapEncodeTiled, &map[3], CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, base, dims,
		strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, (CUtensorMapSwizzle)99,
		CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

CASE(tensor_map_im2col)
{
	CUtensorMap map[3] __attribute__((aligned(64)));
	char *base = (char *)0x7f0000000000;
	cuuint64_t dims[] = {64, 32, 8, 4}, strides[] = {256, 8192, 65536};
	cuuint32_t steps[] = {1, 1, 1, 1};
	int lower[] = {-1, -1}, upper[] = {1, 1};
	start();
	memset(map, 0xee, sizeof(map));
	CALL(cuTensorMapEncodeIm2col, &map[0], CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, base, dims,
		strides, lower, upper, 16, 32, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
		CU_TENSOR_MAP_SWIZZLE_32B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
		CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	CALL(cuTensorMapEncodeIm2col, &map[1], CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, base + 4096,
		dims, strides, lower, upper, 16, 32, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
		CU_TENSOR_MAP_SWIZZLE_32B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
		CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	YES("the same", !memcmp(&map[0], &map[1], sizeof(CUtensorMap)));
	CALL(cuTensorMapReplaceAddress, &map[0], base + 4096);
	YES("as replaced", !memcmp(&map[0], &map[1], sizeof(CUtensorMap)));
	upper[0] = 2;
	CALL(cuTensorMapEncodeIm2col, &map[2], CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, base + 4096,
		dims, strides, lower, upper, 16, 32, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
		CU_TENSOR_MAP_SWIZZLE_32B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
		CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	YES("the same", !memcmp(&map[1], &map[2], sizeof(CUtensorMap)));
	CALL(cuTensorMapEncodeIm2col, &map[2], CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, base, dims,
		strides, lower, upper, 16, 32, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
		CU_TENSOR_MAP_SWIZZLE_32B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
		CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	lower[0] = -200;
	CALL(cuTensorMapEncodeIm2col, &map[2], CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, base, dims,
		strides, lower, upper, 16, 32, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
		CU_TENSOR_MAP_SWIZZLE_32B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
		CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

CASE(core_dumps_told)
{
	bool on = true;
	size_t size = sizeof(on);
	QUIET(cuInit, 0);
	CALL(cuCoredumpGetAttributeGlobal, CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &size);
	NUMBER("on", on);
	NUMBER("size", (long long)size);
	start();
	on = true;
	CALL(cuCoredumpGetAttribute, CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &size);
	NUMBER("on", on);
	NUMBER("size", (long long)size);
	on = true;
	CALL(cuCoredumpGetAttribute, CU_COREDUMP_LIGHTWEIGHT, &on, &size);
	NUMBER("on", on);
	CALL(cuCoredumpSetAttribute, CU_COREDUMP_LIGHTWEIGHT, &on, &size);
	on = false;
	CALL(cuCoredumpSetAttribute, CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, &size);
	CALL(cuCoredumpGetAttribute, (CUcoredumpSettings)99, &on, &size);
}

CASE(notification)
{
	CUasyncCallbackHandle handle = NULL;
	start();
	CALL(cuDeviceRegisterAsyncNotification, 0, notified, NULL, &handle);
	YES("some", handle != NULL);
	CALL(cuDeviceUnregisterAsyncNotification, 0, handle);
	CALL(cuDeviceUnregisterAsyncNotification, 0, handle);
	CALL(cuDeviceRegisterAsyncNotification, 999, notified, NULL, &handle);
	CALL(cuDeviceRegisterAsyncNotification, 0, NULL, NULL, &handle);
}

CASE(notification_once)
{
	CUasyncCallbackHandle handle = NULL, second = NULL;
	start();
	CALL(cuDeviceRegisterAsyncNotification, 0, notified, NULL, &handle);
	YES("some", handle != NULL);
	CALL(cuDeviceRegisterAsyncNotification, 0, notified, NULL, &second);
	YES("another", second && second != handle);
	CALL(cuDeviceUnregisterAsyncNotification, 0, handle);
	CALL(cuDeviceUnregisterAsyncNotification, 0, second);
}

CASE(entry_points_second)
{
	void *f = (void *)8, *g = NULL;
	CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)77;
	QUIET(cuInit, 0);
	CALL(cuGetProcAddress_v2, "cuMemAlloc", &f, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &status);
	NUMBER("status", status);
	YES("the second version", f == api_symbol("cuMemAlloc_v2"));
	CALL(cuGetProcAddress_v2, "cuMemcpyHtoDAsync", &f, 13000,
		CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status);
	YES("per thread", f == api_symbol("cuMemcpyHtoDAsync_v2_ptsz"));
	CALL(cuGetProcAddress_v2, "cuMemcpyHtoDAsync", &g, 13000, CU_GET_PROC_ADDRESS_LEGACY_STREAM,
		&status);
	YES("another", f != g);
	CALL(cuGetProcAddress_v2, "cuNotThere", &f, 13000, 0, &status);
	NUMBER("status", status);
	YES("null", f == NULL);
	CALL(cuGetProcAddress_v2, "cuLibraryLoadData", &f, 11000, 0, &status);
	NUMBER("status", status);
	YES("null", f == NULL);
	CALL(cuGetProcAddress_v2, "cuMemAlloc", &f, 13000, 0, NULL);
	YES("the second version", f == api_symbol("cuMemAlloc_v2"));
	CALL(cuGetProcAddress_v2, "cuMemAlloc", &f, 13000, 0x80, &status);
}

CASE(export_table)
{
	const CUuuid unknown = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};
	const void *table = &unknown;
	QUIET(cuInit, 0);
	CALL(cuGetExportTable, &table, &unknown);
	YES("null", table == NULL);
	YES("as before", table == &unknown);
}
