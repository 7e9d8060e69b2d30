/* SPDX-License-Identifier: Apache-2.0 */
/* client/cuda/module/function.c: functions: asked for once, all about them known then. */
#include "relay.h"

static void test_functions(void)
{
	CUmodule module;
	CUfunction f, again, none;
	CUdeviceptr address;
	size_t size, offset;
	int value;
	MUST(cuModuleLoadData(&module, relay_ptx), CUDA_SUCCESS);
	COST(cuModuleGetFunction(&f, module, "add"), CUDA_SUCCESS, 1, 0);
	LOCAL(cuModuleGetFunction(&again, module, "add"), CUDA_SUCCESS);
	YES(again == f);
	IS(cuModuleGetFunction(&none, module, "nothing"), CUDA_ERROR_NOT_FOUND);
	LOCAL(cuModuleGetFunction(&none, module, NULL), BAD);
	LOCAL(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f), CUDA_SUCCESS);
	YES(value >= 32);
	LOCAL(cuFuncGetAttribute(&value, (CUfunction_attribute)99, f), BAD);
	LOCAL(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, (CUfunction)0x1234),
		CUDA_ERROR_INVALID_HANDLE);
	LOCAL(cuFuncGetParamInfo(f, 1, &offset, &size), CUDA_SUCCESS);
	IS(offset * 10 + size, 84);
	LOCAL(cuFuncGetParamInfo(f, 2, &offset, &size), BAD);
	IS(cuFuncSetCacheConfig(f, CU_FUNC_CACHE_PREFER_EQUAL), CUDA_SUCCESS);
	LOCAL(cuFuncSetCacheConfig(f, (CUfunc_cache)(CU_FUNC_CACHE_PREFER_EQUAL + 1)), BAD);
	CUmodule of = NULL;
	LOCAL(cuFuncGetModule(&of, f), CUDA_SUCCESS);
	YES(of == module);
	const char *name = NULL;
	LOCAL(cuFuncGetName(&name, f), CUDA_SUCCESS);
	TEXT(name, "add");
	IS(cuModuleGetGlobal(&address, &size, module, "counter"), CUDA_SUCCESS);
	IS(size, 4);
	IS(word_at(address), 3);
	IS(cuModuleUnload(module), CUDA_SUCCESS);
	LOCAL(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, f), CUDA_ERROR_INVALID_HANDLE);
	LOCAL(cuModuleGetFunction(&f, module, "add"), CUDA_ERROR_INVALID_HANDLE);
}

UNIT_SUITE(function, {"functions", test_functions})
