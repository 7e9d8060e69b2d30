/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softgpu/libs/common/code.c: a library's code takes its place among variables, once a context and
 * kind of work.
 */
#include "softgpu/libs/common/code.h"
#include "softlibs.h"

static void nothing(const void *data)
{
	(void)data;
}

static void test_once(void)
{
	CUcontext context;
	size_t before = 0, after = 0, total;
	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	/* The variable comes with the first kernel, or at once where the driver is told so. */
	ckt_softlib_code_begin();
	ckt_softlib_code_use(nothing);
	OK(cuMemGetInfo(&before, &total));
	ckt_softlib_code_use(nothing);
	ckt_softlib_code_begin();
	OK(cuMemGetInfo(&after, &total));
	YES(before == after);
	CUcontext other;
#if CUDA_VERSION >= 13000
	OK(cuCtxCreate(&other, NULL, 0, 0));
#else
	OK(cuCtxCreate(&other, 0, 0));
#endif
	ckt_softlib_code_use(nothing);
	OK(cuMemGetInfo(&after, &total));
	YES(after < before);
	OK(cuCtxDestroy(other));
	OK(cuCtxSetCurrent(context));
}

UNIT_SUITE(code, {"once", test_once})
