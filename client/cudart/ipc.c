/* Sharing with other processes, and the driver's own log: handles and callbacks are the driver's. */
#include "cudart.h"

_Static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle), "one layout");
_Static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle), "one layout");

CKT_RT_API cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
	CKT_RT_CALL(cuIpcGetEventHandle((CUipcEventHandle *)handle, event));
}

CKT_RT_API cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
	CUipcEventHandle driver;
	memcpy(&driver, &handle, sizeof driver);
	CKT_RT_CALL(cuIpcOpenEventHandle(event, driver));
}

CKT_RT_API cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *devPtr)
{
	CKT_RT_CALL(cuIpcGetMemHandle((CUipcMemHandle *)handle, ckt_rt_address(devPtr)));
}

CKT_RT_API cudaError_t cudaIpcOpenMemHandle(void **devPtr, cudaIpcMemHandle_t handle, unsigned int flags)
{
	CUipcMemHandle driver;
	CUdeviceptr address;
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(devPtr, cudaErrorInvalidValue);
	memcpy(&driver, &handle, sizeof driver);
	CUresult result = cuIpcOpenMemHandle(&address, driver, flags);
	if (result == CUDA_SUCCESS)
		*devPtr = (void *)(uintptr_t)address;
	return ckt_rt_cu(result);
}

CKT_RT_API cudaError_t cudaIpcCloseMemHandle(void *devPtr)
{
	CKT_RT_CALL(cuIpcCloseMemHandle(ckt_rt_address(devPtr)));
}

CKT_RT_API cudaError_t cudaLogsRegisterCallback(cudaLogsCallback_t callbackFunc, void *userData, cudaLogsCallbackHandle *callback_out)
{
	CKT_RT_DRIVER();
	return ckt_rt_cu(cuLogsRegisterCallback((CUlogsCallback)(void (*)(void))callbackFunc, userData, callback_out));
}

CKT_RT_API cudaError_t cudaLogsUnregisterCallback(cudaLogsCallbackHandle callback)
{
	CKT_RT_DRIVER();
	return ckt_rt_cu(cuLogsUnregisterCallback(callback));
}

CKT_RT_API cudaError_t cudaLogsCurrent(cudaLogIterator *iterator_out, unsigned int flags)
{
	CKT_RT_DRIVER();
	return ckt_rt_cu(cuLogsCurrent(iterator_out, flags));
}

CKT_RT_API cudaError_t cudaLogsDumpToFile(cudaLogIterator *iterator, const char *pathToFile, unsigned int flags)
{
	CKT_RT_DRIVER();
	return ckt_rt_cu(cuLogsDumpToFile(iterator, pathToFile, flags));
}

CKT_RT_API cudaError_t cudaLogsDumpToMemory(cudaLogIterator *iterator, char *buffer, size_t *size, unsigned int flags)
{
	CKT_RT_DRIVER();
	return ckt_rt_cu(cuLogsDumpToMemory(iterator, buffer, size, flags));
}
