/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/memory/memcpy.c: the forms of copies: descriptors in two and three dimensions, arrays by
 * bytes, peers.
 */
#include "files.h"

static CUdeviceptr memory;
static unsigned char pattern[4096];

static void begin(void)
{
	test_context();
	for (unsigned i = 0; i < sizeof(pattern); i++)
		pattern[i] = (unsigned char)(i * 13 + i / 256);
	OK(cuMemAlloc(&memory, sizeof(pattern)));
	OK(cuMemcpyHtoD(memory, pattern, sizeof(pattern)));
}

/* Each bad change of a descriptor that is good. */
static void test_descriptor(void)
{
	begin();
	unsigned char host[1024];
	const CUDA_MEMCPY3D good = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = memory,
		.srcPitch = 64,
		.srcHeight = 8,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = host,
		.dstPitch = 32,
		.dstHeight = 4,
		.WidthInBytes = 20,
		.Height = 4,
		.Depth = 3};
	OK(cuMemcpy3D(&good));
	int wrong = 0;
	for (unsigned z = 0; z < 3; z++)
		for (unsigned y = 0; y < 4; y++)
			wrong += memcmp(host + z * 128 + y * 32, pattern + z * 512 + y * 64, 20) !=
				0;
	IS(wrong, 0);
	for (unsigned i = 0; i < 14; i++) {
		CUDA_MEMCPY3D bad = good;
		switch (i) {
		case 0:
			bad.srcMemoryType = (CUmemorytype)0;
			break;
		case 1:
			bad.dstMemoryType = (CUmemorytype)5;
			break;
		case 2:
			bad.srcPitch = 19;
			break;
		case 3:
			bad.srcXInBytes = 45;
			break; /* 45 + 20 > 64 */
		case 4:
			bad.srcHeight = 3;
			break;
		case 5:
			bad.srcY = 5;
			break; /* 5 + 4 > 8 */
		case 6:
			bad.srcLOD = 1;
			break;
		case 7:
			bad.dstLOD = 1;
			break;
		case 8:
			bad.srcDevice = 0;
			break;
		case 9:
			bad.dstHost = NULL;
			break;
		case 10:
			bad.srcZ = 6;
			break; /* slices 6, 7 and 8 of 8 */
		case 11:
			bad.srcXInBytes = SIZE_MAX - 4;
			break;
		case 12:
			bad.srcZ = SIZE_MAX / 2;
			break;
		case 13:
			bad.dstPitch = (size_t)INT32_MAX + 1;
			break;
		}
		CUresult result = cuMemcpy3D(&bad);
		if (result != CUDA_ERROR_INVALID_VALUE)
			fprintf(stderr, "descriptor %u\n", i);
		IS(result, CUDA_ERROR_INVALID_VALUE);
	}
	CHECK_RESULT(cuMemcpy3D(NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemcpy2D(NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemcpy3DPeer(NULL), CUDA_ERROR_INVALID_VALUE);
	/* Without pitch and height: dense. */
	CUDA_MEMCPY3D dense = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
		.srcDevice = memory,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED,
		.dstDevice = (CUdeviceptr)(uintptr_t)host,
		.WidthInBytes = 10,
		.Height = 5,
		.Depth = 2};
	memset(host, 0, sizeof(host));
	OK(cuMemcpy3D(&dense));
	IS(memcmp(host, pattern, 100), 0);
	IS(host[100], 0);
	OK(cuMemFree(memory));
}

static void test_arrays(void)
{
	begin();
	CUarray array, second, none = (CUarray)(uintptr_t)0x1230;
	unsigned char host[256];
	CUDA_ARRAY_DESCRIPTOR desc = {
		.Width = 64, .Height = 2, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
	OK(cuArrayCreate(&array, &desc));
	OK(cuArrayCreate(&second, &desc));
	OK(cuMemcpyDtoA(array, 0, memory, 128));
	OK(cuMemcpyHtoA(array, 60, pattern + 1000, 10)); /* over a row's end */
	OK(cuMemcpyAtoA(second, 1, array, 60, 67));
	OK(cuMemcpyAtoH(host, second, 1, 67));
	IS(memcmp(host, pattern + 1000, 10), 0);
	IS(memcmp(host + 10, pattern + 70, 57), 0);
	OK(cuMemcpyAtoD(memory + 2048, array, 127, 1));
	OK(cuMemcpyDtoH(host, memory + 2048, 1));
	IS(host[0], pattern[127]);
	OK(cuMemcpyAtoHAsync(host, array, 0, 60, NULL));
	IS(memcmp(host, pattern, 60), 0);
	OK(cuMemcpyHtoAAsync(array, 0, pattern + 5, 60, NULL));
	OK(cuMemcpyAtoH(host, array, 0, 60));
	IS(memcmp(host, pattern + 5, 60), 0);
	OK(cuMemcpyDtoA(array, 128, memory, 0));
	CHECK_RESULT(cuMemcpyDtoA(array, 0, memory, 129), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemcpyDtoA(array, 128, memory, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemcpyAtoD(memory, array, SIZE_MAX, 2), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemcpyAtoA(second, 100, array, 0, 29), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuMemcpyAtoH(host, none, 0, 1), CUDA_ERROR_INVALID_HANDLE);
	CHECK_RESULT(cuMemcpyHtoA(none, 0, host, 1), CUDA_ERROR_INVALID_HANDLE);
	/* As boxes: out of the array in each direction. */
	const CUDA_MEMCPY2D good = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
		.srcArray = array,
		.srcXInBytes = 54,
		.srcY = 1,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = host,
		.WidthInBytes = 10,
		.Height = 1};
	CUDA_MEMCPY2D bad = good;
	OK(cuMemcpy2D(&good));
	IS(memcmp(host, pattern + 118, 10), 0);
	bad.WidthInBytes = 11;
	CHECK_RESULT(cuMemcpy2D(&bad), CUDA_ERROR_INVALID_VALUE);
	bad = good;
	bad.Height = 2;
	CHECK_RESULT(cuMemcpy2D(&bad), CUDA_ERROR_INVALID_VALUE);
	bad = good;
	bad.srcArray = none;
	CHECK_RESULT(cuMemcpy2DAsync(&bad, NULL), CUDA_ERROR_INVALID_HANDLE);
	OK(cuArrayDestroy(array));
	OK(cuArrayDestroy(second));
	CHECK_RESULT(cuMemcpy2D(&good), CUDA_ERROR_INVALID_HANDLE);
	OK(cuMemFree(memory));
}

static void test_peers(void)
{
	begin();
	CUcontext primary, second;
	CUdeviceptr there;
	unsigned char host[64];
	OK(cuCtxGetCurrent(&primary));
	second = files_second();
	OK(cuMemAlloc(&there, 64));
	OK(cuMemcpyPeer(there, second, memory + 100, primary, 64));
	OK(cuMemcpyDtoH(host, there, 64));
	IS(memcmp(host, pattern + 100, 64), 0);
	OK(cuMemcpyPeerAsync(there, second, memory, primary, 64, NULL));
	OK(cuStreamSynchronize(NULL));
	OK(cuMemcpyDtoH(host, there, 64));
	IS(memcmp(host, pattern, 64), 0);
	CUDA_MEMCPY3D_PEER box = {.srcContext = primary,
		.srcMemoryType = CU_MEMORYTYPE_DEVICE,
		.srcDevice = memory,
		.srcPitch = 100,
		.dstContext = second,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = there,
		.dstPitch = 8,
		.srcHeight = 4,
		.dstHeight = 4,
		.WidthInBytes = 8,
		.Height = 2,
		.Depth = 2};
	OK(cuMemcpy3DPeer(&box));
	OK(cuMemcpyDtoH(host, there, 64));
	IS(memcmp(host, pattern, 8) | memcmp(host + 8, pattern + 100, 8) |
			memcmp(host + 32, pattern + 400, 8),
		0);
	CHECK_RESULT(cuMemcpyPeer(there, (CUcontext)(uintptr_t)0x1230, memory, primary, 64),
		CUDA_ERROR_INVALID_CONTEXT);
	CHECK_RESULT(
		cuMemcpyPeer(there, second, memory + 4090, primary, 64), CUDA_ERROR_INVALID_VALUE);
	files_second_end(second);
	CHECK_RESULT(cuMemcpyPeer(memory, second, memory, primary, 4), CUDA_ERROR_INVALID_CONTEXT);
	CHECK_RESULT(cuMemcpy3DPeer(&box), CUDA_ERROR_INVALID_CONTEXT);
}

UNIT_SUITE(softgpu / memory / memcpy, {"descriptor", test_descriptor}, {"arrays", test_arrays},
	{"peers", test_peers})
