/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands for a genuine library that works at the driver, as cuBLAS's runtime does: some functions
 * it is linked to, the others it asks cuGetProcAddress for.  test_inside*.c, test_genuine.c.
 */
#include <cuda.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/worker/toy.h"

#define TOY __attribute__((visibility("default")))

static const char ptx[] =
	".version 7.8\n.target sm_80\n.address_size 64\n"
	".visible .global .align 4 .u32 toy_variable = 17;\n"
	".visible .entry toy_add(.param .u64 at, .param .u32 value)\n{\n.reg .u64 %a; .reg .u32 %v, %w;\n"
	"ld.param.u64 %a, [at]; ld.param.u32 %v, [value]; ld.global.u32 %w, [%a]; add.u32 %w, %w, %v; st.global.u32 [%a], %w; ret;\n}\n";

static void *entry(const char *name, cuuint64_t flags)
{
	void *found = NULL;
	CUdriverProcAddressQueryResult status;
	return cuGetProcAddress_v2(name, &found, CUDA_VERSION, flags, &status) ? NULL : found;
}

TOY void *toy_entry(const char *name, int version, uint64_t flags)
{
	void *found = NULL;
	return cuGetProcAddress_v2(name, &found, version, flags, NULL) ? NULL : found;
}

TOY int toy_alloc(enum toy_how how, size_t size, uint64_t *ret_address)
{
	CUdeviceptr address = 0;
	CUresult (*alloc)(CUdeviceptr *, size_t);
	CUresult (*alloc_async)(CUdeviceptr *, size_t, CUstream);
	size_t pitch = 0;
	CUresult result = CUDA_ERROR_NOT_SUPPORTED;
	switch (how) {
	case TOY_LINKED:
		result = cuMemAlloc_v2(&address, size);
		break;
	case TOY_ASKED:
		*(void **)&alloc = entry("cuMemAlloc", CU_GET_PROC_ADDRESS_LEGACY_STREAM);
		result = alloc ? alloc(&address, size) : CUDA_ERROR_NOT_FOUND;
		break;
	case TOY_ASYNC:
		result = cuMemAllocAsync(&address, size, NULL);
		break;
	case TOY_PER_THREAD:
		*(void **)&alloc_async =
			entry("cuMemAllocAsync", CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
		result = alloc_async ? alloc_async(&address, size, NULL) : CUDA_ERROR_NOT_FOUND;
		break;
	case TOY_PITCH:
		result = cuMemAllocPitch_v2(&address, &pitch, size / 2, 2, 4);
		break;
	}
	*ret_address = address;
	return result;
}

TOY int toy_free(uint64_t address, int async)
{
	return async ? cuMemFreeAsync(address, NULL) : cuMemFree_v2(address);
}

TOY int toy_info(size_t *free_bytes, size_t *total)
{
	return cuMemGetInfo_v2(free_bytes, total);
}

TOY int toy_host(size_t size, void **ret_address)
{
	return cuMemHostAlloc(ret_address, size, 0);
}

TOY int toy_host_free(void *address)
{
	return cuMemFreeHost(address);
}

TOY int toy_managed(size_t size, uint64_t *ret_address)
{
	CUdeviceptr address = 0;
	CUresult result = cuMemAllocManaged(&address, size, CU_MEM_ATTACH_GLOBAL);
	*ret_address = address;
	return result;
}

TOY int toy_physical(size_t size, uint64_t *ret_handle)
{
	CUdevice device;
	CUresult result = cuCtxGetDevice(&device);
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
	CUmemGenericAllocationHandle handle = 0;
	if (!result)
		result = cuMemCreate(&handle, size, &prop, 0);
	*ret_handle = handle;
	return result;
}

TOY int toy_physical_free(uint64_t handle)
{
	return cuMemRelease(handle);
}

TOY int toy_stream(void **ret_stream)
{
	return cuStreamCreate((CUstream *)ret_stream, CU_STREAM_NON_BLOCKING);
}

TOY int toy_stream_destroy(void *stream)
{
	return cuStreamDestroy_v2(stream);
}

TOY int toy_event(void **ret_event)
{
	return cuEventCreate((CUevent *)ret_event, CU_EVENT_DISABLE_TIMING);
}

TOY int toy_event_destroy(void *event)
{
	return cuEventDestroy_v2(event);
}

TOY int toy_limit(size_t stack_bytes)
{
	return cuCtxSetLimit(CU_LIMIT_STACK_SIZE, stack_bytes);
}

/* ---- Code as a runtime has it: a library of kernels, from the file or made at run time */

static const char code[] =
	".version 7.8\n.target sm_80\n.address_size 64\n.visible .global .align 4 .u32 code_variable = 4;\n"
	".visible .entry first()\n{\nret;\n}\n.visible .entry second()\n{\nret;\n}\n";

TOY int toy_code_load(int heap, void **ret_library)
{
	CUlibrary library = NULL;
	char *copy = heap ? strdup(code) : NULL;
	CUlibraryOption options[] = {CU_LIBRARY_BINARY_IS_PRESERVED};
	void *values[] = {(void *)1};
	CUresult result = cuLibraryLoadData(
		&library, copy ? copy : code, NULL, NULL, 0, options, values, !copy);
	free(copy);
	*ret_library = library;
	return result;
}

TOY int toy_code_run(void *library, const char *name)
{
	CUkernel kernel;
	CUresult result = cuLibraryGetKernel(&kernel, library, name);
	if (!result)
		result = cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
	return result ? result : cuCtxSynchronize();
}

TOY int toy_code_variable(void *library, uint64_t *ret_address)
{
	CUdeviceptr address = 0;
	size_t size;
	CUresult result = cuLibraryGetGlobal(&address, &size, library, "code_variable");
	*ret_address = address;
	return result;
}

TOY int toy_code_unload(void *library)
{
	return cuLibraryUnload(library);
}

TOY int toy_code_module(void **ret_module)
{
	return cuModuleLoadData((CUmodule *)ret_module, code);
}

TOY int toy_code_module_unload(void *module)
{
	return cuModuleUnload(module);
}

/* As a runtime numbers devices; first: -1 where there is none. */
TOY int toy_devices(int *ret_count, int *ret_first, int *ret_current)
{
	CUdevice device, current;
	CUresult result = cuDeviceGetCount(ret_count);
	*ret_first = cuDeviceGet(&device, 0) ? -1 : device;
	if (!result)
		result = cuCtxGetDevice(&current);
	*ret_current = -1;
	for (int i = 0; i < *ret_count && !result; i++)
		if (!cuDeviceGet(&device, i) && device == current)
			*ret_current = i;
	return result ? result
		: cuDeviceGet(&device, *ret_count) == CUDA_ERROR_INVALID_DEVICE
		? CUDA_SUCCESS
		: CUDA_ERROR_UNKNOWN;
}

TOY int toy_range(uint64_t address, uint64_t *ret_start, size_t *ret_size)
{
	CUdeviceptr start = 0, by_attribute = 0;
	size_t size = 0;
	CUcontext context = NULL, current = NULL;
	CUresult result = cuMemGetAddressRange_v2(&start, ret_size, address);
	CUpointer_attribute attributes[] = {
		CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
	void *values[] = {&by_attribute, &size};
	if (!result)
		result = cuPointerGetAttributes(2, attributes, values, address);
	if (!result)
		result = cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, address);
	cuCtxGetCurrent(&current);
	if (!result && (by_attribute != start || size != *ret_size || context != current))
		result = CUDA_ERROR_UNKNOWN;
	*ret_start = start;
	return result;
}

/* A module of its own, whose kernel adds to its variable and to the word at the address. */
TOY int toy_run(uint64_t address, uint32_t value, uint64_t *ret_variable)
{
	static CUmodule module;
	static CUfunction function;
	CUdeviceptr variable = 0;
	size_t size;
	CUresult result = module ? CUDA_SUCCESS : cuModuleLoadData(&module, ptx);
	if (!result && !function)
		result = cuModuleGetFunction(&function, module, "toy_add");
	if (!result)
		result = cuModuleGetGlobal_v2(&variable, &size, module, "toy_variable");
	for (int i = 0; i < 2 && !result; i++) {
		CUdeviceptr at = i ? variable : address;
		void *parameters[] = {&at, &value};
		result = cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
	}
	*ret_variable = variable;
	return result ? result : cuCtxSynchronize();
}
