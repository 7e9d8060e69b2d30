/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the soft GPU share.  Each program is linked with the library itself and
 * includes this once.
 */
#pragma once

#include <CUnit/Basic.h>
#include <CUnit/CUnit.h>
#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The name of what came instead stands in CUnit's message. */
#define CHECK_RESULT(call, expected)                                                              \
	do {                                                                                      \
		CUresult result_ = (call);                                                        \
		if (result_ != (expected)) {                                                      \
			const char *name_ = "?";                                                  \
			cuGetErrorName(result_, &name_);                                          \
			fprintf(stderr, "%s:%d: %s gave %s\n", __FILE__, __LINE__, #call, name_); \
		}                                                                                 \
		CU_ASSERT_EQUAL(result_, (expected));                                             \
	} while (0)
#define OK(call) CHECK_RESULT(call, CUDA_SUCCESS)

/* A primary context of device 0, fresh. */
static inline CUcontext test_context(void)
{
	CUcontext context = NULL;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxReset(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	return context;
}

struct soft_test {
	const char *name;
	void (*function)(void);
};

static inline int run_tests(const char *suite_name, const struct soft_test *tests, size_t n)
{
	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	CU_pSuite suite = CU_add_suite(suite_name, NULL, NULL);
	for (size_t i = 0; i < n; i++)
		CU_add_test(suite, tests[i].name, tests[i].function);
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	unsigned failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures ? 1 : 0;
}

#define RUN_TESTS(suite, list) run_tests(suite, list, sizeof(list) / sizeof(*(list)))

#define PTX_HEADER ".version 8.0\n.target sm_80\n.address_size 64\n"

/*
 * add_one(int *p): p[tid] += 1;  wait_for(int *flag, int *out): spins until *flag != 0, then *out =
 * *flag;  touch(int *p): *p = 1.
 */
static const char test_ptx[] = PTX_HEADER
	".visible .global .align 4 .u32 counter = 7;\n"
	".visible .entry add_one(.param .u64 p)\n{\n"
	".reg .b64 %rd<4>; .reg .b32 %r<4>;\n"
	"ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;\n"
	"ld.global.u32 %r2, [%rd3]; add.s32 %r3, %r2, 1; st.global.u32 [%rd3], %r3; ret;\n}\n"
	".visible .entry wait_for(.param .u64 flag, .param .u64 out)\n{\n"
	".reg .b64 %rd<3>; .reg .b32 %r<2>; .reg .pred %p<2>;\n"
	"ld.param.u64 %rd1, [flag]; ld.param.u64 %rd2, [out];\n"
	"again: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra again;\n"
	"st.global.u32 [%rd2], %r1; ret;\n}\n"
	".visible .entry touch(.param .u64 p)\n{\n"
	".reg .b64 %rd<2>; .reg .b32 %r<2>;\n"
	"ld.param.u64 %rd1, [p]; mov.u32 %r1, 1; st.global.u32 [%rd1], %r1; ret;\n}\n"
	".visible .entry trap_now()\n{\ntrap;\nret;\n}\n";

static inline CUfunction test_function(const char *name)
{
	CUmodule module = NULL;
	CUfunction function = NULL;
	OK(cuModuleLoadData(&module, test_ptx));
	OK(cuModuleGetFunction(&function, module, name));
	return function;
}
