/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client/cuda/memory/pointer.c: pointer attributes: from the client's own record of the program's
 * memory.
 */
#include "relay.h"

static void test_attributes(void)
{
	CUdeviceptr memory = memory_of(4096, 0), start = 0;
	void *pinned, *host = NULL;
	unsigned value = 99, one = 1;
	size_t size = 0;
	int ordinal;
	IS(cuMemHostAlloc(&pinned, 100, 0), CUDA_SUCCESS);
	LOCAL(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory + 5),
		CUDA_SUCCESS);
	IS(value, CU_MEMORYTYPE_DEVICE);
	LOCAL(cuPointerGetAttribute(
		      &value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)pinned),
		CUDA_SUCCESS);
	IS(value, CU_MEMORYTYPE_HOST);
	LOCAL(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, memory + 5),
		CUDA_SUCCESS);
	LOCAL(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, memory + 5),
		CUDA_SUCCESS);
	YES(start == memory && size == 4096);
	LOCAL(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, memory), BAD);
	LOCAL(cuPointerGetAttribute(
		      &host, CU_POINTER_ATTRIBUTE_HOST_POINTER, (CUdeviceptr)(uintptr_t)pinned),
		CUDA_SUCCESS);
	YES(host == pinned);
	LOCAL(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0x1234), BAD);
	LOCAL(cuPointerGetAttribute(NULL, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory), BAD);
	LOCAL(cuPointerGetAttribute(&value, (CUpointer_attribute)99, memory), BAD);
	/* Many at once: what an unknown pointer has not is empty, and no error. */
	CUpointer_attribute attributes[] = {
		CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
	void *data[] = {&ordinal, &value};
	LOCAL(cuPointerGetAttributes(2, attributes, data, memory), CUDA_SUCCESS);
	IS(ordinal * 10 + (int)value, CU_MEMORYTYPE_DEVICE);
	LOCAL(cuPointerGetAttributes(2, attributes, data, 0x1234), CUDA_SUCCESS);
	YES(ordinal == -2 && value == 0);
	LOCAL(cuPointerGetAttributes(0, attributes, data, memory), BAD);
	data[1] = NULL;
	LOCAL(cuPointerGetAttributes(2, attributes, data, memory), BAD);
	data[1] = &value;
	LOCAL(cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory), CUDA_SUCCESS);
	LOCAL(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory),
		CUDA_SUCCESS);
	IS(value, 1);
	LOCAL(cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory), BAD);
	LOCAL(cuPointerSetAttribute(
		      &one, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)(uintptr_t)pinned),
		BAD);
	/* A managed variable of a module is managed memory, another one is not. */
	CUmodule module;
	CUdeviceptr shared, counter;
	unsigned managed = 0;
	MUST(cuModuleLoadData(&module,
		     ".version 7.0\n.target sm_75\n.address_size 64\n.visible .global .attribute(.managed) .align 4 .u32 shared;\n"
		     ".visible .global .align 4 .u32 counter;\n"),
		CUDA_SUCCESS);
	IS(cuModuleGetGlobal(&shared, &size, module, "shared"), CUDA_SUCCESS);
	IS(cuModuleGetGlobal(&counter, &size, module, "counter"), CUDA_SUCCESS);
	LOCAL(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, shared),
		CUDA_SUCCESS);
	YES(managed);
	LOCAL(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, counter),
		CUDA_SUCCESS);
	NO(managed);
	IS(cuModuleUnload(module), CUDA_SUCCESS);
	IS(cuMemFreeHost(pinned), CUDA_SUCCESS);
	IS(cuMemFree(memory), CUDA_SUCCESS);
	LOCAL(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory), BAD);
}

UNIT_SUITE(pointer, {"attributes", test_attributes})
