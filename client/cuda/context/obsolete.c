/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions from before CUDA 3.2, with 32-bit addresses and sizes.  They work only in contexts of
 * that version, which drivers for 64-bit programs no longer make (measured on an H200).  So they
 * return the error for a wrong context.
 */
#include "client/cuda/context/device.h"
#include "cudacommon/interface.h"

CKT_EXPORT CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice device)
{
	size_t all;
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = cuDeviceTotalMem_v2(&all, device);
	if (!result)
		*bytes = all > UINT32_MAX ? UINT32_MAX : (unsigned)all;
	return result;
}

static CUresult wrong_context(void)
{
	return ckt_client_device_count() ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_NOT_INITIALIZED;
}

CKT_EXPORT CUresult cuMemAlloc(CUdeviceptr_v1 *address, unsigned int bytes)
{
	if (address)
		*address = 0;
	return wrong_context();
}

CKT_EXPORT CUresult cuMemGetInfo(unsigned int *available, unsigned int *total)
{
	if (available)
		*available = 0;
	if (total)
		*total = 0;
	return wrong_context();
}

/* The arguments are ignored. */
#define REFUSED(name)                                                       \
	CKT_EXPORT CUresult ckt_old_##name(void) __asm__("ckt_api_" #name); \
	CUresult ckt_old_##name(void)                                       \
	{                                                                   \
		return wrong_context();                                     \
	}

REFUSED(cuMemAllocPitch)
REFUSED(cuMemGetAddressRange)
REFUSED(cuMemFree)
REFUSED(cuMemAllocHost)
REFUSED(cuMemHostGetDevicePointer)
REFUSED(cuMemsetD8)
REFUSED(cuMemsetD16)
REFUSED(cuMemsetD32)
REFUSED(cuMemsetD2D8)
REFUSED(cuMemsetD2D16)
REFUSED(cuMemsetD2D32)
REFUSED(cuMemcpyHtoD)
REFUSED(cuMemcpyDtoH)
REFUSED(cuMemcpyDtoD)
REFUSED(cuMemcpyHtoDAsync)
REFUSED(cuMemcpyDtoHAsync)
REFUSED(cuMemcpyDtoDAsync)
REFUSED(cuMemcpy2D)
REFUSED(cuMemcpy2DUnaligned)
REFUSED(cuMemcpy2DAsync)
REFUSED(cuMemcpy3D)
REFUSED(cuMemcpy3DAsync)
