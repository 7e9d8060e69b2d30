/* SPDX-License-Identifier: Apache-2.0 */
/* See fake_driver.h. */
#include "fake_driver.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC visibility push(default)

struct fake fake = {.devices = 2, .version = 13000};
static _Thread_local CUcontext current;

static CUresult result(const char *call)
{
	CUresult next = fake.sticky ? fake.sticky : fake.next_result;
	snprintf(fake.last_call, sizeof fake.last_call, "%s", call);
	fake.next_result = CUDA_SUCCESS;
	return next;
}

/* Contexts are 0x1000 + device, functions name their device and kernel. */
static int device_of(CUcontext context)
{
	return (int)((uintptr_t)context - 0x1000);
}

CUresult cuInit(unsigned flags)
{
	fake.inits++;
	return fake.init_result;
}

CUresult cuDriverGetVersion(int *version)
{
	*version = fake.version;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
	*count = fake.devices;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
	*device = ordinal;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
	switch (attribute) {
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
		*value = 1024;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
		*value = 64;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
		*value = INT32_MAX;
		break;
	default:
		*value = 65535;
	}
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	fake.retains++;
	*context = (CUcontext)(uintptr_t)(0x1000 + device);
	return result(__func__);
}

CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
	fake.sticky = CUDA_SUCCESS;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
	*flags = 0;
	*active = 1;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
	*context = current;
	return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
	fake.sets++;
	current = context;
	return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
	*device = device_of(current);
	return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
	fake.syncs++;
	return result(__func__);
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options,
	void **values, unsigned count, CUlibraryOption *library_options, void **library_values,
	unsigned library_count)
{
	fake.library_loads++;
	fake.last_image = code;
	*library = (CUlibrary)(uintptr_t)code;
	if (fake.library_result == CUDA_ERROR_NO_BINARY_FOR_GPU && fake.links)
		return CUDA_SUCCESS;
	return fake.library_result;
}

CUresult cuLibraryUnload(CUlibrary library)
{
	fake.unloads++;
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	fake.kernels_found++;
	if (strcmp(name, "missing") == 0)
		return CUDA_ERROR_NOT_FOUND;
	*kernel = (CUkernel)(uintptr_t)name;
	return CUDA_SUCCESS;
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
	fake.gets++;
	*function = (CUfunction)((uintptr_t)kernel + (uintptr_t)device_of(current));
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(
	CUdeviceptr *address, size_t *bytes, CUlibrary library, const char *name)
{
	fake.gets++;
	*address = 0x50000;
	*bytes = 64;
	return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	fake.module_loads++;
	*module = (CUmodule)(uintptr_t)image;
	return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	*function = (CUfunction)((uintptr_t)name + (uintptr_t)device_of(current));
	return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module)
{
	fake.unloads++;
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context)
{
	return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *context)
{
	return CUDA_SUCCESS;
}

static char linked[16] = "linked";

CUresult cuLinkCreate(unsigned count, CUjit_option *options, void **values, CUlinkState *state)
{
	*state = (CUlinkState)&linked;
	return CUDA_SUCCESS;
}

CUresult cuLinkAddData(CUlinkState state, CUjitInputType type, void *data, size_t size,
	const char *name, unsigned count, CUjit_option *options, void **values)
{
	if (type != CU_JIT_INPUT_FATBINARY || size != 16 + 8)
		return CUDA_ERROR_INVALID_VALUE;
	fake.links++;
	return CUDA_SUCCESS;
}

CUresult cuLinkComplete(CUlinkState state, void **image, size_t *size)
{
	*image = linked;
	*size = sizeof linked;
	return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState state)
{
	return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
	unsigned by, unsigned bz, unsigned shared_bytes, CUstream stream, void **params,
	void **extra)
{
	const unsigned shape[] = {gx, gy, gz, bx, by, bz, shared_bytes};
	fake.launches++;
	fake.last_function = function;
	fake.last_stream = stream;
	fake.last_argument = params ? params[0] : NULL;
	memcpy(fake.last_shape, shape, sizeof shape);
	if (fake.next_result || fake.sticky)
		return result(__func__);
	return gx && bx && bx * by * bz <= 1024 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamQuery(CUstream stream)
{
	fake.last_stream = stream;
	return result(__func__);
}

CUresult cuStreamSynchronize(CUstream stream)
{
	fake.syncs++;
	fake.last_stream = stream;
	return result(__func__);
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t size)
{
	CUresult failed = result(__func__);
	if (failed)
		return failed;
	*address = 0x7000;
	return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr address)
{
	return result(__func__);
}

static CUresult copy(
	const char *call, CUdeviceptr dst, CUdeviceptr src, size_t count, CUstream stream)
{
	fake.last_dst = dst;
	fake.last_src = src;
	fake.last_count = count;
	fake.last_stream = stream;
	return result(call);
}

CUresult cuMemcpyHtoD(CUdeviceptr dst, const void *src, size_t count)
{
	return copy("HtoD", dst, (CUdeviceptr)(uintptr_t)src, count, NULL);
}

CUresult cuMemcpyDtoH(void *dst, CUdeviceptr src, size_t count)
{
	return copy("DtoH", (CUdeviceptr)(uintptr_t)dst, src, count, NULL);
}

CUresult cuMemcpyDtoD(CUdeviceptr dst, CUdeviceptr src, size_t count)
{
	return copy("DtoD", dst, src, count, NULL);
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t count)
{
	return copy("default", dst, src, count, NULL);
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr dst, const void *src, size_t count, CUstream stream)
{
	return copy("HtoDAsync", dst, (CUdeviceptr)(uintptr_t)src, count, stream);
}

CUresult cuMemcpyDtoHAsync(void *dst, CUdeviceptr src, size_t count, CUstream stream)
{
	return copy("DtoHAsync", (CUdeviceptr)(uintptr_t)dst, src, count, stream);
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr dst, CUdeviceptr src, size_t count, CUstream stream)
{
	return copy("DtoDAsync", dst, src, count, stream);
}

CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D *p)
{
	return copy("2D", p->dstDevice, p->srcDevice, p->WidthInBytes * p->Height, NULL);
}
