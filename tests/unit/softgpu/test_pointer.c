/* SPDX-License-Identifier: Apache-2.0 */
/* softgpu/memory/pointer.c: every attribute of every kind of address. */
#include "files.h"

static void test_kinds(void)
{
	static _Alignas(4096) char registered[4096];
	void *pinned;
	CUdeviceptr device, managed, global;
	CUmodule module;
	size_t size;
	static const char text[] =
		PTX_HEADER ".visible .global .attribute(.managed) .align 8 .u64 shared;\n";
	CUcontext context = test_context();
	OK(cuMemAlloc(&device, 1000));
	OK(cuMemAllocManaged(&managed, 1000, CU_MEM_ATTACH_GLOBAL));
	OK(cuMemHostAlloc(&pinned, 1000, 0));
	OK(cuMemHostRegister(registered + 8, 1000, 0));
	OK(cuModuleLoadData(&module, text));
	OK(cuModuleGetGlobal(&global, &size, module, "shared"));
	const struct {
		CUdeviceptr base;
		int64_t type, is_managed, has_host;
		size_t size;
	} table[] = {
		{device, CU_MEMORYTYPE_DEVICE, 0, 0, 1000},
		{managed, CU_MEMORYTYPE_DEVICE, 1, 1, 1000},
		{(CUdeviceptr)(uintptr_t)pinned, CU_MEMORYTYPE_HOST, 0, 1, 1000},
		{(CUdeviceptr)(uintptr_t)registered + 8, CU_MEMORYTYPE_HOST, 0, 1, 1000},
		{global, CU_MEMORYTYPE_DEVICE, 1, 1, 8},
	};
	for (size_t i = 0; i < COUNT(table); i++) {
		CUdeviceptr p = table[i].base + 7, value = 0;
		unsigned word = 77;
		CUcontext of = NULL;
		unsigned long long id = 0, id_of_base = 0;
		OK(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, p));
		YES(of == context);
		OK(cuPointerGetAttribute(&word, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
		IS(word, table[i].type);
		OK(cuPointerGetAttribute(&word, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
		IS(word, table[i].is_managed);
		OK(cuPointerGetAttribute(&word, CU_POINTER_ATTRIBUTE_MAPPED, p));
		IS(word, 1);
		OK(cuPointerGetAttribute(&word, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
		IS(word, 0);
		OK(cuPointerGetAttribute(&word, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, p));
		IS(word, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
		OK(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, p));
		IS(value, p);
		OK(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p));
		IS(value, table[i].base);
		OK(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p));
		IS(value, table[i].size);
		CHECK_RESULT(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_HOST_POINTER, p),
			table[i].has_host ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
		IS(value, table[i].has_host ? p : table[i].size);
		OK(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
		OK(cuPointerGetAttribute(
			&id_of_base, CU_POINTER_ATTRIBUTE_BUFFER_ID, table[i].base));
		YES(id && id == id_of_base);
		CHECK_RESULT(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
				     table[i].base + table[i].size),
			CUDA_ERROR_INVALID_VALUE);
	}
	OK(cuMemHostUnregister(registered + 8));
}

static void test_unknown(void)
{
	int local;
	CUdeviceptr nowhere = (CUdeviceptr)(uintptr_t)&local;
	unsigned long long value;
	test_context();
	static const struct {
		CUpointer_attribute attribute;
		CUresult result;
	} table[] = {
		{CU_POINTER_ATTRIBUTE_CONTEXT, CUDA_ERROR_INVALID_VALUE},
		{CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CUDA_ERROR_INVALID_VALUE},
		{CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CUDA_ERROR_INVALID_VALUE},
		{CU_POINTER_ATTRIBUTE_HOST_POINTER, CUDA_ERROR_INVALID_VALUE},
		{CU_POINTER_ATTRIBUTE_BUFFER_ID, CUDA_ERROR_INVALID_VALUE},
		{CU_POINTER_ATTRIBUTE_IS_MANAGED, CUDA_ERROR_INVALID_VALUE},
		{CU_POINTER_ATTRIBUTE_MAPPED, CUDA_ERROR_INVALID_VALUE},
		{CU_POINTER_ATTRIBUTE_P2P_TOKENS, CUDA_ERROR_NOT_SUPPORTED},
		{CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, CUDA_ERROR_INVALID_VALUE},
		{(CUpointer_attribute)0, CUDA_ERROR_INVALID_VALUE},
		{(CUpointer_attribute)999, CUDA_ERROR_INVALID_VALUE},
	};
	for (size_t i = 0; i < COUNT(table); i++) {
		value = 0;
		CHECK_RESULT(cuPointerGetAttribute(&value, table[i].attribute, nowhere),
			table[i].result);
		IS(value, 0);
	}
	CHECK_RESULT(cuPointerGetAttribute(NULL, CU_POINTER_ATTRIBUTE_IS_MANAGED, nowhere),
		CUDA_ERROR_INVALID_VALUE);
}

static void test_several(void)
{
	CUdeviceptr p;
	struct {
		unsigned value, guard;
	} type = {77, 0x5a5a5a5a}, managed = {77, 0x5a5a5a5a};
	uint64_t size = 77;
	CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
	void *values[] = {&type, &managed, &size};
	test_context();
	OK(cuMemAlloc(&p, 1000));
	OK(cuPointerGetAttributes(3, names, values, p));
	YES(type.value == CU_MEMORYTYPE_DEVICE && managed.value == 0 && size == 1000);
	/* Of an address that is none: zeros, and of each attribute no more bytes than it has. */
	type.value = managed.value = 77;
	OK(cuPointerGetAttributes(3, names, values, 0x1000));
	YES(type.value == 0 && managed.value == 0 && size == 0);
	YES(type.guard == 0x5a5a5a5a && managed.guard == 0x5a5a5a5a);
	names[2] = CU_POINTER_ATTRIBUTE_P2P_TOKENS;
	CHECK_RESULT(cuPointerGetAttributes(3, names, values, p), CUDA_ERROR_INVALID_VALUE);
	names[2] = (CUpointer_attribute)999;
	CHECK_RESULT(cuPointerGetAttributes(3, names, values, p), CUDA_ERROR_INVALID_VALUE);
	values[1] = NULL;
	CHECK_RESULT(cuPointerGetAttributes(2, names, values, p), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuPointerGetAttributes(0, names, values, p), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuPointerGetAttributes(1, NULL, values, p), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuPointerGetAttributes(1, names, NULL, p), CUDA_ERROR_INVALID_VALUE);
	unsigned on = 5, is = 77;
	OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p + 10));
	OK(cuPointerGetAttribute(&is, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
	IS(is, 1);
	CHECK_RESULT(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_IS_MANAGED, p),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 0x1000),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuPointerSetAttribute(NULL, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(p));
}

UNIT_SUITE(softgpu / memory / pointer, {"kinds", test_kinds}, {"unknown", test_unknown},
	{"several", test_several})
