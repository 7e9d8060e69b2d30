/* SPDX-License-Identifier: Apache-2.0 */
/* Entry points of the driver, export tables, profiler. */
#include <cuda_profiler_api.h>
#include <cudaProfiler.h>

#include "client/cudart/api.h"
#include "client/cudart/variants.h"

static cudaError_t entry_point(const char *symbol, void **ret_function, unsigned version,
	unsigned long long flags, enum cudaDriverEntryPointQueryResult *ret_status)
{
	CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	CKT_RT_DRIVER();
	CKT_RT_REQUIRE(symbol && ret_function, cudaErrorInvalidValue);
	CUresult result = cuGetProcAddress(
		symbol, ret_function, (int)version, flags, ret_status ? &status : NULL);
	/*
	 * A caller that asks for the status gets a missing function as a status.  Drivers differ in
	 * whether they also return an error.
	 */
	if (result == CUDA_ERROR_NOT_FOUND && ret_status) {
		*ret_function = NULL;
		result = CUDA_SUCCESS;
	}
	if (result == CUDA_SUCCESS && ret_status)
		*ret_status = (enum cudaDriverEntryPointQueryResult)status;
	return ckt_rt_cu(result);
}

CKT_RT_API cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **funcPtr,
	unsigned long long flags, enum cudaDriverEntryPointQueryResult *driverStatus)
{
	return entry_point(symbol, funcPtr, CUDART_VERSION, flags, driverStatus);
}

CKT_RT_API cudaError_t cudaGetDriverEntryPoint_ptsz(const char *symbol, void **funcPtr,
	unsigned long long flags, enum cudaDriverEntryPointQueryResult *driverStatus)
{
	return entry_point(symbol, funcPtr, CUDART_VERSION,
		flags ? flags : cudaEnablePerThreadDefaultStream, driverStatus);
}

CKT_RT_API cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **funcPtr,
	unsigned int cudaVersion, unsigned long long flags,
	enum cudaDriverEntryPointQueryResult *driverStatus)
{
	return entry_point(symbol, funcPtr, cudaVersion, flags, driverStatus);
}

CKT_RT_API cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **funcPtr,
	unsigned int cudaVersion, unsigned long long flags,
	enum cudaDriverEntryPointQueryResult *driverStatus)
{
	return entry_point(symbol, funcPtr, cudaVersion,
		flags ? flags : cudaEnablePerThreadDefaultStream, driverStatus);
}

CKT_RT_API cudaError_t cudaProfilerStart(void)
{
	CKT_RT_CALL(cuProfilerStart());
}

CKT_RT_API cudaError_t cudaProfilerStop(void)
{
	CKT_RT_CALL(cuProfilerStop());
}
