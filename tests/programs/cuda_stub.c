/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `driver` links against on a machine without NVIDIA's driver: the names, under the driver's
 * SONAME.  Never loaded at run time.
 */
#define STUB(name)          \
	int name(void);     \
	int name(void)      \
	{                   \
		return 999; \
	}

STUB(cuInit)
STUB(cuDriverGetVersion)
STUB(cuDeviceGetCount)
STUB(cuDeviceGet)
STUB(cuDeviceGetName)
STUB(cuDeviceGetAttribute)
STUB(cuDeviceTotalMem_v2)
STUB(cuMemAlloc_v2)
STUB(cuDevicePrimaryCtxRetain)
STUB(cuDevicePrimaryCtxRelease_v2)
STUB(cuCtxSetCurrent)
STUB(cuCtxGetCurrent)
STUB(cuModuleLoadData)
STUB(cuModuleGetFunction)
STUB(cuModuleGetGlobal_v2)
STUB(cuFuncGetParamInfo)
STUB(cuStreamCreate)
STUB(cuStreamSynchronize)
STUB(cuStreamDestroy_v2)
STUB(cuEventCreate)
STUB(cuEventRecord)
STUB(cuEventElapsedTime_v2)
STUB(cuEventElapsedTime)
STUB(cuEventDestroy_v2)
STUB(cuMemcpyHtoDAsync_v2)
STUB(cuMemcpyDtoH_v2)
STUB(cuLaunchKernel)
STUB(cuMemGetAddressRange_v2)
STUB(cuMemsetD32_v2)
STUB(cuGetErrorName)
STUB(cuGetErrorString)
STUB(cuGetProcAddress_v2)
STUB(cuMemFree_v2)
