/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/module/function.c: what a kernel's attributes are, which may be set to what, and what its
 * parameters are.
 */
#include "files.h"

static const char text[] =
	".const .align 4 .b32 table[5];\n"
	".visible .entry plain(.param .u8 a, .param .u64 b, .param .align 16 .b8 c[20])\n{\n.reg .b32 r;\n.shared .b8 room[1000];\n"
	".local .b8 own[100];\nmov.u32 r, room;\nret;\n}\n"
	".visible .entry bounded() .maxntid 64, 2 .minnctapersm 2\n{\nret;\n}\n"
	".visible .entry exact() .reqntid 32, 4, 2\n{\nret;\n}\n";
static const char clustered[] =
	".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() .reqnctapercluster 2, 1, 1\n{\nret;\n"
	"}\n";

static int get(CUfunction f, CUfunction_attribute attribute)
{
	int value = -77;
	OK(cuFuncGetAttribute(&value, attribute, f));
	return value;
}

static void test_attributes(void)
{
	test_context();
	CUfunction plain = files_kernel(text, "plain"), bounded = files_kernel(text, "bounded"),
		   exact = files_kernel(text, "exact");
	IS(get(plain, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 1024);
	IS(get(bounded, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 128);
	IS(get(exact, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 256);
	IS(get(plain, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), 1000);
	IS(get(plain, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES), 20);
	YES(get(plain, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES) >= 100);
	YES(get(plain, CU_FUNC_ATTRIBUTE_NUM_REGS) >= 1 &&
		get(plain, CU_FUNC_ATTRIBUTE_NUM_REGS) <= 64);
	IS(get(plain, CU_FUNC_ATTRIBUTE_PTX_VERSION), 80);
	IS(get(plain, CU_FUNC_ATTRIBUTE_BINARY_VERSION), 90);
	IS(get(plain, CU_FUNC_ATTRIBUTE_CACHE_MODE_CA), 0);
	IS(get(plain, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES), (48 << 10) - 1000);
	IS(get(plain, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT), -1);
	IS(get(plain, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH), 0);
	int value;
	CHECK_RESULT(
		cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX, plain), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuFuncGetAttribute(&value, (CUfunction_attribute)-1, plain),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuFuncGetAttribute(NULL, CU_FUNC_ATTRIBUTE_NUM_REGS, plain),
		CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, NULL),
		CUDA_ERROR_INVALID_HANDLE);
	CHECK_RESULT(cuFuncGetAttribute(
			     &value, CU_FUNC_ATTRIBUTE_NUM_REGS, (CUfunction)(uintptr_t)0x1230),
		CUDA_ERROR_INVALID_HANDLE);
}

static void test_set(void)
{
	enum {
		SHARED = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
		CARVEOUT = CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
		WIDTH = CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
		POLICY = CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE,
		PORTABLE = CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
	};
	static const struct {
		int attribute, value;
		CUresult result;
	} table[] = {
		{SHARED, 0, CUDA_SUCCESS},
		{SHARED, -1, CUDA_ERROR_INVALID_VALUE},
		{SHARED, (227 << 10) - 1000, CUDA_SUCCESS},
		{SHARED, (227 << 10) - 999, CUDA_ERROR_INVALID_VALUE},
		{CARVEOUT, -1, CUDA_SUCCESS},
		{CARVEOUT, 100, CUDA_SUCCESS},
		{CARVEOUT, 101, CUDA_ERROR_INVALID_VALUE},
		{CARVEOUT, -2, CUDA_ERROR_INVALID_VALUE},
		{WIDTH, 2, CUDA_SUCCESS},
		{WIDTH, -1, CUDA_ERROR_INVALID_VALUE},
		{PORTABLE, 1, CUDA_SUCCESS},
		{POLICY, CU_CLUSTER_SCHEDULING_POLICY_SPREAD, CUDA_SUCCESS},
		{POLICY, 3, CUDA_ERROR_INVALID_VALUE},
		{CU_FUNC_ATTRIBUTE_NUM_REGS, 8, CUDA_ERROR_INVALID_VALUE},
		{CU_FUNC_ATTRIBUTE_MAX, 0, CUDA_ERROR_INVALID_VALUE},
	};
	test_context();
	CUfunction f = files_kernel(text, "plain");
	for (size_t i = 0; i < COUNT(table); i++) {
		CHECK_RESULT(cuFuncSetAttribute(
				     f, (CUfunction_attribute)table[i].attribute, table[i].value),
			table[i].result);
		if (table[i].result == CUDA_SUCCESS)
			IS(get(f, (CUfunction_attribute)table[i].attribute), table[i].value);
	}
	/* What the code demands stays. */
	CUmodule module;
	OK(cuModuleLoadData(&module, clustered));
	OK(cuModuleGetFunction(&f, module, "k"));
	IS(get(f, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH), 2);
	CHECK_RESULT(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 4),
		CUDA_ERROR_NOT_PERMITTED);
	IS(get(f, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH), 2);
}

static void test_parameters(void)
{
	static const size_t want[][2] = {{0, 1}, {8, 8}, {16, 20}};
	test_context();
	CUfunction f = files_kernel(text, "plain");
	for (size_t i = 0; i < COUNT(want); i++) {
		size_t offset = 77, size = 77;
		OK(cuFuncGetParamInfo(f, i, &offset, &size));
		IS(offset, want[i][0]);
		IS(size, want[i][1]);
		OK(cuFuncGetParamInfo(f, i, &offset, NULL));
	}
	size_t offset;
	CHECK_RESULT(cuFuncGetParamInfo(f, 3, &offset, NULL), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuFuncGetParamInfo(f, 0, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	CUfunctionLoadingState state = (CUfunctionLoadingState)77;
	OK(cuFuncLoad(f));
	OK(cuFuncIsLoaded(&state, f));
	IS(state, CU_FUNCTION_LOADING_STATE_LOADED);
	CHECK_RESULT(cuFuncIsLoaded(NULL, f), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuFuncGetName(NULL, f), CUDA_ERROR_INVALID_VALUE);
	CHECK_RESULT(cuFuncGetModule(NULL, f), CUDA_ERROR_INVALID_VALUE);
	OK(cuFuncSetCacheConfig(f, CU_FUNC_CACHE_PREFER_L1));
	CHECK_RESULT(cuFuncSetCacheConfig(f, (CUfunc_cache)4), CUDA_ERROR_INVALID_VALUE);
	OK(cuFuncSetSharedMemConfig(f, CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE));
	CHECK_RESULT(cuFuncSetSharedMemConfig(f, (CUsharedconfig)3), CUDA_ERROR_INVALID_VALUE);
	/* More shared memory than a block has: the attribute cannot be negative. */
	CUfunction crowded = files_kernel(
		".visible .entry k()\n{\n.reg .b32 r;\n.shared .b8 room[60000];\nmov.u32 r, room;\nret;\n}\n",
		"k");
	IS(get(crowded, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES), 0);
}

UNIT_SUITE(softgpu / module / function, {"attributes", test_attributes}, {"set", test_set},
	{"parameters", test_parameters})
