/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels, found by the address of their host stubs: handles, attributes, names, parameters. */
#include "client/cudart/function.h"
#include "client/cudart/api.h"
#include "client/cudart/module.h"
#include "client/cudart/registration.h"

static cudaError_t find(const void *func, struct ckt_rt_kernel **ret_kernel)
{
	cudaError_t error = ckt_rt_enter();
	if (error)
		return error;
	*ret_kernel = ckt_rt_kernel_living(func);
	return *ret_kernel ? cudaSuccess
		: func     ? cudaErrorInvalidResourceHandle
			   : cudaErrorInvalidDeviceFunction;
}

/*
 * For callers that ask for a kernel's handle: an unknown address is cudaErrorInvalidDeviceFunction.
 */
static cudaError_t find_named(const void *func, struct ckt_rt_kernel **ret_kernel)
{
	cudaError_t error = find(func, ret_kernel);
	return error == cudaErrorInvalidResourceHandle ? cudaErrorInvalidDeviceFunction : error;
}

cudaError_t ckt_rt_function(const void *func, CUfunction *ret_function)
{
	struct ckt_rt_kernel *kernel;
	cudaError_t error = find(func, &kernel);
	return error ? error : ckt_rt_kernel_function(kernel, ret_function);
}

CKT_RT_API cudaError_t cudaGetFuncBySymbol(cudaFunction_t *functionPtr, const void *symbolPtr)
{
	CUfunction function;
	struct ckt_rt_kernel *kernel;
	cudaError_t error = find_named(symbolPtr, &kernel);
	if (!error)
		error = ckt_rt_kernel_function(kernel, &function);
	CKT_RT_REQUIRE(!error, error);
	if (functionPtr)
		*functionPtr = function;
	return cudaSuccess;
}

CKT_RT_API cudaError_t cudaGetKernel(cudaKernel_t *kernelPtr, const void *entryFuncAddr)
{
	struct ckt_rt_kernel *kernel;
	CUkernel handle;
	CKT_RT_REQUIRE(kernelPtr, cudaErrorInvalidValue);
	cudaError_t error = find_named(entryFuncAddr, &kernel);
	if (!error)
		error = ckt_rt_kernel_handle(kernel, &handle);
	CKT_RT_REQUIRE(!error, error);
	/* Registers the handle, so that a program can pass it to the runtime's launch functions. */
	CKT_RT_REQUIRE(ckt_rt_kernel_adopt(handle), cudaErrorMemoryAllocation);
	*kernelPtr = handle;
	return cudaSuccess;
}

CKT_RT_API cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attr, const void *func)
{
	CUfunction function;
	int v[CU_FUNC_ATTRIBUTE_MAX] = {0};
	CKT_RT_REQUIRE(attr, cudaErrorInvalidValue);
	cudaError_t error = ckt_rt_function(func, &function);
	CKT_RT_REQUIRE(!error, error);
	for (int i = 0; i < CU_FUNC_ATTRIBUTE_MAX; i++) {
		CUresult result = cuFuncGetAttribute(&v[i], (CUfunction_attribute)i, function);
		/* An attribute that this driver or device does not have is 0. */
		if (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_NOT_SUPPORTED)
			v[i] = 0;
		else if (result)
			return ckt_rt_cu(result);
	}
	*attr = (struct cudaFuncAttributes){
		.sharedSizeBytes = (size_t)v[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES],
		.constSizeBytes = (size_t)v[CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES],
		.localSizeBytes = (size_t)v[CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES],
		.maxThreadsPerBlock = v[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK],
		.numRegs = v[CU_FUNC_ATTRIBUTE_NUM_REGS],
		.ptxVersion = v[CU_FUNC_ATTRIBUTE_PTX_VERSION],
		.binaryVersion = v[CU_FUNC_ATTRIBUTE_BINARY_VERSION],
		.cacheModeCA = v[CU_FUNC_ATTRIBUTE_CACHE_MODE_CA],
		.maxDynamicSharedSizeBytes = v[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES],
		.preferredShmemCarveout = v[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT],
		.clusterDimMustBeSet = v[CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET],
		.requiredClusterWidth = v[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH],
		.requiredClusterHeight = v[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT],
		.requiredClusterDepth = v[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH],
		.clusterSchedulingPolicyPreference =
			v[CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE],
		.nonPortableClusterSizeAllowed =
			v[CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED],
	};
	return cudaSuccess;
}

CKT_RT_API cudaError_t cudaFuncSetAttribute(
	const void *func, enum cudaFuncAttribute attr, int value)
{
	CUfunction function;
	cudaError_t error = ckt_rt_function(func, &function);
	CKT_RT_REQUIRE(!error, error);
	/* The attributes that can be set have the same numbers in both APIs. */
	return ckt_rt_cu(cuFuncSetAttribute(function, (CUfunction_attribute)attr, value));
}

CKT_RT_API cudaError_t cudaFuncSetCacheConfig(const void *func, enum cudaFuncCache cacheConfig)
{
	CUfunction function;
	cudaError_t error = ckt_rt_function(func, &function);
	CKT_RT_REQUIRE(!error, error);
	return ckt_rt_cu(cuFuncSetCacheConfig(function, (CUfunc_cache)cacheConfig));
}

/* The setting has no effect on any device that CUDA 13 supports. */
CKT_RT_API cudaError_t cudaFuncSetSharedMemConfig(const void *func, enum cudaSharedMemConfig config)
{
	CUfunction function;
	CKT_RT_REQUIRE((unsigned)config <= cudaSharedMemBankSizeEightByte, cudaErrorInvalidValue);
	return ckt_rt_return(ckt_rt_function(func, &function));
}

CKT_RT_API cudaError_t cudaFuncGetName(const char **name, const void *func)
{
	CUfunction function;
	CKT_RT_REQUIRE(name, cudaErrorInvalidValue);
	struct ckt_rt_kernel *kernel;
	cudaError_t error = find(func, &kernel);
	CKT_RT_REQUIRE(!error, error);
	if (kernel->name) {
		*name = kernel->name;
		return cudaSuccess;
	}
	error = ckt_rt_kernel_function(kernel, &function);
	CKT_RT_REQUIRE(!error, error);
	return ckt_rt_cu(cuFuncGetName(name, function));
}

CKT_RT_API cudaError_t cudaFuncGetParamInfo(
	const void *func, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
	CUfunction function;
	cudaError_t error = ckt_rt_function(func, &function);
	CKT_RT_REQUIRE(!error, error);
	return ckt_rt_cu(cuFuncGetParamInfo(function, paramIndex, paramOffset, paramSize));
}
