/* SPDX-License-Identifier: Apache-2.0 */
/* The driver API by itself: PTX text given to cuModuleLoadData, launches by both parameter styles, globals, contexts, entry points. */
#include "multiply.h"
#include "phase.h"
#include <cuda.h>

#define CU(call)                                                                                                                 \
	do {                                                                                                                     \
		CUresult cu_result = (call);                                                                                     \
		if (cu_result != CUDA_SUCCESS) {                                                                                 \
			printf("%s:%d: %s: %d\n", __FILE__, __LINE__, #call, cu_result);                                         \
			exit(1);                                                                                                 \
		}                                                                                                                \
	} while (0)

int main(void)
{
	unsigned n = 1000, host[1000], wrong = 0, five = 5, value;
	int count, version, major;
	char name[256];
	const char *text;
	CUdevice device;
	CUcontext context, current;
	CUmodule module;
	CUfunction function, missing;
	CUdeviceptr data, scale, base;
	CUstream stream;
	CUevent event;
	size_t bytes, size, offset;
	void *params[] = { &data, &n }, *symbol = NULL;
	CUdriverProcAddressQueryResult query;
	float ms;

	CU(cuInit(0));
	CU(cuDriverGetVersion(&version));
	EXPECT(version >= 13000);
	CU(cuDeviceGetCount(&count));
	CU(cuDeviceGet(&device, 0));
	CU(cuDeviceGetName(name, sizeof(name), device));
	CU(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
	CU(cuDeviceTotalMem(&bytes, device));
	EXPECT(count >= 1 && name[0] && major >= 7 && bytes > 0);
	EXPECT(cuMemAlloc(&data, 16) == CUDA_ERROR_INVALID_CONTEXT);
	CU(cuDevicePrimaryCtxRetain(&context, device));
	CU(cuCtxSetCurrent(context));
	CU(cuCtxGetCurrent(&current));
	EXPECT(current == context);
	CU(cuModuleLoadData(&module, ptx));
	CU(cuModuleGetFunction(&function, module, "multiply"));
	EXPECT(cuModuleGetFunction(&missing, module, "divide") == CUDA_ERROR_NOT_FOUND);
	CU(cuModuleGetGlobal(&scale, &bytes, module, "scale"));
	EXPECT(bytes == 4);
	CU(cuFuncGetParamInfo(function, 1, &offset, &size));
	EXPECT(offset == 8 && size == 4);
	EXPECT(cuFuncGetParamInfo(function, 2, &offset, &size) == CUDA_ERROR_INVALID_VALUE);
	CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CU(cuEventCreate(&event, CU_EVENT_DEFAULT));
	CU(cuMemAlloc(&data, sizeof(host)));
	for (unsigned i = 0; i < n; i++)
		host[i] = i;
	CU(cuMemcpyHtoDAsync(data, host, sizeof(host), stream));
	CU(cuEventRecord(event, stream));
	CU(cuLaunchKernel(function, (n + 63) / 64, 1, 1, 64, 1, 1, 0, stream, params, NULL));
	CU(cuMemcpyHtoDAsync(scale, &five, sizeof(five), stream));
	phase();
	{
		struct {
			CUdeviceptr data;
			unsigned n;
		} packed = { data, n };
		size_t packed_size = 12;
		void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &packed_size, CU_LAUNCH_PARAM_END };

		CU(cuLaunchKernel(function, (n + 63) / 64, 1, 1, 64, 1, 1, 0, stream, NULL, extra));
	}
	CU(cuStreamSynchronize(stream));
	CU(cuMemcpyDtoH(host, data, sizeof(host)));
	for (unsigned i = 0; i < n; i++)
		wrong += host[i] != i * 15;
	EXPECT(wrong == 0);
	CU(cuMemcpyDtoH(&value, scale, sizeof(value)));
	EXPECT(value == 5);
	CU(cuMemGetAddressRange(&base, &bytes, data + 100));
	EXPECT(base == data && bytes == sizeof(host));
	CU(cuMemsetD32(data, 0xdeadbeef, n));
	CU(cuMemcpyDtoH(host, data + 4 * (n - 1), 4));
	EXPECT(host[0] == 0xdeadbeef);
	EXPECT(cuEventElapsedTime(&ms, event, event) == CUDA_SUCCESS && ms == 0);
	CU(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
	printf("%s\n", text);
	CU(cuGetErrorString(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
	printf("%s\n", text);
	EXPECT(cuGetErrorName((CUresult)12345, &text) == CUDA_ERROR_INVALID_VALUE);
	CU(cuGetProcAddress("cuMemAlloc", &symbol, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &query));
	EXPECT(symbol != NULL && query == CU_GET_PROC_ADDRESS_SUCCESS);
	EXPECT(cuModuleLoadData(&module, ".version 6.5\n.target sm_75\n.address_size 64\nnonsense\n") == CUDA_ERROR_INVALID_PTX);
	CU(cuMemFree(data));
	EXPECT(cuMemFree(data) == CUDA_ERROR_INVALID_VALUE);
	CU(cuEventDestroy(event));
	CU(cuStreamDestroy(stream));
	CU(cuDevicePrimaryCtxRelease(device));
	return finish();
}
