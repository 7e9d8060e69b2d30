/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Libraries that the program loads itself, and their kernels. cudaLibrary_t and cudaKernel_t are
 * the driver's handles.
 */
#include "client/cudart/api.h"
#include "client/cudart/registration.h"

/* The runtime's JIT options are a subset of the driver's, with the same numbers. */
static CUjit_option *jit_options(enum cudaJitOption *options)
{
	_Static_assert(sizeof(enum cudaJitOption) == sizeof(CUjit_option), "passed on as they lie");
	return (CUjit_option *)options;
}

CKT_RT_API cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code,
	enum cudaJitOption *jitOptions, void **jitOptionsValues, unsigned int numJitOptions,
	enum cudaLibraryOption *libraryOptions, void **libraryOptionValues,
	unsigned int numLibraryOptions)
{
	CKT_RT_CALL(cuLibraryLoadData(library, code, jit_options(jitOptions), jitOptionsValues,
		numJitOptions, (CUlibraryOption *)libraryOptions, libraryOptionValues,
		numLibraryOptions));
}

CKT_RT_API cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t *library, const char *fileName,
	enum cudaJitOption *jitOptions, void **jitOptionsValues, unsigned int numJitOptions,
	enum cudaLibraryOption *libraryOptions, void **libraryOptionValues,
	unsigned int numLibraryOptions)
{
	CKT_RT_CALL(cuLibraryLoadFromFile(library, fileName, jit_options(jitOptions),
		jitOptionsValues, numJitOptions, (CUlibraryOption *)libraryOptions,
		libraryOptionValues, numLibraryOptions));
}

CKT_RT_API cudaError_t cudaLibraryUnload(cudaLibrary_t library)
{
	CKT_RT_CALL(cuLibraryUnload(library));
}

CKT_RT_API cudaError_t cudaLibraryGetKernel(
	cudaKernel_t *pKernel, cudaLibrary_t library, const char *name)
{
	CKT_RT_ENTER();
	CKT_RT_REQUIRE(pKernel, cudaErrorInvalidValue);
	CUresult result = cuLibraryGetKernel(pKernel, library, name);
	/* Registers the handle for cudaLaunchKernel and the cudaFunc functions. */
	if (result == CUDA_SUCCESS && !ckt_rt_kernel_adopt(*pKernel))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	return ckt_rt_cu(result);
}

CKT_RT_API cudaError_t cudaLibraryGetGlobal(
	void **dptr, size_t *bytes, cudaLibrary_t library, const char *name)
{
	CUdeviceptr address;
	CKT_RT_ENTER();
	CUresult result = cuLibraryGetGlobal(dptr ? &address : NULL, bytes, library, name);
	if (result == CUDA_SUCCESS && dptr)
		*dptr = (void *)(uintptr_t)address;
	return ckt_rt_cu(result);
}

CKT_RT_API cudaError_t cudaLibraryGetManaged(
	void **dptr, size_t *bytes, cudaLibrary_t library, const char *name)
{
	CUdeviceptr address;
	CKT_RT_ENTER();
	CUresult result = cuLibraryGetManaged(dptr ? &address : NULL, bytes, library, name);
	if (result == CUDA_SUCCESS && dptr)
		*dptr = (void *)(uintptr_t)address;
	return ckt_rt_cu(result);
}

CKT_RT_API cudaError_t cudaLibraryGetUnifiedFunction(
	void **fptr, cudaLibrary_t library, const char *symbol)
{
	CKT_RT_CALL(cuLibraryGetUnifiedFunction(fptr, library, symbol));
}

CKT_RT_API cudaError_t cudaLibraryGetKernelCount(unsigned int *count, cudaLibrary_t lib)
{
	CKT_RT_CALL(cuLibraryGetKernelCount(count, lib));
}

CKT_RT_API cudaError_t cudaLibraryEnumerateKernels(
	cudaKernel_t *kernels, unsigned int numKernels, cudaLibrary_t lib)
{
	CKT_RT_ENTER();
	CUresult result = cuLibraryEnumerateKernels(kernels, numKernels, lib);
	for (unsigned i = 0; result == CUDA_SUCCESS && i < numKernels; i++) {
		if (kernels[i] && !ckt_rt_kernel_adopt(kernels[i]))
			result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	return ckt_rt_cu(result);
}

CKT_RT_API cudaError_t cudaKernelSetAttributeForDevice(
	cudaKernel_t kernel, enum cudaFuncAttribute attr, int value, int device)
{
	CKT_RT_ENTER();
	cudaError_t error = ckt_rt_check_device(device);
	CKT_RT_REQUIRE(!error, error);
	return ckt_rt_cu(cuKernelSetAttribute(
		(CUfunction_attribute)attr, value, kernel, ckt_rt_devices[device].handle));
}
